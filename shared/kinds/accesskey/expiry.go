package accesskey

import (
	"errors"
	"time"

	"management.platform.sh/shared/model"
)

const (
	// activityInterval is the shortest time between two records of a key's activity. Source: ADR-0005.
	activityInterval = time.Minute
	// slidingParts is how often activity is recorded within a ttl that counts from the last activity, if that is more often than
	// once in activityInterval.
	slidingParts = 10
)

// OwnExpiry returns the time at which a key expires by its own ttl. The zero time means never. Source: Spec 2.5 (ttl,
// ttlAfterLastActivity).
func OwnExpiry(key *model.OwnedAccessKey, activity time.Time) time.Time {
	if key.Spec.TTLSeconds <= 0 {
		return time.Time{}
	}
	start := key.CreationTimestamp.Time
	if key.Spec.TTLAfterLastActivity && activity.After(start) {
		start = activity
	}
	return start.Add(model.Seconds(key.Spec.TTLSeconds))
}

// Limits are the platform's limits on the life of keys, counted from their creation. 0 is no limit. Source: Spec 2.7, 5.2.
type Limits struct {
	// Max is the limit for every key.
	Max time.Duration
	// Login is the limit for keys that logins make, in addition to Max.
	Login time.Duration
	// MaxSteps and LoginSteps are the changes that lowered Max and Login. Empty: they were always in force. Source: ADR-0024.
	MaxSteps, LoginSteps Steps
}

// end returns the time at which the limits end a key. The zero time means never.
func (l Limits) end(key *model.OwnedAccessKey) time.Time {
	end := l.MaxSteps.endOf(key, l.Max)
	if IsSignInType(key.Spec.Type) {
		if login := l.LoginSteps.endOf(key, l.Login); end.IsZero() || !login.IsZero() && login.Before(end) {
			return login
		}
	}
	return end
}

// ForType returns the limit for keys of a type. 0 is no limit. For the types of sign-ins it returns the lower one of Max and
// Login.
func (l Limits) ForType(kind string) time.Duration {
	if IsSignInType(kind) && l.Login > 0 && (l.Max == 0 || l.Login < l.Max) {
		return l.Login
	}
	return l.Max
}

// Expiry returns the time at which a key stops working: its own end, or the end of the platform's limit after its creation if
// that is earlier. A limit that was lowered since the creation has a grace period. The zero time means never. Source: Spec 5.2;
// ADR-0005, ADR-0024.
func Expiry(key *model.OwnedAccessKey, activity time.Time, limits Limits) time.Time {
	end := OwnExpiry(key, activity)
	if capped := limits.end(key); end.IsZero() || !capped.IsZero() && capped.Before(end) {
		return capped
	}
	return end
}

// Expired reports whether the time that Expiry returned has come. At that very instant, a key has expired.
func Expired(expiry, now time.Time) bool { return !expiry.IsZero() && !now.Before(expiry) }

// IdentityFor is how long the key of a sign-in works after its provider last confirmed who the person is. The key works again as
// soon as the provider confirms it again. Source: ADR-0035.
const IdentityFor = 24 * time.Hour

// The reasons for which a stored key is refused.
var (
	// ErrExpired means that the lifetime of the key or the platform's cap has ended it, or that the provider of its sign-in has
	// not answered for IdentityFor.
	ErrExpired = errors.New("access key expired")
	// ErrDeleted means that the key was deleted, and its grace period has ended.
	ErrDeleted = errors.New("access key deleted")
	// ErrDisabled means that spec.disabled of the key is set.
	ErrDisabled = errors.New("access key disabled")
)

// Usable returns the time until which a key works, or why it is refused: ErrExpired, ErrDeleted or ErrDisabled. The zero time
// means that the key does not expire. Credentials that are issued to the key end with it. Source: Spec 2.5, 3, 5.2; ADR-0005.
func Usable(key *model.OwnedAccessKey, activity time.Time, limits Limits, now time.Time) (until time.Time, err error) {
	until = Expiry(key, activity, limits)
	if refreshed := key.Spec.IdentityRefresh; refreshed != nil && Expired(refreshed.Add(IdentityFor), now) {
		return until, ErrExpired
	}
	switch deleted := key.DeletionTimestamp; {
	case Expired(until, now):
		return until, ErrExpired
	case deleted == nil:
	case !now.Before(deleted.Time):
		return until, ErrDeleted
	case until.IsZero() || deleted.Time.Before(until):
		until = deleted.Time
	}
	if key.Spec.Disabled {
		return until, ErrDisabled
	}
	return until, nil
}

// ActivityDue reports whether a use at now is recorded if the last recorded use was at activity: once a minute, or ten times
// within a short ttl that counts from the last activity, so that a key in use does not expire early.
// Source: ADR-0005.
func ActivityDue(key *model.OwnedAccessKey, activity, now time.Time) bool {
	interval := activityInterval
	if key.Spec.TTLAfterLastActivity && key.Spec.TTLSeconds > 0 {
		interval = min(interval, model.Seconds(key.Spec.TTLSeconds)/slidingParts)
	}
	return activity.IsZero() || now.Sub(activity) >= interval
}

// Ends reports whether a key can end while no client changes it: by its ttl, by a limit, or with a key that made it or an object
// that owns it.
func Ends(key *model.OwnedAccessKey, limits Limits) bool {
	return !Expiry(key, time.Time{}, limits).IsZero() || len(Bounding(key.Status.Lineage)) > 0 || len(key.OwnerReferences) > 0
}
