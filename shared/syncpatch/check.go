package syncpatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch/expression"
)

// Problem is an error in patches or their configuration, or a warning about a text that is allowed but probably not
// intended. It names the field and the value; a position within a path or an expression is part of the detail.
type Problem struct {
	*field.Error
	// Warning reports whether the patches can be evaluated all the same.
	Warning bool
	// Line and Column are the position of the field in the text of a configuration, from 1. 0 means not known.
	Line, Column int
	// Offset is the position of the problem within the value of the field, a path or an expression. Zero means not
	// known.
	Offset Offset
}

// Offset is a position within a value.
type Offset struct {
	// Line and Column count from 1; columns are characters.
	Line, Column int
}

// Errors returns the problems that are not warnings.
func Errors(problems []Problem) field.ErrorList {
	var list field.ErrorList
	for _, p := range problems {
		if !p.Warning {
			list = append(list, p.Error)
		}
	}
	return list
}

// Warnings returns the texts of the warnings, each with its field.
func Warnings(problems []Problem) []string {
	var texts []string
	for _, p := range problems {
		if p.Warning {
			texts = append(texts, p.Field+": "+p.Detail)
		}
	}
	return texts
}

// problems collects the results of a check.
type problems struct {
	found []Problem
	// reading is called with each field before its text is parsed. It may be nil.
	reading func(field string, data bool)
	// texts is the size of the expressions so far, in bytes.
	texts int
}

func (p *problems) add(e *field.Error) { p.found = append(p.found, Problem{Error: e}) }
func (p *problems) warn(at *field.Path, value any, detail string) {
	p.found = append(p.found, Problem{Error: field.Invalid(at, value, detail), Warning: true})
}

// enter announces that the text of a field is parsed next: data, or an expression.
func (p *problems) enter(at *field.Path, data bool) {
	if p.reading != nil {
		p.reading(at.String(), data)
	}
}

// Checked is a request that has no errors, with its patches parsed. Only Request.Check and CheckSpec make one.
type Checked struct {
	request Request
	patches []patch
	names   names
}

// Request returns the request that was checked, with its defaults. It must not be changed.
func (c *Checked) Request() *Request { return &c.request }

// patch is a parsed patch of a request.
type patch struct {
	// at is the field of the patch.
	at   *field.Path
	path Path
	// forward and backward are the expressions from tenant to host and back. Nil means that there is none.
	forward, backward *expression.Expression
	// renamed reports whether backward is written in the field expression.
	renamed bool
	// reference is nil unless the patch is a reference patch.
	reference *reference
	labels    bool
}

// towardsTenant turns a patch that was read like all others into a patch of a resource below fromHost.
func (p *patch) towardsTenant(resource string) {
	if p.forward != nil && !isReversed(resource) {
		p.backward, p.renamed = p.forward, true
	}
	p.forward = nil
}

// failedField returns the field that causes the failure if the patch fails.
func (p *patch) failedField(direction string) *field.Path {
	switch {
	case direction == model.HostToTenant && p.backward != nil && !p.renamed:
		return p.at.Child("reverseExpression")
	case direction == model.HostToTenant && p.backward != nil, direction != model.HostToTenant && p.forward != nil:
		return p.at.Child("expression")
	default:
		return p.at.Child("path")
	}
}

// Check returns all errors and warnings about the request, at fields below spec. With an error among the problems, the
// first result is nil. Source: ADR-0013.
func (r Request) Check() (*Checked, []Problem) {
	var p problems
	r = r.withDefaults()
	p.request(&r)
	patches := p.patches(field.NewPath("spec", "patches"), r.Patches)
	p.tenant(&r)
	return r.result(patches, p.found)
}

// result returns the request as a Checked, unless there are errors among the problems.
func (r Request) result(patches []patch, found []Problem) (*Checked, []Problem) {
	if len(Errors(found)) > 0 {
		return nil, found
	}
	return &Checked{request: r, patches: patches, names: r.names()}, found
}

func (r Request) withDefaults() Request {
	if r.Direction == "" {
		r.Direction = model.TenantToHost
	}
	if r.NamespaceMode == "" {
		r.NamespaceMode = model.SingleNamespace
	}
	if r.Naming == "" {
		r.Naming = model.NamingNeutral
	}
	return r
}

// request checks the fields of the request except the patches and their inputs.
func (p *problems) request(r *Request) {
	spec := field.NewPath("spec")
	p.oneOf(spec.Child("direction"), r.Direction, model.TenantToHost, model.HostToTenant)
	p.oneOf(spec.Child("namespaceMode"), r.NamespaceMode, model.SingleNamespace, model.MultiNamespace)
	p.oneOf(spec.Child("naming"), r.Naming, model.NamingNeutral, model.NamingVCluster)
	for i, check := range r.Checks {
		at := spec.Child("checks").Index(i)
		p.oneOf(at, check, model.CheckRoundTrip, model.CheckFixpoint)
		if slices.Contains(r.Checks[:i], check) {
			p.add(field.Duplicate(at, check))
		}
	}
	if r.ClusterDomain != "" {
		for _, why := range validation.IsDNS1123Subdomain(r.ClusterDomain) {
			p.add(field.Invalid(spec.Child("clusterDomain"), excerpt(r.ClusterDomain), why))
		}
	}
	p.label(spec.Child("context", "tenant", "name"), r.Context.Tenant.Name)
	p.label(spec.Child("context", "tenant", "namespace"), r.Context.Tenant.Namespace)
	if r.Object == nil {
		p.add(field.Required(spec.Child("object"), "the object to patch"))
	}
	references := spec.Child("context", "references")
	for i, reference := range r.Context.References {
		if reference.Name == "" {
			p.add(field.Required(references.Index(i).Child("name"), "the name in the tenant cluster"))
		}
		p.label(references.Index(i).Child("namespace"), reference.Namespace)
		p.label(references.Index(i).Child("hostNamespace"), reference.HostNamespace)
	}
}

// label checks a name that becomes a part of names on the host. Empty means that there is none.
func (p *problems) label(at *field.Path, name string) {
	if name == "" {
		return
	}
	for _, why := range validation.IsDNS1123Label(name) {
		p.add(field.Invalid(at, excerpt(name), why))
	}
}

// tenant requires the fields from which the patches make names on the host.
func (p *problems) tenant(r *Request) {
	if r.NamespaceMode == model.MultiNamespace {
		return
	}
	tenantPath := field.NewPath("spec", "context", "tenant")
	needsNames := slices.ContainsFunc(r.Patches, func(patch model.SyncPatch) bool { return patch.Reference != nil || patch.Labels != nil })
	if needsNames && r.Context.Tenant.Name == "" {
		p.add(field.Required(tenantPath.Child("name"), "required by reference and labels patches"))
	}
	placed := slices.ContainsFunc(r.Patches, func(patch model.SyncPatch) bool { return patch.Reference != nil && patch.Reference.NamespacePath != "" })
	switch {
	case r.Context.Tenant.Namespace != "":
	case placed:
		p.add(field.Required(tenantPath.Child("namespace"), "required by reference patches with a namespacePath"))
	case needsNames && r.Naming == model.NamingVCluster:
		// An evaluation shows whether a referent or an object is cluster-scoped. A check cannot.
		p.add(field.Required(tenantPath.Child("namespace"), "required by reference and labels patches with the naming vcluster"))
	}
}

func (p *problems) oneOf(at *field.Path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		p.add(field.NotSupported(at, value, allowed))
	}
}

// Check returns all errors and warnings about a list of patches without an object. Source: Spec 2.8; ADR-0013.
func Check(at *field.Path, patches []model.SyncPatch) []Problem {
	var p problems
	p.patches(at, patches)
	return p.found
}

// Scan returns an error for each bound that the patches of a client exceed: their number, the length and the nesting of
// their expressions, and the total size. It parses nothing and takes time that is linear in the texts. Patches in a
// configuration are not scanned here: the code that parses a configuration scans them. Source: ADR-0014.
func Scan(spec *model.SyncPatchEvaluationSpec) []Problem {
	var p problems
	fieldPath := field.NewPath("spec", "patches")
	if p.checkCount(fieldPath, len(spec.Patches)) {
		return p.found
	}
	for i := range spec.Patches {
		patch, fieldPath := &spec.Patches[i], fieldPath.Index(i)
		p.scan(fieldPath.Child("expression"), patch.Expression)
		p.scan(fieldPath.Child("reverseExpression"), patch.ReverseExpression)
	}
	return p.found
}

func (p *problems) checkCount(fieldPath *field.Path, patches int) bool {
	if patches > limits.Patches {
		p.add(field.TooMany(fieldPath, patches, limits.Patches))
	}
	return patches > limits.Patches
}

// scan adds the length of an expression to the total, and reports whether the expression may be parsed.
func (p *problems) scan(fieldPath *field.Path, text string) bool {
	before := p.texts
	p.texts += len(text)
	if p.texts > limits.ExpressionsBytes {
		// The remaining expressions are not read at all.
		if before <= limits.ExpressionsBytes {
			why := fmt.Sprintf("all expressions together may have at most %d bytes, up to this one they have %d", limits.ExpressionsBytes, p.texts)
			p.add(field.Invalid(fieldPath, field.OmitValueType{}, why))
		}
		return false
	}
	return p.syntax(fieldPath, text, expression.Scan(text))
}

// syntax adds an error about the text of an expression, and reports whether there is none.
func (p *problems) syntax(fieldPath *field.Path, text string, err error) bool {
	var syntax *expression.SyntaxError
	switch {
	case err == nil:
		return true
	case len(text) > expression.MaxLength:
		p.add(field.TooLong(fieldPath, text, expression.MaxLength))
	case errors.As(err, &syntax):
		why := fmt.Sprintf("line %d, column %d: %s", syntax.Line, syntax.Column, syntax.Message)
		p.found = append(p.found, Problem{Error: field.Invalid(fieldPath, excerpt(text), why), Offset: Offset{syntax.Line, syntax.Column}})
	default:
		p.add(field.Invalid(fieldPath, excerpt(text), err.Error()))
	}
	return false
}

// excerpt returns the beginning of a text that may be long, for a message.
func excerpt(text string) string { return strings.ToValidUTF8(fmt.Sprintf("%.300s", text), "") }

func (p *problems) patches(fieldPath *field.Path, list []model.SyncPatch) []patch {
	if p.checkCount(fieldPath, len(list)) {
		return nil
	}
	parsed := make([]patch, len(list))
	seen := map[string]int{}
	for i := range list {
		sent, fieldPath := &list[i], fieldPath.Index(i)
		path, ok := p.path(fieldPath.Child("path"), sent.Path)
		if ok {
			printed := path.String()
			if first, known := seen[printed]; known {
				duplicate := field.Duplicate(fieldPath.Child("path"), sent.Path)
				duplicate.Detail = fmt.Sprintf("patch %d has the same path; each path may be patched once", first)
				p.add(duplicate)
			} else {
				seen[printed] = i
			}
			if path.hasKeys("metadata", "name") || path.hasKeys("metadata", "namespace") {
				p.add(field.Invalid(fieldPath.Child("path"), sent.Path, identityStays))
			}
		}
		p.mode(fieldPath, sent)
		parsed[i] = patch{
			at:       fieldPath,
			path:     path,
			forward:  p.expression(fieldPath.Child("expression"), sent.Expression, path),
			backward: p.expression(fieldPath.Child("reverseExpression"), sent.ReverseExpression, path),
			labels:   sent.Labels != nil,
		}
		if sent.Reference != nil {
			parsed[i].reference = p.reference(fieldPath.Child("reference"), sent.Reference)
		}
	}
	return parsed
}

// identityStays is the message for a patch of the name or the namespace of the object.
const identityStays = "the name and the namespace of the object cannot be patched"

// mode checks that a patch has exactly one mode.
func (p *problems) mode(fieldPath *field.Path, patch *model.SyncPatch) {
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
		p.add(field.Required(fieldPath, "a patch needs "+choice))
	case 1:
	default:
		p.add(field.Invalid(fieldPath, strings.Join(modes, ", "), "a patch may have only "+choice))
	}
}

func (p *problems) path(at *field.Path, text string) (Path, bool) {
	path, err := ParsePath(text)
	var wrong *PathError
	if errors.As(err, &wrong) {
		p.found = append(p.found, Problem{Error: field.Invalid(at, excerpt(text), err.Error()), Offset: Offset{1, wrong.Column}})
	}
	return path, err == nil
}

// expression compiles an expression; nil if there is none.
func (p *problems) expression(fieldPath *field.Path, text string, path Path) *expression.Expression {
	if text == "" || !p.scan(fieldPath, text) {
		return nil
	}
	p.enter(fieldPath, false)
	compiled, err := expression.Compile(text)
	switch {
	case !p.syntax(fieldPath, text, err):
	case compiled.AlwaysNull():
		p.warn(fieldPath, excerpt(text), "the expression is always null, which deletes the field")
	case path.hasWildcard() && !compiled.ReadsValue():
		p.warn(fieldPath, excerpt(text), "the expression does not read value, although the path has a wildcard")
	}
	return compiled
}

// reference checks the referent of a reference patch, and parses its paths.
func (p *problems) reference(fieldPath *field.Path, r *model.SyncPatchReference) *reference {
	if r.APIVersion == "" {
		p.add(field.Required(fieldPath.Child("apiVersion"), "the group and version of the referent, such as v1 or apps/v1"))
	} else if _, err := schema.ParseGroupVersion(r.APIVersion); err != nil {
		p.add(field.Invalid(fieldPath.Child("apiVersion"), r.APIVersion, "must be a group and a version, such as v1 or apps/v1"))
	}
	if r.Kind == "" {
		p.add(field.Required(fieldPath.Child("kind"), "the kind of the referent, such as Secret"))
	}
	if r.NamePath == "" && (r.APIVersionPath != "" || r.KindPath != "" || r.NamespacePath != "") {
		p.add(field.Required(fieldPath.Child("namePath"), "required with another path: the value is then an object, and namePath says where in it the name is"))
	}
	parsed := &reference{apiVersion: r.APIVersion, kind: r.Kind}
	for _, relative := range []struct {
		name, text string
		path       **Path
	}{
		{"apiVersionPath", r.APIVersionPath, &parsed.apiVersionPath},
		{"kindPath", r.KindPath, &parsed.kindPath},
		{"namePath", r.NamePath, &parsed.namePath},
		{"namespacePath", r.NamespacePath, &parsed.namespacePath},
	} {
		path, ok := p.path(fieldPath.Child(relative.name), relative.text)
		switch {
		case !ok || relative.text == "":
		case path.hasWildcard():
			p.add(field.Invalid(fieldPath.Child(relative.name), relative.text, "must lead to one string, so it cannot have a wildcard"))
		case len(path.segments) == 0:
			p.add(field.Invalid(fieldPath.Child(relative.name), relative.text, "must lead to a string below the value"))
		default:
			*relative.path = &path
		}
	}
	return parsed
}
