package updateaccesskey

import (
	"math/rand/v2"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/accesskey"
	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/fieldmanager"
	"management.platform.sh/shared/identity"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/resource"
	"management.platform.sh/shared/store/redisstore"
	"management.platform.sh/shared/store/redisstore/redistest"
)

var now = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// newDeps is the operation on an empty state, with a fixed clock and seeded random text.
func newDeps(t testing.TB) Deps {
	t.Helper()
	client, err := redisstore.Open(redistest.Embedded(t), redisstore.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return Deps{Keys: accesskey.NewRegistry(client.Resource("ownedaccesskeys"),
		func() time.Time { return now }, rand.NewChaCha8([32]byte{1}), func() time.Duration { return 0 }).Managed(fieldmanager.New)}
}

var (
	ana = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	ben = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

func code(err error) int32 {
	if err == nil {
		return 0
	}
	return apierror.From(err).Status().Code
}

// seed stores a key of ana's.
func seed(t testing.TB, deps Deps, name string) *model.OwnedAccessKey {
	t.Helper()
	given := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.OwnedAccessKeySpec{DisplayName: "Seed", Key: bearer}}
	given.Spec.Key += name
	written, err := resource.Create(t.Context(), deps.Keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: ana, Object: given})
	if err != nil {
		t.Fatal(err)
	}
	written.Object.Spec.Key = ""
	return written.Object
}

const bearer = "0123456789-0123456789-0123456789-0123456789"

func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		caller identity.Caller
		change func(*model.OwnedAccessKey)
		code   int32
	}{
		{"disabled (Spec 3)", ana, func(k *model.OwnedAccessKey) { k.Spec.Disabled = true }, 0},
		{"another scope", ana, func(k *model.OwnedAccessKey) { k.Spec.Scope = &model.Scope{} }, 0},
		{"given away", ana, func(k *model.OwnedAccessKey) { k.Spec.User = "ben" }, 403},
		{"a bad ttl", ana, func(k *model.OwnedAccessKey) { k.Spec.TTLSeconds = -1 }, 422},
		{"stale", ana, func(k *model.OwnedAccessKey) { k.ResourceVersion = "99" }, 409},
		{"somebody else's", ben, func(k *model.OwnedAccessKey) { k.Spec.Disabled = true }, 404},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			deps := newDeps(t)
			want := seed(t, deps, "ci")
			row.change(want)
			got, err := Do(t.Context(), deps, Input{Caller: row.caller, Name: "ci", Manager: "curl", Object: want.DeepCopy()})
			if code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err != nil {
				return
			}
			want.Generation, want.ResourceVersion = 2, "2"
			if fields := got.Object.ManagedFields; len(fields) != 2 {
				t.Errorf("managedFields are %+v", fields)
			}
			got.Object.ManagedFields = want.ManagedFields
			if !apiequality.Semantic.DeepEqual(got.Object, want) {
				t.Errorf("answered\n%+v\nwant\n%+v", got.Object, want)
			}
		})
	}
}
