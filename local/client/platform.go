package client

import (
	"context"
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
)

// platformAddress is the platform that a command asks, as arguments and flags.
type platformAddress struct {
	Host string `arg:"" optional:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login. Absent: the platform of the current context of the kubeconfig, with its credential."`
	authorityFlag
}

// authorityFlag is the flag with the certificate authority of a platform.
type authorityFlag struct {
	Authority string `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the authority of platform login, else the system's authorities."`
}

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
