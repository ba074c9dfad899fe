// Package tokenexchange exchanges the token of a job for an access key, as a trust rule of the admins says (RFC 8693). Before a
// token is verified, the package writes nothing, and it contacts only issuers that a rule names. Package oidc checks signatures,
// and package trustrule checks conditions. Source: ADR-0036.
package tokenexchange

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/trustrule"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/method"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/oidc"
	"management.platform.sh/shared/signin/token"
	"management.platform.sh/shared/signin/upstream"
	"management.platform.sh/shared/state/store"
)

// The identifiers that RFC 8693 gives to the grant type and to token types.
const (
	GrantType   = oauth.TokenExchangeGrant
	TypeJWT     = "urn:ietf:params:oauth:token-type:jwt"
	TypeIDToken = "urn:ietf:params:oauth:token-type:id_token" //nolint:gosec // the name of a kind
	TypeAccess  = "urn:ietf:params:oauth:token-type:access_token"
)

// The annotations of audit events about exchanges. Source: ADR-0036.
const (
	AnnotationOutcome = model.GroupName + "/exchange-outcome"
	AnnotationDetail  = model.GroupName + "/exchange-detail"
	AnnotationIssuer  = model.GroupName + "/exchange-issuer"
	AnnotationRule    = model.GroupName + "/exchange-rule"
	AnnotationOwner   = model.GroupName + "/exchange-owner"
	AnnotationKey     = model.GroupName + "/exchange-key"
	// AnnotationClaim is the prefix of the annotations with the claims that identify a job, on audit events and on access keys.
	AnnotationClaim = model.GroupName + "/claim-"
)

const (
	// maxToken is the longest token, in bytes.
	maxToken = 16 << 10
	// skew is how far the clock of an issuer may be ahead.
	skew = time.Minute
	// maxTokenAge is the age from which no rule accepts a token.
	maxTokenAge = time.Hour
	// repeatWindow is how long a client can repeat a request whose answer did not arrive.
	repeatWindow = time.Minute
	// KeyPrefix begins the names of the access keys that this package creates.
	KeyPrefix = "job-"
)

// auditedClaims are the claims that identify a job.
var auditedClaims = []string{
	"sub", "repository", "repository_id", "ref", "sha", "event_name", "environment", "workflow_ref", "run_id", "run_attempt", "actor",
	"project_path", "project_id", "pipeline_id", "job_id", "user_login",
}

// RefusedError is the reason for which a token is not exchanged. Source: RFC 8693, 2.2.2.
type RefusedError struct {
	// Code is the error code of OAuth. Text is the message that the job reads.
	Code, Text string
	// detail is the reason for the audit event; the job does not read it.
	detail string
	// matchRank is how much of a rule fits the token. Of several refusals, the job reads the refusal with the highest rank.
	matchRank int
}

func (e *RefusedError) Error() string { return e.Text }

func newRefusal(text, detail string) *RefusedError {
	return &RefusedError{Code: "invalid_request", Text: text, detail: detail}
}

// The values of matchRank.
const (
	rankConditions = iota + 1
	rankAudience
	rankTime
)

func (e *RefusedError) withRank(near int) *RefusedError {
	e.matchRank = near
	return e
}

// notAcceptedText is the message for every token that is not verified: it does not reveal which issuers are trusted. If an issuer
// does not answer, the job must try again, so it gets another message.
const notAcceptedText = "the token is not accepted: no trust rule names its issuer, or its issuer has not signed it"

// Exchanger exchanges tokens. It is safe for concurrent use.
type Exchanger struct {
	env       *platform.Environment
	issuers   *oidc.Issuers
	rules     *trustrule.Registry
	keys      *accesskey.Registry
	directory *directory.Directory
	uses      store.Store

	mu     sync.Mutex
	cached ruleSnapshot
}

// ruleSnapshot has the enabled rules at a revision of the resource.
type ruleSnapshot struct {
	revision int64
	rules    []*model.TrustRule
}

// Open returns the exchanger of an environment. It creates keys in a registry of package kinds, because the end of a key can end
// objects of other kinds.
func Open(env *platform.Environment, keys *accesskey.Registry) *Exchanger {
	return &Exchanger{
		env: env, issuers: oidc.OpenIssuers(env), rules: trustrule.Open(env), keys: keys, directory: directory.Open(env), uses: logins.Records(env),
	}
}

// TokenResponse is the successful answer to a token exchange.
type TokenResponse struct {
	// Key is the access key, and Name is the name of its object.
	Key     secret.String
	KeyName string
	Owner   identity.Owner
	// Expires is when the key stops working.
	Expires time.Time
}

// Exchange creates an access key for the token of a job. Name is the name of the rule; empty: the only rule that matches. Attempt
// identifies the request; empty: the request cannot be repeated.
//
// If the rule accepts a token only once, a request can be repeated for a minute with the same attempt, as long as the access key
// of the first answer has not been used. The repetition ends that access key.
//
// Errors: RefusedError; ServiceUnavailable if the issuer does not answer; the errors of the store and of creating an access key.
func (f *Exchanger) Exchange(ctx context.Context, raw, name, attempt string) (response TokenResponse, err error) {
	recorder := annotations.RecorderOf(ctx)
	recorder.Set(AnnotationOutcome, "refused")
	defer func() {
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			recorder.Set(AnnotationDetail, resource.Printable(refused.detail))
		}
	}()
	issuer, signed, isToken := peekIssuer(raw)
	if !isToken {
		return TokenResponse{}, newRefusal(notAcceptedText, "not a token")
	}
	recorder.Set(AnnotationIssuer, resource.Printable(issuer))
	candidates, err := f.rulesForIssuer(ctx, issuer)
	if err != nil {
		return TokenResponse{}, err
	}
	if len(candidates) == 0 {
		return TokenResponse{}, newRefusal(notAcceptedText, "no enabled rule names the issuer")
	}
	rule, claims, err := f.matchRule(ctx, candidates, name, raw)
	if err != nil {
		return TokenResponse{}, err
	}
	recorder.Set(AnnotationRule, rule.Name)
	recorder.Set(AnnotationOwner, trustrule.Owner(rule).String())
	ownerObject, err := f.readOwner(ctx, rule)
	if err != nil {
		return TokenResponse{}, err
	}
	note := store.Record{}
	if trustrule.Once(rule) {
		if note, err = f.claimToken(ctx, issuer, signed, claims, rule, attempt); err != nil {
			return TokenResponse{}, err
		}
	}
	key, err := f.issueKey(ctx, rule, ownerObject, claims)
	if err != nil {
		return TokenResponse{}, err
	}
	if err := f.noteKey(ctx, note, key); err != nil {
		return TokenResponse{}, err
	}
	recorder.Set(AnnotationOutcome, "key_made")
	recorder.Set(AnnotationKey, key.Name)
	return newTokenResponse(key), nil
}

// peekIssuer reads the issuer of an unverified token, and its signed part.
func peekIssuer(raw string) (issuer, signed string, isToken bool) {
	parts := strings.Split(raw, ".")
	if len(raw) > maxToken || len(parts) != 3 {
		return "", "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Issuer == "" {
		return "", "", false
	}
	return claims.Issuer, parts[0] + "." + parts[1], true
}

// rulesForIssuer returns the enabled rules for an issuer. The rules are read again if they have changed.
func (f *Exchanger) rulesForIssuer(ctx context.Context, issuer string) ([]*model.TrustRule, error) {
	revisionRef := store.Ref{Resource: accesskey.TrustRules}
	refs, err := f.rules.Store.GetRefs(ctx, revisionRef)
	if err != nil {
		return nil, fmt.Errorf("reading the revision of the trust rules: %w", err)
	}
	f.mu.Lock()
	snapshot := f.cached
	f.mu.Unlock()
	if revision := refs[revisionRef].Revision; snapshot.revision != revision || revision == 0 {
		// A write during this read has a later revision, so the next exchange reads the rules again.
		snapshot = ruleSnapshot{revision: revision}
		for record, err := range store.Each(ctx, f.rules.Store, store.Query{}) {
			if err != nil {
				return nil, fmt.Errorf("reading the trust rules: %w", err)
			}
			rule, err := f.rules.Decode(record)
			if err != nil {
				return nil, err
			}
			if !rule.Spec.Disabled && rule.DeletionTimestamp == nil && rule.Spec.Scope != nil {
				snapshot.rules = append(snapshot.rules, rule)
			}
		}
		f.mu.Lock()
		f.cached = snapshot
		f.mu.Unlock()
	}
	var rules []*model.TrustRule
	for _, rule := range snapshot.rules {
		if rule.Spec.Issuer == issuer {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// matchRule returns the only rule that matches a token, and its claims.
func (f *Exchanger) matchRule(
	ctx context.Context, candidates []*model.TrustRule, name, raw string,
) (*model.TrustRule, trustrule.Claims, error) {
	type answer struct {
		claims trustrule.Claims
		err    error
	}
	results := map[string]answer{}
	var matched *model.TrustRule
	var matchedClaims trustrule.Claims
	var reasons []string
	refusal := newRefusal(notAcceptedText, "no enabled rule of that name names the issuer")
	for _, rule := range candidates {
		if name != "" && rule.Name != name {
			continue
		}
		authority := string(rule.Spec.CAData)
		result, ok := results[authority]
		if !ok {
			result.claims, result.err = f.issuers.Verify(ctx, rule.Spec.Issuer, upstream.Trust{CAData: rule.Spec.CAData}, raw)
			results[authority] = result
		}
		switch {
		case errors.Is(result.err, oidc.ErrUnreachable):
			return nil, nil, apierror.Upstream("the issuer of the token cannot be reached: try again later").Because(result.err)
		case errors.Is(result.err, oidc.ErrExpired):
			refusal = newRefusal("the token has expired", "expired").withRank(rankTime)
			continue
		case result.err != nil:
			reasons = append(reasons, rule.Name+": "+result.err.Error())
			continue
		}
		annotateClaims(annotations.RecorderOf(ctx).Set, result.claims)
		refused := f.checkRule(rule, result.claims)
		switch {
		case refused != nil:
			reasons = append(reasons, rule.Name+": "+refused.detail)
			if refused.matchRank > refusal.matchRank {
				refusal = refused
			}
		case matched != nil:
			return nil, nil, newRefusal("several trust rules fit the token: name one with the parameter rule", matched.Name+" and "+rule.Name+" fit")
		default:
			matched, matchedClaims = rule, result.claims
		}
	}
	if matched == nil {
		if len(reasons) > 0 {
			refusal.detail = strings.Join(reasons, "; ")
		}
		return nil, nil, refusal
	}
	return matched, matchedClaims, nil
}

// checkRule returns the reason for which a rule does not accept a verified token. Nil: the rule accepts it.
func (f *Exchanger) checkRule(rule *model.TrustRule, claims trustrule.Claims) *RefusedError {
	if unmet := trustrule.Unmet(rule, claims); len(unmet) > 0 {
		return newRefusal("no trust rule fits the token: the audit log of the platform says why", "conditions on "+strings.Join(unmet, ", ")).withRank(rankConditions)
	}
	audience := rule.Spec.Audience
	if audience == "" {
		audience = method.Address(f.env.Config())
	}
	if audience == "" {
		return newRefusal("the platform does not know its own address: an admin must set platformHost, or the audience of the trust rule", "no audience").withRank(rankAudience)
	}
	if !hasSingleAudience(claims, audience) {
		return newRefusal("the token is for another audience: ask for one for "+audience+" alone", "audience").withRank(rankAudience)
	}
	issued, err := timeClaim(claims, "iat")
	now := f.env.Now()
	switch {
	case err != nil:
		return newRefusal("the token does not say when it was issued", "iat").withRank(rankTime)
	case issued.After(now.Add(skew)):
		return newRefusal("the token is not valid yet", "iat is in the future").withRank(rankTime)
	case !now.Before(issued.Add(trustrule.MaxTokenAge(rule))):
		return newRefusal("the token is too old: it must have been issued in the last "+trustrule.MaxTokenAge(rule).String(), "age").withRank(rankTime)
	}
	if notBefore, err := timeClaim(claims, "nbf"); err == nil && notBefore.After(now.Add(skew)) {
		return newRefusal("the token is not valid yet", "nbf is in the future").withRank(rankTime)
	}
	return nil
}

// hasSingleAudience reports whether the claim aud has the audience and no other.
func hasSingleAudience(claims trustrule.Claims, audience string) bool {
	if single, isText := claims.Text("aud"); isText {
		return single == audience
	}
	var several []string
	return json.Unmarshal(claims["aud"], &several) == nil && slices.Equal(several, []string{audience})
}

// timeClaim returns a claim that is a time.
func timeClaim(claims trustrule.Claims, name string) (time.Time, error) {
	text, _ := claims.Text(name)
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}, fmt.Errorf("the claim %s is no time", name)
	}
	return time.Unix(int64(seconds), 0), nil
}

// readOwner returns the reference to the owner's object for a key of a rule. The owner must be an existing user or team whose
// credentials work.
func (f *Exchanger) readOwner(ctx context.Context, rule *model.TrustRule) (*model.AccessKeyOwner, error) {
	owner := trustrule.Owner(rule)
	refs, err := f.directory.Read(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("reading the owner of a trust rule: %w", err)
	}
	state, err := f.directory.StateOf(ctx, owner, refs)
	switch {
	case errors.Is(err, directory.ErrDisabled), errors.Is(err, directory.ErrGone), errors.Is(err, directory.ErrAbsent), err == nil && !state.Managed:
		return nil, newRefusal("the owner that the trust rule names may not use the platform: ask an admin", "the owner is disabled or does not exist")
	case err != nil:
		return nil, err
	}
	return &model.AccessKeyOwner{UID: state.UID, Generation: state.Generation}, nil
}

// tokenUse is the use of a token, as it is stored.
type tokenUse struct {
	// Attempt is the digest of the identifier of the request. Empty: the request cannot be repeated.
	Attempt string `json:"attempt,omitempty"`
	// Key is the access key that was created. Nil: no key has been created yet, or the request cannot be repeated.
	Key *model.AccessKeyReference `json:"key,omitempty"`
}

// claimToken records the use of a token, and returns the record. Of several requests with one token, one succeeds; only a
// repetition of that request succeeds as well. The record stays as long as a rule could accept the token.
func (f *Exchanger) claimToken(
	ctx context.Context, issuer, signed string, claims trustrule.Claims, rule *model.TrustRule, attempt string,
) (store.Record, error) {
	kind := "jti"
	id, _ := claims.Text("jti")
	if id == "" {
		// A signature can have several valid forms, so the signed text identifies the token.
		kind, id = "signed", signed
	}
	now := f.env.Now()
	object, err := json.Marshal(tokenUse{Attempt: attemptDigest(attempt)})
	if err != nil {
		return store.Record{}, fmt.Errorf("encoding the use of a token: %w", err)
	}
	note := store.Record{
		Name: "job-" + digest.Sum("job", issuer, kind, id), Owner: trustrule.Owner(rule).String(), Created: now, Expires: now.Add(maxTokenAge + 2*skew), Object: object,
	}
	note.Revision, err = f.uses.Create(ctx, note)
	if errors.Is(err, store.ErrExists) {
		return f.repeatUse(ctx, note.Name, attempt)
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("noting the use of a token: %w", err)
	}
	return note, nil
}

// newTokenUsedError returns the refusal of a token that was used before.
func newTokenUsedError() *RefusedError {
	return newRefusal("the token was used before: a token works once", "replay")
}

// repeatUse takes over the use of a token from an earlier attempt of the same request, whose answer was lost. It ends the access
// key of that attempt, which must be unused.
func (f *Exchanger) repeatUse(ctx context.Context, name, attempt string) (store.Record, error) {
	record, err := f.uses.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return store.Record{}, newTokenUsedError()
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("reading the use of a token: %w", err)
	}
	var previous tokenUse
	if err := json.Unmarshal(record.Object, &previous); err != nil {
		return store.Record{}, fmt.Errorf("reading the use of a token: %w", err)
	}
	if attempt == "" || previous.Attempt != attemptDigest(attempt) || !f.env.Now().Before(record.Created.Add(repeatWindow)) {
		return store.Record{}, newTokenUsedError()
	}
	if previous.Key != nil {
		if err := f.endUnusedKey(ctx, *previous.Key); err != nil {
			return store.Record{}, err
		}
	}
	return f.writeUse(ctx, record, tokenUse{Attempt: previous.Attempt})
}

// endUnusedKey ends an access key that was never used. Error: RefusedError if it was used, or has ended.
func (f *Exchanger) endUnusedKey(ctx context.Context, reference model.AccessKeyReference) error {
	record, err := f.keys.Store.Get(ctx, reference.Name)
	if errors.Is(err, store.ErrNotFound) {
		return newTokenUsedError()
	}
	if err != nil {
		return fmt.Errorf("reading the access key of a token: %w", err)
	}
	key, err := f.keys.Decode(record)
	switch {
	case err != nil:
		return err
	case string(key.UID) != reference.UID || !record.Activity.IsZero() || key.DeletionTimestamp != nil:
		return newTokenUsedError()
	}
	return resource.Revoke(ctx, f.keys, token.Sweeper, key)
}

// noteKey records the access key of a token, if the request can be repeated. If a repetition has taken over, or the record cannot be
// written, noteKey ends the access key.
func (f *Exchanger) noteKey(ctx context.Context, note store.Record, key *model.OwnedAccessKey) error {
	var tokenUsed tokenUse
	if len(note.Object) > 0 {
		if err := json.Unmarshal(note.Object, &tokenUsed); err != nil {
			return fmt.Errorf("reading the use of a token: %w", err)
		}
	}
	if tokenUsed.Attempt == "" {
		return nil
	}
	tokenUsed.Key = &model.AccessKeyReference{Name: key.Name, UID: string(key.UID)}
	if _, err := f.writeUse(ctx, note, tokenUsed); err != nil {
		if revokeErr := resource.Revoke(context.WithoutCancel(ctx), f.keys, token.Sweeper, key); revokeErr != nil {
			f.env.Log.ErrorContext(ctx, "deleting the access key of a job that did not get it", "key", key.Name, "error", revokeErr)
		}
		return err
	}
	return nil
}

// writeUse updates the record of a use. Error: RefusedError if another request has changed it.
func (f *Exchanger) writeUse(ctx context.Context, note store.Record, changed tokenUse) (store.Record, error) {
	object, err := json.Marshal(changed)
	if err != nil {
		return store.Record{}, fmt.Errorf("encoding the use of a token: %w", err)
	}
	note.Object = object
	note.Revision, err = f.uses.Update(ctx, note)
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		return store.Record{}, newTokenUsedError()
	case err != nil:
		return store.Record{}, fmt.Errorf("noting the use of a token: %w", err)
	}
	return note, nil
}

// attemptDigest returns the stored form of the identifier of a request. Empty: the request has no identifier.
func attemptDigest(attempt string) string {
	if attempt == "" {
		return ""
	}
	return digest.Sum("attempt", attempt)
}

// issueKey creates the key. It returns the errors of the store and of creating an access key.
func (f *Exchanger) issueKey(ctx context.Context, rule *model.TrustRule, ownerObject *model.AccessKeyOwner, claims trustrule.Claims) (*model.OwnedAccessKey, error) {
	owner := trustrule.Owner(rule)
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: KeyPrefix, Annotations: map[string]string{}},
		Spec: model.OwnedAccessKeySpec{
			DisplayName: resource.Printable(rule.Spec.DisplayName), Description: "Made for a job by the trust rule " + rule.Name,
			Type: model.AccessKeyTypeOther, TTLSeconds: int64(trustrule.TTL(rule) / time.Second), Scope: rule.Spec.Scope.DeepCopy(),
		},
	}
	key.Spec.User, key.Spec.Team, _ = owner.Fields()
	annotateClaims(func(name, value string) { key.Annotations[name] = value }, claims)
	// The key is created with the owner's current rights.
	caller := identity.New(owner, nil)
	caller.OwnerObject = ownerObject
	keys := accesskey.ForTrustRule(f.keys, model.TrustRuleReference{Name: rule.Name, UID: string(rule.UID)})
	written, err := resource.Create(ctx, keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: "exchangetoken", Object: key})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return nil, newRefusal("the platform made no access key: ask an admin", err.Error())
	case err != nil:
		return nil, err
	}
	return written.Object, nil
}

// newTokenResponse returns the answer with an access key.
func newTokenResponse(key *model.OwnedAccessKey) TokenResponse {
	response := TokenResponse{Key: secret.String(key.Spec.Key), KeyName: key.Name, Owner: accesskey.OwnerOf(&key.Spec)}
	if end := key.Status.ExpirationTimestamp; end != nil {
		response.Expires = end.Time
	}
	return response
}

// annotateClaims sets an annotation for each claim that identifies a job.
func annotateClaims(set func(name, value string), claims trustrule.Claims) {
	for _, name := range auditedClaims {
		if text, ok := claims.Text(name); ok && text != "" {
			set(AnnotationClaim+name, resource.Printable(text))
		}
	}
}
