package filesink_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/model"
)

// A directory in which no file can be made is a problem. Checking leaves nothing behind. Source: ADR-0024.
func TestCheck(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	current := filepath.Join(folder, "odd")
	for _, err := range []error{os.WriteFile(file, nil, 0o600), os.MkdirAll(filepath.Join(current, "audit.log"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check := audit.Checker([]audit.Opener{filesink.Opener(nil, slog.New(slog.DiscardHandler))})
	for path, bad := range map[string]bool{
		folder: false, filepath.Join(folder, "a", "b"): false, file: true, filepath.Join(file, "a"): true, current: true,
	} {
		problems := check(t.Context(), nil, &model.ConfigAudit{Enabled: true, Path: path}, field.NewPath("audit"))
		if (len(problems) > 0) != bad {
			t.Errorf("%s: %v", path, problems)
		}
	}
	count := 0
	if err := filepath.WalkDir(folder, func(string, fs.DirEntry, error) error { count++; return nil }); err != nil || count != 4 {
		t.Errorf("%d files are there, %v", count, err)
	}
}
