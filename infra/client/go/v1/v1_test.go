package v1_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/infra/client/go/v1"
)

// Every kind that a scheme knows has metadata and a deep copy that shares nothing, and keeps its content as JSON.
func TestKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for kind, structure := range scheme.KnownTypes(v1.SchemeGroupVersion) {
		if structure.PkgPath() != reflect.TypeFor[v1.Config]().PkgPath() {
			continue
		}
		seen++
		object, err := scheme.New(v1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(kind, "List") {
			if items, err := meta.ExtractList(object); err != nil || len(items) != 0 {
				t.Errorf("%s: %v, %v", kind, items, err)
			}
			continue
		}
		access, err := meta.Accessor(object)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		access.SetLabels(map[string]string{"a": "b"})
		access.SetName("one")
		object.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind(kind))
		copied := object.DeepCopyObject()
		access.GetLabels()["a"] = "c"
		text, err := json.Marshal(copied)
		if err != nil {
			t.Fatal(err)
		}
		read, err := scheme.New(v1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, read); err != nil || !reflect.DeepEqual(read, copied) || !strings.Contains(string(text), `"labels":{"a":"b"}`) {
			t.Errorf("%s is read as %+v, %v, from %s", kind, read, err, text)
		}
	}
	if seen < 25 {
		t.Errorf("the scheme has %d kinds: that cannot be all", seen)
	}
}

// Secrets that a client sends are sent.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for want, object := range map[string]any{
		`"password":"correct horse"`:     v1.UserPasswordSpec{Password: "correct horse"},
		`"keyData":"cHJpdmF0ZQ=="`:       v1.InstanceSignerCA{KeyData: []byte("private")},
		`"kubeconfig":"apiVersion: v1"`:  v1.InstanceSigner{Kubeconfig: "apiVersion: v1"},
		`"clientSecret":"correct horse"`: v1.OIDCProvider{ClientSecret: "correct horse"},
		`"object":{"a":1e400}`:           v1.SyncPatchEvaluationSpec{Object: &v1.JSON{Raw: []byte(`{"a":1e400}`)}},
	} {
		if text, err := json.Marshal(object); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
}
