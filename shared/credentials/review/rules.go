package review

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Rules returns what a caller may do in a namespace: the requests of the API that Decide allows, without an object or, if
// the scope permits only some objects, with the names of these objects. The rules leave out what the objects themselves decide,
// because Rules reads no objects: callers see and change their own objects. Incomplete is true if the scope names more objects
// than limits.RuleNames. Source: ADR-0023.
func (a *Access) Rules(caller identity.Caller, namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	scopes := caller.Scopes()
	names := scopedNames(scopes)
	// unnamed is the name of an object that the scope does not name.
	unnamed := "any"
	for slices.Contains(names, unnamed) {
		unnamed += "-"
	}
	if len(names) > limits.RuleNames {
		status.Incomplete = true
		status.EvaluationError = fmt.Sprintf("the scope names %d objects; the rules have the first %d of them", len(names), limits.RuleNames)
		names = names[:limits.RuleNames]
	}
	allowed := func(who identity.Caller, request scope.Request, name string) bool {
		request.Name, request.Namespace = name, namespace
		return auth.Decide(who.ForVerb(request.Verb), a.normalize(request)).Allowed
	}
	// An entry of a scope that permits one object and not others names the object. The other entries permit the same for every
	// object, so they are checked once for each request.
	entries := make([][]*model.Scope, len(names))
	for i, name := range names {
		for _, each := range scopes {
			entries[i] = append(entries[i], entriesNaming(each, name))
		}
	}
	for _, request := range auth.Everything() {
		if request.Path != "" {
			if allowed(caller, request, "") {
				addPath(&status, request)
			}
			continue
		}
		objectName := unnamed
		if isCollectionRequest(request) {
			objectName = ""
		}
		if allowed(caller, request, objectName) {
			addVerb(&status, request, nil)
			continue
		}
		if request.Verb == "deletecollection" || request.Verb == "create" && request.Subresource == "" {
			// The request has no name.
			continue
		}
		// openScopes has, for each scope, whether it permits the request for every object.
		openScopes := make([]bool, len(scopes))
		for i, each := range scopes {
			openScopes[i] = allowed(caller.WithScopes([]*model.Scope{each}), request, objectName)
		}
		var permitted []string
		for i, name := range names {
			var narrow []*model.Scope
			for j, each := range entries[i] {
				if !openScopes[j] {
					narrow = append(narrow, each)
				}
			}
			if allowed(caller.WithScopes(narrow), request, name) {
				permitted = append(permitted, name)
			}
		}
		if len(permitted) > 0 {
			addVerb(&status, request, permitted)
		}
	}
	return status
}

// isCollectionRequest reports whether a request names no object.
func isCollectionRequest(request scope.Request) bool {
	switch request.Verb {
	case "list", "watch", "deletecollection":
		return true
	case "create":
		return request.Subresource == ""
	default:
		return false
	}
}

// addVerb adds a verb to the rule of its resource and names.
func addVerb(status *authorizationv1.SubjectRulesReviewStatus, request scope.Request, names []string) {
	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}
	for i := range status.ResourceRules {
		if rule := &status.ResourceRules[i]; rule.APIGroups[0] == request.Group && rule.Resources[0] == resource && slices.Equal(rule.ResourceNames, names) {
			rule.Verbs = append(rule.Verbs, request.Verb)
			return
		}
	}
	status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
		Verbs: []string{request.Verb}, APIGroups: []string{request.Group}, Resources: []string{resource}, ResourceNames: names,
	})
}

// addPath adds a path to the rule of its verb.
func addPath(status *authorizationv1.SubjectRulesReviewStatus, request scope.Request) {
	for i := range status.NonResourceRules {
		if rule := &status.NonResourceRules[i]; rule.Verbs[0] == request.Verb {
			rule.NonResourceURLs = append(rule.NonResourceURLs, request.Path)
			return
		}
	}
	status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
		Verbs: []string{request.Verb}, NonResourceURLs: []string{request.Path},
	})
}

// entriesNaming returns the entries of a scope that name an object. All other entries treat the object like any other object.
func entriesNaming(s *model.Scope, name string) *model.Scope {
	narrow := &model.Scope{ReadOnly: s.ReadOnly}
	for _, entry := range s.Roles {
		if slices.Contains(entry.VirtualClusters, name) {
			narrow.Roles = append(narrow.Roles, entry)
		}
	}
	for _, entry := range s.VirtualClusters {
		if entry.VirtualCluster == name {
			narrow.VirtualClusters = append(narrow.VirtualClusters, entry)
		}
	}
	for _, entry := range s.Rules {
		ofObjects := func(g model.ScopeGroupResources) bool { return slices.Contains(g.ResourceNames, name) }
		ofCluster := func(c model.ScopeRuleVirtualCluster) bool { return c.Name == name }
		if slices.ContainsFunc(entry.Resources, ofObjects) || slices.ContainsFunc(entry.VirtualClusters, ofCluster) {
			narrow.Rules = append(narrow.Rules, entry)
		}
	}
	return narrow
}

// scopedNames returns the names of objects that scopes name, sorted.
func scopedNames(scopes []*model.Scope) []string {
	var names []string
	for _, s := range scopes {
		for _, entry := range s.Roles {
			names = append(names, entry.VirtualClusters...)
		}
		for _, entry := range s.VirtualClusters {
			names = append(names, entry.VirtualCluster)
		}
		for _, entry := range s.Rules {
			for _, resources := range entry.Resources {
				names = append(names, resources.ResourceNames...)
			}
			for _, cluster := range entry.VirtualClusters {
				names = append(names, cluster.Name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Trim(name, auth.All) == "" })
	slices.Sort(names)
	return slices.Compact(names)
}
