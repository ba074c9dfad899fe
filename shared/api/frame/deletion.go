package frame

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Delete binds an operation to DELETE on one object: 200 with a Status, or with the object while a grace period or
// finalizers hold it. As in Kubernetes, the latter is 202 for the deprecated orphanDependents=false.
func Delete[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.DeleteInput) (runtime.Object, error),
) Endpoint {
	return bind(definition, http.MethodDelete, "delete", item, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		options, err := readDeleteOptions(c)
		if err != nil {
			return nil, err
		}
		ctx, in := deletion(ctx, c, options)
		object, err := do(ctx, deps, in)
		if err != nil {
			return nil, err
		}
		status := http.StatusOK
		if _, gone := object.(*metav1.Status); !gone && !ptr.Deref(options.OrphanDependents, true) { //nolint:staticcheck // deprecated, and still sent
			status = http.StatusAccepted
		}
		return &answer{status: status, object: object, warnings: ignoredOptions(c)}, nil
	})
}

// DeleteCollection binds an operation to DELETE on a resource: 200 with the list of the objects as they were.
func DeleteCollection[T resource.Object, D any](
	definition *resource.Definition[T], open func(*platform.Environment) D,
	do func(context.Context, D, resource.DeleteInput) (runtime.Object, error),
) Endpoint {
	return bind(definition, http.MethodDelete, "deletecollection", collection, withPages(open), func(ctx context.Context, deps paged[D], c *call) (*answer, error) {
		selection := resource.ListInput{Caller: c.caller, Namespace: c.namespace, ContinueKeys: deps.keys}
		if err := readListOptions(c.query, &selection); err != nil {
			return nil, err
		}
		options, err := readDeleteOptions(c)
		if err != nil {
			return nil, err
		}
		ctx, in := deletion(ctx, c, options)
		selection.Rest = &resource.Rest{}
		in.Selection = &selection
		list, err := do(ctx, deps.deps, in)
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusOK, object: list, rest: selection.Rest, warnings: ignoredOptions(c)}, nil
	})
}

// deletion returns the input of a delete request with the given options, and its context: a dry run cannot write.
func deletion(ctx context.Context, c *call, options *metav1.DeleteOptions) (context.Context, resource.DeleteInput) {
	if len(options.DryRun) > 0 {
		ctx = store.ReadOnly(ctx)
	}
	conditions := ptr.Deref(options.Preconditions, metav1.Preconditions{})
	return ctx, resource.DeleteInput{
		Caller: c.caller, Namespace: c.namespace, Name: c.name, Prefetched: c.prefetched,
		UID: ptr.Deref(conditions.UID, ""), ResourceVersion: ptr.Deref(conditions.ResourceVersion, ""),
		GracePeriodSeconds: options.GracePeriodSeconds, Propagation: chosenPropagation(options), DryRun: len(options.DryRun) > 0,
	}
}

// chosenPropagation returns what happens to the dependents of the deleted object. Empty: the request does not say.
func chosenPropagation(options *metav1.DeleteOptions) metav1.DeletionPropagation {
	orphan := options.OrphanDependents //nolint:staticcheck // deprecated, and still sent
	switch {
	case options.PropagationPolicy != nil:
		return *options.PropagationPolicy
	case orphan == nil:
		return ""
	case *orphan:
		return metav1.DeletePropagationOrphan
	default:
		return metav1.DeletePropagationBackground
	}
}

// readDeleteOptions reads the options of a delete from its body or, if it has none, from its query. As in Kubernetes, the
// query of a request with a body is ignored, also a dry run.
//
// Errors: BadRequest for options that cannot be parsed, Invalid for values that are not allowed. Source: Spec 2.2; ADR-0009.
func readDeleteOptions(c *call) (*metav1.DeleteOptions, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(data) > 0 {
		err = decodeDeleteOptions(c, data, options)
	} else {
		err = queriedDeleteOptions(c.query, options)
	}
	if err != nil {
		return nil, err
	}
	problems := append(metav1validation.ValidateDeleteOptions(options), checkGrace(options.GracePeriodSeconds)...)
	return options, invalidOptions("DeleteOptions", problems)
}

// ignoredOptions returns a warning for each option in the query of a delete that its body makes void.
func ignoredOptions(c *call) []string {
	var warnings []string
	for _, name := range []string{"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"} {
		if len(c.sent) > 0 && c.query.Has(name) {
			warnings = append(warnings, "the query parameter "+name+" is ignored: the request has a body, whose options apply")
		}
	}
	return warnings
}

// decodeDeleteOptions reads the body of a delete.
func decodeDeleteOptions(c *call, data []byte, options *metav1.DeleteOptions) error {
	body, err := codec.Read(c.http.Header.Get("Content-Type"), data)
	if err != nil {
		return err
	}
	if _, err := codec.Decode(body, options, codec.Ignore); err != nil {
		return err
	}
	// A body of another kind is a mistake: the client may have meant to delete another object.
	return codec.CheckKind(options, schema.GroupVersionKind{Kind: "DeleteOptions"})
}

// queriedDeleteOptions reads the query of a delete.
func queriedDeleteOptions(query url.Values, options *metav1.DeleteOptions) error {
	options.DryRun = query["dryRun"]
	if text := query.Get("gracePeriodSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return unreadable("gracePeriodSeconds", text, "must be a whole number of seconds")
		}
		options.GracePeriodSeconds = &seconds
	}
	if text := query.Get("orphanDependents"); text != "" {
		orphan, err := strconv.ParseBool(text)
		if err != nil {
			return unreadable("orphanDependents", text, "must be true or false")
		}
		options.OrphanDependents = &orphan //nolint:staticcheck // deprecated, and still sent
	}
	if text := query.Get("propagationPolicy"); text != "" {
		options.PropagationPolicy = new(metav1.DeletionPropagation(text))
	}
	return nil
}

// checkGrace checks the bounds of the grace period. Kubernetes leaves this check to each resource. Source: ADR-0009.
func checkGrace(seconds *int64) field.ErrorList {
	path := field.NewPath("gracePeriodSeconds")
	switch grace := ptr.Deref(seconds, 0); {
	case grace < 0:
		return field.ErrorList{field.Invalid(path, grace, "must not be negative")}
	case grace > resource.MaxGracePeriodSeconds:
		return field.ErrorList{field.Invalid(path, grace, fmt.Sprintf("must be at most %d", resource.MaxGracePeriodSeconds))}
	}
	return nil
}

// unreadable returns the error for a query parameter that cannot be parsed.
func unreadable(name, value, why string) error {
	return apierror.BadRequest(fmt.Sprintf("%s: invalid value %q: %s", name, value, why),
		field.ErrorList{field.Invalid(field.NewPath(name), value, why)})
}
