package scope_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

var at = field.NewPath("spec", "scope")

// parse reads a scope in YAML; the empty text is no scope.
func parse(t *testing.T, text string) *model.Scope {
	t.Helper()
	if text == "" {
		return nil
	}
	s := &model.Scope{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatalf("reading scope %q: %v", text, err)
	}
	return s
}

// typesAndFields are what the tests compare of errors: type and field, without the prefix of the path.
func typesAndFields(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, string(err.Type)+" "+strings.TrimPrefix(strings.TrimPrefix(err.Field, at.String()), "."))
	}
	slices.Sort(list)
	return list
}

const (
	required     = string(field.ErrorTypeRequired) + " "
	invalid      = string(field.ErrorTypeInvalid) + " "
	duplicate    = string(field.ErrorTypeDuplicate) + " "
	notSupported = string(field.ErrorTypeNotSupported) + " "
	tooMany      = string(field.ErrorTypeTooMany) + " "
	forbidden    = string(field.ErrorTypeForbidden) + " "
)

func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, row := range []struct {
		section  string
		sentence string
		scope    string
		want     []string
	}{
		{"Spec 2.3", "the scope is optional", "", nil},
		{"ADR-0005", "an empty scope is well formed", "{}", nil},
		{"ADR-0005", "the roles are known names",
			`roles: [{role: platformCLI}, {role: vcluster}, {role: agent}, {role: network-peer}, {role: workspace}, {role: metrics-writer}, {role: metrics-reader}]`, nil},
		{"ADR-0005", "any other role is refused", `roles: [{role: platform-cli}]`, []string{notSupported + "roles[0].role"}},
		{"Spec 2.3", "a role has a name", `roles: [{projects: [a]}]`, []string{required + "roles[0].role"}},
		{"Spec 2.3", "a role applies to projects and virtual clusters", `roles: [{role: vcluster, projects: [a, b], virtualClusters: [c]}]`, nil},
		{"ADR-0005", "the names of a role's lists may be *", `roles: [{role: vcluster, projects: ["*"], virtualClusters: ["*"]}]`, nil},
		{"ADR-0005", "the names of a role's lists are names", `roles: [{role: vcluster, projects: [A, ""], virtualClusters: [a.b]}]`,
			[]string{invalid + "roles[0].projects[0]", required + "roles[0].projects[1]", invalid + "roles[0].virtualClusters[0]"}},
		{"ADR-0005", "a list holds no name twice", `roles: [{role: vcluster, projects: [a, b, a]}]`, []string{duplicate + "roles[0].projects[2]"}},
		{"ADR-0005", "a list holds no role twice", `roles: [{role: agent}, {role: agent}]`, []string{duplicate + "roles[1]"}},
		{"Spec 2.3", "the same role may occur with different projects", `roles: [{role: vcluster, projects: [a]}, {role: vcluster, projects: [b]}]`, nil},
		{"Spec 2.3", "* selects all projects", `projects: [{project: "*"}, {project: a}]`, nil},
		{"Spec 2.3", "a project entry names a project", `projects: [{}]`, []string{required + "projects[0].project"}},
		{"ADR-0005", "a project name is a label", `projects: [{project: a_b}, {project: a.b}, {project: a*}]`,
			[]string{invalid + "projects[0].project", invalid + "projects[1].project", invalid + "projects[2].project"}},
		{"ADR-0005", "a label has up to 63 characters", `projects: [{project: ` + long + `}, {project: ` + long + `a}]`, []string{invalid + "projects[1].project"}},
		{"ADR-0005", "no project twice", `projects: [{project: a}, {project: a}]`, []string{duplicate + "projects[1]"}},
		{"Spec 2.3", "a space has a project", `spaces: [{space: s}]`, []string{required + "spaces[0].project"}},
		{"Spec 2.3", "a space entry names a space", `spaces: [{project: p}]`, []string{required + "spaces[0].space"}},
		{"Spec 2.3", "* selects all spaces", `spaces: [{project: p, space: "*"}, {project: "*", space: s}]`, nil},
		{"Spec 2.3", "a virtual cluster has a project", `virtualClusters: [{virtualCluster: v}]`, []string{required + "virtualClusters[0].project"}},
		{"Spec 2.3", "a virtual cluster entry names a virtual cluster", `virtualClusters: [{project: p}]`, []string{required + "virtualClusters[0].virtualCluster"}},
		{"Spec 2.3", "* selects all virtual clusters", `virtualClusters: [{project: p, virtualCluster: "*"}, {project: "*", virtualCluster: "*"}]`, nil},
		{"ADR-0005", "no virtual cluster twice", `virtualClusters: [{project: p, virtualCluster: v}, {project: q, virtualCluster: v}, {project: p, virtualCluster: v}]`,
			[]string{duplicate + "virtualClusters[2]"}},
		{"Spec 2.3", "* selects all clusters", `clusters: [{cluster: "*"}]`, nil},
		{"ADR-0005", "a cluster name is a subdomain", `clusters: [{cluster: eu.example.com}, {cluster: "a/b"}, {}]`,
			[]string{invalid + "clusters[1].cluster", required + "clusters[2].cluster"}},
		{"Spec 2.3", "the deprecated switch is accepted", `allowPlatformCli: true`, nil},
		{"Spec 2.3", "every restriction of a rule may be empty", `rules: [{}]`, nil},
		{"ADR-0005", "a verb is not empty, * has no meaning", `rules: [{verbs: [get, "", "*"]}]`, []string{required + "rules[0].verbs[1]", invalid + "rules[0].verbs[2]"}},
		{"Spec 2.3", "the group is empty or a group", `rules: [{resources: [{group: ""}, {group: apps}, {group: "*"}]}]`, []string{invalid + "rules[0].resources[2].group"}},
		{"Spec 2.3", "pods, pods/log, pods/*, */scale, *", `rules: [{resources: [{resources: [pods, pods/log, deployments, "*/scale"]}, {resources: ["*"]}, {resources: ["pods/*", pods]}]}]`, nil},
		{"Spec 2.3", "other patterns are refused", `rules: [{resources: [{resources: [a/b/c, "po*", "", "*/*", "pods/", /log, Pods, "**"]}]}]`,
			[]string{
				invalid + "rules[0].resources[0].resources[0]", invalid + "rules[0].resources[0].resources[1]",
				invalid + "rules[0].resources[0].resources[2]", invalid + "rules[0].resources[0].resources[3]",
				invalid + "rules[0].resources[0].resources[4]", invalid + "rules[0].resources[0].resources[5]",
				invalid + "rules[0].resources[0].resources[6]", invalid + "rules[0].resources[0].resources[7]",
			}},
		{"Spec 2.3", "with wildcards entries must not overlap: *", `rules: [{resources: [{resources: [pods, "*", pods/log]}]}]`,
			[]string{invalid + "rules[0].resources[0].resources[1]", invalid + "rules[0].resources[0].resources[2]"}},
		{"Spec 2.3", "with wildcards entries must not overlap: pods/*", `rules: [{resources: [{resources: ["pods/*", pods/log]}]}]`, []string{invalid + "rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "with wildcards entries must not overlap: */scale", `rules: [{resources: [{resources: [deployments/scale, "*/scale"]}]}]`, []string{invalid + "rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "with wildcards entries must not overlap: both", `rules: [{resources: [{resources: ["*/scale", "pods/*"]}]}]`, []string{invalid + "rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "entries of different groups do not overlap", `rules: [{resources: [{resources: ["*"]}, {group: apps, resources: ["*"]}]}]`, nil},
		{"ADR-0005", "no resource twice", `rules: [{resources: [{resources: [pods, pods]}]}]`, []string{duplicate + "rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "resourceNames needs resources", `rules: [{resources: [{resourceNames: [a]}]}]`, []string{required + "rules[0].resources[0].resources"}},
		{"ADR-0005", "a resource name is not empty, * has no meaning", `rules: [{resources: [{resources: [pods], resourceNames: [a, "", "*"]}]}]`,
			[]string{required + "rules[0].resources[0].resourceNames[1]", invalid + "rules[0].resources[0].resourceNames[2]"}},
		{"Spec 2.3", "the empty namespace is for resources without", `rules: [{namespaces: ["", default]}]`, nil},
		{"ADR-0005", "a namespace is a label", `rules: [{namespaces: [a.b, "*"]}]`, []string{invalid + "rules[0].namespaces[0]", invalid + "rules[0].namespaces[1]"}},
		{"Spec 2.3", "a wildcard is the full final path step", `rules: [{nonResourceURLs: ["/a/*", "/b", "/", "/c/"]}, {nonResourceURLs: ["*"]}, {nonResourceURLs: ["/*"]}]`, nil},
		{"Spec 2.3", "no other wildcard", `rules: [{nonResourceURLs: ["/a*", "/a/*/b", "/*/*", "/**"]}]`,
			[]string{invalid + "rules[0].nonResourceURLs[0]", invalid + "rules[0].nonResourceURLs[1]", invalid + "rules[0].nonResourceURLs[2]", invalid + "rules[0].nonResourceURLs[3]"}},
		{"ADR-0005", "a path is absolute and plain", `rules: [{nonResourceURLs: [metrics, "", "/a/../b", "/a//b", "//*"]}]`,
			[]string{
				invalid + "rules[0].nonResourceURLs[0]", invalid + "rules[0].nonResourceURLs[1]", invalid + "rules[0].nonResourceURLs[2]",
				invalid + "rules[0].nonResourceURLs[3]", invalid + "rules[0].nonResourceURLs[4]",
			}},
		{"ADR-0005", "paths and resources may be in one rule", `rules: [{nonResourceURLs: [/metrics], resources: [{resources: [pods]}], namespaces: [a]}]`, nil},
		{"ADR-0005", "the known request targets", `rules: [{requestTargets: [Management, Cluster, ProjectSpace, ProjectVirtualCluster]}]`, nil},
		{"ADR-0005", "other request targets are refused", `rules: [{requestTargets: [VirtualCluster, "", management]}]`,
			[]string{notSupported + "rules[0].requestTargets[0]", notSupported + "rules[0].requestTargets[1]", notSupported + "rules[0].requestTargets[2]"}},
		{"Spec 2.3", "a cluster and the target Cluster agree", `rules: [{cluster: c, requestTargets: [Management, Cluster]}, {cluster: c}]`, nil},
		{"Spec 2.3", "a cluster without the target Cluster is a contradiction", `rules: [{cluster: c, requestTargets: [Management]}]`, []string{invalid + "rules[0].cluster"}},
		{"Spec 2.3", "restrictions of several sorts of requests stand together", `rules: [{cluster: c, virtualClusters: [{name: a, namespace: n}], requestTargets: [Management, Cluster]}]`, nil},
		{"ADR-0005", "the cluster of a rule is a name", `rules: [{cluster: "*"}]`, []string{invalid + "rules[0].cluster"}},
		{"Spec 2.3", "an empty name or namespace is all", `rules: [{virtualClusters: [{}, {name: a}, {namespace: p-a}]}]`, nil},
		{"ADR-0005", "virtual clusters of a rule are names", `rules: [{virtualClusters: [{name: "*", namespace: "*"}]}]`,
			[]string{invalid + "rules[0].virtualClusters[0].name", invalid + "rules[0].virtualClusters[0].namespace"}},
		{"ADR-0005", "everything wrong is reported at once", `{roles: [{role: x}], projects: [{}], spaces: [{project: p}], clusters: [{}], rules: [{verbs: [""]}]}`,
			[]string{notSupported + "roles[0].role", required + "projects[0].project", required + "spaces[0].space", required + "clusters[0].cluster", required + "rules[0].verbs[0]"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := typesAndFields(scope.Validate(parse(t, row.scope), at))
			slices.Sort(row.want)
			if !slices.Equal(got, row.want) {
				t.Errorf("%s: %s\n%s\n got %q\nwant %q", row.section, row.sentence, row.scope, got, row.want)
			}
		})
	}
}

// Source: ADR-0005 (bounds).
func TestValidateBounds(t *testing.T) {
	projects := func(n int) []model.ScopeProject {
		list := make([]model.ScopeProject, n)
		for i := range list {
			list[i].Project = fmt.Sprintf("p%d", i)
		}
		return list
	}
	verbs := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("v%d", i)
		}
		return list
	}
	for _, row := range []struct {
		name  string
		scope *model.Scope
		want  []string
	}{
		{"a full list", &model.Scope{Projects: projects(scope.MaxEntries)}, nil},
		{"a list that is too long", &model.Scope{Projects: projects(scope.MaxEntries + 1)}, []string{tooMany + "projects"}},
		{"an inner list that is too long", &model.Scope{Rules: []model.ScopeRule{{Verbs: verbs(scope.MaxEntries + 1)}}}, []string{tooMany + "rules[0].verbs"}},
		{"a long list beside another error", &model.Scope{Projects: projects(scope.MaxEntries + 1), Clusters: []model.ScopeCluster{{}}},
			[]string{tooMany + "projects", required + "clusters[0].cluster"}},
		{"a whole that is too large", &model.Scope{Rules: []model.ScopeRule{
			{Verbs: verbs(1000)}, {Verbs: verbs(999)}, {Verbs: verbs(998)}, {Verbs: verbs(997)}, {Verbs: verbs(996)}, {Verbs: verbs(995)},
		}}, []string{tooMany + ""}},
		{"a list and a whole", &model.Scope{Projects: projects(scope.MaxTotal + 1)}, []string{tooMany + "", tooMany + "projects"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := typesAndFields(scope.Validate(row.scope, at))
			slices.Sort(row.want)
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// Two entries overlap if some request shows it: a resource or subresource that both match. Source: Spec 2.3.
func TestOverlapAgreesWithAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]string{"*", "pods", "nodes", "log", "scale"})
		pattern := rapid.Custom(func(t *rapid.T) string {
			left := step.Draw(t, "left")
			if rapid.Bool().Draw(t, "plain") {
				return left
			}
			return left + "/" + step.Filter(func(s string) bool { return left != "*" || s != "*" }).Draw(t, "right")
		})
		patterns := rapid.SliceOfNDistinct(pattern, 1, 4, rapid.ID[string]).Draw(t, "patterns")
		rule := func(patterns ...string) *model.Scope {
			return &model.Scope{Rules: []model.ScopeRule{{Resources: []model.ScopeGroupResources{{Resources: patterns}}}}}
		}
		overlapping := false
		for _, resource := range []string{"pods", "nodes", "log", "scale", "others"} {
			for _, subresource := range []string{"", "pods", "nodes", "log", "scale", "others"} {
				matches := 0
				for _, p := range patterns {
					if scope.Allows(rule(p), scope.Request{Verb: "get", Resource: resource, Subresource: subresource, Target: scope.TargetManagement}) {
						matches++
					}
				}
				overlapping = overlapping || matches > 1
			}
		}
		if errs := scope.Validate(rule(patterns...), at); (len(errs) > 0) != overlapping {
			t.Fatalf("%q: overlapping is %t, Validate says %v", patterns, overlapping, errs)
		}
	})
}

// FuzzScope reads any JSON as scopes. No rule may panic, and a scope is within itself.
func FuzzScope(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"roles":[{"role":"vcluster","projects":["*"]}]}`, `{"allowPlatformCli":true}`,
		`{"projects":[{"project":"a"}],"spaces":[{"project":"*","space":"s"}],"virtualClusters":[{"project":"a","virtualCluster":"*"}],"clusters":[{"cluster":"c"}]}`,
		`{"rules":[{"verbs":["get"],"resources":[{"group":"apps","resources":["*/scale","pods/*","a/b/c","","*/*"],"resourceNames":[""]}],"namespaces":[""],"nonResourceURLs":["*","/a/*","","/*"],"requestTargets":["Cluster"],"cluster":"c","virtualClusters":[{}]}]}`,
	} {
		f.Add([]byte(seed), "get", "pods", "/metrics", scope.TargetManagement)
	}
	f.Fuzz(func(t *testing.T, data []byte, verb, resource, path, target string) {
		var s *model.Scope
		if json.Unmarshal(data, &s) != nil {
			return
		}
		_ = scope.Validate(s, at)
		_ = scope.Validate(s, nil)
		for _, r := range []scope.Request{
			{Verb: verb, Resource: resource, Namespace: "n", Name: "x", Project: "p", Target: target},
			{Verb: verb, Path: path, Project: "p", VirtualCluster: "v", Space: "s", Cluster: "c", Target: target},
		} {
			_ = scope.Allows(s, r)
			_ = scope.Refusal(r)
		}
		if errs := scope.Exceeds(s, s, at); len(errs) > 0 {
			t.Errorf("the scope is not within itself: %v", errs)
		}
		_ = scope.Exceeds(s, &model.Scope{}, nil)
		_ = scope.Exceeds(nil, s, nil)
	})
}
