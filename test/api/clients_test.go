// Package api_test uses the whole API as its clients do: the dynamic and the typed client, informers, a process without a
// configuration. It also states the rules that hold for every stored kind, as tables over all of them. The packages under
// shared test the details of each rule. Source: Spec 4; ADR-0007.
package api_test

import (
	"crypto/rand"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

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

const bearer = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"

// serve mounts the whole catalog behind TLS over a real state, and returns the configuration of a client for ana.
func serve(t testing.TB) *rest.Config {
	t.Helper()
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
	return &rest.Config{
		Host: server.URL + frame.BasePath, BearerToken: bearer, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: certificate(server)},
	}
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// client-go's dynamic client, which Terraform and most tools use.
func TestDynamicClient(t *testing.T) {
	t.Parallel()
	clients, err := dynamic.NewForConfig(serve(t))
	if err != nil {
		t.Fatal(err)
	}
	keys := clients.Resource(model.SchemeGroupVersion.WithResource("ownedaccesskeys"))
	ctx := t.Context()
	field := func(object *unstructured.Unstructured, path ...string) any {
		t.Helper()
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "management.platform.sh/v1", "kind": "OwnedAccessKey",
		"metadata": map[string]any{"generateName": "ci-", "labels": map[string]any{"app": "ci"}},
		"spec":     map[string]any{"ttl": int64(3600)},
	}}
	created, err := keys.Create(ctx, made, metav1.CreateOptions{FieldManager: "test", FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	name := created.GetName()
	if key, _ := field(created, "spec", "key").(string); !strings.HasPrefix(key, "pak_") || !strings.HasPrefix(name, "ci-") {
		t.Errorf("created %q", name)
	}
	got, err := keys.Get(ctx, name, metav1.GetOptions{})
	if err != nil || field(got, "spec", "key") != nil || got.GetUID() != created.GetUID() {
		t.Errorf("got %+v, %v", got, err)
	}
	stale := got.DeepCopy()
	if err := unstructured.SetNestedField(got.Object, "by PUT", "spec", "description"); err != nil {
		t.Fatal(err)
	}
	updated, err := keys.Update(ctx, got, metav1.UpdateOptions{})
	if err != nil || updated.GetGeneration() != 2 {
		t.Errorf("updated %+v, %v", updated, err)
	}
	if err := unstructured.SetNestedField(stale.Object, "late", "spec", "description"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v", err)
	}
	// Spec 4 row 7: the documented example.
	patched, err := keys.Patch(ctx, name, types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/annotations/a","value":"b"}]`), metav1.PatchOptions{})
	if err != nil || patched.GetAnnotations()["a"] != "b" {
		t.Errorf("patched %+v, %v", patched, err)
	}
	if patched, err = keys.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"disabled":true}}`), metav1.PatchOptions{}); err != nil || field(patched, "spec", "disabled") != true {
		t.Errorf("patched %+v, %v", patched, err)
	}
	if _, err := keys.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("a strategic merge patch: %v", err)
	}
	list, err := keys.List(ctx, metav1.ListOptions{LabelSelector: "app=ci", FieldSelector: "spec.user=ana", Limit: 10})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != name || list.GetResourceVersion() == "" {
		t.Errorf("listed %+v, %v", list, err)
	}
	first, err := keys.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(first.Items) != 1 || first.GetContinue() == "" || first.GetRemainingItemCount() == nil {
		t.Fatalf("listed %+v, %v", first, err)
	}
	if second, err := keys.List(ctx, metav1.ListOptions{Limit: 1, Continue: first.GetContinue()}); err != nil || len(second.Items) != 1 || second.GetContinue() != "" {
		t.Errorf("listed %+v, %v", second, err)
	}
	other := types.UID("other")
	if err := keys.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("deleting another one: %v", err)
	}
	uid := created.GetUID()
	if err := keys.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		t.Error(err)
	}
	if _, err := keys.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("then: %v", err)
	}
}
