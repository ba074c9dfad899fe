package contract

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// kubeconfigServer answers a request for a kubeconfig with its lifetime of 0.
func kubeconfigServer(t *testing.T) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /kubernetes/management/apis/management.platform.sh/v1/namespaces/p-a/virtualclusterinstances/dev/kubeconfig", func(w http.ResponseWriter, r *http.Request) {
		var request model.VirtualClusterInstanceKubeConfig
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		if ttl := request.Spec.CertificateTTLSeconds; ttl == nil || *ttl != 0 {
			t.Errorf("certificateTTL arrived as %v", ttl)
		}
		request.Status.KubeConfig = "kind: Config\n"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		if err := json.NewEncoder(w).Encode(request); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL + "/kubernetes/management"}
}

// The typed client reaches a subresource, and sends a lifetime of 0 as one.
func TestTypedSubresource(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(model.SchemeGroupVersion.WithKind("VirtualClusterInstance"),
		model.SchemeGroupVersion.WithResource("virtualclusterinstances"), model.SchemeGroupVersion.WithResource("virtualclusterinstance"), meta.RESTScopeNamespace)
	typed, err := client.New(kubeconfigServer(t), client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}

	instance := &model.VirtualClusterInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "p-a", Name: "dev"}}
	kubeconfig := &model.VirtualClusterInstanceKubeConfig{Spec: model.VirtualClusterInstanceKubeConfigSpec{CertificateTTLSeconds: new(int64)}}
	if err := typed.SubResource("kubeconfig").Create(t.Context(), instance, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if kubeconfig.Status.KubeConfig != "kind: Config\n" {
		t.Errorf("got %+v", kubeconfig.Status)
	}
}

// serve mounts the whole catalog behind TLS over a real state, and returns the configuration of a client for ana.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	const bearer = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"
	state := redistest.Open(t, redistest.Embedded(t))
	env := &platform.Environment{
		Stores: state.Resource, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return &model.ConfigStatus{} }, Version: "test",
	}
	if _, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil),
		Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: model.OwnedAccessKeySpec{Key: bearer}},
	}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(process.NewServer(env).Mount(catalog.Functions...))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL + frame.BasePath, BearerToken: bearer, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// controller-runtime's client with the types of package model, and the resources found by discovery.
func TestTypedClient(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	typed, err := client.New(serve(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: "ci", Labels: map[string]string{"app": "ci"}, Finalizers: []string{"example.com/hold"}},
		Spec:       model.OwnedAccessKeySpec{TTLSeconds: 3600, Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}},
	}
	if err := typed.Create(ctx, key); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(key.Spec.Key, "pak_") || key.Spec.User != "ana" || key.UID == "" || key.ResourceVersion == "" {
		t.Errorf("created %+v", key.ObjectMeta)
	}
	if err := typed.Create(ctx, &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ci"}}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created again: %v", err)
	}
	if err := typed.Create(ctx, &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{TTLSeconds: -1}}); !apierrors.IsInvalid(err) {
		t.Errorf("created with a bad ttl: %v", err)
	}
	if err := typed.Create(ctx, &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{User: "ben"}}); !apierrors.IsForbidden(err) {
		t.Errorf("created for another: %v", err)
	}
	got := &model.OwnedAccessKey{}
	if err := typed.Get(ctx, client.ObjectKey{Name: "ci"}, got); err != nil || got.Spec.Key != "" || got.Spec.Scope.Projects[0].Project != "a" {
		t.Fatalf("got %+v, %v", got.Spec, err)
	}
	base := got.DeepCopy()
	got.Spec.Disabled = true
	if err := typed.Update(ctx, got); err != nil || got.Generation != 2 {
		t.Errorf("updated to generation %d, %v", got.Generation, err)
	}
	patchedKey := base.DeepCopy()
	patchedKey.Spec.Description = "late"
	if err := typed.Patch(ctx, patchedKey, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("a stale patch: %v", err)
	}
	patchedKey = base.DeepCopy()
	patchedKey.Spec.Description = "late"
	if err := typed.Patch(ctx, patchedKey, client.MergeFrom(base)); err != nil || patchedKey.Spec.Description != "late" || !patchedKey.Spec.Disabled {
		t.Errorf("patched to %+v, %v", patchedKey.Spec, err)
	}
	var list model.OwnedAccessKeyList
	if err := typed.List(ctx, &list, client.MatchingLabels{"app": "ci"}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "ci" {
		t.Errorf("listed %+v, %v", list.Items, err)
	}
	self := &model.Self{}
	if err := typed.Create(ctx, self); err != nil || self.Status.User == nil || self.Status.User.Name != "ana" {
		t.Errorf("who am I: %+v, %v", self.Status, err)
	}

	if err := typed.Delete(ctx, patchedKey); err != nil {
		t.Fatal(err)
	}
	if err := typed.Get(ctx, client.ObjectKey{Name: "ci"}, got); err != nil || got.DeletionTimestamp == nil {
		t.Fatalf("held by its finalizer: %+v, %v", got.ObjectMeta, err)
	}
	got.Finalizers = nil
	if err := typed.Update(ctx, got); err != nil {
		t.Fatal(err)
	}
	if err := typed.Get(ctx, client.ObjectKey{Name: "ci"}, got); !apierrors.IsNotFound(err) {
		t.Errorf("then: %v", err)
	}
}

// client-go finds the resources below the base path.
func TestDiscoveryClient(t *testing.T) {
	t.Parallel()
	config := serve(t)
	for _, legacy := range []bool{false, true} {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		client.UseLegacyDiscovery = legacy
		groups, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]metav1.APIResource{}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				found[resource.Name+" "+list.GroupVersion] = resource
			}
		}
		keys := found["ownedaccesskeys management.platform.sh/v1"]
		slices.Sort(keys.Verbs)
		if keys.Kind != "OwnedAccessKey" || keys.Namespaced || keys.SingularName != "ownedaccesskey" || !reflect.DeepEqual(keys.ShortNames, []string{"oak"}) ||
			!reflect.DeepEqual(keys.Categories, []string{"platform"}) || len(found["auditevents management.platform.sh/v1"].Categories) > 0 ||
			!slices.Contains(keys.Verbs, "create") || !slices.Contains(keys.Verbs, "list") {
			t.Errorf("legacy %v: access keys are %+v", legacy, keys)
		}
		for _, name := range []string{
			"selves management.platform.sh/v1", "selfsubjectreviews authentication.k8s.io/v1", "selfsubjectaccessreviews authorization.k8s.io/v1",
			"selfsubjectrulesreviews authorization.k8s.io/v1",
		} {
			if found[name].Name == "" {
				t.Errorf("legacy %v: no %s", legacy, name)
			}
		}
		if !slices.ContainsFunc(groups, func(g *metav1.APIGroup) bool {
			return g.Name == "management.platform.sh" && g.PreferredVersion.GroupVersion == "management.platform.sh/v1"
		}) {
			t.Errorf("legacy %v: groups %+v", legacy, groups)
		}
		if got, err := client.ServerVersion(); err != nil || got.Minor != "37" {
			t.Errorf("version %+v, %v", got, err)
		}
		if _, err := client.OpenAPISchema(); err != nil {
			t.Errorf("OpenAPI v2: %v", err)
		}
		paths, err := client.OpenAPIV3().Paths()
		if err != nil {
			t.Fatal(err)
		}
		text, err := paths["apis/management.platform.sh/v1"].Schema("application/json")
		if err != nil || !strings.Contains(string(text), "OwnedAccessKey") {
			t.Errorf("OpenAPI v3: %d bytes, %v", len(text), err)
		}
	}
}
