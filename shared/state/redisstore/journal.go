package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/journal.lua
var journalLua string

var journalScript = script(journalLua)

// Journal is a list of texts, and notes about the list. Texts are only appended, and removed once they are too old.
// The audit log in Redis is a Journal. Source: ADR-0016.
type Journal struct {
	client *Client
	keys   journalKeys
}

// Journal returns the journal of that name. The rules for names are those of Resource.
func (c *Client) Journal(name string) *Journal {
	if !validResource(name) {
		panic(fmt.Sprintf("redisstore: journal name %q", name))
	}
	return &Journal{client: c, keys: newJournalKeys(name)}
}

// Append adds all texts at the end or none, and removes the texts that are older than a time; the zero time removes
// nothing. After ErrUnavailable the texts may or may not have been added. They are as durable as any write that Redis
// acknowledges.
func (j *Journal) Append(ctx context.Context, texts [][]byte, olderThan time.Time) error {
	args := make([]any, 1, len(texts)+1)
	args[0] = ""
	if !olderThan.IsZero() {
		args[0] = strconv.FormatInt(olderThan.UnixMilli(), 10)
	}
	for _, text := range texts {
		args = append(args, text)
	}
	return j.client.runOnce(ctx, "adding to the journal", func(ctx context.Context) error {
		return journalScript().Run(ctx, j.client.redis, []string{j.keys.events}, args...).Err()
	})
}

// Note returns the note of that name, or "" if there is none.
func (j *Journal) Note(ctx context.Context, name string) (string, error) {
	var text string
	err := j.client.run(ctx, "reading a note", func(ctx context.Context) error {
		var err error
		if text, err = j.client.redis.HGet(ctx, j.keys.notes, name).Result(); errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return text, err
}

// SetNote sets the note of that name.
func (j *Journal) SetNote(ctx context.Context, name, text string) error {
	return j.client.run(ctx, "writing a note", func(ctx context.Context) error {
		return j.client.redis.HSet(ctx, j.keys.notes, name, text).Err()
	})
}
