package frame

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

// Delete binds an operation to DELETE on one object: 200 with a Status, or with the object while a grace period or
// finalizers hold it. As in Kubernetes, the latter is 202 for the deprecated orphanDependents=false.
func Delete[T resource.Object, D any](
	definition *resource.Definition[T], open func(*Environment) D,
	do func(context.Context, D, resource.DeleteInput) (runtime.Object, error),
) Endpoint {
	return bind(definition, http.MethodDelete, "delete", item, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		options, err := readDeleteOptions(c)
		if err != nil {
			return nil, err
		}
		object, err := do(ctx, deps, options.input(c))
		if err != nil {
			return nil, err
		}
		status := http.StatusOK
		if _, gone := object.(*metav1.Status); !gone && options.orphan != nil && !*options.orphan {
			status = http.StatusAccepted
		}
		return &answer{status: status, object: object}, nil
	})
}

// DeleteCollection binds an operation to DELETE on a resource: 200 with the list of the objects as they were.
func DeleteCollection[T resource.Object, D any](
	definition *resource.Definition[T], open func(*Environment) D,
	do func(context.Context, D, resource.DeleteInput) (runtime.Object, error),
) Endpoint {
	return bind(definition, http.MethodDelete, "deletecollection", collection, open, func(ctx context.Context, deps D, c *call) (*answer, error) {
		selection := resource.ListInput{Caller: c.caller, Namespace: c.namespace}
		if err := readListOptions(c.query, &selection); err != nil {
			return nil, err
		}
		options, err := readDeleteOptions(c)
		if err != nil {
			return nil, err
		}
		in := options.input(c)
		in.Selection = &selection
		list, err := do(ctx, deps, in)
		if err != nil {
			return nil, err
		}
		return &answer{status: http.StatusOK, object: list}, nil
	})
}

// deleteOptions are the options of a delete, from body and query together.
type deleteOptions struct {
	metav1.DeleteOptions
	// orphan is the deprecated orphanDependents, which propagationPolicy replaces.
	orphan *bool
}

// input is the request that the options are about.
func (o deleteOptions) input(c *call) resource.DeleteInput {
	conditions := valueOf(o.Preconditions)
	return resource.DeleteInput{
		Caller: c.caller, Namespace: c.namespace, Name: c.name,
		UID: valueOf(conditions.UID), ResourceVersion: valueOf(conditions.ResourceVersion),
		GracePeriodSeconds: o.GracePeriodSeconds, Propagation: o.propagation(), DryRun: len(o.DryRun) > 0,
	}
}

// propagation is what becomes of the objects that the deleted one owns. Empty: nothing was said.
func (o deleteOptions) propagation() metav1.DeletionPropagation {
	switch {
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy
	case o.orphan == nil:
		return ""
	case *o.orphan:
		return metav1.DeletePropagationOrphan
	default:
		return metav1.DeletePropagationBackground
	}
}

// readDeleteOptions reads the body and query of a delete. The query wins where both speak: what it says can be seen,
// and one who asks there for a dry run must not be misunderstood.
//
// Errors: BadRequest for what cannot be read, Invalid for what is not allowed. Source: Spec 2.2; ADR-0009.
func readDeleteOptions(c *call) (deleteOptions, error) {
	var options deleteOptions
	data, err := c.body()
	if err != nil {
		return options, err
	}
	if len(data) > 0 {
		body, err := codec.Read(c.http.Header.Get("Content-Type"), data)
		if err != nil {
			return options, err
		}
		if _, err := codec.Decode(body, &options.DeleteOptions, codec.Ignore); err != nil {
			return options, err
		}
		// An object in the place of options is a mistake, of one who may have meant to delete another.
		if kind := options.Kind; kind != "" && kind != "DeleteOptions" {
			return options, apierror.BadRequest(fmt.Sprintf("the kind in the data (%s) does not match the expected kind (DeleteOptions)", kind),
				field.ErrorList{field.NotSupported(field.NewPath("kind"), kind, []string{"DeleteOptions"})})
		}
	}
	options.orphan = options.OrphanDependents //nolint:staticcheck // deprecated, and still sent
	if given, ok := c.query["dryRun"]; ok {
		options.DryRun = given
	}
	if text := c.query.Get("gracePeriodSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return options, unreadable("gracePeriodSeconds", text, "must be a whole number of seconds")
		}
		options.GracePeriodSeconds = &seconds
	}
	if text := c.query.Get("orphanDependents"); text != "" {
		orphan, err := strconv.ParseBool(text)
		if err != nil {
			return options, unreadable("orphanDependents", text, "must be true or false")
		}
		options.orphan = &orphan
	}
	if text := c.query.Get("propagationPolicy"); text != "" {
		options.PropagationPolicy = new(metav1.DeletionPropagation(text))
	}
	return options, invalidOptions("DeleteOptions", options.validate())
}

func (o deleteOptions) validate() field.ErrorList {
	_, problems := readDryRun(o.DryRun)
	if grace := o.GracePeriodSeconds; grace != nil {
		path := field.NewPath("gracePeriodSeconds")
		switch {
		case *grace < 0:
			problems = append(problems, field.Invalid(path, *grace, "must not be negative"))
		case *grace > resource.MaxGracePeriodSeconds:
			problems = append(problems, field.Invalid(path, *grace, fmt.Sprintf("must be at most %d", resource.MaxGracePeriodSeconds)))
		}
	}
	path := field.NewPath("propagationPolicy")
	if o.PropagationPolicy == nil {
		return problems
	}
	if o.orphan != nil {
		problems = append(problems, field.Invalid(path, *o.PropagationPolicy, "orphanDependents and propagationPolicy cannot be both set"))
	}
	switch *o.PropagationPolicy {
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		problems = append(problems, field.NotSupported(path, *o.PropagationPolicy, []metav1.DeletionPropagation{
			metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
		}))
	}
	return problems
}

// unreadable is the answer for a query parameter that cannot be read.
func unreadable(name, value, why string) error {
	return apierror.BadRequest(fmt.Sprintf("%s: invalid value %q: %s", name, value, why),
		field.ErrorList{field.Invalid(field.NewPath(name), value, why)})
}

// valueOf is what a field that may be left out says; its zero value when it is left out.
func valueOf[V any](field *V) V {
	if field == nil {
		var zero V
		return zero
	}
	return *field
}
