package syncpatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/model"
)

// defaultNamespace is where a referent is when neither the reference nor the object says so.
const defaultNamespace = "default"

// reference is a reference patch. Source: Spec 2.8 (reference), rule 6; ADR-0013.
type reference struct {
	apiVersion, kind         string
	apiVersionPath, kindPath *Path
	namePath, namespacePath  *Path
}

// referent is what a value refers to, with the name and namespace of the side that the value is of. The
// namespace is empty where the value does not say it.
type referent struct{ apiVersion, kind, name, namespace string }

// read returns the referent. Its name is empty where the value has none.
func (r *reference) read(value any) (referent, error) {
	to := referent{apiVersion: r.apiVersion, kind: r.kind}
	if r.namePath == nil {
		name, ok := value.(string)
		if !ok {
			return to, unsuitable("the value is %s; without namePath it must be the name, a string", kindOf(value))
		}
		to.name = name
		return to, nil
	}
	if _, ok := value.(map[string]any); !ok {
		return to, unsuitable("the value is %s; with namePath it must be an object", kindOf(value))
	}
	for _, part := range []struct {
		field string
		path  *Path
		into  *string
	}{
		{"apiVersionPath", r.apiVersionPath, &to.apiVersion},
		{"kindPath", r.kindPath, &to.kind},
		{"namePath", r.namePath, &to.name},
		{"namespacePath", r.namespacePath, &to.namespace},
	} {
		if part.path == nil {
			continue
		}
		text, err := textAt(value, *part.path)
		if err != nil {
			return to, fmt.Errorf("%s: %w", part.field, err)
		}
		if text != "" {
			*part.into = text
		}
	}
	return to, nil
}

// write puts name and namespace into the value, where it has them.
func (r *reference) write(value any, name, namespace string) any {
	if r.namePath == nil {
		return name
	}
	replaceText(value, *r.namePath, name)
	if r.namespacePath != nil {
		replaceText(value, *r.namespacePath, namespace)
	}
	return value
}

// textAt returns the string at a path without wildcards. Absent and null are "".
func textAt(value any, path Path) (string, error) {
	var text string
	w := walk{path: path, visit: func(_ string, value any) (any, bool, error) {
		switch v := value.(type) {
		case nil:
		case string:
			text = v
		default:
			return nil, false, unsuitable("%s is %s, not a string", path, kindOf(v))
		}
		return value, false, nil
	}}
	_, _, err := w.run(value)
	return text, err
}

// replaceText replaces the string at a path. What is absent or empty stays so.
func replaceText(value any, path Path, text string) {
	w := walk{path: path, visit: func(_ string, old any) (any, bool, error) {
		if old == nil || old == "" {
			return old, false, nil
		}
		return text, false, nil
	}}
	_, _, _ = w.run(value)
}

// references translates what values refer to, and collects it.
type references struct {
	names    names
	toTenant bool
	// namespace is that of the object, in the tenant cluster.
	namespace string
	// known are the objects that names on the host stand for.
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
	for _, known := range request.Context.References {
		if known.Namespace == "" {
			known.Namespace = r.namespace
		}
		hostNames := []string{known.HostName}
		if known.HostName == "" {
			hostNames = []string{n.generated(known.Name, known.Namespace), n.long(known.Name, known.Namespace)}
		}
		for _, name := range hostNames {
			r.known[name] = append(r.known[name], known)
		}
	}
	return r
}

// namespaceInTenant is the namespace that the object has in the tenant cluster, or "".
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
		return skipped("null refers to nothing"), nil
	}
	to, err := patch.read(value)
	switch {
	case err != nil:
		return change{}, err
	case to.name == "":
		return skipped("without a name it refers to nothing"), nil
	case r.names.multi:
		if to.namespace == "" {
			to.namespace = r.namespace
		}
		r.report(to, to, to)
		return change{value: value, reason: "names are the same on both sides in multi-namespace mode"}, nil
	case r.toTenant:
		return r.backward(patch, value, to)
	}
	if to.namespace == "" {
		to.namespace = r.namespace
	}
	onHost := referent{name: r.names.generated(to.name, to.namespace), namespace: r.names.hostNamespace}
	r.report(to, to, onHost)
	return change{value: patch.write(value, onHost.name, onHost.namespace)}, nil
}

func (r *references) backward(patch *reference, value any, onHost referent) (change, error) {
	for _, known := range r.known[onHost.name] {
		if known.Kind != "" && known.Kind != onHost.kind ||
			known.APIVersion != "" && group(known.APIVersion) != group(onHost.apiVersion) ||
			known.HostNamespace != "" && onHost.namespace != "" && known.HostNamespace != onHost.namespace {
			continue
		}
		if onHost.namespace == "" {
			onHost.namespace = r.names.hostNamespace
		}
		r.report(onHost, referent{name: known.Name, namespace: known.Namespace}, onHost)
		return change{value: patch.write(value, known.Name, known.Namespace)}, nil
	}
	return change{}, unsuitable("nothing says which %s of the tenant cluster is %q on the host; context.references can say it", onHost.kind, onHost.name)
}

// group is the part of an apiVersion that says which API a kind is of.
func group(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }

// report adds an object to what was found, once.
func (r *references) report(of, inTenant, onHost referent) {
	found := model.SyncPatchObjectReference{
		APIVersion: of.apiVersion, Kind: of.kind,
		Name: inTenant.name, Namespace: inTenant.namespace,
		HostName: onHost.name, HostNamespace: onHost.namespace,
	}
	if !r.seen[found] {
		r.seen[found] = true
		r.found = append(r.found, found)
	}
}
