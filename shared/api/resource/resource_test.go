package resource_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// The verbs are tested with access keys, the resource that they were written for.
type (
	key      = model.OwnedAccessKey
	keyList  = model.OwnedAccessKeyList
	registry = accesskey.Registry
)

var (
	now = time.Date(2027, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)

	admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	ana   = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.TeamPrefix + "core"})
	ben   = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

// locked is a source of random bytes that several goroutines may read, as they read that of a process.
type locked struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func (l *locked) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Read(p)
}

// seeded returns the same random text in every run.
func seeded(seed byte) io.Reader { return &locked{source: rand.NewChaCha8([32]byte{seed})} }

// repeating is random text that never changes.
type repeating struct{}

func (repeating) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// newStore is an empty state. Its time limit is that of a busy machine.
func newStore(t testing.TB) store.Store {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	return client.Resource("ownedaccesskeys")
}

func newRegistry(state store.Store, random io.Reader) *registry {
	return accesskey.NewRegistry(state, func() time.Time { return now }, random, func() accesskey.Limits { return accesskey.Limits{} }).WithFieldManager(fieldmanager.New)
}

// open is an empty registry.
func open(t testing.TB) *registry {
	t.Helper()
	return newRegistry(newStore(t), seeded(1))
}

func grantee(name string) *key { return &key{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// create stores a key that the caller owns.
func create(t testing.TB, r *registry, caller identity.Caller, object *key) *key {
	t.Helper()
	written, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: caller, Object: object})
	if err != nil {
		t.Fatalf("creating %q: %v", object.Name, err)
	}
	written.Object.Spec.Key = ""
	return written.Object
}

func get(t testing.TB, r *registry, name string) *key {
	t.Helper()
	object, err := resource.Get(t.Context(), r, resource.GetInput{Caller: admin, Name: name})
	if err != nil {
		t.Fatalf("getting %q: %v", name, err)
	}
	return object
}

func update(t testing.TB, r *registry, object *key) (*key, error) {
	t.Helper()
	written, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: admin, Name: object.Name, Object: object})
	return written.Object, err
}

func patch(t testing.TB, r *registry, name string, kind resource.PatchType, document string) (*key, error) {
	t.Helper()
	written, err := resource.Patch(t.Context(), r, resource.PatchInput{Caller: admin, Name: name, Type: kind, Patch: []byte(document)})
	return written.Object, err
}

// revision is the revision of the whole state.
func revision(t testing.TB, state store.Store) int64 {
	t.Helper()
	page, err := state.List(t.Context(), store.Query{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return page.Revision
}

// refusal is an error as a client acts on it. The zero value is no error.
type refusal struct {
	code   int32
	reason metav1.StatusReason
	fields []string
}

var (
	notFound      = refusal{code: 404, reason: metav1.StatusReasonNotFound}
	conflict      = refusal{code: 409, reason: metav1.StatusReasonConflict}
	alreadyExists = refusal{code: 409, reason: metav1.StatusReasonAlreadyExists}
	badRequest    = refusal{code: 400, reason: metav1.StatusReasonBadRequest}
	invalidPatch  = refusal{code: 422, reason: metav1.StatusReasonInvalid}
	internal      = refusal{code: 500, reason: metav1.StatusReasonInternalError}
)

// badOperation is a JSON patch with an invalid operation at that index.
func badOperation(index int) refusal {
	return refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: []string{fmt.Sprintf("patch[%d]", index)}}
}

// badFields is a body in which these fields contradict the request or are missing.
func badFields(fields ...string) refusal {
	return refusal{code: 400, reason: metav1.StatusReasonBadRequest, fields: fields}
}

func invalid(fields ...string) refusal {
	return refusal{code: 422, reason: metav1.StatusReasonInvalid, fields: fields}
}

func refusalOf(err error) refusal {
	if err == nil {
		return refusal{}
	}
	status := apierror.From(err).Status()
	got := refusal{code: status.Code, reason: status.Reason}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			got.fields = append(got.fields, cause.Field)
		}
	}
	return got
}

func expect(t testing.TB, err error, want refusal) {
	t.Helper()
	if got := refusalOf(err); got.code != want.code || got.reason != want.reason || !slices.Equal(got.fields, want.fields) {
		t.Errorf("refused with %+v (%v), want %+v", got, err, want)
	}
}

// names are the names of a list, in its order.
func names(list *model.OwnedAccessKeyList) string {
	found := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		found = append(found, item.Name)
	}
	return strings.Join(found, " ")
}
