package collectgarbage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/collectgarbage"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var born = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A run finishes the deletions that requests leave: the rest of many dependents, and a key in its grace period. Without
// state the run fails and says so. Source: Spec 2.2, 3; ADR-0009.
func TestDo(t *testing.T) {
	t.Parallel()
	client := redistest.Open(t, redistest.Embedded(t))
	now := born
	clock := func() time.Time { return now }
	keys := accesskey.NewRegistry(client.Resource("ownedaccesskeys"), clock, rand.NewChaCha8([32]byte{7}), func() accesskey.Limits { return accesskey.Limits{} })
	deps := collectgarbage.Deps{Graph: gc.NewGraph(nil)}
	keys = resource.Join(deps.Graph, keys)
	admin := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	create := func(name string, owners ...metav1.OwnerReference) *model.OwnedAccessKey {
		t.Helper()
		written, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{
			Caller: admin, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return written.Object
	}
	owner := create("owner")
	const many = 130
	for i := range many {
		create(fmt.Sprintf("owned-%03d", i), metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID})
	}
	create("later")
	create("stays")
	for name, grace := range map[string]int64{"owner": 0, "later": 60} {
		if _, err := resource.Delete(t.Context(), keys, resource.DeleteInput{Caller: admin, Name: name, GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
	}
	// The deletion has removed a hundred, or fewer if it took too long.
	page, err := keys.Store.List(t.Context(), store.Query{})
	rest := len(page.Records) - 2
	if err != nil || rest < many-100 {
		t.Fatalf("the deletion has left %d, %v", rest, err)
	}
	for _, step := range []struct {
		at   time.Duration
		want collectgarbage.Output
		left int
	}{
		{0, collectgarbage.Output{Removed: rest}, 2},
		{59 * time.Second, collectgarbage.Output{}, 2},
		{60 * time.Second, collectgarbage.Output{Removed: 1}, 1},
		{time.Hour, collectgarbage.Output{}, 1},
	} {
		now = born.Add(step.at)
		if done, err := collectgarbage.Do(t.Context(), deps); err != nil || done != step.want {
			t.Errorf("after %v the run did %+v, %v, want %+v", step.at, done, err, step.want)
		}
		if page, err := keys.Store.List(t.Context(), store.Query{}); err != nil || len(page.Records) != step.left {
			t.Errorf("after %v %d are left, %v", step.at, len(page.Records), err)
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if done, err := collectgarbage.Do(t.Context(), deps); !errors.Is(err, store.ErrUnavailable) || done != (collectgarbage.Output{}) {
		t.Errorf("without state the run did %+v, %v", done, err)
	}
}
