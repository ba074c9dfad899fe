package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/common"

	"management.platform.sh/shared/model"
)

var (
	groupVersion = model.SchemeGroupVersion
	groupPath    = "/apis/" + groupVersion.String()

	bodyTypes   = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
	answerTypes = bodyTypes
	listTypes   = append(slices.Clone(answerTypes), runtime.ContentTypeJSON+";stream=watch")
	patchTypes  = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
)

func query(name, dataType, description string) common.Parameter {
	return parameter{name: name, dataType: dataType, description: description, kind: common.QueryParameterKind}
}

func segment(name, description string) common.Parameter {
	return parameter{name: name, dataType: "string", description: description, kind: common.PathParameterKind, required: true}
}

func body(required bool) common.Parameter {
	return parameter{name: "body", kind: common.BodyParameterKind, required: required}
}

var (
	pretty = query("pretty", "string", "If `true`, the response is indented.")
	dryRun = query("dryRun", "string",
		"`All` runs all checks and stores nothing. Other values are refused.")
	fieldManager = query("fieldManager", "string",
		"Name of the manager that makes the change, for managedFields: at most 128 printable characters.")
	fieldValidation = query("fieldValidation", "string",
		"How unknown and duplicate fields are treated: `Ignore` drops them, `Warn` (the default) drops them and returns "+
			"a warning for each, `Strict` refuses the request.")
	force = query("force", "boolean",
		"In a server-side apply, takes over fields that other managers own. Refused in other patches.")

	listParameters = []common.Parameter{
		query("allowWatchBookmarks", "boolean", "If true, a watch may contain events of type BOOKMARK."),
		query("continue", "string", "Token from the metadata of the previous page. An expired token results in status 410."),
		query("fieldSelector", "string", "Selects objects by their fields, such as `metadata.name=ci`."),
		query("labelSelector", "string", "Selects objects by their labels."),
		query("limit", "integer", "Maximum number of objects on a page. If there are more, the response contains a continue token."),
		query("resourceVersion", "string", "The version of the state that is returned, or after which a watch begins."),
		query("resourceVersionMatch", "string", "How resourceVersion is applied: `NotOlderThan` or `Exact`."),
		query("sendInitialEvents", "boolean", "If true, a watch begins with the existing objects and a bookmark after them."),
		query("timeoutSeconds", "integer", "Maximum duration of a list or watch, in seconds."),
		query("watch", "boolean", "If true, the response is a stream of changes instead of a list."),
	}
	deleteParameters = []common.Parameter{
		dryRun,
		query("gracePeriodSeconds", "integer", "Time for which the object remains usable, in seconds, at most 2147483647. 0 deletes it "+
			"immediately. If the deletion was requested before, the time can only be shortened."),
		query("orphanDependents", "boolean", "Deprecated: use propagationPolicy instead. `true` means `Orphan`, `false` means `Background`."),
		query("propagationPolicy", "string",
			"What happens to the objects that this object owns: `Background` (the default) deletes them after it, `Foreground` "+
				"deletes them before it, `Orphan` keeps them. `Foreground` also deletes everything that was made with an access key."),
	}
	writeParameters = []common.Parameter{dryRun, fieldManager, fieldValidation}
)

func (r resourcePaths) routes(scheme *runtime.Scheme) ([]common.Route, error) {
	object, err := scheme.New(groupVersion.WithKind(r.Kind))
	if err != nil {
		return nil, err
	}
	collection, pathParameters, scope := groupPath+"/"+r.Resource, []common.Parameter{pretty}, ""
	if r.Namespaced {
		collection, scope = groupPath+"/namespaces/{namespace}/"+r.Resource, "Namespaced"
		pathParameters = append(pathParameters, segment("namespace", "Namespace of the object."))
	}
	item, itemParameters := collection+"/{name}", append(slices.Clone(pathParameters), segment("name", "Name of the "+r.objectKind()+"."))
	if r.Subresource != "" {
		item += "/" + r.Subresource
		collection, pathParameters = item, itemParameters
	}
	operation := func(verb string) string {
		name := verb + camel(groupVersion.String()) + scope + r.Kind
		if r.Subresource == "status" {
			// The kind of the status is the kind of the object.
			name += "Status"
		}
		if r.Under {
			// The kind is the kind of another resource.
			name += "Of" + camel(r.Resource)
		}
		return name
	}
	ok := answer{http.StatusOK, "OK", object}
	created := answer{http.StatusCreated, "Created", object}
	if r.Accepts {
		created = answer{http.StatusAccepted, "Accepted", object}
	}
	status := answer{http.StatusOK, "OK", &metav1.Status{}}

	var routes []common.Route
	add := func(one route, params []common.Parameter, more ...common.Parameter) {
		one.kind, one.parameters = r.Kind, append(slices.Clone(params), more...)
		if one.body != nil {
			one.parameters = append(one.parameters, body(one.method != http.MethodDelete))
		}
		if one.produces == nil {
			one.produces = answerTypes
		}
		routes = append(routes, one)
	}
	for _, verb := range r.Verbs {
		switch verb {
		case "create":
			add(route{
				method: http.MethodPost, path: collection, operation: operation("create"), action: "post",
				description: "create " + article(r.Kind), consumes: bodyTypes, body: object,
				answers: []common.StatusCodeResponse{created},
			}, pathParameters, writeParameters...)
		case "get":
			if r.Lists {
				list, err := scheme.New(groupVersion.WithKind(r.Kind + "List"))
				if err != nil {
					return nil, err
				}
				add(route{
					method: http.MethodGet, path: item, operation: operation("list"), action: "list",
					description: "list objects of kind " + r.Kind, answers: []common.StatusCodeResponse{answer{http.StatusOK, "OK", list}},
				}, itemParameters, selectParameters()...)
				continue
			}
			add(route{
				method: http.MethodGet, path: item, operation: operation("read"), action: "get",
				description: "read the specified " + r.Kind, answers: []common.StatusCodeResponse{ok},
			}, itemParameters, r.readParameters()...)
		case "list":
			list, err := scheme.New(groupVersion.WithKind(r.Kind + "List"))
			if err != nil {
				return nil, err
			}
			listRoute := route{
				method: http.MethodGet, path: collection, operation: operation("list"), action: "list",
				description: "list or watch objects of kind " + r.Kind, produces: listTypes,
				answers: []common.StatusCodeResponse{answer{http.StatusOK, "OK", list}},
			}
			add(listRoute, pathParameters, append(r.readParameters(), listParameters...)...)
			if r.Namespaced {
				listRoute.path = groupPath + "/" + r.Resource
				listRoute.operation = "list" + camel(groupVersion.String()) + r.Kind + "ForAllNamespaces"
				add(listRoute, []common.Parameter{pretty}, listParameters...)
			}
		case "watch":
			// Lists have this parameter of their own.
		case "update":
			add(route{
				method: http.MethodPut, path: item, operation: operation("replace"), action: "put",
				description: "replace the specified " + r.Kind, consumes: bodyTypes, body: object,
				answers: []common.StatusCodeResponse{ok},
			}, itemParameters, writeParameters...)
		case "patch":
			add(route{
				method: http.MethodPatch, path: item, operation: operation("patch"), action: "patch",
				description: "partially update the specified " + r.Kind, consumes: patchTypes, body: &metav1.Patch{},
				answers: []common.StatusCodeResponse{ok, created},
			}, itemParameters, append(slices.Clone(writeParameters), force)...)
		case "delete":
			add(route{
				method: http.MethodDelete, path: item, operation: operation("delete"), action: "delete",
				description: "delete " + article(r.Kind), consumes: bodyTypes, body: &metav1.DeleteOptions{},
				answers: []common.StatusCodeResponse{status},
			}, itemParameters, deleteParameters...)
		case "deletecollection":
			list, err := scheme.New(groupVersion.WithKind(r.Kind + "List"))
			if err != nil {
				return nil, err
			}
			add(route{
				method: http.MethodDelete, path: collection, operation: operation("deleteCollection"), action: "deletecollection",
				description: "delete the selected objects of kind " + r.Kind + " and return them as they were", consumes: bodyTypes,
				body: &metav1.DeleteOptions{}, answers: []common.StatusCodeResponse{answer{http.StatusOK, "OK", list}},
			}, pathParameters, append(slices.Clone(deleteParameters), selectParameters()...)...)
		default:
			return nil, fmt.Errorf("unknown verb %q of %s: use create, get, list, watch, update, patch, delete or deletecollection", verb, r.Resource)
		}
	}
	return routes, nil
}

// readParameters returns the parameters of reads of a resource that has secrets to reveal. Nil: it has none.
func (r resourcePaths) readParameters() []common.Parameter {
	if !r.Reveals {
		return nil
	}
	return []common.Parameter{query("reveal", "boolean", "If true, the response has secrets in plain text. It is for admins, and recorded.")}
}

// selectParameters returns the parameters of a list without the parameters of watches.
func selectParameters() []common.Parameter {
	watchOnly := []string{"allowWatchBookmarks", "watch"}
	return slices.DeleteFunc(slices.Clone(listParameters), func(p common.Parameter) bool {
		return slices.Contains(watchOnly, p.Name())
	})
}

func article(kind string) string {
	if strings.ContainsRune("AEIO", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// camel joins the words of a group and version: ManagementPlatformShV1.
func camel(groupVersion string) string {
	words := strings.FieldsFunc(groupVersion, func(r rune) bool { return r == '.' || r == '/' })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}
