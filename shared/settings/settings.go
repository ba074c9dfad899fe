// Package settings lists the settings of the platform: every PLATFORM_ variable and every flag of the runner's serve
// command, with its unit, default and bounds. All shells read their settings with it, so all of them refuse the same
// values with the same words. List contains the settings; Read and ReadRunner read them.
//
// It opens only files with secrets. It cannot find every mistake: a package that connects to the state, or parses a
// key, reports a wrong value with Settings.Wrong. Source: Spec 7; ADR-0010.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"management.platform.sh/shared/model/secret"
)

// Settings are the values that a process runs with. A field has its default unless the setting is set.
type Settings struct {
	Redis      Redis
	Encryption Encryption
	Tokens     Tokens
	Patches    Patches
	Watch      Watch
	Shares     Shares
	Rates      Rates
	Quota      Quota
	Runner     Runner
	Extension  Extension
	// Config is the path of a file with the platform configuration. Empty: the state holds the configuration.
	Config string
	// Proxies is the number of trusted proxies in front of the process, which add the address of their client to X-Forwarded-For.
	Proxies int
	// ConfigVariables is the prefix of the variables that the platform configuration can name.
	ConfigVariables string
	// LogLevel is the minimum level that is logged.
	LogLevel slog.Level
	// Stream reports whether a function on AWS Lambda is invoked with response streaming.
	Stream bool
	// Metrics is NoMetrics or EmbeddedMetrics.
	Metrics string
	// Version is the build, for /version.
	Version string
	// Edition is Enterprise or Community.
	Edition string
	// DeviceLogin is On or Off.
	DeviceLogin string
	// Probe is On or Off.
	Probe string
	// UnsignedSAML is On or Off.
	UnsignedSAML string

	// called contains the names of settings for errors, by key, if the name is not the key.
	called map[string]string
}

// Redis are the settings of the state.
type Redis struct {
	// URL is the URL of the state. Empty: Secret refers to it, or the runner embeds a Redis.
	URL secret.String
	// URLFrom is the name of the setting that URL was read from, for errors.
	URLFrom string
	// Secret is the name or ARN of a secret of AWS Secrets Manager that holds the URL. Empty: there is none.
	Secret string
	// PoolSize is the maximum number of connections of a process to each node.
	PoolSize int
	// Replicas is the number of replicas that must have a write before it is acknowledged.
	Replicas int
	Timeout  time.Duration
}

// Encryption are the settings of the keys that encrypt secrets in the state.
type Encryption struct {
	// Keys are the keys in base64, separated by commas. The first key encrypts. Empty: Secret refers to them, or there are
	// none.
	Keys secret.String
	// KeysFrom is the name of the setting that Keys was read from, for errors.
	KeysFrom string
	// Secret is the name or ARN of a secret of AWS Secrets Manager that holds the keys. Empty: there is none.
	Secret string
}

// Tokens are the settings of direct cluster endpoint tokens. Source: ADR-0011.
type Tokens struct {
	// Issuer is the URL below which publishkeys is reached; verifiers fetch the keys from there. Empty: no tokens are
	// issued.
	Issuer string
	// Audiences are the audiences of tokens. Empty: the issuer is the audience.
	Audiences []string
	// MaxTTL is the maximum lifetime of a token.
	MaxTTL time.Duration
	// Algorithm is ES256 or RS256.
	Algorithm string
	// RotateEvery is how long a signing key signs. PublishBefore is how long it is published before it signs.
	RotateEvery, PublishBefore time.Duration
	// SigningKeys are keys in PEM that the operator manages. The first key signs. Empty: the platform creates the keys and
	// stores them in the state.
	SigningKeys secret.String
}

// Patches are the limits of evaluations of sync patches. Source: ADR-0014.
type Patches struct {
	// ExpressionTime is the maximum duration of an expression at one path, and ObjectTime the maximum duration of all
	// patches of an object.
	ExpressionTime, ObjectTime time.Duration
	// MemoryBytes is the maximum memory of an evaluation, ResultBytes the maximum size of its result.
	MemoryBytes, ResultBytes int64
	// Depth is the maximum depth to which calls and results are nested.
	Depth int
	// Workers is the maximum number of evaluations at a time. Each runs in a process of its own.
	Workers int
	// InProcess reports whether evaluations run without workers. It is for trusted patches: a single operation then has
	// no limits.
	InProcess bool
}

// WithDefaults returns the settings with the default in place of each zero value. The issuer, the audiences and the keys have
// no default.
func (t Tokens) WithDefaults() Tokens {
	d := defaults().Tokens
	t.MaxTTL, t.Algorithm = cmp.Or(t.MaxTTL, d.MaxTTL), cmp.Or(t.Algorithm, d.Algorithm)
	t.RotateEvery, t.PublishBefore = cmp.Or(t.RotateEvery, d.RotateEvery), cmp.Or(t.PublishBefore, d.PublishBefore)
	return t
}

// Watch are the settings of watches.
type Watch struct {
	// Window is the maximum duration of a watch. 0: as long as the watch requests, or WatchWindowWithoutStreams if responses
	// cannot be streamed.
	Window time.Duration
}

// Shares say how a process is shared between callers. Source: ADR-0020.
type Shares struct {
	// Requests, Lists and Watches are how many requests, large lists and watches a process serves at a time.
	Requests, Lists, Watches int
	// RequestsPerCaller, ListsPerCaller and WatchesPerCaller are the same numbers for one caller.
	RequestsPerCaller, ListsPerCaller, WatchesPerCaller int
}

// Rates bound the requests per second. 0: no bound. Source: ADR-0020.
type Rates struct {
	// Requests is the rate of each caller. Anonymous is the rate, for each address, of requests without a credential,
	// and Failures the rate of refused credentials.
	Requests, Anonymous, Failures int
}

// Quota bounds what each owner may have of each kind. Source: ADR-0020.
type Quota struct {
	// Objects is the maximum number of objects.
	Objects int
	// Bytes is the maximum size of the objects together, as they are stored.
	Bytes int64
}

// Runner are the settings of the runner alone. Source: ADR-0006.
type Runner struct {
	Listen string
	// HTTP is the loopback address of an additional listener without TLS. Empty: there is none.
	HTTP string
	// Data is the folder for the certificate authority, the embedded state and generated keys.
	Data string
	// AdminKey is the first admin key. Empty: the key in the data folder or, if there is none, a new key. NoAdminKey: none.
	AdminKey secret.String
	// TLSCertFile and TLSKeyFile are the files of the certificate and the key of the listener. Empty: the own authority signs a
	// certificate, also for TLSNames.
	TLSCertFile, TLSKeyFile string
	TLSNames                []string
	// ShutdownDelay is how long the listeners stay open after SIGTERM.
	ShutdownDelay time.Duration
	// Manifests is a folder of objects that are applied at the start. Empty: there is none.
	Manifests string
	// ExpireEvery is the interval between two runs of the scheduled functions.
	ExpireEvery time.Duration
	// Studio reports whether browsers of this machine use the patch studio without a credential. Source: ADR-0030.
	Studio bool
}

// NoAdminKey is the value of the setting AdminKey with which the runner makes no key.
const NoAdminKey = "none"

// NeedsFolder reports whether the runner keeps something in its data folder: what the settings do not give. The authority of a runner
// without a folder is in the state. Source: ADR-0050, ADR-0053.
func (s *Settings) NeedsFolder() bool {
	return s.Redis.URL == "" || s.Encryption.Keys == "" || s.Runner.AdminKey == ""
}

// IsLocal reports whether the runner listens on a loopback address.
func (s *Settings) IsLocal() bool { return checkLoopback(s.Runner.Listen) == nil }

// Extension is the address of the extension for parameters and secrets of AWS Lambda, from variables that AWS sets.
type Extension struct {
	// URL is the base URL of the extension.
	URL string
	// Token authenticates the process to the extension.
	Token secret.String
}

// Problem is an error of one setting. It does not quote values, which may be secrets in the wrong variable; only the path of
// the configuration is quoted.
type Problem struct {
	// Name is the variable or the flag with its hyphens, as the operator gave the setting.
	Name string
	Err  error
}

func (p *Problem) Error() string { return p.Name + ": " + p.Err.Error() }

func (p *Problem) Unwrap() error { return p.Err }

// Wrong returns the error of a setting that is found to be wrong after it was read, such as a URL that cannot be used.
// Key is the key of the setting.
func (s *Settings) Wrong(key string, err error) error {
	return &Problem{Name: cmp.Or(s.called[key], key), Err: err}
}

// Default returns the settings of a process without any variables and flags.
func Default() Settings {
	settings, err := read(0, nil, lookupNothing, nil)
	if err != nil {
		panic("settings: a default is wrong: " + err.Error())
	}
	return settings
}

// defaults returns the result of Default, which it reads once.
var defaults = sync.OnceValue(Default)

func lookupNothing(string) string { return "" }

// Read returns the settings of a deployed function. Lookup returns variables by name; an empty value counts as absent.
// The error joins a Problem for each wrong setting. All other settings are set even then, so that the caller can report
// further errors in them.
func Read(lookup func(name string) string) (Settings, error) {
	return read(Functions, List, lookup, nil)
}

// ReadRunner returns the settings of the runner. Lookup returns the value of a setting by its key. Called returns, for
// errors, the variable or the flag by which the operator gave it; nil: errors name the key. It returns the errors of
// Read.
func ReadRunner(lookup, called func(key string) string) (Settings, error) {
	return read(Serve, List, lookup, called)
}

// ReadOnly reads only the settings with the given keys, for commands that need few settings. All others have their defaults.
// The arguments and the errors are otherwise as in ReadRunner.
func ReadOnly(lookup, called func(key string) string, keys ...string) (Settings, error) {
	return read(Functions|Serve|Commands, Named(keys...), lookup, called)
}

// read reads the settings in a list that have the reader. It returns all errors together.
func read(reader Readers, list []Setting, lookup, called func(string) string) (Settings, error) {
	var settings Settings
	for _, setting := range List {
		if setting.Default == "" {
			continue
		}
		if err := setting.set(&settings, setting.Default); err != nil {
			return Settings{}, settings.Wrong(setting.Key(), err)
		}
	}
	settings.Redis.PoolSize = DefaultPoolSize
	if lookup("AWS_LAMBDA_FUNCTION_NAME") != "" {
		settings.Redis.PoolSize = LambdaPoolSize
	}
	settings.Extension = Extension{
		URL:   "http://localhost:" + cmp.Or(lookup("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT"), "2773"),
		Token: secret.String(lookup("AWS_SESSION_TOKEN")),
	}
	list = slices.DeleteFunc(slices.Clone(list), func(s Setting) bool { return s.Readers&reader == 0 })
	if called != nil {
		settings.called = map[string]string{}
		for _, setting := range list {
			if name := called(setting.Key()); name != setting.Key() {
				settings.called[setting.Key()] = name
			}
		}
	}
	var wrong []error
	refuse := func(key string, err error) { wrong = append(wrong, settings.Wrong(key, err)) }
	for _, setting := range list {
		if text := lookup(setting.Key()); text != "" {
			if err := setting.set(&settings, text); err != nil {
				refuse(setting.Key(), err)
			}
		}
		sources := sources(list, setting.Key())
		given := slices.DeleteFunc(slices.Clone(sources), func(key string) bool { return lookup(key) == "" })
		switch {
		case len(given) > 1:
			refuse(setting.Key(), fmt.Errorf("set only one of %s", enumerate(given, "and")))
		case len(given) == 0 && setting.Required == reader:
			refuse(setting.Key(), fmt.Errorf("is missing: set one of %s", enumerate(sources, "or")))
		}
	}
	if settings.Tokens.RotateEvery < 2*settings.Tokens.PublishBefore {
		refuse(SigningRotateEvery, fmt.Errorf("must be at least twice %s", SigningPublishBefore))
	}
	if settings.Runner.Studio && !settings.IsLocal() {
		refuse(Studio, fmt.Errorf("needs a loopback address in %s, such as 127.0.0.1:8443: everybody who reaches the address could evaluate patches", Listen))
	}
	return settings, errors.Join(wrong...)
}

// CheckRunner returns an error for each setting of the runner that is wrong beside another one, or without it. Source: ADR-0050.
func (s *Settings) CheckRunner() error {
	var wrong []error
	refuse := func(key string, err error) { wrong = append(wrong, s.Wrong(key, err)) }
	if s.Redis.URL != "" && s.Encryption.Keys == "" {
		refuse(EncryptionKey, fmt.Errorf("is missing: processes with the same Redis need the same key. Set it or %s, such as encryption.key in the data folder", EncryptionKeyFile))
	}
	if s.Tokens.Issuer == "" && !s.IsLocal() {
		refuse(Issuer, fmt.Errorf("is missing: with an address beyond the loopback in %s, set the URL at which clients reach the platform", Listen))
	}
	if (s.Runner.TLSCertFile == "") != (s.Runner.TLSKeyFile == "") {
		refuse(TLSCertFile, errors.New("set the file of the certificate and the file of its key, or none"))
	}
	if s.Runner.TLSCertFile != "" && len(s.Runner.TLSNames) > 0 {
		refuse(TLSNames, errors.New("is for a certificate of the platform's own authority; the certificate that is given has its names"))
	}
	for _, name := range s.Runner.TLSNames {
		if _, err := netip.ParseAddr(name); err != nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			refuse(TLSNames, errors.New("has an entry that is neither a DNS name nor an address"))
		}
	}
	if s.Runner.AdminKey == NoAdminKey && s.Runner.Manifests != "" {
		refuse(Manifests, errors.New("cannot be applied without an admin key"))
	}
	return errors.Join(wrong...)
}

// sources returns the keys of the settings in a list that give the value of the setting with a key: the setting itself,
// and the settings that replace it.
func sources(list []Setting, key string) []string {
	var keys []string
	for _, setting := range list {
		if setting.Key() == key || setting.Instead == key {
			keys = append(keys, setting.Key())
		}
	}
	return keys
}

// enumerate joins words as in a sentence: "a, b and c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
