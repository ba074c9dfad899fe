package accesskey_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model/secret"
)

// TestBearerVectors pins the format: a reader that gives the same bytes gives the same keys and digests.
func TestBearerVectors(t *testing.T) {
	var text strings.Builder
	line := func(what string, random io.Reader) {
		bearer, err := accesskey.NewBearer(random)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := accesskey.CheckBearer(bearer); err != nil {
			t.Errorf("%s: a key of our own is refused: %v", what, err)
		}
		fmt.Fprintf(&text, "%-9s %s %s\n", what, bearer.Reveal(), accesskey.Digest(bearer))
	}
	random := seeded()
	for i := range 4 {
		line(fmt.Sprintf("seeded-%d", i), random)
	}
	line("zeros", bytes.NewReader(make([]byte, 64)))
	// Bytes from 248 upwards would make some letters likelier, so NewBearer skips them.
	line("skipping", bytes.NewReader(append(bytes.Repeat([]byte{248, 255}, 20), bytes.Repeat([]byte{247}, 40)...)))
	golden(t, "bearers.txt", text.String())
}

func TestNewBearer(t *testing.T) {
	form := regexp.MustCompile(`^pak_[0-9A-Za-z]{46}$`)
	random, seen := seeded(), map[secret.String]bool{}
	for range 1000 {
		bearer, err := accesskey.NewBearer(random)
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(bearer.Reveal()) || seen[bearer] {
			t.Fatalf("bad or repeated key %q", bearer.Reveal())
		}
		seen[bearer] = true
	}
	if bearer, err := accesskey.NewBearer(bytes.NewReader(make([]byte, 39))); err == nil || bearer != "" {
		t.Error("a key was made from too few random bytes")
	}
}

func TestCheckBearer(t *testing.T) {
	made, err := accesskey.NewBearer(seeded())
	if err != nil {
		t.Fatal(err)
	}
	ours := made.Reveal()
	for _, row := range []struct {
		section  string
		sentence string
		bearer   string
		ok       bool
	}{
		{"ADR-0005", "the server's own form", ours, true},
		{"ADR-0005", "ours, too short", ours[:49], false},
		{"ADR-0005", "ours, too long", ours + "0", false},
		{"ADR-0005", "ours, wrong checksum", ours[:49] + flip(ours[49]), false},
		{"ADR-0005", "ours, a character that is not base62", ours[:10] + "-" + ours[11:], false},
		{"ADR-0005", "ours, a character of two bytes", ours[:10] + "é" + ours[12:], false},
		{"ADR-0005", "what begins like ours must be ours", "pak_" + strings.Repeat("x", 60), false},
		{"ADR-0005", "the prefix alone", "pak_", false},
		{"ADR-0005", "the prefix is compared with case", "PAK_" + strings.Repeat("x", 28), true},
		{"ADR-0005", "nothing", "", false},
		{"ADR-0005", "31 characters are too few", strings.Repeat("x", 31), false},
		{"ADR-0005", "32 characters are enough", strings.Repeat("x", 32), true},
		{"ADR-0005", "256 characters are the most", strings.Repeat("x", 256), true},
		{"ADR-0005", "257 characters are too many", strings.Repeat("x", 257), false},
		{"ADR-0005", "every printable character", "!\"#$%&'()*+,-./0123456789:;<=>?@ABCXYZ[\\]^_`abcxyz{|}~", true},
		{"ADR-0005", "no blank inside", strings.Repeat("x", 20) + " " + strings.Repeat("x", 20), false},
		{"ADR-0005", "no blank before", " " + strings.Repeat("x", 40), false},
		{"ADR-0005", "no blank after", strings.Repeat("x", 40) + " ", false},
		{"ADR-0005", "no tab", strings.Repeat("x", 40) + "\t", false},
		{"ADR-0005", "no line break", strings.Repeat("x", 40) + "\n", false},
		{"ADR-0005", "no NUL", strings.Repeat("x", 40) + "\x00", false},
		{"ADR-0005", "no DEL", strings.Repeat("x", 40) + "\x7f", false},
		{"ADR-0005", "printable is printable ASCII", strings.Repeat("ü", 20), false},
		{"ADR-0005", "no bytes that are no text", strings.Repeat("\xff", 40), false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			err := accesskey.CheckBearer(secret.String(row.bearer))
			if (err == nil) != row.ok {
				t.Fatalf("%s: error is %v", row.section, err)
			}
			if err != nil && len(row.bearer) > 8 && strings.Contains(err.Error(), row.bearer) {
				t.Errorf("the error quotes the key: %v", err)
			}
		})
	}
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// flip returns another character of the alphabet.
func flip(c byte) string {
	return string(base62[(strings.IndexByte(base62, c)+1)%len(base62)])
}

// A mistyped key is refused without asking the state. Source: ADR-0005.
func TestChecksumCatchesMistakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rapid.SliceOfN(rapid.ByteRange(0, 247), 40, 40).Draw(t, "random")
		bearer, err := accesskey.NewBearer(bytes.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		good := []byte(bearer.Reveal())
		index := rapid.IntRange(len("pak_"), len(good)-1).Draw(t, "at")

		changed := bytes.Clone(good)
		changed[index] = rapid.Byte().Filter(func(b byte) bool { return b != good[index] }).Draw(t, "instead")
		if accesskey.CheckBearer(secret.String(changed)) == nil {
			t.Fatalf("%q passes for %q", changed, good)
		}
		dropped := append(bytes.Clone(good[:index]), good[index+1:]...)
		if accesskey.CheckBearer(secret.String(dropped)) == nil {
			t.Fatalf("%q passes for %q", dropped, good)
		}
		if body := len(good) - 6; index+1 < body && good[index] != good[index+1] {
			swapped := bytes.Clone(good)
			swapped[index], swapped[index+1] = swapped[index+1], swapped[index]
			if accesskey.CheckBearer(secret.String(swapped)) == nil {
				t.Fatalf("%q passes for %q", swapped, good)
			}
		}
	})
}

func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		sum := sha256.Sum256([]byte(text))
		if got, want := accesskey.Digest(secret.String(text)), hex.EncodeToString(sum[:]); got != want {
			t.Fatalf("digest of %q is %s, want %s", text, got, want)
		}
	})
}

func FuzzCheckBearer(f *testing.F) {
	made, err := accesskey.NewBearer(seeded())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "pak_", made.Reveal(), strings.Repeat("x", 32), strings.Repeat("ü", 25), "pak_\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if accesskey.CheckBearer(secret.String(text)) != nil {
			return
		}
		if len(text) < 32 || len(text) > 256 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) ||
			strings.HasPrefix(text, "pak_") && len(text) != 50 {
			t.Errorf("%q passes", text)
		}
	})
}
