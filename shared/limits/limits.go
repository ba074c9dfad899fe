// Package limits is the one table of the bounds on work that a caller can cause. Rooms take their constants from here, or
// add a row for a setting. The table becomes docs/limits.md, and each row has a case in test/limits. Source: ADR-0020.
//
// The package enforces nothing. Each row names the package that does.
package limits

import "time"

// Limit is one bound, as the table shows it.
type Limit struct {
	// Name identifies the limit. It is stable and unique.
	Name string
	// What says what is bounded.
	What string
	// Bound is the value with its unit.
	Bound string
	// Where is the path of the package that enforces the limit, within this module.
	Where string
	// Answer is the status that a caller gets above the limit, or what happens in its place. The text of the answer names the limit.
	Answer string
	// Setting is the setting that changes the limit. Empty: it is fixed.
	Setting string
}

// Bounds of the head of a request.
const (
	// HeaderBytes is the maximum size of the head of a request, in bytes.
	HeaderBytes = 64 << 10
	// HeaderLines is the maximum number of header lines of a request.
	HeaderLines = 500
	// AcceptBytes is the maximum size of all Accept headers of a request together, in bytes.
	AcceptBytes = 8 << 10
	// SelectorTerms is the maximum number of terms of a selector: its requirements, and the values in their sets.
	SelectorTerms = 250
)

// RuleNames is the maximum number of names of objects in a scope that a review of rules looks at.
const RuleNames = 50

// Subjects is the maximum number of users and teams in the answer to who may make a request.
const Subjects = 1000

// Bounds of the body of a request, before it is decoded.
const (
	// BodyBytes is the maximum size of a body, in bytes. It also bounds YAML with its aliases
	// resolved, and an object that a patch makes.
	BodyBytes = 3 << 20
	// FormBytes is the maximum size of a form, in bytes.
	FormBytes = 64 << 10
	// SAMLFormBytes is the maximum size of the form with which a SAML provider answers, in bytes.
	SAMLFormBytes = 256 << 10
	// SAMLElements is the maximum number of elements in the answer of a SAML provider.
	SAMLElements = 1000
	// SignInGroups is the maximum number of groups that a provider gives to a user.
	SignInGroups = 256
	// SignInTextBytes is the maximum length of an ID, a name, an address and a group that a provider names, in bytes.
	SignInTextBytes = 256
	// SignInClaimBytes is the maximum length of an extra claim, in bytes.
	SignInClaimBytes = 4 << 10
	// BodyDepth is the maximum number of lists and objects that contain each other.
	BodyDepth = 100
	// BodyValues is the maximum number of values in a body, at all levels: objects, lists, texts, numbers and literals.
	BodyValues = 100_000
	// BodyEntries is the maximum number of entries of one list or object.
	BodyEntries = 10_000
	// YAMLMarks is the maximum number of marks of a YAML body that may separate values: commas, colons, opening brackets
	// and line ends, also within texts.
	YAMLMarks = 100_000
	// YAMLDirectives is the maximum number of lines of a YAML body that begin with a percent sign.
	YAMLDirectives = 10
	// YAMLAliases is the maximum number of aliases in a YAML body.
	YAMLAliases = 1000
	// YAMLAliasMarks is YAMLMarks for a YAML body that has aliases. The YAML library resolves up to a hundred times as many
	// values before it refuses them.
	YAMLAliasMarks = 2000
	// YAMLResolvedValues is the maximum number of values of a YAML body that has aliases, with the aliases resolved. A small
	// body could otherwise have as many values as a large one, and cost as much.
	YAMLResolvedValues = 20_000
	// BodyPathBytes is the maximum length of the path of a value: the names of the fields that lead to it, in bytes.
	BodyPathBytes = 4 << 10
)

// Bounds of a stored object. An object that exceeded one before it was introduced can be read, shrunk and deleted.
const (
	// ObjectBytes is the maximum size of an object as it is stored, with its managed fields, in bytes: the object must
	// fit into the body of an update.
	ObjectBytes = BodyBytes
	// AnnotationBytes is the maximum size of the names and values of all annotations of an object, in bytes, as in Kubernetes.
	AnnotationBytes = 256 << 10
	// Labels is the maximum number of labels of an object.
	Labels = 500
	// Finalizers is the maximum number of finalizers of an object.
	Finalizers = 100
	// Owners is the maximum number of owner references of an object.
	Owners = 100
	// Managers is the maximum number of entries in the managed fields of an object.
	Managers = 100
	// PatchNestedBytes is the maximum sum of the sizes of all lists and objects in a JSON patch, in bytes: a text counts once
	// for each level around it, because the values of operations are parsed level by level.
	PatchNestedBytes = 16 * BodyBytes
	// PatchOperations is the maximum number of operations in a JSON patch, as in Kubernetes.
	PatchOperations = 10_000
)

// Bounds of the lineage of a credential. Each authentication reads the keys that bound the credential.
const (
	// LineageBounds is the maximum number of access keys that bound a credential.
	LineageBounds = 8
	// Lineage is the maximum number of access keys in a lineage.
	Lineage = 64
)

// Bounds of passwords and sign-ins. Each hash takes 19 MiB and a processor for a tenth of a second.
const (
	// PasswordHashes is how many passwords a process hashes at a time.
	PasswordHashes = 2
	// PasswordFailures is the maximum number of wrong passwords for a user in PasswordFailuresWindow.
	PasswordFailures = 10
	// PasswordFailuresOfAddress is the maximum number of wrong passwords from an address in PasswordFailuresWindow.
	PasswordFailuresOfAddress = 30
	// LoginKeys is the maximum number of keys of sign-ins that a user has.
	LoginKeys = 20
	// SignInTrials is the maximum number of sign-ins on trial that one caller has open.
	SignInTrials = 20
	// DeviceRequests is the maximum number of devices that wait for a sign-in, in the state.
	DeviceRequests = 10_000
	// DeviceRequestsOfAddress is the maximum number of codes that devices at an address get in DeviceRequestsWindow.
	DeviceRequestsOfAddress = 10
	// DeviceRequestsWindow is how long the request of a device counts.
	DeviceRequestsWindow = time.Minute
	// DeviceCodesOfAddress is the maximum number of wrong codes from an address in DeviceCodesWindow.
	DeviceCodesOfAddress = 20
	// DeviceCodesWindow is how long a wrong code counts.
	DeviceCodesWindow = time.Hour
	// PasswordFailuresWindow is how long a wrong password counts.
	PasswordFailuresWindow = 15 * time.Minute
)

// Bounds of an answer to a request that is refused.
const (
	// Faults is the maximum number of faults that an answer names. The rest is counted.
	Faults = 100
	// FaultBytes is the maximum length of the text of one fault, in bytes. Longer texts are truncated.
	FaultBytes = 1 << 10
	// MessageBytes is the maximum length of the message of an answer, in bytes.
	MessageBytes = 16 << 10
)

// Bounds of what one step reads from the state. Redis does nothing else while a script runs, so lists and sweeps read pages.
const (
	// PageObjects is the maximum number of objects, events or references that one step reads. A list with a higher limit,
	// or without one, is a large list.
	PageObjects = 500
	// LogBytes is the size of an event log from which large events shorten it, in bytes. No event that is larger than
	// LogBytes/n is among more than n events when it is written.
	LogBytes = 128 << 20
	// LogEvents is the number of events that an event log keeps however large they are.
	LogEvents = 16
	// PageBytes is the maximum size of the records of a page together, in bytes. One record may be larger.
	PageBytes = 1 << 20
	// ListPages is the maximum number of pages that a list with a limit looks through.
	ListPages = 20
)

// CompressedBytes is the size from which an answer is compressed for a client that asks for it, in bytes.
const CompressedBytes = 128 << 10

// Bounds in time.
const (
	// RequestDuration is the maximum duration of a request that is not a watch.
	RequestDuration = 60 * time.Second
	// HeadDuration is the time in which the head of a request must arrive.
	HeadDuration = 10 * time.Second
	// BodyGrace is the time in which a body may arrive more slowly than BodyRate.
	BodyGrace = 5 * time.Second
	// BodyRate is how fast a body must arrive after that, in bytes per second.
	BodyRate = 8 << 10
	// UnreadDuration is how long a connection stays open after an answer to a request whose body was not read.
	UnreadDuration = time.Second
	// WriteDuration is the time in which a client must receive each part of an answer.
	WriteDuration = 10 * time.Second
	// IdleDuration is how long a connection stays open without a request.
	IdleDuration = 2 * time.Minute
)

// Shares of a process. Source: ADR-0020.
const (
	// LargeBodyBytes is the size above which a body is a large one, in bytes. A body of unknown size is one as well.
	LargeBodyBytes = 4 << 10
	// LargeBodies is how many requests with a large body a process serves or receives at a time.
	LargeBodies = 16
	// LargeBodiesPerCaller is how many of these requests are of one caller.
	LargeBodiesPerCaller = 4
	// LargeQueryBytes is the size above which the query of a URL makes a request a heavy one, in bytes. A large body does so as
	// well.
	LargeQueryBytes = 1 << 10
	// LargeHeadBytes is the size above which the header lines of a request make it a heavy one, in bytes.
	LargeHeadBytes = 4 << 10
	// SpareEvaluations is how many evaluations more than there are places a process serves for callers whose evaluations are short.
	SpareEvaluations = 1
	// ShortRequest is how long a short one takes at most.
	ShortRequest = 100 * time.Millisecond
	// WaitingRequests is how many requests of one caller may wait for a place.
	WaitingRequests = 1000
	// WaitingLarge is how many large lists, large bodies, kubeconfigs and evaluations of one caller may wait, each.
	WaitingLarge = 50
	// Revocations is the maximum number of credentials that one request revokes.
	Revocations = 10
	// RateBurst is how many seconds' worth of a rate may come at once.
	RateBurst = 10
	// RateNames is the maximum number of callers and addresses that a process keeps rates for.
	RateNames = 10_000
	// LongestWait is how long a request waits for a place.
	LongestWait = 10 * time.Second
)

// List is the table, in the order of the document.
var List = []Limit{
	{
		"header-bytes", "size of the head of a request", "64 KiB", "shared/process",
		"431", "",
	},
	{
		"header-lines", "header lines of a request", "500 lines", "shared/api/frame",
		"431", "",
	},
	{
		"accept-bytes", "size of the Accept headers of a request together", "8 KiB", "shared/api/frame",
		"431", "",
	},
	{
		"selector-terms", "requirements of a labelSelector or fieldSelector, and values in their sets", "250 terms", "shared/api/frame",
		"400", "",
	},
	{
		"body-bytes", "size of the body of a request", "3 MiB", "shared/api/frame",
		"413", "",
	},
	{
		"form-bytes", "size of a form of the sign-in", "64 KiB", "shared/api/frame",
		"413", "",
	},
	{
		"saml-form-bytes", "size of the form with which a SAML provider answers", "256 KiB", "shared/api/frame",
		"413", "",
	},
	{
		"saml-elements", "elements in the answer of a SAML provider", "1000 elements", "shared/signin/saml",
		"400", "",
	},
	{
		"signin-groups", "groups that a provider gives to a user, after groupsFilters", "256 groups", "shared/signin/provisioning",
		"the first ones by name are kept, and the event names others", "",
	},
	{
		"signin-text-bytes", "length of a name, an address and a group that a provider names, and of the ID of a person", "256 bytes", "shared/signin/provisioning",
		"it is left out, and the event names it; for the ID: 400", "",
	},
	{
		"signin-claim-bytes", "length of an extra claim that a provider sends", "4 KiB", "shared/signin/provisioning",
		"it is left out, and the event names it", "",
	},
	{
		"body-depth", "levels of lists and objects in a body", "100 levels", "shared/api/codec",
		"400", "",
	},
	{
		"body-values", "values in a body, at all levels", "100000 values", "shared/api/codec",
		"413", "",
	},
	{
		"body-entries", "entries of one list or object in a body", "10000 entries", "shared/api/codec",
		"413", "",
	},
	{
		"body-path-bytes", "length of the names of the fields that lead to a value", "4 KiB", "shared/api/codec",
		"413", "",
	},
	{
		"yaml-marks", "commas, colons, opening brackets and line ends of a YAML body", "100000 marks", "shared/api/codec",
		"413: send JSON instead", "",
	},
	{
		"yaml-directives", "lines of a YAML body that begin with a percent sign", "10 lines", "shared/api/codec",
		"400", "",
	},
	{
		"yaml-aliases", "aliases in a YAML body", "1000 aliases", "shared/api/codec",
		"413", "",
	},
	{
		"yaml-resolved-bytes", "size of a YAML body with its aliases resolved", "3 MiB", "shared/api/codec",
		"413", "",
	},
	{
		"yaml-alias-marks", "commas, colons, opening brackets and line ends of a YAML body that has aliases", "2000 marks", "shared/api/codec",
		"413: write the values out", "",
	},
	{
		"yaml-resolved-values", "values in a YAML body that has aliases, with the aliases resolved", "20000 values", "shared/api/codec",
		"413", "",
	},
	{
		"json-patch-operations", "operations in a JSON patch", "10000 operations", "shared/api/resource",
		"413", "",
	},
	{
		"json-patch-nested-bytes", "size of all lists and objects in a JSON patch together, in which a text counts once for each level around it", "48 MiB", "shared/api/codec",
		"413", "",
	},
	{
		"object-bytes", "size of a stored object, with its managed fields", "3 MiB", "shared/api/resource",
		"413", "",
	},
	{
		"annotation-bytes", "size of the names and values of all annotations of an object", "256 KiB", "shared/api/resource",
		"422", "",
	},
	{
		"labels", "labels of an object", "500 labels", "shared/api/resource",
		"422", "",
	},
	{
		"finalizers", "finalizers of an object", "100 finalizers", "shared/api/resource",
		"422", "",
	},
	{
		"owners", "owner references of an object", "100 references", "shared/api/resource",
		"422", "",
	},
	{
		"managers", "entries of the managed fields of an object; entries of managers that update are folded into 10, as in Kubernetes", "100 entries", "shared/api/resource",
		"422", "",
	},
	{
		"lineage-bounds", "access keys to which a credential is bound, because each of them made the next one", "8 keys", "shared/kinds/accesskey",
		"403", "",
	},
	{
		"lineage", "access keys in the lineage of a credential", "64 keys", "shared/kinds/accesskey",
		"403", "",
	},
	{
		"password-failures", "wrong passwords for a user in 15 minutes, whether or not there is the user", "10 passwords", "shared/credentials/password",
		"429", "",
	},
	{
		"password-failures-address", "wrong passwords from an address in 15 minutes", "30 passwords", "shared/credentials/password",
		"429", "",
	},
	{
		"signin-trials", "sign-ins on trial that a caller has open", "20 trials", "shared/signin/trial",
		"429", "",
	},
	{
		"device-requests", "devices that wait for a sign-in", "10000 devices", "shared/signin/device",
		"429", "",
	},
	{
		"device-requests-address", "codes for devices at an address in a minute", "10 codes", "shared/signin/device",
		"429", "",
	},
	{
		"device-codes-address", "wrong codes of devices from an address in an hour", "20 codes", "shared/signin/device",
		"429", "",
	},
	{
		"login-keys", "access keys of the type Login that a user has from sign-ins", "20 keys", "shared/signin/token",
		"the oldest one is deleted", "",
	},
	{
		"faults", "faults that an answer names", "100 faults", "shared/model/apierror",
		"the first 100, in the message and in details.causes, and the number of the others", "",
	},
	{
		"fault-bytes", "length of the text of one fault", "1 KiB", "shared/model/apierror",
		"the text is truncated", "",
	},
	{
		"message-bytes", "length of the message of a refusal", "16 KiB", "shared/model/apierror",
		"the message is truncated", "",
	},
	{
		"rule-names", "names of objects in a scope that a SelfSubjectRulesReview looks at", "50 names", "shared/credentials/review",
		"201 with status.incomplete, and status.evaluationError says how many there are", "",
	},
	{
		"subjects", "users and teams in the answer to who can make a request", "1000 subjects", "shared/credentials/review",
		"the first 1000, with status.incomplete", "",
	},
	{
		"patches", "patches of a list", "1000 patches", "shared/syncpatch",
		"422", "",
	},
	{
		"expression-bytes", "length of an expression", "16 KiB", "shared/syncpatch/expression",
		"422", "",
	},
	{
		"expression-depth", "brackets and operations in an expression that contain each other", "250 levels", "shared/syncpatch/expression",
		"422", "",
	},
	{
		"expressions-bytes", "length of all expressions of a request or of a configuration together", "256 KiB", "shared/syncpatch",
		"422", "",
	},
	{
		"pattern-steps", "steps of the regular expressions of an expression, with their repetitions", "10000 steps", "shared/syncpatch/expression",
		"422, or status.error of the evaluation if the pattern is computed", "",
	},
	{
		"patch-expression-time", "time to parse an expression, and to evaluate it at one path", "100ms", "shared/syncpatch/worker",
		"422 while it is read, else 201 with status.error",
		"PLATFORM_PATCH_EXPRESSION_TIME",
	},
	{
		"patch-object-time", "time of an evaluation", "1s", "shared/syncpatch/worker",
		"as patch-expression-time", "PLATFORM_PATCH_OBJECT_TIME",
	},
	{
		"patch-memory", "memory of an evaluation", "64 MiB", "shared/syncpatch/worker",
		"as patch-expression-time", "PLATFORM_PATCH_MEMORY",
	},
	{
		"patch-result", "size of the result of an expression, and by how much all patches together make the object grow", "1 MiB", "shared/syncpatch",
		"201 with status.error", "PLATFORM_PATCH_RESULT",
	},
	{
		"patch-depth", "calls in an expression and levels in its result", "200 levels", "shared/syncpatch/expression",
		"201 with status.error", "PLATFORM_PATCH_DEPTH",
	},
	{
		"patch-trace-bytes", "size of the trace of an evaluation", "1 MiB", "shared/syncpatch",
		"matches beyond it are counted in status.patches[].omittedMatches", "",
	},
	{
		"patch-workers", "workers of a process, each with one evaluation at a time; one more is for short evaluations", "2 workers", "shared/syncpatch/worker",
		"further evaluations wait as long as their requests", "PLATFORM_PATCH_WORKERS",
	},
	{
		"request-duration", "duration of a request that is not a watch", "1m0s", "shared/api/frame",
		"504", "",
	},
	{
		"head-duration", "time in which the head of a request must arrive", "10s", "shared/process",
		"the connection is closed", "",
	},
	{
		"body-rate", "what must arrive of a body each second, after the first 5s", "8 KiB", "shared/api/frame",
		"408", "",
	},
	{
		"unread-duration", "time that a connection stays open after an answer to a request whose body was not read", "1s", "shared/process",
		"the answer, at once; then the connection is closed", "",
	},
	{
		"write-duration", "time in which a client must receive each part of 64 KiB of an answer", "10s", "shared/api/frame",
		"the connection is closed", "",
	},
	{
		"idle-duration", "time that a connection stays open without a request", "2m0s", "shared/process",
		"the connection is closed", "",
	},
	{
		"streams", "requests that a client has open on one HTTP/2 connection", "100 requests", "shared/process",
		"the others wait, as HTTP/2 says", "",
	},
	{
		"warning-characters", "length of one warning", "256 characters", "shared/api/frame",
		"the warning is truncated", "",
	},
	{
		"warning-bytes", "size of all warnings of an answer", "4 KiB", "shared/api/frame",
		"the warnings beyond it are left out", "",
	},
	{
		"idempotency-key", "length of an Idempotency-Key", "255 characters", "shared/api/frame",
		"400", "",
	},
	{
		"field-manager", "length of the name of a field manager", "128 bytes", "shared/api/frame",
		"422; the name in a User-Agent is truncated", "",
	},
	{
		"scope-list", "entries of one list of a scope", "1000 entries", "shared/auth/scope",
		"422", "",
	},
	{
		"scope-entries", "entries of all lists of a scope together", "5000 entries", "shared/auth/scope",
		"422", "",
	},
	{
		"key-groups", "groups of an access key", "256 groups", "shared/kinds/accesskey",
		"422", "",
	},
	{
		"revocations", "credentials that one request revokes", "10 items", "functions/revokecredentials",
		"422", "",
	},
	{
		"instance-access", "entries in spec.access of a virtual cluster instance", "100 entries", "shared/kinds/instance",
		"422", "",
	},
	{
		"display-name", "length of spec.displayName", "256 bytes", "shared/api/resource",
		"422", "",
	},
	{
		"description", "length of spec.description", "4096 bytes", "shared/api/resource",
		"422", "",
	},
	{
		"requests", "requests that a process serves at a time", "128 requests", "shared/api/fairness",
		"waits, then 429", "PLATFORM_MAX_REQUESTS",
	},
	{
		"requests-per-caller", "requests of one caller that a process serves at a time", "32 requests", "shared/api/fairness",
		"waits", "PLATFORM_MAX_REQUESTS_PER_CALLER",
	},
	{
		"waiting-requests", "requests of one caller that wait for a place", "1000 requests", "shared/api/fairness",
		"429", "",
	},
	{
		"lists", "large lists (without a limit, or with one above 500), lists of audit events and deletions of collections that a process serves at a time", "4 large lists", "shared/api/fairness",
		"waits, then 429", "PLATFORM_MAX_LISTS",
	},
	{
		"lists-per-caller", "large lists of one caller that a process serves at a time", "2 large lists", "shared/api/fairness",
		"waits", "PLATFORM_MAX_LISTS_PER_CALLER",
	},
	{
		"waiting-lists", "large lists of one caller that wait for a place", "50 large lists", "shared/api/fairness",
		"429", "",
	},
	{
		"bodies", "requests with a body above 4 KiB that a process receives or serves at a time; 4 of them of one caller", "16 requests", "shared/api/fairness",
		"waits, then 429", "",
	},
	{
		"waiting-bodies", "requests of one caller with a body above 4 KiB that wait for a place", "50 requests", "shared/api/fairness",
		"429", "",
	},
	{
		"heavy", "requests with a body above 4 KiB, a query above 1 KiB, or header lines above 4 KiB, that a process works on at a time, without evaluations and large lists", "one less than processors, at least 1 request", "shared/api/fairness",
		"waits, then 429", "",
	},
	{
		"waiting-heavy", "such requests of one caller that wait for their turn", "50 requests", "shared/api/fairness",
		"429", "",
	},
	{
		"evaluations", "evaluations of sync patches that a process serves at a time; if there is more than one worker, one caller leaves one to the others", "2 evaluations, and 1 more of a caller whose evaluations take less than 100ms", "shared/api/fairness",
		"waits, then 429", "PLATFORM_PATCH_WORKERS",
	},
	{
		"kubeconfigs", "kubeconfigs that a process renders at a time, in all and for one caller: half as many as requests", "64 kubeconfigs, 16 of one caller", "shared/api/fairness",
		"waits, then 429", "PLATFORM_MAX_REQUESTS",
	},
	{
		"waiting-kubeconfigs", "kubeconfigs of one caller that wait for a place", "50 kubeconfigs", "shared/api/fairness",
		"429", "",
	},
	{
		"waiting-evaluations", "evaluations of one caller that wait for a worker", "50 evaluations", "shared/api/fairness",
		"429", "",
	},
	{
		"watches", "open watches of a process", "1000 watches", "shared/api/fairness",
		"429", "PLATFORM_MAX_WATCHES",
	},
	{
		"watches-per-caller", "open watches of one caller in a process", "100 watches", "shared/api/fairness",
		"429", "PLATFORM_MAX_WATCHES_PER_CALLER",
	},
	{
		"longest-wait", "time that a request waits for a place", "10s", "shared/api/fairness",
		"429", "",
	},
	{
		"page-objects", "objects, events or references that one script reads", "500 records", "shared/state/redisstore",
		"the rest is read in further pages", "",
	},
	{
		"list-pages", "pages of the state that a list with a limit looks through", "20 pages", "shared/api/resource",
		"a page with fewer objects and a continue token", "",
	},
	{
		"list-bytes", "size of the objects of a list with a limit, unless the first one alone is larger", "1 MiB", "shared/api/resource",
		"a page with fewer objects and a continue token", "",
	},
	{
		"list-held-bytes", "size of a list without a limit that is made before it is sent; a longer list is sent page by page", "2 MiB", "shared/api/frame",
		"a list that cannot be completed is cut off", "",
	},
	{
		"page-bytes", "size of the records of a page together, unless the first one alone is larger", "1 MiB", "shared/state/redisstore",
		"the rest is read in further pages", "",
	},
	{
		"log-bytes", "size of the event log of a resource: a larger event shortens the log, but not below 16 events", "128 MiB", "shared/state/redisstore",
		"410 for a watch that resumes from an event that is no longer there", "",
	},
	{
		"authentications", "authentications that a process does at a time, of the connections to the state; half of them from one address", "three quarters of the connections: 48, 32 from one address", "shared/api/fairness",
		"waits, then 429", "PLATFORM_REDIS_POOL_SIZE",
	},
	{
		"waiting-authentications", "authentications from one address that wait", "1000 requests", "shared/api/fairness",
		"429", "",
	},
	{
		"request-rate", "requests of one caller in a second; ten seconds' worth at once", "no limit", "shared/api/fairness",
		"429", "PLATFORM_RATE_REQUESTS",
	},
	{
		"anonymous-rate", "requests from one address without a credential, in a second; ten seconds' worth at once", "100 a second", "shared/api/fairness",
		"429", "PLATFORM_RATE_ANONYMOUS",
	},
	{
		"failure-rate", "credentials from one address that are refused, in a second; ten seconds' worth at once. Valid ones pass", "20 a second", "shared/api/fairness",
		"429 in place of 401", "PLATFORM_RATE_FAILURES",
	},
	{
		"quota-objects", "objects of one owner of each kind: access keys, texts of revoked keys, tokens, instances, stored responses to requests with an Idempotency-Key", "200000 objects", "shared/state/redisstore",
		"429", "PLATFORM_QUOTA_OBJECTS",
	},
	{
		"quota-bytes", "size of all objects of one owner of each kind, as they are stored; a write that does not make the object larger always passes", "256Mi", "shared/state/redisstore",
		"429", "PLATFORM_QUOTA_BYTES",
	},
}
