package lambda

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/lambda/lambdatest"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/state/store"
)

// parse reads an event as the library does.
func parse(t *testing.T, text string) *event {
	t.Helper()
	e := &event{}
	if err := json.Unmarshal([]byte(text), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// got is the part of a request that a handler sees.
type got struct {
	Method, URI, Path, Host, Remote, Body string
	Length                                int64
	Header                                http.Header
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		file string
		kind kind
		want got
	}{
		{"httpapi.json", gatewayV2, got{
			"PUT", "/apis/x/a%20b%2525?x=1&x=2&y=%20", "/apis/x/a b%25", "x.execute-api.eu-west-1.amazonaws.com", "192.0.2.1:0", "kind: Ä\n", 9,
			http.Header{"Accept": {"application/json,application/yaml"}, "Cookie": {"a=1; b=2"}, "X-Request-Id": {"JKJaXmPLvHcESHA"}, "Content-Type": {"application/yaml"}},
		}},
		{"functionurl.json", functionURL, got{
			"POST", "/prod/a%2Fb", "/prod/a/b", "x.lambda-url.eu-west-1.on.aws", "192.0.2.1:0", "{}", 2,
			http.Header{"X-Request-Id": {"theirs"}},
		}},
		{"restapi.json", gatewayV1, got{
			"GET", "/apis/x?a=1+2&a=%26&b=", "/apis/x", "x.execute-api.eu-west-1.amazonaws.com", "192.0.2.1:0", "", 0,
			http.Header{"Accept": {"application/json", "text/plain"}, "X-Request-Id": {"c6af9ac6-7b61-11e6-9a41-93e8deadbeef"}},
		}},
		{"balancer.json", balancer, got{
			"GET", "/apis/x?a=1%202&b=%26", "/apis/x", "lb.example", "192.0.2.1:0", "", 0,
			http.Header{"Accept": {"text/plain"}, "X-Request-Id": {"1-5c536348-3d683b8b04734faae651f476"}, "X-Amzn-Trace-Id": {"Root=1-5c536348-3d683b8b04734faae651f476"}, "X-Forwarded-For": {"203.0.113.9, 192.0.2.1"}},
		}},
		{"balancer-multi.json", balancer, got{
			"GET", "/apis/x?a=1%202&a=3", "/apis/x", "lb.example", "198.51.100.9:0", "", 0,
			http.Header{"Accept": {"text/plain", "application/json"}, "X-Request-Id": {"invocation"}, "X-Forwarded-For": {"6.6.6.6", "7.7.7.7, 198.51.100.9"}},
		}},
	} {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", row.file))
			if err != nil {
				t.Fatal(err)
			}
			e := parse(t, string(text))
			if e.kind() != row.kind {
				t.Fatalf("it is of the kind %d", e.kind())
			}
			r, err := e.request(t.Context(), e.kind(), "invocation")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if found := (got{r.Method, r.RequestURI, r.URL.Path, r.Host, r.RemoteAddr, string(body), r.ContentLength, r.Header}); !reflect.DeepEqual(found, row.want) {
				t.Errorf("got  %+v\nwant %+v", found, row.want)
			}
		})
	}
}

// The function does not see what a gateway puts before a path: the name of a stage or the mapping of a custom domain.
func TestPath(t *testing.T) {
	t.Parallel()
	const own = "x.execute-api.eu-west-1.amazonaws.com"
	for what, row := range map[string]struct{ event, want string }{
		"stage":                          {`{"version":"2.0","routeKey":"$default","rawPath":"/prod/apis","requestContext":{"domainName":"` + own + `","stage":"prod","http":{"method":"GET"}}}`, "/apis"},
		"stage alone":                    {`{"version":"2.0","routeKey":"$default","rawPath":"/prod","requestContext":{"domainName":"` + own + `","stage":"prod","http":{"method":"GET"}}}`, "/"},
		"begins like the stage":          {`{"version":"2.0","routeKey":"$default","rawPath":"/production/apis","requestContext":{"stage":"prod","http":{"method":"GET"}}}`, "/production/apis"},
		"no stage":                       {`{"version":"2.0","routeKey":"$default","rawPath":"/apis/","requestContext":{"stage":"$default","http":{"method":"GET"}}}`, "/apis/"},
		"nothing told":                   {`{"version":"2.0","rawPath":"apis","requestContext":{"http":{"method":"GET"}}}`, "/apis"},
		"half an escape":                 {`{"version":"2.0","rawPath":"/a%zz","requestContext":{"http":{"method":"GET"}}}`, "/a%25zz"},
		"stage behind a domain":          {`{"version":"2.0","routeKey":"$default","rawPath":"/prod/apis","requestContext":{"domainName":"api.example","stage":"prod","http":{"method":"GET"}}}`, "/apis"},
		"mapping of a domain":            {`{"version":"2.0","routeKey":"GET /apis/{name}","rawPath":"/platform/apis/x y","requestContext":{"domainName":"api.example","stage":"$default","http":{"method":"GET"}}}`, "/apis/x%20y"},
		"stage like a path":              {`{"version":"2.0","routeKey":"GET /apis/{name}","rawPath":"/apis/apis/x","requestContext":{"stage":"apis","http":{"method":"GET"}}}`, "/apis/x"},
		"stage like a path, left out":    {`{"version":"2.0","routeKey":"GET /apis/{name}","rawPath":"/apis/x","requestContext":{"stage":"apis","http":{"method":"GET"}}}`, "/apis/x"},
		"route of another path":          {`{"version":"2.0","routeKey":"GET /apis/{name}","rawPath":"/prod/apis/x/y","requestContext":{"stage":"prod","http":{"method":"GET"}}}`, "/apis/x/y"},
		"parameter without a value":      {`{"version":"2.0","routeKey":"GET /apis/{name}","rawPath":"/prod/apis/","requestContext":{"stage":"prod","http":{"method":"GET"}}}`, "/apis/"},
		"rest of a path":                 {`{"version":"2.0","routeKey":"ANY /apis/{rest+}","rawPath":"/m/apis/x/y z","pathParameters":{"rest":"x/y z"},"requestContext":{"stage":"$default","http":{"method":"GET"}}}`, "/apis/x/y%20z"},
		"Function URL":                   {`{"version":"2.0","routeKey":"$default","rawPath":"/prod/apis","requestContext":{"domainName":"x.lambda-url.eu-west-1.on.aws","stage":"prod","http":{"method":"GET"}}}`, "/prod/apis"},
		"REST API":                       {`{"resource":"/apis/{name}","path":"/apis/a%2Fb","httpMethod":"GET","requestContext":{"stage":"prod","path":"/prod/apis/a%2Fb"}}`, "/apis/a%2Fb"},
		"REST API, slash at the end":     {`{"resource":"/apis","path":"/v1/apis/","httpMethod":"GET","requestContext":{"stage":"prod"}}`, "/apis/"},
		"REST API, mapping":              {`{"resource":"/apis/{name}","path":"/v1/nested/apis/x","httpMethod":"GET","requestContext":{"stage":"prod","domainName":"api.example"}}`, "/apis/x"},
		"REST API, mapping like a path":  {`{"resource":"/apis","path":"/apis/apis","httpMethod":"GET","requestContext":{"stage":"prod"}}`, "/apis"},
		"REST API, rest":                 {`{"resource":"/{proxy+}","path":"/v1/prod/apis/a%20b/","pathParameters":{"proxy":"apis/a b"},"httpMethod":"GET","requestContext":{"stage":"prod"}}`, "/apis/a%20b/"},
		"REST API, rest with its escape": {`{"resource":"/{proxy+}","path":"/v1/apis/a%2Fb","pathParameters":{"proxy":"apis/a%2Fb"},"httpMethod":"GET","requestContext":{"stage":"prod"}}`, "/apis/a%2Fb"},
		"REST API, rest missing":         {`{"resource":"/{proxy+}","path":"/apis/x","pathParameters":null,"httpMethod":"GET","requestContext":{"stage":"prod"}}`, "/apis/x"},
		"HTTP API, format 1.0":           {`{"version":"1.0","resource":"/apis/{name}","path":"/prod/apis/100%25","httpMethod":"GET","requestContext":{"stage":"prod"}}`, "/apis/100%2525"},
		"balancer":                       {`{"path":"/prod/apis%20","httpMethod":"GET","requestContext":{"elb":{}}}`, "/prod/apis%20"},
	} {
		e := parse(t, row.event)
		r, err := e.request(t.Context(), e.kind(), "")
		if err != nil || r.URL.EscapedPath() != row.want {
			t.Errorf("%s: %v, %v, want %s", what, r.URL, err, row.want)
		}
	}
}

// The address of the client is found in every address family, with a port and without.
func TestRemoteAddress(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct{ event, want string }{
		"HTTP API, IPv6":       {`{"version":"2.0","rawPath":"/","requestContext":{"http":{"method":"GET","sourceIp":"2001:db8::7"}}}`, "2001:db8::7"},
		"REST API, IPv6":       {`{"path":"/","httpMethod":"GET","requestContext":{"identity":{"sourceIp":"2001:db8::7"}}}`, "2001:db8::7"},
		"balancer":             {`{"path":"/","httpMethod":"GET","headers":{"x-forwarded-for":"203.0.113.9, 192.0.2.1"},"requestContext":{"elb":{}}}`, "192.0.2.1"},
		"balancer, port":       {`{"path":"/","httpMethod":"GET","headers":{"x-forwarded-for":"192.0.2.1:4711"},"requestContext":{"elb":{}}}`, "192.0.2.1"},
		"balancer, IPv6":       {`{"path":"/","httpMethod":"GET","headers":{"x-forwarded-for":"2001:db8::7"},"requestContext":{"elb":{}}}`, "2001:db8::7"},
		"balancer, IPv6, port": {`{"path":"/","httpMethod":"GET","headers":{"x-forwarded-for":"[2001:db8::7]:4711"},"requestContext":{"elb":{}}}`, "2001:db8::7"},
		"nobody":               {`{"path":"/","httpMethod":"GET","requestContext":{"elb":{}}}`, ""},
	} {
		e := parse(t, row.event)
		r, err := e.request(t.Context(), e.kind(), "")
		if err != nil {
			t.Fatal(err)
		}
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err != nil || host != row.want {
			t.Errorf("%s: %q, %v, want %s", what, r.RemoteAddr, err, row.want)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	serve := func(of kind, body string) *buffer {
		b := newBuffer(of)
		b.Header()["Warning"] = []string{`299 - "a"`, `299 - "b"`}
		b.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		b.Header().Set("Content-Length", "5")
		b.WriteHeader(201)
		b.Header().Set("Late", "x")
		b.Write([]byte(body))
		return b
	}
	joined := map[string]string{"Warning": `299 - "a", 299 - "b"`}
	many := map[string][]string{"Warning": {`299 - "a"`, `299 - "b"`}, "Set-Cookie": {"a=1", "b=2"}}
	single := map[string]string{"Warning": `299 - "a", 299 - "b"`, "Set-Cookie": "a=1, b=2"}
	multi := &event{MultiValueHeaders: map[string][]string{}}
	for what, row := range map[string]struct {
		event *event
		kind  kind
		body  string
		want  answer
	}{
		"HTTP API":         {&event{}, gatewayV2, "hello", answer{StatusCode: 201, Headers: joined, Cookies: []string{"a=1", "b=2"}, Body: "hello"}},
		"Function URL":     {&event{}, functionURL, "hello", answer{StatusCode: 201, Headers: joined, Cookies: []string{"a=1", "b=2"}, Body: "hello"}},
		"binary":           {&event{}, gatewayV2, "\xff\x00", answer{StatusCode: 201, Headers: joined, Cookies: []string{"a=1", "b=2"}, Body: "/wA=", IsBase64Encoded: true}},
		"REST API":         {&event{}, gatewayV1, "hello", answer{StatusCode: 201, MultiValueHeaders: many, Body: "hello"}},
		"balancer":         {&event{}, balancer, "hello", answer{StatusCode: 201, StatusDescription: "201 Created", Headers: single, Body: "hello"}},
		"balancer, values": {multi, balancer, "hello", answer{StatusCode: 201, StatusDescription: "201 Created", MultiValueHeaders: many, Body: "hello"}},
	} {
		if found := serve(row.kind, row.body).answer(row.event, row.kind); !reflect.DeepEqual(*found, row.want) {
			t.Errorf("%s: got %+v, want %+v", what, *found, row.want)
		}
	}
}

// An answer that is too large for the platform says so, and can be taken back.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		kind    kind
		body    string
		excess  int
		encoded bool
	}{
		"fits":                   {gatewayV2, strings.Repeat("x", maxAnswer), 0, false},
		"grows less as base64":   {gatewayV2, strings.Repeat(`"`, 4<<20), 0, true},
		"too large":              {gatewayV2, strings.Repeat("x", maxAnswer+1), maxAnswer, false},
		"too large for balancer": {balancer, strings.Repeat("x", maxBalancerAnswer+1), maxBalancerAnswer, false},
		"binary and too large":   {gatewayV1, strings.Repeat("\xff", 5<<20), maxAnswer, false},
	} {
		b := newBuffer(row.kind)
		if promised := b.Fits(len(row.body)); promised && row.excess > 0 {
			t.Errorf("%s: the answer was said to fit", what)
		}
		for _, part := range []string{row.body[:1000], row.body[1000:]} {
			b.Write([]byte(part))
		}
		if b.Excess() != row.excess {
			t.Errorf("%s: an excess of %d, want %d", what, b.Excess(), row.excess)
		}
		if row.excess > 0 {
			b.Reset()
			b.WriteHeader(413)
			b.Write([]byte("small"))
		}
		a := b.answer(&event{}, row.kind)
		if want := map[bool]int{true: 413, false: 200}[row.excess > 0]; a.StatusCode != want || a.IsBase64Encoded != row.encoded {
			t.Errorf("%s: %d, base64 %v", what, a.StatusCode, a.IsBase64Encoded)
		}
		text, err := json.Marshal(a)
		if err != nil || len(text) > 6<<20 {
			t.Errorf("%s: %d bytes, %v", what, len(text), err)
		}
	}
}

// The computed size of an answer equals its size in the encoding of the library.
func TestQuoted(t *testing.T) {
	t.Parallel()
	every := ""
	for r := rune(0); r < 0x3000; r++ {
		every += string(r)
	}
	for _, text := range []string{"", "plain", `{"a":"\\"}`, "<&>", every} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(text); err != nil {
			t.Fatal(err)
		}
		if want := out.Len() - len("\"\"\n"); quotedLength(text) != want {
			t.Errorf("%.20q: %d, want %d", text, quotedLength(text), want)
		}
	}
}

// The health check of a load balancer succeeds for every function that can be called, at any path and without a key.
func TestHealthCheck(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"getaccesskey", "expirekeys"} {
		s := open(t, name, io.Discard, nil)
		for _, headers := range []string{`"headers":{"user-agent":"ELB-HealthChecker/2.0"}`, `"multiValueHeaders":{"user-agent":["ELB-HealthChecker/2.0"]}`} {
			e := parse(t, `{"requestContext":{"elb":{"targetGroupArn":"arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/x/1"}},
				"httpMethod":"GET","path":"/","queryStringParameters":{},`+headers+`,"body":"","isBase64Encoded":false}`)
			if a := s.whole1(t, e); a.StatusCode != 200 || a.StatusDescription != "200 OK" || a.Body != "ok\n" {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
	// Other requests with that user agent get the usual answer.
	e := ask("GET", "/admin", "", "")
	e.Headers = map[string]string{"user-agent": "ELB-HealthChecker/2.0"}
	if a := open(t, "getaccesskey", io.Discard, nil).whole1(t, e); a.StatusCode != 401 {
		t.Errorf("%+v", a)
	}
}

// catalogFunction returns a function of the catalog.
func catalogFunction(t *testing.T, name string) *frame.Function {
	t.Helper()
	for _, f := range catalog.Functions {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no function %s", name)
	return nil
}

func open(t *testing.T, name string, log io.Writer, variables map[string]string) *shell {
	t.Helper()
	s, err := newShell(catalogFunction(t, name), processtest.New(t).Lookup(variables), log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask returns an event of format 2.0 that requests access keys.
func ask(method, below, query, body string) *event {
	e := &event{RawPath: processtest.Root + below, RawQueryString: query, Body: body,
		Headers: map[string]string{"authorization": "Bearer " + processtest.Admin, "content-type": "application/yaml"}}
	e.Context.HTTP.Method = method
	return e
}

func (s *shell) whole1(t *testing.T, e *event) *answer {
	t.Helper()
	found, err := s.handle(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return found.(*answer)
}

func (s *shell) openServed(t *testing.T) *servedFunction {
	t.Helper()
	to, err := s.whole()
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// invoked is the context of an invocation.
func invoked(t *testing.T) context.Context {
	return lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"})
}

// lines returns the log lines, and fails for a line that is not JSON.
func lines(t *testing.T, log *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

// A request that the shell refuses has an id, and a log line that names it and the invocation.
func TestRefusals(t *testing.T) {
	t.Parallel()
	body := ask("POST", "", "", "?")
	body.IsBase64Encoded = true
	for what, row := range map[string]struct {
		event  *event
		method string
	}{
		"body":   {body, "POST"},
		"method": {ask("GE T", "", "", ""), "GE T"},
	} {
		row.event.Context.RequestID = "JKJaXmPLvHcESHA="
		var log bytes.Buffer
		s := open(t, "createaccesskey", &log, nil)
		found, err := s.handle(invoked(t), row.event)
		if err != nil {
			t.Fatal(err)
		}
		if a := found.(*answer); a.StatusCode != 400 || a.Headers["X-Request-Id"] != "JKJaXmPLvHcESHA" || a.Headers["X-Content-Type-Options"] != "nosniff" {
			t.Errorf("%s: %+v", what, a)
		}
		logged := lines(t, &log)
		if len(logged) != 1 || logged[0]["status"] != 400.0 || logged[0]["requestID"] != "JKJaXmPLvHcESHA" || logged[0]["method"] != row.method ||
			logged[0]["function"] != "createaccesskey" || logged[0]["invocation"] != "c6af9ac6-7b61-11e6-9a41-93e8deadbeef" {
			t.Errorf("%s: logged %v", what, logged)
		}
	}
}

// A response that is too large to send is a 413 for the client, the log and the audit: an object, a list that is put
// together from parts, and a watch that has not sent its first event. A watch that has sent one ends before it is full.
func TestTooLargeToSend(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	// A slow machine needs longer for the events than a watch lasts by default.
	s := open(t, "listaccesskeys", &log, map[string]string{"PLATFORM_WATCH_WINDOW": "1h"})
	keys := s.first.Env.Stores("ownedaccesskeys")
	admin, err := keys.Get(t.Context(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(admin.Object, &object); err != nil {
		t.Fatal(err)
	}
	delete(object, "splice")
	// Quotes grow when JSON is put into JSON.
	noise, quotes := make([]byte, 100<<10), strings.Repeat(`"`, 32<<10)
	for i := range 32 {
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		metadata := object["metadata"].(map[string]any)
		metadata["name"], metadata["uid"] = fmt.Sprintf("large-%d", i), fmt.Sprintf("0000-%d", i)
		metadata["annotations"] = map[string]any{"x/y": base64.StdEncoding.EncodeToString(noise) + quotes}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Create(t.Context(), store.Record{Name: metadata["name"].(string), Owner: admin.Owner, Created: admin.Created, Digest: metadata["uid"].(string), Object: text}); err != nil {
			t.Fatal(err)
		}
	}
	for what, row := range map[string]struct {
		query    string
		balancer bool
		status   int
	}{
		"all in parts":          {"", false, 413},
		"a small page":          {"limit=3", false, 200},
		"a page for a balancer": {"limit=6", true, 413},
		"initial events":        {"watch=true&resourceVersion=0", false, 413},
	} {
		log.Reset()
		e := ask("GET", "", row.query, "")
		if row.balancer {
			e.HTTPMethod, e.Path, e.Context.HTTP.Method = "GET", e.RawPath, ""
			e.Query, e.Context.ELB = map[string]string{"limit": "6"}, &struct{}{}
		}
		found, err := s.handle(invoked(t), e)
		if err != nil {
			t.Fatal(err)
		}
		a := found.(*answer)
		if a.StatusCode != row.status || row.status == 413 && (!strings.Contains(a.Body, `"reason":"RequestEntityTooLarge"`) || a.Headers["Content-Encoding"] != "") {
			t.Errorf("%s: %d, %d bytes: %.300s", what, a.StatusCode, len(a.Body), a.Body)
		}
		refused := lines(t, &log)
		refused = slices.DeleteFunc(refused, func(line map[string]any) bool { return line["msg"] != "request" })
		if row.status == 413 && (len(refused) != 1 || refused[0]["status"] != 413.0 || refused[0]["requestID"] != a.Headers["X-Request-Id"]) {
			t.Errorf("%s: logged %.600v", what, refused)
		}
	}
}

// With PLATFORM_METRICS=emf, each request is a line from which CloudWatch makes metrics. Without, there is none.
func TestEMF(t *testing.T) {
	t.Parallel()
	type line struct {
		AWS *struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
		Function, Verb               string
		Status                       int
		Requests, Refusals, Failures *float64
		Duration                     *float64
	}
	for what, row := range map[string]struct {
		metrics, below string
		want           string
	}{
		"served":  {"emf", "/admin", "get 200 1 0 0"},
		"refused": {"emf", "/nothing", "get 404 1 1 0"},
		"none":    {"none", "/admin", ""},
	} {
		var log bytes.Buffer
		s := open(t, "getaccesskey", &log, map[string]string{"PLATFORM_METRICS": row.metrics})
		s.whole1(t, ask("GET", row.below, "", ""))
		metrics := ""
		for text := range strings.Lines(log.String()) {
			var logLine line
			if err := json.Unmarshal([]byte(text), &logLine); err != nil || logLine.AWS == nil {
				continue
			}
			metrics += fmt.Sprint(logLine.Verb, " ", logLine.Status, " ", *logLine.Requests, " ", *logLine.Refusals, " ", *logLine.Failures)
			rules := logLine.AWS.CloudWatchMetrics
			if logLine.Function != "getaccesskey" || logLine.AWS.Timestamp == 0 || len(rules) != 1 || rules[0].Namespace != "ManagementPlatform" ||
				!reflect.DeepEqual(rules[0].Dimensions, [][]string{{"function"}}) || len(rules[0].Metrics) != 4 ||
				rules[0].Metrics[3] != struct{ Name, Unit string }{"Duration", "Milliseconds"} || logLine.Duration == nil {
				t.Errorf("%s: %s", what, text)
			}
		}
		if metrics != row.want {
			t.Errorf("%s: found %q, want %q", what, metrics, row.want)
		}
	}
	var log bytes.Buffer
	metrics := newEMF(&log)
	metrics.Run("expirekeys", "failed")
	metrics.Refused("requests")
	metrics.Configuration("loaded", 1)
	metrics.Configuration("refused", 0)
	want := []string{`"function":"expirekeys"`, `"FailedRuns":1`, `"limit":"requests"`, `"Limited":1`, `"outcome":"refused"`, `"ConfigurationFailures":1`}
	for _, part := range want {
		if !strings.Contains(log.String(), part) {
			t.Errorf("%s is missing from %s", part, &log)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 3 {
		t.Errorf("%d lines: %s", lines, &log)
	}
}

// The output of the library becomes log lines. An error that is logged already does not appear in the log twice.
func TestLibraryLog(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"errorMessage":"EOF","errorType":"errorString"}` + "\n":                                    "the event cannot be read: EOF",
		`{"errorMessage":"x","errorType":"string","stackTrace":[{"path":"a","line":1,"label":"b"}]}`: `"stackTrace"`,
		"failed to get the next event\n":                                                             "failed to get the next event",
		`{"errorMessage":"the run failed","errorType":"Failure"}` + "\n":                             "",
	} {
		var log bytes.Buffer
		s := open(t, "getaccesskey", &log, nil)
		if n, err := (libraryLog{s}).Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: wrote %d, %v", text, n, err)
		}
		logged := lines(t, &log)
		if want == "" {
			if len(logged) != 0 {
				t.Errorf("%q: logged %v", text, logged)
			}
			continue
		}
		if len(logged) != 1 || logged[0]["function"] != "getaccesskey" || !strings.Contains(fmt.Sprint(logged[0]["cause"]), strings.Trim(want, `"`)) {
			t.Errorf("%q: logged %v", text, logged)
		}
	}
	var log bytes.Buffer
	s := open(t, "getaccesskey", &log, nil)
	_, err := s.handle(invoked(t), &event{})
	if logged := lines(t, &log); err == nil || len(logged) != 1 || logged[0]["invocation"] != "c6af9ac6-7b61-11e6-9a41-93e8deadbeef" {
		t.Errorf("%v; logged %v", err, logged)
	}
}

func TestBase64Body(t *testing.T) {
	t.Parallel()
	s := open(t, "createaccesskey", io.Discard, nil)
	e := ask("POST", "", "", base64.StdEncoding.EncodeToString([]byte("metadata:\n  name: ci\n")))
	e.IsBase64Encoded = true
	if a := s.whole1(t, e); a.StatusCode != 201 || !strings.Contains(a.Body, `"name":"ci"`) {
		t.Errorf("%+v", a)
	}
	e.Body = "?"
	if a := s.whole1(t, e); a.StatusCode != 400 || !strings.Contains(a.Body, `"kind":"Status"`) || !strings.Contains(a.Body, "isBase64Encoded") {
		t.Errorf("%+v", a)
	}
	if a := s.whole1(t, ask("GE T", "", "", "")); a.StatusCode != 400 || !strings.Contains(a.Body, "GE T") {
		t.Errorf("%+v", a)
	}
	// The frame refuses the largest body that Lambda passes on.
	large := ask("POST", "", "", strings.Repeat("x", 5<<20))
	if a := s.whole1(t, large); a.StatusCode != 413 || !strings.Contains(a.Body, `"reason":"RequestEntityTooLarge"`) {
		t.Errorf("%+v", a)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := open(t, "expirekeys", &log, nil)
	for _, source := range []string{"aws.events", "aws.scheduler"} {
		log.Reset()
		text := fmt.Sprintf(`{"version":"0","source":%q,"detail-type":"Scheduled Event","detail":{}}`, source)
		if done, err := s.handle(t.Context(), parse(t, text)); done != nil || err != nil || !strings.Contains(log.String(), "scheduled run") {
			t.Errorf("%s: %v, %v: %s", source, done, err, &log)
		}
	}
	for _, e := range []*event{parse(t, `{"hello":"world"}`), nil} {
		if _, err := s.handle(t.Context(), e); err == nil {
			t.Error("any event runs the schedule")
		}
	}
	if _, err := open(t, "whoami", io.Discard, nil).handle(t.Context(), &event{Source: "aws.events"}); err == nil {
		t.Error("a function without a schedule runs one")
	}
	// The platform learns that a run failed.
	away, err := newShell(catalogFunction(t, "expirekeys"), func(name string) string {
		return map[string]string{"PLATFORM_REDIS_URL": "redis://127.0.0.1:1"}[name]
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := away.handle(t.Context(), &event{Source: "aws.events"}); err == nil {
		t.Error("a run without state has no error")
	}
}

// If answers cannot be streamed, a watch ends after its window, with a bookmark from which it can be resumed.
func TestWatchInOnePiece(t *testing.T) {
	t.Parallel()
	for what, variables := range map[string]map[string]string{
		"buffered": {"PLATFORM_WATCH_WINDOW": "50ms"},
		// An HTTP API cannot stream, whatever the setting says.
		"streaming": {"PLATFORM_WATCH_WINDOW": "50ms", "PLATFORM_STREAM": "true"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := open(t, "listaccesskeys", io.Discard, variables).whole1(t, ask("GET", "", "watch=true&allowWatchBookmarks=true", ""))
			if events := strings.Split(strings.TrimSpace(a.Body), "\n"); a.StatusCode != 200 || len(events) < 2 || !strings.Contains(events[len(events)-1], "BOOKMARK") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// A watch ends before Lambda's time limit, and before the process ends. A busy machine may miss the half second between
// the two now and then, but not five times.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	s := open(t, "listaccesskeys", io.Discard, map[string]string{"PLATFORM_WATCH_WINDOW": "1h"})
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(attempt)*time.Second)
		response, err := s.handle(ctx, ask("GET", "", "watch=true&allowWatchBookmarks=true", ""))
		ended := ctx.Err()
		cancel()
		if err == nil && ended == nil && strings.Contains(response.(*answer).Body, "BOOKMARK") {
			break
		}
		if attempt == 5 {
			t.Fatalf("%+v, %v, %v", response, err, ended)
		}
	}
	s.drain()
	if a := s.whole1(t, ask("GET", "", "watch=true", "")); a.StatusCode != 200 {
		t.Errorf("%+v", a)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		29 * time.Second: 28 * time.Second, 10 * time.Second: 9 * time.Second, time.Second: 900 * time.Millisecond, 0: 0, -time.Second: -900 * time.Millisecond,
	} {
		if got := requestTime(left); got != want {
			t.Errorf("of %s it allows %s, want %s", left, got, want)
		}
	}
	s := open(t, "getaccesskey", io.Discard, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	found, err := s.handle(ctx, ask("GET", "/admin", "", ""))
	if err != nil || found.(*answer).StatusCode != http.StatusGatewayTimeout {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		handler http.HandlerFunc
		status  string
		broken  bool
	}{
		"before": {func(http.ResponseWriter, *http.Request) { panic("lost hunter2") }, `"statusCode":500`, false},
		"after": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("half"))
			panic("lost hunter2")
		}, `"statusCode":200`, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			s := open(t, "getaccesskey", &log, nil)
			to, request := s.openServed(t), httptest.NewRequest("GET", "/", nil)
			text, err := io.ReadAll(s.flow(&event{}, functionURL, request, to, row.handler))
			if !strings.HasPrefix(string(text), "{"+row.status) || (err != nil) != row.broken || strings.Contains(string(text), "hunter2") {
				t.Errorf("sent %q, %v", text, err)
			}
			if !strings.Contains(log.String(), "panic") {
				t.Errorf("logged %s", &log)
			}
			if serve(newBuffer(functionURL), request, row.handler) == nil {
				t.Error("the handler came to its end")
			}
		})
	}
}

// A reader that closes a stream early ends it.
func TestStreamClosed(t *testing.T) {
	t.Parallel()
	s := open(t, "getaccesskey", io.Discard, nil)
	ended := make(chan error, 1)
	body := s.flow(&event{}, functionURL, httptest.NewRequest("GET", "/", nil), s.openServed(t), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		_, err := w.Write([]byte("x"))
		ended <- err
	}))
	body.Close()
	if err := <-ended; err == nil {
		t.Error("a write to a closed stream succeeded")
	}
}

// A streamed answer of a REST API has all values of its headers.
func TestStreamedHeaders(t *testing.T) {
	t.Parallel()
	s := open(t, "getaccesskey", io.Discard, nil)
	text, err := io.ReadAll(s.flow(&event{}, gatewayV1, httptest.NewRequest("GET", "/", nil), s.openServed(t), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Warning"] = []string{"a", "b"}
	})))
	if want := `{"statusCode":200,"multiValueHeaders":{"Warning":["a","b"]}}` + strings.Repeat("\x00", 8); string(text) != want || err != nil {
		t.Errorf("sent %q, %v", text, err)
	}
}

// The gateways of the tests make events of every kind, from which the same request is read.
func TestGateways(t *testing.T) {
	t.Parallel()
	for gateway, want := range map[lambdatest.Gateway]kind{
		lambdatest.HTTPAPI: gatewayV2, lambdatest.FunctionURL: functionURL, lambdatest.RESTAPI: gatewayV1,
		lambdatest.Balancer: balancer, lambdatest.BalancerMulti: balancer,
	} {
		sent := httptest.NewRequestWithContext(t.Context(), "PATCH", "http://api.example/apis/a%20b?labelSelector=a%3Db%2Cc&limit=%zz", http.NoBody)
		sent.Header.Set("Content-Type", "application/merge-patch+json")
		sent.Header.Set("Cookie", "a=1; b=2")
		text, err := gateway.Event(sent, []byte("{\xff}"), "1")
		if err != nil {
			t.Fatal(err)
		}
		e := parse(t, string(text))
		if e.kind() != want {
			t.Errorf("gateway %d makes an event of the kind %d, want %d", gateway, e.kind(), want)
		}
		r, err := e.request(t.Context(), e.kind(), "")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "{\xff}" || r.Method != sent.Method || r.URL.Path != sent.URL.Path || r.Host != sent.Host ||
			r.URL.Query().Get("labelSelector") != "a=b,c" || r.Header.Get("Cookie") != "a=1; b=2" {
			t.Errorf("gateway %d: %s %s %s %v %q, %v", gateway, r.Method, r.Host, r.URL, r.Header, body, err)
		}
	}
}
