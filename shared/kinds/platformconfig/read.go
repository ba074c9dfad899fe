package platformconfig

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// Get returns the configuration in effect, looked for at this very moment: with defaults, conditions and, unless
// they are asked for, without secrets. Errors: NotFound for another name, ServiceUnavailable.
// Source: Spec 2.7, 4 row 3; ADR-0015.
func (s *Source) Get(ctx context.Context, in resource.GetInput) (*model.Config, error) {
	if in.Name != Name {
		return nil, apierror.NotFound(Definition.GroupResource(), in.Name)
	}
	return s.latest(ctx, in.Reveal)
}

func (s *Source) latest(ctx context.Context, reveal bool) (*model.Config, error) {
	err := s.Reload(ctx)
	now := s.current.Load()
	// That a file cannot be read any more is said by the conditions of what stays in effect.
	if err != nil && (now == nil || !s.FromFile()) {
		return nil, translate(err)
	}
	return s.show(now, reveal), nil
}

// List returns the one configuration, if the selectors select it. Errors: BadRequest for a field that cannot be
// selected by, ServiceUnavailable. Source: Spec 4 row 2.
func (s *Source) List(ctx context.Context, in resource.ListInput) (runtime.Object, error) {
	for _, requirement := range in.Fields.Requirements() {
		if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
			return nil, apierror.BadRequest(fmt.Sprintf("fieldSelector: %q is not supported", requirement.Field),
				field.ErrorList{field.NotSupported(field.NewPath("fieldSelector"), requirement.Field, []string{"metadata.name"})})
		}
	}
	config, err := s.latest(ctx, in.Reveal)
	if err != nil {
		return nil, err
	}
	var items []*model.Config
	if in.Labels.Matches(labels.Set(config.Labels)) && in.Fields.Matches(fields.Set{"metadata.name": Name, "metadata.namespace": ""}) {
		items = append(items, config)
	}
	return Definition.NewList(metav1.ListMeta{ResourceVersion: config.ResourceVersion}, items), nil
}
