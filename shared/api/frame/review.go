package frame

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

// ReviewRequest is what an endpoint that stores nothing is asked.
type ReviewRequest[T runtime.Object] struct {
	// Caller is who asks.
	Caller identity.Caller
	// Object is what the client sends, of the kind of the endpoint. An empty body is an object with all fields empty.
	Object T
	// JSON is the same as it was sent, for fields whose absence Object does not show. Empty for a body in protobuf.
	JSON []byte
	// Random is that of resource.CreateInput.
	Random io.Reader
	// Parameter returns a parameter of the path, or of the query where the path has none of that name; empty when
	// there is none.
	Parameter func(name string) string
}

// ReviewResult is the answer to a ReviewRequest.
type ReviewResult[O any] struct {
	Object O
	// Warnings are for the client, behind those about its body.
	Warnings []string
}

// Review binds an operation to POST on a resource that is answered and not stored: 201 with the answer. T is a pointer to
// what the client sends.
func Review[T runtime.Object, D, O any](
	resource schema.GroupVersionResource, kind, singular string, open func(*platform.Environment) D,
	do func(context.Context, D, ReviewRequest[T]) (O, error),
) Endpoint {
	return ReviewWithWarnings(resource, kind, singular, open, func(ctx context.Context, deps D, in ReviewRequest[T]) (ReviewResult[O], error) {
		object, err := do(ctx, deps, in)
		return ReviewResult[O]{Object: object}, err
	})
}

// ReviewWithWarnings is Review for an operation that warns.
func ReviewWithWarnings[T runtime.Object, D, O any](
	resource schema.GroupVersionResource, kind, singular string, open func(*platform.Environment) D,
	do func(context.Context, D, ReviewRequest[T]) (ReviewResult[O], error),
) Endpoint {
	want := resource.GroupVersion().WithKind(kind)
	return Endpoint{
		Method:   http.MethodPost,
		Path:     "/apis/" + resource.Group + "/" + resource.Version + "/" + resource.Resource,
		Verb:     "create",
		Resource: resource,
		Kind:     kind,
		Singular: singular,
		empty:    func() any { return reflect.New(reflect.TypeFor[O]().Elem()).Interface() },
		object:   reflect.TypeFor[T](),
		open: func(env *platform.Environment) operation {
			deps := open(env)
			return func(ctx context.Context, c *call) (*answer, error) {
				options, err := readWriteOptions(c, "CreateOptions")
				if err != nil {
					return nil, err
				}
				data, err := c.body()
				if err != nil {
					return nil, err
				}
				object := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
				body, warnings, err := codec.DecodeObject(c.http.Header.Get("Content-Type"), data, object, want, options.validation)
				if err != nil {
					return nil, err
				}
				result, err := do(ctx, deps, ReviewRequest[T]{
					Caller: c.caller, Object: object, JSON: body.JSON, Random: c.random,
					Parameter: func(name string) string { return cmp.Or(c.http.PathValue(name), c.query.Get(name)) },
				})
				if err != nil {
					return nil, err
				}
				return &answer{status: http.StatusCreated, object: result.Object, warnings: append(warnings, result.Warnings...)}, nil
			}
		},
	}
}

// WithPrefix returns the endpoint at the same path behind a prefix, which may have parameters: "/cluster/{cluster}".
func (e Endpoint) WithPrefix(prefix string) Endpoint {
	e.Path = prefix + e.Path
	return e
}

// Page is a finished document.
type Page struct {
	MediaType string
	Body      []byte
	// ETag identifies the content; with it the page may be kept and asked for again. Empty: it may not.
	ETag string
	// MaxAge is for how long anybody may use the page without asking again, in whole seconds. 0: not at all.
	MaxAge time.Duration
}

// DocumentInput is a request for a document.
type DocumentInput struct {
	// Path is the path below BasePath.
	Path string
	// Accept is what the client can read, by preference.
	Accept []Clause
}

// Document binds an operation to GET on a path that is no resource.
func Document[D any](
	path string, public func(*model.ConfigStatus) bool, open func(*platform.Environment) D,
	do func(context.Context, D, DocumentInput) (*Page, error),
) Endpoint {
	return Endpoint{
		Method: http.MethodGet,
		Path:   path,
		Verb:   "get",
		public: public,
		open: func(env *platform.Environment) operation {
			deps := open(env)
			return func(ctx context.Context, c *call) (*answer, error) {
				page, err := do(ctx, deps, DocumentInput{Path: c.http.URL.Path, Accept: ParseAccept(c.http.Header.Values("Accept"))})
				if err != nil {
					return nil, err
				}
				result := &answer{status: http.StatusOK, raw: page.Body, mediaType: page.MediaType, header: http.Header{"Vary": {"Accept"}}}
				if page.MaxAge > 0 {
					result.header.Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int64(page.MaxAge/time.Second)))
				}
				if page.ETag == "" {
					return result, nil
				}
				tag := `"` + page.ETag + `"`
				result.header.Set("ETag", tag)
				if matches(c.http.Header.Values("If-None-Match"), tag) {
					result.status, result.raw = http.StatusNotModified, []byte{}
				}
				return result, nil
			}
		},
	}
}

// Head returns the endpoint for HEAD: the header fields of a GET, without what they describe, and audited as one.
// Source: RFC 9110, section 9.3.2.
func (e Endpoint) Head() Endpoint {
	e.Method = http.MethodHead
	return e
}

// matches tells whether If-None-Match names a tag. Tags that a gateway has made weak are the same: it does so
// when it compresses.
func matches(values []string, tag string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				return true
			}
		}
	}
	return false
}

// Everyone is for documents that need no credential under any configuration.
func Everyone(*model.ConfigStatus) bool { return true }

// Authenticated is for documents that need a credential under any configuration.
func Authenticated(*model.ConfigStatus) bool { return false }
