// Package issuer issues direct cluster endpoint tokens: it decides the claims and the lifetime of a token, signs the token with
// the active key and records it before it returns the token. It also publishes the documents that verifiers need. A token never
// permits more than its caller may do, and never outlives the caller's access key. Source: Spec 2.3, 2.4, 5.3; OpenID Connect
// Discovery 1.0; ADR-0011.
package issuer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/store"
)

// defaultTTL is the lifetime of a token whose spec.ttl is absent. Source: ADR-0011.
const defaultTTL = time.Hour

// Issuer issues tokens and publishes the documents with which verifiers check them. It is safe for concurrent use.
type Issuer struct {
	// Keys are the signing keys.
	Keys *signingkey.Keys
	// Register has the records of tokens.
	Register *issuedtoken.Register

	url       string
	audiences []string
	maxTTL    time.Duration
	now       func() time.Time

	mu       sync.Mutex
	denied   []issuedtoken.Denial
	listedAt time.Time
}

// Open returns the issuer of an environment, with the register of its tokens. A function that issues tokens passes the register
// of package kinds. Open connects to nothing yet.
func Open(env *platform.Environment, register *issuedtoken.Register) *Issuer {
	tokens := env.Tokens.WithDefaults()
	audiences := tokens.Audiences
	if len(audiences) == 0 {
		audiences = []string{tokens.Issuer}
	}
	return &Issuer{
		Keys: signingkey.New(env.Stores(signingkey.Resource), env.Keyring, env.Now, signingkey.Settings{
			Algorithm: tokens.Algorithm, RotateEvery: tokens.RotateEvery, PublishBefore: tokens.PublishBefore,
			MaxTTL: tokens.MaxTTL, PEM: tokens.SigningKeys,
		}),
		Register: register, url: tokens.Issuer, audiences: audiences, maxTTL: tokens.MaxTTL, now: env.Now,
	}
}

// Input is a request for a token.
type Input = resource.CreateInput[*model.DirectClusterEndpointToken]

// Output is the answer to an Input.
type Output = resource.Result[*model.DirectClusterEndpointToken]

// Issue checks the request, signs a token, records it and returns it. The record is written last, so that every token that is
// returned has a record. A dry run signs nothing, records nothing and returns no token.
//
// Errors: the errors of resource.Create; Invalid, too, for a token that would be too large; Forbidden with a cause for each entry
// of the scope that is wider than the caller's scope; Unauthorized if the access key ends within the second; 500 with a cause for
// the log if the signing keys cannot be used. On any error nothing is issued, and nothing is recorded, except that the store
// may have written the record when its response is lost. Source: Spec 2.4; ADR-0011.
func (i *Issuer) Issue(ctx context.Context, in Input) (Output, error) {
	keys, err := i.latest(ctx)
	if err != nil {
		return Output{}, err
	}
	if in.Caller.Key == "" || in.Caller.KeyUID == "" {
		return Output{}, apierror.Internal(errors.New("the caller has no access key"))
	}
	draft, err := resource.Prepare(ctx, i.newRegistry(in), in)
	if err != nil {
		return Output{}, err
	}
	signed, err := i.sign(keys.Signing, in, draft.Object)
	if err != nil {
		return Output{}, err
	}
	begin := draft.Object.CreationTimestamp
	written, err := draft.Store(ctx)
	if err != nil || in.DryRun {
		return written, err
	}
	if !written.Object.CreationTimestamp.Equal(&begin) {
		// An earlier attempt, whose answer was lost, has written the record: the token has the times of that record.
		if signed, err = i.sign(keys.Signing, in, written.Object); err != nil {
			return Output{}, err
		}
	}
	written.Object.Status.Token = signed
	return written, nil
}

// sign makes the token of a record. For a dry run, it checks that the token could be signed, and returns no token.
func (i *Issuer) sign(key *token.SigningKey, in Input, record *model.DirectClusterEndpointToken) (string, error) {
	begin, end := record.CreationTimestamp.Time, record.Status.ExpirationTimestamp.Time
	if !begin.Before(end) {
		// The access key ends within this second.
		return "", apierror.Unauthorized("access key expired")
	}
	claims := token.Claims{
		Issuer: i.url, Subject: in.Caller.Owner.Username(), Audience: i.audiences, ID: string(record.UID),
		IssuedAt: begin, NotBefore: begin, Expires: end, Groups: record.Status.Groups, Scope: record.Spec.Scope,
	}
	var signed string
	var err error
	if in.DryRun {
		err = key.Check(claims)
	} else {
		signed, err = key.Sign(claims)
	}
	switch {
	case errors.Is(err, token.ErrTooLarge):
		return "", apierror.Invalid(issuedtoken.Definition.GroupVersionKind().GroupKind(), record.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "scope"), field.OmitValueType{}, fmt.Sprintf(
				"with the caller's %d groups it makes a token of more than %d bytes, which servers do not accept in a header",
				len(in.Caller.Groups), token.MaxBytes))})
	case err != nil:
		return "", apierror.Broken("the token could not be signed; the platform's log says why").Because(err)
	}
	return signed, nil
}

// Current returns the published keys. Its errors are for the caller, with the cause for the log.
func (i *Issuer) Current(ctx context.Context) (*signingkey.Set, error) {
	return i.readKeys(ctx, i.Keys.Current)
}

// latest returns the keys as they were within the last second, so that no token is signed with a key that was tainted before.
// It returns the errors of Current.
func (i *Issuer) latest(ctx context.Context) (*signingkey.Set, error) {
	return i.readKeys(ctx, i.Keys.Latest)
}

// readKeys returns the keys of a source, with the errors of Current.
func (i *Issuer) readKeys(ctx context.Context, source func(context.Context) (*signingkey.Set, error)) (*signingkey.Set, error) {
	if i.url == "" {
		return nil, apierror.Broken("this platform issues no tokens: its own URL is not set").
			Because(errors.New(settings.Issuer + " is not set"))
	}
	keys, err := source(ctx)
	switch {
	case err == nil:
		return keys, nil
	case errors.Is(err, store.ErrUnavailable):
		return nil, apierror.Unavailable().Because(err)
	case ctx.Err() != nil:
		return nil, apierror.Timeout().Because(err)
	default:
		return nil, apierror.Broken("the signing keys of the platform cannot be used; its log says why").Because(err)
	}
}

// newRegistry returns the registry of tokens with the rules for the token that a request asks for.
func (i *Issuer) newRegistry(in Input) *issuedtoken.Registry {
	own := tokenStrategy{maxTTL: i.maxTTL, register: i.Register, caller: in.Caller, userAgent: in.UserAgent, metadata: validateMetadata(in.Object)}
	return &issuedtoken.Registry{
		Definition: issuedtoken.Definition, Store: i.Register.Store, Now: i.Register.Now, Random: i.Register.Random,
		Strategy: resource.Strategy[*model.DirectClusterEndpointToken]{Rules: own, Provenance: own},
	}
}

// validateMetadata refuses metadata that makes no sense in the record of a token: clients cannot update a record, so no client
// could remove a finalizer, and the owner of a record is the access key that asked for the token. It checks the object as the
// client sent it.
func validateMetadata(object *model.DirectClusterEndpointToken) field.ErrorList {
	var problems field.ErrorList
	metadata := field.NewPath("metadata")
	if len(object.Finalizers) > 0 {
		problems = append(problems, field.Forbidden(metadata.Child("finalizers"), "the record of a token cannot have finalizers"))
	}
	if len(object.OwnerReferences) > 0 {
		problems = append(problems, field.Forbidden(metadata.Child("ownerReferences"),
			"the record of a token is owned by the access key that asked for it"))
	}
	return problems
}

// tokenStrategy has the rules of a token that is about to be issued.
type tokenStrategy struct {
	issuedtoken.Rules

	maxTTL    time.Duration
	register  *issuedtoken.Register
	caller    identity.Caller
	userAgent string
	// metadata has the problems of the metadata as the client sent it: Default replaces the metadata.
	metadata field.ErrorList
}

func (n tokenStrategy) RecordProvenance(ctx context.Context, caller identity.Caller, object *model.DirectClusterEndpointToken) (field.ErrorList, error) {
	return n.register.RecordProvenance(ctx, caller, object)
}

// Default fills in the lifetime, the scope and the fields that the server decides: the owner of the token, the time at which it
// ends, and the owner reference to the access key, with which the record is removed.
func (n tokenStrategy) Default(caller identity.Caller, object, _ *model.DirectClusterEndpointToken) {
	if object.Spec.TTLSeconds == 0 {
		object.Spec.TTLSeconds = int64(min(defaultTTL, n.maxTTL) / time.Second)
	}
	if object.Spec.Scope == nil {
		object.Spec.Scope = auth.Narrowest(caller).DeepCopy()
	}
	object.Status = model.DirectClusterEndpointTokenStatus{
		ExpirationTimestamp: &metav1.Time{Time: n.end(object)},
		AccessKey:           caller.Key, AccessKeyUID: caller.KeyUID, UserAgent: resource.Printable(n.userAgent),
		Groups: identity.WithoutKubernetes(caller.Groups),
	}
	object.Status.User, object.Status.Team, object.Status.Subject = caller.Owner.Fields()
	object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: model.SchemeGroupVersion.String(), Kind: accesskey.Definition.Kind,
		Name: caller.Key, UID: types.UID(caller.KeyUID),
	}}
	object.Finalizers = nil
}

// end returns the time at which the token expires, in whole seconds: the earliest of the end by its own ttl, the end by the
// platform's longest lifetime, and the end of the access key.
func (n tokenStrategy) end(object *model.DirectClusterEndpointToken) time.Time {
	ttl := n.maxTTL
	if object.Spec.TTLSeconds <= int64(n.maxTTL/time.Second) {
		ttl = time.Duration(object.Spec.TTLSeconds) * time.Second
	}
	end := object.CreationTimestamp.Add(ttl)
	if keyEnds := n.caller.KeyExpires; !keyEnds.IsZero() && keyEnds.Before(end) {
		end = keyEnds.UTC().Truncate(time.Second)
	}
	return end
}

// Validate returns everything that is wrong with the request.
func (n tokenStrategy) Validate(object, _ *model.DirectClusterEndpointToken) field.ErrorList {
	spec := field.NewPath("spec")
	problems := slices.Clone(n.metadata)
	if object.Spec.TTLSeconds < 0 {
		problems = append(problems, field.Invalid(spec.Child("ttl"), object.Spec.TTLSeconds, "must not be negative"))
	}
	return append(problems, scope.Validate(object.Spec.Scope, spec.Child("scope"))...)
}

// Grants returns the scope of the token. The token acts as its caller.
func (n tokenStrategy) Grants(object *model.DirectClusterEndpointToken) []auth.Grant {
	return []auth.Grant{auth.ScopeGrant(field.NewPath("spec", "scope"), object.Spec.Scope)}
}

// Authorize refuses a token for a caller whose name is reserved.
func (n tokenStrategy) Authorize(caller identity.Caller, _, _ *model.DirectClusterEndpointToken) field.ErrorList {
	if prefix := caller.Owner.Reserved(); prefix != "" {
		return field.ErrorList{field.Forbidden(field.NewPath("status", string(caller.Owner.Kind)), identity.ReservedText(prefix))}
	}
	return nil
}

// Seal makes the uid, which is the claim jti of the token, the digest by which the record is found.
func (n tokenStrategy) Seal(object *model.DirectClusterEndpointToken, _ store.Record) (resource.Sealed[*model.DirectClusterEndpointToken], field.ErrorList) {
	return resource.Sealed[*model.DirectClusterEndpointToken]{Digest: string(object.UID)}, nil
}

// Warn returns a warning with the reason if a token ends before its own ttl.
func (n tokenStrategy) Warn(object *model.DirectClusterEndpointToken) []string {
	requested, given := object.Spec.TTLSeconds, int64(object.Status.ExpirationTimestamp.Sub(object.CreationTimestamp.Time)/time.Second)
	switch {
	case requested <= given:
		return nil
	case given == int64(n.maxTTL/time.Second):
		return []string{fmt.Sprintf("spec.ttl: %d seconds shortened to %d, the platform's longest", requested, given)}
	default:
		return []string{fmt.Sprintf("spec.ttl: %d seconds shortened to %d, when the access key ends", requested, given)}
	}
}
