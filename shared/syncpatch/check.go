package syncpatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch/expression"
)

// Problem is what is wrong with patches or their configuration, or what is allowed but does hardly what was
// meant. It names the field and the value; a position within a path or an expression is part of the detail.
type Problem struct {
	*field.Error
	// Warning is set where nothing is wrong.
	Warning bool
	// Line and Column are where the field is in the text of a configuration, from 1. 0 means not known.
	Line, Column int
	// InLine and InColumn are where it is within the value of the field, a path or an expression. 0 means not known.
	InLine, InColumn int
}

// Errors returns the problems that are no warnings.
func Errors(problems []Problem) field.ErrorList {
	var list field.ErrorList
	for _, p := range problems {
		if !p.Warning {
			list = append(list, p.Error)
		}
	}
	return list
}

// Warnings returns the texts of those that are, each with its field.
func Warnings(problems []Problem) []string {
	var texts []string
	for _, p := range problems {
		if p.Warning {
			texts = append(texts, p.Field+": "+p.Detail)
		}
	}
	return texts
}

// InvalidError is why a request cannot be evaluated.
type InvalidError struct {
	// Problems name each bad field below spec.
	Problems field.ErrorList
}

// Error joins the problems.
func (e *InvalidError) Error() string { return e.Problems.ToAggregate().Error() }

// maxPatches is how many patches a list has at most. Source: ADR-0013.
const maxPatches = 1000

type problems []Problem

func (p *problems) add(e *field.Error) { *p = append(*p, Problem{Error: e}) }
func (p *problems) warn(at *field.Path, value any, detail string) {
	*p = append(*p, Problem{Error: field.Invalid(at, value, detail), Warning: true})
}

// Check finds everything that is wrong with the request, and what deserves a warning, at fields below spec.
// Source: ADR-0013.
func (r Request) Check() []Problem {
	var p problems
	spec := field.NewPath("spec")
	r = r.withDefaults()
	p.oneOf(spec.Child("direction"), r.Direction, model.TenantToHost, model.HostToTenant)
	p.oneOf(spec.Child("namespaceMode"), r.NamespaceMode, model.SingleNamespace, model.MultiNamespace)
	for i, check := range r.Checks {
		at := spec.Child("checks").Index(i)
		p.oneOf(at, check, model.CheckRoundTrip, model.CheckFixpoint)
		if slices.Contains(r.Checks[:i], check) {
			p.add(field.Duplicate(at, check))
		}
	}
	if r.ClusterDomain != "" {
		for _, why := range validation.IsDNS1123Subdomain(r.ClusterDomain) {
			p.add(field.Invalid(spec.Child("clusterDomain"), r.ClusterDomain, why))
		}
	}
	if r.Object == nil {
		p.add(field.Required(spec.Child("object"), "an object that is to be patched"))
	}
	known := spec.Child("context", "references")
	for i, reference := range r.Context.References {
		if reference.Name == "" {
			p.add(field.Required(known.Index(i).Child("name"), "the name in the tenant cluster"))
		}
	}
	p = append(p, Check(spec.Child("patches"), r.Patches)...)
	r.checkTenant(&p, spec.Child("context", "tenant"))
	return p
}

// checkTenant asks for what names on the host are made of.
func (r Request) checkTenant(p *problems, at *field.Path) {
	if r.Context.names.multi {
		return
	}
	named := slices.ContainsFunc(r.Patches, func(patch model.SyncPatch) bool { return patch.Reference != nil || patch.Labels != nil })
	if named && r.Context.Tenant.Name == "" {
		p.add(field.Required(at.Child("name"), "reference and labels patches make names on the host of it"))
	}
	placed := slices.ContainsFunc(r.Patches, func(patch model.SyncPatch) bool { return patch.Reference != nil && patch.Reference.NamespacePath != "" })
	if placed && r.Context.Tenant.Namespace == "" {
		p.add(field.Required(at.Child("namespace"), "references with a namespacePath go to it"))
	}
}

func (p *problems) oneOf(at *field.Path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		p.add(field.NotSupported(at, value, allowed))
	}
}

// Check finds everything that is wrong with a list of patches before there is an object, and what deserves a
// warning. Source: Spec 2.8; ADR-0013.
func Check(at *field.Path, patches []model.SyncPatch) []Problem {
	var p problems
	if len(patches) > maxPatches {
		p.add(field.TooMany(at, len(patches), maxPatches))
		return p
	}
	seen := map[string]int{}
	for i := range patches {
		patch, at := &patches[i], at.Index(i)
		path, ok := p.path(at.Child("path"), patch.Path)
		if ok {
			printed := path.String()
			if first, known := seen[printed]; known {
				duplicate := field.Duplicate(at.Child("path"), patch.Path)
				duplicate.Detail = fmt.Sprintf("patch %d has the same path; each may be patched once", first)
				p.add(duplicate)
			} else {
				seen[printed] = i
			}
			if path.is("metadata", "name") || path.is("metadata", "namespace") {
				p.add(field.Invalid(at.Child("path"), patch.Path, "the name and the namespace of the object cannot be patched"))
			}
		}
		p.mode(at, patch)
		p.expression(at.Child("expression"), patch.Expression, path)
		p.expression(at.Child("reverseExpression"), patch.ReverseExpression, path)
		if patch.Reference != nil {
			p.reference(at.Child("reference"), patch.Reference)
		}
	}
	return p
}

// mode holds a patch to one.
func (p *problems) mode(at *field.Path, patch *model.SyncPatch) {
	var modes []string
	if patch.Expression != "" || patch.ReverseExpression != "" {
		modes = append(modes, "expression")
	}
	if patch.Reference != nil {
		modes = append(modes, "reference")
	}
	if patch.Labels != nil {
		modes = append(modes, "labels")
	}
	const choice = "one of: expression and reverseExpression, reference, labels"
	switch len(modes) {
	case 0:
		p.add(field.Required(at, "a patch has "+choice))
	case 1:
	default:
		p.add(field.Invalid(at, strings.Join(modes, ", "), "a patch has only "+choice))
	}
}

func (p *problems) path(at *field.Path, text string) (Path, bool) {
	path, err := ParsePath(text)
	var wrong *PathError
	if errors.As(err, &wrong) {
		*p = append(*p, Problem{Error: field.Invalid(at, fmt.Sprintf("%.300s", text), err.Error()), InLine: 1, InColumn: wrong.Column})
	}
	return path, err == nil
}

func (p *problems) expression(at *field.Path, text string, path Path) {
	if text == "" {
		return
	}
	compiled, err := expression.Compile(text)
	var syntax *expression.SyntaxError
	switch {
	case len(text) > expression.MaxLength:
		p.add(field.TooLong(at, text, expression.MaxLength))
	case errors.As(err, &syntax):
		why := fmt.Sprintf("line %d, column %d: %s", syntax.Line, syntax.Column, syntax.Message)
		*p = append(*p, Problem{Error: field.Invalid(at, text, why), InLine: syntax.Line, InColumn: syntax.Column})
	case err != nil:
		p.add(field.Invalid(at, text, err.Error()))
	case compiled.AlwaysNull():
		p.warn(at, text, "it is always null, which deletes the field")
	case path.wild() && !compiled.ReadsValue():
		p.warn(at, text, "it does not read value, although the path has a wildcard")
	}
}

// reference checks what a reference patch refers to.
func (p *problems) reference(at *field.Path, r *model.SyncPatchReference) {
	if r.APIVersion == "" {
		p.add(field.Required(at.Child("apiVersion"), "the group and version of the referent, such as v1 or apps/v1"))
	} else if _, err := schema.ParseGroupVersion(r.APIVersion); err != nil {
		p.add(field.Invalid(at.Child("apiVersion"), r.APIVersion, "a group and a version are expected, such as v1 or apps/v1"))
	}
	if r.Kind == "" {
		p.add(field.Required(at.Child("kind"), "the kind of the referent, such as Secret"))
	}
	if r.NamePath == "" && (r.APIVersionPath != "" || r.KindPath != "" || r.NamespacePath != "") {
		p.add(field.Required(at.Child("namePath"), "with another path, the value is an object, and the name is somewhere in it"))
	}
	for _, relative := range []struct{ name, text string }{
		{"apiVersionPath", r.APIVersionPath},
		{"kindPath", r.KindPath},
		{"namePath", r.NamePath},
		{"namespacePath", r.NamespacePath},
	} {
		path, ok := p.path(at.Child(relative.name), relative.text)
		switch {
		case !ok || relative.text == "":
		case path.wild():
			p.add(field.Invalid(at.Child(relative.name), relative.text, "it leads to one string, so it has no wildcard"))
		case len(path.segments) == 0:
			p.add(field.Invalid(at.Child(relative.name), relative.text, "it leads to a string below the value"))
		}
	}
}
