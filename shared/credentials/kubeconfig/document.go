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

// document is what stands in a kubeconfig.
type document struct {
	server string
	// ca is what the server is verified with, in PEM; empty: the authorities of the client's system.
	ca []byte
	// token is the bearer, or certificate and key the client's pair in PEM.
	token       secret.String
	certificate []byte
	key         secret.String
}

// render writes the kubeconfig, and reads it again as a client would.
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

// check reads a kubeconfig as a client does, and compares what matters. Its errors quote nothing.
func (d document) check(text []byte) error {
	config, err := clientcmd.Load(text)
	if err != nil {
		return errors.New("it is none")
	}
	client, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return errors.New("a client cannot use it")
	}
	if client.Host != d.server || client.BearerToken != d.token.Reveal() || client.Insecure || client.ExecProvider != nil ||
		!bytes.Equal(client.CAData, d.ca) || !bytes.Equal(client.CertData, d.certificate) || string(client.KeyData) != d.key.Reveal() {
		return errors.New("it says something else")
	}
	return nil
}
