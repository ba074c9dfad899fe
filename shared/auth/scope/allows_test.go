package scope_test

import (
	"testing"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

// requestOn is a request to this API for a resource of the platform's group. A project p has the namespace p-p.
func requestOn(verb, resource, project, name string) scope.Request {
	r := scope.Request{Verb: verb, Group: model.GroupName, Resource: resource, Project: project, Name: name, Target: scope.TargetManagement}
	if project != "" {
		r.Namespace = "p-" + project
	}
	return r
}

// withSubresource is r for a subresource.
func withSubresource(r scope.Request, subresource string) scope.Request {
	r.Subresource = subresource
	return r
}

// withGroup is r for another group.
func withGroup(group string, r scope.Request) scope.Request {
	r.Group = group
	return r
}

func path(verb, p string) scope.Request {
	return scope.Request{Verb: verb, Path: p, Target: scope.TargetManagement}
}

func inSpace(verb, project, space string) scope.Request {
	return scope.Request{Verb: verb, Resource: "pods", Namespace: "any", Project: project, Space: space, Target: scope.TargetProjectSpace}
}

func inVirtualCluster(verb, project, name string) scope.Request {
	return scope.Request{Verb: verb, Resource: "pods", Namespace: "any", Project: project, VirtualCluster: name, Target: scope.TargetProjectVirtualCluster}
}

func inCluster(verb, cluster string) scope.Request {
	return scope.Request{Verb: verb, Resource: "nodes", Cluster: cluster, Target: scope.TargetCluster}
}

const vci = "virtualclusterinstances"

func TestAllows(t *testing.T) {
	const (
		authn = "authentication.k8s.io"
		authz = "authorization.k8s.io"
	)
	core := func(verb, resource, subresource, name string) scope.Request {
		return scope.Request{Verb: verb, Resource: resource, Subresource: subresource, Namespace: "default", Name: name, Target: scope.TargetManagement}
	}
	for _, row := range []struct {
		section  string
		sentence string
		scope    string
		yes, no  []scope.Request
	}{
		{"Spec 2.3", "no scope narrows nothing", "", []scope.Request{requestOn("delete", "configs", "", "config"), path("post", "/x"), {}}, nil},
		{"ADR-0005", "an empty scope permits what every key may do and nothing else", "{}",
			[]scope.Request{
				path("get", "/api"), path("get", "/api/v1"), path("get", "/apis"), path("get", "/apis/management.platform.sh/v1"), path("get", "/openapi/v3/version"), path("get", "/version"),
				requestOn("create", "selves", "", ""), withGroup(authn, requestOn("create", "selfsubjectreviews", "", "")),
				withGroup(authz, requestOn("create", "selfsubjectaccessreviews", "", "")), withGroup(authz, requestOn("create", "selfsubjectrulesreviews", "", "")),
				requestOn("create", "ownedaccesskeys", "", ""), requestOn("create", "directclusterendpointtokens", "", ""),
			},
			[]scope.Request{
				path("post", "/version"), path("get", "/versions"), path("get", "/metrics"), path("get", "/apis/../metrics"), path("get", "/"), path("get", "/openapi"),
				requestOn("get", "selves", "", "me"), requestOn("create", "selfsubjectreviews", "", ""), withGroup("", requestOn("create", "selves", "", "")),
				withGroup(authz, requestOn("create", "subjectaccessreviews", "", "")), withGroup(authn, requestOn("create", "tokenreviews", "", "")),
				requestOn("get", "ownedaccesskeys", "", "a"), requestOn("list", "ownedaccesskeys", "", ""), requestOn("delete", "ownedaccesskeys", "", "a"),
				withSubresource(requestOn("create", "ownedaccesskeys", "", "a"), "token"), requestOn("create", "ownedaccesskeys", "a", ""),
				requestOn("get", "configs", "", "config"), requestOn("list", vci, "a", ""), requestOn("create", "syncpatchevaluations", "", ""),
			}},
		{"ADR-0005", "what every key may do is for this API only", "{}", nil,
			[]scope.Request{
				{Verb: "get", Path: "/version", Cluster: "c", Target: scope.TargetCluster},
				{Verb: "create", Group: model.GroupName, Resource: "selves", Cluster: "c", Target: scope.TargetCluster},
			}},
		{"ADR-0005", "what is unclear is refused", `{rules: [{}], projects: [{project: "*"}], clusters: [{cluster: "*"}]}`, nil,
			[]scope.Request{
				{},
				{Verb: "get", Target: scope.TargetManagement},
				{Resource: "pods", Target: scope.TargetManagement},
				{Verb: "get", Resource: "pods"},
				{Verb: "get", Resource: "pods", Target: "VirtualCluster"},
				{Verb: "get", Resource: "pods", Path: "/metrics", Target: scope.TargetManagement},
				{Verb: "get", Resource: "pods/log", Target: scope.TargetManagement},
				{Verb: "get", Path: "metrics", Target: scope.TargetManagement},
				{Verb: "get", Path: "/a//b", Target: scope.TargetManagement},
				{Verb: "get", Resource: "pods", Target: scope.TargetCluster},
				{Verb: "get", Resource: "pods", Project: "a", Target: scope.TargetProjectSpace},
				{Verb: "get", Resource: "pods", VirtualCluster: "v", Target: scope.TargetProjectVirtualCluster},
			}},
		{"Spec 2.3", "platformCLI lets read-only management requests work", `roles: [{role: platformCLI}]`,
			[]scope.Request{
				requestOn("get", vci, "a", "v"), requestOn("list", vci, "a", ""), requestOn("list", vci, "", ""), requestOn("watch", vci, "", ""), requestOn("list", "ownedaccesskeys", "", ""),
				requestOn("get", "configs", "", "config"), requestOn("list", "config", "", ""), requestOn("get", "directclusterendpointtokens", "", "t"),
			},
			[]scope.Request{
				requestOn("create", vci, "a", ""), requestOn("update", vci, "a", "v"), requestOn("delete", "ownedaccesskeys", "", "a"), withSubresource(requestOn("create", vci, "a", "v"), "kubeconfig"),
				withSubresource(requestOn("get", vci, "a", "v"), "kubeconfig"), withGroup("", requestOn("list", "secrets", "a", "")), path("get", "/metrics"), inVirtualCluster("get", "a", "v"),
			}},
		{"Spec 2.3", "allowPlatformCli is the role platformCLI", `allowPlatformCli: true`,
			[]scope.Request{requestOn("list", vci, "", ""), requestOn("list", "ownedaccesskeys", "", "")},
			[]scope.Request{requestOn("delete", vci, "a", "v")}},
		{"Spec 2.3", "a role applies to its projects", `roles: [{role: platformCLI, projects: [a]}]`,
			[]scope.Request{requestOn("get", vci, "a", "v"), requestOn("list", vci, "a", ""), requestOn("list", "ownedaccesskeys", "", ""), requestOn("get", "configs", "", "config")},
			[]scope.Request{requestOn("get", vci, "b", "v"), requestOn("list", vci, "", ""), requestOn("list", "projects", "", "")}},
		{"Spec 2.3", "a role applies to its virtual clusters", `roles: [{role: platformCLI, virtualClusters: [v]}]`,
			[]scope.Request{requestOn("get", vci, "a", "v"), requestOn("get", vci, "b", "v"), requestOn("list", "ownedaccesskeys", "", "")},
			[]scope.Request{requestOn("get", vci, "a", "w"), requestOn("list", vci, "a", ""), requestOn("get", "others", "a", "v")}},
		{"Spec 2.3", "a role applies to its projects and virtual clusters", `roles: [{role: vcluster, projects: [a], virtualClusters: [v]}]`,
			[]scope.Request{requestOn("get", vci, "a", "v"), requestOn("patch", vci, "a", "v"), requestOn("list", vci, "a", "v")},
			[]scope.Request{requestOn("get", vci, "b", "v"), requestOn("get", vci, "a", "w"), requestOn("list", vci, "a", ""), requestOn("list", "ownedaccesskeys", "", "")}},
		{"ADR-0005", "* in the lists of a role is no limit", `roles: [{role: vcluster, projects: ["*"], virtualClusters: ["*"]}]`,
			[]scope.Request{requestOn("list", vci, "", ""), requestOn("update", vci, "a", "v")}, nil},
		{"ADR-0005", "a limited role needs a namespace that is a project's", `roles: [{role: vcluster, virtualClusters: [v]}]`, nil,
			[]scope.Request{{Verb: "get", Group: model.GroupName, Resource: vci, Namespace: "default", Name: "v", Target: scope.TargetManagement}}},
		{"ADR-0005", "vcluster reads and updates virtual clusters", `roles: [{role: vcluster}]`,
			[]scope.Request{requestOn("get", vci, "a", "v"), requestOn("list", vci, "", ""), requestOn("watch", vci, "a", ""), requestOn("update", vci, "a", "v"), requestOn("patch", vci, "a", "v")},
			[]scope.Request{requestOn("create", vci, "a", ""), requestOn("delete", vci, "a", "v"), withSubresource(requestOn("create", vci, "a", "v"), "kubeconfig"), requestOn("get", "configs", "", "config")}},
		{"ADR-0005", "agent reviews tokens and access", `roles: [{role: agent}]`,
			[]scope.Request{withGroup(authn, requestOn("create", "tokenreviews", "", "")), withGroup(authz, requestOn("create", "subjectaccessreviews", "", ""))},
			[]scope.Request{withGroup(authz, requestOn("create", "localsubjectaccessreviews", "a", "")), requestOn("create", "tokenreviews", "", ""), requestOn("get", vci, "a", "v")}},
		{"ADR-0005", "a limited role permits nothing outside of its limits", `roles: [{role: agent, projects: [a]}, {role: metrics-reader, virtualClusters: [v]}]`, nil,
			[]scope.Request{withGroup(authn, requestOn("create", "tokenreviews", "", "")), path("get", "/metrics")}},
		{"ADR-0005", "network-peer, workspace and metrics-writer mean nothing here", `roles: [{role: network-peer}, {role: workspace}, {role: metrics-writer}]`,
			[]scope.Request{requestOn("create", "selves", "", "")},
			[]scope.Request{requestOn("get", vci, "a", "v"), requestOn("get", "configs", "", "config"), path("get", "/metrics"), path("post", "/metrics")}},
		{"ADR-0005", "metrics-reader reads metrics", `roles: [{role: metrics-reader}]`,
			[]scope.Request{path("get", "/metrics")}, []scope.Request{path("post", "/metrics"), path("get", "/metrics/x"), requestOn("get", vci, "a", "v")}},
		{"ADR-0005", "an unknown role permits nothing", `roles: [{role: admin}]`, nil, []scope.Request{requestOn("get", vci, "a", "v")}},
		{"Spec 2.3", "a project is what is inside it", `projects: [{project: a}]`,
			[]scope.Request{
				requestOn("get", vci, "a", "v"), requestOn("create", vci, "a", ""), requestOn("list", vci, "a", ""), requestOn("deletecollection", vci, "a", ""), withSubresource(requestOn("create", vci, "a", "v"), "kubeconfig"),
				withGroup("", requestOn("get", "secrets", "a", "s")), inSpace("get", "a", "s"), inVirtualCluster("delete", "a", "v"),
				{Verb: "get", Path: "/metrics", Project: "a", VirtualCluster: "v", Target: scope.TargetProjectVirtualCluster},
			},
			[]scope.Request{
				requestOn("get", vci, "b", "v"), requestOn("list", vci, "", ""), requestOn("list", "ownedaccesskeys", "", ""), requestOn("get", "configs", "", "config"),
				{Verb: "list", Group: model.GroupName, Resource: vci, Project: "a", Target: scope.TargetManagement},
				inSpace("get", "b", "s"), inVirtualCluster("get", "b", "v"), inCluster("get", "a"), path("get", "/metrics"),
				{Verb: "get", Path: "/metrics", Project: "a", Target: scope.TargetManagement},
			}},
		{"Spec 2.3", "the project * selects all", `projects: [{project: "*"}]`,
			[]scope.Request{requestOn("get", vci, "a", "v"), requestOn("list", vci, "b", "")},
			[]scope.Request{
				requestOn("list", vci, "", ""), requestOn("get", "configs", "", "config"),
				{Verb: "get", Group: model.GroupName, Resource: vci, Namespace: "default", Name: "v", Target: scope.TargetManagement},
			}},
		{"Spec 2.3", "a space is one space", `spaces: [{project: a, space: s}]`,
			[]scope.Request{inSpace("get", "a", "s"), {Verb: "get", Path: "/metrics", Project: "a", Space: "s", Target: scope.TargetProjectSpace}},
			[]scope.Request{inSpace("get", "a", "t"), inSpace("get", "b", "s"), requestOn("get", vci, "a", "s"), inVirtualCluster("get", "a", "s")}},
		{"Spec 2.3", "the space * selects all of the project", `spaces: [{project: a, space: "*"}]`, []scope.Request{inSpace("get", "a", "t")}, []scope.Request{inSpace("get", "b", "s")}},
		{"Spec 2.3", "a virtual cluster is one virtual cluster", `virtualClusters: [{project: a, virtualCluster: v}]`,
			[]scope.Request{
				requestOn("get", vci, "a", "v"), requestOn("delete", vci, "a", "v"), requestOn("watch", vci, "a", "v"), withSubresource(requestOn("create", vci, "a", "v"), "kubeconfig"), inVirtualCluster("create", "a", "v"),
			},
			[]scope.Request{
				requestOn("get", vci, "a", "w"), requestOn("get", vci, "b", "v"), requestOn("list", vci, "a", ""), requestOn("create", vci, "a", ""), requestOn("list", vci, "", ""), requestOn("get", "others", "a", "v"),
				withGroup("", requestOn("get", vci, "a", "v")), inVirtualCluster("get", "a", "w"), inVirtualCluster("get", "b", "v"), inSpace("get", "a", "v"),
				{Verb: "get", Group: model.GroupName, Resource: "others", Namespace: "p-a", Project: "a", VirtualCluster: "v", Target: scope.TargetManagement},
			}},
		{"Spec 2.3", "the virtual cluster * selects all of the project", `virtualClusters: [{project: a, virtualCluster: "*"}]`,
			[]scope.Request{requestOn("get", vci, "a", "w"), requestOn("list", vci, "a", ""), inVirtualCluster("get", "a", "w")},
			[]scope.Request{requestOn("list", vci, "b", ""), requestOn("list", vci, "", ""), requestOn("list", "others", "a", "")}},
		{"ADR-0005", "an empty name permits nothing",
			`{roles: [{role: vcluster, virtualClusters: [""]}], projects: [{}], virtualClusters: [{project: a}], rules: [{resources: [{group: management.platform.sh, resources: ["*"], resourceNames: [""]}]}]}`, nil,
			[]scope.Request{requestOn("list", vci, "a", ""), requestOn("list", vci, "", ""), requestOn("get", vci, "a", "v")}},
		{"ADR-0005", "a virtual cluster is in a namespace that is a project's", `virtualClusters: [{project: "*", virtualCluster: "*"}]`,
			[]scope.Request{requestOn("list", vci, "a", "")},
			[]scope.Request{
				{Verb: "get", Group: model.GroupName, Resource: vci, Namespace: "default", Name: "v", Target: scope.TargetManagement},
				{Verb: "list", Group: model.GroupName, Resource: vci, Project: "a", Target: scope.TargetManagement},
			}},
		{"Spec 2.3", "a cluster is one cluster", `clusters: [{cluster: c}]`,
			[]scope.Request{inCluster("delete", "c"), {Verb: "get", Path: "/metrics", Cluster: "c", Target: scope.TargetCluster}},
			[]scope.Request{inCluster("get", "d"), requestOn("get", "clusters", "", "c"), {Verb: "get", Resource: "nodes", Cluster: "c", Target: scope.TargetManagement}}},
		{"Spec 2.3", "the cluster * selects all", `clusters: [{cluster: "*"}]`, []scope.Request{inCluster("get", "d")}, []scope.Request{requestOn("get", "clusters", "", "c")}},
		{"Spec 2.3", "entries are alternatives", `{projects: [{project: a}], roles: [{role: metrics-reader}]}`,
			[]scope.Request{requestOn("get", vci, "a", "v"), path("get", "/metrics")}, []scope.Request{requestOn("get", vci, "b", "v")}},
		{"Spec 2.3", "a rule without restrictions permits every request", `rules: [{}]`,
			[]scope.Request{requestOn("delete", "configs", "", "config"), path("post", "/x"), inCluster("get", "c"), inSpace("get", "a", "s"), core("get", "pods", "log", "p")}, nil},
		{"Spec 2.3", "verbs", `rules: [{verbs: [get]}]`, []scope.Request{core("get", "pods", "", "p"), path("get", "/x")}, []scope.Request{core("list", "pods", "", "")}},
		{"Spec 2.3", "the empty group is the core group", `rules: [{resources: [{group: ""}]}]`,
			[]scope.Request{core("get", "pods", "", "p"), core("get", "pods", "log", "p")}, []scope.Request{withGroup("apps", core("get", "pods", "", "p")), path("get", "/x")}},
		{"Spec 2.3", "empty resources are all of the group", `rules: [{resources: [{group: apps}]}]`,
			[]scope.Request{withGroup("apps", core("get", "deployments", "scale", "d"))}, []scope.Request{core("get", "pods", "", "p")}},
		{"Spec 2.3", "pods is not its subresources", `rules: [{resources: [{resources: [pods]}]}]`,
			[]scope.Request{core("get", "pods", "", "p")}, []scope.Request{core("get", "pods", "log", "p"), core("get", "nodes", "", "n")}},
		{"Spec 2.3", "pods/log", `rules: [{resources: [{resources: [pods/log]}]}]`,
			[]scope.Request{core("get", "pods", "log", "p")}, []scope.Request{core("get", "pods", "", "p"), core("get", "pods", "exec", "p")}},
		{"Spec 2.3", "* is all", `rules: [{resources: [{resources: ["*"]}]}]`,
			[]scope.Request{core("get", "pods", "log", "p"), core("get", "nodes", "", "n")}, []scope.Request{withGroup("apps", core("get", "pods", "", "p"))}},
		{"Spec 2.3", "pods/* is all subresources", `rules: [{resources: [{resources: ["pods/*"]}]}]`,
			[]scope.Request{core("get", "pods", "log", "p")}, []scope.Request{core("get", "pods", "", "p"), core("get", "nodes", "log", "n")}},
		{"Spec 2.3", "*/scale is that subresource of all", `rules: [{resources: [{resources: ["*/scale"]}]}]`,
			[]scope.Request{core("get", "things", "scale", "p")}, []scope.Request{core("get", "things", "", "p"), core("get", "things", "log", "n")}},
		{"ADR-0005", "a malformed pattern permits nothing", `rules: [{resources: [{resources: ["po*", "*/*", "pods/", "", "a/b/c"]}]}]`, nil,
			[]scope.Request{core("get", "pods", "", "p"), core("get", "pods", "log", "p"), core("get", "pods", "*", "p"), core("get", "a", "b", "p")}},
		{"Spec 2.3", "resourceNames are instances", `rules: [{resources: [{resources: [pods], resourceNames: [p]}]}]`,
			[]scope.Request{core("get", "pods", "", "p")}, []scope.Request{core("get", "pods", "", "q"), core("list", "pods", "", "")}},
		{"Spec 2.3", "namespaces", `rules: [{namespaces: [default]}]`,
			[]scope.Request{core("get", "pods", "", "p")}, []scope.Request{requestOn("get", vci, "a", "v"), requestOn("get", "configs", "", "config"), path("get", "/x")}},
		{"Spec 2.3", "the empty namespace is for non-namespaced resources", `rules: [{namespaces: [""]}]`,
			[]scope.Request{requestOn("get", "configs", "", "config"), requestOn("list", "users", "", "")},
			[]scope.Request{core("get", "pods", "", "p"), path("get", "/x"), requestOn("list", vci, "", ""), requestOn("watch", vci, "", "")}},
		{"Spec 2.3", "nonResourceURLs are paths", `rules: [{nonResourceURLs: [/a, "/b/*"]}]`,
			[]scope.Request{path("get", "/a"), path("get", "/b/c/d"), path("post", "/b/c")},
			[]scope.Request{path("get", "/a/b"), path("get", "/b"), path("get", "/bc"), path("get", "/b/../c"), core("get", "pods", "", "p")}},
		{"Spec 2.3", "the path * is every path", `rules: [{nonResourceURLs: ["*"]}]`, []scope.Request{path("get", "/"), path("get", "/a/b")}, []scope.Request{core("get", "pods", "", "p")}},
		{"ADR-0005", "a malformed path permits nothing", `rules: [{nonResourceURLs: ["/a*", "b*", ""]}]`, nil, []scope.Request{path("get", "/ab"), path("get", "/b")}},
		{"ADR-0005", "a rule with resources and paths permits both", `rules: [{resources: [{resources: [pods]}], nonResourceURLs: [/a]}]`,
			[]scope.Request{core("get", "pods", "", "p"), path("get", "/a")}, []scope.Request{core("get", "nodes", "", "p"), path("get", "/b")}},
		{"Spec 2.3", "requestTargets", `rules: [{requestTargets: [Cluster, ProjectSpace]}]`,
			[]scope.Request{inCluster("get", "c"), inSpace("get", "a", "s")}, []scope.Request{core("get", "pods", "", "p"), inVirtualCluster("get", "a", "v")}},
		{"Spec 2.3", "with a cluster, non-cluster requests are not allowed", `rules: [{cluster: c}]`,
			[]scope.Request{inCluster("get", "c")}, []scope.Request{inCluster("get", "d"), core("get", "pods", "", "p"), inSpace("get", "a", "s")}},
		{"Spec 2.3", "virtual clusters of a rule", `rules: [{virtualClusters: [{name: v}]}]`,
			[]scope.Request{requestOn("get", vci, "a", "v"), inVirtualCluster("get", "a", "v")},
			[]scope.Request{requestOn("get", vci, "a", "w"), requestOn("list", vci, "a", ""), inVirtualCluster("get", "a", "w"), requestOn("get", "configs", "", "v"), inCluster("get", "c")}},
		{"Spec 2.3", "an empty name is all virtual clusters", `rules: [{virtualClusters: [{namespace: p-a}]}]`,
			[]scope.Request{requestOn("get", vci, "a", "w"), requestOn("list", vci, "a", "")}, []scope.Request{requestOn("get", vci, "b", "w"), requestOn("list", vci, "", ""), inVirtualCluster("get", "a", "w")}},
		{"Spec 2.3", "an empty entry is all virtual clusters in all namespaces", `rules: [{virtualClusters: [{}]}]`,
			[]scope.Request{requestOn("list", vci, "", ""), inVirtualCluster("get", "a", "w")}, []scope.Request{requestOn("get", "configs", "", "config")}},
		{"Spec 2.3", "all restrictions of a rule must match", `rules: [{verbs: [get], resources: [{resources: [pods]}], namespaces: [default], requestTargets: [Management]}]`,
			[]scope.Request{core("get", "pods", "", "p")},
			[]scope.Request{core("list", "pods", "", ""), core("get", "nodes", "", "p"), withGroup("apps", core("get", "pods", "", "p")), inSpace("get", "a", "s")}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			s := parse(t, row.scope)
			for _, r := range row.yes {
				if !scope.Allows(s, r) {
					t.Errorf("%s: %s\n%s\nrefuses %+v", row.section, row.sentence, row.scope, r)
				}
			}
			for _, r := range row.no {
				if scope.Allows(s, r) {
					t.Errorf("%s: %s\n%s\nallows %+v", row.section, row.sentence, row.scope, r)
				}
			}
		})
	}
}
