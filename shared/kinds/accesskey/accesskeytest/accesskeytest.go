// Package accesskeytest is what the tests of the operations on access keys share: a registry over an empty
// state with a fixed clock, two people, and keys of the first.
package accesskeytest

import (
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// Now is what the clock of a registry says.
var Now = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// Ana and Ben have nothing in common.
var (
	Ana = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	Ben = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

// Bearer begins the bearer text of every key that Seed stores; the name of the key follows.
const Bearer = "0123456789-0123456789-0123456789-0123456789"

// New returns the access keys of an empty state, with seeded random text. Its time limit is that of a busy
// machine.
func New(t testing.TB) *accesskey.Registry {
	t.Helper()
	client, err := redisstore.Open(redistest.Embedded(t), redisstore.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return accesskey.NewRegistry(client.Resource(accesskey.Definition.Resource.Resource),
		func() time.Time { return Now }, rand.NewChaCha8([32]byte{1}), func() accesskey.Limits { return accesskey.Limits{} })
}

// Seed stores a key of Ana's and returns it as a read shows it.
func Seed(t testing.TB, keys *accesskey.Registry, name string) *model.OwnedAccessKey {
	t.Helper()
	written, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: Ana, Object: &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.OwnedAccessKeySpec{DisplayName: "Seed", Key: Bearer + name},
	}})
	if err != nil {
		t.Fatal(err)
	}
	written.Object.Spec.Key = ""
	return written.Object
}

// Code is the HTTP status of an error, 0 for none.
func Code(err error) int32 {
	if err == nil {
		return 0
	}
	return apierror.From(err).Status().Code
}
