// Command local is the platform's management API on one machine: it mounts every function of the catalog in
// one process, with embedded state where none is given, and writes a kubeconfig to begin with. It is how to
// try the API, how its tests run, and how the first admin key of a deployment is made; it is not how the API
// is deployed. Source: ADR-0006.
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

	"management.platform.sh/local/client"
	"management.platform.sh/local/operator"
	"management.platform.sh/local/patch"
	"management.platform.sh/local/runner"
	"management.platform.sh/shared/model/secret"
)

// version is set by the build; a plain `go run` says what the module knows of itself.
var version = ""

type commands struct {
	Serve       runner.Serve         `cmd:"" default:"withargs" help:"Serve the API (the default)."`
	Bootstrap   operator.Bootstrap   `cmd:"" help:"Make the first admin key in a Redis and print it."`
	Configure   operator.Configure   `cmd:"" help:"Write the platform configuration into a Redis, also where its endpoint is disabled."`
	Patch       patch.Commands       `cmd:"" help:"Try sync patches on files, without a server."`
	Audit       operator.Audit       `cmd:"" help:"Look after the audit log."`
	SigningKeys operator.SigningKeys `cmd:"" name:"signing-keys" help:"Show and change the keys that sign tokens."`
	Token       client.Token         `cmd:"" help:"Print a short-lived token as kubectl's credential plugins do (ExecCredential)."`
	Kubeconfig  client.Kubeconfig    `cmd:"" help:"Ask the platform for a kubeconfig of a virtual cluster."`
	Version     versionCommand       `cmd:"" help:"Print the version."`
}

// newCommands returns all commands, before a command line is read.
func newCommands() *commands {
	all := &commands{Serve: runner.New(build()), Patch: patch.New(), SigningKeys: operator.NewSigningKeys()}
	all.Bootstrap.Version, all.Configure.Version, all.Token.Version = build(), build(), build()
	return all
}

type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run() error {
	_, err := fmt.Println(build())
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	all := newCommands()
	parser := kong.Must(all,
		secretFlags(),
		kong.Name("platform"),
		kong.Description("The platform's management API on one machine."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Exit(func(code int) {
			if code > patch.ExitBadInput {
				// Kong has codes of its own for flags that are wrong.
				code = patch.ExitBadInput
			}
			os.Exit(code)
		}),
	)
	parsed, err := parser.Parse(os.Args[1:])
	if err != nil {
		parser.FatalIfErrorf(fmt.Errorf("%w; %s", err, helpFor(err, os.Args[1:])))
	}
	err = parsed.Run()
	stop()
	if err == nil {
		return
	}
	code := 1
	if exit := (*patch.ExitError)(nil); errors.As(err, &exit) {
		code = exit.Code
	}
	if err.Error() != "" {
		fmt.Fprintln(os.Stderr, "platform:", err)
	}
	os.Exit(code)
}

// helpFor says whose help tells what should have been written, to somebody who named a command or meant the default one.
func helpFor(err error, line []string) string {
	wrong, selected := (*kong.ParseError)(nil), (*kong.Node)(nil)
	if errors.As(err, &wrong) {
		selected = wrong.Context.Selected()
	}
	if selected == nil || selected == selected.Parent.DefaultCmd && !slices.Contains(line, selected.Name) {
		return "platform --help and platform serve --help tell what there is"
	}
	return selected.FullPath() + " --help tells what there is"
}

// secretFlags takes the next argument as the value of a flag that is a secret, whatever it begins with: a PEM text begins
// with hyphens. Kong would take it for a flag and print it.
func secretFlags() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[secret.String](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		text, ok := ctx.Scan.Pop().Value.(string)
		if !ok {
			return errors.New("its value is missing")
		}
		target.SetString(text)
		return nil
	}))
}

// build is the version of this program.
func build() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
