package contract

import "regexp"

// knownDifference explains parts of answers that differ. Patterns match the whole text; an empty one matches
// everything.
type knownDifference struct {
	// about says in one sentence what each side does, reason why ours stays.
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
		about:  "A 400 names the fields in details.causes; a kube-apiserver's has no details.",
		reason: "Spec 7: what is wrong is said per field. A client that reads causes finds them in the usual place.",
		part:   `\.details\.causes.*`, ours: `[^-].*`, theirs: "-",
	},
	{
		about:  "Errors of the protocol (405, 406, 415) have empty details; a kube-apiserver's have none.",
		reason: "Clients read both alike.",
		part:   `\.details`, ours: `\{\}`, theirs: "-",
	},
	{
		about:  "Warnings about unknown fields come with successes; a kube-apiserver sends them with refusals, too.",
		reason: "What a refused object would have been warned of is said when it is accepted.",
		part:   "warnings", ours: "0",
	},
	{
		about:  "A resourceVersion that is yet to come is 504 with Retry-After on every list; a kube-apiserver sends none from its storage.",
		reason: "Its watch cache answers with Retry-After as ours does.",
		where:  `resource versions/.*resourceVersion=999999.*`, part: `header Retry-After|\.details\.retryAfterSeconds`,
	},
	{
		about:  "An unknown path is 404 with a Status, and 404 in plain text at a kube-apiserver's custom resources.",
		reason: "Every answer of ours can be parsed.",
		where:  "methods and paths/.*", part: `body|header .*|\..*`, ours: ".*",
	},
	// Create.
	{
		about:  "An object without name and generateName gets a name; a kube-apiserver refuses it with 422.",
		reason: "ADR-0004: clients rely on it.",
		where:  `(?:create|bad bodies)/.* POST .*`, part: "status", ours: "201 ", theirs: "422 Invalid",
	},
	{
		about:  "resourceVersion in a new object is ignored; a kube-apiserver answers 500.",
		reason: "A copied manifest is no failure of the server.",
		where:  `create/.*`, body: `.*"resourceVersion":"5".*`, part: "status", ours: "201 ", theirs: "500 .*",
	},
	{
		about:  "metadata.namespace on a resource without namespaces is refused; a kube-apiserver drops it.",
		reason: "Spec 2.2 (namespace).",
		body:   `.*"namespace":.*`, part: "status", ours: "422 Invalid|400 BadRequest", theirs: "20[01] ",
	},
	{
		about:  "The body null is 400; a kube-apiserver takes it for an object without a name, 422.",
		reason: "It holds no object.",
		where:  "bad bodies/.*", body: "null", part: "status", ours: "400 BadRequest", theirs: "422 Invalid",
	},
	// Get and list.
	{
		about:  "resourceVersion of a get is checked for its form and not waited for; a kube-apiserver answers 504 for one that is yet to come.",
		reason: "An object is always read as it is now. Which revision the resource has would cost another round trip.",
		where:  `options/.* GET /a\?resourceVersion=999999`, part: "status", ours: "200 ", theirs: "504 Timeout",
	},
	{
		about:  "A negative limit or timeoutSeconds is 400; a kube-apiserver takes it for none.",
		reason: "A number that means nothing is a mistake of the client.",
		where:  `(?:list|watch)/.*(?:limit|timeoutSeconds)=-1`, part: "status", ours: "400 BadRequest", theirs: "200 ",
	},
	{
		about:  "resourceVersion with a leading zero is 400; a kube-apiserver reads it as a number.",
		reason: "API machinery calls such a version malformed.",
		where:  `resource versions/.*=01`, part: "status", ours: "400 BadRequest", theirs: "200 ",
	},
	{
		about:  "A list of the past (resourceVersionMatch=Exact, or resourceVersion with limit) is 410 or of the present; a kube-apiserver reads history.",
		reason: "ADR-0004: the state keeps no history of lists. 410 is what a kube-apiserver says after compaction, and clients start over.",
		where:  `resource versions/.*(?:resourceVersion=1&resourceVersionMatch=Exact|resourceVersion=1&limit=1)`, part: `status|\.items.*|\.metadata.*`,
	},
	{
		about:  "Later pages of a list show the present; a kube-apiserver shows the revision of the first page.",
		reason: "ADR-0004: all pages carry the revision of the first, so that a watch from there misses nothing.",
		where:  `list/.*continue=.*`, part: `\.items.*|\.metadata\.remainingItemCount`,
	},
	// Update and patch.
	{
		about:  "PUT and PATCH with a resourceVersion that is no number are 409; a kube-apiserver answers 500.",
		reason: "It is not the stored one, and no failure of the server.",
		body:   `.*"resourceVersion":"x".*`, part: "status", ours: "409 Conflict", theirs: "500 .*",
	},
	{
		about:  "PUT without a name in the object takes the one of the URL, as does a PATCH that removes it; a kube-apiserver answers 400 or 422.",
		reason: "There is nothing that it could contradict.",
		where:  `(?:update|merge patch|json patch)/.*\?`, body: `\{\}|.*"name":(?:""|null).*|\{"metadata":null\}|.*"path":"".*`, part: "status", ours: "200 ", theirs: "4.*",
	},
	{
		about:  "Another creationTimestamp is 422; a kube-apiserver keeps the stored one silently.",
		reason: "Spec 2.2: clients may not set it.",
		body:   `.*"creationTimestamp":"2001.*`, part: "status", ours: "422 Invalid", theirs: "200 ",
	},
	{
		about:  "PATCH to another uid is 409, as PUT is on both sides; a kube-apiserver answers 422.",
		reason: "A uid is a precondition of every write.",
		where:  `.* PATCH .*`, body: `.*uid.*`, part: "status", ours: "409 Conflict", theirs: "422 Invalid",
	},
	{
		about:  "A patched object that cannot be read, is of another kind or breaks fieldValidation=Strict is 400 with the field; a kube-apiserver answers 422 with a cause for \"patch\".",
		reason: "The same fault in a PUT is 400 on both sides, and the causes name the real field.",
		where:  `(?:merge patch|field validation|random \d)/.* PATCH .*`, part: "status", ours: "400 BadRequest", theirs: "422 Invalid",
	},
	{
		about:  "A patched value of the wrong type has no cause \"patch\".",
		reason: "See above.",
		where:  `json patch/.*`, part: `\.details\.causes.*`, ours: "-",
	},
	{
		about:  "A JSON patch with an operation that RFC 6902 does not define is 400 before anything is applied; a kube-apiserver answers 422 when it comes to it, or takes it.",
		reason: "The document is wrong, whatever the object holds.",
		where:  `json patch/.*`, part: "status", ours: "400 BadRequest", theirs: "422 Invalid|200 ",
	},
	{
		about:  "A JSON patch that replaces what is not there is 422; a kube-apiserver adds it.",
		reason: "RFC 6902, section 4.3.",
		where:  `json patch/.*`, body: `.*"replace".*`, part: "status", ours: "422 Invalid", theirs: "200 ",
	},
	{
		about:  "A JSON patch that adds an entry to absent labels or annotations makes the map; a kube-apiserver answers 422.",
		reason: "ADR-0004: the documented example does this.",
		where:  `json patch/.*`, body: `.*"add","path":"/metadata/.*`, part: "status", ours: "200 ", theirs: "422 Invalid",
	},
	{
		about:  "A patch of the status changes nothing and writes nothing; a kube-apiserver notes the manager of the fields, and that is a write.",
		reason: "The status is derived at each read.",
		where:  `merge patch/.*`, body: `\{"status".*`, part: `\.metadata\.resourceVersion`,
	},
	// Delete.
	{
		about:  "A negative grace period is 422; a kube-apiserver takes it for one second.",
		reason: "ADR-0009: its own documentation forbids it.",
		where:  `delete options/.*`, body: `|.*"gracePeriodSeconds":-.*`, part: "status", ours: "422 Invalid", theirs: "20[02] ",
	},
	{
		about:  "An empty precondition is none; at a kube-apiserver it never holds.",
		reason: "Clients in Go leave out what is empty.",
		where:  `delete options/.*|random .* DELETE .*`, body: `.*"preconditions":\{"(?:uid|resourceVersion)":"(?:"|\{).*`, part: "status", theirs: "409 Conflict",
	},
	{
		about:  "details.kind of a conflict is the resource, as for every conflict; a kube-apiserver gives the kind where a precondition of a delete fails.",
		reason: "One form for one error.",
		where:  `.* DELETE .*`, part: `\.details\.kind`, ours: "ownedaccesskeys", theirs: "OwnedAccessKey",
	},
	{
		about:  "The answer to the update that removes an object carries the revision of the removal; a kube-apiserver's that of the update before it.",
		reason: "Spec 2.2: every write moves the revision, and the watch event has that one.",
		where:  `(?:finalizers|random \d)/.*`, part: `\.metadata\.resourceVersion`,
	},
	// Watch and apply.
	{
		about:  "resourceVersion of a watch that is no number is 400; a kube-apiserver answers 500.",
		reason: "The mistake is the client's. A list says 400 on both sides.",
		where:  `watch/.*resourceVersion=(?:x|-1)`, part: "status", ours: "400 BadRequest", theirs: "500 .*",
	},
	{
		about:  "A watch that allows bookmarks ends with one; a kube-apiserver's storage sends none there.",
		reason: "The watch cache in front of that storage sends its last one two seconds before the end. Ours misses nothing in between.",
		where:  `watch/.*allowWatchBookmarks=.*`, part: `#|\[[23]\]\..*`, theirs: "-|[23]",
	},
	{
		about:  "More than one YAML document in an apply is 400; a kube-apiserver applies the first and drops the rest.",
		reason: "ADR-0008: nothing that was sent is lost silently.",
		where:  "apply/.*", body: `.*\n---\n.*`, part: "status", ours: "400 BadRequest", theirs: "200 ",
	},
	{
		about:  "Unknown fields of an apply are dropped, warned of or refused, as fieldValidation says; a kube-apiserver drops them silently without a schema, and with one answers 500.",
		reason: "ADR-0008: fieldValidation is there to say it, as in every other write.",
		where:  "apply/.*", body: `.*"nonsense":.*`, part: "status|warnings", ours: "400 BadRequest|1", theirs: "200 |0",
	},
	// Methods and paths.
	{
		about:  "Methods that the path does not have are 405 with Allow; a kube-apiserver's custom resources answer 400, ignore the name of a POST and serve HEAD as GET.",
		reason: "Built-in resources answer 405 as well. The documents that verifiers keep (keys, discovery of OpenID Connect, deny list) have HEAD.",
		where:  `methods and paths/\d+ (?:PUT|PATCH|POST|HEAD|OPTIONS|TRACE|NONSENSE) .*`, part: "status", ours: "405 (?:MethodNotAllowed)?",
	},
	{
		about:  "A path that ends in a slash is 404; a kube-apiserver cuts the slash off.",
		reason: "One path for one thing.",
		where:  `methods and paths/.*/\?`, part: "status", ours: "404 NotFound", theirs: "200 ",
	},
}
