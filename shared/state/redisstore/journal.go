package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/journal.lua
var journalLua string

var journalScript = script(journalLua)

//go:embed lua/journalpage.lua
var journalPageLua string

var journalPageScript = script(journalPageLua)

// Journal is a list of texts, and notes about the list. Texts are only appended, and removed once they are too old.
// The audit log in Redis is a Journal. Source: ADR-0016.
type Journal struct {
	client *Client
	keys   journalKeys
}

// Journal returns the journal of that name. Names follow the rules of Resource.
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

// JournalEntry is a text of a journal.
type JournalEntry struct {
	// ID is the place of the text: the milliseconds at which Redis added it, a dash and a number. Later texts have
	// greater IDs.
	ID   string
	Text []byte
}

// JournalRange selects the texts of a page.
type JournalRange struct {
	// Behind is the id of the last text of the previous page. Empty: the page begins with the newest text.
	Behind string
	// After and Before bound the times at which texts were added. Zero: there is no bound.
	After, Before time.Time
	// Texts and Bytes bound the page. A page has at least one text if any matches.
	Texts, Bytes int
}

// ValidID reports whether a text has the form of an id.
func ValidID(id string) bool {
	at, number, divided := strings.Cut(id, "-")
	return divided && isNumber(at) && isNumber(number)
}

// isNumber reports whether a text is a number as Redis writes it, of at most 64 bits.
func isNumber(text string) bool {
	number, err := strconv.ParseUint(text, 10, 64)
	return err == nil && strconv.FormatUint(number, 10) == text
}

// Page returns texts, the newest first, and whether there are more. Behind must be empty or a ValidID.
func (j *Journal) Page(ctx context.Context, selected JournalRange) (page []JournalEntry, more bool, err error) {
	newest, oldest := "+", "-"
	if !selected.Before.IsZero() {
		newest = strconv.FormatInt(max(0, selected.Before.UnixMilli()), 10)
	}
	if selected.Behind != "" {
		newest = "(" + selected.Behind
	}
	if !selected.After.IsZero() {
		oldest = strconv.FormatInt(max(0, selected.After.UnixMilli()), 10)
	}
	err = j.client.run(ctx, "reading the journal", func(ctx context.Context) error {
		reply, err := journalPageScript().Run(ctx, j.client.redis, []string{j.keys.events}, newest, oldest, selected.Texts, selected.Bytes).StringSlice()
		if err != nil {
			return err
		}
		if len(reply)%2 != 1 {
			return fmt.Errorf("%w: a page of %d texts", errCorrupt, len(reply))
		}
		page, more = nil, reply[0] == "more"
		for i := 1; i < len(reply); i += 2 {
			page = append(page, JournalEntry{ID: reply[i], Text: []byte(reply[i+1])})
		}
		return nil
	})
	return page, more, err
}

// Lookup returns the text of an id, and false if there is none.
func (j *Journal) Lookup(ctx context.Context, id string) (entry JournalEntry, exists bool, err error) {
	if !ValidID(id) {
		return JournalEntry{}, false, nil
	}
	err = j.client.run(ctx, "reading the journal", func(ctx context.Context) error {
		entries, err := j.client.redis.XRange(ctx, j.keys.events, id, id).Result()
		if err != nil || len(entries) == 0 {
			return err
		}
		text, _ := entries[0].Values["event"].(string)
		entry, exists = JournalEntry{ID: entries[0].ID, Text: []byte(text)}, true
		return nil
	})
	return entry, exists, err
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

func (j *Journal) SetNote(ctx context.Context, name, text string) error {
	return j.client.run(ctx, "writing a note", func(ctx context.Context) error {
		return j.client.redis.HSet(ctx, j.keys.notes, name, text).Err()
	})
}
