package settings

import (
	"slices"
	"time"
)

// Names of the variables.
const (
	RedisURL             = "PLATFORM_REDIS_URL"
	RedisURLFile         = "PLATFORM_REDIS_URL_FILE"
	RedisURLSecret       = "PLATFORM_REDIS_URL_SECRET"
	RedisPoolSize        = "PLATFORM_REDIS_POOL_SIZE"
	RedisReplicas        = "PLATFORM_REDIS_REPLICAS"
	RedisTimeout         = "PLATFORM_REDIS_TIMEOUT"
	EncryptionKey        = "PLATFORM_ENCRYPTION_KEY"
	EncryptionKeyFile    = "PLATFORM_ENCRYPTION_KEY_FILE"
	EncryptionKeySecret  = "PLATFORM_ENCRYPTION_KEY_SECRET"
	Issuer               = "PLATFORM_ISSUER"
	TokenAudiences       = "PLATFORM_TOKEN_AUDIENCES"
	TokenMaxTTL          = "PLATFORM_TOKEN_MAX_TTL"
	SigningAlgorithm     = "PLATFORM_SIGNING_ALGORITHM"
	SigningRotateEvery   = "PLATFORM_SIGNING_ROTATE_EVERY"
	SigningPublishBefore = "PLATFORM_SIGNING_PUBLISH_BEFORE"
	SigningKey           = "PLATFORM_SIGNING_KEY"
	SigningKeyFile       = "PLATFORM_SIGNING_KEY_FILE"
	Config               = "PLATFORM_CONFIG"
	ConfigVariables      = "PLATFORM_CONFIG_VARIABLES"
	LogLevel             = "PLATFORM_LOG_LEVEL"
	Stream               = "PLATFORM_STREAM"
	Metrics              = "PLATFORM_METRICS"
	WatchWindow          = "PLATFORM_WATCH_WINDOW"
	MaxRequests          = "PLATFORM_MAX_REQUESTS"
	MaxRequestsPerCaller = "PLATFORM_MAX_REQUESTS_PER_CALLER"
	MaxLists             = "PLATFORM_MAX_LISTS"
	MaxListsPerCaller    = "PLATFORM_MAX_LISTS_PER_CALLER"
	MaxWatches           = "PLATFORM_MAX_WATCHES"
	MaxWatchesPerCaller  = "PLATFORM_MAX_WATCHES_PER_CALLER"
	Proxies              = "PLATFORM_PROXIES"
	RateRequests         = "PLATFORM_RATE_REQUESTS"
	RateAnonymous        = "PLATFORM_RATE_ANONYMOUS"
	RateFailures         = "PLATFORM_RATE_FAILURES"
	QuotaObjects         = "PLATFORM_QUOTA_OBJECTS"
	QuotaBytes           = "PLATFORM_QUOTA_BYTES"
	Version              = "PLATFORM_VERSION"
	Edition              = "PLATFORM_EDITION"
	DeviceLogin          = "PLATFORM_DEVICE_LOGIN"
	Probe                = "PLATFORM_PROBE"
	UnsignedSAML         = "PLATFORM_UNSIGNED_SAML"
	PatchExpressionTime  = "PLATFORM_PATCH_EXPRESSION_TIME"
	PatchObjectTime      = "PLATFORM_PATCH_OBJECT_TIME"
	PatchMemory          = "PLATFORM_PATCH_MEMORY"
	PatchResult          = "PLATFORM_PATCH_RESULT"
	PatchDepth           = "PLATFORM_PATCH_DEPTH"
	PatchWorkers         = "PLATFORM_PATCH_WORKERS"
	PatchInProcess       = "PLATFORM_PATCH_IN_PROCESS"
	AdminKey             = "PLATFORM_ADMIN_KEY"
	TLSCertFile          = "PLATFORM_TLS_CERT_FILE"
	TLSKeyFile           = "PLATFORM_TLS_KEY_FILE"
	TLSNames             = "PLATFORM_TLS_NAMES"
	ShutdownDelay        = "PLATFORM_SHUTDOWN_DELAY"
	Server               = "PLATFORM_SERVER"
	AccessKey            = "PLATFORM_ACCESS_KEY"
	Kubeconfig           = "PLATFORM_KUBECONFIG"
	IDToken              = "PLATFORM_ID_TOKEN"
	IDTokenFile          = "PLATFORM_ID_TOKEN_FILE"
)

// Keys of settings that have a flag of the runner and no variable.
const (
	Listen      = "--listen"
	HTTP        = "--http"
	Data        = "--data"
	Manifests   = "--manifests"
	ExpireEvery = "--expire-every"
	Studio      = "--studio"
)

// The editions of the platform. Source: Spec 2.8 (patches are enterprise-only).
const (
	Enterprise = "enterprise"
	Community  = "community"
)

// The values of settings that switch something on or off.
const (
	On  = "on"
	Off = "off"
)

// The formats of metrics on AWS Lambda: none, and the embedded metric format of CloudWatch.
const (
	NoMetrics       = "none"
	EmbeddedMetrics = "emf"
)

// The algorithms that sign tokens. Source: RFC 7518 3.1; ADR-0011.
const (
	ES256 = "ES256"
	RS256 = "RS256"
)

// Values that other packages need too.
const (
	// DefaultConfigVariables is the prefix of the variables that the platform configuration can name. Source: ADR-0024.
	DefaultConfigVariables = "PLATFORM_SECRET_"
	// DefaultRedisTimeout is the default time for an operation on the state. Source: ADR-0002.
	DefaultRedisTimeout = time.Second
	// MinPublishBefore is the minimum time for which a signing key is published before it signs: twice as long as verifiers
	// keep the keys that they have fetched. Source: ADR-0011.
	MinPublishBefore = 10 * time.Minute
)

// Defaults of PLATFORM_REDIS_POOL_SIZE and PLATFORM_WATCH_WINDOW, which depend on the shell.
const (
	// DefaultPoolSize is the number of connections of a process that serves many requests at a time. Source: ADR-0002.
	DefaultPoolSize = 64
	// LambdaPoolSize is the number of connections of a function that serves one request at a time.
	LambdaPoolSize = 4
	// WatchWindowWithoutStreams is the maximum duration of a watch if responses cannot be streamed. Source: ADR-0010.
	WatchWindowWithoutStreams = 10 * time.Second
)

// maxPeriod bounds periods that have no other bound: ten years.
const maxPeriod = 10 * 366 * 24 * time.Hour

// maxShare bounds the number of requests that a process serves at a time.
const maxShare = 100_000

// List contains every setting, in the order of the documentation.
var List = []Setting{
	secretText(RedisURL, "redis", func(s *Settings) source { return source{&s.Redis.URL, &s.Redis.URLFrom, anyText} }).
		describe("URL", Functions|Serve|Commands, "The Redis that holds the state: redis://, redis-cluster:// or redis-sentinel://, with TLS rediss://, rediss-cluster:// or rediss-sentinel://, or unix://. A function needs this URL, a file or a secret with it. Absent: the runner starts its own Redis.").
		required(Functions),
	secretFile(RedisURLFile, RedisURL, func(s *Settings) source { return source{&s.Redis.URL, &s.Redis.URLFrom, anyText} }).
		describe("path", Functions|Serve, "A file that holds that URL, such as a mounted secret."),
	text(RedisURLSecret, "", "", func(s *Settings) *string { return &s.Redis.Secret }).insteadOf(RedisURL).
		describe("name or ARN", Functions, "A secret of AWS Secrets Manager that holds that URL. It is read at the first use, through the extension for parameters and secrets."),
	number(RedisPoolSize, "", "", 1, 1024, func(s *Settings) *int { return &s.Redis.PoolSize }).
		describe("number", Functions|Serve, "Maximum number of connections to each Redis node. Absent: 4 on AWS Lambda, which serves one request at a time, else 64."),
	number(RedisReplicas, "", "0", 0, 1024, func(s *Settings) *int { return &s.Redis.Replicas }).
		describe("number", Functions, "Number of replicas that must have a write before it is acknowledged."),
	duration(RedisTimeout, "redis-timeout", formatDuration(DefaultRedisTimeout), 100*time.Millisecond, 20*time.Second, func(s *Settings) *time.Duration { return &s.Redis.Timeout }).
		describe("duration", Functions|Serve, "Time limit for each operation on the state. If an operation takes longer, the response is 503."),
	secretText(EncryptionKey, "encryption-key", func(s *Settings) source { return source{&s.Encryption.Keys, &s.Encryption.KeysFrom, anyText} }).
		describe("base64", Functions|Serve|Commands, "The key that seals secrets in the state, 32 bytes. Older keys, which only open what they sealed, can follow after commas. Set at most one of the key, a file and a secret with it. Absent: the runner keeps a key in its data folder. A function that seals nothing needs none."),
	secretFile(EncryptionKeyFile, EncryptionKey, func(s *Settings) source { return source{&s.Encryption.Keys, &s.Encryption.KeysFrom, anyText} }).
		describe("path", Functions|Serve, "A file that holds that key, such as a mounted secret."),
	text(EncryptionKeySecret, "", "", func(s *Settings) *string { return &s.Encryption.Secret }).insteadOf(EncryptionKey).
		describe("name or ARN", Functions, "A secret of AWS Secrets Manager that holds that key. It is read at the first use, through the extension."),
	checkedText(Issuer, "issuer", "", checkIssuer, func(s *Settings) *string { return &s.Tokens.Issuer }).
		describe("URL", Functions|Serve, "Issuer of tokens: the https:// URL, without a slash at its end, below which publishkeys is reached. Absent: a function issues no tokens, and the runner uses its own address."),
	list(TokenAudiences, "", func(s *Settings) *[]string { return &s.Tokens.Audiences }).
		describe("list", Functions|Serve, "Audiences of tokens, separated by commas. Absent: the issuer."),
	duration(TokenMaxTTL, "token-max-ttl", "24h", time.Minute, 366*24*time.Hour, func(s *Settings) *time.Duration { return &s.Tokens.MaxTTL }).
		describe("duration", Functions|Serve|Commands, "Maximum lifetime of a token. A request for a longer lifetime gets this one."),
	word(SigningAlgorithm, "signing-algorithm", "signing algorithm", ES256, []string{ES256, RS256}, func(s *Settings) *string { return &s.Tokens.Algorithm }).
		describe("name", Functions|Serve|Commands, "Algorithm that signs tokens."),
	duration(SigningRotateEvery, "signing-rotate-every", "168h", 2*MinPublishBefore, maxPeriod, func(s *Settings) *time.Duration { return &s.Tokens.RotateEvery }).
		describe("duration", Functions|Serve|Commands, "How long a signing key signs. It must be at least twice the time for which the key is published before."),
	duration(SigningPublishBefore, "signing-publish-before", "1h", MinPublishBefore, maxPeriod/2, func(s *Settings) *time.Duration { return &s.Tokens.PublishBefore }).
		describe("duration", Functions|Serve|Commands, "How long a signing key is published before it signs. Verifiers keep the keys that they fetched for five minutes."),
	secretText(SigningKey, "signing-key", func(s *Settings) source { return source{&s.Tokens.SigningKeys, nil, checkSigningKeys} }).
		describe("PEM", Functions|Serve, "Signing keys that you manage yourself. The first, a private key, signs. Public keys after it are published too. Set at most one of the keys and a file with them. Absent: the platform makes the keys, rotates them and keeps them in the state."),
	secretFile(SigningKeyFile, SigningKey, func(s *Settings) source { return source{&s.Tokens.SigningKeys, nil, checkSigningKeys} }).
		describe("path", Functions|Serve, "A file that holds those keys, such as a mounted secret."),
	text(Config, "config", "", func(s *Settings) *string { return &s.Config }).
		describe("path", Functions|Serve, "Platform configuration (YAML). A function looks for changes every two seconds while requests come, the runner every second. Absent: the state holds the configuration, and the API writes it."),
	checkedText(ConfigVariables, "", DefaultConfigVariables, checkVariables, func(s *Settings) *string { return &s.ConfigVariables }).
		describe("text", Functions|Serve, "Prefix of the variables that ${NAME} can name in secrets of the platform configuration. It ends with _. In a function, NAME_SECRET can name a secret of AWS Secrets Manager with the value of NAME."),
	level(LogLevel, "log-level").
		describe("level", Functions|Serve, "Lowest level that is logged on standard error."),
	boolean(Stream, "", func(s *Settings) *bool { return &s.Stream }).
		describe("boolean", Functions, "AWS Lambda: whether the function is invoked with response streaming (Function URL, REST API)."),
	word(Metrics, "", "metrics format", NoMetrics, []string{NoMetrics, EmbeddedMetrics}, func(s *Settings) *string { return &s.Metrics }).
		describe("name", Functions, "AWS Lambda: emf writes a line with metrics of each request and run to the log, from which CloudWatch makes metrics."),
	duration(WatchWindow, "", "", time.Millisecond, maxPeriod, func(s *Settings) *time.Duration { return &s.Watch.Window }).
		describe("duration", Functions|Serve, "The longest that a watch may last. Absent: ten seconds if responses cannot be streamed, else as long as the request says."),
	number(MaxRequests, "", "128", 1, maxShare, func(s *Settings) *int { return &s.Shares.Requests }).
		describe("number", Functions|Serve, "How many requests a process serves at a time. More wait, and callers take turns."),
	number(MaxRequestsPerCaller, "", "32", 1, maxShare, func(s *Settings) *int { return &s.Shares.RequestsPerCaller }).
		describe("number", Functions|Serve, "How many of these requests are of one caller: the owner of the access key, or the address of a client without one."),
	number(MaxLists, "", "4", 1, maxShare, func(s *Settings) *int { return &s.Shares.Lists }).
		describe("number", Functions|Serve, "How many lists without a limit, or with one above 500, a process serves at a time. More wait."),
	number(MaxListsPerCaller, "", "2", 1, maxShare, func(s *Settings) *int { return &s.Shares.ListsPerCaller }).
		describe("number", Functions|Serve, "How many of these lists are of one caller."),
	number(MaxWatches, "", "1000", 1, maxShare, func(s *Settings) *int { return &s.Shares.Watches }).
		describe("number", Functions|Serve, "How many watches a process keeps open. One more is answered with 429."),
	number(MaxWatchesPerCaller, "", "100", 1, maxShare, func(s *Settings) *int { return &s.Shares.WatchesPerCaller }).
		describe("number", Functions|Serve, "How many of these watches are of one caller."),
	number(Proxies, "", "0", 0, 8, func(s *Settings) *int { return &s.Proxies }).
		describe("number", Functions|Serve, "How many trusted proxies are in front of a process, each of which adds the address of its client to the end of X-Forwarded-For. The entry of the first of them is the address of the client, for the audit and for the limits of an address. 0: the address of the connection is. AWS Lambda gets the address from its gateway."),
	number(RateRequests, "", "0", 0, maxShare, func(s *Settings) *int { return &s.Rates.Requests }).
		describe("number", Functions|Serve, "How many requests of a caller a process serves in a second. Ten seconds' worth may come at once; one more is answered with 429. 0: no limit, because callers take turns anyway."),
	number(RateAnonymous, "", "100", 0, maxShare, func(s *Settings) *int { return &s.Rates.Anonymous }).
		describe("number", Functions|Serve, "How many requests without a credential a process serves in a second, for each address. 0: no limit."),
	number(RateFailures, "", "20", 0, maxShare, func(s *Settings) *int { return &s.Rates.Failures }).
		describe("number", Functions|Serve, "How many refused credentials a process answers with 401 in a second, for each address. More get 429. Valid credentials from the same address are served. 0: no limit."),
	number(QuotaObjects, "", "200000", 1, 1_000_000_000, func(s *Settings) *int { return &s.Quota.Objects }).
		describe("number", Functions|Serve, "How many objects of each kind an owner may have: access keys, tokens, virtual cluster instances, and stored responses to requests with an Idempotency-Key. One more is answered with 429."),
	quantity(QuotaBytes, "", "256Mi", 1<<10, 1<<50, func(s *Settings) *int64 { return &s.Quota.Bytes }).
		describe("quantity", Functions|Serve, "How large the objects of one kind may be together, for each owner. A write that makes them larger is answered with 429."),
	text(Version, "", "dev", func(s *Settings) *string { return &s.Version }).
		describe("text", Functions, "The build, for /version."),
	word(Edition, "edition", "edition", Enterprise, []string{Enterprise, Community}, func(s *Settings) *string { return &s.Edition }).
		describe("name", Functions|Serve, "Edition of the platform. The community edition evaluates no sync patches."),
	word(DeviceLogin, "", "value", On, []string{On, Off}, func(s *Settings) *string { return &s.DeviceLogin }).
		describe("on or off", Functions|Serve, "Whether people can sign in on a device without a browser, such as over SSH: the program shows a code, which they enter in a browser elsewhere."),
	word(Probe, "", "value", Off, []string{On, Off}, func(s *Settings) *string { return &s.Probe }).
		describe("on or off", Functions|Serve, "Whether a canary access key is made, used, verified and revoked each minute. A failed run names its step."),
	word(UnsignedSAML, "", "value", Off, []string{On, Off}, func(s *Settings) *string { return &s.UnsignedSAML }).
		describe("on or off", Functions|Serve, "Whether SAML providers may set insecureSkipSignatureValidation. Anyone can then sign in as any user. platform serve on a loopback address always allows it."),
	duration(PatchExpressionTime, "patch-expression-time", "100ms", time.Millisecond, 25*time.Second, func(s *Settings) *time.Duration { return &s.Patches.ExpressionTime }).
		describe("duration", Functions|Serve|Commands, "Time for one expression of a sync patch."),
	duration(PatchObjectTime, "patch-object-time", "1s", time.Millisecond, 25*time.Second, func(s *Settings) *time.Duration { return &s.Patches.ObjectTime }).
		describe("duration", Functions|Serve|Commands, "Time for all sync patches of an object, checks included."),
	quantity(PatchMemory, "patch-memory", "64Mi", 16<<20, 1<<30, func(s *Settings) *int64 { return &s.Patches.MemoryBytes }).
		describe("quantity", Functions|Serve|Commands, "Memory that an evaluation may use. A worker may use twice that plus 192Mi for a moment, until it is killed."),
	quantity(PatchResult, "patch-result", "1Mi", 1<<10, 16<<20, func(s *Settings) *int64 { return &s.Patches.ResultBytes }).
		describe("quantity", Functions|Serve|Commands, "Maximum size of the result of an expression. Patches may make an object grow by as much."),
	number(PatchDepth, "patch-depth", "200", 10, 1000, func(s *Settings) *int { return &s.Patches.Depth }).
		describe("number", Functions|Serve|Commands, "How deep calls and results may be nested."),
	number(PatchWorkers, "patch-workers", "2", 1, 64, func(s *Settings) *int { return &s.Patches.Workers }).
		describe("number", Functions|Serve|Commands, "How many evaluations run at a time, each in its own process. Further evaluations wait."),
	boolean(PatchInProcess, "patch-in-process", func(s *Settings) *bool { return &s.Patches.InProcess }).
		describe("boolean", Functions|Serve|Commands, "Evaluate without workers. It is for trusted patches: neither memory nor the time of a single operation is bounded then."),

	text("", "listen", "127.0.0.1:8443", func(s *Settings) *string { return &s.Runner.Listen }).
		describe("address", Serve, "Address of the HTTPS listener."),
	checkedText("", "http", "", checkLoopback, func(s *Settings) *string { return &s.Runner.HTTP }).
		describe("address", Serve, "Address of an additional plain HTTP listener, on the loopback only. Clients do not send bearer tokens over plain HTTP; it is for curl and load tools."),
	text("", "data", ".platform", func(s *Settings) *string { return &s.Runner.Data }).
		describe("path", Serve|Commands, "Folder for the certificate authority, embedded state, encryption.key, kubeconfig and admin.key."),
	secretText(AdminKey, "admin-key", func(s *Settings) source { return source{&s.Runner.AdminKey, nil, anyText} }).
		describe("access key", Serve|Commands, "The first admin key, of user admin in the group platform:admins. none: no key is made. Absent: the key in the data folder, else a new one if the platform has no admin."),
	text(TLSCertFile, "tls-cert-file", "", func(s *Settings) *string { return &s.Runner.TLSCertFile }).
		describe("path", Serve, "File with the certificate of the HTTPS listener and the certificates above it, in PEM. It is read again when it changes. Absent: the certificate authority in the data folder signs one."),
	text(TLSKeyFile, "tls-key-file", "", func(s *Settings) *string { return &s.Runner.TLSKeyFile }).
		describe("path", Serve, "File with the private key of --tls-cert-file, in PEM."),
	list(TLSNames, "tls-names", func(s *Settings) *[]string { return &s.Runner.TLSNames }).
		describe("list", Serve, "Further DNS names and addresses in the certificate that the own authority signs, separated by commas."),
	duration(ShutdownDelay, "shutdown-delay", "0s", 0, 5*time.Minute, func(s *Settings) *time.Duration { return &s.Runner.ShutdownDelay }).
		describe("duration", Serve, "How long the listeners stay open after SIGTERM, while /readyz answers 503, until load balancers send no more requests."),
	text("", "manifests", "", func(s *Settings) *string { return &s.Runner.Manifests }).
		describe("path", Serve, "Folder of objects to apply at the start."),
	duration("", "expire-every", "30s", time.Millisecond, maxPeriod, func(s *Settings) *time.Duration { return &s.Runner.ExpireEvery }).
		describe("duration", Serve, "How often expired keys are removed and deletions finished."),
	boolean("", "studio", func(s *Settings) *bool { return &s.Runner.Studio }).
		describe("boolean", Serve, "Serve the patch studio of the console without sign-in, to browsers of this machine. --listen must then be a loopback address."),

	readByCommand(Server, "server").describe("URL", Commands, "Base address of the platform's API: https://HOST/kubernetes/management."),
	readByCommand(AccessKey, "").describe("access key", Commands, "The access key that a command uses."),
	readByCommand(Kubeconfig, "platform").describe("path", Commands, "Kubeconfig that reaches the platform. Absent: the kubeconfig in the data folder, else the current context of the user's kubeconfig."),
	readByCommand(IDToken, "").describe("token", Commands, "The token of a job, which platform login --ci exchanges for an access key."),
	readByCommand(IDTokenFile, "").describe("path", Commands, "File with the token of a job."),
}

// Named returns the settings with these keys, in their order in List. It panics if a key is unknown.
func Named(keys ...string) []Setting {
	var settings []Setting
	for _, setting := range List {
		if slices.Contains(keys, setting.Key()) {
			settings = append(settings, setting)
		}
	}
	if len(settings) != len(keys) {
		panic("settings: there is an unknown key among " + enumerate(keys, "and"))
	}
	return settings
}
