// Command local is the program platform: its command tree, and nothing else. By default it serves the whole API on one
// machine (package runner). Other commands are for operators of a deployment (operator), for users beside kubectl
// (client) and for authors of sync patches (patch). Source: ADR-0006, ADR-0050.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"management.platform.sh/local/chart"
	"management.platform.sh/local/client"
	"management.platform.sh/local/completion"
	"management.platform.sh/local/operator"
	"management.platform.sh/local/output"
	"management.platform.sh/local/patch"
	"management.platform.sh/local/runner"
	"management.platform.sh/shared/model/secret"
)

// version is set by the build. Otherwise the version is the version of the module, as with `go run`.
var version = ""

type commands struct {
	Serve       runner.Serve         `cmd:"" default:"withargs" help:"Serve the API (the default)."`
	Bootstrap   operator.Bootstrap   `cmd:"" help:"Create the first admin key of a deployment and print it."`
	Manifests   chart.Manifests      `cmd:"" help:"Print the manifests of a Deployment of this program for Kubernetes, as the Helm chart makes them."`
	Configure   operator.Configure   `cmd:"" help:"Write the platform configuration into the state. It works even if the API refuses to change it (disableConfigEndpoint)."`
	Patch       patch.Commands       `cmd:"" help:"Try sync patches on files, without a server."`
	Audit       operator.Audit       `cmd:"" help:"Check the audit log."`
	Doctor      operator.Doctor      `cmd:"" help:"Examine a deployment: its state, clocks, schedules, signing keys, audit, providers, quotas and records."`
	SigningKeys operator.SigningKeys `cmd:"" name:"signing-keys" help:"List, rotate and withdraw the keys that sign tokens."`
	People      operator.People      `cmd:"" help:"Make users and teams for a platform that has access keys already."`
	Login       client.Login         `cmd:"" help:"Sign in at a platform, and add it to the kubeconfig."`
	Logout      client.Logout        `cmd:"" help:"End the access key of a sign-in."`
	Credential  client.Credential    `cmd:"" help:"Print the access key of a sign-in with --refresh, renewed in time. This command is a credential plugin (ExecCredential)."`
	WhoAmI      client.WhoAmI        `cmd:"" name:"whoami" help:"Print who you are at a platform."`
	WhoCan      client.WhoCan        `cmd:"" name:"who-can" help:"Print who may make a request, and why."`
	Token       client.Token         `cmd:"" help:"Print a short-lived token for kubectl. This command is a credential plugin (ExecCredential)."`
	Kubeconfig  client.Kubeconfig    `cmd:"" help:"Get a kubeconfig for a virtual cluster from the platform."`
	Keys        client.Keys          `cmd:"" help:"List, make, rotate, disable and end access keys."`
	Revoke      client.Revoke        `cmd:"" help:"Revoke access keys and tokens that were found somewhere. Their texts are read from standard input, one a line."`
	Completion  completion.Commands  `cmd:"" help:"Complete command lines in bash, zsh and fish."`
	Version     versionCommand       `cmd:"" help:"Print the version, or with --output how this program was built."`
	Help        helpCommand          `cmd:"" help:"Print the help of a command, as its flag --help does."`
	// ShowVersion is the flag --version, which does the same as the command version.
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// newCommands returns the commands before their flags are read.
func newCommands() *commands {
	all := &commands{Serve: runner.New(build()), Patch: patch.New(), SigningKeys: operator.NewSigningKeys(), Doctor: operator.NewDoctor()}
	all.Bootstrap.Version, all.Configure.Version, all.People.Adopt.Version, all.Token.Version = build(), build(), build(), build()
	all.Doctor.Version, all.SigningKeys.Version, all.Manifests.Version = build(), build(), build()
	return all
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	parser := newParser(newCommands(),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	line, err := readSecrets(parser.Model, os.Args[1:])
	if err != nil {
		fail(err)
	}
	parsed, err := parser.Parse(separateIDs(parser.Model, line))
	if err != nil {
		fail(fmt.Errorf("%w; %s", err, helpFor(err, os.Args[1:])))
	}
	err = parsed.Run()
	stop()
	if err != nil {
		fail(err)
	}
}

// fail prints why a command failed, and ends the program.
func fail(err error) {
	code := 1
	if exit := (interface{ ExitCode() int })(nil); errors.As(err, &exit) {
		// Kong has its own codes for wrong flags.
		code = min(exit.ExitCode(), patch.ExitBadInput)
	}
	if err.Error() != "" {
		output.Error(os.Stderr, err)
	}
	os.Exit(code)
}

// newParser reads command lines into commands.
func newParser(all *commands, options ...kong.Option) *kong.Kong {
	return kong.Must(all, append(options,
		secretFlags(),
		kong.Name("platform"),
		kong.Vars{"version": build()},
		kong.Description("The platform's management API on one machine, and commands for its operators and users."),
	)...)
}

// helpCommand prints the help of a command, or of the whole program.
type helpCommand struct {
	Command []string `arg:"" optional:"" name:"command" placeholder:"COMMAND" help:"The command, such as keys list. Absent: the program."`
}

func (c *helpCommand) Run(line *kong.Context) error {
	words := append(slices.Clone(c.Command), "--help")
	if _, err := line.Parse(words); err != nil {
		return fmt.Errorf("%w; %s", err, helpFor(err, words))
	}
	return nil
}

// helpFor names the help for the last command. The default command need not be named on the line.
func helpFor(err error, line []string) string {
	wrong, selected := (*kong.ParseError)(nil), (*kong.Node)(nil)
	if errors.As(err, &wrong) {
		selected = wrong.Context.Selected()
	}
	if selected == nil || selected == selected.Parent.DefaultCmd && !slices.Contains(line, selected.Name) {
		return "see platform --help and platform serve --help"
	}
	return "see " + selected.FullPath() + " --help"
}

// secretFlags takes the next argument as the value of a secret flag, whatever it begins with. A PEM text begins with
// hyphens: kong would take it for a flag, and print it in its error.
func secretFlags() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[secret.String](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		text, ok := ctx.Scan.Pop().Value.(string)
		if !ok {
			return errors.New("the value is missing")
		}
		target.SetString(text)
		return nil
	}))
}

func build() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
