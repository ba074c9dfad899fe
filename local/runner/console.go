package runner

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/functions/evaluatepatches"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model/apierror"
)

// forOwnHosts refuses requests for the console whose Host is not a host of this runner. A page of another site can
// point its name at an address of this machine: for the browser, the console would then belong to that site. Such an
// attack needs a name, so every IP address is accepted. The accepted names are localhost, the name of the listener and
// the name of the issuer. Source: ADR-0030.
func forOwnHosts(next http.Handler, api *frame.Server, listen, issuer string, certified func() []string) http.Handler {
	names := []string{hostname(listen)}
	if own, err := url.Parse(issuer); err == nil {
		names = append(names, hostname(own.Host))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostname(r.Host)
		_, err := netip.ParseAddr(host)
		if err != nil && !isLocalhost(host) && (host == "" || !slices.Contains(names, host) && !slices.Contains(certified(), host)) && isConsole(r.URL.Path) {
			api.Refusing("none", apierror.Forbidden(schema.GroupResource{Resource: "console"}, "",
				"the Host of the request is no name of this runner; use an address, localhost, or a name in --listen, --issuer or the certificate", nil)).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isConsole reports whether a path belongs to the console.
func isConsole(path string) bool {
	path = strings.TrimPrefix(path, frame.BasePath)
	return path == "/console" || strings.HasPrefix(path, "/console/")
}

// leadingToConsole sends browsers that open the root of the host to the console. Other clients get the answer of next.
func leadingToConsole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opens := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !opens || strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, frame.BasePath), "/") != "" || !strings.Contains(r.Header.Get("Accept"), "text/html") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "/console", http.StatusSeeOther)
	})
}

// withStudio serves evaluations of patches without a credential to the pages of this runner in browsers of this
// machine. Evaluations store nothing. All other requests need a credential as before. Source: ADR-0030.
func withStudio(next http.Handler, api *frame.Server) http.Handler {
	evaluation := evaluatepatches.Function.Endpoints[0]
	open := api.Mount(&frame.Function{Name: evaluatepatches.Function.Name, Endpoints: []frame.Endpoint{evaluation.Anonymous()}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == evaluation.Method && strings.TrimPrefix(r.URL.Path, frame.BasePath) == evaluation.Path && isOwnPage(r) {
			open.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnPage reports whether a page of this runner, in a browser of this machine, sends a request without a credential
// in its header. Other sites cannot send these fields: the browser sets them.
func isOwnPage(r *http.Request) bool {
	host := hostname(r.Host)
	address, err := netip.ParseAddr(host)
	site := r.Header["Sec-Fetch-Site"]
	return isLocal(r) && (isLocalhost(host) || err == nil && address.IsLoopback()) && len(r.Header["Authorization"]) == 0 &&
		len(site) == 1 && site[0] == "same-origin"
}

// hostname returns a host without its port and a final dot, in lower case.
func hostname(host string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: host}).Hostname(), "."))
}

// isLocalhost reports whether a name stands for the machine on which it is used. Source: RFC 6761, section 6.3.
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
