// Package redissink stores audit events in a Redis: in a stream from which old events are removed by age. It also stores
// the heads of the chains of files there, out of reach for those who can write the files.
// Source: Spec 2.7 (dataStoreEndpoint, dataStoreTTL); ADR-0016.
package redissink

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
	"management.platform.sh/shared/state/redisstore"
)

// journal is the name of the audit's data in a Redis.
const journal = "audit"

// schemes are the URL schemes of a Redis.
var schemes = []string{"redis:", "rediss:", "redis-cluster:", "rediss-cluster:", "redis-sentinel:", "rediss-sentinel:", "unix:"}

// Opener opens the sink for an audit.dataStoreEndpoint that is the URL of a Redis.
var Opener = audit.Opener{Name: "redis", Field: "dataStoreEndpoint", Open: func(config *model.ConfigAudit) (audit.Sink, error) {
	url := config.DataStoreEndpoint.Reveal()
	for _, scheme := range schemes {
		if strings.HasPrefix(url, scheme) {
			// Only one batch is written at a time.
			client, err := redisstore.Open(url, redisstore.Options{PoolSize: 1, Dialer: destination.Dialer(0, true)})
			if err != nil {
				return nil, fmt.Errorf("audit.dataStoreEndpoint: %w", err)
			}
			return &sink{client: client, journal: client.Journal(journal), keep: time.Duration(config.DataStoreTTLHours) * time.Hour}, nil
		}
	}
	return nil, nil
}}

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

// Check implements audit.Checked.
func (s *sink) Check(ctx context.Context) error { return s.client.Ping(ctx) }

func (s *sink) Close() error { return s.client.Close() }

// Anchor stores the heads of the chains of this host in a Redis.
type Anchor struct{ journal *redisstore.Journal }

var _ chain.Anchor = Anchor{}

// NewAnchor returns the anchor in a Redis.
func NewAnchor(client *redisstore.Client) Anchor { return Anchor{client.Journal(journal)} }

// Load returns the head of a directory's chain, or the zero value if there is none.
func (a Anchor) Load(ctx context.Context, directory string) (chain.Head, error) {
	text, err := a.journal.Note(ctx, note(directory))
	if err != nil || text == "" {
		return chain.Head{}, err
	}
	return chain.ParseHead(text)
}

// Save stores the head of a directory's chain.
func (a Anchor) Save(ctx context.Context, directory string, head chain.Head) error {
	return a.journal.SetNote(ctx, note(directory), head.String())
}

// note is the name under which the head of a directory is stored.
func note(directory string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return host + ":" + directory
}
