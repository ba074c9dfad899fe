package frame_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/model"
)

// mounted returns the folder of a separate file system in memory. Only root may mount.
func mounted(t *testing.T, options string) string {
	t.Helper()
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, options); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(directory, syscall.MNT_DETACH) })
	return directory
}

func onDisk(t *testing.T, directory string, fail, mend func() error) *outage {
	must := func(do func() error) func() {
		return func() {
			if err := do(); err != nil {
				t.Error(err)
			}
		}
	}
	return &outage{
		config: &model.ConfigAudit{Path: directory}, opener: filesink.Opener(nil, slog.New(slog.DiscardHandler)),
		fail: must(fail), mend: must(mend), kept: inFile(t, directory),
	}
}

// fullDisk returns a sink on a small file system, which fails once the file system is full.
func fullDisk(t *testing.T) *outage {
	directory := mounted(t, "size=256k,mode=0700")
	filler := filepath.Join(directory, "filler")
	return onDisk(t, directory,
		func() error {
			file, err := os.Create(filler)
			if err != nil {
				return err
			}
			defer file.Close()
			for err == nil {
				_, err = file.Write(make([]byte, 4096))
			}
			return nil
		},
		func() error { return os.Remove(filler) })
}

// readOnly returns a sink on a file system that is read-only from the start: root could write to a read-only folder.
func readOnly(t *testing.T) *outage {
	directory := mounted(t, "size=1m,mode=0700")
	remount := func(flags uintptr) error { return syscall.Mount("", directory, "", syscall.MS_REMOUNT|flags, "") }
	o := onDisk(t, directory, func() error { return nil }, func() error { return remount(0) })
	o.broken = true
	if err := remount(syscall.MS_RDONLY); err != nil {
		t.Fatal(err)
	}
	return o
}
