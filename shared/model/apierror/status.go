package apierror

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// FromStatusError returns the Error for an error of apimachinery, such as the conflict of an apply. The text for the caller is
// unchanged.
func FromStatusError(err *apierrors.StatusError) *Error { return newError(err) }
