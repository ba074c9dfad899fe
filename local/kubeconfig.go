package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/shared/kubeconfig"
	"management.platform.sh/shared/model"
)

// Run asks the platform for a kubeconfig and writes it, or merges it into a file.
func (c *kubeconfigCommand) Run(ctx context.Context) error {
	namespace, name, found := strings.Cut(c.Instance, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%q is no NAMESPACE/NAME", c.Instance)
	}
	if c.Merge && c.Output == "" {
		c.Output = clientcmd.RecommendedHomeFile
	}
	platform := c.Platform
	if platform == "" {
		platform = filepath.Join(c.Data, "kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", platform)
	if err != nil {
		return fmt.Errorf("--platform: %w", err)
	}
	answer, warnings, err := c.ask(ctx, config, namespace, name)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		_, _ = fmt.Fprintln(os.Stderr, "local:", warning)
	}
	text := []byte(answer.Status.KubeConfig)
	if c.Merge {
		if text, err = merged(c.Output, text, name+"-"+namespace); err != nil {
			return err
		}
	}
	if c.Output == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Output), 0o700); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if err := writeFile(c.Output, text); err != nil {
		return err
	}
	_, err = fmt.Printf("%s holds a credential until %s\n", c.Output, answer.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return err
}

// ask is the request for the kubeconfig.
func (c *kubeconfigCommand) ask(ctx context.Context, config *rest.Config, namespace, name string) (*model.VirtualClusterInstanceKubeConfig, []string, error) {
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("--platform: %w", err)
	}
	request := &model.VirtualClusterInstanceKubeConfig{}
	request.SetGroupVersionKind(kubeconfig.Definition.GroupVersionKind())
	request.Spec = model.VirtualClusterInstanceKubeConfigSpec{ClientCert: c.ClientCert, CertificateTTLSeconds: c.TTL, Server: c.Server}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, nil, err
	}
	path := strings.TrimSuffix(config.Host, "/") + "/apis/" + model.SchemeGroupVersion.String() + "/namespaces/" + namespace +
		"/virtualclusterinstances/" + name + "/" + kubeconfig.Subresource
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	sent.Header.Set("Content-Type", "application/json")
	answer, err := api.Do(sent)
	if err != nil {
		return nil, nil, fmt.Errorf("asking for the kubeconfig: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	if answer.StatusCode != http.StatusCreated {
		var status metav1.Status
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = answer.Status
		}
		return nil, nil, errors.New(status.Message)
	}
	made := &model.VirtualClusterInstanceKubeConfig{}
	if err := json.Unmarshal(text, made); err != nil || made.Status.KubeConfig == "" || made.Status.ExpirationTimestamp == nil {
		return nil, nil, errors.New("the answer holds no kubeconfig")
	}
	return made, answer.Header.Values("Warning"), nil
}

// maxAnswer bounds an answer.
const maxAnswer = 3 << 20

// merged is a kubeconfig file with the cluster, user and context of another under a name, as its current context. All
// else in the file stays. A file that is not there is empty.
func merged(file string, text []byte, name string) ([]byte, error) {
	into := clientcmdapi.NewConfig()
	kept, err := os.ReadFile(file)
	if err == nil {
		into, err = clientcmd.Load(kept)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--output: %s: %w", file, err)
	}
	made, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	at, known := made.Contexts[made.CurrentContext]
	if !known || made.Clusters[at.Cluster] == nil || made.AuthInfos[at.AuthInfo] == nil {
		return nil, errors.New("the kubeconfig has no current context")
	}
	into.Clusters[name], into.AuthInfos[name] = made.Clusters[at.Cluster], made.AuthInfos[at.AuthInfo]
	into.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	into.CurrentContext = name
	result, err := clientcmd.Write(*into)
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return result, nil
}
