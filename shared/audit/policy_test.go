package audit_test

import (
	"strings"
	"testing"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
)

const group = model.GroupName

func resourcesOf(apiGroup string, names []string, resources ...string) []model.ScopeGroupResources {
	return []model.ScopeGroupResources{{Group: apiGroup, Resources: resources, ResourceNames: names}}
}

func enabled(rules ...model.AuditRule) *model.ConfigAudit {
	return &model.ConfigAudit{Enabled: true, Policy: &model.AuditPolicy{Rules: rules}}
}

// asked returns a request to get an access key by a user, with the changes of a row.
func asked(change func(*audit.Attributes)) audit.Attributes {
	a := audit.Attributes{
		User: audit.User{Username: "ana", Groups: []string{"dev", "system:authenticated"}},
		Verb: "get", Group: group, Resource: "ownedaccesskeys", Name: "ci", Target: "Management",
	}
	if change != nil {
		change(&a)
	}
	return a
}

func TestRules(t *testing.T) {
	t.Parallel()
	sub := func(a *audit.Attributes) {
		a.Resource, a.Subresource, a.Namespace, a.Verb = "virtualclusterinstances", "kubeconfig", "p-one", "create"
	}
	path := func(a *audit.Attributes) { a.Resource, a.Group, a.Name, a.Path = "", "", "", "/openapi/v3/apis" }
	for _, row := range []struct {
		source, name string
		rule         model.AuditRule
		change       func(*audit.Attributes)
		matches      bool
	}{
		{"Spec 2.7", "a rule without restrictions", model.AuditRule{}, nil, true},
		{"Spec 2.7", "a user", model.AuditRule{Users: []string{"bob", "ana"}}, nil, true},
		{"Spec 2.7", "another user", model.AuditRule{Users: []string{"bob"}}, nil, false},
		{"Spec 2.7", "one of the groups", model.AuditRule{UserGroups: []string{"ops", "dev"}}, nil, true},
		{"Spec 2.7", "another group", model.AuditRule{UserGroups: []string{"ops"}}, nil, false},
		{"Spec 2.7", "user and group both", model.AuditRule{Users: []string{"ana"}, UserGroups: []string{"ops"}}, nil, false},
		{"Spec 2.7", "a verb", model.AuditRule{Verbs: []string{"list", "get"}}, nil, true},
		{"Spec 2.7", "another verb", model.AuditRule{Verbs: []string{"list"}}, nil, false},
		{"Spec 2.7", "a resource", model.AuditRule{Resources: resourcesOf(group, nil, "ownedaccesskeys")}, nil, true},
		{"Spec 2.7", "another group of resources", model.AuditRule{Resources: resourcesOf("", nil, "ownedaccesskeys")}, nil, false},
		{"ADR-0016", "any group", model.AuditRule{Resources: resourcesOf("*", nil, "ownedaccesskeys")}, nil, true},
		{"Spec 2.3", "all of a group", model.AuditRule{Resources: resourcesOf(group, nil)}, sub, true},
		{"Spec 2.3", "a name", model.AuditRule{Resources: resourcesOf(group, []string{"ci"}, "ownedaccesskeys")}, nil, true},
		{"Spec 2.3", "another name", model.AuditRule{Resources: resourcesOf(group, []string{"cd"}, "ownedaccesskeys")}, nil, false},
		{"Spec 2.3", "a resource is not its subresource", model.AuditRule{Resources: resourcesOf(group, nil, "virtualclusterinstances")}, sub, false},
		{"Spec 2.3", "a subresource", model.AuditRule{Resources: resourcesOf(group, nil, "virtualclusterinstances/kubeconfig")}, sub, true},
		{"Spec 2.3", "any subresource", model.AuditRule{Resources: resourcesOf(group, nil, "virtualclusterinstances/*")}, sub, true},
		{"Spec 2.3", "a resource with any subresource", model.AuditRule{Resources: resourcesOf(group, nil, "ownedaccesskeys/*")}, nil, true},
		{"Spec 2.3", "that subresource of any", model.AuditRule{Resources: resourcesOf(group, nil, "*/kubeconfig")}, sub, true},
		{"Spec 2.3", "a subresource of any is no resource", model.AuditRule{Resources: resourcesOf(group, nil, "*/kubeconfig")}, nil, false},
		{"Spec 2.3", "everything", model.AuditRule{Resources: resourcesOf(group, nil, "*")}, sub, true},
		{"Spec 2.7", "a namespace", model.AuditRule{Namespaces: []string{"p-one"}}, sub, true},
		{"Spec 2.7", "no namespace", model.AuditRule{Namespaces: []string{""}}, nil, true},
		{"Spec 2.7", "another namespace", model.AuditRule{Namespaces: []string{"p-two"}}, sub, false},
		{"Spec 2.7", "a path is in no namespace", model.AuditRule{Namespaces: []string{""}}, path, false},
		{"Spec 2.7", "a path", model.AuditRule{NonResourceURLs: []string{"/openapi/v3/apis"}}, path, true},
		{"Spec 2.7", "what is below a path", model.AuditRule{NonResourceURLs: []string{"/version", "/openapi/*"}}, path, true},
		{"ADR-0016", "what begins with a text", model.AuditRule{NonResourceURLs: []string{"/version", "/open*"}}, path, true},
		{"ADR-0016", "what begins otherwise", model.AuditRule{NonResourceURLs: []string{"/openapi/v2*"}}, path, false},
		{"Spec 2.7", "another path", model.AuditRule{NonResourceURLs: []string{"/openapi"}}, path, false},
		{"Spec 2.7", "a path is no resource", model.AuditRule{Resources: resourcesOf("*", nil)}, path, false},
		{"Spec 2.7", "a resource is no path", model.AuditRule{NonResourceURLs: []string{"*"}}, nil, false},
		{"Spec 2.7", "a target", model.AuditRule{RequestTargets: []string{"Management"}}, nil, true},
		{"Spec 2.7", "another target", model.AuditRule{RequestTargets: []string{"Cluster"}}, nil, false},
		{"Spec 2.7", "a cluster, and the request is for none", model.AuditRule{Clusters: []string{"east"}}, nil, false},
		{"Spec 2.7", "any cluster, and the request is for none", model.AuditRule{Clusters: []string{"*"}}, nil, false},
		{"Spec 2.7", "a cluster", model.AuditRule{Clusters: []string{"east"}}, func(a *audit.Attributes) { a.Cluster = "east" }, true},
	} {
		row.rule.Level = string(audit.Metadata)
		got := audit.NewPolicy(enabled(row.rule)).Evaluate(asked(row.change)).Level == audit.Metadata
		if got != row.matches {
			t.Errorf("%s, %s: matches: %v", row.source, row.name, got)
		}
	}
}

func TestFirstRuleWinsAndStagesAdd(t *testing.T) {
	t.Parallel()
	config := enabled(
		model.AuditRule{Level: "None", Users: []string{"robot"}},
		model.AuditRule{Level: "Request", Verbs: []string{"get"}, OmitStages: []string{"RequestReceived"}, FailurePolicy: "Fail"},
		model.AuditRule{Level: "Metadata"},
	)
	config.Policy.OmitStages = []string{"ResponseStarted"}
	policy := audit.NewPolicy(config)
	choice := policy.Evaluate(asked(nil))
	if choice.Level != audit.Request || !choice.Fail {
		t.Errorf("the second rule says otherwise than %+v", choice)
	}
	for stage, records := range map[audit.Stage]bool{
		audit.RequestReceived: false, audit.ResponseStarted: false, audit.ResponseComplete: true, audit.Panic: true,
	} {
		if choice.Records(stage) != records {
			t.Errorf("%s is recorded: %v", stage, !records)
		}
	}
	robot := policy.Evaluate(asked(func(a *audit.Attributes) { a.User.Username = "robot" }))
	if robot.Level != audit.None || robot.Records(audit.ResponseComplete) {
		t.Errorf("the first rule does not win: %+v", robot)
	}
	list := policy.Evaluate(asked(func(a *audit.Attributes) { a.Verb = "list" }))
	if list.Level != audit.Metadata || list.Fail || !list.Records(audit.RequestReceived) {
		t.Errorf("the last rule says otherwise than %+v", list)
	}
}

// TestLevels is the table of docs/audit.md.
func TestLevels(t *testing.T) {
	t.Parallel()
	const n, m, q, r = audit.None, audit.Metadata, audit.Request, audit.RequestResponse
	for _, row := range []struct {
		// A resource with a slash is a path.
		verb, group, resource, subresource string
		want                               [5]audit.Level
	}{
		{"get", group, "ownedaccesskeys", "", [5]audit.Level{n, n, m, q, r}},
		{"list", group, "ownedaccesskeys", "", [5]audit.Level{n, n, m, q, r}},
		{"watch", group, "ownedaccesskeys", "", [5]audit.Level{n, n, m, q, r}},
		{"create", group, "ownedaccesskeys", "", [5]audit.Level{n, m, m, m, m}},
		{"create", group, "virtualclusterinstances", "", [5]audit.Level{n, q, q, q, r}},
		{"update", group, "ownedaccesskeys", "", [5]audit.Level{n, m, m, q, r}},
		{"patch", group, "ownedaccesskeys", "", [5]audit.Level{n, m, m, q, r}},
		{"delete", group, "ownedaccesskeys", "", [5]audit.Level{n, m, m, q, r}},
		{"create", group, "directclusterendpointtokens", "", [5]audit.Level{n, m, m, m, m}},
		{"delete", group, "directclusterendpointtokens", "", [5]audit.Level{n, m, m, q, r}},
		{"deletecollection", group, "directclusterendpointtokens", "", [5]audit.Level{n, m, m, q, r}},
		{"list", group, "directclusterendpointtokens", "", [5]audit.Level{n, n, m, q, r}},
		{"create", group, "virtualclusterinstances", "kubeconfig", [5]audit.Level{n, m, m, m, m}},
		{"update", group, "configs", "", [5]audit.Level{q, q, q, q, r}},
		{"patch", group, "configs", "", [5]audit.Level{q, q, q, q, r}},
		{"create", group, "configs", "rollback", [5]audit.Level{q, q, q, q, r}},
		{"get", group, "configs", "", [5]audit.Level{n, n, m, q, r}},
		{"create", group, "selves", "", [5]audit.Level{n, n, n, n, n}},
		{"create", group, "scopepreviews", "", [5]audit.Level{n, n, n, n, n}},
		{"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", [5]audit.Level{n, n, n, n, n}},
		{"create", "authorization.k8s.io", "selfsubjectrulesreviews", "", [5]audit.Level{n, n, n, n, n}},
		{"get", group, "virtualclusterinstances", "log", [5]audit.Level{n, m, m, m, m}},
		{"run", "", "/schedules/expirekeys", "", [5]audit.Level{n, m, m, q, r}},
		{"get", "", "/openapi/v3", "", [5]audit.Level{n, n, m, q, r}},
		{"get", "", "/auth/info", "", [5]audit.Level{n, n, m, q, r}},
		{"get", "", "/auth/oidc/callback", "", [5]audit.Level{n, m, m, q, r}},
		{"get", "", "/auth/resume", "", [5]audit.Level{n, m, m, q, r}},
		{"post", "", "/auth/token", "", [5]audit.Level{n, m, m, q, r}},
	} {
		for level, want := range row.want {
			config := &model.ConfigAudit{Enabled: true, Level: new(int32(level))}
			request := audit.Attributes{Verb: row.verb, Group: row.group, Resource: row.resource, Subresource: row.subresource}
			if strings.HasPrefix(row.resource, "/") {
				request.Resource, request.Path = "", row.resource
			}
			choice := audit.NewPolicy(config).Evaluate(request)
			if choice.Level != want {
				t.Errorf("level %d, %s %s/%s: %s instead of %s", level, row.verb, row.resource, row.subresource, choice.Level, want)
			}
			if choice.Records(audit.RequestReceived) || choice.Fail {
				t.Errorf("level %d: %+v", level, choice)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	create := asked(func(a *audit.Attributes) { a.Verb = "create" })
	reveal := asked(func(a *audit.Attributes) { a.Reveals = true })
	read := asked(func(a *audit.Attributes) { a.Resource, a.Name = "auditevents", "" })
	for _, row := range []struct {
		source, name string
		config       *model.ConfigAudit
		asked        audit.Attributes
		want         audit.Level
	}{
		{"Spec 2.7", "nothing is configured", nil, create, audit.None},
		{"Spec 2.7", "not enabled", &model.ConfigAudit{Level: new(int32(4))}, create, audit.None},
		{"ADR-0016", "level 1 by default", &model.ConfigAudit{Enabled: true}, create, audit.Metadata},
		{"Spec 2.7", "None where no rule matches", enabled(model.AuditRule{Level: "Request", Verbs: []string{"get"}}), create, audit.None},
		{"ADR-0016", "no rules are no policy", &model.ConfigAudit{Enabled: true, Policy: &model.AuditPolicy{}}, create, audit.Metadata},
		{"ADR-0016", "secrets that are shown are recorded", &model.ConfigAudit{Enabled: true}, reveal, audit.Metadata},
		{"ADR-0016", "at level 0 as well", &model.ConfigAudit{Enabled: true, Level: new(int32(0))}, reveal, audit.Metadata},
		{"ADR-0016", "against a rule as well", enabled(model.AuditRule{Level: "None"}), reveal, audit.Metadata},
		{"Spec 2.7", "not where the audit is off", &model.ConfigAudit{}, reveal, audit.None},
		{"ADR-0034", "reading the audit is recorded", &model.ConfigAudit{Enabled: true}, read, audit.Metadata},
		{"ADR-0034", "against a rule as well", enabled(model.AuditRule{Level: "None"}), read, audit.Metadata},
		{"ADR-0034", "never with what was read", &model.ConfigAudit{Enabled: true, Level: new(int32(4))}, read, audit.Metadata},
		{"ADR-0034", "not where the audit is off", &model.ConfigAudit{}, read, audit.None},
	} {
		if got := audit.NewPolicy(row.config).Evaluate(row.asked).Level; got != row.want {
			t.Errorf("%s, %s: %s instead of %s", row.source, row.name, got, row.want)
		}
	}
	// A rule cannot omit it by its stages either.
	silent := enabled(model.AuditRule{Level: "Request", OmitStages: []string{"ResponseComplete"}})
	if choice := audit.NewPolicy(silent).Evaluate(reveal); choice.Level != audit.Request || !choice.Records(audit.ResponseComplete) {
		t.Errorf("secrets that are shown where the stage is omitted: %+v", choice)
	}
}
