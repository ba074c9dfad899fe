package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/shared/model/secret"
)

// The entries of a Secret that keeps an admin key: the key, and the certificate with which clients verify the platform.
const (
	adminKeyEntry  = "key"
	authorityEntry = "ca.crt"
)

// kubernetesSecret is a Secret of a Kubernetes cluster that keeps the first admin key. It implements admin.Keeper. Source: ADR-0053.
type kubernetesSecret struct {
	namespace, name string
	secrets         dynamic.ResourceInterface
	// authority is the certificate of the platform's own authority in PEM. Nil: it is not kept.
	authority []byte
}

// openKubernetesSecret returns a Secret of the cluster in the user's kubeconfig or, without one, of the pod. The Secret need not be there.
func openKubernetesSecret(name string, authority []byte) (*kubernetesSecret, error) {
	kubeconfig := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubernetes-secret: finding the cluster: %w", err)
	}
	namespace, _, err := kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("--kubernetes-secret: finding the namespace: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("--kubernetes-secret: %w", err)
	}
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	return &kubernetesSecret{namespace: namespace, name: name, secrets: secrets, authority: authority}, nil
}

func (s *kubernetesSecret) String() string {
	return "the Secret " + s.name + " of the namespace " + s.namespace
}

func (s *kubernetesSecret) Read(ctx context.Context) (secret.String, error) {
	object, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", s, err)
	}
	text, found, _ := unstructured.NestedString(object.Object, "data", adminKeyEntry)
	if !found {
		return "", fmt.Errorf("%s has no entry %q", s, adminKeyEntry)
	}
	bearer, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("the entry %q of %s is not base64", adminKeyEntry, s)
	}
	return secret.String(strings.TrimSpace(string(bearer))), nil
}

// Write creates the Secret. A Secret with the same key stays as it is.
func (s *kubernetesSecret) Write(ctx context.Context, bearer secret.String) error {
	entries := map[string]any{adminKeyEntry: base64.StdEncoding.EncodeToString([]byte(bearer.Reveal()))}
	if s.authority != nil {
		entries[authorityEntry] = base64.StdEncoding.EncodeToString(s.authority)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": map[string]any{"name": s.name}, "data": entries,
	}}
	_, err := s.secrets.Create(ctx, object, metav1.CreateOptions{FieldManager: "platform"})
	if apierrors.IsAlreadyExists(err) {
		kept, err := s.Read(ctx)
		if err == nil && kept != bearer {
			err = fmt.Errorf("%s has another key", s)
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", s, withoutObject(err))
	}
	return nil
}

// withoutObject returns the reason of a refused write without its message, which could quote the object.
func withoutObject(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonForbidden {
		return fmt.Errorf("the cluster says %d %s", status.Status().Code, status.Status().Reason)
	}
	return err
}

func (s *kubernetesSecret) Remove(ctx context.Context) error {
	if err := s.secrets.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("removing %s: %w", s, err)
	}
	return nil
}
