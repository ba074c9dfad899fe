package issuetoken

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/signing/token"
)

// Source: Spec 2.2, 2.4, 7.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	deps := open(w.Env)
	ask := func(object *model.DirectClusterEndpointToken) (Output, error) {
		return Do(t.Context(), deps, Input{Caller: caller, Object: object})
	}
	for about, row := range map[string]struct {
		meta metav1.ObjectMeta
		name string
		code int32
	}{
		"without metadata": {metav1.ObjectMeta{}, "token-", 0},
		"generateName":     {metav1.ObjectMeta{GenerateName: "ci-"}, "ci-", 0},
		"a name":           {metav1.ObjectMeta{Name: "mine"}, "mine", 0},
		"a bad name":       {metav1.ObjectMeta{Name: "-"}, "", 422},
	} {
		got, err := ask(&model.DirectClusterEndpointToken{ObjectMeta: row.meta})
		if accesskeytest.Code(err) != row.code || err == nil && (!strings.HasPrefix(got.Object.Name, row.name) || got.Object.Status.Token == "" || !got.Created) {
			t.Errorf("%s: %+v, %v", about, got.Object, err)
		}
	}
	if _, err := ask(&model.DirectClusterEndpointToken{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}); accesskeytest.Code(err) != 409 {
		t.Errorf("a taken name: %v", err)
	}
	if left := w.Records(); len(left) != 3 {
		t.Errorf("recorded %q", left)
	}
}

const (
	tokens  = 2_000
	clients = 64
)

// Two thousand tokens for 64 clients at once: no two are the same, all verify, and each has its record.
func TestMany(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	deps := open(w.Env)
	set, err := deps.Issuer.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verifier := token.Verifier{Keys: set.Public, Issuer: issuertest.URL, Audiences: []string{issuertest.URL}, Now: w.Now}
	var next atomic.Int64
	var ids sync.Map
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for next.Add(1) <= tokens {
				got, err := Do(t.Context(), deps, Input{Caller: caller, Object: &model.DirectClusterEndpointToken{}})
				if err != nil {
					t.Error(err)
					return
				}
				claims, err := verifier.Verify(t.Context(), secret.String(got.Object.Status.Token))
				if err != nil || claims.ID != string(got.Object.UID) {
					t.Errorf("%+v, %v", claims, err)
				}
				if _, twice := ids.LoadOrStore(claims.ID, true); twice {
					t.Errorf("%s was issued twice", claims.ID)
				}
			}
		})
	}
	group.Wait()
	if got := len(w.Records()); got != tokens {
		t.Errorf("%d records", got)
	}
}

// verifying is a verifier that caches the keys for as long as it may, and fetches no keys before that.
type verifying struct {
	mu      sync.Mutex
	fetch   func() token.JWKS
	set     token.JWKS
	fetched time.Time
}

func (v *verifying) keys(now time.Time) token.JWKS {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fetched.IsZero() || now.Sub(v.fetched) >= issuer.KeysMaxAge {
		v.set, v.fetched = v.fetch(), now
	}
	return v.set
}

// The keys change many times under load. Processes and verifiers learn of it as late as they may, and no token is
// refused during its lifetime.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Env.Tokens = settings.Tokens{
		Issuer: issuertest.URL, MaxTTL: 2 * time.Hour, RotateEvery: 40 * time.Minute, PublishBefore: settings.MinPublishBefore,
	}
	caller := w.Key("ci", "ana", model.OwnedAccessKeySpec{})
	scheduler := issuer.Open(w.Env, issuedtoken.Open(w.Env))
	var processes []Deps
	var verifiers []*verifying
	for range 4 {
		processes = append(processes, open(w.Env))
		publisher := issuer.Open(w.Env, issuedtoken.Open(w.Env))
		verifiers = append(verifiers, &verifying{fetch: func() token.JWKS {
			set, err := publisher.Current(t.Context())
			if err != nil {
				t.Error(err)
				return token.JWKS{}
			}
			return set.Public
		}})
	}
	type issued struct {
		text string
		ends time.Time
	}
	live, signers, checks := []issued{}, map[string]bool{}, 0
	// A prime number of seconds: caches end at every phase of the rotation.
	for round := range 240 {
		w.Pass(97 * time.Second)
		now := w.Now()
		var mu sync.Mutex
		var group sync.WaitGroup
		group.Go(func() {
			report, err := scheduler.Keys.Rotate(t.Context(), false)
			if err != nil {
				t.Error(err)
			}
			for _, key := range report.Keys {
				if key.State == signingkey.Active {
					signers[key.ID] = true
				}
			}
		})
		for _, deps := range processes {
			group.Go(func() {
				got, err := Do(t.Context(), deps, Input{Caller: caller, Object: &model.DirectClusterEndpointToken{
					Spec: model.DirectClusterEndpointTokenSpec{TTLSeconds: 7200},
				}})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				live = append(live, issued{got.Object.Status.Token, got.Object.Status.ExpirationTimestamp.Time})
			})
		}
		group.Wait()
		live = slices.DeleteFunc(live, func(one issued) bool { return !now.Before(one.ends) })
		// Whether a verifier accepts a token depends on the key, which the header names. The oldest token of each key shows it.
		oldest := map[string]issued{}
		for _, one := range live {
			header, _, _ := strings.Cut(one.text, ".")
			if first, there := oldest[header]; !there || one.ends.Before(first.ends) {
				oldest[header] = one
			}
		}
		for _, one := range oldest {
			// Each verifier begins in a round of its own, so that their caches end at different times.
			for _, v := range verifiers[:min(round+1, len(verifiers))] {
				verifier := token.Verifier{Keys: v.keys(now), Issuer: issuertest.URL, Audiences: []string{issuertest.URL}, Now: w.Now}
				if _, err := verifier.Verify(t.Context(), secret.String(one.text)); err != nil {
					t.Fatalf("after %s, with %s to go: %v", now.Sub(issuertest.Born), one.ends.Sub(now), err)
				}
				checks++
			}
		}
	}
	if len(signers) < 8 || checks < 2_000 {
		t.Errorf("%d keys signed, %d checks were made", len(signers), checks)
	}
}
