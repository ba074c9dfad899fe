package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"
)

// entry is a file or, if its path ends in a slash, a folder of an archive.
type entry struct {
	path string
	text []byte
	mode int64
	// owner is the number of the user and the group. 0: root.
	owner int
}

// entriesOf returns all files of a folder, below another name.
func entriesOf(folder fs.FS, below string) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(folder, ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		entries = append(entries, entry{path: path.Join(below, name), text: text, mode: 0o644})
		return err
	})
	return entries, err
}

// tarOf writes entries in the order of their paths, without traces of this machine: no names, one time, fixed modes. It
// also writes the folders on the way.
func tarOf(entries []entry, modified time.Time) ([]byte, error) {
	entries = slices.Clone(entries)
	paths := map[string]bool{}
	for _, e := range entries {
		paths[e.path] = true
	}
	for _, e := range slices.Clone(entries) {
		for folder := path.Dir(path.Clean(e.path)); folder != "." && folder != "/"; folder = path.Dir(folder) {
			if !paths[folder+"/"] {
				paths[folder+"/"] = true
				entries = append(entries, entry{path: folder + "/", mode: 0o755})
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.path, Size: int64(len(e.text)), Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: modified, Format: tar.FormatUSTAR,
		}
		if e.path[len(e.path)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		err := w.WriteHeader(header)
		if err == nil {
			_, err = w.Write(e.text)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// compress writes a gzip file without a name and a time.
func compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
