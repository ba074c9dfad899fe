package revocation_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
)

// An admin disables a user while 16 clients of the user send requests to two processes: no request that begins after the response is accepted.
// Source: ADR-0029.
func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	const clients, before, after = 16, 5, 20
	w := newWorld(t)
	other := &platform.Environment{
		Stores: w.Env.Stores, Now: w.Env.Now, Random: w.Env.Random, Encryption: w.Env.Encryption, Log: w.Env.Log, Config: w.Env.Config,
		Version: w.Env.Version, Tokens: w.Env.Tokens,
	}
	second := httptest.NewTLSServer(process.NewServer(other).Mount(catalog.Functions...))
	t.Cleanup(second.Close)
	for i := range clients {
		w.Key(fmt.Sprint("client-", i), "ana", model.OwnedAccessKeySpec{})
	}
	// Each client uses the API, or sends its key to the webhook for a review.
	send := func(server *httptest.Server, i int) (accepted bool, err error) {
		method, path, key, body := http.MethodGet, group+"/ownedaccesskeys?limit=1", fmt.Sprint("client-", i), ""
		if i%4 == 3 {
			method, path, key = http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", "cluster"
			body = fmt.Sprintf(`{"spec":{"token":%q}}`, issuertest.Bearer+fmt.Sprint("client-", i))
		}
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+frame.BasePath+path, strings.NewReader(body))
		if err != nil {
			return false, err
		}
		request.Header.Set("Authorization", "Bearer "+issuertest.Bearer+key)
		response, err := server.Client().Do(request)
		if err != nil {
			return false, err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		switch {
		case err != nil:
			return false, err
		case i%4 == 3 && response.StatusCode == http.StatusCreated:
			return strings.Contains(string(text), `"authenticated":true`), nil
		case response.StatusCode == http.StatusOK, response.StatusCode == http.StatusUnauthorized && i%4 != 3:
			return response.StatusCode == http.StatusOK, nil
		default:
			return false, fmt.Errorf("%d %s", response.StatusCode, text)
		}
	}
	var answered atomic.Bool
	var begun, working sync.WaitGroup
	begun.Add(clients)
	for i := range clients {
		server := []*httptest.Server{w.server, second}[i%2]
		working.Go(func() {
			var earlier, later int
			for later < after {
				// The response has arrived before this request begins.
				off := answered.Load()
				accepted, err := send(server, i)
				switch {
				case err != nil:
					t.Errorf("client %d: %v", i, err)
				case off && accepted:
					t.Errorf("client %d was accepted after %d requests that were refused", i, later)
				case earlier < before && !accepted:
					t.Errorf("client %d was refused before", i)
				}
				if t.Failed() && earlier < before {
					begun.Done()
				}
				if t.Failed() {
					return
				}
				if off {
					later++
				} else if earlier++; earlier == before {
					begun.Done()
				}
			}
		})
	}
	begun.Wait()
	w.disableUser()
	answered.Store(true)
	working.Wait()
}
