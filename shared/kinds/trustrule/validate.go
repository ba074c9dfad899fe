package trustrule

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signing/clusterca"
)

// The limits on the fields of a rule, in entries, bytes and seconds. Source: ADR-0036.
const (
	maxConditions = 32
	maxValues     = 64
	maxClaim      = 128
	maxValue      = 512
	maxIssuer     = 1024
	maxAudience   = 512
	maxCAData     = 64 << 10

	usualSeconds = 600
	maxSeconds   = 3600
)

var specPath = field.NewPath("spec")

// sharedIssuer is an issuer that many organizations share.
type sharedIssuer struct {
	issuer string
	// below means that the entry also holds for issuers whose address is below this address.
	below bool
	// owners are the claims that identify the owner of a token.
	owners []string
	// narrower are the claims that distinguish branches or environments. Empty: the issuer has no such claims.
	narrower []string
	// perRequest means that a job gets a new token for each request.
	perRequest bool
}

var shared = []sharedIssuer{
	{
		issuer: "https://token.actions.githubusercontent.com", below: true, owners: []string{"repository_id", "repository_owner_id", "enterprise_id"},
		narrower: []string{"ref", "environment", "sub", "job_workflow_ref"}, perRequest: true,
	},
	{
		issuer: "https://gitlab.com", owners: []string{"project_id", "namespace_id"},
		narrower: []string{"ref", "ref_protected", "environment", "sub"},
	},
	{issuer: "https://accounts.google.com", owners: []string{"sub", "hd"}},
	{issuer: "https://login.microsoftonline.com", below: true, owners: []string{"tid", "oid", "sub"}},
	{issuer: "https://sts.windows.net", below: true, owners: []string{"tid", "oid", "sub"}},
	{
		issuer: "https://agent.buildkite.com", owners: []string{"organization_id", "pipeline_id"},
		narrower: []string{"build_branch", "pipeline_id", "sub"}, perRequest: true,
	},
	{issuer: "https://oidc.vercel.com", owners: []string{"owner_id", "project_id"}, narrower: []string{"environment", "sub"}},
	{issuer: "https://oidc.codefresh.io", owners: []string{"account_id", "pipeline_id", "sub"}},
	{issuer: "https://oidc.cirrus-ci.com", owners: []string{"owner_id", "repository_id"}},
	{issuer: "https://app.terraform.io", owners: []string{"terraform_organization_id", "terraform_project_id", "terraform_workspace_id"}},
}

// githubServer is the suffix of the issuers of GitHub Enterprise Server.
const githubServer = "/_services/token"

// Validate returns everything that is wrong with a rule.
func (rules) Validate(rule, _ *model.TrustRule) field.ErrorList {
	spec := &rule.Spec
	var problems field.ErrorList
	if len(rule.OwnerReferences) > 0 {
		problems = append(problems, field.Forbidden(field.NewPath("metadata", "ownerReferences"), "trust rules are not deleted with other objects"))
	}
	problems = append(problems, resource.ValidateTexts(spec.DisplayName, spec.Description, specPath)...)
	problems = append(problems, validateIssuer(spec.Issuer)...)
	problems = append(problems, validateCAData(spec.CAData)...)
	problems = append(problems, resource.ValidateText(spec.Audience, maxAudience, specPath.Child("audience"))...)
	problems = append(problems, validateMatch(spec)...)
	problems = append(problems, validateOwner(spec.Owner)...)
	if spec.Scope == nil {
		problems = append(problems, field.Required(specPath.Child("scope"), "the access keys of a rule have a scope"))
	}
	problems = append(problems, scope.Validate(spec.Scope, specPath.Child("scope"))...)
	problems = append(problems, validateSeconds(spec.MaxTokenAgeSeconds, specPath.Child("maxTokenAgeSeconds"))...)
	return append(problems, validateSeconds(spec.TTLSeconds, specPath.Child("ttl"))...)
}

func validateIssuer(issuer string) field.ErrorList {
	path := specPath.Child("issuer")
	if issuer == "" {
		return field.ErrorList{field.Required(path, "the claim iss of the tokens, an https URL")}
	}
	if len(issuer) > maxIssuer {
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxIssuer)}
	}
	at, err := url.Parse(issuer)
	switch {
	case err != nil || at.Scheme != "https" || at.Host == "" || at.User != nil || at.RawQuery != "" || at.ForceQuery || strings.Contains(issuer, "#"):
		return field.ErrorList{field.Invalid(path, issuer, "must be an https URL without user, query and fragment")}
	case at.Host != strings.ToLower(at.Host):
		return field.ErrorList{field.Invalid(path, issuer, "the host must be in lower case: the claim iss is compared as a text")}
	}
	return nil
}

func validateCAData(data []byte) field.ErrorList {
	path := specPath.Child("caData")
	if len(data) > maxCAData {
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxCAData)}
	}
	if len(data) == 0 {
		return nil
	}
	if _, err := clusterca.ParseCertificates(data); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

func validateMatch(spec *model.TrustRuleSpec) field.ErrorList {
	path := specPath.Child("match")
	switch count := len(spec.Match); {
	case count == 0:
		return field.ErrorList{field.Required(path, "at least one condition: without any, each token of the issuer would be accepted")}
	case count > maxConditions:
		return field.ErrorList{field.TooMany(path, count, maxConditions)}
	}
	var problems field.ErrorList
	for i, condition := range spec.Match {
		problems = append(problems, validateCondition(condition, path.Index(i))...)
	}
	if found, isShared := sharing(spec.Issuer); isShared && !slices.ContainsFunc(spec.Match, func(condition model.TrustRuleCondition) bool {
		return slices.Contains(found.owners, condition.Claim) && (condition.Is != "" || len(condition.IsOneOf) > 0)
	}) {
		problems = append(problems, field.Required(path, fmt.Sprintf(
			"many organizations share this issuer: add a condition with is or isOneOf on %s, because names can be registered anew", strings.Join(found.owners, " or "))))
	}
	return problems
}

func validateCondition(condition model.TrustRuleCondition, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if condition.Claim == "" {
		problems = append(problems, field.Required(path.Child("claim"), "the name of a claim of the token"))
	}
	problems = append(problems, resource.ValidateText(condition.Claim, maxClaim, path.Child("claim"))...)
	given := 0
	for _, set := range []bool{condition.Is != "", len(condition.IsOneOf) > 0, condition.HasPrefix != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		problems = append(problems, field.Required(path, "set exactly one of is, isOneOf and hasPrefix"))
	}
	problems = append(problems, validateValue(condition.Is, path.Child("is"))...)
	if len(condition.IsOneOf) > maxValues {
		return append(problems, field.TooMany(path.Child("isOneOf"), len(condition.IsOneOf), maxValues))
	}
	for i, value := range condition.IsOneOf {
		at := path.Child("isOneOf").Index(i)
		switch {
		case value == "":
			problems = append(problems, field.Required(at, "must not be empty"))
		case slices.Contains(condition.IsOneOf[:i], value):
			problems = append(problems, field.Duplicate(at, value))
		}
		problems = append(problems, validateValue(value, at)...)
	}
	problems = append(problems, validateValue(condition.HasPrefix, path.Child("hasPrefix"))...)
	if prefix := condition.HasPrefix; prefix != "" && !strings.HasSuffix(prefix, ":") && !strings.HasSuffix(prefix, "/") {
		problems = append(problems, field.Invalid(path.Child("hasPrefix"), prefix, "must end in : or /, so that it is not the beginning of a longer name"))
	}
	return problems
}

func validateValue(value string, path *field.Path) field.ErrorList {
	problems := resource.ValidateText(value, maxValue, path)
	if strings.Contains(value, "*") {
		problems = append(problems, field.Invalid(path, value, "conditions have no wildcards: use is, isOneOf or hasPrefix"))
	}
	return problems
}

func validateOwner(owner *model.TrustRuleOwner) field.ErrorList {
	path := specPath.Child("owner")
	switch {
	case owner == nil || owner.User == "" && owner.Team == "":
		return field.ErrorList{field.Required(path, "set user or team")}
	case owner.User != "" && owner.Team != "":
		return field.ErrorList{field.Invalid(path.Child("team"), owner.Team, "a rule has one owner: spec.owner.user is also set")}
	}
	of := identity.OwnerOf(owner.User, owner.Team, "")
	at := path.Child(string(of.Kind))
	if prefix := of.Reserved(); prefix != "" {
		return field.ErrorList{field.Invalid(at, of.Name, identity.ReservedText(prefix))}
	}
	return resource.ValidateText(of.Name, utilvalidation.DNS1123SubdomainMaxLength, at)
}

func validateSeconds(seconds int64, path *field.Path) field.ErrorList {
	if seconds < 0 || seconds > maxSeconds {
		return field.ErrorList{field.Invalid(path, seconds, fmt.Sprintf("must be from 1 to %d seconds; absent is %d", maxSeconds, usualSeconds))}
	}
	return nil
}

// sharing returns the properties of an issuer that many organizations share. IsShared is false if only one organization uses the
// issuer.
func sharing(issuer string) (found sharedIssuer, isShared bool) {
	for _, one := range shared {
		if issuer == one.issuer || strings.TrimSuffix(issuer, "/") == one.issuer || one.below && strings.HasPrefix(issuer, one.issuer+"/") {
			return one, true
		}
	}
	return sharedIssuer{}, false
}

// tokenPerRequest reports whether a job of an issuer gets a new token for each request.
func tokenPerRequest(issuer string) bool {
	found, _ := sharing(issuer)
	return found.perRequest || strings.HasSuffix(issuer, githubServer)
}

// Warn returns a warning if a rule accepts the tokens of every branch and every pull request.
func (rules) Warn(rule *model.TrustRule) []string {
	sharedIssuer, _ := sharing(rule.Spec.Issuer)
	if len(sharedIssuer.narrower) == 0 || slices.ContainsFunc(rule.Spec.Match, func(condition model.TrustRuleCondition) bool {
		return slices.Contains(sharedIssuer.narrower, condition.Claim)
	}) {
		return nil
	}
	return []string{"spec.match: without a condition on " + strings.Join(sharedIssuer.narrower, ", ") +
		", the rule accepts the jobs of each branch and each pull request"}
}
