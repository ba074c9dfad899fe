package auth_test

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

func TestDecide(t *testing.T) {
	alice := identity.New(identity.Owner{Kind: identity.User, Name: "alice"}, nil)
	withScope := func(caller identity.Caller, s model.Scope) identity.Caller {
		caller.Scope = &s
		return caller
	}
	agent := model.Scope{Roles: []model.ScopeRole{{Role: scope.RoleAgent}}}
	cli := model.Scope{AllowPlatformCLI: true}
	keys := func(verb, name string) scope.Request {
		return scope.Request{Verb: verb, Group: model.GroupName, Resource: "ownedaccesskeys", Name: name}
	}
	requestFor := func(verb, group, resource string) scope.Request {
		return scope.Request{Verb: verb, Group: group, Resource: resource}
	}
	itself := withScope(alice, model.Scope{})
	itself.Key = "ci"
	rendered := itself
	rendered.KeyType = model.AccessKeyTypeKubeconfig
	// bound is bound to a key with a scope of its own.
	withKeyScope := func(caller identity.Caller, maker *model.Scope) identity.Caller {
		caller.KeyScopes = []*model.Scope{{AllowPlatformCLI: true, Roles: agent.Roles}, maker}
		return caller
	}
	path := func(verb, path string) scope.Request { return scope.Request{Verb: verb, Path: path} }
	reviews := requestFor("create", "authentication.k8s.io", "tokenreviews")

	for _, row := range []struct {
		section  string
		sentence string
		caller   identity.Caller
		request  scope.Request
		want     bool
	}{
		{"ADR-0005", "every caller creates keys", alice, keys("create", ""), true},
		{"ADR-0005", "every caller lists keys", alice, keys("list", ""), true},
		{"ADR-0005", "every caller reads keys", alice, keys("get", "ci"), true},
		{"ADR-0005", "every caller updates keys", alice, keys("update", "ci"), true},
		{"ADR-0005", "every caller patches keys", alice, keys("patch", "ci"), true},
		{"ADR-0005", "every caller removes keys", alice, keys("delete", "ci"), true},
		{"ADR-0005", "every caller may ask who they are", alice, requestFor("create", model.GroupName, "selves"), true},
		{"ADR-0005", "every caller may ask Kubernetes who they are", alice, requestFor("create", "authentication.k8s.io", "selfsubjectreviews"), true},
		{"ADR-0005", "every caller may ask what they may do", alice, requestFor("create", "authorization.k8s.io", "selfsubjectaccessreviews"), true},
		{"ADR-0005", "every caller asks what there is", alice, path("get", "/apis"), true},
		{"ADR-0005", "what is not listed is for admins", alice, requestFor("get", model.GroupName, "config"), false},
		{"ADR-0005", "a resource of that name in another group is not listed", alice, requestFor("get", "example.com", "ownedaccesskeys"), false},
		{"ADR-0005", "an unknown resource is for admins", alice, requestFor("list", "", "pods"), false},
		{"ADR-0005", "admins may", admin, requestFor("get", model.GroupName, "config"), true},
		{"ADR-0005", "admins may use unknown resources", admin, requestFor("list", "", "pods"), true},
		{"ADR-0015", "every caller reads the configuration", alice, requestFor("get", model.GroupName, "configs"), true},
		{"ADR-0015", "every caller lists it", alice, requestFor("list", model.GroupName, "configs"), true},
		{"ADR-0015", "every caller watches it", alice, requestFor("watch", model.GroupName, "configs"), true},
		{"ADR-0015", "its secrets are for admins", alice, requestFor("reveal", model.GroupName, "configs"), false},
		{"ADR-0015", "writing it is for admins", alice, requestFor("update", model.GroupName, "configs"), false},
		{"ADR-0015", "changing it is for admins", alice, requestFor("patch", model.GroupName, "configs"), false},
		{"ADR-0015", "its history is for admins", alice, scope.Request{Verb: "get", Group: model.GroupName, Resource: "configs", Subresource: "history"}, false},
		{"ADR-0015", "admins see its secrets", admin, requestFor("reveal", model.GroupName, "configs"), true},
		{"ADR-0015", "a scope that permits reading reveals nothing", withScope(admin, cli), requestFor("reveal", model.GroupName, "configs"), false},
		{"ADR-0015", "and permits reading", withScope(admin, cli), requestFor("get", model.GroupName, "configs"), true},
		{"ADR-0056", "every caller evaluates patches", alice, requestFor("create", model.GroupName, "syncpatchevaluations"), true},
		{"ADR-0056", "the scope must permit it", withScope(alice, model.Scope{}), requestFor("create", model.GroupName, "syncpatchevaluations"), false},
		{"ADR-0056", "the token of a kubeconfig does not", rendered, requestFor("create", model.GroupName, "syncpatchevaluations"), false},
		{"Spec 2.3", "a scope narrows: keys are not read", withScope(alice, model.Scope{}), keys("get", "ci"), false},
		{"ADR-0005", "an empty scope creates keys, which hold less", withScope(alice, model.Scope{}), keys("create", ""), true},
		{"ADR-0005", "an empty scope asks who it is", withScope(alice, model.Scope{}), requestFor("create", model.GroupName, "selves"), true},
		{"ADR-0005", "an empty scope asks what there is", withScope(alice, model.Scope{}), path("get", "/apis"), true},
		{"Spec 2.3", "an empty scope reads no other path", withScope(alice, model.Scope{}), path("get", "/metrics"), false},
		{"Spec 2.3", "a scope narrows admins too", withScope(admin, model.Scope{}), requestFor("get", model.GroupName, "config"), false},
		{"Spec 2.3", "callers can read what the scope permits", withScope(alice, cli), keys("list", ""), true},
		{"Spec 2.3", "callers cannot write what the scope does not permit", withScope(alice, cli), keys("delete", "ci"), false},
		{"ADR-0005", "a scope widens nothing", withScope(alice, cli), requestFor("get", model.GroupName, "config"), false},
		{"ADR-0021", "the scope of a maker narrows", withKeyScope(alice, &model.Scope{}), keys("get", "ci"), false},
		{"ADR-0021", "it narrows admins too", withKeyScope(admin, &agent), requestFor("get", model.GroupName, "config"), false},
		{"ADR-0021", "it narrows what the own scope permits", withKeyScope(withScope(alice, cli), &agent), keys("list", ""), false},
		{"ADR-0021", "it permits nothing that the own scope does not", withKeyScope(withScope(alice, agent), &cli), keys("list", ""), false},
		{"ADR-0021", "what all of them permit is permitted", withKeyScope(withScope(alice, cli), &cli), keys("list", ""), true},
		{"ADR-0021", "it needs no scope of its own for that", withKeyScope(alice, &cli), keys("list", ""), true},
		{"ADR-0022", "every key deletes itself, whatever its makers", withKeyScope(itself, &model.Scope{}), keys("delete", "ci"), true},
		{"ADR-0022", "every key deletes itself, whatever its scope", itself, keys("delete", "ci"), true},
		{"ADR-0022", "also the token of a kubeconfig", rendered, keys("delete", "ci"), true},
		{"ADR-0022", "everybody may revoke what they found", rendered, requestFor("create", model.GroupName, "credentialrevocations"), true},
		{"ADR-0022", "and no other", itself, keys("delete", "other"), false},
		{"ADR-0022", "nor everything", itself, keys("deletecollection", "ci"), false},
		{"ADR-0022", "nor anything of that name", itself, requestFor("delete", model.GroupName, "directclusterendpointtokens"), false},
		{"ADR-0022", "it does not read itself", itself, keys("get", "ci"), false},
		{"ADR-0022", "who has no key gives none back", withScope(alice, model.Scope{}), keys("delete", ""), false},
		{"ADR-0012", "every caller asks whose a bearer is", alice, reviews, true},
		{"ADR-0012", "every caller asks what a scope permits", alice, requestFor("create", "authorization.k8s.io", "subjectaccessreviews"), true},
		{"ADR-0012", "a key of a cluster asks both", withScope(alice, agent), reviews, true},
		{"ADR-0012", "and nothing else", withScope(alice, agent), keys("list", ""), false},
		{"ADR-0012", "an empty scope does not ask", withScope(alice, model.Scope{}), reviews, false},
		{"ADR-0005", "a scope of an admin permits", withScope(admin, agent), reviews, true},
		{"ADR-0005", "a scope permits no request without a verb", withScope(admin, cli), requestFor("", model.GroupName, "config"), false},
		{"Spec 2.3", "a request is for this API whatever it says", withScope(admin, model.Scope{Clusters: []model.ScopeCluster{{Cluster: "c"}}}),
			scope.Request{Verb: "get", Group: model.GroupName, Resource: "config", Target: scope.TargetCluster, Cluster: "c"}, false},
	} {
		t.Run(row.section+" "+row.sentence, func(t *testing.T) {
			decision := auth.Decide(row.caller, row.request)
			if decision.Allowed != row.want || decision.Reason == "" {
				t.Errorf("got %+v", decision)
			}
			err := auth.Authorize(row.caller, row.request)
			if (err == nil) != row.want {
				t.Fatalf("error is %v", err)
			}
			if err == nil {
				return
			}
			status := apierror.From(err).Status()
			if status.Code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden || status.Details == nil ||
				status.Details.Kind != row.request.Resource || status.Details.Group != row.request.Group || status.Details.Name != row.request.Name {
				t.Errorf("status is %+v", status)
			}
		})
	}
}

// The credentials that a caller makes are within all of their scopes, and the narrowest of these is the first choice.
// Source: ADR-0021.
func TestExceeds(t *testing.T) {
	t.Parallel()
	projects := func(names ...string) *model.Scope {
		s := &model.Scope{}
		for _, name := range names {
			s.Projects = append(s.Projects, model.ScopeProject{Project: name})
		}
		return s
	}
	ana := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
	for _, row := range []struct {
		own    *model.Scope
		makers []*model.Scope
		want   *model.Scope
	}{
		{nil, nil, nil},
		{projects("a"), []*model.Scope{projects("a", "b")}, projects("a")},
		{nil, []*model.Scope{projects("a", "b"), projects("b")}, projects("b")},
		{projects("a"), []*model.Scope{projects("b")}, projects("a")},
		{nil, []*model.Scope{projects("c"), projects("b")}, projects("c")},
	} {
		ana.Scope, ana.KeyScopes = row.own, row.makers
		if got := auth.Narrowest(ana); !reflect.DeepEqual(got, row.want) {
			t.Errorf("the narrowest is %+v, want %+v", got, row.want)
		}
	}
	for _, row := range []struct {
		about      string
		child, own *model.Scope
		makers     []*model.Scope
		want       []string
	}{
		{"without scopes", nil, nil, nil, nil},
		{"within its own", projects("a"), projects("a", "b"), nil, nil},
		{"beyond its own", projects("c"), projects("a"), []*model.Scope{projects("c")}, []string{"spec.scope.projects[0]"}},
		{"beyond that of a maker", projects("a", "b"), nil, []*model.Scope{projects("a", "b"), projects("a")}, []string{"spec.scope.projects[1]"}},
		{"without a scope, and a maker has one", nil, nil, []*model.Scope{projects("a")}, []string{"spec.scope"}},
		{"within all", projects("a"), projects("*"), []*model.Scope{projects("a", "b"), projects("c", "a")}, nil},
	} {
		caller := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, nil)
		caller.Scope, caller.KeyScopes = row.own, row.makers
		var got []string
		for _, problem := range auth.Exceeds(row.child, caller, field.NewPath("spec", "scope")) {
			got = append(got, problem.Field)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.about, got, row.want)
		}
	}
}

// The token of a kubeconfig reads its instance, and asks about the API and itself. Its owner may do anything here.
// Source: ADR-0021.
func TestKubeconfigs(t *testing.T) {
	t.Parallel()
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	caller.KeyType = model.AccessKeyTypeKubeconfig
	caller.Scope = &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: "shop", VirtualCluster: "dev"}}}
	instance := func(verb, name, subresource string) scope.Request {
		return scope.Request{
			Verb: verb, Group: model.GroupName, Resource: "virtualclusterinstances", Subresource: subresource,
			Namespace: "p-shop", Project: "shop", Name: name,
		}
	}
	create := func(group, resource string) scope.Request {
		return scope.Request{Verb: "create", Group: group, Resource: resource}
	}
	for _, request := range []scope.Request{
		instance("get", "dev", ""),
		create(model.GroupName, "selves"),
		create("authentication.k8s.io", "selfsubjectreviews"),
		create("authorization.k8s.io", "selfsubjectaccessreviews"),
		create("authorization.k8s.io", "selfsubjectrulesreviews"),
		{Verb: "get", Path: "/apis"},
	} {
		if decision := auth.Decide(caller, request); !decision.Allowed {
			t.Errorf("%+v: %s", request, decision.Reason)
		}
	}
	refusals := []scope.Request{
		instance("get", "other", ""), instance("get", "dev", "status"), instance("create", "dev", "kubeconfig"),
		create(model.GroupName, "ownedaccesskeys"), create(model.GroupName, "directclusterendpointtokens"),
		create("authentication.k8s.io", "tokenreviews"),
	}
	for _, verb := range []string{"list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		for _, subresource := range []string{"", "status", "kubeconfig"} {
			refusals = append(refusals, instance(verb, "dev", subresource))
		}
	}
	for _, request := range refusals {
		if auth.Decide(caller, request).Allowed {
			t.Errorf("%+v is allowed", request)
		}
	}
}
