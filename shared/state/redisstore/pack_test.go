package redisstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

// key is the text of an access key as it is stored.
const key = `{"kind":"OwnedAccessKey","apiVersion":"management.platform.sh/v1","metadata":{"name":"memory-1","uid":"e0d5ccd0-f8d5-41f8-b124-957d654cb709",` +
	`"generation":1,"creationTimestamp":"2026-11-24T09:06:43Z","labels":{"stage":"main"},"managedFields":[{"manager":"bench","operation":"Update",` +
	`"apiVersion":"management.platform.sh/v1","time":"2026-11-24T09:06:43Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},` +
	`"f:stage":{}}},"f:spec":{"f:displayName":{},"f:scope":{},"f:ttl":{},"f:type":{},"f:user":{}}}}]},"spec":{"displayName":"Pipeline","user":"robot",` +
	`"ttl":86400,"scope":{"projects":[{"project":"default"},{"project":"staging"}]},"type":"Other"},"status":{"createdBy":{"name":"admin",` +
	`"uid":"3e36f9c2-cb77-40af-b3b5-588a164cc16f"},"lineage":[{"name":"admin","uid":"3e36f9c2-cb77-40af-b3b5-588a164cc16f"}]},"splice":"gXcWWSycCI0149.86400"}`

// TestFragments: the fragments are those of the format. Stored records depend on them: do not change the hash.
func TestFragments(t *testing.T) {
	sum := sha256.Sum256([]byte(strings.Join(fragments, "\n")))
	if got := hex.EncodeToString(sum[:8]); got != "3516ad627f7202d0" {
		t.Errorf("the fragments have the hash %s", got)
	}
	if len(fragments) > shortFragments+256 {
		t.Errorf("%d fragments have no codes", len(fragments))
	}
	for number, text := range fragments {
		packed, ok := pack([]byte(text))
		want := []byte{byte(number)}
		if number >= shortFragments {
			want = []byte{codeFragment, byte(number - shortFragments)}
		}
		if !ok || !bytes.Equal(packed, want) {
			t.Errorf("fragment %d is packed to %x, %v", number, packed, ok)
		}
	}
}

// roundTrip packs a text, and fails the test unless unpacking returns it.
func roundTrip(t *testing.T, text []byte) (packed []byte, ok bool) {
	t.Helper()
	packed, ok = pack(text)
	if !ok {
		return nil, false
	}
	if len(packed) >= len(text) {
		t.Errorf("%q has %d bytes, and %d when it is packed", text, len(text), len(packed))
	}
	got, err := unpack(string(packed), len(text))
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q is unpacked to %q, %v", text, got, err)
	}
	return packed, true
}

func TestPack(t *testing.T) {
	if packed, ok := roundTrip(t, []byte(key)); !ok || 3*len(packed) > len(key) {
		t.Errorf("%d bytes are packed to %d", len(key), len(packed))
	}
	for text, want := range map[string]bool{
		"":                                       false,
		"plain":                                  false,
		`{"a":1}`:                                false,
		"{\"kind\":\"OwnedAccessKey\"\n}":        false,
		key + "\x00":                             false,
		key + "\x1f":                             false,
		key + "\x7fé\xff":                        true,
		key + key:                                true,
		key + strings.Repeat("x", packLimit):     false,
		`"2026-11-24T09:06:43Z"`:                 true,
		`"1969-11-24T09:06:43Z"`:                 false,
		`"2106-02-07T06:28:15Z"`:                 true,
		`"2106-02-07T06:28:16Z"`:                 false,
		`"2026-02-30T09:06:43Z"`:                 false,
		`"2026-11-24T09:06:60Z"`:                 false,
		`"2026-11-24T09:06:43+"`:                 false,
		`"2026-11-24T9:06:43ZZ"`:                 false,
		`"E0D5CCD0-F8D5-41F8-B124-957D654CB709"`: false,
		`"e0d5ccd0-f8d5-41f8-b124-957d654cb709`:  true,
		`"e0d5ccd0-f8d5-41f8-b124-957d654cb70`:   false,
		`"e0d5ccd0-f8d5-41f8-b124+957d654cb709"`: false,
	} {
		if _, ok := roundTrip(t, []byte(text)); ok != want {
			t.Errorf("%.60q is packed: %v, want %v", text, ok, want)
		}
	}
}

// TestPackRandom: what is packed from random pieces is unpacked to the same bytes.
func TestPackRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var uids []string
	for range 20 {
		id := make([]byte, 16)
		for i := range id {
			id[i] = byte(random.Uint32())
		}
		text := hex.EncodeToString(id)
		uids = append(uids, text[:8]+"-"+text[8:12]+"-"+text[12:16]+"-"+text[16:20]+"-"+text[20:])
	}
	packed := 0
	for range 20_000 {
		var text []byte
		for range random.IntN(30) {
			switch random.IntN(6) {
			case 0:
				text = append(text, fragments[random.IntN(len(fragments))]...)
			case 1:
				text = append(append(text, '"'), uids[random.IntN(len(uids))]...)
			case 2:
				text = append(text, `"2026-11-24T09:06:43Z`[:random.IntN(22)]...)
			case 3:
				text = append(text, byte(random.Uint32()))
			case 4:
				text = append(text, key[random.IntN(len(key)):]...)
			default:
				text = append(text, "é<&>é"...)
			}
		}
		if _, ok := roundTrip(t, text); ok {
			packed++
		}
	}
	if packed < 1000 {
		t.Errorf("only %d texts were packed", packed)
	}
}

// TestUnpackDamaged: a damaged text is an error, or another text of the same length.
func TestUnpackDamaged(t *testing.T) {
	packed, _ := pack([]byte(key))
	for i := range packed {
		for c := range 256 {
			damaged := bytes.Clone(packed)
			damaged[i] = byte(c)
			if got, err := unpack(string(damaged), len(key)); err == nil && len(got) != len(key) {
				t.Fatalf("byte %d is %#x: %d bytes in place of %d", i, c, len(got), len(key))
			}
		}
		if _, err := unpack(string(packed[:i]), len(key)); err == nil {
			t.Errorf("the first %d bytes are accepted", i)
		}
	}
	for _, length := range []int{0, len(key) - 1, len(key) + 1, packLimit + 1} {
		if _, err := unpack(string(packed), length); err == nil {
			t.Errorf("the length %d is accepted", length)
		}
	}
}

// FuzzPack: what is packed is unpacked to the same bytes, and nothing that is unpacked is longer than it says.
func FuzzPack(f *testing.F) {
	f.Add([]byte(key))
	packed, _ := pack([]byte(key))
	f.Add(packed)
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip(t, text)
		if got, err := unpack(string(text), 100); err == nil && len(got) != 100 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func BenchmarkPack(b *testing.B) {
	text := []byte(key)
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			pack(text)
		}
	})
	packed, _ := pack(text)
	whole := string(packed)
	b.Run("unpack", func(b *testing.B) {
		for b.Loop() {
			_, _ = unpack(whole, len(text))
		}
	})
}
