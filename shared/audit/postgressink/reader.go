package postgressink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"management.platform.sh/shared/audit"
)

const (
	// newest reads a page. Total is the size of the events up to a row; the first row is in the page, however large it is.
	newest = `SELECT at, audit_id, stage, event::text FROM (
	SELECT *, sum(octet_length(event::text)) OVER sorted AS total, row_number() OVER sorted AS place FROM (
		SELECT * FROM audit_events
		WHERE ($1::timestamptz IS NULL OR at >= $1) AND ($2::timestamptz IS NULL OR at <= $2)
			AND ($3::timestamptz IS NULL OR (at, audit_id, stage) < ($3, $4, $5))
		ORDER BY at DESC, audit_id DESC, stage DESC LIMIT $6
	) AS candidates WINDOW sorted AS (ORDER BY at DESC, audit_id DESC, stage DESC)
) AS page WHERE total <= $7 OR place = 1 ORDER BY at DESC, audit_id DESC, stage DESC`
	// byName reads one event.
	byName = `SELECT at, audit_id, stage, event::text FROM audit_events WHERE audit_id = $1 AND stage = $2`
	// exists reports whether an event was ever stored.
	exists = `SELECT to_regclass('audit_events') IS NOT NULL`
)

// reader reads the table. The name of an event is the time of its stage in microseconds, its id and its stage.
type reader struct {
	settings *pgx.ConnConfig
	// connection is nil before the first read and after a failure.
	connection *pgx.Conn
}

// place is the content of an event's name.
type place struct {
	at        time.Time
	id, stage string
}

// stages are the stages by their words in names, in lower case.
var stages = func() map[string]string {
	words := map[string]string{}
	for _, stage := range []audit.Stage{audit.RequestReceived, audit.ResponseStarted, audit.ResponseComplete, audit.Panic} {
		words[strings.ToLower(string(stage))] = string(stage)
	}
	return words
}()

func (p place) name() string {
	return fmt.Sprintf("%d-%s-%s", p.at.UnixMicro(), p.id, strings.ToLower(p.stage))
}

// placeOf parses the name of an event. Ok is false if no event can have the name.
func placeOf(name string) (place, bool) {
	micros, rest, _ := strings.Cut(name, "-")
	end := strings.LastIndexByte(rest, '-')
	at, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || end < 0 || stages[rest[end+1:]] == "" {
		return place{}, false
	}
	return place{at: time.UnixMicro(at), id: rest[:end], stage: stages[rest[end+1:]]}, true
}

func (r *reader) Page(ctx context.Context, selected audit.Range) ([]audit.Stored, bool, error) {
	var after, before, at *time.Time
	if !selected.After.IsZero() {
		after = &selected.After
	}
	if !selected.Before.IsZero() {
		before = &selected.Before
	}
	behind, known := placeOf(selected.Behind)
	if known {
		at = &behind.at
	} else if selected.Behind != "" {
		return nil, false, errors.New("the name is of another store")
	}
	// A further row beyond the page shows that there are more.
	rows, err := r.read(ctx, newest, after, before, at, behind.id, behind.stage, selected.Events+1, selected.Bytes)
	if len(rows) > selected.Events {
		return rows[:selected.Events], true, err
	}
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	// The page may have ended because of its size.
	last, _ := placeOf(rows[len(rows)-1].Name)
	next, err := r.read(ctx, newest, after, before, &last.at, last.id, last.stage, 1, 1)
	return rows, len(next) > 0, err
}

func (r *reader) Lookup(ctx context.Context, name string) (audit.Stored, bool, error) {
	at, known := placeOf(name)
	if !known {
		return audit.Stored{}, false, nil
	}
	rows, err := r.read(ctx, byName, at.id, at.stage)
	if err != nil || len(rows) == 0 || rows[0].Name != name {
		return audit.Stored{}, false, err
	}
	return rows[0], true, nil
}

// read returns the events that a query selects. Without a table, it returns no events: the first event creates the table.
func (r *reader) read(ctx context.Context, query string, arguments ...any) ([]audit.Stored, error) {
	if r.connection == nil {
		connection, err := pgx.ConnectConfig(ctx, r.settings)
		if err != nil {
			return nil, fmt.Errorf("connecting: %w", err)
		}
		r.connection = connection
		var there bool
		if err := connection.QueryRow(ctx, exists).Scan(&there); err != nil || !there {
			_ = r.Close()
			return nil, err
		}
	}
	rows, err := r.connection.Query(ctx, query, arguments...)
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (audit.Stored, error) {
		var at place
		var event string
		err := row.Scan(&at.at, &at.id, &at.stage, &event)
		return audit.Stored{Name: at.name(), JSON: []byte(event)}, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	return events, nil
}

func (r *reader) Close() error {
	if r.connection == nil {
		return nil
	}
	// The context of the request may have ended.
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err := r.connection.Close(ctx)
	r.connection = nil
	return err
}
