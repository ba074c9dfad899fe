package client

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
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/shared/credentials/kubeconfig"
	"management.platform.sh/shared/model"
)

// Kubeconfig asks for a kubeconfig.
type Kubeconfig struct {
	Instance   string `arg:"" name:"instance" placeholder:"NAMESPACE/NAME" help:"The virtual cluster instance, as NAMESPACE/NAME."`
	ClientCert bool   `help:"A client certificate in place of an access key."`
	TTL        *int64 `name:"ttl" placeholder:"SECONDS" help:"How long the credential lives; 0 is the signing duration of the virtual cluster (a day)."`
	Server     string `placeholder:"URL" help:"Address of the virtual cluster (that of its ingress endpoint)."`
	Merge      bool   `help:"Add to the file, under a name of its own, and make it the current context."`
	Output     string `type:"path" short:"o" placeholder:"FILE" help:"File to write (standard output; with --merge the first file of KUBECONFIG that exists, else its last, else ~/.kube/config)."`
	Platform   string `type:"path" env:"PLATFORM_KUBECONFIG" placeholder:"FILE" help:"Kubeconfig that reaches the platform (the one in the data folder)."`
	Data       string `default:".platform" placeholder:"DIR" help:"Data folder of the runner (${default})."`
}

// Run asks the platform for a kubeconfig and writes it, or merges it into a file.
func (c *Kubeconfig) Run(ctx context.Context) error {
	namespace, name, found := strings.Cut(c.Instance, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%q is no NAMESPACE/NAME", c.Instance)
	}
	platform := c.Platform
	if platform == "" {
		platform = filepath.Join(c.Data, "kubeconfig")
	}
	if c.Merge && c.Output == "" {
		c.Output = mergesInto(platform)
	}
	file, err := destination(c.Output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if c.Merge {
		// A file that cannot be merged into is no reason to make a credential.
		if _, err := load(file); err != nil {
			return err
		}
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
		_, _ = fmt.Fprintln(os.Stderr, "platform:", warning)
	}
	text := []byte(answer.Status.KubeConfig)
	if file == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	unlock, err := lock(ctx, file)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer unlock()
	if c.Merge {
		if text, err = merged(file, text, name+"-"+namespace); err != nil {
			return err
		}
	}
	if err := atomicfile.Write(file, text); err != nil {
		return err
	}
	_, err = fmt.Printf("%s holds a credential until %s\n", c.Output, answer.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return err
}

// mergesInto is the file that kubectl would write a new entry to: the first of KUBECONFIG that there is, else the last of
// it, else the one in the home folder. The one that reaches the platform is left out: it would lead elsewhere afterwards.
func mergesInto(platform string) string {
	files := slices.DeleteFunc(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), func(file string) bool {
		return file == "" || same(file, platform)
	})
	for _, file := range files {
		if _, err := os.Stat(file); err == nil { //nolint:gosec // whose environment names a file reads it with his own rights
			return file
		}
	}
	if len(files) > 0 {
		return files[len(files)-1]
	}
	return clientcmd.RecommendedHomeFile
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// maxLinks is how many links a path may lead through, as in Linux.
const maxLinks = 40

// destination is the file that is replaced when a path is written: where its links lead, which stay. Empty, `-` and the
// standard output by another name are the standard output, for which it is empty.
func destination(path string) (string, error) {
	if path == "" || path == "-" {
		return "", nil
	}
	if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() {
		if out, err := os.Stdout.Stat(); err == nil && os.SameFile(at, out) {
			return "", nil
		}
		return "", fmt.Errorf("%s is no regular file", path)
	}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is no link, or not there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s leads through more than %d links", path, maxLinks)
}

const (
	// lockedFor is how long somebody else may be writing a file, and lockPause is between two looks.
	lockedFor = 10 * time.Second
	lockPause = 20 * time.Millisecond
)

// lock keeps kubectl, and others of this program, from writing a kubeconfig file at the same time. It is kubectl's lock.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	name := file + ".lock"
	late := time.After(lockedFor)
	for {
		held, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			_ = held.Close()
			return func() { _ = os.Remove(name) }, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late:
			return nil, fmt.Errorf("%s is there: somebody else writes the file; remove it if nobody does", name)
		case <-time.After(lockPause):
		}
	}
}

// ask is the request for the kubeconfig.
func (c *Kubeconfig) ask(ctx context.Context, config *rest.Config, namespace, name string) (*model.VirtualClusterInstanceKubeConfig, []string, error) {
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

// load reads a kubeconfig file. One that is not there is empty.
func load(file string) (*clientcmdapi.Config, error) {
	if file == "" {
		return nil, errors.New("--merge: there is nothing to merge into on the standard output; name a file with --output")
	}
	config := clientcmdapi.NewConfig()
	text, err := os.ReadFile(file)
	if err == nil {
		config, err = clientcmd.Load(text)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--output: %s is no kubeconfig: %w", file, err)
	}
	return config, nil
}

// merged is a kubeconfig file with the cluster, user and context of another under a name, as its current context. All
// else in the file stays.
func merged(file string, text []byte, name string) ([]byte, error) {
	into, err := load(file)
	if err != nil {
		return nil, err
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
