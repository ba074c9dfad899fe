package signin

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

// Refusal says why somebody is not signed in. The person reads what to do; only the audit and the log have the detail.
type Refusal struct {
	// Class is the outcome in the audit.
	Class string
	// Detail is for the audit and the log. It may quote what a provider says of an error, and never a secret.
	Detail string
	// RefreshTokenOnly tells that the provider refuses a refresh token, and says nothing else of the person.
	RefreshTokenOnly bool
	answer           *apierror.Error
}

// Error returns the class and the detail, if there is one.
func (r *Refusal) Error() string { return strings.TrimSuffix(r.Class+": "+r.Detail, ": ") }

// Unwrap returns the answer for the person.
func (r *Refusal) Unwrap() error { return r.answer }

// IsDefinite reports whether a provider, or the settings of its connector, refuse the person. Otherwise nobody knows.
func (r *Refusal) IsDefinite() bool { return r.Class == classRefused || r.Class == classNotAdmitted }

func (r *Refusal) withCause(cause error) *Refusal {
	r.answer = r.answer.Because(fmt.Errorf("%w: %w", errors.New(r.Error()), cause))
	return r
}

// The classes of definite refusals.
const (
	classRefused     = "provider_refused"
	classNotAdmitted = "not_admitted"
)

func newRefusal(class, detail string, answer *apierror.Error) *Refusal {
	refusal := &Refusal{Class: class, Detail: resource.Printable(detail)}
	refusal.answer = answer.Because(errors.New(refusal.Error()))
	return refusal
}

func badRequestError(text string) *apierror.Error { return apierror.BadRequest(text, nil) }

func forbiddenError(text string) *apierror.Error {
	return apierror.Forbidden(schema.GroupResource{}, "", text, nil)
}

// NotFound: there is no such connector.
func unknownConnector() *Refusal { return newRefusal("unknown_connector", "", apierror.NoRoute()) }

func refuseBadRequest(why string) *Refusal {
	return newRefusal("bad_request", why, badRequestError(why))
}

func notStartedHere(detail string) *Refusal {
	return newRefusal("not_started_here", detail, badRequestError("this sign-in was not started in this browser, or it was used before: start again where you began"))
}

func expired(detail string) *Refusal {
	return newRefusal("expired", detail, badRequestError("this sign-in has expired, or its settings have changed: start again where you began"))
}

func notSetUp(detail string) *Refusal {
	return newRefusal("not_set_up", detail, forbiddenError("your account has no user here: ask an admin of the platform to create one"))
}

func lastAdmin() *Refusal {
	return newRefusal("last_admin", "", forbiddenError("your groups at the provider have changed, and nobody would be an admin of the platform afterwards: "+
		"give another enabled user the cluster role "+model.ClusterRoleAdmin+" first"))
}

func busy() *Refusal {
	return newRefusal("busy", "", apierror.UnderWay("your user is being changed by others at the same time: try again"))
}

// throttled is the Refusal for an error TooManyRequests, and any other error itself.
func throttled(err error) error {
	if answer := apierror.From(err); answer.Status().Reason == metav1.StatusReasonTooManyRequests {
		return newRefusal("throttled", "", answer)
	}
	return err
}

// RefusedByProvider is the Refusal for an answer of a provider that signs nobody in.
func RefusedByProvider(detail string) *Refusal {
	return newRefusal(classRefused, detail, badRequestError("the provider did not sign you in: start again where you began"))
}

// RefusedRefreshToken is RefusedByProvider for a refresh token.
func RefusedRefreshToken(detail string) *Refusal {
	refusal := RefusedByProvider(detail)
	refusal.RefreshTokenOnly = true
	return refusal
}

// Misconfigured is the Refusal for an answer of a provider that breaks the protocol.
func Misconfigured(detail string) *Refusal {
	return newRefusal("misconfigured", detail, badRequestError("the sign-in is not set up correctly: show this page to an admin of the platform"))
}

// RefusedLogoutToken is the Refusal of a logout token.
func RefusedLogoutToken(detail string) *Refusal {
	return newRefusal("logout_refused", detail, badRequestError("the logout token is not accepted: the audit log of the platform says why"))
}

// NotAdmitted is the Refusal of a person: the settings of a connector do not admit them.
func NotAdmitted(detail string) *Refusal {
	return newRefusal(classNotAdmitted, detail, forbiddenError("your account may not use this platform: ask an admin of the platform"))
}

// Unreachable is the Refusal for a provider that does not answer. The cause is for the log.
func Unreachable(cause error) *Refusal {
	return newRefusal("provider_unreachable", "", apierror.Upstream("the provider cannot be reached: try again later")).withCause(cause)
}
