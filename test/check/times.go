package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// keepTimes sets the modification times of the files of a checkout, and of their folders, from their content. Go caches the result of a test as
// long as the files that the test opened have the same size and time, but in a new clone all files have the time of the clone. Errors: from git
// and from the file system.
func keepTimes(ctx context.Context, root string) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--stage")
	list.Dir = root
	staged, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the files of the checkout: %w", err)
	}
	changed := exec.CommandContext(ctx, "git", "ls-files", "-z", "--modified", "--deleted")
	changed.Dir = root
	differ, err := changed.Output()
	if err != nil {
		return fmt.Errorf("listing the changed files of the checkout: %w", err)
	}
	changedFiles := map[string]bool{}
	for name := range bytes.SplitSeq(differ, []byte{0}) {
		changedFiles[string(name)] = true
	}
	// The content of a folder is the list of its entries, as git sorts them.
	folders := map[string][]byte{}
	for entry := range bytes.SplitSeq(staged, []byte{0}) {
		about, name, found := bytes.Cut(entry, []byte{'\t'})
		if !found {
			continue
		}
		for folder := path.Dir(string(name)); ; folder = path.Dir(folder) {
			folders[folder] = append(folders[folder], entry...)
			if folder == "." {
				break
			}
		}
		if changedFiles[string(name)] {
			continue
		}
		if err := setTime(filepath.Join(root, string(name)), about); err != nil {
			return err
		}
	}
	for folder, entries := range folders {
		if err := setTime(filepath.Join(root, folder), entries); err != nil {
			return err
		}
	}
	return nil
}

// setTime sets the time of a file or folder, between 1970 and 2004. Different content gets a different time.
func setTime(name string, content []byte) error {
	if info, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	digest := sha256.Sum256(content)
	seconds, rest := binary.BigEndian.Uint32(digest[:])>>2, binary.BigEndian.Uint32(digest[4:])%1_000_000_000
	when := time.Unix(int64(seconds), int64(rest))
	return os.Chtimes(name, when, when)
}
