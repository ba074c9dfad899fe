// Package frame is the frame that every operation runs in. It takes care of what an operation must not forget: method,
// authentication, authorization, body limit, media types, strict decoding, dry run, deadline, panics, request id, log
// line, metrics, trace context, errors as Status, and conversion to a Table. An operation is a plain function of its
// dependencies and its input. A binder, such as Create or Review, turns it into an Endpoint; there is no other way to
// make one. Source: Spec 4, 5, 7; ADR-0001.
//
// The frame does not know on which platform it runs: it offers an http.Handler for functions and one method for schedules.
package frame

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// BasePath is the path at which the API is mounted behind a gateway. Functions answer below it and at the root; webhooks
// and clients without a base path use the root. Source: Spec 4.
const BasePath = "/kubernetes/management"

// Limits of a request. Source: ADR-0001.
const (
	// MaxBodyBytes is the maximum size of a request body. A larger body is answered with 413.
	MaxBodyBytes = limits.BodyBytes
	// MaxDuration is the maximum duration of a request. The query parameter timeout can shorten it.
	MaxDuration = limits.RequestDuration
)

// Function is one operation as it is deployed: its name, its routes and its schedule.
type Function struct {
	// Name is the name of the directory, the package, FUNCTION_TARGET and the metric label.
	Name string
	// Endpoints are the HTTP routes of the function.
	Endpoints []Endpoint
	// ServedByOthers returns the methods of each path that other functions serve. The paths have the form of Endpoint.Path.
	// It is for the function that receives all requests without a route from the gateway: on these paths, it answers
	// other methods with 405. Nil: other functions serve no path.
	ServedByOthers func() map[string][]string
	// Schedule is the work that the function does on a schedule. Nil: none.
	Schedule *Schedule
	// Encrypts reports whether the function encrypts or decrypts secrets in the state. Deployments give the encryption key
	// to no other function.
	Encrypts bool
	// MemoryMB is the memory that the function and the processes that it starts need, in megabytes, if a deployment would
	// give less. 0: the memory that deployments give is enough.
	MemoryMB int
}

// Endpoint is a route bound to an operation. Make one with a binder.
type Endpoint struct {
	Route
	Target
	Response
	access
	body
	page
	// open prepares the operation.
	open func(*platform.Environment) operation
}

// Route is where requests reach an endpoint.
type Route struct {
	// Method is the HTTP method.
	Method string
	// Path is the pattern below BasePath, in the form of net/http.ServeMux without a method.
	Path string
	// Root reports whether clients also look for the endpoint at the root of the host, as for the discovery of OpenID Connect.
	// Gateways then route both paths to it. Set it with AlsoAtRoot.
	Root bool
	// IsAlias reports whether Path is a second path of an endpoint. Discovery and OpenAPI list only the first path.
	IsAlias bool
	// isWatchPath reports whether Path itself requests a watch, without the query parameter. Set it with WithWatchPaths.
	isWatchPath bool
}

// Target is the verb of an endpoint and what the verb applies to.
type Target struct {
	// Verb is the Kubernetes verb.
	Verb string
	// Resource is the resource that the verb applies to. It is the zero value for endpoints that are no resource.
	Resource schema.GroupVersionResource
	// Subresource is a part of the resource; usually empty.
	Subresource string
	// Kind is the kind of the request and the response; empty for endpoints that are no resource.
	Kind string
	// Singular, ShortNames and Namespaced describe the resource in discovery.
	Singular   string
	ShortNames []string
	Namespaced bool
}

// Response is what an endpoint answers.
type Response struct {
	// Accepts reports whether the response to a create is 202 and not 201. Set it with Accepting.
	Accepts bool
	// Lists reports whether the response to a get is a list: its kind has the suffix List. Set by Under.
	Lists bool
	// Reveals reports whether reveal=true requests secrets in plain text. Such a request has a verb of its own: reveal. Set it with
	// WithReveal.
	Reveals bool
	// empty returns an empty object of the response's kind. Nil: the endpoint cannot repeat a response.
	empty func() any
	// tabulate returns the Table form of a response. Nil: there is none.
	tabulate func(runtime.Object, metav1.IncludeObjectPolicy, time.Time) (*metav1.Table, error)
	// credential reports whether a response may contain a credential that is shown only once. Set it with Delivering.
	credential bool
	// customHeaders reports whether responses have the custom headers of the configuration. Set it with AboutAuthentication.
	customHeaders bool
}

// access is who may use an endpoint, and at which cost.
type access struct {
	// public reports whether the endpoint needs no credential under the given configuration. Nil: it always needs one.
	public func(*model.ConfigStatus) bool
	// noSession reports whether a session cookie is no credential here. Set it with WithoutSessions.
	noSession bool
	// servesUnrecorded reports whether admins are served although an event cannot be recorded. Set it with AlsoUnrecorded.
	servesUnrecorded bool
	// prefetch returns the object that the authenticator reads in the same round trip as the caller's key. Nil: it reads none.
	prefetch func(namespace, name string) store.Ref
	// class is the class of work whose places the requests take, besides the class of all requests. Nil: none. Set it with Sharing.
	class *fairness.Class
}

// body is what a request may contain.
type body struct {
	// objectType is the type of the request and response body; nil if it is not known.
	objectType reflect.Type
	// isStored reports whether the server stores such objects.
	isStored bool
	// secretField is the path of the field that has the secret of an object, by which the store finds it. Empty: there is none.
	secretField string
	// jsonForm reports whether a form may be an object of JSON. Set it with AlsoJSON.
	jsonForm bool
	// crossOriginForm reports whether other sites may send the form. Set it with FromElsewhere.
	crossOriginForm bool
	// maxFormBytes is the maximum size of a form. 0: limits.FormBytes.
	maxFormBytes int64
}

// page is how an endpoint depends on the configuration and serves people.
type page struct {
	// html reports whether people see the answers in a browser. Set by Form.
	html bool
	// noConfig reports whether the response does not depend on the configuration. Set it with Unconfigured.
	noConfig bool
	// themed reports for which paths a response without configuration depends on the theme. Nil: none. Set it with Styled.
	themed func(path string) bool
}

// Tabulate returns the Table form of an object or a list. Include says how much of each object its row contains.
// Source: ADR-0004.
type Tabulate func(object runtime.Object, include metav1.IncludeObjectPolicy) (*metav1.Table, error)

// Tabulated returns the endpoint with a Table form of its responses.
func (e Endpoint) Tabulated(tabulate Tabulate) Endpoint {
	e.tabulate = func(object runtime.Object, include metav1.IncludeObjectPolicy, _ time.Time) (*metav1.Table, error) {
		return tabulate(object, include)
	}
	return e
}

// AlsoUnrecorded returns the endpoint so that admins are served although the policy of the audit refuses requests whose events
// cannot be recorded. Their events wait until a sink takes them. It is for what mends the audit. Source: ADR-0024.
func (e Endpoint) AlsoUnrecorded() Endpoint {
	e.servesUnrecorded = true
	return e
}

// Delivering returns an endpoint whose response to a create contains a credential that is shown only once. The rows of a
// Table contain the whole object then, and a response of metadata alone is refused before anything is made: the
// credential would be lost. Source: ADR-0004.
func (e Endpoint) Delivering() Endpoint {
	e.credential = true
	return e
}

// AlsoAtRoot returns the endpoint with Root set: clients also look for it at the root of the host.
func (e Endpoint) AlsoAtRoot() Endpoint {
	e.Root = true
	return e
}

// AboutAuthentication marks the endpoint as one about authentication: it tells callers who they are, or serves the keys
// that verify tokens. Its responses have the custom headers of the configuration. Source: Spec 2.7 (customHttpHeaders);
// ADR-0015.
func (e Endpoint) AboutAuthentication() Endpoint {
	e.customHeaders = true
	return e
}

// WithoutSessions returns the endpoint so that a session cookie is no credential for it. It is for what clusters call, and no
// browser. Source: ADR-0030.
func (e Endpoint) WithoutSessions() Endpoint {
	e.noSession = true
	return e
}

// Paths returns the paths that gateways route to the endpoint, in the form of Path.
func (e Endpoint) Paths() []string {
	if e.Root {
		return []string{BasePath + e.Path, e.Path}
	}
	return []string{BasePath + e.Path}
}

// Schedule is work that is done on a schedule. Make one with Scheduled.
type Schedule struct {
	open func(*platform.Environment) func(context.Context) ([]slog.Attr, error)
}

// operation is a bound operation. It receives the request as the frame has parsed it.
type operation func(ctx context.Context, call *call) (*answer, error)

// lists reports whether the response is a list.
func (e Endpoint) lists() bool { return e.Verb == "list" || e.Lists }
