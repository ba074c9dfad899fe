package patch

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// finding is an error or a warning about a place in a file.
type finding struct {
	File string `json:"file"`
	// Line and Column are the place, from 1. 0 means unknown.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
	source  string
}

func hasErrors(all []finding) bool {
	return slices.ContainsFunc(all, func(f finding) bool { return !f.Warning })
}

func newFinding(p syncpatch.Problem) finding {
	f := finding{Field: strings.TrimPrefix(p.Field, "<nil>"), Message: p.ErrorBody(), Warning: p.Warning}
	if p.Warning || p.Offset.Column > 0 {
		f.Message = p.Detail
	}
	return f
}

// specConfiguration is the prefix of field paths in the configuration of an evaluation.
const specConfiguration = "spec.configuration."

// flagNames are the flags for fields of an evaluation.
var flagNames = map[string]string{
	"spec.context.tenant.name": "--tenant", "spec.context.tenant.namespace": "--tenant-namespace",
	"spec.clusterDomain": "--cluster-domain", "spec.resource": "--resource", "spec.context.hostObject": "--host-object",
	"spec.context.virtualObject": "--virtual-object",
}

// locate makes a finding of a problem, at the place of its field.
func (e *offline) locate(p syncpatch.Problem) finding {
	f := newFinding(p)
	if e.configuration == nil {
		f.Field = e.source.prefix + p.Field
		f.place(e.source, f.Field, p.Offset)
		return f
	}
	if in, ok := strings.CutPrefix(p.Field, specConfiguration); ok {
		f.Field = in
		f.place(e.configuration.document, in, p.Offset)
		return f
	}
	f.File, f.Field = e.source.name, cmp.Or(flagNames[p.Field], strings.TrimPrefix(p.Field, "spec."))
	return f
}

// locateFailure makes a finding of the error of a patch, at the place of the field that failed.
func (e *offline) locateFailure(failed *model.SyncPatchError, field string) finding {
	f := finding{Message: fmt.Sprintf("at %s: %s", failed.Path, failed.Message)}
	origin := e.source
	if in, ok := strings.CutPrefix(field, specConfiguration); ok && e.configuration != nil {
		origin, f.Field = e.configuration.document, in
	} else {
		f.Field = e.source.prefix + field
	}
	f.place(origin, f.Field, syncpatch.Offset{Line: int(failed.Line), Column: int(failed.Column)})
	return f
}

// place sets the position of a field, or of a place in its value.
func (f *finding) place(d *document, field string, offset syncpatch.Offset) {
	f.File = d.name
	node := d.node(field)
	if node == nil {
		return
	}
	line, column := node.Line, node.Column
	lines := strings.Split(string(d.text), "\n")
	if offset.Column > 0 && node.Kind == yamlv3.ScalarNode {
		switch node.Style &^ yamlv3.TaggedStyle {
		case yamlv3.FoldedStyle:
			// Folding loses the original lines.
		case yamlv3.LiteralStyle:
			// The text begins on the next line, after the indentation of its first line.
			if first := line; first < len(lines) && line+offset.Line <= len(lines) {
				line += offset.Line
				column = len(lines[first]) - len(strings.TrimLeft(lines[first], " ")) + offset.Column
			}
		case yamlv3.SingleQuotedStyle, yamlv3.DoubleQuotedStyle:
			if offset.Line == 1 {
				column += offset.Column
			}
		default:
			if offset.Line == 1 {
				column += offset.Column - 1
			}
		}
	}
	f.Line, f.Column = d.line+line, column
	if line >= 1 && line <= len(lines) {
		f.source = strings.TrimRight(lines[line-1], "\r")
	}
}

// widest is the maximum length of a line that is shown, in characters.
const widest = 160

// report writes findings, each with its line and a mark below the place.
func (t *terminal) report(all []finding) {
	for _, f := range all {
		place := f.File
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if f.Column > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Column)
		}
		severity := t.paint(red, "error")
		if f.Warning {
			severity = t.paint(yellow, "warning")
		}
		if f.Field != "" {
			severity += ": " + f.Field
		}
		_, _ = fmt.Fprintf(t.errors, "%s: %s: %s\n", t.paint(bold, place), severity, f.Message)
		if runes := []rune(f.source); f.Column > 0 && f.Column <= len(runes)+1 && len(runes) <= widest {
			before := strings.Map(func(r rune) rune {
				if r == '\t' {
					return r
				}
				return ' '
			}, string(runes[:f.Column-1]))
			_, _ = fmt.Fprintf(t.errors, "    %s\n    %s%s\n", f.source, before, t.paint(red, "^"))
		}
	}
}

const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (t *terminal) paint(colour, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return output.Paint(colour, text)
}

// wantsColour reports whether output to a file is coloured.
func wantsColour(asked string, file *os.File, lookup func(string) string) bool {
	if asked != "auto" {
		return asked == "always"
	}
	return output.Coloured(file, lookup)
}

// explain prints the changes of an object, and what each patch did.
func (t *terminal) explain(e *offline) {
	spec, status := &e.evaluation.Spec, &e.evaluation.Status
	before, after := "tenant", "host"
	if spec.Direction == model.HostToTenant {
		before, after = after, before
	}
	t.diff(e.source.name+" ("+before+")", spec.Object, e.source.name+" ("+after+")", status.Object)
	for _, patch := range status.Patches {
		counts := map[string]int{}
		for _, match := range patch.Matches {
			counts[match.Outcome]++
		}
		_, _ = fmt.Fprintf(t.out, "patch %d: %s: %s", patch.Index, cmp.Or(patch.Path, `""`), t.outcome(patch.Outcome))
		if patch.Outcome != model.PatchSkipped && patch.Outcome != model.PatchFailed {
			_, _ = fmt.Fprintf(t.out, " (%d of %d)", counts[patch.Outcome], len(patch.Matches)+int(patch.OmittedMatches))
		}
		if patch.Reason != "" {
			_, _ = fmt.Fprintf(t.out, ": %s", patch.Reason)
		}
		_, _ = fmt.Fprintln(t.out)
	}
	for _, r := range status.References {
		_, _ = fmt.Fprintf(t.out, "reference: %s %s %s is %s on the host\n", r.APIVersion, r.Kind, qualifiedName(r.Namespace, r.Name), qualifiedName(r.HostNamespace, r.HostName))
	}
	for _, check := range status.Checks {
		outcome := t.paint(green, "passed")
		if !check.Passed {
			outcome = t.paint(red, "failed")
		}
		_, _ = fmt.Fprintf(t.out, "check %s: %s", check.Type, outcome)
		if check.Reason != "" {
			_, _ = fmt.Fprintf(t.out, ": %s", check.Reason)
		}
		_, _ = fmt.Fprintln(t.out)
		t.differences(check.Differences)
	}
}

// differences prints the findings of a check.
func (t *terminal) differences(all []model.SyncPatchDifference) {
	for _, d := range all {
		_, _ = fmt.Fprintf(t.out, "    %s: want %s, got %s\n", d.Path, shorten(d.Want), shorten(d.Got))
	}
}

func (t *terminal) outcome(name string) string {
	switch name {
	case model.PatchApplied, model.PatchDeleted:
		return t.paint(green, name)
	case model.PatchFailed:
		return t.paint(red, name)
	default:
		return t.paint(yellow, name)
	}
}

func qualifiedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// shorten returns a value in one line.
func shorten(value *model.JSON) string {
	if value == nil {
		return "nothing"
	}
	text := string(value.Raw)
	if utf8.RuneCountInString(text) > widest {
		text = string([]rune(text)[:widest]) + "..."
	}
	return text
}

// diff prints the differences of two objects. It prints nothing if they are equal.
func (t *terminal) diff(oldName string, before *model.JSON, newName string, after *model.JSON) {
	old, _ := yaml.JSONToYAML(before.Raw)
	now, _ := yaml.JSONToYAML(after.Raw)
	text := diff.Diff(oldName, old, newName, now)
	for i, l := range strings.SplitAfter(string(text), "\n") {
		colour := ""
		switch {
		case i == 0:
			// The line "diff a b" repeats the names in the next lines.
			continue
		case strings.HasPrefix(l, "---"), strings.HasPrefix(l, "+++"):
			colour = bold
		case strings.HasPrefix(l, "-"):
			colour = red
		case strings.HasPrefix(l, "+"):
			colour = green
		case strings.HasPrefix(l, "@"):
			colour = cyan
		}
		content, end := strings.CutSuffix(l, "\n")
		if colour != "" {
			content = t.paint(colour, content)
		}
		_, _ = io.WriteString(t.out, content)
		if end {
			_, _ = io.WriteString(t.out, "\n")
		}
	}
}
