package resource

import (
	"context"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Strategy is what a kind adds to the verbs, in named groups. Rules are required. A group that is nil is the default that its
// comment names. Source: ADR-0004.
type Strategy[T Object] struct {
	// Rules default, validate, authorize, seal and show objects.
	Rules Rules[T]
	// Visibility decides who sees an object. Nil: the owner of the record.
	Visibility Visibility[T]
	// Permissions decide what callers who see an object may do to it. Nil: everything.
	Permissions Permissions[T]
	// Format is the stored form of an object. Nil: its plain JSON.
	Format StorageFormat[T]
	// Splicer makes answers from stored texts. Nil: each answer is encoded from a decoded object.
	Splicer Splicer[T]
	// Status checks the status that clients write. Nil: what they write is accepted, if there is a status subresource at all.
	Status StatusRules[T]
	// Relations complete a status that depends on other objects. Nil: it depends on none.
	Relations Relations[T]
	// Provenance records in a new credential which credentials made it. Nil: the objects are no credentials.
	Provenance Provenance[T]
	// Lineage is the chain of makers of credentials of this API. Nil: the objects make no others.
	Lineage Lineage[T]
	// OwnerChange records a new owner of a credential. Nil: an update changes no owner of credentials.
	OwnerChange OwnerChange[T]
	// OwnerLookup knows whether the owner of a written object exists. Nil: the verbs look it up.
	OwnerLookup OwnerLookup[T]
	// Generator generates the secret of a new object. Nil: Seal does, or there is none.
	Generator SecretGenerator[T]
	// RepeatedSecret removes a secret that an update may repeat. Nil: updates have none.
	RepeatedSecret RepeatedSecret[T]
	// CredentialOwner names the owner whose credentials are deleted with an object. Nil: none.
	CredentialOwner CredentialOwner[T]
	// Invariant refuses writes that would remove the last of something. Nil: none is refused.
	Invariant Invariant[T]
}

// Rules are what every kind adds to the verbs. Implementations are safe for concurrent use. They change only their first
// object.
type Rules[T Object] interface {
	// Default sets defaults. It runs before Validate. Old is nil at create.
	Default(caller identity.Caller, object, old T)
	// Validate returns all that is wrong with the object itself, except its metadata. Old is nil at create.
	Validate(object, old T) field.ErrorList
	// Grants returns the rights that an object gives: an owner, a group, a role, a scope, an address where credentials are sent. The
	// verbs compare what a write adds with the rights of the caller. Kinds that give nothing embed GrantsNothing. Source: ADR-0047.
	Grants(object T) []auth.Grant
	// Authorize returns further fields that the caller may not write, besides the fields of Grants. It runs on a valid object, before
	// Seal: all secrets in the object come from the caller. Old is nil at create.
	Authorize(caller identity.Caller, object, old T) field.ErrorList
	// Seal removes or encrypts the secrets of the object before it is stored. Stored is the zero record at create.
	Seal(object T, stored store.Record) (Sealed[T], field.ErrorList)
	// Index returns the owner of the object and when it expires. Activity is its last known use, or zero.
	Index(object T, activity time.Time) (owner string, expires time.Time)
	// Observe fills in the status from the stored record.
	Observe(object T, record store.Record)
	// Warn returns the warnings for the writer of the object.
	Warn(object T) []string
}

// Visibility is for kinds whose objects other callers than their owners see. Source: ADR-0017.
type Visibility[T Object] interface {
	// Sees decides whether the caller may know of the object.
	Sees(caller identity.Caller, object T) auth.Decision
	// SeenBy says who sees an object, as the subject of a sentence.
	SeenBy() string
}

// Permissions are for kinds in which callers may not do everything to an object that they see. Source: ADR-0023.
type Permissions[T Object] interface {
	// Permits decides whether a caller who sees the object may do a verb to it or to a subresource: update, patch, delete,
	// or create at a subresource. Sees decides about reading.
	Permits(caller identity.Caller, verb, subresource string, object T) auth.Decision
}

// StorageFormat is for kinds whose records are not the plain JSON of the object. Source: ADR-0015.
type StorageFormat[T Object] interface {
	// EncodeStored returns the text to store for an object as Seal left it.
	EncodeStored(object T) ([]byte, error)
	// DecodeStored returns the object of a stored text, as Seal left it.
	DecodeStored(text []byte) (T, error)
	// RemoveObserved removes from a decoded object everything that Observe fills in: an apply is merged into the rest.
	RemoveObserved(object T)
}

// Splicer is for kinds of which an answer can be made from the stored text: Observe adds fields to the beginning of the
// status, and changes nothing else. Source: ADR-0028.
type Splicer[T Object] interface {
	// Basis returns what Observed needs of an object as it is stored, as a few letters and digits. Fit is false if Observe
	// changes more of the object than its status, such as a secret.
	Basis(object T) (basis string, fit bool)
	// Observed appends the fields that Observe adds to the status, in JSON. Each of them ends with a comma. Basis is what the
	// method Basis returned. The creation time of the record equals the creation time of the object.
	Observed(text []byte, basis string, record store.Record) []byte
}

// StatusRules are for resources with a status subresource.
type StatusRules[T Object] interface {
	// ValidateStatus returns all that is wrong with the status that a client writes.
	ValidateStatus(object, old T) field.ErrorList
	// AuthorizeStatus returns the fields of the status that the caller may not change.
	AuthorizeStatus(caller identity.Caller, object, old T) field.ErrorList
}

// Relations are for kinds whose status depends on other objects. The verbs read the related objects of a whole page together.
// Source: ADR-0021.
type Relations[T Object] interface {
	// RelatedIn returns the store of the related objects. Nil: they are of the same kind.
	RelatedIn() store.Store
	// Related returns the names of the objects in the store that the status of an object depends on.
	Related(object T) []string
	// Relate completes the status of an object that Observe has filled in. Known has the records of those names that exist,
	// and perhaps others.
	Relate(object T, known map[string]store.Record)
}

// Provenance is for kinds whose objects are credentials that callers make with their own. Source: ADR-0021.
type Provenance[T Object] interface {
	// RecordProvenance records in a new object which credentials made it. The result says why that is refused.
	RecordProvenance(ctx context.Context, caller identity.Caller, object T) (field.ErrorList, error)
}

// Lineage is for kinds whose objects are credentials of this API that make each other. Source: ADR-0021.
type Lineage[T Object] interface {
	// Ancestors returns the objects of the kind that made an object, and made each other, as owner references: those that it
	// cannot outlive, and the others.
	Ancestors(object T) (bounding, others []metav1.OwnerReference)
	// Current returns the record of the caller's credential as it is now. The error is for the caller: Unauthorized if the
	// credential works no longer, Conflict if its rights have changed since the caller was authenticated.
	Current(ctx context.Context, caller identity.Caller) (store.Version, error)
}

// OwnerChange is for credentials whose owner an update may change. Source: ADR-0047.
type OwnerChange[T Object] interface {
	// RecordOwner records the owner of a changed object. The result says why that is refused.
	RecordOwner(ctx context.Context, caller identity.Caller, object, old T) (field.ErrorList, error)
}

// OwnerLookup is for kinds that look up the owner of a written object themselves. Source: ADR-0047.
type OwnerLookup[T Object] interface {
	// OwnerMissing reports whether the platform has users or teams, and the owner of an object that was just written is neither.
	OwnerMissing(object T) bool
}

// SecretGenerator is for kinds whose new objects get a secret. Source: ADR-0017.
type SecretGenerator[T Object] interface {
	// GenerateSecret runs before everything else, so that a repeated create with the same random bytes makes the same secret.
	GenerateSecret(object T, random io.Reader) error
}

// RepeatedSecret is for kinds with a secret that an update may repeat. Source: ADR-0022.
type RepeatedSecret[T Object] interface {
	// RemoveSecret removes the secret from an object. A dry run of an update does so before it looks at the object: its answer
	// must not reveal whether a text is the secret.
	RemoveSecret(object T)
}

// CredentialOwner is for kinds whose objects own credentials. The deletion of such an object begins at once and waits until
// its credentials are deleted. Source: ADR-0029.
type CredentialOwner[T Object] interface {
	// CredentialsOf returns the owner, in the form of Rules.Index, whose credentials are deleted with an object.
	CredentialsOf(object T) string
}

// Invariant is for kinds of which something must remain whatever is written. Source: ADR-0029.
type Invariant[T Object] interface {
	// Hold refuses a write after which something would be missing: old is nil for a create, and object for a deletion. The error
	// is for the caller. If it is nil, release is called after the write.
	Hold(ctx context.Context, object, old T) (release func(), err error)
}

// Sealed is the result of Rules.Seal.
type Sealed[T Object] struct {
	// Digest is a second key by which the store finds the object. Empty: none.
	Digest string
	// Drawn reports whether the secret was drawn at random just now, and not from the source of a create that may be repeated.
	Drawn bool
	// Reveal puts the secret into the only response that contains it. Nil: there is no secret to show.
	Reveal func(T)
}
