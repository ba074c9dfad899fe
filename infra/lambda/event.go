package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// kind is the kind of an event, which decides the form of the response.
type kind int

const (
	unknown kind = iota
	// gatewayV2 is a request by an HTTP API, payload format 2.0.
	gatewayV2
	// functionURL is a request by a Function URL, in the same format.
	functionURL
	// gatewayV1 is a request by a REST API, or by an HTTP API in payload format 1.0.
	gatewayV1
	// balancer is a request by an application load balancer.
	balancer
	// clock is a schedule of EventBridge.
	clock
)

// event is the input of Lambda. It has the fields of all kinds together; each kind fills some of them.
type event struct {
	Version string `json:"version"`

	// Payload format 2.0. RouteKey is the matched route, such as "GET /a/{name}".
	RouteKey       string   `json:"routeKey"`
	RawPath        string   `json:"rawPath"`
	RawQueryString string   `json:"rawQueryString"`
	Cookies        []string `json:"cookies"`

	// REST API and load balancer. Resource is the matched route, such as "/a/{name}" or "/{proxy+}".
	Resource          string              `json:"resource"`
	HTTPMethod        string              `json:"httpMethod"`
	Path              string              `json:"path"`
	Query             map[string]string   `json:"queryStringParameters"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`

	PathParameters  map[string]string `json:"pathParameters"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
	Context         requestContext    `json:"requestContext"`

	// EventBridge.
	Source     string `json:"source"`
	DetailType string `json:"detail-type"`
}

type requestContext struct {
	RequestID  string `json:"requestId"`
	Stage      string `json:"stage"`
	DomainName string `json:"domainName"`
	HTTP       struct {
		Method   string `json:"method"`
		SourceIP string `json:"sourceIp"`
	} `json:"http"`
	Identity struct {
		SourceIP string `json:"sourceIp"`
	} `json:"identity"`
	ELB *struct{} `json:"elb"`
}

// kind recognizes the kind of an event by its fields.
func (e *event) kind() kind {
	switch {
	case e == nil: // The event was null.
		return unknown
	case e.Context.HTTP.Method != "" && strings.Contains(e.Context.DomainName, ".lambda-url."):
		return functionURL
	case e.Context.HTTP.Method != "":
		return gatewayV2
	case e.HTTPMethod != "" && e.Context.ELB != nil:
		return balancer
	case e.HTTPMethod != "":
		return gatewayV1
	case e.Source == "aws.events" || e.Source == "aws.scheduler":
		return clock
	default:
		return unknown
	}
}

// request makes an event into the request that the client sent. It returns an error for an event that no gateway makes;
// the request then has no body.
func (e *event) request(ctx context.Context, sender kind, invocation string) (*http.Request, error) {
	method, address, source := e.HTTPMethod, &url.URL{}, e.Context.Identity.SourceIP
	path := e.path(sender)
	switch sender {
	case gatewayV2, functionURL:
		method, source = e.Context.HTTP.Method, e.Context.HTTP.SourceIP
		address.RawQuery = e.RawQueryString
	case balancer:
		// The query keeps the client's escapes.
		address.RawQuery = e.query(func(text string) string { return text })
	default:
		address.RawQuery = e.query(url.QueryEscape)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	address.Path = path
	// An HTTP API has decoded the path, in either format. The other gateways keep the client's escapes.
	if sender != gatewayV2 && e.Version != "1.0" {
		if decoded, err := url.PathUnescape(path); err == nil {
			address.Path, address.RawPath = decoded, path
		}
	}

	body, wrong := []byte(e.Body), error(nil)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			body, wrong = nil, errors.New("body: it is not base64, although isBase64Encoded is true")
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "/", bytes.NewReader(body))
	if err != nil {
		wrong = fmt.Errorf("the method %q is not an HTTP method", method)
		r = (&http.Request{Method: method, Header: http.Header{}, Body: http.NoBody}).WithContext(ctx)
	}
	r.URL, r.RequestURI, r.ContentLength = address, address.RequestURI(), int64(len(body))
	for name, value := range e.Headers {
		r.Header.Set(name, value)
	}
	for name, values := range e.MultiValueHeaders {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if len(e.Cookies) > 0 {
		r.Header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	if r.Host = r.Header.Get("Host"); r.Host == "" {
		r.Host = e.Context.DomainName
	}
	r.Header.Del("Host")
	r.Header.Del("Content-Length")
	if sender == gatewayV1 {
		// A REST API decodes base64 only for the media types that it is configured for, so responses through it are not
		// compressed.
		r.Header.Del("Accept-Encoding")
	}
	if source == "" {
		source = forwardedFor(r.Header)
	}
	r.RemoteAddr = remoteAddress(source)
	if r.Header.Get("X-Request-Id") == "" {
		r.Header.Set("X-Request-Id", e.requestID(r.Header, invocation))
	}
	return r, wrong
}

// path returns the gateway's path without the parts that the gateway adds in front: the name of a stage, and the
// mapping of a custom domain. If the gateway has matched a route, the path begins where the route begins.
func (e *event) path(sender kind) string {
	path, route := e.Path, e.Resource
	if sender == gatewayV2 || sender == functionURL {
		path = e.RawPath
		_, route, _ = strings.Cut(e.RouteKey, " ")
	}
	for i := range path {
		if path[i] == '/' && e.matchesRoute(route, path[i:]) {
			return path[i:]
		}
	}
	stage := "/" + e.Context.Stage
	if rest, ok := strings.CutPrefix(path, stage); ok && sender == gatewayV2 && stage != "/$default" && stage != "/" && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// matchesRoute reports whether a path matches a route. The event contains the value of a parameter for the rest of a path,
// {name+}, with or without its escapes.
func (e *event) matchesRoute(route, path string) bool {
	if route == "" {
		return false
	}
	steps, pattern := strings.Split(strings.TrimSuffix(path, "/"), "/"), strings.Split(route, "/")
	for i, want := range pattern {
		if name, greedy := strings.CutSuffix(want, "+}"); greedy && i < len(steps) {
			rest, told := strings.Join(steps[i:], "/"), strings.TrimSuffix(e.PathParameters[strings.TrimPrefix(name, "{")], "/")
			decoded, err := url.PathUnescape(rest)
			return rest == told || err == nil && decoded == told
		}
		if i >= len(steps) || steps[i] != want && (steps[i] == "" || !strings.HasPrefix(want, "{")) {
			return false
		}
	}
	return len(steps) == len(pattern)
}

// query joins the parameters to a query string, sorted by name.
func (e *event) query(escape func(string) string) string {
	all := map[string][]string{}
	for name, value := range e.Query {
		all[name] = []string{value}
	}
	for name, values := range e.MultiValueQuery {
		all[name] = values
	}
	var pairs []string
	for name, values := range all {
		for _, value := range values {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	// The order of the names is fixed for tests. The order of the values of one name is kept.
	slices.SortStableFunc(pairs, func(a, b string) int {
		first, _, _ := strings.Cut(a, "=")
		second, _, _ := strings.Cut(b, "=")
		return strings.Compare(first, second)
	})
	return strings.Join(pairs, "&")
}

// requestID returns the gateway's id of the request, or else Lambda's id of the invocation. Ids of gateways may end in
// base64 padding. Trace ids have the prefix of their root.
func (e *event) requestID(header http.Header, invocation string) string {
	if id := strings.TrimRight(e.Context.RequestID, "="); id != "" {
		return id
	}
	for field := range strings.SplitSeq(header.Get("X-Amzn-Trace-Id"), ";") {
		if root, ok := strings.CutPrefix(field, "Root="); ok {
			return root
		}
	}
	return invocation
}

// forwardedFor returns the address of the client that the load balancer saw: the last address in the last of its
// headers. The load balancer may be configured to add the port.
func forwardedFor(header http.Header) string {
	all := strings.Join(header.Values("X-Forwarded-For"), ",")
	last := strings.TrimSpace(all[strings.LastIndex(all, ",")+1:])
	if with, err := netip.ParseAddrPort(last); err == nil {
		return with.Addr().String()
	}
	return last
}

// remoteAddress returns the address of a client in the form of net/http, with a port, which the gateways do not give.
func remoteAddress(source string) string {
	if address, err := netip.ParseAddr(source); err == nil {
		return netip.AddrPortFrom(address, 0).String()
	}
	return source + ":0"
}
