package platformconfig

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
)

// Writer writes the configuration into the state. Each write has a registry of its own, whose rules and store know who
// writes, and whether it is a rollback, a dry run or the write of an operator. A successful write is in effect in this
// process at once. A Writer is safe for concurrent use.
type Writer struct {
	current    *Current
	newManager resource.NewFieldManager
}

// Writer returns a writer of the configuration. Its writes record with newManager who set which field. Nil: they record
// nothing. Source: ADR-0008, ADR-0049.
func (c *Current) Writer(newManager resource.NewFieldManager) *Writer { return &Writer{c, newManager} }

// write describes one write. Rules for reads have the zero value.
type write struct {
	// caller is the author of the write.
	caller identity.Caller
	// rolledBackTo is the revision that the write restores. Empty: none.
	rolledBackTo string
	// operator reports whether an operator writes, who may write even if the endpoint is disabled.
	operator bool
	// ring seals secrets. Nil: there are no keys.
	ring *encryption.Keyring
	// dryRun reports whether nothing is stored.
	dryRun bool
	// force is the value of the annotation that forces a write.
	force string
	// placeholders are the fields in which the write places a placeholder.
	placeholders []*field.Path
	// warnings say what the write does to other callers.
	warnings []string
}

// Result is the result of a write of the configuration.
type Result = resource.Result[*model.Config]

// Update replaces the configuration, and returns it as the API shows it. A mark in place of a secret keeps the secret.
// Defaults that the request repeats are not stored.
//
// Errors: NotFound for another name; Forbidden if the endpoint is disabled or the configuration comes from a file; otherwise
// the errors of resource.Update. If there is an error, nothing is stored. Source: Spec 2.7; ADR-0015.
func (w *Writer) Update(ctx context.Context, in resource.UpdateInput[*model.Config]) (Result, error) {
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, dryRun: in.DryRun})
	if err != nil {
		return Result{}, err
	}
	in.DryRun = false // the store of the write has it
	return resource.Update(ctx, configs, in)
}

// Patch changes a part of the configuration as the API shows it: a patch sees marks and never secrets. An apply sees no
// defaults either. It returns the errors of Update and of resource.Patch.
func (w *Writer) Patch(ctx context.Context, in resource.PatchInput) (Result, error) {
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, dryRun: in.DryRun})
	if err != nil {
		return Result{}, err
	}
	in.DryRun = false // the store of the write has it
	return resource.Patch(ctx, configs, in)
}

// Install replaces the configuration on behalf of an operator, who may write even if the endpoint is disabled. It does not
// check what this process can reach. It returns the errors of Update. Source: ADR-0015, ADR-0024.
func (w *Writer) Install(ctx context.Context, operator identity.Caller, config *model.Config) (Result, error) {
	configs, err := w.registryOf(ctx, Name, &write{caller: operator, operator: true})
	if err != nil {
		return Result{}, err
	}
	return resource.Update(ctx, configs, resource.UpdateInput[*model.Config]{Caller: operator, Name: Name, Object: config, Manager: operator.Owner.Name})
}

// registryOf returns the registry for one write. Errors: NotFound for another name; Forbidden if the configuration comes
// from a file; ServiceUnavailable.
func (w *Writer) registryOf(ctx context.Context, name string, operation *write) (*resource.Registry[*model.Config], error) {
	if err := w.requireWritable(name); err != nil {
		return nil, err
	}
	var err error
	if operation.ring, err = w.current.keyring(ctx); err != nil {
		return nil, err
	}
	configs := w.current.registry(&writeStore{records: records{w.current.Store, w.current}, writer: w, write: operation}, &rules{current: w.current, write: operation})
	if w.newManager == nil {
		return configs, nil
	}
	return configs.WithFieldManager(w.newManager), nil
}

// requireWritable refuses writes of another name, and all writes if the configuration comes from a file.
func (w *Writer) requireWritable(name string) error {
	switch {
	case name != Name:
		return apierror.NotFound(Definition.GroupResource(), name)
	case w.current.FromFile():
		return apierror.Forbidden(Definition.GroupResource(), name, reasonFile, nil)
	default:
		return nil
	}
}
