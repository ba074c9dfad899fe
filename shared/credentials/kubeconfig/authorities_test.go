package kubeconfig_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/kubeconfig"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/encryption"
)

// signedBy returns the index of the authority that signed the certificate of a new kubeconfig.
func (w *world) signedBy(t *testing.T, authorities ...[]byte) int {
	t.Helper()
	made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(client(t, made.Object.Status.KubeConfig).CertData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for i, authority := range authorities {
		block, _ := pem.Decode(authority)
		parent, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if certificate.CheckSignatureFrom(parent) == nil {
			return i
		}
	}
	t.Fatal("none of the authorities signed it")
	return -1
}

// A Renderer that keeps an authority answers like a Renderer that does not: the next request sees every change of the instance,
// of the encryption key and of the time. Source: ADR-0026.
func TestAuthorityIsKept(t *testing.T) {
	t.Parallel()
	cert := model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true}
	start := func(t *testing.T) (*world, *model.VirtualClusterInstance) {
		t.Helper()
		w, object := newWorld(t), instancetest.Instance(t, "dev")
		w.Seed(t, object)
		for range 2 {
			if w.signedBy(t, object.Spec.Signer.CA.CertData) != 0 {
				t.Fatal("signed by another authority")
			}
		}
		return w, object
	}
	// change updates the stored instance.
	change := func(t *testing.T, w *world, edit func(*model.VirtualClusterInstance)) {
		t.Helper()
		object, err := resource.Get(t.Context(), w.Instances, resource.GetInput{Caller: instancetest.Admin, Namespace: "p-shop", Name: "dev"})
		if err != nil {
			t.Fatal(err)
		}
		edit(object)
		if _, err := resource.Update(t.Context(), w.Instances, resource.UpdateInput[*model.VirtualClusterInstance]{
			Caller: instancetest.Admin, Namespace: "p-shop", Name: "dev", Object: object,
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("another authority", func(t *testing.T) {
		t.Parallel()
		w, object := start(t)
		other := instancetest.Instance(t, "dev").Spec.Signer
		change(t, w, func(i *model.VirtualClusterInstance) { i.Spec.Signer = other.DeepCopy() })
		if w.signedBy(t, object.Spec.Signer.CA.CertData, other.CA.CertData) != 1 {
			t.Error("the authority before signs")
		}
	})
	t.Run("another instance of the same name", func(t *testing.T) {
		t.Parallel()
		w, object := start(t)
		if _, err := resource.Delete(t.Context(), w.Instances, resource.DeleteInput{Caller: instancetest.Admin, Namespace: "p-shop", Name: "dev"}); err != nil {
			t.Fatal(err)
		}
		if made, err := w.make(t, instancetest.Ana, cert); accesskeytest.Code(err) != 404 {
			t.Errorf("without the instance: %+v, %v", made, err)
		}
		other := instancetest.Instance(t, "dev")
		w.Seed(t, other)
		if w.signedBy(t, object.Spec.Signer.CA.CertData, other.Spec.Signer.CA.CertData) != 1 {
			t.Error("the authority of the deleted instance signs")
		}
	})
	t.Run("another signing duration", func(t *testing.T) {
		t.Parallel()
		w, _ := start(t)
		change(t, w, func(i *model.VirtualClusterInstance) {
			i.Spec.Signer.CertificateDuration = &metav1.Duration{Duration: 2 * time.Hour}
		})
		made, err := w.make(t, instancetest.Ana, model.VirtualClusterInstanceKubeConfigSpec{ClientCert: true, CertificateTTLSeconds: new(int64)})
		if err != nil || made.Object.Status.ExpirationTimestamp.Sub(instancetest.Now) != 2*time.Hour {
			t.Errorf("%+v, %v", made.Object, err)
		}
	})
	t.Run("no authority", func(t *testing.T) {
		t.Parallel()
		w, _ := start(t)
		change(t, w, func(i *model.VirtualClusterInstance) { i.Spec.Signer.Type = model.InstanceSignerTypeNone })
		if made, err := w.make(t, instancetest.Ana, cert); accesskeytest.Code(err) != 400 {
			t.Errorf("%+v, %v", made, err)
		}
	})
	t.Run("another encryption key", func(t *testing.T) {
		t.Parallel()
		w, _ := start(t)
		ring, err := encryption.Parse(encryption.Generate())
		if err != nil {
			t.Fatal(err)
		}
		w.Ring = ring
		if made, err := w.make(t, instancetest.Ana, cert); accesskeytest.Code(err) != 400 {
			t.Errorf("%+v, %v", made, err)
		}
	})
	t.Run("the end of the authority", func(t *testing.T) {
		t.Parallel()
		w, _ := start(t)
		fresh := newWorld(t)
		fresh.Instances, fresh.renderer.Instances = w.Instances, w.Instances
		fresh.renderer.Keyring, fresh.renderer.Now = w.renderer.Keyring, w.renderer.Now
		w.Clock = w.Clock.Add(2 * 365 * 24 * time.Hour)
		_, kept := w.make(t, instancetest.Ana, cert)
		_, parsed := fresh.make(t, instancetest.Ana, cert)
		if accesskeytest.Code(kept) != 400 || parsed == nil || kept.Error() != parsed.Error() {
			t.Errorf("%v, and of one who does not keep it %v", kept, parsed)
		}
	})
	t.Run("texts moved from another instance", func(t *testing.T) {
		t.Parallel()
		w, _ := start(t)
		w.Seed(t, instancetest.Instance(t, "victim"))
		from, err := w.Instances.Store.Get(t.Context(), "p-shop/dev")
		if err != nil {
			t.Fatal(err)
		}
		into, err := w.Instances.Store.Get(t.Context(), "p-shop/victim")
		if err != nil {
			t.Fatal(err)
		}
		var texts [2]map[string]any
		for i, text := range [][]byte{from.Object, into.Object} {
			if err := json.Unmarshal(text, &texts[i]); err != nil {
				t.Fatal(err)
			}
		}
		texts[1]["spec"].(map[string]any)["signer"] = texts[0]["spec"].(map[string]any)["signer"]
		if into.Object, err = json.Marshal(texts[1]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Instances.Store.Update(t.Context(), into); err != nil {
			t.Fatal(err)
		}
		made, err := w.renderer.Render(t.Context(), kubeconfig.Input{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: "victim", Object: &model.VirtualClusterInstanceKubeConfig{Spec: cert},
		})
		if err == nil {
			t.Errorf("the authority of another instance signs: %+v", made.Object)
		}
	})
}
