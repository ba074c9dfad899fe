package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"management.platform.sh/shared/signin/refusal"
)

// maxPages bounds how many pages of a list are read. A longer list is refused, because the pages that were not read could change
// the decision.
const maxPages = 20

// API is an API of a provider, called with the token of a person or of a service.
type API struct {
	Client *http.Client
	// Base is its address, without a slash at its end.
	Base string
	// Token is the bearer token.
	Token string
	// refusesOnForbidden refuses the person if the server answers 403.
	refusesOnForbidden bool
}

// Get reads an object at a path into a value. Errors: refusal.Refusal.
func (a API) Get(ctx context.Context, path string, into any) error {
	_, err := a.send(ctx, http.MethodGet, a.Base+path, nil, into)
	return err
}

// GetAccount is Get for the account of the token. A server that forbids the request has suspended or blocked the account: the person is
// refused.
func (a API) GetAccount(ctx context.Context, path string, into any) error {
	a.refusesOnForbidden = true
	return a.Get(ctx, path, into)
}

// Post sends an object to a path, and reads the answer into a value. Errors: refusal.Refusal.
func (a API) Post(ctx context.Context, path string, object, into any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return refusal.Misconfigured("a request to the provider cannot be encoded")
	}
	_, err = a.send(ctx, http.MethodPost, a.Base+path, body, into)
	return err
}

// GetPages reads a list at a path page by page. The URL of the next page is in the header Link, and must be a URL of this API. Errors:
// refusal.Refusal, also for a list with too many pages.
func GetPages[T any](ctx context.Context, api API, path string) ([]T, error) {
	var all []T
	for address, count := api.Base+path, 0; address != ""; count++ {
		if count == maxPages {
			return nil, refusal.Misconfigured("a list of the provider has more than " + strconv.Itoa(maxPages) + " pages")
		}
		var page []T
		header, err := api.send(ctx, http.MethodGet, address, nil, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if address = nextPage(header); address != "" && !strings.HasPrefix(address, api.Base+"/") {
			return nil, refusal.Misconfigured("the next page of a list is at another address")
		}
	}
	return all, nil
}

// nextPage returns the URL of the next page. Empty: there is none. Source: RFC 8288.
func nextPage(header http.Header) string {
	for link := range strings.SplitSeq(header.Get("Link"), ",") {
		address, parameters, _ := strings.Cut(link, ";")
		for parameter := range strings.SplitSeq(parameters, ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); name == "rel" && strings.Trim(value, `"`) == "next" {
				return strings.Trim(strings.TrimSpace(address), "<>")
			}
		}
	}
	return ""
}

func (a API) send(ctx context.Context, method, address string, body []byte, into any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, refusal.Misconfigured("the address of the provider is not valid")
	}
	request.Header.Set("Authorization", "Bearer "+a.Token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.Client.Do(request)
	if err != nil {
		return nil, TranslateError(err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return nil, refusal.ByProvider("the provider refuses its own token")
	case answer.StatusCode == http.StatusForbidden && a.refusesOnForbidden:
		return nil, refusal.ByProvider("the provider does not admit the account: it answers 403")
	case answer.StatusCode != http.StatusOK:
		return nil, refusal.Misconfigured("the provider answers " + strconv.Itoa(answer.StatusCode))
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || json.Unmarshal(text, into) != nil {
		return nil, refusal.Misconfigured("an answer of the provider cannot be read")
	}
	return answer.Header, nil
}

// Text is a text on which nothing depends: a value of another type is left out.
type Text struct {
	Value      string
	Unreadable bool
}

func (t *Text) UnmarshalJSON(encoded []byte) error {
	if json.Unmarshal(encoded, &t.Value) != nil {
		t.Value, t.Unreadable = "", true
	}
	return nil
}

// UnreadableNames returns the names of the texts that are left out, sorted.
func UnreadableNames(texts map[string]Text) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if texts[name].Unreadable {
			names = append(names, name)
		}
	}
	return names
}

// TranslateServiceError translates an error about a service account, which says nothing of the person: the person is not refused.
func TranslateServiceError(err error) error {
	var cause *refusal.Refusal
	if errors.As(err, &cause) && cause.IsDefinite() {
		return refusal.Misconfigured("the provider refuses the service account")
	}
	return err
}
