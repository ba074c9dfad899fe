package accesskey

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// digests is a store that records the names of the objects that are created in it.
type digests struct {
	store.Store
	added []string
}

func (d *digests) Create(_ context.Context, record store.Record) (int64, error) {
	d.added = append(d.added, record.Name)
	return 1, nil
}

// A write retires the text of a key that an admin disabled, and of no other key. Only objects that may have the mark of such a
// key are decoded. Source: ADR-0022.
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
		if did, err := keys.retire(t.Context(), store.Record{Digest: "d", Object: row.object}); err != nil || did != row.retires || (len(list.added) == 1) != row.retires {
			t.Errorf("%s: the list gets %q, %v", row.about, list.added, err)
		}
	}
	// These objects are not JSON, so decoding one of them is an error.
	for text, decoded := range map[string]bool{`{"spec":`: false, `{"status":{"disabledByAdmin":`: true} {
		if _, err := keys.retire(t.Context(), store.Record{Digest: "d", Object: []byte(text)}); (err != nil) != decoded {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// late is a list of retired texts to which a text is added after its first lookup, and the store of the key that has the text.
type late struct {
	store.Store
	asked   int
	removed []string
}

func (l *late) Get(context.Context, string) (store.Record, error) {
	if l.asked++; l.asked == 1 {
		return store.Record{}, store.ErrNotFound
	}
	return store.Record{}, nil
}

func (l *late) Create(context.Context, store.Record) (int64, error) { return 7, nil }

func (l *late) Delete(_ context.Context, name string, revision int64) (int64, error) {
	if revision == 7 {
		l.removed = append(l.removed, name)
	}
	return 8, nil
}

// If a text is retired while a key with that text is being stored, no key has the text afterwards. Source: ADR-0047.
func TestRetiredMeanwhile(t *testing.T) {
	t.Parallel()
	state := &late{}
	keys := &retiring{Store: state, retired: &Retired{state: state}}
	if _, err := keys.Create(t.Context(), store.Record{Name: "a", Digest: "d", Object: []byte("{}")}); !errors.Is(err, store.ErrTaken) || len(state.removed) != 1 {
		t.Errorf("%v, and %q is removed", err, state.removed)
	}
	drawn := &late{asked: 1}
	keys = &retiring{Store: drawn, retired: &Retired{state: drawn}}
	if _, err := keys.Create(t.Context(), store.Record{Name: "a", Digest: "d", Drawn: true, Object: []byte("{}")}); err != nil || drawn.asked != 1 {
		t.Errorf("a drawn text: %v after %d looks", err, drawn.asked)
	}
}
