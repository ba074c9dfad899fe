package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/state/store"
)

const (
	// refreshedKeyLifetime is how long an access key lives that a refresh key made.
	refreshedKeyLifetime = time.Hour
	// refreshKeyIdleLifetime is when a refresh key ends after its last use, where sign-ins have no end.
	refreshKeyIdleLifetime = 90 * 24 * time.Hour
	// repeatWindow is how long a refresh can be repeated whose answer did not arrive.
	repeatWindow = time.Minute
)

// makeRefreshKey makes the key of a sign-in a refresh key. Source: Spec 2.5 (oidcProvider); ADR-0045.
func (w Request) makeRefreshKey(login *logins.Login, key *model.OwnedAccessKey) {
	key.Spec.Type = model.AccessKeyTypeOIDCRefreshToken
	key.Spec.OIDCProvider = &model.AccessKeyOIDCProvider{
		ClientID: oauth.ClientID, Nonce: w.Nonce, RedirectURI: login.AuthRequest.RedirectURI, Scopes: oauth.OfflineAccess,
	}
	if key.Spec.TTLSeconds == 0 {
		key.Spec.TTLSeconds, key.Spec.TTLAfterLastActivity = int64(refreshKeyIdleLifetime/time.Second), true
	}
}

// rotation says which refresh token of a refresh key is current, as it is stored.
type rotation struct {
	// PartDigest is the digest of the part that changes, and Before what it was before Refreshed.
	PartDigest     string    `json:"part"`
	PreviousDigest string    `json:"before,omitempty"`
	RefreshedAt    time.Time `json:"refreshed,omitzero"`
	// Keys are the access keys that it made, the last one first: that one and the one before it.
	Keys []model.AccessKeyReference `json:"made"`
}

// keyReference names a key.
func keyReference(key *model.OwnedAccessKey) model.AccessKeyReference {
	return model.AccessKeyReference{Name: key.Name, UID: string(key.UID)}
}

// rotationName is the name of the record of a refresh key.
func rotationName(uid string) string { return digest.Sum("refresh", uid) }

// partDigest is what is stored of the part of a refresh token that changes.
func partDigest(part secret.String) string { return digest.Sum("refresh part", part.Reveal()) }

// ErrInvalidRefreshToken says that a refresh token is not valid, or not any more.
var ErrInvalidRefreshToken = errors.New("the refresh token is not valid any more; sign in again")

// issueFirstRefreshToken returns the first access key of a refresh key, with its refresh token. Errors: ErrInvalidRefreshToken if the refresh key has ended
// meanwhile; the errors of the store and of the keys.
func (e *Endpoint) issueFirstRefreshToken(ctx context.Context, refreshKey *model.OwnedAccessKey) (Response, error) {
	bearer := secret.String(refreshKey.Spec.Key)
	caller, err := e.refreshAuthenticator.Bearer(ctx, bearer)
	if err != nil {
		return Response{}, translateUnauthorized(err)
	}
	key, response, part, err := e.issueRefreshedKey(ctx, caller, refreshKey, bearer)
	if err != nil {
		return Response{}, err
	}
	object, err := json.Marshal(rotation{PartDigest: partDigest(part), Keys: []model.AccessKeyReference{keyReference(key)}})
	if err != nil {
		return Response{}, fmt.Errorf("encoding a refresh key: %w", err)
	}
	now := e.env.Now()
	_, err = e.logins.Records.Create(ctx, store.Record{
		Name: rotationName(string(refreshKey.UID)), Owner: caller.Owner.String(), Created: now, Expires: rotationExpiry(refreshKey, now), Object: object,
	})
	if err != nil {
		return Response{}, fmt.Errorf("storing a refresh key: %w", err)
	}
	return response, nil
}

// rotationExpiry is when the record of a refresh key can be removed: after the key itself.
func rotationExpiry(refreshKey *model.OwnedAccessKey, now time.Time) time.Time {
	if end := refreshKey.Status.ExpirationTimestamp; end != nil && !refreshKey.Spec.TTLAfterLastActivity {
		return end.Add(refreshedKeyLifetime)
	}
	return now.Add(refreshKeyIdleLifetime + refreshedKeyLifetime)
}

// issueRefreshedKey makes an access key for the caller of a refresh key, and the next refresh token. Errors: ErrInvalidRefreshToken if the refresh key has ended
// meanwhile; the errors of the keys.
func (e *Endpoint) issueRefreshedKey(ctx context.Context, caller identity.Caller, refreshKey *model.OwnedAccessKey, bearer secret.String) (
	refreshedKey *model.OwnedAccessKey, response Response, part secret.String, err error,
) {
	random, err := oauth.RandomText(e.env.Random)
	if err != nil {
		return nil, Response{}, "", err
	}
	part = secret.String(random)
	_, ttl := accesskey.LimitSeconds(e.env.Config())
	if maxSeconds := int64(refreshedKeyLifetime / time.Second); ttl <= 0 || ttl > maxSeconds {
		ttl = maxSeconds
	}
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: accesskey.LoginPrefix},
		Spec: model.OwnedAccessKeySpec{
			User: refreshKey.Spec.User, Type: model.AccessKeyTypeLogin, TTLSeconds: ttl, Identity: refreshKey.Spec.Identity.DeepCopy(), Description: refreshKey.Spec.Description,
		},
	}
	written, err := resource.Create(ctx, e.loginKeys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: oauth.ClientID, Object: key})
	if err != nil {
		return nil, Response{}, "", translateUnauthorized(err)
	}
	response = newResponse(written.Object)
	response.RefreshToken, response.RefreshKeyName, response.Scope = accesskey.RefreshToken(bearer, part), refreshKey.Name, &refreshKey.Spec.OIDCProvider.Scopes
	return written.Object, response, part, nil
}

// Refresh exchanges a refresh token for a new access key and the next refresh token. A refresh token works once. Reuse ends its refresh key
// and everything issued from it. For a minute, the previous refresh token may be repeated as long as the new access key is unused: then the
// answer was lost, its access key ends, and its refresh token counts as used.
//
// Errors: ErrInvalidRefreshToken, also if the refresh key, or the right of its user to have it, has ended; the errors of the
// store and of the keys. Source: RFC 6749, 6; RFC 9700, 4.14.2; ADR-0045.
func (e *Endpoint) Refresh(ctx context.Context, text secret.String) (Response, error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetOutcome("refused")
	bearer, part, ok := accesskey.SplitRefreshToken(text)
	if !ok {
		return Response{}, ErrInvalidRefreshToken
	}
	caller, err := e.refreshAuthenticator.Bearer(ctx, bearer)
	if err != nil {
		return Response{}, translateUnauthorized(err)
	}
	recorder.SetUser(caller.Owner.Name)
	record, err := e.keys.Store.Get(ctx, caller.Key)
	if err != nil {
		return Response{}, translateNotFound(err, "reading a refresh key")
	}
	refreshKey, err := e.keys.Decode(record)
	if err != nil {
		return Response{}, err
	}
	if string(refreshKey.UID) != caller.KeyUID || refreshKey.Spec.Identity == nil || refreshKey.Spec.OIDCProvider == nil {
		return Response{}, ErrInvalidRefreshToken
	}
	recorder.SetConnector(refreshKey.Spec.Identity.Connector)
	for {
		response, err := e.rotate(ctx, caller, refreshKey, bearer, part)
		if !errors.Is(err, errConcurrentRefresh) {
			return response, err
		}
	}
}

// errConcurrentRefresh says that another request has used the same refresh token meanwhile.
var errConcurrentRefresh = errors.New("another process has asked meanwhile")

// rotate makes the next access key and refresh token of a refresh key. Errors: ErrInvalidRefreshToken; errConcurrentRefresh,
// after which this request leaves nothing behind; the errors of the store and of the keys.
func (e *Endpoint) rotate(
	ctx context.Context, caller identity.Caller, refreshKey *model.OwnedAccessKey, bearer, part secret.String,
) (Response, error) {
	recorder := annotations.RecorderOf(ctx)
	var stored rotation
	record, err := e.readRotation(ctx, refreshKey, &stored)
	if err != nil {
		return Response{}, err
	}
	givenDigest := partDigest(part)
	repeated := !oauth.EqualSecrets(stored.PartDigest, givenDigest)
	if repeated {
		wasLost, err := e.isLostAnswer(ctx, stored, givenDigest)
		if err != nil {
			return Response{}, err
		}
		if !wasLost {
			if now, err := e.logins.Records.Get(ctx, record.Name); err == nil && now.Revision != record.Revision {
				return Response{}, errConcurrentRefresh
			}
			return Response{}, e.endReusedRefreshKey(ctx, refreshKey, record)
		}
	}
	key, response, nextPart, err := e.issueRefreshedKey(ctx, caller, refreshKey, bearer)
	if err != nil {
		return Response{}, err
	}
	now := e.env.Now()
	current, obsolete := stored.Keys[:min(1, len(stored.Keys))], stored.Keys[min(1, len(stored.Keys)):]
	if repeated {
		// The last key was not delivered.
		current, obsolete = obsolete, current
	} else {
		stored.PreviousDigest, stored.RefreshedAt = givenDigest, now
	}
	stored.Keys = append([]model.AccessKeyReference{keyReference(key)}, current...)
	stored.PartDigest = partDigest(nextPart)
	if record.Object, err = json.Marshal(stored); err != nil {
		return Response{}, fmt.Errorf("encoding a refresh key: %w", err)
	}
	record.Expires = rotationExpiry(refreshKey, now)
	if _, err := e.logins.Records.Update(ctx, record); logins.IsConflict(err) {
		return Response{}, e.withdrawKey(ctx, key, errConcurrentRefresh)
	} else if err != nil {
		return Response{}, e.withdrawKey(ctx, key, fmt.Errorf("storing a refresh key: %w", err))
	}
	for _, obsoleteKey := range obsolete {
		_, err := resource.Delete(ctx, e.keys, resource.DeleteInput{Caller: Sweeper, Name: obsoleteKey.Name, UID: types.UID(obsoleteKey.UID)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			// It expires within the hour.
			e.env.Log.WarnContext(ctx, "deleting an access key that was refreshed", "key", obsoleteKey.Name, "error", err)
		}
	}
	recorder.SetOutcome("key_made")
	recorder.SetKey(key.Name)
	return response, nil
}

// isLostAnswer reports whether the answer to the last refresh was lost: the request repeats the refresh token of the last refresh, and the
// access key of its answer was never used.
func (e *Endpoint) isLostAnswer(ctx context.Context, stored rotation, givenDigest string) (bool, error) {
	if !oauth.EqualSecrets(stored.PreviousDigest, givenDigest) || !e.env.Now().Before(stored.RefreshedAt.Add(repeatWindow)) || len(stored.Keys) == 0 {
		return false, nil
	}
	record, err := e.keys.Store.Get(ctx, stored.Keys[0].Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the access key of a refresh: %w", err)
	}
	return record.Activity.IsZero(), nil
}

// readRotation reads the record of a refresh key. Error: ErrInvalidRefreshToken if it has none.
func (e *Endpoint) readRotation(ctx context.Context, refreshKey *model.OwnedAccessKey, into *rotation) (store.Record, error) {
	record, err := e.logins.Records.Get(ctx, rotationName(string(refreshKey.UID)))
	if err != nil {
		return record, translateNotFound(err, "reading a refresh key")
	}
	if err := json.Unmarshal(record.Object, into); err != nil {
		return record, fmt.Errorf("reading a refresh key: %w", err)
	}
	return record, nil
}

// LastActivity returns the time of the last use of a login key, given its own activity. The use of an access key counts as use of the
// refresh key that issued it.
func (e *Endpoint) LastActivity(ctx context.Context, key *model.OwnedAccessKey, activity time.Time) (time.Time, error) {
	if key.Spec.Type != model.AccessKeyTypeOIDCRefreshToken {
		return activity, nil
	}
	var stored rotation
	if _, err := e.readRotation(ctx, key, &stored); errors.Is(err, ErrInvalidRefreshToken) {
		return activity, nil
	} else if err != nil {
		return time.Time{}, err
	}
	var names []string
	for _, reference := range stored.Keys {
		names = append(names, reference.Name)
	}
	for record, err := range store.GetEach(ctx, e.keys.Store, names) {
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the access keys of a refresh key: %w", err)
		}
		if record.Activity.After(activity) {
			activity = record.Activity
		}
	}
	return activity, nil
}

// endReusedRefreshKey ends a refresh key whose refresh token was used twice, and returns ErrInvalidRefreshToken, or why the key has not
// ended.
func (e *Endpoint) endReusedRefreshKey(ctx context.Context, refreshKey *model.OwnedAccessKey, record store.Record) error {
	recorder := annotations.RecorderOf(ctx)
	recorder.SetOutcome("refresh_token_reused")
	recorder.SetKey(refreshKey.Name)
	e.env.Log.WarnContext(ctx, "a refresh token was used twice, and its sign-in has ended", "user", refreshKey.Spec.User, "key", refreshKey.Name)
	if err := resource.Revoke(ctx, e.keys, Sweeper, refreshKey); err != nil {
		return err
	}
	if _, err := e.logins.Records.Delete(ctx, record.Name, record.Revision); err != nil && !logins.IsConflict(err) {
		// The record expires, and its refresh key is gone.
		e.env.Log.WarnContext(ctx, "removing the record of a refresh key", "key", refreshKey.Name, "error", err)
	}
	return ErrInvalidRefreshToken
}

// translateUnauthorized returns ErrInvalidRefreshToken for a refresh key that does not work, and every other error unchanged.
func translateUnauthorized(err error) error {
	if apierrors.IsUnauthorized(err) {
		return ErrInvalidRefreshToken
	}
	return err
}

// translateNotFound returns ErrInvalidRefreshToken for a missing record, and wraps every other error with the action.
func translateNotFound(err error, action string) error {
	if errors.Is(err, store.ErrNotFound) {
		return ErrInvalidRefreshToken
	}
	return fmt.Errorf("%s: %w", action, err)
}
