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
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/local/atomicfile"
	"management.platform.sh/local/output"
)

const (
	// loginRefresh is the name of the file with the refresh token of a sign-in, in the folder of its platform.
	loginRefresh = "refresh.json"
	// loginLock is the name of the file that a program locks while it renews the access key.
	loginLock = "refresh.lock"
	// loginAuthority is the name of the file with the certificate authority that was given to a sign-in.
	loginAuthority = "ca.crt"
	// loginBorrowed is the name of a file that marks an access key as given by the person. No sign-in made the key.
	loginBorrowed = "borrowed"
	// refreshBefore is how long before its expiry an access key is renewed.
	refreshBefore = 5 * time.Minute
	// offlineAccess is the scope that requests a refresh token. Source: ADR-0045.
	offlineAccess = "offline_access"
)

// loginGrant has the credentials of a sign-in.
type loginGrant struct {
	// Key is the access key, and Expires its expiry.
	Key     string    `json:"accessKey"`
	Expires time.Time `json:"expires,omitzero"`
	// Refresh is the refresh token. Empty: there is none.
	Refresh string `json:"refreshToken,omitempty"`
	// Borrowed reports whether the key existed before the sign-in, and works after the sign-out.
	Borrowed bool `json:"-"`
}

// parseGrant returns the credentials in a response of the token endpoint.
func parseGrant(token *oauth2.Token) loginGrant {
	return loginGrant{Key: token.AccessToken, Expires: token.Expiry, Refresh: token.RefreshToken}
}

// keep writes the credentials into the folder of a platform. It writes the refresh token first, because using an older
// refresh token ends the sign-in.
func (g loginGrant) keep(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("writing the access key: %w", err)
	}
	borrowed := filepath.Join(folder, loginBorrowed)
	if g.Borrowed {
		if err := atomicfile.Write(borrowed, nil); err != nil {
			return err
		}
	}
	file := filepath.Join(folder, loginRefresh)
	if g.Refresh == "" {
		if err := remove(file); err != nil {
			return err
		}
	} else {
		text, err := json.Marshal(g) //nolint:gosec // the file is for these secrets, and for the person alone
		if err != nil {
			return err
		}
		if err := atomicfile.Write(file, text); err != nil {
			return err
		}
	}
	err := atomicfile.Write(filepath.Join(folder, loginKey), []byte(g.Key))
	if err == nil && !g.Borrowed {
		// Not earlier: until then, logout ends the key that is there.
		err = remove(borrowed)
	}
	return err
}

// keepAuthority stores the certificate authority that was given to a sign-in, so that later commands need no flag for
// it. If none was given, the system's authorities verify the platform from now on.
func keepAuthority(folder string, text []byte) error {
	file := filepath.Join(folder, loginAuthority)
	if len(text) == 0 {
		return remove(file)
	}
	return atomicfile.Write(file, text)
}

// keptAuthority returns the file with the certificate authority of the last sign-in at a platform. Empty: there is none.
func keptAuthority(server string) string {
	folder, err := folderOf(server)
	if err != nil {
		return ""
	}
	file := filepath.Join(folder, loginAuthority)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return ""
	}
	return file
}

// remove removes a file that may be absent.
func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// signedIn is a sign-in at a platform, whose credentials are in a folder.
type signedIn struct {
	// host is the person's name for the platform, and server the base address of its API.
	host, server, folder string
	client               *http.Client
	now                  func() time.Time
	// warn is the writer for the warning that a key could not be renewed. The key is used all the same.
	warn io.Writer
}

// openSignedIn returns the sign-in at a platform, which may have no credentials.
func openSignedIn(host, authority string) (*signedIn, error) {
	server, folder, err := platformOf(host)
	if err != nil {
		return nil, err
	}
	client, err := connect(cmp.Or(authority, keptAuthority(server)))
	if err != nil {
		return nil, err
	}
	return &signedIn{host: host, server: server, folder: folder, client: client, now: time.Now, warn: os.Stderr}, nil
}

// read returns the stored credentials. Error: os.ErrNotExist if there are none.
func (s *signedIn) read() (loginGrant, error) {
	text, err := os.ReadFile(filepath.Join(s.folder, loginRefresh))
	if errors.Is(err, os.ErrNotExist) {
		key, err := os.ReadFile(filepath.Join(s.folder, loginKey))
		return loginGrant{Key: strings.TrimSpace(string(key))}, err
	}
	if err != nil {
		return loginGrant{}, err
	}
	var kept loginGrant
	if err := json.Unmarshal(text, &kept); err != nil || kept.Key == "" || kept.Refresh == "" {
		return loginGrant{}, fmt.Errorf("%s is not what platform login writes; sign in again with platform login %s",
			filepath.Join(s.folder, loginRefresh), s.host)
	}
	return kept, nil
}

// isFresh reports whether a key need not be renewed.
func (s *signedIn) isFresh(kept loginGrant) bool {
	return kept.Refresh == "" || s.now().Add(refreshBefore).Before(kept.Expires)
}

// currentKey returns the access key of the sign-in. It first renews a key that expires soon; one program at a time does
// so. Errors: os.ErrNotExist if no person is signed in; a text with advice.
func (s *signedIn) currentKey(ctx context.Context) (loginGrant, error) {
	stored, err := s.read()
	if err != nil || s.isFresh(stored) {
		return stored, err
	}
	unlock, err := lockExclusively(ctx, filepath.Join(s.folder, loginLock))
	if err != nil {
		return loginGrant{}, err
	}
	defer unlock()
	// Another program may have renewed it in the meantime.
	if stored, err = s.read(); err != nil || s.isFresh(stored) {
		return stored, err
	}
	fresh, err := s.refresh(ctx, stored)
	switch refused := (*refusedError)(nil); {
	case err == nil:
		return fresh, fresh.keep(s.folder)
	case !errors.As(err, &refused) && s.now().Before(stored.Expires):
		output.Warn(s.warn, "using an access key that expires at %s: %v", stored.Expires.Format(time.RFC3339), err)
		return stored, nil
	default:
		return loginGrant{}, err
	}
}

// refresh requests the next key from the platform. A refusedError is final.
func (s *signedIn) refresh(ctx context.Context, kept loginGrant) (loginGrant, error) {
	flow := &oauth2.Config{ClientID: loginClient, Endpoint: oauth2.Endpoint{TokenURL: s.server + "/auth/token", AuthStyle: oauth2.AuthStyleInParams}}
	// The platform accepts a repeated refresh whose response was lost.
	token, err := flow.TokenSource(context.WithValue(mayRepeat(ctx), oauth2.HTTPClient, s.client), &oauth2.Token{RefreshToken: kept.Refresh}).Token()
	if wrong := (*oauth2.RetrieveError)(nil); errors.As(err, &wrong) && wrong.ErrorCode == "invalid_grant" {
		return loginGrant{}, &refusedError{"the sign-in has ended; sign in again with platform login --refresh " + s.host}
	}
	if err != nil {
		return loginGrant{}, fmt.Errorf("renewing the access key: %w", tokenError(err))
	}
	return parseGrant(token), nil
}

// Credential is a credential plugin of kubectl. It prints the access key of a sign-in with --refresh, and renews it in time.
// Source: ADR-0045.
type Credential struct {
	Host string `arg:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login."`
	authorityFlag
}

// Run prints an ExecCredential. If the platform cannot be reached, a key that has not expired is used, with a warning.
func (c *Credential) Run(ctx context.Context) error {
	if err := checkExecInfo(os.Getenv(execInfo)); err != nil {
		return err
	}
	s, err := openSignedIn(c.Host, c.Authority)
	if err != nil {
		return err
	}
	credentials, err := s.currentKey(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("you are not signed in at %s; sign in with platform login --refresh %s", c.Host, c.Host)
	}
	if err != nil {
		return err
	}
	until := credentials.Expires
	if s.isFresh(credentials) && !until.IsZero() {
		// kubectl then asks again, and gets a new key.
		until = until.Add(-refreshBefore)
	}
	return printCredential(os.Stdout, credentials.Key, until)
}

// execPlugin returns the entry of a kubeconfig for Credential.
func execPlugin(server string) *clientcmdapi.ExecConfig {
	return &clientcmdapi.ExecConfig{
		APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: "platform", Args: []string{"credential", server},
		InstallHint: "The program platform keeps your sign-in: put it on PATH.", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}
}
