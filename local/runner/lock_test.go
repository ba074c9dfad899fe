package runner

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/local/localtest"
)

func TestLockFolder(t *testing.T) {
	t.Parallel()
	folder, other := t.TempDir(), t.TempDir()
	release, err := lockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	localtest.WantPrivate(t, filepath.Join(folder, "lock"))
	for range 2 {
		if _, err := lockFolder(folder); err == nil {
			t.Fatal("a second holder got the lock")
		} else if !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "--data") {
			t.Errorf("the error does not name the folder and the flag: %v", err)
		}
	}
	releaseOther, err := lockFolder(other)
	if err != nil {
		t.Fatalf("another folder: %v", err)
	}
	releaseOther()
	release()
	again, err := lockFolder(folder)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again()
	if _, err := lockFolder(filepath.Join(folder, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
