package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/secret"
)

// applyManifests creates every object in the YAML and JSON files of a folder, in the order of the file names. It merges
// objects that already exist. It stops at the first object that is refused, and the error names the object.
func applyManifests(ctx context.Context, api *client, folder string) error {
	if folder == "" {
		return nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("--manifests: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("--manifests: %w", err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for document := 1; ; document++ {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			switch {
			case err != nil:
				err = errors.New(secret.YAMLError(err))
			case len(object.Object) > 0:
				err = applyObject(ctx, api, object)
			}
			if err != nil {
				return fmt.Errorf("--manifests: %s, document %d: %w", file, document, err)
			}
		}
	}
	return nil
}

func applyObject(ctx context.Context, api *client, object *unstructured.Unstructured) error {
	path, err := collectionOf(object)
	if err != nil {
		return err
	}
	if object.GetName() == "" && isKept(object) {
		return errors.New("metadata.name: Required value: without a name every start would create another object")
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	code, answer, err := api.send(ctx, http.MethodPost, path, "application/json", text)
	if code == http.StatusConflict && object.GetName() != "" {
		merged, reason, failed := api.send(ctx, http.MethodPatch, path+"/"+object.GetName(), string(resource.MergePatch), text)
		// Without an object of that name the conflict has another cause, such as a key that is in use.
		if merged != http.StatusNotFound {
			code, answer, err = merged, reason, failed
		}
	}
	if err == nil && code >= http.StatusBadRequest {
		err = errors.New(answer)
	}
	return err
}

// collectionOf returns the path at which objects of this kind are created.
func collectionOf(object *unstructured.Unstructured) (string, error) {
	for _, f := range catalog.Functions {
		for _, endpoint := range f.Endpoints {
			if endpoint.Verb == "create" && endpoint.Subresource == "" && endpoint.Kind == object.GetKind() &&
				endpoint.Resource.GroupVersion().String() == object.GetAPIVersion() {
				return strings.ReplaceAll(endpoint.Path, "{namespace}", object.GetNamespace()), nil
			}
		}
	}
	return "", fmt.Errorf("the API has no kind %s in %s that can be created", object.GetKind(), object.GetAPIVersion())
}

// isKept reports whether objects of this kind are stored.
func isKept(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(catalog.Functions, func(f *frame.Function) bool {
		return slices.ContainsFunc(f.Endpoints, func(e frame.Endpoint) bool {
			return e.Verb == "get" && e.Subresource == "" && e.Kind == object.GetKind() && e.Resource.GroupVersion().String() == object.GetAPIVersion()
		})
	})
}

// client sends requests with the admin key to the listener of this process.
type client struct {
	http   *http.Client
	server string
	admin  secret.String
}

func newClient(server string, trusted trust, admin secret.String) *client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted.authorities)
	return &client{
		http:   &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: trusted.name, MinVersion: tls.VersionTLS12}}},
		server: server, admin: admin,
	}
}

// send returns the status code of the response and, for a refusal, its message.
func (c *client) send(ctx context.Context, method, path, contentType string, body []byte) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path+"?fieldManager=platform&fieldValidation=Strict", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+c.admin.Reveal())
	request.Header.Set("Content-Type", contentType)
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var status metav1.Status
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return answer.StatusCode, answer.Status, nil
	}
	return answer.StatusCode, status.Message, nil
}
