// Package accesskey has the rules of access keys: the form of the bearer text, what a key may hold, which rights one
// key may give another, and when a key ends. It stores a digest of the bearer text. The text cannot be computed from the digest.
// Source: Spec 2.3, 2.5, 3, 5, 8; ADR-0005.
//
// Package resource has the verbs; package auth turns a bearer into a caller.
package accesskey

import (
	"cmp"
	"io"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// Registry has the access keys and their state.
type Registry = resource.Registry[*model.OwnedAccessKey]

// OwnerNamespaceLabel has the namespace of the instance that a key belongs to. Source: ADR-0017.
const OwnerNamespaceLabel = model.GroupName + "/virtualclusterinstance-namespace"

// Definition is the resource ownedaccesskeys. Source: Spec 2.5, 4 rows 5 to 8.
var Definition = &resource.Definition[*model.OwnedAccessKey]{
	Resource:   model.SchemeGroupVersion.WithResource("ownedaccesskeys"),
	Kind:       "OwnedAccessKey",
	Singular:   "ownedaccesskey",
	ShortNames: []string{"oak"},
	ReadAhead:  true,
	NamePrefix: "accesskey-",
	New:        func() *model.OwnedAccessKey { return &model.OwnedAccessKey{} },
	NewList: func(meta metav1.ListMeta, items []*model.OwnedAccessKey) runtime.Object {
		return &model.OwnedAccessKeyList{ListMeta: meta, Items: resource.Values(items)}
	},
	OwnersIn:    OwnerNamespaceLabel,
	Credentials: true,
	Columns:     columns,
	Cells:       cells,
	WriteOnly:   [][]string{{"spec", "key"}},
	Unfit:       field.Invalid(field.NewPath("spec", "key"), field.OmitValueType{}, errUnfit.Error()),
	Fields: func(key *model.OwnedAccessKey) fields.Set {
		return resource.WithLineage(fields.Set{
			"spec.user":    key.Spec.User,
			"spec.team":    key.Spec.Team,
			"spec.subject": key.Spec.Subject,
			"spec.type":    key.Spec.Type,

			"status.createdBy.name":  createdBy(key).Name,
			"status.createdBy.uid":   createdBy(key).UID,
			"status.createdBy.owner": createdBy(key).Owner,
			"status.trustRule.name":  madeBy(key).Name,
		}, key.Status.Lineage)
	},
}

// createdBy returns a reference to the key with which a key was made. The zero value: the maker is not known.
func createdBy(key *model.OwnedAccessKey) model.AccessKeyReference {
	if key.Status.CreatedBy == nil {
		return model.AccessKeyReference{}
	}
	return *key.Status.CreatedBy
}

// madeBy returns a reference to the trust rule that made a key. The zero value: no rule made it.
func madeBy(key *model.OwnedAccessKey) model.TrustRuleReference {
	if key.Status.TrustRule == nil {
		return model.TrustRuleReference{}
	}
	return *key.Status.TrustRule
}

// NewRegistry returns the access keys in a store. The function limits returns the platform's current limits.
func NewRegistry(state store.Store, now func() time.Time, random io.Reader, limits func() Limits) *Registry {
	added := &rules{now: now, random: random, limits: limits, related: newRelatedCache()}
	added.keys = &Registry{Definition: Definition, Strategy: strategy(added), Store: state, Now: now, Random: random}
	return added.keys
}

// OwnerOf returns the owner of a key.
func OwnerOf(spec *model.OwnedAccessKeySpec) identity.Owner {
	return identity.OwnerOf(spec.User, spec.Team, spec.Subject)
}

// keyRules are all rules of access keys.
type keyRules interface {
	resource.Rules[*model.OwnedAccessKey]
	resource.Permissions[*model.OwnedAccessKey]
	resource.Splicer[*model.OwnedAccessKey]
	resource.Relations[*model.OwnedAccessKey]
	resource.Provenance[*model.OwnedAccessKey]
	resource.Lineage[*model.OwnedAccessKey]
	resource.OwnerChange[*model.OwnedAccessKey]
	resource.OwnerLookup[*model.OwnedAccessKey]
	resource.SecretGenerator[*model.OwnedAccessKey]
	resource.RepeatedSecret[*model.OwnedAccessKey]
}

// strategy returns the strategy of access keys with the given rules.
func strategy(own keyRules) resource.Strategy[*model.OwnedAccessKey] {
	return resource.Strategy[*model.OwnedAccessKey]{
		Rules: own, Permissions: own, Splicer: own, Relations: own, Provenance: own, Lineage: own, OwnerChange: own, OwnerLookup: own,
		Generator: own, RepeatedSecret: own,
	}
}

// rules are the rules of the keys that clients write. The rules of keys that the platform makes embed these rules.
type rules struct {
	now    func() time.Time
	random io.Reader
	limits func() Limits
	// keys is the registry that has the rules.
	keys    *Registry
	related *relatedCache
	// people are the users and teams. nil: the platform has neither.
	people *directory.Directory
}

// Default makes the caller the owner of a new key, and User its type, where the request leaves them out. If the caller's key names
// groups, a new key for the same owner that names no groups gets the groups of the caller's key: without them, the new key would
// have all groups of the owner. A replacement that leaves out the owner or the type keeps the stored value. It also keeps the
// fields that logins wrote, unless an admin writes the key. The status is the stored one, whatever clients send. If a key is
// disabled when an admin writes it, status.disabledByAdmin is set until an admin enables the key.
func (r *rules) Default(caller identity.Caller, key, old *model.OwnedAccessKey) {
	owner, kind := caller.Owner, model.AccessKeyTypeUser
	key.Status = model.OwnedAccessKeyStatus{}
	if old != nil {
		key.Status = *old.Status.DeepCopy()
		owner, kind = OwnerOf(&old.Spec), old.Spec.Type
		keepGranted(caller, key, old)
		if !caller.Admin() {
			keepLogin(&key.Spec, &old.Spec)
		}
	}
	if OwnerOf(&key.Spec) == (identity.Owner{}) {
		key.Spec.User, key.Spec.Team, key.Spec.Subject = owner.Fields()
	}
	if old == nil && len(key.Spec.Groups) == 0 && caller.KeyNarrowed && !caller.Admin() && OwnerOf(&key.Spec) == caller.Owner {
		key.Spec.Groups = narrowTo(caller)
	}
	if key.Spec.Type == "" {
		key.Spec.Type = kind
	}
	key.Status.DisabledByAdmin = key.Spec.Disabled && (caller.Admin() || old != nil && old.Status.DisabledByAdmin)
}

// keepLogin fills in the fields that logins wrote, where a replacement leaves them out.
func keepLogin(spec, old *model.OwnedAccessKeySpec) {
	if spec.Identity == nil {
		spec.Identity = old.Identity
	}
	if spec.IdentityRefresh == nil {
		spec.IdentityRefresh = old.IdentityRefresh
	}
	if spec.OIDCProvider == nil {
		spec.OIDCProvider = old.OIDCProvider
	}
	if spec.OIDCLogin == nil {
		spec.OIDCLogin = old.OIDCLogin
	}
	if spec.Parent == "" {
		spec.Parent = old.Parent
	}
}

// Seal removes spec.key from the object. A new object without a key gets one. A stored object keeps its key, which an
// update may repeat but not change.
func (r *rules) Seal(key *model.OwnedAccessKey, stored store.Record) (resource.Sealed[*model.OwnedAccessKey], field.ErrorList) {
	bearer := secret.String(key.Spec.Key)
	key.Spec.Key = ""
	resource.ForgetApplied(key, Definition.WriteOnly)
	if bearer != "" {
		if problems := refuseCopies(key, bearer); len(problems) > 0 {
			return resource.Sealed[*model.OwnedAccessKey]{}, problems
		}
	}
	path, drawn := field.NewPath("spec", "key"), bearer == ""
	if stored.Digest != "" {
		if bearer != "" && Digest(bearer) != stored.Digest {
			return resource.Sealed[*model.OwnedAccessKey]{}, field.ErrorList{
				field.Invalid(path, field.OmitValueType{}, "cannot be changed; leave it out to keep it, or create another key")}
		}
		return resource.Sealed[*model.OwnedAccessKey]{Digest: stored.Digest}, nil
	}
	if drawn {
		made, err := NewBearer(r.random)
		if err != nil {
			return resource.Sealed[*model.OwnedAccessKey]{}, field.ErrorList{field.InternalError(path, err)}
		}
		bearer = made
	} else if err := cmp.Or(CheckBearer(bearer), checkGuessable(bearer)); err != nil {
		return resource.Sealed[*model.OwnedAccessKey]{}, field.ErrorList{
			field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return resource.Sealed[*model.OwnedAccessKey]{
		Digest: Digest(bearer),
		Drawn:  drawn,
		Reveal: func(answer *model.OwnedAccessKey) { answer.Spec.Key = bearer.Reveal() },
	}, nil
}

func (r *rules) RemoveSecret(key *model.OwnedAccessKey) { key.Spec.Key = "" }

// GenerateSecret makes spec.key where the client leaves it out.
func (r *rules) GenerateSecret(key *model.OwnedAccessKey, random io.Reader) error {
	if key.Spec.Key != "" {
		return nil
	}
	made, err := NewBearer(random)
	key.Spec.Key = made.Reveal()
	return err
}

// Index returns the owner of the key, and the end of its own ttl. The platform's cap is left out: it may change after the
// key was written, and due keys are found by their creation time.
func (r *rules) Index(key *model.OwnedAccessKey, activity time.Time) (owner string, expires time.Time) {
	// The limit of login keys is included: login keys are few, and a sweep applies the current limit to each due key.
	return OwnerOf(&key.Spec).String(), Expiry(key, activity, Limits{Login: r.limits().Login})
}

// Observe fills in the last activity and the end of the key without its lineage, and removes the secrets of logins. The stored
// status says who made the key.
func (r *rules) Observe(key *model.OwnedAccessKey, record store.Record) {
	key.Status = model.OwnedAccessKeyStatus{
		CreatedBy: key.Status.CreatedBy, Lineage: key.Status.Lineage, Owner: key.Status.Owner, Granted: key.Status.Granted,
		TrustRule: key.Status.TrustRule, DisabledByAdmin: key.Status.DisabledByAdmin,
	}
	if record.Name == "" {
		return
	}
	if key.Spec.Identity != nil {
		key.Spec.Identity.ConnectorData = ""
	}
	if login := key.Spec.OIDCLogin; login != nil {
		login.IDToken, login.AccessToken, login.RefreshToken = "", "", ""
	}
	if !record.Activity.IsZero() {
		key.Status.LastActivity = &metav1.Time{Time: record.Activity.UTC()}
	}
	if end := Expiry(key, record.Activity, r.limits()); !end.IsZero() {
		key.Status.ExpirationTimestamp = &metav1.Time{Time: end.UTC()}
	}
}

// The letters of Basis. Each stands for a property that decides, besides the ttl, when a key ends.
const (
	basisAfterLastActivity = 'a'
	basisLogin             = 'l'
)

// Basis implements resource.Splicer. The basis is the ttl of the key in seconds, and letters for the other properties that decide
// when the key ends.
func (r *rules) Basis(key *model.OwnedAccessKey) (basis string, fit bool) {
	if key.Spec.Key != "" || key.Spec.Identity != nil && key.Spec.Identity.ConnectorData != "" {
		return "", false
	}
	if login := key.Spec.OIDCLogin; login != nil && (login.IDToken != "" || login.AccessToken != "" || login.RefreshToken != "") {
		return "", false
	}
	if key.Spec.TTLSeconds > 0 {
		basis = strconv.FormatInt(key.Spec.TTLSeconds, 10)
	}
	if key.Spec.TTLAfterLastActivity {
		basis += string(basisAfterLastActivity)
	}
	if IsSignInType(key.Spec.Type) {
		basis += string(basisLogin)
	}
	return basis, true
}

func (r *rules) Observed(text []byte, basis string, record store.Record) []byte {
	var key model.OwnedAccessKey
	key.CreationTimestamp.Time = record.Created
	for _, letter := range []byte(basis) {
		switch letter {
		case basisAfterLastActivity:
			key.Spec.TTLAfterLastActivity = true
		case basisLogin:
			key.Spec.Type = model.AccessKeyTypeLogin
		default:
			key.Spec.TTLSeconds = 10*key.Spec.TTLSeconds + int64(letter-'0')
		}
	}
	appendTime := func(name string, at time.Time) {
		if !at.IsZero() {
			text = append(append(append(text, '"'), name...), `":"`...)
			text = append(at.UTC().AppendFormat(text, time.RFC3339), `",`...)
		}
	}
	appendTime("lastActivity", record.Activity)
	appendTime("expirationTimestamp", Expiry(&key, record.Activity, r.limits()))
	return text
}

// Warn returns a warning if the platform's cap, or a key to which the key is bound, ends the key before its own ttl, and one if
// the key ends with a sign-in. Source: ADR-0005, ADR-0021.
func (r *rules) Warn(key *model.OwnedAccessKey) []string {
	var warnings []string
	limit := r.limits().ForType(key.Spec.Type)
	if limit > 0 && model.Seconds(key.Spec.TTLSeconds) > limit {
		warnings = append(warnings, "spec.ttl: "+model.Seconds(key.Spec.TTLSeconds).String()+
			" is above the platform's limit; the key expires "+limit.String()+" after its creation")
	}
	if makers := key.Status.Lineage; len(makers) > 0 && makers[0].Bounds && strings.HasPrefix(makers[0].Name, LoginPrefix) {
		warnings = append(warnings, "the key ends with the sign-in that made it; a key stays if it is made in a browser's sign-in, within an hour after it")
	}
	if end := key.Status.ExpirationTimestamp; end != nil && len(Bounding(key.Status.Lineage)) > 0 {
		var activity time.Time
		if last := key.Status.LastActivity; last != nil {
			activity = last.Time
		}
		if alone := Expiry(key, activity, r.limits()); alone.IsZero() || end.Time.Before(alone.Truncate(time.Second)) {
			warnings = append(warnings, "the key expires at "+end.UTC().Format(time.RFC3339)+", with a key that it was made with")
		}
	}
	return warnings
}
