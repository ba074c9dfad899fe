package stored

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestKeepUnknown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ about, stored, known, updated, want string }{
		{"nothing unknown", `{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":2}`},
		{"unknown beside a change", `{"a":1,"x":1}`, `{"a":1}`, `{"a":2}`, `{"a":2,"x":1}`},
		{"the update knows it after all", `{"a":1,"x":1}`, `{"a":1}`, `{"a":1,"x":2}`, `{"a":1,"x":2}`},
		{"a known field removed", `{"a":1,"b":1,"x":1}`, `{"a":1,"b":1}`, `{"a":1}`, `{"a":1,"x":1}`},
		{"deep", `{"o":{"a":1,"x":{"y":1}},"p":{"a":1}}`, `{"o":{"a":1},"p":{"a":1}}`, `{"o":{"a":2},"p":{"a":1}}`, `{"o":{"a":2,"x":{"y":1}},"p":{"a":1}}`},
		{"an object becomes a word", `{"o":{"a":1,"x":1}}`, `{"o":{"a":1}}`, `{"o":"w"}`, `{"o":"w"}`},
		{"numbers stay as they were written", `{"x":1.50,"y":12345678901234567890}`, `{}`, `{"a":1}`, `{"a":1,"x":1.50,"y":12345678901234567890}`},
		{"an unchanged list", `{"a":1,"l":[{"n":1,"x":1}]}`, `{"a":1,"l":[{"n":1}]}`, `{"a":2,"l":[{"n":1}]}`, `{"a":2,"l":[{"n":1,"x":1}]}`},
		{"entries in another order", `{"l":[{"n":1,"x":1},{"n":2,"x":2}]}`, `{"l":[{"n":1},{"n":2}]}`, `{"l":[{"n":2},{"n":1}]}`, `{"l":[{"n":2,"x":2},{"n":1,"x":1}]}`},
		{"an entry changed loses its own", `{"l":[{"n":1,"x":1},{"n":2,"x":2}]}`, `{"l":[{"n":1},{"n":2}]}`, `{"l":[{"n":3},{"n":2}]}`, `{"l":[{"n":3},{"n":2,"x":2}]}`},
		{"entries that look alike", `{"l":[{"n":1,"x":1},{"n":1,"x":2}]}`, `{"l":[{"n":1},{"n":1}]}`, `{"l":[{"n":1},{"n":1},{"n":2}]}`, `{"l":[{"n":1,"x":1},{"n":1,"x":2},{"n":2}]}`},
	} {
		got, err := KeepUnknown([]byte(row.stored), []byte(row.known), []byte(row.updated))
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %s (%v), want %s", row.about, got, err, row.want)
		}
	}
}

// FuzzKeepUnknown: an update is stored, and fields that this build does not know stay.
func FuzzKeepUnknown(f *testing.F) {
	f.Add([]byte(`{"a":1}`), []byte(`{"a":2}`))
	f.Add([]byte(`{"l":[{"a":1},{"a":1}]}`), []byte(`{"l":[{"a":1}]}`))
	f.Add([]byte(`{"o":{"a":1}}`), []byte(`{"o":[null]}`))
	f.Fuzz(func(t *testing.T, known, updated []byte) {
		const mark = "not known"
		var stored, before map[string]any
		if json.Unmarshal(known, &stored) != nil || json.Unmarshal(updated, &before) != nil || stored == nil || before == nil {
			return
		}
		if _, taken := stored[mark]; taken {
			return
		}
		stored[mark] = true
		text, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		got, err := KeepUnknown(text, known, updated)
		if err != nil {
			t.Fatal(err)
		}
		var after map[string]any
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatal(err)
		}
		if _, kept := after[mark]; !kept {
			t.Fatalf("%s forgot what %s had: %s", updated, text, got)
		}
		if _, own := before[mark]; !own {
			delete(after, mark)
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s", updated, got)
		}
	})
}
