package accesskey_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// request is a request as a client writes it.
type request struct {
	caller identity.Caller
	// verb is create, update, merge (a merge patch), patch (a JSON patch) or delete.
	verb string
	// name is the name in the URL of every verb but create.
	name string
	// body is the object or patch, in YAML or, for a patch, JSON.
	body string
}

// send handles a request as the frame does: decode, check the kind, call the verb.
func send(t *testing.T, keys *accesskey.Registry, r request) (*model.OwnedAccessKey, error) {
	t.Helper()
	ctx := context.Background()
	decode := func() (*model.OwnedAccessKey, error) {
		body, err := codec.Read(codec.YAML, []byte(r.body))
		if err != nil {
			return nil, err
		}
		object := keys.Definition.New()
		if _, err := codec.Decode(body, object, codec.Strict); err != nil {
			return nil, err
		}
		return object, keys.Definition.CheckKind(object)
	}
	patch := func(kind resource.PatchType) (*model.OwnedAccessKey, error) {
		written, err := resource.Patch(ctx, keys, resource.PatchInput{
			Caller: r.caller, Name: r.name, Type: kind, Patch: []byte(r.body), Validation: codec.Strict,
		})
		return written.Object, err
	}
	switch r.verb {
	case "create":
		object, err := decode()
		if err != nil {
			return nil, err
		}
		written, err := resource.Create(ctx, keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: r.caller, Object: object})
		return written.Object, err
	case "update":
		object, err := decode()
		if err != nil {
			return nil, err
		}
		written, err := resource.Update(ctx, keys, resource.UpdateInput[*model.OwnedAccessKey]{Caller: r.caller, Name: r.name, Object: object})
		return written.Object, err
	case "merge":
		return patch(resource.MergePatch)
	case "patch":
		return patch(resource.JSONPatch)
	case "delete":
		object, err := decode()
		if err != nil {
			return nil, err
		}
		_, err = resource.Delete(ctx, keys, resource.DeleteInput{
			Caller: r.caller, Name: r.name, UID: object.UID, ResourceVersion: object.ResourceVersion,
		})
		return nil, err
	default:
		t.Fatalf("unknown verb %q", r.verb)
		return nil, nil
	}
}

// refusal has the parts of an error that a client can use without reading its message.
func refusal(err error) (code int32, reason metav1.StatusReason, causes []string) {
	status := apierror.From(err).Status()
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			causes = append(causes, string(cause.Type)+" "+cause.Field)
		}
	}
	slices.Sort(causes)
	return status.Code, status.Reason, causes
}

// populated returns a registry with the keys that the requests of TestBadInput name.
func populated(t *testing.T) *accesskey.Registry {
	t.Helper()
	keys := accesskey.NewRegistry(state(t), func() time.Time { return born }, rand.NewChaCha8([32]byte{9}),
		func() accesskey.Limits { return accesskey.Limits{} })
	for _, r := range []request{
		{alice, "create", "", `{metadata: {name: ci, labels: {a: b}}, spec: {key: ` + brought + `, ttl: 60}}`},
		{bob, "create", "", `{metadata: {name: foreign}}`},
		{alice, "create", "", `{metadata: {name: going, finalizers: [a.b/c, a.b/d]}}`},
		{alice, "delete", "going", `{}`},
	} {
		if _, err := send(t, keys, r); err != nil {
			t.Fatalf("preparing with %s: %v", r.body, err)
		}
	}
	return keys
}

// TestBadInput sends what the specification forbids. Each refusal has a code, a reason and the fields that are wrong, and leaves
// the state as it was. The tests of shared/api/resource have the refusals that objects of every kind share.
func TestBadInput(t *testing.T) {
	const (
		badRequest = http.StatusBadRequest
		notFound   = http.StatusNotFound
		conflict   = http.StatusConflict
		tooLarge   = http.StatusRequestEntityTooLarge
		wrongMedia = http.StatusUnsupportedMediaType
		invalid422 = http.StatusUnprocessableEntity
		denied     = http.StatusForbidden
	)
	reasons := map[int32]metav1.StatusReason{
		badRequest: metav1.StatusReasonBadRequest, notFound: metav1.StatusReasonNotFound, conflict: metav1.StatusReasonConflict,
		tooLarge: metav1.StatusReasonRequestEntityTooLarge, wrongMedia: metav1.StatusReasonUnsupportedMediaType,
		invalid422: metav1.StatusReasonInvalid, denied: metav1.StatusReasonForbidden,
	}
	const (
		valueRequired  = string(metav1.CauseTypeFieldValueRequired) + " "
		valueInvalid   = string(metav1.CauseTypeFieldValueInvalid) + " "
		valueDuplicate = string(metav1.CauseTypeFieldValueDuplicate) + " "
		unsupported    = string(metav1.CauseTypeFieldValueNotSupported) + " "
		valueForbidden = string(metav1.CauseTypeForbidden) + " "
		valueTooLong   = string(metav1.CauseTypeTooLong) + " "
		wrongType      = string(metav1.CauseTypeTypeInvalid) + " "
	)
	object := func(metadata string) string { return `{metadata: {name: ci, ` + metadata + `}}` }
	long := func(n int) string { return strings.Repeat("a", n) }
	other := `{metadata: {name: other}, spec: `

	keys := populated(t)
	current, err := resource.Get(context.Background(), keys, resource.GetInput{Caller: alice, Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	before := revision(t, keys.Store)

	for _, row := range []struct {
		section  string
		sentence string
		request
		code int32
		want []string
	}{
		// Spec 2.1.
		{"Spec 2.1", "a kind with another case", request{alice, "create", "", `{kind: ownedaccesskey, metadata: {name: other}}`}, badRequest, []string{unsupported + "kind"}},
		{"Spec 2.1", "a spec that is no object", request{alice, "create", "", `{metadata: {name: other}, spec: []}`}, badRequest, []string{wrongType + "spec"}},
		{"Spec 2.1", "a metadata that is no object", request{alice, "create", "", `{metadata: other}`}, badRequest, []string{wrongType + "metadata"}},

		// Spec 2.2, the name.
		{"Spec 2.2", "a name with a blank", request{alice, "create", "", `{metadata: {name: "o r"}}`}, invalid422, []string{valueInvalid + "metadata.name"}},
		{"Spec 2.2", "a name with a slash", request{alice, "create", "", `{metadata: {name: a/b}}`}, invalid422, []string{valueInvalid + "metadata.name"}},
		{"Spec 2.2", "a name with a line break", request{alice, "create", "", `{metadata: {name: "a\nb"}}`}, invalid422, []string{valueInvalid + "metadata.name"}},
		{"Spec 2.2", "a name with a dash at its end", request{alice, "create", "", `{metadata: {name: a-}}`}, invalid422, []string{valueInvalid + "metadata.name"}},
		{"Spec 2.2", "a name of 254 characters", request{alice, "create", "", `{metadata: {name: ` + long(254) + `}}`}, invalid422, []string{valueInvalid + "metadata.name"}},
		{"Spec 2.2", "a name that is a number", request{alice, "create", "", `{metadata: {name: 5}}`}, badRequest, []string{wrongType + "metadata.name"}},
		{"ADR-0004", "also against names of others", request{alice, "create", "", `{metadata: {name: foreign}}`}, conflict, nil},

		// generateName.
		{"Spec 2.2", "a generateName beside a name is checked too", request{alice, "create", "", `{metadata: {name: other, generateName: "-"}}`}, invalid422, []string{valueInvalid + "metadata.generateName"}},
		{"Spec 2.2", "a generateName of 254 characters", request{alice, "create", "", `{metadata: {generateName: ` + long(254) + `}}`}, invalid422, []string{valueInvalid + "metadata.generateName"}},

		// namespace.
		{"Spec 2.2", "the namespace cannot be patched", request{alice, "merge", "ci", `{"metadata":{"namespace":"default"}}`}, badRequest, []string{valueInvalid + "metadata.namespace"}},

		// Fields that belong to the server.
		{"Spec 2.2", "a resourceVersion is opaque", request{alice, "update", "ci", object(`resourceVersion: "0` + current.ResourceVersion + `"`)}, conflict, nil},
		{"Spec 2.2", "a creationTimestamp that is no time", request{alice, "update", "ci", object(`creationTimestamp: yesterday`)}, badRequest, []string{wrongType + "metadata.creationTimestamp"}},

		// labels and annotations.
		{"Spec 2.2", "labels are strings", request{alice, "create", "", `{metadata: {name: other, labels: {a: 1}}}`}, badRequest, []string{wrongType + "metadata.labels[a]"}},
		{"Spec 2.2", "a label's name has a form", request{alice, "create", "", `{metadata: {name: other, labels: {"a b": c}}}`}, invalid422, []string{valueInvalid + "metadata.labels"}},
		{"Spec 2.2", "a label's value has a form", request{alice, "update", "ci", object(`labels: {a: "b c"}`)}, invalid422, []string{valueInvalid + "metadata.labels"}},
		{"Spec 2.2", "a label's value has up to 63 characters", request{alice, "merge", "ci", `{"metadata":{"labels":{"a":"` + long(64) + `"}}}`}, invalid422, []string{valueInvalid + "metadata.labels"}},
		{"Spec 2.2", "an annotation's name has a form", request{alice, "patch", "ci", `[{"op":"add","path":"/metadata/annotations/a b","value":"x"}]`}, invalid422, []string{valueInvalid + "metadata.annotations"}},
		{"Spec 2.2", "an annotation's value is a string", request{alice, "patch", "ci", `[{"op":"add","path":"/metadata/annotations/a","value":{}}]`}, badRequest, []string{wrongType + "metadata.annotations[a]"}},
		{"Spec 2.2", "annotations have up to 256 KiB in all", request{alice, "create", "", `{metadata: {name: other, annotations: {a: ` + long(128<<10) + `, b: ` + long(128<<10) + `}}}`},
			invalid422, []string{valueTooLong + "metadata.annotations"}},

		// ownerReferences.
		{"Spec 2.2", "an owner has all of its names", request{alice, "create", "", `{metadata: {name: other, ownerReferences: [{}]}}`}, invalid422, []string{
			valueRequired + "metadata.ownerReferences[0].apiVersion", valueRequired + "metadata.ownerReferences[0].kind",
			valueRequired + "metadata.ownerReferences[0].name", valueRequired + "metadata.ownerReferences[0].uid",
		}},
		{"Spec 2.2", "an owner's version has a form", request{alice, "create", "", `{metadata: {name: other, ownerReferences: [{apiVersion: a/b/c, kind: K, name: one, uid: u}]}}`},
			invalid422, []string{valueInvalid + "metadata.ownerReferences[0].apiVersion"}},
		{"Spec 2.2", "at most one managing controller", request{alice, "update", "ci", object(`ownerReferences: [{apiVersion: v1, kind: K, name: one, uid: u, controller: true}, {apiVersion: v1, kind: K, name: two, uid: v, controller: true}]`)},
			invalid422, []string{valueInvalid + "metadata.ownerReferences"}},

		// finalizers.
		{"Spec 2.2", "a finalizer has a form", request{alice, "create", "", `{metadata: {name: other, finalizers: ["a b"]}}`}, invalid422, []string{valueInvalid + "metadata.finalizers"}},
		{"Spec 2.2", "a finalizer's domain has a form", request{alice, "merge", "ci", `{"metadata":{"finalizers":["A_B/c/d"]}}`}, invalid422, []string{valueInvalid + "metadata.finalizers"}},
		{"Spec 2.2", "orphan and foregroundDeletion exclude each other", request{alice, "create", "", `{metadata: {name: other, finalizers: [orphan, foregroundDeletion]}}`}, invalid422, []string{valueInvalid + "metadata.finalizers"}},

		// Spec 2.3.
		{"Spec 2.3", "an unknown role", request{alice, "create", "", other + `{scope: {roles: [{role: king}]}}}`}, invalid422, []string{unsupported + "spec.scope.roles[0].role"}},
		{"Spec 2.3", "a role without a name", request{alice, "create", "", other + `{scope: {roles: [{}]}}}`}, invalid422, []string{valueRequired + "spec.scope.roles[0].role"}},
		{"Spec 2.3", "a role's projects are names", request{alice, "create", "", other + `{scope: {roles: [{role: agent, projects: [a b]}]}}}`}, invalid422, []string{valueInvalid + "spec.scope.roles[0].projects[0]"}},
		{"Spec 2.3", "a role's virtual clusters are names", request{alice, "create", "", other + `{scope: {roles: [{role: agent, virtualClusters: [""]}]}}}`}, invalid422, []string{valueRequired + "spec.scope.roles[0].virtualClusters[0]"}},
		{"Spec 2.3", "a project without a name", request{alice, "create", "", other + `{scope: {projects: [{}]}}}`}, invalid422, []string{valueRequired + "spec.scope.projects[0].project"}},
		{"Spec 2.3", "a project with a part of a wildcard", request{alice, "create", "", other + `{scope: {projects: [{project: a*}]}}}`}, invalid422, []string{valueInvalid + "spec.scope.projects[0].project"}},
		{"Spec 2.3", "a space without a project", request{alice, "create", "", other + `{scope: {spaces: [{space: s}]}}}`}, invalid422, []string{valueRequired + "spec.scope.spaces[0].project"}},
		{"Spec 2.3", "a virtual cluster without a name", request{alice, "create", "", other + `{scope: {virtualClusters: [{project: a}]}}}`}, invalid422, []string{valueRequired + "spec.scope.virtualClusters[0].virtualCluster"}},
		{"Spec 2.3", "a cluster without a name", request{alice, "create", "", other + `{scope: {clusters: [{}]}}}`}, invalid422, []string{valueRequired + "spec.scope.clusters[0].cluster"}},
		{"Spec 2.3", "an entry twice", request{alice, "create", "", other + `{scope: {clusters: [{cluster: c}, {cluster: c}]}}}`}, invalid422, []string{valueDuplicate + "spec.scope.clusters[1]"}},
		{"Spec 2.3", "roles that are no list", request{alice, "create", "", other + `{scope: {roles: agent}}}`}, badRequest, []string{wrongType + "spec.scope.roles"}},
		{"Spec 2.3", "wildcards that overlap", request{alice, "create", "", other + `{scope: {rules: [{resources: [{resources: ["*", pods]}]}]}}}`}, invalid422, []string{valueInvalid + "spec.scope.rules[0].resources[0].resources[1]"}},
		{"Spec 2.3", "resourceNames without resources", request{alice, "create", "", other + `{scope: {rules: [{resources: [{resourceNames: [a]}]}]}}}`}, invalid422, []string{valueRequired + "spec.scope.rules[0].resources[0].resources"}},
		{"Spec 2.3", "a wildcard inside of a URL path", request{alice, "create", "", other + `{scope: {rules: [{nonResourceURLs: ["/a/*/b"]}]}}}`}, invalid422, []string{valueInvalid + "spec.scope.rules[0].nonResourceURLs[0]"}},
		{"Spec 2.3", "a wildcard that is a part of the last step", request{alice, "create", "", other + `{scope: {rules: [{nonResourceURLs: ["/a/b*"]}]}}}`}, invalid422, []string{valueInvalid + "spec.scope.rules[0].nonResourceURLs[0]"}},
		{"Spec 2.3", "an unknown request target", request{alice, "create", "", other + `{scope: {rules: [{requestTargets: [Moon]}]}}}`}, invalid422, []string{unsupported + "spec.scope.rules[0].requestTargets[0]"}},
		{"Spec 2.3", "a rule's cluster is a name", request{alice, "create", "", other + `{scope: {rules: [{cluster: A_B}]}}}`}, invalid422, []string{valueInvalid + "spec.scope.rules[0].cluster"}},
		{"Spec 2.3", "a rule's virtual cluster is a name", request{alice, "create", "", other + `{scope: {rules: [{virtualClusters: [{name: A_B, namespace: "*"}]}]}}}`}, invalid422,
			[]string{valueInvalid + "spec.scope.rules[0].virtualClusters[0].name", valueInvalid + "spec.scope.rules[0].virtualClusters[0].namespace"}},

		// Spec 2.5.
		{"Spec 2.5", "two owners", request{alice, "create", "", other + `{user: alice, team: dev}}`}, invalid422, []string{valueInvalid + "spec.team"}},
		{"Spec 2.5", "three owners", request{alice, "create", "", other + `{user: alice, team: dev, subject: robot}}`}, invalid422, []string{valueInvalid + "spec.team", valueInvalid + "spec.subject"}},
		{"Spec 2.5", "a second owner by a patch", request{alice, "merge", "ci", `{"spec":{"subject":"robot"}}`}, invalid422, []string{valueInvalid + "spec.subject"}},
		{"ADR-0005", "a caller who is nobody has no key", request{identity.Caller{}, "create", "", other + `{}}`}, invalid422, []string{valueRequired + "spec.user"}},
		{"Spec 2.5", "an owner with a control character", request{alice, "create", "", other + `{user: "a\u0000b"}}`}, invalid422, []string{valueInvalid + "spec.user"}},
		{"ADR-0005", "an owner of blanks", request{admin, "create", "", other + `{user: "  "}}`}, invalid422, []string{valueInvalid + "spec.user"}},
		{"ADR-0005", "an owner that cannot be seen", request{admin, "create", "", other + `{user: "\u200b"}}`}, invalid422, []string{valueInvalid + "spec.user"}},
		{"Spec 2.5", "a display name with a control character", request{alice, "create", "", other + `{displayName: "a\u001bb"}}`}, invalid422, []string{valueInvalid + "spec.displayName"}},
		{"ADR-0005", "a display name that is too long", request{alice, "create", "", other + `{displayName: ` + long(257) + `}}`}, invalid422, []string{valueTooLong + "spec.displayName"}},
		{"ADR-0005", "a description that is too long", request{alice, "create", "", other + `{description: ` + long(4097) + `}}`}, invalid422, []string{valueTooLong + "spec.description"}},
		{"ADR-0005", "groups that are empty, twice or Kubernetes' own", request{admin, "create", "", other + `{groups: [a, "", a, "system:masters"]}}`}, invalid422,
			[]string{valueRequired + "spec.groups[1]", valueDuplicate + "spec.groups[2]", valueInvalid + "spec.groups[3]"}},
		{"ADR-0005", "groups that the caller is not in", request{alice, "create", "", other + `{groups: ["platform:admins"]}}`}, denied, []string{valueForbidden + "spec.groups[0]"}},
		{"Spec 2.5", "a negative ttl", request{alice, "create", "", other + `{ttl: -1}}`}, invalid422, []string{valueInvalid + "spec.ttl"}},
		{"Spec 2.5", "a negative ttl by a patch", request{alice, "patch", "ci", `[{"op":"replace","path":"/spec/ttl","value":-1}]`}, invalid422, []string{valueInvalid + "spec.ttl"}},
		{"Spec 2.5", "a ttl that is no number", request{alice, "create", "", other + `{ttl: 1h}}`}, badRequest, []string{wrongType + "spec.ttl"}},
		{"Spec 2.5", "a ttl that is not whole", request{alice, "create", "", other + `{ttl: 1.5}}`}, badRequest, []string{wrongType + "spec.ttl"}},
		{"Spec 2.5", "a ttl beyond 64 bits", request{alice, "create", "", other + `{ttl: 9223372036854775808}}`}, badRequest, []string{wrongType + "spec.ttl"}},
		{"Spec 2.5", "a switch that is no boolean", request{alice, "update", "ci", `{metadata: {name: ci}, spec: {disabled: "true"}}`}, badRequest, []string{wrongType + "spec.disabled"}},
		{"Spec 2.5", "an unknown type", request{alice, "create", "", other + `{type: Robot}}`}, invalid422, []string{unsupported + "spec.type"}},
		{"ADR-0005", "a type of the server's", request{admin, "create", "", other + `{type: Login}}`}, invalid422, []string{unsupported + "spec.type"}},
		{"Spec 2.5", "connector data", request{admin, "create", "", other + `{identity: {connectorData: c2VjcmV0}}}`}, invalid422, []string{valueForbidden + "spec.identity.connectorData"}},
		{"ADR-0005", "tokens of a login", request{admin, "create", "", other + `{oidcLogin: {idToken: a, accessToken: b, refreshToken: c}}}`}, invalid422,
			[]string{valueForbidden + "spec.oidcLogin.idToken", valueForbidden + "spec.oidcLogin.accessToken", valueForbidden + "spec.oidcLogin.refreshToken"}},
		{"ADR-0005", "login data of a caller who is no admin", request{alice, "create", "", other + `{identity: {userId: x}}}`}, denied, []string{valueForbidden + "spec.identity"}},
		{"ADR-0005", "a key of 31 characters", request{alice, "create", "", other + `{key: ` + long(31) + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key of 257 characters", request{alice, "create", "", other + `{key: ` + long(257) + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key that is not printable", request{alice, "create", "", other + `{key: "` + long(40) + `\u0001"}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key with a wrong checksum", request{alice, "create", "", other + `{key: pak_` + long(46) + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key that is in use", request{alice, "create", "", other + `{key: ` + brought + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key that is in use by another user", request{bob, "create", "", other + `{key: ` + brought + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key cannot be changed", request{alice, "update", "ci", `{metadata: {name: ci}, spec: {key: ` + long(40) + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a key cannot be patched", request{alice, "merge", "ci", `{"spec":{"key":"` + long(40) + `"}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "a copy of the key", request{alice, "create", "", other + `{key: ` + long(40) + `, description: ` + long(40) + `}}`}, invalid422, []string{valueInvalid + "spec.key"}},
		{"ADR-0005", "another user's name", request{alice, "create", "", other + `{user: bob}}`}, denied, []string{valueForbidden + "spec.user"}},
		{"ADR-0005", "a scope beyond that of the caller", request{scoped(alice), "create", "", other + `{scope: {projects: [{project: a}, {project: b}]}}}`}, denied, []string{valueForbidden + "spec.scope.projects[1]"}},
		{"ADR-0005", "a wider key than that of the caller", request{scoped(alice), "update", "ci", `{metadata: {name: ci}, spec: {disabled: true}}`}, denied, []string{valueForbidden + "spec.scope"}},

		// All mistakes at once, and names that reveal nothing.
		{"ADR-0004", "everything that is wrong is told at once", request{alice, "create", "", `{metadata: {name: A, labels: {"?": x}, finalizers: [""]}, spec: {user: a, team: b, ttl: -1, type: x, key: short, scope: {roles: [{}]}}}`},
			invalid422, []string{
				valueInvalid + "metadata.name", valueInvalid + "metadata.labels", valueInvalid + "metadata.finalizers", valueInvalid + "metadata.finalizers",
				valueInvalid + "spec.team", valueInvalid + "spec.ttl", unsupported + "spec.type", valueInvalid + "spec.key", valueRequired + "spec.scope.roles[0].role",
			}},
		{"ADR-0004", "a bad change of another user's key tells nothing", request{alice, "merge", "foreign", `{"spec":{"ttl":-1}}`}, notFound, nil},
		{"ADR-0004", "a name that none can have", request{alice, "delete", "../ci", `{}`}, notFound, nil},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			_, err := send(t, keys, row.request)
			if err == nil {
				t.Fatalf("accepted")
			}
			code, reason, causes := refusal(err)
			want := reasons[row.code]
			if row.code == conflict && row.verb == "create" && !strings.Contains(row.body, "key:") {
				want = metav1.StatusReasonAlreadyExists
			}
			if code != row.code || reason != want {
				t.Errorf("got %d %s, want %d %s: %v", code, reason, row.code, want, err)
			}
			same(t, causes, row.want)
			if after := revision(t, keys.Store); after != before {
				t.Errorf("the revision went from %d to %d", before, after)
			}
		})
	}
	if now, err := resource.Get(context.Background(), keys, resource.GetInput{Caller: alice, Name: "ci"}); err != nil || fmt.Sprint(now) != fmt.Sprint(current) {
		t.Errorf("the key has changed: %v, %v", now, err)
	}
}

// Values at a bound are accepted. Source: Spec 2.2, 2.5; ADR-0004, ADR-0005.
func TestGoodInput(t *testing.T) {
	keys := populated(t)
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, row := range []struct {
		section  string
		sentence string
		request
	}{
		{"Spec 2.2", "neither name nor generateName", request{alice, "create", "", `{metadata: {}}`}},
		{"Spec 2.2", "a name of 253 characters", request{alice, "create", "", `{metadata: {name: ` + long(253) + `}}`}},
		{"Spec 2.2", "a generateName that is truncated", request{alice, "create", "", `{metadata: {generateName: ` + long(253) + `}}`}},
		{"Spec 2.2", "annotations of 256 KiB", request{alice, "create", "", `{metadata: {name: big, annotations: {a: ` + long(256<<10-1) + `}}}`}},
		{"Spec 2.2", "one managing controller", request{alice, "create", "", `{metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: K, name: one, uid: u, controller: true}, {apiVersion: v1, kind: K, name: two, uid: v}]}}`}},
		{"Spec 2.2", "pending deletion: an entry is removed", request{alice, "merge", "going", `{"metadata":{"finalizers":["a.b/d"]}}`}},
		{"Spec 2.5", "the longest ttl", request{alice, "update", "ci", `{metadata: {name: ci}, spec: {ttl: 9223372036854775807}}`}},
		{"ADR-0005", "the key is repeated", request{alice, "update", "ci", `{metadata: {name: ci}, spec: {key: ` + brought + `}}`}},
		{"ADR-0005", "a key of 32 characters", request{alice, "create", "", `{metadata: {name: short}, spec: {key: 8Kx20wQm57tLp93VrNc4Hd6ZyB1sFgJu}}`}},
		{"ADR-0005", "a key of 256 characters", request{alice, "create", "", `{metadata: {name: long}, spec: {key: 8Kx20wQm57tLp93VrNc4Hd6ZyB1sFgJu` + long(224) + `}}`}},
		{"ADR-0004", "a JSON patch of 10,000 operations", request{alice, "patch", "ci", `[` + strings.Repeat(`{"op":"test","path":"/kind","value":"OwnedAccessKey"},`, 9_999) + `{"op":"add","path":"/metadata/annotations/x","value":"y"}]`}},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			before := revision(t, keys.Store)
			object, err := send(t, keys, row.request)
			if err != nil {
				t.Fatal(err)
			}
			if row.verb == "create" && (object.Spec.Key == "" || revision(t, keys.Store) != before+1) {
				t.Errorf("the answer has no key, or the state has not moved by one")
			}
			if row.verb != "create" && object.Spec.Key != "" {
				t.Errorf("the answer shows the key")
			}
		})
	}
}
