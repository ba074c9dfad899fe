package saml

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/beevik/etree"

	"management.platform.sh/shared/signin/oauth"
)

const (
	successStatus     = "urn:oasis:names:tc:SAML:2.0:status:Success"
	bearerMethod      = "urn:oasis:names:tc:SAML:2.0:cm:bearer" //nolint:gosec // the name of a method
	unspecifiedFormat = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
	transientFormat   = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	// skew is how much the clock of a provider may differ.
	skew = time.Minute
	// maxAssertionAge is how old an assertion may be: a request is not older either.
	maxAssertionAge = 10 * time.Minute
)

// responseCheck has the expected values of a response.
type responseCheck struct {
	// callbackURL is the address that the response names, audience the audience of its assertion, and request the ID of the request that it
	// answers.
	callbackURL, audience, requestID string
	// issuer is the issuer of the response. Empty: any issuer whose certificate is one of certificates.
	issuer string
	// format is the format of the NameID.
	format       string
	certificates []*x509.Certificate
	// acceptUnsigned accepts any signature, and none.
	acceptUnsigned bool
	now            time.Time
}

// assertion has the values of the verified assertion of a response.
type assertion struct {
	subject    string
	attributes map[string][]string
	// sessionEnds is when the session at the provider ends. Zero: it does not say.
	sessionEnds time.Time
}

// statusError is a status of the provider other than success.
type statusError struct{ status string }

func (r *statusError) Error() string { return "the provider answers " + r.status }

// verify verifies a response, and returns the values of its assertion. Errors: statusError, and the problem of the response, without a
// value from it. Source: SAML 2.0 Core, 3.3; SAML 2.0 Profiles, 4.1.4.3.
func (e responseCheck) verify(text []byte) (*assertion, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := checkStructure(root); err != nil {
		return nil, err
	}
	signed := e.acceptUnsigned
	// A response may be signed, its assertion, or both. From here on, only what was verified is read.
	if !e.acceptUnsigned && signatureOf(root) != nil {
		if root, err = verifySignature(root, e.certificates, e.now); err != nil {
			return nil, err
		}
		signed = true
	}
	asserted, err := e.checkResponse(root)
	if err != nil {
		return nil, err
	}
	if !e.acceptUnsigned && signatureOf(asserted) != nil {
		if asserted, err = verifySignature(asserted, e.certificates, e.now); err != nil {
			return nil, err
		}
		signed = true
	}
	if !signed {
		return nil, errSignature
	}
	return e.checkAssertion(asserted)
}

// checkStructure requires one unencrypted assertion, directly in the response, and signatures directly in these two elements alone: no
// other element can be mistaken for the signed assertion.
func checkStructure(root *etree.Element) error {
	if !hasName(root, protocolNS, "Response") {
		return errors.New("is not a response")
	}
	var asserted *etree.Element
	for _, child := range root.ChildElements() {
		switch {
		case hasName(child, assertionNS, "Assertion") && asserted == nil:
			asserted = child
		case hasName(child, protocolNS, "Status"):
			if status, err := statusOf(child); err == nil && status != successStatus {
				return &statusError{status}
			}
		}
	}
	if asserted == nil {
		return errors.New("has no assertion in clear")
	}
	signatures := map[*etree.Element]int{}
	var look func(element *etree.Element) error
	look = func(element *etree.Element) error {
		for _, child := range element.ChildElements() {
			switch {
			case child.Tag == "Response", child.Tag == "Assertion" && child != asserted:
				return errors.New("has a second assertion")
			case strings.HasPrefix(child.Tag, "Encrypted"):
				return errors.New("is encrypted")
			case child.Tag == "Signature":
				signatures[element]++
				if !hasName(child, signatureNS, "Signature") || element != root && element != asserted || signatures[element] > 1 {
					return errors.New("has a signature that is not where it must be")
				}
			}
			if err := look(child); err != nil {
				return err
			}
		}
		return nil
	}
	return look(root)
}

// statusOf returns the code of a status, or the more specific one in it.
func statusOf(status *etree.Element) (string, error) {
	parts := openChildren(status)
	code := parts.must(protocolNS, "StatusCode")
	parts.may(protocolNS, "StatusMessage")
	parts.may(protocolNS, "StatusDetail")
	statusCode := code.SelectAttrValue("Value", "")
	if statusCode != successStatus {
		if detail := openChildren(code).may(protocolNS, "StatusCode"); detail != nil {
			statusCode = detail.SelectAttrValue("Value", statusCode)
		}
	}
	return statusCode, parts.close()
}

// checkResponse checks a response, and returns its assertion.
func (e responseCheck) checkResponse(root *etree.Element) (*etree.Element, error) {
	parts := openChildren(root)
	issuer := parts.may(assertionNS, "Issuer")
	parts.may(signatureNS, "Signature")
	status, err := statusOf(parts.must(protocolNS, "Status"))
	asserted := parts.must(assertionNS, "Assertion")
	if err := errors.Join(parts.close(), err); err != nil {
		return nil, err
	}
	switch {
	case !hasName(root, protocolNS, "Response") || root.SelectAttrValue("Version", "") != "2.0":
		return nil, errors.New("is not a response of SAML 2.0")
	case status != successStatus:
		return nil, &statusError{status}
	case root.SelectAttrValue("Destination", "") != e.callbackURL:
		return nil, errors.New("its Destination is not redirectURI")
	case !oauth.EqualSecrets(root.SelectAttrValue("InResponseTo", ""), e.requestID):
		return nil, errOtherRequest
	}
	if issuer == nil {
		return asserted, nil
	}
	from, err := trimmedText(issuer)
	if err != nil {
		return nil, err
	}
	// The assertion says again whose it is.
	if by := asserted.SelectElement("Issuer"); by == nil || strings.TrimSpace(by.Text()) != from {
		return nil, errors.New("its Issuer is not that of its assertion")
	}
	return asserted, nil
}

// errOtherRequest says that a response answers no request, or another request.
var errOtherRequest = errors.New("does not answer this request")

// checkAssertion checks a verified assertion, and returns its values.
func (e responseCheck) checkAssertion(root *etree.Element) (*assertion, error) {
	if !hasName(root, assertionNS, "Assertion") || root.SelectAttrValue("Version", "") != "2.0" || root.SelectAttrValue("ID", "") == "" {
		return nil, errors.New("its assertion is not one of SAML 2.0")
	}
	issued, err := parseInstant(root, "IssueInstant")
	switch {
	case err != nil:
		return nil, err
	case issued.IsZero() || issued.After(e.now.Add(skew)) || issued.Add(maxAssertionAge+skew).Before(e.now):
		return nil, errors.New("its assertion was not issued just now")
	}
	parts := openChildren(root)
	issuer, err := trimmedText(parts.must(assertionNS, "Issuer"))
	if err != nil {
		return nil, err
	}
	parts.may(signatureNS, "Signature")
	subject := parts.must(assertionNS, "Subject")
	conditions := parts.must(assertionNS, "Conditions")
	result := &assertion{attributes: map[string][]string{}}
	authenticated := 0
	for {
		if statement := parts.may(assertionNS, "AuthnStatement"); statement != nil {
			authenticated++
			if err := e.readSessionEnd(statement, result); err != nil {
				return nil, err
			}
		} else if statement := parts.may(assertionNS, "AttributeStatement"); statement != nil {
			if err := result.addAttributes(statement); err != nil {
				return nil, err
			}
		} else {
			break
		}
	}
	if err := parts.close(); err != nil {
		return nil, err
	}
	switch {
	case issuer == "":
		return nil, errors.New("its assertion has no Issuer")
	case e.issuer != "" && issuer != e.issuer:
		return nil, errors.New("its Issuer is not ssoIssuer")
	case authenticated == 0:
		return nil, errors.New("its assertion has no AuthnStatement")
	}
	if err := e.checkConditions(conditions); err != nil {
		return nil, err
	}
	return result, e.checkSubject(subject, result)
}

// readSessionEnd reads when the session at the provider ends. Of several ends, the first counts.
func (e responseCheck) readSessionEnd(statement *etree.Element, result *assertion) error {
	end, err := parseInstant(statement, "SessionNotOnOrAfter")
	switch {
	case err != nil:
		return err
	case end.IsZero():
		return nil
	case !e.now.Before(end):
		return errors.New("the session at the provider has ended")
	case result.sessionEnds.IsZero() || end.Before(result.sessionEnds):
		result.sessionEnds = end
	}
	return nil
}

// checkConditions checks the time and the audience of an assertion. An unknown condition is not met.
func (e responseCheck) checkConditions(element *etree.Element) error {
	if err := e.checkValidity(element); err != nil {
		return err
	}
	parts := openChildren(element)
	audiences := 0
	for {
		if restriction := parts.may(assertionNS, "AudienceRestriction"); restriction != nil {
			audiences++
			named := openChildren(restriction)
			ours := false
			for next := named.may(assertionNS, "Audience"); next != nil; next = named.may(assertionNS, "Audience") {
				audience, err := trimmedText(next)
				if err != nil {
					return err
				}
				ours = ours || audience == e.audience
			}
			if err := named.close(); err != nil {
				return err
			}
			if !ours {
				return errors.New("its Audience is not entityIssuer or redirectURI")
			}
		} else if parts.may(assertionNS, "OneTimeUse") == nil && parts.may(assertionNS, "ProxyRestriction") == nil {
			break
		}
	}
	if audiences == 0 {
		return errors.New("its assertion has no AudienceRestriction")
	}
	return parts.close()
}

// checkValidity checks NotBefore and NotOnOrAfter, as far as an element has them.
func (e responseCheck) checkValidity(element *etree.Element) error {
	from, err := parseInstant(element, "NotBefore")
	if err != nil {
		return err
	}
	until, err := parseInstant(element, "NotOnOrAfter")
	switch {
	case err != nil:
		return err
	case !from.IsZero() && from.After(e.now.Add(skew)):
		return errors.New("its assertion is not valid yet")
	case !until.IsZero() && !e.now.Before(until.Add(skew)):
		return errors.New("its assertion has expired")
	}
	return nil
}

// checkSubject checks that this browser may present the assertion, and reads the NameID.
func (e responseCheck) checkSubject(element *etree.Element, result *assertion) error {
	parts := openChildren(element)
	id := parts.must(assertionNS, "NameID")
	var confirmed bool
	var problem error
	for next := parts.may(assertionNS, "SubjectConfirmation"); next != nil; next = parts.may(assertionNS, "SubjectConfirmation") {
		if err := e.checkConfirmation(next); err != nil {
			problem = err
		} else {
			confirmed = true
		}
	}
	if err := parts.close(); err != nil {
		return err
	}
	if !confirmed {
		if problem == nil {
			problem = errors.New("its subject has no SubjectConfirmation")
		}
		return problem
	}
	var err error
	if result.subject, err = exactText(id); err != nil {
		return err
	}
	format := id.SelectAttrValue("Format", unspecifiedFormat)
	switch {
	case strings.TrimSpace(result.subject) == "":
		return errors.New("its NameID is empty")
	case format == transientFormat:
		return errors.New("its NameID is another one at each sign-in: persistent is needed")
	case format != unspecifiedFormat && e.format != unspecifiedFormat && format != e.format:
		return errors.New("the format of its NameID is not nameIDPolicyFormat")
	}
	return nil
}

// checkConfirmation checks a bearer confirmation: its recipient, its time and its request.
func (e responseCheck) checkConfirmation(element *etree.Element) error {
	if element.SelectAttrValue("Method", "") != bearerMethod {
		return errors.New("its subject is not confirmed by a bearer")
	}
	parts := openChildren(element)
	if by := parts.may(assertionNS, "NameID"); by != nil {
		return errors.New("its subject is confirmed by somebody else")
	}
	data := parts.must(assertionNS, "SubjectConfirmationData")
	if err := parts.close(); err != nil {
		return err
	}
	switch until, err := parseInstant(data, "NotOnOrAfter"); {
	case err != nil:
		return err
	case until.IsZero():
		return errors.New("its SubjectConfirmationData has no NotOnOrAfter")
	case data.SelectAttrValue("Recipient", "") != e.callbackURL:
		return errors.New("its Recipient is not redirectURI")
	case !oauth.EqualSecrets(data.SelectAttrValue("InResponseTo", ""), e.requestID):
		return errOtherRequest
	}
	return e.checkValidity(data)
}

// addAttributes reads attributes. A value that is not a text is left out.
func (a *assertion) addAttributes(statement *etree.Element) error {
	parts := openChildren(statement)
	for attribute := parts.may(assertionNS, "Attribute"); attribute != nil; attribute = parts.may(assertionNS, "Attribute") {
		name := attribute.SelectAttrValue("Name", "")
		values := openChildren(attribute)
		for element := values.may(assertionNS, "AttributeValue"); element != nil; element = values.may(assertionNS, "AttributeValue") {
			if text, err := exactText(element); err == nil {
				a.attributes[name] = append(a.attributes[name], text)
			}
		}
		if err := values.close(); err != nil {
			return err
		}
	}
	return parts.close()
}

// parseInstant reads a time. Zero: the element has no such attribute.
func parseInstant(element *etree.Element, attribute string) (time.Time, error) {
	text := element.SelectAttrValue(attribute, "")
	if text == "" {
		return time.Time{}, nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New(attribute + " is not a time")
	}
	return parsed, nil
}
