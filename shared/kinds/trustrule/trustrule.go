// Package trustrule has the rules of trust rules: the fields of a trust rule, and which claims of a token fit it. Package oidc
// checks who signed a token, and package tokenexchange exchanges a token for an access key. Source: ADR-0036.
package trustrule

import (
	"fmt"
	"io"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Registry has the trust rules and their state.
type Registry = resource.Registry[*model.TrustRule]

// Definition is the resource trustrules. Source: ADR-0036.
var Definition = &resource.Definition[*model.TrustRule]{
	Resource:   model.SchemeGroupVersion.WithResource("trustrules"),
	Kind:       "TrustRule",
	Singular:   "trustrule",
	ShortNames: []string{"tr"},
	ReadAhead:  true,
	NamePrefix: "trustrule-",
	New:        func() *model.TrustRule { return &model.TrustRule{} },
	NewList: func(meta metav1.ListMeta, items []*model.TrustRule) runtime.Object {
		return &model.TrustRuleList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns: columns,
	Cells:   cells,
	Origin:  func(rule *model.TrustRule) *model.Origin { return &rule.Status.Origin },
	Fields: func(rule *model.TrustRule) fields.Set {
		return fields.Set{"spec.disabled": strconv.FormatBool(rule.Spec.Disabled), "spec.issuer": rule.Spec.Issuer}
	},
}

// NewRegistry returns the trust rules in a store.
func NewRegistry(state store.Store, now func() time.Time, random io.Reader) *Registry {
	own := rules{}
	return &Registry{Definition: Definition, Store: state, Now: now, Random: random, Strategy: resource.Strategy[*model.TrustRule]{
		Rules: own, Visibility: own, Permissions: own,
	}}
}

// Owner returns the owner of the access keys of a rule. The zero value: the rule names no owner.
func Owner(rule *model.TrustRule) identity.Owner {
	if rule.Spec.Owner == nil {
		return identity.Owner{}
	}
	return identity.OwnerOf(rule.Spec.Owner.User, rule.Spec.Owner.Team, "")
}

// TTL returns the lifetime of an access key of a rule.
func TTL(rule *model.TrustRule) time.Duration { return orDefault(rule.Spec.TTLSeconds) }

// MaxTokenAge returns how long ago a token for a rule may have been issued.
func MaxTokenAge(rule *model.TrustRule) time.Duration { return orDefault(rule.Spec.MaxTokenAgeSeconds) }

// Once reports whether a rule accepts a token only once.
func Once(rule *model.TrustRule) bool {
	if rule.Spec.Once != nil {
		return *rule.Spec.Once
	}
	return tokenPerRequest(rule.Spec.Issuer)
}

func orDefault(seconds int64) time.Duration {
	if seconds == 0 {
		return usualSeconds * time.Second
	}
	return model.Seconds(seconds)
}

type rules struct{}

// Sees implements resource.Visibility: only admins see trust rules.
func (rules) Sees(caller identity.Caller, _ *model.TrustRule) auth.Decision {
	if caller.Admin() {
		return auth.PermittedAdmin
	}
	return auth.Decision{Hidden: true}
}

func (rules) SeenBy() string { return "members of " + identity.Admins }

// Permits implements resource.Permissions: only admins write trust rules.
func (r rules) Permits(caller identity.Caller, _, _ string, rule *model.TrustRule) auth.Decision {
	return r.Sees(caller, rule)
}

// Default removes what clients cannot write.
func (rules) Default(_ identity.Caller, rule, _ *model.TrustRule) {
	rule.Status = model.TrustRuleStatus{}
}

// Grants returns what the access keys of a rule have, and which jobs get such keys as long as the rule exists.
func (rules) Grants(rule *model.TrustRule) []auth.Grant {
	spec := &rule.Spec
	owner := Owner(rule)
	grants := []auth.Grant{
		auth.ActsAs(specPath.Child("owner"), owner),
		auth.UnlimitedGrant(specPath.Child("owner"), owner.String()),
		auth.ScopeGrant(specPath.Child("scope"), spec.Scope),
		auth.UnlimitedGrant(specPath.Child("scope"), fmt.Sprintf("%v", spec.Scope)),
		auth.UnlimitedGrant(specPath.Child("issuer"), spec.Issuer),
		auth.UnlimitedGrant(specPath.Child("caData"), fmt.Sprintf("=%s", spec.CAData)),
		auth.UnlimitedGrant(specPath.Child("audience"), "="+spec.Audience),
		auth.UnlimitedGrant(specPath.Child("match"), fmt.Sprintf("%+v", spec.Match)),
	}
	if !spec.Disabled {
		grants = append(grants, auth.UnlimitedGrant(specPath.Child("disabled"), "false").ForExisting())
	}
	return grants
}

// Authorize refuses nothing: only admins write trust rules.
func (rules) Authorize(identity.Caller, *model.TrustRule, *model.TrustRule) field.ErrorList {
	return nil
}

// Seal has no secret to remove.
func (rules) Seal(*model.TrustRule, store.Record) (resource.Sealed[*model.TrustRule], field.ErrorList) {
	return resource.Sealed[*model.TrustRule]{}, nil
}

// Index returns the owner of the access keys, so that the name of the owner is not given to another user or team. Trust rules
// never expire.
func (rules) Index(rule *model.TrustRule, _ time.Time) (owner string, expires time.Time) {
	return Owner(rule).String(), time.Time{}
}

// Observe fills in nothing: the status is empty.
func (rules) Observe(*model.TrustRule, store.Record) {}
