package getaccesskey

import (
	"math/rand/v2"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/accesskey"
	"management.platform.sh/shared/apierror"
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
		func() time.Time { return now }, rand.NewChaCha8([32]byte{1}), func() time.Duration { return 0 })}
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
	deps := newDeps(t)
	want := seed(t, deps, "ci")
	for _, row := range []struct {
		about  string
		caller identity.Caller
		name   string
		code   int32
	}{
		{"his own", ana, "ci", 0},
		{"an admin's view", identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins}), "ci", 0},
		{"somebody else's does not exist", ben, "ci", 404},
		{"an absent one", ana, "cd", 404},
	} {
		got, err := Do(t.Context(), deps, Input{Caller: row.caller, Name: row.name})
		if code(err) != row.code {
			t.Errorf("%s: %v", row.about, err)
		}
		if err == nil && !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", row.about, got, want)
		}
	}
}
