package apierror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model/apierror"
)

var (
	keys     = schema.GroupResource{Group: "management.platform.sh", Resource: "ownedaccesskeys"}
	kind     = schema.GroupKind{Group: "management.platform.sh", Kind: "OwnedAccessKey"}
	problems = field.ErrorList{
		field.Invalid(field.NewPath("spec", "ttl"), -1, "x"),
		field.Required(field.NewPath("spec", "groups").Index(1), "y"),
		field.Forbidden(field.NewPath("spec", "scope"), "z"),
	}
	fields = []string{"FieldValueInvalid spec.ttl", "FieldValueRequired spec.groups[1]", "FieldValueForbidden spec.scope"}
)

// TestConstructors checks the code, the reason and the details of every failure that the API answers. Source: Spec 7;
// ADR-0001.
func TestConstructors(t *testing.T) {
	for _, row := range []struct {
		section string
		answer  string
		err     *apierror.Error
		code    int32
		reason  metav1.StatusReason
		is      func(error) bool
		// kind, name and retry are the kind, the name and the retryAfterSeconds of details.
		kind, name string
		retry      int32
		causes     []string
	}{
		{"ADR-0004", "NotFound", apierror.NotFound(keys, "ci"), 404, metav1.StatusReasonNotFound, apierrors.IsNotFound, keys.Resource, "ci", 0, nil},
		{"ADR-0001", "NoRoute", apierror.NoRoute(), 404, metav1.StatusReasonNotFound, apierrors.IsNotFound, "", "", 0, nil},
		{"Spec 2.2", "AlreadyExists", apierror.AlreadyExists(keys, "ci"), 409, metav1.StatusReasonAlreadyExists, apierrors.IsAlreadyExists, keys.Resource, "ci", 0, nil},
		{"Spec 7", "GeneratedNameExists", apierror.GeneratedNameExists(keys, "ci-"), 409, metav1.StatusReasonAlreadyExists, apierrors.IsAlreadyExists, keys.Resource, "ci-", 1, nil},
		{"Spec 2.2", "Conflict", apierror.Conflict(keys, "ci", "x"), 409, metav1.StatusReasonConflict, apierrors.IsConflict, keys.Resource, "ci", 0, nil},
		{"Spec 2.2", "Modified", apierror.Modified(keys, "ci"), 409, metav1.StatusReasonConflict, apierrors.IsConflict, keys.Resource, "ci", 0, nil},
		{"Spec 7", "Invalid", apierror.Invalid(kind, "ci", problems), 422, metav1.StatusReasonInvalid, apierrors.IsInvalid, kind.Kind, "ci", 0, fields},
		{"ADR-0005", "Forbidden", apierror.Forbidden(keys, "ci", "x", problems), 403, metav1.StatusReasonForbidden, apierrors.IsForbidden, keys.Resource, "ci", 0, fields},
		{"ADR-0005", "Forbidden without fields", apierror.Forbidden(keys, "", "x", nil), 403, metav1.StatusReasonForbidden, apierrors.IsForbidden, keys.Resource, "", 0, nil},
		{"Spec 5.1", "Unauthorized", apierror.Unauthorized("x"), 401, metav1.StatusReasonUnauthorized, apierrors.IsUnauthorized, "", "", 0, nil},
		{"ADR-0003", "BadRequest", apierror.BadRequest("x", problems), 400, metav1.StatusReasonBadRequest, apierrors.IsBadRequest, "", "", 0, fields},
		{"ADR-0003", "BadRequest without fields", apierror.BadRequest("x", nil), 400, metav1.StatusReasonBadRequest, apierrors.IsBadRequest, "", "", 0, nil},
		{"ADR-0001", "MethodNotAllowed", apierror.MethodNotAllowed("PUT"), 405, metav1.StatusReasonMethodNotAllowed, apierrors.IsMethodNotSupported, "", "", 0, nil},
		{"ADR-0001", "NotAcceptable", apierror.NotAcceptable("x"), 406, metav1.StatusReasonNotAcceptable, apierrors.IsNotAcceptable, "", "", 0, nil},
		{"ADR-0001", "UnsupportedMediaType", apierror.UnsupportedMediaType("a/b", "x"), 415, metav1.StatusReasonUnsupportedMediaType, apierrors.IsUnsupportedMediaType, "", "", 0, nil},
		{"ADR-0004", "TooLarge", apierror.TooLarge("x"), 413, metav1.StatusReasonRequestEntityTooLarge, apierrors.IsRequestEntityTooLargeError, "", "", 0, nil},
		{"ADR-0004", "Unprocessable", apierror.Unprocessable("x"), 422, metav1.StatusReasonInvalid, apierrors.IsInvalid, "", "", 0, nil},
		{"ADR-0004", "Expired", apierror.Expired("x"), 410, metav1.StatusReasonExpired, apierrors.IsResourceExpired, "", "", 0, nil},
		{"ADR-0004", "VersionTooLarge", apierror.VersionTooLarge(7, 5), 504, metav1.StatusReasonTimeout, apierrors.IsTimeout, "", "", 1, []string{"ResourceVersionTooLarge "}},
		{"ADR-0001", "Timeout", apierror.Timeout(), 504, metav1.StatusReasonTimeout, apierrors.IsTimeout, "", "", 1, nil},
		{"ADR-0034", "NotImplemented", apierror.NotImplemented("x"), 501, metav1.StatusReasonMethodNotAllowed, apierrors.IsMethodNotSupported, "", "", 0, nil},
		{"ADR-0002", "Unavailable", apierror.Unavailable(), 503, metav1.StatusReasonServiceUnavailable, apierrors.IsServiceUnavailable, "", "", 1, nil},
		{"ADR-0001", "Internal", apierror.Internal(errors.New("x")), 500, metav1.StatusReasonInternalError, apierrors.IsInternalError, "", "", 0, nil},
	} {
		t.Run(row.section+" "+row.answer, func(t *testing.T) {
			status := row.err.Status()
			if status.Status != metav1.StatusFailure || status.Code != row.code || status.Reason != row.reason || status.Message == "" {
				t.Errorf("status is %+v", status)
			}
			if status.Message != row.err.Error() {
				t.Errorf("the error says %q and the status %q", row.err, status.Message)
			}
			if http.StatusText(int(status.Code)) == "" {
				t.Errorf("%d is no status code", status.Code)
			}
			wrapped := fmt.Errorf("creating: %w", row.err)
			if !row.is(row.err) || !row.is(wrapped) || apierror.From(wrapped) != row.err {
				t.Errorf("it is not known for what it is")
			}
			details := status.Details
			if details == nil {
				details = &metav1.StatusDetails{}
			}
			if details.Kind != row.kind || details.Name != row.name || details.RetryAfterSeconds != row.retry {
				t.Errorf("details are %+v", details)
			}
			var causes []string
			for _, cause := range details.Causes {
				causes = append(causes, string(cause.Type)+" "+cause.Field)
				if cause.Message == "" {
					t.Errorf("a cause without a message: %+v", cause)
				}
			}
			if fmt.Sprint(causes) != fmt.Sprint(row.causes) {
				t.Errorf("causes are %q, want %q", causes, row.causes)
			}
		})
	}
}

// What an error becomes on its way to the client. Source: ADR-0001.
func TestFrom(t *testing.T) {
	refusal := apierror.NotFound(keys, "ci")
	foreign := errors.New("dial tcp 10.0.0.7:6379: password hunter2 refused")
	for _, row := range []struct {
		sentence string
		err      error
		code     int32
		reason   metav1.StatusReason
	}{
		{"an Error is itself", refusal, 404, metav1.StatusReasonNotFound},
		{"a wrapped Error is itself", fmt.Errorf("reading: %w", fmt.Errorf("again: %w", refusal)), 404, metav1.StatusReasonNotFound},
		{"an Error among others is itself", errors.Join(foreign, refusal), 404, metav1.StatusReasonNotFound},
		{"an Error because of a deadline is itself", refusal.Because(context.DeadlineExceeded), 404, metav1.StatusReasonNotFound},
		{"a passed deadline is a timeout", context.DeadlineExceeded, 504, metav1.StatusReasonTimeout},
		{"a wrapped deadline is a timeout", fmt.Errorf("reading: %w", context.DeadlineExceeded), 504, metav1.StatusReasonTimeout},
		{"a request that was given up is a timeout", fmt.Errorf("reading: %w", context.Canceled), 504, metav1.StatusReasonTimeout},
		{"anything else is internal", foreign, 500, metav1.StatusReasonInternalError},
		{"an error of Kubernetes' own is internal", apierrors.NewNotFound(keys, "ci"), 500, metav1.StatusReasonInternalError},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			got := apierror.From(row.err)
			status := got.Status()
			if status.Code != row.code || status.Reason != row.reason {
				t.Errorf("got %d %s", status.Code, status.Reason)
			}
			if row.code >= 500 {
				if !errors.Is(got, row.err) {
					t.Errorf("the log does not see the cause")
				}
				if text := visible(t, got); strings.Contains(text, "hunter2") || strings.Contains(text, row.err.Error()) {
					t.Errorf("the caller sees the cause: %s", text)
				}
			}
		})
	}
	if one, other := apierror.From(errors.New("a")), apierror.From(errors.New("b")); one.Error() != other.Error() {
		t.Errorf("the text of an internal error depends on its cause")
	}
}

// visible returns everything that a caller can see of an error.
func visible(t *testing.T, err *apierror.Error) string {
	t.Helper()
	text, failure := json.Marshal(err.Status())
	if failure != nil {
		t.Fatal(failure)
	}
	return string(text) + fmt.Sprintf(" %s %v %q", err, err, err)
}

// Only the log sees a cause. Source: ADR-0001.
func TestBecause(t *testing.T) {
	cause := errors.New("password hunter2")
	for name, original := range map[string]*apierror.Error{
		"Unavailable": apierror.Unavailable(), "Internal": apierror.Internal(nil), "Timeout": apierror.Timeout(),
		"NotFound": apierror.NotFound(keys, "ci"), "BadRequest": apierror.BadRequest("x", problems), "Invalid": apierror.Invalid(kind, "ci", problems),
	} {
		before := visible(t, original)
		caused := original.Because(fmt.Errorf("dialling: %w", cause))
		if after := visible(t, caused); after != before || strings.Contains(after, "hunter2") {
			t.Errorf("%s: the caller sees %s", name, after)
		}
		if !errors.Is(caused, cause) || errors.Is(original, cause) {
			t.Errorf("%s: the cause is lost, or is in the error that it was added to", name)
		}
		if wrapped := fmt.Errorf("x: %w", caused); apierror.From(wrapped) != caused {
			t.Errorf("%s: the cause is lost on the way", name)
		}
	}
}
