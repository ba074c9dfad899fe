package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// checkout makes a folder with files that git tracks.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, words := range [][]string{{"init", "--quiet"}, {"add", "."}} {
		git := exec.Command("git", words...)
		git.Dir = root
		if text, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", words, err, text)
		}
	}
	return root
}

// times returns the time of each of some files after keepTimes.
func times(t *testing.T, root string, names ...string) map[string]time.Time {
	t.Helper()
	if err := keepTimes(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	instants := map[string]time.Time{}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		instants[name] = info.ModTime()
	}
	return instants
}

// Two checkouts of the same content have the same times. A different file has a different time, and so have its folders. A file that was
// changed after git recorded it keeps the time of the change.
func TestKeepTimes(t *testing.T) {
	t.Parallel()
	names := []string{"a/b/one", "a/two", "c/three", "a/b", "a", "c"}
	files := map[string]string{"a/b/one": "1", "a/two": "2", "c/three": "3"}
	first := times(t, checkout(t, files), names...)
	second := times(t, checkout(t, files), names...)
	files["a/b/one"] = "4"
	root := checkout(t, files)
	other := times(t, root, names...)
	for _, name := range names {
		if !first[name].Equal(second[name]) {
			t.Errorf("%s has the time %s, and %s in another checkout", name, first[name], second[name])
		}
		differs := name == "a/b/one" || name == "a/b" || name == "a"
		if first[name].Equal(other[name]) == differs {
			t.Errorf("%s has the time %s, and %s where a/b/one has another content", name, first[name], other[name])
		}
	}
	now := time.Now()
	if err := os.WriteFile(filepath.Join(root, "c/three"), []byte("5"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed := times(t, root, "c/three")["c/three"]; changed.Before(now.Add(-time.Minute)) {
		t.Errorf("a changed file has the time %s", changed)
	}
	if err := os.Remove(filepath.Join(root, "c/three")); err != nil {
		t.Fatal(err)
	}
	times(t, root)
}
