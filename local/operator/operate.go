package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"management.platform.sh/local/state"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// recordWithin bounds how long a command waits at its end until the data store of the audit has its events.
const recordWithin = 2 * time.Second

// operation is a command of an operator that changes the state.
type operation struct {
	// name is the name of the command in the audit.
	name string
	// attributes describe the arguments of the command.
	attributes []slog.Attr
	version    string
	// state is the URL and the settings of the state.
	state settings.Settings
	// keyring seals secrets in the state. Nil: the command has no key.
	keyring *encryption.Keyring
}

// run connects to the state, does the work, and records it in the data store of the platform's audit. It names on
// standard error the events that are not recorded. Source: ADR-0047.
func (o operation) run(ctx context.Context, do func(context.Context, *redisstore.Client, *platform.Environment) error) error {
	client, err := state.Connect(ctx, o.state)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	api := process.New(settings.Settings{Version: o.version, ConfigVariables: os.Getenv(settings.ConfigVariables)}, process.World{
		Stores: client.Resource, Lookup: os.LookupEnv, Log: slog.New(slog.DiscardHandler),
		Encryption: func(context.Context) (*encryption.Keyring, error) { return o.keyring, nil },
	})
	metrics := &counts{}
	if err := platformconfig.Open(api.Env).Reload(ctx); err != nil {
		// The command may repair the configuration, so it continues.
		_, _ = fmt.Fprintln(os.Stderr, "Warning: the audit has no event of this command: the platform configuration cannot be read:", err)
	} else {
		process.BeginAudit(api, process.Sinks{Openers: []audit.Opener{metrics.serverSink(), redissink.Opener, postgressink.Opener}, Metrics: metrics, Flush: true, Brief: true})
	}
	err = api.Operate(ctx, o.name, func(ctx context.Context) error { return do(ctx, client, api.Env) }, o.attributes...)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	process.EndAudit(bounded, api)
	metrics.warn()
	return err
}

// counts counts the outcomes of a command's events. It implements audit.Metrics.
type counts struct{ recorded, lost, left atomic.Int64 }

// leftOut is the name of the sink for events that only a server can record.
const leftOut = "path"

func (c *counts) Audited(sink string, _ audit.Level, outcome string) {
	switch {
	case outcome == "lost":
		c.lost.Add(1)
	case sink == leftOut:
		c.left.Add(1)
	default:
		c.recorded.Add(1)
	}
}

func (c *counts) Spool(string, int) {}

// serverSink returns the sink of a command for audit.path. A command cannot add events to the files and streams of the
// servers.
func (c *counts) serverSink() audit.Opener {
	return audit.Opener{Name: leftOut, Field: "path", Open: func(config *model.ConfigAudit) (audit.Sink, error) {
		if config.Path == "" {
			return nil, nil //nolint:nilnil // as Opener says: no sink of this kind
		}
		return nowhere{}, nil
	}}
}

type nowhere struct{}

func (nowhere) Write(context.Context, []*audit.Record, bool) error { return nil }

func (nowhere) Close() error { return nil }

// warn names the events that the audit does not have.
func (c *counts) warn() {
	switch {
	case c.lost.Load() > 0:
		_, _ = fmt.Fprintf(os.Stderr, "Warning: the audit lacks %d events of this command, because its data store did not take them\n", c.lost.Load())
	case c.left.Load() > 0 && c.recorded.Load() == 0:
		_, _ = fmt.Fprintln(os.Stderr, "Warning: the audit has no event of this command: audit.path belongs to the servers, and a command writes to audit.dataStoreEndpoint alone")
	}
}
