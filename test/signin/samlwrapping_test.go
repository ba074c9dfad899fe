package signin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/saml"
	"management.platform.sh/test/signin/samltest"
)

// Signature wrapping: an attacker has a response that is signed correctly, and adds an assertion of their own, so that what is verified is
// the old one and what is read is the new one. No arrangement of the two is accepted. Source: ADR-0038; Somorovsky and others, On Breaking
// SAML: Be Whoever You Want to Be, 2012.
func TestSAMLWrapping(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	request := w.ask(w.browser())
	for signed, sign := range map[string]func(*samltest.Response){
		"the assertion": func(*samltest.Response) {},
		"the response":  func(r *samltest.Response) { r.SignResponse, r.SignAssertion = true, false },
		"both":          func(r *samltest.Response) { r.SignResponse = true },
	} {
		t.Run(signed, func(t *testing.T) {
			t.Parallel()
			response := w.idp.Answer(request)
			sign(response)
			right := response.XML(t)
			if read, err := w.read(t, right, request.RelayState); err != nil || read.Subject != "1001" {
				t.Fatalf("%+v, %v", read, err)
			}
			tried := wrapped(t, right)
			if len(tried) < 400 {
				t.Errorf("only %d arrangements", len(tried))
			}
			for name, text := range tried {
				if read, err := w.read(t, text, request.RelayState); err == nil {
					t.Errorf("%s: %+v\n%s", name, read, text)
				}
			}
		})
	}
}

// wrapped returns every arrangement: an element of the attacker is put at each place of the response, instead of the one that is
// there or beside it, while the original goes to each place of the new one, or stays. Each with the original's ID, another or none, with
// the original's signature or without.
func wrapped(t *testing.T, right string) map[string]string {
	t.Helper()
	found := map[string]string{}
	render := func(name string, document *etree.Document) {
		text, err := document.WriteToString()
		if err != nil {
			t.Fatal(err)
		}
		// Where the attacker's element went into the signature that was moved, nothing is left of it.
		if strings.Contains(text, "mallory") {
			found[name] = text
		}
	}
	for _, tag := range []string{"Assertion", "Response"} {
		for _, id := range []string{"the same ID", "another ID", "no ID"} {
			for _, signature := range []string{"its signature", "no signature", "a signature that is moved"} {
				// evil returns an element of the attacker that looks like the original.
				evil := func() *etree.Element {
					made := parsed(t, right).FindElement("//" + tag).Copy()
					made.FindElement(".//NameID").SetText("mallory")
					switch id {
					case "another ID":
						made.CreateAttr("ID", "_evil")
					case "no ID":
						made.RemoveAttr("ID")
					}
					if own := made.SelectElement("Signature"); own != nil && signature != "its signature" {
						made.RemoveChild(own)
					}
					return made
				}
				places := len(parsed(t, right).FindElements("//*"))
				for place := range places {
					if testing.Short() && place%4 != 0 {
						continue
					}
					about := fmt.Sprintf("%s of the attacker with %s and %s at %d", tag, id, signature, place)
					// The attacker's is added: as a child, before the rest and after it.
					for _, first := range []bool{true, false} {
						document := parsed(t, right)
						into := document.FindElements("//*")[place]
						added := evil()
						if first {
							into.InsertChildAt(0, added)
						} else {
							into.AddChild(added)
						}
						moved(document, added, tag, signature)
						render(fmt.Sprint(about, ", beside the original, first: ", first), document)
					}
					// The attacker's replaces the original, which goes into it.
					document := parsed(t, right)
					original := document.FindElement("//" + tag)
					added := evil()
					if original.Parent() != nil && original.Parent().Tag != "" {
						original.Parent().InsertChildAt(original.Index(), added)
						original.Parent().RemoveChild(original)
					} else {
						document.SetRoot(added)
					}
					kept := original.Copy()
					if inside := added.FindElements(".//*"); place < len(inside) {
						inside[place].AddChild(kept)
					} else {
						added.AddChild(kept)
					}
					if own := kept.SelectElement("Signature"); own != nil && signature == "a signature that is moved" {
						kept.RemoveChild(own)
						added.InsertChildAt(1, own)
					}
					render(about+", around the original", document)
				}
			}
		}
	}
	// A list of arrangements in words, as they are known: the original in the signature, in an object of it, and in an extension.
	for name, wrap := range map[string]func(evil, original, signature string) string{
		"in the signature": func(evil, original, signature string) string {
			return strings.Replace(evil, "SIGNATURE", strings.Replace(signature, "</ds:Signature>", original+"</ds:Signature>", 1), 1)
		},
		"in an object": func(evil, original, signature string) string {
			return strings.Replace(evil, "SIGNATURE", strings.Replace(signature, "</ds:Signature>", "<ds:Object>"+original+"</ds:Object></ds:Signature>", 1), 1)
		},
		"in an extension": func(evil, original, signature string) string {
			return strings.Replace(evil, "SIGNATURE", signature, 1) + "<samlp:Extensions>" + original + "</samlp:Extensions>"
		},
		"before": func(evil, original, signature string) string {
			return original + strings.Replace(evil, "SIGNATURE", signature, 1)
		},
		"after": func(evil, original, signature string) string {
			return strings.Replace(evil, "SIGNATURE", signature, 1) + original
		},
		"without a place": func(evil, original, signature string) string {
			return strings.Replace(evil, "SIGNATURE", "", 1) + original + signature
		},
	} {
		document := parsed(t, right)
		asserted := document.FindElement("//Assertion")
		own := asserted.SelectElement("Signature")
		if own == nil {
			continue
		}
		signature := fragment(t, own)
		asserted.RemoveChild(own)
		original := fragment(t, asserted)
		for _, id := range []string{"_assertion", "_evil"} {
			evil := strings.NewReplacer(">1001<", ">mallory<", `ID="_assertion"`, `ID="`+id+`"`, "</saml:Issuer><saml:Subject>", "</saml:Issuer>SIGNATURE<saml:Subject>").Replace(original)
			shell := right[:strings.Index(right, "<saml:Assertion ")]
			found[name+" "+id] = shell + wrap(evil, original, signature) + "</samlp:Response>"
		}
	}
	return found
}

// moved gives the attacker's element the signature of the original, if that is what is tried.
func moved(document *etree.Document, added *etree.Element, tag, signature string) {
	if signature != "a signature that is moved" {
		return
	}
	for _, one := range document.FindElements("//" + tag) {
		if own := one.SelectElement("Signature"); own != nil && one != added {
			one.RemoveChild(own)
			added.InsertChildAt(1, own)
			return
		}
	}
}

func parsed(t *testing.T, text string) *etree.Document {
	t.Helper()
	document := etree.NewDocument()
	document.WriteSettings.CanonicalEndTags = true
	if err := document.ReadFromString(text); err != nil {
		t.Fatal(err)
	}
	return document
}

func fragment(t *testing.T, element *etree.Element) string {
	t.Helper()
	document := etree.NewDocument()
	document.WriteSettings.CanonicalEndTags = true
	document.SetRoot(element.Copy())
	text, err := document.WriteToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzSAML has responses read that no provider has made: nobody is ever named but the person of a response that was signed, and nothing
// panics, also where signatures are not looked at. Source: ADR-0038.
func FuzzSAML(f *testing.F) {
	strict, loose := newSAML(f), newSAML(f)
	loose.config.Auth.SAML.CAData, loose.config.Auth.SAML.InsecureSkipSignatureValidation = "", true
	state := strings.Repeat("s", 43)
	location, err := saml.Open(strict.env).AuthorizationURL(f.Context(), strict.connector(f), provider.Request{State: state})
	if err != nil {
		f.Fatal(err)
	}
	request := strict.idp.Read(f, location)
	for _, change := range []func(*samltest.Response){
		func(*samltest.Response) {},
		func(r *samltest.Response) { r.SignResponse = true },
		func(r *samltest.Response) { r.SignAssertion = false },
		func(r *samltest.Response) {
			r.KeyInfo, r.More["Subject"] = samltest.KeyInfo(strict.idp.Certificate), "<saml:NameID>x</saml:NameID>"
		},
	} {
		response := strict.idp.Answer(request)
		change(response)
		f.Add(response.XML(f))
	}
	f.Add(`<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`)
	f.Add(`<a:b xmlns:a="urn:oasis:names:tc:SAML:2.0:protocol" :c=""><!-- --></a:b>`)
	f.Fuzz(func(t *testing.T, response string) {
		if read, err := strict.read(t, response, state); err == nil && read.Subject != "1001" {
			t.Fatalf("%+v", read)
		}
		if read, err := loose.read(t, response, state); err == nil && read.Subject == "" {
			t.Fatalf("somebody without a name: %+v", read)
		}
	})
}
