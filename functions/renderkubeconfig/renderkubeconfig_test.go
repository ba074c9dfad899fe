package renderkubeconfig

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/encryption"
)

// The operation gets its dependencies, and answers over HTTP as specified. Source: Spec 4 row 1.
func TestFunction(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	env := &platform.Environment{
		Stores: w.State, Now: w.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config:     func() *model.ConfigStatus { return &model.ConfigStatus{} },
		Encryption: func(context.Context) (*encryption.Keyring, error) { return w.Ring, nil },
	}
	w.Seed(t, instancetest.Instance(t, "dev"))
	const bearer = "ana-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg"
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: instancetest.Ana, Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{Key: bearer}},
	}); err != nil {
		t.Fatal(err)
	}
	handler := process.NewServer(env).Mount(Function)
	const path = "/kubernetes/management/apis/management.platform.sh/v1/namespaces/p-shop/virtualclusterinstances/dev/kubeconfig"
	for _, row := range []struct {
		about, path, mediaType, body string
		code                         int
	}{
		{"as the specification has it", path, "application/yaml", "kind: VirtualClusterInstanceKubeConfig\napiVersion: management.platform.sh/v1\nmetadata:\n  namespace: p-shop\nspec:\n  clientCert: true\n", 201},
		{"in JSON", path, "application/json", "{}", 201},
		{"with nothing", path, "application/json", "", 201},
		{"of another kind", path, "application/json", `{"kind":"OwnedAccessKey"}`, 400},
		{"of another name", path, "application/json", `{"metadata":{"name":"prod"}}`, 400},
		{"of another namespace", path, "application/json", `{"metadata":{"namespace":"p-other"}}`, 400},
		{"with an unknown field", path + "?fieldValidation=Strict", "application/json", `{"spec":{"clientCart":true}}`, 400},
		{"with a ttl that is too large to be one", path, "application/json", `{"spec":{"certificateTTL":99999999999}}`, 422},
		{"as text", path, "text/plain", "{}", 415},
		{"of an absent one", strings.Replace(path, "dev", "prod", 1), "application/json", "{}", 404},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequestWithContext(t.Context(), "POST", row.path, strings.NewReader(row.body))
			request.Header.Set("Authorization", "Bearer "+bearer)
			request.Header.Set("Content-Type", row.mediaType)
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			if answer.Code != row.code {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			var made model.VirtualClusterInstanceKubeConfig
			if err := json.Unmarshal(answer.Body.Bytes(), &made); row.code == 201 && (err != nil || !strings.Contains(made.Status.KubeConfig, "current-context: dev-p-shop")) {
				t.Errorf("%s, %v", answer.Body, err)
			}
		})
	}
}
