package function

import (
	"context"
	"net/http"
	"reflect"

	"management.platform.sh/shared/identity"
	"management.platform.sh/shared/resource"
)

// At returns the endpoint on a second plural name of its resource, as an alias.
func (e Endpoint) At(plural string) Endpoint {
	base := "/apis/" + e.Resource.Group + "/" + e.Resource.Version + "/"
	e.Path = base + plural + e.Path[len(base+e.Resource.Resource):]
	e.Alias = true
	return e
}

// Revealing returns the endpoint with secrets in clear for those who ask with reveal=true and may do that: the verb
// is reveal then, for authorization, log and metrics. Source: ADR-0015.
func (e Endpoint) Revealing() Endpoint {
	e.reveals = true
	return e
}

// GetPart binds an operation to GET on a subresource of one object, which answers an object of a kind of its own.
func GetPart[T resource.Object, D, O any](
	definition *resource.Definition[T], part, kind string, open func(*Environment) D,
	do func(context.Context, D, resource.GetInput) (O, error),
) Endpoint {
	return asPart(part, kind, reflect.TypeFor[O](), bind(definition, http.MethodGet, "get", item+"/"+part, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		object, err := do(ctx, deps, resource.GetInput{Caller: c.caller, Namespace: c.namespace, Name: c.name})
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusOK, object: object}, nil
	}))
}

// PartInput is a request to create a subresource of one object.
type PartInput[P resource.Object] struct {
	Caller          identity.Caller
	Namespace, Name string
	// Object is what the caller sent.
	Object P
	// DryRun does everything but the write.
	DryRun bool
}

// CreatePart binds an operation to POST on a subresource of one object: 201 with the answer. Form describes the kind
// of the body and the answer.
func CreatePart[T, P resource.Object, D any](
	definition *resource.Definition[T], part string, form *resource.Definition[P], open func(*Environment) D,
	do func(context.Context, D, PartInput[P]) (P, error),
) Endpoint {
	return asPart(part, form.Kind, reflect.TypeFor[P](), bind(definition, http.MethodPost, "create", item+"/"+part, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		options, err := readWriteOptions(c, "CreateOptions")
		if err != nil {
			return nil, err
		}
		object, warnings, err := decodeObject(c, form, options.validation)
		if err != nil {
			return nil, err
		}
		made, err := do(ctx, deps, PartInput[P]{
			Caller: c.caller, Namespace: c.namespace, Name: c.name, Object: object, DryRun: options.dryRun,
		})
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusCreated, object: made, warnings: warnings}, nil
	}))
}

// asPart makes an endpoint of a resource one of its subresource, which has no Table.
func asPart(part, kind string, object reflect.Type, endpoint Endpoint) Endpoint {
	endpoint.Subresource, endpoint.Kind = part, kind
	endpoint.object, endpoint.stored = object, false
	endpoint.Singular, endpoint.ShortNames = "", nil
	inner := endpoint.open
	endpoint.open = func(env *Environment) operation {
		operate := inner(env)
		return func(ctx context.Context, c *call) (*answer, error) {
			result, err := operate(ctx, c)
			if err == nil {
				result.tabulate = nil
			}
			return result, err
		}
	}
	return endpoint
}
