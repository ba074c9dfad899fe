package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// accessWorld is the whole API with objects of all kinds. The test chooses the caller of each request.
type accessWorld struct {
	*configWorld
	random *rand.Rand
	caller identity.Caller
	// names are the names of the objects of a resource, with their namespaces.
	names map[string][]string
	// owners are the owners of keys.
	owners map[string]identity.Owner
	// bodies are the objects by path, as an admin reads them.
	bodies map[string]string
}

func (d *accessWorld) Header(context.Context, http.Header, store.Ref) (identity.Caller, map[string]store.Record, error) {
	return d.caller, nil, nil
}

func (d *accessWorld) Reauthenticate(context.Context, http.Header) (identity.Caller, error) {
	return d.caller, nil
}

func newAccessWorld(t *testing.T) *accessWorld {
	t.Helper()
	// The numbers are the same in every run.
	d := &accessWorld{
		configWorld: newConfigWorld(t, redistest.Embedded(t)), random: rand.New(rand.NewPCG(5, 23)),
		names: map[string][]string{"configs": {"config"}}, owners: map[string]identity.Owner{}, bodies: map[string]string{},
	}
	d.seed()
	for i := range 12 {
		bearer := []string{anaBearer, benBearer, adminBearer}[i%3]
		if answer, text := d.ask(bearer, "POST", "/apis/management.platform.sh/v1/directclusterendpointtokens", fmt.Sprintf(`{"metadata":{"name":"t%d"}}`, i)); answer.StatusCode != http.StatusCreated {
			t.Fatal(text)
		}
		d.names["directclusterendpointtokens"] = append(d.names["directclusterendpointtokens"], fmt.Sprintf("t%d", i))
	}
	root := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	for i := range 40 {
		key := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("k%d", i)}}
		d.owners[key.Name] = d.owner()
		key.Spec.User, key.Spec.Team, key.Spec.Subject = d.owners[key.Name].Fields()
		key.Spec.Groups, key.Spec.Scope = d.groups(), d.scope()
		if _, err := resource.Create(t.Context(), kinds.AccessKeys(d.env), resource.CreateInput[*model.OwnedAccessKey]{Caller: root, Object: key}); err != nil {
			t.Fatal(err)
		}
		d.names["ownedaccesskeys"] = append(d.names["ownedaccesskeys"], key.Name)
	}
	for i := range 30 {
		instance := &model.VirtualClusterInstance{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("v%d", i%10)}}
		instance.Namespace = []string{"p-a", "p-b", "p-c"}[i/10]
		if owner := d.owner(); owner.Kind != identity.Subject && d.random.IntN(4) > 0 {
			user, team, _ := owner.Fields()
			instance.Spec.Owner = &model.InstanceOwner{User: user, Team: team}
		}
		for range d.random.IntN(4) {
			user, team, _ := d.owner().Fields()
			entry := model.InstanceAccess{Verbs: []string{pick(d, "use", "update", "delete", "*")}}
			switch {
			case user != "":
				entry.Users = []string{user}
			case team != "":
				entry.Teams = []string{team}
			default:
				continue
			}
			instance.Spec.Access = append(instance.Spec.Access, entry)
		}
		instance.Spec.AccessPoint = &model.InstanceAccessPoint{Ingress: &model.InstanceIngress{Enabled: true, Host: "v.example"}}
		if _, err := resource.Create(t.Context(), kinds.Instances(d.env), resource.CreateInput[*model.VirtualClusterInstance]{
			Caller: root, Namespace: instance.Namespace, Object: instance,
		}); err != nil {
			t.Fatal(err)
		}
		d.names["virtualclusterinstances"] = append(d.names["virtualclusterinstances"], instance.Namespace+"/"+instance.Name)
	}
	for _, name := range []string{"a", "b", "c", "empty"} {
		project := &model.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if owner := d.owner(); owner.Kind != identity.Subject {
			user, team, _ := owner.Fields()
			project.Spec.Owner = &model.ProjectOwner{User: user, Team: team}
		}
		for _, member := range pickSome(d, "ana", "ben", "cleo") {
			project.Spec.Members = append(project.Spec.Members, model.ProjectMember{
				Kind: model.ProjectMemberUser, Name: member, Role: pick(d, model.ProjectRoleAdmin, model.ProjectRoleUse, model.ProjectRoleView),
			})
		}
		if _, err := resource.Create(t.Context(), kinds.Projects(d.env), resource.CreateInput[*model.Project]{Caller: root, Object: project}); err != nil {
			t.Fatal(err)
		}
		d.names["projects"] = append(d.names["projects"], name)
	}
	server := process.NewServer(d.env)
	server.Configuration, server.Authenticator = platformconfig.Open(d.env), d
	d.handler = server.Mount(catalog.Functions...)
	return d
}

func pick[T any](d *accessWorld, from ...T) T { return from[d.random.IntN(len(from))] }

// pickSome returns some of the values, perhaps none.
func pickSome[T any](d *accessWorld, from ...T) []T {
	var list []T
	for _, each := range from {
		if d.random.IntN(3) == 0 {
			list = append(list, each)
		}
	}
	return list
}

func (d *accessWorld) owner() identity.Owner {
	return pick(d,
		identity.Owner{Kind: identity.User, Name: "ana"}, identity.Owner{Kind: identity.User, Name: "ben"}, identity.Owner{Kind: identity.User, Name: "cleo"},
		identity.Owner{Kind: identity.Team, Name: "core"}, identity.Owner{Kind: identity.Team, Name: "dev"},
		identity.Owner{Kind: identity.Subject, Name: "robot"}, identity.Owner{Kind: identity.Subject, Name: "ana"})
}

func (d *accessWorld) groups() []string {
	return pickSome(d, "ops", identity.TeamPrefix+"core", identity.TeamPrefix+"dev")
}

func (d *accessWorld) scope() *model.Scope {
	if d.random.IntN(5) < 2 {
		return nil
	}
	for {
		result := &model.Scope{AllowPlatformCLI: d.random.IntN(8) == 0}
		for range d.random.IntN(3) {
			result.Roles = append(result.Roles, model.ScopeRole{
				Role: pick(d, scope.Roles()...), Projects: pickSome(d, "a", "b", "*"), VirtualClusters: pickSome(d, "v1", "v2", "v3"),
			})
		}
		for range d.random.IntN(2) {
			result.Projects = append(result.Projects, model.ScopeProject{Project: pick(d, "a", "b", "*")})
		}
		for range d.random.IntN(3) {
			result.VirtualClusters = append(result.VirtualClusters, model.ScopeVirtualCluster{Project: pick(d, "a", "b", "*"), VirtualCluster: pick(d, "v1", "v2", "v3", "*")})
		}
		result.Clusters = pickSome(d, model.ScopeCluster{Cluster: "c"})
		result.Spaces = pickSome(d, model.ScopeSpace{Project: "a", Space: "s"})
		for range d.random.IntN(3) {
			rule := model.ScopeRule{
				Verbs:          pickSome(d, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "reveal"),
				Namespaces:     pickSome(d, "p-a", "p-c", ""),
				RequestTargets: pickSome(d, scope.TargetManagement, scope.TargetCluster),
			}
			if d.random.IntN(2) == 0 {
				rule.Resources = []model.ScopeGroupResources{{Group: model.GroupName, Resources: pickSome(d,
					"ownedaccesskeys", "virtualclusterinstances", "virtualclusterinstances/*", "configs", "directclusterendpointtokens", "configs/history")}}
				if len(rule.Resources[0].Resources) > 0 {
					rule.Resources[0].ResourceNames = pickSome(d, "k1", "k2", "k3", "v1", "v2", "t1", "config")
				}
			}
			if d.random.IntN(3) == 0 {
				rule.NonResourceURLs = pickSome(d, "/version", "/metrics", "/openid/v1/*", "/apis/*")
			}
			if d.random.IntN(4) == 0 {
				rule.VirtualClusters = []model.ScopeRuleVirtualCluster{{Name: pick(d, "v1", "v2", ""), Namespace: pick(d, "p-a", "")}}
			}
			result.Rules = append(result.Rules, rule)
		}
		if len(scope.Validate(result, field.NewPath("scope"))) == 0 {
			return result
		}
	}
}

// change replaces the caller with another one.
func (d *accessWorld) change() {
	groups := d.groups()
	if d.random.IntN(4) == 0 {
		groups = append(groups, identity.Admins)
	}
	key := pick(d, d.names["ownedaccesskeys"]...)
	owner := d.owners[key]
	if d.random.IntN(20) == 0 {
		// Keys that were made long ago may have such an owner.
		owner = identity.Owner{Kind: identity.Subject, Name: "system:robot"}
	}
	d.caller = identity.New(owner, groups)
	d.caller.Scope = d.scope()
	if !d.caller.Admin() {
		for _, project := range pickSome(d, "a", "b", "c") {
			if d.caller.Roles == nil {
				d.caller.Roles = map[string]string{}
			}
			d.caller.Roles[project] = pick(d, model.ProjectRoleAdmin, model.ProjectRoleUse, model.ProjectRoleView)
		}
	}
	if maker := d.scope(); maker != nil && d.random.IntN(4) == 0 {
		// The key is bound to another key, which has a scope of its own.
		d.caller.KeyScopes = []*model.Scope{maker}
	}
	d.caller.Key, d.caller.KeyUID, d.caller.KeyType = key, "unknown", model.AccessKeyTypeUser
	if d.random.IntN(10) == 0 {
		d.caller.KeyType = model.AccessKeyTypeKubeconfig
	}
	if owner.Reserved() == "" && d.random.IntN(10) == 0 {
		// So many keys are bound to each other that this key cannot make another one.
		for i := range limits.LineageBounds {
			d.caller.KeyLineage = append(d.caller.KeyLineage, model.AccessKeyAncestor{Name: fmt.Sprintf("k%d", i), UID: "unknown", Bounds: true})
		}
	}
}

// attempt is a request, with the review that says whether the request is permitted.
type attempt struct {
	request
	spec authorizationv1.SelfSubjectAccessReviewSpec
}

// attempt returns a request to an endpoint, with random values in its path.
func (d *accessWorld) attempt(endpoint frame.Endpoint) attempt {
	path, namespace, name := endpoint.Path, "", ""
	if strings.Contains(path, "{name}") {
		name = pick(d, append(slices.Clone(d.names[endpoint.Resource.Resource]), "absent", "k1", "v1")...)
		if before, after, found := strings.Cut(name, "/"); found {
			namespace, name = before, after
		}
	}
	if endpoint.Namespaced && strings.Contains(path, "{namespace}") && (namespace == "" || d.random.IntN(8) == 0) {
		namespace = pick(d, "p-a", "p-b", "p-c")
	}
	group := pick(d, model.GroupName, "authorization.k8s.io", "apps")
	version := pick(d, "v1", "v1", "v2")
	path = strings.NewReplacer("{namespace}", namespace, "{name}", name, "{group}", group, "{version}", version).Replace(path)
	a := attempt{request: request{bearer: "whoever", method: endpoint.Method, path: path}}
	if endpoint.Resource.Resource == "" {
		a.spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: path, Verb: strings.ToLower(endpoint.Method)}
		return a
	}
	verb, query := endpoint.Verb, ""
	switch {
	case verb == "list" || verb == "watch" || verb == "deletecollection":
		if d.random.IntN(3) == 0 {
			name = pick(d, "k1", "v1", "v2", "v3", "t1", "config", "absent")
			query = "&fieldSelector=metadata.name%3D" + name
		}
		query += map[string]string{"watch": "&watch=true", "deletecollection": "&dryRun=All"}[verb]
	case verb != "get":
		query = "&dryRun=All"
	}
	if endpoint.Resource.Resource == "configs" && endpoint.Subresource == "" && (verb == "get" || verb == "list" && query == "") && d.random.IntN(3) == 0 {
		verb, query = "reveal", query+"&reveal=true"
	}
	if query != "" {
		a.path += "?" + query[1:]
	}
	a.spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: verb, Group: endpoint.Resource.Group, Version: endpoint.Resource.Version, Resource: endpoint.Resource.Resource,
		Subresource: endpoint.Subresource, Namespace: namespace, Name: name,
	}
	a.body = d.body(endpoint, path)
	return a
}

// body returns a body that grants nothing that the caller may not grant.
func (d *accessWorld) body(endpoint frame.Endpoint, path string) string {
	switch {
	case endpoint.Verb == "update":
		objectPath := strings.TrimSuffix(path, "/status")
		text, known := d.bodies[objectPath]
		if !known {
			caller := d.caller
			d.caller = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
			answer, found := d.ask("root", "GET", objectPath, "")
			if text = "{}"; answer.StatusCode == http.StatusOK {
				text = found
			}
			d.caller, d.bodies[objectPath] = caller, text
		}
		return text
	case endpoint.Verb == "create" && (slices.Contains([]string{"ownedaccesskeys", "directclusterendpointtokens"}, endpoint.Resource.Resource) ||
		endpoint.Subresource == "accesskeys") && len(d.caller.Scopes()) > 0:
		return `{"spec":{"scope":{}}}`
	case endpoint.Subresource == "rollback":
		return `{"spec":{"revision":"1"}}`
	case endpoint.Verb == "create" || endpoint.Verb == "patch":
		return "{}"
	default:
		return ""
	}
}

// try sends the request. The response to a watch is cut off at its beginning.
func (d *accessWorld) try(a attempt) (code int, text string) {
	kind := "application/json"
	if a.method == http.MethodPatch {
		kind = mergePatch
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	sent := httptest.NewRequestWithContext(ctx, a.method, a.path, strings.NewReader(a.body))
	sent.Header.Set("Authorization", "Bearer "+a.bearer)
	sent.Header.Set("Content-Type", kind)
	recorder := &leavingClient{ResponseRecorder: httptest.NewRecorder(), leave: cancel}
	d.handler.ServeHTTP(recorder, sent)
	return recorder.Code, recorder.Body.String()
}

// leavingClient is a client that leaves once it has the status.
type leavingClient struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l *leavingClient) WriteHeader(code int) {
	l.ResponseRecorder.WriteHeader(code)
	l.leave()
}

// review asks whether a request is permitted.
func (d *accessWorld) review(spec authorizationv1.SelfSubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	d.t.Helper()
	text, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{Spec: spec})
	if err != nil {
		d.t.Fatal(err)
	}
	answer, found := d.ask("whoever", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", string(text))
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal([]byte(found), &review); err != nil || answer.StatusCode != http.StatusCreated {
		d.t.Fatalf("%d %s, %v", answer.StatusCode, found, err)
	}
	return review.Status
}

// preview creates a scope preview and returns its decision about a request. The console decides in this way which pages to show. Nil: the
// caller may not create previews, as with the token of a kubeconfig.
func (d *accessWorld) preview(spec authorizationv1.SelfSubjectAccessReviewSpec) *model.ScopePreviewDecision {
	d.t.Helper()
	request := &model.ScopePreviewRequest{}
	if about := spec.ResourceAttributes; about != nil {
		request.Verb, request.Group, request.Resource, request.Subresource = about.Verb, about.Group, about.Resource, about.Subresource
		request.Namespace, request.Name = about.Namespace, about.Name
	} else {
		request.Verb, request.Path = spec.NonResourceAttributes.Verb, spec.NonResourceAttributes.Path
	}
	text, err := json.Marshal(model.ScopePreview{Spec: model.ScopePreviewSpec{Request: request}})
	if err != nil {
		d.t.Fatal(err)
	}
	answer, body := d.ask("whoever", "POST", "/apis/management.platform.sh/v1/scopepreviews", string(text))
	if answer.StatusCode == http.StatusForbidden {
		return nil
	}
	var preview model.ScopePreview
	if err := json.Unmarshal([]byte(body), &preview); err != nil || answer.StatusCode != http.StatusCreated || preview.Status.Decision == nil {
		d.t.Fatalf("%d %s, %v", answer.StatusCode, body, err)
	}
	return preview.Status.Decision
}

// isAbsent reports whether the object of a path does not exist for an admin without a scope either.
func (d *accessWorld) isAbsent(path string) bool {
	caller := d.caller
	defer func() { d.caller = caller }()
	d.caller = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	path, _, _ = strings.Cut(path, "?")
	for _, subresource := range []string{"/status", "/kubeconfig", "/history", "/rollback", "/signout", "/password", "/accesskeys"} {
		path = strings.TrimSuffix(path, subresource)
	}
	answer, _ := d.ask("root", "GET", path, "")
	return answer.StatusCode == http.StatusNotFound
}

// makesKeys reports whether a request to a subresource makes an access key.
func makesKeys(attributes *authorizationv1.ResourceAttributes) bool {
	return attributes.Verb == "create" && (attributes.Subresource == "kubeconfig" || attributes.Subresource == "accesskeys")
}

// For 10,000 random requests of random callers, a review and a preview decide as the API does: they allow a request if and only if the API
// answers it with neither 403 nor 404. An object that does not exist is 404 to admins, who may do everything to it. Source: ADR-0023, ADR-0030.
func TestReviewsAgree(t *testing.T) {
	t.Parallel()
	d := newAccessWorld(t)
	var endpoints []frame.Endpoint
	for _, function := range catalog.Functions {
		for _, endpoint := range function.Endpoints {
			// A platform that does not know its address has no metadata for clients of OAuth.
			if !strings.Contains(endpoint.Path, "/{cluster}/") && !strings.Contains(endpoint.Path, "/{project}/") &&
				!strings.Contains(endpoint.Path, "/{connector}/") && !strings.HasSuffix(endpoint.Path, "/oauth-authorization-server") {
				endpoints = append(endpoints, endpoint)
			}
		}
	}
	outcomes := map[string][2]int{}
	// oneSided are the requests for instances and projects that were always permitted or always refused so far.
	oneSided := func() (findings []string) {
		for about, count := range outcomes {
			if (strings.Contains(about, "virtualclusterinstances") || strings.Contains(about, "projects")) && (count[0] == 0 || count[1] == 0) {
				findings = append(findings, fmt.Sprintf("%s: %d are permitted and %d refused", about, count[0], count[1]))
			}
		}
		return findings
	}
	const most = 10_000
	rounds := most
	if testing.Short() {
		rounds = 2500
	}
	previews := 0
	for i := 0; i < rounds || i < most && len(oneSided()) > 0; i++ {
		d.change()
		endpoint := pick(d, endpoints...)
		a := d.attempt(endpoint)
		code, text := d.try(a)
		if code == http.StatusUnauthorized || code == http.StatusMethodNotAllowed || code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented {
			t.Fatalf("%d: %s %s: %d %s", i, a.method, a.path, code, text)
		}
		if code == http.StatusConflict && endpoint.Resource.Resource == "projects" && endpoint.Verb == "deletecollection" {
			// A project with virtual clusters is not deleted. The request ends there and does not reach the other projects.
			continue
		}
		permitted := code != http.StatusForbidden && code != http.StatusNotFound
		if attributes := a.spec.ResourceAttributes; code == http.StatusNotFound && attributes != nil && d.caller.Admin() {
			// Nothing is hidden from admins: an object that they do not find may exist later.
			permitted = d.isAbsent(a.path) && (!makesKeys(attributes) || len(d.caller.KeyLineage) == 0)
		}
		status := d.review(a.spec)
		about := strings.Join([]string{endpoint.Verb, endpoint.Resource.Resource, endpoint.Subresource}, " ")
		count := outcomes[about]
		count[map[bool]int{true: 0, false: 1}[permitted]]++
		outcomes[about] = count
		preview := d.preview(a.spec)
		if preview != nil {
			previews++
		}
		if preview != nil && preview.Allowed != status.Allowed {
			t.Errorf("%d: %v %v: %s %s: the preview says %v: %s\nthe review says %v: %s",
				i, d.caller.Owner, d.caller.Groups, a.method, a.path, preview.Allowed, preview.Reason, status.Allowed, status.Reason)
		}
		if status.Allowed != permitted || status.Reason == "" {
			narrow, _ := json.Marshal(d.caller.Scopes())
			t.Errorf("%d: %v %v with the scope %s: %s %s is answered %d %.300s\nthe review says %v: %s",
				i, d.caller.Owner, d.caller.Groups, narrow, a.method, a.path, code, text, status.Allowed, status.Reason)
		}
	}
	for _, about := range oneSided() {
		t.Error(about)
	}
	if previews < rounds/2 {
		t.Errorf("only %d of %d callers could ask for a preview", previews, rounds)
	}
}

// Reviews know exactly the routes of the catalog. Source: ADR-0023.
func TestReviewsKnowTheCatalog(t *testing.T) {
	t.Parallel()
	served := map[scope.Request]bool{}
	for _, function := range catalog.Functions {
		for _, endpoint := range function.Endpoints {
			request := scope.Request{Verb: endpoint.Verb, Group: endpoint.Resource.Group, Resource: endpoint.Resource.Resource, Subresource: endpoint.Subresource}
			if request.Resource == "" {
				request.Verb, request.Path = strings.ToLower(endpoint.Method), endpoint.Path
			}
			served[request] = true
			if _, unknown := auth.Unserved(request); unknown && !strings.Contains(request.Path, "{") {
				t.Errorf("%s has the route %s %s, which the policy does not list", function.Name, endpoint.Method, endpoint.Path)
			}
		}
	}
	for _, request := range auth.Everything() {
		if request.Path == "" && request.Verb != "reveal" && !served[request] {
			t.Errorf("no function serves %+v, which the policy lists", request)
		}
	}
}
