package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"management.platform.sh/shared/model/secret"
)

const (
	// floorPrefix begins the keys of the floor in the Redis of the API.
	floorPrefix = "load:"
	// floorBearer is the name of the value that stands for the record of a bearer.
	floorBearer = "bearer"
	// floorKept is the time that Redis keeps the records of tokens and keys of the floor.
	floorKept = time.Minute
	// maxFloorBody is the maximum body that the floor reads, in bytes.
	maxFloorBody = 1 << 20
)

// floorCommand serves the floor in a process of its own: the minimum that any server in front of the same Redis does. That is net/http, one
// round trip to Redis, the necessary signatures of an operation, and no checks. It ends with its standard input, so that it never outlives the
// process that started it.
type floorCommand struct {
	Redis secret.String `env:"LOAD_FLOOR_REDIS"`
}

// Run prints the address and serves.
func (c *floorCommand) Run(context.Context) error {
	client, err := openRedis(c.Redis)
	if err != nil {
		return err
	}
	handler, err := newFloorHandler(client)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newFloorHandler returns the bare handlers.
func newFloorHandler(client *redis.Client) (http.Handler, error) {
	authority, key, err := newAuthority()
	if err != nil {
		return nil, err
	}
	// answer writes the result of an operation. All requests come from this program, so an error is a fault of the machine.
	answer := func(status int, do func(r *http.Request) ([]byte, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := do(r)
			if err != nil {
				http.Error(w, "the request cannot be served", http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}
	write := func(r *http.Request) ([]byte, error) {
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxFloorBody))
		if err != nil {
			return nil, err
		}
		return body, client.Set(r.Context(), floorPrefix+r.PathValue("name"), body, 0).Err()
	}
	listed := make([]string, objects)
	for i := range listed {
		listed[i] = floorPrefix + keptName(i)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /keys/{name}", answer(http.StatusOK, func(r *http.Request) ([]byte, error) {
		return lastValue(client.MGet(r.Context(), floorPrefix+floorBearer, floorPrefix+r.PathValue("name")).Result())
	}))
	mux.HandleFunc("GET /keys", answer(http.StatusOK, func(r *http.Request) ([]byte, error) {
		values, err := client.MGet(r.Context(), listed...).Result()
		if err != nil {
			return nil, err
		}
		body := []byte(`{"items":[`)
		for i, value := range values {
			if i > 0 {
				body = append(body, ',')
			}
			text, _ := value.(string)
			body = append(body, text...)
		}
		return append(body, "]}"...), nil
	}))
	mux.HandleFunc("POST /keys/{name}", answer(http.StatusCreated, write))
	mux.HandleFunc("PUT /keys/{name}", answer(http.StatusOK, write))
	mux.HandleFunc("DELETE /keys/{name}", answer(http.StatusOK, func(r *http.Request) ([]byte, error) {
		return []byte("{}"), client.Del(r.Context(), floorPrefix+r.PathValue("name")).Err()
	}))
	mux.HandleFunc("POST /tokens", answer(http.StatusCreated, func(r *http.Request) ([]byte, error) {
		id := rand.Text()
		token, err := signToken(key, id, time.Now())
		if err != nil {
			return nil, err
		}
		record := fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"owner":{"user":"load"},"ttl":3600}}`, id)
		if err := client.Set(r.Context(), floorPrefix+id, record, floorKept).Err(); err != nil {
			return nil, err
		}
		return fmt.Appendf(nil, `{"status":{"token":%q}}`, token), nil
	}))
	mux.HandleFunc("POST /certificates", answer(http.StatusCreated, func(r *http.Request) ([]byte, error) {
		if _, err := lastValue(client.MGet(r.Context(), floorPrefix+floorBearer, floorPrefix+keptName(0)).Result()); err != nil {
			return nil, err
		}
		text, err := issueCertificate(authority, key, time.Now())
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"kubeConfig": text})
	}))
	mux.HandleFunc("POST /kubeconfigs", answer(http.StatusCreated, func(r *http.Request) ([]byte, error) {
		id := rand.Text()
		if err := client.Set(r.Context(), floorPrefix+id, object(id, "", "A kubeconfig"), floorKept).Err(); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"kubeConfig": "token: " + id + rand.Text()})
	}))
	return mux, nil
}

// lastValue returns the last value of an MGET, which must exist.
func lastValue(values []any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, ok := values[len(values)-1].(string)
	if !ok {
		return nil, redis.Nil
	}
	return []byte(text), nil
}

// signToken signs claims with ES256. Source: RFC 7515, RFC 7518 3.4.
func signToken(key *ecdsa.PrivateKey, id string, now time.Time) (string, error) {
	const header = `{"alg":"ES256","kid":"load","typ":"JWT"}`
	claims := fmt.Appendf(nil, `{"iss":"https://load.example.com","sub":"user:load","aud":["https://load.example.com"],"jti":%q,"iat":%d,"exp":%d}`,
		id, now.Unix(), now.Add(time.Hour).Unix())
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// issueCertificate makes a key of P-256 and signs a client certificate for it. It returns both in PEM.
func issueCertificate(authority *x509.Certificate, signer *ecdsa.PrivateKey, now time.Time) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "load", Organization: []string{"platform:admins"}},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, authority, key.Public(), signer)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	return string(append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)), nil
}

// openRedis opens a client with the options of the API's store.
func openRedis(url secret.String) (*redis.Client, error) {
	options, err := redis.ParseURL(url.Reveal())
	if err != nil {
		return nil, errors.New("the URL of Redis is not redis://, rediss:// or unix://")
	}
	logging.Disable()
	options.Protocol, options.DisableIdentity = 2, true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.PoolSize, options.MaxRetries = 64, -1
	return redis.NewClient(options), nil
}

// floor is a process with the bare handlers.
type floor struct {
	address string
	process *exec.Cmd
	input   io.Closer
	// made and removed count as in api.
	made, removed atomic.Int64
	deletes       bool
	redis         *redis.Client
}

// startFloor starts the bare handlers in front of the Redis of a runner.
func startFloor(ctx context.Context, runner *platform, deletes bool) (*side, error) {
	f := &floor{deletes: deletes, redis: runner.redis}
	values := []any{floorPrefix + floorBearer, object("bearer", "", "A caller")}
	for i := range objects {
		values = append(values, floorPrefix+keptName(i), object(keptName(i), "", "To be read"))
	}
	if err := f.redis.MSet(ctx, values...).Err(); err != nil {
		return nil, fmt.Errorf("writing the values of the floor: %w", err)
	}
	store, version, err := redisProcess(ctx, f.redis)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	f.process = exec.Command(program, "floor")
	f.process.Env = append(os.Environ(), "LOAD_FLOOR_REDIS="+runner.runner.Redis().Reveal())
	f.process.Stderr = os.Stderr
	if f.input, err = f.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the floor: %w", err)
	}
	output, err := f.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the floor: %w", err)
	}
	if err := f.process.Start(); err != nil {
		return nil, fmt.Errorf("starting the floor: %w", err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		f.stop()
		return nil, fmt.Errorf("starting the floor: %w", err)
	}
	f.address = strings.TrimSpace(line)
	return &side{
		name: floorName, server: processes{f.process.Process.Pid}, store: store, subject: f.subject, stop: f.stop,
		about: "net/http and one trip to the same " + version + ", no checks, no audit",
	}, nil
}

// stop ends the process.
func (f *floor) stop() {
	_ = f.input.Close()
	_ = f.process.Wait()
}

func (f *floor) subject(op string) *subject {
	text := func(method, path string, body []byte) []byte {
		head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", method, path, f.address, len(body))
		return append(head, body...)
	}
	newSubject := func(next func(number, count int) []byte) *subject {
		return &subject{client: func(ctx context.Context, number int) (*client, error) {
			count := 0
			return httpClient(ctx, plainDialer(f.address), func(*connection) []byte { count++; return next(number, count) })
		}}
	}
	switch op {
	case opGet:
		return newSubject(func(number, count int) []byte {
			return text(http.MethodGet, "/keys/"+keptName((number+count)%objects), nil)
		})
	case opList, opPage:
		return newSubject(func(int, int) []byte { return text(http.MethodGet, "/keys", nil) })
	case opCreate:
		creation := newSubject(func(int, int) []byte {
			name := madeName(f.made.Add(1) - 1)
			return text(http.MethodPost, "/keys/"+name, object(name, "", "To be removed at once"))
		})
		if !f.deletes {
			creation.after = f.removeMade
		}
		return creation
	case opDelete:
		removed := newSubject(func(int, int) []byte {
			number := f.removed.Add(1) - 1
			if number >= f.made.Load() {
				return nil
			}
			return text(http.MethodDelete, "/keys/"+madeName(number), nil)
		})
		removed.after = f.removeMade
		return removed
	case opUpdate, opPatch, opApply:
		return newSubject(func(number, count int) []byte {
			name := keptName(number)
			return text(http.MethodPut, "/keys/"+name, object(name, "", fmt.Sprintf("Update %d", count)))
		})
	case opToken:
		return newSubject(func(int, int) []byte { return text(http.MethodPost, "/tokens", nil) })
	case opCertificate:
		return newSubject(func(int, int) []byte { return text(http.MethodPost, "/certificates", nil) })
	case opKey:
		return newSubject(func(int, int) []byte { return text(http.MethodPost, "/kubeconfigs", nil) })
	default:
		panic("load: operation " + op)
	}
}

// removeMade deletes the objects that create has made and delete has left.
func (f *floor) removeMade(ctx context.Context) error {
	to := f.made.Load()
	from := min(f.removed.Swap(to), to)
	for ; from < to; from += objects {
		var names []string
		for number := from; number < min(from+objects, to); number++ {
			names = append(names, floorPrefix+madeName(number))
		}
		if err := f.redis.Del(ctx, names...).Err(); err != nil {
			return fmt.Errorf("removing the values of the floor: %w", err)
		}
	}
	return nil
}
