package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/syncpatch"
)

// maxFile is the maximum size of a file, in bytes. The API accepts bodies of the same size.
const maxFile = 3 << 20

// document is one document of a YAML or JSON file.
type document struct {
	name string
	// line is the line of the file at which the document begins, from 0.
	line int
	text []byte
	json []byte
	kind schema.GroupVersionKind
	// prefix precedes the field paths of an object that is a part of the document.
	prefix string
}

var separator = regexp.MustCompile(`^---[ \t]*(#.*)?\r?\n?$`)

// readDocuments reads a file, or standard input for "-", and finds errors in it. Documents without content are left out.
// Each item of a list is a document.
func readDocuments(t *terminal, name string) ([]*document, []finding) {
	in := t.in
	if name == "-" {
		name = "<stdin>"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, []finding{readError(name, err)}
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return nil, []finding{{File: name, Message: "this is a folder; name files, such as " + filepath.Join(name, "*.yaml")}}
		}
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, []finding{readError(name, err)}
	case len(text) > maxFile:
		return nil, []finding{{File: name, Message: fmt.Sprintf("the file is larger than %d bytes", maxFile)}}
	}
	parts := []*document{{name: name}}
	number := 0
	for l := range bytes.Lines(text) {
		number++
		if separator.Match(l) {
			parts = append(parts, &document{name: name, line: number})
			continue
		}
		last := parts[len(parts)-1]
		last.text = append(last.text, l...)
	}
	var documents []*document
	var findings []finding
	for _, d := range parts {
		wrong := d.parse()
		findings = append(findings, wrong...)
		if len(wrong) == 0 && len(d.json) > 0 && string(d.json) != "null" {
			documents = append(documents, d.items()...)
		}
	}
	return documents, findings
}

// readError is the finding for a file that cannot be read.
func readError(name string, err error) finding {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return finding{File: name, Message: err.Error()}
}

// onlyDocument returns the only document of a file.
func onlyDocument(name string, documents []*document, findings []finding) (*document, []finding) {
	if len(findings) == 0 && len(documents) != 1 {
		findings = []finding{{File: name, Message: fmt.Sprintf("the file has %d documents; exactly one is required", len(documents))}}
	}
	if len(findings) > 0 {
		return nil, findings
	}
	return documents[0], nil
}

var yamlLine = regexp.MustCompile(`(?:yaml: |^ *)line (\d+): `)

func (d *document) parse() []finding {
	var err error
	if d.json, err = yaml.YAMLToJSONStrict(d.text); err == nil {
		d.recognize()
		return nil
	}
	var all []finding
	for why := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "\n") {
		if why == "yaml: unmarshal errors:" {
			continue
		}
		if len(all) == maxComplaints {
			return append(all, finding{File: d.name, Message: "further errors are omitted"})
		}
		line := 1
		if found := yamlLine.FindStringSubmatch(why); found != nil {
			line, _ = strconv.Atoi(found[1])
			why = strings.Replace(why, found[0], "", 1)
		}
		all = append(all, finding{File: d.name, Line: d.line + line, Message: secret.YAMLError(errors.New(why))})
	}
	return all
}

// maxComplaints bounds the findings about the form of one document.
const maxComplaints = 20

// items returns the objects of a list, as kubectl prints several objects, or the document itself.
func (d *document) items() []*document {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if !strings.HasSuffix(d.kind.Kind, "List") || json.Unmarshal(d.json, &list) != nil || list.Items == nil {
		return []*document{d}
	}
	var all []*document
	for i, item := range list.Items {
		of := *d
		of.json, of.prefix = item, fmt.Sprintf("items[%d].", i)
		of.recognize()
		all = append(all, &of)
	}
	return all
}

// recognize reads the kind of the object.
func (d *document) recognize() {
	var of metav1.TypeMeta
	if json.Unmarshal(d.json, &of) == nil {
		d.kind = of.GroupVersionKind()
	}
}

// decode reads the document as an object. Unknown fields and values of wrong types are findings.
func (d *document) decode(into any) []finding {
	unknown, err := sigsjson.UnmarshalStrict(d.json, into)
	if err == nil && len(unknown) == 0 {
		return nil
	}
	var all []finding
	for _, wrong := range codec.Misfits(codec.Body{JSON: d.json}, into) {
		all = append(all, d.finding(wrong.Field, wrong.Detail))
	}
	if all == nil {
		why := errors.Join(append(unknown, err)...).Error()
		all = []finding{{File: d.name, Line: d.line + 1, Message: strings.ReplaceAll(why, "\n", "; ")}}
	}
	return all
}

// finding returns a finding about a field of the document. An empty field means the whole document.
func (d *document) finding(field, message string) finding {
	f := finding{Field: d.prefix + field, Message: message}
	if field == "" {
		f.Field = strings.TrimSuffix(d.prefix, ".")
	}
	f.place(d, f.Field, syncpatch.Offset{})
	return f
}

// configurationFile is a virtual cluster configuration with its findings.
type configurationFile struct {
	*document
	// resources are the resources that it mentions.
	resources []string
	findings  []finding
}

// readConfigurationFile reads the only configuration of a file, and finds errors in it. With errors it returns nil.
func readConfigurationFile(ctx context.Context, t *terminal, name string) (*configurationFile, []finding, error) {
	documents, found := readDocuments(t, name)
	d, found := onlyDocument(name, documents, found)
	if d == nil {
		return nil, found, nil
	}
	c, err := newConfigurationFile(ctx, t, d)
	switch {
	case err != nil:
		return nil, nil, err
	case hasErrors(c.findings):
		return nil, c.findings, nil
	}
	return c, c.findings, nil
}

func newConfigurationFile(ctx context.Context, t *terminal, d *document) (*configurationFile, error) {
	c := &configurationFile{document: d}
	if what := d.noConfiguration(); what != "" {
		c.findings = []finding{d.finding("", what+"; expected a virtual cluster configuration")}
		return c, nil
	}
	reading, err := t.workers.ReadConfiguration(ctx, d.text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.name, err)
	}
	c.resources = reading.Resources
	for _, p := range reading.Problems {
		f := newFinding(p)
		f.place(d, p.Field, p.Offset)
		c.findings = append(c.findings, f)
	}
	return c, nil
}

// noConfiguration names the document if it is not a configuration. Without this check, such a document would have no
// findings. Empty: the document may be a configuration.
func (d *document) noConfiguration() string {
	var header struct {
		Kind  string          `json:"kind"`
		Tests json.RawMessage `json:"tests"`
	}
	switch {
	case json.Unmarshal(d.json, &header) != nil:
		return ""
	case header.Kind != "":
		return fmt.Sprintf("this is an object of kind %q", header.Kind)
	case header.Tests != nil:
		return "this is a test file for `patch test`"
	}
	return ""
}

// resource returns the full name of the resource whose patches are used: the given resource, or the resource of the
// kind.
func (c *configurationFile) resource(asked string, kind schema.GroupVersionKind) (string, error) {
	if asked != "" {
		return asked, nil
	}
	names := syncpatch.Plurals(kind.Kind)
	// Definitions have a group, so they come before resources with the same name. As in the API, toHost comes before
	// fromHost.
	for _, custom := range []bool{true, false} {
		for _, name := range slices.Backward(c.resources) {
			_, key, _ := strings.Cut(name, ".")
			definition, isCustom := strings.CutPrefix(key, "customResources.")
			definition, version, _ := strings.Cut(definition, "/")
			plural, group, _ := strings.Cut(definition, ".")
			switch {
			case isCustom != custom:
			case isCustom && group == kind.Group && (version == "" || version == kind.Version) && slices.Contains(names, plural),
				!isCustom && slices.Contains(names, strings.ToLower(key[strings.LastIndexByte(key, '.')+1:])):
				return name, nil
			}
		}
	}
	if len(c.resources) == 0 {
		return "", fmt.Errorf("%s has no patches", c.name)
	}
	return "", fmt.Errorf("%s has no patches for kind %q; choose one of its resources with --resource: %s", c.name, kind.Kind, strings.Join(c.resources, ", "))
}

// node returns the value of a field in a document, or the value of the nearest parent that exists.
func (d *document) node(field string) *yamlv3.Node {
	var root yamlv3.Node
	if yamlv3.Unmarshal(d.text, &root) != nil || len(root.Content) == 0 {
		return nil
	}
	node := root.Content[0]
	for _, step := range steps(field) {
		for node.Kind == yamlv3.AliasNode {
			node = node.Alias
		}
		next := childNode(node, step)
		if next == nil {
			return node
		}
		node = next
	}
	return node
}

func childNode(node *yamlv3.Node, step string) *yamlv3.Node {
	if node.Kind == yamlv3.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i]
		}
		return nil
	}
	if node.Kind == yamlv3.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	}
	return nil
}

var step = regexp.MustCompile(`\[([^\]]*)\]|([^.\[\]]+)`)

// steps returns the names and indexes in a field path.
func steps(field string) []string {
	var all []string
	for _, found := range step.FindAllStringSubmatch(field, -1) {
		all = append(all, found[1]+found[2])
	}
	return all
}
