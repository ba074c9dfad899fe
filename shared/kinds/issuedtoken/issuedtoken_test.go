package issuedtoken_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

var root = issuertest.Root

type tokenSpec = model.DirectClusterEndpointTokenSpec

// A revoked token is refused immediately and permanently, however it was revoked. The token is then on the deny list for
// verifiers that do not ask the platform. Source: D16 of the design; ADR-0011.
func TestRevoked(t *testing.T) {
	t.Parallel()
	deleteKey := func(in resource.DeleteInput) func(*issuertest.World, *model.DirectClusterEndpointToken) {
		return func(w *issuertest.World, _ *model.DirectClusterEndpointToken) {
			in.Caller, in.Name = root, "ci"
			if _, err := resource.Delete(t.Context(), kinds.AccessKeys(w.Env), in); err != nil {
				t.Error(err)
			}
		}
	}
	for about, row := range map[string]struct {
		revoke func(*issuertest.World, *model.DirectClusterEndpointToken)
		// listed reports whether the list has the token before the schedule runs.
		listed bool
	}{
		"deleted": {func(w *issuertest.World, token *model.DirectClusterEndpointToken) {
			if _, err := resource.Delete(t.Context(), kinds.IssuedTokens(w.Env).Registry, resource.DeleteInput{Caller: w.Caller("ci"), Name: token.Name}); err != nil {
				t.Error(err)
			}
		}, true},
		"deleted with all": {func(w *issuertest.World, _ *model.DirectClusterEndpointToken) {
			in := resource.DeleteInput{Caller: w.Caller("ci"), Selection: &resource.ListInput{Caller: w.Caller("ci")}}
			if _, err := resource.Delete(t.Context(), kinds.IssuedTokens(w.Env).Registry, in); err != nil {
				t.Error(err)
			}
		}, true},
		"its key disabled": {func(w *issuertest.World, _ *model.DirectClusterEndpointToken) {
			w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
		}, false},
		"its key deleted":                 {deleteKey(resource.DeleteInput{}), true},
		"its key deleted, tokens to stay": {deleteKey(resource.DeleteInput{Propagation: "Orphan"}), false},
		"its key deleted, tokens first":   {deleteKey(resource.DeleteInput{Propagation: "Foreground"}), true},
		"the platform's cap was lowered": {func(w *issuertest.World, _ *model.DirectClusterEndpointToken) {
			w.Env.Config().Auth.AccessKeyMaxTTLSeconds = 1
		}, false},
		"the owner of its key is deleted": {func(w *issuertest.World, _ *model.DirectClusterEndpointToken) {
			keys, owner := kinds.AccessKeys(w.Env), w.Key("owner", "ana", model.OwnedAccessKeySpec{})
			_, err := resource.Patch(t.Context(), keys, resource.PatchInput{Caller: w.Caller("ci"), Name: "ci", Type: resource.MergePatch, Patch: fmt.Appendf(nil,
				`{"metadata":{"ownerReferences":[{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","name":"owner","uid":%q}]}}`, owner.KeyUID)})
			if err != nil {
				t.Error(err)
			}
			// The process died before it deleted the dependents.
			record, err := keys.Store.Get(t.Context(), "owner")
			if err == nil {
				_, err = keys.Store.Delete(t.Context(), record.Name, record.Revision)
			}
			if err != nil {
				t.Error(err)
			}
		}, false},
		"its key ends earlier than before": {func(w *issuertest.World, _ *model.DirectClusterEndpointToken) {
			w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.TTLSeconds = 1 })
		}, false},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := issuertest.New(t)
			w.Env.Config().Auth = &model.ConfigAuth{}
			caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
			token := w.Issue(caller, tokenSpec{})
			other := w.Issue(w.Key("other", "ben", model.OwnedAccessKeySpec{}), tokenSpec{})
			for range 2 {
				if w.Revoked(string(token.UID)) {
					t.Fatal("refused before it was revoked")
				}
			}
			w.Sweep()
			w.Pass(time.Second)
			row.revoke(w, token)
			if !w.Revoked(string(token.UID)) {
				t.Error("still good")
			}
			if listed := slices.Equal(w.Denied(), []string{string(token.UID)}); listed != row.listed {
				t.Errorf("before the schedule the list has %q", w.Denied())
			}
			w.Env.Config().Auth.AccessKeyMaxTTLSeconds = min(w.Env.Config().Auth.AccessKeyMaxTTLSeconds, 1)
			w.Sweep()
			denied := w.Denied()
			if !slices.Contains(denied, string(token.UID)) {
				t.Errorf("after the schedule the list has %q", denied)
			}
			// The revocation is permanent: an access key that returns does not make its tokens valid again.
			w.Env.Config().Auth.AccessKeyMaxTTLSeconds = 0
			if about == "its key disabled" {
				w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = false })
			}
			if !w.Revoked(string(token.UID)) {
				t.Error("good again")
			}
			if about != "the platform's cap was lowered" && w.Revoked(string(other.UID)) {
				t.Error("another key's token is refused")
			}
			// Expired tokens leave the list.
			w.Pass(time.Hour)
			if done := w.Sweep(); done.Forgotten != len(denied) || len(w.Denied()) != 0 || len(w.Records()) != 0 {
				t.Errorf("at the end %+v, %q, %q", done, w.Denied(), w.Records())
			}
		})
	}
}

// A key that was deleted and created again with the same name is a different key. A new record with the name of a revoked token's
// record is of a different token.
func TestNamesComeBack(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	token := w.Issue(w.Key("ci", "ana", model.OwnedAccessKeySpec{}), tokenSpec{})
	record, err := kinds.AccessKeys(w.Env).Store.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	// The test deletes in the store, not with the API, so that no dependents are deleted.
	if _, err := kinds.AccessKeys(w.Env).Store.Delete(t.Context(), "ci", record.Revision); err != nil {
		t.Fatal(err)
	}
	w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	if !w.Revoked(string(token.UID)) {
		t.Error("the new key brought the old token")
	}
	if done := w.Sweep(); done.Revoked != 1 {
		t.Errorf("swept %+v", done)
	}
	if !w.Revoked("5d0c") || !w.Revoked("") {
		t.Error("a token that never was is good")
	}
}

// Users see their own records and the records of their teams. Admins see all records.
func TestSeen(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	ben := w.Key("ben", "ben", model.OwnedAccessKeySpec{Groups: []string{identity.TeamPrefix + "core"}})
	hers, bens := w.Issue(ana, tokenSpec{}), w.Issue(ben, tokenSpec{})
	register := kinds.IssuedTokens(w.Env)
	for about, row := range map[string]struct {
		caller identity.Caller
		sees   int
		code   int32
	}{"ana": {ana, 1, 0}, "ben": {ben, 1, 404}, "root": {root, 2, 0}} {
		list, err := resource.List(t.Context(), register.Registry, resource.ListInput{Caller: row.caller})
		if err != nil || len(list.(*model.DirectClusterEndpointTokenList).Items) != row.sees {
			t.Errorf("%s sees %v, %v", about, list, err)
		}
		for _, item := range list.(*model.DirectClusterEndpointTokenList).Items {
			if item.Status.Token != "" {
				t.Errorf("%s is shown a token", about)
			}
		}
		got, err := resource.Get(t.Context(), register.Registry, resource.GetInput{Caller: row.caller, Name: hers.Name})
		if accesskeytest.Code(err) != row.code || err == nil && got.Status.Token != "" {
			t.Errorf("%s gets %v, %v", about, got, err)
		}
	}
	if _, err := resource.Delete(t.Context(), register.Registry, resource.DeleteInput{Caller: ana, Name: bens.Name}); accesskeytest.Code(err) != 404 {
		t.Errorf("ana revokes ben's: %v", err)
	}
	if w.Revoked(string(bens.UID)) || len(w.Denied()) != 0 {
		t.Error("what ana may not do was done")
	}
}

// A grace period is observed, and a revocation that fails a precondition changes nothing.
func TestDeleteOptions(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	token := w.Issue(ana, tokenSpec{})
	remove := func(in resource.DeleteInput) error {
		in.Caller, in.Name = ana, token.Name
		_, err := resource.Delete(t.Context(), kinds.IssuedTokens(w.Env).Registry, in)
		return err
	}
	if err := remove(resource.DeleteInput{UID: "other"}); accesskeytest.Code(err) != 409 {
		t.Errorf("another one: %v", err)
	}
	if err := remove(resource.DeleteInput{DryRun: true}); err != nil {
		t.Error(err)
	}
	if w.Revoked(string(token.UID)) || len(w.Denied()) != 0 {
		t.Error("nothing was to be done")
	}
	if err := remove(resource.DeleteInput{GracePeriodSeconds: new(int64(30))}); err != nil {
		t.Error(err)
	}
	if w.Revoked(string(token.UID)) {
		t.Error("refused within the grace period")
	}
	w.Pass(30 * time.Second)
	if !w.Revoked(string(token.UID)) {
		t.Error("good after the grace period")
	}
}

// The schedule removes expired records, revokes tokens that must not be valid, and leaves the rest. The same holds for several
// pages, for a second run and with an unreadable record.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana, ben := w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	const each = 260
	for range each {
		w.Issue(ana, tokenSpec{TTLSeconds: 60})
		w.Issue(ana, tokenSpec{})
		w.Issue(ben, tokenSpec{})
	}
	w.Pass(time.Minute)
	w.Change("ben", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
	told := 0
	observed := resource.ObserveRemovals(t.Context(), func(resource.Change) { told++ })
	want := issuedtoken.Swept{Expired: each, Revoked: each}
	if done, err := kinds.IssuedTokens(w.Env).Sweep(observed); err != nil || done != want || told != 2*each {
		t.Errorf("swept %+v, want %+v, and told the audit of %d: %v", done, want, told, err)
	}
	if done := w.Sweep(); done != (issuedtoken.Swept{}) {
		t.Errorf("and again %+v", done)
	}
	if left, denied := w.Records(), w.Denied(); len(left) != each || len(denied) != each {
		t.Errorf("%d are left, %d denied", len(left), len(denied))
	}
	register := kinds.IssuedTokens(w.Env)
	if _, err := register.Store.Create(t.Context(), store.Record{Name: "a", Created: issuertest.Born, Object: []byte("7")}); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Hour)
	done, err := register.Sweep(t.Context())
	if want := (issuedtoken.Swept{Expired: each, Forgotten: each, Broken: 1}); done != want || err == nil {
		t.Errorf("swept %+v, %v, want %+v and an error", done, err, want)
	}
}

// The schedule revokes a token that was signed with a wider scope than its key has now, because some verifiers do not ask the
// platform. Until then, the scope of the key narrows the token. Source: ADR-0021.
func TestNarrowedKeys(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	clusters := func(names ...string) *model.Scope {
		s := &model.Scope{}
		for _, name := range names {
			s.Clusters = append(s.Clusters, model.ScopeCluster{Cluster: name})
		}
		return s
	}
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{Scope: clusters("a", "b")})
	ben := w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	wide, narrow, directClusterEndpointToken := w.Issue(ana, tokenSpec{}), w.Issue(ana, tokenSpec{Scope: clusters("a")}), w.Issue(ben, tokenSpec{})
	expect := func(after string, revoked ...bool) {
		t.Helper()
		for i, token := range []*model.DirectClusterEndpointToken{wide, narrow, directClusterEndpointToken} {
			if got := w.Revoked(string(token.UID)); got != revoked[i] {
				t.Errorf("after %s, token %d is revoked: %v", after, i, got)
			}
		}
	}
	if done := w.Sweep(); done != (issuedtoken.Swept{}) {
		t.Errorf("swept %+v", done)
	}
	w.Change("ana", func(spec *model.OwnedAccessKeySpec) { spec.Scope = clusters("a") })
	w.Change("ben", func(spec *model.OwnedAccessKeySpec) { spec.Scope = clusters("b") })
	expect("the change", false, false, false)
	for id, want := range map[string]*model.Scope{string(wide.UID): clusters("a"), string(directClusterEndpointToken.UID): clusters("b")} {
		if _, present, err := kinds.IssuedTokens(w.Env).Revoked(t.Context(), id); err != nil || !reflect.DeepEqual(present.Scopes, []*model.Scope{want}) {
			t.Errorf("the scopes of its key are %+v, %v", present.Scopes, err)
		}
	}
	if done := w.Sweep(); done.Revoked != 2 {
		t.Errorf("swept %+v", done)
	}
	expect("the schedule", true, false, true)
}

// For verifiers that ask the platform, a token gives no group that its owner has lost. The schedule revokes the token for
// verifiers that do not ask. Source: ADR-0029.
func TestLostGroups(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.User("ana", "staff")
	w.Team("web", "ana")
	w.Team("ops", "ana")
	token := w.Issue(w.Key("all", "ana", model.OwnedAccessKeySpec{}), tokenSpec{})
	staff := w.Issue(w.Key("staff", "ana", model.OwnedAccessKeySpec{Groups: []string{"staff"}}), tokenSpec{})
	groups := func(token *model.DirectClusterEndpointToken) []string {
		t.Helper()
		claims, _, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Verify(t.Context(), secret.String(token.Status.Token), issuer.Open(w.Env, issuedtoken.Open(w.Env)).Audiences())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(claims.Groups)
		return claims.Groups
	}
	expect := func(about string, token *model.DirectClusterEndpointToken, want ...string) {
		t.Helper()
		if got := groups(token); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", about, got, want)
		}
	}
	const authenticated, user, ops, web = identity.Authenticated, "platform:user:ana", "platform:team:ops", "platform:team:web"
	expect("at first", token, authenticated, ops, web, user, "staff")
	expect("of the narrower key", staff, authenticated, user, "staff")
	if got := token.Status.Groups; len(got) != 5 {
		t.Errorf("the record has the groups %q", got)
	}
	w.Team("later", "ana")
	expect("after she joined a team", token, authenticated, ops, web, user, "staff")
	if done := w.Sweep(); done != (issuedtoken.Swept{}) {
		t.Errorf("swept %+v", done)
	}
	if _, err := resource.Patch(t.Context(), kinds.Teams(w.Env), resource.PatchInput{
		Caller: root, Name: "web", Type: resource.MergePatch, Patch: []byte(`{"spec":{"users":[]}}`),
	}); err != nil {
		t.Fatal(err)
	}
	expect("after she left a team", token, authenticated, ops, user, "staff")
	expect("of the narrower key after that", staff, authenticated, user, "staff")
	if done := w.Sweep(); done.Revoked != 1 || !w.Revoked(string(token.UID)) || w.Revoked(string(staff.UID)) {
		t.Errorf("swept %+v", done)
	}
}

// While the state is unavailable, no token is reported as valid.
func TestStateAway(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	token := w.Issue(w.Key("ana", "ana", model.OwnedAccessKeySpec{}), tokenSpec{})
	for _, known := range []bool{false, true} {
		register := issuedtoken.NewRegister(kinds.IssuedTokens(w.Env).Store, nil, accesskey.Open(w.Env), w.Now, nil, func() accesskey.Limits { return accesskey.Limits{} })
		if known {
			if _, _, err := register.Revoked(t.Context(), string(token.UID)); err != nil {
				t.Fatal(err)
			}
		}
		keys := accesskey.Open(w.Env)
		good := keys.Store
		keys.Store = away{good}
		revoked, _, err := register.Revoked(t.Context(), string(token.UID))
		if !errors.Is(err, store.ErrUnavailable) || !revoked {
			t.Errorf("without the access keys: %v, %v", revoked, err)
		}
		if _, err := kinds.IssuedTokens(w.Env).Sweep(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("the schedule: %v", err)
		}
		keys.Store = good
		if len(w.Records()) != 1 || len(w.Denied()) != 0 {
			t.Error("tokens were revoked because their keys could not be read")
		}
	}
}

// away is a store whose reads fail.
type away struct{ store.Store }

func (away) GetMany(context.Context, []string) ([]store.Record, int, error) {
	return nil, 0, store.ErrUnavailable
}

func (away) Get(_ context.Context, _ string) (store.Record, error) {
	return store.Record{}, fmt.Errorf("reading: %w", store.ErrUnavailable)
}

func TestTable(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	token := w.Issue(w.Key("ana", "ana", model.OwnedAccessKeySpec{}), tokenSpec{Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}})
	row := func(now time.Time) []any { return issuedtoken.Definition.Cells(token, now) }
	if got, want := row(issuertest.Born.Add(time.Minute)), []any{token.Name, "user:ana", "ana", "in 59m", "60s", string(token.UID), "project:a", ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := row(issuertest.Born.Add(time.Hour)); got[3] != "expired" || len(got) != len(issuedtoken.Definition.Columns) {
		t.Errorf("%q", got)
	}
	if strings.Contains(fmt.Sprint(row(issuertest.Born)...), token.Status.Token) {
		t.Error("the table shows the token")
	}
	for about, status := range map[string]model.DirectClusterEndpointTokenStatus{
		"user:a": {User: "a"}, "team:b": {Team: "b"}, "subject:c": {Subject: "c"}, ":": {},
	} {
		if got := issuedtoken.OwnerOf(&status).String(); got != about {
			t.Errorf("%q, want %q", got, about)
		}
	}
}

// A record shows when the token ends with the keys to which it is bound, and which key asked for it. Source: ADR-0021.
func TestEndWithItsKey(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ana", "ana", model.OwnedAccessKeySpec{TTLSeconds: 3000})
	token := w.Issue(caller, tokenSpec{TTLSeconds: 2000})
	shown := func() time.Duration {
		t.Helper()
		list, err := resource.List(t.Context(), kinds.IssuedTokens(w.Env).Registry, resource.ListInput{
			Caller: caller, Fields: fields.ParseSelectorOrDie("status.createdBy.uid=" + caller.KeyUID + ",status.lineage.uid=" + caller.KeyUID),
		})
		if err != nil {
			t.Fatal(err)
		}
		items := list.(*model.DirectClusterEndpointTokenList).Items
		if len(items) != 1 || items[0].Name != token.Name || items[0].Status.CreatedBy.Name != "ana" {
			t.Fatalf("selected %+v", items)
		}
		return items[0].Status.ExpirationTimestamp.Sub(issuertest.Born)
	}
	if got := shown(); got != 2000*time.Second {
		t.Errorf("ends after %v", got)
	}
	w.Change("ana", func(spec *model.OwnedAccessKeySpec) { spec.TTLSeconds = 1000 })
	if got := shown(); got != 1000*time.Second {
		t.Errorf("with its key it ends after %v", got)
	}
}

// If authentication has read the record of a token, it is not mistaken for the record of the access key with the same name.
// Source: ADR-0002.
func TestPrefetchedWithTheNameOfItsKey(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ana", "ana", model.OwnedAccessKeySpec{TTLSeconds: 3000})
	_, err := issuer.Open(w.Env, issuedtoken.Open(w.Env)).Issue(t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{
		ObjectMeta: metav1.ObjectMeta{Name: "ana"}, Spec: tokenSpec{TTLSeconds: 2000},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tokens := kinds.IssuedTokens(w.Env).Registry
	record, err := tokens.Store.Get(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	w.Change("ana", func(spec *model.OwnedAccessKeySpec) { spec.TTLSeconds = 1000 })
	read, err := resource.Get(t.Context(), tokens, resource.GetInput{Caller: caller, Name: "ana", Prefetched: map[string]store.Record{"ana": record}})
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Status.ExpirationTimestamp.Sub(issuertest.Born); got != 1000*time.Second {
		t.Errorf("with its key it ends after %v", got)
	}
}

// A token that is revoked before it expires counts for the quota of its owner until it expires, whichever caller revokes it.
// Tokens of other owners do not count, and the schedule revokes without a quota. Source: ADR-0047.
func TestRevokedTokensCount(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Env.Quota = store.Quota{Objects: 3}
	tokens := kinds.IssuedTokens(w.Env)
	ana, ben := w.Key("ci", "ana", model.OwnedAccessKeySpec{}), w.Key("other", "ben", model.OwnedAccessKeySpec{})
	revoke := func(caller identity.Caller) error {
		made := w.Issue(caller, tokenSpec{})
		_, err := resource.Delete(t.Context(), tokens.Registry, resource.DeleteInput{Caller: caller, Name: made.Name})
		return err
	}
	for range 3 {
		if err := revoke(ana); err != nil {
			t.Fatal(err)
		}
	}
	if err := revoke(ana); accesskeytest.Code(err) != 429 {
		t.Errorf("the fourth token: %v", err)
	}
	if err := revoke(ben); err != nil {
		t.Errorf("a token of somebody else: %v", err)
	}
	w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true })
	if done := w.Sweep(); done.Revoked != 1 || len(w.Denied()) != 5 {
		t.Errorf("the schedule: %+v, %d tokens are denied", done, len(w.Denied()))
	}
	w.Pass(time.Hour)
	w.Sweep()
	w.Change("ci", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = false })
	if err := revoke(ana); err != nil {
		t.Errorf("after the tokens have expired: %v", err)
	}
}
