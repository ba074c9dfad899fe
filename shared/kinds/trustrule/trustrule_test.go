package trustrule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
)

const github = "https://token.actions.githubusercontent.com"

func valid() *model.TrustRule {
	return &model.TrustRule{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}, Spec: model.TrustRuleSpec{
		Issuer: "https://issuer.example", Match: []model.TrustRuleCondition{{Claim: "sub", Is: "a"}},
		Owner: &model.TrustRuleOwner{Team: "web"}, Scope: &model.Scope{},
	}}
}

// A refusal names the field of each mistake. Source: ADR-0036.
func TestValidate(t *testing.T) {
	t.Parallel()
	values := func(count int) []string {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprint("v", i))
		}
		return all
	}
	for about, row := range map[string]struct {
		change func(*model.TrustRule)
		want   []string
	}{
		"valid": {func(*model.TrustRule) {}, nil},
		"full": {func(r *model.TrustRule) {
			r.Spec.TTLSeconds, r.Spec.MaxTokenAgeSeconds, r.Spec.Audience = 3600, 3600, "x"
		}, nil},
		"owner references": {func(r *model.TrustRule) { r.OwnerReferences = make([]metav1.OwnerReference, 1) }, []string{"metadata.ownerReferences"}},
		"no issuer":        {func(r *model.TrustRule) { r.Spec.Issuer = "" }, []string{"spec.issuer"}},
		"http":             {func(r *model.TrustRule) { r.Spec.Issuer = "http://issuer.example" }, []string{"spec.issuer"}},
		"a user":           {func(r *model.TrustRule) { r.Spec.Issuer = "https://a:b@issuer.example" }, []string{"spec.issuer"}},
		"a query":          {func(r *model.TrustRule) { r.Spec.Issuer = "https://issuer.example?a" }, []string{"spec.issuer"}},
		"a fragment":       {func(r *model.TrustRule) { r.Spec.Issuer = "https://issuer.example#" }, []string{"spec.issuer"}},
		"upper case":       {func(r *model.TrustRule) { r.Spec.Issuer = "https://Issuer.example" }, []string{"spec.issuer"}},
		"a long issuer":    {func(r *model.TrustRule) { r.Spec.Issuer = "https://" + strings.Repeat("a", maxIssuer) }, []string{"spec.issuer"}},
		"no certificate":   {func(r *model.TrustRule) { r.Spec.CAData = []byte("x") }, []string{"spec.caData"}},
		"large caData":     {func(r *model.TrustRule) { r.Spec.CAData = make([]byte, maxCAData+1) }, []string{"spec.caData"}},
		"no conditions":    {func(r *model.TrustRule) { r.Spec.Match = nil }, []string{"spec.match"}},
		"many conditions":  {func(r *model.TrustRule) { r.Spec.Match = make([]model.TrustRuleCondition, maxConditions+1) }, []string{"spec.match"}},
		"an empty one":     {func(r *model.TrustRule) { r.Spec.Match[0] = model.TrustRuleCondition{} }, []string{"spec.match[0].claim", "spec.match[0]"}},
		"two kinds":        {func(r *model.TrustRule) { r.Spec.Match[0].HasPrefix = "a:" }, []string{"spec.match[0]"}},
		"an open prefix": {func(r *model.TrustRule) {
			r.Spec.Match[0] = model.TrustRuleCondition{Claim: "sub", HasPrefix: "repo:acme"}
		}, []string{"spec.match[0].hasPrefix"}},
		"a closed prefix": {func(r *model.TrustRule) {
			r.Spec.Match[0] = model.TrustRuleCondition{Claim: "sub", HasPrefix: "repo:acme/"}
		}, nil},
		"a wildcard":    {func(r *model.TrustRule) { r.Spec.Match[0].Is = "repo:acme@*" }, []string{"spec.match[0].is"}},
		"a wild prefix": {func(r *model.TrustRule) { r.Spec.Match[0] = model.TrustRuleCondition{Claim: "sub", HasPrefix: "*/"} }, []string{"spec.match[0].hasPrefix"}},
		"a value twice": {func(r *model.TrustRule) {
			r.Spec.Match[0] = model.TrustRuleCondition{Claim: "sub", IsOneOf: []string{"a", "a", ""}}
		}, []string{"spec.match[0].isOneOf[1]", "spec.match[0].isOneOf[2]"}},
		"many values": {func(r *model.TrustRule) {
			r.Spec.Match[0] = model.TrustRuleCondition{Claim: "sub", IsOneOf: values(maxValues + 1)}
		}, []string{"spec.match[0].isOneOf"}},
		"no owner":          {func(r *model.TrustRule) { r.Spec.Owner = nil }, []string{"spec.owner"}},
		"an empty owner":    {func(r *model.TrustRule) { r.Spec.Owner = &model.TrustRuleOwner{} }, []string{"spec.owner"}},
		"two owners":        {func(r *model.TrustRule) { r.Spec.Owner.User = "ana" }, []string{"spec.owner.team"}},
		"a reserved owner":  {func(r *model.TrustRule) { r.Spec.Owner = &model.TrustRuleOwner{User: "system:admin"} }, []string{"spec.owner.user"}},
		"no scope":          {func(r *model.TrustRule) { r.Spec.Scope = nil }, []string{"spec.scope"}},
		"a wrong scope":     {func(r *model.TrustRule) { r.Spec.Scope.Roles = []model.ScopeRole{{Role: "root"}} }, []string{"spec.scope.roles[0].role"}},
		"a negative ttl":    {func(r *model.TrustRule) { r.Spec.TTLSeconds = -1 }, []string{"spec.ttl"}},
		"a long ttl":        {func(r *model.TrustRule) { r.Spec.TTLSeconds = 3601 }, []string{"spec.ttl"}},
		"a long age":        {func(r *model.TrustRule) { r.Spec.MaxTokenAgeSeconds = 3601 }, []string{"spec.maxTokenAgeSeconds"}},
		"several at a time": {func(r *model.TrustRule) { r.Spec.Issuer, r.Spec.Scope = "", nil }, []string{"spec.issuer", "spec.scope"}},
	} {
		rule := valid()
		row.change(rule)
		var got []string
		for _, problem := range (rules{}).Validate(rule, nil) {
			got = append(got, problem.Field)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: problems with %q, want %q", about, got, row.want)
		}
	}
}

// A rule for an issuer that many organizations share needs an equality on an ID that no other organization can register later.
// Source: ADR-0036.
func TestSharedIssuers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		issuer, claim string
		valid         bool
	}{
		{github, "repository_id", true}, {github, "repository_owner_id", true}, {github + "/acme", "enterprise_id", true},
		{github, "repository", false}, {github, "repository_owner", false}, {github + "/acme", "sub", false}, {github + "/", "sub", false},
		{"https://gitlab.com", "project_id", true}, {"https://gitlab.com", "namespace_id", true}, {"https://gitlab.com", "project_path", false},
		{"https://accounts.google.com", "hd", true}, {"https://accounts.google.com", "email", false},
		{"https://login.microsoftonline.com/t/v2.0", "tid", true}, {"https://login.microsoftonline.com/t/v2.0", "email", false},
		{"https://agent.buildkite.com", "organization_id", true}, {"https://agent.buildkite.com", "organization_slug", false},
		{"https://oidc.vercel.com", "owner_id", true}, {"https://oidc.vercel.com", "owner", false}, {"https://oidc.vercel.com/acme", "owner", true},
		{"https://oidc.codefresh.io", "account_id", true}, {"https://oidc.codefresh.io", "account_name", false},
		{"https://oidc.cirrus-ci.com", "repository_id", true}, {"https://oidc.cirrus-ci.com", "repository", false},
		{"https://app.terraform.io", "terraform_organization_id", true}, {"https://app.terraform.io", "terraform_organization_name", false},
		{"https://gitlab.example", "project_path", true}, {"https://gitlab.com.example", "sub", true},
	} {
		for about, condition := range map[string]model.TrustRuleCondition{
			"is": {Claim: row.claim, Is: "1"}, "isOneOf": {Claim: row.claim, IsOneOf: []string{"1", "2"}}, "hasPrefix": {Claim: row.claim, HasPrefix: "1/"},
		} {
			rule := valid()
			rule.Spec.Issuer, rule.Spec.Match = row.issuer, []model.TrustRuleCondition{condition}
			_, shared := sharing(row.issuer)
			want := row.valid && (about != "hasPrefix" || !shared)
			if problems := (rules{}).Validate(rule, nil); len(problems) == 0 != want || !want && problems[0].Field != "spec.match" {
				t.Errorf("%s with %s on %s: %v", row.issuer, about, row.claim, problems)
			}
		}
	}
}

// Unless the rule says whether a token works only once, the issuer decides.
func TestOnce(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string]bool{
		github: true, github + "/acme": true, "https://github.example/_services/token": true, "https://agent.buildkite.com": true,
		"https://gitlab.com": false, "https://kubernetes.example": false, "https://app.terraform.io": false,
	} {
		rule := valid()
		rule.Spec.Issuer = issuer
		for _, said := range []*bool{nil, new(true), new(false)} {
			wanted := want
			if said != nil {
				wanted = *said
			}
			if rule.Spec.Once = said; Once(rule) != wanted {
				t.Errorf("%s with %v: %v", issuer, said, !wanted)
			}
		}
	}
}

// A rule that accepts each branch and each pull request is accepted with a warning.
func TestWarn(t *testing.T) {
	t.Parallel()
	rule := valid()
	rule.Spec.Issuer, rule.Spec.Match = github, []model.TrustRuleCondition{{Claim: "repository_id", Is: "1"}}
	if len((rules{}).Warn(rule)) != 1 {
		t.Error("there is no warning")
	}
	rule.Spec.Match = append(rule.Spec.Match, model.TrustRuleCondition{Claim: "ref", Is: "refs/heads/main"})
	if warnings := (rules{}).Warn(rule); len(warnings) != 0 {
		t.Errorf("the warnings are %q", warnings)
	}
}

// All conditions must hold, each exactly.
func TestUnmet(t *testing.T) {
	t.Parallel()
	var claims Claims
	if err := json.Unmarshal([]byte(`{"text":"repo:acme/shop","number":77,"large":12345678901234567890,"true":true,"null":null,"list":["a"],"object":{"a":"b"},"empty":""}`), &claims); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		condition model.TrustRuleCondition
		met       bool
	}{
		{model.TrustRuleCondition{Claim: "text", Is: "repo:acme/shop"}, true},
		{model.TrustRuleCondition{Claim: "text", Is: "repo:acme/sho"}, false},
		{model.TrustRuleCondition{Claim: "text", Is: "Repo:acme/shop"}, false},
		{model.TrustRuleCondition{Claim: "text", IsOneOf: []string{"a", "repo:acme/shop"}}, true},
		{model.TrustRuleCondition{Claim: "text", IsOneOf: []string{"a", "b"}}, false},
		{model.TrustRuleCondition{Claim: "text", HasPrefix: "repo:acme/"}, true},
		{model.TrustRuleCondition{Claim: "text", HasPrefix: "repo:acm/"}, false},
		{model.TrustRuleCondition{Claim: "number", Is: "77"}, true},
		{model.TrustRuleCondition{Claim: "large", Is: "12345678901234567890"}, true},
		{model.TrustRuleCondition{Claim: "true", Is: "true"}, true},
		{model.TrustRuleCondition{Claim: "null", Is: "null"}, false},
		{model.TrustRuleCondition{Claim: "list", Is: "a"}, false},
		{model.TrustRuleCondition{Claim: "list", Is: `["a"]`}, false},
		{model.TrustRuleCondition{Claim: "object", Is: "b"}, false},
		{model.TrustRuleCondition{Claim: "empty", IsOneOf: []string{"a"}}, false},
		{model.TrustRuleCondition{Claim: "absent", Is: "a"}, false},
	} {
		rule := valid()
		rule.Spec.Match = []model.TrustRuleCondition{{Claim: "true", Is: "true"}, row.condition}
		if unmet := Unmet(rule, claims); len(unmet) == 0 != row.met {
			t.Errorf("%+v: unmet %q", row.condition, unmet)
		}
	}
}
