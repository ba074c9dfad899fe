package accesskey

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// LoginPrefix begins the name of the key of a sign-in. Source: ADR-0031.
const LoginPrefix = "login-"

// DevicePrefix begins the name of the key of a sign-in for a device. Such a key does not count as a recent sign-in: an attacker
// may have talked the person into allowing it. No other key of the type Login has such a name, because clients cannot create keys
// of that type.
const DevicePrefix = LoginPrefix + "device-"

// recentFor is how long a sign-in counts as recent, which means that the person was at the browser.
const recentFor = time.Hour

// isRecentSignIn reports whether a key belongs to a recent sign-in. Source: ADR-0021.
func isRecentSignIn(key *model.OwnedAccessKey, now time.Time) bool {
	return key.Spec.Type == model.AccessKeyTypeLogin && now.Sub(key.CreationTimestamp.Time) < recentFor && !strings.HasPrefix(key.Name, DevicePrefix)
}

// IsSignInType reports whether keys of a type are made by sign-ins: the type of the key of a sign-in, or of its refresh key.
func IsSignInType(kind string) bool {
	return kind == model.AccessKeyTypeLogin || kind == model.AccessKeyTypeOIDCRefreshToken
}

// ForLogins returns the registry in which sign-ins create keys. Its keys have the type Login or OIDCRefreshToken, and the
// identity of the user at their connector. Clients can give neither. The registry is for creates alone. Source: ADR-0031,
// ADR-0045.
func ForLogins(keys *Registry) *Registry {
	return keys.WithStrategy(strategy(loginRules{mustRulesOf(keys)}))
}

// loginRules are the rules of the keys of sign-ins.
type loginRules struct{ *rules }

// Validate accepts the types that clients cannot give.
func (l loginRules) Validate(key, old *model.OwnedAccessKey) field.ErrorList {
	checked := *key
	if IsSignInType(checked.Spec.Type) && old == nil {
		checked.Spec.Type = model.AccessKeyTypeUser
	}
	return l.rules.Validate(&checked, old)
}

// Authorize accepts the identity and the client that clients cannot write.
func (l loginRules) Authorize(caller identity.Caller, key, old *model.OwnedAccessKey) field.ErrorList {
	checked := *key
	checked.Spec.Identity, checked.Spec.IdentityRefresh, checked.Spec.OIDCProvider = nil, nil, nil
	if old != nil {
		checked.Spec.Identity, checked.Spec.IdentityRefresh, checked.Spec.OIDCProvider = old.Spec.Identity, old.Spec.IdentityRefresh, old.Spec.OIDCProvider
	}
	return l.rules.Authorize(caller, &checked, old)
}
