package syncpatch

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

// CheckSpec reads the evaluation of a client, and returns all errors and warnings about it, at fields below spec. With
// an error among the problems, the first result is nil. The time of parsing an expression is not bounded: package
// worker calls this in a process that can be stopped. Source: Spec 2.8; ADR-0013, ADR-0014.
func CheckSpec(ctx context.Context, spec *model.SyncPatchEvaluationSpec) (*Checked, []Problem) {
	p := problems{reading: readingOf(ctx)}
	specPath := field.NewPath("spec")
	contextPath := specPath.Child("context")
	r := Request{
		Direction: spec.Direction, NamespaceMode: spec.NamespaceMode, Naming: spec.Naming, ClusterDomain: spec.ClusterDomain,
		Patches: spec.Patches, Checks: spec.Checks,
		Object: p.object(specPath.Child("object"), spec.Object),
		Context: Context{
			Tenant: Tenant{
				Name: spec.Context.Tenant.Name, Namespace: spec.Context.Tenant.Namespace,
				Config: p.object(contextPath.Child("tenant", "config"), spec.Context.Tenant.Config),
			},
			HostObject:    p.object(contextPath.Child("hostObject"), spec.Context.HostObject),
			VirtualObject: p.object(contextPath.Child("virtualObject"), spec.Context.VirtualObject),
			References:    spec.Context.References,
		},
	}
	var patches []patch
	const either = "set either patches, or resource and configuration"
	configured := spec.Resource != "" || spec.Configuration != nil
	switch {
	case configured && len(spec.Patches) > 0:
		p.add(field.Forbidden(specPath.Child("patches"), either))
	case configured:
		patches = r.configure(&p, specPath, spec)
	case len(spec.Patches) == 0:
		p.add(field.Required(specPath.Child("patches"), either))
	}
	r = r.withDefaults()
	reported := map[string]bool{}
	for _, problem := range p.found {
		reported[problem.Field] = true
	}
	more := problems{reading: p.reading}
	more.request(&r)
	if !configured {
		patches = more.patches(specPath.Child("patches"), r.Patches)
	}
	more.tenant(&r)
	for _, problem := range more.found {
		if !reported[problem.Field] {
			p.found = append(p.found, problem)
		}
	}
	return r.result(patches, p.found)
}

// Outcome is the result of checking and evaluating the evaluation of a client.
type Outcome struct {
	// Problems are the errors and warnings.
	Problems []Problem
	// Paths are the paths of the patches as they were sent. Fields are the fields that cause the failure if the patches
	// fail. Both are empty if there are errors among the problems, and so is Direction.
	Paths, Fields []string
	// Direction is the direction of the evaluation: the direction that was sent, or the default.
	Direction string
	// Status is the result. Nil if there are errors among the problems.
	Status *model.SyncPatchEvaluationStatus
	// Failed is the field of the expression or the path that failed, if the status has an error.
	Failed string
}

// EvaluateSpec checks the evaluation of a client and, if it has no errors, evaluates it. Before the evaluation it calls
// begun with the Outcome so far, unless begun is nil. It returns the error of ctx. Source: Spec 2.8; ADR-0013,
// ADR-0014.
func EvaluateSpec(ctx context.Context, spec *model.SyncPatchEvaluationSpec, limits Limits, begun func(Outcome)) (Outcome, error) {
	checked, problems := CheckSpec(ctx, spec)
	outcome := Outcome{Problems: problems}
	if checked == nil {
		return outcome, nil
	}
	outcome.Direction = checked.request.Direction
	for i := range checked.patches {
		outcome.Paths = append(outcome.Paths, checked.request.Patches[i].Path)
		outcome.Fields = append(outcome.Fields, checked.patches[i].failedField(outcome.Direction).String())
	}
	if begun != nil {
		begun(outcome)
	}
	result, err := EvaluateInPlace(ctx, checked, limits)
	if err != nil {
		return outcome, err
	}
	status, err := result.Status()
	if err != nil {
		return outcome, err
	}
	if failed := result.Error; failed != nil {
		status.Object = spec.Object
		outcome.Failed = outcome.Fields[failed.Index]
	}
	status.Warnings = Warnings(problems)
	outcome.Status = &status
	return outcome, nil
}

// AbsentPaths returns the patches that have no path in spec.patches of the JSON text from which they were decoded. Such
// a patch would apply to the whole object, for which the empty path must be written. CheckSpec cannot tell the two
// apart. The text is parsed only if a patch has an empty path. Source: Spec 2.8; ADR-0013.
func AbsentPaths(patches []model.SyncPatch, text []byte) []Problem {
	if !slices.ContainsFunc(patches, func(patch model.SyncPatch) bool { return patch.Path == "" }) {
		return nil
	}
	var sent struct {
		Spec struct {
			Patches []struct {
				Path *string `json:"path"`
			} `json:"patches"`
		} `json:"spec"`
	}
	if utiljson.Unmarshal(text, &sent) != nil {
		return nil
	}
	var p problems
	for i, patch := range sent.Spec.Patches {
		if patch.Path == nil {
			p.add(field.Required(field.NewPath("spec", "patches").Index(i).Child("path"), wholeObject))
		}
	}
	return p.found
}

// configure takes the patches from the configuration, which has checked them. It also takes the direction and the
// configuration of the tenant, unless the request has them.
func (r *Request) configure(p *problems, fieldPath *field.Path, spec *model.SyncPatchEvaluationSpec) []patch {
	if spec.Resource == "" {
		p.add(field.Required(fieldPath.Child("resource"), "the resource to take the patches of, such as pods"))
	}
	if spec.Configuration == nil {
		p.add(field.Required(fieldPath.Child("configuration"), "the configuration with the patches of the resource"))
		return nil
	}
	content := p.object(fieldPath.Child("configuration"), spec.Configuration)
	if content == nil {
		return nil
	}
	if r.Context.Tenant.Config == nil {
		r.Context.Tenant.Config = content
	}
	configuration, found := readObject(p.reading, fieldPath.Child("configuration"), content)
	p.found = append(p.found, found...)
	if spec.Resource == "" || len(Errors(found)) > 0 {
		return nil
	}
	resource, unknown := configuration.resource(fieldPath.Child("resource"), spec.Resource)
	r.Resource = spec.Resource
	r.Patches, r.Disabled, r.OneWay = resource.patches, resource.disabled, resource.oneWay
	switch {
	case r.OneWay && r.Direction == "":
		r.Direction = model.HostToTenant
	case r.OneWay && r.Direction == model.TenantToHost:
		r.Disabled = cmp.Or(r.Disabled, oneWay)
	}
	switch {
	case unknown != nil:
		p.add(unknown)
	case len(r.Patches) == 0:
		p.warn(fieldPath.Child("resource"), spec.Resource, "the configuration has no patches for this resource")
	}
	return resource.parsed
}

// oneWay is the reason why patches below fromHost do nothing from tenant to host.
const oneWay = "objects below sync.fromHost are synced from host to tenant only"

// object decodes an object. It returns nil for absent and null.
func (p *problems) object(fieldPath *field.Path, value *model.JSON) map[string]any {
	if value == nil || len(value.Raw) == 0 {
		return nil
	}
	p.enter(fieldPath, true)
	var content any
	if err := utiljson.Unmarshal(value.Raw, &content); err != nil {
		p.add(field.Invalid(fieldPath, field.OmitValueType{}, "must be JSON without numbers that are too large"))
		return nil
	}
	object, ok := content.(map[string]any)
	if !ok && content != nil {
		p.add(field.TypeInvalid(fieldPath, kindOf(content), "must be an object"))
	}
	return object
}

// Status returns the result as clients see it. The error is for an object that cannot be encoded as JSON.
func (r *Result) Status() (model.SyncPatchEvaluationStatus, error) {
	text, err := json.Marshal(r.Object)
	if err != nil {
		return model.SyncPatchEvaluationStatus{}, err
	}
	return model.SyncPatchEvaluationStatus{
		Object: raw(text), Patches: r.Patches, References: r.References, Error: r.Error, Checks: r.Checks,
	}, nil
}
