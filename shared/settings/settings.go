// Package settings is the one place that knows the settings of the platform: every PLATFORM_ variable and every flag of
// the runner's serve command, with its unit, default and bounds. Every shell reads its settings here, so a value that
// one shell refuses is refused by all of them, in the same words. List holds the settings; Read and ReadRunner read them.
//
// It opens nothing but the files that hold secrets: whoever connects to the state, or makes a key of a text, reports
// what is wrong then with Settings.Wrong. It knows no kind, no store and no token. Source: Spec 7; ADR-0010.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"management.platform.sh/shared/model/secret"
)

// Settings are the values that a process runs with. Every field holds its default unless something else is set.
type Settings struct {
	Redis      Redis
	Encryption Encryption
	Tokens     Tokens
	Patches    Patches
	Watch      Watch
	Runner     Runner
	Extension  Extension
	// Config is the path of a file with the platform configuration. Empty: the state holds the configuration.
	Config string
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
	// Stream tells that a function on AWS Lambda is invoked with response streaming.
	Stream bool
	// Version is the build, for /version.
	Version string
	// Edition is Enterprise or Community.
	Edition string

	// called has what the reader calls a setting, where that is not its key.
	called map[string]string
}

// Redis says where the state is.
type Redis struct {
	// URL is where the state is. Empty: Secret refers to it, or, for the runner alone, there is an embedded Redis.
	URL secret.String
	// URLFrom is the name of the setting that URL was read from, for errors.
	URLFrom string
	// Secret is the name or ARN of a secret of AWS Secrets Manager that holds the URL. Empty: there is none.
	Secret string
	// PoolSize is how many connections a process keeps to each node at most.
	PoolSize int
	// Replicas is how many replicas must have a write before it is acknowledged.
	Replicas int
	// Timeout is the time for each operation.
	Timeout time.Duration
}

// Encryption says which keys seal secrets in the state.
type Encryption struct {
	// Keys are the keys in base64, separated by commas; the first seals. Empty: Secret refers to them, or there are none.
	Keys secret.String
	// KeysFrom is the name of the setting that Keys was read from, for errors.
	KeysFrom string
	// Secret is the name or ARN of a secret of AWS Secrets Manager that holds the keys. Empty: there is none.
	Secret string
}

// Tokens say how direct cluster endpoint tokens are issued. Source: ADR-0011.
type Tokens struct {
	// Issuer is the URL below which publishkeys is reached; verifiers fetch the keys from there. Empty: no tokens are
	// issued.
	Issuer string
	// Audiences are whom tokens are for. Empty: the issuer.
	Audiences []string
	// MaxTTL is the longest life of a token.
	MaxTTL time.Duration
	// Algorithm is ES256 or RS256.
	Algorithm string
	// RotateEvery is how long a signing key signs, and PublishBefore how long it is published before it does.
	RotateEvery, PublishBefore time.Duration
	// SigningKeys are keys in PEM that the operator manages; the first one signs. Empty: the keys are kept in the state.
	SigningKeys secret.String
}

// Patches bound the evaluation of sync patches. Source: ADR-0014.
type Patches struct {
	// ExpressionTime is the time for an expression at one path, and ObjectTime that for all patches of an object.
	ExpressionTime, ObjectTime time.Duration
	// MemoryBytes is how much memory an evaluation may use, and ResultBytes how large its result may be.
	MemoryBytes, ResultBytes int64
	// Depth is how deep calls and results may be nested.
	Depth int
	// Workers is how many evaluations run at a time, each in a process of its own.
	Workers int
	// InProcess evaluates without workers. It is for trusted patches: limits do not hold within a single operation then.
	InProcess bool
}

// WithDefaults returns the settings with the default in place of each value that is zero, but for the issuer, audiences
// and keys, which may be empty.
func (t Tokens) WithDefaults() Tokens {
	d := defaults().Tokens
	t.MaxTTL, t.Algorithm = cmp.Or(t.MaxTTL, d.MaxTTL), cmp.Or(t.Algorithm, d.Algorithm)
	t.RotateEvery, t.PublishBefore = cmp.Or(t.RotateEvery, d.RotateEvery), cmp.Or(t.PublishBefore, d.PublishBefore)
	return t
}

// Watch says how long watches last.
type Watch struct {
	// Window is the longest that a watch may last. 0: as long as it asks for, or WatchWindowWithoutStreams where answers
	// cannot be streamed.
	Window time.Duration
}

// Runner are the settings of the runner alone. Source: ADR-0006.
type Runner struct {
	// Listen is the address of the HTTPS listener.
	Listen string
	// HTTP is the address of an additional listener without TLS, on the loopback. Empty: there is none.
	HTTP string
	// Data is the folder for the certificate authority, the embedded state and generated keys.
	Data string
	// AdminKey is the first admin key. Empty: the one in the data folder, else a new one.
	AdminKey secret.String
	// Manifests is a folder of objects that are applied at the start. Empty: none are.
	Manifests string
	// ExpireEvery is how often expired keys are removed and deletions finished.
	ExpireEvery time.Duration
}

// Extension is how the extension for parameters and secrets of AWS Lambda is reached. AWS sets its variables.
type Extension struct {
	// URL is its address.
	URL string
	// Token is what it knows its caller by.
	Token secret.String
}

// Problem is what is wrong with one setting. It never quotes a value.
type Problem struct {
	// Name is the variable, or the flag with its hyphens, whichever was used.
	Name string
	// Err says what is wrong.
	Err error
}

// Error names the setting and says what is wrong.
func (p *Problem) Error() string { return p.Name + ": " + p.Err.Error() }

// Unwrap returns what is wrong.
func (p *Problem) Unwrap() error { return p.Err }

// Wrong is the error of a setting that turned out to be wrong after it was read, such as a URL that cannot be used. Key is
// that of the setting.
func (s *Settings) Wrong(key string, err error) error {
	return &Problem{Name: cmp.Or(s.called[key], key), Err: err}
}

// Default returns the settings of a process for which nothing is set.
func Default() Settings {
	settings, err := read(0, nil, nothing, nil)
	if err != nil {
		panic("settings: a default is wrong: " + err.Error())
	}
	return settings
}

// defaults are those of Default, read once.
var defaults = sync.OnceValue(Default)

func nothing(string) string { return "" }

// Read returns the settings of a deployed function from its variables, which lookup returns by name; an empty value is
// an absent one. The error joins one Problem for each setting that is wrong. Settings that are right are set even then,
// so that a caller can find out what else is wrong with them.
func Read(lookup func(name string) string) (Settings, error) {
	return read(Functions, List, lookup, nil)
}

// ReadRunner returns the settings of the runner. Lookup is asked by the key of a setting; called returns how the operator
// gave it, by the variable or by the flag, for errors. Errors are those of Read.
func ReadRunner(lookup, called func(key string) string) (Settings, error) {
	return read(Serve, List, lookup, called)
}

// ReadOnly returns the defaults with what the settings of these keys say, for commands that read some settings alone. It is
// otherwise like ReadRunner; called may be nil.
func ReadOnly(lookup, called func(key string) string, keys ...string) (Settings, error) {
	return read(Functions|Serve|Commands, Named(keys...), lookup, called)
}

// read collects the settings of a list for a reader, and everything that is wrong with them.
func read(reader Readers, list []Setting, lookup, called func(string) string) (Settings, error) {
	var found Settings
	for _, setting := range List {
		if setting.Default == "" {
			continue
		}
		if err := setting.set(&found, setting.Default); err != nil {
			return Settings{}, found.Wrong(setting.Key(), err)
		}
	}
	found.Redis.PoolSize = DefaultPoolSize
	if lookup("AWS_LAMBDA_FUNCTION_NAME") != "" {
		found.Redis.PoolSize = LambdaPoolSize
	}
	found.Extension = Extension{
		URL:   "http://localhost:" + cmp.Or(lookup("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT"), "2773"),
		Token: secret.String(lookup("AWS_SESSION_TOKEN")),
	}
	list = slices.DeleteFunc(slices.Clone(list), func(s Setting) bool { return s.Readers&reader == 0 })
	if called != nil {
		found.called = map[string]string{}
		for _, setting := range list {
			if name := called(setting.Key()); name != setting.Key() {
				found.called[setting.Key()] = name
			}
		}
	}
	var wrong []error
	refuse := func(key string, err error) { wrong = append(wrong, found.Wrong(key, err)) }
	for _, setting := range list {
		if text := lookup(setting.Key()); text != "" {
			if err := setting.set(&found, text); err != nil {
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
	if found.Tokens.RotateEvery < 2*found.Tokens.PublishBefore {
		refuse(SigningRotateEvery, fmt.Errorf("must be at least twice %s", SigningPublishBefore))
	}
	return found, errors.Join(wrong...)
}

// sources are the keys of the settings in a list that give the value of one of them: itself, a file, a secret.
func sources(list []Setting, key string) []string {
	var keys []string
	for _, setting := range list {
		if setting.Key() == key || setting.Instead == key {
			keys = append(keys, setting.Key())
		}
	}
	return keys
}

// enumerate writes words as a sentence does: "a, b and c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
