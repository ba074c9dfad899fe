package accesskey

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// digests is a store that notes what is created in it.
type digests struct {
	store.Store
	added []string
}

func (d *digests) Create(_ context.Context, record store.Record) (int64, error) {
	d.added = append(d.added, record.Name)
	return 1, nil
}

// A write retires the text of a key that an admin disabled, and of no other. Only objects that can be of such a key are decoded.
// Source: ADR-0022.
func TestRetire(t *testing.T) {
	t.Parallel()
	object := func(change func(*model.OwnedAccessKey)) []byte {
		key := &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{User: "ana"}}
		change(key)
		text, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	list := &digests{}
	keys := &retiring{retired: &Retired{state: list, now: func() (none time.Time) { return none }}}
	for _, row := range []struct {
		about   string
		object  []byte
		retires bool
	}{
		{"a key", object(func(*model.OwnedAccessKey) {}), false},
		{"a key that its owner disabled", object(func(k *model.OwnedAccessKey) { k.Spec.Disabled = true }), false},
		{"a key that an admin disabled", object(func(k *model.OwnedAccessKey) { k.Status.DisabledByAdmin = true }), true},
		{"a key with a label of that name", object(func(k *model.OwnedAccessKey) { k.Labels = map[string]string{"disabledByAdmin": "true"} }), false},
	} {
		list.added = nil
		if err := keys.retire(t.Context(), store.Record{Digest: "d", Object: row.object}); err != nil || (len(list.added) == 1) != row.retires {
			t.Errorf("%s: the list gets %q, %v", row.about, list.added, err)
		}
	}
	// An object that was decoded could not be read here.
	for text, decoded := range map[string]bool{`{"spec":`: false, `{"status":{"disabledByAdmin":`: true} {
		if err := keys.retire(t.Context(), store.Record{Digest: "d", Object: []byte(text)}); (err != nil) != decoded {
			t.Errorf("%s: %v", text, err)
		}
	}
}
