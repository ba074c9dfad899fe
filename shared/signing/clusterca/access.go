package clusterca

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model/secret"
)

// Access says how to reach the API of a virtual cluster. It has the accepted parts of a kubeconfig that a user sends,
// and names no files and no programs.
type Access struct {
	// Server is the URL, with scheme https.
	Server string
	// ServerName is the name in the certificate of the server. Empty: the host of Server.
	ServerName string
	// CA verifies the server's certificate, in PEM. Empty: the system's certificate authorities verify it.
	CA []byte
	// Certificate and Key are the client's key pair in PEM. Token is the client's bearer token, if there is no key
	// pair.
	Certificate []byte
	Key         []byte
	Token       secret.String
}

// The supported part of a kubeconfig. Any other field of a cluster or user is refused.
type (
	kubeconfig struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`

		Clusters []struct {
			Name    string         `json:"name"`
			Cluster map[string]any `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			Name string         `json:"name"`
			User map[string]any `json:"user"`
		} `json:"users"`
		Contexts []struct {
			Name    string `json:"name"`
			Context struct {
				Cluster string `json:"cluster"`
				User    string `json:"user"`
			} `json:"context"`
		} `json:"contexts"`
		Current string `json:"current-context"`
	}
	namedConfig struct {
		kind, name string
		fields     map[string]any
	}
)

// The supported fields of a cluster and of a user in a kubeconfig, and the reasons why others are refused.
var (
	clusterFields = []string{"server", "certificate-authority-data", "tls-server-name"}
	userFields    = []string{"token", "client-certificate-data", "client-key-data"}
	refusals      = map[string]string{ //nolint:gosec // names of fields, and no credentials
		"exec":                     "would run a program",
		"auth-provider":            "would run a plugin",
		"tokenFile":                "names a file; use token",
		"certificate-authority":    "names a file; use certificate-authority-data",
		"client-certificate":       "names a file; use client-certificate-data",
		"client-key":               "names a file; use client-key-data",
		"insecure-skip-tls-verify": "would trust any server",
		"proxy-url":                "would send requests elsewhere",
		"username":                 "is no credential that clusters still take",
		"password":                 "is no credential that clusters still take",
	}
)

// ParseAccess reads a kubeconfig that a user sends and that is not trusted: it may name a server with TLS and hold a
// token or a client certificate, and nothing else. Errors describe the mistake and quote no secret. Source: ADR-0017.
func ParseAccess(text string) (*Access, error) {
	var config kubeconfig
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		// The error of the parser quotes the text.
		return nil, errors.New("is not a kubeconfig in YAML or JSON")
	}
	if config.Kind != "" && config.Kind != "Config" || config.APIVersion != "" && config.APIVersion != "v1" {
		return nil, errors.New("must have kind Config and apiVersion v1")
	}
	cluster, user, err := config.current()
	if err != nil {
		return nil, err
	}
	server, err := cluster.text("server")
	if err != nil {
		return nil, err
	}
	access := &Access{Server: server}
	if access.ServerName, err = cluster.text("tls-server-name"); err != nil {
		return nil, err
	}
	if access.CA, err = cluster.data("certificate-authority-data"); err != nil {
		return nil, err
	}
	if len(access.CA) > 0 {
		if _, err := ParseCertificates(access.CA); err != nil {
			return nil, fmt.Errorf("certificate-authority-data of the cluster %w", err)
		}
	}
	token, err := user.text("token")
	if err != nil {
		return nil, err
	}
	access.Token = secret.String(token)
	if access.Certificate, err = user.data("client-certificate-data"); err != nil {
		return nil, err
	}
	if access.Key, err = user.data("client-key-data"); err != nil {
		return nil, err
	}
	return access, access.check()
}

// current returns the cluster and the user of the current context.
func (k *kubeconfig) current() (cluster, user namedConfig, err error) {
	var clusterName, userName string
	isKnown := false
	for _, each := range k.Contexts {
		if each.Name == k.Current && k.Current != "" {
			clusterName, userName, isKnown = each.Context.Cluster, each.Context.User, true
		}
	}
	if !isKnown {
		return namedConfig{}, namedConfig{}, errors.New("has no context with the name in current-context")
	}
	for _, each := range k.Clusters {
		if each.Name == clusterName {
			cluster = namedConfig{"cluster", each.Name, each.Cluster}
		}
	}
	for _, each := range k.Users {
		if each.Name == userName {
			user = namedConfig{"user", each.Name, each.User}
		}
	}
	if cluster.fields == nil || user.fields == nil {
		return namedConfig{}, namedConfig{}, errors.New("lacks the cluster or the user of its current context")
	}
	if err := cluster.allow(clusterFields); err != nil {
		return namedConfig{}, namedConfig{}, err
	}
	return cluster, user, user.allow(userFields)
}

// allow refuses fields that are not supported.
func (n namedConfig) allow(supported []string) error {
	for field := range n.fields {
		// Extensions are notes of other programs.
		if slices.Contains(supported, field) || field == "extensions" {
			continue
		}
		why, dangerous := refusals[field]
		if !dangerous {
			why = "is not supported; use " + strings.Join(supported, ", ")
		}
		return fmt.Errorf("%s of the %s %s", quoteShort(field), n.kind, why)
	}
	return nil
}

func quoteShort(text string) string { return fmt.Sprintf("%.64q", text) }

func (n namedConfig) text(field string) (string, error) {
	value, given := n.fields[field]
	text, ok := value.(string)
	if given && !ok {
		return "", fmt.Errorf("%s of the %s must be a string", field, n.kind)
	}
	return text, nil
}

func (n namedConfig) data(field string) ([]byte, error) {
	text, err := n.text(field)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s of the %s is not base64", field, n.kind)
	}
	return data, nil
}

func (a *Access) check() error {
	if err := CheckServer(a.Server); err != nil {
		return fmt.Errorf("server of the cluster %w", err)
	}
	if strings.ContainsFunc(a.Token.Reveal(), func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errors.New("token of the user must be printable ASCII without blanks")
	}
	switch hasPair := len(a.Certificate) > 0 || len(a.Key) > 0; {
	case hasPair && a.Token != "":
		return errors.New("has a token and a client certificate; use one of them")
	case hasPair:
		if _, err := tls.X509KeyPair(a.Certificate, a.Key); err != nil {
			return errors.New("client-certificate-data and client-key-data of the user are not a pair in PEM")
		}
	case a.Token == "":
		return errors.New("has neither a token nor a client certificate")
	}
	return nil
}

// CheckServer returns an error for the URL of an API server that is not https, has no host, or has a user, a query or a
// fragment.
func CheckServer(text string) error {
	server, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("must be a URL such as https://host:port")
	case err != nil:
		return errors.New("is not a valid URL such as https://host:port")
	case server.Scheme != "https":
		return errors.New("must have the scheme https")
	case server.User != nil:
		return errors.New("must not have a user or a password")
	case server.Fragment != "" || strings.HasSuffix(text, "#"):
		return errors.New("must not have a fragment")
	case server.RawQuery != "" || server.ForceQuery:
		return errors.New("must not have a query")
	}
	if err := checkHost(server.Host); err != nil {
		return err
	}
	// Clients format the URL again, and would then request another path.
	if _, rest, _ := strings.Cut(text, ":"); "https:"+rest != server.String() {
		return errors.New("must have a percent-encoded path")
	}
	return nil
}

// CheckHost returns an error for a host, with or without a port, that is not valid.
func CheckHost(host string) error {
	parsed, err := url.Parse("https://" + host)
	if err != nil || parsed.Host != host || parsed.Path != "" {
		return errors.New("must be a host name or an address, with a port where it is not 443")
	}
	return checkHost(host)
}

// maxHost is the longest name of a host, as in DNS.
const maxHost = 253

func checkHost(host string) error {
	parsed := url.URL{Host: host}
	name, port := parsed.Hostname(), parsed.Port()
	if port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number < 1 {
			return errors.New("must have a port from 1 to 65535")
		}
	} else if strings.HasSuffix(host, ":") {
		return errors.New("must have a port after the colon")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	if name == "" || strings.HasPrefix(host, "[") {
		return errors.New("must have a host")
	}
	if len(name) > maxHost {
		return fmt.Errorf("must have a host of at most %d characters", maxHost)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(c rune) bool {
				return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
			}) {
			return errors.New("must have a host of letters, digits, dashes and dots")
		}
	}
	return nil
}
