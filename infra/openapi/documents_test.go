package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"management.platform.sh/shared/model"
)

func build(t *testing.T, resources []resourcePaths) map[string][]byte {
	t.Helper()
	files, err := documents(resources)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func buildV3(t *testing.T, resources []resourcePaths) *spec3.OpenAPI {
	t.Helper()
	var document spec3.OpenAPI
	if err := json.Unmarshal(build(t, resources)["v3/management.json"], &document); err != nil {
		t.Fatal(err)
	}
	return &document
}

// operations returns the operations of a document, by method and path.
func operations(document *spec3.OpenAPI) map[string]*spec3.Operation {
	byRoute := map[string]*spec3.Operation{}
	for path, item := range document.Paths.Paths {
		for method, operation := range map[string]*spec3.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
		} {
			if operation != nil {
				operation.Parameters = append(operation.Parameters, item.Parameters...)
				byRoute[method+" "+path] = operation
			}
		}
	}
	return byRoute
}

func TestEmbeddedDocumentsAreUpToDate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := write(filepath.Join(folder, target), filepath.Join(folder, schemaTarget)); err != nil {
		t.Fatal(err)
	}
	names := []string{
		target + "/discovery.json", target + "/routes.json", target + "/openapi/v3/management.json", target + "/openapi/v2.json", target + "/openapi/v2.pb",
	}
	kinds, err := os.ReadDir(filepath.Join(folder, schemaTarget))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		names = append(names, schemaTarget+"/"+kind.Name())
	}
	if embedded, err := os.ReadDir(filepath.Join("..", "..", schemaTarget)); err != nil || len(embedded) != len(kinds) || len(kinds) == 0 {
		t.Errorf("%d kinds have schemas, and there are %d files, %v", len(kinds), len(embedded), err)
	}
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from what the generator makes: run make gen", name)
		}
	}
}

func TestDocumentsAreDeterministic(t *testing.T) {
	t.Parallel()
	want := build(t, resources)
	reversed := slices.Clone(resources)
	slices.Reverse(reversed)
	for range 5 {
		for name, content := range build(t, reversed) {
			if !bytes.Equal(content, want[name]) {
				t.Errorf("%s differs", name)
			}
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	byRoute := operations(buildV3(t, resources))
	const at = "/apis/management.platform.sh/v1/"
	tests := []struct{ operation, id, action, kind string }{
		{"POST " + at + "ownedaccesskeys", "createManagementPlatformShV1OwnedAccessKey", "post", "OwnedAccessKey"},
		{"GET " + at + "ownedaccesskeys", "listManagementPlatformShV1OwnedAccessKey", "list", "OwnedAccessKey"},
		{"DELETE " + at + "directclusterendpointtokens", "deleteCollectionManagementPlatformShV1DirectClusterEndpointToken", "deletecollection", "DirectClusterEndpointToken"},
		{"GET " + at + "ownedaccesskeys/{name}", "readManagementPlatformShV1OwnedAccessKey", "get", "OwnedAccessKey"},
		{"PUT " + at + "ownedaccesskeys/{name}", "replaceManagementPlatformShV1OwnedAccessKey", "put", "OwnedAccessKey"},
		{"PATCH " + at + "ownedaccesskeys/{name}", "patchManagementPlatformShV1OwnedAccessKey", "patch", "OwnedAccessKey"},
		{"DELETE " + at + "ownedaccesskeys/{name}", "deleteManagementPlatformShV1OwnedAccessKey", "delete", "OwnedAccessKey"},
		{"POST " + at + "selves", "createManagementPlatformShV1Self", "post", "Self"},
		{"GET " + at + "virtualclusterinstances", "listManagementPlatformShV1VirtualClusterInstanceForAllNamespaces", "list", "VirtualClusterInstance"},
		{"GET " + at + "namespaces/{namespace}/virtualclusterinstances", "listManagementPlatformShV1NamespacedVirtualClusterInstance", "list", "VirtualClusterInstance"},
		{
			"POST " + at + "namespaces/{namespace}/virtualclusterinstances/{name}/kubeconfig",
			"createManagementPlatformShV1NamespacedVirtualClusterInstanceKubeConfig", "post", "VirtualClusterInstanceKubeConfig",
		},
	}
	for _, test := range tests {
		operation := byRoute[test.operation]
		if operation == nil {
			t.Errorf("no %s", test.operation)
			continue
		}
		var kind map[string]string
		if err := operation.Extensions.GetObject(extensionGVK, &kind); err != nil {
			t.Error(err)
		}
		if action, _ := operation.Extensions.GetString(extensionAction); operation.OperationId != test.id || action != test.action || kind["kind"] != test.kind {
			t.Errorf("%s: got %s, %s, %v", test.operation, operation.OperationId, action, kind)
		}
	}
}

func TestOperationsAreWhole(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for name, operation := range operations(buildV3(t, resources)) {
		if ids[operation.OperationId] {
			t.Errorf("%s is used twice", operation.OperationId)
		}
		ids[operation.OperationId] = true
		method, path, _ := strings.Cut(name, " ")
		parameters := map[string]string{}
		for _, one := range operation.Parameters {
			parameters[one.Name] = one.In
			if one.Description == "" {
				t.Errorf("%s: %s is not described", name, one.Name)
			}
		}
		for _, segment := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
			if parameters[segment[1]] != "path" {
				t.Errorf("%s: no parameter %s", name, segment[1])
			}
		}
		want := map[string][]string{
			"GET":    {"pretty"},
			"POST":   {"pretty", "dryRun", "fieldManager", "fieldValidation"},
			"PUT":    {"pretty", "dryRun", "fieldManager", "fieldValidation"},
			"PATCH":  {"pretty", "dryRun", "fieldManager", "fieldValidation", "force"},
			"DELETE": {"pretty", "dryRun", "gracePeriodSeconds", "propagationPolicy"},
		}[method]
		if action, _ := operation.Extensions.GetString(extensionAction); action == "list" {
			want = append(want, "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "timeoutSeconds")
			if _, watched := parameters["watch"]; watched == strings.Contains(path, "{name}/") {
				t.Errorf("%s: a watch is a parameter of lists alone that are no subresource", name)
			}
		}
		for _, parameter := range want {
			if parameters[parameter] != "query" {
				t.Errorf("%s: no parameter %s", name, parameter)
			}
		}
		success := 200
		if method == "POST" {
			success = 201
		}
		if strings.HasSuffix(name, "/credentialrevocations") {
			success = 202
		}
		for _, code := range []int{success, 401} {
			if operation.Responses.StatusCodeResponses[code] == nil {
				t.Errorf("%s: no answer %d", name, code)
			}
		}
		if content := operation.RequestBody; method != "GET" {
			want := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
			if method == "PATCH" {
				want = []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
			}
			for _, mediaType := range want {
				if content == nil || content.Content[mediaType] == nil || len(content.Content) != len(want) {
					t.Errorf("%s: the body is not %v", name, want)
				}
			}
		}
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	sentence := regexp.MustCompile(`(?s)^\S.*[^\s.]\.$`)
	document := buildV3(t, resources)
	schemas := document.Components.Schemas
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "Source:") || strings.Contains(string(text), "ADR-") {
		t.Error("a description names a document that users do not have")
	}
	for _, match := range regexp.MustCompile(`"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		if schemas[match[1]] == nil {
			t.Errorf("no schema %s", match[1])
		}
	}
	prefix := groupReversed + "."
	for name, schema := range schemas {
		if !strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "io.k8s.apimachinery.pkg.") {
			t.Errorf("the name of schema %s is not in reverse order", name)
		}
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		_, isKind := schema.Properties["metadata"]
		if _, marked := schema.Extensions[extensionGVK]; marked != isKind {
			t.Errorf("%s: has the extension of kinds: %t", name, marked)
		}
		if !sentence.MatchString(schema.Description) {
			t.Errorf("%s: the description is not made of sentences for users: %q", name, schema.Description)
		}
		for field, property := range schema.Properties {
			if !strings.HasPrefix(property.Description, field+" ") {
				t.Errorf("%s.%s: the description does not begin with the name: %q", name, field, property.Description)
			}
			// The descriptions by Kubernetes of kind and apiVersion end in an address.
			if field != "kind" && field != "apiVersion" && !sentence.MatchString(property.Description) {
				t.Errorf("%s.%s: the description is not made of sentences for users: %q", name, field, property.Description)
			}
		}
	}
	for path, schema := range map[string]spec.Schema{
		"OIDCProvider.clientSecret":          schemas[prefix+"OIDCProvider"].Properties["clientSecret"],
		"SecretsStoreAuth.token":             schemas[prefix+"SecretsStoreAuth"].Properties["token"],
		"AppRepository.password":             schemas[prefix+"AppRepository"].Properties["password"],
		"ClusterManagerProvider.bearerToken": schemas[prefix+"ClusterManagerProvider"].Properties["bearerToken"],
	} {
		if !schema.Type.Contains("string") {
			t.Errorf("%s is a %v", path, schema.Type)
		}
	}
}

// Reads of the configuration can ask for its secrets, and no other request can.
func TestReveal(t *testing.T) {
	t.Parallel()
	var names []string
	for name, operation := range operations(buildV3(t, resources)) {
		for _, p := range operation.Parameters {
			if p.Name == "reveal" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	want := []string{"GET " + groupPath + "/configs", "GET " + groupPath + "/configs/{name}"}
	if !slices.Equal(names, want) {
		t.Errorf("reveal is a parameter of %q, want %q", names, want)
	}
}

// kubectl reads v2 only as protobuf, so this form must be complete.
func TestProtobufIsTheJSONOfV2(t *testing.T) {
	t.Parallel()
	files := build(t, resources)
	want, err := openapi_v2.ParseDocument(files["v2.json"])
	if err != nil {
		t.Fatal(err)
	}
	var got openapi_v2.Document
	if err := proto.Unmarshal(files["v2.pb"], &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&got, want) {
		t.Error("the two forms differ")
	}
	var found bool
	for _, definition := range got.GetDefinitions().GetAdditionalProperties() {
		found = found || definition.GetName() == groupReversed+".OwnedAccessKey"
	}
	if !found || len(got.GetPaths().GetPath()) < len(resources) {
		t.Error("schemas or paths are missing")
	}
}

func TestUnknownVerbAndKindAreRefused(t *testing.T) {
	t.Parallel()
	for _, wrong := range []resourcePaths{
		{Resource: "selves", Kind: "Self", Verbs: []string{"read"}},
		{Resource: "selves", Kind: "Selves", Verbs: []string{"create"}},
		{Resource: "selves", Kind: "Self", Verbs: []string{"list"}},
	} {
		if _, err := documents([]resourcePaths{wrong}); err == nil {
			t.Errorf("%+v was described", wrong)
		}
	}
}

const groupReversed = "sh.platform.management." + model.Version
