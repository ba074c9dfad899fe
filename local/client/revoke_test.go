package client

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
)

// Each line is a text. As many requests are sent as the texts need, without a credential. Source: ADR-0022.
func TestRevoke(t *testing.T) {
	t.Parallel()
	var got []string
	requests, code := 0, http.StatusAccepted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent model.CredentialRevocation
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.Header.Get("Authorization") != "" ||
			r.URL.Path != "/kubernetes/management/apis/management.platform.sh/v1/credentialrevocations" {
			t.Errorf("%v, %s", err, r.URL.Path)
		}
		requests++
		got = append(got, sent.Spec.Credentials...)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"not now"}`))
	}))
	defer server.Close()
	var want []string
	for i := range limits.Revocations + 1 {
		want = append(want, "pak_"+strconv.Itoa(i))
	}
	revoke := func(text string) error {
		return (&Revoke{Server: server.URL + "/kubernetes/management", input: strings.NewReader(text)}).Run(t.Context())
	}
	if err := revoke("\n " + strings.Join(want, "\r\n") + "\n\n"); err != nil || requests != 2 || !slices.Equal(got, want) {
		t.Errorf("%d requests have %q, %v", requests, got, err)
	}
	if err := revoke("\n \n"); err == nil || requests != 2 {
		t.Errorf("without a text: %v", err)
	}
	code = http.StatusTooManyRequests
	if err := revoke("pak_secret"); err == nil || !strings.Contains(err.Error(), "not now") || strings.Contains(err.Error(), "pak_secret") {
		t.Errorf("a refusal: %v", err)
	}
	if err := (&Revoke{Server: "http://platform.example", input: strings.NewReader("a")}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--server") {
		t.Errorf("a server without TLS: %v", err)
	}
}
