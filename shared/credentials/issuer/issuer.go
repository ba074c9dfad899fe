// Package issuer issues direct cluster endpoint tokens: who gets which claims for how long, signed by the active key and
// recorded before anybody sees the token; and it says what verifiers have to know. A token is never more than who asks
// for it, and never outlives the access key that he asked with.
// Source: Spec 2.3, 2.4, 5.3; OpenID Connect Discovery 1.0; ADR-0011.
package issuer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signing/signingkey"
	"management.platform.sh/shared/signing/token"
	"management.platform.sh/shared/state/store"
)

// The settings where nothing else is said. Source: D15 of the design; ADR-0011.
const (
	// DefaultTTL is the life of a token whose spec.ttl is absent.
	DefaultTTL = time.Hour
	// DefaultMaxTTL is the longest life of a token.
	DefaultMaxTTL = 24 * time.Hour
	// DefaultAlgorithm is what unmodified kube-apiservers accept and signs in a twentieth of the time of RS256.
	DefaultAlgorithm = token.ES256
	// DefaultRotateEvery and DefaultPublishBefore are the rhythm of the signing keys.
	DefaultRotateEvery   = 7 * 24 * time.Hour
	DefaultPublishBefore = time.Hour
)

// Issuer issues tokens and publishes how to verify them. It is safe for concurrent use.
type Issuer struct {
	// Keys sign.
	Keys *signingkey.Keys
	// Register has a record of each token.
	Register *issuedtoken.Register

	url       string
	audiences []string
	maxTTL    time.Duration
	now       func() time.Time

	mu     sync.Mutex
	denied []issuedtoken.Denial
	listed time.Time
}

// Open returns the issuer of an environment. It connects to nothing yet.
func Open(env *frame.Environment) *Issuer {
	settings := env.Tokens
	maxTTL := cmp.Or(settings.MaxTTL, DefaultMaxTTL)
	audiences := settings.Audiences
	if len(audiences) == 0 {
		audiences = []string{settings.Issuer}
	}
	return &Issuer{
		Keys: signingkey.New(env.Stores(signingkey.Resource), env.Keyring, env.Now, signingkey.Settings{
			Algorithm:     cmp.Or(settings.Algorithm, DefaultAlgorithm),
			RotateEvery:   cmp.Or(settings.RotateEvery, DefaultRotateEvery),
			PublishBefore: cmp.Or(settings.PublishBefore, DefaultPublishBefore),
			MaxTTL:        maxTTL,
			PEM:           settings.SigningKeys,
		}),
		Register: env.IssuedTokens(), url: settings.Issuer, audiences: audiences, maxTTL: maxTTL, now: env.Now,
	}
}

// Input is a request for a token.
type Input = resource.CreateInput[*model.DirectClusterEndpointToken]

// Output is the answer to it.
type Output = resource.Written[*model.DirectClusterEndpointToken]

// Issue signs a token, records it and returns it. A dry run returns no token and records nothing.
//
// Errors: those of resource.Create; Invalid, too, for a token that would be too large; Forbidden with a cause for each
// entry of the scope that is wider than the caller's; 500 with a cause for the log where the signing keys cannot be
// used. On any error nothing is issued, and nothing is recorded but what the store cannot tell. Source: Spec 2.4;
// ADR-0011.
func (i *Issuer) Issue(ctx context.Context, in Input) (Output, error) {
	keys, err := i.Current(ctx)
	if err != nil {
		return Output{}, err
	}
	if in.Caller.Key == "" || in.Caller.KeyUID == "" {
		return Output{}, apierror.Internal(errors.New("a token is asked for without an access key"))
	}
	one := &issuance{issuer: i, key: keys.Signing, caller: in.Caller, userAgent: in.UserAgent}
	one.foreign = refuseMetadata(in.Object)
	written, err := resource.Create(ctx, &issuedtoken.Registry{
		Definition: issuedtoken.Definition, Rules: one, Store: i.Register.Store, Now: i.Register.Now, Random: i.Register.Random,
	}, in)
	if one.failed != nil {
		return Output{}, one.failed
	}
	if err == nil && !in.DryRun && !written.Object.CreationTimestamp.Equal(&one.begun) {
		// An earlier attempt has stored the record: the token must not outlive what that says.
		written.Object.Status.Token, err = one.sign(written.Object)
	}
	return written, err
}

// Current returns the keys to sign with and to publish. Errors are for the caller, with the cause for the log.
func (i *Issuer) Current(ctx context.Context) (*signingkey.Set, error) {
	if i.url == "" {
		return nil, apierror.Broken("this platform issues no tokens: it does not know its own URL").
			Because(errors.New("PLATFORM_ISSUER is not set"))
	}
	keys, err := i.Keys.Current(ctx)
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

// refuseMetadata refuses what makes no sense in the record of a token: nobody could take a finalizer out again, and its
// owner is the access key that asked for it.
func refuseMetadata(object *model.DirectClusterEndpointToken) field.ErrorList {
	var problems field.ErrorList
	metadata := field.NewPath("metadata")
	if len(object.Finalizers) > 0 {
		problems = append(problems, field.Forbidden(metadata.Child("finalizers"), "the record of a token cannot be held"))
	}
	if len(object.OwnerReferences) > 0 {
		problems = append(problems, field.Forbidden(metadata.Child("ownerReferences"),
			"the record of a token is owned by the access key that asked for it"))
	}
	return problems
}

// issuance is the rules of one token that is about to be issued.
type issuance struct {
	issuedtoken.Rules

	issuer    *Issuer
	key       *token.SigningKey
	caller    identity.Caller
	userAgent string
	// foreign are problems of the metadata as it was sent.
	foreign field.ErrorList
	// sound tells that Validate found nothing wrong.
	sound bool
	// begun is when the token begins that was signed.
	begun metav1.Time
	// failed is what went wrong with the signature, beside what is wrong with the request.
	failed error
}

var _ resource.Rules[*model.DirectClusterEndpointToken] = (*issuance)(nil)

// Default fills in the lifetime and the scope, and what is the server's: whom the token stands for, when it ends, and
// that its record belongs to the access key, with which it goes.
func (one *issuance) Default(caller identity.Caller, object, _ *model.DirectClusterEndpointToken) {
	if object.Spec.TTLSeconds == 0 {
		object.Spec.TTLSeconds = int64(min(DefaultTTL, one.issuer.maxTTL) / time.Second)
	}
	if object.Spec.Scope == nil {
		object.Spec.Scope = caller.Scope.DeepCopy()
	}
	end := one.end(object)
	object.Status = model.DirectClusterEndpointTokenStatus{
		ExpirationTimestamp: &metav1.Time{Time: end},
		AccessKey:           caller.Key, AccessKeyUID: caller.KeyUID, UserAgent: printable(one.userAgent),
	}
	object.Status.User, object.Status.Team, object.Status.Subject = caller.Owner.Fields()
	object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: model.SchemeGroupVersion.String(), Kind: accesskey.Definition.Kind,
		Name: caller.Key, UID: types.UID(caller.KeyUID),
	}}
	object.Finalizers = nil
}

// end is when the token is over, to the second: by its own lifetime, the platform's and that of the access key.
func (one *issuance) end(object *model.DirectClusterEndpointToken) time.Time {
	end := object.CreationTimestamp.Add(one.asked(object))
	if last := one.caller.KeyExpires; !last.IsZero() && last.Before(end) {
		end = last.UTC().Truncate(time.Second)
	}
	return end
}

// asked is the lifetime that was asked for, held within the platform's.
func (one *issuance) asked(object *model.DirectClusterEndpointToken) time.Duration {
	longest := one.issuer.maxTTL
	if object.Spec.TTLSeconds > int64(longest/time.Second) {
		return longest
	}
	return time.Duration(object.Spec.TTLSeconds) * time.Second
}

// Validate returns all that is wrong with the request.
func (one *issuance) Validate(object, _ *model.DirectClusterEndpointToken) field.ErrorList {
	spec := field.NewPath("spec")
	problems := slices.Clone(one.foreign)
	if object.Spec.TTLSeconds < 0 {
		problems = append(problems, field.Invalid(spec.Child("ttl"), object.Spec.TTLSeconds, "must not be negative"))
	}
	problems = append(problems, scope.Validate(object.Spec.Scope, spec.Child("scope"))...)
	one.sound = len(problems) == 0
	return problems
}

// Authorize returns the entries of the scope that are wider than the caller's.
func (one *issuance) Authorize(caller identity.Caller, object, _ *model.DirectClusterEndpointToken) field.ErrorList {
	return scope.Exceeds(object.Spec.Scope, caller.Scope, field.NewPath("spec", "scope"))
}

// Seal signs the token, which only the answer will hold. A record is written for nothing that could not be signed.
func (one *issuance) Seal(object *model.DirectClusterEndpointToken, _ store.Record) (resource.Sealed[*model.DirectClusterEndpointToken], field.ErrorList) {
	sealed := resource.Sealed[*model.DirectClusterEndpointToken]{Digest: string(object.UID)}
	if !one.sound {
		return sealed, nil
	}
	begin, end := object.CreationTimestamp.Time, object.Status.ExpirationTimestamp.Time
	if !begin.Before(end) {
		// The access key ends within this second.
		one.failed = apierror.Unauthorized("access key expired")
		return sealed, field.ErrorList{field.InternalError(field.NewPath("spec", "ttl"), one.failed)}
	}
	one.begun = object.CreationTimestamp
	signed, err := one.sign(object)
	switch {
	case errors.Is(err, token.ErrTooLarge):
		return sealed, field.ErrorList{field.Invalid(field.NewPath("spec", "scope"), field.OmitValueType{}, fmt.Sprintf(
			"with the %d groups of the caller it makes a token of more than %d bytes, which servers do not take in a header",
			len(one.caller.Groups), token.MaxBytes))}
	case err != nil:
		one.failed = apierror.Broken("the token could not be signed; the platform's log says why").Because(err)
		return sealed, field.ErrorList{field.InternalError(field.NewPath("status", "token"), one.failed)}
	}
	sealed.Reveal = func(answer *model.DirectClusterEndpointToken) { answer.Status.Token = signed }
	return sealed, nil
}

// sign makes the token of a record.
func (one *issuance) sign(object *model.DirectClusterEndpointToken) (string, error) {
	begin := object.CreationTimestamp.Time
	return one.key.Sign(token.Claims{
		Issuer: one.issuer.url, Subject: one.caller.Owner.Username(), Audience: one.issuer.audiences, ID: string(object.UID),
		IssuedAt: begin, NotBefore: begin, Expires: object.Status.ExpirationTimestamp.Time, Groups: groups(one.caller), Scope: object.Spec.Scope,
	})
}

// Warn tells why a token ends before its own ttl does.
func (one *issuance) Warn(object *model.DirectClusterEndpointToken) []string {
	asked, given := object.Spec.TTLSeconds, int64(object.Status.ExpirationTimestamp.Sub(object.CreationTimestamp.Time)/time.Second)
	switch {
	case asked <= given:
		return nil
	case given == int64(one.issuer.maxTTL/time.Second):
		return []string{fmt.Sprintf("spec.ttl: %d seconds shortened to %d, the platform's longest", asked, given)}
	default:
		return []string{fmt.Sprintf("spec.ttl: %d seconds shortened to %d, when the access key ends", asked, given)}
	}
}

// groups are those of the caller that are not Kubernetes' own, which each cluster gives itself.
func groups(caller identity.Caller) []string {
	return slices.DeleteFunc(slices.Clone(caller.Groups), func(group string) bool { return strings.HasPrefix(group, "system:") })
}

// maxUserAgent is how many bytes of it are kept.
const maxUserAgent = 256

// printable is text of a client as one line that can be shown.
func printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	for len(text) > maxUserAgent {
		runes := []rune(text)
		text = string(runes[:min(len(runes)-1, maxUserAgent)])
	}
	return text
}
