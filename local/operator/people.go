package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"management.platform.sh/local/adoption"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/redisstore"
)

// People are the commands about users and teams.
type People struct {
	Adopt Adopt `cmd:"" help:"Create users and teams for the owners that access keys name, so that the keys keep their rights."`
}

// Adopt creates users and teams for the owners of keys.
type Adopt struct {
	Redis       secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"The Redis that holds the state: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss://, rediss-cluster:// or rediss-sentinel://, or unix://."`
	Encryption  secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals the address of the audit's data store, 32 bytes in base64. Absent: the audit has no event of the command if the address is sealed."`
	DryRun      bool          `help:"Print what would be done, and write nothing."`
	AllowLosses bool          `help:"Continue even if keys lose groups that no user and no team can have."`
	Strict      bool          `help:"Then refuse every access key whose owner is neither a user nor a team, permanently. Keys with a subject as owner are not affected."`

	Version string `kong:"-"`
}

// Run creates the users and teams, and prints the changes. It may be run again.
func (c *Adopt) Run(ctx context.Context) error {
	if c.DryRun {
		return c.preview(ctx)
	}
	ring, err := keyring(c.Encryption)
	if err != nil {
		return err
	}
	o := operation{name: "adopt", version: c.Version, state: redisAt(c.Redis), keyring: ring}
	return o.run(ctx, func(ctx context.Context, _ *redisstore.Client, env *platform.Environment) error {
		return c.adopt(ctx, adoption.Open(env))
	})
}

// preview prints the changes that the command would make.
func (c *Adopt) preview(ctx context.Context) error {
	return readState(ctx, redisAt(c.Redis), func(ctx context.Context, client *redisstore.Client) error {
		env := process.New(settings.Settings{Version: c.Version}, process.World{Stores: client.Resource, Log: slog.New(slog.DiscardHandler)}).Env
		plan, err := adoption.Open(env).Plan(ctx)
		if err != nil {
			return fmt.Errorf("reading the owners of access keys: %w", err)
		}
		if err := describe(os.Stdout, plan, true); err != nil {
			return err
		}
		return c.check(plan)
	})
}

func (c *Adopt) adopt(ctx context.Context, adopter *adoption.Adopter) error {
	plan, err := adopter.Apply(ctx, c.check)
	if err != nil {
		return err
	}
	if err := describe(os.Stdout, plan, false); err != nil || !c.Strict {
		return err
	}
	if err := adopter.Demand(ctx, c.check); err != nil {
		return err
	}
	_, err = fmt.Println("from now on, access keys of owners that are neither users nor teams are refused")
	return wrapPrint(err)
}

// check refuses a plan that takes away rights, unless the operator has accepted that.
func (c *Adopt) check(plan *adoption.Plan) error {
	var problems []error
	if lost := plan.Losses(); len(lost) > 0 && !c.AllowLosses {
		for _, key := range lost {
			problems = append(problems, fmt.Errorf("the access key %q would lose the groups %s", key.Name, strings.Join(key.Lost, ", ")))
		}
		problems = append(problems, errors.New("change these keys first, or accept that with --allow-losses"))
	}
	if c.Strict && len(plan.Blocked) > 0 {
		for _, owner := range plan.Blocked {
			problems = append(problems, fmt.Errorf("the %s %q with %d access keys would be refused: it cannot have an object, since %s",
				owner.Owner.Kind, owner.Owner.Name, owner.Keys, owner.Why))
		}
		problems = append(problems, errors.New("give these keys other owners or delete them first, or leave out --strict"))
	}
	return errors.Join(problems...)
}

// describe prints a plan, one line for each change: planned or made.
func describe(out io.Writer, plan *adoption.Plan, preview bool) error {
	var lines []string
	line := func(format string, values ...any) { lines = append(lines, fmt.Sprintf(format, values...)) }
	done := func(would, did string) string {
		if preview {
			return "would " + would
		}
		return did
	}
	for _, team := range plan.Teams {
		if team.New {
			line("%s the team %s: users %s", done("make", "made"), team.Name, list(team.Users))
		} else {
			line("%s to the team %s: users %s", done("add", "added"), team.Name, list(team.Users))
		}
	}
	for _, user := range plan.Users {
		line("%s the user %s, owner of %d access keys: groups %s", done("make", "made"), user.Name, user.Keys, list(user.Groups))
		if user.Admin {
			line("  %s is an admin, since one of these keys is", user.Name)
		}
		if len(user.Through) > 0 {
			line("  %s is an admin as a member of the teams %s", user.Name, list(user.Through))
		}
	}
	for _, key := range plan.Keys {
		if key.Narrowed != "" {
			line("%s the access key %s to the group %s: it names none, and would get all of its owner's", done("narrow", "narrowed"), key.Name, key.Narrowed)
		}
		if len(key.Granted) > 0 {
			line("%s the access key %s its groups %s, which its owner does not have", done("grant", "granted"), key.Name, list(key.Granted))
		}
		if len(key.Lost) > 0 {
			line("%s from the access key %s its groups %s", done("take", "took"), key.Name, list(key.Lost))
		}
	}
	for _, owner := range plan.Blocked {
		line("%s the %s %q, owner of %d access keys, without an object: %s", done("leave", "left"), owner.Owner.Kind, owner.Owner.Name, owner.Keys, owner.Why)
	}
	if len(lines) == 0 {
		line("every owner of an access key has an object")
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return wrapPrint(err)
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func wrapPrint(err error) error {
	if err != nil {
		return fmt.Errorf("printing what was done: %w", err)
	}
	return nil
}
