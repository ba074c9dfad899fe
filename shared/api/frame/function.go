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
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"path"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
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
	// Elsewhere returns the methods of the paths that other functions serve, in the form of Endpoint.Path. A function to
	// which a gateway sends what no route takes answers 405 there to other methods. Nil: none.
	Elsewhere func() map[string][]string
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
	// discovery of OpenID Connect. Set it with AtRoot.
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
	// Alias tells that the path is a second one of an endpoint, which self-descriptions name by its first.
	Alias bool
	// reveals tells that reveal=true asks for secrets in clear, which is a verb of its own: reveal.
	reveals bool
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
	tabulate func(*Environment, runtime.Object, metav1.IncludeObjectPolicy) (*metav1.Table, error)
	// ahead tells whether the operation reads one access key, which can come along with the caller's own.
	ahead bool
	// open prepares the operation.
	open func(*Environment) operation
}

// Tabulate makes a Table of an object or a list. Include is what its rows hold of it. Source: ADR-0004.
type Tabulate func(object runtime.Object, include metav1.IncludeObjectPolicy) (*metav1.Table, error)

// Tabulated returns the endpoint as one whose answers have a Table form.
func (e Endpoint) Tabulated(tabulate Tabulate) Endpoint {
	e.tabulate = func(_ *Environment, object runtime.Object, include metav1.IncludeObjectPolicy) (*metav1.Table, error) {
		return tabulate(object, include)
	}
	return e
}

// AtRoot returns the endpoint as one that clients look for at the root of the host as well.
func (e Endpoint) AtRoot() Endpoint {
	e.Root = true
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
	open func(*Environment) func(context.Context) ([]slog.Attr, error)
}

// operation is a bound operation: it is given the request as the frame understood it.
type operation func(ctx context.Context, call *call) (*answer, error)

// Environment is where functions run: the state and the world around it. Fields are set once, before the
// first use; it is safe for concurrent use after.
type Environment struct {
	// Stores returns the state of a resource, by its plural name. It connects to nothing yet.
	Stores func(resource string) store.Store
	// Now is the clock.
	Now func() time.Time
	// Random is where names and keys come from.
	Random io.Reader
	// Encryption returns the keys that seal secrets in the state. nil: there are none.
	Encryption func(context.Context) (*encryption.Keyring, error)
	// Log takes one line for each request, and what goes wrong.
	Log *slog.Logger
	// Config is the platform configuration of this moment. It is never nil and not to be changed.
	Config func() *model.ConfigStatus
	// Source is what keeps Config up to date. nil: nothing does, and the functions that read and write the
	// configuration have one on the state, which is not that of Config.
	Source *platformconfig.Source
	// Metrics counts. nil: nobody does.
	Metrics Metrics
	// Audit records who asked for what. nil: nobody does.
	Audit Audit
	// Tracer makes spans: the one of the OpenTelemetry API, which does nothing where no SDK is set up.
	Tracer trace.Tracer
	// Version is the build, for /version.
	Version string
	// LocalSigners permits virtual clusters that sign certificates at addresses that only mean something on this machine:
	// the local runner and tests. Source: ADR-0017.
	LocalSigners bool
	// Watch is how long watches last here. The zero value is good where answers can be streamed.
	Watch WatchSettings
	// Edition is what of the platform is in use: Enterprise or Community. Empty means Enterprise.
	Edition string
	// Patches bound the evaluation of sync patches.
	Patches PatchSettings
	// Tokens say how direct cluster endpoint tokens are issued.
	Tokens TokenSettings

	once          sync.Once
	keys          *accesskey.Registry
	instances     *instance.Registry
	source        *platformconfig.Source
	tokens        *issuedtoken.Register
	graph         *resource.Graph
	authenticator *auth.Authenticator
	// draining is done when EndWatches was called.
	draining   context.Context
	endWatches context.CancelFunc
}

// The editions of the platform. Source: Spec 2.8 (patches are enterprise-only).
const (
	Enterprise = "enterprise"
	Community  = "community"
)

// PatchSettings bound the evaluation of sync patches. 0 means the default of package syncpatch, and of Workers one per
// CPU. Source: ADR-0014.
type PatchSettings struct {
	// ExpressionTime and ObjectTime are the time for an expression at one path, and for all patches of an object.
	ExpressionTime, ObjectTime time.Duration
	// MemoryBytes and ResultBytes are what an evaluation may use, and what it may make.
	MemoryBytes, ResultBytes int64
	// Depth is how deep calls and results may be nested.
	Depth int
	// Workers is how many evaluations run at a time, each in a process of its own.
	Workers int
	// InProcess evaluates without workers: for trusted patches, since limits do not hold within a single operation then.
	InProcess bool
}

// The bounds of PatchSettings, whoever sets them. Source: ADR-0014.
const (
	LeastPatchTime   = time.Millisecond
	MostPatchTime    = 25 * time.Second
	LeastPatchMemory = 16 << 20
	MostPatchMemory  = 1 << 30
	LeastPatchResult = 1 << 10
	MostPatchResult  = 16 << 20
	LeastPatchDepth  = 10
	MostPatchDepth   = 1000
	MostPatchWorkers = 64
)

// AccessKeys is the registry of access keys.
func (e *Environment) AccessKeys() *accesskey.Registry {
	e.prepare()
	return e.keys
}

// Instances is the registry of virtual cluster instances.
func (e *Environment) Instances() *instance.Registry {
	e.prepare()
	return e.instances
}

// IssuedTokens is the register of direct cluster endpoint tokens.
func (e *Environment) IssuedTokens() *issuedtoken.Register {
	e.prepare()
	return e.tokens
}

// Graph is all stored resources of the API, which may own each other's objects.
func (e *Environment) Graph() *resource.Graph {
	e.prepare()
	return e.graph
}

// Authenticator turns bearers into callers.
func (e *Environment) Authenticator() *auth.Authenticator {
	e.prepare()
	return e.authenticator
}

// Keyring returns the keys that seal secrets in the state; nil where there are none, which every use of it says.
func (e *Environment) Keyring(ctx context.Context) (*encryption.Keyring, error) {
	if e.Encryption == nil {
		return nil, nil //nolint:nilnil // a nil ring is one without keys
	}
	return e.Encryption(ctx)
}

// KeyLimits are the platform's on the life of access keys at this moment. Source: Spec 2.7, 8.
func (e *Environment) KeyLimits() accesskey.Limits {
	login := int64(platformconfig.DefaultLoginAccessKeyTTLSeconds)
	settings := e.Config().Auth
	if settings == nil {
		return accesskey.Limits{Login: duration(login)}
	}
	if settings.LoginAccessKeyTTLSeconds != nil {
		login = *settings.LoginAccessKeyTTLSeconds
	}
	return accesskey.Limits{Max: duration(settings.AccessKeyMaxTTLSeconds), Login: duration(login)}
}

// duration is a number of seconds, held within what a Duration can be: a limit of centuries must not turn into none.
func duration(seconds int64) time.Duration {
	const most = int64(math.MaxInt64) / int64(time.Second)
	return time.Duration(min(max(seconds, 0), most)) * time.Second
}

// Configuration is the source of the platform configuration: the one that was given, else one on the state.
func (e *Environment) Configuration() *platformconfig.Source {
	e.prepare()
	return e.source
}

// refresh brings the configuration up to date. Where there is none at all, nothing can be decided.
func (e *Environment) refresh(ctx context.Context) error {
	if e.Source == nil {
		return nil
	}
	err := e.Source.Refresh(ctx)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	return apierror.Unavailable().Because(err)
}

func (e *Environment) prepare() {
	e.once.Do(func() {
		state := e.Stores(accesskey.Definition.Resource.Resource)
		e.keys = accesskey.NewRegistry(state, e.Now, e.Random, e.KeyLimits)
		if e.source = e.Source; e.source == nil {
			e.source = platformconfig.New(platformconfig.Options{
				Store: e.Stores(platformconfig.Definition.Resource.Resource), Keyring: e.Keyring, Now: e.Now, Random: e.Random, Log: e.Log,
			})
		}
		e.instances = instance.NewRegistry(e.Stores(instance.Definition.Resource.Resource), e.Now, e.Random, instance.Settings{
			Project: e.Project, AllowLocal: e.LocalSigners,
			Keyring: func() (*encryption.Keyring, error) { return e.Keyring(context.Background()) },
		})
		e.tokens = issuedtoken.NewRegister(e.Stores(issuedtoken.Definition.Resource.Resource), e.Stores(issuedtoken.RevokedResource),
			e.keys, e.Now, e.Random, e.KeyLimits)
		e.graph = resource.NewGraph(e.permits, e.keys, e.tokens.Registry, e.instances)
		e.draining, e.endWatches = context.WithCancel(context.Background())
		e.authenticator = &auth.Authenticator{Keys: e.keys, Now: e.Now, Limits: e.KeyLimits, Log: e.Log}
	})
}

// permits tells whether a caller might do to an object what no request of his asks for.
func (e *Environment) permits(caller identity.Caller, verb string, target schema.GroupVersionResource, namespace, name string) bool {
	return auth.Decide(caller, scope.Request{
		Verb: verb, Group: target.Group, Resource: target.Resource, Namespace: namespace, Name: name, Project: e.Project(namespace),
	}).Allowed
}

// Handler returns the function as an HTTP handler that serves its endpoints and answers 404 and 405 for
// all else.
func (f *Function) Handler(env *Environment) http.Handler { return Mount(env, f) }

// Mount returns a handler for the endpoints of several functions. It panics when two claim one route,
// which is an error of the programmer.
func Mount(env *Environment, functions ...*Function) http.Handler {
	routes := http.NewServeMux()
	methods := map[string]methodMux{}
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			byMethod, known := methods[endpoint.Path]
			if !known {
				byMethod = methodMux{}
				methods[endpoint.Path] = byMethod
				routes.Handle(endpoint.Path, byMethod.handler(env))
			}
			key := endpoint.Method
			if endpoint.Verb == "watch" {
				key = watching
			}
			if _, taken := byMethod[key]; taken {
				panic("frame: two endpoints claim " + key + " " + endpoint.Path)
			}
			byMethod[key] = newFrame(env, f.Name, endpoint)
		}
	}
	lost := newFrame(env, "none", noRoute())
	for _, f := range functions {
		if f.Elsewhere == nil {
			continue
		}
		for path, allowed := range f.Elsewhere() {
			if _, here := methods[path]; !here {
				routes.Handle(path, elsewhere(env, allowed, lost))
			}
		}
	}
	if _, claimed := methods["/"]; !claimed {
		routes.Handle("/", lost)
	}
	root := http.StripPrefix(BasePath, routes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch escaped := r.URL.EscapedPath(); {
		case !clean(escaped):
			// The mux would redirect, to a place outside of the base path.
			lost.ServeHTTP(w, r)
		case isBelow(escaped, BasePath):
			root.ServeHTTP(w, r)
		default:
			routes.ServeHTTP(w, r)
		}
	})
}

// clean tells whether a path has no empty and no dotted steps.
func clean(escaped string) bool {
	cleaned := path.Clean(escaped)
	return escaped == cleaned || escaped == cleaned+"/"
}

func isBelow(path, base string) bool {
	return len(path) > len(base) && path[:len(base)] == base && path[len(base)] == '/'
}

// Run does the scheduled work of the function once, within the deadline of ctx.
func (f *Function) Run(ctx context.Context, env *Environment) error {
	return f.Schedule.run(ctx, env, f.Name)
}
