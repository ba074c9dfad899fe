package rotatesigningkeys

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/signing/signingkey"
)

// The schedule rotates keys at the default intervals.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps := open(w.Env)
	for _, step := range []struct {
		after time.Duration
		want  []signingkey.State
	}{
		{0, []signingkey.State{"active", "next"}},
		{167 * time.Hour, []signingkey.State{"active", "next"}},
		{time.Hour, []signingkey.State{"retired", "active", "next"}},
		{25 * time.Hour, []signingkey.State{"active", "next"}},
	} {
		w.Pass(step.after)
		done, err := Do(t.Context(), deps)
		if err != nil || len(done.Keys) != len(step.want) {
			t.Fatalf("%+v, %v", done, err)
		}
		for i, state := range step.want {
			if done.Keys[i].State != state {
				t.Errorf("%+v, want %v", done.Keys, step.want)
			}
		}
	}
}

// A run reports the keys, and a failed run reports the reason.
func TestLog(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	var text bytes.Buffer
	w.Env.Log = slog.New(slog.NewJSONHandler(&text, nil))
	line := func() map[string]any {
		var read map[string]any
		if err := json.Unmarshal(text.Bytes(), &read); err != nil {
			t.Fatal(err)
		}
		text.Reset()
		return read
	}
	if err := process.NewServer(w.Env).Run(t.Context(), Function); err != nil {
		t.Fatal(err)
	}
	if read := line(); len(read["keys"].(map[string]any)) != 2 || read["resealed"] != false {
		t.Errorf("%v", read)
	}
	w.Env.Encryption = nil
	if err := process.NewServer(w.Env).Run(t.Context(), Function); err == nil {
		t.Error("a run without an encryption key succeeded")
	}
	if read := line(); read["level"] != "ERROR" || read["cause"] == "" {
		t.Errorf("%v", read)
	}
}
