package resource_test

import (
	"crypto/sha256"
	"encoding/base64"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/identity"
)

// FuzzToken: a list continues with the server's own token of the same query. Any other text is 400, also one that is made as
// builds before the tokens were sealed made them.
func FuzzToken(f *testing.F) {
	r := open(f)
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		object := grantee(name)
		object.Labels = map[string]string{"n": name[1:]}
		create(f, r, ana, object)
	}
	for _, name := range []string{"b0", "b1", "a2b"} {
		create(f, r, ben, grantee(name))
	}
	questions := []resource.ListInput{
		{Caller: ana, Limit: 1}, {Caller: ben, Limit: 1}, {Caller: admin, Limit: 1},
		{Caller: ana, Limit: 1, Labels: selectLabels(f, "n!=2")}, {Caller: ana, Limit: 1, Fields: selectFields(f, "metadata.name!=a1")},
	}
	tokens := make([]string, len(questions))
	for i, question := range questions {
		if tokens[i] = mustList(f, r, question).Continue; tokens[i] == "" {
			f.Fatalf("question %d has one page", i)
		}
		f.Add(uint8(i), false, []byte(tokens[i]), 0, byte(0))
		f.Add(uint8(i), true, []byte(`{"rv":8,"after":"a1","query":""}`), 0, byte(0))
		f.Add(uint8(i), false, []byte(tokens[i]), i, byte('x'))
	}
	f.Add(uint8(0), true, []byte(`{"rv":-1,"after":"b","query":""}`), 0, byte(0))
	f.Add(uint8(0), false, []byte(""), 0, byte(0))
	f.Fuzz(func(t *testing.T, which uint8, forge bool, text []byte, index int, mask byte) {
		question := questions[int(which)%len(questions)]
		token := string(text)
		if forge {
			sum := sha256.Sum256(text)
			token = base64.RawURLEncoding.EncodeToString(append(sum[:8], text...))
		}
		if altered := []byte(token); index >= 0 && index < len(altered) {
			altered[index] ^= mask
			token = string(altered)
		}
		if token == "" {
			return
		}
		question.Continue = token
		page, err := list(t, r, question)
		if err != nil {
			expect(t, err, refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: []string{"continue"}})
			return
		}
		if token != tokens[int(which)%len(questions)] {
			t.Fatalf("question %d goes on with %q", which, token)
		}
		for _, item := range page.Items {
			if question.Caller.Owner != admin.Owner && (identity.Owner{Kind: identity.User, Name: item.Spec.User}) != question.Caller.Owner {
				t.Fatalf("the token %q shows %s the key %q of %q", token, question.Caller.Owner, item.Name, item.Spec.User)
			}
		}
		if len(page.Items) > 1 || page.ResourceVersion == "" || page.ResourceVersion[0] == '-' {
			t.Fatalf("the token %q makes %d items at %q", token, len(page.Items), page.ResourceVersion)
		}
	})
}
