// Package refusal says why a sign-in is refused: what the person reads, and what only the audit and the log have.
package refusal

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// Refusal says why a sign-in is refused. The person reads what to do; only the audit and the log have the detail.
type Refusal struct {
	// Class is the outcome in the audit.
	Class string
	// Detail is for the audit and the log. It may quote what a provider says of an error, and never a secret.
	Detail string
	// RefreshTokenOnly means that the provider refuses only a refresh token, and says nothing else about the person.
	RefreshTokenOnly bool
	answer           *apierror.Error
}

// Error returns the class and the detail, if there is one.
func (r *Refusal) Error() string { return strings.TrimSuffix(r.Class+": "+r.Detail, ": ") }

// Unwrap returns the answer for the person.
func (r *Refusal) Unwrap() error { return r.answer }

// IsDefinite reports whether a provider, or the settings of its connector, refuse the person. Otherwise the refusal says nothing of the
// person.
func (r *Refusal) IsDefinite() bool { return r.Class == classRefused || r.Class == classNotAdmitted }

// WithCause adds a cause for the log, which errors.Is finds.
func (r *Refusal) WithCause(cause error) *Refusal {
	r.answer = r.answer.Because(fmt.Errorf("%w: %w", errors.New(r.Error()), cause))
	return r
}

// The classes of definite refusals.
const (
	classRefused     = "provider_refused"
	classNotAdmitted = "not_admitted"
)

// New returns a Refusal with a class, a detail for the audit and an answer for the person.
func New(class, detail string, answer *apierror.Error) *Refusal {
	refusal := &Refusal{Class: class, Detail: resource.Printable(detail)}
	refusal.answer = answer.Because(errors.New(refusal.Error()))
	return refusal
}

func badRequestError(text string) *apierror.Error { return apierror.BadRequest(text, nil) }

func forbiddenError(text string) *apierror.Error {
	return apierror.Forbidden(schema.GroupResource{}, "", text, nil)
}

// UnknownConnector is the Refusal for an ID that no connector has. Its reason is NotFound.
func UnknownConnector() *Refusal { return New("unknown_connector", "", apierror.NoRoute()) }

// BadRequest is the Refusal of a malformed request.
func BadRequest(why string) *Refusal {
	return New("bad_request", why, badRequestError(why))
}

// NotStartedHere is the Refusal of a browser that did not start the login, and of a login that was used before.
func NotStartedHere(detail string) *Refusal {
	return New("not_started_here", detail, badRequestError("this sign-in was not started in this browser, or it was used before: start again where you began"))
}

// Expired is the Refusal of a login that has expired, or whose settings have changed.
func Expired(detail string) *Refusal {
	return New("expired", detail, badRequestError("this sign-in has expired, or its settings have changed: start again where you began"))
}

// NotSetUp is the Refusal of a person who has no user, where logins create none.
func NotSetUp(detail string) *Refusal {
	return New("not_set_up", detail, forbiddenError("your account has no user here: ask an admin of the platform to create one"))
}

// LastAdmin is the Refusal of a login after which there would be no admin.
func LastAdmin() *Refusal {
	return New("last_admin", "", forbiddenError("your groups at the provider have changed, and the platform would have no admin afterwards: "+
		"give another enabled user the cluster role "+model.ClusterRoleAdmin+" first"))
}

// Busy is the Refusal of a request that lost against concurrent writes too often.
func Busy() *Refusal {
	return New("busy", "", apierror.InProgress("your user is being changed by others at the same time: try again"))
}

// Throttled returns the Refusal for an error TooManyRequests, and every other error unchanged.
func Throttled(err error) error {
	if answer := apierror.From(err); answer.Status().Reason == metav1.StatusReasonTooManyRequests {
		return New("throttled", "", answer)
	}
	return err
}

// ByProvider is the Refusal for an answer of a provider that refuses the person.
func ByProvider(detail string) *Refusal {
	return New(classRefused, detail, badRequestError("the provider did not sign you in: start again where you began"))
}

// RefreshTokenRefused is the Refusal for a refresh token that the provider does not accept.
func RefreshTokenRefused(detail string) *Refusal {
	refusal := ByProvider(detail)
	refusal.RefreshTokenOnly = true
	return refusal
}

// Misconfigured is the Refusal for wrong settings, and for an answer of a provider that breaks the protocol.
func Misconfigured(detail string) *Refusal {
	return New("misconfigured", detail, badRequestError("the sign-in is not set up correctly: show this page to an admin of the platform"))
}

// LogoutTokenRefused is the Refusal of a logout token.
func LogoutTokenRefused(detail string) *Refusal {
	return New("logout_refused", detail, badRequestError("the logout token is not accepted: the audit log of the platform says why"))
}

// NotAdmitted is the Refusal of a person whom the settings of a connector do not admit.
func NotAdmitted(detail string) *Refusal {
	return New(classNotAdmitted, detail, forbiddenError("your account may not use this platform: ask an admin of the platform"))
}

// Unreachable is the Refusal for a provider that does not answer. The cause is for the log.
func Unreachable(cause error) *Refusal {
	return New("provider_unreachable", "", apierror.Upstream("the provider cannot be reached: try again later")).WithCause(cause)
}
