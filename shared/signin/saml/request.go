package saml

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/beevik/etree"

	"management.platform.sh/shared/model"
)

// requestID is the ID of the AuthnRequest of a state. The provider repeats it in its response, so that a response fits one state alone.
func requestID(state string) string {
	sum := sha256.Sum256([]byte("saml request " + state))
	return "_" + hex.EncodeToString(sum[:])
}

// entityID is the entity ID of the platform at a provider.
func entityID(settings *model.SAMLProvider) string {
	if settings.EntityIssuer != "" {
		return settings.EntityIssuer
	}
	return settings.RedirectURI
}

// authnRequestURL returns the URL with the AuthnRequest of a state. Source: SAML 2.0 Core, 3.4.1; SAML 2.0 Bindings, 3.4.
func authnRequestURL(settings *model.SAMLProvider, state string, now time.Time) (string, error) {
	parsed, err := url.Parse(settings.SSOURL)
	if err != nil {
		return "", fmt.Errorf("reading ssoURL: %w", err)
	}
	document := etree.NewDocument()
	request := document.CreateElement("samlp:AuthnRequest")
	request.CreateAttr("xmlns:samlp", protocolNS)
	request.CreateAttr("xmlns:saml", assertionNS)
	request.CreateAttr("ID", requestID(state))
	request.CreateAttr("Version", "2.0")
	request.CreateAttr("IssueInstant", now.UTC().Format(time.RFC3339))
	request.CreateAttr("Destination", settings.SSOURL)
	request.CreateAttr("AssertionConsumerServiceURL", settings.RedirectURI)
	request.CreateAttr("ProtocolBinding", "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST")
	request.CreateElement("saml:Issuer").SetText(entityID(settings))
	policy := request.CreateElement("samlp:NameIDPolicy")
	policy.CreateAttr("Format", settings.NameIDPolicyFormat)
	policy.CreateAttr("AllowCreate", "true")
	text, err := document.WriteToBytes()
	if err != nil {
		return "", fmt.Errorf("encoding a request: %w", err)
	}
	var deflated bytes.Buffer
	writer, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err != nil {
		return "", fmt.Errorf("compressing a request: %w", err)
	}
	if _, err := writer.Write(text); err != nil {
		return "", fmt.Errorf("compressing a request: %w", err)
	}
	if err := writer.Close(); err != nil {
		return "", fmt.Errorf("compressing a request: %w", err)
	}
	query := parsed.Query()
	query.Set("SAMLRequest", base64.StdEncoding.EncodeToString(deflated.Bytes()))
	query.Set("RelayState", state)
	parsed.RawQuery = query.Encode()
	return parsed.String(), nil
}
