package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

const (
	// objects is the number of access keys to read and update, and the length of a page.
	objects = 500
	// maxClients is the maximum number of clients, so that each client can update an object of its own.
	maxClients = objects
	// cleaners is the number of objects that are removed at the same time.
	cleaners = 16
	// cleanUpWithin bounds the removal of the objects that an operation created.
	cleanUpWithin = time.Minute
	// walkWithin bounds the walk over the pages of a list before the measurement.
	walkWithin = time.Minute
	// maxPages is the number of pages of the walk: they contain more objects than a process may keep decoded.
	maxPages = 64
)

// The operations, in the order of their measurements: delete removes the objects of create.
const (
	opGet         = "get"
	opList        = "list"
	opPage        = "page"
	opCreate      = "create"
	opDelete      = "delete"
	opUpdate      = "update"
	opPatch       = "patch"
	opApply       = "apply"
	opToken       = "token"
	opCertificate = "certificate"
	opKey         = "key"
)

var operations = []string{
	opGet, opList, opPage, opCreate, opDelete, opUpdate, opPatch, opApply, opToken, opCertificate, opKey,
}

// titles are the names of the operations in the report.
var titles = map[string]string{
	opGet:         "get",
	opList:        "list of 500",
	opPage:        "page of 500 of a list",
	opCreate:      "create",
	opDelete:      "delete",
	opUpdate:      "update",
	opPatch:       "JSON patch",
	opApply:       "server-side apply",
	opToken:       "token (ES256)",
	opCertificate: "kubeconfig with a client certificate",
	opKey:         "kubeconfig with a key",
}

// api is the access keys of a server with the API of Kubernetes.
type api struct {
	// base is the URL of the API, address its host and port, and prefix its path.
	base, address, prefix string
	dial                  dialer
	http                  *http.Client
	bearer                secret.String
	// objectCount is the number of objects to read.
	objectCount int
	// made counts the create requests, and removed the delete requests for these objects. The objects are numbered from 0.
	made, removed atomic.Int64
	// deletes is true if the operation delete is measured, which removes the objects of create.
	deletes bool
	// token is the path and body of a request for a token. An empty path: the server issues no tokens.
	token request
	// kubeconfigs is the path of requests for kubeconfigs. Empty: the server issues no kubeconfigs.
	kubeconfigs string
	// pages are the texts of requests for pages of the list.
	pages [][]byte
}

// request is a path below the prefix and a body.
type request struct{ path, body string }

// keysPath is the path of the access keys, below the prefix of a server.
const keysPath = groupPath + "/ownedaccesskeys"

// groupPath is the path of the API group.
const groupPath = "/apis/" + model.GroupName + "/" + model.Version

// All names have the same length, so that the text of one object can become the text of another.
func keptName(number int) string    { return fmt.Sprintf("kept-%08d", number) }
func madeName(number int64) string  { return fmt.Sprintf("made-%08d", number) }
func (a *api) item(n string) string { return keysPath + "/" + n }

// objectText is a typical access key without name, description and resource version. The key cannot be used, because its secret is only in a
// discarded response.
const objectText = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey",` +
	`"metadata":{"name":%q,%s"labels":{"stage":"main","app.kubernetes.io/managed-by":"load"}},` +
	`"spec":{"displayName":"Pipeline of the main repository","description":%q,"user":"load","ttl":86400,"type":"Other",` +
	`"scope":{"roles":[{"role":"vcluster"}],"projects":[{"project":"default"},{"project":"staging"}],` +
	`"virtualClusters":[{"project":"default","virtualCluster":"main"}]}}}`

func object(name, version, description string) []byte {
	if version != "" {
		version = fmt.Sprintf(`"resourceVersion":%q,`, version)
	}
	return fmt.Appendf(nil, objectText, name, version, description)
}

// text returns the text of an HTTP request.
func (a *api) text(method, path, contentType string, body []byte) []byte {
	requestText := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n",
		method, a.prefix+path, a.address, a.bearer.Reveal())
	if body != nil {
		requestText = fmt.Appendf(requestText, "Content-Type: %s\r\nContent-Length: %d\r\n", contentType, len(body))
	}
	requestText = append(requestText, "\r\n"...)
	return append(requestText, body...)
}

const jsonType = "application/json"

// subject returns one operation. Nil: the server does not have the operation.
func (a *api) subject(op string) *subject {
	// always sends the same requests.
	always := func(texts ...[]byte) *subject {
		return &subject{client: func(ctx context.Context, number int) (*client, error) {
			return httpClient(ctx, a.dial, func(*connection) []byte { number++; return texts[number%len(texts)] })
		}}
	}
	switch op {
	case opGet:
		return &subject{client: a.gets}
	case opList:
		return always(a.text(http.MethodGet, keysPath+"?limit="+strconv.Itoa(objects), "", nil))
	case opPage:
		return &subject{before: a.findPages, client: func(ctx context.Context, number int) (*client, error) {
			return httpClient(ctx, a.dial, func(*connection) []byte { number++; return a.pages[number%len(a.pages)] })
		}}
	case opCreate:
		creation := &subject{client: func(ctx context.Context, _ int) (*client, error) {
			return httpClient(ctx, a.dial, func(*connection) []byte {
				return a.text(http.MethodPost, keysPath, jsonType, object(madeName(a.made.Add(1)-1), "", "To be removed at once"))
			})
		}}
		if !a.deletes {
			creation.after = a.removeMade
		}
		return creation
	case opDelete:
		return &subject{after: a.removeMade, client: func(ctx context.Context, _ int) (*client, error) {
			return httpClient(ctx, a.dial, func(*connection) []byte {
				number := a.removed.Add(1) - 1
				if number >= a.made.Load() {
					return nil
				}
				return a.text(http.MethodDelete, a.item(madeName(number)), "", nil)
			})
		}}
	case opUpdate:
		return &subject{client: a.updates}
	case opPatch:
		return a.changes(func(name, description string) []byte {
			return a.text(http.MethodPatch, a.item(name), "application/json-patch+json",
				fmt.Appendf(nil, `[{"op":"replace","path":"/spec/description","value":%q}]`, description))
		})
	case opApply:
		return a.changes(func(name, description string) []byte {
			return a.text(http.MethodPatch, a.item(name)+"?fieldManager=load&force=true", "application/apply-patch+yaml",
				object(name, "", description))
		})
	case opToken:
		if a.token.path == "" {
			return nil
		}
		return always(a.text(http.MethodPost, a.token.path, jsonType, []byte(a.token.body)))
	case opCertificate, opKey:
		if a.kubeconfigs == "" {
			return nil
		}
		if op == opCertificate {
			return always(a.text(http.MethodPost, a.kubeconfigs, jsonType, []byte(`{"spec":{"clientCert":true}}`)))
		}
		made := always(a.text(http.MethodPost, a.kubeconfigs, jsonType, []byte(`{}`)))
		made.after = a.removeKeys
		return made
	default:
		panic("load: operation " + op)
	}
}

// gets reads the kept objects. The clients begin far from each other, and the step length makes each client reach every object.
func (a *api) gets(ctx context.Context, number int) (*client, error) {
	at := number * a.objectCount / maxClients
	// The step length has no common divisor with powers of ten, so it reaches every object.
	const stride = 7919
	return httpClient(ctx, a.dial, func(*connection) []byte {
		at = (at + stride) % a.objectCount
		return a.text(http.MethodGet, a.item(keptName(at)), "", nil)
	})
}

// updates replaces an object again and again, each time with the resource version of the previous answer. Every update changes the object,
// because an update without a change is not written.
func (a *api) updates(ctx context.Context, number int) (*client, error) {
	name := keptName(number)
	var current struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := a.ask(ctx, http.MethodGet, a.item(name), nil, &current); err != nil {
		return nil, err
	}
	version, begun, count := current.Metadata.ResourceVersion, time.Now().UnixNano(), 0
	return httpClient(ctx, a.dial, func(c *connection) []byte {
		if c.keep {
			version = versionIn(c.body)
		}
		c.keep = true
		count++
		return a.text(http.MethodPut, a.item(name), jsonType, object(name, version, fmt.Sprintf("Update %d of %d", count, begun)))
	})
}

// changes writes another description into an object again and again.
func (a *api) changes(text func(name, description string) []byte) *subject {
	return &subject{client: func(ctx context.Context, number int) (*client, error) {
		name, begun, count := keptName(number), time.Now().UnixNano(), 0
		return httpClient(ctx, a.dial, func(*connection) []byte {
			count++
			return text(name, fmt.Sprintf("Change %d of %d", count, begun))
		})
	}}
}

// versionIn finds the resource version in the text of an object.
func versionIn(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"resourceVersion":"`))
	version, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(version)
}

// prepare makes the objects to read, and checks that the server returns a page of them.
func (a *api) prepare(ctx context.Context) error {
	for i := range objects {
		if err := a.ask(ctx, http.MethodPost, keysPath, object(keptName(i), "", "To be read"), nil); err != nil {
			return fmt.Errorf("making an object: %w", err)
		}
	}
	a.objectCount = objects
	var list struct {
		Items []struct{} `json:"items"`
	}
	if err := a.ask(ctx, http.MethodGet, keysPath+"?limit="+strconv.Itoa(objects), nil, &list); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	if len(list.Items) != objects {
		return fmt.Errorf("listing: a page has %d objects instead of %d", len(list.Items), objects)
	}
	return nil
}

// findPages walks over the list and keeps the requests for its pages.
func (a *api) findPages(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, walkWithin)
	defer cancel()
	a.pages = nil
	path := keysPath + "?limit=" + strconv.Itoa(objects)
	for next := path; len(a.pages) < maxPages; {
		var list struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := a.ask(bounded, http.MethodGet, next, nil, &list); err != nil {
			return fmt.Errorf("walking over the list: %w", err)
		}
		a.pages = append(a.pages, a.text(http.MethodGet, next, "", nil))
		if list.Metadata.Continue == "" {
			break
		}
		next = path + "&continue=" + url.QueryEscape(list.Metadata.Continue)
	}
	// The last page of a short list is nearly empty.
	if len(a.pages) > 1 {
		a.pages = a.pages[:len(a.pages)-1]
	}
	return nil
}

// removeMade deletes the objects that create has made and delete has left, so that the next measurement starts with the same state.
func (a *api) removeMade(ctx context.Context) error {
	to := a.made.Load()
	from := min(a.removed.Swap(to), to)
	return a.remove(ctx, int(to-from), func(i int) string { return madeName(from + int64(i)) })
}

// removeKeys deletes the access keys of kubeconfigs.
func (a *api) removeKeys(ctx context.Context) error {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	query := "?labelSelector=" + url.QueryEscape(accesskey.OwnerNameLabel)
	if err := a.ask(ctx, http.MethodGet, keysPath+query, nil, &list); err != nil {
		return fmt.Errorf("listing the keys of kubeconfigs: %w", err)
	}
	return a.remove(ctx, len(list.Items), func(i int) string { return list.Items[i].Metadata.Name })
}

// remove deletes objects by their numbers. An object that does not exist was never made.
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
				connection, err := a.dial.connect(bounded)
				if err != nil {
					return err
				}
				defer func() { _ = connection.conn.Close() }()
				for bounded.Err() == nil {
					i := int(next.Add(1)) - 1
					if i >= count {
						return nil
					}
					status, err := connection.send(a.text(http.MethodDelete, a.item(name(i)), "", nil))
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

// ask is the HTTP client for requests that are not measured.
func (a *api) ask(ctx context.Context, method, path string, body []byte, into any) error {
	return ask(ctx, a.http, method, a.base+path, http.Header{"Authorization": {"Bearer " + a.bearer.Reveal()}}, body, into)
}

// ask sends JSON and decodes the JSON of the answer. A nil target discards the answer.
func ask(ctx context.Context, client *http.Client, method, address string, header http.Header, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if header != nil {
		request.Header = header.Clone()
	}
	request.Header.Set("Content-Type", jsonType)
	answer, err := client.Do(request)
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

// repeatUntilSuccess repeats a request until it succeeds.
func repeatUntilSuccess(ctx context.Context, within time.Duration, what string, try func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := try(bounded)
		if err == nil {
			return nil
		}
		select {
		case <-bounded.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(bounded.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
