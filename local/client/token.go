// Package client has what users of a platform run beside kubectl.
package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// Token is a credential plugin of kubectl: it prints a direct cluster endpoint token, which it keeps and renews in
// time, so that no kubeconfig holds a secret. Source: Spec 2.4, 5.3; ADR-0012.
type Token struct {
	Server    string        `required:"" env:"PLATFORM_SERVER" placeholder:"URL" help:"Base address of the platform's API: https://HOST/kubernetes/management."`
	Authority string        `name:"certificate-authority" placeholder:"FILE" help:"Certificate authority of the platform (the system's)."`
	Key       secret.String `name:"key" env:"PLATFORM_ACCESS_KEY" hidden:"" help:"The access key."`
	KeyFile   string        `placeholder:"FILE" help:"File with the access key; or PLATFORM_ACCESS_KEY holds it."`
	TTL       time.Duration `name:"ttl" default:"1h" placeholder:"DURATION" help:"Life of a token, in whole seconds (${default}). The platform may make it shorter."`
	Cluster   clusterNames  `placeholder:"NAME" help:"Connected cluster that the token is for, may be repeated; absent: all that the access key reaches."`
	Cache     string        `placeholder:"DIR" help:"Folder for tokens that are in use (the user's cache folder)."`

	// Version is that of this program.
	Version string `kong:"-"`

	now    func() time.Time
	output io.Writer
	warn   io.Writer
}

// clusterNames are names of clusters. An empty one is refused: a variable that was forgotten must not make a token
// for everything.
type clusterNames []string

// Decode adds the names of one flag, which commas separate.
func (n *clusterNames) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("NAME", &text); err != nil {
		return err
	}
	for name := range strings.SplitSeq(text, ",") {
		if name == "" {
			return errors.New("a name of a cluster is empty; leave the flag out for all that the access key reaches")
		}
		*n = append(*n, name)
	}
	return nil
}

const (
	// tokenTimeout bounds a request for a token.
	tokenTimeout = 30 * time.Second
	// maxTokenAnswer is the largest answer, in bytes.
	maxTokenAnswer = 1 << 20
	// execInfo is the variable in which kubectl says what it expects of a plugin.
	execInfo = "KUBERNETES_EXEC_INFO"
)

// keptToken is a token that is in use, as it lies in the cache.
type keptToken struct {
	Token   string    `json:"token"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// good tells whether a token may be given out: it is not over. Young tells that there is no need for another: more than a
// fifth of its life is left.
func (k keptToken) good(now time.Time) bool { return k.Token != "" && now.Before(k.Expires) }
func (k keptToken) young(now time.Time) bool {
	return k.good(now) && !now.Before(k.Issued) && k.Expires.Sub(now) > k.Expires.Sub(k.Issued)/5
}

// refusedError is an answer that says that there will be no token.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// Run prints an ExecCredential. A token that is young enough comes from the cache. When the platform cannot be reached, one
// that is not over does, too, with a warning; when it refuses the access key, what is in the cache is removed.
func (c *Token) Run(ctx context.Context) error {
	if c.now == nil {
		c.now, c.output, c.warn = time.Now, os.Stdout, os.Stderr
	}
	if err := checkExecInfo(os.Getenv(execInfo)); err != nil {
		return err
	}
	endpoint, bearer, client, err := c.prepare()
	if err != nil {
		return err
	}
	file, err := c.cacheFile(endpoint, bearer)
	if err != nil {
		return err
	}
	kept := readKept(file)
	if !kept.young(c.now()) {
		fresh, err := c.ask(ctx, client, endpoint, bearer)
		switch refused := (*refusedError)(nil); {
		case err == nil:
			kept = fresh
			if err := writeKept(file, kept); err != nil {
				_, _ = fmt.Fprintln(c.warn, "platform token: the token is not kept:", err)
			}
		case errors.As(err, &refused):
			_ = os.Remove(file)
			return err
		case kept.good(c.now()):
			_, _ = fmt.Fprintf(c.warn, "platform token: using a token that ends at %s: %v\n", kept.Expires.Format(time.RFC3339), err)
		default:
			return err
		}
	}
	return json.NewEncoder(c.output).Encode(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   &clientauthenticationv1.ExecCredentialStatus{Token: kept.Token, ExpirationTimestamp: &metav1.Time{Time: kept.Expires}},
	})
}

// checkExecInfo refuses to answer a question that is not understood. Without kubectl there is none.
func checkExecInfo(text string) error {
	if text == "" {
		return nil
	}
	var asked metav1.TypeMeta
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return fmt.Errorf("%s: it is no JSON object", execInfo)
	}
	if want := clientauthenticationv1.SchemeGroupVersion.String(); asked.APIVersion != want {
		return fmt.Errorf("the kubeconfig asks for apiVersion %q of the plugin; it must say %s", asked.APIVersion, want)
	}
	return nil
}

// prepare checks the flags. The key is only ever sent to where it is encrypted, or to this machine.
func (c *Token) prepare() (endpoint string, bearer secret.String, client *http.Client, err error) {
	parsed, err := url.Parse(c.Server)
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.User != nil ||
		parsed.Scheme != "https" && (parsed.Scheme != "http" || !onThisMachine(parsed.Hostname())) {
		return "", "", nil, errors.New("--server: must be an https URL such as https://platform.example/kubernetes/management")
	}
	if c.TTL < 0 || c.TTL%time.Second != 0 {
		return "", "", nil, errors.New("--ttl: must be whole seconds and not negative")
	}
	bearer = c.Key
	if c.KeyFile != "" {
		content, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return "", "", nil, fmt.Errorf("--key-file: %w", err)
		}
		bearer = secret.String(strings.TrimSpace(string(content)))
	}
	if bearer == "" {
		return "", "", nil, errors.New("no access key: give --key-file, or set PLATFORM_ACCESS_KEY")
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Authority != "" {
		content, err := os.ReadFile(c.Authority)
		if err != nil {
			return "", "", nil, fmt.Errorf("--certificate-authority: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(content) {
			return "", "", nil, errors.New("--certificate-authority: the file has no certificate")
		}
	}
	client = &http.Client{
		Timeout:       tokenTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return strings.TrimSuffix(c.Server, "/") + "/apis/" + model.SchemeGroupVersion.String() + "/directclusterendpointtokens", bearer, client, nil
}

func onThisMachine(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// cacheFile is where the token for these flags is kept. What is asked for with another key or scope is another token.
func (c *Token) cacheFile(endpoint string, bearer secret.String) (string, error) {
	folder := c.Cache
	if folder == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("--cache: %w", err)
		}
		folder = filepath.Join(base, "management.platform.sh", "tokens")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("--cache: %w", err)
	}
	question, err := json.Marshal([]any{endpoint, bearer.Reveal(), c.TTL, c.Cluster})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(question)
	return filepath.Join(folder, hex.EncodeToString(sum[:])+".json"), nil
}

// readKept returns the token in a file; none where there is none, it cannot be read, or others could have read or
// written it.
func readKept(file string) keptToken {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return keptToken{}
	}
	text, err := os.ReadFile(file)
	var kept keptToken
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return keptToken{}
	}
	return kept
}

// writeKept puts a token into a file as a whole. Several plugins may do so at once: each has a file of its own until then.
func writeKept(file string, kept keptToken) error {
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "token-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

// ask asks the platform for a token. A refusedError says that it has decided.
func (c *Token) ask(ctx context.Context, client *http.Client, endpoint string, bearer secret.String) (keptToken, error) {
	object := model.DirectClusterEndpointToken{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "DirectClusterEndpointToken"},
		Spec:     model.DirectClusterEndpointTokenSpec{TTLSeconds: int64(c.TTL / time.Second)},
	}
	if len(c.Cluster) > 0 {
		object.Spec.Scope = &model.Scope{}
		for _, name := range c.Cluster {
			object.Spec.Scope.Clusters = append(object.Spec.Scope.Clusters, model.ScopeCluster{Cluster: name})
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return keptToken{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return keptToken{}, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer.Reveal())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "platform-token/"+c.Version)
	asked := c.now()
	response, err := client.Do(request)
	if err != nil {
		return keptToken{}, fmt.Errorf("asking for a token: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxTokenAnswer))
	if err != nil {
		return keptToken{}, fmt.Errorf("asking for a token: %w", err)
	}
	if response.StatusCode != http.StatusCreated {
		var status metav1.Status
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = response.Status
		}
		if code := response.StatusCode; code < http.StatusInternalServerError && code != http.StatusTooManyRequests {
			return keptToken{}, &refusedError{"no token: " + status.Message}
		}
		return keptToken{}, fmt.Errorf("asking for a token: %s", status.Message)
	}
	var answer model.DirectClusterEndpointToken
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status.Token == "" || answer.Status.ExpirationTimestamp == nil {
		return keptToken{}, errors.New("asking for a token: the answer has none")
	}
	return keptToken{Token: answer.Status.Token, Issued: asked, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}
