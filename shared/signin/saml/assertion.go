package saml

import (
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/beevik/etree"
)

const (
	successStatus = "urn:oasis:names:tc:SAML:2.0:status:Success"
	bearerMethod  = "urn:oasis:names:tc:SAML:2.0:cm:bearer" //nolint:gosec // the name of a method
	unspecified   = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
	transient     = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	// skew is how much the clock of a provider may differ.
	skew = time.Minute
	// answeredWithin is how old an assertion may be: a request is not older either.
	answeredWithin = 10 * time.Minute
)

// expected is what a response must fit.
type expected struct {
	// callback is the address that the response names, audience the audience of its assertion, and request the ID of the request that it
	// answers.
	callback, audience, request string
	// issuer is the issuer of the response. Empty: any issuer whose certificate is one of certificates.
	issuer string
	// format is that of the NameID.
	format       string
	certificates []*x509.Certificate
	// unsigned accepts any signature, and none.
	unsigned bool
	now      time.Time
}

// assertion is what was read of the verified part of a response.
type assertion struct {
	subject    string
	attributes map[string][]string
	// sessionEnds is when the session at the provider ends. Zero: it does not say.
	sessionEnds time.Time
}

// refused is a status of the provider that is not a success.
type refused struct{ status string }

func (r *refused) Error() string { return "the provider answers " + r.status }

// read verifies a response, and returns what its assertion says. Errors: refused, and what is wrong with the response, without a value
// from it. Source: SAML 2.0 Core, 3.3; SAML 2.0 Profiles, 4.1.4.3.
func (e expected) read(text []byte) (*assertion, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := placed(root); err != nil {
		return nil, err
	}
	signed := e.unsigned
	// A response may be signed, its assertion, or both. From here on, only what was verified is read.
	if !e.unsigned && signatureOf(root) != nil {
		if root, err = verified(root, e.certificates, e.now); err != nil {
			return nil, err
		}
		signed = true
	}
	asserted, err := e.response(root)
	if err != nil {
		return nil, err
	}
	if !e.unsigned && signatureOf(asserted) != nil {
		if asserted, err = verified(asserted, e.certificates, e.now); err != nil {
			return nil, err
		}
		signed = true
	}
	if !signed {
		return nil, errSignature
	}
	return e.assertion(asserted)
}

// placed refuses a response that does not have one assertion, directly in it, in clear, and signatures directly in these two alone:
// nothing that could be taken for the signed assertion is anywhere else.
func placed(root *etree.Element) error {
	if !is(root, protocolNS, "Response") {
		return errors.New("is not a response")
	}
	var asserted *etree.Element
	for _, child := range root.ChildElements() {
		switch {
		case is(child, assertionNS, "Assertion") && asserted == nil:
			asserted = child
		case is(child, protocolNS, "Status"):
			if status, err := statusOf(child); err == nil && status != successStatus {
				return &refused{status}
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
				if !is(child, signatureNS, "Signature") || element != root && element != asserted || signatures[element] > 1 {
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
	parts := open(status)
	code := parts.must(protocolNS, "StatusCode")
	parts.may(protocolNS, "StatusMessage")
	parts.may(protocolNS, "StatusDetail")
	said := code.SelectAttrValue("Value", "")
	if said != successStatus {
		if more := open(code).may(protocolNS, "StatusCode"); more != nil {
			said = more.SelectAttrValue("Value", said)
		}
	}
	return said, parts.close()
}

// response checks a response, and returns its assertion.
func (e expected) response(root *etree.Element) (*etree.Element, error) {
	parts := open(root)
	issuer := parts.may(assertionNS, "Issuer")
	parts.may(signatureNS, "Signature")
	status, err := statusOf(parts.must(protocolNS, "Status"))
	asserted := parts.must(assertionNS, "Assertion")
	if err := errors.Join(parts.close(), err); err != nil {
		return nil, err
	}
	switch {
	case !is(root, protocolNS, "Response") || root.SelectAttrValue("Version", "") != "2.0":
		return nil, errors.New("is not a response of SAML 2.0")
	case status != successStatus:
		return nil, &refused{status}
	case root.SelectAttrValue("Destination", "") != e.callback:
		return nil, errors.New("its Destination is not redirectURI")
	case !same(root.SelectAttrValue("InResponseTo", ""), e.request):
		return nil, errOther
	}
	if issuer == nil {
		return asserted, nil
	}
	from, err := value(issuer)
	if err != nil {
		return nil, err
	}
	// The assertion says again whose it is.
	if by := asserted.SelectElement("Issuer"); by == nil || strings.TrimSpace(by.Text()) != from {
		return nil, errors.New("its Issuer is not that of its assertion")
	}
	return asserted, nil
}

// errOther says that a response answers no request, or another one.
var errOther = errors.New("does not answer this request")

// assertion reads a verified assertion.
func (e expected) assertion(root *etree.Element) (*assertion, error) {
	if !is(root, assertionNS, "Assertion") || root.SelectAttrValue("Version", "") != "2.0" || root.SelectAttrValue("ID", "") == "" {
		return nil, errors.New("its assertion is not one of SAML 2.0")
	}
	issued, err := instant(root, "IssueInstant")
	switch {
	case err != nil:
		return nil, err
	case issued.IsZero() || issued.After(e.now.Add(skew)) || issued.Add(answeredWithin+skew).Before(e.now):
		return nil, errors.New("its assertion was not issued just now")
	}
	parts := open(root)
	issuer, err := value(parts.must(assertionNS, "Issuer"))
	if err != nil {
		return nil, err
	}
	parts.may(signatureNS, "Signature")
	subject := parts.must(assertionNS, "Subject")
	conditions := parts.must(assertionNS, "Conditions")
	found := &assertion{attributes: map[string][]string{}}
	authenticated := 0
	for {
		if statement := parts.may(assertionNS, "AuthnStatement"); statement != nil {
			authenticated++
			if err := e.session(statement, found); err != nil {
				return nil, err
			}
		} else if statement := parts.may(assertionNS, "AttributeStatement"); statement != nil {
			if err := found.add(statement); err != nil {
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
	if err := e.conditions(conditions); err != nil {
		return nil, err
	}
	return found, e.subject(subject, found)
}

// session reads when the session at the provider ends. Of several ends, the first counts.
func (e expected) session(statement *etree.Element, found *assertion) error {
	end, err := instant(statement, "SessionNotOnOrAfter")
	switch {
	case err != nil:
		return err
	case end.IsZero():
		return nil
	case !e.now.Before(end):
		return errors.New("the session at the provider has ended")
	case found.sessionEnds.IsZero() || end.Before(found.sessionEnds):
		found.sessionEnds = end
	}
	return nil
}

// conditions checks the time and the audience of an assertion. An unknown condition counts as not fulfilled.
func (e expected) conditions(element *etree.Element) error {
	if err := e.within(element); err != nil {
		return err
	}
	parts := open(element)
	audiences := 0
	for {
		if restriction := parts.may(assertionNS, "AudienceRestriction"); restriction != nil {
			audiences++
			named := open(restriction)
			ours := false
			for next := named.may(assertionNS, "Audience"); next != nil; next = named.may(assertionNS, "Audience") {
				audience, err := value(next)
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

// within checks NotBefore and NotOnOrAfter, as far as an element has them.
func (e expected) within(element *etree.Element) error {
	from, err := instant(element, "NotBefore")
	if err != nil {
		return err
	}
	until, err := instant(element, "NotOnOrAfter")
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

// subject reads who an assertion is about, and checks that this browser may bring it.
func (e expected) subject(element *etree.Element, found *assertion) error {
	parts := open(element)
	id := parts.must(assertionNS, "NameID")
	var confirmed bool
	var wrong error
	for next := parts.may(assertionNS, "SubjectConfirmation"); next != nil; next = parts.may(assertionNS, "SubjectConfirmation") {
		if err := e.confirmation(next); err != nil {
			wrong = err
		} else {
			confirmed = true
		}
	}
	if err := parts.close(); err != nil {
		return err
	}
	if !confirmed {
		if wrong == nil {
			wrong = errors.New("its subject has no SubjectConfirmation")
		}
		return wrong
	}
	var err error
	if found.subject, err = exact(id); err != nil {
		return err
	}
	format := id.SelectAttrValue("Format", unspecified)
	switch {
	case strings.TrimSpace(found.subject) == "":
		return errors.New("its NameID is empty")
	case format == transient:
		return errors.New("its NameID is another one at each sign-in: persistent is needed")
	case format != unspecified && e.format != unspecified && format != e.format:
		return errors.New("the format of its NameID is not nameIDPolicyFormat")
	}
	return nil
}

// confirmation checks that a subject may be confirmed by whoever brings the assertion, here, now, and as an answer to this request.
func (e expected) confirmation(element *etree.Element) error {
	if element.SelectAttrValue("Method", "") != bearerMethod {
		return errors.New("its subject is not confirmed by a bearer")
	}
	parts := open(element)
	if by := parts.may(assertionNS, "NameID"); by != nil {
		return errors.New("its subject is confirmed by somebody else")
	}
	data := parts.must(assertionNS, "SubjectConfirmationData")
	if err := parts.close(); err != nil {
		return err
	}
	switch until, err := instant(data, "NotOnOrAfter"); {
	case err != nil:
		return err
	case until.IsZero():
		return errors.New("its SubjectConfirmationData has no NotOnOrAfter")
	case data.SelectAttrValue("Recipient", "") != e.callback:
		return errors.New("its Recipient is not redirectURI")
	case !same(data.SelectAttrValue("InResponseTo", ""), e.request):
		return errOther
	}
	return e.within(data)
}

// add reads attributes. A value that is not a text is left out.
func (a *assertion) add(statement *etree.Element) error {
	parts := open(statement)
	for next := parts.may(assertionNS, "Attribute"); next != nil; next = parts.may(assertionNS, "Attribute") {
		name := next.SelectAttrValue("Name", "")
		values := open(next)
		for one := values.may(assertionNS, "AttributeValue"); one != nil; one = values.may(assertionNS, "AttributeValue") {
			if text, err := exact(one); err == nil {
				a.attributes[name] = append(a.attributes[name], text)
			}
		}
		if err := values.close(); err != nil {
			return err
		}
	}
	return parts.close()
}

// instant reads a time. Zero: the element does not have it.
func instant(element *etree.Element, attribute string) (time.Time, error) {
	text := element.SelectAttrValue(attribute, "")
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New(attribute + " is not a time")
	}
	return at, nil
}

func same(a, b string) bool { return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
