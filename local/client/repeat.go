package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

const (
	// repeats bounds how often a request is sent again.
	repeats = 3
	// maxPause bounds the pause that a server may ask for.
	maxPause = 30 * time.Second
)

// mayRepeat returns a context for requests that have the same effect if they arrive twice, although their method is not
// idempotent.
func mayRepeat(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatable{}, true)
}

type repeatable struct{}

// newRepeatingClient returns a client that repeats each request that had no effect, because no server listened or the server
// said when to come back. It also repeats each idempotent request whose response was lost. Also reports whether a
// request with another outcome is repeated; nil: none is. Source: RFC 9110, 9.2.2 and 10.2.3.
func newRepeatingClient(client *http.Client, also func(*http.Response, error) bool) *http.Client {
	inner := retryablehttp.NewClient()
	inner.HTTPClient, inner.Logger, inner.ErrorHandler = client, nil, retryablehttp.PassthroughErrorHandler
	inner.RetryMax, inner.RetryWaitMin, inner.RetryWaitMax = repeats, 250*time.Millisecond, 2*time.Second
	inner.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return hadNoEffect(answer, err) || isUnanswered(answer, err) && isIdempotent(ctx, answer, err) || also != nil && also(answer, err), nil
	}
	outer := inner.StandardClient()
	outer.CheckRedirect = client.CheckRedirect
	return outer
}

// hadNoEffect reports whether a request changed nothing, and may succeed soon.
func hadNoEffect(answer *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable {
		return false
	}
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	return err == nil && seconds >= 0 && time.Duration(seconds)*time.Second <= maxPause
}

// isIdempotent reports whether the request of an answer, or of an error, may be sent twice.
func isIdempotent(ctx context.Context, answer *http.Response, err error) bool {
	method := ""
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		method = strings.ToUpper(failed.Op)
	} else if answer != nil {
		method = answer.Request.Method
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	default:
		return ctx.Value(repeatable{}) != nil
	}
}

// isUnanswered reports whether the effect of a request is unknown: the connection ended before the response, or a
// gateway got none.
func isUnanswered(answer *http.Response, err error) bool {
	if err == nil {
		return answer.StatusCode == http.StatusBadGateway || answer.StatusCode == http.StatusGatewayTimeout
	}
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}, func(cut error) bool { return errors.Is(err, cut) })
}
