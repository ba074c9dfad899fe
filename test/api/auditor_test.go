package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const auditorBearer = "audit-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-1"

// An auditor reads what an admin reads and writes no objects of others. Reviews give the same answer. Source: ADR-0047.
func TestAuditor(t *testing.T) {
	t.Parallel()
	n := newGrantsWorld(t)
	n.setConfig(`{"auth":{"oidc":{"issuerUrl":"https://a.example","clientSecret":"hunter2"}}}`)
	n.expect(201, boss2Bearer, "POST", group+"users", `{"metadata":{"name":"eve"}}`)
	n.expect(201, boss2Bearer, "POST", group+"teams", `{"metadata":{"name":"audit"},"spec":{"users":["eve"],"clusterRoles":[{"name":"platform-auditor"}]}}`)
	n.expect(201, boss2Bearer, "POST", group+"ownedaccesskeys", `{"metadata":{"name":"eve"},"spec":{"user":"eve","key":"`+auditorBearer+`"}}`)
	names := func(bearer, resource string) string {
		t.Helper()
		var list struct {
			Items []struct {
				Metadata struct{ Namespace, Name string }
			}
		}
		if err := json.Unmarshal([]byte(n.expect(200, bearer, "GET", group+resource, "")), &list); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(list.Items)
	}
	for _, resource := range []string{
		"users", "teams", "projects", "trustrules", "virtualclusterinstances", "namespaces/p-shop/virtualclusterinstances", "ownedaccesskeys",
		"directclusterendpointtokens", "configs",
	} {
		if admin, auditor := names(boss2Bearer, resource), names(auditorBearer, resource); admin != auditor {
			t.Errorf("%s: an admin sees %s, an auditor %s", resource, admin, auditor)
		}
	}
	for _, path := range []string{"users/boss", "ownedaccesskeys/boss2", "namespaces/p-shop/virtualclusterinstances/live", "trustrules/ci", "configs/config", "configs/config/history"} {
		if text := n.expect(200, auditorBearer, "GET", group+path, ""); strings.Contains(text, "hunter2") {
			t.Errorf("%s shows a secret: %s", path, text)
		}
	}
	everything := func() string {
		var text strings.Builder
		for _, resource := range []string{"users", "teams", "projects", "trustrules", "virtualclusterinstances", "ownedaccesskeys", "configs"} {
			text.WriteString(n.versions(group + resource))
		}
		return text.String()
	}
	before := everything()
	for _, r := range []struct{ method, path, body string }{
		{"GET", "configs/config?reveal=true", ""},
		{"POST", "users", `{"metadata":{"name":"new"}}`},
		{"PATCH", "users/ben", `{"spec":{"disabled":true}}`},
		{"PATCH", "users/eve", `{"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`},
		{"POST", "users/ben/signout", `{}`},
		{"DELETE", "users/ben", ""},
		{"PATCH", "teams/audit", `{"spec":{"clusterRoles":[{"name":"platform-admin"}]}}`},
		{"DELETE", "teams/web", ""},
		{"POST", "trustrules", `{"metadata":{"name":"new"},"spec":{"issuer":"https://issuer.example","match":[{"claim":"sub","is":"x"}],"owner":{"user":"eve"},"scope":{}}}`},
		{"DELETE", "trustrules/ci", ""},
		{"PATCH", "projects/shop", `{"spec":{"displayName":"x"}}`},
		{"DELETE", "projects/shop", ""},
		{"PATCH", "namespaces/p-shop/virtualclusterinstances/live", `{"spec":{"owner":{"user":"eve"}}}`},
		{"POST", "namespaces/p-shop/virtualclusterinstances/live/kubeconfig", `{}`},
		{"DELETE", "namespaces/p-shop/virtualclusterinstances/live", ""},
		{"POST", "ownedaccesskeys", `{"spec":{"user":"ben"}}`},
		{"POST", "ownedaccesskeys", `{"spec":{"groups":["platform:admins"]}}`},
		{"PATCH", "ownedaccesskeys/of-ana", `{"spec":{"disabled":true}}`},
		{"DELETE", "ownedaccesskeys/of-ana", ""},
		{"PATCH", "configs/config", `{"status":{"platformHost":"evil.example"}}`},
	} {
		send := request{bearer: auditorBearer, method: r.method, path: group + r.path, body: r.body}
		if r.method == "PATCH" {
			send.contentType = mergePatch
		}
		if answer, text := n.send(send); answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusNotFound || strings.Contains(text, "hunter2") {
			t.Errorf("%s %s: %d %s", r.method, r.path, answer.StatusCode, text)
		}
	}
	if after := everything(); after != before {
		t.Errorf("an auditor changed the state from\n%s\nto\n%s", before, after)
	}
	for _, row := range []struct {
		verb, resource, name string
		want                 bool
	}{
		{"get", "users", "boss", true}, {"list", "ownedaccesskeys", "", true}, {"watch", "configs", "", true}, {"get", "ownedaccesskeys", "boss2", true},
		{"reveal", "configs", "config", false}, {"create", "users", "", false}, {"delete", "users", "ben", false}, {"delete", "ownedaccesskeys", "of-ana", false},
	} {
		text := n.expect(201, auditorBearer, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", fmt.Sprintf(
			`{"spec":{"resourceAttributes":{"group":"management.platform.sh","verb":%q,"resource":%q,"name":%q}}}`, row.verb, row.resource, row.name))
		if strings.Contains(text, `"allowed":true`) != row.want {
			t.Errorf("can-i %s %s %s: %s", row.verb, row.resource, row.name, text)
		}
	}
}

// versions returns the names and versions of the objects in a list.
func (n grantsWorld) versions(path string) string {
	n.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name, ResourceVersion string }
		}
	}
	if err := json.Unmarshal([]byte(n.expect(200, boss2Bearer, "GET", path, "")), &list); err != nil {
		n.t.Fatal(err)
	}
	return fmt.Sprintln(path, list.Items)
}

// A credential with a read-only scope reads what its entries permit. It cannot make a credential or reach further. Source: ADR-0047.
func TestReadOnlyScope(t *testing.T) {
	t.Parallel()
	n := newGrantsWorld(t)
	reader := n.createChild(boss2Bearer, "reader", `"scope":{"readOnly":true,"projects":[{"project":"shop"}],"roles":[{"role":"platformCLI"}]}`)
	const instance = group + "namespaces/p-shop/virtualclusterinstances/dev"
	n.expect(200, reader, "GET", instance, "")
	n.expect(200, reader, "GET", group+"users", "")
	n.expect(201, reader, "POST", selves, "")
	for _, r := range []request{
		{method: "PATCH", path: instance, contentType: mergePatch, body: `{"spec":{"displayName":"x"}}`},
		{method: "DELETE", path: instance},
		{method: "POST", path: instance + "/kubeconfig", body: `{}`},
		{method: "POST", path: keysPath, body: `{"spec":{"scope":{"readOnly":true}}}`},
		{method: "POST", path: group + "directclusterendpointtokens", body: `{"spec":{"scope":{"readOnly":true}}}`},
		{method: "POST", path: group + "users/boss/accesskeys", body: `{"spec":{"scope":{"readOnly":true}}}`},
	} {
		r.bearer = reader
		if answer, text := n.send(r); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", r.method, r.path, answer.StatusCode, text)
		}
	}
	// The key can delete itself, as every key can.
	n.expect(200, reader, "DELETE", keysPath+"/reader", "")
}
