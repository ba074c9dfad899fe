// Package redissink stores audit events in a Redis: in a stream from which old events are removed by age. It also
// stores the heads of the chains of files there, where the writers of the files cannot change them. Source: Spec 2.7
// (dataStoreEndpoint, dataStoreTTL); ADR-0016.
package redissink

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
	"management.platform.sh/shared/state/redisstore"
)

// maxReply bounds one reply of the Redis, in bytes. It is larger than a page of events.
const maxReply = 64 << 20

// journal is the name of the audit's data in a Redis.
const journal = "audit"

// schemes are the URL schemes of a Redis.
var schemes = []string{"redis:", "rediss:", "redis-cluster:", "rediss-cluster:", "redis-sentinel:", "rediss-sentinel:", "unix:"}

// Opener opens the sink for an audit.dataStoreEndpoint that is the URL of a Redis, and its reader.
var Opener = audit.Opener{
	Name: "redis", Field: "dataStoreEndpoint",
	Open: func(config *model.ConfigAudit) (audit.Sink, error) {
		client, err := connect(config)
		if client == nil {
			return nil, err
		}
		return &sink{client: client, journal: client.Journal(journal), keep: time.Duration(config.DataStoreTTLHours) * time.Hour}, nil
	},
	Read: func(config *model.ConfigAudit) (audit.Reader, error) {
		client, err := connect(config)
		if client == nil {
			return nil, err
		}
		return &reader{client: client, journal: client.Journal(journal)}, nil
	},
}

// connect returns a client for the URL of a Redis, or nil for another URL.
func connect(config *model.ConfigAudit) (*redisstore.Client, error) {
	url := config.DataStoreEndpoint.Reveal()
	if !slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(url, scheme) }) {
		return nil, nil //nolint:nilnil // the URL is for another sink
	}
	// A sink writes one batch at a time, and a reader reads one page.
	client, err := redisstore.Open(url, redisstore.Options{PoolSize: 1, Dialer: destination.Dialer(0, true), MaxReply: maxReply})
	if err != nil {
		return nil, fmt.Errorf("audit.dataStoreEndpoint: %w", err)
	}
	return client, nil
}

// reader reads the stream. An event's name is the id of its entry.
type reader struct {
	client  *redisstore.Client
	journal *redisstore.Journal
}

func (r *reader) Page(ctx context.Context, of audit.Range) ([]audit.Stored, bool, error) {
	after, before := of.StoredBetween()
	entries, more, err := r.journal.Page(ctx, redisstore.JournalRange{
		Behind: of.Behind, After: after, Before: before, Texts: of.Events, Bytes: of.Bytes,
	})
	page := make([]audit.Stored, len(entries))
	for i, entry := range entries {
		page[i] = audit.Stored{Name: entry.ID, JSON: entry.Text}
	}
	return page, more, err
}

func (r *reader) Lookup(ctx context.Context, name string) (audit.Stored, bool, error) {
	entry, found, err := r.journal.Lookup(ctx, name)
	return audit.Stored{Name: entry.ID, JSON: entry.Text}, found, err
}

func (r *reader) Close() error { return r.client.Close() }

type sink struct {
	client  *redisstore.Client
	journal *redisstore.Journal
	keep    time.Duration
}

// Write adds the events in one step. They are as durable as any write that the Redis acknowledges.
func (s *sink) Write(ctx context.Context, records []*audit.Record, _ bool) error {
	texts := make([][]byte, len(records))
	for i, r := range records {
		texts[i] = r.JSON
	}
	var olderThan time.Time
	if s.keep > 0 {
		olderThan = time.Now().Add(-s.keep)
	}
	return s.journal.Append(ctx, texts, olderThan)
}

func (s *sink) Check(ctx context.Context) error { return s.client.Ping(ctx) }

func (s *sink) Close() error { return s.client.Close() }

// Anchor stores the heads of the chains of this host in a Redis.
type Anchor struct{ journal *redisstore.Journal }

var _ chain.Anchor = Anchor{}

// NewAnchor returns the anchor in a Redis.
func NewAnchor(client *redisstore.Client) Anchor { return Anchor{client.Journal(journal)} }

func (a Anchor) Load(ctx context.Context, directory string) (chain.Head, error) {
	text, err := a.journal.Note(ctx, note(directory))
	if err != nil || text == "" {
		return chain.Head{}, err
	}
	return chain.ParseHead(text)
}

func (a Anchor) Save(ctx context.Context, directory string, head chain.Head) error {
	return a.journal.SetNote(ctx, note(directory), head.String())
}

// note returns the name under which the head of a directory is stored.
func note(directory string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return host + ":" + directory
}
