package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strconv"
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

// repeating returns a client that repeats each request that had no effect: nobody listened, or the server said when to come back. Also reports
// whether a request with another outcome is repeated; nil: none is. Source: RFC 9110, 10.2.3.
func repeating(client *http.Client, also func(*http.Response, error) bool) *http.Client {
	inner := retryablehttp.NewClient()
	inner.HTTPClient, inner.Logger, inner.ErrorHandler = client, nil, retryablehttp.PassthroughErrorHandler
	inner.RetryMax, inner.RetryWaitMin, inner.RetryWaitMax = repeats, 250*time.Millisecond, 2*time.Second
	inner.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return hadNoEffect(answer, err) || also != nil && also(answer, err), nil
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
