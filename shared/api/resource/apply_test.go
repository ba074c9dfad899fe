package resource_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// applying is an apply to the key ci, by the manager ops unless it says otherwise.
type applying struct {
	manager, name string
	// metadata and spec are the fields in JSON, without braces.
	metadata, spec string
	// document replaces what is made of them.
	document   string
	force      bool
	dryRun     bool
	validation codec.Strictness
}

func (a applying) input() resource.PatchInput {
	if a.manager == "" {
		a.manager = "ops"
	}
	if a.name == "" {
		a.name = "ci"
	}
	if a.document == "" {
		metadata := fmt.Sprintf(`"name":%q`, a.name)
		if a.metadata != "" {
			metadata += "," + a.metadata
		}
		if a.spec != "" {
			a.spec = `,"spec":{` + a.spec + `}`
		}
		a.document = fmt.Sprintf(`{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{%s}%s}`, metadata, a.spec)
	}
	return resource.PatchInput{
		Caller: admin, Name: a.name, Type: resource.ApplyPatch, Patch: []byte(a.document),
		Manager: a.manager, Force: a.force, DryRun: a.dryRun, Validation: a.validation,
	}
}

func apply(t testing.TB, r *registry, a applying) (*key, error) {
	t.Helper()
	written, err := resource.Patch(t.Context(), r, a.input())
	return written.Object, err
}

func mustApply(t testing.TB, r *registry, a applying) *key {
	t.Helper()
	object, err := apply(t, r, a)
	if err != nil {
		t.Fatalf("applying %q %q as %q: %v", a.metadata, a.spec, a.manager, err)
	}
	return object
}

// owners are the entries of an object, each as "manager operation fields".
func owners(object *key) string {
	lines := make([]string, 0, len(object.ManagedFields))
	for _, entry := range object.ManagedFields {
		lines = append(lines, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.FieldsV1.GetRawString()))
	}
	return strings.Join(lines, "\n")
}

// Spec 2.2, ADR-0008: what an apply does to a key that ops has applied, and user has patched.
func TestApply(t *testing.T) {
	t.Parallel()
	conflictOn := func(fields ...string) refusal {
		return refusal{code: 409, reason: metav1.StatusReasonConflict, fields: fields}
	}
	const first = `"displayName":"one","ttl":60`
	for _, row := range []struct {
		about   string
		given   applying
		wrong   refusal
		check   func(*key) bool
		written bool
	}{
		{"the same again writes nothing", applying{metadata: `"labels":{"a":"b"}`, spec: first}, refusal{}, nil, false},
		{"a status is not applied", applying{document: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey",
			"metadata":{"name":"ci","labels":{"a":"b"}},"spec":{` + first + `},"status":{"lastActivity":"2020-01-01T00:00:00Z"}}`}, refusal{},
			func(k *key) bool { return k.Status.LastActivity == nil && !strings.Contains(owners(k), "status") }, false},
		{"a value is changed", applying{metadata: `"labels":{"a":"b"}`, spec: `"displayName":"two","ttl":60`}, refusal{},
			func(k *key) bool { return k.Spec.DisplayName == "two" && k.Generation == 3 }, true},
		{"a field that is no longer applied goes", applying{spec: `"displayName":"one"`}, refusal{},
			func(k *key) bool { return k.Spec.TTLSeconds == 0 && k.Labels == nil && k.Spec.Description == "mine" }, true},
		{"the empty set removes all that was owned", applying{}, refusal{}, func(k *key) bool {
			return k.Spec.DisplayName == "" && k.Spec.TTLSeconds == 0 && k.Labels == nil && k.Spec.Description == "mine" &&
				!strings.Contains(owners(k), "ops")
		}, true},
		{"a field of another's is in conflict", applying{spec: first + `,"description":"theirs"`}, conflictOn(".spec.description"), nil, false},
		{"with the value that it has, it is shared", applying{metadata: `"labels":{"a":"b"}`, spec: first + `,"description":"mine"`}, refusal{},
			func(k *key) bool {
				return strings.Count(owners(k), "f:description") == 2
			}, true},
		{"force takes it over", applying{metadata: `"labels":{"a":"b"}`, spec: first + `,"description":"theirs"`, force: true}, refusal{},
			func(k *key) bool {
				return k.Spec.Description == "theirs" && strings.Count(owners(k), "f:description") == 1 && !strings.Contains(owners(k), "user Update")
			}, true},
		{"another manager's apply, in conflict with two", applying{manager: "dev", spec: `"displayName":"x","description":"y"`},
			conflictOn(".spec.displayName", ".spec.description"), nil, false},
		{"another manager's own fields", applying{manager: "dev", metadata: `"annotations":{"x":"y"}`}, refusal{},
			func(k *key) bool { return k.Annotations["x"] == "y" && k.Spec.DisplayName == "one" }, true},
		{"a dry run", applying{spec: `"displayName":"two"`, dryRun: true}, refusal{}, func(k *key) bool { return k.Spec.DisplayName == "two" }, false},
		{"the stored version", applying{metadata: `"resourceVersion":"3"`, spec: `"displayName":"two"`}, refusal{}, nil, true},
		{"a stale version", applying{metadata: `"resourceVersion":"2"`, spec: `"displayName":"two"`}, conflict, nil, false},
		{"another uid", applying{metadata: `"uid":"other"`, spec: first}, conflict, nil, false},
		{"a bad value", applying{spec: `"ttl":-1`}, invalid("spec.ttl"), nil, false},
		{"a value of a wrong type", applying{spec: `"ttl":"soon"`}, refusal{400, "BadRequest", []string{"spec.ttl"}}, nil, false},
		{"an unknown field, ignored", applying{spec: `"displayname":"x"`, validation: codec.Ignore}, refusal{},
			func(k *key) bool { return !strings.Contains(owners(k), "displayname") }, true},
		{"an unknown field, refused", applying{spec: `"displayname":"x","scope":{"project":[]}`, validation: codec.Strict},
			refusal{400, "BadRequest", []string{"spec.displayname", "spec.scope.project"}}, nil, false},
		{"a field that is there twice, refused", applying{spec: `"ttl":1,"ttl":2`, validation: codec.Strict},
			refusal{400, "BadRequest", []string{"spec.ttl"}}, nil, false},
		{"a finalizer that is there twice", applying{metadata: `"finalizers":["a.example/x","a.example/x"]`}, badRequest, nil, false},
		{"managedFields", applying{metadata: `"managedFields":[{}]`, spec: first}, badFields("metadata.managedFields"), nil, false},
		{"empty managedFields", applying{metadata: `"managedFields":[]`, spec: first}, badFields("metadata.managedFields"), nil, false},
		{"two documents", applying{document: "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\n---\nkind: OwnedAccessKey\n"}, badRequest, nil, false},
		{"no document", applying{document: "# nothing\n"}, badRequest, nil, false},
		{"a list", applying{document: "- a\n"}, badRequest, nil, false},
		{"no YAML", applying{document: "a: b: c"}, badRequest, nil, false},
		{"no kind", applying{document: `{"apiVersion":"management.platform.sh/v1","metadata":{"name":"ci"}}`}, badFields("kind"), nil, false},
		{"neither kind nor version", applying{document: `{}`}, badFields("apiVersion", "kind"), nil, false},
		{"no version", applying{document: `{"kind":"OwnedAccessKey","metadata":{"name":"ci"}}`}, badFields("apiVersion"), nil, false},
		{"another kind", applying{document: `{"apiVersion":"management.platform.sh/v1","kind":"Self","metadata":{"name":"ci"}}`}, badFields("kind"), nil, false},
		{"another version", applying{document: `{"apiVersion":"management.platform.sh/v2","kind":"OwnedAccessKey","metadata":{"name":"ci"}}`}, badFields("apiVersion"), nil, false},
		{"another name", applying{document: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"other"}}`}, badFields("metadata.name"), nil, false},
		{"no name: that of the URL", applying{document: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"labels":{"a":"b"}},"spec":{` + first + `}}`},
			refusal{}, nil, false},
		{"another namespace", applying{metadata: `"namespace":"p-a"`}, badFields("metadata.namespace"), nil, false},
		{"a null is an absent value", applying{metadata: `"labels":{"a":"b"}`, spec: `"displayName":"one","ttl":null`}, refusal{},
			func(k *key) bool { return k.Spec.TTLSeconds == 0 }, true},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			mustApply(t, r, applying{metadata: `"labels":{"a":"b"}`, spec: first})
			if _, err := resource.Patch(t.Context(), r, resource.PatchInput{
				Caller: admin, Name: "ci", Type: resource.MergePatch, Patch: []byte(`{"spec":{"description":"mine"}}`), Manager: "user",
			}); err != nil {
				t.Fatal(err)
			}
			before := get(t, r, "ci")
			got, err := apply(t, r, row.given)
			expect(t, err, row.wrong)
			if err == nil && row.check != nil && !row.check(got) {
				t.Errorf("the answer is %+v, owned by\n%s", got, owners(got))
			}
			after := get(t, r, "ci")
			if (after.ResourceVersion != before.ResourceVersion) != row.written {
				t.Errorf("resourceVersion %s after %s, want a write: %v", after.ResourceVersion, before.ResourceVersion, row.written)
			}
			if !row.written && fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("stored\n%+v\nbefore\n%+v", after, before)
			}
		})
	}
}

// The message and the causes of a conflict are those that kubectl prints. Source: ADR-0008.
func TestApplyConflict(t *testing.T) {
	t.Parallel()
	r := open(t)
	mustApply(t, r, applying{spec: `"displayName":"one","ttl":60`})
	_, err := apply(t, r, applying{manager: "dev", spec: `"displayName":"two"`})
	status := apierror.From(err).Status()
	if want := `Apply failed with 1 conflict: conflict with "ops": .spec.displayName`; status.Message != want {
		t.Errorf("said %q, want %q", status.Message, want)
	}
	want := []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "ops"`, Field: ".spec.displayName"}}
	if !slices.Equal(status.Details.Causes, want) {
		t.Errorf("causes %+v, want %+v", status.Details.Causes, want)
	}
	if !apierrors.IsConflict(err) {
		t.Error("is no conflict")
	}
}

// An absent name is created by the path of a create: with a uid, defaults that nobody owns, and the key in the answer.
// Source: ADR-0008.
func TestApplyCreates(t *testing.T) {
	t.Parallel()
	r := open(t)
	result, err := resource.Patch(t.Context(), r, applying{spec: `"displayName":"one"`}.input())
	if err != nil {
		t.Fatal(err)
	}
	got := result.Object
	if !result.Created || !strings.HasPrefix(got.Spec.Key, "pak_") || got.UID == "" || got.Generation != 1 || got.Spec.User != "root" || got.Spec.Type != "User" {
		t.Errorf("created %v: %+v", result.Created, got)
	}
	if want := `ops Apply {"f:spec":{"f:displayName":{}}}`; owners(got) != want {
		t.Errorf("owned by %s, want %s", owners(got), want)
	}
	result, err = resource.Patch(t.Context(), r, applying{spec: `"displayName":"one"`}.input())
	if err != nil || result.Created || result.Object.Spec.Key != "" {
		t.Errorf("applied again: created %v, %v", result.Created, err)
	}

	in := applying{name: "dry", spec: `"displayName":"one"`, dryRun: true}.input()
	if result, err = resource.Patch(t.Context(), r, in); err != nil || !result.Created || result.Object.Spec.Key != "" {
		t.Errorf("a dry run: %+v, %v", result.Object, err)
	}
	_, err = resource.Get(t.Context(), r, resource.GetInput{Caller: admin, Name: "dry"})
	expect(t, err, notFound)

	in = applying{name: "refused"}.input()
	in.MayCreate = func() error { return apierror.Forbidden(r.Definition.GroupResource(), "refused", "no", nil) }
	_, err = resource.Patch(t.Context(), r, in)
	expect(t, err, refusal{code: 403, reason: metav1.StatusReasonForbidden})
	in.Name, in.Patch = "ci", applying{}.input().Patch
	if _, err = resource.Patch(t.Context(), r, in); err != nil {
		t.Errorf("what is there needs no permission to create: %v", err)
	}

	for about, row := range map[string]struct {
		given applying
		wrong refusal
	}{
		"no name":          {applying{name: "new", document: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey"}`}, badFields("metadata.name")},
		"a uid":            {applying{name: "new", metadata: `"uid":"x"`}, conflict},
		"a version":        {applying{name: "new", metadata: `"resourceVersion":"2"`}, conflict},
		"a bad name":       {applying{name: "Not A Name"}, invalid("metadata.name")},
		"a bad value":      {applying{name: "new", spec: `"ttl":-1`}, invalid("spec.ttl")},
		"no field manager": {applying{name: "new", manager: ""}, badRequest},
	} {
		in := row.given.input()
		if about == "no field manager" {
			in.Manager = ""
		}
		_, err := resource.Patch(t.Context(), r, in)
		if got := refusalOf(err); got.code != row.wrong.code {
			t.Errorf("%s: %+v (%v)", about, got, err)
		}
		if _, err := resource.Get(t.Context(), r, resource.GetInput{Caller: admin, Name: "new"}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: something was stored", about)
		}
	}
}

// The name of another owner's object is taken, as for a create. Source: ADR-0008.
func TestApplyToForeignName(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ben, grantee("ci"))
	in := applying{spec: `"displayName":"mine"`}.input()
	in.Caller = ana
	_, err := resource.Patch(t.Context(), r, in)
	expect(t, err, alreadyExists)
	if got := get(t, r, "ci"); got.Spec.DisplayName != "" {
		t.Error("it was changed")
	}
}

// An apply without a resourceVersion is repeated while others write. Source: ADR-0004, ADR-0008.
func TestApplyIsRepeated(t *testing.T) {
	t.Parallel()
	r := open(t)
	const managers, rounds = 4, 5
	failures := make(chan error, managers)
	for m := range managers {
		go func() {
			var err error
			for i := range rounds {
				_, failure := apply(t, r, applying{manager: fmt.Sprint("m", m), metadata: fmt.Sprintf(`"labels":{"m%d":"%d"}`, m, i)})
				err = errors.Join(err, failure)
			}
			failures <- err
		}()
	}
	for range managers {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	got := get(t, r, "ci")
	for m := range managers {
		if got.Labels[fmt.Sprint("m", m)] != fmt.Sprint(rounds-1) {
			t.Errorf("labels %v", got.Labels)
		}
	}
	if len(got.ManagedFields) != managers {
		t.Errorf("owned by\n%s", owners(got))
	}
}

// The rights of a key have one owner: two scopes are never merged, and an emptied scope stays a scope. Source: ADR-0008.
func TestApplyScope(t *testing.T) {
	t.Parallel()
	r := open(t)
	mustApply(t, r, applying{spec: `"scope":{"projects":[{"project":"a"}]}`})
	_, err := apply(t, r, applying{manager: "dev", spec: `"scope":{"roles":[{"role":"platformCLI"}]}`})
	expect(t, err, refusal{code: 409, reason: metav1.StatusReasonConflict, fields: []string{".spec.scope"}})
	got := mustApply(t, r, applying{spec: `"scope":{"roles":[{"role":"platformCLI"}]}`})
	if got.Spec.Scope == nil || len(got.Spec.Scope.Roles) != 1 || got.Spec.Scope.Projects != nil {
		t.Errorf("scope %+v", got.Spec.Scope)
	}
	if got = mustApply(t, r, applying{spec: `"scope":{}`}); got.Spec.Scope == nil {
		t.Error("an empty scope has become none, which is wider")
	}
	if got = get(t, r, "ci"); got.Spec.Scope == nil {
		t.Error("an empty scope is stored as none, which is wider")
	}
	if want := `ops Apply {"f:spec":{"f:scope":{}}}`; owners(got) != want {
		t.Errorf("owned by %s, want %s", owners(got), want)
	}
	if got = mustApply(t, r, applying{}); got.Spec.Scope != nil {
		t.Error("a scope that is no longer applied is still there")
	}
}

// Fields that nobody owns stay when a manager gives up all fields beside them: without its scope or ttl, the key could do
// more. Source: ADR-0008.
func TestApplyKeepsWhatNobodyOwns(t *testing.T) {
	t.Parallel()
	r := open(t)
	key := grantee("ci")
	key.Finalizers = []string{"example.com/hold"}
	key.Spec = model.OwnedAccessKeySpec{
		Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}, TTLSeconds: 60, Disabled: true, Groups: []string{"x"},
	}
	create(t, r, admin, key)
	mustApply(t, r, applying{metadata: `"labels":{"a":"b"}`, spec: `"displayName":"one"`})
	// The owners of the other fields are removed.
	forgotten := get(t, r, "ci")
	forgotten.ManagedFields = slices.DeleteFunc(forgotten.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager != "ops" })
	if _, err := update(t, r, forgotten); err != nil {
		t.Fatal(err)
	}
	if got, want := owners(get(t, r, "ci")), `ops Apply {"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:displayName":{}}}`; got != want {
		t.Fatalf("owned by\n%s\nwant\n%s", got, want)
	}
	const label = `"labels":{"a":"b"}`
	got := mustApply(t, r, applying{metadata: label})
	if got.Spec.DisplayName != "" {
		t.Errorf("what ops let go of is still there: %+v", got)
	}
	if got.Spec.Scope == nil || len(got.Spec.Scope.Projects) != 1 || got.Spec.TTLSeconds != 60 || !got.Spec.Disabled ||
		!slices.Equal(got.Spec.Groups, key.Spec.Groups) || !slices.Equal(got.Finalizers, key.Finalizers) || got.UID == "" {
		t.Errorf("what nobody owned is gone: %+v", got)
	}
	// A manager who applies the field owns it, and removes it by giving it up.
	got = mustApply(t, r, applying{metadata: label, spec: `"scope":{"projects":[{"project":"a"}]},"disabled":false`})
	if got.Spec.Disabled {
		t.Error("a zero value was applied and is not there")
	}
	if got = mustApply(t, r, applying{metadata: label}); got.Spec.Scope != nil || got.Spec.Disabled || got.Spec.TTLSeconds != 60 {
		t.Errorf("after its owner let go of it: %+v", got.Spec)
	}
}

// Sets, maps and atomic lists each merge as their type says. Source: ADR-0008.
func TestApplyLists(t *testing.T) {
	t.Parallel()
	r := open(t)
	reference := func(uid, name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Thing","name":%q,"uid":%q}`, name, uid)
	}
	mustApply(t, r, applying{manager: "a", metadata: `"finalizers":["a.example/x","b.example/x"],"ownerReferences":[` + reference("1", "one") + `]`,
		spec: `"groups":["x","y"]`})
	mustApply(t, r, applying{manager: "b", metadata: `"finalizers":["b.example/x","c.example/x"],"ownerReferences":[` + reference("2", "two") + `]`})
	got := get(t, r, "ci")
	if !slices.Equal(got.Finalizers, []string{"a.example/x", "b.example/x", "c.example/x"}) || len(got.OwnerReferences) != 2 {
		t.Errorf("finalizers %v, owners %v", got.Finalizers, got.OwnerReferences)
	}
	want := `a Apply {"f:metadata":{"f:finalizers":{"v:\"a.example/x\"":{},"v:\"b.example/x\"":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}},"f:spec":{"f:groups":{}}}
b Apply {"f:metadata":{"f:finalizers":{"v:\"b.example/x\"":{},"v:\"c.example/x\"":{}},"f:ownerReferences":{"k:{\"uid\":\"2\"}":{}}}}`
	if owners(got) != want {
		t.Errorf("owned by\n%s\nwant\n%s", owners(got), want)
	}
	_, err := apply(t, r, applying{manager: "b", spec: `"groups":["z"]`})
	expect(t, err, refusal{code: 409, reason: metav1.StatusReasonConflict, fields: []string{".spec.groups"}})
	_, err = apply(t, r, applying{manager: "b", metadata: `"ownerReferences":[` + reference("1", "other") + `]`})
	expect(t, err, refusal{code: 409, reason: metav1.StatusReasonConflict, fields: []string{`.metadata.ownerReferences[uid="1"]`}})

	// Fields that a no longer applies are removed, except those that b applies too.
	got = mustApply(t, r, applying{manager: "a", metadata: `"ownerReferences":[` + reference("1", "one") + `]`})
	if !slices.Equal(got.Finalizers, []string{"b.example/x", "c.example/x"}) || len(got.OwnerReferences) != 2 || got.Spec.Groups != nil {
		t.Errorf("finalizers %v, owners %v, groups %v", got.Finalizers, got.OwnerReferences, got.Spec.Groups)
	}
	got = mustApply(t, r, applying{manager: "a"})
	if len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != "2" {
		t.Errorf("owners %v", got.OwnerReferences)
	}
}

// kubectl's move from client-side to server-side apply: the manifest as kubectl-last-applied, the owners by a patch, and the
// manifest as kubectl. Source: ADR-0008.
func TestApplyAfterClientSideApply(t *testing.T) {
	t.Parallel()
	r := open(t)
	manifest := `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"ci"},"spec":{"displayName":"one","description":"two"}}`
	object := grantee("ci")
	object.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": manifest}
	object.Spec.DisplayName, object.Spec.Description = "one", "two"
	if _, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: admin, Object: object, Manager: "kubectl-client-side-apply"}); err != nil {
		t.Fatal(err)
	}
	// Without the move, kubectl does not conflict with itself, but another manager does.
	mustApply(t, r, applying{manager: "kubectl", spec: `"displayName":"uno"`})
	_, err := apply(t, r, applying{manager: "flux", spec: `"description":"due"`})
	expect(t, err, refusal{code: 409, reason: metav1.StatusReasonConflict, fields: []string{".spec.description"}})

	got := get(t, r, "ci")
	entries := slices.DeleteFunc(slices.Clone(got.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Operation == metav1.ManagedFieldsOperationUpdate })
	moved := got.DeepCopy()
	moved.ManagedFields = entries
	moved.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:description":{},"f:displayName":{}}}`)
	if moved, err = update(t, r, moved); err != nil {
		t.Fatal(err)
	}
	if want := `kubectl Apply {"f:spec":{"f:description":{},"f:displayName":{}}}`; owners(moved) != want {
		t.Errorf("owned by\n%s\nwant\n%s", owners(moved), want)
	}
	if got = mustApply(t, r, applying{manager: "kubectl", spec: `"displayName":"uno"`}); got.Spec.Description != "" {
		t.Errorf("the description that is no longer applied is %q", got.Spec.Description)
	}
}

// Objects from before there were owners, and from a build that knows more fields. Source: ADR-0004, ADR-0008.
func TestApplyToOldRecords(t *testing.T) {
	t.Parallel()
	state := newStore(t)
	old := accesskey.NewRegistry(state, func() time.Time { return now }, seeded(1), func() accesskey.Limits { return accesskey.Limits{} })
	object := grantee("ci")
	object.Spec.DisplayName = "one"
	create(t, old, admin, object)
	record, err := state.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	record.Object = []byte(strings.Replace(string(record.Object), `"spec":{`, `"spec":{"new":{"a":1},`, 1))
	if _, err = state.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}

	r := newRegistry(state, seeded(2))
	changed := get(t, r, "ci")
	changed.Labels = map[string]string{"a": "b"}
	if changed, err = update(t, r, changed); err != nil || changed.ManagedFields != nil {
		t.Errorf("an update gives an old object owners: %s (%v)", owners(changed), err)
	}
	_, err = apply(t, r, applying{spec: `"displayName":"two"`})
	expect(t, err, refusal{code: 409, reason: metav1.StatusReasonConflict, fields: []string{".spec.displayName"}})
	if got := refusalOf(err); !strings.Contains(err.Error(), "before-first-apply") {
		t.Errorf("%+v: %v", got, err)
	}
	mustApply(t, r, applying{spec: `"displayName":"two"`, force: true})
	if record, err = state.Get(t.Context(), "ci"); err != nil || !strings.Contains(string(record.Object), `"new":{"a":1}`) {
		t.Errorf("the unknown field is gone: %s (%v)", record.Object, err)
	}

	// A registry without a field manager keeps the recorded owners, and refuses to apply.
	_, err = apply(t, old, applying{spec: `"displayName":"two"`})
	expect(t, err, internal)
	kept := get(t, old, "ci")
	kept.Spec.Description, kept.ManagedFields = "x", nil
	if kept, err = update(t, old, kept); err != nil || !strings.Contains(owners(kept), "ops Apply") {
		t.Errorf("kept %s (%v)", owners(kept), err)
	}
}

// Spec 2.5, ADR-0005: a key that comes with an apply is sealed as one that comes with a create, and owned by nobody.
func TestApplyKey(t *testing.T) {
	t.Parallel()
	r := open(t)
	const another = "987654321-987654321-987654321-987654321"
	brought := applying{spec: fmt.Sprintf(`"displayName":"one","key":%q`, secret)}
	got := mustApply(t, r, brought)
	if got.Spec.Key != secret {
		t.Error("the answer to the create has no key")
	}
	if got = mustApply(t, r, brought); got.Spec.Key != "" || got.ResourceVersion != "2" {
		t.Errorf("the same again: %+v", got)
	}
	// Another manager may send the same key, but nobody may send a different key.
	mustApply(t, r, applying{manager: "dev", spec: fmt.Sprintf(`"key":%q`, secret)})
	_, err := apply(t, r, applying{spec: fmt.Sprintf(`"key":%q`, strings.Repeat("z", 40))})
	expect(t, err, invalid("spec.key"))
	for _, metadata := range []string{fmt.Sprintf(`"labels":{%q:"x"}`, "k"+another), fmt.Sprintf(`"finalizers":["a.example/%s"]`, another)} {
		_, err := apply(t, r, applying{name: "copy", metadata: metadata, spec: fmt.Sprintf(`"key":%q`, another)})
		expect(t, err, invalid("spec.key"))
	}
	if record, err := r.Store.Get(t.Context(), "ci"); err != nil || strings.Contains(string(record.Object), secret) || strings.Contains(string(record.Object), "f:key") {
		t.Errorf("the state says something of the key (%v)", err)
	}
}

// No way to write managedFields brings a key into the state. Source: ADR-0005, ADR-0008.
func TestNoKeyInManagedFields(t *testing.T) {
	t.Parallel()
	escaped := fmt.Sprintf(`\u00%x%s`, secret[0], secret[1:])
	for about, entry := range map[string]metav1.ManagedFieldsEntry{
		"as a manager":         {Manager: secret},
		"as a subresource":     {Manager: "x", Subresource: secret},
		"as a field":           {Manager: "x", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + secret + `":{}}}`)},
		"as an escaped field":  {Manager: "x", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + escaped + `":{}}}`)},
		"as an entry of a set": {Manager: "x", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{"v:\"` + secret + `\"":{}}}}`)},
	} {
		r := open(t)
		given := grantee("ci")
		given.Spec.Key = secret
		create(t, r, admin, given)
		entry.Operation, entry.APIVersion, entry.FieldsType = metav1.ManagedFieldsOperationUpdate, model.SchemeGroupVersion.String(), "FieldsV1"
		if entry.FieldsV1 == nil {
			entry.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:displayName":{}}}`)
		}
		put := get(t, r, "ci")
		put.Spec.Key, put.ManagedFields = secret, []metav1.ManagedFieldsEntry{entry}
		_, err := update(t, r, put)
		expect(t, err, invalid("spec.key"))
		if record, err := r.Store.Get(t.Context(), "ci"); err != nil || strings.Contains(string(record.Object), secret[2:]) {
			t.Errorf("%s: the key is in the state (%v)", about, err)
		}
	}
	r := open(t)
	given := grantee("ci")
	given.Spec.Key = secret
	_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: admin, Object: given, Manager: secret})
	expect(t, err, invalid("spec.key"))
}

var _ resource.NewFieldManager = fieldmanager.New
