package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/state/redisstore/redistest"
)

const (
	asTable   = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	instances = "/apis/management.platform.sh/v1/namespaces/p-shop/virtualclusterinstances"
)

// A credential that is shown once is in the response to its create, in each form that is served. Source: ADR-0004.
func TestCredentialsAreDelivered(t *testing.T) {
	t.Parallel()
	c := newConfigWorld(t, redistest.Embedded(t))
	c.seed()
	instance := request{bearer: adminBearer, method: "POST", path: instances, body: `{"metadata":{"name":"dev"},"spec":{"owner":{"user":"ana"},"accessPoint":{"ingress":{"enabled":true,"host":"dev.example"}}}}`}
	if answer, text := c.send(instance); answer.StatusCode != http.StatusCreated {
		t.Fatal(text)
	}
	const apply = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":%q}}`
	for _, row := range []struct{ about, method, path, kind, body, secret string }{
		{"a key", "POST", keysPath, "application/json", "{}", "pak_"},
		{"a key by apply", "PATCH", keysPath + "/%s?fieldManager=ops", applyPatch, apply, "pak_"},
		{"a token", "POST", "/apis/management.platform.sh/v1/directclusterendpointtokens", "application/json", "{}", `"token":"ey`},
		{"a kubeconfig", "POST", instances + "/dev/kubeconfig", "application/json", "{}", "current-context"},
	} {
		for i, form := range []struct {
			accept string
			code   int
		}{
			{asTable, 201}, {asTable + ",application/json", 201}, {asPartial, 406}, {"", 201},
		} {
			for _, include := range []string{"None", "Metadata", "Object"} {
				name := fmt.Sprintf("made-%d-%s", i, strings.ToLower(include))
				r := request{bearer: anaBearer, method: row.method, path: row.path, body: row.body, contentType: row.kind, accept: form.accept}
				if row.method == "PATCH" {
					r.path, r.body = fmt.Sprintf(r.path, name), fmt.Sprintf(r.body, name)
				}
				r.path += map[bool]string{true: "&", false: "?"}[strings.Contains(r.path, "?")] + "includeObject=" + include
				answer, text := c.send(r)
				if answer.StatusCode != form.code || (form.code == 201) != strings.Contains(text, row.secret) {
					t.Errorf("%s as %q with %s: %d %.300s", row.about, form.accept, include, answer.StatusCode, text)
				}
				if form.code != 201 && row.method == "PATCH" {
					if gone, _ := c.ask(anaBearer, "GET", keysPath+"/"+name, ""); gone.StatusCode != http.StatusNotFound {
						t.Errorf("%s is refused and made: %d", row.about, gone.StatusCode)
					}
				}
			}
		}
	}
}

// A write of the metadata keeps the status that other clients have reported. So does a write of a part of the spec that does not affect the
// status. Source: ADR-0017.
func TestReportedStatusStays(t *testing.T) {
	t.Parallel()
	for _, reported := range []string{
		`{"phase":"Failed"}`, `{"phase":"Ready","conditions":[{"type":"Synced","status":"True","reason":"Agent","message":"","lastTransitionTime":"2027-03-04T05:06:07Z"}]}`,
		`{"ingress":{"host":"other.example"}}`,
	} {
		c := newConfigWorld(t, redistest.Embedded(t))
		c.seed()
		const one = instances + "/dev"
		body := `{"metadata":{"name":"dev"},"spec":{"owner":{"user":"ana"},"accessPoint":{"ingress":{"enabled":true,"host":"dev.example"}}}}`
		if answer, text := c.send(request{bearer: adminBearer, method: "POST", path: instances, body: body}); answer.StatusCode != http.StatusCreated {
			t.Fatal(text)
		}
		read := func() (status any, whole map[string]any) {
			text := c.expect(http.StatusOK, adminBearer, "GET", one, "")
			if err := json.Unmarshal([]byte(text), &whole); err != nil {
				t.Fatal(err)
			}
			return whole["status"], whole
		}
		_, object := read()
		var status map[string]any
		if err := json.Unmarshal([]byte(reported), &status); err != nil {
			t.Fatal(err)
		}
		object["status"] = status
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		c.expect(http.StatusOK, adminBearer, "PUT", one+"/status", string(text))
		before, _ := read()
		for _, r := range []request{
			{method: "PATCH", contentType: mergePatch, body: `{"metadata":{"labels":{"by":"merge"}}}`},
			{method: "PATCH", contentType: mergePatch, body: `{"metadata":{"annotations":{"by":"metadata"}}}`, accept: asPartial},
			{method: "PATCH", contentType: jsonPatch, body: `[{"op":"add","path":"/metadata/labels","value":{"by":"json"}}]`},
			{method: "PATCH", contentType: applyPatch, path: "?fieldManager=ops",
				body: `{"apiVersion":"management.platform.sh/v1","kind":"VirtualClusterInstance","metadata":{"name":"dev","labels":{"by-ops":"apply"}}}`},
			{method: "PATCH", contentType: mergePatch, body: `{"spec":{"displayName":"Shop"}}`},
		} {
			r.bearer, r.path = anaBearer, one+r.path
			answer, text := c.send(r)
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %s", r.body, answer.StatusCode, text)
			}
			if after, _ := read(); !reflect.DeepEqual(before, after) {
				t.Errorf("%s: the status %v becomes %v", r.body, before, after)
			}
		}
	}
}

// A finalizer without a domain and a deprecated field get a warning when they are added. Source: ADR-0004.
func TestWarnings(t *testing.T) {
	t.Parallel()
	c := newConfigWorld(t, redistest.Embedded(t))
	c.seed()
	const finalizer, rules, cli = `metadata.finalizers: \"held\": prefer a domain-qualified`, "spec.scope.rules: deprecated: use projects", "spec.scope.allowPlatformCli: deprecated"
	for _, row := range []struct {
		about string
		r     request
		want  []string
	}{
		{"a create", request{method: "POST", path: keysPath, body: `{"metadata":{"name":"a","finalizers":["held","example.com/held"]},"spec":{"scope":{"rules":[{"verbs":["get"]}]}}}`},
			[]string{finalizer, rules}},
		{"a write that adds neither", request{method: "PATCH", path: keysPath + "/a", body: `{"metadata":{"labels":{"a":"b"}}}`}, nil},
		{"a write that adds a field", request{method: "PATCH", path: keysPath + "/a", body: `{"spec":{"scope":{"allowPlatformCli":true}}}`}, []string{cli}},
		{"a create with neither", request{method: "POST", path: keysPath, body: `{"metadata":{"name":"b"},"spec":{"scope":{}}}`}, nil},
		{"a write that adds a finalizer", request{method: "PATCH", path: keysPath + "/b", body: `{"metadata":{"finalizers":["held"]}}`}, []string{finalizer}},
		{"a finalizer of Kubernetes", request{method: "POST", path: keysPath, body: `{"metadata":{"name":"c","finalizers":["orphan"]}}`}, nil},
		{"a token", request{method: "POST", path: "/apis/management.platform.sh/v1/directclusterendpointtokens", body: `{"spec":{"scope":{"allowPlatformCli":true}}}`}, []string{cli}},
		{"the configuration", request{bearer: adminBearer, method: "PATCH", path: configs + "/config", body: `{"status":{"workspaceSubDomain":"*.w.example"}}`},
			[]string{"status.workspaceSubDomain: deprecated"}},
	} {
		if row.r.bearer == "" {
			row.r.bearer = anaBearer
		}
		answer, text := c.send(row.r)
		if answer.StatusCode > 299 {
			t.Errorf("%s: %d %s", row.about, answer.StatusCode, text)
			continue
		}
		warnings := answer.Header.Values("Warning")
		for _, want := range row.want {
			if !strings.Contains(strings.Join(warnings, "\n"), want) {
				t.Errorf("%s: %q lacks %s", row.about, warnings, want)
			}
		}
		if len(warnings) != len(row.want) {
			t.Errorf("%s: %q", row.about, warnings)
		}
	}
}

// An admin who gives something to a user or team that does not exist gets a warning, because the name may be a slip. Other callers get no
// warning: it would reveal which users exist. On a platform without people, owners of keys have no objects. Source: ADR-0047.
func TestWarningsOfUnknownNames(t *testing.T) {
	t.Parallel()
	const projects, teams, rules, instances = group + "projects", group + "teams", group + "trustrules", group + "namespaces/p-shop/virtualclusterinstances"
	type row struct {
		method, path, body string
		want               []string
	}
	ask := func(c *configWorld, about, bearer string, r row) {
		t.Helper()
		send := request{bearer: bearer, method: r.method, path: r.path, body: r.body}
		if r.method == "PATCH" {
			send.contentType = mergePatch
		}
		answer, text := c.send(send)
		var got []string
		for _, warning := range answer.Header.Values("Warning") {
			_, warning, _ = strings.Cut(warning, `"`)
			got = append(got, strings.ReplaceAll(strings.TrimSuffix(warning, `"`), `\"`, `"`))
		}
		if answer.StatusCode > 299 || !slices.Equal(got, r.want) {
			t.Errorf("%s %s: %d %q, want %q: %s", about, r.body, answer.StatusCode, got, r.want, text)
		}
	}
	n := newGrantsWorld(t)
	for _, r := range []row{
		{"POST", keysPath, `{"spec":{"user":"anna"}}`, []string{`spec.user: there is no user "anna"`}},
		{"POST", keysPath, `{"spec":{"user":"ana"}}`, nil},
		{"POST", keysPath, `{"spec":{"subject":"job"}}`, nil},
		{"POST", keysPath + "?dryRun=All", `{"spec":{"team":"nobody"}}`, []string{`spec.team: there is no team "nobody"`}},
		{"POST", teams, `{"metadata":{"name":"t"},"spec":{"users":["ana","anna","anna2"]}}`,
			[]string{`spec.users: there is no user "anna"`, `spec.users: there is no user "anna2"`}},
		{"PATCH", teams + "/t", `{"spec":{"displayName":"T"}}`, nil},
		{"PATCH", teams + "/t", `{"spec":{"users":["ana","anna","zoe"]}}`, []string{`spec.users: there is no user "zoe"`}},
		{"POST", projects, `{"metadata":{"name":"new"},"spec":{"owner":{"team":"nobody"},"members":[{"kind":"User","name":"anna","role":"use"},{"kind":"Team","name":"web","role":"use"}]}}`,
			[]string{`spec.owner: there is no team "nobody"`, `spec.members: there is no user "anna"`}},
		{"POST", rules, `{"metadata":{"name":"rule"},"spec":{"issuer":"https://issuer.example","match":[{"claim":"sub","is":"b"}],"owner":{"team":"nobody"},"scope":{}}}`,
			[]string{`spec.owner: there is no team "nobody"`}},
		{"PATCH", instances + "/dev", `{"spec":{"owner":{"user":"anna"},"access":[{"verbs":["use","update"],"users":["anna"],"teams":["web"]}]}}`,
			[]string{`spec.owner: there is no user "anna"`, `spec.access: there is no user "anna"`}},
	} {
		ask(n.configWorld, "an admin", boss2Bearer, r)
	}
	ask(n.configWorld, "somebody else", ofAnaBearer, row{"PATCH", projects + "/shop", `{"spec":{"members":[{"kind":"User","name":"anna","role":"use"}]}}`, nil})
	narrow := n.createChild(boss2Bearer, "narrow-admin", `"scope":{"projects":[{"project":"shop"}],"rules":[{"verbs":["patch"],"resources":[{"group":"management.platform.sh","resources":["projects"]}]}]}`)
	ask(n.configWorld, "an admin with a scope", narrow, row{"PATCH", projects + "/shop", `{"spec":{"members":[{"kind":"User","name":"anna2","role":"use"}]}}`, nil})

	c := newConfigWorld(t, redistest.Embedded(t))
	c.seed()
	ask(c, "a platform without people", adminBearer, row{"POST", keysPath, `{"spec":{"user":"anna"}}`, nil})
}
