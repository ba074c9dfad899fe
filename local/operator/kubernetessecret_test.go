package operator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
)

// secrets are the Secrets of a namespace of a Kubernetes cluster, by their names, and the answer to what it refuses.
type secrets struct {
	data   map[string]map[string]string
	refuse map[string]int
}

func (s *secrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const collection = "/api/v1/namespaces/here/secrets"
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"says the cluster"}`, code, reason)
	}
	if code := s.refuse[r.Method]; code != 0 {
		answer(code, "Forbidden")
		return
	}
	var object struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]any    `json:"metadata"`
		Data       map[string]string `json:"data"`
	}
	name, found := strings.CutPrefix(r.URL.Path, collection+"/")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == collection:
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil || object.Kind != "Secret" {
			answer(http.StatusBadRequest, "BadRequest")
			return
		}
		name, _ = object.Metadata["name"].(string)
		if _, exists := s.data[name]; exists {
			answer(http.StatusConflict, "AlreadyExists")
			return
		}
		s.data[name] = object.Data
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodGet && found && s.data[name] != nil:
		object.APIVersion, object.Kind, object.Metadata, object.Data = "v1", "Secret", map[string]any{"name": name}, s.data[name]
	case r.Method == http.MethodDelete && found && s.data[name] != nil:
		delete(s.data, name)
	default:
		answer(http.StatusNotFound, "NotFound")
		return
	}
	_ = json.NewEncoder(w).Encode(object)
}

// entry returns an entry of a Secret in clear.
func (s *secrets) entry(t *testing.T, name, entry string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(s.data[name][entry])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serveSecrets serves a cluster without Secrets, and makes it the cluster of the user's kubeconfig.
func serveSecrets(t *testing.T) *secrets {
	t.Helper()
	cluster := &secrets{data: map[string]map[string]string{}, refuse: map[string]int{}}
	server := httptest.NewServer(cluster)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	localtest.Write(t, file, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],
"contexts":[{"name":"c","context":{"cluster":"c","namespace":"here"}}],"current-context":"c"}`, server.URL))
	t.Setenv("KUBECONFIG", file)
	return cluster
}

// The first admin key is in the Secret, and printed nowhere. The command can be repeated. Source: ADR-0053.
func TestBootstrapKeepsInSecret(t *testing.T) {
	env, url := localtest.Environment(t)
	cluster := serveSecrets(t)
	command := &Bootstrap{Redis: secret.String(url), KubernetesSecret: "admin-key", TLSAuthority: true, Encryption: encryption.Generate()}
	run := func(about, want string) {
		t.Helper()
		text := localtest.Stdout(t, func() {
			if err := command.Run(t.Context()); err != nil {
				t.Errorf("%s: %v", about, err)
			}
		})
		if key := cluster.entry(t, "admin-key", "key"); !strings.Contains(text, want) || key != "" && strings.Contains(text, key) {
			t.Errorf("%s: it printed %q, want %q", about, text, want)
		}
	}
	run("the first time", "kubectl -n here get secret admin-key")
	key := cluster.entry(t, "admin-key", "key")
	localtest.WantAdmin(t, env, secret.String(key), "admin")
	if !strings.Contains(cluster.entry(t, "admin-key", "ca.crt"), "BEGIN CERTIFICATE") {
		t.Error("the Secret has no certificate of the authority")
	}
	run("the second time", "kubectl -n here get secret admin-key")
	if again := cluster.entry(t, "admin-key", "key"); again != key || len(localtest.Keys(t, env)) != 1 {
		t.Errorf("the second time: another key, or %d keys", len(localtest.Keys(t, env)))
	}
	// Another release has a Secret of its own, and finds an admin.
	command.KubernetesSecret = "another"
	run("with an admin", "has an admin already")
	if len(cluster.data) != 1 || len(localtest.Keys(t, env)) != 1 {
		t.Errorf("with an admin: %d Secrets and %d keys", len(cluster.data), len(localtest.Keys(t, env)))
	}
	// A key that an admin has deleted stays deleted.
	command.KubernetesSecret = "admin-key"
	records := kinds.AccessKeys(env).Store
	kept, err := records.Get(t.Context(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := records.Delete(t.Context(), "admin", kept.Revision); err != nil {
		t.Fatal(err)
	}
	run("after the key was deleted", "is not created again")
	if found := localtest.Keys(t, env); len(found) != 0 {
		t.Errorf("after the key was deleted: %d keys", len(found))
	}
}

// Nothing is stored if the Secret cannot be written, and a key that somebody else put into the Secret is used.
func TestBootstrapSecretIsRefused(t *testing.T) {
	env, url := localtest.Environment(t)
	cluster := serveSecrets(t)
	command := &Bootstrap{Redis: secret.String(url), KubernetesSecret: "admin-key"}
	refused := func(about, want string) {
		t.Helper()
		if err := command.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", about, err, want)
		}
		if found := localtest.Keys(t, env); len(found) != 0 {
			t.Errorf("%s: %d keys are stored", about, len(found))
		}
	}
	cluster.refuse[http.MethodPost] = http.StatusForbidden
	refused("no right to create", "writing the Secret admin-key of the namespace here")
	cluster.refuse[http.MethodGet] = http.StatusForbidden
	refused("no right to read", "reading the Secret admin-key of the namespace here")
	cluster.refuse = map[string]int{}
	cluster.data["admin-key"] = map[string]string{"token": "eA=="}
	refused("another entry", `the Secret admin-key of the namespace here has no entry "key"`)
	cluster.data["admin-key"] = map[string]string{"key": base64.StdEncoding.EncodeToString([]byte("hunter2"))}
	refused("a weak key", "the admin key in the Secret admin-key of the namespace here")
	for about, wrong := range map[string]Bootstrap{
		"--kubernetes-secret: ":     {KubernetesSecret: "x", AdminKey: localtest.GivenKey},
		"needs --encryption-key":    {KubernetesSecret: "x", TLSAuthority: true},
		"needs --kubernetes-secret": {TLSAuthority: true, Encryption: encryption.Generate()},
	} {
		wrong.Redis = secret.String(url)
		if err := wrong.Run(t.Context()); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("%q: %v", about, err)
		}
	}
	cluster.data["admin-key"] = map[string]string{"key": base64.StdEncoding.EncodeToString([]byte(localtest.GivenKey.Reveal() + "\n"))}
	if err := command.Run(t.Context()); err != nil {
		t.Error(err)
	}
	localtest.WantAdmin(t, env, localtest.GivenKey, "admin")
}
