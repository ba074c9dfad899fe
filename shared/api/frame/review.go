package frame

import (
	"bytes"
	"cmp"
	"compress/gzip"
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

// ReviewRequest is a request to an endpoint that stores nothing.
type ReviewRequest[T runtime.Object] struct {
	// Caller is the caller of the request.
	Caller identity.Caller
	// Object is the body of the request, an object of the endpoint's kind. All fields are empty if the body is empty.
	Object T
	// JSON is the body as the client sent it, for fields whose absence Object does not show. Empty for a body in protobuf.
	JSON []byte
	// DryRun means that the operation changes nothing.
	DryRun bool
	// Random has the same meaning as in resource.CreateInput.
	Random io.Reader
	// Parameter returns a parameter of the path or, if the path has none of that name, of the query. It returns an empty
	// text if there is neither.
	Parameter func(name string) string
}

// ReviewResult is the answer to a ReviewRequest.
type ReviewResult[O any] struct {
	Object O
	// Warnings are warnings for the client. They follow the warnings about the body.
	Warnings []string
	// Annotations are annotations of the audit event of the request, for what the request object does not say.
	Annotations map[string]string
}

// Review binds an operation to POST on a resource whose objects are not stored. It responds with 201 and the result. T is a
// pointer to the type of the request body.
func Review[T runtime.Object, D, O any](
	resource schema.GroupVersionResource, kind, singular string, open func(*platform.Environment) D,
	do func(context.Context, D, ReviewRequest[T]) (O, error),
) Endpoint {
	return ReviewWithWarnings(resource, kind, singular, open, func(ctx context.Context, deps D, in ReviewRequest[T]) (ReviewResult[O], error) {
		object, err := do(ctx, deps, in)
		return ReviewResult[O]{Object: object}, err
	})
}

// ReviewWithWarnings is Review for an operation that returns warnings.
func ReviewWithWarnings[T runtime.Object, D, O any](
	resource schema.GroupVersionResource, kind, singular string, open func(*platform.Environment) D,
	do func(context.Context, D, ReviewRequest[T]) (ReviewResult[O], error),
) Endpoint {
	want := resource.GroupVersion().WithKind(kind)
	return Endpoint{
		Route:    Route{Method: http.MethodPost, Path: "/apis/" + resource.Group + "/" + resource.Version + "/" + resource.Resource},
		Target:   Target{Verb: "create", Resource: resource, Kind: kind, Singular: singular},
		Response: Response{empty: func() any { return reflect.New(reflect.TypeFor[O]().Elem()).Interface() }},
		body:     body{objectType: reflect.TypeFor[T]()},
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
					Caller: c.caller, Object: object, JSON: body.JSON, DryRun: options.dryRun, Random: c.random,
					Parameter: func(name string) string { return cmp.Or(c.http.PathValue(name), c.query.Get(name)) },
				})
				if err != nil {
					return nil, err
				}
				return &answer{
					status: http.StatusCreated, object: result.Object, warnings: append(warnings, result.Warnings...), annotations: result.Annotations,
				}, nil
			}
		},
	}
}

// Anonymous returns an endpoint that needs no credential, and ignores one.
func (e Endpoint) Anonymous() Endpoint {
	e.public = Everyone
	return e
}

// Accepting returns an endpoint whose response, 202, says nothing of the outcome.
func (e Endpoint) Accepting() Endpoint {
	open := e.open
	e.Accepts = true
	e.open = func(env *platform.Environment) operation {
		operate := open(env)
		return func(ctx context.Context, c *call) (*answer, error) {
			result, err := operate(ctx, c)
			if err == nil {
				result.status = http.StatusAccepted
			}
			return result, err
		}
	}
	return e
}

// WithPrefix returns the endpoint with a prefix before its path. The prefix may have parameters: "/cluster/{cluster}".
func (e Endpoint) WithPrefix(prefix string) Endpoint {
	e.Path = prefix + e.Path
	return e
}

// Page is an encoded document.
type Page struct {
	MediaType string
	Body      []byte
	// ETag identifies the content, so that clients can cache the page and revalidate it. Empty: they cannot.
	ETag string
	// MaxAge is how long clients and shared caches may use the page without revalidating it, in whole seconds. 0: they may
	// not.
	MaxAge time.Duration
	// Gzipped reports whether Body is compressed with gzip. Clients that do not accept that get it decompressed.
	Gzipped bool
	// Absent reports whether the path has no document: Body says so to people, and the status code is 404.
	Absent bool
	// Header has further header fields, by name. They replace the header fields that follow from the other fields.
	Header map[string]string
}

// DocumentInput is a request for a document.
type DocumentInput struct {
	// Path is the path below BasePath.
	Path string
	// Accept are the media types that the client accepts, in its order of preference.
	Accept []Clause
}

// Document binds an operation to GET on a path that is no resource.
func Document[D any](
	path string, public func(*model.ConfigStatus) bool, open func(*platform.Environment) D,
	do func(context.Context, D, DocumentInput) (*Page, error),
) Endpoint {
	return Endpoint{
		Route: Route{Method: http.MethodGet, Path: path}, Target: Target{Verb: "get"}, access: access{public: public},
		open: func(env *platform.Environment) operation {
			deps := open(env)
			return func(ctx context.Context, c *call) (*answer, error) {
				page, err := do(ctx, deps, DocumentInput{Path: c.http.URL.Path, Accept: ParseAccept(c.http.Header.Values("Accept"))})
				if err != nil {
					return nil, err
				}
				status := http.StatusOK
				if page.Absent {
					status = http.StatusNotFound
				}
				result := &answer{status: status, raw: page.Body, mediaType: page.MediaType, header: http.Header{"Vary": {"Accept"}}}
				if page.MaxAge > 0 {
					result.header.Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int64(page.MaxAge/time.Second)))
				}
				if page.Gzipped {
					if err := result.unzip(c.http.Header); err != nil {
						return nil, err
					}
				}
				for name, value := range page.Header {
					result.header.Set(name, value)
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

// unzip is for an answer whose body is compressed: it sends the body as it is to a client that accepts gzip, and decompresses it
// for others.
func (a *answer) unzip(header http.Header) error {
	a.header.Add("Vary", "Accept-Encoding")
	if acceptsGzip(header.Values("Accept-Encoding")) {
		a.header.Set("Content-Encoding", "gzip")
		return nil
	}
	plain, err := gzip.NewReader(bytes.NewReader(a.raw))
	if err == nil {
		a.raw, err = io.ReadAll(plain)
	}
	if err != nil {
		return fmt.Errorf("decompressing a page: %w", err)
	}
	return nil
}

// Unconfigured returns the endpoint of a document that does not depend on the configuration: it is served although the state
// cannot be reached.
func (e Endpoint) Unconfigured() Endpoint {
	e.noConfig = true
	return e
}

// Styled returns the endpoint of an Unconfigured document so that the configuration is brought up to date for some of its paths, if it
// can be read. The document is served in any case. Source: ADR-0030.
func (e Endpoint) Styled(paths func(path string) bool) Endpoint {
	e.themed = paths
	return e
}

// Head returns the endpoint for HEAD: it responds with the header fields of a GET and without a body, and is audited as a
// GET.
// Source: RFC 9110, section 9.3.2.
func (e Endpoint) Head() Endpoint {
	e.Method = http.MethodHead
	return e
}

// matches reports whether If-None-Match names a tag. Weak tags match as well: gateways make a tag weak when they compress the
// response.
func matches(values []string, tag string) bool {
	for _, value := range values {
		for given := range strings.SplitSeq(value, ",") {
			if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
				return true
			}
		}
	}
	return false
}

// Everyone is the public argument of documents that never need a credential, whatever the configuration.
func Everyone(*model.ConfigStatus) bool { return true }

// Authenticated is the public argument of documents that always need a credential, whatever the configuration.
func Authenticated(*model.ConfigStatus) bool { return false }
