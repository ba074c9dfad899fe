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

// Kubeconfig requests a kubeconfig for a virtual cluster and writes it to a file.
type Kubeconfig struct {
	Instance   string `arg:"" name:"instance" placeholder:"NAMESPACE/NAME" help:"The virtual cluster instance, as NAMESPACE/NAME."`
	ClientCert bool   `help:"Get a client certificate instead of an access key."`
	TTL        *int64 `name:"ttl" placeholder:"SECONDS" help:"Lifetime of the credential. 0: the signing duration of the virtual cluster. Absent: one day."`
	Server     string `placeholder:"URL" help:"Address of the virtual cluster. Absent: the address of its ingress endpoint."`
	Merge      bool   `help:"Add the kubeconfig to the file under its own name, and make it the current context."`
	Output     string `type:"path" short:"o" placeholder:"FILE" help:"File to write. Absent: standard output, or with --merge the first existing file of KUBECONFIG, else its last file, else ~/.kube/config."`
	Platform   string `type:"path" env:"PLATFORM_KUBECONFIG" placeholder:"FILE" help:"Kubeconfig that reaches the platform. Absent: the one in the data folder, else the current context of the kubeconfig."`
	Data       string `default:".platform" placeholder:"DIR" help:"Data folder of platform serve (${default})."`
}

// Run requests a kubeconfig from the platform. It writes the kubeconfig, or merges it into a file.
func (c *Kubeconfig) Run(ctx context.Context) error {
	namespace, name, found := strings.Cut(c.Instance, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("invalid instance %q: use NAMESPACE/NAME", c.Instance)
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
		// The file is checked first: no credential is made for a file that cannot take it.
		if _, err := load(file); err != nil {
			return err
		}
	}
	config, err := c.reaches(platform)
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

// reaches returns how to reach the platform. Without a data folder it is the current context of the kubeconfig, as after platform login. A
// merge changes that context, so it needs the file.
func (c *Kubeconfig) reaches(platform string) (*rest.Config, error) {
	if _, err := os.Stat(platform); c.Platform != "" || c.Merge || !errors.Is(err, os.ErrNotExist) {
		return clientcmd.BuildConfigFromFlags("", platform)
	}
	return currentContext()
}

// mergesInto returns the file that kubectl would write a new entry to: the first existing file of KUBECONFIG, else its
// last file, else the one in the home folder. The kubeconfig that reaches the platform is left out: after a merge its
// current context would be the virtual cluster.
func mergesInto(platform string) string {
	files := slices.DeleteFunc(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), func(file string) bool {
		return file == "" || same(file, platform)
	})
	for _, file := range files {
		if _, err := os.Stat(file); err == nil { //nolint:gosec // the user names the file and reads it with their own rights
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

// destination returns the file that is replaced when a path is written: the target of its links, so that the links stay.
// It is empty for the standard output: an empty path, `-`, or another name of the standard output.
func destination(path string) (string, error) {
	if path == "" || path == "-" {
		return "", nil
	}
	if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() {
		if out, err := os.Stdout.Stat(); err == nil && os.SameFile(at, out) {
			return "", nil
		}
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is not a link, or it does not exist
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: more than %d symbolic links", path, maxLinks)
}

// ask sends the request for the kubeconfig.
func (c *Kubeconfig) ask(ctx context.Context, config *rest.Config, namespace, name string) (*model.VirtualClusterInstanceKubeConfig, []string, error) {
	api, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("--platform: %w", err)
	}
	api = repeating(api, nil)
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
		return nil, nil, fmt.Errorf("requesting the kubeconfig: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, refusal, err := readAnswer(answer)
	if err != nil {
		return nil, nil, fmt.Errorf("requesting the kubeconfig: %w", err)
	}
	if refusal != "" {
		return nil, nil, errors.New(refusal)
	}
	made := &model.VirtualClusterInstanceKubeConfig{}
	if err := json.Unmarshal(text, made); err != nil || made.Status.KubeConfig == "" || made.Status.ExpirationTimestamp == nil {
		return nil, nil, errors.New("the answer has no kubeconfig")
	}
	return made, answer.Header.Values("Warning"), nil
}

// maxAnswer is the largest answer, in bytes.
const maxAnswer = 3 << 20

// readAnswer reads the response to a create request. If the request was refused, the refusal is the message of the API or,
// without one, the status of the response.
func readAnswer(response *http.Response) (text []byte, refusal string, err error) {
	text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || response.StatusCode == http.StatusCreated {
		return text, "", err
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = response.Status
	}
	return nil, status.Message, nil
}

// load reads a kubeconfig file. A missing file is empty.
func load(file string) (*clientcmdapi.Config, error) {
	if file == "" {
		return nil, errors.New("--merge: cannot merge into the standard output; name a file with --output")
	}
	config := clientcmdapi.NewConfig()
	text, err := os.ReadFile(file)
	if err == nil {
		config, err = clientcmd.Load(text)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--output: %s is not a kubeconfig: %w", file, err)
	}
	return config, nil
}

// merged adds cluster, user and current context of a kubeconfig to a file under a name, and makes that the current
// context. Everything else in the file stays.
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
