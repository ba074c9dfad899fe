package user

import (
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds/membership"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// The limits on the fields of a user, in bytes and entries. Source: ADR-0029.
const (
	maxText   = 256
	maxIcon   = 4096
	maxClaims = 100
	maxClaim  = 4096
	// maxGeneration is the largest whole number that every client reads exactly.
	maxGeneration = 1 << 53
)

var specPath = field.NewPath("spec")

// Validate returns everything that is wrong with a user.
func (r *rules) Validate(user, old *model.User) field.ErrorList {
	spec := &user.Spec
	problems := membership.ValidateOwners(len(user.OwnerReferences))
	if prefix := (identity.Owner{Kind: identity.User, Name: user.Name}).Reserved(); prefix != "" {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), user.Name, identity.ReservedText(prefix)))
	}
	for _, text := range []struct{ name, value string }{
		{"displayName", spec.DisplayName}, {"username", spec.Username}, {"email", spec.Email},
		{"connector", spec.Connector}, {"subject", spec.Subject},
	} {
		problems = append(problems, resource.ValidateText(text.value, maxText, specPath.Child(text.name))...)
	}
	if prefix := (identity.Owner{Kind: identity.User, Name: spec.Username}).Reserved(); prefix != "" {
		problems = append(problems, field.Invalid(specPath.Child("username"), spec.Username, identity.ReservedText(prefix)))
	}
	if address, err := mail.ParseAddress(spec.Email); spec.Email != "" && (err != nil || address.Address != spec.Email) {
		problems = append(problems, field.Invalid(specPath.Child("email"), spec.Email, "must be an address such as ana@example.com"))
	}
	problems = append(problems, validateIcon(spec.Icon)...)
	switch {
	case spec.Connector != "" && spec.Subject == "":
		problems = append(problems, field.Required(specPath.Child("subject"), "spec.connector is set: it needs the ID of the user there"))
	case spec.Connector == "" && spec.Subject != "":
		problems = append(problems, field.Required(specPath.Child("connector"), "spec.subject is set: it needs the ID of its connector"))
	}
	problems = append(problems, membership.ValidateGroups(spec.Groups, specPath.Child("groups"))...)
	problems = append(problems, membership.ValidateGroups(spec.SSOGroups, specPath.Child("ssoGroups"))...)
	problems = append(problems, validateClaims(spec.ExtraClaims)...)
	problems = append(problems, membership.ValidateRoles(spec.ClusterRoles, specPath.Child("clusterRoles"))...)
	return append(problems, validateGeneration(user, old)...)
}

func validateIcon(icon string) field.ErrorList {
	path := specPath.Child("icon")
	if icon == "" {
		return nil
	}
	if len(icon) > maxIcon {
		return field.ErrorList{field.TooLong(path, field.OmitValueType{}, maxIcon)}
	}
	at, err := url.Parse(icon)
	if err != nil || at.Scheme != "data" && (at.Scheme != "https" || at.Host == "") {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a URL that begins with https:// or data:")}
	}
	return nil
}

func validateClaims(claims map[string]string) field.ErrorList {
	path := specPath.Child("extraClaims")
	if len(claims) > maxClaims {
		return field.ErrorList{field.TooMany(path, len(claims), maxClaims)}
	}
	var problems field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if name == "" {
			problems = append(problems, field.Required(path.Key(name), "the name of a claim must not be empty"))
		}
		problems = append(problems, resource.ValidateText(name, maxText, path.Key(name))...)
		problems = append(problems, resource.ValidateText(claims[name], maxClaim, path.Key(name))...)
	}
	return problems
}

func validateGeneration(user, old *model.User) field.ErrorList {
	least := int64(0)
	if old != nil {
		least = old.Spec.TokenGeneration
	}
	if given := user.Spec.TokenGeneration; given < least || given > maxGeneration {
		return field.ErrorList{field.Invalid(specPath.Child("tokenGeneration"), given, fmt.Sprintf("must be from %d to %d: it never falls", least, int64(maxGeneration)))}
	}
	return nil
}

// Grants returns what a user has: the identity with which they sign in, groups, claims and roles. A user who is enabled again
// gets all of it back.
func (r *rules) Grants(user *model.User) []auth.Grant {
	spec := &user.Spec
	var grants []auth.Grant
	if spec.Connector != "" {
		grants = append(grants, auth.PermanentGrant(specPath.Child("connector"), spec.Connector), auth.PermanentGrant(specPath.Child("subject"), spec.Subject))
	}
	for _, group := range spec.Groups {
		grants = append(grants, auth.PermanentGrant(specPath.Child("groups"), group))
	}
	for _, group := range spec.SSOGroups {
		grants = append(grants, auth.PermanentGrant(specPath.Child("ssoGroups"), group))
	}
	for name, value := range spec.ExtraClaims {
		grants = append(grants, auth.PermanentGrant(specPath.Child("extraClaims").Key(name), value))
	}
	return append(grants, membership.Grants(spec.ClusterRoles, spec.Disabled, specPath)...)
}

// Authorize returns the changed fields that only admins may change. Users may change their own spec.displayName and spec.icon.
func (r *rules) Authorize(caller identity.Caller, user, old *model.User) field.ErrorList {
	if caller.Admin() || old == nil {
		return nil
	}
	var excess field.ErrorList
	for _, part := range []struct {
		path       *field.Path
		value, was any
	}{
		{field.NewPath("metadata", "labels"), user.Labels, old.Labels},
		{field.NewPath("metadata", "finalizers"), user.Finalizers, old.Finalizers},
		{specPath.Child("username"), user.Spec.Username, old.Spec.Username},
		{specPath.Child("email"), user.Spec.Email, old.Spec.Email},
		{specPath.Child("connector"), user.Spec.Connector, old.Spec.Connector},
		{specPath.Child("subject"), user.Spec.Subject, old.Spec.Subject},
		{specPath.Child("groups"), user.Spec.Groups, old.Spec.Groups},
		{specPath.Child("ssoGroups"), user.Spec.SSOGroups, old.Spec.SSOGroups},
		{specPath.Child("extraClaims"), user.Spec.ExtraClaims, old.Spec.ExtraClaims},
		{specPath.Child("clusterRoles"), user.Spec.ClusterRoles, old.Spec.ClusterRoles},
		{specPath.Child("disabled"), user.Spec.Disabled, old.Spec.Disabled},
		{specPath.Child("tokenGeneration"), user.Spec.TokenGeneration, old.Spec.TokenGeneration},
	} {
		if !apiequality.Semantic.DeepEqual(part.value, part.was) {
			excess = append(excess, field.Forbidden(part.path, "may be changed only by admins"))
		}
	}
	return excess
}
