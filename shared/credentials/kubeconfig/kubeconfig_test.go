package kubeconfig_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/credentials/kubeconfig"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
	"management.platform.sh/shared/signing/clusterca/csr"
	"management.platform.sh/shared/state/encryption"
)

var update = flag.Bool("update", false, "write the golden files")

// world is a state with an instance "dev" in it, and a Renderer over it.
type world struct {
	*instancetest.World
	renderer *kubeconfig.Renderer
	graph    *gc.Graph
	limit    time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: instancetest.New(t)}
	limits := func() accesskey.Limits { return accesskey.Limits{Max: w.limit} }
	keys := accesskey.NewRegistry(w.State("ownedaccesskeys"), w.Now, rand.NewChaCha8([32]byte{3}), limits)
	w.graph = gc.NewGraph(nil)
	keys, w.Instances = resource.Join(w.graph, keys), resource.Join(w.graph, w.Instances)
	w.renderer = &kubeconfig.Renderer{
		Instances: w.Instances, Keys: keys.WithFieldManager(fieldmanager.New),
		Keyring: func(context.Context) (*encryption.Keyring, error) { return w.Ring, nil },
		Project: instancetest.Project, Limits: limits, Now: w.Now,
		Signing: csr.Options{AllowLocal: true},
	}
	return w
}

func (w *world) make(t *testing.T, caller identity.Caller, spec model.VirtualClusterInstanceKubeConfigSpec) (kubeconfig.Output, error) {
	t.Helper()
	return w.renderer.Render(t.Context(), kubeconfig.Input{
		Caller: caller, Namespace: "p-shop", Name: "dev", Object: &model.VirtualClusterInstanceKubeConfig{Spec: spec},
	})
}

// keys returns the stored access keys.
func (w *world) keys(t *testing.T) []model.OwnedAccessKey {
	t.Helper()
	list, err := resource.List(t.Context(), w.renderer.Keys, resource.ListInput{Caller: instancetest.Admin})
	if err != nil {
		t.Fatal(err)
	}
	return list.(*model.OwnedAccessKeyList).Items
}

// client returns the configuration that a client reads from a kubeconfig.
func client(t *testing.T, text string) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// golden compares a kubeconfig with a file, apart from the parts that differ each time.
func golden(t *testing.T, name, text string) {
	t.Helper()
	text = regexp.MustCompile(`(?m)(-data|token): .*$`).ReplaceAllString(text, "$1: ...")
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || text != string(want) {
		t.Errorf("%v, made\n%s", err, text)
	}
}

// If the name of the access key is taken, the request succeeds nevertheless: the server chose the name, and chooses another one.
// Source: ADR-0017.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	render := func(w *world) {
		t.Helper()
		if _, err := w.renderer.Render(t.Context(), kubeconfig.Input{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Object: &model.VirtualClusterInstanceKubeConfig{}, Random: rand.NewChaCha8([32]byte{9}),
		}); err != nil {
			t.Fatal(err)
		}
	}
	seed := func() *world {
		w := newWorld(t)
		w.Seed(t, instancetest.Instance(t, "dev"))
		return w
	}
	free, taken := seed(), seed()
	render(free)
	name := free.keys(t)[0].Name
	if _, err := resource.Create(t.Context(), taken.renderer.Keys, resource.CreateInput[*model.OwnedAccessKey]{
		Caller: instancetest.Admin, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.OwnedAccessKeySpec{User: "ana"}},
	}); err != nil {
		t.Fatal(err)
	}
	render(taken)
	if keys := taken.keys(t); len(keys) != 2 {
		t.Errorf("%d access keys", len(keys))
	}
}

// A key is deleted with its instance. It is refused as soon as the instance is deleted, whether the key was removed or not: a
// later instance of the same name is another instance. Source: Spec 2.2 (ownerReferences); ADR-0017.
func TestGoesWithInstance(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about  string
		remove func(*testing.T, *world)
		left   int
	}{
		{"deleted", func(t *testing.T, w *world) {
			if _, err := resource.Delete(t.Context(), w.Instances, resource.DeleteInput{Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev"}); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"deleted by one who then was killed", func(t *testing.T, w *world) {
			record, err := w.Instances.Store.Get(t.Context(), "p-shop/dev")
			if err == nil {
				_, err = w.Instances.Store.Delete(t.Context(), record.Name, record.Revision)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Seed(t, instancetest.Instance(t, "dev"))
			w.Seed(t, instancetest.Instance(t, "other"))
			made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{})
			if err != nil {
				t.Fatal(err)
			}
			bearer := secret.String(client(t, made.Object.Status.KubeConfig).BearerToken)
			by := auth.Authenticator{Bearers: &accesskey.Bearers{
				Keys: w.renderer.Keys, Now: w.Now, Limits: w.renderer.Limits, Log: slog.New(slog.DiscardHandler),
			}}
			if _, err := by.Bearer(t.Context(), bearer); err != nil {
				t.Fatal(err)
			}
			refused := func(when string) {
				t.Helper()
				if _, err := by.Bearer(t.Context(), bearer); accesskeytest.Code(err) != 401 {
					t.Errorf("%s: %v", when, err)
				}
			}
			row.remove(t, w)
			refused("without the instance")
			if left := w.keys(t); len(left) != row.left {
				t.Errorf("%d keys are left", len(left))
			}
			w.Seed(t, instancetest.Instance(t, "dev"))
			refused("with another one of that name")
			if _, err := w.graph.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := w.keys(t); len(left) != 0 {
				t.Errorf("%d keys are left by the schedule", len(left))
			}
		})
	}
}

// Source: Spec 2.6, 8; ADR-0017.
func TestToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seeded := w.Seed(t, instancetest.Instance(t, "dev"))
	ana := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{"platform:team:shop", "crew", "system:odd"})
	made, err := w.make(t, ana, model.VirtualClusterInstanceKubeConfigSpec{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "token.yaml", made.Object.Status.KubeConfig)
	end := instancetest.Now.Add(24 * time.Hour)
	if got := made.Object.Status.ExpirationTimestamp; !got.Time.Equal(end) || made.Object.Name != "dev" || made.Object.Namespace != "p-shop" || made.Object.Kind != "VirtualClusterInstanceKubeConfig" {
		t.Errorf("%+v", made.Object)
	}
	config := client(t, made.Object.Status.KubeConfig)
	if config.Host != "https://dev.example.com" || string(config.CAData) != string(seeded.Status.Ingress.CAData) {
		t.Errorf("it leads to %s", config.Host)
	}
	record, err := w.renderer.Keys.Store.GetByDigest(t.Context(), accesskey.Digest(secret.String(config.BearerToken)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := w.renderer.Keys.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	want := model.OwnedAccessKeySpec{
		DisplayName: "kubeconfig of p-shop/dev", User: "ana", Groups: []string{"crew", "platform:team:shop"}, Type: "Kubeconfig", TTLSeconds: 86400,
		Scope: &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: "shop", VirtualCluster: "dev"}}},
	}
	if got := key.Spec; got.DisplayName != want.DisplayName || got.User != want.User || !slices.Equal(got.Groups, want.Groups) || got.Type != want.Type ||
		got.TTLSeconds != want.TTLSeconds || len(got.Scope.VirtualClusters) != 1 || got.Scope.VirtualClusters[0] != want.Scope.VirtualClusters[0] ||
		len(got.Scope.Roles)+len(got.Scope.Projects)+len(got.Scope.Rules)+len(got.Scope.Clusters)+len(got.Scope.Spaces) != 0 {
		t.Errorf("the key is %+v, scope %+v", got, got.Scope)
	}
	if owners := key.OwnerReferences; len(owners) != 1 || owners[0].Kind != "VirtualClusterInstance" || owners[0].Name != "dev" || owners[0].UID != seeded.UID || owners[0].BlockOwnerDeletion != nil {
		t.Errorf("the key belongs to %+v", owners)
	}
	if key.Labels[kubeconfig.NameLabel] != "dev" || key.Labels[kubeconfig.NamespaceLabel] != "p-shop" || !strings.HasPrefix(key.Name, "kubeconfig-dev-") {
		t.Errorf("the key is %s with %v", key.Name, key.Labels)
	}
}

// Source: Spec 2.6, 8; ADR-0017.
func TestCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	object := instancetest.Instance(t, "dev")
	w.Seed(t, object)
	ana := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{"platform:team:shop", "crew"})
	made, err := w.make(t, ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true, Server: "https://other.example.com:6443"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "certificate.yaml", made.Object.Status.KubeConfig)
	config := client(t, made.Object.Status.KubeConfig)
	if config.Host != "https://other.example.com:6443" || config.BearerToken != "" || config.Insecure {
		t.Errorf("%+v", config)
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(object.Spec.Signer.CA.CertData)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: instancetest.Now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	groups := slices.Sorted(slices.Values(pair.Leaf.Subject.Organization))
	if pair.Leaf.Subject.CommonName != "ana" || !slices.Equal(groups, []string{"crew", "platform:authenticated", "platform:team:shop", "platform:user:ana"}) {
		t.Errorf("it is of %s", pair.Leaf.Subject)
	}
	if !pair.Leaf.NotAfter.Equal(made.Object.Status.ExpirationTimestamp.Time) {
		t.Errorf("until %s, said %s", pair.Leaf.NotAfter, made.Object.Status.ExpirationTimestamp)
	}
	if keys := w.keys(t); len(keys) != 0 {
		t.Errorf("there are keys as well: %+v", keys)
	}
}

func TestLifetime(t *testing.T) {
	t.Parallel()
	const hour, day, year = time.Hour, 24 * time.Hour, 365 * 24 * time.Hour
	for _, row := range []struct {
		about       string
		ttl         *int64
		limit       time.Duration
		keyEnds     time.Duration
		duration    time.Duration
		token, cert time.Duration
		warned      bool
	}{
		{"absent: a day (Spec 8)", nil, 0, 0, 0, day, day, false},
		{"an hour", new(int64(3600)), 0, 0, 0, hour, hour, false},
		{"0: a year (Spec 8)", new(int64(0)), 0, 0, 0, year, year, false},
		{"0: the signer's duration", new(int64(0)), 0, 0, 2 * day, 2 * day, 2 * day, false},
		{"absent, under a cap", nil, hour, 0, 0, hour, hour, true},
		{"0, under a cap", new(int64(0)), hour, 0, 0, hour, hour, true},
		{"absent, by a key that ends", nil, 0, 90*time.Minute + time.Millisecond, 0, 90 * time.Minute, 90 * time.Minute, true},
		{"a day, where the signer has an hour", nil, 0, 0, hour, day, hour, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.limit = row.limit
			object := instancetest.Instance(t, "dev")
			if row.duration > 0 {
				object.Spec.Signer.CertificateDuration = &metav1.Duration{Duration: row.duration}
			}
			w.Seed(t, object)
			caller := instancetest.Ana
			if row.keyEnds > 0 {
				caller.KeyExpires = instancetest.Now.Add(row.keyEnds)
			}
			for cert, want := range map[bool]time.Duration{false: row.token, true: row.cert} {
				made, err := w.make(t, caller, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: cert, CertificateTTLSeconds: row.ttl})
				if err != nil {
					t.Fatal(err)
				}
				if got := made.Object.Status.ExpirationTimestamp.Sub(instancetest.Now); got != want {
					t.Errorf("certificate %v: %s, want %s", cert, got, want)
				}
				if warned := len(made.Warnings) > 0; row.warned && !warned || !row.warned && warned != (cert && row.token != row.cert) {
					t.Errorf("certificate %v: warnings %q", cert, made.Warnings)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	scoped := instancetest.Ana
	scoped.Scope = &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: "shop", VirtualCluster: "prod"}}}
	ending := instancetest.Ana
	ending.KeyExpires = instancetest.Now.Add(500 * time.Millisecond)
	system := identity.New(identity.Owner{Kind: identity.Subject, Name: "system:node"}, []string{identity.Admins})
	type spec = model.VirtualClusterInstanceKubeConfigSpec
	for _, row := range []struct {
		about  string
		change func(*model.VirtualClusterInstance)
		caller identity.Caller
		spec   spec
		code   int32
	}{
		{"somebody else's", nil, instancetest.Ben, spec{}, 404},
		{"one that may be changed and not used", func(i *model.VirtualClusterInstance) {
			i.Spec.Access = []model.InstanceAccess{{Verbs: []string{"update", "delete"}, Users: []string{"ben"}}}
		}, instancetest.Ben, spec{}, 404},
		{"a negative ttl", nil, instancetest.Ana, spec{CertificateTTLSeconds: new(int64(-1))}, 422},
		{"a ttl beyond the cap", nil, instancetest.Ana, spec{CertificateTTLSeconds: new(int64(1_000_001))}, 422},
		{"a bad server", nil, instancetest.Ana, spec{Server: "http://a"}, 422},
		{"no endpoint", func(i *model.VirtualClusterInstance) { i.Spec.AccessPoint = nil }, instancetest.Ana, spec{}, 400},
		{"no endpoint, for a certificate", func(i *model.VirtualClusterInstance) { i.Spec.AccessPoint.Ingress.Enabled = false }, instancetest.Ana, spec{ClientCert: true}, 400},
		{"no signer", func(i *model.VirtualClusterInstance) { i.Spec.Signer = nil }, instancetest.Ana, spec{ClientCert: true}, 400},
		{"outside of the scope", nil, scoped, spec{}, 403},
		{"outside of the scope, for a certificate", nil, scoped, spec{ClientCert: true}, 403},
		{"by a key that ends now", nil, ending, spec{}, 403},
		{"one of Kubernetes' own names", nil, system, spec{ClientCert: true}, 403},
		{"a virtual cluster that is not there", func(i *model.VirtualClusterInstance) {
			i.Spec.Signer = &model.InstanceSigner{Kubeconfig: unreachable}
		}, instancetest.Ana, spec{ClientCert: true}, 503},
		{"less than a virtual cluster signs for", func(i *model.VirtualClusterInstance) {
			i.Spec.Signer = &model.InstanceSigner{Kubeconfig: unreachable}
		}, instancetest.Ana, spec{ClientCert: true, CertificateTTLSeconds: new(int64(599))}, 422},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.limit = 1_000_000 * time.Second
			object := instancetest.Instance(t, "dev")
			if row.change != nil {
				row.change(object)
			}
			w.Seed(t, object)
			made, err := w.make(t, row.caller, row.spec)
			if accesskeytest.Code(err) != row.code {
				t.Errorf("%+v, %v", made, err)
			}
			if keys := w.keys(t); len(keys) != 0 {
				t.Errorf("there is a key all the same: %+v", keys)
			}
		})
	}
}

const unreachable = `{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], ` +
	`clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: sesame-open}}]}`

// An instance that callers may not use and an absent instance give the same response.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, absent := w.make(t, instancetest.Ben, model.VirtualClusterInstanceKubeConfigSpec{})
	w.Seed(t, instancetest.Instance(t, "dev"))
	_, foreign := w.make(t, instancetest.Ben, model.VirtualClusterInstanceKubeConfigSpec{})
	if absent == nil || foreign == nil || absent.Error() != foreign.Error() {
		t.Errorf("%v, %v", absent, foreign)
	}
}

// An expired authority is refused with a clear message.
func TestAuthorityIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	w.Clock = w.Clock.Add(2 * 365 * 24 * time.Hour)
	if made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true}); accesskeytest.Code(err) != 400 {
		t.Errorf("%+v, %v", made, err)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	// A dry run does not ask the virtual cluster for a certificate: this one cannot be reached.
	asking := instancetest.Instance(t, "asking")
	asking.Spec.Signer = &model.InstanceSigner{Kubeconfig: unreachable}
	w.Seed(t, asking)
	for _, row := range []struct {
		name string
		cert bool
	}{{"dev", false}, {"dev", true}, {"asking", true}} {
		made, err := w.renderer.Render(t.Context(), kubeconfig.Input{Caller: instancetest.Ana, Namespace: "p-shop", Name: row.name, DryRun: true,
			Object: &model.VirtualClusterInstanceKubeConfig{Spec: model.VirtualClusterInstanceKubeConfigSpec{ClientCert: row.cert}}})
		if err != nil || made.Object.Status.KubeConfig != "" || made.Object.Status.ExpirationTimestamp == nil {
			t.Errorf("%+v: %+v, %v", row, made.Object, err)
		}
	}
	if keys := w.keys(t); len(keys) != 0 {
		t.Errorf("there is a key all the same: %+v", keys)
	}
}

// The same random bytes make the same token and one key.
func TestRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	var texts []string
	for range 2 {
		made, err := w.renderer.Render(t.Context(), kubeconfig.Input{Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev",
			Object: &model.VirtualClusterInstanceKubeConfig{}, Random: rand.NewChaCha8([32]byte{9})})
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, made.Object.Status.KubeConfig)
	}
	if keys := w.keys(t); texts[0] != texts[1] || len(keys) != 1 {
		t.Errorf("%d keys, the same: %v", len(keys), texts[0] == texts[1])
	}
}

// A certificate expires no later than its authority. If that is earlier than requested, the response has a warning.
func TestAuthorityEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	object := instancetest.Instance(t, "dev")
	end := instancetest.Now.Add(10 * time.Minute)
	certificate, key := clustercatest.Authority(t, func(c *x509.Certificate) { c.NotBefore, c.NotAfter = instancetest.Now.Add(-time.Hour), end })
	object.Spec.Signer.CA = &model.InstanceSignerCA{CertData: certificate, KeyData: key}
	w.Seed(t, object)
	for ttl, warned := range map[int64]bool{599: false, 600: false, 602: true, 3600: true, 0: true} {
		made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true, CertificateTTLSeconds: &ttl})
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Object.Status.ExpirationTimestamp.Time; got.After(end) || (len(made.Warnings) > 0) != warned {
			t.Errorf("ttl %d: until %s, warnings %q", ttl, got, made.Warnings)
		}
	}
}

// A virtual cluster may sign for another time than requested. An expired certificate, or a certificate that lives longer than the
// credential may, is not returned. Source: ADR-0017.
func TestVirtualClusterDecides(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about       string
		ttl         int64
		lives       time.Duration
		limit, ends time.Duration
		code        int32
		warned      bool
	}{
		{"as asked", 3600, time.Hour, 0, 0, 0, false},
		{"back-dated by five minutes", 86400, 24*time.Hour - 5*time.Minute, 0, 0, 0, false},
		{"for less", 3600, 20 * time.Minute, 0, 0, 0, true},
		{"for more", 3600, 365 * 24 * time.Hour, 0, 0, 0, true},
		{"for what it likes, as asked", 0, 100 * 24 * time.Hour, 0, 0, 0, true},
		{"for more than the platform permits", 3600, 25 * time.Hour, 24 * time.Hour, 0, 503, false},
		{"for longer than the access key lives", 3600, 3 * time.Hour, 0, 2 * time.Hour, 503, false},
		{"for longer than the access key lives, as the platform would permit", 3600, 3 * time.Hour, 24 * time.Hour, 2 * time.Hour, 503, false},
		{"for a time that is over", 3600, -time.Minute, 0, 0, 503, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.limit = row.limit
			object := instancetest.Instance(t, "dev")
			object.Spec.Signer = &model.InstanceSigner{Kubeconfig: secret.WriteOnly(signing(t, "ana", instancetest.Now.Add(row.lives)))}
			w.Seed(t, object)
			caller := instancetest.Ana
			if row.ends > 0 {
				caller.KeyExpires = instancetest.Now.Add(row.ends)
			}
			made, err := w.make(t, caller, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true, CertificateTTLSeconds: &row.ttl})
			if accesskeytest.Code(err) != row.code || row.code == 0 && err != nil {
				t.Fatalf("%+v, %v", made, err)
			}
			if (len(made.Warnings) > 0) != row.warned {
				t.Errorf("warnings %q", made.Warnings)
			}
		})
	}
}

// A certificate for another user is not returned, whichever key it is for.
func TestVirtualClusterSignsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	object := instancetest.Instance(t, "dev")
	object.Spec.Signer = &model.InstanceSigner{Kubeconfig: secret.WriteOnly(signing(t, "root", instancetest.Now.Add(24*time.Hour)))}
	w.Seed(t, object)
	if made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true}); accesskeytest.Code(err) != 503 {
		t.Errorf("%+v, %v", made, err)
	}
}

// signing returns a kubeconfig for a virtual cluster that signs the requested key, for a given user and until a given time.
func signing(t *testing.T, user string, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1)}
	var object map[string]any
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_ = json.NewDecoder(r.Body).Decode(&object)
			text, _ := base64.StdEncoding.DecodeString(object["spec"].(map[string]any)["request"].(string))
			block, _ := pem.Decode(text)
			request, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Error(err)
				return
			}
			request.Subject.CommonName = user
			der, err := x509.CreateCertificate(cryptorand.Reader, &x509.Certificate{
				SerialNumber: big.NewInt(2), Subject: request.Subject, NotBefore: until.Add(-time.Hour), NotAfter: until,
			}, authority, request.PublicKey, key)
			if err != nil {
				t.Error(err)
			}
			object["status"] = map[string]any{"certificate": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(object)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return strings.Replace(strings.Replace(unreachable, "https://127.0.0.1:1", server.URL, 1), `"}}]`, `", certificate-authority-data: `+base64.StdEncoding.EncodeToString(ca)+`}}]`, 1)
}

// The error says why the request fails, and nothing is created.
func TestNotAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w.renderer.Keyring = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	if made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true}); accesskeytest.Code(err) != 400 {
		t.Errorf("without the key that sealed the signer: %+v, %v", made, err)
	}
	w.renderer.Project = func(string) string { return "" }
	if made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{}); accesskeytest.Code(err) != 400 {
		t.Errorf("in a namespace of no project: %+v, %v", made, err)
	}
}

// A server is used as it is written, and clients reach it. Source: Spec 2.6.
func TestServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	for server, want := range map[string]string{
		"HTTPS://a.example.com/b": "https://a.example.com/b", "https://a.example.com/b%20c": "https://a.example.com/b%20c",
		"https://[2001:db8::1]:6443/": "https://[2001:db8::1]:6443/", "https://a.example.com/b c": "", "https://a.example.com/ü": "",
	} {
		made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{Server: server})
		if want == "" {
			if accesskeytest.Code(err) != 422 {
				t.Errorf("%s: %+v, %v", server, made, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		if got := client(t, made.Object.Status.KubeConfig).Host; got != want {
			t.Errorf("%s: %s", server, got)
		}
	}
}
