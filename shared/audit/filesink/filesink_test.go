package filesink_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/model"
)

func record(id, text string) *audit.Record {
	return &audit.Record{AuditID: id, Stage: audit.ResponseComplete, JSON: fmt.Appendf(nil, `{"auditID":%q,"annotations":{"text":%q}}`, id, text)}
}

func open(t *testing.T, anchor chain.Anchor, config *model.ConfigAudit) audit.Sink {
	t.Helper()
	sink, err := filesink.Opener(anchor, slog.New(slog.DiscardHandler)).Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

func write(t *testing.T, sink audit.Sink, records ...*audit.Record) {
	t.Helper()
	if err := sink.Write(t.Context(), records, true); err != nil {
		t.Fatal(err)
	}
}

// verify expects findings that match, in order.
func verify(t *testing.T, directory string, events int64, anchors []chain.Anchored, want ...string) *chain.Report {
	t.Helper()
	report, err := chain.Verify(directory, anchors...)
	if err != nil {
		t.Fatal(err)
	}
	if report.Events != events {
		t.Errorf("%d events instead of %d", report.Events, events)
	}
	fits := len(report.Findings) == len(want)
	for i := range min(len(want), len(report.Findings)) {
		fits = fits && regexp.MustCompile(want[i]).MatchString(report.Findings[i])
	}
	if !fits {
		t.Errorf("found %q instead of %q", report.Findings, want)
	}
	return report
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestChainOverRestarts(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: filepath.Join(t.TempDir(), "made", "audit")}
	for i := range 3 {
		sink := open(t, nil, config)
		write(t, sink, record(fmt.Sprint(i, "a"), "x"), record(fmt.Sprint(i, "b"), "y"))
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Each writer begins with an event that says so.
	report := verify(t, config.Path, 9, nil)
	if report.First != 1 || report.Head.Sequence != 9 || report.Files != 1 || len(report.Notes) != 2 {
		t.Errorf("%+v", report)
	}
	for _, name := range []string{chain.Name, chain.HeadName} {
		if info, err := os.Stat(filepath.Join(config.Path, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	// An event without annotations gets annotations.
	sink := open(t, nil, config)
	write(t, sink, &audit.Record{JSON: []byte(`{"auditID":"c","user":{"extra":{"a":"b"}}}`)})
	verify(t, config.Path, 11, nil)
}

// large makes lines so long that three of them fill a megabyte.
var large = strings.Repeat("x", 400<<10)

func TestRotation(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		source      string
		config      model.ConfigAudit
		files       int
		events      int64
		first       int64
		compression bool
	}{
		{"Spec 2.7 (maxSize)", model.ConfigAudit{MaxSizeMegabytes: 1}, 5, 11, 1, false},
		{"Spec 2.7 (compress)", model.ConfigAudit{MaxSizeMegabytes: 1, Compress: true}, 5, 11, 1, true},
		{"Spec 2.7 (maxBackups)", model.ConfigAudit{MaxSizeMegabytes: 1, MaxBackups: 2}, 3, 6, 6, false},
	} {
		t.Run(row.source, func(t *testing.T) {
			t.Parallel()
			config := row.config
			config.Path = t.TempDir()
			sink := open(t, nil, &config)
			for i := range 10 {
				write(t, sink, record(fmt.Sprint(i), large))
			}
			// Close waits until backups are compressed and removed.
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			report := verify(t, config.Path, row.events, nil)
			if report.Files != row.files || report.First != row.first {
				t.Errorf("%d files from event %d on", report.Files, report.First)
			}
			backups, err := filepath.Glob(filepath.Join(config.Path, "audit-*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range backups {
				info, err := os.Stat(name)
				if err != nil || info.Size() > 1<<20 || strings.HasSuffix(name, ".gz") != row.compression {
					t.Errorf("%s: %v bytes %v", name, info.Size(), err)
				}
			}
		})
	}
}

// An event that is larger than a file may be has its own file.
func TestAnEventLargerThanAFile(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir(), MaxSizeMegabytes: 1}
	sink := open(t, nil, config)
	write(t, sink, record("a", "x"), record("b", strings.Repeat("y", 4<<20)), record("c", "z"))
	verify(t, config.Path, 4, nil)
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir()}
	first, second := open(t, nil, config), open(t, nil, config)
	write(t, first, record("a", "x"))
	if err := second.Write(t.Context(), []*audit.Record{record("b", "x")}, false); err == nil {
		t.Fatal("two sinks write one directory")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, second, record("b", "x"))
	verify(t, config.Path, 4, nil)
}

// A sink with new settings takes over the directory of the old one, which is closed while requests continue.
func TestTakingOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := &model.ConfigAudit{Path: t.TempDir()}
		first, second := open(t, nil, config), open(t, nil, config)
		write(t, first, record("a", "x"))
		written := make(chan error)
		go func() { written <- second.Write(t.Context(), []*audit.Record{record("b", "x")}, true) }()
		synctest.Wait()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		verify(t, config.Path, 4, nil)
	})
}

func TestATornLine(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir()}
	sink := open(t, nil, config)
	write(t, sink, record("a", "x"), record("b", "x"))
	_ = sink.Close()
	path := filepath.Join(config.Path, chain.Name)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"auditID":"c","annot`); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	// The incomplete event was never acknowledged.
	verify(t, config.Path, 3, nil)
	write(t, open(t, nil, config), record("d", "x"))
	verify(t, config.Path, 5, nil)
}

// If the end of the file is gone when a process starts, the chain continues after the missing events, so that the gap
// stays visible. Source: ADR-0016.
func TestACutEnd(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir()}
	sink := open(t, nil, config)
	write(t, sink, record("a", "x"), record("b", "x"))
	_ = sink.Close()
	path := filepath.Join(config.Path, chain.Name)
	if err := os.WriteFile(path, []byte(strings.SplitAfter(read(t, path), "\n")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, nil, config), record("d", "x"))
	verify(t, config.Path, 3, nil, "events 2 to 3 are missing before audit.log line 2")
}

// memory is an anchor.
type memory struct {
	mu   sync.Mutex
	head chain.Head
	away bool
}

func (m *memory) Load(context.Context, string) (chain.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return chain.Head{}, errors.New("away")
	}
	return m.head, nil
}

func (m *memory) Save(_ context.Context, _ string, head chain.Head) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errors.New("away")
	}
	m.head = head
	return nil
}

func TestTampering(t *testing.T) {
	t.Parallel()
	lines := func(text string) []string { return strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n") }
	for _, row := range []struct {
		name   string
		change func(lines []string) string
		events int64
		want   []string
	}{
		{"nothing", func(l []string) string { return strings.Join(l, "") }, 5, nil},
		{"a changed event", func(l []string) string {
			return strings.Replace(strings.Join(l, ""), `"text":"2"`, `"text":"9"`, 1)
		}, 5, []string{"event 3 is not the one that event 4 follows"}},
		{"a changed byte of the last one", func(l []string) string {
			return strings.Replace(strings.Join(l, ""), `"text":"4"`, `"text":"9"`, 1)
		}, 5, []string{"event 5 is not the one that audit.head knows", "event 5 is not the one that the state knows"}},
		{"a removed event", func(l []string) string { return l[0] + l[1] + l[3] + l[4] }, 4, []string{"events 3 to 3 are missing"}},
		{"removed events at the beginning", func(l []string) string { return l[2] + l[3] + l[4] }, 3, []string{"event 3 did not begin a file"}},
		{"events in another order", func(l []string) string { return l[0] + l[2] + l[1] + l[3] + l[4] }, 5,
			[]string{"events 2 to 2 are missing", "event 2 stands behind event 3", "events 3 to 3 are missing"}},
		{"a repeated event", func(l []string) string { return l[0] + l[1] + l[1] + l[2] + l[3] + l[4] }, 6, []string{"event 2 stands behind event 2"}},
		{"an event that is not of the chain", func(l []string) string { return l[0] + "{\"auditID\":\"z\"}\n" + strings.Join(l[1:], "") }, 5, []string{"is no event of the chain"}},
		{"a cut-off tail", func(l []string) string { return l[0] + l[1] + l[2] }, 3, []string{
			"events 4 to 5 are missing at the end: audit.head knows", "events 4 to 5 are missing at the end: the state knows",
		}},
		{"half of the last event", func(l []string) string { return strings.Join(l[:4], "") + l[4][:20] }, 4, []string{
			"events 5 to 5 are missing at the end: audit.head knows", "events 5 to 5 are missing at the end: the state knows",
		}},
		{"an empty file", func([]string) string { return "" }, 0, []string{
			"events 1 to 5 are missing at the end: audit.head knows", "events 1 to 5 are missing at the end: the state knows",
		}},
	} {
		config := &model.ConfigAudit{Path: t.TempDir()}
		anchor := &memory{}
		sink := open(t, anchor, config)
		// The first event says that the log begins.
		for i := range 4 {
			write(t, sink, record(fmt.Sprint("id-", i+1), fmt.Sprint(i+1)))
		}
		_ = sink.Close()
		path := filepath.Join(config.Path, chain.Name)
		text := row.change(append(lines(read(t, path)), ""))
		if !strings.HasSuffix(text, "\n") && text != "" && row.name != "half of the last event" {
			text += "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(row.name, func(t *testing.T) {
			verify(t, config.Path, row.events, []chain.Anchored{{Where: "the state", Head: anchor.head}}, row.want...)
		})
	}
}

// Only the anchor reveals a chain that was rewritten as a whole. A process that starts on a chain whose end is gone does
// not hide the gap.
func TestAnchors(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir()}
	anchor := &memory{}
	sink := open(t, anchor, config)
	for i := range 4 {
		write(t, sink, record(fmt.Sprint(i), "x"))
	}
	_ = sink.Close()
	anchors := []chain.Anchored{{Where: "the state", Head: anchor.head}}
	verify(t, config.Path, 5, anchors)

	for _, name := range []string{chain.Name, chain.HeadName} {
		if err := os.Remove(filepath.Join(config.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	forged := open(t, nil, config)
	for i := range 4 {
		write(t, forged, record(fmt.Sprint(i), "forged"))
	}
	_ = forged.Close()
	verify(t, config.Path, 5, nil)
	verify(t, config.Path, 5, anchors, "event 5 is not the one that the state knows")

	// The end is cut off in the file and in the head next to it.
	text := strings.SplitAfter(read(t, filepath.Join(config.Path, chain.Name)), "\n")
	if err := os.WriteFile(filepath.Join(config.Path, chain.Name), []byte(text[0]+text[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config.Path, chain.HeadName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, anchor, config)
	write(t, again, record("after", "x"))
	_ = again.Close()
	verify(t, config.Path, 4, nil, "events 3 to 5 are missing before audit.log line 3")
	if anchor.head.Sequence != 7 {
		t.Errorf("the anchor is at %d", anchor.head.Sequence)
	}
}

// If the anchor cannot be reached when the process starts, it is read later, before it is written.
func TestAnAnchorThatIsAway(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir()}
	anchor := &memory{head: chain.Head{Sequence: 9, Hash: strings.Repeat("a", 64)}, away: true}
	sink := open(t, anchor, config)
	write(t, sink, record("a", "x"))
	anchor.mu.Lock()
	anchor.away = false
	anchor.mu.Unlock()
	write(t, sink, record("b", "x"))
	_ = sink.Close()
	verify(t, config.Path, 3, nil, "events 3 to 9 are missing")
	if anchor.head.Sequence != 10 {
		t.Errorf("the anchor is at %d", anchor.head.Sequence)
	}
}

// The head of the last event of a burst is in the anchor without a further event, and at once if the event must not be lost.
// Source: ADR-0047.
func TestLateHead(t *testing.T) {
	t.Parallel()
	config := &model.ConfigAudit{Path: t.TempDir()}
	anchor := &memory{}
	sink := open(t, anchor, config)
	anchoredAt := func() int64 {
		head, err := anchor.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return head.Sequence
	}
	for i := range 4 {
		if err := sink.Write(t.Context(), []*audit.Record{record(fmt.Sprint(i), "x")}, false); err != nil {
			t.Fatal(err)
		}
	}
	for patience := time.After(30 * time.Second); anchoredAt() != 5; {
		select {
		case <-patience:
			t.Fatalf("the anchor is at %d", anchoredAt())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := sink.Write(t.Context(), []*audit.Record{record("last", "x")}, true); err != nil || anchoredAt() != 6 {
		t.Errorf("the anchor is at %d, %v", anchoredAt(), err)
	}
}

func TestFoldersThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sink := open(t, nil, &model.ConfigAudit{Path: filepath.Join(file, "below")})
	if err := sink.Write(t.Context(), []*audit.Record{record("a", "x")}, true); err == nil {
		t.Error("it writes below a file")
	}
	report, err := chain.Verify(t.TempDir())
	if err != nil || len(report.Findings) != 1 {
		t.Errorf("an empty folder: %v %v", report, err)
	}
	if _, err := chain.Verify(filepath.Join(file, "below")); err == nil {
		t.Error("it verifies what is no folder")
	}
}

// With durable, a write succeeds only once the disk has it: if the event cannot be written to disk, it is not recorded.
func TestDurable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs a device that takes bytes and cannot sync")
	}
	directory := t.TempDir()
	if err := os.Symlink(os.DevNull, filepath.Join(directory, chain.Name)); err != nil {
		t.Fatal(err)
	}
	sink := open(t, nil, &model.ConfigAudit{Path: directory})
	for durable, fails := range map[bool]bool{false: false, true: true} {
		if err := sink.Write(t.Context(), []*audit.Record{record("a", "x")}, durable); (err != nil) != fails {
			t.Errorf("durable %v: %v", durable, err)
		}
	}
}

// A log has a first and a last event. A process that was killed leaves none, which stays visible. Source: ADR-0016.
func TestBeginningsAndEnds(t *testing.T) {
	t.Parallel()
	path := func(c *model.ConfigAudit) string { return filepath.Join(c.Path, chain.Name) }
	end := audit.NewMark(audit.Ended, "process", nil)
	for _, row := range []struct {
		name    string
		writers [][]*audit.Record
		change  func(lines []string) []string
		ended   bool
		notes   int
		finds   []string
	}{
		{"an end in good order", [][]*audit.Record{{record("a", "x"), end}, {record("b", "x"), end}}, nil, true, 0, nil},
		{"a process that was killed, and a restart", [][]*audit.Record{{record("a", "x")}, {record("b", "x"), end}}, nil, true, 1, nil},
		{"a process that was killed", [][]*audit.Record{{record("a", "x"), end}, {record("b", "x")}}, nil, false, 0, nil},
		{"an event after the end", [][]*audit.Record{{record("a", "x"), end, record("b", "x")}}, nil, false, 0,
			[]string{"follows the end of the log and does not begin it again"}},
		{"a beginning that was replaced", [][]*audit.Record{{record("a", "x"), end}}, func(lines []string) []string {
			first := chain.Link(record("z", "forged").JSON, chain.Head{}, true)
			head := chain.Head{Sequence: 1, Hash: chain.HashOf(first)}
			return []string{string(first), string(chain.Link(end.JSON, head, false))}
		}, true, 0, []string{"event 1 does not begin the log"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			config := &model.ConfigAudit{Path: t.TempDir()}
			events := int64(0)
			for _, records := range row.writers {
				sink := open(t, nil, config)
				write(t, sink, records...)
				if !filesink.InUse(config.Path) {
					t.Error("a directory with a writer is not in use")
				}
				if err := sink.Close(); err != nil {
					t.Fatal(err)
				}
				events += int64(len(records)) + 1
			}
			if filesink.InUse(config.Path) && runtime.GOOS == "linux" {
				t.Error("a directory without a writer is in use")
			}
			if row.change != nil {
				lines := row.change(strings.Split(read(t, path(config)), "\n"))
				last := []byte(lines[len(lines)-1])
				head := chain.Head{Sequence: int64(len(lines)), Hash: chain.HashOf(last)}
				events = head.Sequence
				for name, text := range map[string]string{chain.Name: strings.Join(lines, "\n") + "\n", chain.HeadName: head.String() + "\n"} {
					if err := os.WriteFile(filepath.Join(config.Path, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			report := verify(t, config.Path, events, nil, row.finds...)
			if report.Ended != row.ended || len(report.Notes) != row.notes {
				t.Errorf("ended: %v, notes: %q", report.Ended, report.Notes)
			}
		})
	}
}

func TestHeads(t *testing.T) {
	t.Parallel()
	head := chain.Head{Sequence: 7, Hash: strings.Repeat("0f", 32)}
	if got, err := chain.ParseHead(head.String() + "\n"); err != nil || got != head {
		t.Errorf("%v %v", got, err)
	}
	for _, text := range []string{"", "7", "x " + head.Hash, "0 " + head.Hash, "7 0f", "7 " + strings.Repeat("zz", 32)} {
		if _, err := chain.ParseHead(text); err == nil {
			t.Errorf("%q is taken for a head", text)
		}
	}
}
