// Package lineage_test compares the platform with a small model of credentials that were made with each other. Random trees of keys, tokens and
// kubeconfigs are made, narrowed, disabled, enabled, moved, capped and deleted with each policy, while time passes and schedules run. No
// credential that should be dead is accepted, and no credential that should live is refused. A live credential permits exactly what its own
// scope and the scopes of its makers permit. Source: ADR-0021.
package lineage_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"pgregory.net/rapid"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/credentials/kubeconfig"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// root is an admin without a key, who changes and deletes the credentials of others.
var root = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})

// rights are the requests of the test that a scope permits, one bit each.
type rights int

// The requests: an instance in each of two projects, the instance of the kubeconfigs, and a request that is permitted only without a scope.
const (
	shop rights = 1 << iota
	blog
	dev
	other

	all = shop | blog | dev | other
)

// requests are the requests by their bits.
var requests = map[rights]scope.Request{
	shop:  instance("shop", "x"),
	blog:  instance("blog", "x"),
	dev:   instance("shop", "dev"),
	other: {Verb: "get", Group: model.GroupName, Resource: "configs", Name: "config", Target: scope.TargetManagement},
}

func instance(project, name string) scope.Request {
	return scope.Request{
		Verb: "get", Group: model.GroupName, Resource: "virtualclusterinstances", Namespace: "p-" + project, Project: project, Name: name,
		Target: scope.TargetManagement,
	}
}

// scopes are scopes with the rights that they permit. Each scope is within the scopes that permit more.
var scopes = map[rights]*model.Scope{
	all:               nil,
	shop | dev | blog: {Projects: []model.ScopeProject{{Project: "shop"}, {Project: "blog"}}},
	shop | dev:        {Projects: []model.ScopeProject{{Project: "shop"}}},
	blog:              {Projects: []model.ScopeProject{{Project: "blog"}}},
	0:                 {},
}

// scopesWithin returns the keys of scopes that are within some rights, the widest first.
func scopesWithin(bound rights) []rights {
	return slices.DeleteFunc([]rights{all, shop | dev | blog, shop | dev, blog, 0}, func(r rights) bool { return r&bound != r })
}

// world is a platform of two processes that share their state, with a clock and a cap.
type world struct {
	t               *testing.T
	processes       [2]*platform.Environment
	now             time.Time
	cap             time.Duration
	credentialCount int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)}
	url := redistest.Embedded(t)
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.processes {
		client := redistest.Open(t, url)
		w.processes[i] = &platform.Environment{
			Stores: client.Resource, Now: func() time.Time { return w.now }, Random: rand.Reader,
			Encryption: func(context.Context) (*encryption.Keyring, error) { return ring, nil },
			Log:        slog.New(slog.DiscardHandler),
			Config: func() *model.ConfigStatus {
				return &model.ConfigStatus{Auth: &model.ConfigAuth{AccessKeyMaxTTLSeconds: int64(w.cap / time.Second)}}
			},
			Tokens: settings.Tokens{Issuer: "https://platform.example"},
		}
	}
	_, err = resource.Create(t.Context(), kinds.Instances(w.processes[0]), resource.CreateInput[*model.VirtualClusterInstance]{
		Caller: root, Namespace: "p-shop", Object: &model.VirtualClusterInstance{
			ObjectMeta: metav1.ObjectMeta{Name: "dev"},
			Spec: model.VirtualClusterInstanceSpec{AccessPoint: &model.InstanceAccessPoint{
				Ingress: &model.InstanceIngress{Enabled: true, Host: "dev.example.com"},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// credential is a credential in the model, with what is needed to use it.
type credential struct {
	name, bearer string
	// isToken and isKubeconfig are true for tokens and kubeconfigs, and false for keys.
	isToken, isKubeconfig bool
	maker                 *credential
	// bounds are the credentials that bound it. depth is the number of keys in a row that bound each other.
	bounds []*credential

	// rights are the rights of the scope.
	rights            rights
	disabled, deleted bool
	created           time.Time
	// ttl is the lifetime; 0 means none.
	ttl time.Duration
	// caller is the caller of the last authentication with the credential.
	caller *identity.Caller
	// knownBound and knownRights are the values of the model at that time.
	knownBound  bool
	knownRights rights
}

// permittedRights returns what a credential permits.
func (c *credential) permittedRights() rights {
	may := c.rights
	for _, each := range c.bounds {
		may &= each.rights
	}
	return may
}

// ownEnd returns the time at which a credential ends by itself.
func (c *credential) ownEnd(limit time.Duration) time.Time {
	var end time.Time
	if c.ttl > 0 {
		end = c.created.Add(c.ttl)
	}
	if capped := c.created.Add(limit); !c.isToken && limit > 0 && (end.IsZero() || capped.Before(end)) {
		end = capped
	}
	return end
}

// end returns the time at which a credential ends: by itself, or with a credential that bounds it.
func (c *credential) end(limit time.Duration) time.Time {
	end := c.ownEnd(limit)
	for _, each := range c.bounds {
		if other := each.ownEnd(limit); !other.IsZero() && (end.IsZero() || other.Before(end)) {
			end = other
		}
	}
	return end
}

func (c *credential) lives(now time.Time, limit time.Duration) bool {
	for _, each := range append([]*credential{c}, c.bounds...) {
		if end := each.ownEnd(limit); each.deleted || each.disabled || !end.IsZero() && !now.Before(end) {
			return false
		}
	}
	return true
}

// binds reports whether the credentials that a key makes are bound to it.
func (c *credential) binds(limit time.Duration) bool {
	return c.rights != all || !c.end(limit).IsZero() || len(c.bounds) > 0
}

// madeBy reports whether a key is in the lineage of a credential.
func (c *credential) madeBy(key *credential) bool {
	for maker := c.maker; maker != nil; maker = maker.maker {
		if maker == key {
			return true
		}
	}
	return false
}

func (w *world) env(rt *rapid.T) *platform.Environment {
	return w.processes[rapid.IntRange(0, 1).Draw(rt, "process")]
}

// accepts reports whether a process accepts a credential, and for which rights.
func (w *world) accepts(rt *rapid.T, env *platform.Environment, c *credential) (accepted bool, may rights) {
	if c.isToken {
		claims, scopes, err := issuer.Open(env, issuedtoken.Open(env)).Verify(w.t.Context(), secret.String(c.bearer), issuer.Open(env, issuedtoken.Open(env)).Audiences())
		if err != nil && token.Refusal(err) == nil {
			rt.Fatalf("token %s: %v", c.name, err)
		}
		for bit, request := range requests {
			if !slices.ContainsFunc(append(scopes, claims.Scope), func(s *model.Scope) bool { return !scope.Allows(s, request) }) {
				may |= bit
			}
		}
		return err == nil, may
	}
	caller, err := accesskey.OpenAuthenticator(env).Bearer(w.t.Context(), secret.String(c.bearer))
	if err != nil && !apierrors.IsUnauthorized(err) {
		rt.Fatalf("key %s: %v", c.name, err)
	}
	if err == nil {
		c.caller, c.knownBound, c.knownRights = &caller, c.binds(w.cap), c.permittedRights()
	}
	for bit, request := range requests {
		if auth.Decide(caller, request).Allowed {
			may |= bit
		}
	}
	return err == nil, may
}

// make makes a key, a token or a kubeconfig as a caller. It returns nil if the request is refused.
func (w *world) make(rt *rapid.T, env *platform.Environment, maker *credential) *credential {
	w.credentialCount++
	child := &credential{name: fmt.Sprint("c", w.credentialCount), maker: maker, created: w.now}
	child.rights = rapid.SampledFrom(scopesWithin(maker.knownRights)).Draw(rt, "rights")
	ttl := rapid.SampledFrom([]time.Duration{0, 0, time.Minute, time.Hour, 3 * time.Hour}).Draw(rt, "ttl")
	caller := *maker.caller
	bound := maker.knownBound
	var err error
	switch kind := rapid.SampledFrom([]string{"key", "key", "key", "token", "kubeconfig"}).Draw(rt, "kind"); kind {
	case "token":
		child.isToken, bound = true, true
		var issued issuer.Output
		issued, err = issuer.Open(env, issuedtoken.Open(env)).Issue(w.t.Context(), issuer.Input{Caller: caller, Object: &model.DirectClusterEndpointToken{
			Spec: model.DirectClusterEndpointTokenSpec{TTLSeconds: int64(ttl / time.Second), Scope: scopes[child.rights]},
		}})
		if err == nil {
			child.name, child.bearer = issued.Object.Name, issued.Object.Status.Token
			child.ttl = issued.Object.Status.ExpirationTimestamp.Sub(w.now)
			if end := maker.end(w.cap); !end.IsZero() && w.now.Add(child.ttl).After(end) && maker.lives(w.now, w.cap) {
				rt.Fatalf("a token ends %v after its key", w.now.Add(child.ttl).Sub(end))
			}
		}
	case "kubeconfig":
		child.isKubeconfig, child.rights = true, dev
		if maker.knownRights&dev == 0 {
			return nil
		}
		seconds := int64(time.Hour / time.Second)
		child.ttl = time.Hour
		if end := maker.caller.KeyExpires; !end.IsZero() && end.Sub(w.now) < child.ttl {
			child.ttl = end.Sub(w.now)
		}
		if w.cap > 0 {
			child.ttl = min(child.ttl, w.cap)
		}
		renderer := &kubeconfig.Renderer{
			Instances: kinds.Instances(env), Keys: kinds.AccessKeys(env), Keyring: env.Keyring, Project: env.Project,
			Limits: accesskey.OpenLimits(env), Now: env.Now,
		}
		var answer kubeconfig.Output
		answer, err = renderer.Render(w.t.Context(), kubeconfig.Input{
			Caller: caller, Namespace: "p-shop", Name: "dev",
			Object: &model.VirtualClusterInstanceKubeConfig{Spec: model.VirtualClusterInstanceKubeConfigSpec{CertificateTTLSeconds: &seconds}},
		})
		if err == nil {
			child.bearer = regexp.MustCompile(`pak_\w+`).FindString(answer.Object.Status.KubeConfig)
			record, lookup := kinds.AccessKeys(env).Store.GetByDigest(w.t.Context(), accesskey.Digest(secret.String(child.bearer)))
			if lookup != nil {
				rt.Fatal(lookup)
			}
			child.name = record.Name
		}
	default:
		child.ttl = ttl
		if maker.knownRights == all && rapid.Bool().Draw(rt, "unscoped") {
			child.rights = all
		}
		spec := model.OwnedAccessKeySpec{TTLSeconds: int64(ttl / time.Second), Scope: scopes[child.rights]}
		spec.Groups = []string{identity.Admins}
		child.bearer = accesskey.Digest(secret.String(child.name))
		spec.Key = child.bearer
		_, err = resource.Create(w.t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: caller, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: child.name}, Spec: spec},
		})
	}
	if bound {
		child.bounds = append([]*credential{maker}, maker.bounds...)
	}
	switch {
	case err == nil && len(child.bounds) > limits.LineageBounds:
		rt.Fatalf("%d keys bound each other", len(child.bounds))
	case err != nil && len(child.bounds) > limits.LineageBounds:
		return nil
	case err != nil && maker.lives(w.now, w.cap) && !strings.Contains(err.Error(), "repeat"):
		rt.Fatalf("making with %s: %v", maker.name, err)
	case err == nil && maker.deleted && !bound:
		rt.Fatalf("the deleted key %s made %s", maker.name, child.name)
	}
	if err != nil {
		return nil
	}
	return child
}

// patch changes a key on behalf of an admin, and reports whether the key exists.
func (w *world) patch(rt *rapid.T, env *platform.Environment, c *credential, text string) bool {
	_, err := resource.Patch(w.t.Context(), kinds.AccessKeys(env), resource.PatchInput{
		Caller: root, Name: c.name, Type: resource.MergePatch, Patch: []byte(text),
	})
	if apierrors.IsNotFound(err) {
		if c.lives(w.now, w.cap) {
			rt.Fatalf("the key %s is gone", c.name)
		}
		// Another credential that bounds it may work again, but not this one.
		c.deleted = true
		return false
	}
	if err != nil {
		rt.Fatalf("patching %s: %v", c.name, err)
	}
	return true
}

// check compares every credential with the model, at both processes.
func (w *world) check(rt *rapid.T, made []*credential) {
	for _, env := range w.processes {
		for _, c := range made {
			want := c.lives(w.now, w.cap)
			got, may := w.accepts(rt, env, c)
			if got != want {
				rt.Fatalf("%s (made by %v, bound to %d): accepted %v, want %v", c.name, c.maker != nil, len(c.bounds), got, want)
			}
			if want && may != c.permittedRights() {
				rt.Fatalf("%s (bound to %d) permits %b, want %b", c.name, len(c.bounds), may, c.permittedRights())
			}
			if !want || c.isToken {
				continue
			}
			key, err := resource.Get(w.t.Context(), kinds.AccessKeys(env), resource.GetInput{Caller: root, Name: c.name})
			if err != nil {
				rt.Fatal(err)
			}
			var shown time.Time
			if end := key.Status.ExpirationTimestamp; end != nil {
				shown = end.Time
			}
			if end := c.end(w.cap); !shown.Equal(end) {
				rt.Fatalf("%s ends at %v, and shows %v", c.name, end, shown)
			}
			if c.maker != nil && (key.Status.CreatedBy == nil || key.Status.CreatedBy.Name != c.maker.name) {
				rt.Fatalf("%s was made by %v, want %s", c.name, key.Status.CreatedBy, c.maker.name)
			}
		}
	}
}

// A thief makes a tree of a thousand keys with a stolen key. Before the stolen key is deleted, a list names all of them. With the policy
// Foreground, no key of the tree is accepted after the response, and the schedule leaves no key. The deletion stays far below the time limit of
// a request, also on a busy machine. Its duration is logged. Source: ADR-0021.
func TestStolenTree(t *testing.T) {
	t.Parallel()
	const branches = 20
	leaves := 1_000/branches - 1
	if testing.Short() {
		leaves = 20
	}
	w := newWorld(t)
	here, there := w.processes[0], w.processes[1]
	keys := kinds.AccessKeys(here)
	var bearers []secret.String
	create := func(caller identity.Caller) (*model.OwnedAccessKey, identity.Caller) {
		result, err := resource.Create(t.Context(), keys, resource.CreateInput[*model.OwnedAccessKey]{
			Caller: caller, Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{User: "ana"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		bearer := secret.String(result.Object.Spec.Key)
		bearers = append(bearers, bearer)
		result.Object.Spec.Key = ""
		if found, err := accesskey.OpenAuthenticator(here).Bearer(t.Context(), bearer); err == nil {
			return result.Object, found
		}
		t.Fatal("the key does not work")
		return nil, identity.Caller{}
	}
	stolen, thief := create(root)
	survivor, _ := create(root)
	for range branches {
		_, branch := create(thief)
		for range leaves {
			create(branch)
		}
	}
	tree := branches * (leaves + 1)
	list, err := resource.List(t.Context(), keys, resource.ListInput{
		Caller: root, Fields: fields.ParseSelectorOrDie("status.lineage.uid=" + string(stolen.UID)),
	})
	if err != nil || len(list.(*model.OwnedAccessKeyList).Items) != tree {
		t.Errorf("%d keys are named, %v", len(list.(*model.OwnedAccessKeyList).Items), err)
	}
	remove := func(dryRun bool) time.Duration {
		begin := time.Now()
		if _, err := resource.Delete(t.Context(), keys, resource.DeleteInput{
			Caller: root, Name: stolen.Name, Propagation: metav1.DeletePropagationForeground, DryRun: dryRun,
		}); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	working := func() (count int) {
		for _, bearer := range bearers {
			if _, err := accesskey.OpenAuthenticator(there).Bearer(t.Context(), bearer); err == nil {
				count++
			}
		}
		return count
	}
	if remove(true); working() != tree+2 {
		t.Error("a dry run ends keys")
	}
	answered := remove(false)
	if count := working(); count != 1 {
		t.Errorf("%d keys work after the answer", count)
	}
	begin := time.Now()
	for runs := 0; ; runs++ {
		page, err := keys.Store.List(t.Context(), store.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Records) == 1 && page.Records[0].Name == survivor.Name {
			t.Logf("%d keys: answered after %s, gone after %s and %d runs of the schedule more", tree, answered, time.Since(begin), runs)
			return
		}
		if runs == 20 {
			t.Fatalf("%d keys are left", len(page.Records))
		}
		if _, err := kinds.Graph(here).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		first := &credential{name: "first", bearer: accesskey.Digest("first"), created: w.now, rights: all}
		_, err := resource.Create(t.Context(), kinds.AccessKeys(w.processes[0]), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: model.OwnedAccessKeySpec{
				Groups: []string{identity.Admins}, Key: first.bearer,
			}},
		})
		if err != nil {
			rt.Fatal(err)
		}
		credentials := []*credential{first}
		pick := func(rt *rapid.T, about func(*credential) bool) *credential {
			some := slices.DeleteFunc(slices.Clone(credentials), func(c *credential) bool { return !about(c) })
			if len(some) == 0 {
				rt.Skip("there is none")
			}
			return rapid.SampledFrom(some).Draw(rt, "credential")
		}
		isKey := func(c *credential) bool { return !c.isToken }
		makes := func(c *credential) bool { return !c.isToken && !c.isKubeconfig && c.caller != nil }
		remove := func(rt *rapid.T, policy metav1.DeletionPropagation) {
			c := pick(rt, isKey)
			_, err := resource.Delete(t.Context(), kinds.AccessKeys(w.env(rt)), resource.DeleteInput{Caller: root, Name: c.name, Propagation: policy})
			if err != nil && (!apierrors.IsNotFound(err) || c.lives(w.now, w.cap)) {
				rt.Fatalf("deleting %s: %v", c.name, err)
			}
			c.deleted = true
			if policy != metav1.DeletePropagationForeground || err != nil {
				return
			}
			for _, each := range credentials {
				each.deleted = each.deleted || each.madeBy(c)
			}
		}
		create := func(rt *rapid.T) {
			if len(credentials) > 12 {
				rt.Skip("enough")
			}
			// A caller may have been authenticated before their key died.
			if one := w.make(rt, w.env(rt), pick(rt, makes)); one != nil {
				credentials = append(credentials, one)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":           func(rt *rapid.T) { w.check(rt, credentials) },
			"make":       create,
			"make more":  create,
			"background": func(rt *rapid.T) { remove(rt, "") },
			"foreground": func(rt *rapid.T) { remove(rt, metav1.DeletePropagationForeground) },
			"orphan":     func(rt *rapid.T) { remove(rt, metav1.DeletePropagationOrphan) },
			"disable": func(rt *rapid.T) {
				c := pick(rt, isKey)
				if w.patch(rt, w.env(rt), c, `{"spec":{"disabled":true}}`) {
					c.disabled = true
				}
			},
			"enable": func(rt *rapid.T) {
				c := pick(rt, isKey)
				if w.patch(rt, w.env(rt), c, `{"spec":{"disabled":false}}`) {
					c.disabled = false
				}
			},
			"move the end": func(rt *rapid.T) {
				c := pick(rt, isKey)
				ttl := rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, 5 * time.Hour}).Draw(rt, "ttl")
				if w.patch(rt, w.env(rt), c, fmt.Sprintf(`{"spec":{"ttl":%d}}`, ttl/time.Second)) {
					c.ttl = ttl
				}
			},
			"narrow": func(rt *rapid.T) {
				c := pick(rt, func(c *credential) bool { return !c.isToken && !c.isKubeconfig })
				now := rapid.SampledFrom(scopesWithin(all)).Draw(rt, "rights")
				text, err := json.Marshal(scopes[now])
				if err != nil {
					rt.Fatal(err)
				}
				// A merge keeps what a patch does not name.
				if w.patch(rt, w.env(rt), c, `{"spec":{"scope":null}}`) && w.patch(rt, w.env(rt), c, `{"spec":{"scope":`+string(text)+`}}`) {
					c.rights = now
				}
			},
			"cap": func(rt *rapid.T) {
				w.cap = rapid.SampledFrom([]time.Duration{0, 0, time.Hour, 10 * time.Hour}).Draw(rt, "cap")
			},
			"time": func(rt *rapid.T) {
				w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second, 20 * time.Minute}).Draw(rt, "passes"))
			},
			"schedules": func(rt *rapid.T) {
				env := w.env(rt)
				if _, err := accesskey.Sweep(t.Context(), kinds.AccessKeys(env), accesskey.OpenLimits(env)); err != nil {
					rt.Fatal(err)
				}
				for _, c := range credentials {
					if end := c.ownEnd(w.cap); !end.IsZero() && !w.now.Before(end) {
						c.deleted = true
					}
				}
				if _, err := kinds.IssuedTokens(env).Sweep(t.Context()); err != nil {
					rt.Fatal(err)
				}
				for _, c := range credentials {
					// A disabled key may be enabled again, but its tokens do not work again. Neither do tokens that were signed with more
					// rights than their keys have now.
					c.deleted = c.deleted || c.isToken && (!c.lives(w.now, w.cap) || c.permittedRights() != c.rights)
				}
				if _, err := kinds.Graph(env).Sweep(t.Context()); err != nil {
					rt.Fatal(err)
				}
				for _, c := range credentials {
					_, err := kinds.AccessKeys(env).Store.Get(t.Context(), c.name)
					outlived := slices.ContainsFunc(c.bounds, func(each *credential) bool { return each.deleted })
					if isKey(c) && (c.deleted || outlived) && err == nil {
						rt.Fatalf("%s is still stored", c.name)
					}
				}
			},
		})
	})
}
