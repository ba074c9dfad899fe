package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/spec3"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
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

// The page has every route of the catalog, every object of the description and each field of the platform's own, and every code.
func TestReferenceIsWhole(t *testing.T) {
	t.Parallel()
	page := referencePageOf(t)
	for _, f := range catalog.Functions {
		for _, e := range f.Endpoints {
			if e.IsAlias && isSecondPath(e) {
				continue
			}
			_, row, _ := strings.Cut(page, "\n| `"+e.Path+"` | ")
			row, _, _ = strings.Cut(row, "\n")
			if !strings.Contains(row, servedAs(e)+" `"+f.Name+"`") {
				t.Errorf("the page has no %s %s by %s", e.Method, e.Path, f.Name)
			}
		}
	}
	_, common, _ := strings.Cut(page, "\n### Fields of several objects\n")
	common, _, _ = strings.Cut(common, "\n### ")
	files, err := documents(resources)
	if err != nil {
		t.Fatal(err)
	}
	var document spec3.OpenAPI
	if err := json.Unmarshal(files[v3Name], &document); err != nil {
		t.Fatal(err)
	}
	fields, described := 0, describedSchemas(document.Components.Schemas)
	for name, s := range document.Components.Schemas {
		if _, items := s.Properties["items"]; items && strings.HasSuffix(name, "List") {
			// The page says what lists have in common.
			continue
		}
		if !described[name] {
			continue
		}
		_, section, found := strings.Cut(page, "\n### "+name[strings.LastIndex(name, ".")+1:]+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		if !found {
			t.Errorf("the page has no %s", name)
		}
		for field, property := range s.Properties {
			fields++
			_, item, found := strings.Cut(section, "\n- `"+field+"`")
			if !found && strings.Contains(section, "\n- [`"+field+"`](#fields-of-several-objects)\n") {
				_, item, found = strings.Cut(common, "\n- `"+field+"`")
			}
			item, _, _ = strings.Cut(item, "\n")
			switch common := slices.Contains([]string{"apiVersion", "kind", "metadata"}, field) && isKind(s); {
			case common && strings.Contains(page, "three more fields: `apiVersion`, `kind`") && strings.Contains(page, "shows, and `metadata`."):
			case !found:
				t.Errorf("%s has no field %s", name, field)
			case isKind(s):
			case !strings.Contains(item, meaningOf(field, property.Description)):
				t.Errorf("the meaning of %s of %s is not the one of the model: %s", field, name, item)
			}
		}
	}
	if fields < 200 {
		t.Errorf("the description has %d fields: that cannot be all", fields)
	}
	for _, block := range []string{"ConfigApps", "ConfigCloud", "CostControl", "ConfigOIDCServer"} {
		if strings.Contains(page, "\n### "+block+"\n") {
			t.Errorf("the page has %s, which is only stored", block)
		}
	}
	for _, code := range []string{"400", "401", "403", "404", "405", "406", "408", "409", "410", "413", "415", "422", "429", "431", "500", "503", "504"} {
		if !strings.Contains(page, "\n| "+code+" | ") {
			t.Errorf("the page has no error %s", code)
		}
	}
	for _, row := range []string{
		"| 429 | TooManyRequests | Retry-After | The caller has reached a limit, which the text names. |",
		"| 404 | NotFound |  | The object does not exist, or the caller may not see it. The path is no endpoint. |",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page does not have %s", row)
		}
	}
	if !strings.Contains(page, "| `/version` |  | "+http.MethodGet+" `discoverapi`") {
		t.Error("a route that is no resource has a verb or an object")
	}
}

// servedAs is the method of a route, with its verb and its marks.
func servedAs(e frame.Endpoint) string {
	text := e.Method
	if e.Resource.Resource != "" {
		text += " " + e.Verb
	}
	if e.Root {
		text += "¹"
	}
	return text
}

func TestMeaningOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, description, want string
	}{
		{"ttl", "ttl is the lifetime. It is\nin seconds.", "The lifetime. It is in seconds."},
		{"groups", "groups are groups.", "Groups."},
		{"disabled", "disabled stops the key.", "Stops the key."},
		{"name", "The name of it.", "The name of it."},
		{"name", "name", "name"},
	} {
		if got := meaningOf(row.name, row.description); got != row.want {
			t.Errorf("%q: %q, want %q", row.description, got, row.want)
		}
	}
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
