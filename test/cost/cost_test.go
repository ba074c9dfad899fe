// Package cost_test has fuzz targets that look for requests that cost the serving process too much CPU for their size.
package cost_test

import (
	"encoding/base64"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/settings"
)

const (
	// size is the size of the body or of the header of a request, in bytes.
	size = 60 << 10
	// most is the maximum CPU time of a request of that size.
	most = 200 * time.Millisecond
	// slack is the factor by which cases may exceed this time outside of fuzzing, because other work on the machine makes the same instructions
	// slower. Quadratic work exceeds it.
	slack = 5
	// attempts is the number of times that a costly request is repeated, because the garbage collector may have run for other requests.
	attempts = 4
)

// budget returns the CPU time of one request.
func budget() time.Duration {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if given := flag.Lookup(name); given != nil && given.Value.String() != "" && given.Value.String() != "false" {
			return most
		}
	}
	return slack * most
}

// world serves the whole catalog over an embedded state.
type world struct {
	t       testing.TB
	handler http.Handler
	routes  []route
}

// route is an endpoint that a request can be sent to.
type route struct{ method, path string }

func newWorld(t testing.TB) *world {
	t.Helper()
	state := processtest.New(t)
	server, err := process.Open(state.Lookup(map[string]string{
		settings.LogLevel: "error", settings.Issuer: "https://issuer.example", settings.EncryptionKey: base64.StdEncoding.EncodeToString(make([]byte, 32)),
	}), process.Shell{Log: io.Discard, Streams: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, handler: server.Mount(catalog.Functions...)}
	for _, f := range catalog.Functions {
		for _, endpoint := range f.Endpoints {
			path := strings.NewReplacer("{namespace}", "p-x", "{name}", "admin").Replace(endpoint.Path)
			if one := (route{endpoint.Method, path}); endpoint.Verb != "watch" && !slices.Contains(w.routes, one) {
				w.routes = append(w.routes, one)
			}
		}
	}
	return w
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// pattern describes a long text: its beginning, its repeated part and its end. Each # becomes a number that differs in each repetition.
type pattern struct{ before, unit, after string }

// text returns the text of a pattern with about as many bytes.
func (p pattern) text(size int) string {
	var text strings.Builder
	text.WriteString(p.before[:min(len(p.before), size)])
	for i := 0; p.unit != "" && text.Len()+len(p.unit)+len(p.after) < size; i++ {
		// The prime number makes the order of the names differ from the order of the repetitions.
		text.WriteString(strings.ReplaceAll(p.unit, "#", strconv.Itoa(i*7919%100_003)))
	}
	text.WriteString(p.after[:min(len(p.after), max(0, size-text.Len()))])
	return text.String()
}

// check sends a request and fails the test if it costs too much or if the server fails.
func (w *world) check(t *testing.T, request func() *http.Request) {
	t.Helper()
	limit := budget()
	var cost time.Duration
	var answer *httptest.ResponseRecorder
	for range attempts {
		r := request()
		answer = httptest.NewRecorder()
		runtime.GC()
		before := cpuTime(t)
		w.handler.ServeHTTP(answer, r)
		if cost = cpuTime(t) - before; cost <= limit {
			break
		}
	}
	if cost > limit {
		t.Errorf("%s of CPU: answered %d %.300s", cost, answer.Code, answer.Body)
	}
	if answer.Code == http.StatusInternalServerError {
		t.Errorf("answered %d %.300s", answer.Code, answer.Body)
	}
}

func (w *world) request(route route, query string, body string) *http.Request {
	r := httptest.NewRequest(route.method, "/", strings.NewReader(body))
	r.URL = &url.URL{Path: frame.BasePath + route.path, RawQuery: query}
	r.Header.Set("Authorization", "Bearer "+processtest.Admin)
	return r
}

// media are the media types of bodies.
var media = []string{
	"application/json", "application/yaml", "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml",
	"application/vnd.kubernetes.protobuf",
}

// Positions in media.
const (
	inJSON = iota
	inYAML
	inJSONPatch
	inMergePatch
	inApply
	inProtobuf
)

// bodies are costly bodies by their media types.
var bodies = map[int][]pattern{
	inJSON: {
		{`{"metadata":{"finalizers":[1`, `,1`, `]}}`},
		{`{"metadata":{"finalizers":["a.b/c"`, `,"a.b/#"`, `]}}`},
		{`{"metadata":{"finalizers":["a.b/c"`, `,"#/-"`, `]}}`},
		{`{"metadata":{"labels":{"x":""`, `,"x#":""`, `}}}`},
		{`{"metadata":{"labels":{"x":""`, `,"-#":"-"`, `}}}`},
		{`{"metadata":{"annotations":{"x":""`, `,"x#":""`, `}}}`},
		{`{"metadata":{"annotations":{"x":""`, `,"-#":""`, `}}}`},
		{`{"metadata":{"ownerReferences":[{}`, `,{"apiVersion":"v1","kind":"x","name":"x","uid":"#","controller":true}`, `]}}`},
		{`{"metadata":{"managedFields":[{}`, `,{"manager":"m#","operation":"Update","apiVersion":"management.platform.sh/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x#":{}}}}`, `]}}`},
		{`{"metadata":{"name":"`, `x`, `"}}`},
		{`{"x":1`, `,"x#":1`, `}`},
		{`{"spec":{"scope":{"rules":[{}`, `,{"verbs":["get"]}`, `]}}}`},
		{`{"spec":{"scope":{"rules":[{}`, `,{"verbs":["-#"],"namespaces":["-#"]}`, `]}}}`},
		{`{"spec":{"scope":{"rules":[{"resources":[{}`, `,{"group":"-#","resources":["x-"]}`, `]}]}}}`},
		{`{"spec":{"groups":["a"`, `,"system:#"`, `]}}`},
		{`{"spec":{"description":"`, `\u0041`, `"}}`},
		{`{"spec":{"ttl":`, `9`, `}}`},
		{`{"spec":{"x":`, `[`, ``},
		{`{"spec":{"user":"a","resourceAttributes":{},"extra":{"management.platform.sh/scope":["{\"rules\":[{}`, `,{}`, `]}"]}}}`},
		{`{"spec":{"patches":[{}`, `,{"path":"a.b#","value":1}`, `]}}`},
		{`{"status":{"oidc":{"clients":[{}`, `,{"clientId":"#","redirectURIs":["x"]}`, `]}}}`},
		{`{"status":{"auth":{"groupsFilters":["a"`, `,"(a{1000}){9}"`, `]}}}`},
		{`{"status":{"auth":{"groupsFilters":["`, `a{1000}`, `"]}}}`},
		{`{"status":{"auth":{"customHttpHeaders":{"a":"b"`, `,"x# ":"y"`, `}}}}`},
		{`{"status":{"platformHost":"`, `${A}`, `"}}`},
		{`{"status":{"platformHost":"a://b?`, `key=#&`, `"}}`},
		{`{"preconditions":{"uid":"`, `x`, `"}}`},
	},
	inYAML: {
		{"a: [1", ",1", "]"},
		{"", "[", ""},
		{"", "- ", "a"},
		{"", "? ", "a"},
		{"", "a#: 1\n", ""},
		{"", "a: 1\n", ""},
		{"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: [*a", ",*a", "]"},
		{"a: &a {b: 1,c: 2}\nd: {<<: *a", ",<<: *a", "}"},
		{"a: &a [1]\nb: &b [*a,*a]\nc: [*b", ",[*b,*b]", "]"},
		{"", "#\n", "a: 1"},
		{"", "%TAG !a#! b\n", "---\na: 1"},
		{"a: [1", ",&a# x", "]"},
		{"", "---\n", ""},
		{"a: >\n", " x\n\n", ""},
		{"a: \"", "\\n", "\""},
		{"a: ", "x  ", ""},
		{"a: !!binary ", "AAAA", ""},
		{"a: [1", ",1:1:1.5", "]"},
		{"metadata:\n  annotations:\n", "    x#: a\n", ""},
	},
	inJSONPatch: {
		{`[{"op":"test","path":"/kind","value":"OwnedAccessKey"}`, `,{"op":"test","path":"/kind","value":"OwnedAccessKey"}`, `]`},
		{`[{"op":"add","path":"/metadata/finalizers","value":["a"` + strings.Repeat(`,""`, 6000) + `]}`, `,{"op":"add","path":"/metadata/finalizers/0","value":""}`, `]`},
		{`[{"op":"add","path":"/metadata/finalizers","value":["a"` + strings.Repeat(`,""`, 6000) + `]}`, `,{"op":"remove","path":"/metadata/finalizers/0"}`, `]`},
		{`[{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 20_000) + `"}}`, `,{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/b#"}`, `]`},
		{`[{"op":"add","path":"/metadata/annotations/a","value":"b"}`, `,{"op":"add","path":"/metadata/annotations/b#","value":""}`, `]`},
		{`[{"op":"move","from":"/spec","path":"/s"}`, `,{"op":"move","from":"/s","path":"/t"},{"op":"move","from":"/t","path":"/s"}`, `]`},
		{`[{"op":"add","path":"/spec`, `/a`, `","value":1}]`},
		{`[{"op":"test","path":"","value":{}}`, `,{"op":"test","path":"","value":{}}`, `]`},
		{`[{"op":"frob`, `x`, `"}]`},
	},
	inMergePatch: {
		{`{"` + strings.Repeat("k", 3000) + `":{"a":1`, `,"a":1`, `}}`},
		{`{"metadata":{"annotations":{"x":"y"`, `,"x#":"y"`, `}}}`},
		{`{"metadata":{"managedFields":[{}`, `,{"manager":"m#","operation":"Apply","apiVersion":"management.platform.sh/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x#":{}}}}`, `]}}`},
		{`{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"management.platform.sh/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x":{}`, `,"f:x#":{}`, `}}}]}}`},
		{`{"metadata":{"annotations":` + strings.Repeat("[", 90) + `"`, `x`, `"` + strings.Repeat("]", 90) + `}}`},
		{`{"metadata":{"annotations":[1`, `,` + strings.Repeat("[", 90) + strings.Repeat("]", 90), `]}}`},
	},
	inApply: {
		{applied + `"metadata":{"name":"new","finalizers":["a.b/x"`, `,"a.b/x#"`, `]}}`},
		{applied + `"metadata":{"name":"new","labels":{"x":""`, `,"x#":""`, `}}}`},
		{applied + `"metadata":{"name":"new","annotations":{"x":""`, `,"x#":""`, `}}}`},
		{applied + `"metadata":{"name":"new","ownerReferences":[{"apiVersion":"v1","kind":"x","name":"x","uid":"u"}`, `,{"apiVersion":"v1","kind":"x","name":"x","uid":"#"}`, `]}}`},
		{applied + `"metadata":{"name":"admin"},"spec":{"scope":{"projects":[{"project":"x"}`, `,{"project":"x#"}`, `]}}}`},
		{"apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  annotations:\n", "    x#: a\n", ""},
	},
	inProtobuf: {
		{"k8s\x00", "\x12\x00", ""},
		{"k8s\x00\n", "\n", ""},
	},
}

const applied = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey",`

// FuzzBody: a request with a body of at most 64 KiB uses little CPU on every endpoint.
func FuzzBody(f *testing.F) {
	w := newWorld(f)
	var routes []route
	for _, each := range w.routes {
		if each.method != http.MethodGet && each.method != http.MethodHead {
			routes = append(routes, each)
		}
	}
	// A body that suits no endpoint is a case for every endpoint with its method.
	for kind, patterns := range bodies {
		for _, each := range patterns {
			for i, to := range routes {
				if isPatch := kind == inJSONPatch || kind == inMergePatch || kind == inApply; isPatch == (to.method == http.MethodPatch) && !elsewhere(to, each) {
					f.Add(uint16(i), uint8(kind), "dryRun=All&fieldManager=x&fieldValidation=Strict", each.before, each.unit, each.after)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, to uint16, kind uint8, query, before, unit, after string) {
		body := pattern{before, unit, after}.text(size)
		w.check(t, func() *http.Request {
			r := w.request(routes[int(to)%len(routes)], query[:min(len(query), 1<<10)], body)
			r.Header.Set("Content-Type", media[int(kind)%len(media)])
			return r
		})
	})
}

// elsewhere reports whether a case is for another endpoint. Cases of the metadata are for access keys, instances and the
// configuration, which stand for all kinds.
func elsewhere(to route, of pattern) bool {
	for part, resource := range map[string]string{
		`{"status":{`: "/configs/", `{"spec":{"patches"`: "/syncpatchevaluations", `{"spec":{"user":"a","resourceAttributes"`: "reviews", `{"preconditions"`: "",
	} {
		if strings.HasPrefix(of.before, part) {
			return !strings.Contains(to.path, resource) || resource == "" && to.method != http.MethodDelete
		}
	}
	return !strings.HasSuffix(to.path, "/ownedaccesskeys") && !strings.HasSuffix(to.path, "/ownedaccesskeys/admin") &&
		!strings.HasSuffix(to.path, "/selves") && !strings.Contains(to.path, "/virtualclusterinstances")
}

// headers are the header fields that requests of FuzzHeader have, after the query of the URL and its path.
var headers = []string{
	"query", "path", "Accept", "Content-Type", "Authorization", "If-None-Match", "Idempotency-Key", "User-Agent", "Traceparent", "Tracestate", "X-Request-Id",
	"Impersonate-User", "X-Forwarded-For", "Forwarded", "Accept-Encoding", "Cookie",
}

// FuzzHeader: a request whose URL or header is long uses little CPU, with a credential and without one.
func FuzzHeader(f *testing.F) {
	w := newWorld(f)
	for _, seed := range []struct {
		field string
		pattern
	}{
		{"query", pattern{"labelSelector=a+in+(-", ",-#", ")"}},
		{"query", pattern{"labelSelector=a", ",a#", ""}},
		{"query", pattern{"labelSelector=a", "(", ""}},
		{"query", pattern{"labelSelector=a-", ",a-#-", ""}},
		{"query", pattern{"fieldSelector=a%3Db", ",a#%3Db", ""}},
		{"query", pattern{"fieldSelector=metadata.name%3Da", ",metadata.name%3Da", ""}},
		{"query", pattern{"a", "&a#", ""}},
		{"query", pattern{"dryRun=x", "&dryRun=x#", ""}},
		{"query", pattern{"fieldManager=", "%09", ""}},
		{"query", pattern{"continue=", "A", ""}},
		{"query", pattern{"timeout=1s", "1s", ""}},
		{"path", pattern{"", "/a", ""}},
		{"path", pattern{"/apis/management.platform.sh/v1/ownedaccesskeys/", "a", ""}},
		{"Accept", pattern{"a/b", ",a/b;q=0.#", ""}},
		{"Accept", pattern{"application/json", ";a#=b", ""}},
		{"Accept", pattern{"application/json", ";a*#=b", ""}},
		{"Accept", pattern{"application/json;a=\"", "\\a", "\""}},
		{"Content-Type", pattern{"application/json", ";a#=b", ""}},
		{"Content-Type", pattern{"application/json", ";a*#=b", ""}},
		{"Authorization", pattern{"Bearer ", "x", ""}},
		{"Authorization", pattern{"Bearer ", "a.", ""}},
		{"Authorization", pattern{"Bearer", " ", "x"}},
		{"If-None-Match", pattern{"a", ",W/\"a#\"", ""}},
		{"Idempotency-Key", pattern{"", "x", ""}},
		{"User-Agent", pattern{"", "\u00e4", "/x"}},
		{"Tracestate", pattern{"a=b", ",a#=b", ""}},
		{"Impersonate-User", pattern{"", "x", ""}},
		{"X-Forwarded-For", pattern{"1.2.3.4", ", 1.2.3.4", ""}},
		{"Accept-Encoding", pattern{"gzip", ",gzip;q=0.#", ""}},
	} {
		for i, to := range w.routes {
			if strings.HasSuffix(to.path, "/ownedaccesskeys") || strings.HasSuffix(to.path, "/admin") || strings.HasSuffix(to.path, "/jwks") {
				f.Add(uint16(i), uint8(slices.Index(headers, seed.field)), true, seed.before, seed.unit, seed.after)
				f.Add(uint16(i), uint8(slices.Index(headers, seed.field)), false, seed.before, seed.unit, seed.after)
			}
		}
	}
	f.Fuzz(func(t *testing.T, to uint16, field uint8, known bool, before, unit, after string) {
		name, value := headers[int(field)%len(headers)], pattern{before, unit, after}.text(size)
		w.check(t, func() *http.Request {
			r := w.request(w.routes[int(to)%len(w.routes)], "", "{}")
			if !known {
				r.Header.Del("Authorization")
			}
			switch name {
			case "query":
				r.URL.RawQuery = value
			case "path":
				r.URL.Path = "/" + value
			case "Tracestate":
				r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
				fallthrough
			default:
				r.Header.Set(name, value)
			}
			return r
		})
	})
}
