package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/local/localtest"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about   string
		prepare func(t *testing.T, file string)
	}{
		{"a new file", func(*testing.T, string) {}},
		{"a longer one that is there", func(t *testing.T, file string) { localtest.Write(t, file, strings.Repeat("old", 100)) }},
		{"one that others may read", func(t *testing.T, file string) { open(t, file) }},
		{"one that nobody may write", func(t *testing.T, file string) {
			localtest.Write(t, file, "old")
			if err := os.Chmod(file, 0o400); err != nil {
				t.Fatal(err)
			}
		}},
		{"what an interrupted write left behind", func(t *testing.T, file string) { localtest.Write(t, file+".new", strings.Repeat("half", 100)) }},
		{"what is left behind and others may read", func(t *testing.T, file string) { open(t, file+".new") }},
		{"a link that is left behind", func(t *testing.T, file string) {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			localtest.Write(t, elsewhere, "elsewhere")
			if err := os.Symlink(elsewhere, file+".new"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if text, err := os.ReadFile(elsewhere); string(text) != "elsewhere" {
					t.Errorf("the file that the link names holds %q, %v", text, err)
				}
			})
		}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := filepath.Join(folder, "file")
			row.prepare(t, file)
			if err := Write(file, []byte("content")); err != nil {
				t.Fatal(err)
			}
			if text := localtest.Read(t, file); string(text) != "content" {
				t.Errorf("it holds %q", text)
			}
			localtest.WantPrivate(t, file)
			if list := localtest.Names(t, folder); !slices.Equal(list, []string{"file"}) {
				t.Errorf("the folder holds %q", list)
			}
		})
	}
}

// open makes a file that other users can read.
func open(t *testing.T, file string) {
	t.Helper()
	localtest.Write(t, file, "old")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Readers see the old content or the new one. A failed write leaves the old content.
func TestWriteFileIsWhole(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	contents := [2]string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<17)}
	localtest.Write(t, file, contents[0])
	done := make(chan error)
	go func() {
		defer close(done)
		for i := range 100 {
			if err := Write(file, []byte(contents[i%2])); err != nil {
				done <- err
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case err, failed := <-done:
			if failed {
				t.Error(err)
			}
			running = false
		default:
			if text := string(localtest.Read(t, file)); !slices.Contains(contents[:], text) {
				t.Fatalf("a reader sees %d bytes", len(text))
			}
		}
	}
	// A folder in the way of the temporary file.
	if err := os.MkdirAll(filepath.Join(file+".new", "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, []byte("content")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v", err)
	}
	if text := string(localtest.Read(t, file)); text != contents[1] {
		t.Errorf("the file holds %d bytes", len(text))
	}
}

func TestWriteFileErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		file  string
	}{
		{"a folder that is not there", filepath.Join(t.TempDir(), "absent", "file")},
		{"a folder in its place", t.TempDir()},
	} {
		if err := Write(row.file, []byte("content")); err == nil || !strings.Contains(err.Error(), row.file) {
			t.Errorf("%s: %v", row.about, err)
		}
		if info, err := os.Stat(row.file + ".new"); err == nil {
			t.Errorf("%s: %s stays behind", row.about, info.Name())
		}
	}
}
