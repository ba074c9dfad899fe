package chain

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"management.platform.sh/shared/audit"
)

// maxFindings bounds the findings of one verification.
const maxFindings = 100

// Report is the result of a verification.
type Report struct {
	// Files and Events are the numbers of files and events.
	Files  int
	Events int64
	// First is the sequence of the first event: 1 unless old files were removed.
	First int64
	Head  Head
	// Ended reports whether the last event says that its writer has ended. Otherwise a process is writing, or the
	// writer was killed, or the end is missing.
	Ended bool
	// Findings describe the errors, in order. They are empty if the chain is intact.
	Findings []string
	// Notes describe the places at which a writer did not end the log: no event was changed there, but the process was
	// killed, or could not write.
	Notes []string
}

func (r *Report) notes(format string, args ...any) {
	if len(r.Notes) < maxFindings {
		r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
	}
}

func (r *Report) finds(format string, args ...any) {
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
	}
}

// Anchored is a head that was stored elsewhere, and the place where it is stored.
type Anchored struct {
	Where string
	Head  Head
}

// maxStarts bounds how often the verification starts again because files were moved while they were read.
const maxStarts = 20

// errMoved means that a file was rotated, compressed or removed between its listing and its opening.
var errMoved = errors.New("the files are rotated faster than they can be read")

// Verify verifies the chain of a directory: the backups from the oldest to the newest, and then the current file. It
// finds events that were changed, removed, repeated or moved. With the head next to the file and the given anchors, it
// also finds an end that was cut off. An event with sequence 1 that does not begin the log is a finding, and so is an
// event after the end of the log that does not begin it again. Missing files at the beginning are no finding, because
// retention removes them. A directory can be verified while it is written to: if files are moved in the meantime, the
// verification starts again. An error means that the files could not be read.
func Verify(directory string, anchors ...Anchored) (*Report, error) {
	for start := 1; ; start++ {
		report, err := verify(directory, anchors)
		if !errors.Is(err, errMoved) || start == maxStarts {
			return report, err
		}
	}
}

func verify(directory string, anchors []Anchored) (*Report, error) {
	report := &Report{}
	// Read the anchors before the files: the files can only have grown since.
	text, err := os.ReadFile(filepath.Join(directory, HeadName))
	if err != nil {
		report.finds("%s cannot be read, so that an end that was cut off does not show: %v", HeadName, err)
	} else if head, err := ParseHead(string(text)); err != nil {
		report.finds("%s: %v", HeadName, err)
	} else {
		anchors = append([]Anchored{{Where: HeadName, Head: head}}, anchors...)
	}
	// Open the current file before listing the backups: it follows the last backup, unless it was rotated in between.
	current, err := os.Open(filepath.Join(directory, Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	defer func() { _ = current.Close() }()
	backups, err := backups(directory)
	if err != nil {
		return nil, err
	}
	if !isUnmoved(current, filepath.Join(directory, Name)) {
		return nil, errMoved
	}
	met := map[int64]string{}
	for _, a := range anchors {
		met[a.Head.Sequence] = ""
	}
	for _, name := range backups {
		if err := report.backup(filepath.Join(directory, name), met); err != nil {
			return nil, err
		}
	}
	if current != nil {
		report.file(Name, current, met)
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

// isUnmoved reports whether an open file is still the file at a path. A nil file stays while the path has none.
func isUnmoved(opened *os.File, path string) bool {
	now, err := os.Stat(path)
	if opened == nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	then, thenErr := opened.Stat()
	return err == nil && thenErr == nil && os.SameFile(then, now)
}

// backups returns the names of the backups in a directory, the oldest first. The times in the names sort as text.
func backups(directory string) ([]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("reading the audit directory: %w", err)
	}
	prefix := strings.TrimSuffix(Name, ".log") + "-"
	seen := map[string]bool{}
	var names []string
	for _, e := range entries {
		name := e.Name()
		plain := strings.TrimSuffix(name, ".gz")
		if !strings.HasPrefix(plain, prefix) || !strings.HasSuffix(plain, ".log") {
			continue
		}
		// While a backup is being compressed, it exists in both forms; the plain one is complete.
		if seen[plain] {
			names = slices.DeleteFunc(names, func(other string) bool { return strings.TrimSuffix(other, ".gz") == plain })
			name = plain
		}
		seen[plain] = true
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, ".gz"), strings.TrimSuffix(b, ".gz"))
	})
	return names, nil
}

// backup follows the chain through one backup.
func (r *Report) backup(path string, met map[int64]string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	defer func() { _ = file.Close() }()
	source := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		unzipped, err := gzip.NewReader(file)
		if err != nil {
			r.finds("%s cannot be unpacked: %v", filepath.Base(path), err)
			r.Files++
			return nil
		}
		source = unzipped
	}
	r.file(filepath.Base(path), source, met)
	return nil
}

// file follows the chain through the lines of one file.
func (r *Report) file(name string, source io.Reader, met map[int64]string) {
	r.Files++
	reader := bufio.NewReaderSize(source, 1<<20)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			// The bytes after the last newline are being written, or are torn. The anchors tell whether an event is
			// missing.
			return
		case err != nil:
			r.finds("%s cannot be read from line %d on: %v", name, number, err)
			return
		}
		r.line(name, number, line[:len(line)-1], met)
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
		case sequence == 1 && place.Mark != audit.Begun:
			r.finds("%s line %d: event 1 does not begin the log: the beginning was replaced, or an older version wrote it", name, number)
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
	switch {
	case r.Events == 0:
	case r.Ended && place.Mark != audit.Begun:
		r.finds("%s line %d: event %d follows the end of the log and does not begin it again", name, number, sequence)
	case !r.Ended && place.Mark == audit.Begun:
		r.notes("%s line %d: event %d begins the log again, and the event before it does not end it: its process was killed, or could not write",
			name, number, sequence)
	}
	r.Events++
	r.Head, r.Ended = Head{Sequence: sequence, Hash: hash}, place.Mark == audit.Ended
}
