package continuetoken_test

import (
	"errors"
	"testing"

	"management.platform.sh/shared/api/resource/continuetoken"
	"management.platform.sh/shared/model/apierror"
)

// FuzzContinue: a token is one that the server wrote, or it is refused.
func FuzzContinue(f *testing.F) {
	keys := continuetoken.ProcessKeys()
	token, err := keys.Seal(f.Context(), continuetoken.Position{Revision: 1, After: "a", Query: "q"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token, "q")
	f.Add("", "")
	f.Add("AAAAAAAAAAAAAAAA", "")
	f.Add("!!", "q")
	f.Fuzz(func(t *testing.T, token, query string) {
		position, err := keys.Open(t.Context(), token, query)
		if err != nil {
			if known, ok := errors.AsType[*apierror.Error](err); !ok || known.Status().Code != 400 {
				t.Fatalf("%q: %v", token, err)
			}
		} else if position.Query != query {
			t.Fatalf("%q is taken for another query: %+v", token, position)
		}
		// The server can read the tokens that it writes.
		again := continuetoken.Position{Revision: 7, After: token, Query: query}
		token, err = keys.Seal(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keys.Open(t.Context(), token, query); err == nil && got != again {
			t.Fatalf("%+v became %+v", again, got)
		}
	})
}
