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
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
)

// Question is what an endpoint that stores nothing is asked.
type Question struct {
	// Caller is who asks.
	Caller identity.Caller
	// ContentType and Body are the request's.
	ContentType string
	Body        []byte
	// Validation tells what becomes of unknown and duplicate fields of the body.
	Validation codec.Strictness
	// Warn puts warnings into the answer.
	Warn func(warnings ...string)
	// Random is that of resource.CreateInput.
	Random io.Reader
	// Parameter returns a parameter of the path, or of the query where the path has none of that name; empty when
	// there is none.
	Parameter func(name string) string
}

// Read reads the body into an object, which is given the kind that is wanted. An empty body asks with all fields
// empty. The clients of Kubernetes send protobuf for its kinds, which fromProtobuf reads; nil where there is none.
//
// Errors: those of codec.Read and codec.Decode, and BadRequest for a body that says that it is of another kind or version;
// it may leave both out. Source: Spec 2.1, 7.
func (q Question) Read(into runtime.Object, want schema.GroupVersionKind, fromProtobuf func([]byte) error) error {
	if err := q.read(into, want, fromProtobuf); err != nil {
		return err
	}
	into.GetObjectKind().SetGroupVersionKind(want)
	return nil
}

func (q Question) read(into runtime.Object, want schema.GroupVersionKind, fromProtobuf func([]byte) error) error {
	if len(q.Body) == 0 {
		return nil
	}
	if fromProtobuf != nil && codec.IsProtobuf(q.ContentType) {
		return codec.DecodeProtobuf(q.Body, fromProtobuf)
	}
	body, err := codec.Read(q.ContentType, q.Body)
	if err != nil {
		return err
	}
	warnings, err := codec.Decode(body, into, q.Validation)
	if err != nil {
		return err
	}
	if err := CheckKind(into, want); err != nil {
		return err
	}
	if len(warnings) > 0 {
		q.Warn(warnings...)
	}
	return nil
}

// CheckKind refuses a body that says that it is of another kind or version than is wanted, with a cause for each. It may
// leave both out. Source: Spec 2.1, 9.
func CheckKind(body runtime.Object, want schema.GroupVersionKind) error {
	apiVersion, kind := body.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	var wrong field.ErrorList
	if kind != "" && kind != want.Kind {
		wrong = append(wrong, field.NotSupported(field.NewPath("kind"), kind, []string{want.Kind}))
	}
	if apiVersion != "" && apiVersion != want.GroupVersion().String() {
		wrong = append(wrong, field.NotSupported(field.NewPath("apiVersion"), apiVersion, []string{want.GroupVersion().String()}))
	}
	if len(wrong) == 0 {
		return nil
	}
	return apierror.BadRequest(fmt.Sprintf("the body is a %s of %s; a %s of %s was expected", kind, apiVersion, want.Kind, want.GroupVersion()), wrong)
}

// Review binds an operation to POST on a resource that is answered and not stored: 201 with the answer.
func Review[D, O any](
	resource schema.GroupVersionResource, kind, singular string, open func(*platform.Environment) D,
	do func(context.Context, D, Question) (O, error),
) Endpoint {
	return Endpoint{
		Method:   http.MethodPost,
		Path:     "/apis/" + resource.Group + "/" + resource.Version + "/" + resource.Resource,
		Verb:     "create",
		Resource: resource,
		Kind:     kind,
		Singular: singular,
		empty:    func() any { return reflect.New(reflect.TypeFor[O]().Elem()).Interface() },
		object:   reflect.TypeFor[O](),
		open: func(env *platform.Environment) operation {
			deps := open(env)
			return func(ctx context.Context, c *call) (*answer, error) {
				options, err := readWriteOptions(c, "CreateOptions")
				if err != nil {
					return nil, err
				}
				body, err := c.body()
				if err != nil {
					return nil, err
				}
				result := &answer{status: http.StatusCreated}
				object, err := do(ctx, deps, Question{
					Caller: c.caller, ContentType: c.http.Header.Get("Content-Type"), Body: body, Random: c.random,
					Validation: options.validation,
					Warn:       func(warnings ...string) { result.warnings = append(result.warnings, warnings...) },
					Parameter:  func(name string) string { return cmp.Or(c.http.PathValue(name), c.query.Get(name)) },
				})
				if err != nil {
					return nil, err
				}
				result.object = object
				return result, nil
			}
		},
	}
}

// Below returns the endpoint at the same path behind a prefix, which may have parameters: "/cluster/{cluster}".
func (e Endpoint) Below(prefix string) Endpoint {
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
