package accesskey_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

func TestDefault(t *testing.T) {
	login := `identity: {userId: x}, identityRefresh: "2026-03-01T12:00:00Z", oidcProvider: {clientId: x}, parent: x, oidcLogin: {lastRefresh: "2026-03-01T12:00:00Z"}`
	for _, row := range []struct {
		section         string
		sentence        string
		caller          identity.Caller
		old, spec, want string
	}{
		{"ADR-0005", "no owner means the caller: a user", alice, "", `{}`, `{user: alice, type: User}`},
		{"ADR-0005", "no owner means the caller: a team", team, "", `{}`, `{team: dev, type: User}`},
		{"ADR-0005", "no owner means the caller: a subject", subject, "", `{}`, `{subject: robot, type: User}`},
		{"ADR-0005", "no owner means the caller: an admin too", admin, "", `{}`, `{user: root, type: User}`},
		{"Spec 2.5", "a user that is given stays", alice, "", `{user: bob}`, `{user: bob, type: User}`},
		{"Spec 2.5", "a team that is given stays", alice, "", `{team: dev}`, `{team: dev, type: User}`},
		{"Spec 2.5", "a subject that is given stays", alice, "", `{subject: robot}`, `{subject: robot, type: User}`},
		{"Spec 2.5", "a type that is given stays", alice, "", `{type: Other}`, `{user: alice, type: Other}`},
		{"ADR-0005", "a replacement keeps the owner: a user", admin, `{user: bob, type: User}`, `{}`, `{user: bob, type: User}`},
		{"ADR-0005", "a replacement keeps the owner: a team", member, `{team: dev, type: User}`, `{}`, `{team: dev, type: User}`},
		{"ADR-0005", "a replacement keeps the owner: a subject", admin, `{subject: robot, type: User}`, `{}`, `{subject: robot, type: User}`},
		{"ADR-0005", "a replacement keeps the type", alice, `{user: alice, type: Login}`, `{user: alice}`, `{user: alice, type: Login}`},
		{"Spec 2.5", "a replacement may name another owner", member, `{user: alice, type: Other}`, `{team: dev, type: User}`, `{team: dev, type: User}`},
		{"ADR-0005", "a replacement keeps what logins wrote", alice, `{user: alice, type: User, ` + login + `}`, `{}`, `{user: alice, type: User, ` + login + `}`},
		{"ADR-0005", "admins can remove the fields that logins wrote", admin, `{user: alice, type: User, ` + login + `}`, `{}`, `{user: alice, type: User}`},
		{"Spec 2.5", "fields that logins do not write are not kept", alice, `{user: alice, type: User, ttl: 5, disabled: true, groups: [x], scope: {}, displayName: x}`, `{}`, `{user: alice, type: User}`},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var old *model.OwnedAccessKey
			if row.old != "" {
				old = key(t, row.old)
			}
			k := key(t, row.spec)
			rules(0).Rules.Default(row.caller, k, old)
			got, _ := json.Marshal(k.Spec)
			want, _ := json.Marshal(spec(t, row.want))
			if string(got) != string(want) {
				t.Errorf("%s: got %s, want %s", row.section, got, want)
			}
		})
	}
}

// TestAuthorize has callers and the keys that they may write. Old is empty for a create.
func TestAuthorize(t *testing.T) {
	outside := []string{forbidden + "spec.scope.projects[0]"}
	for _, row := range []struct {
		section   string
		sentence  string
		caller    identity.Caller
		old, spec string
		want      []string
	}{
		{"ADR-0005", "users create keys of their own", alice, "", `{user: alice}`, nil},
		{"ADR-0005", "users cannot create keys for another user", alice, "", `{user: bob}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "users cannot create keys for a team that they are not in", alice, "", `{team: dev}`, []string{forbidden + "spec.team"}},
		{"ADR-0005", "users cannot create keys for a subject", alice, "", `{subject: alice}`, []string{forbidden + "spec.subject"}},
		{"ADR-0005", "members create keys of their team", member, "", `{team: dev}`, nil},
		{"ADR-0005", "members cannot create keys of another team", member, "", `{team: ops}`, []string{forbidden + "spec.team"}},
		{"ADR-0005", "members cannot create keys for another member", member, "", `{user: bob}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "a team's key creates keys of the team", team, "", `{team: dev}`, nil},
		{"ADR-0005", "a team's key cannot create keys of a member", team, "", `{user: alice}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "a team's key is not the user of that name", team, "", `{user: dev}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "a subject creates keys of its own", subject, "", `{subject: robot}`, nil},
		{"ADR-0005", "a subject is not the user of that name", subject, "", `{user: robot}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "an admin creates keys of everybody: user", admin, "", `{user: bob}`, nil},
		{"ADR-0005", "an admin creates keys of everybody: team", admin, "", `{team: dev}`, nil},
		{"ADR-0005", "an admin creates keys of everybody: subject", admin, "", `{subject: robot}`, nil},
		{"ADR-0005", "a user who is nobody owns nothing", identity.Caller{}, "", `{user: alice}`, []string{forbidden + "spec.user"}},

		{"ADR-0005", "users change their own", alice, `{user: alice}`, `{user: alice, disabled: true}`, nil},
		{"ADR-0005", "users cannot give their key to others", alice, `{user: alice}`, `{user: bob}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "members give their key to the team", member, `{user: alice}`, `{team: dev}`, nil},
		{"ADR-0005", "an admin gives a key to another", admin, `{user: alice}`, `{user: bob}`, nil},

		{"ADR-0005", "callers give groups that they are in", member, "", `{user: alice, groups: [ops, "platform:team:dev", "platform:user:alice", "platform:authenticated"]}`, nil},
		{"ADR-0005", "callers cannot give other groups", member, "", `{user: alice, groups: [ops, dev, "platform:admins"]}`, []string{forbidden + "spec.groups[1]", forbidden + "spec.groups[2]"}},
		{"ADR-0005", "callers cannot make themselves admins", alice, "", `{user: alice, groups: ["platform:admins"]}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "callers cannot make themselves members", alice, "", `{user: alice, groups: ["platform:team:dev"]}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "a team's key gives its team's group", team, "", `{team: dev, groups: ["platform:team:dev"]}`, nil},
		{"ADR-0005", "an admin gives any group", admin, "", `{user: bob, groups: [x, "platform:admins"]}`, nil},
		{"ADR-0005", "groups that stay ask for nothing", alice, `{user: alice, groups: [x, y]}`, `{user: alice, groups: [y, x], disabled: true}`, nil},
		{"ADR-0005", "nor does a change of texts", alice, `{user: alice, groups: [x]}`, `{user: alice, groups: [x], displayName: a, description: b}`, nil},
		{"ADR-0005", "groups that go ask for nothing", alice, `{user: alice, groups: [x, y]}`, `{user: alice, groups: [y]}`, nil},
		{"ADR-0005", "a key with groups of others is not enabled", alice, `{user: alice, groups: [x], disabled: true}`, `{user: alice, groups: [x]}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "nor given a wider scope", alice, `{user: alice, groups: [x], scope: {}}`, `{user: alice, groups: [x]}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "nor while it is disabled", alice, `{user: alice, groups: [x], scope: {}}`, `{user: alice, groups: [x], disabled: true}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "nor another life", alice, `{user: alice, groups: [x], ttl: 5}`, `{user: alice, groups: [x]}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "nor one from its activity", alice, `{user: alice, groups: [x], ttl: 5}`, `{user: alice, groups: [x], ttl: 5, ttlAfterLastActivity: true}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "nor another owner", member, `{user: alice, groups: [x]}`, `{team: dev, groups: [x]}`, []string{forbidden + "spec.groups[0]"}},
		{"ADR-0005", "without them it is", alice, `{user: alice, groups: [x], scope: {}, disabled: true}`, `{user: alice}`, nil},
		{"ADR-0005", "who is in them changes the key", member, `{user: alice, groups: [ops], ttl: 5, disabled: true}`, `{user: alice, groups: [ops]}`, nil},
		{"ADR-0005", "so does an admin", admin, `{user: bob, groups: [x], ttl: 5, scope: {}}`, `{user: bob, groups: [x]}`, nil},
		{"ADR-0005", "groups that come do", alice, `{user: alice, groups: [x]}`, `{user: alice, groups: [x, y]}`, []string{forbidden + "spec.groups[1]"}},

		{"ADR-0005", "fields of logins are not a user's", alice, "",
			`{user: alice, identity: {userId: x}, identityRefresh: "2026-03-01T12:00:00Z", oidcProvider: {clientId: x}, parent: x, oidcLogin: {lastRefresh: "2026-03-01T12:00:00Z"}}`,
			[]string{
				forbidden + "spec.identity", forbidden + "spec.identityRefresh", forbidden + "spec.oidcProvider",
				forbidden + "spec.parent", forbidden + "spec.oidcLogin",
			}},
		{"ADR-0005", "fields of logins are an admin's", admin, "", `{user: bob, identity: {userId: x}, parent: y}`, nil},
		{"ADR-0005", "fields of logins that stay ask for nothing", alice, `{user: alice, identity: {userId: x}, parent: y}`, `{user: alice, identity: {userId: x}, parent: y, ttl: 5}`, nil},
		{"ADR-0005", "fields of logins are not changed", alice, `{user: alice, identity: {userId: x}}`, `{user: alice, identity: {userId: z}}`, []string{forbidden + "spec.identity"}},
		{"ADR-0005", "fields of logins are not removed", alice, `{user: alice, identity: {userId: x}}`, `{user: alice}`, []string{forbidden + "spec.identity"}},

		{"ADR-0005", "a scoped key creates keys within its scope", scoped(alice), "", `{user: alice, scope: {projects: [{project: a}]}}`, nil},
		{"ADR-0005", "a scoped key creates narrower keys", scoped(alice), "", `{user: alice, scope: {spaces: [{project: a, space: s}]}}`, nil},
		{"ADR-0005", "a scoped key creates keys that may do nothing", scoped(alice), "", `{user: alice, scope: {}}`, nil},
		{"ADR-0005", "a scoped key creates no other ones", scoped(alice), "", `{user: alice, scope: {projects: [{project: b}]}}`, outside},
		{"ADR-0005", "a scoped key creates no wider ones", scoped(alice), "", `{user: alice, scope: {projects: [{project: "*"}]}}`, outside},
		{"ADR-0005", "a scoped key creates no unscoped ones", scoped(alice), "", `{user: alice}`, []string{forbidden + "spec.scope"}},
		{"ADR-0005", "the offending entries are named", scoped(alice), "", `{user: alice, scope: {projects: [{project: a}], roles: [{role: agent}], allowPlatformCli: true}}`,
			[]string{forbidden + "spec.scope.roles[0]", forbidden + "spec.scope.allowPlatformCli"}},
		{"ADR-0005", "a scoped admin is scoped", scoped(admin), "", `{user: root, scope: {projects: [{project: b}]}}`, outside},
		{"ADR-0005", "a scoped admin gives groups", scoped(admin), "", `{user: root, scope: {projects: [{project: a}]}, groups: [x]}`, nil},
		{"ADR-0047", "a scoped admin acts as nobody else", scoped(admin), "", `{user: bob, scope: {projects: [{project: a}]}}`, []string{forbidden + "spec.user"}},
		{"ADR-0005", "a scoped key touches no key beyond it", scoped(alice), `{user: alice}`, `{user: alice, disabled: true}`, []string{forbidden + "spec.scope"}},
		{"ADR-0005", "a scope that stays asks for something", scoped(alice), `{user: alice, scope: {projects: [{project: b}]}}`, `{user: alice, scope: {projects: [{project: b}]}, disabled: true}`, outside},
		{"ADR-0005", "not even to narrow it", scoped(alice), `{user: alice}`, `{user: alice, scope: {projects: [{project: a}]}}`, []string{forbidden + "spec.scope"}},
		{"ADR-0005", "an unscoped key widens a scope", alice, `{user: alice, scope: {}}`, `{user: alice}`, nil},

		{"ADR-0005", "all that is too much is told at once", scoped(alice), "", `{user: bob, groups: [x], parent: y}`,
			[]string{forbidden + "spec.user", forbidden + "spec.groups[0]", forbidden + "spec.parent", forbidden + "spec.scope"}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var old *model.OwnedAccessKey
			if row.old != "" {
				old = key(t, row.old)
			}
			k := key(t, row.spec)
			before, _ := json.Marshal([]any{k, old, row.caller})
			same(t, found(refused(row.caller, k, old)), row.want)
			if after, _ := json.Marshal([]any{k, old, row.caller}); string(after) != string(before) {
				t.Errorf("%s: asking has changed what was asked about", row.section)
			}
		})
	}
}

// A caller who is not in the groups of a key changes only the fields that give the key nothing. Giving says of each field whether
// it is one. Source: ADR-0005.
func TestFieldsThatGiveNothing(t *testing.T) {
	t.Parallel()
	goType := reflect.TypeFor[model.OwnedAccessKeySpec]()
	known := map[string]bool{}
	for i := range goType.NumField() {
		name, _, _ := strings.Cut(goType.Field(i).Tag.Get("json"), ",")
		gives, stated := giving[name]
		known[name] = true
		if !stated {
			t.Errorf("giving does not say what spec.%s gives a key", name)
			continue
		}
		old := key(t, `{user: alice, groups: [x]}`)
		old.Spec.Disabled = name == "disabled"
		changed := old.DeepCopy()
		switch name {
		case "groups":
			changed.Spec.Groups = append(changed.Spec.Groups, "y")
		case "disabled":
			changed.Spec.Disabled = false
		default:
			reflect.ValueOf(&changed.Spec).Elem().Field(i).Set(another(t, goType.Field(i).Type))
		}
		outside := slices.Contains(found(refused(alice, changed, old)), forbidden+"spec.groups[0]")
		if outside != (gives != "") {
			t.Errorf("a change of spec.%s is refused to a caller outside the groups: %v, and giving says %q", name, outside, gives)
		}
	}
	for name := range giving {
		if !known[name] {
			t.Errorf("giving has spec.%s, which is no field", name)
		}
	}
}

// another returns a value of a type that is not its zero value.
func another(t *testing.T, goType reflect.Type) reflect.Value {
	t.Helper()
	value := reflect.New(goType).Elem()
	switch goType.Kind() {
	case reflect.String:
		value.SetString("x")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int64:
		value.SetInt(1)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(goType, 1, 1))
	case reflect.Pointer:
		value.Set(reflect.New(goType.Elem()))
	default:
		t.Fatalf("no value of %s", goType)
	}
	return value
}

// refused returns the fields that a caller may not write.
func refused(caller identity.Caller, key, old *model.OwnedAccessKey) field.ErrorList {
	all := rules(0).Rules
	var before func() []auth.Grant
	if old != nil {
		before = func() []auth.Grant { return all.Grants(old) }
	}
	return append(auth.ExceededGrants(caller, all.Grants(key), before), all.Authorize(caller, key, old)...)
}

const brought = "brought-along-by-the-client-0123456789"

func TestSeal(t *testing.T) {
	made, err := accesskey.NewBearer(seeded())
	if err != nil {
		t.Fatal(err)
	}
	stored := store.Record{Name: "ci", Digest: accesskey.Digest(brought)}
	refused := []string{invalid + "spec.key"}
	for _, row := range []struct {
		section  string
		sentence string
		stored   store.Record
		change   func(*model.OwnedAccessKey)
		key      string
		reveal   secret.String
		want     []string
	}{
		{"ADR-0005", "a key without one gets one", store.Record{}, nil, "", made, nil},
		{"ADR-0005", "a client may bring its own", store.Record{}, nil, brought, brought, nil},
		{"ADR-0005", "also one that the server might have made", store.Record{}, nil, made.Reveal(), made, nil},
		{"ADR-0005", "but not one that looks like it and is not", store.Record{}, nil, made.Reveal()[:49] + flip(made.Reveal()[49]), "", refused},
		{"ADR-0022", "nor one that is easy to guess", store.Record{}, nil, strings.Repeat("a", 40), "", refused},
		{"ADR-0005", "nor a short one", store.Record{}, nil, strings.Repeat("x", 31), "", refused},
		{"ADR-0005", "nor a long one", store.Record{}, nil, strings.Repeat("x", 257), "", refused},
		{"ADR-0005", "nor one with a blank", store.Record{}, nil, brought + " x", "", refused},
		{"ADR-0005", "a stored key keeps its own", stored, nil, "", "", nil},
		{"ADR-0005", "an update may repeat it", stored, nil, brought, "", nil},
		{"ADR-0005", "an update cannot change it", stored, nil, brought + "x", "", refused},
		{"ADR-0005", "not even to something that is no key", stored, nil, "x", "", refused},
		{"ADR-0005", "a copy in the description is refused", store.Record{}, func(k *model.OwnedAccessKey) { k.Spec.Description = "it is " + brought }, brought, "", refused},
		{"ADR-0005", "a copy in the display name is refused", store.Record{}, func(k *model.OwnedAccessKey) { k.Spec.DisplayName = brought }, brought, "", refused},
		{"ADR-0005", "a copy in an annotation is refused", store.Record{}, func(k *model.OwnedAccessKey) { k.Annotations = map[string]string{"note": "<" + brought + ">"} }, brought, "", refused},
		{"ADR-0005", "a copy as the name is refused", store.Record{}, func(k *model.OwnedAccessKey) { k.Name = brought }, brought, "", refused},
		{"ADR-0005", "a copy in a label is refused", store.Record{}, func(k *model.OwnedAccessKey) { k.Labels = map[string]string{"key": brought} }, brought, "", refused},
		{"ADR-0005", "a copy in a repetition is refused", stored, func(k *model.OwnedAccessKey) { k.Spec.Description = brought }, brought, "", refused},
		{"ADR-0005", "a copy of special characters is refused", store.Record{}, func(k *model.OwnedAccessKey) { k.Spec.Description = `a"b\c<d>e&f` + brought + `"` },
			`a"b\c<d>e&f` + brought + `"`, "", refused},
		{"ADR-0005", "a copy in a manifest that cannot be read is refused", store.Record{}, func(k *model.OwnedAccessKey) {
			k.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"key":"` + brought + `"`}
		}, brought, "", refused},
		{"ADR-0005", "a copy elsewhere in the manifest is refused", store.Record{}, func(k *model.OwnedAccessKey) {
			k.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"key":"` + brought + `","description":"` + brought + `"}}`}
		}, brought, "", refused},
		{"ADR-0005", "the manifest of kubectl apply loses it", store.Record{}, func(k *model.OwnedAccessKey) {
			k.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"key":"` + brought + `","user":"a"}}`}
		}, brought, brought, nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			k := key(t, `{user: a}`)
			k.Spec.Key = row.key
			if row.change != nil {
				row.change(k)
			}
			sealed, problems := rules(0).Rules.Seal(k, row.stored)
			same(t, found(problems), row.want)
			if k.Spec.Key != "" {
				t.Errorf("%s: the object still holds its key", row.section)
			}
			for _, problem := range problems {
				if row.key != "" && len(row.key) > 8 && strings.Contains(problem.Error(), row.key) {
					t.Errorf("the problem quotes the key: %v", problem)
				}
			}
			if len(problems) > 0 {
				if sealed.Digest != "" || sealed.Reveal != nil {
					t.Errorf("a refused key is sealed")
				}
				return
			}
			text, _ := json.Marshal(k)
			if row.key != "" && strings.Contains(string(text), row.key) {
				t.Errorf("the object holds the key: %s", text)
			}
			if want := row.stored.Digest; want != "" {
				if sealed.Digest != want || sealed.Reveal != nil {
					t.Errorf("a stored key is sealed anew or shown")
				}
				return
			}
			if sealed.Digest != accesskey.Digest(row.reveal) || sealed.Reveal == nil {
				t.Fatalf("digest is %s", sealed.Digest)
			}
			if sealed.Reveal(k); k.Spec.Key != row.reveal.Reveal() {
				t.Errorf("the answer shows another key")
			}
		})
	}
}

// The manifest that kubectl apply stores in an annotation loses the key and nothing else: kubectl compares the rest with the next
// manifest. Source: ADR-0005.
func TestSealKeepsManifest(t *testing.T) {
	const annotation = "kubectl.kubernetes.io/last-applied-configuration"
	for _, row := range []struct{ sentence, manifest, want string }{
		{"without a key it stays as it is", `{"spec": {"user":"a"}}` + "\n", `{"spec": {"user":"a"}}` + "\n"},
		{"without a spec it stays as it is", `{ }`, `{ }`},
		{"what cannot be read stays as it is", `{"spec":`, `{"spec":`},
		{"what is no object stays as it is", `[1]`, `[1]`},
		{"a spec that is no object stays as it is", `{"spec":"key"}`, `{"spec":"key"}`},
		{"the key goes", `{"kind":"OwnedAccessKey","spec":{"key":"k","user":"a"}}`, `{"kind":"OwnedAccessKey","spec":{"user":"a"}}` + "\n"},
		{"numbers keep their digits", `{"spec":{"key":"k","ttl":9223372036854775807}}`, `{"spec":{"ttl":9223372036854775807}}` + "\n"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			k := key(t, `{user: a}`)
			k.Annotations = map[string]string{annotation: row.manifest}
			if _, problems := rules(0).Rules.Seal(k, store.Record{Digest: "x"}); len(problems) > 0 {
				t.Fatalf("refused: %v", problems)
			}
			if got := k.Annotations[annotation]; got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
		})
	}
}

// Without random bytes no key is created, rather than a weak one.
func TestSealWithoutRandomness(t *testing.T) {
	r := accesskey.NewRegistry(nil, nil, iotest.ErrReader(fmt.Errorf("no entropy")), nil)
	sealed, problems := r.Rules.Seal(key(t, `{user: a}`), store.Record{})
	if len(problems) == 0 || sealed.Digest != "" || sealed.Reveal != nil {
		t.Errorf("problems are %v", problems)
	}
}

func TestIndex(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		spec     string
		activity time.Duration
		owner    string
		expires  time.Duration
	}{
		{"ADR-0005", "a key is found by its user", `{user: a}`, never, "user:a", never},
		{"ADR-0005", "a key is found by its team", `{team: a}`, never, "team:a", never},
		{"ADR-0005", "a key is found by its subject", `{subject: "a b"}`, never, "subject:a b", never},
		{"Spec 2.5", "a key is due when its ttl is over", `{user: a, ttl: 60}`, time.Minute, "user:a", time.Minute},
		{"Spec 2.5", "a key is due a ttl after its last use", `{user: a, ttl: 60, ttlAfterLastActivity: true}`, time.Minute, "user:a", 2 * time.Minute},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			// The cap is not in the index, since it may change after the key was written.
			owner, expires := rules(time.Second).Rules.Index(key(t, row.spec), after(row.activity))
			if owner != row.owner || !expires.Equal(after(row.expires)) {
				t.Errorf("%s: got %q, %v", row.section, owner, expires)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	at := func(d time.Duration) *metav1.Time {
		if d == never {
			return nil
		}
		return &metav1.Time{Time: born.Add(d)}
	}
	for _, row := range []struct {
		section       string
		sentence      string
		spec          string
		activity      time.Duration
		limit         time.Duration
		last, expires time.Duration
	}{
		{"Spec 2.5", "an unused key without end", `{user: a}`, never, 0, never, never},
		{"Spec 2.5", "a key shows its last use", `{user: a}`, time.Minute, 0, time.Minute, never},
		{"ADR-0005", "a key shows its end", `{user: a, ttl: 60}`, never, 0, never, time.Minute},
		{"ADR-0005", "a key shows an end that is over", `{user: a, ttl: 60}`, time.Hour, 0, time.Hour, time.Minute},
		{"ADR-0005", "a key shows the end that the cap gives it", `{user: a}`, never, time.Hour, never, time.Hour},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			k := key(t, row.spec)
			// The status that a client sends is ignored.
			k.Status.LastActivity, k.Status.ExpirationTimestamp = at(time.Second), at(time.Second)
			rules(row.limit).Rules.Observe(k, store.Record{Name: "ci", Activity: after(row.activity)})
			if !k.Status.LastActivity.Equal(at(row.last)) || !k.Status.ExpirationTimestamp.Equal(at(row.expires)) {
				t.Errorf("%s: status is %+v", row.section, k.Status)
			}
		})
	}
}

// No response contains the secrets of logins. Source: Spec 2.5 (connectorData); ADR-0005.
func TestObserveHidesSecrets(t *testing.T) {
	k := key(t, `{user: a, identity: {userId: x, connectorData: "c2VjcmV0"}, oidcLogin: {idToken: a, accessToken: b, refreshToken: c, lastRefresh: "2026-03-01T12:00:00Z"}}`)
	rules(0).Rules.Observe(k, store.Record{Name: "ci"})
	got, _ := json.Marshal(k.Spec)
	want, _ := json.Marshal(spec(t, `{user: a, identity: {userId: x}, oidcLogin: {lastRefresh: "2026-03-01T12:00:00Z"}}`))
	if string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWarn(t *testing.T) {
	for _, row := range []struct {
		section  string
		sentence string
		spec     string
		limit    time.Duration
		warns    bool
	}{
		{"ADR-0005", "a ttl above the cap is accepted with a warning", `{ttl: 61}`, time.Minute, true},
		{"ADR-0005", "a ttl of the cap is accepted", `{ttl: 60}`, time.Minute, false},
		{"ADR-0005", "the longest ttl is accepted with a warning", `{ttl: 9223372036854775807}`, time.Minute, true},
		{"ADR-0005", "no ttl is accepted", `{}`, time.Minute, false},
		{"Spec 8", "without a cap there is nothing to warn of", `{ttl: 9223372036854775807}`, 0, false},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			if got := rules(row.limit).Rules.Warn(key(t, row.spec)); (len(got) > 0) != row.warns {
				t.Errorf("%s: warnings are %q", row.section, got)
			}
		})
	}
}

func TestOwnerOf(t *testing.T) {
	for text, want := range map[string]identity.Owner{
		`{}`:           {},
		`{user: a}`:    {Kind: identity.User, Name: "a"},
		`{team: a}`:    {Kind: identity.Team, Name: "a"},
		`{subject: a}`: {Kind: identity.Subject, Name: "a"},
	} {
		s := spec(t, text)
		if got := accesskey.OwnerOf(&s); got != want {
			t.Errorf("owner of %s is %v, want %v", text, got, want)
		}
	}
}

// TestCells pins what kubectl get prints. Source: ADR-0004.
func TestCells(t *testing.T) {
	now := born.Add(50 * time.Hour)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	var text strings.Builder
	for _, column := range accesskey.Definition.Columns {
		fmt.Fprintf(&text, "%s (%s, %d) ", column.Name, column.Type, column.Priority)
	}
	text.WriteString("\n")
	for _, row := range []struct {
		name   string
		spec   string
		status model.OwnedAccessKeyStatus
	}{
		{"plain", `{user: alice, type: User}`, model.OwnedAccessKeyStatus{}},
		{"used", `{team: dev, type: Other, displayName: CI, description: "two words", disabled: true}`,
			model.OwnedAccessKeyStatus{LastActivity: at(-90 * time.Second), ExpirationTimestamp: at(36 * time.Hour)}},
		{"just-expired", `{subject: robot, type: User}`, model.OwnedAccessKeyStatus{ExpirationTimestamp: at(0)}},
		{"long-expired", `{subject: robot, type: User}`, model.OwnedAccessKeyStatus{ExpirationTimestamp: at(-time.Hour)}},
		{"nothing", `{user: alice, type: User, scope: {}}`, model.OwnedAccessKeyStatus{}},
		{"everything", `{user: alice, type: User, scope: {allowPlatformCli: true, roles: [{role: agent}, {role: vcluster, projects: [p]}], projects: [{project: a}],
			spaces: [{project: a, space: s}], virtualClusters: [{project: a, virtualCluster: "*"}], clusters: [{cluster: c}], rules: [{}, {}]}}`, model.OwnedAccessKeyStatus{}},
		{"a long name", `{user: alice, type: User, scope: {readOnly: true, virtualClusters: [{project: enterprise-applications, virtualCluster: staging-of-the-shop}, {project: a, virtualCluster: b}]}}`,
			model.OwnedAccessKeyStatus{}},
	} {
		k := key(t, row.spec)
		k.Name, k.Status = row.name, row.status
		cells := accesskey.Definition.Cells(k, now)
		if len(cells) != len(accesskey.Definition.Columns) {
			t.Errorf("%s: %d cells for %d columns", row.name, len(cells), len(accesskey.Definition.Columns))
		}
		if brief, isText := cells[3].(string); !isText || len([]rune(brief)) > 42 {
			t.Errorf("%s: the scope %v makes the table too wide", row.name, cells[3])
		}
		line, _ := json.Marshal(cells)
		fmt.Fprintf(&text, "%s\n", line)
	}
	golden(t, "cells.txt", text.String())
	if cells := accesskey.Definition.Cells(&model.OwnedAccessKey{}, now); !slices.Contains(cells, any("<unknown>")) {
		t.Errorf("a key without creation time has the cells %v", cells)
	}
}
