package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// codeWay is the sign-in with a code, as describelogin serves it.
type codeWay struct {
	Enabled        bool   `json:"enabled"`
	DeviceEndpoint string `json:"deviceEndpoint"`
	TokenEndpoint  string `json:"tokenEndpoint"`
}

// hostName matches the names of computers that the platform accepts.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,64}$`)

// messages returns the writer for messages to the person.
func (c *Login) messages() io.Writer {
	if c.Messages != nil {
		return c.Messages
	}
	return os.Stderr
}

// hasRemoteBrowser reports whether the browser of the person is on another computer, as far as the process can tell.
func (c *Login) hasRemoteBrowser() bool {
	if c.Open != nil || !c.Browser || c.Port != 0 || os.Getenv("BROWSER") != "" {
		return false
	}
	return os.Getenv("SSH_CONNECTION") != "" || runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == ""
}

// loginWithCode signs in with a code that the person enters in a browser, on any computer. Source: RFC 8628.
func (c *Login) loginWithCode(ctx context.Context, client *http.Client, way codeWay) (loginGrant, error) {
	if !way.Enabled {
		return loginGrant{}, errors.New("this platform gives no codes for devices; use a browser, or --access-key-stdin")
	}
	if err := checkAddresses(way.DeviceEndpoint, way.TokenEndpoint); err != nil {
		return loginGrant{}, err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, oauth2.HTTPClient, client), c.Timeout, errNobody)
	defer cancel()
	flow := &oauth2.Config{
		ClientID: loginClient,
		Endpoint: oauth2.Endpoint{DeviceAuthURL: way.DeviceEndpoint, TokenURL: way.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams},
	}
	verifier := oauth2.GenerateVerifier()
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if host, err := os.Hostname(); err == nil && hostName.MatchString(host) {
		options = append(options, oauth2.SetAuthURLParam("hostname", host))
	}
	device, err := flow.DeviceAuth(ctx, options...)
	if err != nil {
		return loginGrant{}, c.explain(ctx, "asking for a code", err)
	}
	if err := checkAddresses(device.VerificationURI); err != nil {
		return loginGrant{}, err
	}
	if !hostName.MatchString(device.UserCode) {
		return loginGrant{}, errors.New("the platform gave no code")
	}
	_, _ = fmt.Fprintf(c.messages(), "Open this address in a browser, on any computer:\n\n  %s\n\nand enter the code\n\n  %s\n\n", device.VerificationURI, device.UserCode)
	if _, err := url.Parse(device.VerificationURIComplete); err == nil && strings.HasPrefix(device.VerificationURIComplete, device.VerificationURI+"?") {
		_, _ = fmt.Fprintf(c.messages(), "This address fills it in: %s\n", device.VerificationURIComplete)
	}
	// The library counts the interval from its request, and the platform from its response.
	device.Interval = cmp.Or(device.Interval, defaultInterval) + 1
	for {
		made, err := flow.DeviceAccessToken(ctx, device, c.tokenParameters(verifier)...)
		if err == nil {
			return parseGrant(made), nil
		}
		// The person may be in the browser: the program continues until the code expires. Source: RFC 8628, 3.5.
		if isLost(err) && ctx.Err() == nil {
			if device.Expiry.IsZero() || time.Now().Before(device.Expiry) {
				continue
			}
			err = context.DeadlineExceeded
		}
		return loginGrant{}, c.explain(ctx, "asking for the access key", err)
	}
}

// defaultInterval is the pause between two requests for the token of a code, in seconds, if the platform names none.
// Source: RFC 8628, 3.2.
const defaultInterval = 5

// isLost reports whether a token request got no response of the platform, or the response of a server that cannot serve the
// request now.
func isLost(err error) bool {
	wrong := (*oauth2.RetrieveError)(nil)
	if errors.As(err, &wrong) {
		temporary := wrong.ErrorCode == "" || wrong.ErrorCode == "temporarily_unavailable"
		return temporary && (wrong.Response.StatusCode == http.StatusTooManyRequests || wrong.Response.StatusCode >= http.StatusInternalServerError)
	}
	return errors.As(err, new(*url.Error)) || errors.Is(err, io.ErrUnexpectedEOF)
}

// errNobody is the cause with which the context of a sign-in ends after its timeout.
var errNobody = errors.New("nobody has signed in")

// explain returns the reason why there is no key.
func (c *Login) explain(ctx context.Context, doing string, err error) error {
	wrong := (*oauth2.RetrieveError)(nil)
	switch {
	case errors.Is(context.Cause(ctx), errNobody):
		return fmt.Errorf("nobody has signed in within %s; run the command again, or wait longer with --timeout", c.Timeout)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &wrong) && wrong.ErrorCode == "access_denied":
		return errors.New("the sign-in was refused (access_denied)")
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &wrong) && wrong.ErrorCode == "expired_token":
		return errors.New("nobody has entered the code in time; run the command again")
	default:
		return fmt.Errorf("%s: %w", doing, tokenError(err))
	}
}
