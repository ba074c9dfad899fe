package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"management.platform.sh/shared/model/secret"
)

// A write-only text never appears in the output of fmt and slog, in any form. JSON contains it.
func TestWriteOnly(t *testing.T) {
	t.Parallel()
	const text = "correct horse"
	value := struct {
		Text  secret.WriteOnly
		Bytes secret.WriteOnlyBytes
	}{text, secret.WriteOnlyBytes(text)}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", value, value.Text, value.Bytes)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "text", value.Text, "bytes", value.Bytes)
	hex := fmt.Sprintf("%x", text)
	for _, hidden := range []string{text, hex, "99 111", "Y29ycmVjdC"} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%q is in %s", hidden, out.String())
		}
	}
	if !strings.Contains(out.String(), secret.Mark) {
		t.Error("no mark")
	}
	wire, err := json.Marshal(value)
	if want := `{"Text":"correct horse","Bytes":"Y29ycmVjdCBob3JzZQ=="}`; err != nil || string(wire) != want {
		t.Errorf("%s, %v", wire, err)
	}
	again := value
	if err := json.Unmarshal(wire, &again); err != nil || string(again.Bytes) != text || again.Text != text {
		t.Errorf("read again: %v", err)
	}
	if s := fmt.Sprintf("%v %v", secret.WriteOnly(""), secret.WriteOnlyBytes(nil)); strings.TrimSpace(s) != "" {
		t.Errorf("nothing prints as %q", s)
	}
}
