package instance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// The names of the parts of the material, as the contexts of their encryption have them; see place.
const (
	caCertificate = "spec.signer.ca.certData"
	caKey         = "spec.signer.ca.keyData"
	kubeconfig    = "spec.signer.kubeconfig"
)

// place returns the context for which a part of the material of an instance is encrypted: it opens in no other context.
// Source: ADR-0018.
func place(instance *model.VirtualClusterInstance, part string) string {
	return Definition.Resource.Resource + "/" + instance.Namespace + "/" + instance.Name + "/" + part
}

// Seal encrypts the material of the signer for the state. Material that the request leaves out stays as it is stored, unless
// the type of the signer has changed. Material that equals the stored material is not encrypted again, so that applying the same
// manifest again changes nothing.
func (r *rules) Seal(instance *model.VirtualClusterInstance, stored store.Record) (resource.Sealed[*model.VirtualClusterInstance], field.ErrorList) {
	var none resource.Sealed[*model.VirtualClusterInstance]
	resource.ForgetApplied(instance, Definition.WriteOnly)
	signer := instance.Spec.Signer
	if signer == nil {
		return none, nil
	}
	var old struct {
		Spec struct {
			Signer model.InstanceSigner `json:"signer"`
		} `json:"spec"`
	}
	if len(stored.Object) > 0 {
		if err := json.Unmarshal(stored.Object, &old); err != nil {
			return none, field.ErrorList{field.InternalError(signerPath, err)}
		}
	}
	before := old.Spec.Signer
	if signer.CA == nil && signer.Kubeconfig == "" {
		switch signer.Type {
		case model.InstanceSignerTypeCA:
			signer.CA = before.CA
		case model.InstanceSignerTypeKubeconfig:
			signer.Kubeconfig = before.Kubeconfig
		}
		r.sealAnew(instance)
		return none, nil
	}
	if problems := refuseCopies(instance); len(problems) > 0 {
		return none, problems
	}
	ring, err := r.Keyring()
	if err != nil {
		return none, field.ErrorList{field.InternalError(signerPath, err)}
	}
	if ring == nil {
		return none, field.ErrorList{field.Forbidden(signerPath, "the platform has no encryption key to store it with: "+encryption.ErrNoKey.Error())}
	}
	if signer.CA != nil {
		if before.CA == nil {
			before.CA = &model.InstanceSignerCA{}
		}
		certificate, certificateErr := seal(ring, signer.CA.CertData, string(before.CA.CertData), place(instance, caCertificate))
		key, keyErr := seal(ring, signer.CA.KeyData, string(before.CA.KeyData), place(instance, caKey))
		signer.CA = &model.InstanceSignerCA{CertData: []byte(certificate), KeyData: secret.WriteOnlyBytes(key)}
		err = errors.Join(certificateErr, keyErr)
	} else {
		var sealed string
		sealed, err = seal(ring, []byte(signer.Kubeconfig), string(before.Kubeconfig), place(instance, kubeconfig))
		signer.Kubeconfig = secret.WriteOnly(sealed)
	}
	if err != nil {
		return none, field.ErrorList{field.InternalError(signerPath, err)}
	}
	return none, nil
}

// sealAnew encrypts stored material with the current key. Material that cannot be decrypted stays as it is.
func (r *rules) sealAnew(instance *model.VirtualClusterInstance) {
	ring, err := r.Keyring()
	if err != nil {
		return
	}
	anew := func(sealed, part string) string {
		if sealed == "" || !ring.Stale(sealed) {
			return sealed
		}
		text, err := ring.Open(sealed, place(instance, part))
		if err != nil {
			return sealed
		}
		again, err := ring.Seal(text, place(instance, part))
		if err != nil {
			return sealed
		}
		return again
	}
	signer := instance.Spec.Signer
	if signer.CA != nil {
		signer.CA = &model.InstanceSignerCA{
			CertData: []byte(anew(string(signer.CA.CertData), caCertificate)),
			KeyData:  secret.WriteOnlyBytes(anew(string(signer.CA.KeyData), caKey)),
		}
	}
	signer.Kubeconfig = secret.WriteOnly(anew(string(signer.Kubeconfig), kubeconfig))
}

// seal encrypts a text. If before is the same text under the current key, it returns before.
func seal(ring *encryption.Keyring, text []byte, before, place string) (string, error) {
	if before != "" && !ring.Stale(before) {
		if known, err := ring.Open(before, place); err == nil && bytes.Equal(known, text) {
			return before, nil
		}
	}
	return ring.Seal(text, place)
}

// Material is the material of a signer in clear text.
type Material struct {
	// Certificate and Key are the certificate authority, in PEM; empty for a signer of another type.
	Certificate []byte
	Key         []byte
	// Kubeconfig is the kubeconfig of the virtual cluster; empty for a signer of another type.
	Kubeconfig secret.String
}

// OpenMaterial decrypts the material of the signer of a stored instance, as Registry.Parse returns the instance. An instance
// without a signer has no material. It returns the errors of encryption.Keyring.
func OpenMaterial(stored *model.VirtualClusterInstance, ring *encryption.Keyring) (Material, error) {
	var material Material
	signer := stored.Spec.Signer
	if signer == nil {
		return material, nil
	}
	open := func(sealed, part string) ([]byte, error) {
		if sealed == "" {
			return nil, nil
		}
		text, err := ring.Open(sealed, place(stored, part))
		if err != nil {
			return nil, fmt.Errorf("opening %s of %s/%s: %w", part, stored.Namespace, stored.Name, err)
		}
		return text, nil
	}
	var err error
	if signer.CA != nil {
		if material.Certificate, err = open(string(signer.CA.CertData), caCertificate); err != nil {
			return Material{}, err
		}
		if material.Key, err = open(string(signer.CA.KeyData), caKey); err != nil {
			return Material{}, err
		}
	}
	text, err := open(string(signer.Kubeconfig), kubeconfig)
	if err != nil {
		return Material{}, err
	}
	material.Kubeconfig = secret.String(text)
	return material, nil
}

// minSecret is the shortest text that refuseCopies looks for in other fields: shorter texts are no secrets.
const minSecret = 16

// refuseCopies refuses an instance that holds a secret of its signer in another field. Source: ADR-0017.
func refuseCopies(instance *model.VirtualClusterInstance) field.ErrorList {
	signer := instance.Spec.Signer
	var secrets []string
	path := signerPath.Child("kubeconfig")
	if signer.CA != nil {
		path = signerPath.Child("ca", "keyData")
		secrets = append(secrets, string(signer.CA.KeyData), base64.StdEncoding.EncodeToString(signer.CA.KeyData))
	} else {
		secrets = append(secrets, string(signer.Kubeconfig))
		var config struct {
			Users []struct {
				User struct {
					Token string `json:"token"`
					Key   string `json:"client-key-data"`
				} `json:"user"`
			} `json:"users"`
		}
		if yaml.Unmarshal([]byte(signer.Kubeconfig), &config) == nil {
			for _, each := range config.Users {
				secrets = append(secrets, each.User.Token, each.User.Key)
			}
		}
	}
	rest := instance.DeepCopy()
	rest.Spec.Signer.CA, rest.Spec.Signer.Kubeconfig = nil, ""
	text, err := json.Marshal(rest)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	for _, each := range secrets {
		each = strings.TrimSpace(each)
		if len(each) >= minSecret && bytes.Contains(text, secret.String(each).InJSON()) {
			return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "another field of the object holds it in clear text")}
		}
	}
	return nil
}
