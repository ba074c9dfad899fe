package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
)

// WhoAmI prints who a credential acts as. It asks the platform, so that it shows what the credential has now. Source: Spec 5; ADR-0031.
type WhoAmI struct {
	Host      string `arg:"" optional:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login. Absent: that of the current context of the kubeconfig, with its credential."`
	Authority string `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the ones that the system trusts."`
	Output    string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	// Out is where it prints. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

// Run asks the platform and prints its answer.
func (c *WhoAmI) Run(ctx context.Context) error {
	base, client, key, err := target(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	endpoint := base + selves
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking the platform: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, refusal, err := readAnswer(response)
	switch {
	case err != nil:
		return fmt.Errorf("asking the platform: %w", err)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s is not a platform", strings.TrimSuffix(endpoint, selves))
	case refusal != "":
		return fmt.Errorf("the platform refuses the credential: %s", refusal)
	}
	var self model.Self
	if err := json.Unmarshal(text, &self); err != nil || self.Status.UID == "" {
		return fmt.Errorf("%s gave no answer of a platform", strings.TrimSuffix(endpoint, selves))
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

// target returns the base address of a platform, a client that reaches it, and the key of the sign-in there. Without a host it is the
// platform of the current context of the kubeconfig, and the client sends its credential: key is empty. A key that ends soon is renewed, if
// the sign-in has a refresh token.
func target(ctx context.Context, host, authority string) (base string, client *http.Client, key string, err error) {
	if host == "" {
		config, err := currentContext()
		if err != nil {
			return "", nil, "", fmt.Errorf("name a HOST, or use a kubeconfig: %w", err)
		}
		if client, err = rest.HTTPClientFor(config); err != nil {
			return "", nil, "", fmt.Errorf("the current context of the kubeconfig: %w", err)
		}
		return strings.TrimSuffix(config.Host, "/"), client, "", nil
	}
	server, folder, err := platformOf(host)
	if err != nil {
		return "", nil, "", err
	}
	endpoint, client, err := connect(server, authority, "selves")
	if err != nil {
		return "", nil, "", err
	}
	kept, err := (&signedIn{host: host, server: server, folder: folder, client: client, now: time.Now, warn: os.Stderr}).present(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, "", fmt.Errorf("you are not signed in at %s; use platform login %s", host, host)
	}
	return strings.TrimSuffix(endpoint, selves), client, kept.Key, err
}

// describe returns what people read.
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
