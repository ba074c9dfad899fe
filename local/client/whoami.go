package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
)

// WhoAmI prints the identity that a credential acts as. It asks the platform, so that it shows the current rights of
// the credential. Source: Spec 5; ADR-0031.
type WhoAmI struct {
	Host      string `arg:"" optional:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login. Absent: the platform of the current context of the kubeconfig, with its credential."`
	Authority string `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the authority of platform login, else the system's authorities."`
	Output    string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	// Out is the writer for the report. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

func (c *WhoAmI) Run(ctx context.Context) error {
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	response, err := platform.send(mayRepeat(ctx), http.MethodPost, selves, strings.NewReader("{}"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, refusal, err := readAnswer(response)
	switch {
	case err != nil:
		return fmt.Errorf("asking the platform: %w", err)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s is not a platform", platform.base)
	case refusal != "":
		return fmt.Errorf("the platform refuses the credential: %s", refusal)
	}
	var self model.Self
	if err := json.Unmarshal(text, &self); err != nil || self.Status.UID == "" {
		return fmt.Errorf("%s gave no answer of a platform", platform.base)
	}
	out := c.Out
	if out == nil {
		out = os.Stdout
	}
	return output.Write(out, c.Output, self, func() []byte { return describe(self.Status) })
}

// selves is the path of the request below the base address of the API.
var selves = "/apis/" + model.SchemeGroupVersion.String() + "/selves"

// currentContext returns how to reach the server of the current context of the kubeconfig.
func currentContext() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("the kubeconfig has no current context; platform login makes one")
	}
	return config, err
}

// platformClient is the platform that a command uses.
type platformClient struct {
	base   string
	client *http.Client
	// key is the access key. Empty: the client sends its own credential.
	key string
}

// reach returns the platform of a sign-in at a host. Without a host it returns the platform of the current context of
// the kubeconfig, with its credential. It first renews a key that expires soon, if the sign-in has a refresh token.
func reach(ctx context.Context, host, authority string) (*platformClient, error) {
	if host == "" {
		config, err := currentContext()
		if err != nil {
			return nil, fmt.Errorf("name a HOST, or use a kubeconfig: %w", err)
		}
		at, err := clientFor(config)
		if err != nil {
			return nil, fmt.Errorf("the current context of the kubeconfig: %w", err)
		}
		return at, nil
	}
	s, err := openSignedIn(host, authority)
	if err != nil {
		return nil, err
	}
	kept, err := s.currentKey(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("you are not signed in at %s; use platform login %s", host, host)
	}
	return &platformClient{base: s.server, client: s.client, key: kept.Key}, err
}

// clientFor returns the platform that a kubeconfig reaches.
func clientFor(config *rest.Config) (*platformClient, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &platformClient{base: strings.TrimSuffix(config.Host, "/"), client: newRepeatingClient(client, nil)}, nil
}

// send sends a request to a path below the base address. The body is JSON, unless the header names another type; nil
// means no body. It prints the warnings of the response.
func (r *platformClient) send(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(request.Header, header)
	if r.key != "" {
		request.Header.Set("Authorization", "Bearer "+r.key)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the platform: %w", err)
	}
	warnings, _ := utilnet.ParseWarningHeaders(response.Header.Values("Warning"))
	for _, warning := range warnings {
		output.Warn(os.Stderr, "%s", warning.Text)
	}
	return response, nil
}

// describe returns the identity as text.
func describe(status model.SelfStatus) []byte {
	kind, name, _ := strings.Cut(status.UID, ":")
	text := fmt.Appendf(nil, "%-10s %s\n", strings.ToUpper(kind[:1])+kind[1:], name)
	text = fmt.Appendf(text, "%-10s %s\n", "Groups", cmp.Or(strings.Join(status.Groups, ", "), "none"))
	if status.AccessKey != "" {
		text = fmt.Appendf(text, "%-10s %s (%s)\n", "Access key", status.AccessKey, cmp.Or(status.AccessKeyType, model.AccessKeyTypeUser))
	}
	if status.AccessKeyScope != nil {
		text = fmt.Appendf(text, "%-10s %s\n", "Scope", "limited; use -o yaml to see it")
	}
	return text
}
