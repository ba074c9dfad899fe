package review_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
)

var (
	projects  = []string{"a", "b", "*"}
	names     = []string{"x", "y"}
	verbs     = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "reveal", "*", "use"}
	resources = []string{
		"ownedaccesskeys", "virtualclusterinstances", "directclusterendpointtokens", "configs", "users", "teams", "syncpatchevaluations",
		"scopepreviews", "selves", "trustrules", "auditevents", "pods",
	}
)

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// anyScope returns a random scope.
func anyScope(random *rand.Rand) *model.Scope {
	s := &model.Scope{AllowPlatformCLI: random.IntN(8) == 0}
	for range random.IntN(3) {
		switch random.IntN(5) {
		case 0:
			role := model.ScopeRole{Role: pick(random, scope.Roles())}
			if random.IntN(2) == 0 {
				role.Projects = []string{pick(random, projects)}
			}
			if random.IntN(3) == 0 {
				role.VirtualClusters = []string{pick(random, names)}
			}
			s.Roles = append(s.Roles, role)
		case 1:
			s.Projects = append(s.Projects, model.ScopeProject{Project: pick(random, projects)})
		case 2:
			s.VirtualClusters = append(s.VirtualClusters, model.ScopeVirtualCluster{Project: pick(random, projects), VirtualCluster: pick(random, append(names, "*"))})
		case 3:
			s.Spaces = append(s.Spaces, model.ScopeSpace{Project: pick(random, projects), Space: "s"})
		default:
			rule := model.ScopeRule{}
			if verb := pick(random, verbs); verb != "*" {
				rule.Verbs = []string{verb}
			}
			if random.IntN(4) == 0 {
				rule.NonResourceURLs = []string{pick(random, []string{"/metrics", "/openapi/*", "/version"})}
			} else {
				group := model.ScopeGroupResources{Group: model.GroupName, Resources: []string{pick(random, resources)}}
				if random.IntN(3) == 0 {
					group.ResourceNames = []string{pick(random, names)}
				}
				rule.Resources = []model.ScopeGroupResources{group}
				if random.IntN(3) == 0 {
					rule.Namespaces = []string{pick(random, []string{"p-a", "p-b", ""})}
				}
			}
			s.Rules = append(s.Rules, rule)
		}
	}
	return s
}

func anyRequest(random *rand.Rand) model.ScopePreviewRequest {
	if random.IntN(6) == 0 {
		return model.ScopePreviewRequest{Verb: pick(random, []string{"get", "post", "delete", "*"}), Path: pick(random, []string{"/metrics", "/version", "/openapi/v3", "/auth/session", "/absent"})}
	}
	request := model.ScopePreviewRequest{Verb: pick(random, verbs), Group: model.GroupName, Resource: pick(random, resources)}
	if random.IntN(3) > 0 {
		request.Namespace = pick(random, []string{"p-a", "p-b", "other"})
	}
	if random.IntN(2) == 0 {
		request.Name = pick(random, names)
	}
	if request.Resource == "virtualclusterinstances" && random.IntN(2) == 0 {
		request.Subresource = pick(random, []string{"kubeconfig", "status"})
	}
	return request
}

// person finds words for the person who reads a text.
var person = regexp.MustCompile(`(?i)\byou(rs?)?\b`)

// A preview of a scope decides like a request with a key that has the scope, for 10,000 pairs of a scope and a request. The
// callers are an admin, a user, and a key with a scope. Source: ADR-0030.
func TestPreviewAgrees(t *testing.T) {
	t.Parallel()
	const scopes, requests = 200, 50
	random := rand.New(rand.NewPCG(1, 2))
	w := issuertest.New(t)
	registry, authenticator, access := kinds.AccessKeys(w.Env), accesskey.OpenAuthenticator(w.Env), review.OpenAccess(w.Env, kinds.Readers(w.Env))
	admin := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	ana := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	narrowed := admin
	narrowed.Scope = &model.Scope{Projects: []model.ScopeProject{{Project: "*"}}, Roles: []model.ScopeRole{{Role: "platformCLI"}}}
	allowed, refused, wider := 0, 0, 0
	for i := 0; allowed+refused < scopes*requests; i++ {
		maker := []identity.Caller{admin, ana, narrowed}[i%3]
		wanted := anyScope(random)
		for len(scope.Validate(wanted, nil)) > 0 { // such as an entry that stands twice
			wanted = anyScope(random)
		}
		question := anyRequest(random)
		first, err := access.Preview(t.Context(), maker, &model.ScopePreviewSpec{Scope: wanted, Request: &question})
		if err != nil {
			t.Fatalf("%+v: %v", wanted, err)
		}
		key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}
		key.Spec.Scope = wanted.DeepCopy()
		made, err := resource.Create(t.Context(), registry, resource.CreateInput[*model.OwnedAccessKey]{Caller: maker, Object: key})
		if (err == nil) != (len(first.Excess) == 0) {
			t.Fatalf("%+v: the excess is %+v, and the key is refused with %v", wanted, first.Excess, err)
		}
		if err != nil {
			wider++
			continue
		}
		holder, err := authenticator.Bearer(t.Context(), secret.String(made.Object.Spec.Key))
		if err != nil {
			t.Fatal(err)
		}
		for j := range requests {
			asked := question
			if j > 0 {
				asked = anyRequest(random)
			}
			request := scope.Request{
				Verb: asked.Verb, Group: asked.Group, Resource: asked.Resource, Subresource: asked.Subresource,
				Namespace: asked.Namespace, Name: asked.Name, Path: asked.Path,
			}
			preview, err := access.Decide(t.Context(), review.Holder(maker, wanted), request)
			if err != nil {
				t.Fatalf("%+v: %v", asked, err)
			}
			decision, err := access.Decide(t.Context(), holder, request)
			if err != nil {
				t.Fatal(err)
			}
			if preview.Allowed != decision.Allowed || j == 0 && first.Decision.Allowed != decision.Allowed {
				t.Fatalf("%+v of %s: the preview of %+v says %+v, and the decision is %+v", asked, maker.Owner, wanted, preview, decision)
			}
			if person.MatchString(preview.Reason) {
				t.Fatalf("%+v of %s: the reason %q names a person, and may be read by another one", asked, maker.Owner, preview.Reason)
			}
			if decision.Allowed {
				allowed++
			} else {
				refused++
			}
		}
	}
	if allowed < 300 || refused < 300 || wider == 0 {
		t.Errorf("%d requests were allowed, %d refused, and %d scopes were too wide: the choice is too narrow", allowed, refused, wider)
	}
}

// A preview names the fields of all mistakes in its request. Without a scope, it says what the caller may do.
func TestPreview(t *testing.T) {
	t.Parallel()
	env := issuertest.New(t).Env
	access := review.OpenAccess(env, kinds.Readers(env))
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	for want, spec := range map[string]model.ScopePreviewSpec{
		"spec.scope.roles[0].role": {Scope: &model.Scope{Roles: []model.ScopeRole{{Role: "absent"}}}},
		"spec.request.verb":        {Request: &model.ScopePreviewRequest{Resource: "configs"}},
		"spec.request":             {Request: &model.ScopePreviewRequest{Verb: "get", Resource: "configs", Path: "/version"}},
	} {
		_, err := access.Preview(t.Context(), caller, &spec)
		status := apierror.From(err).Status()
		if status.Code != 422 || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != want {
			t.Errorf("%s: %+v", want, status)
		}
	}
	for _, row := range []struct {
		scope *model.Scope
		want  bool
	}{{nil, true}, {&model.Scope{}, false}} {
		status, err := access.Preview(t.Context(), caller, &model.ScopePreviewSpec{Scope: row.scope, Namespace: "p-a"})
		if err != nil {
			t.Fatal(err)
		}
		lists := slices.ContainsFunc(status.Rules, func(r model.ScopePreviewRule) bool {
			return r.Resource == "virtualclusterinstances" && slices.Contains(r.Verbs, "list")
		})
		if lists != row.want || status.Decision != nil || len(status.Excess) > 0 {
			t.Errorf("%+v: %+v", row.scope, status)
		}
	}
}
