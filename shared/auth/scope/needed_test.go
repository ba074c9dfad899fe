package scope

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

// The entry that a refusal names permits the request. Source: ADR-0023.
func TestNeeded(t *testing.T) {
	t.Parallel()
	group := model.GroupName
	for _, row := range []struct {
		request Request
		entry   string
	}{
		{Request{Verb: "delete", Group: group, Resource: instances, Namespace: "p-a", Name: "v", Project: "a"}, `virtualClusters {project: "a", virtualCluster: "v"}`},
		{Request{Verb: "list", Group: group, Resource: instances, Namespace: "p-a", Project: "a"}, `projects {project: "a"}`},
		{Request{Verb: "list", Group: group, Resource: instances}, `roles {role: "platformCLI"}`},
		{Request{Verb: "update", Group: group, Resource: instances, Namespace: "b", Name: "v"}, `roles {role: "vcluster"}`},
		{Request{Verb: "delete", Group: group, Resource: "ownedaccesskeys", Name: "k"}, `a rule for "delete" on "ownedaccesskeys" of the group "management.platform.sh"`},
		{Request{Verb: "create", Group: group, Resource: instances, Subresource: "kubeconfig", Namespace: "b", Name: "v"},
			`a rule for "create" on "virtualclusterinstances/kubeconfig" of the group "management.platform.sh"`},
		{Request{Verb: "create", Group: authenticationGroup, Resource: "tokenreviews"}, `roles {role: "agent"}`},
		{Request{Verb: "get", Path: "/metrics"}, `roles {role: "metrics-reader"}`},
		{Request{Verb: "get", Path: "/else"}, `a rule for "get" on the path "/else"`},
		{Request{Verb: "get", Resource: "pods", Target: TargetCluster, Cluster: "c"}, `clusters {cluster: "c"}`},
		{Request{Verb: "get", Resource: "pods", Target: TargetProjectSpace, Project: "a", Space: "s"}, `spaces {project: "a", space: "s"}`},
		{Request{Verb: "get", Resource: "pods", Target: TargetProjectVirtualCluster, Project: "a", VirtualCluster: "v"}, `virtualClusters {project: "a", virtualCluster: "v"}`},
		{Request{Verb: "get"}, ""},
	} {
		if row.request.Target == "" {
			row.request.Target = TargetManagement
		}
		needed, entry, ok := Needed(row.request)
		if entry != row.entry || ok != (row.entry != "") {
			t.Errorf("%+v needs %s, want %s", row.request, entry, row.entry)
			continue
		}
		if !ok {
			continue
		}
		if at, allowed := Permits(needed, row.request); !allowed || at == "" {
			t.Errorf("%s does not permit %+v", entry, row.request)
		}
		if problems := Validate(needed, field.NewPath("scope")); len(problems) > 0 {
			t.Errorf("%s is invalid: %v", entry, problems)
		}
		if text := Refusal(row.request); !strings.Contains(text, entry) {
			t.Errorf("the refusal %q does not name %s", text, entry)
		}
	}
}

// The entry that permits a request is named by its path. Source: ADR-0023.
func TestPermitsNames(t *testing.T) {
	t.Parallel()
	s := &model.Scope{
		Projects:        []model.ScopeProject{{Project: "a"}, {Project: "b"}},
		VirtualClusters: []model.ScopeVirtualCluster{{Project: "c", VirtualCluster: "v"}},
		Rules:           []model.ScopeRule{{Verbs: []string{"watch"}}, {Verbs: []string{"reveal"}}},
	}
	for _, row := range []struct {
		verb, project, entry string
		allowed              bool
	}{
		{"get", "a", "projects[0]", true}, {"get", "b", "projects[1]", true}, {"get", "c", "virtualClusters[0]", true},
		{"reveal", "d", "rules[1]", true}, {"get", "d", "", false},
	} {
		entry, allowed := Permits(s, Request{
			Verb: row.verb, Group: model.GroupName, Resource: instances, Namespace: "p-" + row.project, Name: "v", Project: row.project, Target: TargetManagement,
		})
		if entry != row.entry || allowed != row.allowed {
			t.Errorf("%+v: %q, %v", row, entry, allowed)
		}
	}
}
