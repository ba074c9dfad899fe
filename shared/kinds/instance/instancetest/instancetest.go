// Package instancetest has what the tests of operations on virtual cluster instances share: a registry over an empty state with a
// fixed clock, callers, and an instance with a certificate authority. Source: ADR-0017.
package instancetest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// Admin creates the instances. Ana owns the instances that Seed stores. Ben has no rights to them.
var (
	Admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	Ana   = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	Ben   = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

// Now is the time of the clock of a new World.
var Now = clustercatest.Now

// World has an empty state and the registry of instances over it.
type World struct {
	Instances *instance.Registry
	// Ring seals the material of signers. State returns the store of a resource.
	Ring  *encryption.Keyring
	State func(resource string) store.Store
	// Clock is the time that Now returns; tests may set it.
	Clock time.Time
}

// Now returns the time of the clock.
func (w *World) Now() time.Time { return w.Clock }

// Project returns the project of a namespace.
func Project(namespace string) string {
	project, ok := strings.CutPrefix(namespace, "p-")
	if !ok {
		return ""
	}
	return project
}

// New returns a World over an empty state. Its time limit is long enough for a busy machine.
func New(t testing.TB) *World {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Ring: ring, State: client.Resource, Clock: Now}
	w.Instances = instance.NewRegistry(client.Resource(instance.Definition.Resource.Resource), w.Now, rand.NewChaCha8([32]byte{2}), instance.Settings{
		Project: Project, AllowLocal: true, Keyring: func() (*encryption.Keyring, error) { return w.Ring, nil },
	})
	return w
}

// Instance returns an instance of Ana's in the project shop, with an ingress endpoint and a certificate authority.
func Instance(t testing.TB, name string) *model.VirtualClusterInstance {
	t.Helper()
	certificate, key := clustercatest.Authority(t, nil)
	return &model.VirtualClusterInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "p-shop"},
		Spec: model.VirtualClusterInstanceSpec{
			Owner:       &model.InstanceOwner{User: "ana"},
			AccessPoint: &model.InstanceAccessPoint{Ingress: &model.InstanceIngress{Enabled: true, Host: name + ".example.com", CAData: certificate}},
			Signer:      &model.InstanceSigner{CA: &model.InstanceSignerCA{CertData: certificate, KeyData: secret.WriteOnlyBytes(key)}},
		},
	}
}

// Seed stores an instance and returns it as a read shows it.
func (w *World) Seed(t testing.TB, object *model.VirtualClusterInstance) *model.VirtualClusterInstance {
	t.Helper()
	return Store(t, w.Instances, object)
}

// Store stores an instance in a registry and returns it as a read shows it.
func Store(t testing.TB, instances *instance.Registry, object *model.VirtualClusterInstance) *model.VirtualClusterInstance {
	t.Helper()
	result, err := resource.Create(t.Context(), instances, resource.CreateInput[*model.VirtualClusterInstance]{
		Caller: Admin, Namespace: object.Namespace, Object: object.DeepCopy(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return result.Object
}
