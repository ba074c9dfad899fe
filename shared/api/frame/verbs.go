package frame

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/continuetoken"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
)

// Create binds an operation to POST on a resource: 201 with the object.
func Create[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.CreateInput[T]) (resource.Result[T], error),
) Endpoint {
	return bind(definition, http.MethodPost, "create", collection, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		options, err := readWriteOptions(c, "CreateOptions")
		if err != nil {
			return nil, err
		}
		object, warnings, err := decodeObject(c, definition, options.validation)
		if err != nil {
			return nil, err
		}
		result, err := do(ctx, deps, resource.CreateInput[T]{
			Caller: c.caller, Namespace: c.namespace, Object: object, Manager: options.manager,
			UserAgent: c.http.UserAgent(), DryRun: options.dryRun,
			Random: c.random, Parent: c.name,
		})
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusCreated, object: result.Object, warnings: append(warnings, result.Warnings...)}, nil
	})
}

// Get binds an operation to GET on one object.
func Get[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.GetInput) (T, error),
) Endpoint {
	return bind(definition, http.MethodGet, "get", item, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		if err := checkVersion(c.query.Get("resourceVersion")); err != nil {
			return nil, err
		}
		in := resource.GetInput{Caller: c.caller, Namespace: c.namespace, Name: c.name, Prefetched: c.prefetched, Reveal: c.reveal}
		if c.answersFromText() {
			in.Text = &resource.Text{}
		}
		object, err := do(ctx, deps, in)
		if err != nil {
			return nil, err
		}
		if in.Text != nil && in.Text.JSON != nil {
			return &answer{status: http.StatusOK, object: in.Text}, nil
		}
		return &answer{status: http.StatusOK, object: object}, nil
	})
}

// List binds an operation to GET on a resource. A request to watch is answered with 405, unless the function has a Watch
// endpoint on the same route.
func List[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.ListInput) (runtime.Object, error),
) Endpoint {
	return bind(definition, http.MethodGet, "list", collection, withPages(open), func(ctx context.Context, deps paged[D], c *call) (*answer, error) {
		if flag(c.query, "watch") {
			return nil, apierror.MethodNotAllowed("watch")
		}
		in := resource.ListInput{
			Caller: c.caller, Namespace: c.namespace, Parent: c.name, Reveal: c.reveal, Text: c.answersFromText(), ContinueKeys: deps.keys,
		}
		if err := readListOptions(c.query, &in); err != nil {
			return nil, err
		}
		if !c.reveal {
			in.Rest = &resource.Rest{}
		}
		list, err := do(ctx, deps.deps, in)
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusOK, object: list, rest: in.Rest}, nil
	})
}

// paged is what an operation on pages of a list needs.
type paged[D any] struct {
	deps D
	keys *continuetoken.Keys
}

func withPages[D any](open func(*platform.Environment) D) func(*platform.Environment) paged[D] {
	return func(env *platform.Environment) paged[D] {
		return paged[D]{deps: open(env), keys: continuetoken.Open(env)}
	}
}

// Update binds an operation to PUT on one object.
func Update[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.UpdateInput[T]) (resource.Result[T], error),
) Endpoint {
	return bind(definition, http.MethodPut, "update", item, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		options, err := readWriteOptions(c, "UpdateOptions")
		if err != nil {
			return nil, err
		}
		object, warnings, err := decodeObject(c, definition, options.validation)
		if err != nil {
			return nil, err
		}
		result, err := do(ctx, deps, resource.UpdateInput[T]{
			Caller: c.caller, Namespace: c.namespace, Name: c.name, Prefetched: c.prefetched, Object: object,
			Manager: options.manager, DryRun: options.dryRun,
		})
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusOK, object: result.Object, text: result.Text, warnings: append(warnings, result.Warnings...)}, nil
	})
}

// Patch binds an operation to PATCH on one object: 200 with the object, or 201 if an apply has created it.
func Patch[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.PatchInput) (resource.Result[T], error),
) Endpoint {
	return bind(definition, http.MethodPatch, "patch", item, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		in, err := readPatch(c)
		if err != nil {
			return nil, err
		}
		result, err := do(ctx, deps, in)
		if err != nil {
			return nil, err
		}
		code := http.StatusOK
		if result.Created {
			code, c.include = http.StatusCreated, metav1.IncludeObject
		}
		return &answer{status: code, object: result.Object, text: result.Text, warnings: result.Warnings}, nil
	})
}

// GetStatus binds an operation to GET on the status of one object: 200 with the whole object.
func GetStatus[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D, do func(context.Context, D, resource.GetInput) (T, error),
) Endpoint {
	return ofSubresource(Get(definition, open, do), status)
}

// UpdateStatus binds an operation to PUT on the status of one object. Source: ADR-0017.
func UpdateStatus[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.UpdateInput[T]) (resource.Result[T], error),
) Endpoint {
	return ofSubresource(Update(definition, open, func(ctx context.Context, deps D, in resource.UpdateInput[T]) (resource.Result[T], error) {
		in.Status = true
		return do(ctx, deps, in)
	}), status)
}

// PatchStatus binds an operation to PATCH on the status of one object. Source: ADR-0017.
func PatchStatus[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.PatchInput) (resource.Result[T], error),
) Endpoint {
	return ofSubresource(Patch(definition, open, func(ctx context.Context, deps D, in resource.PatchInput) (resource.Result[T], error) {
		in.Status = true
		return do(ctx, deps, in)
	}), status)
}

// Alias returns the endpoint at the path of a second plural name of its resource.
func (e Endpoint) Alias(plural string) Endpoint {
	base := "/apis/" + e.Resource.Group + "/" + e.Resource.Version + "/"
	e.Path = base + plural + e.Path[len(base+e.Resource.Resource):]
	e.IsAlias = true
	return e
}

// WithWatchPaths returns the endpoints, and each of their watches also at the deprecated path of a kube-apiserver:
// /apis/GROUP/VERSION/watch/RESOURCE. Such a path always requests a watch. Source: ADR-0007.
func WithWatchPaths(endpoints ...Endpoint) []Endpoint {
	served := slices.Clone(endpoints)
	for _, e := range endpoints {
		if e.Verb != "watch" || e.IsAlias {
			continue
		}
		base := "/apis/" + e.Resource.Group + "/" + e.Resource.Version
		e.Path = base + "/watch" + e.Path[len(base):]
		e.IsAlias, e.isWatchPath = true, true
		served = append(served, e)
	}
	return served
}

// WithReveal returns the endpoint so that callers can request secrets in plain text with reveal=true. The verb of such a
// request is reveal, for authorization, log and metrics. Source: ADR-0015.
func (e Endpoint) WithReveal() Endpoint {
	e.Reveals = true
	return e
}

// AllNamespaces returns the endpoint of a list or watch so that it covers all namespaces.
func AllNamespaces(endpoint Endpoint) Endpoint {
	endpoint.Path = strings.Replace(endpoint.Path, inNamespace, "", 1)
	return endpoint
}

// GetSubresource binds an operation to GET on a subresource whose object has a kind of its own and is not stored. Part
// defines that kind, with the resource that the subresource belongs to.
func GetSubresource[O resource.Object, D any](
	part *resource.Definition[O], subresource string, open func(*platform.Environment) D,
	do func(context.Context, D, resource.GetInput) (O, error),
) Endpoint {
	endpoint := Get(part, open, do)
	endpoint.isStored = false
	return ofSubresource(endpoint, subresource)
}

// CreateSubresource binds an operation to POST on a subresource whose objects are not stored: 201 with the object. Part
// defines their kind, with the resource that the subresource belongs to. An empty body stands for an object in which all
// fields are empty. A kind without columns has no Table form.
func CreateSubresource[O resource.Object, D any](
	part *resource.Definition[O], subresource string, open func(*platform.Environment) D,
	do func(context.Context, D, resource.SubresourceInput[O]) (resource.Result[O], error),
) Endpoint {
	endpoint := bind(part, http.MethodPost, "create", item, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		options, err := readWriteOptions(c, "CreateOptions")
		if err != nil {
			return nil, err
		}
		object, warnings, err := decodeSubresource(c, part, options.validation)
		if err != nil {
			return nil, err
		}
		result, err := do(ctx, deps, resource.SubresourceInput[O]{
			Caller: c.caller, Namespace: c.namespace, Name: c.name, Object: object,
			Prefetched: c.prefetched, Manager: options.manager, DryRun: options.dryRun, Random: c.random,
		})
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusCreated, object: result.Object, warnings: append(warnings, result.Warnings...)}, nil
	})
	endpoint.isStored = false
	return ofSubresource(endpoint, subresource)
}

// decodeSubresource reads the body of a request to a subresource. A name or namespace in the body must match the URL.
func decodeSubresource[O resource.Object](c *call, part *resource.Definition[O], validation codec.Strictness) (O, []string, error) {
	var none O
	data, err := c.body()
	if err != nil {
		return none, nil, err
	}
	object, warnings := part.New(), []string(nil)
	if len(data) > 0 {
		if object, warnings, err = decode(c, data, part, validation); err != nil {
			return none, nil, err
		}
	}
	for _, check := range []struct{ what, given, want string }{
		{"name", object.GetName(), c.name}, {"namespace", object.GetNamespace(), c.namespace},
	} {
		if check.given != "" && check.given != check.want {
			why := fmt.Sprintf("the %s of the object (%s) does not match the %s on the URL (%s)", check.what, check.given, check.what, check.want)
			return none, nil, apierror.BadRequest(why, field.ErrorList{field.Invalid(field.NewPath("metadata", check.what), check.given, why)})
		}
	}
	return object, warnings, nil
}

// Parts of the paths that verbs are bound to.
const (
	collection  = ""
	item        = "/{name}"
	status      = "status"
	inNamespace = "/namespaces/{namespace}"
)

// Under returns the endpoint of a create or of a list of a resource at a subresource of the objects of another one, such as the
// access keys of a user. The operation learns the name of that object as Of. The verb of a list is get then, as clients of
// Kubernetes expect of a path with a name, and it has no watch. Bodies and answers have the kind of the resource.
func Under[O resource.Object](endpoint Endpoint, of *resource.Definition[O], subresource string) Endpoint {
	under := ofSubresource(bind(of, endpoint.Method, endpoint.Verb, item, func(*platform.Environment) struct{} { return struct{}{} },
		func(context.Context, struct{}, *call) (*answer, error) { return nil, nil }), subresource)
	endpoint.Path, endpoint.Resource, endpoint.Subresource = under.Path, under.Resource, under.Subresource
	endpoint.Singular, endpoint.ShortNames, endpoint.Namespaced = under.Singular, under.ShortNames, under.Namespaced
	if endpoint.Verb == "list" {
		endpoint.Verb, endpoint.Lists = "get", true
	}
	return endpoint
}

// ofSubresource returns an endpoint at a subresource of its path.
func ofSubresource(endpoint Endpoint, subresource string) Endpoint {
	endpoint.Path += "/" + subresource
	endpoint.Subresource = subresource
	return endpoint
}

// bind binds an operation to a method and a path of a resource. Suffix is what follows the plural name in the path.
func bind[T resource.Object, D any](
	definition *resource.Definition[T], method, verb, suffix string, open func(*platform.Environment) D,
	serve func(context.Context, D, *call) (*answer, error),
) Endpoint {
	path := "/apis/" + definition.Resource.Group + "/" + definition.Resource.Version
	if definition.Namespaced {
		path += inNamespace
	}
	endpoint := Endpoint{
		Route: Route{Method: method, Path: path + "/" + definition.Resource.Resource + suffix},
		Target: Target{
			Verb: verb, Resource: definition.Resource, Kind: definition.Kind,
			Singular: definition.Singular, ShortNames: definition.ShortNames, Namespaced: definition.Namespaced,
		},
		Response: Response{empty: func() any { return definition.New() }},
		body:     body{objectType: reflect.TypeFor[T](), isStored: true},
		open: func(env *platform.Environment) operation {
			deps := open(env)
			return func(ctx context.Context, c *call) (*answer, error) { return serve(ctx, deps, c) }
		},
	}
	if definition.Unfit != nil {
		endpoint.secretField = definition.Unfit.Field
	}
	if definition.ReadAhead && suffix == item {
		endpoint.prefetch = definition.Ref
	}
	if len(definition.Columns) > 0 {
		endpoint.tabulate = func(object runtime.Object, include metav1.IncludeObjectPolicy, now time.Time) (*metav1.Table, error) {
			return table(definition, object, include, now)
		}
	}
	return endpoint
}

// decodeObject reads the body as an object of the resource.
func decodeObject[T resource.Object](c *call, definition *resource.Definition[T], validation codec.Strictness) (T, []string, error) {
	var none T
	data, err := c.body()
	if err != nil {
		return none, nil, err
	}
	return decode(c, data, definition, validation)
}

func decode[T resource.Object](c *call, data []byte, definition *resource.Definition[T], validation codec.Strictness) (T, []string, error) {
	var none T
	body, err := codec.Read(c.http.Header.Get("Content-Type"), data)
	if err != nil {
		return none, nil, err
	}
	return definition.ReadBody(body, validation)
}

// table returns a Table with a row for the object, or for each item of a list.
func table[T resource.Object](
	definition *resource.Definition[T], object runtime.Object, include metav1.IncludeObjectPolicy, now time.Time,
) (*metav1.Table, error) {
	result := &metav1.Table{ColumnDefinitions: definition.Columns, Rows: []metav1.TableRow{}}
	addRow := func(object runtime.Object) error {
		item := object.(T)
		result.Rows = append(result.Rows, resource.Row(item, include, definition.Cells(item, now)...))
		return nil
	}
	if single, ok := object.(T); ok {
		result.ResourceVersion = single.GetResourceVersion()
		return result, addRow(single)
	}
	if list, err := meta.ListAccessor(object); err == nil {
		result.ResourceVersion, result.Continue = list.GetResourceVersion(), list.GetContinue()
		result.RemainingItemCount = list.GetRemainingItemCount()
	}
	return result, meta.EachListItem(object, addRow)
}
