package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The Terraform provider is a module of its own. Registries and mirrors of providers find its files by their names.
const (
	providerName   = "terraform-provider-platform"
	providerModule = "infra/terraform/provider"
	// providerManifest names the version of the protocol that the provider speaks.
	providerManifest = `{"version": 1, "metadata": {"protocol_versions": ["6.0"]}}` + "\n"
)

// provider returns the files of the Terraform provider in the form of a registry: an archive for each platform, the manifest and the checksums
// of both. Notices are the licences of what it contains.
func (r release) provider(programs map[platform][]byte, notices []byte) (map[string][]byte, error) {
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	prefix := providerName + "_" + r.version + "_"
	files := map[string][]byte{prefix + "manifest.json": []byte(providerManifest)}
	for p, program := range programs {
		if files[prefix+p.String()+".zip"], err = zipOf([]entry{
			{path: providerName + "_v" + r.version, text: program, mode: 0o755},
			{path: "LICENSE", text: licence, mode: 0o644},
			{path: "THIRD-PARTY-NOTICES.txt", text: notices, mode: 0o644},
		}, r.time); err != nil {
			return nil, err
		}
	}
	var sums bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	files[prefix+"SHA256SUMS"] = sums.Bytes()
	return files, nil
}

// zipOf writes files in the order of their paths, with one time and fixed modes.
func zipOf(entries []entry, modified time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.path, b.path) }) {
		header := &zip.FileHeader{Name: e.path, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(os.FileMode(e.mode))
		file, err := w.CreateHeader(header)
		if err == nil {
			_, err = file.Write(e.text)
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
