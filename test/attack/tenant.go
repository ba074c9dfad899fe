package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/test/launch"
)

// site is the API under attack.
type site struct {
	base   string
	client *http.Client
}

func newSite(server string) *site {
	return &site{base: server, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: 32 << 10,
	}}}
}

// shot is one request. Zero values mean GET, no key, no body and JSON.
type shot struct {
	method, path, bearer, kind string
	body                       string
	header                     map[string]string
}

// send sends a request and returns the status of its answer, and as much of the body as into takes. 0: there was no answer.
func (s *site) send(ctx context.Context, item shot, into io.Writer) (int, error) {
	method := item.method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, s.base+item.path, strings.NewReader(item.body))
	if err != nil {
		return 0, err
	}
	if item.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+item.bearer)
	}
	if item.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if item.kind != "" {
		request.Header.Set("Content-Type", item.kind)
	}
	for name, value := range item.header {
		request.Header.Set(name, value)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(into, answer.Body); err != nil {
		return 0, err
	}
	return answer.StatusCode, nil
}

// must sends a request that has to succeed, and decodes the answer.
func (s *site) must(ctx context.Context, item shot, into any) error {
	var text bytes.Buffer
	status, err := s.send(ctx, item, &text)
	if err != nil {
		return err
	}
	if status > 299 {
		return fmt.Errorf("%s %s: %d: %.500s", item.method, item.path, status, text.String())
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text.Bytes(), into)
}

var (
	root        = "/apis/" + model.SchemeGroupVersion.String()
	keys        = root + "/ownedaccesskeys"
	tokens      = root + "/directclusterendpointtokens"
	evaluations = root + "/syncpatchevaluations"
	selves      = root + "/selves"
)

// tenant has the keys of a user.
type tenant struct {
	// Object is the name of the object of Key.
	Object string
	// Key permits what every user may do. It is empty for a client without a key.
	Key string
}

// tenant makes an access key of a user.
func (s *site) tenant(ctx context.Context, admin, user, object string) (tenant, error) {
	result := tenant{Object: object}
	var key model.OwnedAccessKey
	if err := s.must(ctx, shot{
		method: http.MethodPost, path: keys, bearer: admin,
		body: fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"user":%q,"ttl":86400}}`, object, user),
	}, &key); err != nil {
		return result, fmt.Errorf("making a key of %s: %w", user, err)
	}
	result.Key = key.Spec.Key
	return result, nil
}

// The operations of the honest tenant, in the order in which it repeats them.
var operations = []string{"get", "list", "create", "evaluate", "delete"}

// honest is the tenant whose requests must not suffer.
type honest struct {
	site   *site
	tenant tenant

	mu         sync.Mutex
	took       map[string][]time.Duration
	experience experience
}

// experience is what the honest tenant saw.
type experience struct {
	// Percentile is the 99th percentile of each operation.
	Percentile map[string]time.Duration
	// Failed counts answers that are not 2xx, by status; 0 is no answer. First describes the first of them.
	Failed map[int]int
	First  string
}

const (
	// honestClients is how many requests the honest tenant has under way.
	honestClients = 2
	// patience is how long the honest tenant waits for an answer.
	patience = 30 * time.Second
)

// evaluation takes about 3 ms in a worker.
const evaluation = `{"spec":{"object":{"spec":{"a":1}},"patches":[{"path":"spec.a","expression":` +
	`"(() => { let n = value; for (let i = 0; i < 20000; i++) { n += i } return n })()"}]}}`

// work repeats the operations for a while. A request that has begun is finished.
func (h *honest) work(ctx context.Context, span time.Duration) experience {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	h.took, h.experience = map[string][]time.Duration{}, experience{Percentile: map[string]time.Duration{}, Failed: map[int]int{}}
	var clients sync.WaitGroup
	for number := range honestClients {
		clients.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				h.round(ctx, fmt.Sprintf("honest-%d-%d-%d", number, round, time.Now().UnixNano()))
			}
		})
	}
	clients.Wait()
	for operation, took := range h.took {
		slices.Sort(took)
		h.experience.Percentile[operation] = took[(len(took)-1)*99/100]
	}
	return h.experience
}

// round does each operation once.
func (h *honest) round(ctx context.Context, name string) {
	for _, operation := range operations {
		item := shot{path: keys + "/" + h.tenant.Object}
		switch operation {
		case "list":
			item.path = keys + "?limit=10"
		case "create":
			item.method, item.path = http.MethodPost, keys
			item.body = fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"ttl":3600,"description":"made and deleted"}}`, name)
		case "evaluate":
			item.method, item.path, item.body = http.MethodPost, evaluations, evaluation
		case "delete":
			item.method, item.path = http.MethodDelete, keys+"/"+name
		}
		item.bearer = h.tenant.Key
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		var text bytes.Buffer
		asked := time.Now()
		status, err := h.site.send(bounded, item, &text)
		took := time.Since(asked)
		cancel()
		h.mu.Lock()
		if status >= 200 && status <= 299 {
			h.took[operation] = append(h.took[operation], took)
		} else if h.experience.Failed[status]++; h.experience.First == "" {
			h.experience.First = fmt.Sprintf("%s: %d %.300s", operation, status, text.String())
			if err != nil {
				h.experience.First = fmt.Sprintf("%s: %v", operation, err)
			}
		}
		h.mu.Unlock()
	}
}

// honestCommand is the honest tenant in a process of its own, which does not wait for the processor with the clients that
// attack. It reads the tenant from its standard input, and then how long to work, again and again. It writes what it saw each
// time, and ends with its input.
type honestCommand struct {
	Server string `required:"" help:"Base URL of the API."`
}

// Run works as its input says.
func (c *honestCommand) Run(ctx context.Context) error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	h := &honest{site: newSite(c.Server)}
	if err := in.Decode(&h.tenant); err != nil {
		return fmt.Errorf("reading the tenant: %w", err)
	}
	for {
		var span time.Duration
		if err := in.Decode(&span); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading how long to work: %w", err)
		}
		if err := out.Encode(h.work(ctx, span)); err != nil {
			return fmt.Errorf("writing what was seen: %w", err)
		}
	}
}

// worker is the process of the honest tenant.
type worker struct {
	in    *json.Encoder
	out   *json.Decoder
	input io.Closer
	wait  func() error
}

// startWorker starts the honest tenant: this program, with the command honest.
func startWorker(server string, honest tenant) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	command := exec.Command(program, "honest", "--server", server)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the honest tenant: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the honest tenant: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the honest tenant: %w", err)
	}
	w := &worker{in: json.NewEncoder(input), out: json.NewDecoder(output), input: input, wait: command.Wait}
	if err := w.in.Encode(honest); err != nil {
		w.stop()
		return nil, fmt.Errorf("starting the honest tenant: %w", err)
	}
	return w, nil
}

// work lets the honest tenant work for a while.
func (w *worker) work(span time.Duration) (experience, error) {
	var result experience
	if err := w.in.Encode(span); err != nil {
		return result, fmt.Errorf("asking the honest tenant to work: %w", err)
	}
	if err := w.out.Decode(&result); err != nil {
		return result, fmt.Errorf("reading what the honest tenant saw: %w", err)
	}
	return result, nil
}

// stop ends the process.
func (w *worker) stop() {
	_ = w.input.Close()
	_ = w.wait()
}

// timeToAnswer measures how long it takes until the API answers a tenant.
func (s *site) timeToAnswer(ctx context.Context, one tenant) (time.Duration, error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	for {
		status, err := s.send(bounded, shot{bearer: one.Key, path: keys + "/" + one.Object}, io.Discard)
		if status == http.StatusOK {
			return time.Since(began), nil
		}
		if bounded.Err() != nil {
			return 0, fmt.Errorf("the API does not answer %v after the attack: %d %w", patience, status, err)
		}
	}
}

// admin reads the key of the admin.
func admin(runner *launch.Runner) (string, error) {
	text, err := os.ReadFile(runner.KeyFile())
	return strings.TrimSpace(string(text)), err
}
