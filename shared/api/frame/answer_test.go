package frame_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
)

const (
	tableV1      = "application/json;as=Table;v=v1;g=meta.k8s.io"
	tableV1beta1 = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
	partial      = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partials     = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const one, all = root + "/ana", root
	for _, row := range []struct {
		about, path, accept string
		// contentType is empty for 406.
		contentType, kind, apiVersion string
	}{
		{"none", one, "-", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"an empty one", one, "", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"anything", one, "*/*", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"any application", one, "application/*", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"JSON", one, "application/json", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"JSON with a parameter", one, "application/json; charset=utf-8", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"in other letters", one, "Application/JSON", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"YAML", one, "application/yaml", "application/yaml", "OwnedAccessKey", "management.platform.sh/v1"},
		{"YAML under another name", one, "text/yaml", "application/yaml", "OwnedAccessKey", "management.platform.sh/v1"},
		{"YAML under an older name", one, "application/x-yaml", "application/yaml", "OwnedAccessKey", "management.platform.sh/v1"},
		{"a list as YAML", all, "application/yaml", "application/yaml", "OwnedAccessKeyList", "management.platform.sh/v1"},
		{"the first of two", one, "application/yaml, application/json", "application/yaml", "OwnedAccessKey", "management.platform.sh/v1"},
		{"the better of two", one, "application/yaml;q=0.3, application/json;q=0.8", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"never", one, "application/json;q=0, application/yaml", "application/yaml", "OwnedAccessKey", "management.platform.sh/v1"},
		{"what is not had is passed over", one, "application/vnd.kubernetes.protobuf,application/json", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"what a browser sends", one, "text/html,application/xhtml+xml,*/*;q=0.8", "application/json", "OwnedAccessKey", "management.platform.sh/v1"},
		{"what kubectl get sends", all, tableV1 + "," + tableV1beta1 + ",application/json", "application/json", "Table", "meta.k8s.io/v1"},
		{"an older Table", all, tableV1beta1, "application/json", "Table", "meta.k8s.io/v1beta1"},
		{"a Table of one", one, tableV1, "application/json", "Table", "meta.k8s.io/v1"},
		{"a Table of the future", all, "application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "application/json", "OwnedAccessKeyList", "management.platform.sh/v1"},
		{"a Table of another group", all, "application/json;as=Table;v=v1;g=x,application/json", "application/json", "OwnedAccessKeyList", "management.platform.sh/v1"},
		{"a Table as YAML", all, "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/yaml", "Table", "meta.k8s.io/v1"},
		{"metadata of one", one, partial, "application/json", "PartialObjectMetadata", "meta.k8s.io/v1"},
		{"metadata of all", all, partials, "application/json", "PartialObjectMetadataList", "meta.k8s.io/v1"},
		{"metadata of one, asked of all", all, partial, "", "", ""},
		{"metadata of all, asked of one", one, partials, "", "", ""},
		{"protobuf alone", one, "application/vnd.kubernetes.protobuf", "", "", ""},
		{"a picture", one, "image/png", "", "", ""},
		{"nothing at all", one, "*/*;q=0", "", "", ""},
		{"an unknown transformation alone", all, "application/json;as=Chart;v=v1;g=meta.k8s.io", "", "", ""},
	} {
		t.Run(row.about, func(t *testing.T) {
			r := request{path: row.path}
			if row.accept != "-" {
				r.header = map[string]string{"Accept": row.accept}
			}
			answer := w.do(r)
			if row.contentType == "" {
				refused(t, answer, 406, metav1.StatusReasonNotAcceptable)
				return
			}
			if got := answer.Header().Get("Content-Type"); answer.Code != 200 || got != row.contentType {
				t.Errorf("answered %d as %q: %s", answer.Code, got, answer.Body)
			}
			var object metav1.TypeMeta
			if strings.HasPrefix(row.contentType, "application/json") != (answer.Body.Bytes()[0] == '{') {
				t.Errorf("not as it says: %s", answer.Body)
			}
			if err := yaml.Unmarshal(answer.Body.Bytes(), &object); err != nil || object.Kind != row.kind || object.APIVersion != row.apiVersion {
				t.Errorf("answered %+v (%v)", object, err)
			}
			if cache := answer.Header().Get("Cache-Control"); !strings.Contains(cache, "private") {
				t.Errorf("Cache-Control %q", cache)
			}
		})
	}
}

// An error has the requested form, if errors have such a form.
func TestAcceptOfRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for accept, want := range map[string]string{
		"application/yaml": "application/yaml", tableV1: "application/json", "image/png": "application/json", "": "application/json",
	} {
		answer := w.do(request{path: root + "/absent", header: map[string]string{"Accept": accept}})
		code := int32(404)
		if accept == "image/png" {
			code = 406
		}
		var got metav1.Status
		if err := yaml.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Kind != "Status" || got.Code != code {
			t.Errorf("%s: %+v (%v)", accept, got, err)
		}
		if media := answer.Header().Get("Content-Type"); media != want {
			t.Errorf("%s is answered as %q", accept, media)
		}
	}
	// A Status of success has no Table either.
	answer := w.do(request{method: "DELETE", path: root + "/ana", header: map[string]string{"Accept": tableV1}})
	if media := answer.Header().Get("Content-Type"); media != "application/json" || status(t, answer).Status != metav1.StatusSuccess {
		t.Errorf("answered %q: %s", media, answer.Body)
	}
}

// A write is not executed if the client cannot accept the form of the response.
func TestAcceptBeforeWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unwanted := map[string]string{"Accept": "image/png", "Content-Type": "application/json"}
	refused(t, w.do(request{method: "POST", path: root, body: `{"metadata":{"name":"unwanted"},"spec":{}}`, header: unwanted}), 406, metav1.StatusReasonNotAcceptable)
	refused(t, w.do(request{method: "DELETE", path: root + "/ana", header: unwanted}), 406, metav1.StatusReasonNotAcceptable)
	list := map[string]string{"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "Content-Type": "application/json"}
	refused(t, w.do(request{method: "POST", path: root, body: `{"metadata":{"name":"unwanted"},"spec":{}}`, header: list}), 406, metav1.StatusReasonNotAcceptable)
	table := map[string]string{"Accept": tableV1, "Content-Type": "application/json"}
	refused(t, w.do(request{method: "POST", path: root + "?includeObject=All", body: `{"metadata":{"name":"unwanted"},"spec":{}}`, header: table}), 400, metav1.StatusReasonBadRequest, "includeObject")
	// The operation is not called either: it would panic.
	for _, header := range []map[string]string{unwanted, table} {
		refused(t, w.do(request{method: "POST", path: "/apis/test.example/v1/probes", body: asking("panic"), header: header}), 406, metav1.StatusReasonNotAcceptable)
	}
	refused(t, w.do(request{path: root + "/unwanted"}), 404, metav1.StatusReasonNotFound)
	if answer := w.do(request{path: root + "/ana"}); answer.Code != 200 {
		t.Errorf("ana is gone: %d", answer.Code)
	}
}

// The rows of an older Table contain metadata of that version. A resourceVersion that is not a number is refused.
func TestGetQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table := w.do(request{path: root + "/ana", header: map[string]string{"Accept": tableV1beta1}})
	if strings.Contains(table.Body.String(), `"meta.k8s.io/v1"`) {
		t.Errorf("another version: %s", table.Body)
	}
	refused(t, w.do(request{path: root + "/ana?resourceVersion=x"}), 400, metav1.StatusReasonBadRequest, "resourceVersion")
	if answer := w.do(request{path: root + "/ana?resourceVersion=1"}); answer.Code != 200 {
		t.Errorf("resourceVersion=1: %d", answer.Code)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		include, kind string
		code          int
	}{
		{"", "PartialObjectMetadata", 200},
		{"?includeObject=Metadata", "PartialObjectMetadata", 200},
		{"?includeObject=Object", "OwnedAccessKey", 200},
		{"?includeObject=None", "", 200},
		{"?includeObject=All", "", 400},
	} {
		answer := w.do(request{path: root + row.include, header: map[string]string{"Accept": tableV1}})
		if row.code != 200 {
			refused(t, answer, row.code, metav1.StatusReasonBadRequest, "includeObject")
			continue
		}
		table := decodeInto[struct {
			metav1.ListMeta   `json:"metadata"`
			ColumnDefinitions []metav1.TableColumnDefinition
			Rows              []struct {
				Cells  []any
				Object *struct {
					metav1.TypeMeta
					metav1.ObjectMeta `json:"metadata"`
				}
			}
		}](t, answer)
		if len(table.Rows) != 3 || table.ResourceVersion != "4" {
			t.Fatalf("%s: %s", row.include, answer.Body)
		}
		for i, name := range []string{"admin", "ana", "narrow"} {
			line := table.Rows[i]
			if len(line.Cells) != len(table.ColumnDefinitions) || line.Cells[0] != name {
				t.Errorf("row %d: %v", i, line.Cells)
			}
			switch {
			case row.kind == "":
				if line.Object != nil {
					t.Errorf("row %d has an object", i)
				}
			case line.Object == nil || line.Object.Kind != row.kind || line.Object.Name != name:
				t.Errorf("%s: row %d has the object %+v", row.include, i, line.Object)
			}
		}
	}
	first := w.do(request{path: root + "?limit=2", header: map[string]string{"Accept": tableV1}})
	page := decodeInto[metav1.Table](t, first)
	if len(page.Rows) != 2 || page.Continue == "" || page.RemainingItemCount == nil || *page.RemainingItemCount != 1 {
		t.Errorf("a page: %+v", page.ListMeta)
	}
	empty := decodeInto[map[string]any](t, w.do(request{path: root + "?labelSelector=x", header: map[string]string{"Accept": tableV1}}))
	if rows, ok := empty["rows"].([]any); !ok || len(rows) != 0 {
		t.Errorf("an empty table has rows %v", empty["rows"])
	}
}

func TestPartialMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := decodeInto[metav1.PartialObjectMetadataList](t, w.do(request{path: root + "?limit=2", header: map[string]string{"Accept": partials}}))
	if len(list.Items) != 2 || list.Items[1].Name != "ana" || list.Items[1].Kind != "PartialObjectMetadata" || list.Continue == "" || list.ResourceVersion != "4" {
		t.Errorf("answered %+v", list)
	}
	answer := w.do(request{path: root + "/ana", header: map[string]string{"Accept": partial}})
	if one := decodeInto[map[string]any](t, answer); one["spec"] != nil || one["metadata"].(map[string]any)["name"] != "ana" {
		t.Errorf("answered %v", one)
	}
}

func TestPretty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, indented := range map[string]bool{"": false, "?pretty=false": false, "?pretty=true": true, "?pretty=1": true} {
		body := w.do(request{path: root + "/ana" + query}).Body.String()
		if strings.Contains(body, "\n  \"") != indented || !strings.HasSuffix(body, "}\n") {
			t.Errorf("%q: %s", query, body)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(query, body string) []string {
		t.Helper()
		answer := w.do(request{method: "POST", path: root + "?dryRun=All" + query, body: body})
		if answer.Code != 201 {
			t.Fatalf("answered %d", answer.Code)
		}
		return answer.Header().Values("Warning")
	}
	const unknown = `{"spec":{"colour":"red","size":1},"extra":1}`
	if got := post("", unknown); len(got) != 3 || !slices.Contains(got, `299 - "unknown field \"spec.colour\""`) {
		t.Errorf("warned of %q", got)
	}
	if got := post("&fieldValidation=Ignore", unknown); len(got) != 0 {
		t.Errorf("warned of %q", got)
	}
	w.config = &model.ConfigStatus{Auth: &model.ConfigAuth{AccessKeyMaxTTLSeconds: 60}}
	if got := post("", `{"spec":{"ttl":120,"colour":"red"}}`); len(got) != 2 {
		t.Errorf("warned of %q", got)
	}
	// Headers stay small enough for gateways.
	var many strings.Builder
	for i := range 90 {
		fmt.Fprintf(&many, `"%d%s":1,`, i, strings.Repeat("x", 1000))
	}
	size := 0
	for _, warning := range post("", `{`+many.String()+`"spec":{}}`) {
		size += len(warning)
	}
	if size == 0 || size > 8<<10 {
		t.Errorf("%d bytes of warnings", size)
	}
}
