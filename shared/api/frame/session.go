package frame

import (
	"context"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
)

// SessionInput is a request to begin or to end the session of a browser.
type SessionInput struct {
	// Caller is the caller of the request. It is empty if the session ends.
	Caller identity.Caller
	// Bearer is the bearer of the Authorization header. It is empty if the session ends.
	Bearer secret.String
}

// Session is the session of a browser.
type Session struct {
	// Bearer is the credential of the session. Empty: the browser has no session.
	Bearer secret.String
	// Lifetime is how long the browser keeps the session. 0: until it is closed.
	Lifetime time.Duration
}

// BeginSession binds an operation to POST on a path that is no resource. The response has a cookie that stands for the bearer of
// the Authorization header. Scripts cannot read it, and browsers send it to this host alone. Source: ADR-0030.
func BeginSession[D any](
	path string, open func(*platform.Environment) D, do func(context.Context, D, SessionInput) (Session, error),
) Endpoint {
	return session(path, http.MethodPost, Authenticated, open, func(ctx context.Context, deps D, c *call) (Session, error) {
		_, bearer, _ := strings.Cut(c.http.Header.Get("Authorization"), " ")
		return do(ctx, deps, SessionInput{Caller: c.caller, Bearer: secret.String(strings.TrimSpace(bearer))})
	})
}

// EndSession binds an operation to DELETE on a path that is no resource. The response removes the cookie, and what the browser has
// stored for this host. It needs no credential, because the key of the session may have ended. Source: ADR-0030.
func EndSession[D any](
	path string, open func(*platform.Environment) D, do func(context.Context, D, SessionInput) (Session, error),
) Endpoint {
	return session(path, http.MethodDelete, Everyone, open, func(ctx context.Context, deps D, _ *call) (Session, error) {
		return do(ctx, deps, SessionInput{})
	}).WithoutSessions().Unconfigured()
}

func session[D any](
	path, method string, public func(*model.ConfigStatus) bool, open func(*platform.Environment) D,
	serve func(context.Context, D, *call) (Session, error),
) Endpoint {
	return Endpoint{
		Route: Route{Method: method, Path: path}, Target: Target{Verb: strings.ToLower(method)}, access: access{public: public},
		open: func(env *platform.Environment) operation {
			deps := open(env)
			return func(ctx context.Context, c *call) (*answer, error) {
				found, err := serve(ctx, deps, c)
				if err != nil {
					return nil, err
				}
				return &answer{status: http.StatusOK, header: found.header(), object: &metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
				}}, nil
			}
		},
	}
}

// header returns the header fields that give a browser this session, or take its session away.
func (s Session) header() http.Header {
	cookie := &http.Cookie{
		Name: auth.SessionCookie, Value: auth.SessionValue(s.Bearer), Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(s.Lifetime / time.Second),
	}
	if s.Bearer == "" {
		cookie.MaxAge = -1
		return http.Header{"Set-Cookie": {cookie.String()}, "Clear-Site-Data": {`"cache", "storage"`}}
	}
	return http.Header{"Set-Cookie": {cookie.String()}}
}
