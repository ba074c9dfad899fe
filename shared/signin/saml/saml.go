// Package saml asks a SAML 2.0 identity provider who a person is: it sends browsers to the provider with a request, and reads the
// response that they post. It reads only the part of a response that a certificate of the configuration has signed, and refuses
// everything in it that two readers could understand differently. It sends no requests of its own: the configuration has all that
// it needs to know of a provider. It signs no request, and decrypts no response. Source: Spec 2.7 (saml); SAML 2.0 Core, Bindings
// and Profiles; ADR-0038.
package saml

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
)

// maxCertificates is how many certificates a provider may have. Each of them is tried.
const maxCertificates = 8

// Providers are the SAML identity providers of an environment.
type Providers struct{ env *platform.Environment }

// Open returns the providers of an environment.
func Open(env *platform.Environment) *Providers { return &Providers{env} }

// AuthorizationURL returns the URL with the AuthnRequest.
func (p *Providers) AuthorizationURL(_ context.Context, conn provider.Connector, request provider.Request) (string, error) {
	// Fail before the redirect when no certificate is usable.
	if _, err := p.signingCertificates(conn.Settings.SAML); err != nil {
		return "", err
	}
	address, err := authnRequestURL(conn.Settings.SAML, request.State, p.env.Now())
	if err != nil {
		return "", refusal.Misconfigured("ssoURL cannot be read")
	}
	return address, nil
}

// EndSessionURL is empty: a session at a SAML provider ends there alone.
func (p *Providers) EndSessionURL(context.Context, provider.Connector) (string, error) {
	return "", nil
}

// HandleCallback reads the response that a browser has posted, for the request of a state.
func (p *Providers) HandleCallback(_ context.Context, conn provider.Connector, callback provider.Response) (provider.Person, error) {
	config := conn.Settings.SAML
	encoded, err := oauth.Parameter(callback.Values, "SAMLResponse")
	if err != nil {
		return provider.Person{}, err
	}
	text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if err != nil || len(text) == 0 {
		return provider.Person{}, refusal.Misconfigured("the response is not in base64")
	}
	certificates, err := p.signingCertificates(config)
	if err != nil {
		return provider.Person{}, err
	}
	check := responseCheck{
		callbackURL: config.RedirectURI, audience: entityID(config), requestID: requestID(callback.State), issuer: config.SSOIssuer,
		format: config.NameIDPolicyFormat, certificates: certificates, acceptUnsigned: config.InsecureSkipSignatureValidation, now: p.env.Now(),
	}
	asserted, err := check.verify(text)
	var status *statusError
	switch {
	case errors.As(err, &status), errors.Is(err, errOtherRequest):
		return provider.Person{}, refusal.ByProvider(err.Error())
	case err != nil:
		return provider.Person{}, refusal.Misconfigured(sentence(err))
	}
	return mapAssertion(config, asserted)
}

// sentence returns an error of a response as a sentence. Many errors begin with a verb.
func sentence(err error) string {
	switch verb, _, _ := strings.Cut(err.Error(), " "); verb {
	case "is", "has", "does":
		return "the response " + err.Error()
	default:
		return "the response: " + err.Error()
	}
}

// signingCertificates returns the certificates that may sign for a provider. None: every response is accepted, signed or not. Errors:
// refusal.Refusal.
func (p *Providers) signingCertificates(config *model.SAMLProvider) ([]*x509.Certificate, error) {
	if config.InsecureSkipSignatureValidation {
		if p.env.UnsignedSAML != settings.On && !p.env.LocalSigners {
			return nil, refusal.Misconfigured("insecureSkipSignatureValidation is not allowed on this platform")
		}
		return nil, nil
	}
	field := "caData"
	var text []byte
	var err error
	if config.CAData != "" {
		text, err = base64.StdEncoding.DecodeString(strings.TrimSpace(config.CAData))
	} else {
		field = "ca"
		text, err = os.ReadFile(config.CA)
	}
	if err != nil {
		return nil, refusal.Misconfigured(field + " cannot be read here")
	}
	certificates, err := connector.Certificates(text)
	if err != nil {
		return nil, refusal.Misconfigured(field + " has something that is not a certificate")
	}
	usable, reason := connector.UsableCertificates(certificates, p.env.Now())
	switch {
	case len(usable) == 0:
		return nil, refusal.Misconfigured(field + " " + reason)
	case len(usable) > maxCertificates:
		return nil, refusal.Misconfigured(field + " has too many certificates")
	}
	return usable, nil
}

// mapAssertion returns the person of an assertion. Source: Spec 2.7 (usernameAttr, emailAttr, groupsAttr, groupsDelim, allowedGroups,
// filterGroups).
func mapAssertion(config *model.SAMLProvider, asserted *assertion) (provider.Person, error) {
	person := provider.Person{Subject: asserted.subject, SessionEnds: asserted.sessionEnds, Claims: slices.Sorted(maps.Keys(asserted.attributes))}
	for _, text := range []struct {
		attribute, field string
		into             *string
	}{{config.UsernameAttr, "usernameAttr", &person.Username}, {config.EmailAttr, "emailAttr", &person.Email}} {
		switch values := asserted.attributes[text.attribute]; {
		case text.attribute == "":
		case len(values) == 0:
			person.Absent = append(person.Absent, fmt.Sprintf("%s %.64q", text.field, text.attribute))
		case len(values) > 1:
			return provider.Person{}, refusal.Misconfigured("the response has several values for " + text.field)
		default:
			*text.into = values[0]
		}
	}
	if config.GroupsAttr != "" {
		if len(asserted.attributes[config.GroupsAttr]) == 0 {
			person.Absent = append(person.Absent, fmt.Sprintf("groupsAttr %.64q", config.GroupsAttr))
		}
		for _, group := range asserted.attributes[config.GroupsAttr] {
			if config.GroupsDelim == "" {
				person.Groups = append(person.Groups, group)
				continue
			}
			// The space beside a delimiter is a part of it.
			for text := range strings.SplitSeq(group, config.GroupsDelim) {
				person.Groups = append(person.Groups, strings.TrimSpace(text))
			}
		}
	}
	person.Groups = slices.DeleteFunc(person.Groups, func(group string) bool {
		return group == "" || config.FilterGroups && !slices.Contains(config.AllowedGroups, group)
	})
	return person, nil
}
