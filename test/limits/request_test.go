package limits_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/saml"
)

// repeat writes a text a number of times with commas.
func repeat(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

// repeatNumbered writes a text a number of times with commas, each with its number.
func repeatNumbered(n int, text string) string {
	var all strings.Builder
	for i := range n {
		if i > 0 {
			all.WriteByte(',')
		}
		_, _ = fmt.Fprintf(&all, text, i)
	}
	return all.String()
}

// unknownFieldsRequest returns a create request with unknown fields, which the server ignores.
func unknownFieldsRequest(body string) request {
	return request{method: http.MethodPost, path: keys + "?fieldValidation=Ignore", body: body}
}

// unknownFieldsYAML returns a create request in YAML with unknown fields, which the server ignores.
func unknownFieldsYAML(body string) request {
	return request{method: http.MethodPost, path: keys + "?fieldValidation=Ignore", kind: "application/yaml", body: body}
}

// values returns an object with that many values.
func values(n int) string {
	// The object, the list of lists, and lists.
	const size = 1000
	left := n - 2
	var lists []string
	for left > size+1 {
		lists, left = append(lists, "["+repeat(size, "1")+"]"), left-size-1
	}
	return `{"x":[` + strings.Join(append(lists, "["+repeat(left-1, "1")+"]"), ",") + `]}`
}

// paddedBody returns a body of a size.
func paddedBody(n int) string { return `{"x":"` + strings.Repeat("x", n-len(`{"x":""}`)) + `"}` }

var requestRows = map[string]row{
	"header-bytes": {bytes(limits.HeaderBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		ask := func(n int) int {
			const line = "GET " + own + " HTTP/1.1\r\n"
			return w.send(request{path: own, header: map[string]string{"X-A": strings.Repeat("a", n-len(line)-500)}}).status
		}
		// The rest of the head has less than 500 bytes, and Go's server reads up to 8 KiB more than it is allowed.
		for _, n := range []int{limits.HeaderBytes - 1, limits.HeaderBytes} {
			if got := ask(n); got != http.StatusOK {
				t.Errorf("%d: %d", n, got)
			}
		}
		if got := ask(limits.HeaderBytes + 10<<10); got != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("above: %d", got)
		}
	}},
	"header-lines": {fmt.Sprintf("%d lines", limits.HeaderLines), func(t *testing.T) {
		sizeCase{limit: limits.HeaderLines, status: http.StatusRequestHeaderFieldsTooLarge, ask: func(n int) request {
			// Every request has three lines: Authorization, User-Agent and Accept-Encoding.
			header := map[string]string{}
			for i := range n - 3 {
				header[fmt.Sprintf("X-%d", i)] = "a"
			}
			return request{path: own, header: header}
		}}.try(t)
	}},
	"accept-bytes": {bytes(limits.AcceptBytes), func(t *testing.T) {
		sizeCase{limit: limits.AcceptBytes, status: http.StatusRequestHeaderFieldsTooLarge, ask: func(n int) request {
			const kind = "application/json"
			return request{path: own, header: map[string]string{"Accept": kind + strings.Repeat(",", n-len(kind))}}
		}}.try(t)
	}},
	"selector-terms": {fmt.Sprintf("%d terms", limits.SelectorTerms), func(t *testing.T) {
		for parameter, text := range map[string]func(n int) string{
			"labelSelector": func(n int) string { return "a in (" + repeatNumbered(n, "v%d") + ")" },
			"fieldSelector": func(n int) string { return repeatNumbered(n, "metadata.name!=v%d") },
		} {
			sizeCase{limit: limits.SelectorTerms, status: http.StatusBadRequest, says: []string{
				parameter, fmt.Sprint(limits.SelectorTerms + 1), fmt.Sprint(limits.SelectorTerms),
			}, ask: func(n int) request {
				return request{path: keys + "?" + parameter + "=" + url.QueryEscape(text(n))}
			}}.try(t)
		}
	}},
	"body-bytes": {bytes(limits.BodyBytes), func(t *testing.T) {
		sizeCase{
			limit: limits.BodyBytes, status: http.StatusRequestEntityTooLarge, says: []string{fmt.Sprint(limits.BodyBytes)},
			ask: func(n int) request { return unknownFieldsRequest(paddedBody(n)) },
		}.try(t)
	}},
	"form-bytes": {bytes(limits.FormBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		ask := func(n int) answer {
			return w.send(request{
				bearer: anonymous, method: http.MethodPost, path: "/auth/token", kind: "application/x-www-form-urlencoded", body: "x=" + strings.Repeat("y", n-2),
			})
		}
		for _, n := range []int{limits.FormBytes - 1, limits.FormBytes} {
			// The form is read: it has no grant_type.
			if got := ask(n); got.status != http.StatusBadRequest || !strings.Contains(got.body, "invalid_request") {
				t.Errorf("%d: %d %.500s", n, got.status, got.body)
			}
		}
		got := ask(limits.FormBytes + 1)
		if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(got.body, fmt.Sprint(limits.FormBytes)) {
			t.Fatalf("%d %.500s", got.status, got.body)
		}
	}},
	"saml-form-bytes": {bytes(limits.SAMLFormBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		ask := func(n int) answer {
			return w.send(request{
				bearer: anonymous, method: http.MethodPost, path: "/auth/saml/callback", kind: "application/x-www-form-urlencoded", body: "x=" + strings.Repeat("y", n-2),
			})
		}
		for _, n := range []int{limits.SAMLFormBytes - 1, limits.SAMLFormBytes} {
			// The form is read: there is no such connector.
			if got := ask(n); got.status != http.StatusNotFound {
				t.Errorf("%d: %d %.500s", n, got.status, got.body)
			}
		}
		got := ask(limits.SAMLFormBytes + 1)
		if got.status != http.StatusRequestEntityTooLarge {
			t.Fatalf("%d %.500s", got.status, got.body)
		}
		got.checkRefusal(t, "", fmt.Sprint(limits.SAMLFormBytes))
	}},
	"saml-elements": {fmt.Sprintf("%d elements", limits.SAMLElements), func(t *testing.T) {
		w := newWorld(t, nil)
		samlProvider := &model.SAMLProvider{SSOURL: "https://idp.example", RedirectURI: "https://platform.example/auth/saml/callback", InsecureSkipSignatureValidation: true}
		w.env.UnsignedSAML = settings.On
		ask := func(n int) string {
			text := base64.StdEncoding.EncodeToString([]byte("<a>" + strings.Repeat("<b></b>", n-1) + "</a>"))
			one := connector.All(&model.ConfigStatus{Auth: &model.ConfigAuth{IdentityProviders: model.IdentityProviders{SAML: samlProvider}}})[0]
			_, err := saml.Open(w.env).HandleCallback(t.Context(), one, provider.Response{Values: url.Values{"SAMLResponse": {text}}})
			if apierror.From(err).Status().Code != http.StatusBadRequest {
				t.Errorf("%d: %v", n, err)
			}
			return err.Error()
		}
		// As many bytes are read, and they are not a response.
		if below, above := ask(limits.SAMLElements), ask(limits.SAMLElements+1); below == above || below != ask(1) {
			t.Errorf("%s, %s", below, above)
		}
	}},
	"body-depth": {fmt.Sprintf("%d levels", limits.BodyDepth), func(t *testing.T) {
		sizeCase{limit: limits.BodyDepth, status: http.StatusBadRequest, ask: func(n int) request {
			return unknownFieldsRequest(`{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}")
		}}.try(t)
	}},
	"body-values": {fmt.Sprintf("%d values", limits.BodyValues), func(t *testing.T) {
		sizeCase{
			limit: limits.BodyValues, status: http.StatusRequestEntityTooLarge,
			ask: func(n int) request { return unknownFieldsRequest(values(n)) },
		}.try(t)
	}},
	"body-entries": {fmt.Sprintf("%d entries", limits.BodyEntries), func(t *testing.T) {
		sizeCase{
			limit: limits.BodyEntries, status: http.StatusRequestEntityTooLarge, field: "x",
			ask: func(n int) request { return unknownFieldsRequest(`{"x":[` + repeat(n, "1") + `]}`) },
		}.try(t)
	}},
	"body-path-bytes": {bytes(limits.BodyPathBytes), func(t *testing.T) {
		sizeCase{
			limit: limits.BodyPathBytes, status: http.StatusRequestEntityTooLarge,
			ask: func(n int) request { return unknownFieldsRequest(`{"` + strings.Repeat("x", n) + `":1}`) },
		}.try(t)
	}},
	"yaml-resolved-bytes": {bytes(limits.BodyBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		// The codec decides how texts are counted. Here, the resolved text is half a list below the limit, or twice the limit.
		ask := func(size int) request {
			text := "a: &a " + strings.Repeat("x", size/500) + "\nx: [" + repeat(499, "*a") + "]\n"
			return unknownFieldsYAML(text)
		}
		if got := w.send(ask(limits.BodyBytes - 10_000)); got.status != http.StatusCreated {
			t.Errorf("below: %d %s", got.status, got.body)
		}
		before := w.storedDigest()
		got := w.send(ask(limits.BodyBytes + 10_000))
		if got.status != http.StatusRequestEntityTooLarge || w.storedDigest() != before {
			t.Errorf("above: %d %s", got.status, got.body)
		}
		got.checkRefusal(t, "", fmt.Sprint(limits.BodyBytes))
	}},
	"yaml-alias-marks": {fmt.Sprintf("%d marks", limits.YAMLAliasMarks), func(t *testing.T) {
		sizeCase{
			limit: limits.YAMLAliasMarks, status: http.StatusRequestEntityTooLarge,
			ask: func(n int) request { return unknownFieldsYAML("a: &a 1\nb: *a\n" + strings.Repeat("\n", n-4)) },
		}.try(t)
	}},
	"yaml-resolved-values": {fmt.Sprintf("%d values", limits.YAMLResolvedValues), func(t *testing.T) {
		// In addition to the values of the aliases there are the values of the body, of "a" and "x", and of the padding.
		const each, aliases = 100, limits.YAMLResolvedValues/101 - 2
		sizeCase{
			limit: limits.YAMLResolvedValues, status: http.StatusRequestEntityTooLarge,
			says: []string{fmt.Sprint(limits.YAMLResolvedValues)},
			ask: func(n int) request {
				rest := n - (3 + (aliases+1)*(each+1))
				return unknownFieldsYAML("a: &a [" + repeat(each, "1") + "]\nx: [" + repeat(aliases, "*a") + "]\ny: [" + repeat(rest, "1") + "]\n")
			},
		}.try(t)
	}},
	"yaml-marks": {fmt.Sprintf("%d marks", limits.YAMLMarks), func(t *testing.T) {
		sizeCase{
			limit: limits.YAMLMarks, status: http.StatusRequestEntityTooLarge,
			ask: func(n int) request { return unknownFieldsYAML("x: " + strings.Repeat("\n", n-1)) },
		}.try(t)
	}},
	"yaml-directives": {fmt.Sprintf("%d lines", limits.YAMLDirectives), func(t *testing.T) {
		sizeCase{
			limit: limits.YAMLDirectives, status: http.StatusBadRequest,
			ask: func(n int) request {
				return unknownFieldsYAML(strings.ReplaceAll(repeatNumbered(n, "%%TAG !a%d! b\n"), ",", "") + "---\nx: 1\n")
			},
		}.try(t)
	}},
	"yaml-aliases": {fmt.Sprintf("%d aliases", limits.YAMLAliases), func(t *testing.T) {
		sizeCase{
			limit: limits.YAMLAliases, status: http.StatusRequestEntityTooLarge,
			ask: func(n int) request { return unknownFieldsYAML("a: &a 1\nx: [" + repeat(n, "*a") + "]\n") },
		}.try(t)
	}},
	"request-duration": {limits.RequestDuration.String(), func(t *testing.T) {
		w := newWorld(t, nil)
		w.holder.deadlines = make(chan time.Time, 1)
		w.holder.hold(false)
		defer w.holder.release()
		// The deadline of the work is the timeout of the request, and at most the limit.
		for _, timeout := range []time.Duration{limits.RequestDuration - time.Second, limits.RequestDuration, limits.RequestDuration + time.Second} {
			began := time.Now()
			p := w.begin(request{path: keys + "/held?timeout=" + timeout.String()})
			end := <-w.holder.deadlines
			p.leave()
			want := min(timeout, limits.RequestDuration)
			if first, last := began.Add(want), time.Now().Add(want); end.Before(first) || end.After(last) {
				t.Errorf("with a timeout of %v the deadline is after %v", timeout, end.Sub(began))
			}
		}
		if got := w.send(request{path: keys + "/held?timeout=20ms"}); got.status != http.StatusGatewayTimeout {
			t.Errorf("after its time, a request gets %d %s", got.status, got.body)
		}
	}},
}
