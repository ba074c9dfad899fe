package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"management.platform.sh/infra/openapi/generated"
	"management.platform.sh/shared/model"
)

const (
	extensionGVK    = "x-kubernetes-group-version-kind"
	extensionAction = "x-kubernetes-action"

	// v3Name is the file of the OpenAPI v3 document.
	v3Name = "v3/management.json"

	title         = "Platform management API"
	unauthorized  = "Unauthorized"
	schemeName    = "BearerToken"
	schemeComment = "An access key or a direct cluster endpoint token, as `Bearer <key>`"
)

// documents are the files of the description, by their names. The same resources give the same bytes.
func documents(resources []resourcePaths) (map[string][]byte, error) {
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	var routes container
	for _, r := range resources {
		more, err := r.routes(scheme)
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", r.Resource, err)
		}
		routes = append(routes, more...)
	}
	containers := []common.RouteContainer{routes}
	info := &spec.Info{InfoProps: spec.InfoProps{Title: title, Version: model.Version}}
	definitions := describeForUsers(generated.GetOpenAPIDefinitions, scheme)
	nameAndTags := func(r common.Route) (string, []string, error) {
		return r.OperationName(), []string{strings.ToLower(camel(model.GroupName)[:1]) + camel(model.GroupName)[1:] + "_" + model.Version}, nil
	}
	kinds := kindsByName(scheme)
	security := []map[string][]string{{schemeName: {}}}

	v3, err := builder3.BuildOpenAPISpecFromRoutes(containers, &common.OpenAPIV3Config{
		Info:                           info,
		GetDefinitions:                 definitions,
		GetDefinitionName:              kinds.name,
		GetOperationIDAndTagsFromRoute: nameAndTags,
		CommonResponses: map[int]*spec3.Response{
			401: {ResponseProps: spec3.ResponseProps{Description: unauthorized}},
		},
		SecuritySchemes: spec3.SecuritySchemes{schemeName: {SecuritySchemeProps: spec3.SecuritySchemeProps{
			Type: "http", Scheme: "bearer", Description: schemeComment,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("building OpenAPI v3: %w", err)
	}
	v3.SecurityRequirement = security
	v3JSON, err := json.Marshal(v3)
	if err != nil {
		return nil, fmt.Errorf("encoding OpenAPI v3: %w", err)
	}

	v2, err := builder.BuildOpenAPISpecFromRoutes(containers, &common.Config{
		Info:                           info,
		GetDefinitions:                 definitions,
		GetDefinitionName:              kinds.name,
		GetOperationIDAndTagsFromRoute: nameAndTags,
		CommonResponses: map[int]spec.Response{
			401: {ResponseProps: spec.ResponseProps{Description: unauthorized}},
		},
		SecurityDefinitions: &spec.SecurityDefinitions{schemeName: &spec.SecurityScheme{SecuritySchemeProps: spec.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: schemeComment,
		}}},
		DefaultSecurity: security,
	})
	if err != nil {
		return nil, fmt.Errorf("building OpenAPI v2: %w", err)
	}
	v2JSON, err := json.Marshal(v2)
	if err != nil {
		return nil, fmt.Errorf("encoding OpenAPI v2: %w", err)
	}
	document, err := openapi_v2.ParseDocument(v2JSON)
	if err != nil {
		return nil, fmt.Errorf("reading OpenAPI v2 back: %w", err)
	}
	v2Proto, err := proto.MarshalOptions{Deterministic: true}.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encoding OpenAPI v2 as protobuf: %w", err)
	}
	return map[string][]byte{v3Name: v3JSON, "v2.json": v2JSON, "v2.pb": v2Proto}, nil
}

// kindNames maps the name of each schema to the kinds that it describes.
type kindNames map[string][]schema.GroupVersionKind

func kindsByName(scheme *runtime.Scheme) kindNames {
	kinds := kindNames{}
	for gvk, goType := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		name := util.GetCanonicalTypeName(reflect.New(goType).Interface())
		kinds[name] = append(kinds[name], gvk)
	}
	for _, gvks := range kinds {
		slices.SortFunc(gvks, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	}
	return kinds
}

func (k kindNames) name(name string) (string, spec.Extensions) {
	if len(k[name]) == 0 {
		return name, nil
	}
	var values []any
	for _, gvk := range k[name] {
		values = append(values, kindExtension(gvk))
	}
	return name, spec.Extensions{extensionGVK: values}
}

func kindExtension(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

// describeForUsers rewrites the descriptions of the model for users. The docstrings begin with the Go name of a field: the
// description begins with the name that users write. The docstrings end with their source: the description leaves it
// out, because users of the API have neither the specification nor the decisions.
func describeForUsers(get common.GetOpenAPIDefinitions, scheme *runtime.Scheme) common.GetOpenAPIDefinitions {
	goNames := map[string]map[string]string{}
	for _, goType := range scheme.KnownTypes(groupVersion) {
		collectNames(goType, goNames)
	}
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		definitions := get(ref)
		for name, fields := range goNames {
			definition := definitions[name]
			definition.Schema.Description = withoutSource(definition.Schema.Description)
			for jsonName, property := range definition.Schema.Properties {
				if rest, found := strings.CutPrefix(property.Description, fields[jsonName]+" "); found {
					property.Description = jsonName + " " + rest
				}
				property.Description = withoutSource(property.Description)
				definition.Schema.Properties[jsonName] = property
			}
			definitions[name] = definition
		}
		return definitions
	}
}

// withoutSource removes the last part of a docstring, "Source: ...".
func withoutSource(description string) string {
	text, _, _ := strings.Cut(description, "Source: ")
	return strings.TrimSpace(text)
}

var modelPackage = reflect.TypeFor[model.Scope]().PkgPath()

// collectNames adds to into the first word of each field's docstring, by the name of the schema and the JSON name of
// the field.
func collectNames(goType reflect.Type, into map[string]map[string]string) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collectNames(goType.Elem(), into)
		return
	case reflect.Struct:
	default:
		return
	}
	name := util.GetCanonicalTypeName(reflect.New(goType).Interface())
	if _, seen := into[name]; seen || goType.PkgPath() != modelPackage {
		return
	}
	into[name] = map[string]string{}
	for _, field := range reflect.VisibleFields(goType) {
		jsonName, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case jsonName == "" || jsonName == "-":
		case field.Anonymous:
			into[name][jsonName] = strings.ToUpper(jsonName[:1]) + jsonName[1:]
		default:
			into[name][jsonName] = field.Name
			collectNames(field.Type, into)
		}
	}
}
