// Command local is the platform's management API on one machine: it mounts every function of the catalog in
// one process, with embedded state where none is given, and writes a kubeconfig to begin with. It is how to
// try the API, how its tests run, and how the first admin key of a deployment is made; it is not how the API
// is deployed. Source: ADR-0006.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"management.platform.sh/shared/model/secret"
)

// version is set by the build; a plain `go run` says what the module knows of itself.
var version = ""

type commands struct {
	Serve       serveCommand       `cmd:"" default:"withargs" help:"Serve the API (the default)."`
	Bootstrap   bootstrapCommand   `cmd:"" help:"Make the first admin key in a Redis and print it."`
	Configure   configureCommand   `cmd:"" help:"Write the platform configuration into a Redis, also where its endpoint is disabled."`
	Patch       patchCommand       `cmd:"" help:"Try sync patches on files, without a server."`
	Audit       auditCommand       `cmd:"" help:"Look after the audit log."`
	SigningKeys signingKeysCommand `cmd:"" name:"signing-keys" help:"Show and change the keys that sign tokens."`
	Token       tokenCommand       `cmd:"" help:"Print a short-lived token as kubectl's credential plugins do (ExecCredential)."`
	Kubeconfig  kubeconfigCommand  `cmd:"" help:"Ask the platform for a kubeconfig of a virtual cluster."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

type serveCommand struct {
	Listen       string        `default:"127.0.0.1:8443" placeholder:"HOST:PORT" help:"Address of the HTTPS listener (${default})."`
	HTTP         string        `name:"http" placeholder:"HOST:PORT" help:"Address of an additional plain HTTP listener, loopback only. Clients drop bearer tokens on plain HTTP; it is for curl and load tools."`
	Redis        secret.String `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss:// and so on, or unix:// (embedded)."`
	RedisTimeout time.Duration `env:"PLATFORM_REDIS_TIMEOUT" default:"1s" help:"The time for each operation on the state; from 100ms to 20s; what takes longer is answered with 503 (${default})."`
	Data         string        `default:".platform" placeholder:"DIR" help:"Folder for the certificate authority, embedded state, encryption.key, kubeconfig and admin.key (${default})."`
	AdminKey     secret.String `env:"PLATFORM_ADMIN_KEY" placeholder:"KEY" help:"The first admin key, of user admin in the group platform:admins (generated)."`
	Encryption   secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals secrets in the state, 32 bytes in base64; after a comma older ones that still open (kept in the data folder)."`
	Issuer       string        `env:"PLATFORM_ISSUER" placeholder:"URL" help:"Issuer of tokens, by which verifiers reach this API (the address of the HTTPS listener)."`
	SigningKey   secret.String `env:"PLATFORM_SIGNING_KEY" placeholder:"PEM" help:"Signing keys that you manage yourself; the first signs (made and kept in the state)."`
	Signing      signingFlags  `embed:""`
	Config       string        `placeholder:"FILE" help:"Platform configuration (YAML), watched for changes."`
	Manifests    string        `placeholder:"DIR" help:"Folder of objects to apply at the start."`
	ExpireEvery  time.Duration `default:"30s" help:"How often expired keys are removed and deletions finished (${default})."`
	Edition      string        `env:"PLATFORM_EDITION" enum:"enterprise,community" default:"enterprise" help:"What of the platform is in use: enterprise or community (${default})."`
	Patches      patchFlags    `embed:""`
	LogLevel     logLevel      `env:"PLATFORM_LOG_LEVEL" default:"info" help:"Least level of the log on standard error: debug, info, warn or error (${default})."`
}

// logLevel is a level whose error says which there are.
type logLevel slog.Level

// UnmarshalText reads a level as slog writes it, in letters of any size.
func (l *logLevel) UnmarshalText(text []byte) error {
	if err := (*slog.Level)(l).UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is none of debug, info, warn and error", text)
	}
	return nil
}

type bootstrapCommand struct {
	Redis    secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"State: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss:// and so on, or unix://."`
	AdminKey secret.String `env:"PLATFORM_ADMIN_KEY" placeholder:"KEY" help:"The key to use (generated and printed)."`
}

type kubeconfigCommand struct {
	Instance   string `arg:"" name:"instance" placeholder:"NAMESPACE/NAME" help:"The virtual cluster instance, as NAMESPACE/NAME."`
	ClientCert bool   `help:"A client certificate in place of an access key."`
	TTL        *int64 `name:"ttl" placeholder:"SECONDS" help:"How long the credential lives; 0 is the signing duration of the virtual cluster (a day)."`
	Server     string `placeholder:"URL" help:"Address of the virtual cluster (that of its ingress endpoint)."`
	Merge      bool   `help:"Add to the file, under a name of its own, and make it the current context."`
	Output     string `type:"path" short:"o" placeholder:"FILE" help:"File to write (standard output; with --merge the first file of KUBECONFIG that exists, else its last, else ~/.kube/config)."`
	Platform   string `type:"path" env:"PLATFORM_KUBECONFIG" placeholder:"FILE" help:"Kubeconfig that reaches the platform (the one in the data folder)."`
	Data       string `default:".platform" placeholder:"DIR" help:"Data folder of the runner (${default})."`
}

type configureCommand struct {
	Redis      secret.String `env:"PLATFORM_REDIS_URL" required:"" placeholder:"URL" help:"State: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss:// and so on, or unix://."`
	Encryption secret.String `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals its secrets, 32 bytes in base64; needed when it has any."`
	File       string        `arg:"" placeholder:"FILE" help:"Platform configuration (YAML)."`
}

type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run() error {
	_, err := fmt.Println(build())
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	all := &commands{}
	parser := kong.Must(all,
		secretFlags(),
		kong.Name("local"),
		kong.Description("The platform's management API on one machine."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(all),
		kong.Exit(func(code int) {
			if code > exitBadInput {
				// Kong has codes of its own for flags that are wrong.
				code = exitBadInput
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
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		code = exit.code
	}
	if err.Error() != "" {
		fmt.Fprintln(os.Stderr, "local:", err)
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
		return "local --help and local serve --help tell what there is"
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
