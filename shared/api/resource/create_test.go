package resource_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

func TestCreateNames(t *testing.T) {
	t.Parallel()
	const suffix = "[bcdfghjklmnpqrstvwxz2456789]{5}"
	long := strings.Repeat("a", 80)
	for _, row := range []struct {
		about string
		given metav1.ObjectMeta
		want  string
		wrong refusal
	}{
		{"a name is kept (Spec 2.2 name)", metav1.ObjectMeta{Name: "ci"}, "ci", refusal{}},
		{"a name wins over generateName (Spec 2.2 generateName)", metav1.ObjectMeta{Name: "ci", GenerateName: "x-"}, "ci", refusal{}},
		{"the prefix gets a suffix (Spec 2.2 generateName)", metav1.ObjectMeta{GenerateName: "ci-"}, "ci-" + suffix, refusal{}},
		{"a long prefix is truncated (Spec 2.2 generateName)", metav1.ObjectMeta{GenerateName: long}, strings.Repeat("a", 58) + suffix, refusal{}},
		{"neither makes a name (ADR-0004)", metav1.ObjectMeta{}, "accesskey-" + suffix, refusal{}},
		{"a name is a DNS subdomain", metav1.ObjectMeta{Name: "Ci"}, "", invalid("metadata.name")},
		{"a prefix begins one", metav1.ObjectMeta{GenerateName: "Ci-"}, "", invalid("metadata.generateName", "metadata.name")},
		{"a cluster scoped object has no namespace (Spec 2.2 namespace)", metav1.ObjectMeta{Name: "ci", Namespace: "p-a"}, "", invalid("metadata.namespace")},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			result, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: &key{ObjectMeta: row.given}})
			expect(t, err, row.wrong)
			if err != nil {
				return
			}
			if !regexp.MustCompile("^" + row.want + "$").MatchString(result.Object.Name) {
				t.Errorf("name %q, want %q", result.Object.Name, row.want)
			}
			if result.Object.GenerateName != row.given.GenerateName {
				t.Errorf("generateName %q", result.Object.GenerateName)
			}
			if get(t, r, result.Object.Name).UID != result.Object.UID {
				t.Error("another object is stored under that name")
			}
		})
	}
}

func TestCreateNameCollisions(t *testing.T) {
	t.Parallel()
	// The first attempts of a registry with this seed.
	first := create(t, newRegistry(newStore(t), seeded(7)), ana, &key{}).Name
	prefixed := create(t, newRegistry(newStore(t), seeded(7)), ana, &key{ObjectMeta: metav1.ObjectMeta{GenerateName: "ci-"}}).Name

	for _, row := range []struct {
		about  string
		random io.Reader
		given  metav1.ObjectMeta
		taken  string
		wrong  refusal
	}{
		{"a name in use", seeded(7), metav1.ObjectMeta{Name: "ci"}, "ci", alreadyExists},
		{"a name with a prefix is made anew (ADR-0004)", seeded(7), metav1.ObjectMeta{GenerateName: "ci-"}, prefixed, refusal{}},
		{"but not for ever (Spec 7 row 1)", repeating{}, metav1.ObjectMeta{GenerateName: "ci-"}, "ci-bbbbb", alreadyExists},
		{"a name of the server's own is made anew (ADR-0004)", seeded(7), metav1.ObjectMeta{}, first, refusal{}},
		{"but not for ever either", repeating{}, metav1.ObjectMeta{}, "accesskey-bbbbb", alreadyExists},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			state := newStore(t)
			create(t, newRegistry(state, seeded(9)), ana, grantee(row.taken))
			before := revision(t, state)
			result, err := resource.Create(t.Context(), newRegistry(state, row.random),
				resource.CreateInput[*key]{Caller: ana, Object: &key{ObjectMeta: row.given}})
			expect(t, err, row.wrong)
			if err != nil {
				if revision(t, state) != before {
					t.Error("something was stored")
				}
				return
			}
			prefix := cmp.Or(row.given.GenerateName, "accesskey-")
			if name := result.Object.Name; name == row.taken || !strings.HasPrefix(name, prefix) {
				t.Errorf("name %q beside %q", name, row.taken)
			}
		})
	}
}

// No answer reports whether a text is the secret of an object. Source: ADR-0022.
func TestCreateKeyInUse(t *testing.T) {
	t.Parallel()
	r := open(t)
	given := grantee("a")
	given.Spec.Key = secret
	create(t, r, ana, given)
	for _, caller := range []identity.Caller{ana, ben} {
		for _, name := range []string{"b", ""} {
			again := grantee(name)
			again.Spec.Key = secret
			_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: caller, Object: again, DryRun: true})
			expect(t, err, refusal{})
			again.Spec.Key = secret
			_, taken := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: caller, Object: again})
			expect(t, taken, invalid("spec.key"))
			// The answer is that to a text that nobody has and that is easy to guess.
			again.Spec.Key = strings.Repeat("k", 40)
			_, guessable := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: caller, Object: again})
			if name != "" && (guessable == nil || guessable.Error() != taken.Error()) {
				t.Errorf("the answers differ: %v and %v", taken, guessable)
			}
		}
	}
}

// A dry run of an update or a patch does not tell whether a text is the secret of the object. Source: ADR-0022.
func TestDryRunTellsNoSecret(t *testing.T) {
	t.Parallel()
	const other = "zT4-qWm81x_Yb6Lr03hNsKd9vGc2pEfU7aJo5iRt"
	r := open(t)
	given := grantee("a")
	given.Spec.Key = secret
	create(t, r, ana, given)
	try := func(text string, patch, dryRun bool) (*key, error) {
		t.Helper()
		if patch {
			written, err := resource.Patch(t.Context(), r, resource.PatchInput{
				Caller: ana, Name: "a", Type: resource.MergePatch, Patch: fmt.Appendf(nil, `{"spec":{"key":%q}}`, text), DryRun: dryRun,
			})
			return written.Object, err
		}
		object := get(t, r, "a")
		object.Spec.Key = text
		written, err := resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: "a", Object: object, DryRun: dryRun})
		return written.Object, err
	}
	for _, patch := range []bool{false, true} {
		own, ownErr := try(secret, patch, true)
		wrong, wrongErr := try(other, patch, true)
		expect(t, ownErr, refusal{})
		expect(t, wrongErr, refusal{})
		if !reflect.DeepEqual(own, wrong) || own.Spec.Key != "" {
			t.Errorf("patch %v: the answers differ: %+v and %+v", patch, own, wrong)
		}
		_, err := try(secret, patch, false)
		expect(t, err, refusal{})
		_, err = try(other, patch, false)
		expect(t, err, invalid("spec.key"))
	}
}

// Spec 2.2: clients cannot set the fields that belong to the server.
func TestCreateMetadata(t *testing.T) {
	t.Parallel()
	r := open(t)
	hour := metav1.Time{Time: now.Add(time.Hour)}
	grace := int64(30)
	yes := true
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Thing", Name: "x", UID: "1", Controller: &yes}
	given := &key{ObjectMeta: metav1.ObjectMeta{
		Name: "ci", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		Finalizers: []string{"example.com/hold"}, OwnerReferences: []metav1.OwnerReference{owner},
		UID: "mine", ResourceVersion: "77", Generation: 9, SelfLink: "/x", CreationTimestamp: hour,
		DeletionTimestamp: &hour, DeletionGracePeriodSeconds: &grace,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "me", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1"}},
	}}
	given.Spec.TTLSeconds = 60
	given.Status.LastActivity, given.Status.ExpirationTimestamp = &hour, &hour

	written, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: given})
	if err != nil {
		t.Fatal(err)
	}
	got := written.Object
	if got.Spec.Key == "" {
		t.Error("the one answer that shows the key does not show it")
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(string(got.UID)) {
		t.Errorf("uid %q is no version 4 UUID", got.UID)
	}
	if len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != "unknown" {
		t.Errorf("managedFields are %+v", got.ManagedFields)
	}
	got.Spec.Key = ""
	want := &key{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "OwnedAccessKey"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "ci", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
			Finalizers: []string{"example.com/hold"}, OwnerReferences: []metav1.OwnerReference{owner},
			UID: got.UID, ResourceVersion: "2", Generation: 1, CreationTimestamp: metav1.Time{Time: now.Truncate(time.Second)},
			ManagedFields: got.ManagedFields,
		},
		Spec:   model.OwnedAccessKeySpec{User: "ana", Type: "User", TTLSeconds: 60},
		Status: model.OwnedAccessKeyStatus{ExpirationTimestamp: &metav1.Time{Time: now.Truncate(time.Second).Add(time.Minute)}},
	}
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("answered\n%+v\nwant\n%+v", got, want)
	}
	if stored := get(t, r, "ci"); !apiequality.Semantic.DeepEqual(stored, want) {
		t.Errorf("stored\n%+v\nwant\n%+v", stored, want)
	}
	if other := create(t, r, ana, grantee("other")); other.UID == got.UID {
		t.Error("two objects have one uid")
	}
	if given.UID != "mine" {
		t.Log("the caller's object is changed, as CreateInput.Object permits")
	}
}

// All mistakes are reported at once.
func TestCreateAllProblems(t *testing.T) {
	t.Parallel()
	state := newStore(t)
	object := grantee("No Name")
	object.Labels = map[string]string{"a": "not ok"}
	object.Spec = model.OwnedAccessKeySpec{TTLSeconds: -1, Type: "Magic", Key: "short"}
	_, err := resource.Create(t.Context(), newRegistry(state, seeded(1)), resource.CreateInput[*key]{Caller: ana, Object: object})
	expect(t, err, invalid("metadata.name", "metadata.labels", "spec.ttl", "spec.type", "spec.key"))
	if revision(t, state) != store.Beginning {
		t.Error("something was stored")
	}
}

// No verb writes what the caller may not give. Source: Spec 2.5; ADR-0005.
func TestForbidden(t *testing.T) {
	t.Parallel()
	r := open(t)
	before := create(t, r, ana, grantee("ci"))
	forbidden := refusal{code: 403, reason: metav1.StatusReasonForbidden, fields: []string{"spec.user", "spec.groups[0]"}}
	const excess = `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"ci"},"spec":{"user":"ben","groups":["others"]}}`
	for _, dryRun := range []bool{false, true} {
		for _, name := range []string{"new", "ci"} {
			object := grantee(name)
			object.Spec.User, object.Spec.Groups = "ben", []string{"others"}
			var err error
			if name == "new" {
				_, err = resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: object, DryRun: dryRun})
			} else {
				_, err = resource.Update(t.Context(), r, resource.UpdateInput[*key]{Caller: ana, Name: name, Object: object, DryRun: dryRun})
			}
			expect(t, err, forbidden)
		}
		for kind, document := range map[resource.PatchType]string{
			resource.MergePatch: excess, resource.ApplyPatch: excess,
			resource.JSONPatch: `[{"op":"add","path":"/spec/groups","value":["others"]},{"op":"add","path":"/spec/user","value":"ben"}]`,
		} {
			_, err := resource.Patch(t.Context(), r, resource.PatchInput{
				Caller: ana, Name: "ci", Type: kind, Patch: []byte(document), Manager: "ops", Force: true, DryRun: dryRun,
			})
			expect(t, err, forbidden)
		}
	}
	if after := get(t, r, "ci"); !apiequality.Semantic.DeepEqual(after, before) {
		t.Errorf("stored %+v, before %+v", after, before)
	}
	_, err := resource.Get(t.Context(), r, resource.GetInput{Caller: admin, Name: "new"})
	expect(t, err, notFound)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("no entropy") }

func TestCreateWithoutEntropy(t *testing.T) {
	t.Parallel()
	for _, object := range []*key{grantee("ci"), grantee("")} {
		_, err := resource.Create(t.Context(), newRegistry(newStore(t), broken{}), resource.CreateInput[*key]{Caller: ana, Object: object})
		expect(t, err, internal)
	}
}

// Callers who may see the existing object learn that it is being deleted. Source: Spec 2.2; ADR-0009.
func TestCreateWhileDeleting(t *testing.T) {
	t.Parallel()
	r := open(t)
	held := grantee("ci")
	held.Finalizers = []string{"example.com/hold"}
	create(t, r, accesskeytest.Ana, held)
	message := func(caller identity.Caller, dryRun bool) string {
		t.Helper()
		_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: caller, Object: grantee("ci"), DryRun: dryRun})
		expect(t, err, alreadyExists)
		return apierror.From(err).Status().Message
	}
	plain := message(accesskeytest.Ana, false)
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: accesskeytest.Ana, Name: "ci"}); err != nil {
		t.Fatal(err)
	}
	if deleting := message(accesskeytest.Ana, false); deleting == plain || deleting != message(accesskeytest.Ana, true) {
		t.Errorf("%q, before the deletion %q, as a dry run %q", deleting, plain, message(accesskeytest.Ana, true))
	}
	if foreign := message(accesskeytest.Ben, false); foreign != plain {
		t.Errorf("another caller gets %q", foreign)
	}
}
