package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/local/output"
	"management.platform.sh/shared/model/secret"
)

// Login signs a person in: at a connector of the platform with a browser, or with an access key that they have. It
// keeps the key in a file, and a context of the kubeconfig names that file. A job signs in with its own token. Source:
// ADR-0031, ADR-0036; RFC 8252.
type Login struct {
	Host      string        `arg:"" name:"host" placeholder:"HOST" help:"The platform: HOST, or https://HOST/kubernetes/management."`
	Authority string        `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the system's authorities."`
	Connector string        `xor:"way" placeholder:"ID" help:"Connector to sign in at. Absent: the only one."`
	Device    bool          `xor:"way" help:"Show a code to enter in a browser on another computer. This is the default over SSH, and on Linux without a display."`
	Browser   bool          `default:"true" negatable:"" help:"Open the browser. With --no-browser the address is only printed."`
	Port      uint16        `placeholder:"NUMBER" help:"Port of this computer to which the browser comes back, such as one that SSH forwards. Absent: any free port."`
	Timeout   time.Duration `default:"5m" placeholder:"DURATION" help:"How long to wait for the browser (${default})."`
	Username  string        `placeholder:"NAME" xor:"way" help:"Sign in as this user with a password, without a browser. The terminal asks for the password."`
	Password  bool          `name:"password-stdin" xor:"stdin" help:"Read the password of --username from standard input."`
	CI        bool          `name:"ci" xor:"way,stdin" help:"Exchange the token of a job for an access key: of GitHub Actions, GitLab CI or Kubernetes, or from PLATFORM_ID_TOKEN or PLATFORM_ID_TOKEN_FILE."`
	TokenFile string        `placeholder:"FILE" help:"With --ci: file with the token of the job."`
	Rule      string        `placeholder:"NAME" help:"With --ci: the trust rule. Absent: the only rule that matches."`
	Audience  string        `placeholder:"TEXT" help:"With --ci: audience of the token that GitHub Actions is asked for. Absent: https://HOST."`
	KeyStdin  bool          `name:"access-key-stdin" xor:"way,stdin" help:"Read an access key from standard input in place of using a browser."`
	Refresh   bool          `help:"Keep an access key of an hour, and a refresh token for the next one. The kubeconfig names platform credential, which renews it. Absent: a key that lives as long as the sign-in."`
	Output    string        `type:"path" short:"o" placeholder:"FILE" help:"Kubeconfig to add the platform to. Absent: the first existing file of KUBECONFIG, else its last file, else ~/.kube/config."`

	// Open opens an address in a browser. Nil: the system's browser.
	Open func(address string) error `kong:"-"`

	// Input is the standard input. Nil: the standard input of the process.
	Input io.Reader `kong:"-"`

	// Terminal asks the person for a text that is not shown. Nil: the terminal of the process asks.
	Terminal func(ctx context.Context, prompt string) (string, error) `kong:"-"`

	// Messages is the writer for messages to the person. Nil: the standard error of the process.
	Messages io.Writer `kong:"-"`
}

const (
	// loginClient is the client id of this program at the platform.
	loginClient = "platform-cli"
	// basePath is the path of the API below a host.
	basePath = "/kubernetes/management"
	// passwordID is the value of --connector for the page at which people type their password.
	passwordID = "password"
	// outOfBand is the redirect URI of a program that needs no browser.
	outOfBand = "urn:ietf:wg:oauth:2.0:oob"
)

// connector is a way to sign in, as describelogin serves it.
type connector struct {
	ID            string `json:"id"`
	DisplayName   string `json:"displayName"`
	Issuer        string `json:"issuer"`
	LoginEndpoint string `json:"loginEndpoint"`
	TokenEndpoint string `json:"tokenEndpoint"`
	// LogoutEndpoint is the address at which a browser ends the session at the provider.
	LogoutEndpoint string `json:"logoutEndpoint"`
}

// Run signs in, writes the key and adds a context to the kubeconfig. After an error nothing is written.
func (c *Login) Run(ctx context.Context) error {
	if err := needsCI(c.CI, c.Rule, c.TokenFile, c.Audience); err != nil {
		return err
	}
	server, folder, err := platformOf(c.Host)
	if err != nil {
		return err
	}
	file, err := destination(c.output())
	if err == nil && file == "" {
		err = errors.New("a context cannot be added to the standard output; name a file")
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	// Check the file first: no key is made for a file that cannot take it.
	if _, err := load(file); err != nil {
		return err
	}
	client, err := connect(c.Authority)
	if err != nil {
		return err
	}
	var authority []byte
	if c.Authority != "" {
		if authority, err = os.ReadFile(c.Authority); err != nil {
			return fmt.Errorf("--certificate-authority: %w", err)
		}
	}
	var credentials loginGrant
	switch {
	case c.Password && c.Username == "":
		err = errors.New("--password-stdin: name the user with --username")
	case c.Refresh && (c.KeyStdin || c.CI):
		err = errors.New("--refresh: the access key of a job, or one that you have, comes without a refresh token")
	case c.KeyStdin:
		credentials, err = c.loginWithAccessKey(ctx, client, server)
	case c.CI:
		credentials, err = c.loginAsJob(ctx, client, server, folder)
	case c.Username != "":
		credentials, err = c.loginWithPassword(ctx, client, server)
	default:
		credentials, err = c.ask(ctx, client, server)
	}
	if err == nil && c.Refresh && credentials.Refresh == "" {
		err = errors.New("--refresh: this platform gives no refresh tokens; sign in without the flag")
	}
	if err != nil {
		return err
	}
	if err := errors.Join(credentials.keep(folder), keepAuthority(folder, authority)); err != nil {
		return err
	}
	keyFile := filepath.Join(folder, loginKey)
	name, err := c.merge(ctx, server, authority, keyFile, file)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("You are signed in. The context %s of %s uses the access key in %s\n", name, file, keyFile)
	return err
}

// loginAsJob returns the access key of a job. A second sign-in with the same token finds the key in the folder of the
// platform: the token works once. It does not prompt.
func (c *Login) loginAsJob(ctx context.Context, client *http.Client, server, folder string) (loginGrant, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return loginGrant{}, fmt.Errorf("writing the access key: %w", err)
	}
	key, err := (&job{server: server, audience: c.Audience, rule: c.Rule, file: c.TokenFile, client: client, now: time.Now}).cachedKey(ctx, folder)
	return loginGrant{Key: key.Reveal()}, err
}

// output returns the path of the kubeconfig to write.
func (c *Login) output() string {
	if c.Output != "" {
		return c.Output
	}
	return mergeTarget("")
}

// loginKey is the name of the file with the access key of a sign-in, in the folder of its platform.
const loginKey = "access.key"

// platformOf returns the base address of the API at a host, and the folder for its key.
func platformOf(host string) (server, folder string, err error) {
	if server, err = addressOf(host); err != nil {
		return "", "", err
	}
	folder, err = folderOf(server)
	return server, folder, err
}

// addressOf returns the base address of the API at a host: HOST, HOST/PATH or a URL.
func addressOf(host string) (string, error) {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	address, err := url.Parse(host)
	if err != nil || !isPlatformURL(address) || address.Fragment != "" {
		return "", fmt.Errorf("invalid platform %q: use HOST, or https://HOST%s", host, basePath)
	}
	if address.Path = strings.TrimSuffix(address.Path, "/"); address.Path == "" {
		address.Path = basePath
	}
	return address.String(), nil
}

// folderOf returns the folder for the key of the platform with a base address.
func folderOf(server string) (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("the folder for the access key: %w", err)
	}
	return filepath.Join(config, "management.platform.sh", url.PathEscape(strings.ReplaceAll(shortAddress(server), ":", "_"))), nil
}

// shortAddress returns the base address of the API without its usual parts: the host, with the path if it is not the
// usual one.
func shortAddress(server string) string {
	_, short, _ := strings.Cut(server, "://")
	return strings.TrimSuffix(short, basePath)
}

// line returns the first line of the standard input, without its newline.
func (c *Login) line() (string, error) {
	input := cmp.Or[io.Reader](c.Input, os.Stdin)
	line, err := bufio.NewReader(io.LimitReader(input, 1<<16)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// password returns the password of the person: the line on the standard input, or the text that they type.
func (c *Login) password(ctx context.Context, server string) (string, error) {
	if c.Password {
		password, err := c.line()
		if err == nil && password == "" {
			err = errors.New("the standard input has no password")
		}
		return password, err
	}
	ask := c.Terminal
	if ask == nil {
		ask = c.askHidden
	}
	password, err := ask(ctx, "Password of "+c.Username+" at "+shortAddress(server)+": ")
	if err == nil && password == "" {
		err = errors.New("no password was typed")
	}
	return password, err
}

// askHidden asks for a text on the terminal of the process, which does not show the typed text.
func (c *Login) askHidden(ctx context.Context, prompt string) (string, error) {
	input := int(os.Stdin.Fd())
	before, err := term.GetState(input)
	if err != nil {
		return "", errors.New("--username: there is no terminal to ask for the password; use --password-stdin")
	}
	_, _ = fmt.Fprint(c.messages(), prompt)
	defer func() { _, _ = fmt.Fprintln(c.messages()) }()
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(input)
		typed <- line{text, err}
	}()
	select {
	case got := <-typed:
		if got.err != nil {
			return "", fmt.Errorf("reading the password: %w", got.err)
		}
		return string(got.text), nil
	case <-ctx.Done():
		// After an interrupt the terminal shows typed text again.
		return "", errors.Join(ctx.Err(), term.Restore(input, before))
	}
}

// loginWithPassword signs in with a password: the platform returns a code for it, which is exchanged as after a sign-in with
// a browser.
func (c *Login) loginWithPassword(ctx context.Context, client *http.Client, server string) (loginGrant, error) {
	password, err := c.password(ctx, server)
	if err != nil {
		return loginGrant{}, err
	}
	verifier := oauth2.GenerateVerifier()
	body, err := json.Marshal(map[string]string{
		"client_id": loginClient, "code_challenge": oauth2.S256ChallengeFromVerifier(verifier), "code_challenge_method": "S256",
		"username": c.Username, "password": password,
	})
	if err != nil {
		return loginGrant{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/auth/password/login", bytes.NewReader(body))
	if err != nil {
		return loginGrant{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return loginGrant{}, fmt.Errorf("sending the password: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotFound {
		return loginGrant{}, errors.New("this platform has no sign-in with a password; use a browser")
	}
	if response.StatusCode != http.StatusOK {
		_, refusal, err := readAnswer(response)
		if err != nil {
			return loginGrant{}, fmt.Errorf("sending the password: %w", err)
		}
		return loginGrant{}, fmt.Errorf("the platform does not sign you in: %s", refusal)
	}
	var proven struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&proven); err != nil {
		return loginGrant{}, fmt.Errorf("sending the password: %s gave no answer of a platform: %w", server, err)
	}
	flow := &oauth2.Config{
		ClientID: loginClient, RedirectURL: outOfBand, Endpoint: oauth2.Endpoint{TokenURL: server + "/auth/token", AuthStyle: oauth2.AuthStyleInParams},
	}
	return c.exchange(ctx, client, flow, proven.Code, verifier)
}

// tokenParameters has the parameters of an authorization request.
func (c *Login) tokenParameters(verifier string) []oauth2.AuthCodeOption {
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(verifier)}
	if c.Refresh {
		options = append(options, oauth2.SetAuthURLParam("scope", offlineAccess))
	}
	return options
}

// exchange redeems a code for an access key.
func (c *Login) exchange(ctx context.Context, client *http.Client, flow *oauth2.Config, code, verifier string) (loginGrant, error) {
	token, err := flow.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), code, c.tokenParameters(verifier)...)
	if wrong := (*oauth2.RetrieveError)(nil); errors.As(err, &wrong) && wrong.ErrorCode != "" {
		return loginGrant{}, fmt.Errorf("the platform made no access key (%s)", strings.TrimSpace(wrong.ErrorCode+" "+wrong.ErrorDescription))
	}
	if err != nil {
		return loginGrant{}, fmt.Errorf("asking for the access key: %w", tokenError(err))
	}
	return parseGrant(token), nil
}

// tokenError returns in one line why the token endpoint gave no key. It does not quote a page that a proxy sends in
// place of the platform's response.
func tokenError(err error) error {
	wrong := (*oauth2.RetrieveError)(nil)
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.ErrorCode != "":
		return errors.New(strings.TrimSpace(wrong.ErrorCode + " " + wrong.ErrorDescription))
	default:
		return fmt.Errorf("the platform answered %d %s", wrong.Response.StatusCode, http.StatusText(wrong.Response.StatusCode))
	}
}

// loginWithAccessKey returns the key on the standard input, if the platform accepts it.
func (c *Login) loginWithAccessKey(ctx context.Context, client *http.Client, server string) (loginGrant, error) {
	line, err := c.line()
	if err != nil {
		return loginGrant{}, err
	}
	key := secret.String(strings.TrimSpace(line))
	if key == "" {
		return loginGrant{}, errors.New("the standard input has no access key")
	}
	request, err := http.NewRequestWithContext(mayRepeat(ctx), http.MethodPost, server+selves, strings.NewReader("{}"))
	if err != nil {
		return loginGrant{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key.Reveal())
	response, err := client.Do(request)
	if err != nil {
		return loginGrant{}, fmt.Errorf("asking the platform about the access key: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	_, refusal, err := readAnswer(response)
	switch {
	case err != nil:
		return loginGrant{}, fmt.Errorf("asking the platform about the access key: %w", err)
	case refusal != "":
		return loginGrant{}, fmt.Errorf("the platform refuses the access key: %s", refusal)
	}
	return loginGrant{Key: key.Reveal(), Borrowed: true}, nil
}

// ask signs in with a browser: on this computer, or on another one with a code.
func (c *Login) ask(ctx context.Context, client *http.Client, server string) (loginGrant, error) {
	offered, err := waysOf(ctx, client, server)
	if err != nil {
		return loginGrant{}, err
	}
	if c.Device || c.Connector == "" && offered.Device.Enabled && c.hasRemoteBrowser() {
		return c.loginWithCode(ctx, client, offered.Device)
	}
	chosen, err := c.choose(offered)
	if err != nil {
		return loginGrant{}, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", c.Port))
	if err != nil {
		return loginGrant{}, fmt.Errorf("--port: %w", err)
	}
	path, state, verifier := "/callback/"+rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	flow := &oauth2.Config{
		ClientID: loginClient, RedirectURL: "http://" + listener.Addr().String() + path,
		Endpoint: oauth2.Endpoint{AuthURL: chosen.LoginEndpoint, TokenURL: chosen.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams},
	}
	back := &callback{path: path, state: state, issuer: chosen.Issuer, answers: make(chan url.Values, 1)}
	listening := &http.Server{Handler: back, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 16}
	go func() { _ = listening.Serve(listener) }()
	// The page about the finished sign-in has been sent by then.
	defer func() { _ = listening.Shutdown(context.WithoutCancel(ctx)) }()

	c.show(flow.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)), listener.Addr())
	timer := time.NewTimer(c.Timeout)
	defer timer.Stop()
	var answer url.Values
	select {
	case answer = <-back.answers:
	case <-timer.C:
		return loginGrant{}, fmt.Errorf("nobody has signed in within %s; run the command again, or wait longer with --timeout", c.Timeout)
	case <-ctx.Done():
		return loginGrant{}, ctx.Err()
	}
	if refused := answer.Get("error"); refused != "" {
		return loginGrant{}, fmt.Errorf("the sign-in was refused (%s)", refused)
	}
	return c.exchange(ctx, client, flow, answer.Get("code"), verifier)
}

// ways are the ways to sign in at a platform, as describelogin serves them.
type ways struct {
	SSO      []connector `json:"sso"`
	Password passwordWay `json:"password"`
	Device   codeWay     `json:"device"`
}

// passwordWay is the sign-in with a password. Without addresses there is no page for it.
type passwordWay struct {
	Enabled bool `json:"enabled"`
	connector
}

// waysOf returns the ways to sign in at a platform.
func waysOf(ctx context.Context, client *http.Client, server string) (ways, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/auth/info", nil)
	if err != nil {
		return ways{}, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return ways{}, fmt.Errorf("asking how to sign in: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return ways{}, fmt.Errorf("asking how to sign in: %s answered %s", server, response.Status)
	}
	var info struct {
		Methods ways `json:"methods"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&info); err != nil {
		return ways{}, fmt.Errorf("asking how to sign in: %s gave no answer of a platform: %w", server, err)
	}
	return info.Methods, nil
}

// choose returns the connector to sign in at.
func (c *Login) choose(offered ways) (connector, error) {
	methods := offered.SSO
	if password := offered.Password; password.LoginEndpoint != "" && (len(methods) == 0 || c.Connector == passwordID) {
		password.ID = passwordID
		methods = append(methods, password.connector)
	}
	var ids []string
	for _, one := range methods {
		ids = append(ids, one.ID)
	}
	i := slices.Index(ids, c.Connector)
	switch {
	case len(ids) == 0 && offered.Password.Enabled:
		return connector{}, errors.New("this platform has no page to sign in at; use --username with your password, or --access-key-stdin")
	case len(ids) == 0:
		return connector{}, errors.New("this platform has no connector to sign in at; use --access-key-stdin")
	case c.Connector == "" && len(ids) == 1:
		i = 0
	case i < 0:
		return connector{}, fmt.Errorf("--connector: must be one of %s", strings.Join(ids, ", "))
	}
	chosen := methods[i]
	return chosen, checkAddresses(chosen.LoginEndpoint, chosen.TokenEndpoint)
}

// checkAddresses refuses addresses to which a code and its verifier would be sent without TLS.
func checkAddresses(addresses ...string) error {
	for _, address := range addresses {
		if at, err := url.Parse(address); err != nil || !isPlatformURL(at) {
			return fmt.Errorf("the platform names %q to sign in at, which is no https URL", address)
		}
	}
	return nil
}

// show prints the address at which to sign in, and opens it in a browser. A failure to open it is no error.
func (c *Login) show(address string, listening net.Addr) {
	messages := c.messages()
	_, _ = fmt.Fprintf(messages, "Sign in with a browser on this computer:\n\n  %s\n\n", address)
	if os.Getenv("SSH_CONNECTION") != "" {
		_, port, _ := net.SplitHostPort(listening.String())
		_, _ = fmt.Fprintf(messages, "If the browser is on another computer, let it come back with ssh -L %s:%s, or use --device.\n", port, listening)
	}
	if !c.Browser {
		return
	}
	open := c.Open
	if open == nil {
		open = openBrowser
	}
	if err := open(address); err != nil {
		output.Warn(messages, "the browser was not opened: %v", err)
	}
}

// openBrowser opens an address in the browser of the system.
func openBrowser(address string) error {
	command := []string{"xdg-open", address}
	switch {
	case os.Getenv("BROWSER") != "":
		command = []string{os.Getenv("BROWSER"), address}
	case runtime.GOOS == "darwin":
		command = []string{"open", address}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	started := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the browser of the user, which outlives the command
	if err := started.Start(); err != nil {
		return err
	}
	return started.Process.Release()
}

// callback serves the redirect URI, to which the browser returns.
type callback struct {
	path, state, issuer string
	answers             chan url.Values
}

// ServeHTTP takes the response to this sign-in. It ignores all other requests, so that other programs and pages cannot
// end the sign-in.
func (b *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	query := r.URL.Query()
	known := func(name, want string) bool {
		return subtle.ConstantTimeCompare([]byte(query.Get(name)), []byte(want)) == 1
	}
	if r.Method != http.MethodGet || r.URL.Path != b.path || !known("state", b.state) || !known("iss", b.issuer) ||
		query.Get("code") == "" && query.Get("error") == "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "This is not the answer to a sign-in that the program waits for.\n")
		return
	}
	select {
	case b.answers <- query:
	default:
		// The first response counts.
	}
	_, _ = io.WriteString(w, "You can close this page and go back to the program.\n")
}

// merge adds a context for the platform to a kubeconfig, and makes it the current one.
func (c *Login) merge(ctx context.Context, server string, authority []byte, keyFile, file string) (name string, err error) {
	address, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	name = address.Host
	added := clientcmdapi.NewConfig()
	added.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	added.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: keyFile}
	if c.Refresh {
		added.AuthInfos[name] = &clientcmdapi.AuthInfo{Exec: execPlugin(server)}
	}
	added.Contexts[name], added.CurrentContext = &clientcmdapi.Context{Cluster: name, AuthInfo: name}, name
	text, err := clientcmd.Write(*added)
	if err != nil {
		return "", fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("--output: %w", err)
	}
	unlock, err := lock(ctx, file)
	if err != nil {
		return "", fmt.Errorf("--output: %w", err)
	}
	defer unlock()
	if text, name, err = mergeKubeconfig(file, text, address.Host, address.Host+address.Path); err != nil {
		return "", err
	}
	return name, atomicfile.Write(file, text)
}
