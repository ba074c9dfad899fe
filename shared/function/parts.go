package function

import (
	"context"
	"net/http"
	"reflect"

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

// asPart makes an endpoint of a resource one of its subresource, which has no Table.
func asPart(part, kind string, object reflect.Type, endpoint Endpoint) Endpoint {
	endpoint.Subresource, endpoint.Kind = part, kind
	endpoint.object, endpoint.stored = object, false
	endpoint.Singular, endpoint.ShortNames = "", nil
	return withoutTable(endpoint)
}

// withoutTable is an endpoint whose answers have no Table.
func withoutTable(endpoint Endpoint) Endpoint {
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
