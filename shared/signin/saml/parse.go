package saml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/beevik/etree"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/lazyregexp"
)

// The namespaces of a response.
const (
	protocolNS  = "urn:oasis:names:tc:SAML:2.0:protocol"
	assertionNS = "urn:oasis:names:tc:SAML:2.0:assertion"
	signatureNS = "http://www.w3.org/2000/09/xmldsig#"
)

// Bounds of a response. A prefix costs time with each element below it.
const (
	maxDepth      = 32
	maxAttributes = 32
	maxPrefixes   = 32
)

// namePattern is what the names of elements, attributes and prefixes must look like. The names of SAML do; others have been read differently
// by different readers.
var namePattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// parse reads the text of a response, and refuses everything in it that two readers could understand differently: a DTD and its
// entities, comments, processing instructions, unusual names, and IDs that are not unique. Nothing is verified yet.
func parse(text []byte) (*etree.Element, error) {
	text = bytes.TrimSpace(text)
	if err := scan(text); err != nil {
		return nil, err
	}
	document := etree.NewDocument()
	document.ReadSettings = etree.ReadSettings{ValidateInput: true, PreserveDuplicateAttrs: true}
	if err := document.ReadFromBytes(text); err != nil || document.Root() == nil {
		return nil, errors.New("is not well-formed")
	}
	return document.Root(), nil
}

// scan reads the text once, without building anything.
func scan(text []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errors.New("is not in UTF-8") }
	s := scanner{prefixes: map[string]bool{}, ids: map[string]bool{}}
	for {
		begin := decoder.InputOffset()
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			// The error may quote the text.
			return errors.New("is not well-formed")
		}
		if err := s.token(token, begin == 0); err != nil {
			return err
		}
	}
	if s.roots != 1 || s.depth != 0 {
		return errors.New("is not well-formed")
	}
	return nil
}

// scanner is the state of scan.
type scanner struct {
	depth, roots, elements int
	prefixes, ids          map[string]bool
}

func (s *scanner) token(token xml.Token, first bool) error {
	switch token := token.(type) {
	case xml.Directive:
		return errors.New("has a document type")
	case xml.Comment:
		return errors.New("has a comment")
	case xml.ProcInst:
		if !first || token.Target != "xml" {
			return errors.New("has a processing instruction")
		}
	case xml.CharData:
		if s.depth == 0 && len(bytes.TrimSpace(token)) > 0 {
			return errors.New("is not well-formed")
		}
	case xml.EndElement:
		s.depth--
	case xml.StartElement:
		if s.depth == 0 {
			s.roots++
		}
		s.depth++
		s.elements++
		switch {
		case s.depth > maxDepth:
			return errors.New("is nested too deeply")
		case s.elements > limits.SAMLElements:
			return errors.New("has too many elements")
		case len(token.Attr) > maxAttributes:
			return errors.New("has too many attributes")
		case !isPlainName(token.Name):
			return errors.New("has an unusual name")
		}
		return s.attributes(token.Attr)
	}
	return nil
}

// attributes looks at the attributes of an element. The ID of an element has the name ID, or Id in a signature, without a prefix.
func (s *scanner) attributes(attributes []xml.Attr) error {
	seen := map[xml.Name]bool{}
	for _, attribute := range attributes {
		if !isPlainName(attribute.Name) || seen[attribute.Name] {
			return errors.New("has an unusual name, or an attribute twice")
		}
		seen[attribute.Name] = true
		switch {
		case attribute.Name.Space == "xmlns" || attribute.Name == xml.Name{Local: "xmlns"}:
			s.prefixes[attribute.Name.Local] = true
			if len(s.prefixes) > maxPrefixes {
				return errors.New("has too many prefixes")
			}
		case strings.EqualFold(attribute.Name.Local, "id"):
			if attribute.Name.Space != "" || attribute.Value == "" || s.ids[attribute.Value] {
				return errors.New("has an ID that is not unique")
			}
			s.ids[attribute.Value] = true
		}
	}
	return nil
}

// isPlainName reports whether a name and its prefix match namePattern.
func isPlainName(given xml.Name) bool {
	return namePattern().MatchString(given.Local) && (given.Space == "" || namePattern().MatchString(given.Space))
}

// hasName reports whether an element has a namespace and a name.
func hasName(element *etree.Element, namespace, tag string) bool {
	return element.Tag == tag && element.NamespaceURI() == namespace
}

// cursor reads the elements in an element one after the other, in the order of the schema.
type cursor struct {
	rest  []*etree.Element
	wrong error
}

// openChildren returns the elements in an element. Texts between them are refused.
func openChildren(element *etree.Element) *cursor {
	c := &cursor{rest: element.ChildElements()}
	for _, child := range element.Child {
		if text, isText := child.(*etree.CharData); isText && strings.TrimSpace(text.Data) != "" {
			c.wrong = errors.New(element.Tag + " has a text")
		}
	}
	return c
}

// may returns the next element if it has this name, and nil otherwise.
func (c *cursor) may(namespace, tag string) *etree.Element {
	if len(c.rest) == 0 || !hasName(c.rest[0], namespace, tag) {
		return nil
	}
	next := c.rest[0]
	c.rest = c.rest[1:]
	return next
}

// must returns the next element. It must have this name; otherwise, close returns an error and must an empty element.
func (c *cursor) must(namespace, tag string) *etree.Element {
	if next := c.may(namespace, tag); next != nil {
		return next
	}
	if c.wrong == nil {
		c.wrong = errors.New(tag + " is missing, or not where it must be")
	}
	return etree.NewElement(tag)
}

// close returns what was wrong. Elements that were not read are wrong.
func (c *cursor) close() error {
	if c.wrong == nil && len(c.rest) > 0 {
		return errors.New("an element is not expected")
	}
	return c.wrong
}

// trimmedText returns the text of an element without surrounding white space, for URIs and base64. The element must have nothing but text.
func trimmedText(element *etree.Element) (string, error) {
	text, err := exactText(element)
	return strings.TrimSpace(text), err
}

// exactText returns the text of an element unchanged, for names: names that differ in white space are different. The element must have
// nothing but text.
func exactText(element *etree.Element) (string, error) {
	var text strings.Builder
	for _, child := range element.Child {
		data, isText := child.(*etree.CharData)
		if !isText {
			return "", errors.New(element.Tag + " is not a text")
		}
		text.WriteString(data.Data)
	}
	return text.String(), nil
}
