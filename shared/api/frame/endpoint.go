// Package frame is the frame that every operation runs in. It owns what an operation must not forget:
// method, authentication, authorization, body limit, media types, strict decoding, dry run, deadline,
// panic, request id, log line, metrics, trace context, errors as Status, Table conversion. An operation is
// a plain function of what it needs; a binder such as Create or Review makes an Endpoint of it, and there is
// no other way to make one. Source: Spec 4, 5, 7; ADR-0001.
//
// The frame knows no platform: it ends in one http.Handler per Function, and one method for schedules.
package frame

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// BasePath is where the API is mounted behind a gateway. Functions answer below it and at the root, which
// clients without a base path and webhooks use. Source: Spec 4.
const BasePath = "/kubernetes/management"

// Limits of a request. Source: ADR-0001.
const (
	// MaxBodyBytes is the largest body; more is 413.
	MaxBodyBytes = 3 << 20
	// MaxDuration is the longest that a request may take; the query parameter timeout may ask for less.
	MaxDuration = 60 * time.Second
)

// Function is one operation as it is deployed: its name everywhere, and where it is reached.
type Function struct {
	// Name is directory, package, FUNCTION_TARGET and metric label in one.
	Name string
	// Endpoints are the HTTP routes of the function.
	Endpoints []Endpoint
	// ServedByOthers returns the methods of the paths that other functions serve, in the form of Endpoint.Path. A function
	// to which a gateway sends what no route takes answers 405 there to other methods. Nil: none.
	ServedByOthers func() map[string][]string
	// Schedule is what the function does by the clock. Nil: nothing.
	Schedule *Schedule
	// Encrypts tells whether the function seals or opens secrets in the state. Deployments give the key to no other.
	Encrypts bool
	// MemoryMB is what the function and the processes that it starts need, where a deployment would give less. 0: nothing
	// out of the ordinary.
	MemoryMB int
}

// Endpoint is a route bound to an operation. Make one with a binder.
type Endpoint struct {
	// Method is the HTTP method.
	Method string
	// Path is the pattern below BasePath, in the form of net/http.ServeMux without a method.
	Path string
	// Root tells whether clients look for the endpoint at the root of the host as well, where gateways lead to it then: the
	// discovery of OpenID Connect. Set it with AlsoAtRoot.
	Root bool
	// Verb is the Kubernetes verb.
	Verb string
	// Resource is what the verb is done to. The zero value for endpoints that are no resource.
	Resource schema.GroupVersionResource
	// Subresource is a part of the resource; usually empty.
	Subresource string
	// Kind is the kind of the request and answer; empty for endpoints that are no resource.
	Kind string
	// Singular, ShortNames and Namespaced are what discovery says of the resource.
	Singular   string
	ShortNames []string
	Namespaced bool
	// IsAlias tells that the path is a second one of an endpoint, which self-descriptions name by its first.
	IsAlias bool
	// reveals tells that reveal=true asks for secrets in clear, which is a verb of its own: reveal.
	reveals bool
	// authenticates tells that the endpoint is about authentication. Set it with AboutAuthentication.
	authenticates bool
	// unconfigured tells that the answer depends on no configuration.
	unconfigured bool
	// object is the type of what is sent and answered; nil where that is not known. stored tells that it is kept.
	object reflect.Type
	stored bool
	// public tells whether the endpoint needs no credential under a configuration. Nil: it always does.
	public func(*model.ConfigStatus) bool
	// empty makes an object of the answer's kind. Nil: the endpoint cannot repeat an answer.
	empty func() any
	// tabulate makes a Table of an answer. Nil: there is none.
	tabulate func(runtime.Object, metav1.IncludeObjectPolicy, time.Time) (*metav1.Table, error)
	// prefetched tells that the authenticator reads the object of the request in the round trip of the caller's key.
	prefetched bool
	// open prepares the operation.
	open func(*platform.Environment) operation
}

// Tabulate makes a Table of an object or a list. Include is what its rows hold of it. Source: ADR-0004.
type Tabulate func(object runtime.Object, include metav1.IncludeObjectPolicy) (*metav1.Table, error)

// Tabulated returns the endpoint as one whose answers have a Table form.
func (e Endpoint) Tabulated(tabulate Tabulate) Endpoint {
	e.tabulate = func(object runtime.Object, include metav1.IncludeObjectPolicy, _ time.Time) (*metav1.Table, error) {
		return tabulate(object, include)
	}
	return e
}

// WithPrefetch returns the endpoint of a get as one whose object the authenticator reads along with the key of the caller:
// one round trip instead of two. It is for the resource of access keys alone.
func (e Endpoint) WithPrefetch() Endpoint {
	e.prefetched = true
	return e
}

// AlsoAtRoot returns the endpoint as one that clients look for at the root of the host as well.
func (e Endpoint) AlsoAtRoot() Endpoint {
	e.Root = true
	return e
}

// AboutAuthentication returns the endpoint as one that is about authentication: who somebody is, and the keys that tokens
// are verified with. Its answers have the custom headers of the configuration. Source: Spec 2.7 (customHttpHeaders);
// ADR-0015.
func (e Endpoint) AboutAuthentication() Endpoint {
	e.authenticates = true
	return e
}

// Paths are where gateways lead to the endpoint, in the form of Path.
func (e Endpoint) Paths() []string {
	if e.Root {
		return []string{BasePath + e.Path, e.Path}
	}
	return []string{BasePath + e.Path}
}

// Schedule is work that is done by the clock. Make one with Scheduled.
type Schedule struct {
	open func(*platform.Environment) func(context.Context) ([]slog.Attr, error)
}

// operation is a bound operation: it is given the request as the frame understood it.
type operation func(ctx context.Context, call *call) (*answer, error)
