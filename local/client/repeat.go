package client

import (
	"context"
	"crypto/tls"
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
	// repeats is how often a request is sent again, at most.
	repeats = 3
	// maxPause is the longest pause that a server may ask for.
	maxPause = 30 * time.Second
)

// mayRepeat returns a context for requests that have the same effect if they arrive twice, although their method does not say so.
func mayRepeat(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatable{}, true)
}

type repeatable struct{}

// repeating returns a client that repeats each request that had no effect, because nobody listened or the server said when to come back, and
// each idempotent request whose connection ended before the answer. Also reports whether a request with another outcome is repeated; nil: none
// is. Source: RFC 9110, 9.2.2 and 10.2.3.
func repeating(client *http.Client, also func(*http.Response, error) bool) *http.Client {
	inner := retryablehttp.NewClient()
	inner.HTTPClient, inner.Logger, inner.ErrorHandler = client, nil, retryablehttp.PassthroughErrorHandler
	inner.RetryMax, inner.RetryWaitMin, inner.RetryWaitMax = repeats, 250*time.Millisecond, 2*time.Second
	inner.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return hadNoEffect(answer, err) || isIdempotent(ctx, err) && isCut(err) || also != nil && also(answer, err), nil
	}
	outer := inner.StandardClient()
	outer.CheckRedirect = client.CheckRedirect
	return outer
}

// lostAnswer reports whether nobody knows what a request did: the connection or the gateway has failed.
func lostAnswer(answer *http.Response, err error) bool {
	if err != nil {
		untrusted := (*tls.CertificateVerificationError)(nil)
		return !errors.As(err, &untrusted)
	}
	return answer.StatusCode == http.StatusBadGateway || answer.StatusCode == http.StatusGatewayTimeout
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

// isIdempotent reports whether the request that ended with an error may be sent twice.
func isIdempotent(ctx context.Context, err error) bool {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return false
	}
	switch strings.ToUpper(failed.Op) {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	default:
		return ctx.Value(repeatable{}) != nil
	}
}

// isCut reports whether a connection ended before the answer.
func isCut(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}, func(cut error) bool { return errors.Is(err, cut) })
}
