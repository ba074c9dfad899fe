package password_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/credentials/password"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

const (
	first  = "violet-Anchor-93-tundra"
	second = "orbit marmalade zinc 41"
)

var (
	admin = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	ana   = identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	ben   = identity.New(identity.Owner{Kind: identity.User, Name: "ben"}, nil)
)

// world is a platform with the user ana. Its clock stands still until a test moves it between requests.
type world struct {
	*kinds.Stored
	t         *testing.T
	env       *platform.Environment
	passwords *password.Passwords
	now       time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)}
	config := &model.ConfigStatus{}
	w.env = &platform.Environment{
		Stores: redistest.Open(t, redistest.Embedded(t)).Resource, Now: func() time.Time { return w.now }, Random: rand.Reader,
		Log: slog.New(slog.DiscardHandler), Config: func() *model.ConfigStatus { return config },
		Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
	}
	w.Stored = kinds.Open(w.env)
	w.passwords = password.Open(w.env, w.Users)
	w.create("ana")
	return w
}

func (w *world) create(name string) {
	w.t.Helper()
	if _, err := resource.Create(w.t.Context(), w.Users, resource.CreateInput[*model.User]{
		Caller: admin, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: model.UserSpec{Email: "a.mustermann@example.com"}},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// set sets the password of ana.
func (w *world) set(caller identity.Caller, current, next string, dryRun bool) (*model.UserPassword, error) {
	made, err := w.passwords.Set(w.t.Context(), resource.SubresourceInput[*model.UserPassword]{
		Caller: caller, Name: "ana", DryRun: dryRun,
		Object: &model.UserPassword{Spec: model.UserPasswordSpec{Current: secret.String(current), Password: secret.String(next)}},
	})
	return made.Object, err
}

func (w *world) get(caller identity.Caller) *model.User {
	w.t.Helper()
	found, _, err := w.Users.Read(w.t.Context(), caller, "", "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func code(err error) int32 {
	if err == nil {
		return 200
	}
	return apierror.From(err).Status().Code
}

// fields returns the fields that an error names.
func fields(err error) []string {
	var names []string
	if err == nil {
		return nil
	}
	if details := apierror.From(err).Status().Details; details != nil {
		for _, cause := range details.Causes {
			names = append(names, cause.Field)
		}
	}
	return names
}

// Admins can set a password. Users can change their own password if they send the current one. For other callers the user does
// not exist. Each new password raises the generation. A dry run and a refusal change nothing. Source: ADR-0032.
func TestSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		about         string
		caller        identity.Caller
		current, next string
		dry           bool
		code          int32
		fields        []string
		generation    int64
	}{
		{"the user without a password", ana, "", first, false, 403, nil, 0},
		{"an admin, dry", admin, "", first, true, 200, nil, 0},
		{"an admin", admin, "", first, false, 200, nil, 1},
		{"another user", ben, first, second, false, 404, nil, 1},
		{"the user without the current one", ana, "", second, false, 422, []string{"spec.current"}, 1},
		{"the user with a wrong one", ana, second, second, false, 422, []string{"spec.current"}, 1},
		{"all faults at once", ana, "", "short", false, 422, []string{"spec.password", "spec.current"}, 1},
		{"a long current one", ana, strings.Repeat("x", 1025), second, false, 422, []string{"spec.current"}, 1},
		{"the user, dry", ana, first, second, true, 200, nil, 1},
		{"the user", ana, first, second, false, 200, nil, 2},
		{"the user with the one before", ana, first, second, false, 422, []string{"spec.current"}, 2},
		{"an admin again", admin, "", first, false, 200, nil, 3},
	} {
		made, err := w.set(row.caller, row.current, row.next, row.dry)
		if code(err) != row.code || !slices.Equal(fields(err), row.fields) {
			t.Errorf("%s: %v names %v; want %d and %v", row.about, err, fields(err), row.code, row.fields)
		}
		found := w.get(admin)
		if found.Spec.TokenGeneration != row.generation || found.Status.HasPassword != (row.generation > 0) {
			t.Errorf("%s: generation %d, password %v; want %d", row.about, found.Spec.TokenGeneration, found.Status.HasPassword, row.generation)
		}
		if err == nil {
			want := row.generation
			if row.dry {
				want++
			}
			if made.Status.TokenGeneration != want || made.Spec != (model.UserPasswordSpec{}) || made.Name != "ana" {
				t.Errorf("%s: the answer is %+v", row.about, made)
			}
		} else if text := err.Error(); row.next != "" && strings.Contains(text, row.next) || row.current != "" && strings.Contains(text, row.current) {
			t.Errorf("%s: the error quotes a password: %v", row.about, err)
		}
	}
}

// The password stays when other clients write the user, whatever they write, and is deleted with the user. Source: ADR-0032.
func TestPasswordStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.set(admin, "", first, false); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{
		`{"spec":{"displayName":"Ana"}}`, `{"spec":{"disabled":true}}`, `{"spec":{"disabled":false,"extraClaims":{"private":"x"}},"private":"x","status":{"hasPassword":false}}`,
	} {
		if _, err := resource.Patch(t.Context(), w.Users, resource.PatchInput{Caller: admin, Name: "ana", Type: resource.MergePatch, Patch: []byte(patch)}); err != nil {
			t.Fatal(err)
		}
		if !w.get(ana).Status.HasPassword {
			t.Fatalf("%s takes the password away", patch)
		}
	}
	if _, err := w.set(ana, first, second, false); err != nil {
		t.Errorf("the password is another one: %v", err)
	}
	if _, err := resource.Delete(t.Context(), w.Users, resource.DeleteInput{Caller: admin, Name: "ana"}); err != nil {
		t.Fatal(err)
	}
	w.create("ana")
	if w.get(admin).Status.HasPassword {
		t.Error("a new user of the same name has the password")
	}
	if _, err := resource.Patch(t.Context(), w.Users, resource.PatchInput{
		Caller: admin, Name: "ana", Type: resource.MergePatch, Patch: []byte(`{"metadata":{"labels":{"private":"x"}},"spec":{"extraClaims":{"private":"x"}}}`),
	}); err != nil || w.get(admin).Status.HasPassword {
		t.Errorf("a field of the same name is a password, %v", err)
	}
}

// No answer, stored text or audit event has a password or its digest in clear, and a digest opens only at its user. Source: ADR-0032.
func TestPasswordIsNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.set(admin, "", first, false); err != nil {
		t.Fatal(err)
	}
	record, err := w.Users.Store.Get(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	private, err := resource.Private(record)
	if err != nil || private == "" {
		t.Fatalf("%q, %v", private, err)
	}
	if text := string(record.Object); strings.Contains(text, first) || strings.Contains(text, "argon2") {
		t.Errorf("the state has %s", text)
	}
	for _, caller := range []identity.Caller{ana, admin} {
		text, err := json.Marshal(w.get(caller))
		if err != nil || bytes.Contains(text, []byte(private)) || bytes.Contains(text, []byte(`"private"`)) {
			t.Errorf("%s, %v", text, err)
		}
	}
	body := fmt.Appendf(nil, `{"spec":{"current":%q,"password":%q}}`, second, first)
	event, _, why := audit.Body(reflect.TypeFor[*model.UserPassword](), audit.Whole, body)
	if why != "" || bytes.Contains(event, []byte(first)) || bytes.Contains(event, []byte(second)) {
		t.Errorf("the audit has %s %s", event, why)
	}
	// An attacker who can write the state cannot give a user the password of another user.
	w.create("ben")
	other, err := w.Users.Store.Get(t.Context(), "ben")
	if err != nil {
		t.Fatal(err)
	}
	other.Object = append(bytes.TrimSuffix(other.Object, []byte("}")), `,"private":"`+private+`"}`...)
	if _, err := w.Users.Store.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	_, err = w.passwords.Set(t.Context(), resource.SubresourceInput[*model.UserPassword]{
		Caller: ben, Name: "ben", Object: &model.UserPassword{Spec: model.UserPasswordSpec{Current: first, Password: second}},
	})
	if code(err) != 500 {
		t.Errorf("the password of another user: %v", err)
	}
}

// Passwords that are easy to guess are refused, and texts that look the same are the same password. Source: ADR-0032.
func TestRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, row := range []struct {
		password string
		code     int32
	}{
		{"", 422},
		{"elevenchars", 422},
		{"Tr0ub4dor&3", 422},
		{strings.Repeat("ä", 11), 422},
		{strings.Repeat("x", 1025), 422},
		{"password1234", 422},
		{"P@ssw0rd1234!", 422},
		{"qwertyuiop[]", 422},
		{"123456789012345", 422},
		{"aaaaaaaaaaaaaaaaaaaaaaaa", 422},
		{"abcabcabcabcabc", 422},
		{"ana.mustermann", 422},
		{"a.mustermann@example.com", 422},
		{"correct horse battery staple", 422},
		{"letmein-letmein-letmein", 422},
		{"has a line\nend in it, and is long", 422},
		{"not \xff UTF-8, and long enough", 422},
		{"gravel-otter-7-lampshade", 200},
		{"xq7vRk2pTzLm", 200},
		{"wer reitet so spät durch Nacht", 200},
		{"塔の上に猫が三匹いて魚を見た", 200},
		{strings.Repeat("xq7vRk2pTzLm4", 78), 200},
	} {
		_, err := w.set(admin, "", row.password, false)
		if code(err) != row.code {
			t.Errorf("%q: %v, want %d", row.password, err, row.code)
		}
		if row.code == 422 && !slices.Equal(fields(err), []string{"spec.password"}) {
			t.Errorf("%q: the answer names %v", row.password, fields(err))
		}
	}
	// U+FB01 is a ligature, and U+00E9 a letter with an accent that can be two characters.
	if _, err := w.set(admin, "", "wool \ufb01nch caf\u00e9 drum", false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.set(ana, "wool finch cafe\u0301 drum", first, false); err != nil {
		t.Errorf("the same password in another form: %v", err)
	}
}

// In fifteen minutes, at most ten wrong passwords are hashed, however many come at the same time. After ten wrong passwords the
// right password is refused as well. Before that, a right password does not count. Source: ADR-0032.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.set(admin, "", first, false); err != nil {
		t.Fatal(err)
	}
	for range 2 * limits.PasswordFailures {
		if _, err := w.set(ana, first, second, true); err != nil {
			t.Fatalf("a right password counts: %v", err)
		}
	}
	hasher := password.OpenHasher(w.env)
	before := hasher.Runs()
	const many = 2*limits.PasswordFailures + 3
	var (
		all   sync.WaitGroup
		codes [many]int32
	)
	for i := range many {
		all.Go(func() {
			_, err := w.set(ana, second, first, false)
			codes[i] = code(err)
		})
	}
	all.Wait()
	counted := map[int32]int{}
	for _, one := range codes {
		counted[one]++
	}
	if runs := hasher.Runs() - before; counted[422] != limits.PasswordFailures || counted[429] != many-limits.PasswordFailures || runs != limits.PasswordFailures {
		t.Errorf("%v and %d hashes, want %d refusals", counted, runs, limits.PasswordFailures)
	}
	_, err := w.set(ana, first, second, false)
	if details := apierror.From(err).Status().Details; code(err) != 429 || details == nil || details.RetryAfterSeconds != int32(limits.PasswordFailuresWindow/time.Second) {
		t.Errorf("a right password after too many wrong ones: %v", err)
	}
	if _, err := w.set(admin, "", first, false); err != nil {
		t.Errorf("an admin: %v", err)
	}
	w.now = w.now.Add(limits.PasswordFailuresWindow)
	if _, err := w.set(ana, first, second, false); err != nil {
		t.Errorf("after fifteen minutes: %v", err)
	}
	due, err := logins.Failures(w.env).Due(t.Context(), store.DueQuery{Until: w.now.Add(limits.PasswordFailuresWindow)})
	if err != nil || len(due) != 1 {
		t.Errorf("the count never expires: %d, %v", len(due), err)
	}
}

// If the password is set meanwhile, the other change of the password fails. Another change of the user does not make it fail.
// Source: ADR-0032.
func TestSetAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.set(admin, "", first, false); err != nil {
		t.Fatal(err)
	}
	const many = 5
	var (
		all   sync.WaitGroup
		codes [many]int32
	)
	for i := range many {
		all.Go(func() {
			_, err := w.set(ana, first, fmt.Sprintf("%s number %d", second, i), false)
			codes[i] = code(err)
		})
	}
	all.Wait()
	won := 0
	for _, one := range codes {
		switch one {
		case 200:
			won++
		case 409, 422:
		default:
			t.Errorf("the answers are %v", codes)
		}
	}
	if generation := w.get(admin).Spec.TokenGeneration; won != 1 || generation != 2 {
		t.Errorf("%v: %d have set the password, the generation is %d", codes, won, generation)
	}
}

// Without an encryption key no password is stored. Source: ADR-0032.
func TestNoEncryptionKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env.Encryption = nil
	if _, err := w.set(admin, "", first, false); code(err) != 422 || w.get(admin).Status.HasPassword {
		t.Errorf("without a key: %v", err)
	}
}

// A digest names its parameters and has a salt of its own. A digest in another form is an error. Source: ADR-0032.
func TestDigest(t *testing.T) {
	t.Parallel()
	hasher := password.NewHasher(rand.Reader)
	digest, err := hasher.Hash(t.Context(), first)
	if err != nil || !strings.HasPrefix(digest, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%q, %v", digest, err)
	}
	if other, err := hasher.Hash(t.Context(), first); err != nil || other == digest {
		t.Errorf("the same salt twice: %v", err)
	}
	for _, wrong := range []string{"", "x", strings.Replace(digest, "19456", "8", 1), digest + "A", digest[:len(digest)-2], digest + "$"} {
		if _, err := hasher.Matches(t.Context(), wrong, first); err == nil {
			t.Errorf("%q is a digest", wrong)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 2 * limits.PasswordHashes {
		// A request that has ended may still get a slot, and must release it.
		_, _ = hasher.Hash(ended, first)
	}
	if fits, err := hasher.Matches(t.Context(), digest, first); err != nil || !fits {
		t.Errorf("%v, %v", fits, err)
	}
}
