package model_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"management.platform.sh/shared/model"
)

const base = "/kubernetes/management/apis/management.platform.sh/v1"

// keyServer answers a create with what it was sent and a key, and a list with one key.
func keyServer(t *testing.T) *rest.Config {
	t.Helper()
	answer := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+base+"/ownedaccesskeys", func(w http.ResponseWriter, r *http.Request) {
		var key model.OwnedAccessKey
		if err := json.NewDecoder(r.Body).Decode(&key); err != nil {
			t.Error(err)
		}
		key.Spec.Key, key.ResourceVersion = "pak_clear", "7"
		answer(w, http.StatusCreated, key)
	})
	mux.HandleFunc("GET "+base+"/ownedaccesskeys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, model.OwnedAccessKeyList{
			TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "OwnedAccessKeyList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"},
			Items:    []model.OwnedAccessKey{{ObjectMeta: metav1.ObjectMeta{Name: "ci"}, Spec: model.OwnedAccessKeySpec{TTLSeconds: 60}}},
		})
	})
	mux.HandleFunc("POST "+base+"/namespaces/p-a/virtualclusterinstances/dev/kubeconfig", func(w http.ResponseWriter, r *http.Request) {
		var request model.VirtualClusterInstanceKubeConfig
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		if ttl := request.Spec.CertificateTTLSeconds; ttl == nil || *ttl != 0 {
			t.Errorf("certificateTTL arrived as %v", ttl)
		}
		request.Status.KubeConfig = "kind: Config\n"
		answer(w, http.StatusCreated, request)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL + "/kubernetes/management"}
}

func TestDynamicClient(t *testing.T) {
	t.Parallel()
	clients, err := dynamic.NewForConfig(keyServer(t))
	if err != nil {
		t.Fatal(err)
	}
	keys := clients.Resource(model.SchemeGroupVersion.WithResource("ownedaccesskeys"))
	key := model.OwnedAccessKey{
		TypeMeta:   metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "OwnedAccessKey"},
		ObjectMeta: metav1.ObjectMeta{Name: "ci"},
		Spec:       model.OwnedAccessKeySpec{TTLSeconds: 60, Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&key)
	if err != nil {
		t.Fatal(err)
	}
	created, err := keys.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got model.OwnedAccessKey
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(created.Object, &got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Key != "pak_clear" || got.Spec.TTLSeconds != 60 || got.Spec.Scope.Projects[0].Project != "a" {
		t.Errorf("got %+v", got.Spec)
	}
	list, err := keys.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.GetContinue() != "more" {
		t.Errorf("got %+v", list)
	}
}

func TestTypedClient(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(model.SchemeGroupVersion.WithKind("OwnedAccessKey"),
		model.SchemeGroupVersion.WithResource("ownedaccesskeys"), model.SchemeGroupVersion.WithResource("ownedaccesskey"), meta.RESTScopeRoot)
	mapper.AddSpecific(model.SchemeGroupVersion.WithKind("VirtualClusterInstance"),
		model.SchemeGroupVersion.WithResource("virtualclusterinstances"), model.SchemeGroupVersion.WithResource("virtualclusterinstance"), meta.RESTScopeNamespace)
	typed, err := client.New(keyServer(t), client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}

	key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ci"}, Spec: model.OwnedAccessKeySpec{User: "jo"}}
	if err := typed.Create(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if key.Spec.Key != "pak_clear" || key.Spec.User != "jo" || key.ResourceVersion != "7" {
		t.Errorf("got %+v", key)
	}

	var list model.OwnedAccessKeyList
	if err := typed.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Spec.TTLSeconds != 60 || list.ResourceVersion != "9" {
		t.Errorf("got %+v", list)
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
