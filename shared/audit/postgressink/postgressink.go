// Package postgressink stores audit events in a table of a PostgreSQL database and removes old events by age.
// Source: Spec 2.7 (dataStoreEndpoint, dataStoreTTL); ADR-0016.
package postgressink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/destination"
)

const (
	// table creates the table if it does not exist. The type json keeps the text unchanged; jsonb refuses some texts.
	table = `CREATE TABLE IF NOT EXISTS audit_events (
	audit_id text NOT NULL,
	stage text NOT NULL,
	at timestamptz NOT NULL,
	event json NOT NULL,
	PRIMARY KEY (audit_id, stage)
);
CREATE INDEX IF NOT EXISTS audit_events_at ON audit_events (at)`
	// alone is the lock that keeps processes that start together from creating the table at the same time.
	alone = `SELECT pg_advisory_xact_lock(hashtext('management.platform.sh audit_events'))`
	// add stores an event once, however often it is written.
	add = `INSERT INTO audit_events (audit_id, stage, at, event)
SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::json[]) ON CONFLICT DO NOTHING`
	// forget removes some of the events that are too old.
	forget = `DELETE FROM audit_events WHERE ctid IN (SELECT ctid FROM audit_events WHERE at < $1 LIMIT 10000)`

	// forgetEvery is the minimum time between two removals.
	forgetEvery = time.Minute
	// closeWithin bounds the end of a connection.
	closeWithin = time.Second
	// maxMessage bounds what the database may send as one message, in bytes: more than an event.
	maxMessage = 16 << 20
)

// Opener opens the sink for an audit.dataStoreEndpoint that is the URL of a PostgreSQL database.
var Opener = audit.Opener{
	Name: "postgres", Field: "dataStoreEndpoint",
	Open: func(config *model.ConfigAudit) (audit.Sink, error) {
		settings, err := settingsOf(config)
		if settings == nil {
			return nil, err
		}
		return &sink{settings: settings, keep: time.Duration(config.DataStoreTTLHours) * time.Hour}, nil
	},
	Read: func(config *model.ConfigAudit) (audit.Reader, error) {
		settings, err := settingsOf(config)
		if settings == nil {
			return nil, err
		}
		return &reader{settings: settings}, nil
	},
}

// parameters are the parameters that the URL of a database may have, with their defaults. Source: ADR-0047.
var parameters = map[string]string{
	"host": "", "port": "", "user": "", "password": "", "dbname": "",
	"sslmode": "prefer", "sslsni": "1", "connect_timeout": "0", "target_session_attrs": "any", "channel_binding": "prefer", "application_name": "platform",
}

// ofTheProcess are the parameters that the library takes from the environment or from files of the process, each with a
// value that turns the parameter off.
var ofTheProcess = map[string]string{
	"passfile": "", "sslcert": "", "sslkey": "", "sslcertmode": "disable", "sslrootcert": "", "sslpassword": "", "sslnegotiation": "postgres", "require_auth": "",
}

// settingsOf returns the settings of connections to the URL of a PostgreSQL database, or nil for another URL. All
// settings come from the URL: its author chooses the server, which must not get a password or a file of the process.
// The errors do not quote the URL.
func settingsOf(config *model.ConfigAudit) (*pgx.ConnConfig, error) {
	text := config.DataStoreEndpoint.Reveal()
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, nil //nolint:nilnil // the URL is for another sink
	}
	wrong := errors.New("audit.dataStoreEndpoint: must be a PostgreSQL URL")
	address, err := url.Parse(text)
	if err != nil {
		return nil, wrong
	}
	query, err := url.ParseQuery(address.RawQuery)
	if err != nil {
		return nil, wrong
	}
	for name := range query {
		if _, known := parameters[name]; !known {
			return nil, fmt.Errorf("audit.dataStoreEndpoint: the URL may have the parameters %s, and has another",
				strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
		}
	}
	password, given := address.User.Password()
	if !given {
		password = query.Get("password")
	}
	user := cmp.Or(address.User.Username(), query.Get("user"))
	switch {
	case address.Hostname() == "" && query.Get("host") == "":
		return nil, errors.New("audit.dataStoreEndpoint: the URL must name a host")
	case user == "":
		return nil, errors.New("audit.dataStoreEndpoint: the URL must name a user")
	}
	for name, value := range parameters {
		if value != "" && !query.Has(name) {
			query.Set(name, value)
		}
	}
	for name, value := range ofTheProcess {
		query.Set(name, value)
	}
	if strings.Trim(address.Path, "/") == "" && query.Get("dbname") == "" {
		query.Set("dbname", user)
	}
	address.RawQuery = query.Encode()
	settings, err := pgx.ParseConfig(address.String())
	if err != nil {
		return nil, wrong
	}
	settings.Password = password
	settings.KerberosSrvName, settings.KerberosSpn = "", ""
	settings.RuntimeParams = map[string]string{"application_name": query.Get("application_name")}
	settings.DialFunc = destination.Dialer(0, true).DialContext
	settings.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		frontend := pgproto3.NewFrontend(r, w)
		frontend.SetMaxBodyLen(maxMessage)
		return frontend
	}
	return settings, nil
}

type sink struct {
	settings *pgx.ConnConfig
	keep     time.Duration
	// connection is nil before the first write and after a failure.
	connection *pgx.Conn
	forgot     time.Time
}

// Write adds the events in one transaction. PostgreSQL acknowledges the commit once the transaction is on disk.
func (s *sink) Write(ctx context.Context, records []*audit.Record, _ bool) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	ids, stages := make([]string, len(records)), make([]string, len(records))
	times, events := make([]time.Time, len(records)), make([]string, len(records))
	for i, r := range records {
		ids[i], stages[i], times[i], events[i] = r.AuditID, string(r.Stage), r.At, string(r.JSON)
	}
	if _, err := s.connection.Exec(ctx, add, ids, stages, times, events); err != nil {
		s.hangUp()
		return fmt.Errorf("adding events: %w", err)
	}
	s.forget(ctx)
	return nil
}

// connect opens the connection and creates the table if it does not exist.
func (s *sink) connect(ctx context.Context) error {
	if s.connection != nil {
		return nil
	}
	connection, err := pgx.ConnectConfig(ctx, s.settings)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	s.connection = connection
	err = pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('audit_events') IS NOT NULL`).Scan(&there); err != nil || there {
			return err
		}
		if _, err := tx.Exec(ctx, alone); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, table)
		return err
	})
	if err != nil {
		s.hangUp()
		return fmt.Errorf("making the table: %w", err)
	}
	return nil
}

func (s *sink) Check(ctx context.Context) error {
	connection, err := pgx.ConnectConfig(ctx, s.settings)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return connection.Close(ctx)
}

// forget removes events that are too old, in small portions. If it fails, the next write connects again.
func (s *sink) forget(ctx context.Context) {
	if s.keep <= 0 || time.Since(s.forgot) < forgetEvery {
		return
	}
	removed, err := s.connection.Exec(ctx, forget, time.Now().Add(-s.keep))
	if err != nil {
		s.hangUp()
		return
	}
	// The next write removes the rest.
	if removed.RowsAffected() == 0 {
		s.forgot = time.Now()
	}
}

func (s *sink) hangUp() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = s.connection.Close(ctx)
	s.connection = nil
}

func (s *sink) Close() error {
	if s.connection != nil {
		s.hangUp()
	}
	return nil
}
