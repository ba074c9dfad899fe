package accesskey

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
)

// The limits on the groups of a key, and on the name of a group in bytes. Source: ADR-0005.
const (
	maxGroups    = 256
	maxGroupName = 256
)

// clientTypes are the types that callers may set; serverTypes are the platform's own. Source: ADR-0005.
var (
	clientTypes = []string{model.AccessKeyTypeUser, model.AccessKeyTypeOther}
	serverTypes = []string{
		model.AccessKeyTypeLogin, model.AccessKeyTypeReset, model.AccessKeyTypeOIDCRefreshToken,
		model.AccessKeyTypeNetworkPeer, model.AccessKeyTypeWorkspace, model.AccessKeyTypeKubeconfig,
	}
)

var (
	specPath  = field.NewPath("spec")
	scopePath = specPath.Child("scope")
	// ownerPaths are the fields that name an owner, by the kind of owner.
	ownerPaths = map[identity.OwnerKind]*field.Path{
		identity.User: specPath.Child("user"), identity.Team: specPath.Child("team"), identity.Subject: specPath.Child("subject"),
	}
)

// Validate returns everything that is wrong with a key. Old is nil for a new key.
func (r *rules) Validate(key, old *model.OwnedAccessKey) field.ErrorList {
	spec := &key.Spec
	problems := validateOwner(spec)
	if old == nil || OwnerOf(spec) != OwnerOf(&old.Spec) {
		problems = append(problems, validateName(OwnerOf(spec))...)
	}
	if spec.TTLSeconds < 0 {
		problems = append(problems, field.Invalid(specPath.Child("ttl"), spec.TTLSeconds, "must not be negative"))
	}
	problems = append(problems, resource.ValidateTexts(spec.DisplayName, spec.Description, specPath)...)
	problems = append(problems, validateGroups(spec.Groups)...)
	problems = append(problems, validateType(spec.Type, old)...)
	problems = append(problems, scope.Validate(spec.Scope, scopePath)...)
	return append(problems, validateSecrets(spec)...)
}

func validateOwner(spec *model.OwnedAccessKeySpec) field.ErrorList {
	var problems field.ErrorList
	owners := []struct{ name, value string }{{"user", spec.User}, {"team", spec.Team}, {"subject", spec.Subject}}
	var first string
	for _, owner := range owners {
		if owner.value == "" {
			continue
		}
		path := specPath.Child(owner.name)
		if first != "" {
			problems = append(problems, field.Invalid(path, owner.value, "a key has one owner: spec."+first+" is also set"))
		} else {
			first = owner.name
		}
		problems = append(problems, resource.ValidateText(owner.value, validation.DNS1123SubdomainMaxLength, path)...)
	}
	if first == "" {
		problems = append(problems, field.Required(specPath.Child("user"), "a key has an owner: set user, team or subject"))
	}
	return problems
}

// validateName refuses owners whose names are reserved for clusters or the platform. Stored keys may keep such an owner, so that
// they can be disabled; these keys reach no cluster. Source: ADR-0022.
func validateName(owner identity.Owner) field.ErrorList {
	prefix := owner.Reserved()
	if prefix == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(specPath.Child(string(owner.Kind)), owner.Name, identity.ReservedText(prefix))}
}

func validateGroups(groups []string) field.ErrorList {
	var problems field.ErrorList
	path := specPath.Child("groups")
	if len(groups) > maxGroups {
		return field.ErrorList{field.TooMany(path, len(groups), maxGroups)}
	}
	seen := map[string]bool{}
	for i, group := range groups {
		at := path.Index(i)
		switch {
		case group == "":
			problems = append(problems, field.Required(at, "a group has a name"))
		case seen[group]:
			problems = append(problems, field.Duplicate(at, group))
		case strings.HasPrefix(group, identity.KubernetesPrefix):
			problems = append(problems, field.Invalid(at, group, "groups that begin with system: belong to Kubernetes"))
		default:
			problems = append(problems, resource.ValidateText(group, maxGroupName, at)...)
		}
		seen[group] = true
	}
	return problems
}

// validateType refuses unknown types. Callers can neither set nor remove the types that belong to the server: a login key
// with another type would outlive the limit for logins.
func validateType(kind string, old *model.OwnedAccessKey) field.ErrorList {
	path := specPath.Child("type")
	switch {
	case old != nil && old.Spec.Type == kind:
		return nil
	case old != nil && slices.Contains(serverTypes, old.Spec.Type) && slices.Contains(clientTypes, kind):
		return field.ErrorList{field.Invalid(path, kind, "cannot be changed: the platform created the key with the type "+old.Spec.Type)}
	case slices.Contains(clientTypes, kind):
		return nil
	case slices.Contains(serverTypes, kind):
		return field.ErrorList{field.NotSupported(path, kind, clientTypes)}
	case kind == "":
		return field.ErrorList{field.Required(path, "must be "+strings.Join(clientTypes, " or "))}
	default:
		return field.ErrorList{field.NotSupported(path, kind, clientTypes)}
	}
}

// validateSecrets refuses the login secrets, which the server neither accepts from clients nor returns to them.
// Source: Spec 2.5 (connectorData); ADR-0005.
func validateSecrets(spec *model.OwnedAccessKeySpec) field.ErrorList {
	var problems field.ErrorList
	if spec.Identity != nil && spec.Identity.ConnectorData != "" {
		problems = append(problems, field.Forbidden(specPath.Child("identity", "connectorData"), "is written by the server only"))
	}
	if login := spec.OIDCLogin; login != nil {
		path := specPath.Child("oidcLogin")
		for _, token := range []struct{ name, value string }{
			{"idToken", login.IDToken}, {"accessToken", login.AccessToken}, {"refreshToken", login.RefreshToken},
		} {
			if token.value != "" {
				problems = append(problems, field.Forbidden(path.Child(token.name), "is written by the server only"))
			}
		}
	}
	return problems
}

// Grants returns the owner that a key acts as, and its scope. Authorize checks the groups and the end of the key, because what
// they give depends on the rest of the key.
func (r *rules) Grants(key *model.OwnedAccessKey) []auth.Grant {
	owner := OwnerOf(&key.Spec)
	return []auth.Grant{auth.ActsAs(cmp.Or(ownerPaths[owner.Kind], specPath), owner), auth.ScopeGrant(scopePath, key.Spec.Scope)}
}

// Authorize returns the fields in which a key asks for more than the caller may give: groups that the caller is not in, a later end,
// and fields that only logins write. Unchanged fields ask for nothing, with two exceptions: callers with a scope may only change
// keys within that scope; and if a key has groups that the caller is not in, the caller may only make changes that give the key
// nothing. Source: Spec 2.5; ADR-0005, ADR-0021.
func (r *rules) Authorize(caller identity.Caller, key, old *model.OwnedAccessKey) field.ErrorList {
	var excess field.ErrorList
	owner := OwnerOf(&key.Spec)
	if !caller.Admin() {
		if old != nil && old.Status.DisabledByAdmin && !key.Spec.Disabled {
			excess = append(excess, field.Forbidden(specPath.Child("disabled"), "an admin disabled the key, and only an admin can enable it"))
		}
		var had []string
		if old != nil && givesNothing(&key.Spec, &old.Spec) {
			had = old.Spec.Groups
		}
		for i, group := range key.Spec.Groups {
			if !caller.InGroup(group) && !slices.Contains(had, group) {
				excess = append(excess, field.Forbidden(specPath.Child("groups").Index(i),
					fmt.Sprintf("you are not in the group %q", group)))
			}
		}
		if caller.KeyNarrowed && old != nil && len(key.Spec.Groups) == 0 && (len(old.Spec.Groups) > 0 || owner != OwnerOf(&old.Spec)) {
			excess = append(excess, field.Forbidden(specPath.Child("groups"),
				"without groups, the key has all groups of its owner, and your access key has only some of them"))
		}
		excess = append(excess, loginFields(key, old)...)
	}
	excess = append(excess, changesRuled(key, old)...)
	excess = append(excess, r.laterEnd(caller, key, old)...)
	if old == nil || len(auth.Exceeds(key.Spec.Scope, caller, scopePath)) > 0 {
		return excess
	}
	return append(excess, exceedsScope(caller, old)...)
}

// laterEnd refuses a change by which a key would live longer than the caller's own key: a key must not extend its own life, or
// the life of another key in its place. New keys are bound to the caller's key anyway. Source: ADR-0021.
func (r *rules) laterEnd(caller identity.Caller, key, old *model.OwnedAccessKey) field.ErrorList {
	// A person who has signed in may extend the life of their keys, but not of the sign-in's key nor of the keys to which it is
	// bound.
	signedIn := caller.KeyType == model.AccessKeyTypeLogin && len(caller.Scopes()) == 0 && old != nil && old.Name != caller.Key &&
		!slices.Contains(Bounding(caller.KeyLineage), old.Name)
	if old == nil || caller.KeyExpires.IsZero() || signedIn {
		return nil
	}
	spec, before := &key.Spec, &old.Spec
	sliding := spec.TTLSeconds > 0 && spec.TTLAfterLastActivity
	later := before.TTLSeconds > 0 && (spec.TTLSeconds == 0 || spec.TTLSeconds > before.TTLSeconds || sliding && !before.TTLAfterLastActivity)
	if !later {
		return nil
	}
	if end := Expiry(key, time.Time{}, r.limits()); !sliding && !end.IsZero() && !end.After(caller.KeyExpires) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath.Child("ttl"), "the key would live longer than yours, which expires at "+
		caller.KeyExpires.UTC().Format(time.RFC3339))}
}

// givesNothing reports whether a changed key can do no more than before and lives no longer, whatever its groups: only its
// texts differ, or it is disabled now.
func givesNothing(spec, old *model.OwnedAccessKeySpec) bool {
	before := *old
	before.DisplayName, before.Description, before.Groups = spec.DisplayName, spec.Description, spec.Groups
	before.Disabled = old.Disabled || spec.Disabled
	return apiequality.Semantic.DeepEqual(spec, &before)
}

// loginFields returns the fields of logins in which a key differs from the stored key.
func loginFields(key, old *model.OwnedAccessKey) field.ErrorList {
	before := model.OwnedAccessKeySpec{}
	if old != nil {
		before = old.Spec
	}
	var excess field.ErrorList
	for _, part := range []struct {
		name       string
		value, was any
	}{
		{"identity", key.Spec.Identity, before.Identity},
		{"identityRefresh", key.Spec.IdentityRefresh, before.IdentityRefresh},
		{"oidcProvider", key.Spec.OIDCProvider, before.OIDCProvider},
		{"parent", key.Spec.Parent, before.Parent},
		{"oidcLogin", key.Spec.OIDCLogin, before.OIDCLogin},
	} {
		if !apiequality.Semantic.DeepEqual(part.value, part.was) {
			excess = append(excess, field.Forbidden(specPath.Child(part.name), "is written by logins only"))
		}
	}
	return excess
}

// refuseCopies refuses an object that holds the clear text of the key in another field. Source: ADR-0005.
func refuseCopies(key *model.OwnedAccessKey, bearer secret.String) field.ErrorList {
	text, err := json.Marshal(key)
	if err != nil {
		return field.ErrorList{field.InternalError(specPath.Child("key"), err)}
	}
	if bytes.Contains(text, bearer.InJSON()) {
		return field.ErrorList{field.Invalid(specPath.Child("key"), field.OmitValueType{},
			"another field of the object holds the key in clear text")}
	}
	return nil
}
