// Package apierror is the one error type that crosses from the rules to a client. An Error is a
// Kubernetes Status, which the caller may read, and a cause, which only the log may see. It has the texts and
// codes of apimachinery, so that clients see the answers of a kube-apiserver.
// Source: Spec 7; ADR-0001.
//
// The package writes nothing and logs nothing: the frame does both, once.
package apierror

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
)

// Error is a refusal or failure, with what the caller may know about it. It satisfies apierrors.APIStatus, so that
// apierrors.IsNotFound and similar functions work on it.
type Error struct {
	status metav1.Status
	cause  error
}

// Error returns the message that the caller may read, never the cause.
func (e *Error) Error() string { return e.status.Message }

// Unwrap returns the cause, for errors.Is and the log.
func (e *Error) Unwrap() error { return e.cause }

// Status returns the Status to send to the client.
func (e *Error) Status() metav1.Status { return e.status }

// Because returns a copy of the error with a cause for the log.
func (e *Error) Because(cause error) *Error {
	with := *e
	with.cause = cause
	return &with
}

func newError(err *apierrors.StatusError) *Error { return &Error{status: shortenStatus(err.ErrStatus)} }

// failure returns an Error for which apimachinery has no constructor, or only a constructor with another text.
func failure(code int32, reason metav1.StatusReason, message string) *Error {
	return &Error{status: shortenStatus(metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{},
	})}
}

// retryAfter makes the answer tell the client to retry after some seconds.
func (e *Error) retryAfter(seconds int32) *Error {
	e.status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	return e
}

// NotFound answers 404: the object does not exist, or the caller may not see it.
func NotFound(resource schema.GroupResource, name string) *Error {
	return newError(apierrors.NewNotFound(resource, name))
}

// NoRoute answers 404: the path is no endpoint.
func NoRoute() *Error {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// AlreadyExists answers 409: the name is in use.
func AlreadyExists(resource schema.GroupResource, name string) *Error {
	return newError(apierrors.NewAlreadyExists(resource, name))
}

// BeingDeleted answers 409: the name is taken until its deletion has ended. The reason is AlreadyExists.
func BeingDeleted(resource schema.GroupResource, name string) *Error {
	err := AlreadyExists(resource, name)
	err.status.Message = shorten("object is being deleted: "+err.status.Message, limits.MessageBytes)
	return err
}

// GeneratedNameExists answers 409: each name that was made from generateName is in use. Source: Spec 7.
func GeneratedNameExists(resource schema.GroupResource, name string) *Error {
	return newError(apierrors.NewGenerateNameConflict(resource, name, 1))
}

// Conflict answers 409: the object is not as the caller expected it.
func Conflict(resource schema.GroupResource, name, why string) *Error {
	return newError(apierrors.NewConflict(resource, name, errors.New(why)))
}

// Modified answers 409: the resourceVersion is stale.
func Modified(resource schema.GroupResource, name string) *Error {
	return Conflict(resource, name,
		"the object has been modified; please apply your changes to the latest version and try again")
}

// Invalid answers 422: fields of the object are wrong. There is a cause for each one, as far as Summary names it.
func Invalid(kind schema.GroupKind, name string, problems field.ErrorList) *Error {
	err := newError(apierrors.NewInvalid(kind, name, nil))
	if len(problems) > 0 {
		err.status.Message = shorten(err.status.Message+": "+Summary(problems), limits.MessageBytes)
	}
	err.status.Details.Causes = causes(problems)
	return err
}

// Forbidden answers 403: the caller may not do this. The problems name the fields that ask for too much, and may be empty.
func Forbidden(resource schema.GroupResource, name, why string, problems field.ErrorList) *Error {
	err := newError(apierrors.NewForbidden(resource, name, errors.New(why)))
	err.status.Details.Causes = causes(problems)
	return err
}

// Unauthorized answers 401: there is no credential that is valid now. The text must not say more about the credential than
// the caller may learn.
func Unauthorized(why string) *Error { return newError(apierrors.NewUnauthorized(why)) }

// BadRequest answers 400: the request cannot be read. The problems name the fields that could not be read, and may be empty.
func BadRequest(why string, problems field.ErrorList) *Error {
	err := newError(apierrors.NewBadRequest(why))
	if len(problems) > 0 {
		err.status.Details = &metav1.StatusDetails{Causes: causes(problems)}
	}
	return err
}

// MethodNotAllowed answers 405: the path does not have this method.
func MethodNotAllowed(method string) *Error {
	return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, fmt.Sprintf("the method %s is not allowed here", method))
}

// NotAcceptable answers 406: the client accepts none of the media types that are served. The text names them.
func NotAcceptable(offers string) *Error {
	return failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "only the following media types are accepted: "+offers)
}

// UnsupportedMediaType answers 415: the body has a media type that is not accepted. The text names the accepted media
// types.
func UnsupportedMediaType(got, offers string) *Error {
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, fmt.Sprintf("the body of the request was in an unknown format (%q) - accepted media types include: %s", got, offers))
}

// TooLarge answers 413: the request, or the response to it, is too large.
func TooLarge(why string) *Error { return newError(apierrors.NewRequestEntityTooLargeError(why)) }

// TooLargeField answers 413: a field is too large. The text names it.
func TooLargeField(at, why string) *Error {
	err := TooLarge(shorten(at, limits.FaultBytes) + ": " + why)
	err.status.Details = &metav1.StatusDetails{Causes: causes(field.ErrorList{{
		Type: field.ErrorTypeTooMany, Field: at, BadValue: field.OmitValueType{}, Detail: why,
	}})}
	return err
}

// HeaderTooLarge answers 431: the head of the request exceeds a limit.
func HeaderTooLarge(why string) *Error {
	return failure(http.StatusRequestHeaderFieldsTooLarge, metav1.StatusReasonRequestEntityTooLarge, why)
}

// TooMany answers 429 with Retry-After: the caller has reached a limit, which the text names. Source: ADR-0020.
func TooMany(why string, seconds int32) *Error {
	return failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, why).retryAfter(seconds)
}

// Unprocessable answers 422: the request is well-formed but cannot be done, such as a JSON patch whose test fails.
func Unprocessable(why string) *Error {
	return failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, why)
}

// Expired answers 410: a continue token or resourceVersion is too old.
func Expired(why string) *Error { return newError(apierrors.NewResourceExpired(why)) }

// VersionTooLarge answers 504: the state has not reached that resourceVersion yet.
func VersionTooLarge(asked, current int64) *Error {
	err := newError(apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1))
	err.status.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// Timeout answers 504: the deadline of the request has passed.
func Timeout() *Error {
	return newError(apierrors.NewTimeoutError("the request did not finish in time", 1))
}

// BodyTimeout answers 408: the body of the request did not arrive in time.
func BodyTimeout() *Error {
	return failure(http.StatusRequestTimeout, metav1.StatusReasonTimeout, "the body of the request did not arrive in time")
}

// Unavailable answers 503 with Retry-After: the state cannot be reached.
func Unavailable() *Error {
	return newError(apierrors.NewServiceUnavailable("the state of the platform cannot be reached; try again")).retryAfter(1)
}

// Prefetched answers 503: a browser prefetched a page that has an effect. It requests the page again when a person opens
// it.
func Prefetched() *Error {
	return newError(apierrors.NewServiceUnavailable("the page is not served in advance: it has an effect"))
}

// NotImplemented answers 501: the deployment lacks what the request needs. The text says what. Source: ADR-0034.
func NotImplemented(why string) *Error {
	return failure(http.StatusNotImplemented, metav1.StatusReasonMethodNotAllowed, why)
}

// InProgress answers 409 with Retry-After: the same request is being served already. Source: ADR-0017.
func InProgress(why string) *Error {
	return failure(http.StatusConflict, metav1.StatusReasonConflict, why).retryAfter(1)
}

// Upstream answers 503 with Retry-After: a system outside the platform, on which the answer depends, has failed.
func Upstream(why string) *Error {
	return newError(apierrors.NewServiceUnavailable(why)).retryAfter(5)
}

// UpstreamTimeout answers 504: a system outside the platform did not answer in time.
func UpstreamTimeout(why string) *Error { return newError(apierrors.NewTimeoutError(why, 1)) }

// Unrecorded answers 503: the audit cannot record the request, and its policy refuses requests that are not recorded,
// although the request may have taken effect. Source: ADR-0016.
func Unrecorded() *Error {
	return newError(apierrors.NewServiceUnavailable("the audit log cannot record the request, and its policy requires that; try again")).retryAfter(1)
}

// Internal answers 500: the server has failed. The text is fixed, and only the log sees the cause.
func Internal(cause error) *Error {
	return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"the request could not be served because of an internal error").Because(cause)
}

// Broken answers 500: the server has failed, and the text says what to do, for example to inform the operators.
func Broken(why string) *Error {
	err := Internal(nil)
	err.status.Message = shorten(why, limits.MessageBytes)
	return err
}

// From returns the Error that err is or wraps. A deadline that has passed is Timeout, and so is a request that the
// client has canceled; anything else is Internal.
func From(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Timeout().Because(err)
	}
	return Internal(err)
}
