package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"management.platform.sh/local/client"
	"management.platform.sh/local/doctor"
	"management.platform.sh/local/flags"
	"management.platform.sh/local/output"
	"management.platform.sh/local/state"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/postgressink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// Doctor examines a deployment. Make it with NewDoctor.
type Doctor struct {
	Redis      secret.String  `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State. Absent: the redis-server of the running platform serve on the data folder."`
	Data       string         `default:".platform" placeholder:"DIR" help:"Data folder of platform serve, which holds encryption.key (${default})."`
	Encryption secret.String  `name:"encryption-key" env:"PLATFORM_ENCRYPTION_KEY" placeholder:"KEY" help:"The key that seals secrets in the state, 32 bytes in base64. Absent: the one in the data folder, else sealed secrets are not examined."`
	Deployed   flags.Settings `embed:""`
	Every      time.Duration  `default:"1m" placeholder:"DURATION" help:"How often the schedules run (${default})."`
	Most       int            `default:"10000" placeholder:"NUMBER" help:"Maximum number of records and owners that are read of each resource (${default})."`
	SignIn     string         `name:"sign-in" placeholder:"CONNECTOR" help:"Run one sign-in at a connector on trial, and show its checks, the claims of the provider and the changes that they would make."`
	Host       string         `name:"host" placeholder:"HOST" help:"With --sign-in: use the API of this platform with the access key of platform login, not its Redis. The key must be an admin's."`
	Authority  string         `name:"certificate-authority" type:"path" placeholder:"FILE" help:"With --host: certificate authority of the platform. Absent: the authority of platform login, else the system's authorities."`
	Output     string         `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	Version string `kong:"-"`
}

// NewDoctor returns the command with its flags.
func NewDoctor() Doctor { return Doctor{Deployed: flags.Doctor()} }

func (*Doctor) Help() string {
	return "It changes nothing, except for the record of a trial with --sign-in, and prints no secret. Each line has a level: ok, unknown (it could not be examined from here), warning or critical. " +
		"Exit codes: 0 if nothing is worse than unknown, 1 for warnings, 2 for anything critical and for wrong flags. See docs/doctor.md."
}

// sick ends the program with the code of a report that has been printed.
type sick struct{ code int }

func (*sick) Error() string { return "" }

func (s *sick) ExitCode() int { return s.code }

// misused is an error of the settings: nothing was examined.
type misused struct{ error }

func (misused) ExitCode() int { return 2 }

func (m misused) Unwrap() error { return m.error }

func (c *Doctor) Run(ctx context.Context) error {
	report, err := c.examine(ctx)
	if err != nil {
		return misused{err}
	}
	if err := output.Write(os.Stdout, c.Output, report, func() []byte { return lines(report, output.Coloured(os.Stdout, os.Getenv)) }); err != nil {
		return misused{err}
	}
	if code := report.Code(); code > 0 {
		return &sick{code}
	}
	return nil
}

// examine returns the report that the flags ask for.
func (c *Doctor) examine(ctx context.Context) (doctor.Report, error) {
	switch {
	case c.Host != "" && c.SignIn == "":
		return doctor.Report{}, errors.New("--host needs --sign-in: a platform answers nothing else that is examined")
	case c.Authority != "" && c.Host == "":
		return doctor.Report{}, errors.New("--certificate-authority needs --host")
	case c.Host != "":
		found, err := client.TrySignIn(ctx, c.Host, c.Authority, c.SignIn, invite)
		if err != nil {
			return doctor.Report{}, err
		}
		return doctor.TrialReport(doctor.Deployment{Version: c.Version, Now: time.Now}, found), nil
	}
	deployment, err := c.deployment()
	switch {
	case err != nil:
		return doctor.Report{}, err
	case c.SignIn != "":
		return doctor.SignIn(ctx, deployment, c.SignIn, invite)
	default:
		return doctor.Examine(ctx, deployment)
	}
}

// invite prints the address at which a person signs in for a trial.
func invite(address string) {
	fmt.Fprintf(os.Stderr, "Open this address in a browser within ten minutes, and sign in:\n\n  %s\n\n", address)
}

// deployment returns the deployment that the flags describe.
func (c *Doctor) deployment() (doctor.Deployment, error) {
	s, err := settings.ReadOnly(c.Deployed.Lookup, c.Deployed.InputName, flags.DoctorKeys...)
	if err != nil {
		return doctor.Deployment{}, err
	}
	url, isLocal, err := stateURL(c.Redis, c.Data)
	if err != nil {
		return doctor.Deployment{}, err
	}
	s.Redis.URL, s.Redis.URLFrom = url, "--redis"
	s.Encryption.Keys, s.Encryption.KeysFrom, s.Runner.Data = c.Encryption, "--encryption-key", c.Data
	var ring *encryption.Keyring
	_, absent := os.Stat(state.KeyFile(c.Data))
	if c.Encryption != "" || isLocal && !errors.Is(absent, fs.ErrNotExist) {
		if ring, err = state.OpenKeyring(s); err != nil {
			return doctor.Deployment{}, err
		}
	}
	return doctor.Deployment{
		Settings: s, Keyring: ring, Lookup: os.LookupEnv, Here: isLocal, Every: c.Every, Most: c.Most, Version: c.Version, Now: time.Now,
		Openers: func(redis *redisstore.Client) []audit.Opener {
			return []audit.Opener{
				audit.Output(io.Discard), filesink.Opener(redissink.NewAnchor(redis), slog.New(slog.DiscardHandler)), redissink.Opener, postgressink.Opener,
			}
		},
	}, nil
}

// levelColours are the colours of the levels on a terminal.
var levelColours = map[doctor.Level]string{doctor.Good: output.Green, doctor.Unknown: output.Dim, doctor.Warning: output.Yellow, doctor.Critical: output.Red}

// lines returns a report as text, one line for each finding.
func lines(report doctor.Report, coloured bool) []byte {
	var text []byte
	for _, finding := range report.Findings {
		level := fmt.Sprintf("%-8s", finding.Level)
		if coloured {
			level = output.Paint(levelColours[finding.Level], level)
		}
		text = fmt.Appendf(text, "%s  %-13s  %s", level, finding.Check, finding.Is)
		if finding.Do != "" {
			text = fmt.Appendf(text, "; to do: %s", finding.Do)
		}
		text = append(text, '\n')
	}
	return text
}
