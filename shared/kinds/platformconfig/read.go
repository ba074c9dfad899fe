package platformconfig

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

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

// List returns the list of the one configuration, which is empty if the selectors do not select it. It returns the errors of
// resource.List. Source: Spec 4 row 2.
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

// Watch follows the configuration, without its secrets. A change of only its conditions is no event. It returns the errors
// of resource.Watch. Source: ADR-0007, ADR-0015.
func (c *Current) Watch(ctx context.Context, in resource.WatchInput) (*resource.Watcher[*model.Config], error) {
	return resource.Watch(ctx, c.reader, in)
}

// translateError makes ServiceUnavailable of the error of a state that cannot be reached.
func translateError(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return apierror.Unavailable().Because(err)
	}
	return err
}
