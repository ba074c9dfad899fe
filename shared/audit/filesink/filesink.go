// Package filesink stores audit events in a directory: in audit.log and in the backups that rotation leaves. Each line is
// one event, linked to the previous one by package chain. Only one process at a time writes to a directory.
// Source: Spec 2.7 (audit), 8; ADR-0016.
package filesink

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/DeRuina/timberjack"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/model"
)

const (
	// lockName is the file that the writer of the directory locks.
	lockName = "audit.lock"

	// DefaultMaxSize is the maximum size of a file, in megabytes. Source: Spec 8.
	DefaultMaxSize = 100
	megabyte       = 1 << 20
	// slack keeps the library from rotating before this package does, which happens between two writes to disk.
	slack = 64

	// anchorEvery is the minimum time between two updates of the head in the anchor.
	anchorEvery = time.Second

	// lockWithin is the longest time to wait for a directory that has a writer. A writer of this process whose settings
	// were replaced releases it soon.
	lockWithin = 500 * time.Millisecond
	lockPause  = 10 * time.Millisecond
)

// Opener opens the sink for audit.path, unless audit.path is empty or "-". The anchor may be nil.
func Opener(anchor chain.Anchor, log *slog.Logger) audit.Opener {
	return audit.Opener{Name: "file", Field: "path", Open: func(config *model.ConfigAudit) (audit.Sink, error) {
		if config.Path == "" || config.Path == "-" {
			return nil, nil
		}
		directory, err := filepath.Abs(config.Path)
		if err != nil {
			return nil, fmt.Errorf("audit.path: %w", err)
		}
		return &sink{directory: directory, config: config, anchor: anchor, log: log}, nil
	}}
}

// sink writes to one directory.
type sink struct {
	directory string
	config    *model.ConfigAudit
	anchor    chain.Anchor
	log       *slog.Logger

	// logger rotates and writes. It is nil until the directory is open.
	logger *timberjack.Logger
	lock   *os.File
	mark   *os.File
	// head is the end of the chain, and size is the size of the file.
	head chain.Head
	size int64
	// begins is true until this writer has written its first event.
	begins bool
	// anchored is true once the head in the anchor was read. noted is the time of the last write to the anchor, and
	// dirty is true if the head has changed since.
	anchored bool
	noted    time.Time
	dirty    bool
	// later writes the head to the anchor after the last event of a burst. Nil: no write is due.
	later *time.Timer
	// mutex guards the fields above: later runs beside Write.
	mutex sync.Mutex
}

func (s *sink) path() string { return filepath.Join(s.directory, chain.Name) }

// limit is the size at which the file is rotated.
func (s *sink) limit() int64 {
	size := int64(s.config.MaxSizeMegabytes)
	if size <= 0 {
		size = DefaultMaxSize
	}
	return size * megabyte
}

// Write adds lines. On failure the file is as before.
func (s *sink) Write(ctx context.Context, records []*audit.Record, durable bool) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.open(ctx); err != nil {
		return err
	}
	s.adopt(ctx)
	if s.begins {
		records = slices.Concat([]*audit.Record{audit.NewMark(audit.Begun, "", nil)}, records)
	}
	for len(records) > 0 {
		n, err := s.append(records)
		if err != nil {
			return err
		}
		records, s.begins = records[n:], false
	}
	if durable {
		if err := s.logger.Sync(); err != nil {
			return errors.Join(fmt.Errorf("writing to disk: %w", err), s.close())
		}
	}
	s.dirty = true
	// An event that must not be lost needs its head in the anchor at once.
	s.note(ctx, durable)
	if s.anchor != nil && s.dirty && s.later == nil {
		s.later = time.AfterFunc(anchorEvery, s.noteLater)
	}
	return nil
}

// noteLater writes the head of the last events of a burst to the anchor.
func (s *sink) noteLater() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.later = nil
	if s.logger != nil {
		s.note(context.Background(), true)
	}
}

// append writes as many records as the file has room for, and returns how many.
func (s *sink) append(records []*audit.Record) (int, error) {
	var text []byte
	head, count := s.head, 0
	for _, r := range records {
		line := chain.Link(r.JSON, head, s.size+int64(len(text)) == 0)
		if s.size+int64(len(text)+len(line)+1) > s.limit() && s.size+int64(len(text)) > 0 {
			if count > 0 {
				break
			}
			if err := s.rotate(); err != nil {
				return 0, err
			}
			line = chain.Link(r.JSON, head, true)
		}
		head = chain.Head{Sequence: head.Sequence + 1, Hash: chain.HashOf(line)}
		text = append(append(text, line...), '\n')
		count++
	}
	if _, err := s.logger.Write(text); err != nil {
		// Remove the part of the line that was written: a torn line would break the chain.
		before := s.size
		err = errors.Join(fmt.Errorf("writing %s: %w", chain.Name, err), s.close())
		if back := os.Truncate(s.path(), before); back != nil && !errors.Is(back, fs.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return 0, err
	}
	s.head, s.size = head, s.size+int64(len(text))
	// A write within one sector is whole or absent. The file may be ahead of this mark; Verify allows that.
	if _, err := s.mark.WriteAt([]byte(head.String()+"\n"), 0); err != nil {
		return 0, errors.Join(fmt.Errorf("writing %s: %w", chain.HeadName, err), s.close())
	}
	return count, nil
}

func (s *sink) rotate() error {
	err := s.logger.Sync()
	if err == nil {
		err = s.logger.RotateWithReason("size")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("rotating %s: %w", chain.Name, err), s.close())
	}
	s.size = 0
	return nil
}

// open takes the directory and finds the end of the chain in it.
func (s *sink) open(ctx context.Context) (err error) {
	if s.logger != nil {
		return nil
	}
	if err := os.MkdirAll(s.directory, 0o700); err != nil {
		return fmt.Errorf("making the audit directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.lock, err = os.OpenFile(filepath.Join(s.directory, lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("locking the audit directory: %w", err)
	}
	if err := s.lockDirectory(ctx); err != nil {
		return fmt.Errorf("the audit directory %s is written by another process: %w", s.directory, err)
	}
	if s.mark, err = os.OpenFile(filepath.Join(s.directory, chain.HeadName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("opening %s: %w", chain.HeadName, err)
	}
	if err := s.resume(); err != nil {
		return err
	}
	s.logger = &timberjack.Logger{
		Filename: s.path(), MaxSize: int(s.limit()/megabyte) + slack, MaxAge: int(s.config.MaxAgeDays),
		MaxBackups: int(s.config.MaxBackups), FileMode: 0o600, Compression: "none",
	}
	if s.config.Compress {
		s.logger.Compression = "gzip"
	}
	// The library creates the file at the first write, even of zero bytes.
	if _, err := s.logger.Write(nil); err != nil {
		return fmt.Errorf("opening %s: %w", chain.Name, err)
	}
	if folder, err := os.Open(s.directory); err == nil {
		// Some systems cannot sync a folder. There, the file system writes it to disk.
		_ = folder.Sync()
		_ = folder.Close()
	}
	s.adopt(ctx)
	s.begins = true
	return nil
}

// InUse reports whether a process writes to a directory. It returns true on systems without locks.
func InUse(directory string) bool {
	lock, err := os.Open(filepath.Join(directory, lockName))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = lock.Close() }()
	return isLocked(lock)
}

// lockDirectory takes the lock of the directory.
func (s *sink) lockDirectory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	for {
		err := lockFile(s.lock)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockPause):
		}
	}
}

// resume sets head and size from the file or the mark, whichever is further. A mark ahead of the file stays ahead, so
// that the gap remains visible.
func (s *sink) resume() error {
	s.head = chain.Head{}
	if text, err := io.ReadAll(io.LimitReader(s.mark, 256)); err == nil && len(bytes.TrimSpace(text)) > 0 {
		if s.head, err = chain.ParseHead(string(text)); err != nil {
			s.log.Error("the head of the audit chain cannot be read", "file", filepath.Join(s.directory, chain.HeadName), "error", err.Error())
		}
	}
	last, length, err := lastLine(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		s.size = 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", chain.Name, err)
	}
	if info, err := os.Stat(s.path()); err == nil && info.Size() > length {
		// The machine stopped while it wrote this line. The event was never acknowledged.
		s.log.Warn("the last line of the audit log was torn", "file", s.path(), "bytes", info.Size()-length)
		if err := os.Truncate(s.path(), length); err != nil {
			return fmt.Errorf("taking back a torn line: %w", err)
		}
	}
	s.size = length
	if last == nil {
		return nil
	}
	if place, err := chain.PlaceOf(last); err == nil && place.Sequence > s.head.Sequence {
		s.head = chain.Head{Sequence: place.Sequence, Hash: chain.HashOf(last)}
	}
	return nil
}

// adopt reads the anchor once. An anchor ahead of the file means that the end of the chain is missing: the chain then
// continues after the anchor, so that the gap remains visible.
func (s *sink) adopt(ctx context.Context) {
	if s.anchor == nil || s.anchored {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, anchorEvery)
	defer cancel()
	head, err := s.anchor.Load(ctx, s.directory)
	if err != nil {
		return
	}
	s.anchored = true
	if head.Sequence > s.head.Sequence {
		s.log.Error("audit events are missing at the end of the chain",
			"directory", s.directory, "last", s.head.Sequence, "anchor", head.Sequence)
		s.head = head
	}
}

// note writes the head to the anchor: immediately with now, otherwise at most once per anchorEvery.
func (s *sink) note(ctx context.Context, now bool) {
	if s.anchor == nil || !s.anchored || !s.dirty || !now && time.Since(s.noted) < anchorEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, anchorEvery)
	defer cancel()
	s.noted = time.Now()
	if err := s.anchor.Save(ctx, s.directory, s.head); err != nil {
		s.log.Warn("the head of the audit chain could not be anchored", "error", err.Error())
		return
	}
	s.dirty = false
}

func (s *sink) close() error {
	var err error
	if s.logger != nil {
		err = s.logger.Close()
	}
	for _, file := range []*os.File{s.mark, s.lock} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	s.logger, s.mark, s.lock, s.anchored = nil, nil, nil, false
	return err
}

// Close writes the remaining records to disk and releases the directory.
func (s *sink) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.later != nil {
		s.later.Stop()
		s.later = nil
	}
	if s.logger == nil {
		return nil
	}
	err := s.logger.Sync()
	s.note(context.Background(), true)
	return errors.Join(err, s.close())
}

// lastLine returns the last complete line of a file, and the length of all complete lines.
func lastLine(path string) (last []byte, length int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	reader := bufio.NewReaderSize(file, megabyte)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return last, length, nil
		}
		if err != nil {
			return nil, 0, err
		}
		length += int64(len(line))
		last = line[:len(line)-1]
	}
}
