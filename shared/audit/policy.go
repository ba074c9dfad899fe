package audit

import (
	"slices"
	"strings"

	"management.platform.sh/shared/model"
)

// Attributes are what the policy knows about a request.
type Attributes struct {
	User User
	Verb string
	// Group, Resource, Subresource, Namespace and Name identify the object. Resource is empty in a non-resource request.
	Group, Resource, Subresource, Namespace, Name string
	// Path is the path of a non-resource request, below the base path of the API.
	Path string
	// Target is the kind of endpoint, such as Management. Cluster is the connected cluster of the request, if any.
	Target, Cluster string
	// Reveals is true if the response deliberately shows secrets. Such a request is recorded whatever the rules say.
	Reveals bool
}

// Decision says how much of a request is recorded, and what happens if that fails. The zero value records nothing.
type Decision struct {
	Level Level
	// Fail refuses the request if its event cannot be recorded.
	Fail bool
	// waits makes the request wait for its event as Fail does, but does not refuse it.
	waits bool
	// omit are the stages without an event.
	omit []Stage
}

// Records reports whether there is an event at a stage.
func (d Decision) Records(stage Stage) bool {
	return d.Level.Covers(Metadata) && !slices.Contains(d.omit, stage)
}

// FailRequests is the value of failurePolicy that refuses a request whose event cannot be recorded. Any other value serves
// it. Source: ADR-0016.
const FailRequests = "Fail"

// defaultLevel is the built-in policy if the configuration enables the audit without a level and without rules.
// Source: ADR-0016.
const defaultLevel = 1

// Policy is an ordered list of rules. The zero value records nothing.
type Policy struct {
	rules []model.AuditRule
	// decisions has the decision of each rule, in the order of rules.
	decisions []Decision
}

// NewPolicy returns the policy of a configuration: its rules if it has any, otherwise the rules of its level. If the
// configuration is nil or not enabled, nothing is recorded. Source: Spec 2.7.
func NewPolicy(config *model.ConfigAudit) *Policy {
	switch {
	case config == nil || !config.Enabled:
		return &Policy{}
	case config.Policy != nil && len(config.Policy.Rules) > 0:
		return compile(config.Policy.Rules, config.Policy.OmitStages)
	}
	level := int32(defaultLevel)
	if config.Level != nil {
		level = *config.Level
	}
	var omit []string
	if config.Policy != nil {
		omit = config.Policy.OmitStages
	}
	return compile(builtIn(level), omit)
}

func compile(rules []model.AuditRule, omit []string) *Policy {
	policy := &Policy{rules: rules, decisions: make([]Decision, len(rules))}
	for i, rule := range rules {
		policy.decisions[i] = Decision{
			Level: Level(rule.Level), Fail: rule.FailurePolicy == FailRequests, omit: slices.Concat(stages(omit), stages(rule.OmitStages)),
		}
	}
	return policy
}

func stages(names []string) []Stage {
	list := make([]Stage, len(names))
	for i, name := range names {
		list[i] = Stage(name)
	}
	return list
}

// builtIn returns the rules of a level from 0 to 4. Higher levels are the same as 4. Source: Spec 2.7; the rules: ADR-0016.
func builtIn(level int32) []model.AuditRule {
	if level <= 0 {
		return []model.AuditRule{{Level: string(None)}}
	}
	groupResources := func(group string, resources ...string) model.ScopeGroupResources {
		return model.ScopeGroupResources{Group: group, Resources: resources}
	}
	received := []string{string(RequestReceived)}
	rules := []model.AuditRule{
		{Level: string(None), Resources: []model.ScopeGroupResources{
			groupResources("*", "subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			groupResources(model.GroupName, "agentauditevents", "licensetokens", "ingressauthtokens", "selves", "scopepreviews"),
		}},
		{Level: string(Metadata), Verbs: []string{"create"}, OmitStages: received, Resources: []model.ScopeGroupResources{
			groupResources(model.GroupName, "ownedaccesskeys", "directclusterendpointtokens", "resetaccesskeys", "sharedsecrets", "clusters",
				"users/profile", "virtualclusterinstances/kubeconfig", "virtualclusterinstances/snapshotcredentials"),
		}},
		{Level: string(Metadata), OmitStages: received, Resources: []model.ScopeGroupResources{
			groupResources("", "pods/log", "pods/exec", "pods/portforward"),
			groupResources(model.GroupName, "virtualclusterinstances/log", "appinstances/log"),
		}},
	}
	rest := func(level Level, verbs ...string) {
		rules = append(rules, model.AuditRule{Level: string(level), Verbs: verbs, OmitStages: received})
	}
	switch level {
	case 1:
		// Providers send browsers back with a GET, which creates users and teams.
		rules = append(rules,
			model.AuditRule{Level: string(None), NonResourceURLs: []string{"/auth/info"}},
			model.AuditRule{Level: string(Metadata), NonResourceURLs: []string{"/auth/*"}, OmitStages: received},
		)
		rest(None, "get", "list", "watch")
		rest(Request, "create")
		rest(Metadata)
	case 2:
		rest(Request, "create")
		rest(Metadata)
	case 3:
		rest(Request)
	default:
		rest(RequestResponse)
	}
	return rules
}

// configs is the resource of the platform configuration, which decides what is recorded and where.
const configs = "configs"

// Configures reports whether a request may change the platform configuration. Such a request is recorded under every
// configuration, because it may end the audit.
func (a Attributes) Configures() bool {
	if a.Group != model.GroupName || a.Resource != configs {
		return false
	}
	switch a.Verb {
	case "get", "list", "watch", "reveal":
		return false
	default:
		return true
	}
}

// events is the resource at which the audit itself is read.
const events = "auditevents"

// reads reports whether a request reads the audit. The events that it returns are recorded already.
func (a Attributes) reads() bool { return a.Group == model.GroupName && a.Resource == events }

// Evaluate returns how much of a request is recorded: the decision of the first rule that matches it. If anything is
// recorded, a request that reveals secrets is recorded at Metadata or above. A request that reads the audit is recorded
// at Metadata. A request that changes the configuration is recorded at Request or above in any case, and is never
// refused because its event cannot be stored: it may repair the audit.
func (p *Policy) Evaluate(request Attributes) Decision {
	decision := Decision{Level: None}
	for i := range p.rules {
		if matches(&p.rules[i], &request) {
			decision = p.decisions[i]
			break
		}
	}
	if (request.Reveals || request.reads()) && len(p.rules) > 0 && !decision.Records(ResponseComplete) {
		decision.omit = []Stage{RequestReceived}
		if !decision.Level.Covers(Metadata) {
			decision.Level = Metadata
		}
	}
	if request.reads() && decision.Level.Covers(Metadata) {
		decision.Level = Metadata
	}
	if request.Configures() {
		if !decision.Records(ResponseComplete) || !decision.Records(Panic) {
			decision.omit = []Stage{RequestReceived}
		}
		if !decision.Level.Covers(Request) {
			decision.Level = Request
		}
		decision.waits, decision.Fail = decision.waits || decision.Fail, false
	}
	return decision
}

// matches reports whether all restrictions of a rule hold, as in a kube-apiserver.
func matches(rule *model.AuditRule, request *Attributes) bool {
	if !containsOrAll(rule.Users, request.User.Username) || !containsOrAll(rule.Verbs, request.Verb) || !containsOrAll(rule.RequestTargets, request.Target) {
		return false
	}
	if len(rule.UserGroups) > 0 && !slices.ContainsFunc(request.User.Groups, func(group string) bool {
		return slices.Contains(rule.UserGroups, group)
	}) {
		return false
	}
	if len(rule.Clusters) > 0 && (request.Cluster == "" || !containsOrAll(rule.Clusters, request.Cluster)) {
		return false
	}
	if len(rule.Namespaces) > 0 || len(rule.Resources) > 0 {
		return request.Resource != "" && (len(rule.Namespaces) == 0 || slices.Contains(rule.Namespaces, request.Namespace)) &&
			(len(rule.Resources) == 0 || slices.ContainsFunc(rule.Resources, func(one model.ScopeGroupResources) bool { return covers(one, request) }))
	}
	if len(rule.NonResourceURLs) > 0 {
		return request.Resource == "" && slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return reaches(pattern, request.Path) })
	}
	return true
}

// containsOrAll reports whether a list contains a value. An empty list contains all values, and so does "*".
func containsOrAll(list []string, value string) bool {
	return len(list) == 0 || slices.Contains(list, value) || slices.Contains(list, "*")
}

func covers(group model.ScopeGroupResources, request *Attributes) bool {
	if group.Group != "*" && group.Group != request.Group {
		return false
	}
	if len(group.Resources) == 0 {
		return true
	}
	if len(group.ResourceNames) > 0 && !slices.Contains(group.ResourceNames, request.Name) {
		return false
	}
	full := request.Resource
	if request.Subresource != "" {
		full += "/" + request.Subresource
	}
	return slices.ContainsFunc(group.Resources, func(pattern string) bool {
		resource, subresource, divided := strings.Cut(pattern, "/")
		return pattern == "*" || pattern == full ||
			divided && resource == "*" && subresource == request.Subresource && subresource != "" ||
			divided && subresource == "*" && resource == request.Resource
	})
}

func reaches(pattern, path string) bool {
	if prefix, wild := strings.CutSuffix(pattern, "*"); wild {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}
