package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// OfflineAccess is the scope with which a program asks for a refresh token. Source: OpenID Connect Core, 11; ADR-0045.
const OfflineAccess = "offline_access"

const (
	// refreshedFor is how long an access key lives that a refresh key made.
	refreshedFor = time.Hour
	// unusedFor is when a refresh key ends after its last use, where sign-ins have no end.
	unusedFor = 90 * 24 * time.Hour
	// repeatable is how long a refresh can be repeated whose answer did not arrive.
	repeatable = time.Minute
)

// Wanted is what a program asks for when it fetches the key of a sign-in.
type Wanted struct {
	// Scope is what the program gets of the scopes that it asks for. Nil: it asks for none, and gets those for which it asked with the code.
	Scope *string
	// Nonce is noted in the refresh key.
	Nonce string
}

// ReadWanted returns what the parameters scope and nonce of a program say. False: the nonce is not one.
func ReadWanted(scope, nonce string) (Wanted, bool) {
	return Wanted{Scope: grantedScope(scope), Nonce: nonce}, nonce == "" || isToken(nonce, 1, 128)
}

// grantedScope returns what a program gets of the scopes that it asks for: OfflineAccess. Others are left out, and no scope may be left: openid
// asks for an ID token, which the platform does not give. Nil: the program asks for none. Source: RFC 6749, 3.3.
func grantedScope(scope string) *string {
	asked := strings.Fields(scope)
	if len(asked) == 0 {
		return nil
	}
	granted := ""
	if slices.Contains(asked, OfflineAccess) {
		granted = OfflineAccess
	}
	return &granted
}

// offline reports whether the program gets a refresh token.
func (w Wanted) offline() bool { return w.Scope != nil && *w.Scope == OfflineAccess }

// refreshKey makes the key of a sign-in a refresh key. Source: Spec 2.5 (oidcProvider); ADR-0045.
func (w Wanted) refreshKey(state *signIn, key *model.OwnedAccessKey) {
	key.Spec.Type = model.AccessKeyTypeOIDCRefreshToken
	key.Spec.OIDCProvider = &model.AccessKeyOIDCProvider{
		ClientID: ClientID, Nonce: w.Nonce, RedirectURI: state.Client.Redirect, Scopes: OfflineAccess,
	}
	if key.Spec.TTLSeconds == 0 {
		key.Spec.TTLSeconds, key.Spec.TTLAfterLastActivity = int64(unusedFor/time.Second), true
	}
}

// rotation says which refresh token of a refresh key is good, as it is stored.
type rotation struct {
	// Part is the digest of the part that changes, and Before what it was before Refreshed.
	Part      string    `json:"part"`
	Before    string    `json:"before,omitempty"`
	Refreshed time.Time `json:"refreshed,omitzero"`
	// Made are the access keys that it made, the last one first: that one and the one before it.
	Made []model.AccessKeyReference `json:"made"`
}

// referenceOf names a key.
func referenceOf(key *model.OwnedAccessKey) model.AccessKeyReference {
	return model.AccessKeyReference{Name: key.Name, UID: string(key.UID)}
}

// rotationName is the name of the record of a refresh key.
func rotationName(uid string) string { return Digest("refresh", uid) }

// partDigest is what is stored of the part of a refresh token that changes.
func partDigest(part secret.String) string { return Digest("refresh part", part.Reveal()) }

// ErrRefresh says that a refresh token is not valid, or not any more.
var ErrRefresh = errors.New("the refresh token is not valid any more; sign in again")

// firstRefreshed returns the first access key of a refresh key, with its refresh token. Errors: ErrRefresh if the refresh key has ended
// meanwhile; those of the store and of the keys.
func (f *Flow) firstRefreshed(ctx context.Context, family *model.OwnedAccessKey) (Grant, error) {
	bearer := secret.String(family.Spec.Key)
	caller, err := f.refreshers.Bearer(ctx, bearer)
	if err != nil {
		return Grant{}, unauthorized(err)
	}
	made, granted, part, err := f.refreshed(ctx, caller, family, bearer)
	if err != nil {
		return Grant{}, err
	}
	object, err := json.Marshal(rotation{Part: partDigest(part), Made: []model.AccessKeyReference{referenceOf(made)}})
	if err != nil {
		return Grant{}, fmt.Errorf("encoding a refresh key: %w", err)
	}
	now := f.env.Now()
	_, err = f.records.Create(ctx, store.Record{
		Name: rotationName(string(family.UID)), Owner: caller.Owner.String(), Created: now, Expires: endOf(family, now), Object: object,
	})
	if err != nil {
		return Grant{}, fmt.Errorf("storing a refresh key: %w", err)
	}
	return granted, nil
}

// endOf is when the record of a refresh key is not needed any more: after the key itself.
func endOf(family *model.OwnedAccessKey, now time.Time) time.Time {
	if end := family.Status.ExpirationTimestamp; end != nil && !family.Spec.TTLAfterLastActivity {
		return end.Add(refreshedFor)
	}
	return now.Add(unusedFor + refreshedFor)
}

// refreshed makes an access key for the caller of a refresh key, and the next refresh token. Errors: ErrRefresh if the refresh key has ended
// meanwhile; those of the keys.
func (f *Flow) refreshed(ctx context.Context, caller identity.Caller, family *model.OwnedAccessKey, bearer secret.String) (
	made *model.OwnedAccessKey, granted Grant, part secret.String, err error,
) {
	drawn, err := random(f.env.Random)
	if err != nil {
		return nil, Grant{}, "", err
	}
	part = secret.String(drawn)
	_, ttl := accesskey.LimitSeconds(f.env.Config())
	if most := int64(refreshedFor / time.Second); ttl <= 0 || ttl > most {
		ttl = most
	}
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: accesskey.LoginPrefix},
		Spec: model.OwnedAccessKeySpec{
			User: family.Spec.User, Type: model.AccessKeyTypeLogin, TTLSeconds: ttl, Identity: family.Spec.Identity.DeepCopy(), Description: family.Spec.Description,
		},
	}
	written, err := resource.Create(ctx, f.keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: ClientID, Object: key})
	if err != nil {
		return nil, Grant{}, "", unauthorized(err)
	}
	granted = grantOf(written.Object)
	granted.Refresh, granted.RefreshKey, granted.Scope = accesskey.RefreshToken(bearer, part), family.Name, &family.Spec.OIDCProvider.Scopes
	return written.Object, granted, part, nil
}

// Refresh exchanges a refresh token for a new access key and the next refresh token. A refresh token works once. One that was used before
// ends its refresh key and what came of it. For a minute, the last one can be used again, until the access key of its answer is used: the
// answer did not arrive, its access key ends, and its refresh token counts as used. Notes are for the audit.
//
// Errors: ErrRefresh, also if the refresh key, or the right of its user to have it, has ended; those of the store and of the keys.
// Source: RFC 6749, 6; RFC 9700, 4.14.2; ADR-0045.
func (f *Flow) Refresh(ctx context.Context, text secret.String) (Grant, map[string]string, error) {
	notes := map[string]string{AnnotationOutcome: "refused"}
	bearer, part, ok := accesskey.SplitRefreshToken(text)
	if !ok {
		return Grant{}, notes, ErrRefresh
	}
	caller, err := f.refreshers.Bearer(ctx, bearer)
	if err != nil {
		return Grant{}, notes, unauthorized(err)
	}
	notes[AnnotationUser] = caller.Owner.Name
	read, err := f.all.Store.Get(ctx, caller.Key)
	if err != nil {
		return Grant{}, notes, gone(err, "reading a refresh key")
	}
	family, err := f.all.Decode(read)
	if err != nil {
		return Grant{}, notes, err
	}
	if string(family.UID) != caller.KeyUID || family.Spec.Identity == nil || family.Spec.OIDCProvider == nil {
		return Grant{}, notes, ErrRefresh
	}
	notes[AnnotationConnector] = family.Spec.Identity.Connector
	for {
		granted, err := f.rotate(ctx, caller, family, bearer, part, notes)
		if !errors.Is(err, errOvertaken) {
			return granted, notes, err
		}
	}
}

// errOvertaken says that another request has used the same refresh token meanwhile.
var errOvertaken = errors.New("another process has asked meanwhile")

// rotate makes the next access key and refresh token of a refresh key. Errors: ErrRefresh; errOvertaken, after which nothing is left of this
// request; those of the store and of the keys.
func (f *Flow) rotate(
	ctx context.Context, caller identity.Caller, family *model.OwnedAccessKey, bearer, part secret.String, notes map[string]string,
) (Grant, error) {
	var state rotation
	record, err := f.rotation(ctx, family, &state)
	if err != nil {
		return Grant{}, err
	}
	given := partDigest(part)
	repeated := !same(state.Part, given)
	if repeated {
		wasLost, err := f.lostAnswer(ctx, state, given)
		if err != nil {
			return Grant{}, err
		}
		if !wasLost {
			if now, err := f.records.Get(ctx, record.Name); err == nil && now.Revision != record.Revision {
				return Grant{}, errOvertaken
			}
			return Grant{}, f.reused(ctx, family, record, notes)
		}
	}
	made, granted, next, err := f.refreshed(ctx, caller, family, bearer)
	if err != nil {
		return Grant{}, err
	}
	now := f.env.Now()
	last, earlier := state.Made[:min(1, len(state.Made))], state.Made[min(1, len(state.Made)):]
	if repeated {
		// Nobody has got the last key.
		last, earlier = earlier, last
	} else {
		state.Before, state.Refreshed = given, now
	}
	state.Made = append([]model.AccessKeyReference{referenceOf(made)}, last...)
	state.Part = partDigest(next)
	if record.Object, err = json.Marshal(state); err != nil {
		return Grant{}, fmt.Errorf("encoding a refresh key: %w", err)
	}
	record.Expires = endOf(family, now)
	if _, err := f.records.Update(ctx, record); lost(err) {
		return Grant{}, f.withdraw(ctx, made, errOvertaken)
	} else if err != nil {
		return Grant{}, f.withdraw(ctx, made, fmt.Errorf("storing a refresh key: %w", err))
	}
	for _, key := range earlier {
		_, err := resource.Delete(ctx, f.all, resource.DeleteInput{Caller: Sweeper, Name: key.Name, UID: types.UID(key.UID)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			// It expires within the hour.
			f.env.Log.WarnContext(ctx, "deleting an access key that was refreshed", "key", key.Name, "error", err)
		}
	}
	notes[AnnotationOutcome], notes[AnnotationKey] = "key_made", made.Name
	return granted, nil
}

// lostAnswer reports whether the answer to the last refresh did not arrive: given is the refresh token that it used, and the access key
// that it made was never used.
func (f *Flow) lostAnswer(ctx context.Context, state rotation, given string) (bool, error) {
	if !same(state.Before, given) || !f.env.Now().Before(state.Refreshed.Add(repeatable)) || len(state.Made) == 0 {
		return false, nil
	}
	record, err := f.all.Store.Get(ctx, state.Made[0].Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the access key of a refresh: %w", err)
	}
	return record.Activity.IsZero(), nil
}

// rotation reads the record of a refresh key. Error: ErrRefresh if it has none.
func (f *Flow) rotation(ctx context.Context, family *model.OwnedAccessKey, into *rotation) (store.Record, error) {
	record, err := f.records.Get(ctx, rotationName(string(family.UID)))
	if err != nil {
		return record, gone(err, "reading a refresh key")
	}
	if err := json.Unmarshal(record.Object, into); err != nil {
		return record, fmt.Errorf("reading a refresh key: %w", err)
	}
	return record, nil
}

// lastActivity returns when a key of a sign-in was used, which is at activity itself: a refresh key is used by what it made.
func (f *Flow) lastActivity(ctx context.Context, key *model.OwnedAccessKey, activity time.Time) (time.Time, error) {
	if key.Spec.Type != model.AccessKeyTypeOIDCRefreshToken {
		return activity, nil
	}
	var state rotation
	if _, err := f.rotation(ctx, key, &state); errors.Is(err, ErrRefresh) {
		return activity, nil
	} else if err != nil {
		return time.Time{}, err
	}
	var names []string
	for _, made := range state.Made {
		names = append(names, made.Name)
	}
	for record, err := range store.GetEach(ctx, f.all.Store, names) {
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the access keys of a refresh key: %w", err)
		}
		if record.Activity.After(activity) {
			activity = record.Activity
		}
	}
	return activity, nil
}

// reused ends a refresh key of which two programs have a refresh token, and returns ErrRefresh, or why it has not ended.
func (f *Flow) reused(ctx context.Context, family *model.OwnedAccessKey, record store.Record, notes map[string]string) error {
	notes[AnnotationOutcome], notes[AnnotationKey] = "refresh_token_reused", family.Name
	f.env.Log.WarnContext(ctx, "a refresh token was used twice, and its sign-in has ended", "user", family.Spec.User, "key", family.Name)
	if err := resource.Revoke(ctx, f.all, Sweeper, family); err != nil {
		return err
	}
	if _, err := f.records.Delete(ctx, record.Name, record.Revision); err != nil && !lost(err) {
		// The record expires, and its refresh key is gone.
		f.env.Log.WarnContext(ctx, "removing the record of a refresh key", "key", family.Name, "error", err)
	}
	return ErrRefresh
}

// unauthorized returns ErrRefresh for a refresh key that does not work, and any other error as it is.
func unauthorized(err error) error {
	if apierrors.IsUnauthorized(err) {
		return ErrRefresh
	}
	return err
}

// gone returns ErrRefresh for what is not in the state, and any other error with what was tried.
func gone(err error, doing string) error {
	if errors.Is(err, store.ErrNotFound) {
		return ErrRefresh
	}
	return fmt.Errorf("%s: %w", doing, err)
}
