package environment

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore"
)

// Variable is a setting in an environment variable.
type Variable struct {
	Name string
	// Unit is what the value is.
	Unit string
	// Default is what holds when the variable is absent or empty; it may be empty itself.
	Default string
	// Meaning says what it is for.
	Meaning string
}

// The names of the variables.
const (
	redisURL       = "PLATFORM_REDIS_URL"
	redisURLFile   = "PLATFORM_REDIS_URL_FILE"
	redisURLSecret = "PLATFORM_REDIS_URL_SECRET"
	redisPoolSize  = "PLATFORM_REDIS_POOL_SIZE"
	redisReplicas  = "PLATFORM_REDIS_REPLICAS"
	redisTimeout   = "PLATFORM_REDIS_TIMEOUT"
	sealing        = "PLATFORM_ENCRYPTION_KEY"
	sealingFile    = "PLATFORM_ENCRYPTION_KEY_FILE"
	sealingSecret  = "PLATFORM_ENCRYPTION_KEY_SECRET"
	issuer         = "PLATFORM_ISSUER"
	audiences      = "PLATFORM_TOKEN_AUDIENCES"
	tokenMaxTTL    = "PLATFORM_TOKEN_MAX_TTL"
	algorithm      = "PLATFORM_SIGNING_ALGORITHM"
	rotateEvery    = "PLATFORM_SIGNING_ROTATE_EVERY"
	publishBefore  = "PLATFORM_SIGNING_PUBLISH_BEFORE"
	signingKey     = "PLATFORM_SIGNING_KEY"
	signingKeyFile = "PLATFORM_SIGNING_KEY_FILE"
	config         = "PLATFORM_CONFIG"
	logLevel       = "PLATFORM_LOG_LEVEL"
	stream         = "PLATFORM_STREAM"
	watchWindow    = "PLATFORM_WATCH_WINDOW"
	build          = "PLATFORM_VERSION"

	edition             = "PLATFORM_EDITION"
	patchExpressionTime = "PLATFORM_PATCH_EXPRESSION_TIME"
	patchObjectTime     = "PLATFORM_PATCH_OBJECT_TIME"
	patchMemory         = "PLATFORM_PATCH_MEMORY"
	patchResult         = "PLATFORM_PATCH_RESULT"
	patchDepth          = "PLATFORM_PATCH_DEPTH"
	patchWorkers        = "PLATFORM_PATCH_WORKERS"
	patchInProcess      = "PLATFORM_PATCH_IN_PROCESS"
)

const (
	// lambdaPool is how many connections a function needs that serves one request at a time.
	lambdaPool = 4
	// maxCount bounds the numbers.
	maxCount = 1024
)

// Variables are all that a deployed function reads, in the order in which a reader wants them.
var Variables = []Variable{
	{redisURL, "URL", "", "State: redis:// or rediss://, with -cluster or -sentinel for those. Exactly one of the three must be set."},
	{redisURLFile, "path", "", "A file that holds that URL, such as a mounted secret."},
	{redisURLSecret, "name or ARN", "", "A secret of AWS Secrets Manager that holds that URL, read at the first use through the extension for parameters and secrets."},
	{redisPoolSize, "number", "", "Connections per Redis node at most. Absent: 4 for AWS Lambda, which serves one request at a time, else 64."},
	{redisReplicas, "number", "0", "Replicas that must have a write before it is acknowledged."},
	{redisTimeout, "duration", "1s", "The time for each operation on the state, from 100 milliseconds to 20 seconds; what takes longer is answered with 503."},
	{sealing, "base64", "", "The key that seals secrets in the state, 32 bytes; after a comma older ones that still open. At most one of the three is set; functions that seal nothing need none."},
	{sealingFile, "path", "", "A file that holds it, such as a mounted secret."},
	{sealingSecret, "name or ARN", "", "A secret of AWS Secrets Manager that holds it, read at the first use through the extension."},
	{issuer, "URL", "", "Issuer of tokens: the https:// URL, without a slash at its end, below which publishkeys is reached. Absent: no tokens are issued."},
	{audiences, "list", "", "Whom tokens are for, separated by commas. Absent: the issuer."},
	{tokenMaxTTL, "duration", "24h", "The longest life of a token, from a minute to a year; a longer one that is asked for is shortened."},
	{algorithm, "name", "ES256", "How tokens are signed: ES256 or RS256."},
	{rotateEvery, "duration", "168h", "How long a signing key signs: at least twice as long as it is published before."},
	{publishBefore, "duration", "1h", "How long a signing key is published before it signs, ten minutes or more: verifiers keep what they fetched for five."},
	{signingKey, "PEM", "", "Signing keys that you manage yourself: the first, a private one, signs; public ones behind it are published too. Absent: keys are made, kept and changed in the state. At most one of the two is set."},
	{signingKeyFile, "path", "", "A file that holds them, such as a mounted secret."},
	{config, "path", "", "Platform configuration (YAML), looked at again every two seconds while requests come. Absent: the state holds it, and the API writes it."},
	{logLevel, "level", "info", "Least level of the log on standard error: debug, info, warn or error."},
	{stream, "boolean", "false", "AWS Lambda: whether the function is invoked with response streaming (Function URL, REST API)."},
	{watchWindow, "duration", "", "The longest that a watch may last. Absent: ten seconds where answers cannot be streamed, elsewhere as long as it asks for."},
	{build, "text", "dev", "The build, for /version."},
	{edition, "name", "enterprise", "What of the platform is in use: enterprise or community, which evaluates no sync patches."},
	{patchExpressionTime, "duration", "100ms", "The time for one expression of a sync patch, from a millisecond to 25 seconds, as the next."},
	{patchObjectTime, "duration", "1s", "The time for all sync patches of an object, checks included."},
	{patchMemory, "quantity", "64Mi", "What an evaluation may use, from 16Mi to 1Gi. Until a worker is ended, it may for a moment hold twice that and 192Mi."},
	{patchResult, "quantity", "1Mi", "The result of an expression, and by how much patches may make an object grow, from 1Ki to 16Mi."},
	{patchDepth, "number", "200", "How deep calls and results may be nested, from 10 to 1000."},
	{patchWorkers, "number", "2", "How many evaluations run at a time, each in a process of its own; more wait. From 1 to 64."},
	{patchInProcess, "boolean", "false", "Evaluate without workers, for trusted patches: memory is not bounded then, nor the time of a single operation."},
}

// settings are the values of the variables.
type settings struct {
	url          secret.String
	urlFrom      string
	secretID     string
	keyring      *encryption.Keyring
	keyringID    string
	tokens       frame.TokenSettings
	config       string
	level        slog.Level
	window       time.Duration
	version      string
	extension    string
	sessionToken secret.String
	redis        redisstore.Options
	edition      string
	patches      frame.PatchSettings
}

// read collects the settings, and everything that is wrong with them. Errors name variables and never quote them.
func read(lookup func(string) string) (settings, error) {
	var problems []error
	wrong := func(name, why string) { problems = append(problems, fmt.Errorf("%s: %s", name, why)) }
	text := func(name string) string {
		if value := lookup(name); value != "" {
			return value
		}
		for _, v := range Variables {
			if v.Name == name {
				return v.Default
			}
		}
		return ""
	}
	s := settings{
		secretID: text(redisURLSecret), keyringID: text(sealingSecret), config: text(config), version: text(build),
		// What the extension listens on, and what it knows its caller by, are the platform's variables.
		extension:    "http://localhost:" + cmp.Or(lookup("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT"), "2773"),
		sessionToken: secret.String(lookup("AWS_SESSION_TOKEN")),
	}
	// fromFile is a secret of which the variable itself, a file and a secret are the sources, and where it came from; of
	// the last the name alone is read here.
	fromFile := func(variable, file, reference string, least int) (secret.String, string) {
		given := 0
		for _, name := range []string{variable, file, reference} {
			if name != "" && text(name) != "" {
				given++
			}
		}
		switch {
		case given < least:
			wrong(variable, fmt.Sprintf("is not set, nor is %s or %s; one of them must be", file, reference))
		case given > 1:
			wrong(variable, fmt.Sprintf("%d of it, %s are set; at most one may be", given, strings.Join(slices.DeleteFunc([]string{file, reference}, isEmpty), " and ")))
		case text(file) != "":
			content, err := os.ReadFile(text(file))
			found := secret.String(strings.TrimSpace(string(content)))
			if err != nil || found == "" {
				wrong(file, "names a file that cannot be read, or is empty")
			}
			return found, file
		}
		return secret.String(text(variable)), variable
	}
	s.url, s.urlFrom = fromFile(redisURL, redisURLFile, redisURLSecret, 1)
	if key, from := fromFile(sealing, sealingFile, sealingSecret, 0); key != "" {
		ring, err := encryption.Parse(key)
		if err != nil {
			wrong(from, err.Error())
		}
		s.keyring = ring
	}
	s.tokens = readTokens(text, wrong)
	s.tokens.SigningKeys, _ = fromFile(signingKey, signingKeyFile, "", 0)
	if keys := s.tokens.SigningKeys; keys != "" {
		if block, _ := pem.Decode([]byte(keys.Reveal())); block == nil {
			wrong(signingKey, "it, or the file, holds no PEM block")
		}
	}
	if err := s.level.UnmarshalText([]byte(text(logLevel))); err != nil {
		wrong(logLevel, "must be debug, info, warn or error")
	}
	var err error
	if _, err = strconv.ParseBool(text(stream)); err != nil {
		wrong(stream, "must be true or false")
	}
	if value := text(watchWindow); value != "" {
		if s.window, err = time.ParseDuration(value); err != nil || s.window <= 0 {
			wrong(watchWindow, "must be a duration above zero such as 280s")
		}
	}
	count := func(name string, least int, into *int) {
		value := text(name)
		if value == "" {
			return
		}
		if n, err := strconv.Atoi(value); err != nil || n < least || n > maxCount {
			wrong(name, fmt.Sprintf("must be a number from %d to %d", least, maxCount))
		} else {
			*into = n
		}
	}
	if lookup("AWS_LAMBDA_FUNCTION_NAME") != "" {
		s.redis.PoolSize = lambdaPool
	}
	count(redisPoolSize, 1, &s.redis.PoolSize)
	count(redisReplicas, 0, &s.redis.Replicas)
	if s.redis.Timeout, err = time.ParseDuration(text(redisTimeout)); err != nil || s.redis.Timeout < redisstore.LeastTimeout || s.redis.Timeout > redisstore.MostTimeout {
		wrong(redisTimeout, fmt.Sprintf("must be a duration from %s to %s", redisstore.LeastTimeout, redisstore.MostTimeout))
	}
	s.edition, s.patches = readEdition(text, wrong), readPatches(text, wrong)
	return s, errors.Join(problems...)
}

func isEmpty(text string) bool { return text == "" }

// The bounds of the settings of tokens. Source: ADR-0011.
const (
	minTokenTTL      = time.Minute
	maxTokenTTL      = 366 * 24 * time.Hour
	minPublishBefore = 10 * time.Minute
)

// readTokens collects the settings of tokens, but for the keys.
func readTokens(text func(string) string, wrong func(name, why string)) frame.TokenSettings {
	s := frame.TokenSettings{Issuer: text(issuer), Algorithm: text(algorithm)}
	if s.Issuer != "" {
		if err := frame.CheckIssuer(s.Issuer); err != nil {
			wrong(issuer, err.Error())
		}
	}
	for name := range strings.SplitSeq(text(audiences), ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.Audiences = append(s.Audiences, name)
		}
	}
	if s.Algorithm != "ES256" && s.Algorithm != "RS256" {
		wrong(algorithm, "must be ES256 or RS256")
	}
	duration := func(name string, least, most time.Duration) time.Duration {
		value, err := time.ParseDuration(text(name))
		if err != nil || value < least || value > most {
			wrong(name, fmt.Sprintf("must be a duration from %s to %s", least, most))
		}
		return value
	}
	const longest = 10 * 366 * 24 * time.Hour
	s.MaxTTL = duration(tokenMaxTTL, minTokenTTL, maxTokenTTL)
	s.PublishBefore = duration(publishBefore, minPublishBefore, longest)
	s.RotateEvery = duration(rotateEvery, 2*minPublishBefore, longest)
	if s.RotateEvery < 2*s.PublishBefore {
		wrong(rotateEvery, "must be at least twice what "+publishBefore+" is")
	}
	return s
}
