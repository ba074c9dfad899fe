// Package provisioning finds, creates and updates the user of a person who signs in, and creates the teams of their groups. Source: Spec
// 5.4; ADR-0031.
package provisioning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/lastadmin"
	"management.platform.sh/shared/kinds/team"
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
	"management.platform.sh/shared/signin/refusal"
	"management.platform.sh/shared/state/store"
)

// provisioningCaller is the caller who writes users at sign-ins.
var provisioningCaller = identity.New(identity.Owner{Kind: identity.Subject, Name: "finishlogin"}, []string{identity.Admins})

// maxNameBytes is the length of the name of a new user, in bytes, without its ending.
const maxNameBytes = 50

// IsOwnerRefused reports whether an error says that the credentials of an owner do not work.
func IsOwnerRefused(err error) bool {
	return errors.Is(err, directory.ErrDisabled) || errors.Is(err, directory.ErrGone) || errors.Is(err, directory.ErrSignedOut)
}

// Provisioner finds, creates and updates the users of persons, and creates their teams. It is safe for concurrent use.
type Provisioner struct {
	env       *platform.Environment
	users     *user.Registry
	directory *directory.Directory
	teams     *team.Registry
}

// Open returns the provisioner of an environment. Functions that write users and teams hand in registries of package kinds.
func Open(env *platform.Environment, users *user.Registry, teams *team.Registry) *Provisioner {
	return &Provisioner{env: env, users: users, directory: directory.Open(env), teams: teams}
}

// Provision returns the user of a person: the user with their identity at the connector, or a new one. The groups of the user are replaced.
// Neither the name nor the email address of a person identifies them.
func (p *Provisioner) Provision(ctx context.Context, conn provider.Connector, person provider.Person) (*model.User, model.AccessKeyIdentity, error) {
	recorder := annotations.RecorderOf(ctx)
	config := p.env.Config().Auth
	if config == nil {
		return nil, model.AccessKeyIdentity{}, refusal.Expired("settings")
	}
	groups, spec, keyIdentity, err := MapPerson(ctx, conn, person, config.GroupsFilters)
	if err != nil {
		return nil, keyIdentity, err
	}
	for range logins.MaxTries {
		var oldGroups []string
		account, err := p.FindUser(ctx, conn.ID, person.Subject)
		if account != nil {
			oldGroups = account.Spec.SSOGroups
		}
		if err == nil && account == nil {
			if config.DisableUserCreation {
				return nil, keyIdentity, refusal.NotSetUp("disableUserCreation")
			}
			if account, err = p.createUser(ctx, spec, PreferredName(conn, person)); err == nil {
				recorder.SetCreatedUser(account.Name)
			}
		} else if err == nil {
			account, err = p.UpdateUser(ctx, account, spec)
		}
		switch {
		case err == nil:
			recorder.SetGroupChanges(difference(groups, oldGroups), difference(oldGroups, groups))
			return account, keyIdentity, p.CreateTeams(ctx, config, groups)
		case errors.Is(err, lastadmin.ErrLastAdmin):
			return nil, keyIdentity, refusal.LastAdmin()
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errIdentityTaken):
			// Another sign-in of the same person, or another write, was faster.
		default:
			return nil, keyIdentity, err
		}
	}
	return nil, keyIdentity, refusal.Busy()
}

// MapPerson applies the settings of a connector to a person. It returns the groups of the person, the fields of their user, and the
// identity that their keys hold. Errors: Refusal, also if the settings do not admit the person.
func MapPerson(ctx context.Context, conn provider.Connector, person provider.Person, filters []string) (groups []string, spec model.UserSpec, keyIdentity model.AccessKeyIdentity, err error) {
	recorder := annotations.RecorderOf(ctx)
	if strings.TrimSpace(person.Subject) == "" || !fitsLimit(person.Subject, limits.SignInTextBytes) {
		return nil, model.UserSpec{}, model.AccessKeyIdentity{}, refusal.Misconfigured("the ID of the person is absent, too long, or has control characters")
	}
	omitted := trimPerson(&person)
	recorder.SetSubject(user.Digest(conn.ID, person.Subject))
	recorder.SetAbsentClaims(person.Absent)
	if required := conn.RequiredGroups; len(required) > 0 && !slices.ContainsFunc(person.Groups, func(group string) bool { return slices.Contains(required, group) }) {
		return nil, model.UserSpec{}, model.AccessKeyIdentity{}, refusal.NotAdmitted("in none of the required groups" + describeMissingGroups(person))
	}
	var dropped []string
	groups, dropped = filterGroups(person.Groups, conn.GroupsPrefix, filters)
	if len(dropped) > 0 {
		recorder.SetDroppedGroups(len(dropped))
	}
	for _, group := range dropped[:min(len(dropped), maxNamedGroups)] {
		omitted = append(omitted, fmt.Sprintf("group %.64q", group))
	}
	recorder.SetOmitted(omitted)
	extra := map[string]string{}
	for _, name := range conn.ExtraClaims {
		if value, ok := person.Extra[name]; ok {
			extra[name] = value
		}
	}
	if len(extra) == 0 {
		extra = nil
	}
	keyIdentity = model.AccessKeyIdentity{
		UserID: person.Subject, Username: person.Username, PreferredUsername: person.PreferredUsername, Email: person.Email,
		EmailVerified: person.EmailVerified, ExtraClaims: extra, Groups: groups, Connector: conn.ID,
	}
	spec = model.UserSpec{
		Connector: conn.ID, Subject: person.Subject, SSOGroups: groups, ExtraClaims: extra, DisplayName: person.DisplayName,
	}
	if address, err := mail.ParseAddress(person.Email); err == nil && address.Address == person.Email {
		spec.Email = person.Email
	}
	return groups, spec, keyIdentity, nil
}

// describeMissingGroups says why a person has no groups. Empty: they have some.
func describeMissingGroups(person provider.Person) string {
	switch {
	case len(person.Groups) > 0:
		return ""
	case len(person.Absent) > 0:
		return ": the provider named no group; it did not send " + strings.Join(person.Absent, ", ")
	default:
		return ": the provider named no group"
	}
}

// errIdentityTaken says that another user has the identity.
var errIdentityTaken = errors.New("another user has the identity")

// maxNamedGroups is how many groups that are left out an event names.
const maxNamedGroups = 10

// trimPerson removes texts of a person that exceed a limit and decide nothing, and returns their names.
func trimPerson(person *provider.Person) (omitted []string) {
	omitted = person.LeftOut
	for _, text := range []struct {
		name  string
		value *string
	}{
		{"username", &person.Username}, {"preferred username", &person.PreferredUsername}, {"name", &person.DisplayName}, {"email", &person.Email},
	} {
		if !fitsLimit(*text.value, limits.SignInTextBytes) {
			*text.value, omitted = "", append(omitted, text.name)
		}
	}
	// The claim is about an address that is there.
	person.EmailVerified = person.EmailVerified && !slices.Contains(omitted, "email")
	extra := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(person.Extra)) {
		if value := person.Extra[name]; fitsLimit(value, limits.SignInClaimBytes) {
			extra[name] = value
		} else {
			omitted = append(omitted, fmt.Sprintf("extra claim %.64q", name))
		}
	}
	person.Extra = extra
	return omitted
}

// fitsLimit reports whether a text has at most maxBytes bytes and no character that controls how it is shown.
func fitsLimit(text string, maxBytes int) bool {
	return len(text) <= maxBytes && !strings.ContainsFunc(text, resource.IsControl)
}

// filterGroups returns the groups to save with the user, sorted, and the dropped groups: reserved names, names that exceed a limit, and
// groups beyond the maximum.
func filterGroups(groups []string, prefix string, filters []string) (kept, dropped []string) {
	var patterns []*regexp.Regexp
	for _, filter := range filters {
		// The configuration has been checked; a filter that does not compile keeps nothing.
		if pattern, err := regexp.Compile(filter); err == nil {
			patterns = append(patterns, pattern)
		}
	}
	for _, group := range groups {
		// A name is what the provider wrote, with the space around it. One of nothing but space is none.
		if strings.TrimSpace(group) == "" {
			continue
		}
		group = prefix + group
		switch {
		case len(filters) > 0 && !slices.ContainsFunc(patterns, func(pattern *regexp.Regexp) bool { return pattern.MatchString(group) }):
		case (identity.Owner{Name: group}).Reserved() != "" || !fitsLimit(group, limits.SignInTextBytes):
			dropped = append(dropped, group)
		default:
			kept = append(kept, group)
		}
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	if len(kept) > limits.SignInGroups {
		kept, dropped = kept[:limits.SignInGroups], append(dropped, kept[limits.SignInGroups:]...)
	}
	return kept, dropped
}

// FindUser returns the user with an identity at a connector. Nil: there is none. Errors: a Refusal if the user is disabled or is being
// deleted.
func (p *Provisioner) FindUser(ctx context.Context, connector, subject string) (*model.User, error) {
	record, err := p.users.Store.GetByDigest(ctx, user.Digest(connector, subject))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil //nolint:nilnil // nil is nobody
	case err != nil:
		return nil, fmt.Errorf("looking for the user of a sign-in: %w", err)
	}
	account, err := p.users.Decode(record)
	if err != nil {
		return nil, err
	}
	switch {
	case account.DeletionTimestamp != nil:
		return nil, refusal.NotAdmitted("the user is being deleted")
	case account.Spec.Disabled:
		return nil, refusal.NotAdmitted("the user is disabled")
	}
	return account, nil
}

// UpdateUser writes the claims of a provider to a user, if they have changed.
func (p *Provisioner) UpdateUser(ctx context.Context, account *model.User, spec model.UserSpec) (*model.User, error) {
	updated := account.DeepCopy()
	updated.Spec.SSOGroups, updated.Spec.ExtraClaims, updated.Spec.Email = spec.SSOGroups, spec.ExtraClaims, spec.Email
	if apiequality.Semantic.DeepEqual(updated.Spec, account.Spec) {
		return account, nil
	}
	written, err := resource.Update(ctx, p.users, resource.UpdateInput[*model.User]{Caller: provisioningCaller, Name: updated.Name, Object: updated, Manager: oauth.ClientID})
	return written.Object, err
}

// createUser creates the user of a person. The name is the name of the person if it is free. Otherwise it has a suffix that is computed
// from the identity.
func (p *Provisioner) createUser(ctx context.Context, spec model.UserSpec, wanted string) (*model.User, error) {
	names := CandidateNames(wanted, "user", user.Digest(spec.Connector, spec.Subject))
	owners := make([]identity.Owner, len(names))
	for i, name := range names {
		owners[i] = identity.Owner{Kind: identity.User, Name: name}
	}
	referenced, err := p.users.GrantedOwners(ctx, owners...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		nameFree, err := p.isNameFree(ctx, owners[i], referenced)
		if err != nil {
			return nil, err
		}
		if !nameFree {
			continue
		}
		written, err := resource.Create(ctx, p.users, resource.CreateInput[*model.User]{
			Caller: provisioningCaller, Manager: oauth.ClientID, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		})
		switch {
		case err == nil:
			return written.Object, nil
		case apierrors.IsAlreadyExists(err):
			// Another request took the name. If it was for the same person, the next try finds the user.
			return nil, err
		case apierrors.IsInvalid(err):
			if existing, lookErr := p.FindUser(ctx, spec.Connector, spec.Subject); lookErr == nil && existing != nil {
				return nil, errIdentityTaken
			}
			return nil, err
		default:
			return nil, err
		}
	}
	return nil, refusal.Misconfigured("no name is free for the user")
}

// isNameFree reports whether no user or team has the name of an owner, no stored object belongs to it, and no object refers to it.
// Referenced are the owners to which objects refer.
func (p *Provisioner) isNameFree(ctx context.Context, owner identity.Owner, referenced map[identity.Owner]bool) (bool, error) {
	if referenced[owner] {
		return false, nil
	}
	refs, err := p.directory.Read(ctx, owner)
	if err != nil {
		return false, fmt.Errorf("looking for a name: %w", err)
	}
	if ownerState, err := p.directory.StateOf(ctx, owner, refs); IsOwnerRefused(err) || err == nil && ownerState.Managed {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for _, kind := range platform.StoredKinds {
		page, err := p.env.Stores(kind.Resource.Resource).List(ctx, store.Query{Owners: []string{owner.String()}, Limit: 1})
		if err != nil {
			return false, fmt.Errorf("looking for a name: %w", err)
		}
		if len(page.Records) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// PreferredName is the text from which the name of a new user is made.
func PreferredName(conn provider.Connector, person provider.Person) string {
	return conn.UsernamePrefix + firstNonEmpty(person.Username, person.PreferredUsername, localPart(person.Email))
}

// CandidateNames returns the names for a new object, best first: the preferred text as a name, unless it is reserved, and two names with a
// suffix from a digest. Fallback replaces a text without a letter or digit.
func CandidateNames(preferred, fallback, digest string) []string {
	base := objectName(preferred)
	if base == "" {
		base = fallback
	}
	names := []string{base + "-" + digest[:5], base + "-" + digest[:16]}
	if isReservedName(base) {
		return names
	}
	return append([]string{base}, names...)
}

// objectName returns a text as the name of an object. Empty: the text has no ASCII letter and no digit.
func objectName(text string) string {
	var builder strings.Builder
	for _, c := range strings.ToLower(text) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			builder.WriteRune(c)
		} else {
			builder.WriteByte('-')
		}
	}
	name := builder.String()
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	name = strings.Trim(name, "-")
	if len(name) > maxNameBytes {
		name = strings.Trim(name[:maxNameBytes], "-")
	}
	return name
}

// isReservedName reports whether a name could be mistaken for a name of the platform.
func isReservedName(name string) bool {
	return slices.Contains([]string{"admin", "admins", "root", "user", "team"}, name) ||
		strings.HasPrefix(name, "system") || strings.HasPrefix(name, "platform")
}

func localPart(email string) string {
	part, _, _ := strings.Cut(email, "@")
	return part
}

// firstNonEmpty returns the first text that is not empty.
func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
