package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// maxFile bounds what is read of a file: as much as the API takes.
const maxFile = 3 << 20

// document is one document of a YAML or JSON file.
type document struct {
	// name is that of the file.
	name string
	// line is where the document begins in the file, from 0.
	line int
	text []byte
	json []byte
	kind schema.GroupVersionKind
	// prefix is what stands in front of the fields of an evaluation that is only a part of the document.
	prefix string
}

var separator = regexp.MustCompile(`^---[ \t]*(#.*)?\r?\n?$`)

// readDocuments reads a file, or standard input for "-". Documents without content are left out.
func readDocuments(t *terminal, name string) ([]*document, error) {
	in := t.in
	if name == "-" {
		name = "<stdin>"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, badInput("%v", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, badInput("reading %s: %v", name, err)
	}
	if len(text) > maxFile {
		return nil, badInput("%s: it is larger than %d bytes", name, maxFile)
	}
	documents := []*document{{name: name}}
	number := 0
	for l := range bytes.Lines(text) {
		number++
		if separator.Match(l) {
			documents = append(documents, &document{name: name, line: number})
			continue
		}
		last := documents[len(documents)-1]
		last.text = append(last.text, l...)
	}
	var failed error
	documents = slices.DeleteFunc(documents, func(d *document) bool {
		if err := d.parse(); err != nil && failed == nil {
			failed = err
		}
		return len(d.json) == 0 || string(d.json) == "null"
	})
	return documents, failed
}

var yamlLine = regexp.MustCompile(`line (\d+):?`)

func (d *document) parse() error {
	var err error
	if d.json, err = yaml.YAMLToJSONStrict(d.text); err != nil {
		why := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
		line := d.line + 1
		if found := yamlLine.FindStringSubmatch(why); found != nil {
			n, _ := strconv.Atoi(found[1])
			line, why = d.line+n, strings.Replace(why, found[0]+" ", "", 1)
		}
		return badInput("%s:%d: %s", d.name, line, why)
	}
	d.recognize()
	return nil
}

// recognize finds out the kind of the object.
func (d *document) recognize() {
	var of metav1.TypeMeta
	if json.Unmarshal(d.json, &of) == nil {
		d.kind = of.GroupVersionKind()
	}
}

// decode reads the document as an object. Fields that it does not have are a mistake.
func (d *document) decode(into any) error {
	unknown, err := sigsjson.UnmarshalStrict(d.json, into)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return badInput("%s:%d: %v", d.name, d.line+1, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// configurationFile is a virtual cluster configuration, with what was found in it.
type configurationFile struct {
	*document
	configuration *syncpatch.Configuration
	findings      []finding
}

func readConfigurationFile(t *terminal, name string) (*configurationFile, error) {
	documents, err := readDocuments(t, name)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, badInput("%s: it has %d documents; one is expected", name, len(documents))
	}
	return newConfigurationFile(documents[0]), nil
}

func newConfigurationFile(d *document) *configurationFile {
	c := &configurationFile{document: d}
	var problems []syncpatch.Problem
	c.configuration, problems = syncpatch.ReadConfiguration(nil, d.text)
	for _, p := range problems {
		f := newFinding(p)
		f.place(d, p.Field, p.InLine, p.InColumn)
		c.findings = append(c.findings, f)
	}
	return c
}

// resource is the full name of the resource whose patches are meant: the one that was asked for, or that of a kind.
func (c *configurationFile) resource(asked string, kind schema.GroupVersionKind) (string, error) {
	if asked != "" {
		return asked, nil
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	// UnsafeGuessKindToResource makes endpointses of the one kind that is a plural.
	if kind.Kind == "Endpoints" {
		plural.Resource = "endpoints"
	}
	for _, name := range c.configuration.Resources() {
		_, key, _ := strings.Cut(name, ".")
		if custom, isCustom := strings.CutPrefix(key, "customResources."); isCustom {
			definition, version, _ := strings.Cut(custom, "/")
			if definition == plural.GroupResource().String() && (version == "" || version == kind.Version) {
				return name, nil
			}
			continue
		}
		if strings.EqualFold(key[strings.LastIndexByte(key, '.')+1:], plural.Resource) {
			return name, nil
		}
	}
	there := "nothing"
	if names := c.configuration.Resources(); len(names) > 0 {
		there = strings.Join(names, ", ")
	}
	return "", badInput("%s: it has no patches for a %q; it has %s, and --resource says which is meant", c.name, kind.Kind, there)
}

// patchesField is where the patches of a resource are in a configuration, as problems name it.
func patchesField(configuration *model.JSON, name string) string {
	read, _ := syncpatch.ReadConfiguration(nil, configuration.Raw)
	if read != nil {
		for _, side := range []string{"", "toHost.", "fromHost."} {
			if slices.Contains(read.Resources(), side+name) {
				name = side + name
				break
			}
		}
	}
	side, key, _ := strings.Cut(name, ".")
	if definition, isCustom := strings.CutPrefix(key, "customResources."); isCustom {
		key = "customResources[" + definition + "]"
	}
	return fmt.Sprintf("sync.%s.%s.patches", side, key)
}

// node is the value of a field in a document, or the nearest one that has it, and tells which.
func (d *document) node(field string) *yamlv3.Node {
	var root yamlv3.Node
	if yamlv3.Unmarshal(d.text, &root) != nil || len(root.Content) == 0 {
		return nil
	}
	at := root.Content[0]
	for _, step := range steps(field) {
		for at.Kind == yamlv3.AliasNode {
			at = at.Alias
		}
		next := below(at, step)
		if next == nil {
			return at
		}
		at = next
	}
	return at
}

func below(at *yamlv3.Node, step string) *yamlv3.Node {
	if at.Kind == yamlv3.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(at.Content) {
			return at.Content[i]
		}
		return nil
	}
	if at.Kind == yamlv3.MappingNode {
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				return at.Content[i+1]
			}
		}
	}
	return nil
}

var step = regexp.MustCompile(`\[([^\]]*)\]|([^.\[\]]+)`)

// steps are the names and indexes of a field.
func steps(field string) []string {
	var all []string
	for _, found := range step.FindAllStringSubmatch(field, -1) {
		all = append(all, found[1]+found[2])
	}
	return all
}
