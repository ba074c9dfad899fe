package encryption

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"management.platform.sh/shared/model/secret"
)

func ring(t *testing.T, keys ...secret.String) *Keyring {
	t.Helper()
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.Reveal()
	}
	made, err := Parse(secret.String(strings.Join(texts, ", ")))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSeal(t *testing.T) {
	t.Parallel()
	old, young := Generate(), Generate()
	before, during, after := ring(t, old), ring(t, young, old), ring(t, young)
	text := []byte("a private key")
	sealed, err := before.Seal(text, "keys/a")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := before.Seal(text, "keys/a"); again == sealed || bytes.Contains([]byte(sealed), text) {
		t.Errorf("sealed as %s, and again as %s", sealed, again)
	}
	for about, ring := range map[string]*Keyring{"the same": before, "one more": during} {
		if opened, err := ring.Open(sealed, "keys/a"); err != nil || !bytes.Equal(opened, text) {
			t.Errorf("%s: %q, %v", about, opened, err)
		}
	}
	if before.Stale(sealed) || !during.Stale(sealed) {
		t.Error("a text must be stale if, and only if, another key is the first")
	}
	if none := (*Keyring)(nil); !before.Knows(sealed) || !during.Knows(sealed) || after.Knows(sealed) || none.Knows(sealed) {
		t.Error("a text must be known if, and only if, a key of the ring has sealed it")
	}
	id, rest, _ := strings.Cut(sealed, ".")
	last := sealed[len(sealed)-1]
	for about, row := range map[string]struct {
		ring          *Keyring
		sealed, place string
		want          error
	}{
		"no key":         {nil, sealed, "keys/a", ErrNoKey},
		"another key":    {after, sealed, "keys/a", ErrUnknownKey},
		"another place":  {before, sealed, "keys/b", ErrAltered},
		"cut short":      {before, sealed[:len(sealed)-4], "keys/a", ErrAltered},
		"no text":        {before, id + ".", "keys/a", ErrAltered},
		"no id":          {before, rest, "keys/a", ErrAltered},
		"not base64":     {before, id + ".%%%", "keys/a", ErrAltered},
		"one bit more":   {before, sealed[:len(sealed)-1] + string(last^1), "keys/a", ErrAltered},
		"nothing at all": {before, "", "keys/a", ErrAltered},
	} {
		if opened, err := row.ring.Open(row.sealed, row.place); !errors.Is(err, row.want) || opened != nil {
			t.Errorf("%s: %q, %v, want %v", about, opened, err, row.want)
		}
	}
	if _, err := (*Keyring)(nil).Seal(text, ""); !errors.Is(err, ErrNoKey) {
		t.Errorf("sealed without a key: %v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	good := Generate().Reveal()
	for text, want := range map[string]string{
		"":                     "key 1 is not the base64 of 32 bytes",
		"hunter2":              "key 1 is not the base64",
		good + "," + good[:40]: "key 2 is not the base64",
		good + ",":             "key 2 is not the base64",
		good + "," + good:      "key 2 repeats an earlier key",
		base64.StdEncoding.EncodeToString(make([]byte, 16)): "32 bytes",
	} {
		made, err := Parse(secret.String(text))
		if err == nil || !strings.Contains(err.Error(), want) || made != nil {
			t.Errorf("%v, want %q", err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), good[:10])) {
			t.Errorf("the error quotes a key: %v", err)
		}
	}
}
