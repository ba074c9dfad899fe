package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/local/output"
	"management.platform.sh/shared/credentials/kubeconfig"
	"management.platform.sh/shared/model"
)

// Kubeconfig requests a kubeconfig for a virtual cluster and writes it to a file.
type Kubeconfig struct {
	Instance   string `arg:"" name:"instance" placeholder:"NAMESPACE/NAME" help:"The virtual cluster instance, as NAMESPACE/NAME, such as p-shop/dev."`
	Host       string `arg:"" optional:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login. Absent: the platform of --platform."`
	Authority  string `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform at HOST. Absent: the authority of platform login, else the system's authorities."`
	ClientCert bool   `help:"Get a client certificate instead of an access key."`
	TTL        *int64 `name:"ttl" placeholder:"SECONDS" help:"Lifetime of the credential. 0: the signing duration of the virtual cluster. Absent: one day."`
	Server     string `placeholder:"URL" help:"Address of the virtual cluster. Absent: the address of its ingress endpoint."`
	Context    string `placeholder:"NAME" help:"Name of the context, its cluster and its user. Absent: NAME-NAMESPACE of the virtual cluster."`
	Merge      bool   `help:"Add the kubeconfig to the file, and make its context the current one. If an entry of another server has the name of the context, the context is NAMESPACE/NAME@PLATFORM."`
	Output     string `type:"path" short:"o" placeholder:"FILE" help:"File to write. Absent: standard output, or with --merge the first existing file of KUBECONFIG, else its last file, else ~/.kube/config."`
	Platform   string `type:"path" env:"PLATFORM_KUBECONFIG" placeholder:"FILE" help:"Kubeconfig that reaches the platform. Absent: the kubeconfig in the data folder, else the current context of the user's kubeconfig."`
	Data       string `default:".platform" placeholder:"DIR" help:"Data folder of platform serve (${default})."`
}

// Run requests a kubeconfig from the platform, and writes it to a file or merges it into a file.
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
		c.Output = mergeTarget(platform)
	}
	file, err := destination(c.Output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if c.Merge {
		// Check the file first: no credential is made for a file that cannot take it.
		if _, err := load(file); err != nil {
			return err
		}
	}
	target, err := c.findPlatform(ctx, platform)
	if err != nil {
		return err
	}
	answer, err := c.ask(ctx, target, namespace, name)
	if refusal := (*answerError)(nil); errors.As(err, &refusal) && refusal.code == http.StatusNotFound && !strings.HasPrefix(namespace, model.DefaultProjectNamespacePrefix) {
		return fmt.Errorf("%w; did you mean %s%s/%s, the namespace of the project %s?", err, model.DefaultProjectNamespacePrefix, namespace, name, namespace)
	}
	if err != nil {
		return err
	}
	text := []byte(answer.Status.KubeConfig)
	if c.Context != "" && !c.Merge {
		if text, _, err = mergeInto(clientcmdapi.NewConfig(), text, c.Context, ""); err != nil {
			return err
		}
	}
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
	where := ""
	if c.Merge {
		entry := cmp.Or(c.Context, name+"-"+namespace)
		if text, where, err = mergeKubeconfig(file, text, entry, c.Instance+"@"+shortAddress(target.base)); err != nil {
			return err
		}
		if where != entry {
			output.Warn(os.Stderr, "an entry %s of another server is in %s: the new one is %s", entry, c.Output, where)
		}
		where = ", as the context " + where
	}
	if err := atomicfile.Write(file, text); err != nil {
		return err
	}
	_, err = fmt.Printf("%s holds a credential until %s%s\n", c.Output, answer.Status.ExpirationTimestamp.UTC().Format(time.RFC3339), where)
	return err
}

// findPlatform returns the platform to use. Without a HOST and a data folder, this is the platform of the current context of
// the kubeconfig, as after platform login. A merge changes that context, so it needs one of them.
func (c *Kubeconfig) findPlatform(ctx context.Context, platform string) (*platformClient, error) {
	_, err := os.Stat(platform)
	missing := c.Platform == "" && errors.Is(err, os.ErrNotExist)
	switch {
	case c.Host != "" || missing && !c.Merge:
		return reach(ctx, c.Host, c.Authority)
	case missing:
		return nil, errors.New("--merge: name the platform with HOST or --platform, because a merge changes the current context")
	}
	config, err := clientcmd.BuildConfigFromFlags("", platform)
	if err != nil {
		return nil, fmt.Errorf("--platform: %w", err)
	}
	at, err := clientFor(config)
	if err != nil {
		return nil, fmt.Errorf("--platform: %w", err)
	}
	return at, nil
}

// mergeTarget returns the file to which kubectl would write a new entry: the first existing file of KUBECONFIG, else its
// last file, else the file in the home folder. The kubeconfig that reaches the platform is left out: after a merge its
// current context would be the virtual cluster.
func mergeTarget(platform string) string {
	files := slices.DeleteFunc(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), func(file string) bool {
		return file == "" || sameServer(file, platform)
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

func sameServer(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// maxLinks bounds how many links a path may lead through, as in Linux.
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
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is not a link, or it does not exist
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: more than %d symbolic links", path, maxLinks)
}

func (c *Kubeconfig) ask(ctx context.Context, platform *platformClient, namespace, name string) (*model.VirtualClusterInstanceKubeConfig, error) {
	request := &model.VirtualClusterInstanceKubeConfig{}
	request.SetGroupVersionKind(kubeconfig.Definition.GroupVersionKind())
	request.Spec = model.VirtualClusterInstanceKubeConfigSpec{ClientCert: c.ClientCert, CertificateTTLSeconds: c.TTL, Server: c.Server}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	created := &model.VirtualClusterInstanceKubeConfig{}
	path := "/namespaces/" + url.PathEscape(namespace) + "/virtualclusterinstances/" + url.PathEscape(name) + "/" + kubeconfig.Subresource
	if err := platform.ask(ctx, http.MethodPost, path, bytes.NewReader(body), created); err != nil {
		return nil, err
	}
	if created.Status.KubeConfig == "" || created.Status.ExpirationTimestamp == nil {
		return nil, errors.New("the answer has no kubeconfig")
	}
	return created, nil
}

// maxAnswer is the maximum size of a response, in bytes.
const maxAnswer = 3 << 20

// readAnswer reads the response to a create request. The error of a refused request is the message of the API or,
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

// mergeKubeconfig is mergeInto for the kubeconfig in a file.
func mergeKubeconfig(file string, text []byte, short, full string) (result []byte, name string, err error) {
	into, err := load(file)
	if err != nil {
		return nil, "", err
	}
	return mergeInto(into, text, short, full)
}

// mergeInto adds cluster, user and current context of a kubeconfig to another one, and makes that the current context. All
// other entries stay. It returns the name of the new context, one of two: see entryName.
func mergeInto(into *clientcmdapi.Config, text []byte, short, full string) (result []byte, name string, err error) {
	added, err := clientcmd.Load(text)
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	at, known := added.Contexts[added.CurrentContext]
	if !known || added.Clusters[at.Cluster] == nil || added.AuthInfos[at.AuthInfo] == nil {
		return nil, "", errors.New("the kubeconfig has no current context")
	}
	name = entryName(into, added.Clusters[at.Cluster].Server, short, full)
	into.Clusters[name], into.AuthInfos[name] = added.Clusters[at.Cluster], added.AuthInfos[at.AuthInfo]
	into.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	into.CurrentContext = name
	if result, err = clientcmd.Write(*into); err != nil {
		return nil, "", fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return result, name, nil
}

// entryName returns the name of an entry for a server. It returns the short name, unless an entry of another server has
// it, which then stays. The full name is unique to this server, so an entry that has it is an earlier entry of this
// server.
func entryName(into *clientcmdapi.Config, server, short, full string) string {
	cluster := into.Clusters[short]
	free := cluster == nil && into.AuthInfos[short] == nil && into.Contexts[short] == nil
	if into.Contexts[full] == nil && (free || cluster != nil && cluster.Server == server) {
		return short
	}
	return full
}
