// Package patch tries sync patches on files, without a server: it evaluates objects, finds errors in configurations and
// runs test files. It reports every finding with file, line and column. It decides nothing itself: rules and results
// come from package syncpatch, as in the API. Source: Spec 2.8; ADR-0013.
package patch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"

	"management.platform.sh/local/flags"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
	"management.platform.sh/shared/syncpatch/worker"
)

// Commands are the commands that try sync patches without a server. New makes them.
type Commands struct {
	Eval  Eval  `cmd:"" help:"Evaluate the patches on objects and show the result."`
	Check Check `cmd:"" help:"Find errors in the patches of configurations."`
	Test  Test  `cmd:"" help:"Run test files: objects with the expected results of patches."`
}

// New returns the commands with their flags.
func New() Commands {
	return Commands{Eval: Eval{Limits: flags.Patches()}, Check: Check{Limits: flags.Patches()}, Test: Test{Limits: flags.Patches()}}
}

func (*Commands) Help() string {
	return "Nothing is sent to a server. Exit codes: 0 if everything passed; 1 if a patch, a check or a test failed, or if check --strict " +
		"found warnings; 2 if the input cannot be used. See docs/patches.md."
}

// Exit codes of the patch commands. Source: docs/patches.md.
const (
	ExitFailed   = 1
	ExitBadInput = 2
)

// ExitError ends the program with a code. If its text is empty, the reason has been printed already.
type ExitError struct {
	Code int
	text string
}

func (e *ExitError) Error() string { return e.text }

func (e *ExitError) ExitCode() int { return e.Code }

func badInput(format string, args ...any) error {
	return &ExitError{ExitBadInput, fmt.Sprintf(format, args...)}
}

// exitWith ends a command that has printed everything.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &ExitError{Code: code}
}

// terminal has the files that patch commands read and write, and the workers that read and evaluate patches for them.
type terminal struct {
	in          io.Reader
	out, errors io.Writer
	colour      bool
	workers     *worker.Pool
}

// open starts the workers within the limits of the flags. Close ends them.
func (t *terminal) open(limits *flags.Settings) error {
	read, err := limits.Read()
	if err != nil {
		return badInput("%v", err)
	}
	t.workers = worker.New(evaluation.Settings(read.Patches))
	return nil
}

func (t *terminal) close() { t.workers.Close() }

// endAtSignals makes SIGINT and SIGTERM end the program at once, whatever it is doing, with the exit code that a shell
// has for the signal. No work has to be finished, and workers end with the program.
func endAtSignals() { signal.Reset(syscall.SIGINT, syscall.SIGTERM) }

// standardTerminal returns the terminal of this process.
func standardTerminal(colour string) *terminal {
	return &terminal{in: os.Stdin, out: os.Stdout, errors: os.Stderr, colour: wantsColour(colour, os.Stdout, os.Getenv)}
}

// Eval is the command patch eval: it shows what patches do to objects. Source: ADR-0013.
type Eval struct {
	Files           []string       `arg:"" name:"file" help:"Objects or SyncPatchEvaluations in YAML or JSON. - is standard input."`
	Config          string         `short:"c" placeholder:"FILE" help:"Virtual cluster configuration that has the patches. Expressions see it as context.tenant.config."`
	Resource        string         `placeholder:"KEY" help:"Key below sync.toHost or sync.fromHost whose patches are used, such as endpoints. Absent: the one for the kind of the object."`
	Reverse         bool           `help:"Evaluate from host to tenant, as patches below sync.fromHost always are."`
	NamespaceMode   string         `enum:"Single,Multi" default:"Single" help:"How namespaces of the tenant are mapped to the host: Single (all to one) or Multi (each to its own) (${default})."`
	Naming          string         `enum:"neutral,vcluster" default:"neutral" help:"How names and labels are translated in Single mode: neutral, or vcluster (as the open syncer of vcluster does) (${default})."`
	ClusterDomain   string         `placeholder:"DOMAIN" help:"DNS domain of the host cluster. Absent: cluster.local."`
	Tenant          string         `placeholder:"NAME" help:"Name of the tenant cluster."`
	TenantNamespace string         `placeholder:"NAMESPACE" help:"Namespace of the tenant cluster on the host."`
	HostObject      string         `placeholder:"FILE" help:"Object that expressions see as context.hostObject."`
	VirtualObject   string         `placeholder:"FILE" help:"Object that expressions see as context.virtualObject."`
	Check           []string       `enum:"RoundTrip,Fixpoint" placeholder:"NAME" help:"Also run a check: RoundTrip or Fixpoint. Can be repeated."`
	Output          string         `short:"o" enum:"diff,yaml,json,object" default:"diff" help:"diff: the changes, and what each patch did. yaml or json: the evaluations, as the API returns them. object: the resulting objects only, without objects whose patches failed (${default})."`
	Color           string         `enum:"auto,always,never" default:"auto" help:"Color the output: auto, always or never. auto colors on a terminal unless NO_COLOR is set (${default})."`
	Limits          flags.Settings `embed:""`
}

func (c *Eval) Run(ctx context.Context) error {
	endAtSignals()
	return c.run(ctx, standardTerminal(c.Color))
}

func (c *Eval) run(ctx context.Context, t *terminal) error {
	if err := t.open(&c.Limits); err != nil {
		return err
	}
	defer t.close()
	evaluations, err := c.read(ctx, t)
	if err != nil {
		return err
	}
	code := 0
	var done []*model.SyncPatchEvaluation
	for _, e := range evaluations {
		ok, err := e.evaluate(ctx, t.workers)
		if err != nil {
			return err
		}
		t.report(e.findings)
		if e.status() != 0 {
			code = max(code, e.status())
		}
		if ok {
			done = append(done, &e.evaluation)
			if c.Output == "diff" {
				t.explain(e)
			}
		}
	}
	if c.Output != "diff" {
		if err := t.print(c.Output, done); err != nil {
			return err
		}
	}
	return exitWith(code)
}

// read makes an evaluation of each document. It reports every document that is no evaluation or object.
func (c *Eval) read(ctx context.Context, t *terminal) ([]*offline, error) {
	var configuration *configurationFile
	var findings []finding
	if c.Config != "" {
		var err error
		if configuration, findings, err = readConfigurationFile(ctx, t, c.Config); err != nil {
			return nil, err
		}
	}
	common := model.SyncPatchEvaluationSpec{
		NamespaceMode: c.NamespaceMode, Naming: c.Naming, ClusterDomain: c.ClusterDomain, Checks: c.Check,
		Context: model.SyncPatchContext{Tenant: model.SyncPatchTenant{Name: c.Tenant, Namespace: c.TenantNamespace}},
	}
	if c.Reverse {
		common.Direction = model.HostToTenant
	}
	for _, other := range []struct {
		name string
		into **model.JSON
	}{{c.HostObject, &common.Context.HostObject}, {c.VirtualObject, &common.Context.VirtualObject}} {
		if other.name == "" {
			continue
		}
		documents, wrong := readDocuments(t, other.name)
		d, wrong := onlyDocument(other.name, documents, wrong)
		findings = append(findings, wrong...)
		if d != nil {
			*other.into = &model.JSON{Raw: d.json}
		}
	}
	var all []*offline
	for _, name := range c.Files {
		documents, wrong := readDocuments(t, name)
		if len(documents)+len(wrong) == 0 {
			wrong = []finding{{File: name, Message: "the file has no object"}}
		}
		findings = append(findings, wrong...)
		if c.Config != "" && configuration == nil {
			continue
		}
		for _, d := range documents {
			e, wrong := c.evaluation(d, common, configuration)
			findings = append(findings, wrong...)
			all = append(all, e)
		}
	}
	t.report(findings)
	if hasErrors(findings) {
		return nil, exitWith(ExitBadInput)
	}
	return all, nil
}

// evaluation makes an evaluation of one document: a SyncPatchEvaluation, or an object for the patches of the
// configuration.
func (c *Eval) evaluation(d *document, common model.SyncPatchEvaluationSpec, configuration *configurationFile) (*offline, []finding) {
	if d.isEvaluation() {
		e, found := readEvaluation(d)
		if unread := c.ignoredFlags(); len(unread) > 0 {
			found = append(found, d.finding("", fmt.Sprintf("%s: a %s has these settings in its spec; omit the flags", strings.Join(unread, ", "), evaluation.Kind)))
		}
		return e, found
	}
	if configuration == nil {
		return nil, []finding{d.finding("", fmt.Sprintf("--config is missing: %s has no patches of its own, only a %s has",
			cmp.Or(d.kind.Kind, "an object without kind"), evaluation.Kind))}
	}
	name, err := configuration.resource(c.Resource, d.kind)
	if err != nil {
		return nil, []finding{d.finding("", err.Error())}
	}
	e := &offline{source: d, configuration: configuration}
	e.evaluation.Spec = common
	e.evaluation.Spec.Resource, e.evaluation.Spec.Configuration = name, &model.JSON{Raw: configuration.json}
	e.evaluation.Spec.Object = &model.JSON{Raw: d.json}
	return e, nil
}

// ignoredFlags returns the given flags that apply to objects only.
func (c *Eval) ignoredFlags() []string {
	var all []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--config", c.Config != ""}, {"--resource", c.Resource != ""}, {"--reverse", c.Reverse}, {"--namespace-mode", c.NamespaceMode != model.SingleNamespace},
		{"--naming", c.Naming != model.NamingNeutral}, {"--cluster-domain", c.ClusterDomain != ""}, {"--tenant", c.Tenant != ""}, {"--tenant-namespace", c.TenantNamespace != ""},
		{"--host-object", c.HostObject != ""}, {"--virtual-object", c.VirtualObject != ""}, {"--check", len(c.Check) > 0},
	} {
		if flag.given {
			all = append(all, flag.name)
		}
	}
	return all
}

// offline is an evaluation without a server.
type offline struct {
	evaluation model.SyncPatchEvaluation
	// source is the document with the evaluation or with its object.
	source *document
	// configuration has the patches. Nil: the source has them.
	configuration *configurationFile
	// absent are problems with patches of the source that have no path.
	absent   []syncpatch.Problem
	findings []finding
}

// isEvaluation reports whether the document is a SyncPatchEvaluation of any version.
func (d *document) isEvaluation() bool {
	return d.kind.Kind == evaluation.Kind && d.kind.Group == model.GroupName
}

// readEvaluation reads a document that is a SyncPatchEvaluation, and finds errors in its form.
func readEvaluation(d *document) (*offline, []finding) {
	if d.kind.Version != model.SchemeGroupVersion.Version {
		return nil, []finding{d.finding("apiVersion", fmt.Sprintf("unsupported apiVersion %q; use %q", d.kind.GroupVersion(), model.SchemeGroupVersion))}
	}
	e := &offline{source: d}
	findings := d.decode(&e.evaluation)
	e.absent = syncpatch.AbsentPaths(e.evaluation.Spec.Patches, d.json)
	return e, findings
}

// evaluate checks the evaluation and, if it has no errors, evaluates the patches. It reports whether there is a status.
func (e *offline) evaluate(ctx context.Context, workers *worker.Pool) (bool, error) {
	e.evaluation.SetGroupVersionKind(model.SchemeGroupVersion.WithKind(evaluation.Kind))
	outcome, err := workers.Evaluate(ctx, &e.evaluation.Spec)
	if err != nil {
		return false, fmt.Errorf("evaluating: %w", err)
	}
	for _, p := range append(outcome.Problems, e.absent...) {
		if e.configuration == nil || !p.Warning || !strings.HasPrefix(p.Field, specConfiguration) {
			e.findings = append(e.findings, e.locate(p))
		}
	}
	if outcome.Status == nil || hasErrors(e.findings) {
		return false, nil
	}
	e.evaluation.Spec.Direction, e.evaluation.Status = outcome.Direction, *outcome.Status
	if failed := outcome.Status.Error; failed != nil {
		e.findings = append(e.findings, e.locateFailure(failed, outcome.Failed))
	}
	return true, nil
}

// status returns the exit code for the evaluation.
func (e *offline) status() int {
	status := &e.evaluation.Status
	switch {
	case status.Object == nil:
		return ExitBadInput
	case status.Error != nil:
		return ExitFailed
	}
	for _, check := range status.Checks {
		if !check.Passed {
			return ExitFailed
		}
	}
	return 0
}

// print writes evaluations in a format for programs.
func (t *terminal) print(form string, all []*model.SyncPatchEvaluation) error {
	var text []byte
	var err error
	switch form {
	case "object":
		var objects [][]byte
		for _, e := range all {
			if e.Status.Error != nil {
				// The object is unchanged. A reader of the output expects patched objects only.
				continue
			}
			one, err := yaml.JSONToYAML(e.Status.Object.Raw)
			if err != nil {
				return err
			}
			objects = append(objects, one)
		}
		text = bytes.Join(objects, []byte("---\n"))
	default:
		text, err = encodeAll(form, all)
	}
	if err == nil {
		_, err = t.out.Write(text)
	}
	return err
}

// encodeAll encodes a single item as it is, and several items as a List, as kubectl prints them.
func encodeAll[T any](form string, items []T) ([]byte, error) {
	var all any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		all = items[0]
	}
	if form == "yaml" {
		return yaml.Marshal(all)
	}
	text, err := json.MarshalIndent(all, "", "    ")
	return append(text, '\n'), err
}

// Check is the command patch check: it reports everything that is wrong with configurations, with line and column.
// Source: ADR-0013.
type Check struct {
	Files  []string       `arg:"" name:"file" help:"Virtual cluster configurations or SyncPatchEvaluations in YAML or JSON. - is standard input."`
	Output string         `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`
	Strict bool           `help:"Exit with 1 if there are warnings."`
	Color  string         `enum:"auto,always,never" default:"auto" help:"Color the output: auto, always or never. auto colors on a terminal unless NO_COLOR is set (${default})."`
	Limits flags.Settings `embed:""`
}

func (c *Check) Run(ctx context.Context) error {
	endAtSignals()
	return c.run(ctx, standardTerminal(c.Color))
}

func (c *Check) run(ctx context.Context, t *terminal) error {
	if err := t.open(&c.Limits); err != nil {
		return err
	}
	defer t.close()
	all := []finding{}
	for _, name := range c.Files {
		found, err := checkFile(ctx, t, name)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if c.Output == "text" {
		t.errors = t.out
		t.report(all)
	} else {
		text, err := encodeAll(c.Output, []any{map[string]any{"findings": all}})
		if err != nil {
			return err
		}
		if _, err := t.out.Write(text); err != nil {
			return err
		}
	}
	switch {
	case hasErrors(all):
		return exitWith(ExitBadInput)
	case c.Strict && len(all) > 0:
		return exitWith(ExitFailed)
	}
	return nil
}

// checkFile finds errors in the patches of a file.
func checkFile(ctx context.Context, t *terminal, name string) ([]finding, error) {
	documents, all := readDocuments(t, name)
	if len(documents)+len(all) == 0 {
		return []finding{{File: name, Message: "the file is empty"}}, nil
	}
	for _, d := range documents {
		if !d.isEvaluation() {
			c, err := newConfigurationFile(ctx, t, d)
			if err != nil {
				return nil, err
			}
			all = append(all, c.findings...)
			continue
		}
		e, wrong := readEvaluation(d)
		all = append(all, wrong...)
		if len(wrong) > 0 {
			continue
		}
		problems, err := t.workers.Check(ctx, &e.evaluation.Spec)
		if err != nil {
			return nil, fmt.Errorf("checking %s: %w", name, err)
		}
		for _, p := range append(problems, e.absent...) {
			all = append(all, e.locate(p))
		}
	}
	return all, nil
}
