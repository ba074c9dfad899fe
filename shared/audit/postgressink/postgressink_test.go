package postgressink_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/postgressink/postgrestest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

func open(t *testing.T, url string, hours int64) audit.Sink {
	t.Helper()
	sink, err := postgressink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: secret.String(url), DataStoreTTLHours: hours})
	if err != nil || sink == nil {
		t.Fatalf("%v %v", sink, err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

func record(id string, at time.Time) *audit.Record {
	return &audit.Record{AuditID: id, Stage: audit.ResponseComplete, At: at, JSON: fmt.Appendf(nil, `{"auditID":%q,"nothing":"\u0000"}`, id)}
}

// storedIDs returns the ids in the table, in order.
func storedIDs(t *testing.T, connection *pgx.Conn) string {
	t.Helper()
	rows, err := connection.Query(t.Context(), `SELECT audit_id FROM audit_events ORDER BY at, audit_id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

// A store is checked by a connection with its credentials. The error does not quote them. Source: ADR-0024.
func TestCheck(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t)
	check := func(url string) error { return open(t, url, 0).(audit.Checked).Check(t.Context()) }
	if err := check(server.URL()); err != nil {
		t.Error(err)
	}
	if err := check(strings.Replace(server.URL(), server.Password(), "wrong", 1)); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}
	server.Kill()
	if err := check(server.URL()); err == nil || strings.Contains(err.Error(), server.Password()) {
		t.Errorf("a store that is away: %v", err)
	}
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t)
	now := time.Now()
	sink := open(t, server.URL(), 0)
	write := func(sink audit.Sink, records ...*audit.Record) error { return sink.Write(t.Context(), records, true) }
	if err := write(sink, record("a", now.Add(-48*time.Hour)), record("b", now.Add(-time.Minute))); err != nil {
		t.Fatal(err)
	}
	// An event that is sent again is kept once.
	if err := write(sink, record("b", now.Add(-time.Minute)), record("c", now)); err != nil {
		t.Fatal(err)
	}
	connection := server.Connect()
	if got := storedIDs(t, connection); got != "a b c" {
		t.Errorf("without a TTL %q are kept", got)
	}
	var text string
	if err := connection.QueryRow(t.Context(), `SELECT event::text FROM audit_events WHERE audit_id = 'c'`).Scan(&text); err != nil ||
		text != string(record("c", now).JSON) {
		t.Errorf("the event is kept as %s: %v", text, err)
	}
	// Source: Spec 2.7 (dataStoreTTL, in hours).
	if err := write(open(t, server.URL(), 24), record("d", now)); err != nil {
		t.Fatal(err)
	}
	if got := storedIDs(t, connection); got != "b c d" {
		t.Errorf("with a TTL of a day %q are kept", got)
	}

	server.Kill()
	err := write(sink, record("e", now.Add(time.Second)))
	if err == nil {
		t.Fatal("it writes to a server that is gone")
	}
	if strings.Contains(err.Error(), server.Password()) {
		t.Errorf("the error quotes the password: %v", err)
	}
	server.Start()
	if err := write(sink, record("f", now.Add(2*time.Second))); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if got := storedIDs(t, server.Connect()); got != "b c d f" {
		t.Errorf("after a crash %q are kept", got)
	}
}

// Processes that start at the same time create the table once.
func TestManyBegin(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t)
	failed := make(chan error)
	for i := range 8 {
		sink := open(t, server.URL(), 1)
		go func() { failed <- sink.Write(t.Context(), []*audit.Record{record(fmt.Sprint(i), time.Now())}, false) }()
	}
	for range 8 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// A database that announces a message of a gigabyte is one that does not work. Nothing of that size is allocated. Source: ADR-0047.
func TestHostile(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer socket.Close()
				// An error whose text never ends.
				head := binary.BigEndian.AppendUint32([]byte("E"), 1<<30)
				_, err := socket.Write(append(head, "SFATAL\x00M"...))
				for padding := bytes.Repeat([]byte("x"), 1<<16); err == nil; {
					_, err = socket.Write(padding)
				}
			}()
		}
	}()
	sink := open(t, "postgres://a:hunter2@"+listener.Addr().String()+"/b?sslmode=disable", 0)
	failed := sink.Write(t.Context(), []*audit.Record{record("a", time.Now())}, true)
	if refused := (*pgproto3.ExceededMaxBodyLenErr)(nil); !errors.As(failed, &refused) || strings.Contains(failed.Error(), "hunter2") {
		t.Errorf("an endless error: %v", failed)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "redis://localhost", "postgresx://a"} {
		if sink, err := postgressink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: secret.String(url)}); sink != nil || err != nil {
			t.Errorf("%q: %v %v", url, sink, err)
		}
	}
	_, err := postgressink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: "postgres://a:hunter2@host:port/b"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a broken URL: %v", err)
	}
}

// Source: ADR-0034.
func TestReader(t *testing.T) {
	t.Parallel()
	server := postgrestest.Server(t)
	open := func() audit.Reader {
		t.Helper()
		reader, err := postgressink.Opener.Read(&model.ConfigAudit{DataStoreEndpoint: secret.String(server.URL())})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Close() })
		return reader
	}
	if page, more, err := open().Page(t.Context(), audit.Range{Events: 5, Bytes: 100}); len(page) > 0 || more || err != nil {
		t.Errorf("without a table: %v %v %v", page, more, err)
	}
	begin := time.Date(2027, time.March, 1, 0, 0, 0, 1000, time.UTC)
	minute := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Second) }
	large := `"` + strings.Repeat("e", 98) + `"`
	// The first two are of one moment.
	records := []*audit.Record{
		{AuditID: "a-1", Stage: audit.RequestReceived, At: minute(0), JSON: []byte(`"a"`)}, {AuditID: "a-1", Stage: audit.ResponseComplete, At: minute(0), JSON: []byte(`"b"`)},
		{AuditID: "c", Stage: audit.Panic, At: minute(2), JSON: []byte(`"c"`)}, {AuditID: "d", Stage: audit.ResponseStarted, At: minute(3), JSON: []byte(large)},
	}
	sink, err := postgressink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: secret.String(server.URL())})
	if err == nil {
		err = sink.Write(t.Context(), records, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = sink.Close()
	reader := open()
	read := func(of audit.Range) (texts string, last string, more bool) {
		t.Helper()
		page, more, err := reader.Page(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page {
			texts, last = texts+" "+string(one.JSON), one.Name
		}
		return strings.TrimSpace(texts), last, more
	}
	for _, row := range []struct {
		about string
		of    audit.Range
		want  string
		more  bool
	}{
		{"all", audit.Range{Events: 4, Bytes: 1000}, large + ` "c" "b" "a"`, false},
		{"two", audit.Range{Events: 2, Bytes: 1000}, large + ` "c"`, true},
		{"one that is too large", audit.Range{Events: 5, Bytes: 10}, large, true},
		{"bytes", audit.Range{Events: 5, Bytes: 106}, large + ` "c" "b"`, true},
		{"after", audit.Range{Events: 5, Bytes: 1000, After: minute(2)}, large + ` "c"`, false},
		{"before", audit.Range{Events: 5, Bytes: 1000, Before: minute(2)}, `"c" "b" "a"`, false},
	} {
		if texts, _, more := read(row.of); texts != row.want || more != row.more {
			t.Errorf("%s: %q %v", row.about, texts, more)
		}
	}
	of, all := audit.Range{Events: 1, Bytes: 1}, ""
	for more := true; more; {
		var texts string
		texts, of.Behind, more = read(of)
		all += texts
	}
	if all != large+`"c""b""a"` {
		t.Errorf("page by page: %q", all)
	}
	name := fmt.Sprintf("%d-a-1-responsecomplete", begin.UnixMicro())
	if found, ok, err := reader.Lookup(t.Context(), name); err != nil || !ok || found.Name != name || string(found.JSON) != `"b"` {
		t.Errorf("%+v %v %v", found, ok, err)
	}
	for _, absent := range []string{"", "-", "1-a-1-responsecomplete", name + "d", "a-1-responsecomplete", name[1:], fmt.Sprintf("%d-a-1-panic", begin.UnixMicro())} {
		if _, ok, err := reader.Lookup(t.Context(), absent); err != nil || ok {
			t.Errorf("%q: %v %v", absent, ok, err)
		}
	}
	if _, _, err := reader.Page(t.Context(), audit.Range{Behind: "1-1", Events: 1, Bytes: 1}); err == nil {
		t.Error("the place of another store is taken")
	}
}

// A database gets nothing of the process that its URL does not have: neither a password or user of the environment, nor one in a file.
// Source: ADR-0047.
func TestNothingOfTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(file, []byte("*:*:*:*:canary-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PGPASSWORD": "canary-password", "PGUSER": "canary-user", "PGPASSFILE": file, "PGAPPNAME": "canary-name", "PGOPTIONS": "-c canary=1",
		"PGDATABASE": "canary-database", "PGHOST": "canary.example", "PGSSLROOTCERT": file, "PGSSLMODE": "verify-full", "PGTZ": "canary",
	} {
		t.Setenv(name, value)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	got := make(chan string, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		defer func() { _ = connection.Close() }()
		backend := pgproto3.NewBackend(connection, connection)
		started, err := backend.ReceiveStartupMessage()
		if err != nil {
			got <- err.Error()
			return
		}
		backend.Send(&pgproto3.AuthenticationCleartextPassword{})
		if err := backend.Flush(); err != nil {
			got <- err.Error()
			return
		}
		_ = backend.SetAuthType(pgproto3.AuthTypeCleartextPassword)
		message, err := backend.Receive()
		got <- fmt.Sprintf("%+v %+v %v", started, message, err)
	}()
	sink := open(t, "postgres://ana@"+listener.Addr().String()+"/x?sslmode=disable", 0)
	if err := sink.(audit.Checked).Check(t.Context()); err == nil {
		t.Error("the server is no database")
	}
	if text := <-got; strings.Contains(text, "canary") || !strings.Contains(text, "user:ana") || !strings.Contains(text, "database:x") {
		t.Errorf("the database gets %s", text)
	}
	for _, url := range []string{
		"postgres://ana@db.example/x?passfile=" + file, "postgres://ana@db.example/x?sslkey=" + file, "postgres://ana@db.example/x?sslrootcert=" + file,
		"postgres://ana@db.example/x?service=a&servicefile=" + file, "postgres://ana@db.example/x?options=-c%20a=b", "postgres://ana@/x", "postgres://db.example/x",
	} {
		if _, err := postgressink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: secret.String(url)}); err == nil || strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
