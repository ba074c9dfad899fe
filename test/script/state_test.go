//go:build unix

package script_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"
)

// redisCommand signals a redis-server, or waits for one.
func redisCommand(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) == 2 && args[0] == "await" {
		client := openRedis(ts.MkAbs(args[1]))
		defer func() { _ = client.Close() }()
		await(ts, func() string {
			if err := client.Ping(context.Background()).Err(); err != nil {
				return err.Error()
			}
			return ""
		})
		return
	}
	r := runnerByName(ts, nil)
	switch singleArgument(ts, args) {
	case "kill":
		ts.Check(syscall.Kill(redisProcess(ts, r), syscall.SIGKILL))
	case "freeze":
		r.redis = redisProcess(ts, r)
		ts.Check(syscall.Kill(r.redis, syscall.SIGSTOP))
	case "thaw":
		ts.Check(syscall.Kill(r.redis, syscall.SIGCONT))
		r.redis = 0
	default:
		ts.Fatalf("usage: redis kill|freeze|thaw|await SOCKET")
	}
}

func openRedis(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DisableIdentity: true})
}

// childRedis connects to the redis-server of a runner. Its socket is in the data folder, or in a temporary folder if that
// path is too long for a socket.
func childRedis(ts *testscript.TestScript, r *runner) *redis.Client {
	socket := filepath.Join(r.data, "redis", "redis.sock")
	if _, err := os.Stat(socket); err != nil {
		found, _ := filepath.Glob(filepath.Join(ts.Getenv("TMPDIR"), "platform-*", "redis.sock"))
		if len(found) != 1 {
			ts.Fatalf("no socket of a redis-server below %s", r.data)
		}
		socket = found[0]
	}
	return openRedis(socket)
}

var processID = regexp.MustCompile(`(?m)^process_id:(\d+)`)

// redisProcess returns the process id of the runner's redis-server.
func redisProcess(ts *testscript.TestScript, r *runner) int {
	client := childRedis(ts, r)
	defer func() { _ = client.Close() }()
	info, err := client.Info(context.Background(), "server").Result()
	ts.Check(err)
	found := processID.FindStringSubmatch(info)
	if found == nil {
		ts.Fatalf("redis-server does not say which process it is:\n%s", info)
	}
	id, err := strconv.Atoi(found[1])
	ts.Check(err)
	return id
}

// dump reads every key and value of a Redis.
func dump(ctx context.Context, client *redis.Client) ([]byte, error) {
	var text bytes.Buffer
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		kind, err := client.Type(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		var value any
		switch kind {
		case "string":
			value, err = client.Get(ctx, key).Result()
		case "hash":
			value, err = client.HGetAll(ctx, key).Result()
		case "zset":
			value, err = client.ZRangeWithScores(ctx, key, 0, -1).Result()
		case "set":
			value, err = client.SMembers(ctx, key).Result()
		case "list":
			value, err = client.LRange(ctx, key, 0, -1).Result()
		case "stream":
			value, err = client.XRange(ctx, key, "-", "+").Result()
		default:
			err = fmt.Errorf("cannot read a %s", kind)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", key, err)
		}
		_, _ = fmt.Fprintf(&text, "%s %s %v\n", kind, key, value)
	}
	return text.Bytes(), nil
}

// canary searches for the keys in the files: in Redis, in the data folder, in the output of the runner and in the answers to clients. The admin
// key may be in the two files that hold it. canary prints the number of keys whose digest is in Redis, which shows that it searched the right
// Redis.
func canary(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	r, s := runnerByName(ts, nil), sessionOf(ts)
	places := map[string][]byte{}
	client := childRedis(ts, r)
	defer func() { _ = client.Close() }()
	state, err := dump(context.Background(), client)
	ts.Check(err)
	places["Redis"] = state
	places["standard output of the runner"] = []byte(ts.ReadFile(r.stdout))
	places["standard error of the runner"] = []byte(ts.ReadFile(r.stderr))
	for i, answer := range s.answers {
		places[fmt.Sprintf("answer %d", i+1)] = []byte(answer)
	}
	logs := 0
	ts.Check(filepath.WalkDir(r.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if strings.HasSuffix(path, ".aof") {
			logs++
		}
		places[path], err = os.ReadFile(path)
		return err
	}))
	if logs == 0 {
		ts.Fatalf("there is no append-only file in %s", r.data)
	}

	admin, count := strings.TrimSpace(ts.ReadFile(filepath.Join(r.data, "admin.key"))), 0
	for _, file := range args {
		key := strings.TrimSpace(ts.ReadFile(file))
		if sum := sha256.Sum256([]byte(key)); bytes.Contains(state, []byte(hex.EncodeToString(sum[:]))) {
			count++
		}
		for place, text := range places {
			base := filepath.Base(place)
			if key == admin && (base == "admin.key" || base == "kubeconfig") {
				continue
			}
			for _, piece := range pieces(key) {
				if at := bytes.Index(text, []byte(piece)); at >= 0 {
					ts.Fatalf("the key of %s is in %s: ...%q", file, place, text[max(0, at-80):min(len(text), at+80)])
				}
			}
		}
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "searched %d places for %d keys; Redis knows the digests of %d\n", len(places), len(args), count)
}

// pieces returns the texts that would reveal a key: any sixteen consecutive characters of it, in clear, in hex and in base64.
func pieces(key string) []string {
	const length = 16
	var list []string
	for at := 0; at+length <= len(key); at += length / 2 {
		piece := key[at : at+length]
		list = append(list, piece, hex.EncodeToString([]byte(piece)))
		// Base64 encodes three bytes at a time, and the key can begin at each of them.
		for shift := range 3 {
			whole := (length - shift) / 3 * 3
			list = append(list, base64.StdEncoding.EncodeToString([]byte(piece[shift:shift+whole])))
		}
	}
	return list
}

// writer creates access keys continuously, and remembers the acknowledged keys.
type writer struct {
	quit chan struct{}
	done sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]string
	refused      int
}

func (w *writer) stop() {
	select {
	case <-w.quit:
	default:
		close(w.quit)
	}
	w.done.Wait()
}

func (w *writer) counts() (acknowledged, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acknowledged), w.refused
}

const (
	writers = 3
	// writeEvery keeps the writers from filling Redis.
	writeEvery = 5 * time.Millisecond
)

// writes creates keys in the background. At the end, every acknowledged key must authenticate its holder, who must see the
// object.
func writes(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	s, api := sessionOf(ts), ts.Getenv("API")+ts.Getenv("KEYS")
	switch singleArgument(ts, args) {
	case "begin":
		w := &writer{quit: make(chan struct{}), acknowledged: map[string]string{}}
		s.writer = w
		admin, sender := strings.TrimSpace(ts.ReadFile(ts.Getenv("ADMIN"))), client(ts, patience)
		for range writers {
			w.done.Go(func() { w.run(sender, api, admin) })
		}
		await(ts, func() string {
			if done, refused := w.counts(); done < 10 {
				return fmt.Sprintf("%d keys acknowledged, %d refused", done, refused)
			}
			return ""
		})
	case "end":
		s.writer.stop()
		sender := client(ts, patience)
		for name, key := range s.writer.acknowledged {
			request, err := http.NewRequest(http.MethodGet, api+"/"+name, nil)
			ts.Check(err)
			request.Header.Set("Authorization", "Bearer "+key)
			head, body, err := exchange(sender, request)
			ts.Check(err)
			if !strings.HasPrefix(head, "200 ") {
				ts.Fatalf("key %s was acknowledged, but its holder gets:\n%s\n%s", name, head, body)
			}
		}
		acknowledged, refused := s.writer.counts()
		_, _ = fmt.Fprintf(ts.Stdout(), "%d acknowledged, %d refused\n", acknowledged, refused)
	default:
		ts.Fatalf("usage: writes begin|end")
	}
}

func (w *writer) run(sender *http.Client, api, admin string) {
	for {
		select {
		case <-w.quit:
			return
		case <-time.After(writeEvery):
		}
		var created struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				Key string `json:"key"`
			} `json:"spec"`
		}
		request, err := http.NewRequest(http.MethodPost, api, strings.NewReader(`{"metadata":{"generateName":"write-"}}`))
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer "+admin)
		head, body, err := exchange(sender, request)
		w.mu.Lock()
		if err == nil && strings.HasPrefix(head, "201 ") && json.Unmarshal(body, &created) == nil {
			w.acknowledged[created.Metadata.Name] = created.Spec.Key
		} else {
			w.refused++
		}
		w.mu.Unlock()
	}
}
