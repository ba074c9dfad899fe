package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/shared/model/secret"
)

// entry is the name of the cluster, the user and the context. Source: ADR-0017.
const entry = "vcluster"

// document is the content of a kubeconfig.
type document struct {
	server string
	// ca verifies the server, in PEM. Empty: the authorities of the client's system do.
	ca []byte
	// token is the bearer; or certificate and key are the client's pair in PEM.
	token       secret.String
	certificate []byte
	key         secret.String
}

// render returns the kubeconfig, after reading it again as a client would.
func (d document) render() (string, error) {
	user := &clientcmdapi.AuthInfo{Token: d.token.Reveal()}
	if d.key != "" {
		user = &clientcmdapi.AuthInfo{ClientCertificateData: d.certificate, ClientKeyData: []byte(d.key.Reveal())}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[entry] = &clientcmdapi.Cluster{Server: d.server, CertificateAuthorityData: d.ca}
	config.AuthInfos[entry] = user
	config.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry}
	config.CurrentContext = entry
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	if err := d.check(text); err != nil {
		return "", fmt.Errorf("reading the kubeconfig that was written: %w", err)
	}
	return string(text), nil
}

// check reads a kubeconfig as a client does, and compares what a client uses. Its errors quote nothing.
func (d document) check(text []byte) error {
	config, err := clientcmd.Load(text)
	if err != nil {
		return errors.New("it cannot be parsed")
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return errors.New("a client cannot use it")
	}
	if client.Host != d.server || client.BearerToken != d.token.Reveal() || client.Insecure || client.ExecProvider != nil ||
		!bytes.Equal(client.CAData, d.ca) || !bytes.Equal(client.CertData, d.certificate) || string(client.KeyData) != d.key.Reveal() {
		return errors.New("it differs from what was written")
	}
	return nil
}
