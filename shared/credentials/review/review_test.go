package review_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/token"
)

const (
	key      = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"
	audience = "https://platform.example"
)

// jwt does not have the form of an access key.
var jwt = strings.Repeat("x", 300)

var narrow = &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "a"}}}

func code(err error) int32 {
	if err == nil {
		return 0
	}
	return apierror.From(err).Status().Code
}

// credentials returns Credentials that answer for the key and the jwt with the given results.
func credentials(caller identity.Caller, keyErr error, claims token.Claims, tokenErr error) review.Credentials {
	return review.Credentials{
		AccessKey: func(_ context.Context, bearer secret.String) (identity.Caller, error) {
			if bearer.Reveal() != key {
				return identity.Caller{}, fmt.Errorf("asked about %d characters", len(bearer))
			}
			return caller, keyErr
		},
		Token: func(_ context.Context, bearer secret.String, audiences []string) (token.Claims, []*model.Scope, error) {
			if bearer.Reveal() != jwt {
				return token.Claims{}, nil, token.ErrMalformed
			}
			if tokenErr == nil && !claims.HasAudience(audiences...) {
				return token.Claims{}, nil, token.ErrAudience
			}
			return claims, caller.KeyScopes, tokenErr
		},
		Audiences: []string{audience},
	}
}

func TestAccessKeys(t *testing.T) {
	made := func(owner identity.Owner, s *model.Scope) identity.Caller {
		caller := identity.New(owner, []string{"ops"})
		caller.Scope, caller.Key = s, "ci"
		return caller
	}
	ana := identity.Owner{Kind: identity.User, Name: "ana"}
	user := func(username, uid string, groups []string, scope string) authenticationv1.TokenReviewStatus {
		extra := map[string]authenticationv1.ExtraValue{"management.platform.sh/access-key": {"ci"}}
		if scope != "" {
			extra["management.platform.sh/scope"] = authenticationv1.ExtraValue{scope}
		}
		return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: username, UID: uid, Groups: groups, Extra: extra}}
	}
	refused := func(text string) authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{Error: text}
	}
	anas := []string{"ops", "platform:authenticated", "platform:user:ana"}
	for _, row := range []struct {
		about  string
		caller identity.Caller
		err    error
		want   authenticationv1.TokenReviewStatus
		code   int32
	}{
		{"a key (Spec 5.1)", made(ana, nil), nil, user("ana", "user:ana", anas, ""), 0},
		{"a key with a scope (Spec 2.3)", made(ana, narrow), nil, user("ana", "user:ana", anas, `{"clusters":[{"cluster":"a"}]}`), 0},
		{"an empty scope is one", made(ana, &model.Scope{}), nil, user("ana", "user:ana", anas, `{}`), 0},
		{"a key of a team", made(identity.Owner{Kind: identity.Team, Name: "dev"}, nil), nil,
			user("platform:team:dev", "team:dev", []string{"ops", "platform:authenticated", "platform:team:dev"}, ""), 0},
		{"a name that is the cluster's own", made(identity.Owner{Kind: identity.Subject, Name: "system:kube-scheduler"}, nil), nil,
			refused("names that begin with system: belong to Kubernetes"), 0},
		{"a name that is the platform's own", made(identity.Owner{Kind: identity.User, Name: "platform:team:dev"}, nil), nil,
			refused("names that begin with platform: belong to the platform"), 0},
		{"a key of a subject has a name of its own", made(identity.Owner{Kind: identity.Subject, Name: "ana"}, nil), nil,
			user("platform:subject:ana", "subject:ana", []string{"ops", "platform:authenticated"}, ""), 0},
		{"an expired key (Spec 5.2)", identity.Caller{}, apierror.Unauthorized("access key expired"), refused("access key expired"), 0},
		{"a disabled key (Spec 3)", identity.Caller{}, apierror.Unauthorized("access key disabled"), refused("access key disabled"), 0},
		{"an unknown key", identity.Caller{}, apierror.Unauthorized("invalid bearer token"), refused("invalid bearer token"), 0},
		{"a key that cannot be looked up is not refused", identity.Caller{}, apierror.Unavailable(), authenticationv1.TokenReviewStatus{}, 503},
	} {
		t.Run(row.about, func(t *testing.T) {
			asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: key, Audiences: []string{"https://kubernetes.default.svc"}}}
			asked.Status.Authenticated, asked.Status.User.Username = true, "root"
			err := credentials(row.caller, row.err, token.Claims{}, errors.New("asked for a token")).Answer(t.Context(), asked)
			if code(err) != row.code || !reflect.DeepEqual(asked.Status, row.want) || asked.Spec.Token != "" {
				t.Errorf("answered %+v, %v\nwant %+v, %d", asked, err, row.want, row.code)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	claims := func(audiences ...string) token.Claims {
		return token.Claims{Subject: "ana", ID: "5d0c", Audience: audiences, Groups: []string{"ops", "platform:user:ana", "system:authenticated", "system:masters"}, Scope: narrow}
	}
	yes := func(audiences ...string) authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: audiences, User: authenticationv1.UserInfo{
			Username: "ana", UID: "user:ana", Groups: []string{"ops", "platform:user:ana"},
			Extra: map[string]authenticationv1.ExtraValue{
				"management.platform.sh/token": {"5d0c"}, "management.platform.sh/scope": {`{"clusters":[{"cluster":"a"}]}`},
			},
		}}
	}
	refused := func(text string) authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{Error: text}
	}
	system, posing := claims(audience), claims(audience)
	system.Subject, posing.Subject = "system:admin", "platform:team:dev"
	for _, row := range []struct {
		about  string
		token  string
		wanted []string
		claims token.Claims
		err    error
		want   authenticationv1.TokenReviewStatus
		code   int32
	}{
		{"for all clusters, asked for none", jwt, nil, claims(audience), nil, yes(), 0},
		{"for all clusters, asked by a cluster for itself", jwt, []string{"https://kubernetes.default.svc"}, claims(audience), nil, yes(), 0},
		{"for all clusters, asked for that", jwt, []string{"x", audience}, claims(audience), nil, yes(audience), 0},
		{"for two, asked for two", jwt, []string{"a", "b", "c"}, claims("b", "a", "d"), nil, yes("a", "b"), 0},
		{"for one service, asked for another", jwt, []string{"b"}, claims("a"), nil, refused("token for another audience"), 0},
		{"for one service, asked for none", jwt, nil, claims("a"), nil, refused("token for another audience"), 0},
		{"a name that is the cluster's own", jwt, nil, system, nil, refused("names that begin with system: belong to Kubernetes"), 0},
		{"a name that is the platform's own", jwt, nil, posing, nil, refused("names that begin with platform: belong to the platform"), 0},
		{"no credential at all", "hello", nil, token.Claims{}, nil, refused("invalid bearer token"), 0},
		{"a mistyped key", "pak_hello", nil, token.Claims{}, nil, refused("invalid bearer token"), 0},
		{"expired (Spec 5.3)", jwt, nil, token.Claims{}, fmt.Errorf("x: %w", token.ErrExpired), refused("token expired"), 0},
		{"revoked (ADR-0012)", jwt, nil, token.Claims{}, token.ErrRevoked, refused("token revoked"), 0},
		{"of another issuer", jwt, nil, token.Claims{}, token.ErrIssuer, refused("token of another issuer"), 0},
		{"of an unknown key", jwt, nil, token.Claims{}, token.ErrUnknownKey, refused("token signed with an unknown key"), 0},
		{"too large", jwt, nil, token.Claims{}, token.ErrTooLarge, refused("token too large"), 0},
		{"what cannot be checked is not refused", jwt, nil, token.Claims{}, apierror.Unavailable(), authenticationv1.TokenReviewStatus{}, 503},
		{"what fails is not refused", jwt, nil, token.Claims{}, errors.New("decrypting"), authenticationv1.TokenReviewStatus{}, 500},
		{"no token", "", nil, token.Claims{}, nil, authenticationv1.TokenReviewStatus{}, 400},
	} {
		t.Run(row.about, func(t *testing.T) {
			asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: row.token, Audiences: row.wanted}}
			err := credentials(identity.Caller{}, errors.New("asked for a key"), row.claims, row.err).Answer(t.Context(), asked)
			if len(asked.Status.Audiences) == 0 {
				asked.Status.Audiences = nil
			}
			if code(err) != row.code || !reflect.DeepEqual(asked.Status, row.want) || asked.Spec.Token != "" {
				t.Errorf("answered %+v, %v\nwant %+v, %d", asked, err, row.want, row.code)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	for query, want := range map[string]scope.Request{
		"cluster=a":                          {Target: scope.TargetCluster, Cluster: "a"},
		"project=a&space=b":                  {Target: scope.TargetProjectSpace, Project: "a", Space: "b"},
		"project=a&virtualCluster=b":         {Target: scope.TargetProjectVirtualCluster, Project: "a", VirtualCluster: "b"},
		"":                                   {},
		"project=a":                          {},
		"space=b":                            {},
		"virtualCluster=b":                   {},
		"cluster=":                           {},
		"cluster=a&project=b&space=c":        {},
		"cluster=a&space=c":                  {},
		"project=a&virtualCluster=b&space=c": {},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := review.Target(values.Get)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want.Target != "") || err != nil && code(err) != 400 {
			t.Errorf("%q: %+v, %v", query, got, err)
		}
	}
}

func TestAccess(t *testing.T) {
	const extra = "management.platform.sh/scope"
	pods := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default", Name: "p"}
	healthz := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/healthz"}
	clusterA := scope.Request{Target: scope.TargetCluster, Cluster: "a"}
	spaceS := scope.Request{Target: scope.TargetProjectSpace, Project: "p", Space: "s"}
	virtualV := scope.Request{Target: scope.TargetProjectVirtualCluster, Project: "p", VirtualCluster: "v"}
	for _, row := range []struct {
		about    string
		target   scope.Request
		resource *authorizationv1.ResourceAttributes
		path     *authorizationv1.NonResourceAttributes
		scopes   []string
		denied   bool
		code     int32
	}{
		{"without a scope the cluster decides", clusterA, pods, nil, nil, false, 0},
		{"inside the cluster decides (Spec 2.3)", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"a"}]}`}, false, 0},
		{"a path inside", clusterA, nil, healthz, []string{`{"clusters":[{"cluster":"a"}]}`}, false, 0},
		{"all clusters", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"*"}]}`}, false, 0},
		{"another cluster", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"b"}]}`}, true, 0},
		{"an empty scope", clusterA, pods, nil, []string{`{}`}, true, 0},
		{"a path outside", clusterA, nil, healthz, []string{`{}`}, true, 0},
		{"a project is not its cluster", clusterA, pods, nil, []string{`{"projects":[{"project":"p"}]}`}, true, 0},
		{"what every key may on this API it may not on a cluster", clusterA, nil, &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/version"}, []string{`{}`}, true, 0},
		{"a role of this API is not a role on a cluster", clusterA, &authorizationv1.ResourceAttributes{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
			nil, []string{`{"roles":[{"role":"agent"}]}`}, true, 0},
		{"a space", spaceS, pods, nil, []string{`{"spaces":[{"project":"p","space":"s"}]}`}, false, 0},
		{"another space", spaceS, pods, nil, []string{`{"spaces":[{"project":"p","space":"t"}]}`}, true, 0},
		{"a virtual cluster", virtualV, pods, nil, []string{`{"virtualClusters":[{"project":"p","virtualCluster":"v"}]}`}, false, 0},
		{"by its project", virtualV, pods, nil, []string{`{"projects":[{"project":"p"}]}`}, false, 0},
		{"another virtual cluster", virtualV, pods, nil, []string{`{"virtualClusters":[{"project":"p","virtualCluster":"w"}]}`}, true, 0},
		{"of another project", virtualV, pods, nil, []string{`{"virtualClusters":[{"project":"q","virtualCluster":"v"}]}`}, true, 0},
		{"a rule (Spec 2.3, deprecated)", clusterA, pods, nil, []string{`{"rules":[{"verbs":["get"],"cluster":"a","namespaces":["default"]}]}`}, false, 0},
		{"another verb than the rule's", clusterA, &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Namespace: "default", Name: "p"},
			nil, []string{`{"rules":[{"verbs":["get"],"cluster":"a"}]}`}, true, 0},
		{"every verb is asked for", clusterA, &authorizationv1.ResourceAttributes{Verb: "*", Resource: "*", Group: "*"},
			nil, []string{`{"rules":[{"verbs":["get"]}]}`}, true, 0},
		{"a scope that cannot be read", clusterA, pods, nil, []string{`{`}, true, 0},
		{"a scope with a word that is unknown", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"a"}],"more":1}`}, true, 0},
		{"a scope that is null", clusterA, pods, nil, []string{`null`}, true, 0},
		{"two scopes that both permit it (ADR-0021)", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"a"}]}`, `{"clusters":[{"cluster":"*"}]}`}, false, 0},
		{"the first of two does not", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"b"}]}`, `{"clusters":[{"cluster":"*"}]}`}, true, 0},
		{"the second of two does not", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"a"}]}`, `{}`}, true, 0},
		{"the second of two cannot be read", clusterA, pods, nil, []string{`{"clusters":[{"cluster":"a"}]}`, `{`}, true, 0},
		{"more scopes than a credential can have", clusterA, pods, nil, slices.Repeat([]string{`{"clusters":[{"cluster":"a"}]}`}, 11), true, 0},
		{"a scope that is missing", clusterA, pods, nil, []string{}, true, 0},
		{"nothing", clusterA, nil, nil, nil, false, 400},
		{"two things", clusterA, pods, healthz, nil, false, 400},
	} {
		t.Run(row.about, func(t *testing.T) {
			asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "ana", ResourceAttributes: row.resource, NonResourceAttributes: row.path,
			}}
			asked.Status.Allowed = row.code == 0
			if row.scopes != nil {
				asked.Spec.Extra = map[string]authorizationv1.ExtraValue{extra: row.scopes}
			}
			err := review.AnswerAccess(row.target, asked)
			if code(err) != row.code {
				t.Fatalf("%+v, %v", asked.Status, err)
			}
			// The answer never allows a request: the cluster's own rules decide that.
			if err == nil && (asked.Status.Allowed || asked.Status.Denied != row.denied || asked.Status.Reason == "") {
				t.Errorf("%+v", asked.Status)
			}
		})
	}
}

// A cluster sees the scopes that narrow a credential: the credential's own scope, and the current scopes of the keys to which it
// is bound. A scope that covers another of these scopes is left out. Source: ADR-0021.
func TestScopesOfMakers(t *testing.T) {
	narrower := &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "a"}}}
	wide := &model.Scope{Clusters: []model.ScopeCluster{{Cluster: "*"}}}
	project := &model.Scope{Projects: []model.ScopeProject{{Project: "p"}}}
	const a, p = `{"clusters":[{"cluster":"a"}]}`, `{"projects":[{"project":"p"}]}`
	for _, row := range []struct {
		about  string
		own    *model.Scope
		makers []*model.Scope
		want   []string
	}{
		{"no scope at all", nil, nil, nil},
		{"a maker without a narrower one", narrower, []*model.Scope{wide}, []string{a}},
		{"a maker that is narrower now", wide, []*model.Scope{narrower}, []string{a}},
		{"no scope of its own", nil, []*model.Scope{wide, narrower}, []string{a}},
		{"scopes of which none is within the other", narrower, []*model.Scope{project, wide}, []string{a, p}},
	} {
		caller := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
		caller.Scope, caller.KeyScopes, caller.Key = row.own, row.makers, "ci"
		for _, bearer := range []string{key, jwt} {
			asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: bearer}}
			claims := token.Claims{Subject: "ana", ID: "1", Audience: []string{audience}, Groups: caller.Groups, Scope: row.own}
			if err := credentials(caller, nil, claims, nil).Answer(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			if got := asked.Status.User.Extra[review.ExtraScope]; !slices.Equal(got, row.want) || !asked.Status.Authenticated {
				t.Errorf("%s: %q, want %q", row.about, got, row.want)
			}
		}
	}
}

// A cluster sees the scope unchanged: a review of access reads what a review of a token has written.
func TestScopeSurvives(t *testing.T) {
	every := &model.Scope{
		Roles:    []model.ScopeRole{{Role: "agent", Projects: []string{"p"}, VirtualClusters: []string{"v"}}},
		Projects: []model.ScopeProject{{Project: "p"}}, Spaces: []model.ScopeSpace{{Project: "p", Space: "s"}},
		VirtualClusters: []model.ScopeVirtualCluster{{Project: "p", VirtualCluster: "v"}}, Clusters: []model.ScopeCluster{{Cluster: "a"}},
		Rules: []model.ScopeRule{{Verbs: []string{"get"}, Resources: []model.ScopeGroupResources{{Group: "g", Resources: []string{"r"}, ResourceNames: []string{"n"}}},
			Namespaces: []string{""}, NonResourceURLs: []string{"/x"}, RequestTargets: []string{"Cluster"}, Cluster: "a",
			VirtualClusters: []model.ScopeRuleVirtualCluster{{Name: "v", Namespace: "n"}}}},
		AllowPlatformCLI: true,
	}
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: jwt}}
	if err := credentials(identity.Caller{}, nil, token.Claims{Subject: "ana", ID: "1", Audience: []string{audience}, Scope: every}, nil).Answer(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	got, err := token.ParseScope([]byte(asked.Status.User.Extra[review.ExtraScope][0]))
	if err != nil || !reflect.DeepEqual(got, every) {
		text, _ := json.Marshal(got)
		t.Errorf("%s, %v", text, err)
	}
}
