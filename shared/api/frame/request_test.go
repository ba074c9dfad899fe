package frame_test

import (
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
)

func TestContentTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const asJSON, asYAML = `{"spec":{"description":"x"}}`, "spec:\n  description: x\n"
	for _, row := range []struct {
		contentType, body string
		code              int
	}{
		{"", asJSON, 201},
		{"application/json", asJSON, 201},
		{"application/json; charset=utf-8", asJSON, 201},
		{"APPLICATION/JSON", asJSON, 201},
		{"application/yaml", asYAML, 201},
		{"application/yaml", asJSON, 201},
		{"application/x-yaml", asYAML, 201},
		{"text/yaml", asYAML, 201},
		{"application/vnd.yaml", asYAML, 201},
		{"application/json", asYAML, 400},
		{"application/yaml", "spec: [", 400},
		{"application/json", "", 400},
		{"application/yaml", "", 400},
		{"application/yaml", "# nothing\n", 400},
		{"application/json", "null", 400},
		{"application/json", "[]", 400},
		{"application/json", `"x"`, 400},
		{"application/json", asJSON + asJSON, 400},
		{"application/json", "\xff", 400},
		{"application/json", `{"spec":{"ttl":"x"}}`, 400},
		{"text/plain", asJSON, 415},
		{"application/vnd.kubernetes.protobuf", asJSON, 415},
		{"application/x-www-form-urlencoded", "a=b", 415},
		{"application/json-patch+json", "[]", 415},
		{"not a type;", asJSON, 415},
	} {
		answer := w.do(request{method: "POST", path: root + "?dryRun=All", body: row.body, header: map[string]string{"Content-Type": row.contentType}})
		if answer.Code != row.code {
			t.Errorf("%q with %q: %d, want %d: %s", row.contentType, row.body, answer.Code, row.code, answer.Body)
			continue
		}
		switch row.code {
		case 201:
			if got := decodeInto[model.OwnedAccessKey](t, answer); got.Spec.Description != "x" {
				t.Errorf("%q: %+v", row.contentType, got)
			}
		case 400:
			if got := status(t, answer); got.Reason != metav1.StatusReasonBadRequest {
				t.Errorf("%q: %+v", row.contentType, got)
			}
		case 415:
			refused(t, answer, 415, metav1.StatusReasonUnsupportedMediaType)
		}
	}
}

// A body names the kind of its endpoint, or no kind (Spec 2.1, 7).
func TestKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, code := range map[string]int{
		`{}`:                        201,
		`{"kind":"OwnedAccessKey"}`: 201,
		`{"apiVersion":"management.platform.sh/v1"}`:      201,
		`{"kind":"Secret"}`:                               400,
		`{"apiVersion":"v1"}`:                             400,
		`{"apiVersion":"management.platform.sh/v2"}`:      400,
		`{"apiVersion":"management.platform.sh/v1/beta"}`: 400,
	} {
		for method, path := range map[string]string{"POST": root, "PUT": root + "/ana"} {
			want := code
			if method == "PUT" && code == 201 {
				want = 200
			}
			if answer := w.do(request{method: method, path: path + "?dryRun=All", body: body}); answer.Code != want {
				t.Errorf("%s %s: %d %s", method, body, answer.Code, answer.Body)
			}
		}
	}
}

func TestFieldValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const (
		unknown   = `{"spec":{"colour":"red"}}`
		duplicate = `{"spec":{"ttl":1,"ttl":2}}`
	)
	for _, row := range []struct {
		value, contentType, body string
		code, warnings           int
		fields                   []string
	}{
		{"", "application/json", unknown, 201, 1, nil},
		{"Warn", "application/json", unknown, 201, 1, nil},
		{"Ignore", "application/json", unknown, 201, 0, nil},
		{"Strict", "application/json", unknown, 400, 0, []string{"spec.colour"}},
		{"", "application/json", duplicate, 201, 1, nil},
		{"Ignore", "application/json", duplicate, 201, 0, nil},
		{"Strict", "application/json", duplicate, 400, 0, []string{"spec.ttl"}},
		{"Strict", "application/yaml", "spec:\n  colour: red\n", 400, 0, []string{"spec.colour"}},
		{"Warn", "application/yaml", "spec:\n  ttl: 1\n  ttl: 2\n", 201, 1, nil},
		{"Strict", "application/yaml", "spec:\n  ttl: 1\n  ttl: 2\n", 400, 0, []string{"ttl"}},
		{"Strict", "application/json", `{"spec":{"ttl":1}}`, 201, 0, nil},
		{"strict", "application/json", `{}`, 422, 0, []string{"fieldValidation"}},
		{"All", "application/json", `{}`, 422, 0, []string{"fieldValidation"}},
	} {
		answer := w.do(request{
			method: "POST", path: root + "?dryRun=All&fieldValidation=" + row.value, body: row.body,
			header: map[string]string{"Content-Type": row.contentType},
		})
		t.Logf("%q with %q", row.value, row.body)
		switch row.code {
		case 201:
			if got := answer.Header().Values("Warning"); answer.Code != 201 || len(got) != row.warnings {
				t.Errorf("answered %d, warned of %q", answer.Code, got)
			}
		case 400:
			refused(t, answer, 400, metav1.StatusReasonBadRequest, row.fields...)
		case 422:
			refused(t, answer, 422, metav1.StatusReasonInvalid, row.fields...)
		}
	}
}

func TestWriteOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	writes := []request{
		{method: "POST", path: root, body: `{}`},
		{method: "PUT", path: root + "/ana", body: `{"spec":{"disabled":true}}`},
		{method: "PATCH", path: root + "/ana", body: `{"spec":{"disabled":true}}`, header: map[string]string{"Content-Type": "application/merge-patch+json"}},
		{method: "DELETE", path: root + "/ana"},
	}
	before := w.do(request{path: root}).Body.String()
	for _, row := range []struct {
		query string
		code  int
		field string
	}{
		{"dryRun=All", 200, ""},
		{"dryRun=All&dryRun=All", 200, ""},
		{"dryRun=", 422, "dryRun"},
		{"dryRun=all", 422, "dryRun"},
		{"dryRun=true", 422, "dryRun"},
		{"dryRun=All&dryRun=None", 422, "dryRun"},
		{"dryRun=All&fieldManager=" + strings.Repeat("m", 128), 200, ""},
		{"dryRun=All&fieldManager=" + strings.Repeat("m", 129), 422, "fieldManager"},
		{"dryRun=All&fieldManager=a%09b", 422, "fieldManager"},
	} {
		for _, r := range writes {
			if r.method == "DELETE" && row.field == "fieldManager" {
				continue
			}
			r.path += "?" + row.query
			answer := w.do(r)
			t.Log(r.method, row.query)
			if row.code == 422 {
				refused(t, answer, 422, metav1.StatusReasonInvalid, row.field)
			} else if answer.Code != 200 && answer.Code != 201 {
				t.Errorf("answered %d: %s", answer.Code, answer.Body)
			}
		}
	}
	if after := w.do(request{path: root}).Body.String(); after != before {
		t.Errorf("a dry run has written:\n%s\nwas\n%s", after, before)
	}
	answer := w.do(request{method: "POST", path: root + "?dryRun=x&fieldValidation=y&fieldManager=%09", body: `{}`})
	refused(t, answer, 422, metav1.StatusReasonInvalid, "fieldManager", "dryRun", "fieldValidation")
	// One cause for each character that quotes the entire name would make the response to a long name very large.
	answer = w.do(request{method: "POST", path: root + "?fieldManager=" + strings.Repeat("%09", 100_000), body: `{}`})
	if answer.Code != 422 || answer.Body.Len() > 200_000 {
		t.Errorf("answered %d with %d bytes", answer.Code, answer.Body.Len())
	}
}

func TestDeleteOptions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, query, contentType, body string
		code                            int
		gone                            bool
	}{
		{"no body", "", "", "", 200, true},
		{"what kubectl sends", "", "application/json", `{"propagationPolicy":"Background"}`, 200, true},
		{"as YAML", "", "application/yaml", "dryRun: [All]\n", 200, false},
		{"unknown fields are ignored", "", "application/json", `{"later":1}`, 200, true},
		{"a dry run in the body", "", "application/json", `{"dryRun":["All"]}`, 200, false},
		{"the query beside a body is ignored", "?dryRun=All", "application/json", `{}`, 200, true},
		{"a bad dry run", "", "application/json", `{"dryRun":["Some"]}`, 422, false},
		{"another uid", "", "application/json", `{"preconditions":{"uid":"x"}}`, 409, false},
		{"another resourceVersion", "", "application/json", `{"preconditions":{"resourceVersion":"99"}}`, 409, false},
		{"the resourceVersion", "", "application/json", `{"preconditions":{"resourceVersion":"3"}}`, 200, true},
		{"no object", "", "application/json", `[]`, 400, false},
		{"no known type", "", "text/plain", `{}`, 415, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer := w.do(request{method: "DELETE", path: root + "/ana" + row.query, body: row.body, header: map[string]string{"Content-Type": row.contentType}})
			if answer.Code != row.code {
				t.Errorf("answered %d: %s", answer.Code, answer.Body)
			}
			if gone := w.do(request{path: root + "/ana"}).Code == 404; gone != row.gone {
				t.Errorf("gone: %v", gone)
			}
		})
	}
}

func TestListOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := decodeInto[model.OwnedAccessKeyList](t, w.do(request{path: root + "?limit=1"}))
	next := "continue=" + url.QueryEscape(page.Continue)
	for _, row := range []struct {
		query  string
		code   int
		fields []string
	}{
		{"", 200, nil},
		{"limit=0", 200, nil},
		{"limit=500", 200, nil},
		{"limit=9223372036854775807", 200, nil},
		{"limit=-1", 400, []string{"limit"}},
		{"limit=x", 400, []string{"limit"}},
		{"limit=9223372036854775808", 400, []string{"limit"}},
		{"labelSelector=a%3Db", 200, nil},
		{"labelSelector=a%3D%3D%3Db", 400, []string{"labelSelector"}},
		{"labelSelector=%28", 400, []string{"labelSelector"}},
		{"fieldSelector=metadata.name%3Dana", 200, nil},
		{"fieldSelector=x", 400, []string{"fieldSelector"}},
		{"fieldSelector=spec.key%3Dx", 400, []string{"fieldSelector"}},
		{"resourceVersion=0", 200, nil},
		{"resourceVersion=1&resourceVersionMatch=NotOlderThan", 200, nil},
		{"resourceVersion=4&resourceVersionMatch=Exact", 200, nil},
		{"resourceVersion=1&resourceVersionMatch=Exact", 410, nil},
		{"resourceVersion=99", 504, []string{""}},
		{"resourceVersion=x", 400, []string{"resourceVersion"}},
		{"resourceVersionMatch=Exact", 422, []string{"resourceVersionMatch"}},
		{"resourceVersionMatch=Exact&resourceVersion=0", 422, []string{"resourceVersionMatch"}},
		{"resourceVersionMatch=Newest&resourceVersion=1", 422, []string{"resourceVersionMatch"}},
		{next, 200, nil},
		{next + "&resourceVersion=0", 200, nil},
		{next + "&resourceVersion=1", 400, []string{"resourceVersion"}},
		{next + "&resourceVersionMatch=Exact", 422, []string{"resourceVersionMatch", "resourceVersionMatch"}},
		{next + "&resourceVersion=1&resourceVersionMatch=Exact", 422, []string{"resourceVersionMatch", "resourceVersion"}},
		{next + "&labelSelector=a", 400, []string{"continue"}},
		{"continue=x", 400, []string{"continue"}},
	} {
		answer := w.do(request{path: root + "?" + row.query})
		t.Log(row.query)
		if row.code == 200 {
			if answer.Code != 200 {
				t.Errorf("answered %d: %s", answer.Code, answer.Body)
			}
			continue
		}
		reasons := map[int]metav1.StatusReason{400: "BadRequest", 410: "Expired", 422: "Invalid", 504: "Timeout"}
		refused(t, answer, row.code, reasons[row.code], row.fields...)
	}
}

func TestPatchTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		contentType, body string
		code              int
	}{
		{"application/merge-patch+json", `{}`, 200},
		{"application/merge-patch+json; charset=utf-8", `{}`, 200},
		{"application/json-patch+json", `[]`, 200},
		{"Application/JSON-Patch+JSON", `[]`, 200},
		{"application/strategic-merge-patch+json", `{}`, 415},
		{"application/json", `{}`, 415},
		{"", `{}`, 415},
		{"not a type;", `{}`, 415},
		{"application/merge-patch+json", "\xff", 400},
		{"application/merge-patch+json", "", 400},
	} {
		answer := w.do(request{method: "PATCH", path: root + "/ana", body: row.body, header: map[string]string{"Content-Type": row.contentType}})
		if answer.Code != row.code {
			t.Errorf("%q with %q: %d %s", row.contentType, row.body, answer.Code, answer.Body)
		}
	}
}

// Reviews get the object in the body.
func TestReviewRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	yaml := map[string]string{"Content-Type": "application/yaml"}
	answer := w.do(request{method: "POST", path: probe, body: "do: hello\n", header: yaml})
	got := decodeInto[map[string]any](t, answer)
	if answer.Code != 201 || got["caller"] != "user:root" || got["kind"] != "Probe" || got["do"] != "hello" || got["sent"] != `{"do":"hello"}` {
		t.Errorf("answered %d: %v", answer.Code, got)
	}
	answer = w.do(request{method: "POST", path: probe})
	if got := decodeInto[map[string]any](t, answer); answer.Code != 201 || got["kind"] != "Probe" || got["do"] != "" {
		t.Errorf("without a body answered %d: %v", answer.Code, got)
	}
	refused(t, w.do(request{method: "POST", path: probe, body: `{"kind":"Pod","apiVersion":"v1"}`}), 400, metav1.StatusReasonBadRequest, "apiVersion", "kind")
	refused(t, w.do(request{method: "POST", path: probe + "?dryRun=x"}), 422, metav1.StatusReasonInvalid, "dryRun")
	refused(t, w.do(request{method: "POST", path: probe + "?fieldValidation=Strict", body: `{"to":"x"}`}), 400, metav1.StatusReasonBadRequest, "to")
	answer = w.do(request{method: "POST", path: probe, body: `{"do":"warn","to":"x"}`})
	if len(answer.Header().Values("Warning")) != 3 {
		t.Errorf("warned %v", answer.Header())
	}
}
