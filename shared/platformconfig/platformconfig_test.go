package platformconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platformconfig"
)

// limit is the cap of a configuration, -1 where it says nothing of authentication.
func limit(config *model.ConfigStatus) int64 {
	if config.Auth == nil {
		return -1
	}
	return config.Auth.AccessKeyMaxTTLSeconds
}

func TestParse(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		text     string
		ok       bool
		limit    int64
	}{
		{"ADR-0006", "the fields of status at the top level", "auth: {accessKeyMaxTTLSeconds: 60}\n", true, 60},
		{"Spec 2.7", "a whole Config", "apiVersion: management.platform.sh/v1\nkind: Config\nmetadata: {name: config}\nstatus: {auth: {accessKeyMaxTTLSeconds: 60}}\n", true, 60},
		{"Spec 2.7", "a Config without a status", "kind: Config\n", true, -1},
		{"Spec 2.7", "JSON", `{"auth":{"accessKeyMaxTTLSeconds":60}}`, true, 60},
		{"ADR-0006", "an empty file", "", true, -1},
		{"ADR-0006", "an empty line", "\n", true, -1},
		{"ADR-0006", "a comment", "# to do\n", true, -1},
		{"ADR-0006", "an empty document", "---\n", true, -1},
		{"ADR-0006", "an empty object", "{}\n", true, -1},
		{"Spec 8", "a cap of 0 is none", "auth: {accessKeyMaxTTLSeconds: 0}\n", true, 0},
		{"Spec 2.7", "an unknown field", "colour: red\n", false, 0},
		{"Spec 2.7", "an unknown field inside", "auth: {accessKeyMaxTTL: 60}\n", false, 0},
		{"Spec 2.7", "an unknown field of a Config", "kind: Config\nstatus: {colour: red}\n", false, 0},
		{"Spec 2.7", "a field of the status beside it", "kind: Config\nauth: {accessKeyMaxTTLSeconds: 60}\n", false, 0},
		{"Spec 2.7", "a status without a kind", "status: {auth: {accessKeyMaxTTLSeconds: 60}}\n", false, 0},
		{"Spec 2.7", "another kind", "apiVersion: v1\nkind: ConfigMap\ndata: {}\n", false, 0},
		{"Spec 2.7", "a kind that is no text", "kind: 5\n", false, 0},
		{"Spec 2.7", "a name with another case", "Auth: {accessKeyMaxTTLSeconds: 60}\n", false, 0},
		{"ADR-0006", "a field twice", "auth: {accessKeyMaxTTLSeconds: 60}\nauth: {accessKeyMaxTTLSeconds: 61}\n", false, 0},
		{"ADR-0006", "a field twice inside", "auth: {accessKeyMaxTTLSeconds: 60, accessKeyMaxTTLSeconds: 61}\n", false, 0},
		{"ADR-0006", "two documents", "auth: {accessKeyMaxTTLSeconds: 60}\n---\nauth: {accessKeyMaxTTLSeconds: 61}\n", false, 0},
		{"Spec 2.7", "a negative cap", "auth: {accessKeyMaxTTLSeconds: -1}\n", false, 0},
		{"Spec 2.7", "a negative cap in a Config", "kind: Config\nstatus: {auth: {accessKeyMaxTTLSeconds: -1}}\n", false, 0},
		{"Spec 2.7", "a cap that is no number", "auth: {accessKeyMaxTTLSeconds: 1h}\n", false, 0},
		{"Spec 2.7", "a list", "- auth\n", false, 0},
		{"Spec 2.7", "a text", "auth\n", false, 0},
		{"Spec 2.7", "what is no YAML", "auth: {\n", false, 0},
		{"Spec 2.7", "what is no text", "auth: \xff\n", false, 0},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			config, err := platformconfig.Parse([]byte(row.text))
			if (err == nil) != row.ok || (config != nil) != row.ok {
				t.Fatalf("config %v, error %v", config, err)
			}
			if config != nil && limit(config) != row.limit {
				t.Errorf("the cap is %d, want %d", limit(config), row.limit)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	nothing, err := platformconfig.Open("")
	if err != nil || limit(nothing.Current()) != -1 {
		t.Errorf("no file: %v", err)
	}
	if changed, err := nothing.Reload(); changed || err != nil {
		t.Errorf("no file: %v, %v", changed, err)
	}
	if _, err := platformconfig.Open(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("an absent file was opened")
	}
	bad := filepath.Join(t.TempDir(), "config.yaml")
	write(t, bad, "colour: red\n")
	if _, err := platformconfig.Open(bad); err == nil {
		t.Error("a bad file was opened")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A new version takes effect, a bad one never does, and neither is told twice. Source: ADR-0006.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 60}\n")
	source, err := platformconfig.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		sentence string
		text     string
		changed  bool
		fails    bool
		limit    int64
	}{
		{"the same", "auth: {accessKeyMaxTTLSeconds: 60}\n", false, false, 60},
		{"another one", "auth: {accessKeyMaxTTLSeconds: 61}\n", true, false, 61},
		{"a bad one", "auth: {accessKeyMaxTTLSeconds: -5}\n", false, true, 61},
		{"the same bad one", "auth: {accessKeyMaxTTLSeconds: -5}\n", false, false, 61},
		{"another bad one", "auth: {\n", false, true, 61},
		{"one with an unknown field", "auth: {accessKeyMaxTTLSeconds: 62}\ncolour: red\n", false, true, 61},
		{"a good one again", "auth: {accessKeyMaxTTLSeconds: 63}\n", true, false, 63},
		{"a whole Config", "kind: Config\nstatus: {auth: {accessKeyMaxTTLSeconds: 64}}\n", true, false, 64},
		{"an empty one", "", true, false, -1},
	} {
		if step.text != "" {
			write(t, file, step.text)
		} else if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
		changed, err := source.Reload()
		if changed != step.changed || (err != nil) != step.fails || limit(source.Current()) != step.limit {
			t.Errorf("%s: changed %v, error %v, cap %d", step.sentence, changed, err, limit(source.Current()))
		}
	}
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 65}\n")
	if _, err := source.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if changed, err := source.Reload(); changed || err == nil || limit(source.Current()) != 65 {
		t.Errorf("a file that is gone: changed %v, error %v, cap %d", changed, err, limit(source.Current()))
	}
}

// The error of a bad file tells where it is and what is wrong, and holds no secret. Source: ADR-0003, ADR-0006.
func TestReloadErrorHoldsNoSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: -5, oidc: {clientSecret: hunter2}}\n")
	_, err := platformconfig.Open(file)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), file) {
		t.Errorf("the error does not name the file: %v", err)
	}
}

// Readers go on while the file is read anew.
func TestCurrentIsSafe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, file, "auth: {accessKeyMaxTTLSeconds: 1}\n")
	source, err := platformconfig.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for last := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				now := limit(source.Current())
				if now < last {
					t.Errorf("the cap went from %d to %d", last, now)
					return
				}
				last = now
			}
		})
	}
	for i := range 50 {
		write(t, file, fmt.Sprintf("auth: {accessKeyMaxTTLSeconds: %d}\n", i+2))
		if _, err := source.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
}
