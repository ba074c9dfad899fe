// Package slots is a measured prototype, which no program uses: what authentication needs of an access key is kept beside the
// objects, in a small record for each digest. The objects of a resource share one slot of a Redis Cluster, and these records
// are spread over 256. A record is used only while the object has the revision that it was made from.
// Source: ADR-0027.
package slots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/store"
)

// Spread is a store whose objects are found by digest through records of their own. Writes go through it alone.
type Spread struct {
	store.Store
	// Redis has the records.
	Redis redis.UniversalClient
	// Text returns what the record of an object says. It has no line ends.
	Text func(store.Record) (string, error)
	// Step is called between the steps of a write or of a lookup, with the name of the next one. nil: nothing.
	Step func(string)
}

// set writes the record of a digest, unless a record of this revision or a later one exists. Closing a record of the same revision
// always succeeds: a closed record says nothing, and the object decides.
var set = redis.NewScript(`
local before = redis.call('HGET', KEYS[1], ARGV[1])
if before then
  local revision = string.match(before, '^(%d+)\n')
  local difference = tonumber(ARGV[2]) - tonumber(revision)
  if difference < 0 or (difference == 0 and ARGV[3] ~= '') then return 0 end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '\n' .. ARGV[3])
return 1`)

// key is the Redis key of the records of some digests: all that share the first two digits.
func key(digest string) string { return "p1:{auth:" + digest[:2] + "}:digests" }

func (s *Spread) step(name string) {
	if s.Step != nil {
		s.Step(name)
	}
}

// note writes the record of a digest. An empty text closes it.
func (s *Spread) note(ctx context.Context, digest string, revision int64, text string) error {
	s.step("note")
	if err := set.Run(ctx, s.Redis, []string{key(digest)}, digest, revision, text).Err(); err != nil {
		return fmt.Errorf("noting a digest: %w", err)
	}
	return nil
}

// open writes the record of an object.
func (s *Spread) open(ctx context.Context, record store.Record) error {
	text, err := s.Text(record)
	if err != nil {
		return err
	}
	return s.note(ctx, record.Digest, record.Revision, text)
}

// Create writes the object first: until its record is there, the object answers.
func (s *Spread) Create(ctx context.Context, record store.Record) (int64, error) {
	s.step("create")
	revision, err := s.Store.Create(ctx, record)
	if err != nil {
		return 0, err
	}
	record.Revision = revision
	return revision, s.open(ctx, record)
}

// Update closes the record first, so that nothing that the object said before is used after it has changed.
func (s *Spread) Update(ctx context.Context, record store.Record) (int64, error) {
	if err := s.note(ctx, record.Digest, record.Revision, ""); err != nil {
		return 0, err
	}
	s.step("update")
	revision, err := s.Store.Update(ctx, record)
	if err != nil {
		return 0, err
	}
	record.Revision = revision
	return revision, s.open(ctx, record)
}

// Remove is Delete for an object whose digest is known. The record stays closed, so that a lookup that read the object before
// does not bring it back.
func (s *Spread) Remove(ctx context.Context, name, digest string, revision int64) (int64, error) {
	if err := s.note(ctx, digest, revision, ""); err != nil {
		return 0, err
	}
	s.step("delete")
	return s.Delete(ctx, name, revision)
}

// Answer is what a lookup found.
type Answer struct {
	// Revision is that of the object, and Text what its record says.
	Revision int64
	Text     string
	// Fast tells that the record answered, and not the object.
	Fast bool
}

// Look returns what the record of a digest says. If there is none, or it is closed, the object answers, and an absent record is
// written again. Error: store.ErrNotFound.
func (s *Spread) Look(ctx context.Context, digest string) (Answer, error) {
	s.step("look")
	stored, err := s.Redis.HGet(ctx, key(digest), digest).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Answer{}, fmt.Errorf("reading the record of a digest: %w", err)
	}
	if number, text, _ := strings.Cut(stored, "\n"); text != "" {
		revision, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return Answer{}, fmt.Errorf("reading the record of a digest: %w", err)
		}
		return Answer{Revision: revision, Text: text, Fast: true}, nil
	}
	s.step("read")
	record, err := s.GetByDigest(ctx, digest)
	if err != nil {
		return Answer{}, err
	}
	text, err := s.Text(record)
	if err != nil {
		return Answer{}, err
	}
	if stored == "" {
		if err := s.note(ctx, digest, record.Revision, text); err != nil {
			return Answer{}, err
		}
	}
	return Answer{Revision: record.Revision, Text: text}, nil
}
