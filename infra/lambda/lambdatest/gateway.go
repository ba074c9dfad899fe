package lambdatest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Gateway stands in front of a function and calls it with events of its kind. It treats bodies, paths, queries and
// headers as the documentation of AWS describes, with one exception: a REST API and a Function URL rename
// WWW-Authenticate in responses, and a Gateway does not, because clients of this API do not need that header.
type Gateway int

// The kinds.
const (
	// HTTPAPI is an HTTP API of API Gateway, payload format 2.0. It decodes paths and joins headers.
	HTTPAPI Gateway = iota
	// RESTAPI is a REST API of API Gateway for which all bodies are binary.
	RESTAPI
	// Balancer is an application load balancer: the last of each header and parameter.
	Balancer
	// BalancerMulti is a load balancer whose target group has multi-value headers.
	BalancerMulti
	// FunctionURL is a Function URL.
	FunctionURL
)

// maxBalancerBody bounds the body that a load balancer passes on to a function.
const maxBalancerBody = 1 << 20

const (
	apiDomain = "x.execute-api.eu-west-1.amazonaws.com"
	urlDomain = "x.lambda-url.eu-west-1.on.aws"
)

// Takes reports whether the gateway passes on a body of a size.
func (g Gateway) Takes(size int) bool {
	return g != Balancer && g != BalancerMulti || size <= maxBalancerBody
}

// Streams reports whether the gateway sends responses while they are being made, if the function is invoked with
// response streaming.
func (g Gateway) Streams() bool { return g == RESTAPI || g == FunctionURL }

// Event returns the event into which the gateway turns a request with a body.
func (g Gateway) Event(r *http.Request, body []byte, id string) ([]byte, error) {
	event := map[string]any{}
	domain := apiDomain
	if g == FunctionURL {
		domain = urlDomain
	}
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	header.Set("X-Forwarded-For", "192.0.2.1")
	header.Set("X-Amzn-Trace-Id", "Root=1-5c536348-"+id)
	switch g {
	case HTTPAPI, FunctionURL:
		event["version"], event["routeKey"] = "2.0", "$default"
		event["rawQueryString"] = r.URL.RawQuery
		path := r.URL.EscapedPath()
		if g == HTTPAPI {
			path = r.URL.Path
		}
		event["rawPath"] = path
		if cookies := header.Values("Cookie"); len(cookies) > 0 {
			event["cookies"] = strings.Split(strings.Join(cookies, "; "), "; ")
			header.Del("Cookie")
		}
		joined := map[string]string{}
		for name, values := range header {
			joined[strings.ToLower(name)] = strings.Join(values, ",")
		}
		event["headers"] = joined
		event["requestContext"] = map[string]any{
			"domainName": domain, "requestId": id, "stage": "$default",
			"http": map[string]string{"method": r.Method, "path": path, "protocol": r.Proto, "sourceIp": "192.0.2.1", "userAgent": r.UserAgent()},
		}
	case RESTAPI:
		event["resource"], event["path"], event["httpMethod"] = "/{proxy+}", r.URL.EscapedPath(), r.Method
		query := parameters(r.URL.RawQuery, func(text string) string {
			if decoded, err := url.QueryUnescape(text); err == nil {
				return decoded
			}
			return text
		})
		event["queryStringParameters"], event["multiValueQueryStringParameters"] = lastValues(query), query
		event["headers"], event["multiValueHeaders"] = lastValues(header), header
		event["requestContext"] = map[string]any{
			"domainName": domain, "requestId": id, "stage": "prod", "path": "/prod" + r.URL.EscapedPath(), "httpMethod": r.Method,
			"identity": map[string]string{"sourceIp": "192.0.2.1"},
		}
	case Balancer, BalancerMulti:
		event["path"], event["httpMethod"] = r.URL.EscapedPath(), r.Method
		query, lower := parameters(r.URL.RawQuery, func(text string) string { return text }), map[string][]string{}
		for name, values := range header {
			lower[strings.ToLower(name)] = values
		}
		if g == Balancer {
			event["queryStringParameters"], event["headers"] = lastValues(query), lastValues(lower)
		} else {
			event["multiValueQueryStringParameters"], event["multiValueHeaders"] = query, lower
		}
		event["requestContext"] = map[string]any{"elb": map[string]string{
			"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/x/1",
		}}
	default:
		return nil, fmt.Errorf("there is no gateway %d", g)
	}
	encoded := g == RESTAPI && len(body) > 0 || !isText(header.Get("Content-Type"), body)
	event["body"], event["isBase64Encoded"] = string(body), encoded
	if encoded {
		event["body"] = base64.StdEncoding.EncodeToString(body)
	}
	return json.Marshal(event)
}

// isText reports whether a body is put into an event unchanged. JSON would damage a body that is not UTF-8.
func isText(contentType string, body []byte) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return len(body) == 0 || utf8.Valid(body) && err == nil && (strings.HasPrefix(media, "text/") || media == "application/json" ||
		media == "application/javascript" || media == "application/xml")
}

// parameters returns the parameters of a query, in the form in which the gateway passes them on.
func parameters(query string, form func(string) string) map[string][]string {
	values := map[string][]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair != "" {
			name, value, _ := strings.Cut(pair, "=")
			values[form(name)] = append(values[form(name)], form(value))
		}
	}
	return values
}

func lastValues(all map[string][]string) map[string]string {
	lasts := map[string]string{}
	for name, values := range all {
		if len(values) > 0 {
			lasts[name] = values[len(values)-1]
		}
	}
	return lasts
}

// Head is the status and the headers of a response, and its body unless the body is streamed.
type Head struct {
	StatusCode        int
	StatusDescription string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              string
	IsBase64Encoded   bool
}

// Respond turns an answer into a response and closes the answer. If a gateway cannot read the answer, the response is
// 502. If the answer is cut off, so is the response, with the panic that net/http has for this.
func (g Gateway) Respond(w http.ResponseWriter, a *Answer) {
	if a.Failed {
		a.Close()
		http.Error(w, `{"message":"Internal Server Error"}`, http.StatusBadGateway)
		return
	}
	if a.ContentType == "application/vnd.awslambda.http-integration-response" {
		g.flow(w, a)
		return
	}
	defer a.Close()
	text, err := io.ReadAll(a.Body)
	var answered Head
	if err == nil {
		err = json.Unmarshal(text, &answered)
	}
	body := []byte(answered.Body)
	if err == nil && answered.IsBase64Encoded {
		body, err = base64.StdEncoding.DecodeString(answered.Body)
	}
	if err == nil {
		err = g.headers(w.Header(), answered)
	}
	if err != nil {
		http.Error(w, "the answer cannot be read: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(answered.StatusCode)
	_, _ = w.Write(body)
}

// headers reads the headers of an answer from the fields that the kind of gateway reads.
func (g Gateway) headers(header http.Header, answered Head) error {
	if answered.StatusCode < 100 {
		return errors.New("it has no status")
	}
	multi := g == BalancerMulti || g == RESTAPI
	if multi && answered.Headers != nil || g != RESTAPI && !multi && answered.MultiValueHeaders != nil {
		return errors.New("its headers are in the wrong field")
	}
	if balancer := g == Balancer || g == BalancerMulti; balancer && answered.StatusDescription == "" {
		return errors.New("it has no description of its status")
	}
	for name, value := range answered.Headers {
		header.Set(name, value)
	}
	for name, values := range answered.MultiValueHeaders {
		header[http.CanonicalHeaderKey(name)] = values
	}
	for _, cookie := range answered.Cookies {
		header.Add("Set-Cookie", cookie)
	}
	return nil
}

// flow sends a streamed response as it arrives: a line of JSON, eight zero bytes, the body.
func (g Gateway) flow(w http.ResponseWriter, a *Answer) {
	// A client that disconnects early does not stop the function.
	defer func() { go a.Close() }()
	answered, err := Prelude(a.Body)
	if err == nil && !g.Streams() {
		err = errors.New("it is streamed, and this gateway cannot stream")
	}
	if err == nil {
		err = g.headers(w.Header(), *answered)
	}
	if err != nil {
		http.Error(w, "the answer cannot be read: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(answered.StatusCode)
	control := http.NewResponseController(w)
	_ = control.Flush()
	piece := make([]byte, 32<<10)
	for {
		n, err := a.Body.Read(piece)
		if _, gone := w.Write(piece[:n]); gone != nil {
			return
		}
		_ = control.Flush()
		if err == io.EOF && a.Trailer().Get("Lambda-Runtime-Function-Error-Type") == "" {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// Prelude reads the status and the headers of a streamed response, up to its body.
func Prelude(body io.Reader) (*Head, error) {
	var text []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(text, make([]byte, 8)) {
		if _, err := io.ReadFull(body, one); err != nil {
			return nil, fmt.Errorf("reading the prelude: %w", err)
		}
		text = append(text, one[0])
	}
	answered := &Head{}
	return answered, json.Unmarshal(text[:len(text)-8], answered)
}
