package client

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
)

// Each line is a text. As many requests are sent as the texts need, without a credential, and the forms of the texts are counted. Source: ADR-0022.
func TestRevoke(t *testing.T) {
	var got []string
	requests, code := 0, http.StatusAccepted
	withPlatform(t, func(w http.ResponseWriter, r *http.Request) {
		var sent model.CredentialRevocation
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.Header.Get("Authorization") != "" ||
			r.URL.Path != "/kubernetes/management/apis/management.platform.sh/v1/credentialrevocations" {
			t.Errorf("%v, %s", err, r.URL.Path)
		}
		requests++
		got = append(got, sent.Spec.Credentials...)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"not now"}`))
	})
	// The current context of the kubeconfig has the platform. Its credential is not sent.
	revoke := func(text string) (said, warned string, err error) {
		var out, warnings strings.Builder
		err = (&Revoke{Input: strings.NewReader(text), Out: &out, Warnings: &warnings}).Run(t.Context())
		return out.String(), warnings.String(), err
	}
	key, err := accesskey.NewBearer(rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	const token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2ln"
	damaged := key.Reveal()[:len(key.Reveal())-1]
	want := []string{key.Reveal(), token, damaged}
	for i := range limits.Revocations - 2 {
		want = append(want, "something else "+strconv.Itoa(i))
	}
	output, warned, err := revoke("\n " + strings.Join(want, "\r\n") + "\n\n")
	if err != nil || requests != 2 || !slices.Equal(got, want) {
		t.Errorf("%d requests have %q, %v", requests, got, err)
	}
	if !strings.Contains(output, " got 1 access key, 1 token and 9 other texts.") || !strings.Contains(warned, "line 4 begins like an access key and is none") ||
		strings.Contains(output+warned, damaged) {
		t.Errorf("it says %q and warns %q", output, warned)
	}
	if output, warned, err := revoke(token); err != nil || warned != "" || !strings.Contains(output, " got 0 access keys and 1 token.") {
		t.Errorf("it says %q and warns %q, %v", output, warned, err)
	}
	if _, _, err := revoke("\n \n"); err == nil || requests != 3 {
		t.Errorf("without a text: %v", err)
	}
	code = http.StatusTooManyRequests
	if _, _, err := revoke("pak_secret"); err == nil || !strings.Contains(err.Error(), "not now") || strings.Contains(err.Error(), "pak_secret") {
		t.Errorf("a refusal: %v", err)
	}
	if err := (&Revoke{Server: "http://platform.example", Input: strings.NewReader("a")}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--server") {
		t.Errorf("a server without TLS: %v", err)
	}
}
