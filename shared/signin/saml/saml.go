// Package saml asks a SAML 2.0 identity provider who somebody is: it sends browsers there with a request, and reads the response that they
// post. It reads nothing of a response but what a certificate of the configuration has signed, and refuses everything in it that two
// readers could understand differently. It asks nobody itself: what it needs of a provider is in the configuration. It signs no request,
// and opens no encrypted response. Source: Spec 2.7 (saml); SAML 2.0 Core, Bindings and Profiles; ADR-0038.
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
	"management.platform.sh/shared/signin"
)

// maxCertificates is how many certificates a provider may have. Each of them is tried.
const maxCertificates = 8

// Providers are the SAML identity providers of an environment. It implements signin.Provider.
type Providers struct{ env *platform.Environment }

// Open returns the providers of an environment.
func Open(env *platform.Environment) *Providers { return &Providers{env} }

// Begin implements signin.Provider. The request is in the address.
func (p *Providers) Begin(_ context.Context, one signin.Connector, request signin.Request) (string, error) {
	// Nobody goes there in vain.
	if _, err := p.trust(one.Settings.SAML); err != nil {
		return "", err
	}
	at, err := address(one.Settings.SAML, request.State, p.env.Now())
	if err != nil {
		return "", signin.Misconfigured("ssoURL cannot be read")
	}
	return at, nil
}

// End implements signin.Provider. A session at a SAML provider ends there alone.
func (p *Providers) End(context.Context, signin.Connector) (string, error) { return "", nil }

// Finish implements signin.Provider: it reads the response that a browser has posted, as the answer to the request of a state.
func (p *Providers) Finish(_ context.Context, one signin.Connector, answer signin.Answer) (signin.Person, error) {
	given := one.Settings.SAML
	encoded, err := signin.Parameter(answer.Values, "SAMLResponse")
	if err != nil {
		return signin.Person{}, err
	}
	text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if err != nil || len(text) == 0 {
		return signin.Person{}, signin.Misconfigured("the response is not in base64")
	}
	certificates, err := p.trust(given)
	if err != nil {
		return signin.Person{}, err
	}
	wanted := expected{
		callback: given.RedirectURI, audience: entity(given), request: requestID(answer.State), issuer: given.SSOIssuer,
		format: given.NameIDPolicyFormat, certificates: certificates, unsigned: given.InsecureSkipSignatureValidation, now: p.env.Now(),
	}
	read, err := wanted.read(text)
	var status *refused
	switch {
	case errors.As(err, &status), errors.Is(err, errOther):
		return signin.Person{}, signin.Refused(err.Error())
	case err != nil:
		return signin.Person{}, signin.Misconfigured(sentence(err))
	}
	return person(given, read)
}

// sentence is an error of a response as a sentence. Many of them begin with a verb.
func sentence(err error) string {
	switch verb, _, _ := strings.Cut(err.Error(), " "); verb {
	case "is", "has", "does":
		return "the response " + err.Error()
	default:
		return "the response: " + err.Error()
	}
}

// trust returns the certificates that may sign for a provider. None: any response is accepted, signed or not. Errors: signin.Refusal.
func (p *Providers) trust(given *model.SAMLProvider) ([]*x509.Certificate, error) {
	if given.InsecureSkipSignatureValidation {
		if p.env.UnsignedSAML != settings.On && !p.env.LocalSigners {
			return nil, signin.Misconfigured("insecureSkipSignatureValidation is not allowed on this platform")
		}
		return nil, nil
	}
	field := "caData"
	var text []byte
	var err error
	if given.CAData != "" {
		text, err = base64.StdEncoding.DecodeString(strings.TrimSpace(given.CAData))
	} else {
		field = "ca"
		text, err = os.ReadFile(given.CA)
	}
	if err != nil {
		return nil, signin.Misconfigured(field + " cannot be read here")
	}
	certificates, err := connector.Certificates(text)
	if err != nil {
		return nil, signin.Misconfigured(field + " has something that is not a certificate")
	}
	found, why := connector.UsableCertificates(certificates, p.env.Now())
	switch {
	case len(found) == 0:
		return nil, signin.Misconfigured(field + " " + why)
	case len(found) > maxCertificates:
		return nil, signin.Misconfigured(field + " has too many certificates")
	}
	return found, nil
}

// person returns who an assertion names. Source: Spec 2.7 (usernameAttr, emailAttr, groupsAttr, groupsDelim, allowedGroups, filterGroups).
func person(given *model.SAMLProvider, read *assertion) (signin.Person, error) {
	found := signin.Person{Subject: read.subject, SessionEnds: read.sessionEnds, Claims: slices.Sorted(maps.Keys(read.attributes))}
	for _, one := range []struct {
		attribute, field string
		into             *string
	}{{given.UsernameAttr, "usernameAttr", &found.Username}, {given.EmailAttr, "emailAttr", &found.Email}} {
		switch values := read.attributes[one.attribute]; {
		case one.attribute == "":
		case len(values) == 0:
			found.Absent = append(found.Absent, fmt.Sprintf("%s %.64q", one.field, one.attribute))
		case len(values) > 1:
			return signin.Person{}, signin.Misconfigured("the response has several values for " + one.field)
		default:
			*one.into = values[0]
		}
	}
	if given.GroupsAttr != "" {
		if len(read.attributes[given.GroupsAttr]) == 0 {
			found.Absent = append(found.Absent, fmt.Sprintf("groupsAttr %.64q", given.GroupsAttr))
		}
		for _, group := range read.attributes[given.GroupsAttr] {
			if given.GroupsDelim == "" {
				found.Groups = append(found.Groups, group)
				continue
			}
			// The space beside a delimiter is a part of it.
			for one := range strings.SplitSeq(group, given.GroupsDelim) {
				found.Groups = append(found.Groups, strings.TrimSpace(one))
			}
		}
	}
	found.Groups = slices.DeleteFunc(found.Groups, func(group string) bool {
		return group == "" || given.FilterGroups && !slices.Contains(given.AllowedGroups, group)
	})
	return found, nil
}
