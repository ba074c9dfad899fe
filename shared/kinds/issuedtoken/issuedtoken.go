// Package issuedtoken is the register of the direct cluster endpoint tokens that were issued. It has a record of each token
// until the token expires, so that tokens can be listed and revoked. It also has the list of tokens that were revoked before they
// expired, for verifiers that do not ask the platform about each token. A record never holds the token. A token is accepted while
// its record exists and the access key that asked for it works. Source: Spec 2.4; ADR-0011.
//
// The package issues nothing; package issuer does.
package issuedtoken

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Registry has the records and their state.
type Registry = resource.Registry[*model.DirectClusterEndpointToken]

// RevokedResource is the resource of the list of revoked tokens in the state.
const RevokedResource = "revokedtokens"

// Definition is the resource directclusterendpointtokens. Source: Spec 2.4; ADR-0011.
var Definition = &resource.Definition[*model.DirectClusterEndpointToken]{
	Resource:   model.SchemeGroupVersion.WithResource("directclusterendpointtokens"),
	Kind:       "DirectClusterEndpointToken",
	Singular:   "directclusterendpointtoken",
	ShortNames: []string{"dcet"},
	ReadAhead:  true,
	NamePrefix: "token-",
	New:        func() *model.DirectClusterEndpointToken { return &model.DirectClusterEndpointToken{} },
	NewList: func(meta metav1.ListMeta, items []*model.DirectClusterEndpointToken) runtime.Object {
		return &model.DirectClusterEndpointTokenList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns: columns,
	Cells:   cells,
	Fields: func(token *model.DirectClusterEndpointToken) fields.Set {
		return resource.WithLineage(fields.Set{
			"status.user":      token.Status.User,
			"status.team":      token.Status.Team,
			"status.subject":   token.Status.Subject,
			"status.accessKey": token.Status.AccessKey,

			"status.createdBy.name": token.Status.AccessKey,
			"status.createdBy.uid":  token.Status.AccessKeyUID,
		}, token.Status.Lineage)
	},
}

// maxParents is the number of tokens for which a process remembers the access key that asked for them.
const maxParents = 4096

// Register has the records of tokens, the access keys that asked for them, and the list of revoked tokens.
type Register struct {
	*Registry
	keys    *accesskey.Registry
	limits  func() accesskey.Limits
	revoked store.Store
	// sweeping is the store of the records for Sweep, which revokes without a quota.
	sweeping store.Store
	// parents has, by the id of a token, the names of the access keys to which the token is bound: the key that asked for it, and
	// the keys to which that key is bound.
	parents *lru.Cache[string, []string]
}

// NewRegister returns the records in a store. Revoked is the store of the list of revoked tokens, keys are the access
// keys, and limits returns the platform's current limits on the life of access keys.
func NewRegister(state, revoked store.Store, keys *accesskey.Registry, now func() time.Time, random io.Reader, limits func() accesskey.Limits) *Register {
	// lru.New fails only for a size below one.
	parents, _ := lru.New[string, []string](maxParents)
	register := &Register{keys: keys, limits: limits, revoked: revoked, parents: parents}
	register.sweeping = &revoking{Store: state, revoked: revoked, now: now, quota: func() (none store.Quota) { return none }}
	own := storedRules{register: register}
	register.Registry = &Registry{
		Definition: Definition,
		Strategy:   resource.Strategy[*model.DirectClusterEndpointToken]{Rules: own, Provenance: own, Relations: own},
		Store:      &revoking{Store: state, revoked: revoked, now: now, quota: func() store.Quota { return register.Quota }},
		Now:        now,
		Random:     random,
	}
	return register
}

// Join adds the records to a graph and returns the register there; see resource.Join.
func (r *Register) Join(graph *gc.Graph) *Register {
	joined := *r
	joined.Registry = resource.Join(graph, r.Registry)
	return &joined
}

// storedRules are Rules for stored records. A token ends with the access keys to which it is bound.
type storedRules struct {
	Rules
	register *Register
}

// RecordProvenance implements resource.Provenance, for decisions about new tokens.
func (s storedRules) RecordProvenance(ctx context.Context, caller identity.Caller, token *model.DirectClusterEndpointToken) (field.ErrorList, error) {
	return s.register.RecordProvenance(ctx, caller, token)
}

func (s storedRules) RelatedIn() store.Store { return s.register.keys.Store }

func (s storedRules) Related(token *model.DirectClusterEndpointToken) []string {
	return keyNames(token)
}

// Relate implements resource.Relations. It sets the end to the time from which verifiers that ask the platform refuse the token.
// The claims of the token may name a later end.
func (s storedRules) Relate(token *model.DirectClusterEndpointToken, known map[string]store.Record) {
	r := s.register
	token.Status.ExpirationTimestamp = accesskey.EndWithin(r.keys, lineageOf(token), token.Status.ExpirationTimestamp, known, r.limits(), r.Now())
}

// Revoked reports whether the token with an id, the claim jti, is revoked or was never issued: the token has no record, its
// record was deleted, or the access key that asked for it, or a key to which that key is bound, is deleted, expired or disabled.
// Revoked does not check signature and claims. It takes one round trip, and two for a token that is new to this process. Present
// is what the keys have now: each of their scopes narrows the token, and the token gives only groups that are in present.Groups.
//
// It returns the store's errors. With an error, revoked is true: a token that could not be checked is not accepted.
// Source: ADR-0011, ADR-0021.
func (r *Register) Revoked(ctx context.Context, id string) (revoked bool, present accesskey.Present, err error) {
	// If the names of the keys are known, the keys are read at the same time as the record.
	names, known := r.parents.Get(id)
	type answer struct {
		records map[string]store.Record
		err     error
	}
	ahead := make(chan answer, 1)
	if known {
		go func() {
			records, err := r.readKeys(ctx, names)
			ahead <- answer{records, err}
		}()
	}
	record, err := r.Store.GetByDigest(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return true, present, nil
	}
	if err != nil {
		return true, present, fmt.Errorf("looking up a token: %w", err)
	}
	token, err := r.Parse(record)
	if err != nil {
		return true, present, err
	}
	now := r.Now()
	if over(token, now) || token.DeletionTimestamp != nil && !now.Before(token.DeletionTimestamp.Time) {
		return true, present, nil
	}
	wanted := keyNames(token)
	var keys answer
	if known && slices.Equal(names, wanted) {
		keys = <-ahead
	} else {
		r.parents.Add(id, wanted)
		keys.records, keys.err = r.readKeys(ctx, wanted)
	}
	if keys.err != nil {
		return true, present, keys.err
	}
	usable, present, err := r.usable(ctx, lineageOf(token), keys.records, now)
	return !usable, present, err
}

// lineageOf returns the lineage of a token: the access key that asked for the token, and the lineage of that key.
func lineageOf(token *model.DirectClusterEndpointToken) []model.AccessKeyAncestor {
	lineage := []model.AccessKeyAncestor{{Name: token.Status.AccessKey, UID: token.Status.AccessKeyUID, Bounds: true}}
	if len(token.Status.Lineage) > 1 {
		lineage = append(lineage, token.Status.Lineage[1:]...)
	}
	return lineage
}

// keyNames returns the names of the access keys to which a token is bound.
func keyNames(token *model.DirectClusterEndpointToken) []string {
	return accesskey.Bounding(lineageOf(token))
}

// readKeys returns the records of access keys that exist, by name.
func (r *Register) readKeys(ctx context.Context, names []string) (map[string]store.Record, error) {
	records := make(map[string]store.Record, len(names))
	for record, err := range store.GetEach(ctx, r.keys.Store, names) {
		if err != nil {
			return nil, fmt.Errorf("looking up the access keys of a token: %w", err)
		}
		records[record.Name] = record
	}
	return records, nil
}

// usable reports whether the access keys to which a token with a lineage is bound work, and returns what these keys have.
func (r *Register) usable(
	ctx context.Context, lineage []model.AccessKeyAncestor, records map[string]store.Record, now time.Time,
) (bool, accesskey.Present, error) {
	// Records of versions that did not note the lineage of a token name only its access key.
	if record, exists := records[lineage[0].Name]; exists && len(lineage) == 1 {
		key, err := r.keys.Parse(record)
		if err != nil {
			return false, accesskey.Present{}, err
		}
		if names := accesskey.Bounding(key.Status.Lineage); len(names) > 0 {
			lineage = append(lineage, key.Status.Lineage...)
			more, err := r.readKeys(ctx, names)
			if err != nil {
				return false, accesskey.Present{}, err
			}
			maps.Copy(records, more)
		}
	}
	present, err := accesskey.CheckLineage(ctx, r.keys, lineage, records, r.limits(), now)
	if errors.Is(err, accesskey.ErrBound) {
		return false, accesskey.Present{}, nil
	}
	return err == nil, present, err
}

// RecordProvenance notes in a new token which keys made it; see accesskey.Lineage. A token is bound to its access key in any
// case.
func (r *Register) RecordProvenance(ctx context.Context, caller identity.Caller, token *model.DirectClusterEndpointToken) (refused field.ErrorList, err error) {
	token.Status.CreatedBy, token.Status.Lineage, refused, err = accesskey.Lineage(ctx, r.keys, caller)
	if len(token.Status.Lineage) > 0 {
		token.Status.Lineage[0].Bounds = true
	}
	return refused, err
}

// over reports whether a token has expired.
func over(token *model.DirectClusterEndpointToken, now time.Time) bool {
	return token.Status.ExpirationTimestamp == nil || !now.Before(token.Status.ExpirationTimestamp.Time)
}

// OwnerOf returns the owner of a token.
func OwnerOf(status *model.DirectClusterEndpointTokenStatus) identity.Owner {
	return identity.OwnerOf(status.User, status.Team, status.Subject)
}

// Rules implements resource.Rules for stored records. Package issuer has the rules of new tokens.
type Rules struct {
	resource.GrantsNothing[*model.DirectClusterEndpointToken]
}

// Default leaves records as they are.
func (Rules) Default(identity.Caller, *model.DirectClusterEndpointToken, *model.DirectClusterEndpointToken) {
}

// Validate finds nothing: clients do not change records.
func (Rules) Validate(*model.DirectClusterEndpointToken, *model.DirectClusterEndpointToken) field.ErrorList {
	return nil
}

// Authorize finds nothing: clients do not change records.
func (Rules) Authorize(identity.Caller, *model.DirectClusterEndpointToken, *model.DirectClusterEndpointToken) field.ErrorList {
	return nil
}

// Seal keeps the digest, which is the id by which a record is found.
func (Rules) Seal(_ *model.DirectClusterEndpointToken, stored store.Record) (resource.Sealed[*model.DirectClusterEndpointToken], field.ErrorList) {
	return resource.Sealed[*model.DirectClusterEndpointToken]{Digest: stored.Digest}, nil
}

// Index returns the owner of the token, and when it expires.
func (Rules) Index(token *model.DirectClusterEndpointToken, _ time.Time) (owner string, expires time.Time) {
	if end := token.Status.ExpirationTimestamp; end != nil {
		expires = end.Time
	}
	return OwnerOf(&token.Status).String(), expires
}

// Observe removes the token from every record, and from every answer but the first.
func (Rules) Observe(token *model.DirectClusterEndpointToken, _ store.Record) {
	token.Status.Token = ""
}

func (Rules) Warn(*model.DirectClusterEndpointToken) []string { return nil }
