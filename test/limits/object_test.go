package limits_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/state/store"
)

// deviceWorld is a world that serves the device authorization grant.
func deviceWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	got := w.send(request{
		bearer: "root-admin", method: http.MethodPatch, path: group + "/configs/config", kind: "application/merge-patch+json",
		body: `{"status":{"platformHost":"platform.example"}}`,
	})
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return w
}

// askDevice requests a device code.
func (w *world) askDevice() answer {
	w.t.Helper()
	form := url.Values{"client_id": {oauth.ClientID}, "code_challenge": {strings.Repeat("a", 43)}, "code_challenge_method": {"S256"}}
	return w.send(request{
		bearer: anonymous, method: http.MethodPost, path: oauth.DevicePath + "/code", kind: "application/x-www-form-urlencoded", body: form.Encode(),
	})
}

// metadata returns a create request with metadata.
func metadata(text string) request {
	return request{method: http.MethodPost, path: keys, body: `{"metadata":{` + text + `}}`}
}

// spec returns a create request with a spec.
func spec(text string) request {
	return request{method: http.MethodPost, path: keys, body: `{"spec":{` + text + `}}`}
}

// annotatedRequest returns a create request with annotations of a size.
func annotatedRequest(name string, size int) request {
	return metadata(fmt.Sprintf(`"name":%q,"annotations":{"a":%q}`, name, strings.Repeat("x", size-1)))
}

// createLine makes a number of keys with a spec, each with the key before it. One more key is refused with a limit.
func createLine(t *testing.T, length int, spec string, limit int) {
	t.Helper()
	w := newWorld(t, nil)
	maker := "alice"
	ask := func(i int) request {
		name := fmt.Sprintf("line-%d", i)
		return request{
			method: http.MethodPost, path: keys, bearer: maker,
			body: fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"key":%q,%s}}`, name, bearer(name), spec),
		}
	}
	for i := range length {
		if got := w.send(ask(i)); got.status != http.StatusCreated {
			t.Fatalf("key %d: %d %.500s", i+1, got.status, got.body)
		}
		maker = fmt.Sprintf("line-%d", i)
	}
	before := w.storedDigest()
	got := w.send(ask(length))
	if got.status != http.StatusForbidden || w.storedDigest() != before {
		t.Fatalf("above: %d %.500s", got.status, got.body)
	}
	got.checkRefusal(t, "status.lineage", fmt.Sprint(limit), fmt.Sprint(limit+1))
}

// objectRows are the limits of a stored object, of its changes, and of the reads of one step.
var objectRows = map[string]row{
	"json-patch-operations": {fmt.Sprintf("%d operations", limits.PatchOperations), func(t *testing.T) {
		sizeCase{limit: limits.PatchOperations, status: http.StatusRequestEntityTooLarge, ask: func(n int) request {
			return request{
				method: http.MethodPatch, path: own, kind: "application/json-patch+json",
				body: "[" + repeat(n, `{"op":"test","path":"/metadata/name","value":"alice"}`) + "]",
			}
		}}.try(t)
	}},
	"json-patch-nested-bytes": {bytes(limits.PatchNestedBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		// A text within so many lists counts once for each list, and once for the operation around them.
		ask := func(size int) request {
			const levels = 32
			text := strings.Repeat("[", levels) + `"` + strings.Repeat("x", size/(levels+2)) + `"` + strings.Repeat("]", levels)
			return request{
				method: http.MethodPatch, path: own + "?dryRun=All", kind: "application/json-patch+json",
				body: `[{"op":"add","path":"/unknown","value":` + text + `}]`,
			}
		}
		if got := w.send(ask(limits.PatchNestedBytes - 8192)); got.status != http.StatusOK {
			t.Errorf("below: %d %.500s", got.status, got.body)
		}
		before := w.storedDigest()
		got := w.send(ask(limits.PatchNestedBytes + 8192))
		if got.status != http.StatusRequestEntityTooLarge || w.storedDigest() != before {
			t.Fatalf("above: %d %.500s", got.status, got.body)
		}
		got.checkRefusal(t, "", fmt.Sprint(limits.PatchNestedBytes))
	}},
	"object-bytes": {bytes(limits.ObjectBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		// A scope with long texts has about its own size; the managed fields repeat none of them.
		ask := func(size int) request {
			const verbs = 100
			return request{
				method: http.MethodPost, path: keys,
				body: `{"spec":{"scope":{"rules":[` + repeatNumbered(verbs, `{"verbs":["%d`+strings.Repeat("v", size/verbs-20)+`"]}`) + `]}}}`,
			}
		}
		if got := w.send(ask(limits.ObjectBytes - 20_000)); got.status != http.StatusCreated {
			t.Errorf("below: %d %.500s", got.status, got.body)
		}
		before := w.storedDigest()
		got := w.send(ask(limits.ObjectBytes))
		if got.status != http.StatusRequestEntityTooLarge || w.storedDigest() != before {
			t.Fatalf("above: %d %.500s", got.status, got.body)
		}
		got.checkRefusal(t, "", "the object would have", fmt.Sprint(limits.ObjectBytes))
	}},
	"annotation-bytes": {bytes(limits.AnnotationBytes), func(t *testing.T) {
		sizeCase{
			limit: limits.AnnotationBytes, status: http.StatusUnprocessableEntity, field: "metadata.annotations",
			ask: func(n int) request { return annotatedRequest(fmt.Sprint("a-", n), n) },
		}.try(t)
	}},
	"labels": {fmt.Sprintf("%d labels", limits.Labels), func(t *testing.T) {
		sizeCase{
			limit: limits.Labels, status: http.StatusUnprocessableEntity, field: "metadata.labels",
			ask: func(n int) request { return metadata(`"labels":{` + repeatNumbered(n, `"l%d":""`) + `}`) },
		}.try(t)
	}},
	"finalizers": {fmt.Sprintf("%d finalizers", limits.Finalizers), func(t *testing.T) {
		sizeCase{
			limit: limits.Finalizers, status: http.StatusUnprocessableEntity, field: "metadata.finalizers",
			ask: func(n int) request { return metadata(`"finalizers":[` + repeatNumbered(n, `"example.com/f%d"`) + `]`) },
		}.try(t)
	}},
	"owners": {fmt.Sprintf("%d references", limits.Owners), func(t *testing.T) {
		sizeCase{
			limit: limits.Owners, status: http.StatusUnprocessableEntity, field: "metadata.ownerReferences",
			ask: func(n int) request {
				return metadata(`"ownerReferences":[` + repeatNumbered(n, `{"apiVersion":"v1","kind":"Pod","name":"a","uid":"%d"}`) + `]`)
			},
		}.try(t)
	}},
	"managers": {fmt.Sprintf("%d entries", limits.Managers), func(t *testing.T) {
		w := newWorld(t, nil)
		apply := func(i int) answer {
			return w.send(request{
				method: http.MethodPatch, path: fmt.Sprintf("%s/managed?fieldManager=m%d", keys, i), kind: "application/apply-patch+yaml",
				body: fmt.Sprintf(`{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"managed","labels":{"a%d":"b"}}}`, i),
			})
		}
		for i := range limits.Managers {
			if got := apply(i); got.status > 299 {
				t.Fatalf("manager %d: %d %.500s", i+1, got.status, got.body)
			}
		}
		before := w.storedDigest()
		got := apply(limits.Managers)
		if got.status != http.StatusUnprocessableEntity || w.storedDigest() != before {
			t.Fatalf("above: %d %.500s", got.status, got.body)
		}
		got.checkRefusal(t, "metadata.managedFields", fmt.Sprint(limits.Managers+1), fmt.Sprint(limits.Managers))
	}},
	"lineage-bounds": {fmt.Sprintf("%d keys", limits.LineageBounds), func(t *testing.T) {
		// The first key ends, but is not bound to the key that made it.
		createLine(t, limits.LineageBounds+1, `"ttl":3600`, limits.LineageBounds)
	}},
	"lineage": {fmt.Sprintf("%d keys", limits.Lineage), func(t *testing.T) {
		createLine(t, limits.Lineage, `"displayName":"a"`, limits.Lineage)
	}},
	"idempotency-key": {"255 characters", func(t *testing.T) {
		sizeCase{limit: 255, status: http.StatusBadRequest, says: []string{"255"}, ask: func(n int) request {
			return request{method: http.MethodPost, path: keys, body: "{}", header: map[string]string{"Idempotency-Key": strings.Repeat("x", n)}}
		}}.try(t)
	}},
	"field-manager": {"128 bytes", func(t *testing.T) {
		sizeCase{limit: 128, status: http.StatusUnprocessableEntity, field: "fieldManager", says: []string{"128"}, ask: func(n int) request {
			return request{method: http.MethodPost, path: keys + "?fieldManager=" + strings.Repeat("x", n), body: "{}"}
		}}.try(t)
	}},
	"scope-list": {fmt.Sprintf("%d entries", scope.MaxEntries), func(t *testing.T) {
		sizeCase{
			limit: scope.MaxEntries, status: http.StatusUnprocessableEntity, field: "spec.scope.projects",
			ask: func(n int) request {
				return spec(`"scope":{"projects":[` + repeatNumbered(n, `{"project":"a%d"}`) + `]}`)
			},
		}.try(t)
	}},
	"scope-entries": {fmt.Sprintf("%d entries", scope.MaxTotal), func(t *testing.T) {
		sizeCase{limit: scope.MaxTotal, status: http.StatusUnprocessableEntity, field: "spec.scope", ask: func(n int) request {
			// Five rules count as well as their verbs.
			const rules = 5
			left := n - rules
			var all []string
			for i := range rules {
				verbs := min(left/(rules-i)+1, left, scope.MaxEntries)
				all, left = append(all, `{"verbs":[`+repeatNumbered(verbs, fmt.Sprintf(`"r%d-%%d"`, i))+`]}`), left-verbs
			}
			return spec(`"scope":{"rules":[` + strings.Join(all, ",") + `]}`)
		}}.try(t)
	}},
	"key-groups": {"256 groups", func(t *testing.T) {
		sizeCase{limit: 256, status: http.StatusUnprocessableEntity, field: "spec.groups", ask: func(n int) request {
			one := spec(`"groups":[` + repeatNumbered(n, `"g%d"`) + `]`)
			one.bearer = "root-admin"
			return one
		}}.try(t)
	}},
	"revocations": {fmt.Sprintf("%d items", limits.Revocations), func(t *testing.T) {
		sizeCase{limit: limits.Revocations, status: http.StatusUnprocessableEntity, field: "spec.credentials", ask: func(n int) request {
			return request{method: http.MethodPost, path: group + "/credentialrevocations", body: `{"spec":{"credentials":[` + repeatNumbered(n, `"unknown-%d"`) + `]}}`}
		}}.try(t)
	}},
	"password-failures": {fmt.Sprintf("%d passwords", limits.PasswordFailures), func(t *testing.T) {
		w := newWorld(t, nil)
		const current = "gravel-otter-7-lampshade"
		set := func(bearer, current string) answer {
			return w.send(request{
				bearer: bearer, method: http.MethodPost, path: group + "/users/zoe/password",
				body: fmt.Sprintf(`{"spec":{"current":%q,"password":"violet-Anchor-93-tundra"}}`, current),
			})
		}
		for _, r := range []request{
			{path: group + "/users", body: `{"metadata":{"name":"zoe"}}`},
			{path: group + "/users/zoe/password", body: fmt.Sprintf(`{"spec":{"password":%q}}`, current)},
			{path: keys, body: fmt.Sprintf(`{"metadata":{"name":"zoe"},"spec":{"user":"zoe","key":%q}}`, bearer("zoe"))},
		} {
			r.bearer, r.method = "root-admin", http.MethodPost
			if got := w.send(r); got.status != http.StatusCreated {
				t.Fatalf("%s: %d %s", r.path, got.status, got.body)
			}
		}
		for n := range limits.PasswordFailures {
			if got := set("zoe", "another-"+current); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%d: %d %s", n, got.status, got.body)
			}
		}
		if got := set("zoe", current); got.status != http.StatusTooManyRequests {
			t.Errorf("above: %d %s", got.status, got.body)
		}
	}},
	"password-failures-address": {fmt.Sprintf("%d passwords", limits.PasswordFailuresOfAddress), func(t *testing.T) {
		w := newWorld(t, nil)
		try := func(n int) answer {
			return w.send(request{
				bearer: anonymous, method: http.MethodPost, path: "/auth/password/login",
				body: fmt.Sprintf(`{"client_id":"platform-cli","code_challenge":%q,"code_challenge_method":"S256","username":"user-%d","password":"x"}`, strings.Repeat("a", 43), n),
			})
		}
		for n := range limits.PasswordFailuresOfAddress {
			if got := try(n); got.status != http.StatusUnauthorized {
				t.Errorf("%d: %d %s", n, got.status, got.body)
			}
		}
		if got := try(limits.PasswordFailuresOfAddress); got.status != http.StatusTooManyRequests {
			t.Errorf("above: %d %s", got.status, got.body)
		}
	}},
	"device-requests-address": {fmt.Sprintf("%d codes", limits.DeviceRequestsOfAddress), func(t *testing.T) {
		w := deviceWorld(t)
		for n := range limits.DeviceRequestsOfAddress {
			if got := w.askDevice(); got.status != http.StatusOK {
				t.Errorf("%d: %d %s", n, got.status, got.body)
			}
		}
		if got := w.askDevice(); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "too many codes were asked for") {
			t.Errorf("above: %d %s", got.status, got.body)
		}
	}},
	"device-requests": {fmt.Sprintf("%d devices", limits.DeviceRequests), func(t *testing.T) {
		w := deviceWorld(t)
		if got := w.askDevice(); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		records := logins.Records(w.env)
		page, err := records.List(t.Context(), store.Query{})
		if err != nil || len(page.Records) != 1 {
			t.Fatalf("%d records, %v", len(page.Records), err)
		}
		for n := 1; n < limits.DeviceRequests; n++ {
			record := page.Records[0]
			record.Name, record.Digest = fmt.Sprint("device-", n), fmt.Sprint("code-", n)
			if _, err := records.Create(t.Context(), record); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.askDevice(); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "too many devices wait") {
			t.Errorf("above: %d %s", got.status, got.body)
		}
	}},
	"device-codes-address": {fmt.Sprintf("%d codes", limits.DeviceCodesOfAddress), func(t *testing.T) {
		w := deviceWorld(t)
		w.askDevice()
		try := func() answer {
			return w.send(request{bearer: anonymous, method: http.MethodPost, path: "/auth/device", kind: "application/x-www-form-urlencoded", body: "user_code=BBBB-BBBB"})
		}
		for n := range limits.DeviceCodesOfAddress {
			if got := try(); got.status != http.StatusBadRequest {
				t.Errorf("%d: %d %s", n, got.status, got.body)
			}
		}
		if got := try(); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "too many wrong codes") {
			t.Errorf("above: %d %s", got.status, got.body)
		}
	}},
	"login-keys": {fmt.Sprintf("%d keys", limits.LoginKeys), func(t *testing.T) {
		w := newWorld(t, nil)
		const given, verifier = "gravel-otter-7-lampshade", "8Kx20wQm57ZtLp93VrNc4Hd6ZyB1sFg8Kx20wQm57ZtLp"
		admin := func(path, body string) {
			if got := w.send(request{bearer: "root-admin", method: http.MethodPost, path: path, body: body}); got.status != http.StatusCreated {
				t.Fatalf("%s: %d %s", path, got.status, got.body)
			}
		}
		admin(group+"/users", `{"metadata":{"name":"zoe"}}`)
		admin(group+"/users/zoe/password", fmt.Sprintf(`{"spec":{"password":%q}}`, given))
		admin(keys, `{"metadata":{"name":"zoe-robot"},"spec":{"user":"zoe"}}`)
		signIn := func() string {
			got := w.send(request{bearer: anonymous, method: http.MethodPost, path: "/auth/password/login", body: fmt.Sprintf(
				`{"client_id":"platform-cli","code_challenge":%q,"code_challenge_method":"S256","username":"zoe","password":%q}`, oauth.S256(verifier), given)})
			var granted struct{ Code string }
			if err := json.Unmarshal([]byte(got.body), &granted); err != nil || got.status != http.StatusOK {
				t.Fatalf("%d %s", got.status, got.body)
			}
			form := url.Values{
				"grant_type": {"authorization_code"}, "client_id": {"platform-cli"}, "code": {granted.Code}, "code_verifier": {verifier},
				"redirect_uri": {oauth.OutOfBand},
			}
			got = w.send(request{bearer: anonymous, method: http.MethodPost, path: "/auth/token", kind: "application/x-www-form-urlencoded", body: form.Encode()})
			var response struct {
				Key string `json:"access_key"`
			}
			if err := json.Unmarshal([]byte(got.body), &response); err != nil || got.status != http.StatusOK {
				t.Fatalf("%d %s", got.status, got.body)
			}
			return response.Key
		}
		left := func() []string {
			var names []string
			got := w.send(request{bearer: "root-admin", path: keys})
			var list model.OwnedAccessKeyList
			if err := json.Unmarshal([]byte(got.body), &list); err != nil {
				t.Fatal(err)
			}
			for _, key := range list.Items {
				if key.Spec.User == "zoe" {
					names = append(names, key.Name)
				}
			}
			return names
		}
		for range limits.LoginKeys {
			signIn()
		}
		if names := left(); len(names) != limits.LoginKeys+1 {
			t.Errorf("at the limit there are %v", names)
		}
		last := signIn()
		if names := left(); len(names) != limits.LoginKeys+1 || !slices.Contains(names, last) || !slices.Contains(names, "zoe-robot") {
			t.Errorf("above the limit there are %v without %s", names, last)
		}
	}},
	"instance-access": {"100 entries", func(t *testing.T) {
		sizeCase{limit: 100, status: http.StatusUnprocessableEntity, field: "spec.access", ask: func(n int) request {
			return request{
				bearer: "root-admin", method: http.MethodPost, path: group + "/namespaces/p-a/virtualclusterinstances",
				body: fmt.Sprintf(`{"metadata":{"name":"a%d"},"spec":{"clusterRef":{"cluster":"a","namespace":"b"},"access":[%s]}}`, n,
					repeatNumbered(n, `{"verbs":["use"],"users":["u%d"]}`)),
			}
		}}.try(t)
	}},
	"display-name": {"256 bytes", func(t *testing.T) {
		sizeCase{
			limit: 256, status: http.StatusUnprocessableEntity, field: "spec.displayName", says: []string{"256"},
			ask: func(n int) request { return spec(`"displayName":"` + strings.Repeat("x", n) + `"`) },
		}.try(t)
	}},
	"description": {"4096 bytes", func(t *testing.T) {
		sizeCase{
			limit: 4096, status: http.StatusUnprocessableEntity, field: "spec.description", says: []string{"4096"},
			ask: func(n int) request { return spec(`"description":"` + strings.Repeat("x", n) + `"`) },
		}.try(t)
	}},
	"list-pages": {fmt.Sprintf("%d pages", limits.ListPages), func(t *testing.T) {
		w := newWorld(t, nil)
		// Each of these objects is larger than a page. The existing keys of alice come before them: one on the first page of a list with
		// limit=1, and the rest on another page.
		rule := `{"verbs":["%d` + strings.Repeat("v", 12_000) + `"]}`
		large := 0
		add := func() {
			one := request{
				method: http.MethodPost, path: keys,
				body: fmt.Sprintf(`{"metadata":{"name":"large-%d"},"spec":{"scope":{"rules":[%s]}}}`, large, repeatNumbered(100, rule)),
			}
			if got := w.send(one); got.status != http.StatusCreated {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
			large++
		}
		for large < limits.ListPages-3 {
			add()
		}
		for _, pages := range []int{limits.ListPages - 1, limits.ListPages, limits.ListPages + 1} {
			w.holder.take()
			got := w.send(request{path: keys + "?limit=1&labelSelector=nothing%3Dlike-that"})
			var list model.OwnedAccessKeyList
			if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK || len(list.Items) != 0 {
				t.Fatalf("%d %.500s: %v", got.status, got.body, err)
			}
			read := len(w.holder.take())
			if read != min(pages, limits.ListPages) || (list.Continue == "") != (pages <= limits.ListPages) {
				t.Errorf("of %d pages, %d are read; continue: %q", pages, read, list.Continue)
			}
			add()
		}
	}},
	"list-bytes": {bytes(limits.PageBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		const large, some = 200_000, 10
		for i := range some {
			if got := w.send(annotatedRequest(fmt.Sprint("large-", i), large)); got.status != http.StatusCreated {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
		}
		listed := 0
		for next := ""; ; {
			got := w.send(request{path: keys + "?limit=500&continue=" + next})
			var list model.OwnedAccessKeyList
			if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK || len(list.Items) == 0 {
				t.Fatalf("%d %.500s: %v", got.status, got.body, err)
			}
			size := 0
			for _, item := range list.Items {
				size += len(item.Annotations["a"])
			}
			if size > limits.PageBytes {
				t.Errorf("a page has %d bytes", size)
			}
			listed += len(list.Items)
			if next = list.Continue; next == "" {
				break
			}
			// One more would be too much.
			if size+large+4096 < limits.PageBytes {
				t.Errorf("a page has only %d bytes", size)
			}
		}
		if want := w.count(t, keys); listed != want {
			t.Errorf("the pages have %d objects of %d", listed, want)
		}
	}},
	"list-held-bytes": {bytes(audit.MaxPayloadBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		const large, some = 100_000, 20
		for i := range some {
			if got := w.send(annotatedRequest(fmt.Sprint("large-", i), large)); got.status != http.StatusCreated {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
		}
		list := func() answer {
			got := w.send(request{path: keys, header: map[string]string{"Accept-Encoding": "identity"}})
			if got.status != http.StatusOK || !json.Valid([]byte(got.body)) {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
			return got
		}
		size := large - 1
		// The end of the list does not count.
		length := len(list().body) - len("]}\n")
		for _, want := range []int{audit.MaxPayloadBytes - 1, audit.MaxPayloadBytes, audit.MaxPayloadBytes + 1} {
			size += want - length
			length = want
			got := w.send(request{
				method: http.MethodPatch, path: keys + "/large-0", kind: "application/merge-patch+json",
				body: fmt.Sprintf(`{"metadata":{"annotations":{"a":%q}}}`, strings.Repeat("x", size)),
			})
			if got.status != http.StatusOK {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
			if answer := list(); len(answer.body) != length+len("]}\n") || (answer.header.Get("Content-Length") == "") != (want > audit.MaxPayloadBytes) {
				t.Errorf("a list of %d bytes, want %d, has the headers %v", len(answer.body), length, answer.header)
			}
		}
	}},
	"page-objects": {fmt.Sprintf("%d records", limits.PageObjects), func(t *testing.T) {
		w := newWorld(t, nil)
		all := w.count(t, keys)
		for _, n := range []int{limits.PageObjects - 1, limits.PageObjects, limits.PageObjects + 1} {
			for ; all < n; all++ {
				if got := w.send(metadata(`"generateName":"a-"`)); got.status != http.StatusCreated {
					t.Fatalf("%d %s", got.status, got.body)
				}
			}
			w.holder.take()
			if listed := w.count(t, keys); listed != n {
				t.Errorf("a list of %d objects has %d", n, listed)
			}
			pages := w.holder.take()
			if one := len(pages) == 1; one != (n <= limits.PageObjects) {
				t.Errorf("%d objects are read in %d pages", n, len(pages))
			}
			for _, page := range pages {
				if page.records > limits.PageObjects {
					t.Errorf("a page has %d objects", page.records)
				}
			}
		}
	}},
	"log-bytes": {bytes(limits.LogBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		first := w.version(t)
		// So many events of this size, together with the other events of the log, would fill the log.
		const size = 200_000
		const fits = limits.LogBytes/size - 50
		for range fits {
			if got := w.send(metadata(`"generateName":"a-"`)); got.status != http.StatusCreated {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		large := func(name string) {
			t.Helper()
			if got := w.send(annotatedRequest(name, size)); got.status != http.StatusCreated {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
		}
		resumes := func(from string) bool {
			got := w.send(request{path: keys + "?watch=1&timeoutSeconds=1&resourceVersion=" + from})
			if got.status != http.StatusOK && got.status != http.StatusGone {
				t.Errorf("%d %.500s", got.status, got.body)
			}
			return got.status == http.StatusOK && !strings.Contains(got.body, `"code":410`)
		}
		if large("within"); !resumes(first) {
			t.Errorf("%d events are too many beside one of %d bytes", fits, size)
		}
		last := w.version(t)
		for range 100 {
			if got := w.send(metadata(`"generateName":"a-"`)); got.status != http.StatusCreated {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		if !resumes(first) {
			t.Error("small events shorten the log")
		}
		if large("beyond"); resumes(first) {
			t.Errorf("%d events stay beside one of %d bytes", fits+100, size)
		}
		if !resumes(last) {
			t.Error("the log is shorter than it has to be")
		}
	}},
	"page-bytes": {bytes(limits.PageBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		const large = 200_000
		count := w.count(t, keys)
		add := func(size int) {
			if got := w.send(annotatedRequest(fmt.Sprint("large-", count), size)); got.status != http.StatusCreated {
				t.Fatalf("%d %.500s", got.status, got.body)
			}
			count++
		}
		list := func() []page {
			w.holder.take()
			if listed := w.count(t, keys); listed != count {
				t.Errorf("a list of %d objects has %d", count, listed)
			}
			return w.holder.take()
		}
		for range limits.PageBytes / large {
			add(large)
		}
		below := list()
		if len(below) != 1 {
			t.Fatalf("below: %+v", below)
		}
		// A record has less than 2 KiB in addition to the object.
		left := limits.PageBytes - below[0].bytes
		add(left - 2048)
		if at := list(); len(at) != 1 {
			t.Errorf("at: %+v", at)
		}
		add(4096)
		above := list()
		if len(above) != 2 {
			t.Errorf("above: %+v", above)
		}
		for _, page := range above {
			if page.bytes > limits.PageBytes {
				t.Errorf("a page has %d bytes", page.bytes)
			}
		}
	}},
}

// quotaRows are the quotas of an owner.
var quotaRows = map[string]row{
	"quota-objects": {try: func(t *testing.T) {
		const objects = 5
		w := newWorld(t, map[string]string{settings.QuotaObjects: fmt.Sprint(objects)})
		add := func(bearer string) answer {
			return w.send(request{bearer: bearer, method: http.MethodPost, path: keys, body: `{"metadata":{"generateName":"a-"}}`})
		}
		for n := w.count(t, keys); n < objects; n++ {
			if got := add("alice"); got.status != http.StatusCreated {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		before := w.storedDigest()
		got := add("alice")
		if got.status != http.StatusTooManyRequests || w.storedDigest() != before {
			t.Fatalf("above: %d %s", got.status, got.body)
		}
		got.checkRefusal(t, "", "the quota of user:alice for ownedaccesskeys is used up", fmt.Sprintf("%d objects, the limit is %d", objects, objects))
		if got := add("bob"); got.status != http.StatusCreated {
			t.Errorf("another owner: %d %s", got.status, got.body)
		}
		if got := w.send(request{method: http.MethodDelete, path: keys + "/alice-admin"}); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		if got := add("alice"); got.status != http.StatusCreated {
			t.Errorf("after a deletion: %d %s", got.status, got.body)
		}
	}},
	"quota-bytes": {try: func(t *testing.T) {
		const size = 64 << 10
		w := newWorld(t, map[string]string{settings.QuotaBytes: fmt.Sprint(size)})
		before := w.storedDigest()
		got := w.send(annotatedRequest("over", size))
		if got.status != http.StatusTooManyRequests || w.storedDigest() != before {
			t.Fatalf("above: %d %.500s", got.status, got.body)
		}
		got.checkRefusal(t, "", "the quota of user:alice for ownedaccesskeys is used up", fmt.Sprintf("the limit is %d", size))
		// The answer names the used bytes and the bytes that the object adds.
		numbers := usedAndAdded.FindStringSubmatch(got.decoded(t).Message)
		if numbers == nil {
			t.Fatalf("%s", got.body)
		}
		used, _ := strconv.Atoi(numbers[1])
		added, _ := strconv.Atoi(numbers[2])
		fits := 2*size - used - added
		if got := w.send(annotatedRequest("over", fits+1)); got.status != http.StatusTooManyRequests {
			t.Errorf("one above: %d %.500s", got.status, got.body)
		}
		if got := w.send(annotatedRequest("over", fits)); got.status != http.StatusCreated {
			t.Errorf("at: %d %.500s", got.status, got.body)
		}
		update := func(text string) int {
			return w.send(request{method: http.MethodPatch, path: keys + "/over", kind: "application/merge-patch+json", body: `{"metadata":` + text + `}`}).status
		}
		if got := update(`{"annotations":{"b":"c"}}`); got != http.StatusTooManyRequests {
			t.Errorf("a larger object: %d", got)
		}
		if got := update(`{"annotations":{"a":"c"}}`); got != http.StatusOK {
			t.Errorf("a smaller object: %d", got)
		}
	}},
}

// version returns the current resourceVersion of the access keys.
func (w *world) version(t *testing.T) string {
	t.Helper()
	var list metav1.List
	got := w.send(request{path: keys + "?limit=1"})
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	return list.ResourceVersion
}

// usedAndAdded matches the numbers in the refusal of a quota of bytes.
var usedAndAdded = regexp.MustCompile(`: (\d+) bytes, .* this write adds (\d+)`)

// count lists a resource without a limit, and returns the number of its items.
func (w *world) count(t *testing.T, path string) int {
	t.Helper()
	got := w.send(request{path: path})
	var list struct {
		Items []struct{} `json:"items"`
	}
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.status != http.StatusOK {
		t.Fatalf("%d %.500s: %v", got.status, got.body, err)
	}
	return len(list.Items)
}
