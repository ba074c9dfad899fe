package kinds_test

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// Functions without the rules of all kinds have a list of kinds. The list is the same as the list of the graph.
func TestStoredKinds(t *testing.T) {
	t.Parallel()
	config := &model.ConfigStatus{}
	env := &platform.Environment{
		Stores: func(string) store.Store { return nil }, Now: time.Now, Config: func() *model.ConfigStatus { return config },
	}
	if joined := kinds.Graph(env).Kinds(); !slices.Equal(joined, platform.StoredKinds) {
		t.Errorf("the graph joins %+v, and platform.StoredKinds lists %+v", joined, platform.StoredKinds)
	}
	readers := kinds.Readers(env)
	if !slices.EqualFunc(readers, platform.StoredKinds, func(reader resource.Decider, kind platform.StoredKind) bool {
		return reader.GroupResource() == kind.Resource.GroupResource()
	}) {
		t.Errorf("there are %d readers, and platform.StoredKinds lists %+v", len(readers), platform.StoredKinds)
	}
}

// A function that opens only access keys refuses a key as soon as its instance is deleted, whether or not the key has been
// removed. Source: ADR-0017.
func TestReadersLookOwnersUp(t *testing.T) {
	t.Parallel()
	client := redistest.Open(t, redistest.Embedded(t))
	config := &model.ConfigStatus{}
	open := func() *platform.Environment {
		return &platform.Environment{
			Stores: client.Resource, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
			Config: func() *model.ConfigStatus { return config },
		}
	}
	writer, reader := kinds.Open(open()), open()
	owner, err := resource.Create(t.Context(), writer.Instances, resource.CreateInput[*model.VirtualClusterInstance]{
		Caller: admin, Namespace: "p-shop", Object: &model.VirtualClusterInstance{
			ObjectMeta: metav1.ObjectMeta{Name: "dev", Finalizers: []string{"example.com/hold"}},
			Spec: model.VirtualClusterInstanceSpec{
				Owner:       &model.InstanceOwner{User: "ana"},
				AccessPoint: &model.InstanceAccessPoint{Ingress: &model.InstanceIngress{Enabled: true, Host: "dev.example.com"}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const bearer = secret.String("ana-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg")
	if _, err := resource.Create(t.Context(), writer.AccessKeys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: admin, Object: &model.OwnedAccessKey{
			ObjectMeta: metav1.ObjectMeta{
				Name: "ci", Labels: map[string]string{accesskey.OwnerNamespaceLabel: "p-shop"}, Finalizers: []string{"example.com/hold"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: model.SchemeGroupVersion.String(), Kind: instance.Definition.Kind, Name: "dev", UID: owner.Object.UID,
				}},
			},
			Spec: model.OwnedAccessKeySpec{User: "ana", Key: bearer.Reveal()},
		},
	}); err != nil {
		t.Fatal(err)
	}
	ask := func() int32 {
		_, err := accesskey.OpenAuthenticator(reader).Bearer(t.Context(), bearer)
		if err == nil {
			return http.StatusOK
		}
		return apierror.From(err).Status().Code
	}
	if got := ask(); got != http.StatusOK {
		t.Fatalf("with its instance the key is answered %d", got)
	}
	state := client.Resource(instance.Definition.Resource.Resource)
	record, err := state.Get(t.Context(), "p-shop/dev")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Delete(t.Context(), record.Name, record.Revision); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != http.StatusUnauthorized {
		t.Errorf("without its instance the key is answered %d", got)
	}
}
