package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/spec3"

	"management.platform.sh/functions/catalog"
)

func referencePageOf(t *testing.T) string {
	t.Helper()
	files, err := documents(resources)
	if err != nil {
		t.Fatal(err)
	}
	page, err := reference("../..", files[v3Name], catalog.Functions)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile(filepath.Join("..", "..", referencePage))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte(referencePageOf(t))) {
		t.Errorf("%s differs from what the generator makes: run make gen", referencePage)
	}
}

// The page has every route of the catalog, every object, field and parameter of the description, and every code.
func TestReferenceIsWhole(t *testing.T) {
	t.Parallel()
	page := referencePageOf(t)
	for _, f := range catalog.Functions {
		for _, e := range f.Endpoints {
			if !strings.Contains(page, "| `"+e.Method+" "+e.Path+"` | "+verbOf(e.Resource.Resource, e.Verb)) || !strings.Contains(page, "| `"+f.Name+"` |\n") {
				t.Errorf("the page has no %s %s by %s", e.Method, e.Path, f.Name)
			}
		}
	}
	files, err := documents(resources)
	if err != nil {
		t.Fatal(err)
	}
	var document spec3.OpenAPI
	if err := json.Unmarshal(files[v3Name], &document); err != nil {
		t.Fatal(err)
	}
	fields := 0
	for name, s := range document.Components.Schemas {
		_, section, found := strings.Cut(page, "\n### "+name[strings.LastIndex(name, ".")+1:]+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		if !found {
			t.Errorf("the page has no %s", name)
		}
		for field := range s.Properties {
			fields++
			if !strings.Contains(section, "| `"+field+"` | ") {
				t.Errorf("%s has no field %s", name, field)
			}
		}
	}
	if fields < 200 {
		t.Errorf("the description has %d fields: that cannot be all", fields)
	}
	for _, code := range []string{"400", "401", "403", "404", "405", "406", "408", "409", "410", "413", "415", "422", "429", "431", "500", "503", "504"} {
		if !strings.Contains(page, "\n| "+code+" | ") {
			t.Errorf("the page has no error %s", code)
		}
	}
	for _, row := range []string{
		"| 429 | TooManyRequests | Retry-After | The caller has reached a limit, which the text names. |",
		"| 404 | NotFound |  | The path is no endpoint. |",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page does not have %s", row)
		}
	}
	if !strings.Contains(page, "| `"+http.MethodGet+" /version` |  |  | `discoverapi` |") {
		t.Error("a route that is no resource has a verb or an object")
	}
}

func verbOf(resource, verb string) string {
	if resource == "" {
		return ""
	}
	return verb
}

func TestErrorsWithoutAMeaningAreRefused(t *testing.T) {
	t.Parallel()
	for about, source := range map[string]string{
		"no reason":  "package a\n\n// Gone answers 410: it is gone.\nfunc Gone() *Error { return nil }\n",
		"no meaning": "package a\n\n// Gone answers 410.\nfunc Gone() *Error { return failure(410, metav1.StatusReasonGone, \"\") }\n",
	} {
		file := filepath.Join(t.TempDir(), "a.go")
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if rows, err := failureRows(file); err == nil || !strings.Contains(err.Error(), "Gone") {
			t.Errorf("%s: %q, %v", about, rows, err)
		}
	}
}
