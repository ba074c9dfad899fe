package runner

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/local/admin"
	"management.platform.sh/local/authority"
	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
)

// manifest returns a document for a key with further fields of spec.
func manifest(name, spec string) string {
	return fmt.Sprintf("{apiVersion: management.platform.sh/v1, kind: OwnedAccessKey, metadata: {name: %s}, spec: {%s}}\n", name, spec)
}

// clientOf returns a client of a handler behind TLS.
func clientOf(t *testing.T, handler http.Handler) *client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	t.Cleanup(server.Close)
	return newClient(server.URL+frame.BasePath, trust{authorities: authority.EncodePEM("CERTIFICATE", server.Certificate().Raw)}, localtest.GivenKey)
}

// serveAPI returns an API with an admin key, and a client of it.
func serveAPI(t *testing.T) (*platform.Environment, *client) {
	t.Helper()
	env, _ := localtest.Environment(t)
	if err := admin.Create(t.Context(), env, localtest.GivenKey); err != nil {
		t.Fatal(err)
	}
	return env, clientOf(t, process.NewServer(env).Mount(catalog.Functions...))
}

func TestApplyManifests(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		files map[string]string
		// fails is in the error; empty: there is none.
		fails string
		// want are the display names of the keys, by name.
		want map[string]string
	}{
		{"no file", nil, "", nil},
		{"files of other kinds and folders", map[string]string{"a.txt": "{", "b.yaml~": "{", "yaml": "{", "sub.yaml/c.yaml": "{"}, "", nil},
		{"all three extensions", map[string]string{"a.yaml": manifest("a", ""), "b.yml": manifest("b", ""), "c.json": `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"c"}}`}, "", map[string]string{"a": "", "b": "", "c": ""}},
		{"the later document wins", map[string]string{"a.yaml": manifest("a", "displayName: First") + "---\n" + manifest("a", "displayName: Second")}, "", map[string]string{"a": "Second"}},
		{"the later name wins", map[string]string{"2.yaml": manifest("a", "displayName: Second"), "10.yaml": manifest("a", "displayName: First")}, "", map[string]string{"a": "Second"}},
		{"documents without an object", map[string]string{"a.yaml": "# a\n---\n---\nnull\n---\n" + manifest("a", "")}, "", map[string]string{"a": ""}},
		{"an empty file", map[string]string{"a.yaml": ""}, "", nil},
		{"nothing after the one that is refused", map[string]string{"a.yaml": manifest("a", "") + "---\n" + manifest("b", "ttl: -1") + "---\n" + manifest("c", ""), "d.yaml": manifest("d", "")},
			"a.yaml, document 2: ", map[string]string{"a": ""}},
		{"an object that is there and refused", map[string]string{"a.yaml": manifest("a", ""), "b.yaml": manifest("a", "ttl: -1")}, "b.yaml, document 1: ", map[string]string{"a": ""}},
		{"an unknown field of one that is there", map[string]string{"a.yaml": manifest("a", ""), "b.yaml": manifest("a", "colour: red")}, "spec.colour", map[string]string{"a": ""}},
		{"a list", map[string]string{"a.yaml": "{apiVersion: v1, kind: List, items: []}"}, "the API has no kind List in v1 that can be created", nil},
		{"an object without a name", map[string]string{"a.yaml": "{apiVersion: management.platform.sh/v1, kind: OwnedAccessKey, metadata: {generateName: a-}}"}, "a.yaml, document 1: metadata.name: Required value", nil},
		{"what is not kept needs no name", map[string]string{"a.yaml": "{apiVersion: management.platform.sh/v1, kind: Self}"}, "", nil},
		{"a text", map[string]string{"a.yaml": "text"}, "a.yaml, document 1: ", nil},
		{"no kind", map[string]string{"a.yaml": "metadata: {name: a}"}, "a.yaml, document 1: ", nil},
		{"a key that another object has", map[string]string{"a.yaml": manifest("a", "key: "+localtest.OtherKey.Reveal()) + "---\n" + manifest("b", "key: "+localtest.OtherKey.Reveal())},
			"spec.key: Invalid value", map[string]string{"a": ""}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			env, api := serveAPI(t)
			err := applyManifests(t.Context(), api, localtest.Folder(t, row.files))
			if (err != nil) != (row.fails != "") || err != nil && !strings.Contains(err.Error(), row.fails) {
				t.Errorf("the error is %v", err)
			}
			if err != nil && (!strings.Contains(err.Error(), "--manifests") || strings.Contains(err.Error(), localtest.OtherKey.Reveal())) {
				t.Errorf("the error does not name the flag, or tells a key: %v", err)
			}
			got := map[string]string{}
			for _, each := range localtest.Keys(t, env) {
				if each.Name != "admin" {
					got[each.Name] = each.Spec.DisplayName
				}
			}
			if !maps.Equal(got, row.want) {
				t.Errorf("the keys are %v", got)
			}
		})
	}
}

func TestApplyManifestsWithoutAFolder(t *testing.T) {
	t.Parallel()
	if err := applyManifests(t.Context(), nil, ""); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	localtest.Write(t, file, "")
	for _, folder := range []string{file, file + ".absent"} {
		if err := applyManifests(t.Context(), nil, folder); err == nil || !strings.Contains(err.Error(), folder) {
			t.Errorf("the error is %v", err)
		}
	}
}

// A manifest is sent with the admin key and strict field validation. Every kind of answer is understood.
func TestApplyManifestsRequests(t *testing.T) {
	t.Parallel()
	const path = "/kubernetes/management/apis/management.platform.sh/v1/ownedaccesskeys"
	refusal := func(message string) string { return `{"kind":"Status","message":"` + message + `"}` }
	type answer struct {
		code int
		body string
	}
	for _, row := range []struct {
		about   string
		name    string
		answers []answer
		fails   string
		want    []string
	}{
		{"it is created", "a", []answer{{201, `{"kind":"OwnedAccessKey","status":{}}`}}, "", []string{"POST " + path + " application/json"}},
		{"it is there", "a", []answer{{409, refusal("is there")}, {200, "{}"}}, "",
			[]string{"POST " + path + " application/json", "PATCH " + path + "/a application/merge-patch+json"}},
		{"it is there and refused", "a", []answer{{409, refusal("is there")}, {422, refusal("is bad")}}, "is bad",
			[]string{"POST " + path + " application/json", "PATCH " + path + "/a application/merge-patch+json"}},
		{"it is not there, and something else is in its way", "a", []answer{{409, refusal("in the way")}, {404, refusal("is not there")}}, "in the way",
			[]string{"POST " + path + " application/json", "PATCH " + path + "/a application/merge-patch+json"}},
		{"it has no name to merge by", `""`, nil, "metadata.name: Required value: without a name every start would create another object", nil},
		{"it is refused", "a", []answer{{422, refusal("is bad")}}, "is bad", []string{"POST " + path + " application/json"}},
		{"the answer is no Status", "a", []answer{{502, "<html>"}}, "502 Bad Gateway", []string{"POST " + path + " application/json"}},
		{"the answer is empty", "a", []answer{{503, ""}}, "503 Service Unavailable", []string{"POST " + path + " application/json"}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			var got []string
			api := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"))
				if r.Header.Get("Authorization") != "Bearer "+localtest.GivenKey.Reveal() || r.URL.RawQuery != "fieldManager=platform&fieldValidation=Strict" {
					t.Errorf("the request is %s, %v", r.URL, r.Header)
				}
				var body unstructured.Unstructured
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.GetKind() != "OwnedAccessKey" {
					t.Errorf("the body is %v, %v", body, err)
				}
				next := row.answers[min(len(got), len(row.answers))-1]
				w.WriteHeader(next.code)
				_, _ = w.Write([]byte(next.body))
			}))
			err := applyManifests(t.Context(), api, localtest.Folder(t, map[string]string{"a.yaml": manifest(row.name, "")}))
			if (err != nil) != (row.fails != "") || err != nil && !strings.HasSuffix(err.Error(), "a.yaml, document 1: "+row.fails) {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("the requests are %q", got)
			}
		})
	}
}

// The admin key is sent only to the server that the authority certifies.
func TestApplyManifestsElsewhere(t *testing.T) {
	t.Parallel()
	wasCalled := false
	api := clientOf(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { wasCalled = true }))
	folder := localtest.Folder(t, map[string]string{"a.yaml": manifest("a", "")})
	stranger := newClient(api.server, trust{authorities: openFolder(t, t.TempDir()).PEM}, localtest.GivenKey)
	err := applyManifests(t.Context(), stranger, folder)
	if err == nil || wasCalled || !strings.Contains(err.Error(), "a.yaml, document 1: ") || strings.Contains(err.Error(), localtest.GivenKey.Reveal()) {
		t.Errorf("asked %v, error %v", wasCalled, err)
	}
}

func TestCollectionOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		version, kind string
		want          string
	}{
		{"management.platform.sh/v1", "OwnedAccessKey", "/apis/management.platform.sh/v1/ownedaccesskeys"},
		{"management.platform.sh/v2", "OwnedAccessKey", ""},
		{"other.example.com/v1", "OwnedAccessKey", ""},
		{"v1", "OwnedAccessKey", ""},
		{"", "OwnedAccessKey", ""},
		{"management.platform.sh/v1", "ownedaccesskey", ""},
		{"management.platform.sh/v1", "OwnedAccessKeyList", ""},
		{"management.platform.sh/v1", "Config", ""},
		{"management.platform.sh/v1", "", ""},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": row.version, "kind": row.kind}}
		if path, err := collectionOf(object); path != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s of %s: %q, %v", row.kind, row.version, path, err)
		}
	}
}
