package redissink_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/redisstore/redistest"
)

const stream = "p1:{audit}:events"

func open(t *testing.T, url string, hours int64) audit.Sink {
	t.Helper()
	sink, err := redissink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: secret.String(url), DataStoreTTLHours: hours})
	if err != nil || sink == nil {
		t.Fatalf("%v %v", sink, err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

func raw(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

func storedIDs(t *testing.T, client *redis.Client) string {
	t.Helper()
	entries, err := client.XRange(t.Context(), stream, "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, fmt.Sprint(e.Values["event"]))
	}
	return strings.Join(texts, " ")
}

func record(text string) *audit.Record { return &audit.Record{JSON: []byte(text)} }

// A store is checked by a connection with its credentials. The error does not quote them. Source: ADR-0024.
func TestCheck(t *testing.T) {
	t.Parallel()
	check := func(url string) error { return open(t, url, 0).(audit.Checked).Check(t.Context()) }
	if err := check(redistest.Embedded(t)); err != nil {
		t.Error(err)
	}
	const password = "canary-password"
	// Nothing listens at this port.
	if err := check("redis://user:" + password + "@127.0.0.1:1"); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("a store that is away: %v", err)
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	users := "user default on nopass ~* &* +@all\nuser auditor on >" + password + " ~* &* +@all\n"
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	_, at, _ := strings.Cut(redistest.Server(t, redistest.Argument("--aclfile", file)).URL(), "://")
	if err := check("redis://auditor:" + password + "@" + at); err != nil {
		t.Errorf("with the password: %v", err)
	}
	if err := check("redis://auditor:wrong-" + password + "@" + at); err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestRedis(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) { t.Parallel(); testRedis(t, redistest.Embedded(t)) })
	t.Run("server", func(t *testing.T) { t.Parallel(); testRedis(t, redistest.Server(t).URL()) })
}

func testRedis(t *testing.T, url string) {
	client := raw(t, url)
	write := func(hours int64, texts ...string) {
		t.Helper()
		var records []*audit.Record
		for _, text := range texts {
			records = append(records, record(text))
		}
		if err := open(t, url, hours).Write(t.Context(), records, true); err != nil {
			t.Fatal(err)
		}
	}
	// These entries look as if they were written two days ago. A stream is trimmed by whole nodes of a hundred entries.
	old := time.Now().Add(-48 * time.Hour).UnixMilli()
	for i := range 250 {
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: fmt.Sprintf("%d-%d", old, i+1), Values: []string{"event", "old"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	write(0, "a", "b")
	if got := storedIDs(t, client); strings.Count(got, "old") != 250 || !strings.HasSuffix(got, "a b") {
		t.Errorf("without a TTL there is %q", got)
	}
	// Source: Spec 2.7 (dataStoreTTL, in hours).
	write(24, "c")
	if got := storedIDs(t, client); strings.Count(got, "old") >= 100 || !strings.HasSuffix(got, "a b c") {
		t.Errorf("with a TTL of a day there is %q", got)
	}
}

func TestARedisThatRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t, redistest.Argument("--maxmemory-policy", "noeviction"))
	client := raw(t, server.URL())
	sink := open(t, server.URL(), 1)
	if err := sink.Write(t.Context(), []*audit.Record{record("a")}, true); err != nil {
		t.Fatal(err)
	}
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := sink.Write(t.Context(), []*audit.Record{record("b"), record("c")}, true); err == nil {
		t.Error("a Redis without memory takes events")
	}
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if got := storedIDs(t, client); got != "a" {
		t.Errorf("half of a batch is kept: %q", got)
	}
	server.Kill()
	if err := sink.Write(t.Context(), []*audit.Record{record("d")}, true); err == nil {
		t.Error("a Redis that is gone takes events")
	}
}

func TestAnchor(t *testing.T) {
	t.Parallel()
	url := redistest.Embedded(t)
	client := redistest.Open(t, url)
	anchor := redissink.NewAnchor(client)
	if head, err := anchor.Load(t.Context(), "/a"); err != nil || head != (chain.Head{}) {
		t.Errorf("nothing was noted, and there is %v %v", head, err)
	}
	want := chain.Head{Sequence: 5, Hash: strings.Repeat("ab", 32)}
	if err := anchor.Save(t.Context(), "/a", want); err != nil {
		t.Fatal(err)
	}
	for directory, head := range map[string]chain.Head{"/a": want, "/b": {}} {
		if got, err := anchor.Load(t.Context(), directory); err != nil || got != head {
			t.Errorf("%s: %v %v", directory, got, err)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "postgres://localhost", "redisx://a"} {
		if sink, err := redissink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: secret.String(url)}); sink != nil || err != nil {
			t.Errorf("%q: %v %v", url, sink, err)
		}
	}
	_, err := redissink.Opener.Open(&model.ConfigAudit{DataStoreEndpoint: "redis://a:hunter2@host:port/b"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a broken URL: %v", err)
	}
}

// Source: ADR-0034.
func TestReader(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) { t.Parallel(); testReader(t, redistest.Embedded(t)) })
	t.Run("server", func(t *testing.T) { t.Parallel(); testReader(t, redistest.Server(t).URL()) })
}

func testReader(t *testing.T, url string) {
	client := raw(t, url)
	reader, err := redissink.Opener.Read(&model.ConfigAudit{DataStoreEndpoint: secret.String(url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
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
	if texts, _, more := read(audit.Range{Events: 5, Bytes: 100}); texts != "" || more {
		t.Errorf("without a stream there is %q", texts)
	}
	// A day lies between the entries. The last one is as large as a page.
	day := time.Date(2027, time.March, 1, 0, 0, 0, 0, time.UTC)
	for i, text := range []string{"a", "b", "c", "d", strings.Repeat("e", 100)} {
		if err := client.XAdd(t.Context(), &redis.XAddArgs{
			Stream: stream, ID: fmt.Sprintf("%d-%d", day.AddDate(0, 0, i).UnixMilli(), i), Values: []string{"event", text},
		}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("e", 100)
	for _, row := range []struct {
		about string
		of    audit.Range
		want  string
		more  bool
	}{
		{"all", audit.Range{Events: 5, Bytes: 1000}, large + " d c b a", false},
		{"two", audit.Range{Events: 2, Bytes: 1000}, large + " d", true},
		{"one that is too large", audit.Range{Events: 5, Bytes: 10}, large, true},
		{"bytes", audit.Range{Events: 5, Bytes: 102}, large + " d c", true},
		{"after", audit.Range{Events: 5, Bytes: 1000, After: day.AddDate(0, 0, 3).Add(time.Minute)}, large + " d", false},
		{"after, behind the clocks", audit.Range{Events: 5, Bytes: 1000, After: day.AddDate(0, 0, 3).Add(time.Hour)}, large, false},
		{"before", audit.Range{Events: 5, Bytes: 1000, Before: day.AddDate(0, 0, 1)}, "c b a", false},
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
	if all != large+"dcba" {
		t.Errorf("page by page: %q", all)
	}
	name := fmt.Sprintf("%d-1", day.AddDate(0, 0, 1).UnixMilli())
	if found, ok, err := reader.Lookup(t.Context(), name); err != nil || !ok || found.Name != name || string(found.JSON) != "b" {
		t.Errorf("%+v %v %v", found, ok, err)
	}
	for _, absent := range []string{"", "-", "+", "1-1", name + "0", name[:len(name)-2], "0" + name, "a-1", name + "-1", "99999999999999999999-1"} {
		if _, ok, err := reader.Lookup(t.Context(), absent); err != nil || ok {
			t.Errorf("%q: %v %v", absent, ok, err)
		}
	}
}

// hostile is a server that answers what the library needs to begin, and every other command with the same bytes.
func hostile(t *testing.T, answer string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	serve := func(socket net.Conn) {
		defer socket.Close()
		lines := bufio.NewScanner(socket)
		for lines.Scan() {
			elements, _ := strconv.Atoi(strings.TrimPrefix(lines.Text(), "*"))
			command := ""
			for i := range elements {
				lines.Scan() // the length
				lines.Scan()
				if i == 0 {
					command = strings.ToUpper(lines.Text())
				}
			}
			reply := answer
			switch command {
			case "PING":
				reply = "+PONG\r\n"
			case "HELLO":
				reply = "-ERR unknown command\r\n"
			case "CLIENT", "SELECT":
				reply = "+OK\r\n"
			}
			if _, err := io.WriteString(socket, reply); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(socket)
		}
	}()
	return "redis://" + listener.Addr().String()
}

// A data store that announces terabytes is a data store that does not work, and not the end of the process. Source: ADR-0047.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"$1099511627776\r\n", "*2147483647\r\n", "*1099511627776\r\n", "%1099511627776\r\n", strings.Repeat("*1\r\n", 1<<20), "+" + strings.Repeat("x", 1<<20),
	} {
		url := hostile(t, answer)
		if err := open(t, url, 0).Write(t.Context(), []*audit.Record{record("{}")}, true); err == nil {
			t.Errorf("a write that is answered %.30q is taken for done", answer)
		}
		reader, err := redissink.Opener.Read(&model.ConfigAudit{DataStoreEndpoint: secret.String(url)})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := reader.Page(t.Context(), audit.Range{Events: 5, Bytes: 1000}); err == nil {
			t.Errorf("a page that is answered %.30q is read", answer)
		}
		_ = reader.Close()
	}
}
