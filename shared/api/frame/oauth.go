package frame

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
)

// oauthPaths are the paths to which clients of OAuth send their requests.
var oauthPaths = []string{"/auth/device/code", "/auth/revoke", "/auth/token"}

// oauthChallenge is what WWW-Authenticate says in a 401 to a client of OAuth. Source: RFC 6749, 5.2.
const oauthChallenge = `Basic realm="management"`

// isOAuth reports whether a request is at or below one of oauthPaths, whatever serves it.
func isOAuth(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, BasePath)
	return slices.ContainsFunc(oauthPaths, func(at string) bool { return path == at || isBelow(path, at) })
}

// oauthError makes the error of OAuth of a refusal, in place of a Status. Its HTTP status stays. Source: RFC 6749, 4.1.2.1 and 5.2.
func oauthError(status metav1.Status, rendered *reply) {
	code := "invalid_request"
	switch {
	case status.Code == http.StatusTooManyRequests, status.Code == http.StatusServiceUnavailable, status.Code == http.StatusGatewayTimeout:
		code = "temporarily_unavailable"
	case status.Code >= http.StatusInternalServerError:
		code = "server_error"
	}
	// Two texts always marshal.
	rendered.body, _ = json.Marshal(struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{code, strings.Map(describing, status.Message)})
	rendered.body = append(rendered.body, '\n')
	rendered.header.Set("Content-Type", codec.JSON)
	rendered.header.Set("Cache-Control", "no-store")
}

// describing returns a character of a description, or one that stands for it.
func describing(c rune) rune {
	switch {
	case c == '"':
		return '\''
	case c < ' ' || c > '~' || c == '\\':
		return '?'
	default:
		return c
	}
}
