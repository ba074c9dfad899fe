package accesskey_test

import (
	"context"
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// looked counts the reads of a store.
type looked struct {
	store.Store

	reads *atomic.Int64
}

func (l looked) Get(ctx context.Context, name string) (store.Record, error) {
	l.reads.Add(1)
	return l.Store.Get(ctx, name)
}

// The store looks up in the list of retired texts every text that a client brings, and every text of a create that may be
// repeated: an earlier attempt may have made the same text. It does not look up a text that was drawn just now. Source: ADR-0022,
// ADR-0026.
func TestRetiredTexts(t *testing.T) {
	t.Parallel()
	client, err := redisstore.Open(redistest.Embedded(t), redisstore.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var reads atomic.Int64
	env := &platform.Environment{
		Stores: func(name string) store.Store {
			if name == accesskey.Definition.Resource.Resource {
				return client.Resource(name)
			}
			return looked{client.Resource(name), &reads}
		},
		Now: func() time.Time { return born }, Random: rand.Reader, Config: func() *model.ConfigStatus { return &model.ConfigStatus{} },
	}
	keys, retired := accesskey.Open(env), accesskey.OpenRetired(env)
	seed := func() io.Reader { return mathrand.NewChaCha8([32]byte{1}) }
	for _, row := range []struct {
		about, text string
		random      func() io.Reader
		reads       int64
	}{
		{"drawn just now", "", func() io.Reader { return nil }, 0},
		{"that a client brings", "ana-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg", func() io.Reader { return nil }, 2},
		{"of a create that may be repeated", "", seed, 2},
	} {
		create := func() (string, error) {
			reads.Store(0)
			result, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{
				Caller: accesskeytest.Ana, Random: row.random(),
				Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ci"}, Spec: model.OwnedAccessKeySpec{Key: row.text}},
			})
			if err != nil {
				return "", err
			}
			return result.Object.Spec.Key, nil
		}
		bearer, err := create()
		if err != nil || reads.Load() != row.reads {
			t.Errorf("a text %s: the list is read %d times, not %d; %v", row.about, reads.Load(), row.reads, err)
		}
		record, err := keys.Store.Get(t.Context(), "ci")
		if err == nil && record.Digest != accesskey.Digest(secret.String(bearer)) {
			t.Errorf("a text %s is not the one that the answer has", row.about)
		}
		if err == nil {
			_, err = keys.Store.Delete(t.Context(), record.Name, record.Revision)
		}
		if err == nil {
			err = retired.Add(t.Context(), record.Digest, record.Owner, store.Quota{})
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := create()
		if row.reads == 0 && (err != nil || again == bearer) || row.reads > 0 && accesskeytest.Code(err) != 422 {
			t.Errorf("a text %s, once it is retired: %v", row.about, err)
		}
		if err == nil {
			record, err := keys.Store.Get(t.Context(), "ci")
			if err == nil {
				_, err = keys.Store.Delete(t.Context(), record.Name, record.Revision)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
