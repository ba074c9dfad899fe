package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// class is one class of input: requests that cost, or hold, the most for their size.
type class struct {
	name string
	// prepare makes the objects that the requests need. Nil: none.
	prepare func(context.Context, *attack) error
	// clients is the number of clients that belong to the class alone. 0: the class shares the attackers.
	clients int
	// fire sends request n of an attacker. It returns when the context ends.
	fire func(ctx context.Context, a *attack, attacker, n int)
}

const (
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
	yamlText   = "application/yaml"
)

// ownObject stands for the name of the object that belongs to the sender of a request.
const ownObject = "{own}"

var classes = []class{
	{name: "faults", fire: shots(faults)},
	{name: "depth", fire: shots(depth)},
	{name: "headers", fire: shots(headers)},
	{name: "expressions", fire: shots(expressions)},
	{name: "patterns", fire: shots(patterns)},
	{name: "patches", fire: shots(patches)},
	{name: "annotations", prepare: hoard, fire: shots(annotations)},
	{name: "tokens", prepare: issue, fire: shots(hoardedTokens)},
	{name: "watches", clients: 300, fire: watch},
	{name: "slow-bodies", clients: 64, fire: slowBody},
	{name: "slow-readers", prepare: hoard, clients: 32, fire: slowReader},
	{name: "selectors", fire: shots(selectors)},
	{name: "json-patches", fire: shots(jsonPatches)},
	{name: "applies", fire: shots(applies)},
	{name: "idempotency", fire: idempotentShots},
	{name: "authentication", fire: authenticate},
	{name: "ordinary", fire: shots(ordinaryShots)},
}

func classNames() []string {
	names := make([]string, len(classes))
	for i, one := range classes {
		names[i] = one.name
	}
	return names
}

// shots makes a class of fixed requests. The requests are made at their first use. Each attacker has a key of its own, or none.
func shots(list func() []shot) func(context.Context, *attack, int, int) {
	made := sync.OnceValue(list)
	return func(ctx context.Context, a *attack, attacker, n int) {
		all := made()
		a.shoot(ctx, all[(attacker*5+n)%len(all)], attacker)
	}
}

// shoot sends one request of an attacker and counts the answer.
func (a *attack) shoot(ctx context.Context, item shot, attacker int) {
	from := a.tenants[attacker%len(a.tenants)]
	switch item.bearer {
	case "":
		item.bearer = from.Key
	case hoarders:
		item.bearer = a.hoarder
	case nobody:
		item.bearer = ""
	}
	item.path = strings.ReplaceAll(item.path, ownObject, from.Object)
	var text prefixWriter
	status, err := a.site.send(ctx, item, &text)
	if ctx.Err() == nil {
		a.note(item.method+" "+item.path[:min(len(item.path), 80)], status, text.String())
	}
	if err != nil && ctx.Err() == nil {
		// A connection that was cut, or could not be made.
		pause(ctx, 10*time.Millisecond)
	}
}

// The keys that a request can name instead of the key of its attacker.
const (
	hoarders = "the key of the tenant with large objects"
	nobody   = "no key"
)

// prefixWriter is a writer that keeps the beginning of its input.
type prefixWriter struct{ bytes.Buffer }

func (s *prefixWriter) Write(text []byte) (int, error) {
	if left := 400 - s.Len(); left > 0 {
		_, _ = s.Buffer.Write(text[:min(left, len(text))])
	}
	return len(text), nil
}

// pause waits, at most until the context ends.
func pause(ctx context.Context, span time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(span):
	}
}

// repeat writes a text a number of times with commas. A %d in it is the number of the repetition.
func repeat(count int, text string) string {
	var all strings.Builder
	for i := range count {
		if i > 0 {
			all.WriteByte(',')
		}
		if strings.Contains(text, "%d") {
			_, _ = fmt.Fprintf(&all, text, i)
		} else {
			all.WriteString(text)
		}
	}
	return all.String()
}

// to sends bodies to each of some endpoints with POST.
func to(kind string, paths []string, bodies ...string) []shot {
	var all []shot
	for _, body := range bodies {
		for _, path := range paths {
			all = append(all, shot{method: http.MethodPost, path: path, kind: kind, body: body})
		}
	}
	return all
}

// faults are bodies with very many mistakes.
func faults() []shot {
	all := to("", []string{selves, keys, tokens, evaluations},
		`{"metadata":{"finalizers":[`+repeat(10_000, "1")+`]}}`,
		`{"metadata":{"finalizers":[`+repeat(60_000, "1")+`]}}`,
		`{"metadata":{"finalizers":[`+repeat(1_500_000, "1")+`]}}`,
		`{"metadata":{"labels":{`+repeat(5_000, `"_/%d":1`)+`}}}`,
		`{"metadata":{"ownerReferences":[`+repeat(5_000, `{"kind":1,"apiVersion":{}}`)+`]}}`,
		`{"metadata":{"managedFields":[`+repeat(5_000, `{"fieldsV1":{"f:a":{}},"time":1}`)+`]}}`,
		`{`+repeat(9_000, `"f%d":1`)+`}`,
		`{"spec":{`+repeat(9_000, `"a":1`)+`}}`,
	)
	return append(all, to("", []string{keys + "?fieldValidation=Strict"},
		`{"spec":{`+repeat(9_000, `"f%d":1`)+`}}`,
		`{"spec":{"scope":{"rules":[`+repeat(9_000, `{"verbs":[""],"x":1}`)+`]}}}`,
		`{"spec":{"scope":{"projects":[`+repeat(9_000, `{"project":"_%d"}`)+`]}}}`,
		`{"metadata":{"labels":{`+repeat(9_000, `"_%d":"_"`)+`},"finalizers":[`+repeat(9_000, `"_%d"`)+`]}}`,
	)...)
}

// depth are bodies with very many levels, or with aliases that stand for many levels.
func depth() []shot {
	var anchors strings.Builder
	anchors.WriteString("a0: &a0 [" + repeat(10, "x") + "]\n")
	for i := range 9 {
		_, _ = fmt.Fprintf(&anchors, "a%d: &a%d [%s]\n", i+1, i+1, repeat(10, fmt.Sprintf("*a%d", i)))
	}
	var block strings.Builder
	for i := range 1_000 {
		block.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return append(
		to("", []string{selves, keys, evaluations},
			strings.Repeat("[", 1_000_000), strings.Repeat(`{"a":`, 500_000),
			`{"spec":{"object":`+strings.Repeat(`{"a":`, 90)+"1"+strings.Repeat("}", 90)+`}}`,
		),
		to(yamlText, []string{selves, keys},
			strings.Repeat("[", 100_000), strings.Repeat("{a: ", 50_000), strings.Repeat("- ", 100_000), strings.Repeat("? ", 50_000), anchors.String(), block.String(),
			"a: &a ["+repeat(1_000, "x")+"]\nb: ["+repeat(1_000, "*a")+"]\n",
			strings.Repeat("&a ", 50_000)+"x", strings.Repeat("#\n", 500_000),
		)...,
	)
}

// headers are requests with large headers, with and without a key.
func headers() []shot {
	var rising strings.Builder
	for i := range 5_000 {
		_, _ = fmt.Fprintf(&rising, "a/b;q=0.%04d,", i)
	}
	var all []shot
	for _, path := range []string{"/openid/v1/jwks", keys, keys + "/" + ownObject} {
		for _, header := range []map[string]string{
			{"Accept": rising.String()[:56<<10]},
			{"Accept": rising.String()[:8<<10]},
			{"Accept": strings.Repeat("*/*,", 2_000)},
			{"Accept": "a/b" + strings.Repeat(";a=b", 2_000)},
			{"Authorization": "Bearer " + strings.Repeat("a", 56<<10)},
			{"Authorization": "Bearer " + strings.Repeat("a.", 28<<10)},
			{"Traceparent": "00-" + strings.Repeat("1", 50<<10), "Tracestate": strings.Repeat("a=b,", 12<<10)},
			{"X-Forwarded-For": strings.Repeat("10.0.0.1,", 5_000)},
			{"Cookie": strings.Repeat("a=b;", 10_000)},
			{"Accept-Encoding": strings.Repeat("gzip;q=0.1,", 5_000)},
		} {
			all = append(all, shot{path: path, header: header}, shot{path: path, header: header, bearer: nobody})
		}
	}
	return append(all,
		shot{path: keys + "?" + strings.Repeat("a=b&", 12_000), bearer: nobody},
		shot{path: keys + "?" + strings.Repeat("%41;", 12_000)},
		shot{path: strings.Repeat("/a", 20_000), bearer: nobody},
		shot{path: keys + "/" + strings.Repeat("a", 50_000)},
	)
}

// evaluationShots are evaluations of expressions, each in a request of its own.
func evaluationShots(all ...string) []shot {
	shots := make([]shot, len(all))
	for i, expression := range all {
		text, err := json.Marshal(expression)
		if err != nil {
			panic(err)
		}
		shots[i] = shot{
			method: http.MethodPost, path: evaluations,
			body: fmt.Sprintf(`{"spec":{"object":{"spec":{"a":"text"}},"patches":[{"path":"spec.a","expression":%s}]}}`, text),
		}
	}
	return shots
}

// nest puts a text within itself a number of times.
func nest(levels int, before, middle, after string) string {
	return strings.Repeat(before, levels) + middle + strings.Repeat(after, levels)
}

// expressions are expressions that cost much before they run, while they run, or by their result.
func expressions() []shot {
	return evaluationShots(
		nest(20, "(a=", "1", ")=>1"), nest(24, "(a=", "1", ")=>1"), nest(200, "(a=", "1", ")=>1"),
		nest(24, "({a=", "1", "})=>1"), nest(24, "([a=", "1", "])=>1"), nest(100, "async(", "1", ")"),
		strings.TrimSuffix(strings.Repeat("0||", 24), "||"), strings.TrimSuffix(strings.Repeat("0||", 5_000), "||"),
		strings.TrimSuffix(strings.Repeat("0??", 5_000), "??"), strings.TrimSuffix(strings.Repeat("1&&", 5_000), "&&"),
		strings.Repeat("0?0:", 4_000)+"0", nest(100, "1?", "1", ":1"), nest(2_000, "(", "1", ")"), nest(2_000, "[", "1", "]"), nest(2_000, "{a:", "1", "}"),
		nest(200, "[...", "[]", "]"), nest(1_000, "`${", "1", "}`"), strings.Repeat("!", 16_000)+"1", strings.Repeat("- ", 8_000)+"1",
		strings.Repeat("x=>", 5_000)+"1", "value"+strings.Repeat("?.a", 5_000), "value"+strings.Repeat("[0]", 5_000), strings.Repeat("1+", 8_000)+"1", strings.Repeat("1**", 5_000)+"1",
		strings.Repeat("(", 16_000), strings.Repeat("`${", 5_000), strings.Repeat("/", 16_000), strings.Repeat("\\", 16_000),
		"(() => { for (;;) {} })()", `"x".repeat(1e9)`, `(() => { let a = []; for (;;) { a.push(a.slice()) } })()`,
		`(() => { let a = "x"; for (;;) { a += a } })()`, `Array(1e9).fill(0)`, `[...Array(1e8).keys()]`, `Array(1e7).fill("x").sort()`,
		`(() => { const f = () => f(); return f() })()`, `(() => { const f = n => f(n) + f(n); return f(1) })()`,
		`"x".padEnd(1e9)`, `JSON.stringify(Array(1e7).fill({}))`, `Array(1e6).fill(Array(1e6).fill(0)).flat()`, `"a".repeat(1e6).split("").map(x => "a".repeat(1e6))`,
		`"a".repeat(9e5)`, `Array(1e5).fill({a: "a".repeat(10)})`, `"a".repeat(1e6).replaceAll("a", "$&".repeat(1e5))`, "((2n**9999n)**9999n)",
	)
}

// patterns are regular expressions that are large when compiled, or slow to match.
func patterns() []shot {
	return evaluationShots(
		"/"+strings.Repeat("a{1000}", 2_000)+"/", "/(((a{100}){100}){100}){100}/.test(value)", "/((a{30}){30})/.test(value)", "/(?:a?){1000}/.test(value)",
		"/"+strings.Repeat("(?:a|b)", 2_000)+"/.test(value)", "/"+nest(1_000, "(", "a", ")*")+"/.test(value)", "/"+strings.Repeat("[^a-z]", 2_500)+"/i.test(value)",
		`/(x+x+)+y/.test("x".repeat(1e5))`, `/(a|a)*b/.test("a".repeat(1e6))`, `/(a*)*(b*)*(c*)*$/.test("abc".repeat(1e5)+"!")`,
		`"a".repeat(1e5).match("(((a{100}){10}){1000})")`, `value.match("(".repeat(1e4) + ")".repeat(1e4))`, `value.split("a{1000}".repeat(1000))`,
		`"a".repeat(1e5).replace(/a*?$/g, "b")`, `/\w{1000}\w{1000}/u.test("é".repeat(1e5))`, `value.search("[".repeat(1e5))`,
		"["+strings.TrimSuffix(strings.Repeat("/a{900}/,", 1_500), ",")+"]", `"a".repeat(1e6).matchAll(/a/g)`, `[..."a".repeat(1e6).matchAll(/(a)(a)?/g)]`,
	)
}

// patches are large requests: many patches, long expressions, large objects, and paths that match very often.
func patches() []shot {
	evaluation := func(patches, object string) shot {
		return shot{method: http.MethodPost, path: evaluations, body: `{"spec":{"object":` + object + `,"patches":[` + patches + `]}}`}
	}
	text := func(expression string) string {
		quoted, err := json.Marshal(expression)
		if err != nil {
			panic(err)
		}
		return string(quoted)
	}
	many := `{"spec":{"a":[` + repeat(9_900, `"x"`) + `]}}`
	large := `{"spec":{"a":"` + strings.Repeat("x", 900_000) + `"}}`
	return []shot{
		evaluation(repeat(38, `{"path":"spec.a%d","expression":`+text("/"+strings.Repeat("a{900}", 2_700)+"/")+`}`), `{"spec":{}}`),
		evaluation(repeat(990, `{"path":"spec.a%d","expression":`+text(strings.Repeat("1+", 300)+"1")+`}`), `{"spec":{}}`),
		evaluation(repeat(9_000, `{"path":"spec.a%d","expression":"value"}`), `{"spec":{}}`),
		evaluation(repeat(990, `{"path":"spec.a[*].b%d","expression":"value"}`), many),
		evaluation(`{"path":"spec.a[*]","expression":"value + value"}`, many),
		evaluation(`{"path":"spec.a[*]","expression":"context.virtualObject"}`, many),
		evaluation(`{"path":"spec.a","expression":"Array(500).fill(value)"}`, large),
		evaluation(`{"path":"spec.a","expression":"JSON.parse(JSON.stringify([value,value]))"}`, large),
		evaluation(`{"path":"spec","expression":"{...value, b: value}"},{"path":"spec","expression":"{...value, c: value}"},{"path":"spec","expression":"{...value, d: value}"}`, large),
		evaluation(`{"path":"`+strings.Repeat("*.", 2_000)+`*","expression":"value"}`, many),
		evaluation(`{"path":"`+strings.Repeat("a.", 500_000)+`a","expression":"value"}`, many),
		evaluation(repeat(990, `{"path":"spec.a[*]%d","reference":{"kind":"Secret","apiVersion":"v1"}}`), many),
		evaluation(`{"path":"spec.a[*]","reference":{"kind":"Secret","apiVersion":"v1"}}`, many),
	}
}

// hoard makes 59 access keys with 200 KB of annotations each.
func hoard(ctx context.Context, a *attack) error {
	const objects, size = 59, 200_000
	if a.hoarded {
		return nil
	}
	a.hoarded = true
	text := strings.Repeat("x", size)
	for i := range objects {
		if err := a.site.must(ctx, shot{
			method: http.MethodPost, path: keys, bearer: a.hoarder,
			body: fmt.Sprintf(`{"metadata":{"name":"hoard-%d","annotations":{"a":%q}},"spec":{"ttl":86400}}`, i, text),
		}, nil); err != nil {
			return err
		}
	}
	return nil
}

// listShots are lists in every form.
func listShots(path string) []shot {
	return []shot{
		{path: path, bearer: hoarders},
		{path: path + "?limit=500", bearer: hoarders},
		{path: path, bearer: hoarders, header: map[string]string{"Accept": yamlText}},
		{path: path, bearer: hoarders, header: map[string]string{"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}},
		{path: path, bearer: hoarders, header: map[string]string{"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}},
		{path: path + "?pretty=true", bearer: hoarders},
		{path: path, bearer: hoarders, header: map[string]string{"Accept-Encoding": "gzip"}},
		{path: path + "?labelSelector=nothing%3Dlike,that", bearer: hoarders},
		{path: path + "?sendInitialEvents=true&watch=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", bearer: hoarders},
		{method: http.MethodDelete, path: path + "?dryRun=All", bearer: hoarders},
	}
}

func annotations() []shot { return listShots(keys) }

// issue creates many tokens for an attacker.
func issue(ctx context.Context, a *attack) error {
	var (
		clients sync.WaitGroup
		mu      sync.Mutex
		failed  error
	)
	for number := range attackers {
		clients.Go(func() {
			for i := number; i < a.tokens && ctx.Err() == nil; i += attackers {
				if err := a.site.must(ctx, shot{method: http.MethodPost, path: tokens, bearer: a.hoarder, body: `{}`}, nil); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	clients.Wait()
	return failed
}

func hoardedTokens() []shot { return listShots(tokens) }

// watch keeps a watch open. All watches use one key.
func watch(ctx context.Context, a *attack, _, _ int) {
	a.shoot(ctx, shot{path: keys + "?watch=true&resourceVersion=0", bearer: hoarders}, 0)
	pause(ctx, 500*time.Millisecond)
}

// dial opens a connection that ends with the context.
func (a *attack) dial(ctx context.Context) (net.Conn, string, error) {
	parsed, err := url.Parse(a.site.base)
	if err != nil {
		return nil, "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", parsed.Host)
	if err != nil {
		return nil, "", err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, parsed.Path, nil
}

// readAnswer reads and counts the status of an answer.
func (a *attack) readAnswer(ctx context.Context, name string, reader *bufio.Reader) {
	line, err := reader.ReadString('\n')
	var status int
	if _, scan := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err == nil && scan != nil {
		err = scan
	}
	if ctx.Err() == nil && err == nil {
		a.note(name, status, line)
	} else if ctx.Err() == nil {
		a.note(name, 0, "")
	}
}

// slowBody sends a byte of a body each second. Every other client has no key.
func slowBody(ctx context.Context, a *attack, attacker, _ int) {
	conn, base, err := a.dial(ctx)
	if err != nil {
		pause(ctx, time.Second)
		return
	}
	defer func() { _ = conn.Close() }()
	authorization := ""
	if attacker%2 == 0 {
		authorization = "Authorization: Bearer " + a.tenants[attacker%(len(a.tenants)-1)].Key + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n%s\r\n{", base, keys, authorization); err != nil {
		return
	}
	closing, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		a.readAnswer(ctx, "a slow body", bufio.NewReader(conn))
	}()
	for closing.Err() == nil {
		pause(closing, time.Second)
		_, _ = conn.Write([]byte(" "))
	}
}

// slowReader requests a large list and reads a byte of it now and then.
func slowReader(ctx context.Context, a *attack, _, _ int) {
	conn, base, err := a.dial(ctx)
	if err != nil {
		pause(ctx, time.Second)
		return
	}
	defer func() { _ = conn.Close() }()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	if _, err := fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", base, keys, a.hoarder); err != nil {
		return
	}
	reader := bufio.NewReaderSize(conn, 512)
	a.readAnswer(ctx, "a slow reader", reader)
	for ctx.Err() == nil {
		if _, err := io.CopyN(io.Discard, reader, 1); err != nil {
			break
		}
		pause(ctx, 200*time.Millisecond)
	}
	pause(ctx, 100*time.Millisecond)
}

// selectors are requests with long selectors.
func selectors() []shot {
	var all []shot
	for _, query := range []string{
		"labelSelector=" + url.QueryEscape("a in ("+repeat(3_000, "v%d")+")"),
		"labelSelector=" + url.QueryEscape("a in ("+repeat(240, "v%d")+")"),
		"labelSelector=" + url.QueryEscape(repeat(3_000, "a%d!=b")),
		"labelSelector=" + url.QueryEscape(repeat(3_000, "!a%d")),
		"labelSelector=" + strings.Repeat("(", 40_000),
		"labelSelector=" + strings.Repeat(",", 40_000),
		"fieldSelector=" + url.QueryEscape(repeat(2_000, "metadata.name!=b%d")),
		"fieldSelector=" + url.QueryEscape(repeat(2_000, "spec.user!=b%d")),
		"fieldSelector=" + strings.Repeat("%5C", 10_000),
		"continue=" + strings.Repeat("A", 50_000),
		"resourceVersion=" + strings.Repeat("9", 50_000),
	} {
		all = append(all,
			shot{path: keys + "?" + query},
			shot{path: keys + "?limit=10&" + query, bearer: hoarders},
			shot{path: keys + "?watch=true&timeoutSeconds=1&" + query},
			shot{method: http.MethodDelete, path: keys + "?dryRun=All&" + query},
		)
	}
	return all
}

// jsonPatches are JSON patches, and merge patches, that grow or do very much.
func jsonPatches() []shot {
	double := `{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 1_000) + `"}},` +
		repeat(30, `{"op":"copy","from":"/metadata","path":"/metadata/annotations/b%d"}`)
	long := `{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 100_000) + `"}},` + repeat(9_900, `{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/b%d"}`)
	var all []shot
	for _, body := range []string{
		"[" + double + "]", "[" + long + "]",
		"[" + repeat(9_900, `{"op":"test","path":"/metadata/name","value":"a"}`) + "]",
		"[" + repeat(9_900, `{"op":"add","path":"/metadata/finalizers/-","value":"a.b/c%d"}`) + "]",
		`[{"op":"add","path":"/metadata/finalizers","value":[` + repeat(9_000, `"a.b/c%d"`) + "]}," + repeat(9_000, `{"op":"remove","path":"/metadata/finalizers/0"}`) + "]",
		`[{"op":"add","path":"` + strings.Repeat("/a", 500_000) + `","value":1}]`,
		"[" + repeat(100_000, `{"op":"remove","path":"/spec/description"}`) + "]",
		`[{"op":"add","path":"/spec","value":{` + repeat(9_900, `"f%d":1`) + `}}]`,
	} {
		all = append(all, shot{method: http.MethodPatch, path: keys + "/" + ownObject + "?dryRun=All", kind: jsonPatch, body: body})
	}
	for _, body := range []string{
		`{"metadata":{"annotations":{` + repeat(9_900, `"a%d":"b"`) + `}}}`, `{"metadata":{"labels":{` + repeat(9_900, `"a%d":null`) + `}}}`,
		nest(99, `{"a":`, "1", "}"), `{"spec":{"scope":{"rules":[` + repeat(9_900, `{"verbs":["get"],"resources":["a%d"]}`) + `]}}}`,
	} {
		all = append(all, shot{method: http.MethodPatch, path: keys + "/" + ownObject + "?dryRun=All", kind: mergePatch, body: body})
	}
	return all
}

// applies are server-side applies with very many fields and managers.
func applies() []shot {
	var all []shot
	for i, meta := range []string{
		`"labels":{` + repeat(9_000, `"a%d":"b"`) + `}`, `"annotations":{` + repeat(9_000, `"a%d":"b"`) + `}`,
		`"finalizers":[` + repeat(9_000, `"a.b/c%d"`) + `]`, `"finalizers":[` + repeat(9_000, `"a.b/c"`) + `]`,
		`"ownerReferences":[` + repeat(5_000, `{"uid":"%d","name":"a","kind":"b","apiVersion":"c/v1"}`) + `]`,
		`"labels":{"a":"b"}`,
	} {
		for _, more := range []string{"&dryRun=All", "&force=true&dryRun=All"} {
			all = append(all, shot{
				method: http.MethodPatch, path: fmt.Sprintf("%s/%s?fieldManager=m%d%s", keys, ownObject, i, more), kind: applyPatch,
				body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{` + meta + `}}`,
			})
		}
	}
	return append(all, shot{
		method: http.MethodPatch, path: keys + "/" + ownObject + "?fieldManager=rules&dryRun=All", kind: applyPatch,
		body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","spec":{"scope":{"rules":[` + repeat(9_000, `{"verbs":["get"],"resources":["a%d"]}`) + `]}}}`,
	}, shot{
		method: http.MethodPatch, path: keys + "/" + ownObject + "?fieldManager=deep&dryRun=All", kind: applyPatch,
		body: "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  labels: &a {" + repeat(3_000, "a%d: b") + "}\n  annotations: *a\n",
	})
}

// idempotentShots sends requests with idempotency keys that the platform must remember, each with a new key.
func idempotentShots(ctx context.Context, a *attack, attacker, n int) {
	body := []string{`{"spec":{"ttl":-1}}`, `{"spec":{"ttl":60}}`, `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 100_000) + `"}},"spec":{"ttl":60}}`}[n%3]
	a.shoot(ctx, shot{
		method: http.MethodPost, path: keys + "?timeout=5s", body: body, header: map[string]string{"Idempotency-Key": rand.Text()},
	}, attacker)
}

// authenticate sends guessed credentials.
func authenticate(ctx context.Context, a *attack, attacker, n int) {
	bearer := []string{
		"pak_" + rand.Text() + rand.Text(), rand.Text() + rand.Text() + rand.Text(), "x", strings.Repeat("a", 50_000),
		"eyJhbGciOiJFUzI1NiJ9." + rand.Text() + "." + rand.Text(), nobody,
	}[n%6]
	path := []string{keys, keys + "/mallory-0", evaluations, selves}[attacker%4]
	one := shot{path: path, bearer: bearer}
	if path == evaluations || path == selves {
		one.method, one.body = http.MethodPost, `{}`
	}
	a.shoot(ctx, one, attacker)
}

// ordinaryShots are requests that cost little, one after the other.
func ordinaryShots() []shot {
	return []shot{
		{path: keys + "/" + ownObject}, {path: keys + "?limit=10"}, {method: http.MethodPost, path: selves, body: "{}"},
		{method: http.MethodPost, path: keys + "?dryRun=All", body: `{"spec":{"ttl":60}}`}, {path: "/openid/v1/jwks", bearer: nobody}, {path: "/version", bearer: nobody},
	}
}
