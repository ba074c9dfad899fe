package scope_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

func TestExceeds(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		parent   string
		child    string
		want     []string
	}{
		{"Spec 2.3", "below an unscoped key anything goes", "", `projects: [{project: "*"}]`, nil},
		{"Spec 2.3", "below an unscoped key a child may be unscoped", "", "", nil},
		{"ADR-0005", "a child of a scoped key names a scope", "{}", "", []string{forbidden}},
		{"ADR-0005", "an empty child is always within", "{}", "{}", nil},
		{"ADR-0005", "nothing but the empty child is within an empty scope", "{}",
			`{roles: [{role: workspace}], projects: [{project: a}], spaces: [{project: a, space: s}], virtualClusters: [{project: a, virtualCluster: v}], clusters: [{cluster: c}], rules: [{verbs: [get]}], allowPlatformCli: true}`,
			[]string{
				forbidden + "roles[0]", forbidden + "projects[0]", forbidden + "spaces[0]", forbidden + "virtualClusters[0]",
				forbidden + "clusters[0]", forbidden + "rules[0]", forbidden + "allowPlatformCli",
			}},
		{"Spec 2.3", "the offending entry is named", `projects: [{project: a}]`, `projects: [{project: a}, {project: b}]`, []string{forbidden + "projects[1]"}},
		{"Spec 2.3", "the project * covers all", `projects: [{project: "*"}]`, `{projects: [{project: a}, {project: "*"}], spaces: [{project: "*", space: s}]}`, nil},
		{"Spec 2.3", "no name covers *", `projects: [{project: a}]`, `projects: [{project: "*"}]`, []string{forbidden + "projects[0]"}},
		{"ADR-0005", "a project covers its spaces and virtual clusters", `projects: [{project: a}]`,
			`{spaces: [{project: a, space: s}, {project: b, space: s}, {project: "*", space: s}], virtualClusters: [{project: a, virtualCluster: "*"}, {project: b, virtualCluster: v}]}`,
			[]string{forbidden + "spaces[1]", forbidden + "spaces[2]", forbidden + "virtualClusters[1]"}},
		{"Spec 2.3", "* covers spaces", `spaces: [{project: a, space: "*"}, {project: "*", space: s}]`,
			`spaces: [{project: a, space: t}, {project: b, space: s}, {project: b, space: t}, {project: a, space: "*"}]`, []string{forbidden + "spaces[2]"}},
		{"Spec 2.3", "* covers virtual clusters", `virtualClusters: [{project: a, virtualCluster: "*"}, {project: b, virtualCluster: v}]`,
			`virtualClusters: [{project: a, virtualCluster: v}, {project: b, virtualCluster: v}, {project: b, virtualCluster: w}]`, []string{forbidden + "virtualClusters[2]"}},
		{"ADR-0005", "virtual clusters do not cover their project", `virtualClusters: [{project: a, virtualCluster: "*"}]`, `projects: [{project: a}]`, []string{forbidden + "projects[0]"}},
		{"Spec 2.3", "* covers clusters", `clusters: [{cluster: "*"}]`, `clusters: [{cluster: c}]`, nil},
		{"Spec 2.3", "a cluster covers itself", `clusters: [{cluster: c}]`, `clusters: [{cluster: c}, {cluster: d}]`, []string{forbidden + "clusters[1]"}},
		{"Spec 2.3", "a role covers itself", `roles: [{role: agent}]`, `roles: [{role: agent}, {role: vcluster}]`, []string{forbidden + "roles[1]"}},
		{"ADR-0005", "vcluster implies network-peer", `roles: [{role: vcluster, projects: [a]}]`, `roles: [{role: network-peer, projects: [a]}, {role: network-peer}]`, []string{forbidden + "roles[1]"}},
		{"ADR-0005", "agent implies network-peer", `roles: [{role: agent}]`, `roles: [{role: network-peer}]`, nil},
		{"ADR-0005", "network-peer implies nothing", `roles: [{role: network-peer}]`, `roles: [{role: vcluster}, {role: agent}]`, []string{forbidden + "roles[0]", forbidden + "roles[1]"}},
		{"Spec 2.3", "a limited role covers one limited as much", `roles: [{role: vcluster, projects: [a, b], virtualClusters: [v]}]`,
			`roles: [{role: vcluster, projects: [a], virtualClusters: [v]}, {role: vcluster, projects: [a]}, {role: vcluster, virtualClusters: [v]}, {role: vcluster, projects: [a, c], virtualClusters: [v]}, {role: vcluster, projects: ["*"], virtualClusters: [v]}]`,
			[]string{forbidden + "roles[1]", forbidden + "roles[2]", forbidden + "roles[3]", forbidden + "roles[4]"}},
		{"ADR-0005", "* in the lists of a role is no limit", `roles: [{role: vcluster, projects: ["*"]}]`, `roles: [{role: vcluster}]`, nil},
		{"Spec 2.3", "allowPlatformCli covers the role", `allowPlatformCli: true`, `{allowPlatformCli: true, roles: [{role: platformCLI}, {role: platformCLI, projects: [a]}]}`, nil},
		{"Spec 2.3", "the role covers allowPlatformCli", `roles: [{role: platformCLI}]`, `allowPlatformCli: true`, nil},
		{"Spec 2.3", "a limited role does not cover allowPlatformCli", `roles: [{role: platformCLI, projects: [a]}]`, `allowPlatformCli: true`, []string{forbidden + "allowPlatformCli"}},
		{"Spec 2.3", "a rule without restrictions covers every rule", `rules: [{}]`, `rules: [{}, {verbs: [get], nonResourceURLs: [/a], cluster: c}]`, nil},
		{"Spec 2.3", "each restriction must be as tight",
			`rules: [{verbs: [get, list], resources: [{group: apps, resources: ["*"]}], namespaces: [n, m], requestTargets: [Cluster], cluster: c}]`,
			`rules: [{verbs: [get], resources: [{group: apps, resources: [deployments], resourceNames: [d]}], namespaces: [n], requestTargets: [Cluster], cluster: c},
			         {resources: [{group: apps}], namespaces: [n], requestTargets: [Cluster], cluster: c},
			         {verbs: [get], namespaces: [n], requestTargets: [Cluster], cluster: c},
			         {verbs: [get], resources: [{group: ""}], namespaces: [n], requestTargets: [Cluster], cluster: c},
			         {verbs: [get], resources: [{group: apps}], requestTargets: [Cluster], cluster: c},
			         {verbs: [get], resources: [{group: apps, resources: [pods]}], namespaces: [n], cluster: c},
			         {verbs: [get], resources: [{group: apps, resources: [pods]}], namespaces: [n], requestTargets: [Cluster]},
			         {verbs: [get], resources: [{group: apps, resources: [pods]}], namespaces: [n], requestTargets: [Cluster], cluster: d}]`,
			[]string{
				forbidden + "rules[1]", forbidden + "rules[2]", forbidden + "rules[3]", forbidden + "rules[4]",
				forbidden + "rules[5]", forbidden + "rules[6]", forbidden + "rules[7]",
			}},
		{"Spec 2.3", "patterns cover patterns", `rules: [{resources: [{resources: ["pods/*", "nodes", "*/status"]}]}]`,
			`rules: [{resources: [{resources: [pods/log, "pods/*", nodes, "*/status", secrets/status]}]}, {resources: [{resources: [pods]}]}, {resources: [{resources: [nodes/proxy]}]}, {resources: [{resources: ["*"]}]}, {resources: [{}]}]`,
			[]string{forbidden + "rules[1]", forbidden + "rules[2]", forbidden + "rules[3]", forbidden + "rules[4]"}},
		{"ADR-0005", "a malformed pattern covers nothing", `rules: [{resources: [{resources: ["*/*", "po*", "pods/"]}]}]`,
			`rules: [{resources: [{resources: ["pods/*"]}]}, {resources: [{resources: ["*/log"]}]}, {resources: [{resources: [pods/log]}]}, {resources: [{resources: [pods]}]}]`,
			[]string{forbidden + "rules[0]", forbidden + "rules[1]", forbidden + "rules[2]", forbidden + "rules[3]"}},
		{"Spec 2.3", "named objects are within all objects", `rules: [{resources: [{resources: [pods], resourceNames: [p]}]}]`,
			`rules: [{resources: [{resources: [pods], resourceNames: [p]}]}, {resources: [{resources: [pods], resourceNames: [p, q]}]}, {resources: [{resources: [pods]}]}]`,
			[]string{forbidden + "rules[1]", forbidden + "rules[2]"}},
		{"Spec 2.3", "paths cover paths", `rules: [{nonResourceURLs: ["/a/*", /b]}]`,
			`rules: [{nonResourceURLs: [/a/b, "/a/b/*", /b]}, {nonResourceURLs: [/a]}, {nonResourceURLs: ["*"]}, {nonResourceURLs: [/b/c]}, {}, {namespaces: [n]}]`,
			[]string{forbidden + "rules[1]", forbidden + "rules[2]", forbidden + "rules[3]", forbidden + "rules[4]", forbidden + "rules[5]"}},
		{"Spec 2.3", "resources are not paths", `rules: [{resources: [{group: apps}]}]`, `rules: [{nonResourceURLs: [/a]}, {resources: [{group: apps}], nonResourceURLs: [/a]}]`,
			[]string{forbidden + "rules[0]", forbidden + "rules[1]"}},
		{"Spec 2.3", "virtual clusters cover virtual clusters", `rules: [{virtualClusters: [{namespace: n}, {name: v}]}]`,
			`rules: [{virtualClusters: [{name: w, namespace: n}, {name: v, namespace: m}]}, {virtualClusters: [{name: w}]}, {}]`, []string{forbidden + "rules[1]", forbidden + "rules[2]"}},
		{"ADR-0005", "two rules do not cover one", `rules: [{verbs: [get]}, {verbs: [list]}]`, `rules: [{verbs: [get, list]}]`, []string{forbidden + "rules[0]"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := typesAndFields(scope.Exceeds(parse(t, row.child), parse(t, row.parent), at))
			slices.Sort(row.want)
			if !slices.Equal(got, row.want) {
				t.Errorf("%s: %s\nparent %s\n child %s\n got %q\nwant %q", row.section, row.sentence, row.parent, row.child, got, row.want)
			}
		})
	}
}

// The vocabulary of the random scopes and requests: small, so that they meet, and with values that
// Validate refuses, as soundness must not depend on it.
var (
	projects  = rapid.SampledFrom([]string{"a", "b", "*", ""})
	instances = rapid.SampledFrom([]string{"v", "w", "*", ""})
	clusters  = rapid.SampledFrom([]string{"c", "d", "*", ""})
	spaces    = rapid.SampledFrom([]string{"s", "t", "*", ""})
	verbs     = rapid.SampledFrom([]string{"get", "list", "create", "update", "*", ""})
	groups    = rapid.SampledFrom([]string{"", model.GroupName, "authentication.k8s.io"})
	paths     = rapid.SampledFrom([]string{"/metrics", "/version", "/a", "/a/b", "/a/b/c", "/a/", "/a/../b"})
	targets   = rapid.SampledFrom([]string{scope.TargetManagement, scope.TargetManagement, scope.TargetCluster, scope.TargetProjectSpace, scope.TargetProjectVirtualCluster, ""})
)

func list[T any](t *rapid.T, of *rapid.Generator[T], label string) []T {
	return rapid.SliceOfN(of, 0, 2).Draw(t, label)
}

func drawScope(t *rapid.T) *model.Scope {
	role := rapid.Custom(func(t *rapid.T) model.ScopeRole {
		return model.ScopeRole{
			Role:            rapid.SampledFrom(append(scope.Roles(), "unknown")).Draw(t, "role"),
			Projects:        list(t, projects, "projects"),
			VirtualClusters: list(t, instances, "virtualClusters"),
		}
	})
	group := rapid.Custom(func(t *rapid.T) model.ScopeGroupResources {
		return model.ScopeGroupResources{
			Group: groups.Draw(t, "group"),
			Resources: list(t, rapid.SampledFrom([]string{
				"*", vci, vci + "/*", vci + "/kubeconfig", "*/kubeconfig", "pods", "pods/log", "pods/*", "*/log", "", "*/*", "pods/", "*/", "po*", "pods/log/x",
			}), "resources"),
			ResourceNames: list(t, instances, "resourceNames"),
		}
	})
	rule := rapid.Custom(func(t *rapid.T) model.ScopeRule {
		e := model.ScopeRule{
			Verbs:           list(t, verbs, "verbs"),
			Resources:       list(t, group, "resources"),
			Namespaces:      list(t, rapid.SampledFrom([]string{"", "p-a", "p-b"}), "namespaces"),
			NonResourceURLs: list(t, rapid.SampledFrom([]string{"*", "/*", "/metrics", "/a", "/a/*", "/a/b/*", "/a*", "", "a*"}), "nonResourceURLs"),
			RequestTargets:  list(t, targets, "requestTargets"),
			VirtualClusters: list(t, rapid.Custom(func(t *rapid.T) model.ScopeRuleVirtualCluster {
				return model.ScopeRuleVirtualCluster{
					Name:      instances.Draw(t, "name"),
					Namespace: rapid.SampledFrom([]string{"", "p-a", "p-b"}).Draw(t, "namespace"),
				}
			}), "virtualClusters"),
		}
		if rapid.Bool().Draw(t, "ofCluster") {
			e.Cluster = clusters.Draw(t, "cluster")
		}
		return e
	})
	return &model.Scope{
		Roles: list(t, role, "roles"),
		Projects: list(t, rapid.Custom(func(t *rapid.T) model.ScopeProject {
			return model.ScopeProject{Project: projects.Draw(t, "project")}
		}), "projects"),
		Spaces: list(t, rapid.Custom(func(t *rapid.T) model.ScopeSpace {
			return model.ScopeSpace{Project: projects.Draw(t, "project"), Space: spaces.Draw(t, "space")}
		}), "spaces"),
		VirtualClusters: list(t, rapid.Custom(func(t *rapid.T) model.ScopeVirtualCluster {
			return model.ScopeVirtualCluster{Project: projects.Draw(t, "project"), VirtualCluster: instances.Draw(t, "virtualCluster")}
		}), "virtualClusters"),
		Clusters: list(t, rapid.Custom(func(t *rapid.T) model.ScopeCluster {
			return model.ScopeCluster{Cluster: clusters.Draw(t, "cluster")}
		}), "clusters"),
		Rules:            list(t, rule, "rules"),
		AllowPlatformCLI: rapid.Bool().Draw(t, "allowPlatformCli"),
	}
}

func drawRequest(t *rapid.T) scope.Request {
	r := scope.Request{
		Verb:    verbs.Draw(t, "verb"),
		Target:  targets.Draw(t, "target"),
		Project: projects.Draw(t, "project"),
	}
	if rapid.Bool().Draw(t, "proxied") {
		r.VirtualCluster, r.Space, r.Cluster = instances.Draw(t, "virtualCluster"), spaces.Draw(t, "space"), clusters.Draw(t, "cluster")
	}
	if rapid.IntRange(0, 3).Draw(t, "path") == 0 {
		r.Path = paths.Draw(t, "path")
		return r
	}
	r.Group = groups.Draw(t, "group")
	r.Resource = rapid.SampledFrom([]string{vci, "pods", "ownedaccesskeys", "configs", "tokenreviews", "*"}).Draw(t, "resource")
	r.Subresource = rapid.SampledFrom([]string{"", "", "kubeconfig", "log", "*"}).Draw(t, "subresource")
	r.Namespace = rapid.SampledFrom([]string{"p-a", "p-b", "default", ""}).Draw(t, "namespace")
	r.Name = instances.Draw(t, "name")
	return r
}

// narrow returns s without the entries that parent does not cover, so that random children are within
// their parents often enough to matter.
func narrow(s, parent *model.Scope) *model.Scope {
	return &model.Scope{
		Roles:    keepCovered(s.Roles, parent, func(e model.ScopeRole) *model.Scope { return &model.Scope{Roles: []model.ScopeRole{e}} }),
		Projects: keepCovered(s.Projects, parent, func(e model.ScopeProject) *model.Scope { return &model.Scope{Projects: []model.ScopeProject{e}} }),
		Spaces:   keepCovered(s.Spaces, parent, func(e model.ScopeSpace) *model.Scope { return &model.Scope{Spaces: []model.ScopeSpace{e}} }),
		VirtualClusters: keepCovered(s.VirtualClusters, parent, func(e model.ScopeVirtualCluster) *model.Scope {
			return &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{e}}
		}),
		Clusters:         keepCovered(s.Clusters, parent, func(e model.ScopeCluster) *model.Scope { return &model.Scope{Clusters: []model.ScopeCluster{e}} }),
		Rules:            keepCovered(s.Rules, parent, func(e model.ScopeRule) *model.Scope { return &model.Scope{Rules: []model.ScopeRule{e}} }),
		AllowPlatformCLI: s.AllowPlatformCLI && len(scope.Exceeds(&model.Scope{AllowPlatformCLI: true}, parent, at)) == 0,
	}
}

func keepCovered[T any](entries []T, parent *model.Scope, alone func(T) *model.Scope) []T {
	var covered []T
	for _, e := range entries {
		if len(scope.Exceeds(alone(e), parent, at)) == 0 {
			covered = append(covered, e)
		}
	}
	return covered
}

// A child that does not exceed its parent permits nothing that the parent does not.
// Source: Spec 2.3; ADR-0005.
func TestExceedsIsSound(t *testing.T) {
	empty, permitted := &model.Scope{}, 0
	rapid.Check(t, func(t *rapid.T) {
		parent := drawScope(t)
		child := narrow(drawScope(t), parent)
		if errs := scope.Exceeds(child, parent, at); len(errs) > 0 {
			t.Fatalf("entries that are within the parent one by one are not within it together: %v", errs)
		}
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRequest), 20, 20).Draw(t, "requests") {
			if !scope.Allows(child, r) {
				continue
			}
			if !scope.Allows(parent, r) {
				t.Fatalf("the child permits %+v, the parent does not", r)
			}
			if !scope.Allows(empty, r) {
				permitted++
			}
		}
	})
	if !t.Failed() && permitted == 0 {
		t.Error("no random child permitted anything: the test has shown nothing")
	}
}

// The narrowest of some scopes permit together what all of them permit, and no scope among them is within another one.
// Source: ADR-0021.
func TestNarrowest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scopes := rapid.SliceOfN(rapid.Custom(drawScope), 0, 3).Draw(t, "scopes")
		if len(scopes) > 0 {
			// A child of the last one, and a wider one that is within nothing.
			scopes = append(scopes, narrow(drawScope(t), scopes[len(scopes)-1]), &model.Scope{Projects: []model.ScopeProject{{Project: "*"}}})
		}
		narrowest := scope.Narrowest(scopes)
		if len(scopes) > 0 && len(narrowest) == 0 {
			t.Fatal("no scope is left")
		}
		for i, one := range narrowest {
			for j, other := range narrowest {
				if i != j && len(scope.Exceeds(one, other, at)) == 0 {
					t.Fatalf("scope %d is within scope %d", i, j)
				}
			}
		}
		for _, r := range rapid.SliceOfN(rapid.Custom(drawRequest), 20, 20).Draw(t, "requests") {
			by := func(some []*model.Scope) bool {
				return !slices.ContainsFunc(some, func(s *model.Scope) bool { return !scope.Allows(s, r) })
			}
			if by(scopes) != by(narrowest) {
				t.Fatalf("all scopes permit %+v: %v; the narrowest: %v", r, by(scopes), by(narrowest))
			}
		}
	})
}

// A scope is within itself and within no scope. Source: Spec 2.3; ADR-0005.
func TestExceedsIsReflexive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScope(t)
		if errs := scope.Exceeds(s, s, at); len(errs) > 0 {
			t.Fatalf("the scope is not within itself: %v", errs)
		}
		if errs := scope.Exceeds(s, nil, at); len(errs) > 0 {
			t.Fatalf("the scope is not within no scope: %v", errs)
		}
	})
}
