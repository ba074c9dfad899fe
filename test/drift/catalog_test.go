package drift_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	discoveryv2 "k8s.io/api/apidiscovery/v2"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
)

// documentsFolder is the folder of the documents that discoverapi embeds.
const documentsFolder = "functions/discoverapi/"

var packageClause = regexp.MustCompile(`(?m)^package (\w+)`)

// operations returns the folders of the operations. A folder whose package has another name is a finding.
func operations(p project) (folders map[string]bool, findings []string) {
	folders = map[string]bool{}
	for _, name := range p.pathsWith("functions/", ".go") {
		folder, file, _ := strings.Cut(strings.TrimPrefix(name, "functions/"), "/")
		if folder == "catalog" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		folders[folder] = true
		if clause := packageClause.FindStringSubmatch(p[name]); clause == nil || clause[1] != folder {
			findings = append(findings, fmt.Sprintf("%s: the package is not called %s", name, folder))
		}
	}
	return folders, findings
}

// names returns the names of functions, and a finding for each name that occurs twice.
func names(functions []*frame.Function) (set map[string]bool, findings []string) {
	set = map[string]bool{}
	for _, f := range functions {
		if set[f.Name] {
			findings = append(findings, fmt.Sprintf("the catalog has %q twice", f.Name))
		}
		set[f.Name] = true
	}
	return set, findings
}

// servedVerbs describes the verbs that the endpoints of functions serve for resources, one a line, in the words of discovery.
func servedVerbs(functions []*frame.Function) map[string]bool {
	verbs := map[string]bool{}
	for _, f := range functions {
		for _, e := range f.Endpoints {
			if e.Resource.Resource == "" {
				continue
			}
			resource, singular, short := e.Resource.Resource, e.Singular, e.ShortNames
			if e.Subresource != "" {
				resource, singular, short = resource+"/"+e.Subresource, "", nil
			}
			verbs[verbLine(e.Verb, e.Resource.Group, e.Resource.Version, resource, e.Kind, singular, short, e.Namespaced)] = true
		}
	}
	return verbs
}

func verbLine(verb, group, version, resource, kind, singular string, short []string, namespaced bool) string {
	return fmt.Sprintf("%s %s/%s %s: kind %s, singular %q, short %q, namespaced %v", verb, group, version, resource, kind, singular, short, namespaced)
}

// discoveredVerbs describes the verbs of a discovery document in the same form.
func discoveredVerbs(text string) (map[string]bool, error) {
	var groups discoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(text), &groups); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, group := range groups.Items {
		for _, v := range group.Versions {
			for _, r := range v.Resources {
				namespaced := r.Scope == discoveryv2.ScopeNamespace
				add := func(verbs []string, resource, kind, singular string, short []string) {
					for _, verb := range verbs {
						found[verbLine(verb, group.Name, v.Version, resource, kind, singular, short, namespaced)] = true
					}
				}
				add(r.Verbs, r.Resource, r.ResponseKind.Kind, r.SingularResource, r.ShortNames)
				for _, sub := range r.Subresources {
					add(sub.Verbs, r.Resource+"/"+sub.Subresource, sub.ResponseKind.Kind, "", nil)
				}
			}
		}
	}
	return found, nil
}

// servedRoutes returns the method and path of each endpoint of the platform's own group, which OpenAPI describes.
func servedRoutes(functions []*frame.Function) map[string]bool {
	routes := map[string]bool{}
	for _, f := range functions {
		for _, e := range f.Endpoints {
			if e.Resource.Group == model.GroupName && !e.IsAlias {
				routes[e.Method+" "+e.Path] = true
			}
		}
	}
	return routes
}

// describedRoutes returns the method and path of each operation of an OpenAPI document of either version.
func describedRoutes(text string) (map[string]bool, error) {
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	routes := map[string]bool{}
	for at, item := range document.Paths {
		for key := range item {
			switch method := strings.ToUpper(key); method {
			case "GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE":
				routes[method+" "+at] = true
			}
		}
	}
	return routes, nil
}

func TestCatalogIsTheFolders(t *testing.T) {
	t.Parallel()
	folders, findings := operations(files(t))
	report(t, findings)
	listed, findings := names(catalog.Functions)
	report(t, findings)
	report(t, differences("functions/", folders, "the catalog", listed))
}

func TestDiscoveryIsTheCatalog(t *testing.T) {
	t.Parallel()
	found, err := discoveredVerbs(files(t)[documentsFolder+"discovery.json"])
	if err != nil {
		t.Fatal(err)
	}
	report(t, differences("the catalog", servedVerbs(catalog.Functions), "discovery", found))
}

func TestOpenAPIIsTheCatalog(t *testing.T) {
	t.Parallel()
	all := files(t)
	versions := map[string][]string{
		"OpenAPI v2": {documentsFolder + "openapi/v2.json"},
		"OpenAPI v3": all.pathsWith(documentsFolder+"openapi/v3/", ".json"),
	}
	for version, parts := range versions {
		routes := map[string]bool{}
		for _, part := range parts {
			operations, err := describedRoutes(all[part])
			if err != nil {
				t.Fatalf("reading %s: %v", part, err)
			}
			for operation := range operations {
				routes[operation] = true
			}
		}
		report(t, differences("the catalog", servedRoutes(catalog.Functions), version, routes))
	}
}

func TestCatalogFinds(t *testing.T) {
	t.Parallel()
	folders, findings := operations(project{
		"functions/a/a.go": "// Package a.\npackage a\n", "functions/b/b.go": "package c\n", "functions/b/b_test.go": "package b_test\n",
		"functions/catalog/catalog.go": "package catalog\n", "functions/a": "", "shared/d/d.go": "package d\n",
	})
	expect(t, findings, "functions/b/b.go: the package is not called b")
	listed, findings := names([]*frame.Function{{Name: "a"}, {Name: "a"}, {Name: "d"}})
	expect(t, findings, `"a" twice`)
	expect(t, differences("functions/", folders, "the catalog", listed), `functions/ has "b"`, `the catalog has "d"`)
}

func TestSelfDescriptionFinds(t *testing.T) {
	t.Parallel()
	keys := model.SchemeGroupVersion.WithResource("keys")
	functions := []*frame.Function{{Endpoints: []frame.Endpoint{
		{Route: frame.Route{Method: "GET", Path: "/v1/keys"}, Target: frame.Target{Verb: "list", Resource: keys, Kind: "Key", Singular: "key"}},
		{
			Route:  frame.Route{Method: "POST", Path: "/v1/keys/{name}/token"},
			Target: frame.Target{Verb: "create", Resource: keys, Subresource: "token", Kind: "Token"},
		},
		{Route: frame.Route{Method: "GET", Path: "/version"}, Target: frame.Target{Verb: "get"}},
	}}}
	group := `{"items":[{"metadata":{"name":"management.platform.sh"},"versions":[{"version":"v1","resources":[%s]}]}]}`
	tests := []struct {
		resource string
		want     []string
	}{
		{`{"resource":"keys","responseKind":{"kind":"Key"},"scope":"Cluster","singularResource":"key","verbs":["list"],
			"subresources":[{"subresource":"token","responseKind":{"kind":"Token"},"verbs":["create"]}]}`, nil},
		{`{"resource":"keys","responseKind":{"kind":"Key"},"scope":"Cluster","singularResource":"key","verbs":["list","watch"],
			"subresources":[{"subresource":"token","responseKind":{"kind":"Other"},"verbs":["create"]}]}`,
			[]string{"catalog has \"create management.platform.sh/v1 keys/token: kind Token", "discovery has \"create management.platform.sh/v1 keys/token: kind Other", "discovery has \"watch"}},
	}
	for _, test := range tests {
		found, err := discoveredVerbs(fmt.Sprintf(group, test.resource))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, differences("the catalog", servedVerbs(functions), "discovery", found), test.want...)
	}
	found, err := describedRoutes(`{"paths":{"/v1/keys":{"get":{},"parameters":[]},"/v1/keys/{name}":{"delete":{}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, differences("the catalog", servedRoutes(functions), "OpenAPI", found),
		`the catalog has "POST /v1/keys/{name}/token"`, `OpenAPI has "DELETE /v1/keys/{name}"`)
}
