package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"management.platform.sh/shared/signin/refusal"
)

// Document is a kind of answer. Libraries refuse a whole answer for one value that they cannot read, so omit leaves out such values if
// nothing depends on them.
type Document int

// The documents of providers.
const (
	// AnyDocument is read as it is.
	AnyDocument Document = iota
	// TokenResponse is the answer of a token endpoint. A lifetime that is not an integer is left out. Source: RFC 6749, 5.1.
	TokenResponse
	// KeySet is a JWK set. Keys that the library cannot read are left out. Source: RFC 7517, 5.
	KeySet
	// UserInfo is the answer of a UserInfo endpoint. The claims email, profile and email_verified are left out if they have another type.
	UserInfo
)

// omit returns the text of a document without the values that are left out. Mistake says why the document has nothing to read; empty: it
// has something.
func (d Document) omit(text []byte) (edited []byte, mistake string) {
	fields := map[string]json.RawMessage{}
	if d == AnyDocument || json.Unmarshal(text, &fields) != nil {
		if d == KeySet {
			mistake = "the answer is no list of keys"
		}
		return text, mistake
	}
	switch d {
	case TokenResponse:
		const lifetime = "expires_in"
		if _, err := strconv.ParseInt(strings.Trim(string(fields[lifetime]), `"`), 10, 32); err == nil || fields[lifetime] == nil {
			return text, ""
		}
		delete(fields, lifetime)
	case KeySet:
		var keys []json.RawMessage
		if json.Unmarshal(fields["keys"], &keys) != nil || len(keys) == 0 {
			return text, "the answer is no list of keys"
		}
		keys = slices.DeleteFunc(keys, func(key json.RawMessage) bool { return json.Unmarshal(key, &jose.JSONWebKey{}) != nil })
		kept, err := json.Marshal(keys)
		if err != nil {
			return text, ""
		}
		fields["keys"] = kept
	case UserInfo:
		maps.DeleteFunc(fields, func(name string, value json.RawMessage) bool {
			switch name {
			case "email", "profile":
				return json.Unmarshal(value, new(string)) != nil
			case "email_verified":
				return !slices.Contains([]string{"true", "false", `"true"`, `"false"`}, string(value))
			}
			return false
		})
	default:
		// Nothing of another document is left out.
	}
	if edited, err := json.Marshal(fields); err == nil {
		return edited, ""
	}
	return text, ""
}

// Exchange is the latest request of an observed client: the errors of libraries do not say it.
type Exchange struct {
	// Status is the status of the answer. 0: there was no answer.
	Status int
	// Mistake says why the answer has nothing to read. Empty: it has something, or there was no answer.
	Mistake string

	failure error
}

// Unreachable returns the Refusal for a request without an answer. Nil: it had one.
func (e *Exchange) Unreachable() error {
	if e.failure == nil {
		return nil
	}
	return refusal.Unreachable(errors.New(failureReason(e.failure)))
}

// Observe returns a copy of a client whose answers are documents of one kind, and its latest exchange.
func Observe(client *http.Client, document Document) (*http.Client, *Exchange) {
	observed, latest := *client, &Exchange{}
	observed.Transport = &observer{next: client.Transport, document: document, latest: latest}
	return &observed, latest
}

// observer is the transport of Observe.
type observer struct {
	next     http.RoundTripper
	document Document
	latest   *Exchange
}

func (o *observer) RoundTrip(request *http.Request) (*http.Response, error) {
	*o.latest = Exchange{}
	answer, err := o.next.RoundTrip(request)
	if err != nil {
		o.latest.failure = err
		return nil, err
	}
	o.latest.Status = answer.StatusCode
	if answer.StatusCode != http.StatusOK {
		o.latest.Mistake = "it answers " + strconv.Itoa(answer.StatusCode)
		return answer, nil
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		o.latest.Mistake = "the answer is too large"
		// The library refuses the beginning of a document that is too large.
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil //nolint:nilerr // the library says what is wrong
	}
	text, o.latest.Mistake = o.document.omit(text)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}
