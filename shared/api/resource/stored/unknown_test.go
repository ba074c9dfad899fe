package stored

import "testing"

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
