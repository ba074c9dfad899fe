// Package discoverapi serves the documents that clients read first: which groups and resources there
// are, what their fields mean, and which version this is. The documents are made from the catalog and the
// docstrings of the model when the program is built. A request only selects the form that the client can
// read. Source: Spec 4, 9; ADR-0006.
package discoverapi

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
)

//go:embed openapi discovery.json routes.json
var documents embed.FS

// The Kubernetes version whose API behaviour this is; kubectl compares it with its own.
const (
	kubernetesMajor = "1"
	kubernetesMinor = "37"
	kubernetesPatch = "2"
)

const jsonType = "application/json"

// definitions is the group of custom resource definitions. Their list is empty, because all kinds of this API are built in.
// Terraform's Kubernetes provider reads the list before it looks up a kind in OpenAPI, and fails without it. The list is a document, so
// that every access key may read it.
var definitions = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}

// The core group, which has no resources here. Dynamic clients read its list whatever /api names, and kubectl asks for the namespace
// of an object that it does not find.
const (
	coreGroup  = "/api/v1"
	namespaces = coreGroup + "/namespaces/"
)

// Deps is what the operation needs: the one document that depends on the environment. The embedded documents are read
// at the first request for one of their kind, not at the start.
type Deps struct{ version func() map[string][]form }

// pages returns the documents of the same kind as a path, by path.
func (d Deps) pages(path string) map[string][]form {
	switch {
	case path == "/version":
		return d.version()
	case strings.HasPrefix(path, "/openapi/"):
		return openAPI()
	default:
		return groups()
	}
}

// form is one form of a document: the page with its media type, and the parameters of the media type that a client must
// request to get it.
type form struct {
	page   frame.Page
	params map[string]string
}

type Input = frame.DocumentInput

// Do returns the first form of a document that the client can read. Errors: NotFound if there is no such
// document, NotAcceptable if it has no such form, Forbidden for a namespace, whether there is one or not. All parameters of the media type must match a form of
// discovery, because an older client would read another version as a list without resources.
func Do(_ context.Context, deps Deps, in Input) (*frame.Page, error) {
	if name, found := strings.CutPrefix(in.Path, namespaces); found {
		return nil, apierror.Forbidden(schema.GroupResource{Resource: "namespaces"}, name, "this API has no objects of kind Namespace", nil)
	}
	forms, ok := deps.pages(in.Path)[in.Path]
	if !ok {
		return nil, apierror.NoRoute()
	}
	accept := in.Accept
	if len(accept) == 0 {
		accept = []frame.Clause{{MediaType: "*/*"}}
	}
	for _, clause := range accept {
		for i := range forms {
			if forms[i].satisfies(clause) {
				return &forms[i].page, nil
			}
		}
	}
	offers := make([]string, len(forms))
	for i, form := range forms {
		offers[i] = form.page.MediaType
	}
	return nil, apierror.NotAcceptable(strings.Join(offers, ", "))
}

// satisfies reports whether a clause of an Accept header accepts this form. A form without parameters is the
// plain one, which every clause without a transformation accepts.
func (f *form) satisfies(clause frame.Clause) bool {
	media, _, _ := strings.Cut(f.page.MediaType, ";")
	if len(f.params) == 0 {
		_, transformed := clause.Params["as"]
		return !transformed && (clause.MediaType == media || clause.MediaType == "*/*" && media == jsonType ||
			clause.MediaType == "application/*" && media == jsonType)
	}
	if clause.MediaType != media {
		return false
	}
	for name, value := range f.params {
		if clause.Params[name] != value {
			return false
		}
	}
	return true
}

// Function is the operation as it is deployed. The version can be read without a credential unless the
// configuration forbids it (Spec 5.5).
var Function = &frame.Function{
	Name: "discoverapi",
	Endpoints: []frame.Endpoint{
		endpoint("/version", func(config *model.ConfigStatus) bool { return !config.AuthenticateVersionEndpoint }),
		endpoint("/api", frame.Authenticated),
		endpoint(coreGroup, frame.Authenticated),
		endpoint(namespaces+"{name}", frame.Authenticated),
		endpoint("/apis", frame.Authenticated),
		endpoint("/apis/{group}", frame.Authenticated),
		endpoint("/apis/{group}/{version}", frame.Authenticated),
		endpoint("/apis/"+definitions.String()+"/customresourcedefinitions", frame.Authenticated),
		endpoint("/openapi/v2", frame.Authenticated),
		endpoint("/openapi/v3", frame.Authenticated),
		endpoint("/openapi/v3/apis/{group}/{version}", frame.Authenticated),
	},
	ServedByOthers: servedByOthers,
}

// servedByOthers are the routes of all functions: gateways send requests without a route to this function. A document
// that cannot be read is a broken build.
func servedByOthers() map[string][]string {
	text, err := documents.ReadFile("routes.json")
	found := map[string][]string{}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		panic(fmt.Sprintf("discoverapi: reading routes.json: %v", err))
	}
	return found
}

func endpoint(path string, public func(*model.ConfigStatus) bool) frame.Endpoint {
	return frame.Document(path, public, open, Do)
}

// The documents of the program, read once for all endpoints.
var (
	groups  = embedded(addDiscovery)
	openAPI = embedded(addOpenAPI)
)

// embedded reads embedded documents. One that cannot be read is a broken build.
func embedded(read func(pages map[string][]form) error) func() map[string][]form {
	return sync.OnceValue(func() map[string][]form {
		pages := map[string][]form{}
		if err := read(pages); err != nil {
			panic(fmt.Sprintf("discoverapi: %v", err))
		}
		return pages
	})
}

func open(env *platform.Environment) Deps {
	return Deps{version: sync.OnceValue(func() map[string][]form {
		pages := map[string][]form{}
		add(pages, "/version", jsonType, version.Info{
			Major: kubernetesMajor, Minor: kubernetesMinor,
			GitVersion: gitVersion(env.Version),
			GoVersion:  runtime.Version(), Compiler: runtime.Compiler,
			Platform: runtime.GOOS + "/" + runtime.GOARCH,
		}, nil)
		return pages
	})}
}

// gitVersion returns the version of Kubernetes that clients may expect, with the version of this build. kubectl reads it as a
// semantic version, in which only one plus is allowed: the plus in the version of a build from changed sources becomes a dot.
func gitVersion(build string) string {
	return fmt.Sprintf("v%s.%s.%s+platform.%s", kubernetesMajor, kubernetesMinor, kubernetesPatch, strings.ReplaceAll(build, "+", "."))
}

// addDiscovery adds the aggregated and the plain forms of the list of resources.
func addDiscovery(pages map[string][]form) error {
	text, err := documents.ReadFile("discovery.json")
	if err != nil {
		return err
	}
	var groups discoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(text, &groups); err != nil {
		return fmt.Errorf("reading discovery.json: %w", err)
	}
	groups.Items = append(groups.Items, noDefinitions())
	add(pages, "/apis/"+definitions.String()+"/customresourcedefinitions", jsonType, metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinitionList", APIVersion: definitions.String()},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []metav1.PartialObjectMetadata{},
	}, nil)
	addAggregated(pages, "/apis", groups)
	addAggregated(pages, "/api", discoveryv2.APIGroupDiscoveryList{Items: []discoveryv2.APIGroupDiscovery{}})
	add(pages, coreGroup, jsonType, resourceList(schema.GroupVersion{Version: "v1"}, nil), nil)
	plain := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range groups.Items {
		entry := metav1.APIGroup{Name: group.Name}
		for _, served := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: served.Version}
			entry.Versions = append(entry.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
			add(pages, "/apis/"+gv.String(), jsonType, resourceList(gv, served.Resources), nil)
		}
		entry.PreferredVersion = entry.Versions[0]
		plain.Groups = append(plain.Groups, entry)
		entry.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		add(pages, "/apis/"+group.Name, jsonType, entry, nil)
	}
	add(pages, "/apis", jsonType, plain, nil)
	add(pages, "/api", jsonType, metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}, nil)
	return nil
}

// noDefinitions is the group of custom resource definitions as discovery has it.
func noDefinitions() discoveryv2.APIGroupDiscovery {
	kind := metav1.GroupVersionKind{Group: definitions.Group, Version: definitions.Version, Kind: "CustomResourceDefinition"}
	return discoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: definitions.Group},
		Versions: []discoveryv2.APIVersionDiscovery{{
			Version: definitions.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent,
			Resources: []discoveryv2.APIResourceDiscovery{{
				Resource: "customresourcedefinitions", ResponseKind: &kind, Scope: discoveryv2.ScopeCluster,
				SingularResource: "customresourcedefinition", ShortNames: []string{"crd", "crds"}, Verbs: []string{"list"},
			}},
		}},
	}
}

// addAggregated adds a list of groups in both versions of the aggregated form, which differ only in name.
func addAggregated(pages map[string][]form, path string, groups discoveryv2.APIGroupDiscoveryList) {
	for _, v := range []string{"v2", "v2beta1"} {
		groups.TypeMeta = metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/" + v}
		add(pages, path, jsonType+";g=apidiscovery.k8s.io;v="+v+";as=APIGroupDiscoveryList", groups,
			map[string]string{"g": "apidiscovery.k8s.io", "v": v, "as": "APIGroupDiscoveryList"})
	}
}

func resourceList(gv schema.GroupVersion, resources []discoveryv2.APIResourceDiscovery) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	for _, resource := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: resource.Resource, SingularName: resource.SingularResource, Kind: resource.ResponseKind.Kind,
			Namespaced: resource.Scope == discoveryv2.ScopeNamespace, Verbs: resource.Verbs,
			ShortNames: resource.ShortNames, Categories: resource.Categories,
		})
	}
	return list
}

// addOpenAPI adds the OpenAPI documents, and the index of the documents of version 3.
func addOpenAPI(pages map[string][]form) error {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	index := map[string]entry{}
	group := model.SchemeGroupVersion.String()
	for path, file := range map[string]string{
		"/openapi/v3/apis/" + group: "openapi/v3/management.json",
		"/openapi/v2":               "openapi/v2.json",
	} {
		text, err := documents.ReadFile(file)
		if err != nil {
			return err
		}
		tag := addRaw(pages, path, jsonType, text, nil)
		if strings.HasPrefix(path, "/openapi/v3/") {
			index["apis/"+group] = entry{ServerRelativeURL: path + "?hash=" + tag}
		}
	}
	binary, err := documents.ReadFile("openapi/v2.pb")
	if err != nil {
		return err
	}
	// The media type has this name, as in Kubernetes. Clients request the name with an @ but cannot read it in a response.
	const binaryType = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	addRaw(pages, "/openapi/v2", binaryType, binary, nil)
	add(pages, "/openapi/v3", jsonType, map[string]any{"paths": index}, nil)
	return nil
}

func add(pages map[string][]form, path, mediaType string, document any, params map[string]string) {
	// The documents contain only strings, lists and maps, so they always marshal.
	text, _ := json.Marshal(document)
	addRaw(pages, path, mediaType, append(text, '\n'), params)
}

func addRaw(pages map[string][]form, path, mediaType string, body []byte, params map[string]string) (tag string) {
	sum := sha256.Sum256(body)
	tag = strings.ToUpper(hex.EncodeToString(sum[:]))
	pages[path] = append(pages[path], form{
		page: frame.Page{MediaType: mediaType, Body: body, ETag: tag}, params: params,
	})
	return tag
}
