package contract

import "regexp"

// knownDifference explains parts of answers that differ. Patterns match the whole text; an empty one matches
// everything.
type knownDifference struct {
	// about says what each side does, and reason why the difference stays.
	about, reason string
	// where matches "scenario/step METHOD path?query", body the request's body and part the part of the answer.
	where, body, part, ours, theirs string
}

func (k knownDifference) explains(d difference, st step) bool {
	for _, pair := range [][2]string{
		{k.where, d.where}, {k.body, st.body}, {k.part, d.part}, {k.ours, d.ours}, {k.theirs, d.theirs},
	} {
		if pair[0] != "" && !regexp.MustCompile(`(?s)^(?:`+pair[0]+`)$`).MatchString(pair[1]) {
			return false
		}
	}
	return true
}

// knownDifferences is the list that docs/conformance.md shows.
var knownDifferences = []knownDifference{
	// Errors.
	{
		about:  "A 400 names the wrong fields in details.causes. A 400 of a kube-apiserver has no details.",
		reason: "Spec 7: errors name each wrong field. Clients that read causes find them in the usual place.",
		part:   `\.details\.causes.*`, ours: `[^-].*`, theirs: "-",
	},
	{
		about:  "Errors of the protocol (405, 406, 415) have empty details. Those of a kube-apiserver have no details.",
		reason: "Clients treat both in the same way.",
		part:   `\.details`, ours: `\{\}`, theirs: "-",
	},
	{
		about:  "Only successful responses have warnings about unknown fields. A kube-apiserver also sends them with refusals.",
		reason: "The client gets these warnings when the object is accepted.",
		part:   "warnings", ours: "0",
	},
	{
		about:  "A list with a resourceVersion in the future is 504 with Retry-After. The storage of a kube-apiserver sends no Retry-After.",
		reason: "The watch cache of a kube-apiserver sends Retry-After, too.",
		where:  `resource versions/.*resourceVersion=999999.*`, part: `header Retry-After|\.details\.retryAfterSeconds`,
	},
	{
		about:  "An unknown path is 404 with a Status. For custom resources, a kube-apiserver sends 404 in plain text.",
		reason: "Clients can parse every response.",
		where:  "methods and paths/.*", part: `body|header .*|\..*`, ours: ".*",
	},
	// Create.
	{
		about:  "An object without name and generateName gets a name. A kube-apiserver refuses it with 422.",
		reason: "ADR-0004: clients rely on it.",
		where:  `(?:create|bad bodies)/.* POST .*`, part: "status", ours: "201 ", theirs: "422 Invalid",
	},
	{
		about:  "resourceVersion in a new object is ignored. A kube-apiserver responds with 500.",
		reason: "A manifest copied from an existing object is not a failure of the server.",
		where:  `create/.*`, body: `.*"resourceVersion":"5".*`, part: "status", ours: "201 ", theirs: "500 .*",
	},
	{
		about:  "metadata.namespace on a cluster-scoped resource is refused. A kube-apiserver drops it.",
		reason: "Spec 2.2 (namespace).",
		body:   `.*"namespace":.*`, part: "status", ours: "422 Invalid|400 BadRequest", theirs: "20[01] ",
	},
	{
		about:  "The body null is 400. A kube-apiserver treats it as an object without a name and responds with 422.",
		reason: "The body contains no object.",
		where:  "bad bodies/.*", body: "null", part: "status", ours: "400 BadRequest", theirs: "422 Invalid",
	},
	{
		about:  "A new finalizer without a domain causes a warning. A kube-apiserver sends none for custom resources.",
		reason: "It warns in the same way for its own kinds.",
		where:  `create/.*`, body: `.*"finalizers":\["hold"\].*`, part: "warnings", ours: "1", theirs: "0",
	},
	{
		about:  "The row of a new access key, in a response as a Table, has the whole object. The row of a kube-apiserver has the object's metadata.",
		reason: "ADR-0004: this response is the only one that has the bearer token.",
		where:  `get forms/.* POST .*`, part: `\.rows\[0\]\.object\..*`,
	},
	{
		about:  "A new access key is not sent as metadata alone: 406. A kube-apiserver sends it.",
		reason: "The bearer token would be lost. Nothing is created.",
		where:  `get forms/.* POST .*`, part: "status", ours: "406 NotAcceptable", theirs: "201 ",
	},
	// Get and list.
	{
		about:  "The server checks only the form of the resourceVersion of a get, and does not wait for it. A kube-apiserver responds with 504 if it is in the future.",
		reason: "A get always returns the current object. Reading the revision of the resource would cost another round trip.",
		where:  `options/.* GET /a\?resourceVersion=999999`, part: "status", ours: "200 ", theirs: "504 Timeout",
	},
	{
		about:  "A negative limit or timeoutSeconds is 400. A kube-apiserver treats it as absent.",
		reason: "A negative number has no meaning here: it is a mistake of the client.",
		where:  `(?:list|watch)/.*(?:limit|timeoutSeconds)=-1`, part: "status", ours: "400 BadRequest", theirs: "200 ",
	},
	{
		about:  "resourceVersion with a leading zero is 400. A kube-apiserver reads it as a number.",
		reason: "API machinery defines such a version as malformed.",
		where:  `resource versions/.*=01`, part: "status", ours: "400 BadRequest", theirs: "200 ",
	},
	{
		about:  "A list of the past (resourceVersionMatch=Exact, or resourceVersion with limit) is 410 or shows the present. A kube-apiserver reads history.",
		reason: "ADR-0004: the state keeps no history of lists. A kube-apiserver responds with 410 after compaction, and clients start over.",
		where:  `resource versions/.*(?:resourceVersion=1&resourceVersionMatch=Exact|resourceVersion=1&limit=1)`, part: `status|\.items.*|\.metadata.*`,
	},
	{
		about:  "Later pages of a list show the present. A kube-apiserver shows the revision of the first page.",
		reason: "ADR-0004: all pages have the revision of the first page, so that a watch from there misses nothing.",
		where:  `list/.*continue=.*`, part: `\.items.*|\.metadata\.remainingItemCount`,
	},
	// Update and patch.
	{
		about:  "PUT and PATCH with a resourceVersion that is not a number are 409. A kube-apiserver responds with 500.",
		reason: "It differs from the stored one, and it is not a failure of the server.",
		body:   `.*"resourceVersion":"x".*`, part: "status", ours: "409 Conflict", theirs: "500 .*",
	},
	{
		about:  "PUT without a name in the object uses the name in the URL, and so does a PATCH that removes the name. A kube-apiserver responds with 400 or 422.",
		reason: "An absent name cannot contradict the URL.",
		where:  `(?:update|merge patch|json patch)/.*\?`, body: `\{\}|.*"name":(?:""|null).*|\{"metadata":null\}|.*"path":"".*`, part: "status", ours: "200 ", theirs: "4.*",
	},
	{
		about:  "A changed creationTimestamp is 422. A kube-apiserver silently keeps the stored one.",
		reason: "Spec 2.2: clients must not set it.",
		body:   `.*"creationTimestamp":"2001.*`, part: "status", ours: "422 Invalid", theirs: "200 ",
	},
	{
		about:  "A PATCH that changes the uid is 409, as a PUT is on both sides. A kube-apiserver responds with 422.",
		reason: "A uid is a precondition of every write.",
		where:  `.* PATCH .*`, body: `.*uid.*`, part: "status", ours: "409 Conflict", theirs: "422 Invalid",
	},
	{
		about:  "A patched object that cannot be read, is of another kind or breaks fieldValidation=Strict is 400 with the field. A kube-apiserver responds with 422 and a cause for \"patch\".",
		reason: "The same mistake in a PUT is 400 on both sides, and the causes name the actual field.",
		where:  `(?:merge patch|field validation|random \d)/.* PATCH .*`, part: "status", ours: "400 BadRequest", theirs: "422 Invalid",
	},
	{
		about:  "A patched value of the wrong type has no cause \"patch\". A kube-apiserver sends this cause.",
		reason: "The same as in the row above.",
		where:  `json patch/.*`, part: `\.details\.causes.*`, ours: "-",
	},
	{
		about:  "A JSON patch with an operation that RFC 6902 does not define is 400 before anything is applied. A kube-apiserver responds with 422 when it reaches the operation, or accepts it.",
		reason: "The patch is wrong, whatever the object contains.",
		where:  `json patch/.*`, part: "status", ours: "400 BadRequest", theirs: "422 Invalid|200 ",
	},
	{
		about:  "A JSON patch that replaces an absent value is 422. A kube-apiserver adds the value.",
		reason: "RFC 6902, section 4.3.",
		where:  `json patch/.*`, body: `.*"replace".*`, part: "status", ours: "422 Invalid", theirs: "200 ",
	},
	{
		about:  "A JSON patch that adds an entry to absent labels or annotations creates the map. A kube-apiserver responds with 422.",
		reason: "ADR-0004: the documented example does this.",
		where:  `json patch/.*`, body: `.*"add","path":"/metadata/.*`, part: "status", ours: "200 ", theirs: "422 Invalid",
	},
	{
		about:  "A patch of the status changes nothing and writes nothing. A kube-apiserver records the manager of the fields, which is a write.",
		reason: "The status is computed at each read.",
		where:  `merge patch/.*`, body: `\{"status".*`, part: `\.metadata\.resourceVersion`,
	},
	// Delete.
	{
		about:  "A negative grace period is 422. A kube-apiserver treats it as one second.",
		reason: "ADR-0009: the documentation of Kubernetes forbids it.",
		where:  `delete options/.*`, body: `|.*"gracePeriodSeconds":-.*`, part: "status", ours: "422 Invalid", theirs: "20[02] ",
	},
	{
		about:  "An empty precondition is treated as absent. At a kube-apiserver it never holds.",
		reason: "Go clients omit empty fields.",
		where:  `delete options/.*|random .* DELETE .*`, body: `.*"preconditions":\{"(?:uid|resourceVersion)":"(?:"|\{).*`, part: "status", theirs: "409 Conflict",
	},
	{
		about:  "details.kind of every conflict is the resource. A kube-apiserver gives the kind if a precondition of a delete fails.",
		reason: "The same error always has the same form.",
		where:  `.* DELETE .*`, part: `\.details\.kind`, ours: "ownedaccesskeys", theirs: "OwnedAccessKey",
	},
	{
		about:  "The response to an update that removes the object has the revision of the removal. The response of a kube-apiserver has the revision of the update before the removal.",
		reason: "Spec 2.2: every write increases the revision, and the watch event has the revision of the removal.",
		where:  `(?:finalizers|random \d)/.*`, part: `\.metadata\.resourceVersion`,
	},
	// Watch and apply.
	{
		about:  "A watch with a resourceVersion that is not a number is 400. A kube-apiserver responds with 500.",
		reason: "It is a mistake of the client. A list is 400 on both sides.",
		where:  `watch/.*resourceVersion=(?:x|-1)`, part: "status", ours: "400 BadRequest", theirs: "500 .*",
	},
	{
		about:  "A watch that allows bookmarks ends with one. The storage of a kube-apiserver sends no bookmark there.",
		reason: "The watch cache in front of that storage sends its last bookmark two seconds before the end. A bookmark at the end misses nothing in between.",
		where:  `watch/.*allowWatchBookmarks=.*`, part: `#|\[[23]\]\..*`, theirs: "-|[23]",
	},
	{
		about:  "More than one YAML document in an apply is 400. A kube-apiserver applies the first one and drops the rest.",
		reason: "ADR-0008: nothing that a client sends is lost silently.",
		where:  "apply/.*", body: `.*\n---\n.*`, part: "status", ours: "400 BadRequest", theirs: "200 ",
	},
	{
		about:  "fieldValidation decides whether unknown fields of an apply are dropped, cause a warning or are refused. A kube-apiserver drops them silently without a schema, and responds with 500 with one.",
		reason: "ADR-0008: fieldValidation decides this in every other write, too.",
		where:  "apply/.*", body: `.*"nonsense":.*`, part: "status|warnings", ours: "400 BadRequest|1", theirs: "200 |0",
	},
	// Methods and paths.
	{
		about:  "The deprecated path of a watch, below /watch/, is there for lists. Below it, the path of one object is 404. A kube-apiserver watches that object.",
		reason: "The field selector metadata.name does the same. Each path is a route of every gateway, and a stack of AWS CloudFormation has at most 500 resources.",
		where:  `watch/.*/watch/ownedaccesskeys/a\?.*`, part: "status", ours: "404 NotFound", theirs: "200 ",
	},
	{
		about:  "Methods that the path does not have are 405 with Allow. For custom resources, a kube-apiserver responds with 400, ignores the name of a POST and serves HEAD as GET.",
		reason: "Built-in resources of a kube-apiserver are 405 as well. The documents that verifiers keep (keys, discovery of OpenID Connect, deny list) have HEAD.",
		where:  `methods and paths/\d+ (?:PUT|PATCH|POST|HEAD|OPTIONS|TRACE|NONSENSE) .*`, part: "status", ours: "405 (?:MethodNotAllowed)?",
	},
	{
		about:  "A path of an object or a list that ends in a slash is 404. A kube-apiserver removes the slash. Documents of discovery have both paths on both sides.",
		reason: "Gateways send each path to its function, and know it without the slash.",
		where:  `methods and paths/.*/\?`, part: "status", ours: "404 NotFound", theirs: "200 ",
	},
}
