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

// Writer is a Current that clients write. It is safe for concurrent use.
type Writer struct {
	*Current

	newManager resource.NewFieldManager
}

// Writer returns what writes the configuration. Its writes record with newManager who set which field; nil: they record nothing.
// Source: ADR-0008, ADR-0049.
func (c *Current) Writer(newManager resource.NewFieldManager) *Writer { return &Writer{c, newManager} }

// write describes one write. The zero value is that of reads.
type write struct {
	// caller writes.
	caller identity.Caller
	// rolledBackTo is the revision that the write restores. Empty: none.
	rolledBackTo string
	// operator permits the write even if the endpoint is disabled.
	operator bool
	// ring seals secrets. nil: there are no keys.
	ring *encryption.Keyring
	// dryRun does everything but the write.
	dryRun bool
	// force is the value of the annotation of that name.
	force string
	// placeholders are the fields in which the write places a placeholder.
	placeholders []*field.Path
	// warnings are what the write does to others.
	warnings []string
}

// Result is the result of a write of the configuration.
type Result = resource.Result[*model.Config]

// Update replaces the configuration, and returns it as the API shows it. A mark in place of a secret keeps the secret.
// Defaults that the request repeats are not stored.
//
// Errors: NotFound for another name; Forbidden if the endpoint is disabled or the configuration comes from a file;
// otherwise those of resource.Update. On any error, nothing is stored. Source: Spec 2.7; ADR-0015.
func (w *Writer) Update(ctx context.Context, in resource.UpdateInput[*model.Config]) (Result, error) {
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, dryRun: in.DryRun})
	if err != nil {
		return Result{}, err
	}
	in.DryRun = false // the store of the write knows
	return resource.Update(ctx, configs, in)
}

// Patch changes a part of the configuration as the API shows it: a patch sees marks and never secrets. An apply sees no
// defaults either. Errors: those of Update and of resource.Patch.
func (w *Writer) Patch(ctx context.Context, in resource.PatchInput) (Result, error) {
	configs, err := w.registryOf(ctx, in.Name, &write{caller: in.Caller, dryRun: in.DryRun})
	if err != nil {
		return Result{}, err
	}
	in.DryRun = false // the store of the write knows
	return resource.Patch(ctx, configs, in)
}

// Install replaces the configuration on behalf of an operator, who may write even if the endpoint is disabled. Errors: those
// of Update, except for a disabled endpoint and for what this process cannot reach. Source: ADR-0015, ADR-0024.
func (c *Current) Install(ctx context.Context, operator identity.Caller, config *model.Config) (Result, error) {
	configs, err := c.Writer(nil).registryOf(ctx, Name, &write{caller: operator, operator: true})
	if err != nil {
		return Result{}, err
	}
	return resource.Update(ctx, configs, resource.UpdateInput[*model.Config]{Caller: operator, Name: Name, Object: config, Manager: operator.Owner.Name})
}

// registryOf returns the registry for one write. Errors: NotFound for another name, Forbidden if the configuration comes from a
// file, ServiceUnavailable.
func (w *Writer) registryOf(ctx context.Context, name string, operation *write) (*resource.Registry[*model.Config], error) {
	if err := w.requireWritable(name); err != nil {
		return nil, err
	}
	var err error
	if operation.ring, err = w.keyring(ctx); err != nil {
		return nil, err
	}
	configs := w.registry(&writeStore{records: records{w.Store, w.Current}, write: operation}, &rules{current: w.Current, write: operation})
	if w.newManager == nil {
		return configs, nil
	}
	return configs.WithFieldManager(w.newManager), nil
}

// requireWritable refuses writes of another name, and all writes if the configuration comes from a file.
func (c *Current) requireWritable(name string) error {
	switch {
	case name != Name:
		return apierror.NotFound(Definition.GroupResource(), name)
	case c.FromFile():
		return apierror.Forbidden(Definition.GroupResource(), name, reasonFile, nil)
	default:
		return nil
	}
}
