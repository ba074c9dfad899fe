package frame_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/store"
)

// narrow is a state with small pages. Before each page but the first of a list, it does something.
type narrow struct {
	store.Store
	objects int
	between func(context.Context)
	gone    bool
}

func (n *narrow) List(ctx context.Context, query store.Query) (store.Page, error) {
	if query.After != "" && n.between != nil {
		n.between(ctx)
	}
	if query.Limit == 0 {
		query.Limit = n.objects
	}
	return n.Store.List(ctx, query)
}

func (n *narrow) Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]store.Event, error) {
	if n.gone {
		return nil, store.ErrGone
	}
	return n.Store.Events(ctx, after, limit, wait)
}

// narrowed makes the pages of the keys of a world small, and adds removals of collections.
func (w *world) narrowed(objects int) *narrow {
	stores := w.env.Stores
	state := &narrow{Store: stores(accesskey.Definition.Resource.Resource), objects: objects}
	metrics := w.server.Metrics
	w.env = &platform.Environment{
		Stores: func(name string) store.Store {
			if name == accesskey.Definition.Resource.Resource {
				return state
			}
			return stores(name)
		},
		Now: w.env.Now, Random: w.env.Random, Log: w.env.Log, Config: w.env.Config, Version: w.env.Version,
	}
	w.server = process.NewServer(w.env)
	w.server.Metrics = metrics
	removing := *keys
	removing.Endpoints = append(slices.Clone(keys.Endpoints), frame.DeleteCollection(accesskey.Definition, registry, resource.Delete[*model.OwnedAccessKey]))
	w.handler = w.server.Mount(&removing)
	return state
}

// fill creates keys with an annotation of a size.
func (w *world) fill(count, size int) {
	w.t.Helper()
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	for i := range count {
		object := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("filled-%03d", i), Annotations: map[string]string{"a": strings.Repeat("x", size), "b": "[]\n}\nitems: []\n"},
		}}
		object.Spec.User = "ana"
		if _, err := resource.Create(w.t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Object: object}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A list has the same bytes whether it is read in one page or in many, in every form. Source: ADR-0020.
func TestListsInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(20, 10)
	whole := w.handler
	w.narrowed(3)
	for _, accept := range []string{
		"application/json", "application/yaml",
		"application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	} {
		for _, query := range []string{
			"", "?pretty=1", "?fieldSelector=metadata.name%3Dfilled-019", "?fieldSelector=metadata.name%3Dfilled-000", "?labelSelector=none", "?labelSelector=none&pretty=1",
			"?includeObject=Object", "?includeObject=None",
		} {
			r := request{path: root + query, header: map[string]string{"Accept": accept}}
			want, got := httptest.NewRecorder(), w.do(r)
			whole.ServeHTTP(want, w.request(r))
			if got.Code != http.StatusOK || got.Code != want.Code || got.Body.String() != want.Body.String() {
				t.Errorf("%s %s: %d\n%s\nwant %d\n%s", accept, query, got.Code, got.Body, want.Code, want.Body)
			}
			got.Header().Del("X-Request-Id")
			want.Header().Del("X-Request-Id")
			if fmt.Sprint(got.Header()) != fmt.Sprint(want.Header()) {
				t.Errorf("%s %s: headers %v, want %v", accept, query, got.Header(), want.Header())
			}
		}
	}
}

// A long list is sent while it is read, and is complete.
func TestLongLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(24, 100<<10)
	// The first request notes the use of the key.
	w.do(request{path: root + "/admin"})
	list, err := resource.List(t.Context(), kinds.AccessKeys(w.env), resource.ListInput{Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	inYAML, err := yaml.JSONToYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	w.narrowed(7)
	for accept, want := range map[string][]byte{"application/json": text, "application/yaml": inYAML} {
		for _, encoding := range []string{"", "gzip"} {
			w.log.take(t)
			answer := w.do(request{path: root, header: map[string]string{"Accept": accept, "Accept-Encoding": encoding}})
			got := answer.Body.Bytes()
			if encoding != "" {
				got = unzipped(t, answer)
			}
			if answer.Code != http.StatusOK || answer.Header().Get("Content-Length") != "" || answer.Header().Get("Vary") != "Accept-Encoding" || !bytes.Equal(got, append(slices.Clone(want), '\n')) {
				t.Errorf("%s: %d with %v and %d bytes, want %d", accept, answer.Code, answer.Header(), len(got), len(want)+1)
			}
			if lines := w.log.take(t); len(lines) != 1 || lines[0]["status"] != 200.0 || lines[0]["ended"] != nil {
				t.Errorf("the log says %v", lines)
			}
		}
	}
}

// A list that cannot be completed begins again as long as nothing has been sent. After that, the connection is aborted.
func TestListsThatCannotBeCompleted(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 100 << 10} {
		w := newWorld(t)
		w.fill(40, size)
		beside := w.env
		state := w.narrowed(4)
		server := httptest.NewServer(w.handler)
		defer server.Close()
		writes := 0
		state.between = func(ctx context.Context) {
			// The log is lost while the last pages are read.
			if writes++; writes != 9 {
				return
			}
			state.gone = true
			key, err := resource.Get(ctx, kinds.AccessKeys(beside), resource.GetInput{Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), Name: "filled-000"})
			if err != nil {
				t.Error(err)
				return
			}
			key.Spec.Description = "changed"
			if _, err := resource.Update(ctx, kinds.AccessKeys(beside), resource.UpdateInput[*model.OwnedAccessKey]{
				Caller: identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), Name: key.Name, Object: key,
			}); err != nil {
				t.Error(err)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+root, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+adminKey)
		w.log.take(t)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if size == 10 {
			var list model.OwnedAccessKeyList
			if err != nil || json.Unmarshal(text, &list) != nil || len(list.Items) != 43 || answer.StatusCode != http.StatusOK {
				t.Errorf("a short list is answered %d with %d objects: %v", answer.StatusCode, len(list.Items), err)
			}
			continue
		}
		if answer.StatusCode != http.StatusOK || !errors.Is(err, io.ErrUnexpectedEOF) || json.Valid(text) {
			t.Errorf("a long list is answered %d with %d bytes: %v", answer.StatusCode, len(text), err)
		}
		server.Close()
		if lines := w.log.take(t); len(lines) != 1 || lines[0]["ended"] != "the response was cut off" || lines[0]["reason"] != "Expired" {
			t.Errorf("the log says %v", lines)
		}
	}
}

// The audit records a list that has been read in parts, unless it is too large.
func TestEventsOfLists(t *testing.T) {
	t.Parallel()
	for size, omitted := range map[int]string{10: "", 100 << 10: "too-large"} {
		w := newWorld(t)
		w.fill(30, size)
		w.narrowed(4)
		book := w.booked(rules(model.AuditRule{Level: "RequestResponse", FailurePolicy: "Fail"}))
		if answer := w.do(request{path: root}); answer.Code != http.StatusOK {
			t.Fatalf("answered %d", answer.Code)
		}
		events := book.take()
		event := events[len(events)-1]
		var list model.OwnedAccessKeyList
		_ = json.Unmarshal(event.ResponseObject, &list)
		if event.Stage != audit.ResponseComplete || event.ResponseStatus.Code != http.StatusOK || event.Annotations[audit.ResponseOmitted] != omitted ||
			omitted == "" && len(list.Items) != 33 {
			t.Errorf("%d bytes each: %s %v, %v, %d objects", size, event.Stage, event.ResponseStatus, event.Annotations, len(list.Items))
		}
		// What cannot be recorded is not sent.
		book.refuse(func(e audit.Event) bool { return e.Stage == audit.ResponseComplete })
		refused(t, w.do(request{path: root}), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	}
}

// The removal of a collection is answered with all of its objects, and each is removed.
func TestRemovalsInParts(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 100 << 10} {
		w := newWorld(t)
		w.fill(40, size)
		w.narrowed(4)
		book := w.booked(rules(model.AuditRule{Level: "Metadata"}))
		answer := w.do(request{method: http.MethodDelete, path: root + "?fieldSelector=metadata.name%21%3Dadmin"})
		var removed, left model.OwnedAccessKeyList
		if err := json.Unmarshal(answer.Body.Bytes(), &removed); err != nil || answer.Code != http.StatusOK || len(removed.Items) != 42 {
			t.Errorf("answered %d with %d objects (%v)", answer.Code, len(removed.Items), err)
		}
		events := 0
		for _, event := range book.take() {
			if event.Verb == "delete" {
				events++
			}
		}
		if events != 42 {
			t.Errorf("%d removals are recorded", events)
		}
		if err := json.Unmarshal(w.do(request{path: root}).Body.Bytes(), &left); err != nil || len(left.Items) != 1 {
			t.Errorf("%d objects are left (%v)", len(left.Items), err)
		}
	}
}

func unzipped(t testing.TB, answer *httptest.ResponseRecorder) []byte {
	t.Helper()
	if answer.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("the answer has the headers %v", answer.Header())
	}
	reader, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Large responses are compressed for clients that ask for that.
func TestCompression(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(1, limits.CompressedBytes)
	large, small := root+"/filled-000", root+"/admin"
	plain := w.do(request{path: large}).Body.String()
	for _, row := range []struct {
		path, accept string
		compressed   bool
	}{
		{large, "gzip", true}, {large, "deflate, gzip;q=0.5, br", true}, {large, "GZIP", true}, {large, "*", true}, {large, "*;q=0, gzip", true},
		{large, "", false}, {large, "gzip;q=0", false}, {large, "*, gzip; q=0.0", false}, {large, "br", false}, {large, "identity", false}, {large, "gzip;q=x", false},
		{small, "gzip", false},
	} {
		answer := w.do(request{path: row.path, header: map[string]string{"Accept-Encoding": row.accept}})
		if answer.Code != http.StatusOK || (answer.Header().Get("Content-Encoding") == "gzip") != row.compressed ||
			(answer.Header().Get("Vary") == "Accept-Encoding") != (row.path == large) {
			t.Errorf("%s, %q: %d with %v", row.path, row.accept, answer.Code, answer.Header())
		}
		if row.compressed && (answer.Body.Len() > limits.CompressedBytes/2 || string(unzipped(t, answer)) != plain) {
			t.Errorf("%q: the response differs", row.accept)
		}
		if !row.compressed && answer.Header().Get("Content-Length") != fmt.Sprint(answer.Body.Len()) {
			t.Errorf("%q: the length is %q", row.accept, answer.Header().Get("Content-Length"))
		}
	}
}

// keeping is a client that goes away while it receives a response. The server keeps the bytes that it was given to send, as the
// HTTP/2 server does.
type keeping struct {
	header     http.Header
	kept, were [][]byte
	// received is how many writes succeed.
	received int
}

func (k *keeping) Header() http.Header { return k.header }
func (k *keeping) WriteHeader(int)     {}
func (k *keeping) Write(text []byte) (int, error) {
	if k.received--; k.received >= 0 {
		return len(text), nil
	}
	k.kept, k.were = append(k.kept, text), append(k.were, bytes.Clone(text))
	return 0, io.ErrClosedPipe
}

// The memory of a response that could not be sent is not used for another one: the server may still be sending it.
func TestUnsentMemoryIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(20, limits.CompressedBytes/10)
	for accept, received := range map[string]int{"": 0, "gzip": 1} {
		list := request{path: root, header: map[string]string{"Accept-Encoding": accept}}
		for range 20 {
			client := &keeping{header: http.Header{}, received: received}
			w.handler.ServeHTTP(client, w.request(list))
			if len(client.kept) == 0 {
				t.Fatal("everything was sent")
			}
			// These lists have other objects and other lengths.
			for _, limit := range []int{1, 20, 7} {
				w.do(request{path: fmt.Sprint(root, "?limit=", limit, "&fieldSelector=metadata.name!%3Dfilled-000"), header: list.header})
				w.do(request{path: fmt.Sprint(root, "?limit=", limit), header: list.header})
			}
			for i := range client.kept {
				if !bytes.Equal(client.kept[i], client.were[i]) {
					t.Fatalf("%q: %d bytes that were being sent have changed", accept, len(client.kept[i]))
				}
			}
		}
	}
}
