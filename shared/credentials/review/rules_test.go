package review_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// The rules name an object for a verb if and only if all scopes of the caller permit the verb for that object, and not for
// others. Source: ADR-0021, ADR-0023.
func TestRulesName(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(23, 1))
	some := func(words ...string) []string {
		return slices.DeleteFunc(words, func(string) bool { return random.IntN(3) > 0 })
	}
	names, named := []string{"a", "b", "c"}, 0
	access := &review.Access{Project: func(namespace string) string { return strings.TrimPrefix(namespace, "p-") }}
	draw := func() *model.Scope {
		narrow := &model.Scope{ReadOnly: random.IntN(4) == 0}
		for range random.IntN(3) {
			narrow.Roles = append(narrow.Roles, model.ScopeRole{
				Role: []string{"vcluster", "platformCLI"}[random.IntN(2)], Projects: some("x", "y", "*"), VirtualClusters: some("a", "b", "*"),
			})
		}
		for range random.IntN(3) {
			narrow.VirtualClusters = append(narrow.VirtualClusters, model.ScopeVirtualCluster{
				Project: []string{"x", "y", "*"}[random.IntN(3)], VirtualCluster: []string{"a", "b", "*"}[random.IntN(3)],
			})
		}
		for range random.IntN(3) {
			rule := model.ScopeRule{Verbs: some("get", "update", "delete", "create"), Resources: []model.ScopeGroupResources{{
				Group: model.GroupName, Resources: some("virtualclusterinstances", "virtualclusterinstances/*", "ownedaccesskeys"),
			}}}
			if len(rule.Resources[0].Resources) > 0 {
				rule.Resources[0].ResourceNames = some("a", "b", "c")
			}
			for _, name := range some("a", "c") {
				rule.VirtualClusters = append(rule.VirtualClusters, model.ScopeRuleVirtualCluster{Name: name})
			}
			narrow.Rules = append(narrow.Rules, rule)
		}
		return narrow
	}
	for i := range 300 {
		caller := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
		if i%4 > 0 {
			caller.Scope = draw()
		}
		for range i % 3 {
			// A key that made the credential has a scope of its own.
			caller.KeyScopes = append(caller.KeyScopes, draw())
		}
		status := access.Rules(caller, "p-x")
		for _, request := range auth.Everything() {
			if request.Path != "" || request.Subresource == "" && !slices.Contains([]string{"get", "update", "patch", "delete"}, request.Verb) {
				continue
			}
			resource := request.Resource
			if request.Subresource != "" {
				resource += "/" + request.Subresource
			}
			for _, name := range append(slices.Clone(names), "other") {
				asked := request
				asked.Name = name
				if asked.Resource == "virtualclusterinstances" {
					asked.Namespace, asked.Project = "p-x", "x"
				}
				want, got := auth.Decide(caller, asked).Allowed, false
				for _, rule := range status.ResourceRules {
					of := rule.APIGroups[0] == request.Group && rule.Resources[0] == resource && slices.Contains(rule.Verbs, request.Verb)
					got = got || of && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
					if of && len(rule.ResourceNames) > 0 {
						named++
					}
				}
				if got != want {
					text, _ := json.Marshal(caller.Scopes())
					t.Fatalf("scopes %d: %s: the rules say %v, the request %v: %s", i, describe(asked), got, want, text)
				}
			}
		}
	}
	if named == 0 {
		t.Error("no rule has names")
	}
}

func describe(r scope.Request) string {
	return fmt.Sprintf("%s %s/%s %q", r.Verb, r.Resource, r.Subresource, r.Name)
}
