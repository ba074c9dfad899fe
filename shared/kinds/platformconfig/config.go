package platformconfig

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// Result is the result of a write of the configuration.
type Result = resource.Result[*model.Config]

// Get returns the stored configuration with defaults and conditions. It has secrets only if the request asks for them.
// Errors: NotFound for another name, ServiceUnavailable. Source: Spec 2.7, 4 row 3; ADR-0015.
func (c *Current) Get(ctx context.Context, in resource.GetInput) (*model.Config, error) {
	config, record, err := c.reader.Read(ctx, in.Caller, "", in.Name)
	if err != nil || !in.Reveal {
		return config, err
	}
	return config, c.reveal(ctx, config, record)
}

// reveal replaces the marks in a configuration by the secrets.
func (c *Current) reveal(ctx context.Context, config *model.Config, record store.Record) error {
	var written *model.Config
	if now := c.version.Load(); now != nil && now.revision == record.Revision {
		written = now.config.DeepCopy()
	} else {
		ring, err := c.keyring(ctx)
		if err != nil {
			return err
		}
		if written, err = unmarshalStored(record.Object); err != nil {
			return fmt.Errorf("decoding revision %d: %w", record.Revision, err)
		}
		_, _ = unseal(&written.Status, ring)
	}
	written.Status.Conditions = config.Status.Conditions
	config.Status = written.Status
	setDefaults(&config.Status)
	return nil
}

// keyring returns the keys that seal secrets.
func (c *Current) keyring(ctx context.Context) (*encryption.Keyring, error) {
	ring, err := c.Keyring(ctx)
	return ring, translateError(err)
}

// List returns the list that holds the one configuration, if the selectors select it. Errors: those of resource.List.
// Source: Spec 4 row 2.
func (c *Current) List(ctx context.Context, in resource.ListInput) (runtime.Object, error) {
	list, err := resource.List(ctx, c.reader, in)
	if err != nil || !in.Reveal {
		return list, err
	}
	items := list.(*model.ConfigList).Items
	for i := range items {
		config, err := c.Get(ctx, resource.GetInput{Caller: in.Caller, Name: items[i].Name, Reveal: true})
		if err != nil {
			return nil, err
		}
		items[i] = *config
	}
	return list, nil
}

// Watch follows the configuration, without its secrets. A change of its conditions alone is no event. Errors: those of
// resource.Watch. Source: ADR-0007, ADR-0015.
func (c *Current) Watch(ctx context.Context, in resource.WatchInput) (*resource.Watcher[*model.Config], error) {
	return resource.Watch(ctx, c.reader, in)
}

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
