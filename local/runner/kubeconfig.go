package runner

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/shared/model/secret"
)

// writeKubeconfig writes a kubeconfig with one cluster, user and context. Without a bearer the user has no credential.
func writeKubeconfig(file, server string, trusted trust, bearer secret.String) error {
	const name = "platform"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: trusted.authorities, TLSServerName: trusted.name}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: bearer.Reveal()}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return atomicfile.Write(file, text)
}
