package syncpatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/model"
)

// defaultNamespace is the namespace of a referent if neither the reference nor the object has one.
const defaultNamespace = "default"

// reference is a reference patch. Source: Spec 2.8 (reference), rule 6; ADR-0013.
type reference struct {
	apiVersion, kind         string
	apiVersionPath, kindPath *Path
	namePath, namespacePath  *Path
}

// referent is the object that a value refers to, with its name and namespace on the side of the value. The namespace is
// empty if the value has none.
type referent struct{ apiVersion, kind, name, namespace string }

func (r referent) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: group(r.apiVersion), Kind: r.kind}
}

// read returns the referent. Its name is empty if the value has none.
func (r *reference) read(value any) (referent, error) {
	target := referent{apiVersion: r.apiVersion, kind: r.kind}
	if r.namePath == nil {
		name, ok := value.(string)
		if !ok {
			return target, newValueError("the value is %s; without namePath it must be the name, a string", kindOf(value))
		}
		target.name = name
		return target, nil
	}
	if _, ok := value.(map[string]any); !ok {
		return target, newValueError("the value is %s; with namePath it must be an object", kindOf(value))
	}
	for _, part := range []struct {
		field string
		path  *Path
		into  *string
	}{
		{"apiVersionPath", r.apiVersionPath, &target.apiVersion},
		{"kindPath", r.kindPath, &target.kind},
		{"namePath", r.namePath, &target.name},
		{"namespacePath", r.namespacePath, &target.namespace},
	} {
		if part.path == nil {
			continue
		}
		text, err := textAt(value, *part.path)
		if err != nil {
			return target, fmt.Errorf("%s: %w", part.field, err)
		}
		if text != "" {
			*part.into = text
		}
	}
	return target, nil
}

// write replaces the name and the namespace in the value, if it has them. An empty namespace belongs to a
// cluster-scoped referent, which has none.
func (r *reference) write(value any, name, namespace string) any {
	if r.namePath == nil {
		return name
	}
	replaceText(value, *r.namePath, name)
	if r.namespacePath != nil && namespace != "" {
		replaceText(value, *r.namespacePath, namespace)
	}
	return value
}

// textAt returns the string at a path without wildcards, and "" for absent and null.
func textAt(value any, path Path) (string, error) {
	var text string
	w := walk{path: path, visit: func(_ string, value any) (any, bool, error) {
		switch v := value.(type) {
		case nil:
		case string:
			text = v
		default:
			return nil, false, newValueError("%s is %s, not a string", path, kindOf(v))
		}
		return value, false, nil
	}}
	_, _, err := w.run(value)
	return text, err
}

// replaceText replaces the string at a path, unless it is absent or empty.
func replaceText(value any, path Path, text string) {
	w := walk{path: path, visit: func(_ string, old any) (any, bool, error) {
		if old == nil || old == "" {
			return old, false, nil
		}
		return text, false, nil
	}}
	_, _, _ = w.run(value)
}

// references translates references, and collects their referents.
type references struct {
	names    names
	toTenant bool
	// namespace is the namespace of the object in the tenant cluster.
	namespace string
	// known are the objects of the tenant cluster, by their names on the host.
	known map[string][]model.SyncPatchObjectReference
	found []model.SyncPatchObjectReference
	seen  map[model.SyncPatchObjectReference]bool
}

func newReferences(request *Request, n names) *references {
	r := &references{names: n, toTenant: request.Direction == model.HostToTenant, seen: map[model.SyncPatchObjectReference]bool{}}
	r.namespace = namespaceInTenant(request)
	if r.namespace == "" {
		r.namespace = defaultNamespace
	}
	if !r.toTenant || n.multi {
		return r
	}
	r.known = make(map[string][]model.SyncPatchObjectReference, 2*len(request.Context.References))
	for _, entry := range request.Context.References {
		if entry.Namespace == "" {
			entry.Namespace = r.namespace
		}
		hostNames := []string{entry.HostName}
		if entry.HostName == "" {
			hostNames = n.possibleNames(entry.Name, entry.Namespace)
		}
		for _, name := range hostNames {
			r.known[name] = append(r.known[name], entry)
		}
	}
	return r
}

// namespaceInTenant returns the namespace of the object in the tenant cluster, or "".
func namespaceInTenant(request *Request) string {
	object := request.Object
	if request.Direction == model.HostToTenant {
		object = request.Context.VirtualObject
	}
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace
}

// rewrite is the rule of a reference patch.
func (r *references) rewrite(patch *reference, value any) (change, error) {
	if value == nil {
		return skipChange("null refers to nothing"), nil
	}
	target, err := patch.read(value)
	switch {
	case err != nil:
		return change{}, err
	case target.name == "":
		return skipChange("the reference has no name"), nil
	case r.names.multi:
		if target.namespace == "" {
			target.namespace = r.namespace
		}
		r.report(target, target, target)
		return change{value: value, reason: "names are the same on both sides in multi-namespace mode"}, nil
	}
	kind := target.groupKind()
	clusterScoped := r.names.clusterScoped(kind)
	switch {
	case r.names.form(kind) == sameForm:
		target.namespace = ""
		r.report(target, target, target)
		return change{value: value, reason: target.kind + " objects have the same name on both sides"}, nil
	case r.toTenant:
		return r.rewriteBackward(patch, value, target)
	case clusterScoped:
		target.namespace = ""
	case target.namespace == "":
		target.namespace = r.namespace
	}
	onHost := referent{name: r.names.onHost(kind, target.name, target.namespace)}
	if !clusterScoped {
		onHost.namespace = r.names.hostNamespace
	}
	r.report(target, target, onHost)
	return change{value: patch.write(value, onHost.name, onHost.namespace)}, nil
}

func (r *references) rewriteBackward(patch *reference, value any, onHost referent) (change, error) {
	kind := onHost.groupKind()
	clusterScoped := r.names.clusterScoped(kind)
	if clusterScoped {
		onHost.namespace = ""
	}
	for _, entry := range r.known[onHost.name] {
		if entry.Kind != "" && entry.Kind != onHost.kind ||
			entry.APIVersion != "" && group(entry.APIVersion) != group(onHost.apiVersion) ||
			entry.HostNamespace != "" && onHost.namespace != "" && entry.HostNamespace != onHost.namespace {
			continue
		}
		// known has the names of all forms. This kind has one form.
		if r.names.vcluster && entry.HostName == "" && r.names.onHost(kind, entry.Name, entry.Namespace) != onHost.name {
			continue
		}
		switch {
		case clusterScoped:
			entry.Namespace = ""
		case onHost.namespace == "":
			onHost.namespace = r.names.hostNamespace
		}
		r.report(onHost, referent{name: entry.Name, namespace: entry.Namespace}, onHost)
		return change{value: patch.write(value, entry.Name, entry.Namespace)}, nil
	}
	return change{}, newValueError("unknown which %s of the tenant cluster is %q on the host; name it in context.references", onHost.kind, onHost.name)
}

// group returns the API group of an apiVersion.
func group(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }

// report adds a referent to the result, once.
func (r *references) report(of, inTenant, onHost referent) {
	entry := model.SyncPatchObjectReference{
		APIVersion: of.apiVersion, Kind: of.kind,
		Name: inTenant.name, Namespace: inTenant.namespace,
		HostName: onHost.name, HostNamespace: onHost.namespace,
	}
	if !r.seen[entry] {
		r.seen[entry] = true
		r.found = append(r.found, entry)
	}
}
