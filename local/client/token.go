// Package client has the commands that users run besides kubectl. Some sign in and manage access keys, some are
// credential plugins of kubectl, and one requests the kubeconfig of a virtual cluster. All of them only use the API.
// Source: Spec 2.4, 5.3; ADR-0012.
package client

import (
	"bytes"
	"cmp"
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

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// Token is a credential plugin of kubectl. It prints a direct cluster endpoint token, caches it and renews it in time, so
// that no kubeconfig holds a secret. Source: Spec 2.4, 5.3; ADR-0012.
type Token struct {
	Server string `required:"" env:"PLATFORM_SERVER" placeholder:"HOST" help:"The platform: HOST, or https://HOST/kubernetes/management."`
	authorityFlag
	Key       secret.String `name:"key" env:"PLATFORM_ACCESS_KEY" hidden:"" help:"The access key."`
	KeyFile   string        `placeholder:"FILE" help:"File with the access key. Absent: the key in PLATFORM_ACCESS_KEY, else the key of platform login."`
	CI        bool          `name:"ci" help:"Exchange the token of the job for an access key, as platform login --ci does, and renew the key in time."`
	TokenFile string        `placeholder:"FILE" help:"With --ci: file with the token of the job."`
	Rule      string        `placeholder:"NAME" help:"With --ci: the trust rule. Absent: the only rule that matches."`
	Audience  string        `placeholder:"TEXT" help:"With --ci: audience of the token that GitHub Actions is asked for. Absent: https://HOST."`
	TTL       time.Duration `name:"ttl" default:"1h" placeholder:"DURATION" help:"Lifetime of a token, in whole seconds (${default}). The platform may shorten it."`
	Cluster   names         `placeholder:"NAME" help:"Connected cluster that the token is for. Can be repeated. Absent: every cluster that the access key reaches."`
	Virtual   virtualNames  `name:"virtual-cluster" placeholder:"PROJECT/NAME" help:"Virtual cluster that the token is for. Can be repeated."`
	Cache     string        `placeholder:"DIR" help:"Folder for cached tokens. Absent: the cache folder of the user."`

	Version string `kong:"-"`

	now    func() time.Time
	output io.Writer
	warn   io.Writer
}

// names are the values of a flag that can be repeated. An empty one is refused, so that an unset variable does not result in a credential for
// everything.
type names []string

// Decode adds the names in one flag, separated by commas.
func (n *names) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("NAME", &text); err != nil {
		return err
	}
	for name := range strings.SplitSeq(text, ",") {
		if name == "" {
			return errors.New("empty name; omit the flag if it is not to limit the credential")
		}
		*n = append(*n, name)
	}
	return nil
}

// virtualNames are virtual clusters. Each has a project and a name.
type virtualNames []model.ScopeVirtualCluster

// Decode adds the virtual clusters in one flag, separated by commas.
func (n *virtualNames) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("PROJECT/NAME", &text); err != nil {
		return err
	}
	for each := range strings.SplitSeq(text, ",") {
		project, name, found := strings.Cut(each, "/")
		if !found || project == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("invalid virtual cluster %q: use PROJECT/NAME", each)
		}
		*n = append(*n, model.ScopeVirtualCluster{Project: project, VirtualCluster: name})
	}
	return nil
}

const (
	tokenTimeout = 30 * time.Second
	// execInfo is the variable in which kubectl describes its expectations of a plugin.
	execInfo = "KUBERNETES_EXEC_INFO"
)

// cachedToken is a cached token, as it is stored.
type cachedToken struct {
	Token   string    `json:"token"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// isValid reports whether a token can be given out: it has not expired. isFresh reports whether it need not be renewed: more
// than a fifth of its lifetime is left.
func (k cachedToken) isValid(now time.Time) bool { return k.Token != "" && now.Before(k.Expires) }
func (k cachedToken) isFresh(now time.Time) bool {
	return k.isValid(now) && !now.Before(k.Issued) && k.Expires.Sub(now) > k.Expires.Sub(k.Issued)/5
}

// refusedError means that the platform refuses a token.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// Run prints an ExecCredential. A token that is young enough comes from the cache. If the platform cannot be reached,
// any cached token that has not expired is used, with a warning. If the platform refuses the access key, the cached
// token is removed.
func (c *Token) Run(ctx context.Context) error {
	if c.now == nil {
		c.now, c.output, c.warn = time.Now, os.Stdout, os.Stderr
	}
	if err := checkExecInfo(os.Getenv(execInfo)); err != nil {
		return err
	}
	endpoint, bearer, client, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	file, err := c.cacheFile(endpoint, bearer)
	if err != nil {
		return err
	}
	cached := readKept(file)
	if !cached.isFresh(c.now()) {
		fresh, err := c.ask(ctx, client, endpoint, bearer)
		switch refused := (*refusedError)(nil); {
		case err == nil:
			cached = fresh
			if err := writeKept(file, cached); err != nil {
				output.Warn(c.warn, "caching the token: %v", err)
			}
		case errors.As(err, &refused):
			_ = os.Remove(file)
			return err
		case cached.isValid(c.now()):
			output.Warn(c.warn, "using a cached token that expires at %s: %v", cached.Expires.Format(time.RFC3339), err)
		default:
			return err
		}
	}
	return printCredential(c.output, cached.Token, cached.Expires)
}

// printCredential prints the credential for kubectl. Until is when kubectl asks again; the zero time means never.
func printCredential(out io.Writer, token string, until time.Time) error {
	status := &clientauthenticationv1.ExecCredentialStatus{Token: token}
	if !until.IsZero() {
		status.ExpirationTimestamp = &metav1.Time{Time: until}
	}
	return json.NewEncoder(out).Encode(clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status:   status,
	})
}

// checkExecInfo refuses a version of the plugin protocol that this command does not speak. Without kubectl the text is
// empty.
func checkExecInfo(text string) error {
	if text == "" {
		return nil
	}
	var asked metav1.TypeMeta
	if err := json.Unmarshal([]byte(text), &asked); err != nil {
		return fmt.Errorf("%s is not a JSON object", execInfo)
	}
	if want := clientauthenticationv1.SchemeGroupVersion.String(); asked.APIVersion != want {
		return fmt.Errorf("unsupported apiVersion %q of the credential plugin in the kubeconfig; use %s", asked.APIVersion, want)
	}
	return nil
}

// prepare checks the flags. The access key is sent over TLS only, or to this machine.
func (c *Token) prepare(ctx context.Context) (endpoint string, bearer secret.String, client *http.Client, err error) {
	server, err := addressOf(c.Server)
	if err != nil {
		return "", "", nil, fmt.Errorf("--server: %w", err)
	}
	if client, err = connect(cmp.Or(c.Authority, keptAuthority(server))); err != nil {
		return "", "", nil, err
	}
	endpoint = server + "/apis/" + model.SchemeGroupVersion.String() + "/directclusterendpointtokens"
	if c.TTL < 0 || c.TTL%time.Second != 0 {
		return "", "", nil, errors.New("--ttl: must be a whole number of seconds, at least 0s")
	}
	if err := needsCI(c.CI, c.Rule, c.TokenFile, c.Audience); err != nil {
		return "", "", nil, err
	}
	bearer = c.Key
	if c.CI {
		folder, err := c.cacheFolder()
		if err != nil {
			return "", "", nil, err
		}
		bearer, err = (&job{server: server, audience: c.Audience, rule: c.Rule, file: c.TokenFile, client: client, now: c.now}).cachedKey(ctx, folder)
		return endpoint, bearer, client, err
	}
	if c.KeyFile != "" {
		content, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return "", "", nil, fmt.Errorf("--key-file: %w", err)
		}
		bearer = secret.String(strings.TrimSpace(string(content)))
	} else if bearer == "" {
		s, err := openSignedIn(c.Server, c.Authority)
		if err != nil {
			return "", "", nil, err
		}
		s.now, s.warn = c.now, c.warn
		kept, err := s.currentKey(ctx)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", "", nil, fmt.Errorf("the access key of platform login: %w", err)
		}
		bearer = secret.String(kept.Key)
	}
	if bearer == "" {
		return "", "", nil, fmt.Errorf("no access key: sign in with platform login %s, use --key-file or set PLATFORM_ACCESS_KEY", c.Server)
	}
	return endpoint, bearer, client, nil
}

// connect returns a client. Authority is the file of the platform's certificate authority; empty: the system's
// authorities.
func connect(authority string) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		content, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("--certificate-authority: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(content) {
			return nil, errors.New("--certificate-authority: the file has no certificate in PEM")
		}
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: settings, ForceAttemptHTTP2: true}
	return newRepeatingClient(&http.Client{
		Timeout:       tokenTimeout,
		Transport:     authorityAdviser{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil), nil
}

// authorityAdviser adds to the error about a certificate of an unknown authority how to name the authority.
type authorityAdviser struct{ http.RoundTripper }

func (a authorityAdviser) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(request)
	if wrong := (x509.UnknownAuthorityError{}); errors.As(err, &wrong) {
		err = fmt.Errorf("%w; name the file of the platform's authority with --certificate-authority (platform serve has it in its data folder, as ca.crt)", err)
	}
	return response, err
}

// isPlatformURL reports whether an address may be the address of a platform: with TLS, or on this machine, and without a query
// or fragment.
func isPlatformURL(address *url.URL) bool {
	return address.Host != "" && address.RawQuery == "" && address.User == nil &&
		(address.Scheme == "https" || address.Scheme == "http" && onThisMachine(address.Hostname()))
}

func onThisMachine(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// cacheFolder returns the folder of the cache, and creates it.
func (c *Token) cacheFolder() (string, error) {
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
	return folder, nil
}

// cacheFile returns the file in which the token for these flags is cached. Another key, scope or lifetime has another
// file.
func (c *Token) cacheFile(endpoint string, bearer secret.String) (string, error) {
	folder, err := c.cacheFolder()
	if err != nil {
		return "", err
	}
	question, err := json.Marshal([]any{endpoint, bearer.Reveal(), c.TTL, c.Cluster, c.Virtual})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(question)
	return filepath.Join(folder, hex.EncodeToString(sum[:])+".json"), nil
}

// readKept returns the token in a file. It returns no token if the file is missing or unreadable, or if other users can
// read or write it.
func readKept(file string) cachedToken {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return cachedToken{}
	}
	text, err := os.ReadFile(file)
	var kept cachedToken
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return cachedToken{}
	}
	return kept
}

// writeKept replaces a file with a token as a whole. Several plugins may do so at once: each writes a temporary file of
// its own.
func writeKept(file string, kept cachedToken) error {
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

// ask requests a token from the platform. A refusedError is final.
func (c *Token) ask(ctx context.Context, client *http.Client, endpoint string, bearer secret.String) (cachedToken, error) {
	object := model.DirectClusterEndpointToken{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "DirectClusterEndpointToken"},
		Spec:     model.DirectClusterEndpointTokenSpec{TTLSeconds: int64(c.TTL / time.Second)},
	}
	if len(c.Cluster)+len(c.Virtual) > 0 {
		object.Spec.Scope = &model.Scope{VirtualClusters: c.Virtual}
		for _, name := range c.Cluster {
			object.Spec.Scope.Clusters = append(object.Spec.Scope.Clusters, model.ScopeCluster{Cluster: name})
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return cachedToken{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return cachedToken{}, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer.Reveal())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "platform-token/"+c.Version)
	start := c.now()
	response, err := client.Do(request)
	if err != nil {
		return cachedToken{}, fmt.Errorf("requesting a token: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, refusal, err := readAnswer(response)
	if err != nil {
		return cachedToken{}, fmt.Errorf("requesting a token: %w", err)
	}
	if refusal != "" {
		if code := response.StatusCode; code < http.StatusInternalServerError && code != http.StatusTooManyRequests {
			return cachedToken{}, &refusedError{"no token: " + refusal}
		}
		return cachedToken{}, fmt.Errorf("requesting a token: %s", refusal)
	}
	var answer model.DirectClusterEndpointToken
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status.Token == "" || answer.Status.ExpirationTimestamp == nil {
		return cachedToken{}, errors.New("requesting a token: the answer has no token")
	}
	return cachedToken{Token: answer.Status.Token, Issued: start, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}
