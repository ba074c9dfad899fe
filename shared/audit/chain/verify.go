package chain

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFindings bounds what one verification tells.
const maxFindings = 100

// Report is what a verification has found.
type Report struct {
	// Files and Events are how many there were.
	Files  int
	Events int64
	// First is the sequence of the first event: 1 unless old files were removed.
	First int64
	// Head is the end of the chain.
	Head Head
	// Findings are what is wrong, in order; none when the chain is whole.
	Findings []string
}

func (r *Report) finds(format string, args ...any) {
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
	}
}

// Anchored is a head that was noted elsewhere, and where.
type Anchored struct {
	Where string
	Head  Head
}

// Verify follows the chain through a directory: the backups by their age, and then the file. It finds events that were
// changed, removed, repeated or put elsewhere, and with the head beside the file and the given anchors an end that was
// cut off. That whole files are gone from the beginning is no finding: retention does that. A directory that is being written to can be verified. The error is that of reading.
func Verify(directory string, anchors ...Anchored) (*Report, error) {
	report := &Report{}
	// The anchors before the files: these may only have grown since.
	text, err := os.ReadFile(filepath.Join(directory, HeadName))
	if err != nil {
		report.finds("%s cannot be read, so that an end that was cut off does not show: %v", HeadName, err)
	} else if head, err := ParseHead(string(text)); err != nil {
		report.finds("%s: %v", HeadName, err)
	} else {
		anchors = append([]Anchored{{Where: HeadName, Head: head}}, anchors...)
	}
	files, err := files(directory)
	if err != nil {
		return nil, err
	}
	met := map[int64]string{}
	for _, a := range anchors {
		met[a.Head.Sequence] = ""
	}
	for _, name := range files {
		if err := report.file(filepath.Join(directory, name), met); err != nil {
			return nil, err
		}
		report.Files++
	}
	for _, a := range anchors {
		switch hash := met[a.Head.Sequence]; {
		case a.Head.Sequence > report.Head.Sequence:
			report.finds("events %d to %d are missing at the end: %s knows of them", report.Head.Sequence+1, a.Head.Sequence, a.Where)
		case hash != "" && hash != a.Head.Hash:
			report.finds("event %d is not the one that %s knows: it, or one before it, was changed", a.Head.Sequence, a.Where)
		}
	}
	return report, nil
}

// files are the names of the files of a directory from the oldest on. The times in the names sort as text.
func files(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("reading the audit directory: %w", err)
	}
	prefix := strings.TrimSuffix(Name, ".log") + "-"
	seen := map[string]bool{}
	var names []string
	current := false
	for _, e := range entries {
		name := e.Name()
		switch plain := strings.TrimSuffix(name, ".gz"); {
		case name == Name:
			current = true
		case strings.HasPrefix(plain, prefix) && strings.HasSuffix(plain, ".log"):
			// While it is compressed, a backup is there in both forms; the plain one is whole.
			if seen[plain] {
				names = slices.DeleteFunc(names, func(other string) bool { return strings.TrimSuffix(other, ".gz") == plain })
				name = plain
			}
			seen[plain] = true
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, ".gz"), strings.TrimSuffix(b, ".gz"))
	})
	if current {
		names = append(names, Name)
	}
	return names, nil
}

// file follows the chain through one file.
func (r *Report) file(path string, met map[int64]string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	defer func() { _ = file.Close() }()
	source := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			r.finds("%s cannot be unpacked: %v", filepath.Base(path), err)
			return nil
		}
		source = unzipped
	}
	reader := bufio.NewReaderSize(source, 1<<20)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			// What follows the last end of a line is being written, or is torn: the anchors tell whether it is missed.
			return nil
		case err != nil:
			r.finds("%s cannot be read from line %d on: %v", filepath.Base(path), number, err)
			return nil
		}
		r.line(filepath.Base(path), number, line[:len(line)-1], met)
	}
}

func (r *Report) line(name string, number int, line []byte, met map[int64]string) {
	place, err := PlaceOf(line)
	if err != nil {
		r.finds("%s line %d is no event of the chain: %v", name, number, err)
		return
	}
	sequence, hash := place.Sequence, HashOf(line)
	if _, asked := met[sequence]; asked {
		met[sequence] = hash
	}
	switch {
	case r.Events == 0:
		r.First = sequence
		switch {
		case sequence == 1 && place.Previous != "":
			r.finds("%s line %d: event 1 names an event before it", name, number)
		case sequence > 1 && !place.Begins:
			r.finds("events before %s line %d are missing: event %d did not begin a file", name, number, sequence)
		}
	case sequence > r.Head.Sequence+1:
		r.finds("events %d to %d are missing before %s line %d", r.Head.Sequence+1, sequence-1, name, number)
	case sequence <= r.Head.Sequence:
		r.finds("%s line %d: event %d stands behind event %d", name, number, sequence, r.Head.Sequence)
	case place.Previous != r.Head.Hash:
		r.finds("%s line %d: event %d is not the one that event %d follows: it was changed", name, number, r.Head.Sequence, sequence)
	}
	r.Events++
	r.Head = Head{Sequence: sequence, Hash: hash}
}
