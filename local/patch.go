package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/evaluation"
	"management.platform.sh/shared/syncpatch/worker"
)

// patchCommand is what tries sync patches without a server. Source: Spec 2.8; ADR-0013.
type patchCommand struct {
	Eval  patchEvalCommand  `cmd:"" help:"Send objects through patches and show what becomes of them."`
	Check patchCheckCommand `cmd:"" help:"Find what is wrong with the patches of configurations."`
	Test  patchTestCommand  `cmd:"" help:"Run test files: objects with what patches are to make of them."`
}

// Help is printed below the commands.
func (*patchCommand) Help() string {
	return "Nothing is sent anywhere. Ends with 0 when all is well; with 1 when a patch failed, a check or a test did not pass, or there are " +
		"warnings under check --strict; with 2 when the input cannot be used. See docs/patches.md."
}

// Exit codes of the patch commands. Source: docs/patches.md.
const (
	exitFailed   = 1
	exitBadInput = 2
)

// exitError ends the program with a code. What went wrong has been said where it has no text.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func badInput(format string, args ...any) error {
	return &exitError{exitBadInput, fmt.Sprintf(format, args...)}
}

// ended is how a command ends that has said everything.
func ended(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// patchFlags bound evaluations, for the server and offline.
type patchFlags struct {
	ExpressionTime time.Duration `name:"patch-expression-time" env:"PLATFORM_PATCH_EXPRESSION_TIME" default:"100ms" help:"The time for one expression of a sync patch, from a millisecond to 25 seconds, as the next (${default})."`
	ObjectTime     time.Duration `name:"patch-object-time" env:"PLATFORM_PATCH_OBJECT_TIME" default:"1s" help:"The time for all sync patches of an object (${default})."`
	Memory         quantity      `name:"patch-memory" env:"PLATFORM_PATCH_MEMORY" default:"64Mi" help:"What an evaluation may use, from 16Mi to 1Gi (${default})."`
	Result         quantity      `name:"patch-result" env:"PLATFORM_PATCH_RESULT" default:"1Mi" help:"The result of an expression, from 1Ki to 16Mi (${default})."`
	Depth          int           `name:"patch-depth" env:"PLATFORM_PATCH_DEPTH" default:"200" help:"How deep calls and results may be nested, from 10 to 1000 (${default})."`
	Workers        int           `name:"patch-workers" env:"PLATFORM_PATCH_WORKERS" placeholder:"N" help:"How many evaluations run at a time, from 1 to 64 (one per CPU)."`
	InProcess      bool          `name:"patch-in-process" env:"PLATFORM_PATCH_IN_PROCESS" help:"Evaluate without workers, for trusted patches."`
}

// quantity is a number of bytes, such as 64Mi.
type quantity int64

// UnmarshalText reads it.
func (q *quantity) UnmarshalText(text []byte) error {
	parsed, err := resource.ParseQuantity(string(text))
	if err != nil || parsed.Value() <= 0 {
		return errors.New("must be a quantity above zero, such as 64Mi")
	}
	*q = quantity(parsed.Value())
	return nil
}

// check returns what is wrong with the flags, all at once.
func (f *patchFlags) check() error {
	var problems []error
	within := func(flag string, ok bool, least, most any) {
		if !ok {
			problems = append(problems, fmt.Errorf("--%s: must be from %v to %v", flag, least, most))
		}
	}
	times := func(flag string, value time.Duration) {
		within(flag, value >= frame.LeastPatchTime && value <= frame.MostPatchTime, frame.LeastPatchTime, frame.MostPatchTime)
	}
	bytes := func(flag string, value quantity, least, most int64) {
		within(flag, int64(value) >= least && int64(value) <= most,
			resource.NewQuantity(least, resource.BinarySI), resource.NewQuantity(most, resource.BinarySI))
	}
	times("patch-expression-time", f.ExpressionTime)
	times("patch-object-time", f.ObjectTime)
	bytes("patch-memory", f.Memory, frame.LeastPatchMemory, frame.MostPatchMemory)
	bytes("patch-result", f.Result, frame.LeastPatchResult, frame.MostPatchResult)
	within("patch-depth", f.Depth >= frame.LeastPatchDepth && f.Depth <= frame.MostPatchDepth, frame.LeastPatchDepth, frame.MostPatchDepth)
	within("patch-workers", f.Workers >= 0 && f.Workers <= frame.MostPatchWorkers, 1, frame.MostPatchWorkers)
	return errors.Join(problems...)
}

func (f *patchFlags) settings() frame.PatchSettings {
	return frame.PatchSettings{
		ExpressionTime: f.ExpressionTime, ObjectTime: f.ObjectTime, MemoryBytes: int64(f.Memory), ResultBytes: int64(f.Result),
		Depth: f.Depth, Workers: f.Workers, InProcess: f.InProcess,
	}
}

// terminal is where patch commands read and write.
type terminal struct {
	in          io.Reader
	out, errors io.Writer
	colour      bool
}

// standard is the terminal of this process.
func standard(colour string) *terminal {
	return &terminal{in: os.Stdin, out: os.Stdout, errors: os.Stderr, colour: wantsColour(colour, os.Stdout, os.Getenv)}
}

type patchEvalCommand struct {
	Files           []string   `arg:"" name:"file" help:"Objects, or SyncPatchEvaluations, in YAML or JSON; - is standard input."`
	Config          string     `short:"c" placeholder:"FILE" help:"Virtual cluster configuration that has the patches. It is context.tenant.config as well."`
	Resource        string     `placeholder:"KEY" help:"Key below sync.toHost or sync.fromHost whose patches are meant, such as endpoints (found by the kind of the object)."`
	Reverse         bool       `help:"From host to tenant."`
	NamespaceMode   string     `enum:"Single,Multi" default:"Single" help:"Whether all namespaces of the tenant share one on the host: Single or Multi (${default})."`
	ClusterDomain   string     `placeholder:"DOMAIN" help:"Domain of the host cluster (cluster.local)."`
	Tenant          string     `placeholder:"NAME" help:"Name of the tenant cluster."`
	TenantNamespace string     `placeholder:"NAMESPACE" help:"Namespace of the tenant cluster on the host."`
	HostObject      string     `placeholder:"FILE" help:"What context.hostObject is."`
	VirtualObject   string     `placeholder:"FILE" help:"What context.virtualObject is."`
	Check           []string   `enum:"RoundTrip,Fixpoint" placeholder:"NAME" help:"What else to find out: RoundTrip, Fixpoint."`
	Output          string     `short:"o" enum:"diff,yaml,json,object" default:"diff" help:"diff and what each patch did; yaml or json, the evaluations as the server answers them; object, the objects alone, but for those whose patches failed (${default})."`
	Color           string     `enum:"auto,always,never" default:"auto" help:"auto, always or never (${default}: on a terminal, unless NO_COLOR is set)."`
	Limits          patchFlags `embed:""`
}

// Run evaluates every object.
func (c *patchEvalCommand) Run(ctx context.Context) error { return c.run(ctx, standard(c.Color)) }

func (c *patchEvalCommand) run(ctx context.Context, t *terminal) error {
	if err := c.Limits.check(); err != nil {
		return badInput("%v", err)
	}
	evaluations, err := c.read(t)
	if err != nil {
		return err
	}
	pool := worker.New(evaluation.Settings(c.Limits.settings()))
	defer pool.Close()
	code := 0
	var done []*model.SyncPatchEvaluation
	for _, e := range evaluations {
		ok, err := e.evaluate(ctx, pool.Evaluate)
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
	return ended(code)
}

// read makes an evaluation of each document, and tells of all that cannot be one.
func (c *patchEvalCommand) read(t *terminal) ([]*offline, error) {
	var configuration *configurationFile
	var found []finding
	if c.Config != "" {
		configuration, found = readConfigurationFile(t, c.Config)
	}
	common := model.SyncPatchEvaluationSpec{
		NamespaceMode: c.NamespaceMode, ClusterDomain: c.ClusterDomain, Checks: c.Check, Direction: model.TenantToHost,
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
		d, wrong := one(other.name, documents, wrong)
		found = append(found, wrong...)
		if d != nil {
			*other.into = &model.JSON{Raw: d.json}
		}
	}
	var all []*offline
	for _, name := range c.Files {
		documents, wrong := readDocuments(t, name)
		if len(documents)+len(wrong) == 0 {
			wrong = []finding{{File: name, Message: "there is no object"}}
		}
		found = append(found, wrong...)
		if c.Config != "" && configuration == nil {
			continue
		}
		for _, d := range documents {
			e, wrong := c.evaluation(d, common, configuration)
			found = append(found, wrong...)
			all = append(all, e)
		}
	}
	t.report(found)
	if hasErrors(found) {
		return nil, ended(exitBadInput)
	}
	return all, nil
}

// evaluation is one document: a whole SyncPatchEvaluation, or an object for the patches of the configuration.
func (c *patchEvalCommand) evaluation(d *document, common model.SyncPatchEvaluationSpec, from *configurationFile) (*offline, []finding) {
	if d.isEvaluation() {
		e, found := readEvaluation(d)
		if unread := c.unread(); len(unread) > 0 {
			found = append(found, d.finding("", fmt.Sprintf("%s: a %s says so in its spec", strings.Join(unread, ", "), evaluation.Kind)))
		}
		return e, found
	}
	if from == nil {
		return nil, []finding{d.finding("", fmt.Sprintf("a %s is no %s, so --config must say where the patches are",
			cmp.Or(d.kind.Kind, "text without kind"), evaluation.Kind))}
	}
	name, err := from.resource(c.Resource, d.kind)
	if err != nil {
		return nil, []finding{d.finding("", err.Error())}
	}
	e := &offline{source: d, configuration: from}
	e.evaluation.Spec = common
	e.evaluation.Spec.Resource, e.evaluation.Spec.Configuration = name, &model.JSON{Raw: from.json}
	e.evaluation.Spec.Context.Tenant.Config = e.evaluation.Spec.Configuration
	e.evaluation.Spec.Object = &model.JSON{Raw: d.json}
	return e, nil
}

// unread are the flags that were given and are about objects alone.
func (c *patchEvalCommand) unread() []string {
	var all []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--config", c.Config != ""}, {"--resource", c.Resource != ""}, {"--reverse", c.Reverse}, {"--namespace-mode", c.NamespaceMode != model.SingleNamespace},
		{"--cluster-domain", c.ClusterDomain != ""}, {"--tenant", c.Tenant != ""}, {"--tenant-namespace", c.TenantNamespace != ""},
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
	// source is the document that it is, or that holds its object.
	source *document
	// configuration has the patches. Nil: the source has them.
	configuration *configurationFile
	// absent are the patches of the source that have no path.
	absent   []syncpatch.Problem
	findings []finding
}

// isEvaluation tells whether the document is a SyncPatchEvaluation, of whatever version.
func (d *document) isEvaluation() bool {
	return d.kind.Kind == evaluation.Kind && d.kind.Group == model.GroupName
}

// readEvaluation reads a document that is a SyncPatchEvaluation, and finds what is wrong with its form.
func readEvaluation(d *document) (*offline, []finding) {
	if d.kind.Version != model.SchemeGroupVersion.Version {
		return nil, []finding{d.finding("apiVersion", fmt.Sprintf("%q is none; %q is", d.kind.GroupVersion(), model.SchemeGroupVersion))}
	}
	e := &offline{source: d, absent: syncpatch.AbsentPaths(d.json)}
	return e, d.decode(&e.evaluation)
}

// evaluate finds what is wrong, and else does what the patches say. It tells whether there is a status.
func (e *offline) evaluate(ctx context.Context, do func(context.Context, syncpatch.Request) (*syncpatch.Result, error)) (bool, error) {
	e.evaluation.SetGroupVersionKind(model.SchemeGroupVersion.WithKind(evaluation.Kind))
	request, problems := syncpatch.NewRequest(&e.evaluation.Spec)
	for _, p := range append(problems, e.absent...) {
		if e.configuration == nil || !p.Warning || !strings.HasPrefix(p.Field, specConfiguration) {
			e.findings = append(e.findings, e.locate(p))
		}
	}
	if hasErrors(e.findings) {
		return false, nil
	}
	result, err := do(ctx, request)
	if err != nil {
		return false, fmt.Errorf("evaluating: %w", err)
	}
	if e.evaluation.Status, err = result.Status(); err != nil {
		return false, err
	}
	e.evaluation.Status.Warnings = syncpatch.Warnings(problems)
	if failed := result.Error; failed != nil {
		e.findings = append(e.findings, e.locateFailure(failed, &request))
	}
	return true, nil
}

// status is the exit code that the evaluation asks for.
func (e *offline) status() int {
	status := &e.evaluation.Status
	switch {
	case status.Object == nil:
		return exitBadInput
	case status.Error != nil:
		return exitFailed
	}
	for _, check := range status.Checks {
		if !check.Passed {
			return exitFailed
		}
	}
	return 0
}

// print writes finished evaluations in a form for programs.
func (t *terminal) print(form string, all []*model.SyncPatchEvaluation) error {
	var text []byte
	var err error
	switch form {
	case "object":
		var objects [][]byte
		for _, e := range all {
			if e.Status.Error != nil {
				// It is as it was sent; who pipes it on wants what patches made of it.
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

// encodeAll is one item as it is, and several in a List as kubectl prints them.
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

type patchCheckCommand struct {
	Files  []string `arg:"" name:"file" help:"Virtual cluster configurations, or SyncPatchEvaluations, in YAML or JSON; - is standard input."`
	Output string   `short:"o" enum:"text,json,yaml" default:"text" help:"text, json or yaml (${default})."`
	Strict bool     `help:"End with 1 when there are warnings."`
	Color  string   `enum:"auto,always,never" default:"auto" help:"auto, always or never (${default}: on a terminal, unless NO_COLOR is set)."`
}

// Run checks every file.
func (c *patchCheckCommand) Run() error { return c.run(standard(c.Color)) }

func (c *patchCheckCommand) run(t *terminal) error {
	all := []finding{}
	for _, name := range c.Files {
		all = append(all, checkFile(t, name)...)
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
		return ended(exitBadInput)
	case c.Strict && len(all) > 0:
		return ended(exitFailed)
	}
	return nil
}

// checkFile finds what is wrong with the patches of a file.
func checkFile(t *terminal, name string) []finding {
	documents, all := readDocuments(t, name)
	if len(documents)+len(all) == 0 {
		return []finding{{File: name, Message: "it is empty"}}
	}
	for _, d := range documents {
		if !d.isEvaluation() {
			all = append(all, newConfigurationFile(d).findings...)
			continue
		}
		e, wrong := readEvaluation(d)
		all = append(all, wrong...)
		if len(wrong) > 0 {
			continue
		}
		_, problems := syncpatch.NewRequest(&e.evaluation.Spec)
		for _, p := range append(problems, e.absent...) {
			all = append(all, e.locate(p))
		}
	}
	return all
}
