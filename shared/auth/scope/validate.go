package scope

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
)

const (
	// MaxEntries is the maximum number of entries in one list of a scope. Source: ADR-0005.
	MaxEntries = 1000
	// MaxTotal is the maximum number of entries in all lists of a scope together. It bounds the time of Allows and Exceeds.
	// Source: ADR-0005.
	MaxTotal = 5000
)

// Validate returns everything that is wrong with s, at paths below path. A nil scope is valid, and so is an empty one. If a
// list is too long, or the scope as a whole is too large, Validate does not look at the entries.
// Source: Spec 2.3; the syntax of names and the bounds: ADR-0005.
func Validate(s *model.Scope, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	total, errs := measure(s, path)
	if total > MaxTotal {
		return append(errs, field.TooMany(path, total, MaxTotal))
	}
	errs = append(errs, validateEach(s.Roles, path.Child("roles"), func(e model.ScopeRole, path *field.Path) field.ErrorList {
		var errs field.ErrorList
		switch {
		case e.Role == "":
			errs = append(errs, field.Required(path.Child("role"), "one of "+strings.Join(Roles(), ", ")))
		case !slices.Contains(Roles(), e.Role):
			errs = append(errs, field.NotSupported(path.Child("role"), e.Role, Roles()))
		}
		errs = append(errs, validateEach(e.Projects, path.Child("projects"), labelOrAll)...)
		return append(errs, validateEach(e.VirtualClusters, path.Child("virtualClusters"), labelOrAll)...)
	})...)
	errs = append(errs, validateEach(s.Projects, path.Child("projects"), func(e model.ScopeProject, path *field.Path) field.ErrorList {
		return labelOrAll(e.Project, path.Child("project"))
	})...)
	errs = append(errs, validateEach(s.Spaces, path.Child("spaces"), func(e model.ScopeSpace, path *field.Path) field.ErrorList {
		return append(labelOrAll(e.Project, path.Child("project")), labelOrAll(e.Space, path.Child("space"))...)
	})...)
	errs = append(errs, validateEach(s.VirtualClusters, path.Child("virtualClusters"), func(e model.ScopeVirtualCluster, path *field.Path) field.ErrorList {
		return append(labelOrAll(e.Project, path.Child("project")), labelOrAll(e.VirtualCluster, path.Child("virtualCluster"))...)
	})...)
	errs = append(errs, validateEach(s.Clusters, path.Child("clusters"), func(e model.ScopeCluster, path *field.Path) field.ErrorList {
		return subdomainOrAll(e.Cluster, path.Child("cluster"))
	})...)
	return append(errs, validateEach(s.Rules, path.Child("rules"), func(e model.ScopeRule, path *field.Path) field.ErrorList {
		return validateRule(e, path, validateURL)
	})...)
}

// ValidateAuditRule returns everything that is wrong with the lists of a rule of the audit, as Validate does. URLs have
// the syntax of an audit policy of Kubernetes. If a list is too long, it returns only that error and does not look at
// the entries. Source: Spec 2.3, 2.7 (audit rules have the same lists); the URLs: ADR-0016.
func ValidateAuditRule(rule model.ScopeRule, path *field.Path) field.ErrorList {
	if total, long := measure(&model.Scope{Rules: []model.ScopeRule{rule}}, path); len(long) > 0 {
		return field.ErrorList{field.TooMany(path, total, MaxEntries)}
	}
	return validateRule(rule, path, validateAuditURL)
}

func validateRule(e model.ScopeRule, path *field.Path, validateURL func(string, *field.Path) field.ErrorList) field.ErrorList {
	errs := validateEach(e.Verbs, path.Child("verbs"), func(verb string, path *field.Path) field.ErrorList {
		return validateLiteral(verb, path, "every verb")
	})
	errs = append(errs, validateEach(e.Resources, path.Child("resources"), validateGroup)...)
	errs = append(errs, validateEach(e.Namespaces, path.Child("namespaces"), func(namespace string, path *field.Path) field.ErrorList {
		if namespace == "" {
			return nil
		}
		return label(namespace, path, "every namespace")
	})...)
	errs = append(errs, validateEach(e.NonResourceURLs, path.Child("nonResourceURLs"), validateURL)...)
	errs = append(errs, validateEach(e.RequestTargets, path.Child("requestTargets"), func(target string, path *field.Path) field.ErrorList {
		if !slices.Contains(targets, target) {
			return field.ErrorList{field.NotSupported(path, target, targets)}
		}
		return nil
	})...)
	if e.Cluster != "" {
		errs = append(errs, subdomain(e.Cluster, path.Child("cluster"), "every cluster")...)
		if len(e.RequestTargets) > 0 && !slices.Contains(e.RequestTargets, TargetCluster) {
			errs = append(errs, field.Invalid(path.Child("cluster"), e.Cluster,
				fmt.Sprintf("permits nothing, as requestTargets excludes %q", TargetCluster)))
		}
	}
	return append(errs, validateEach(e.VirtualClusters, path.Child("virtualClusters"), func(e model.ScopeRuleVirtualCluster, path *field.Path) field.ErrorList {
		var errs field.ErrorList
		if e.Name != "" {
			errs = label(e.Name, path.Child("name"), "every virtual cluster")
		}
		if e.Namespace != "" {
			errs = append(errs, label(e.Namespace, path.Child("namespace"), "every namespace")...)
		}
		return errs
	})...)
}

func validateGroup(e model.ScopeGroupResources, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if e.Group != "" {
		errs = subdomain(e.Group, path.Child("group"), "")
	}
	if len(e.ResourceNames) > 0 && len(e.Resources) == 0 {
		errs = append(errs, field.Required(path.Child("resources"), "resourceNames needs resources"))
	}
	seen := overlap{}
	errs = append(errs, validateEach(e.Resources, path.Child("resources"), func(pattern string, path *field.Path) field.ErrorList {
		if msg := resourceSyntax(pattern); msg != "" {
			return field.ErrorList{field.Invalid(path, pattern, msg)}
		}
		if earlier, ok := seen.add(pattern); ok {
			return field.ErrorList{field.Invalid(path, pattern, fmt.Sprintf("overlaps with %q", earlier))}
		}
		return nil
	})...)
	return append(errs, validateEach(e.ResourceNames, path.Child("resourceNames"), func(name string, path *field.Path) field.ErrorList {
		return validateLiteral(name, path, "every object")
	})...)
}

// resourceSyntax returns what is wrong with a pattern of resources, or the empty string.
func resourceSyntax(pattern string) string {
	const shapes = "must be like \"pods\", \"pods/log\", \"pods/*\", \"*/scale\" or \"*\""
	if pattern == selectAll {
		return ""
	}
	left, right, hasSub := strings.Cut(pattern, "/")
	if !hasSub && !isLabel(left) ||
		hasSub && left != selectAll && !isLabel(left) ||
		hasSub && right != selectAll && !isLabel(right) ||
		hasSub && left == selectAll && right == selectAll {
		return shapes
	}
	return ""
}

// overlap finds patterns of one list that match the same request. Each key is a set of requests, and its value is the
// first pattern that matches a request of the set. Equal patterns are not found.
type overlap map[string]string

// add remembers a pattern and returns the first one before it that overlaps with it.
func (o overlap) add(pattern string) (earlier string, ok bool) {
	left, right, hasSub := strings.Cut(pattern, "/")
	var meets, joins []string
	switch {
	case pattern == selectAll:
		meets, joins = []string{"any"}, []string{"any", "all"}
	case !hasSub:
		meets, joins = []string{"all"}, []string{"any"}
	case right == selectAll:
		meets, joins = []string{"all", "one of " + left, "every with"}, []string{"any", "every of", "every of " + left}
	case left == selectAll:
		meets, joins = []string{"all", "one with " + right, "every of"}, []string{"any", "every with", "every with " + right}
	default:
		meets, joins = []string{"all", "every of " + left, "every with " + right}, []string{"any", "one of " + left, "one with " + right}
	}
	for _, key := range meets {
		if earlier, ok = o[key]; ok {
			break
		}
	}
	for _, key := range joins {
		if _, known := o[key]; !known {
			o[key] = pattern
		}
	}
	return earlier, ok
}

// validateAuditURL validates a URL that may end in `*`, which matches every path with the preceding text as its prefix.
func validateAuditURL(url string, path *field.Path) field.ErrorList {
	switch {
	case url == selectAll:
		return nil
	case !strings.HasPrefix(url, "/"):
		return field.ErrorList{field.Invalid(path, url, notAbsolute)}
	case strings.Contains(strings.TrimSuffix(url, "*"), "*"):
		return field.ErrorList{field.Invalid(path, url, "\"*\" must be the last character of the path")}
	}
	return nil
}

const notAbsolute = "must begin with \"/\", or be \"*\""

func validateURL(url string, path *field.Path) field.ErrorList {
	if url == selectAll {
		return nil
	}
	if !strings.HasPrefix(url, "/") {
		return field.ErrorList{field.Invalid(path, url, notAbsolute)}
	}
	if strings.Contains(strings.TrimSuffix(url, "/*"), "*") {
		return field.ErrorList{field.Invalid(path, url, "\"*\" must be the whole last step of the path")}
	}
	if !cleanPath(url) {
		return field.ErrorList{field.Invalid(path, url, "must not have empty, \".\" or \"..\" steps")}
	}
	return nil
}

// validateEach validates the entries of one list, and refuses repeated entries. It skips lists that are too long, which measure
// reports.
func validateEach[T any](list []T, path *field.Path, validate func(T, *field.Path) field.ErrorList) field.ErrorList {
	if len(list) > MaxEntries {
		return nil
	}
	var errs field.ErrorList
	seen := make(map[string]struct{}, len(list))
	for i, e := range list {
		key := fmt.Sprintf("%q", any(e))
		if _, ok := seen[key]; ok {
			errs = append(errs, field.Duplicate(path.Index(i), e))
			continue
		}
		seen[key] = struct{}{}
		errs = append(errs, validate(e, path.Index(i))...)
	}
	return errs
}

// measure counts the entries of all lists of s, and returns an error for each list that is too long. It does not look at the
// entries of such a list.
func measure(s *model.Scope, path *field.Path) (total int, errs field.ErrorList) {
	fits := func(n int, path *field.Path) bool {
		total += n
		if n > MaxEntries {
			errs = append(errs, field.TooMany(path, n, MaxEntries))
		}
		return n <= MaxEntries
	}
	if listPath := path.Child("roles"); fits(len(s.Roles), listPath) {
		for i, e := range s.Roles {
			fits(len(e.Projects), listPath.Index(i).Child("projects"))
			fits(len(e.VirtualClusters), listPath.Index(i).Child("virtualClusters"))
		}
	}
	fits(len(s.Projects), path.Child("projects"))
	fits(len(s.Spaces), path.Child("spaces"))
	fits(len(s.VirtualClusters), path.Child("virtualClusters"))
	fits(len(s.Clusters), path.Child("clusters"))
	if listPath := path.Child("rules"); fits(len(s.Rules), listPath) {
		for i, e := range s.Rules {
			listPath := listPath.Index(i)
			fits(len(e.Verbs), listPath.Child("verbs"))
			fits(len(e.Namespaces), listPath.Child("namespaces"))
			fits(len(e.NonResourceURLs), listPath.Child("nonResourceURLs"))
			fits(len(e.RequestTargets), listPath.Child("requestTargets"))
			fits(len(e.VirtualClusters), listPath.Child("virtualClusters"))
			if listPath := listPath.Child("resources"); fits(len(e.Resources), listPath) {
				for j, g := range e.Resources {
					fits(len(g.Resources), listPath.Index(j).Child("resources"))
					fits(len(g.ResourceNames), listPath.Index(j).Child("resourceNames"))
				}
			}
		}
	}
	return total, errs
}

func labelOrAll(name string, path *field.Path) field.ErrorList {
	if name == selectAll {
		return nil
	}
	return label(name, path, "")
}

func subdomainOrAll(name string, path *field.Path) field.ErrorList {
	if name == selectAll {
		return nil
	}
	return subdomain(name, path, "")
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func label(name string, path *field.Path, everything string) field.ErrorList {
	return validateName(name, path, everything, validation.IsDNS1123Label)
}

func subdomain(name string, path *field.Path, everything string) field.ErrorList {
	return validateName(name, path, everything, validation.IsDNS1123Subdomain)
}

// validateLiteral validates a value that may be any text except `*`, which has no meaning there.
func validateLiteral(value string, path *field.Path, everything string) field.ErrorList {
	return validateName(value, path, everything, func(string) []string { return nil })
}

// validateName validates a name, which must not be empty. If everything is set, `*` is refused too, with the advice to leave the
// name out for everything.
func validateName(name string, path *field.Path, everything string, problems func(string) []string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must not be empty")}
	}
	if name == selectAll && everything != "" {
		return field.ErrorList{field.Invalid(path, name, "has no meaning here; leave it out for "+everything)}
	}
	var errs field.ErrorList
	for _, msg := range problems(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}
