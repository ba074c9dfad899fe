package contract

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/c2sp/wycheproof"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
)

// vectors is a file of Project Wycheproof, with the members that this test reads.
type vectors struct {
	NumberOfTests int
	TestGroups    []struct {
		Comment         string
		Public, Private json.RawMessage
		Tests           []vector
	}
}

type vector struct {
	TcID            int
	Comment, Result string
	// JWS is text in compact form, or an object.
	JWS json.RawMessage
}

// noHeader is a header with a character outside base64url. One vector with it counts as valid, for lenient readers.
const noHeader = "no header"

// refusedVectors counts the refused valid vectors by algorithm: only ES256 and RS256 are supported, without shared
// secrets. The files of keys contain shared secrets.
var refusedVectors = map[string]map[string]int{
	"json_web_key_test.json":       {"HS256": 2, "HS384": 1, "HS512": 1},
	"json_web_signature_test.json": {"HS256": 9, "ES512": 2, "RS384": 4, "RS512": 4, "PS256": 6, "PS384": 6, "PS512": 4, noHeader: 1},
}

// Vectors that Project Wycheproof calls invalid are refused. Valid vectors are accepted, unless their algorithm is
// not supported.
func TestVectors(t *testing.T) {
	for file, want := range refusedVectors {
		t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) {
			text, err := fs.ReadFile(wycheproof.TestVectors, file)
			if err != nil {
				t.Fatal(err)
			}
			var suite vectors
			if err := json.Unmarshal(text, &suite); err != nil {
				t.Fatal(err)
			}
			count, accepted, refusals := 0, 0, map[string]int{}
			for _, group := range suite.TestGroups {
				for _, v := range group.Tests {
					count++
					err := open(t, group.Public, group.Private, v)
					switch {
					case v.Result == "invalid" && err == nil:
						t.Errorf("%d, %s: accepted", v.TcID, v.Comment)
					case v.Result != "invalid" && err == nil:
						accepted++
					case v.Result != "invalid":
						refusals[algorithm(v)]++
					}
				}
			}
			t.Logf("%d of %d accepted; refused: %v", accepted, count, refusals)
			t.Logf("counted: %d vectors", count)
			if count != suite.NumberOfTests || accepted == 0 || !maps.Equal(refusals, want) {
				t.Errorf("%d of %d vectors seen, %d accepted; valid ones were refused: %v, want %v", count, suite.NumberOfTests, accepted, refusals, want)
			}
		})
	}
}

// algorithm returns the algorithm in the header of a vector.
func algorithm(v vector) string {
	head, _, _ := strings.Cut(strings.Trim(string(v.JWS), `"`), ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	var header struct{ Alg string }
	if err != nil || json.Unmarshal(text, &header) != nil {
		return noHeader
	}
	return header.Alg
}

func open(t *testing.T, public, private json.RawMessage, v vector) error {
	t.Helper()
	keys := public
	if keys == nil {
		keys = private
	}
	if !strings.Contains(string(keys), `"keys"`) {
		keys = json.RawMessage(`{"keys":[` + string(keys) + `]}`)
	}
	var set token.JWKS
	if err := json.Unmarshal(keys, &set); err != nil {
		return err
	}
	var compact string
	if json.Unmarshal(v.JWS, &compact) != nil {
		compact = string(v.JWS)
	}
	_, err := token.Open(t.Context(), set, secret.String(compact))
	return err
}
