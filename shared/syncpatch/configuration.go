package syncpatch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsyaml "sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// The sides of a configuration: resources that are synced from the tenant cluster to the host, and resources that are
// synced from the host.
const (
	toHost   = "toHost"
	fromHost = "fromHost"
	// gatewayAPI has its own patches, and resources below it.
	gatewayAPI = "gatewayApi"
	// customResources has one resource below it for each definition. Its key is the name of the definition, or the name
	// and version.
	customResources = "customResources"
)

// resourceNames returns the names of the resources of a side.
func resourceNames(side string) []string {
	return append(slices.Sorted(maps.Keys(synced[side])), customResources+".<definition>[/<version>]")
}

// isCustom reports whether a name is the name of a custom resource: a definition, which contains a dot, and optionally
// a version.
func isCustom(name string) bool {
	definition, isCustom := strings.CutPrefix(name, customResources+".")
	definition, version, versioned := strings.Cut(definition, "/")
	return isCustom && strings.Contains(definition, ".") && len(validation.IsDNS1123Subdomain(definition)) == 0 &&
		(!versioned || len(validation.IsDNS1035Label(version)) == 0)
}

// Configuration is the part of a virtual cluster configuration that concerns patches.
type Configuration struct {
	// resources are keyed by side and name, such as toHost.pods.
	resources map[string]*resource
}

// resource is one entry below sync.toHost or sync.fromHost.
type resource struct {
	patches  []model.SyncPatch
	parsed   []patch
	disabled string
	// oneWay reports whether the objects are synced from the host to the tenant cluster only.
	oneWay bool
}

// Resources returns the sorted names of the resources that the configuration mentions. Each begins with toHost. or
// fromHost., as Patches accepts it.
func (c *Configuration) Resources() []string { return slices.Sorted(maps.Keys(c.resources)) }

// Patches returns the patches of a resource, for instance endpoints, gatewayApi.httpRoutes or
// customResources.<definition>. If both sides have a resource of this name, toHost wins, unless the name begins with
// fromHost. If disabled is not empty, it gives the reason why the resource is not synced. The error is about the field
// at.
func (c *Configuration) Patches(at *field.Path, name string) (patches []model.SyncPatch, disabled string, unknown *field.Error) {
	r, unknown := c.resource(at, name)
	return r.patches, r.disabled, unknown
}

// resource returns a resource by its name. A resource that the configuration does not mention is empty.
func (c *Configuration) resource(fieldPath *field.Path, name string) (resource, *field.Error) {
	side, key, _ := strings.Cut(name, ".")
	if side != toHost && side != fromHost {
		side, key = toHost, name
		_, isToHost := synced[toHost][name]
		_, isFromHost := synced[fromHost][name]
		if c.resources[toHost+"."+name] == nil && (c.resources[fromHost+"."+name] != nil || isFromHost && !isToHost) {
			side = fromHost
		}
	}
	if _, ok := synced[side][key]; !ok && !isCustom(key) {
		return resource{}, field.NotSupported(fieldPath, name, resourceNames(side))
	}
	if r := c.resources[side+"."+key]; r != nil {
		return *r, nil
	}
	return resource{oneWay: side == fromHost}, nil
}

// ReadConfiguration reads a virtual cluster configuration, YAML or JSON, and returns all problems of the patches in it.
// Each problem has its field below at and its position in the text; the problems come in the order of the text. Parts
// of the configuration that do not concern patches are ignored. The configuration is nil if the text is not YAML. The
// time is not bounded: package worker calls this in a process that can be stopped. Source: Spec 2.8; ADR-0013,
// ADR-0014.
func ReadConfiguration(ctx context.Context, fieldPath *field.Path, text []byte) (*Configuration, []Problem) {
	r := newReader(readingOf(ctx))
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		r.add(field.Invalid(fieldPath, field.OmitValueType{}, secret.YAMLError(err)))
		return nil, r.found
	}
	if len(document.Content) > 0 {
		r.root(fieldPath, document.Content[0])
	}
	return r.configuration, r.found
}

func newReader(reading func(string, bool)) *reader {
	return &reader{
		problems: problems{reading: reading}, configuration: &Configuration{resources: map[string]*resource{}}, nodes: map[string]*yaml.Node{},
	}
}

// readObject is ReadConfiguration for a decoded object: JSON can contain texts that YAML cannot, such as some
// characters and long keys. The problems come in the order of the keys, and have no position.
func readObject(reading func(string, bool), at *field.Path, object map[string]any) (*Configuration, []Problem) {
	r := newReader(reading)
	nodes := 0
	r.root(at, nodeOf(object, &nodes))
	for i := range r.found {
		r.found[i].Line, r.found[i].Column = 0, 0
	}
	return r.configuration, r.found
}

// nodeOf returns a JSON value as a YAML node. The number of the node takes the place of its line.
func nodeOf(value any, number *int) *yaml.Node {
	*number++
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: *number}
	switch v := value.(type) {
	case map[string]any:
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
		for _, key := range slices.Sorted(maps.Keys(v)) {
			node.Content = append(node.Content, nodeOf(key, number), nodeOf(v[key], number))
		}
	case []any:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		for _, item := range v {
			node.Content = append(node.Content, nodeOf(item, number))
		}
	case string:
		node.Tag, node.Value, node.Style = "!!str", v, yaml.DoubleQuotedStyle
	case bool:
		node.Tag, node.Value = "!!bool", strconv.FormatBool(v)
	case nil:
		node.Tag, node.Value = "!!null", "null"
	default:
		node.Tag, node.Value = "!!float", fmt.Sprint(v)
	}
	return node
}

// root reads a whole configuration, and sorts the problems by position.
func (r *reader) root(at *field.Path, node *yaml.Node) {
	r.sync(at.Child("sync"), r.object(at, node)["sync"])
	for i := range r.found {
		r.locate(&r.found[i])
	}
	slices.SortStableFunc(r.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field))
	})
}

type reader struct {
	problems
	configuration *Configuration
	// nodes has the node of each field: its value, or its key if the key is on an earlier line.
	nodes map[string]*yaml.Node
}

// locate gives a problem the position of its field, or of the nearest enclosing field.
func (r *reader) locate(p *Problem) {
	for name := p.Field; ; {
		if n := r.nodes[name]; n != nil {
			p.Line, p.Column = n.Line, n.Column
			return
		}
		end := strings.LastIndexAny(name, ".[")
		if end < 0 {
			return
		}
		name = name[:end]
	}
}

// maxMerges bounds how deep the merge keys of a YAML mapping may be nested.
const maxMerges = 10

// object returns the entries of a mapping. An absent or null node has none; any other node is a problem.
func (r *reader) object(at *field.Path, node *yaml.Node) map[string]*yaml.Node {
	entries := map[string]*yaml.Node{}
	if node != nil {
		r.entries(at, node, entries, maxMerges)
	}
	return entries
}

func (r *reader) entries(fieldPath *field.Path, node *yaml.Node, into map[string]*yaml.Node, merges int) {
	node = resolve(node)
	switch {
	case isNull(node):
		return
	case node.Kind != yaml.MappingNode:
		r.add(field.TypeInvalid(fieldPath, kindOfNode(node), "must be an object"))
		return
	}
	ownKeys := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		r.nodes[fieldPath.Child(key.Value).String()] = value
		if value.Line > key.Line {
			r.nodes[fieldPath.Child(key.Value).String()] = key
		}
		switch {
		case key.Tag == "!!merge":
			if merges > 0 {
				r.merge(fieldPath, value, into, merges-1)
			}
		case ownKeys[key.Value]:
			r.add(field.Duplicate(fieldPath.Child(key.Value), key.Value))
		default:
			ownKeys[key.Value] = true
			into[key.Value] = value
		}
	}
}

// merge adds the entries of other mappings that the mapping does not have.
func (r *reader) merge(fieldPath *field.Path, value *yaml.Node, into map[string]*yaml.Node, merges int) {
	sources := []*yaml.Node{value}
	if value = resolve(value); value.Kind == yaml.SequenceNode {
		sources = value.Content
	}
	for _, source := range sources {
		merged := map[string]*yaml.Node{}
		r.entries(fieldPath, source, merged, merges)
		for name, entry := range merged {
			if into[name] == nil {
				into[name] = entry
			}
		}
	}
}

// resolve follows aliases.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// boolean returns the value of a boolean node. The words of YAML 1.1, such as yes and off, are booleans too, as Helm
// and kubectl read them. yaml.v3 uses the tags of YAML 1.2, in which they are strings.
func boolean(node *yaml.Node) (value, ok bool) {
	const longest = len("yes")
	word := node.Tag == "!!str" && node.Style == 0 && len(node.Value) <= longest
	if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" && !word {
		return false, false
	}
	err := sigsyaml.Unmarshal([]byte(node.Value), &value)
	return value, err == nil
}

// kindOfNode names the kind of a node, as kindOf does.
func kindOfNode(node *yaml.Node) string {
	_, isBoolean := boolean(node)
	switch {
	case node.Kind == yaml.MappingNode:
		return "an object"
	case node.Kind == yaml.SequenceNode:
		return "an array"
	case node.Tag == "!!null":
		return "null"
	case isBoolean:
		return "a boolean"
	case node.Tag == "!!int", node.Tag == "!!float":
		return "a number"
	default:
		return "a string"
	}
}

func (r *reader) sync(fieldPath *field.Path, node *yaml.Node) {
	sync := r.object(fieldPath, node)
	for _, name := range slices.Sorted(maps.Keys(sync)) {
		if name != toHost && name != fromHost {
			r.warn(fieldPath.Child(name), name, "is neither "+toHost+" nor "+fromHost+", so it has no effect")
		}
	}
	for _, side := range []string{toHost, fromHost} {
		fieldPath := fieldPath.Child(side)
		entries := r.object(fieldPath, sync[side])
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			r.resource(fieldPath.Child(name), side, name, entries[name])
		}
	}
}

// resource reads an entry of a side and the resources below it.
func (r *reader) resource(fieldPath *field.Path, side, name string, node *yaml.Node) {
	if name == customResources {
		entries := r.object(fieldPath, node)
		for _, definition := range slices.Sorted(maps.Keys(entries)) {
			below := r.nodes[fieldPath.Child(definition).String()]
			fieldPath := fieldPath.Key(definition)
			r.nodes[fieldPath.String()] = below
			if custom := customResources + "." + definition; isCustom(custom) {
				r.list(fieldPath, side, custom, r.object(fieldPath, entries[definition]))
			} else {
				r.add(field.Invalid(fieldPath, definition, "must be the name of a definition, such as certificates.cert-manager.io, optionally with / and a version"))
			}
		}
		return
	}
	if _, ok := synced[side][name]; !ok {
		r.add(field.NotSupported(fieldPath, name, resourceNames(side)))
		return
	}
	entries := r.object(fieldPath, node)
	r.list(fieldPath, side, name, entries)
	if name != gatewayAPI || side != toHost {
		return
	}
	for _, below := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := synced[side][name+"."+below]; ok {
			r.list(fieldPath.Child(below), side, name+"."+below, r.object(fieldPath.Child(below), entries[below]))
		}
	}
}

// wholeObject is the advice on how to write a patch of the whole object.
const wholeObject = `use "" for the whole object`

// list reads the fields enabled and patches of a resource.
func (r *reader) list(fieldPath *field.Path, side, name string, entries map[string]*yaml.Node) {
	resource := &resource{oneWay: side == fromHost}
	r.configuration.resources[side+"."+name] = resource
	enabled, isSet := synced[side][name] != false, false
	if node := entries["enabled"]; node != nil && !isNull(resolve(node)) {
		node = resolve(node)
		isSet = true
		value, isBoolean := boolean(node)
		switch {
		case isBoolean:
			enabled = value
		case node.Kind == yaml.ScalarNode && node.Value == auto:
			enabled = true
		default:
			r.add(field.TypeInvalid(fieldPath.Child("enabled"), kindOfNode(node), "must be true, false or auto"))
		}
	}
	if isSet && !enabled {
		resource.disabled = fieldPath.String() + " is not enabled, so its objects are not synced"
	}
	fieldPath = fieldPath.Child("patches")
	node := entries["patches"]
	if node == nil || isNull(resolve(node)) {
		return
	}
	if node = resolve(node); node.Kind != yaml.SequenceNode {
		r.add(field.TypeInvalid(fieldPath, kindOfNode(node), "must be an array"))
		return
	}
	switch {
	case len(node.Content) == 0 || enabled:
	case isSet:
		r.warn(fieldPath, name, "these patches have no effect because enabled is false")
	default:
		r.warn(fieldPath, name, "the resource is not synced by default, so these patches have no effect until enabled is true")
	}
	if r.checkCount(fieldPath, len(node.Content)) {
		return
	}
	// Fields that could not be read count as absent in the check, but are not reported again.
	reported, partly := map[string]bool{}, map[string]bool{}
	for i, entry := range node.Content {
		fieldPath, before := fieldPath.Index(i), len(r.found)
		r.nodes[fieldPath.String()] = entry
		resource.patches = append(resource.patches, r.patch(fieldPath, entry))
		for _, p := range r.found[before:] {
			reported[p.Field], partly[fieldPath.String()] = true, true
		}
		if reported[fieldPath.String()] {
			reported[fieldPath.Child("path").String()] = true
		}
		if resource.oneWay {
			r.warnUnevaluated(fieldPath, name, &resource.patches[i])
		}
	}
	checked := problems{reading: r.reading, texts: r.texts}
	resource.parsed = checked.patches(fieldPath, resource.patches)
	r.texts = checked.texts
	for i := range resource.parsed {
		if resource.oneWay {
			resource.parsed[i].towardsTenant(name)
		}
	}
	for _, p := range checked.found {
		if !reported[p.Field] && (p.Type != field.ErrorTypeRequired || !partly[p.Field]) {
			r.found = append(r.found, p)
		}
	}
}

func (r *reader) patch(fieldPath *field.Path, node *yaml.Node) model.SyncPatch {
	var patch model.SyncPatch
	entries := r.object(fieldPath, node)
	texts := map[string]*string{"path": &patch.Path, "expression": &patch.Expression, "reverseExpression": &patch.ReverseExpression}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		fieldPath, entry := fieldPath.Child(name), resolve(entries[name])
		switch {
		case texts[name] != nil:
			*texts[name] = r.text(fieldPath, entry)
		case name == "reference" && !isNull(entry):
			patch.Reference = r.reference(fieldPath, entry)
		case name == "labels" && isNull(entry):
			r.add(field.Required(fieldPath, "use {} for a labels patch"))
		case name == "labels":
			patch.Labels = &model.SyncPatchLabels{}
			for _, inner := range slices.Sorted(maps.Keys(r.object(fieldPath, entry))) {
				r.add(field.Invalid(fieldPath.Child(inner), field.OmitValueType{}, "labels has no fields"))
			}
		case name != "reference":
			r.add(field.Invalid(fieldPath, field.OmitValueType{}, "unknown field; a patch has path and one of: expression and reverseExpression, reference, labels"))
		}
	}
	if _, ok := entries["path"]; !ok && len(entries) > 0 {
		r.add(field.Required(fieldPath.Child("path"), wholeObject))
	}
	return patch
}

// warnUnevaluated warns about an expression below fromHost that is not evaluated.
func (r *reader) warnUnevaluated(fieldPath *field.Path, name string, patch *model.SyncPatch) {
	switch {
	case patch.Expression == "":
	case isReversed(name):
		r.warn(fieldPath.Child("expression"), excerpt(patch.Expression),
			"the expression is never evaluated, because these objects are synced from host to tenant only; use reverseExpression")
	case patch.ReverseExpression != "":
		r.warn(fieldPath.Child("reverseExpression"), excerpt(patch.ReverseExpression),
			"the reverseExpression is never evaluated, because these objects are synced from host to tenant only, where the expression comes first")
	}
}

func (r *reader) reference(fieldPath *field.Path, node *yaml.Node) *model.SyncPatchReference {
	var reference model.SyncPatchReference
	texts := map[string]*string{
		"apiVersion": &reference.APIVersion, "apiVersionPath": &reference.APIVersionPath,
		"kind": &reference.Kind, "kindPath": &reference.KindPath,
		"namePath": &reference.NamePath, "namespacePath": &reference.NamespacePath,
	}
	entries := r.object(fieldPath, node)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if texts[name] == nil {
			r.add(field.NotSupported(fieldPath.Child(name), name, slices.Sorted(maps.Keys(texts))))
			continue
		}
		*texts[name] = r.text(fieldPath.Child(name), resolve(entries[name]))
	}
	return &reference
}

// text returns a string. YAML reads null, true and 0 as strings only in quotes.
func (r *reader) text(fieldPath *field.Path, node *yaml.Node) string {
	if _, isBoolean := boolean(node); node.Kind == yaml.ScalarNode && node.Tag == "!!str" && !isBoolean {
		return node.Value
	}
	why := "must be a string"
	if node.Kind == yaml.ScalarNode && node.Value != "" {
		why = fmt.Sprintf("must be a string; put %q in quotes", node.Value)
	}
	r.add(field.TypeInvalid(fieldPath, kindOfNode(node), why))
	return ""
}
