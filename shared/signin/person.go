package signin

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
	"management.platform.sh/shared/kinds/user"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// signer is the caller who writes users at sign-ins.
var signer = identity.New(identity.Owner{Kind: identity.Subject, Name: "finishlogin"}, []string{identity.Admins})

const (
	// maxName is the length of the name of a new user, in bytes, without its ending.
	maxName = 50
	// maxTries is how often the write of a user is tried while others write the same user.
	maxTries = 4
)

// refusedOwner reports whether an error says that the credentials of an owner do not work.
func refusedOwner(err error) bool {
	return errors.Is(err, directory.ErrDisabled) || errors.Is(err, directory.ErrGone) || errors.Is(err, directory.ErrSignedOut)
}

// admit returns the user of a person: the one with their identity at the connector, or a new one. The groups of the user are replaced.
// Neither the name nor the email address of a person identifies them.
func (f *Flow) admit(ctx context.Context, chosen Connector, person Person, notes map[string]string) (*model.User, model.AccessKeyIdentity, error) {
	settings := f.env.Config().Auth
	if settings == nil {
		return nil, model.AccessKeyIdentity{}, expired("settings")
	}
	groups, said, mapped, err := mapped(chosen, person, settings.GroupsFilters, notes)
	if err != nil {
		return nil, mapped, err
	}
	for range maxTries {
		var before []string
		found, err := f.find(ctx, chosen.ID, person.Subject)
		if found != nil {
			before = found.Spec.SSOGroups
		}
		if err == nil && found == nil {
			if settings.DisableUserCreation {
				return nil, mapped, notSetUp("disableUserCreation")
			}
			if found, err = f.register(ctx, said, wantedName(chosen, person)); err == nil {
				notes[AnnotationCreated] = found.Name
			}
		} else if err == nil {
			found, err = f.renew(ctx, found, said)
		}
		switch {
		case err == nil:
			note(notes, AnnotationAdded, without(groups, before))
			note(notes, AnnotationRemoved, without(before, groups))
			return found, mapped, f.makeTeams(ctx, settings, groups, notes)
		case errors.Is(err, lastadmin.ErrLastAdmin):
			return nil, mapped, lastAdmin()
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errTaken):
			// Another sign-in of the same person, or another write, was faster.
		default:
			return nil, mapped, err
		}
	}
	return nil, mapped, busy()
}

// mapped applies the settings of a connector to a person. It returns the person's groups, the fields of their user, and the identity
// that their keys hold. Errors: Refusal, also if the settings do not admit the person.
func mapped(chosen Connector, person Person, filters []string, notes map[string]string) (groups []string, said model.UserSpec, mapped model.AccessKeyIdentity, err error) {
	if strings.TrimSpace(person.Subject) == "" || !fits(person.Subject, limits.SignInTextBytes) {
		return nil, model.UserSpec{}, model.AccessKeyIdentity{}, misconfigured("the ID of the person is absent, too long, or has control characters")
	}
	left := trim(&person)
	notes[AnnotationSubject] = user.Digest(chosen.ID, person.Subject)
	if len(person.Absent) > 0 {
		notes[AnnotationAbsent] = strings.Join(person.Absent, ", ")
	}
	if gate := chosen.RequiredGroups; len(gate) > 0 && !slices.ContainsFunc(person.Groups, func(group string) bool { return slices.Contains(gate, group) }) {
		return nil, model.UserSpec{}, model.AccessKeyIdentity{}, notAdmitted("in none of the required groups" + groupless(person))
	}
	var dropped []string
	groups, dropped = keep(person.Groups, chosen.GroupsPrefix, filters)
	if len(dropped) > 0 {
		notes[AnnotationDropped] = fmt.Sprint(len(dropped))
	}
	for _, group := range dropped[:min(len(dropped), maxNamed)] {
		left = append(left, fmt.Sprintf("group %.64q", group))
	}
	if len(left) > 0 {
		notes[AnnotationLeftOut] = strings.Join(left, ", ")
	}
	extra := map[string]string{}
	for _, name := range chosen.ExtraClaims {
		if value, given := person.Extra[name]; given {
			extra[name] = value
		}
	}
	if len(extra) == 0 {
		extra = nil
	}
	mapped = model.AccessKeyIdentity{
		UserID: person.Subject, Username: person.Username, PreferredUsername: person.PreferredUsername, Email: person.Email,
		EmailVerified: person.EmailVerified, ExtraClaims: extra, Groups: groups, Connector: chosen.ID,
	}
	said = model.UserSpec{
		Connector: chosen.ID, Subject: person.Subject, SSOGroups: groups, ExtraClaims: extra, DisplayName: person.DisplayName,
	}
	if address, err := mail.ParseAddress(person.Email); err == nil && address.Address == person.Email {
		said.Email = person.Email
	}
	return groups, said, mapped, nil
}

// groupless says of a person without groups what did not come. Empty: there are groups.
func groupless(person Person) string {
	switch {
	case len(person.Groups) > 0:
		return ""
	case len(person.Absent) > 0:
		return ": the provider named no group; it did not send " + strings.Join(person.Absent, ", ")
	default:
		return ": the provider named no group"
	}
}

// errTaken says that another user has the identity.
var errTaken = errors.New("another user has the identity")

// maxNamed is how many groups that are left out an event names.
const maxNamed = 10

// trim takes from a person what decides nothing and does not fit, and returns its names.
func trim(person *Person) (left []string) {
	left = person.LeftOut
	for _, text := range []struct {
		name  string
		value *string
	}{
		{"username", &person.Username}, {"preferred username", &person.PreferredUsername}, {"name", &person.DisplayName}, {"email", &person.Email},
	} {
		if !fits(*text.value, limits.SignInTextBytes) {
			*text.value, left = "", append(left, text.name)
		}
	}
	// The claim is about an address that is there.
	person.EmailVerified = person.EmailVerified && !slices.Contains(left, "email")
	extra := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(person.Extra)) {
		if value := person.Extra[name]; fits(value, limits.SignInClaimBytes) {
			extra[name] = value
		} else {
			left = append(left, fmt.Sprintf("extra claim %.64q", name))
		}
	}
	person.Extra = extra
	return left
}

// fits reports whether a text is short enough, and has no control characters.
func fits(text string, most int) bool {
	return len(text) <= most && !strings.ContainsFunc(text, control)
}

func control(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }

// keep returns the groups that are saved with the user, sorted, and those that pass the filters and are left out: the platform's own, names
// that do not fit, and those beyond the limit.
func keep(groups []string, prefix string, filters []string) (kept, dropped []string) {
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
		case (identity.Owner{Name: group}).Reserved() != "" || !fits(group, limits.SignInTextBytes):
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

// find returns the user with an identity at a connector. Nil: there is none.
func (f *Flow) find(ctx context.Context, connector, subject string) (*model.User, error) {
	record, err := f.users.Store.GetByDigest(ctx, user.Digest(connector, subject))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil //nolint:nilnil // nil is nobody
	case err != nil:
		return nil, fmt.Errorf("looking for the user of a sign-in: %w", err)
	}
	found, err := f.users.Decode(record)
	if err != nil {
		return nil, err
	}
	switch {
	case found.DeletionTimestamp != nil:
		return nil, notAdmitted("the user is being deleted")
	case found.Spec.Disabled:
		return nil, notAdmitted("the user is disabled")
	}
	return found, nil
}

// renew writes what a provider says of a user, if it is not what it said before.
func (f *Flow) renew(ctx context.Context, found *model.User, said model.UserSpec) (*model.User, error) {
	next := found.DeepCopy()
	next.Spec.SSOGroups, next.Spec.ExtraClaims, next.Spec.Email = said.SSOGroups, said.ExtraClaims, said.Email
	if apiequality.Semantic.DeepEqual(next.Spec, found.Spec) {
		return found, nil
	}
	written, err := resource.Update(ctx, f.users, resource.UpdateInput[*model.User]{Caller: signer, Name: next.Name, Object: next, Manager: ClientID})
	return written.Object, err
}

// register makes the user of a person. The name is that of the person, unless it belongs to somebody: an object, a credential, a
// member of a team. Then it has an ending that follows from the identity.
func (f *Flow) register(ctx context.Context, said model.UserSpec, wanted string) (*model.User, error) {
	names := candidates(wanted, "user", user.Digest(said.Connector, said.Subject))
	owners := make([]identity.Owner, len(names))
	for i, name := range names {
		owners[i] = identity.Owner{Kind: identity.User, Name: name}
	}
	named, err := f.users.Names(ctx, owners...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		free, err := f.nameIsFree(ctx, owners[i], named)
		if err != nil {
			return nil, err
		}
		if !free {
			continue
		}
		written, err := resource.Create(ctx, f.users, resource.CreateInput[*model.User]{
			Caller: signer, Manager: ClientID, Object: &model.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: said},
		})
		switch {
		case err == nil:
			return written.Object, nil
		case apierrors.IsAlreadyExists(err):
			// Somebody took the name. If it is the same person, the next turn finds them.
			return nil, err
		case apierrors.IsInvalid(err):
			if again, lookErr := f.find(ctx, said.Connector, said.Subject); lookErr == nil && again != nil {
				return nil, errTaken
			}
			return nil, err
		default:
			return nil, err
		}
	}
	return nil, misconfigured("no name is free for the user")
}

// nameIsFree reports whether nobody has the name of an owner: no user or team is the owner, no stored object belongs to it, and no object names
// it. Named are the owners that objects name.
func (f *Flow) nameIsFree(ctx context.Context, owner identity.Owner, named map[identity.Owner]bool) (bool, error) {
	if named[owner] {
		return false, nil
	}
	read, err := f.people.Read(ctx, owner)
	if err != nil {
		return false, fmt.Errorf("looking for a name: %w", err)
	}
	if state, err := f.people.Of(ctx, owner, read); refusedOwner(err) || err == nil && state.Managed {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for _, kind := range platform.StoredKinds {
		page, err := f.env.Stores(kind.Resource.Resource).List(ctx, store.Query{Owners: []string{owner.String()}, Limit: 1})
		if err != nil {
			return false, fmt.Errorf("looking for a name: %w", err)
		}
		if len(page.Records) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// wantedName is the text from which the name of a new user follows.
func wantedName(chosen Connector, person Person) string {
	return chosen.UsernamePrefix + first(person.Username, person.PreferredUsername, localPart(person.Email))
}

// candidates are the names that an object may get: the wanted text as a name, unless it is reserved, and two with an ending from a
// digest. Instead is what stands for a text without a letter or digit.
func candidates(wanted, instead, digest string) []string {
	base := slug(wanted)
	if base == "" {
		base = instead
	}
	names := []string{base + "-" + digest[:5], base + "-" + digest[:16]}
	if reserved(base) {
		return names
	}
	return append([]string{base}, names...)
}

// slug returns a text as the name of an object. Empty: the text has no letter and no digit of ASCII.
func slug(text string) string {
	var out strings.Builder
	for _, c := range strings.ToLower(text) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			out.WriteRune(c)
		} else {
			out.WriteByte('-')
		}
	}
	name := out.String()
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	name = strings.Trim(name, "-")
	if len(name) > maxName {
		name = strings.Trim(name[:maxName], "-")
	}
	return name
}

// reserved reports whether a name could be taken for one of the platform.
func reserved(name string) bool {
	return slices.Contains([]string{"admin", "admins", "root", "user", "team"}, name) ||
		strings.HasPrefix(name, "system") || strings.HasPrefix(name, "platform")
}

func localPart(email string) string {
	part, _, _ := strings.Cut(email, "@")
	return part
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
