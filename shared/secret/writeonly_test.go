package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"management.platform.sh/shared/secret"
)

// What is write-only is told to nobody by fmt and slog, in no form, and travels in JSON.
func TestWriteOnly(t *testing.T) {
	t.Parallel()
	const clear = "correct horse"
	value := struct {
		Text  secret.WriteOnly
		Bytes secret.WriteOnlyBytes
	}{clear, secret.WriteOnlyBytes(clear)}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", value, value.Text, value.Bytes)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "text", value.Text, "bytes", value.Bytes)
	hex := fmt.Sprintf("%x", clear)
	for _, hidden := range []string{clear, hex, "99 111", "Y29ycmVjdC"} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%q is in %s", hidden, out.String())
		}
	}
	if !strings.Contains(out.String(), secret.Mark) {
		t.Error("no mark")
	}
	text, err := json.Marshal(value)
	if want := `{"Text":"correct horse","Bytes":"Y29ycmVjdCBob3JzZQ=="}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	again := value
	if err := json.Unmarshal(text, &again); err != nil || string(again.Bytes) != clear || again.Text != clear {
		t.Errorf("read again: %v", err)
	}
	if s := fmt.Sprint(secret.WriteOnly(""), secret.WriteOnlyBytes(nil)); strings.TrimSpace(s) != "" {
		t.Errorf("nothing prints as %q", s)
	}
}
