package saml

import (
	"crypto/x509"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
)

// signedByLibrary returns an element that the library has signed, with the certificate of its key.
func signedByLibrary(t *testing.T, text string) (string, *x509.Certificate) {
	t.Helper()
	key := dsig.RandomKeyStoreForTest()
	_, encoded, err := key.GetKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		t.Fatal(err)
	}
	document := etree.NewDocument()
	if err := document.ReadFromString(text); err != nil {
		t.Fatal(err)
	}
	signing := dsig.NewDefaultSigningContext(key)
	signing.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
	signed, err := signing.SignEnveloped(document.Root())
	if err != nil {
		t.Fatal(err)
	}
	document.SetRoot(signed)
	if text, err = document.WriteToString(); err != nil {
		t.Fatal(err)
	}
	return text, certificate
}

// The library verifies signatures of the form that is accepted here, as far as it knows it. Whatever is changed in a signed text, the two
// accept the same, and read the same.
func TestVerifiedAsTheLibraryDoes(t *testing.T) {
	t.Parallel()
	text, certificate := signedByLibrary(t, `<a:Assertion xmlns:a="urn:a" xmlns:b="urn:b" ID="_1"><a:Subject b:kind="x">ana</a:Subject><b:More xmlns="urn:c"><Inner/></b:More></a:Assertion>`)
	now := certificate.NotBefore.Add(time.Minute)
	random := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for i := range 3000 {
		changed := []byte(text)
		if i > 0 {
			for range 1 + random.IntN(2) {
				changed[random.IntN(len(changed))] = "abc0<>/= \"\n"[random.IntN(11)]
			}
		}
		root, err := parse(changed)
		if err != nil || signatureOf(root) == nil {
			continue
		}
		ours, wrong := verifySignature(root, []*x509.Certificate{certificate}, now)
		checked := &dsig.ValidationContext{
			CertificateStore: &dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{certificate}}, IdAttribute: "ID", Clock: dsig.NewFakeClockAt(now),
		}
		for _, key := range signatureOf(root).SelectElements("KeyInfo") {
			signatureOf(root).RemoveChild(key)
		}
		theirs, refusal := checked.Validate(root)
		if wrong != nil {
			refused++
			// Form comes first here: what the library would accept of another form is refused.
			if refusal == nil && wrong.Error() == errSignature.Error() {
				t.Errorf("only the library accepts %s", changed)
			}
			continue
		}
		accepted++
		if refusal != nil || written(t, ours) != written(t, theirs) {
			t.Errorf("%s is read as %s, the library: %v", changed, written(t, ours), refusal)
		}
	}
	if accepted < 10 || refused < 500 {
		t.Errorf("%d accepted, %d refused", accepted, refused)
	}
}

func written(t *testing.T, element *etree.Element) string {
	t.Helper()
	document := etree.NewDocument()
	document.SetRoot(element.Copy())
	text, err := document.WriteToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
