package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

const (
	// objects is how many access keys there are to read and update, and how long a page is.
	objects = 500
	// maxClients is such that each client has an object of its own to update.
	maxClients = objects
	// cleaners is how many objects are removed at the same time.
	cleaners = 16
	// cleanUpWithin bounds the removal at the end.
	cleanUpWithin = time.Minute
)

// api is the access keys of the server under load.
type api struct {
	// run names this run: it is the value of the label and the beginning of every name.
	run     string
	bearer  secret.String
	base    string
	address string
	// path is that of the resource.
	path string
	// made counts the objects that the clients of create asked for; they are numbered from 0.
	made atomic.Int64
}

func newAPI(server string, bearer secret.String) (*api, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	address := parsed.Host
	if parsed.Port() == "" {
		address += ":80"
	}
	return &api{
		run:     "load-" + strings.ToLower(rand.Text()[:8]),
		bearer:  bearer,
		base:    parsed.Scheme + "://" + parsed.Host,
		address: address,
		path: strings.TrimSuffix(parsed.Path, "/") + "/apis/" + model.SchemeGroupVersion.String() +
			"/ownedaccesskeys",
	}, nil
}

func (a *api) kept(number int) string      { return fmt.Sprintf("%s-kept-%d", a.run, number) }
func (a *api) created(number int64) string { return fmt.Sprintf("%s-made-%d", a.run, number) }
func (a *api) item(name string) string     { return a.path + "/" + name }
func (a *api) object(name, text string) []byte {
	return fmt.Appendf(nil, objectText, name, a.run, text)
}

// objectText is a typical access key without name, label and description. Nobody can use the key:
// its secret is in a response that is discarded.
const objectText = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey",` +
	`"metadata":{"name":%q,"labels":{"load":%q,"app.kubernetes.io/managed-by":"load"}},` +
	`"spec":{"displayName":"Pipeline of the main repository","description":%q,"user":"load","ttl":86400,"type":"Other",` +
	`"scope":{"roles":[{"role":"vcluster"}],"projects":[{"project":"default"},{"project":"staging"}],` +
	`"virtualClusters":[{"project":"default","virtualCluster":"main"}]}}}`

// request is the text of an HTTP request.
func (a *api) request(method, path string, body []byte) []byte {
	text := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n",
		method, path, a.address, a.bearer.Reveal())
	if body != nil {
		text = fmt.Appendf(text, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	text = append(text, "\r\n"...)
	return append(text, body...)
}

// subject is one operation.
func (a *api) subject(op string) subject {
	requests := func(number int) func() []byte { return nil }
	var after func(context.Context) error
	switch op {
	case "get":
		texts := make([][]byte, objects)
		for i := range texts {
			texts[i] = a.request(http.MethodGet, a.item(a.kept(i)), nil)
		}
		requests = func(number int) func() []byte {
			return func() []byte { number++; return texts[number%objects] }
		}
	case "list":
		text := a.request(http.MethodGet, a.path+"?limit="+strconv.Itoa(objects), nil)
		requests = func(int) func() []byte { return func() []byte { return text } }
	case "update":
		// Every update changes something: one that does not is not written.
		requests = func(number int) func() []byte {
			path, name, begun, count := a.item(a.kept(number)), a.kept(number), time.Now().UnixNano(), 0
			return func() []byte {
				count++
				return a.request(http.MethodPut, path, a.object(name, fmt.Sprintf("Update %d of %d", count, begun)))
			}
		}
	case "create":
		from := int64(0)
		requests = func(int) func() []byte {
			return func() []byte {
				return a.request(http.MethodPost, a.path, a.object(a.created(a.made.Add(1)-1), "To be removed at once"))
			}
		}
		// The lists of the next round are to find what those of this one did.
		after = func(ctx context.Context) error {
			to := a.made.Load()
			err := a.remove(ctx, int(to-from), func(i int) string { return a.created(from + int64(i)) })
			from = to
			return err
		}
	default:
		panic("load: operation " + op)
	}
	return subject{
		name: "API " + op,
		client: func(ctx context.Context, number int) (*client, error) {
			return httpClient(ctx, a.address, requests(number))
		},
		after: after,
	}
}

// prepare makes the objects and sees that a page of them can be had.
func (a *api) prepare(ctx context.Context) error {
	for i := range objects {
		if err := a.ask(ctx, http.MethodPost, a.path, a.object(a.kept(i), "To be read"), nil); err != nil {
			return fmt.Errorf("making an object: %w", err)
		}
	}
	var list struct {
		Items []struct{} `json:"items"`
	}
	if err := a.ask(ctx, http.MethodGet, a.path+"?limit="+strconv.Itoa(objects), nil, &list); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	if len(list.Items) != objects {
		return fmt.Errorf("listing: a page has %d objects instead of %d; is the key an admin's?", len(list.Items), objects)
	}
	return nil
}

// cleanUp removes all that there is of this run, also when ctx is over.
func (a *api) cleanUp(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	made := int(a.made.Load())
	return errors.Join(
		a.remove(bounded, objects, a.kept),
		// Of the created ones only those of a measurement that was broken off are left.
		a.removeLeft(bounded, made),
	)
}

func (a *api) removeLeft(ctx context.Context, made int) error {
	if made == 0 {
		return nil
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := a.ask(ctx, http.MethodGet, a.path+"?labelSelector="+url.QueryEscape("load="+a.run), nil, &list); err != nil {
		return fmt.Errorf("looking for what is left: %w", err)
	}
	return a.remove(ctx, len(list.Items), func(i int) string { return list.Items[i].Metadata.Name })
}

// remove deletes objects by their numbers. One that is not there was never made.
func (a *api) remove(ctx context.Context, count int, name func(int) string) error {
	var (
		next  atomic.Int64
		group sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	bounded, cancel := context.WithTimeout(ctx, cleanUpWithin)
	defer cancel()
	for range min(cleaners, count) {
		group.Go(func() {
			err := func() error {
				connection, err := dial(bounded, a.address)
				if err != nil {
					return err
				}
				defer func() { _ = connection.conn.Close() }()
				for bounded.Err() == nil {
					i := int(next.Add(1)) - 1
					if i >= count {
						return nil
					}
					status, err := connection.send(a.request(http.MethodDelete, a.item(name(i)), nil))
					if err != nil {
						return err
					}
					if status != http.StatusOK && status != http.StatusNotFound {
						return refused(status)
					}
				}
				return bounded.Err()
			}()
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		})
	}
	if group.Wait(); first != nil {
		return fmt.Errorf("removing objects: %w", first)
	}
	return nil
}

// ask is for what is not measured.
func (a *api) ask(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.bearer.Reveal())
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode > 299 {
		return fmt.Errorf("%w: %s", refused(answer.StatusCode), bytes.TrimSpace(text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
