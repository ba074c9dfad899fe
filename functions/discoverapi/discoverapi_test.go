package discoverapi

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/spec3"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore/redistest"
)

const (
	plain   = "application/json"
	v2      = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
	binary  = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	// asked is the media type that clients request.
	asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

	bearer = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"
)

// All parameters of a media type must match an aggregated form: a client would read another form as a list without
// resources (ADR-0006).
func TestDo(t *testing.T) {
	t.Parallel()
	deps := open(&platform.Environment{Version: "1.2.3"})
	const group = "/apis/management.platform.sh"
	for _, row := range []struct {
		about, path, accept string
		// mediaType is empty for a refusal.
		mediaType, kind, apiVersion string
		code                        int32
	}{
		{"plain", "/apis", plain, plain, "APIGroupList", "v1", 0},
		{"anything", "/apis", "*/*", plain, "APIGroupList", "v1", 0},
		{"nothing said", "/apis", "", plain, "APIGroupList", "v1", 0},
		{"what kubectl sends", "/apis", v2 + "," + v2beta1 + ",application/json", v2, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2", 0},
		{"what an older one sends", "/apis", v2beta1 + ",application/json", v2beta1, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2beta1", 0},
		{"in another order of parameters", "/apis", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", v2, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2", 0},
		{"a version of the future", "/apis", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json", plain, "APIGroupList", "v1", 0},
		{"a version of the future alone", "/apis", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", "", "", "", 406},
		{"without its group", "/apis", "application/json;v=v2;as=APIGroupDiscoveryList", "", "", "", 406},
		{"the better of two", "/apis", v2 + ";q=0.5,application/json", plain, "APIGroupList", "v1", 0},
		{"protobuf alone", "/apis", "application/vnd.kubernetes.protobuf", "", "", "", 406},
		{"the core group, plain", "/api", plain, plain, "APIVersions", "", 0},
		{"the core group", "/api", v2 + ",application/json", v2, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2", 0},
		{"the core group, older", "/api", v2beta1 + ",application/json", v2beta1, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2beta1", 0},
		{"the version of the core group", "/api/v1", plain, plain, "APIResourceList", "v1", 0},
		{"a namespace", "/api/v1/namespaces/p-web", plain, "", "", "", 403},
		{"another kind of the core group", "/api/v1/pods", plain, "", "", "", 404},
		{"one group", group, plain, plain, "APIGroup", "v1", 0},
		{"one version", group + "/v1", plain, plain, "APIResourceList", "v1", 0},
		{"one version, by kubectl", group + "/v1", "application/json, */*", plain, "APIResourceList", "v1", 0},
		{"another group", "/apis/authorization.k8s.io/v1", plain, plain, "APIResourceList", "v1", 0},
		{"the group of the definitions", "/apis/apiextensions.k8s.io", plain, plain, "APIGroup", "v1", 0},
		{"the definitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", plain, plain, "CustomResourceDefinitionList", "apiextensions.k8s.io/v1", 0},
		{"the definitions, by kubectl", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", plain, "CustomResourceDefinitionList", "apiextensions.k8s.io/v1", 0},
		{"no such group", "/apis/apps", plain, "", "", "", 404},
		{"no such version", group + "/v2", plain, "", "", "", 404},
		{"the version", "/version", plain, plain, "", "", 0},
		{"OpenAPI v2", "/openapi/v2", plain, plain, "", "", 0},
		{"OpenAPI v2 for clients", "/openapi/v2", asked, binary, "", "", 0},
		{"OpenAPI v2 under its own name", "/openapi/v2", binary, binary, "", "", 0},
		{"OpenAPI v2, the better of two", "/openapi/v2", asked + ";q=0.9," + plain + ";q=0.5", binary, "", "", 0},
		{"OpenAPI v2, the other of two", "/openapi/v2", asked + ";q=0.5," + plain, plain, "", "", 0},
		{"OpenAPI v3, the index", "/openapi/v3", plain, plain, "", "", 0},
		{"OpenAPI v3", "/openapi/v3" + group + "/v1", plain, plain, "", "", 0},
		{"OpenAPI v3 of no group", "/openapi/v3/apis/apps/v1", plain, "", "", "", 404},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			in := Input{Path: row.path}
			if row.accept != "" {
				in.Accept = frame.ParseAccept([]string{row.accept})
			}
			page, err := Do(t.Context(), deps, in)
			if row.code != 0 {
				if err == nil || apierror.From(err).Status().Code != row.code {
					t.Errorf("answered %+v, %v, want %d", page, err, row.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if page.MediaType != row.mediaType || page.ETag == "" || len(page.Body) == 0 {
				t.Errorf("answered %q with tag %q, want %q", page.MediaType, page.ETag, row.mediaType)
			}
			if row.kind == "" {
				return
			}
			var got metav1.TypeMeta
			if err := json.Unmarshal(page.Body, &got); err != nil || got.Kind != row.kind || got.APIVersion != row.apiVersion {
				t.Errorf("answered %+v (%v), want %s of %s", got, err, row.kind, row.apiVersion)
			}
		})
	}
}

func page(t testing.TB, path, accept string) *frame.Page {
	t.Helper()
	got, err := Do(t.Context(), open(&platform.Environment{Version: "1.2.3"}), Input{Path: path, Accept: frame.ParseAccept([]string{accept})})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var got version.Info
	if err := json.Unmarshal(page(t, "/version", plain).Body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Major != "1" || got.Minor != "37" || got.GitVersion != "v1.37.2+platform.1.2.3" || got.GoVersion == "" || got.Platform == "" {
		t.Errorf("answered %+v", got)
	}
	if got := gitVersion("v0.1.1-next+dirty"); got != "v1.37.2+platform.v0.1.1-next.dirty" {
		t.Errorf("a build from changed sources is %s", got)
	}
}

// The index of OpenAPI v3 names each document with the hash of its content, so that clients keep it.
func TestOpenAPIV3(t *testing.T) {
	t.Parallel()
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(page(t, "/openapi/v3", plain).Body, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Paths) == 0 {
		t.Fatal("the index is empty")
	}
	for name, entry := range index.Paths {
		where, err := url.Parse(entry.ServerRelativeURL)
		if err != nil || where.Path != "/openapi/v3/"+name {
			t.Fatalf("%s is at %q (%v)", name, entry.ServerRelativeURL, err)
		}
		document := page(t, where.Path, plain)
		if hash := where.Query().Get("hash"); hash == "" || hash != document.ETag {
			t.Errorf("%s has the hash %q and the tag %q", name, hash, document.ETag)
		}
		var parsed spec3.OpenAPI
		if err := json.Unmarshal(document.Body, &parsed); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if parsed.Paths == nil || len(parsed.Paths.Paths) == 0 || parsed.Components == nil || len(parsed.Components.Schemas) == 0 {
			t.Errorf("%s describes nothing", name)
		}
		for path := range parsed.Paths.Paths {
			if !strings.HasPrefix(path, "/"+name+"/") {
				t.Errorf("%s describes %s", name, path)
			}
		}
	}
}

// kubectl reads OpenAPI v2 only as protobuf (ADR-0003).
func TestOpenAPIV2(t *testing.T) {
	t.Parallel()
	var fromBinary openapi_v2.Document
	if err := proto.Unmarshal(page(t, "/openapi/v2", binary).Body, &fromBinary); err != nil {
		t.Fatal(err)
	}
	fromJSON, err := openapi_v2.ParseDocument(page(t, "/openapi/v2", plain).Body)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&fromBinary, fromJSON) {
		t.Error("the two forms differ")
	}
	paths := fromBinary.GetPaths().GetPath()
	if !slices.ContainsFunc(paths, func(p *openapi_v2.NamedPathItem) bool {
		return p.GetName() == "/apis/management.platform.sh/v1/ownedaccesskeys"
	}) {
		t.Errorf("no access keys among %d paths", len(paths))
	}
}

// serve mounts the function over a real state with one key, which belongs to an admin.
func serve(t testing.TB, config *model.ConfigStatus) *httptest.Server {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	env := &platform.Environment{
		Stores: client.Resource, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return config }, Version: "1.2.3",
	}
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}),
		Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{Key: bearer}},
	}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(process.NewServer(env).Mount(Function))
	t.Cleanup(server.Close)
	return server
}

func ask(t testing.TB, server *httptest.Server, path string, header http.Header) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// Over HTTP, documents have the exact media types, and clients can cache them.
func TestForms(t *testing.T) {
	t.Parallel()
	server := serve(t, &model.ConfigStatus{})
	for _, base := range []string{"", frame.BasePath} {
		for path, forms := range map[string][]string{
			"/api":                            {plain, v2, v2beta1},
			"/apis":                           {plain, v2, v2beta1},
			"/apis/management.platform.sh":    {plain},
			"/apis/management.platform.sh/v1": {plain},
			"/openapi/v2":                     {plain, binary},
			"/openapi/v3":                     {plain},
			"/openapi/v3/apis/management.platform.sh/v1": {plain},
			"/version": {plain},
		} {
			tags := map[string]bool{}
			for _, form := range forms {
				header := http.Header{"Accept": {form}, "Authorization": {"Bearer " + bearer}}
				answer := ask(t, server, base+path, header)
				tag := answer.Header.Get("ETag")
				if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != form || tag == "" || answer.Header.Get("Vary") != "Accept" {
					t.Errorf("%s as %s: %d, %v", base+path, form, answer.StatusCode, answer.Header)
				}
				if tags[tag] {
					t.Errorf("%s: two forms have one tag", path)
				}
				tags[tag] = true
				header.Set("If-None-Match", tag)
				if again := ask(t, server, base+path, header); again.StatusCode != 304 {
					t.Errorf("%s as %s, asked for again: %d", base+path, form, again.StatusCode)
				}
				if stranger := ask(t, server, base+path, http.Header{"Accept": {form}}); path != "/version" && stranger.StatusCode != 401 {
					t.Errorf("%s without a key: %d", base+path, stranger.StatusCode)
				}
			}
		}
	}
}

// Spec 5.5: the version needs a credential if the configuration says so.
func TestVersionByConfiguration(t *testing.T) {
	t.Parallel()
	for authenticate, want := range map[bool]int{false: 200, true: 401} {
		server := serve(t, &model.ConfigStatus{AuthenticateVersionEndpoint: authenticate})
		if answer := ask(t, server, "/version", nil); answer.StatusCode != want {
			t.Errorf("authenticateVersionEndpoint %v: %d", authenticate, answer.StatusCode)
		}
		if answer := ask(t, server, "/version", http.Header{"Authorization": {"Bearer " + bearer}}); answer.StatusCode != 200 {
			t.Errorf("authenticateVersionEndpoint %v, with a key: %d", authenticate, answer.StatusCode)
		}
	}
}

// Requests without a route end here. The response says which methods another function has at that path.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	server := serve(t, &model.ConfigStatus{})
	const keys = "/apis/management.platform.sh/v1/ownedaccesskeys"
	for _, row := range []struct {
		method, path string
		code         int
		allow        string
	}{
		{"PUT", frame.BasePath + keys, 405, "DELETE, GET, POST"},
		{"BREW", frame.BasePath + keys + "/a", 405, "DELETE, GET, PATCH, PUT"},
		{"GET", "/apis/management.platform.sh/v1/selves", 405, "POST"},
		{"POST", frame.BasePath + "/version", 405, "GET"},
		// Generated clients read documents at the path of the OpenAPI document of Kubernetes, which ends in a slash.
		{"GET", "/version/", 200, ""},
		{"GET", frame.BasePath + "/version/", 200, ""},
		{"GET", frame.BasePath + "/version//", 404, ""},
		{"GET", frame.BasePath + "/api/", 401, ""},
		{"GET", frame.BasePath + "/apis/", 401, ""},
		{"GET", frame.BasePath + "/apis/management.platform.sh/", 401, ""},
		{"GET", frame.BasePath + "/apis/management.platform.sh/v1/", 401, ""},
		{"GET", frame.BasePath + keys + "/", 404, ""},
		// Another function serves this path.
		{"GET", keys, 404, ""},
		{"GET", frame.BasePath + keys + "/a/b", 404, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, server.URL+row.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != row.code || answer.Header.Get("Allow") != row.allow {
			t.Errorf("%s %s: answered %d, allows %q", row.method, row.path, answer.StatusCode, answer.Header.Get("Allow"))
		}
	}
}
