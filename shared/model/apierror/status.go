package apierror

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// Of is an error of apimachinery, such as the conflict of an apply, with what the caller may read unchanged.
func Of(err *apierrors.StatusError) *Error { return from(err) }
