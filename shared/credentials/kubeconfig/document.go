package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"management.platform.sh/shared/model/secret"
)

// document is the content of a kubeconfig.
type document struct {
	// entry is the name of the cluster, the user and the context. It distinguishes virtual clusters in a KUBECONFIG of several
	// files.
	entry string
	// server is the URL of the API. It is never empty.
	server string
	// ca is the certificate authority that verifies the server, in PEM. Empty: the certificate authorities of the client's system
	// verify it.
	ca []byte
	// token is the bearer token. If it is empty, certificate and key are the client's certificate and private key in PEM.
	token       secret.String
	certificate []byte
	key         secret.String
}

// render returns the kubeconfig, byte for byte as the library of Kubernetes writes it. It writes the lines itself: the form of
// these kubeconfigs is fixed, and a general encoder and decoder of YAML take more time than the rest of a request. A test
// compares the text with the library's text. Source: ADR-0026.
func (d document) render() string {
	var text strings.Builder
	text.Grow(1024 + base64.StdEncoding.EncodedLen(len(d.ca)) + base64.StdEncoding.EncodedLen(len(d.certificate)+len(d.key)))
	add := func(field, value string) {
		if value != "" {
			text.WriteString("    " + field + ": " + value + "\n")
		}
	}
	text.WriteString("apiVersion: v1\nclusters:\n- cluster:\n")
	add("certificate-authority-data", base64.StdEncoding.EncodeToString(d.ca))
	add("server", scalar(d.server))
	entry := scalar(d.entry)
	text.WriteString("  name: " + entry + "\ncontexts:\n- context:\n")
	add("cluster", entry)
	add("user", entry)
	text.WriteString("  name: " + entry + "\ncurrent-context: " + entry + "\nkind: Config\nusers:\n- name: " + entry + "\n  user:\n")
	add("client-certificate-data", base64.StdEncoding.EncodeToString(d.certificate))
	add("client-key-data", base64.StdEncoding.EncodeToString([]byte(d.key.Reveal())))
	if d.token != "" {
		add("token", scalar(d.token.Reveal()))
	}
	return text.String()
}

// scalar returns a text as a value that YAML reads as this text. The value is plain if the text begins with a letter, is longer
// than the words with a meaning, and has no blank and no colon at its end; URLs and tokens are such texts. Otherwise the value is
// quoted.
func scalar(text string) string {
	switch {
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }):
		// A JSON string is valid YAML. Marshaling a string cannot fail.
		quoted, _ := json.Marshal(text)
		return string(quoted)
	case len(text) > len("false") && 'a' <= text[0]|0x20 && text[0]|0x20 <= 'z' && !strings.HasSuffix(text, ":"):
		return text
	default:
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
}
