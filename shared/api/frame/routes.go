package frame

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
)

// Mount returns a handler for the endpoints of functions. It answers all other requests with 404 or 405. It panics if two
// endpoints have the same route, which is a programming error.
func (s *Server) Mount(functions ...*Function) http.Handler {
	routes := http.NewServeMux()
	methods := map[string]methodMux{}
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			byMethod, known := methods[endpoint.Path]
			if !known {
				byMethod = methodMux{}
				methods[endpoint.Path] = byMethod
				routes.Handle(endpoint.Path, byMethod.handler(s))
				if f.ServedByOthers != nil {
					routes.Handle(endpoint.Path+"/{$}", withoutSlash(byMethod.handler(s)))
				}
			}
			key := endpoint.Method
			if endpoint.Verb == "watch" && !endpoint.isWatchPath {
				key = watching
			}
			if _, taken := byMethod[key]; taken {
				panic("frame: two endpoints claim " + key + " " + endpoint.Path)
			}
			byMethod[key] = newFrame(s, f.Name, endpoint)
		}
	}
	lost := newFrame(s, "none", noRoute())
	for _, f := range functions {
		if f.ServedByOthers == nil {
			continue
		}
		for path, allowed := range f.ServedByOthers() {
			if _, here := methods[path]; !here {
				routes.Handle(path, servedByOthers(s, allowed, lost))
			}
		}
	}
	if _, claimed := methods["/"]; !claimed {
		routes.Handle("/", lost)
	}
	root := http.StripPrefix(BasePath, routes)
	return Guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch escaped := r.URL.EscapedPath(); {
		case !clean(escaped):
			// The mux would redirect to a path outside of the base path.
			lost.ServeHTTP(w, r)
		case isBelow(escaped, BasePath):
			root.ServeHTTP(w, r)
		default:
			routes.ServeHTTP(w, r)
		}
	}))
}

// withoutSlash serves a path that ends in a slash as the path without it. Clients that are generated from the OpenAPI document of
// Kubernetes read the documents of discovery so. The function that receives all requests without a route from the gateway can
// serve both; the paths of other functions are exact.
func withoutSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		url := *r.URL
		url.Path, url.RawPath = strings.TrimSuffix(url.Path, "/"), strings.TrimSuffix(url.RawPath, "/")
		short := *r
		short.URL = &url
		next.ServeHTTP(w, &short)
	})
}

// clean reports whether a path has no empty segments and no segments "." or "..".
func clean(escaped string) bool {
	cleaned := path.Clean(escaped)
	return escaped == cleaned || escaped == cleaned+"/" && cleaned != "/"
}

func isBelow(path, base string) bool {
	return len(path) > len(base) && path[:len(base)] == base && path[len(base)] == '/'
}

// methodMux serves the methods of one path, and answers other methods with 405. A watch, which is a GET, has a key of its
// own, unless its path requests the watch.
type methodMux map[string]*frame

// watching is the key of a watch.
const watching = "GET to watch"

func (m methodMux) serving(r *http.Request) (*frame, bool) {
	if serve, ok := m[watching]; ok && r.Method == http.MethodGet && r.URL.RawQuery != "" {
		if flag(r.URL.Query(), "watch") {
			return serve, true
		}
	}
	serve, ok := m[r.Method]
	return serve, ok
}

func (m methodMux) handler(server *Server) http.Handler {
	refuse := newFrame(server, "none", wrongMethod())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if serve, ok := m.serving(r); ok {
			serve.ServeHTTP(w, r)
			return
		}
		allowed := make([]string, 0, len(m))
		for method := range m {
			if method == watching {
				method = http.MethodGet
			}
			allowed = append(allowed, method)
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		refuse.ServeHTTP(w, r)
	})
}

// servedByOthers serves a path that belongs to other functions. It answers a method that the path does not have with 405.
// Gateways send the allowed methods to their own functions. Such a request arrives here only if its path is spelled in a
// way that the gateway has no route for: 404.
func servedByOthers(server *Server, allowed []string, lost http.Handler) http.Handler {
	refuse := newFrame(server, "none", wrongMethod())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(allowed, r.Method) {
			lost.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		refuse.ServeHTTP(w, r)
	})
}

func noRoute() Endpoint {
	return refusal(func(*call) error { return apierror.NoRoute() })
}

func wrongMethod() Endpoint {
	return refusal(func(c *call) error { return apierror.MethodNotAllowed(method(c.http)) })
}

// Refusing returns a handler that refuses requests with an error, and logs them as others. It is for the requests that a shell
// does not pass on. Function is the name of the function that was called, or "none".
func (s *Server) Refusing(function string, err error) http.Handler {
	return Guarded(newFrame(s, function, refusal(func(*call) error { return err })))
}

// refusal returns an endpoint that refuses every request. It needs no credential, since routes are not secret.
func refusal(why func(*call) error) Endpoint {
	return Endpoint{
		access: access{public: Everyone}, page: page{noConfig: true},
		open: func(*platform.Environment) operation {
			return func(_ context.Context, c *call) (*answer, error) { return nil, why(c) }
		},
	}
}
