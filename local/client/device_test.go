package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// deviceWay is a platform that gives codes for devices.
var deviceWay = codeWay{Enabled: true, DeviceEndpoint: "https://platform.example/device", TokenEndpoint: "https://platform.example/token"}

// devicePlatform answers the request for a code, and then each token request with the next answer. It records the time
// of each request.
func devicePlatform(times *[]time.Time, answers ...func() (*http.Response, error)) *http.Client {
	return &http.Client{Transport: roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.URL.Path == "/device" {
			return replies(200, `{"device_code":"d","user_code":"AAAA-BBBB","verification_uri":"https://platform.example/v","expires_in":60,"interval":5}`)()
		}
		*times = append(*times, time.Now())
		return answers[min(len(*times), len(answers))-1]()
	})}
}

func replies(status int, body string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// While the person is in the browser, a platform that cannot be reached for a moment changes nothing. The program asks
// no sooner than the platform allows, counted from the response. Source: RFC 8628, 3.5.
func TestDeviceGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		client := devicePlatform(&times,
			replies(503, "<html>"), func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, replies(400, `{"error":"authorization_pending"}`), replies(429, `{"error":"temporarily_unavailable"}`),
			replies(200, `{"access_token":"pak_a","token_type":"Bearer"}`))
		serves, began := client.Transport, false
		client.Transport = roundTrip(func(request *http.Request) (*http.Response, error) {
			if began {
				return serves.RoundTrip(request)
			}
			began = true
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
		})
		client = newRepeatingClient(client, nil)
		made, err := (&Login{Timeout: time.Hour, Messages: io.Discard}).loginWithCode(t.Context(), client, deviceWay)
		if err != nil || made.Key != "pak_a" || len(times) != 5 {
			t.Errorf("%+v, %v after %d questions", made, err, len(times))
		}
		for i := 1; i < len(times); i++ {
			if wait := times[i].Sub(times[i-1]); wait <= 5*time.Second || wait > 10*time.Second {
				t.Errorf("it asks after %s", wait)
			}
		}
	})
}

// A refusal is final, and so is the end of the code.
func TestDeviceEnds(t *testing.T) {
	t.Parallel()
	for about, row := range map[string]struct {
		answer func() (*http.Response, error)
		want   string
		most   time.Duration
	}{
		"a refusal":           {replies(400, `{"error":"access_denied"}`), "refused", 10 * time.Second},
		"another error":       {replies(400, `{"error":"invalid_grant"}`), "invalid_grant", 10 * time.Second},
		"an error of servers": {replies(500, `{"error":"server_error"}`), "server_error", 10 * time.Second},
		"never an answer":     {replies(502, ""), "in time", 70 * time.Second},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked []time.Time
				began := time.Now()
				_, err := (&Login{Timeout: time.Hour, Messages: io.Discard}).loginWithCode(t.Context(), devicePlatform(&asked, row.answer), deviceWay)
				if took := time.Since(began); err == nil || !strings.Contains(err.Error(), row.want) || took > row.most {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}
