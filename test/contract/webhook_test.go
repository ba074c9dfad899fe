package contract

import (
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	authenticationwebhook "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	authorizationwebhook "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	authorizationmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"sigs.k8s.io/yaml"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/process"
)

// clustersDocument is the document with the configuration of a kube-apiserver.
const clustersDocument = "../../docs/clusters.md"

// codeBlock returns the block of the document that begins with a line, in YAML.
func codeBlock(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile(clustersDocument)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```yaml\n"+first+"\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("%s has no block that begins with %q", clustersDocument, first)
	}
	return first + "\n" + block
}

// writeKubeconfig writes a kubeconfig of the document to a file, with the server and the key of a test in it.
func writeKubeconfig(t *testing.T, first, server, authority, bearer string) string {
	t.Helper()
	folder := t.TempDir()
	config := strings.NewReplacer(
		"https://platform.example/kubernetes/management", server, "/etc/kubernetes/platform/ca.crt", authority,
		"/etc/kubernetes/platform/key", filepath.Join(folder, "key"),
	).Replace(codeBlock(t, first))
	for name, text := range map[string]string{"key": bearer, "config": config} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "config")
}

// cluster is the part of an unmodified kube-apiserver that checks bearer tokens: its webhook clients, configured only by the
// files of the document.
type cluster struct {
	server       *httptest.Server
	authenticate authenticator.Token
	authorize    authorizer.Authorizer
}

func connect(t *testing.T, w *issuertest.World) cluster {
	t.Helper()
	w.Key("cluster-a", "cluster-a", model.OwnedAccessKeySpec{Scope: &model.Scope{Roles: []model.ScopeRole{{Role: "agent"}}}})
	server := httptest.NewTLSServer(process.NewServer(w.Env).Mount(catalog.Functions...))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	base := server.URL + frame.BasePath
	backoff := webhookutil.DefaultRetryBackoffWithInitialDelay(time.Millisecond)
	tokens, err := webhookutil.LoadKubeconfig(writeKubeconfig(t, "# authentication-webhook.yaml", base, authority, issuertest.Bearer+"cluster-a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	authenticate, err := authenticationwebhook.New(tokens, "v1", authenticator.Audiences{"https://kubernetes.default.svc"}, backoff)
	if err != nil {
		t.Fatal(err)
	}
	access, err := webhookutil.LoadKubeconfig(writeKubeconfig(t, "# authorization-webhook.yaml", base, authority, issuertest.Bearer+"cluster-a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	conditions := []apiserver.WebhookMatchCondition{{Expression: condition(t)}}
	authorize, err := authorizationwebhook.New(access, "v1", 0, 0, backoff, authorizer.DecisionDeny, conditions, "platform",
		authorizationmetrics.NoopAuthorizerMetrics{}, authorizationcel.NewDefaultCompiler())
	if err != nil {
		t.Fatal(err)
	}
	return cluster{server, authenticate, authorize}
}

// condition returns the match condition of the document. The file is read as a kube-apiserver reads it.
func condition(t *testing.T) string {
	t.Helper()
	var file apiserverv1.AuthorizationConfiguration
	if err := yaml.UnmarshalStrict([]byte(codeBlock(t, "# authorization.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Authorizers) != 3 || file.Authorizers[0].Webhook == nil || len(file.Authorizers[0].Webhook.MatchConditions) != 1 {
		t.Fatalf("%+v", file)
	}
	return file.Authorizers[0].Webhook.MatchConditions[0].Expression
}

// A kube-apiserver that is configured as the document says authenticates our credentials and enforces their scopes.
func TestWebhooks(t *testing.T) {
	w := issuertest.New(t)
	c := connect(t, w)
	inside := &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "cluster-a"}}}
	outside := &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "cluster-b"}}}
	unscoped := w.Key("all", "ana", model.OwnedAccessKeySpec{Groups: []string{"dev"}})
	w.Key("inside", "ana", model.OwnedAccessKeySpec{Scope: inside})
	w.Key("outside", "ana", model.OwnedAccessKeySpec{Scope: outside})
	w.Key("disabled", "ana", model.OwnedAccessKeySpec{Disabled: false})
	w.Change("disabled", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
	w.Key("short", "ana", model.OwnedAccessKeySpec{TTLSeconds: 1})
	token := func(spec model.DirectClusterEndpointTokenSpec) string { return w.Issue(unscoped, spec).Status.Token }
	expiredToken := token(model.DirectClusterEndpointTokenSpec{TTLSeconds: 1})
	w.Pass(time.Second)
	altered := []byte(token(model.DirectClusterEndpointTokenSpec{}))
	altered[len(altered)-10] ^= 1
	for _, row := range []struct {
		about, bearer string
		authenticated bool
		decision      authorizer.Decision
	}{
		{"an access key", issuertest.Bearer + "all", true, authorizer.DecisionNoOpinion},
		{"an access key for this cluster", issuertest.Bearer + "inside", true, authorizer.DecisionNoOpinion},
		{"an access key for another cluster", issuertest.Bearer + "outside", true, authorizer.DecisionDeny},
		{"a token", token(model.DirectClusterEndpointTokenSpec{}), true, authorizer.DecisionNoOpinion},
		{"a token for this cluster", token(model.DirectClusterEndpointTokenSpec{Scope: inside}), true, authorizer.DecisionNoOpinion},
		{"a token for another cluster", token(model.DirectClusterEndpointTokenSpec{Scope: outside}), true, authorizer.DecisionDeny},
		{"a token for nothing", token(model.DirectClusterEndpointTokenSpec{Scope: &model.Scope{}}), true, authorizer.DecisionDeny},
		{"a disabled key", issuertest.Bearer + "disabled", false, 0},
		{"an expired key", issuertest.Bearer + "short", false, 0},
		{"an unknown key", rand.Text() + rand.Text(), false, 0},
		{"an expired token", expiredToken, false, 0},
		{"an altered token", string(altered), false, 0},
		{"a word", "hello", false, 0},
	} {
		// The review of a kube-apiserver contains its own audience.
		ctx := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"https://kubernetes.default.svc"})
		answer, ok, err := c.authenticate.AuthenticateToken(ctx, row.bearer)
		if ok != row.authenticated || ok == (err != nil) {
			t.Errorf("%s: authenticated %v, %v", row.about, ok, err)
			continue
		}
		if !ok {
			continue
		}
		if answer.User.GetName() != "ana" || answer.User.GetUID() != "user:ana" || !strings.Contains(fmt.Sprint(answer.User.GetGroups()), "platform:user:ana") {
			t.Errorf("%s: %+v", row.about, answer.User)
		}
		for _, request := range []authorizer.AttributesRecord{
			{User: answer.User, Verb: "list", Resource: "pods", Namespace: "default", ResourceRequest: true, APIVersion: "v1"},
			{User: answer.User, Verb: "get", Path: "/healthz"},
		} {
			if decision, reason, err := c.authorize.Authorize(t.Context(), request); decision != row.decision || err != nil {
				t.Errorf("%s: %s: decision %v, %q, %v", row.about, request.Verb, decision, reason, err)
			}
		}
	}
	// A token for the cluster is not valid for services behind the cluster.
	vault := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"vault"})
	if _, ok, err := c.authenticate.AuthenticateToken(vault, token(model.DirectClusterEndpointTokenSpec{})); ok || err != nil {
		t.Errorf("a token for clusters is good for another service: %v, %v", ok, err)
	}
}

// When the platform is unavailable, no credential is authenticated and users with a scope may do nothing. Other users are not affected, because
// the match condition leaves them out.
func TestWebhooksWithoutPlatform(t *testing.T) {
	w := issuertest.New(t)
	c := connect(t, w)
	w.Key("all", "ana", model.OwnedAccessKeySpec{})
	c.server.Close()
	if _, ok, err := c.authenticate.AuthenticateToken(t.Context(), issuertest.Bearer+"all"); ok || err == nil {
		t.Errorf("authenticated: %v, %v", ok, err)
	}
	for _, row := range []struct {
		user   user.DefaultInfo
		want   authorizer.Decision
		failed bool
	}{
		{user.DefaultInfo{Name: "ana", Extra: map[string][]string{review.ExtraScope: {"{}"}}}, authorizer.DecisionDeny, true},
		{user.DefaultInfo{Name: "ana", Extra: map[string][]string{identity.ExtraAccessKey: {"all"}}}, authorizer.DecisionNoOpinion, false},
		{user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes"}}, authorizer.DecisionNoOpinion, false},
	} {
		decision, _, err := c.authorize.Authorize(t.Context(), authorizer.AttributesRecord{User: &row.user, Verb: "get", Resource: "pods", ResourceRequest: true})
		if decision != row.want || (err != nil) != row.failed {
			t.Errorf("%+v: %v, %v", row.user, decision, err)
		}
	}
}
