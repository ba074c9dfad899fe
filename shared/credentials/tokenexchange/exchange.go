// Package tokenexchange exchanges the token of a job for an access key, as a trust rule of the admins says (RFC 8693). Nothing is written, and
// no issuer is asked that no rule names, before the token is proven. Package oidc checks signatures, package trustrule conditions.
// Source: ADR-0036.
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
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin"
	"management.platform.sh/shared/signin/oidc"
	"management.platform.sh/shared/signin/upstream"
	"management.platform.sh/shared/state/store"
)

// The names that RFC 8693 gives to the grant and to kinds of tokens.
const (
	GrantType   = signin.ExchangeGrant
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
	// AnnotationClaim begins the annotations with the claims that name a job, of audit events and of access keys.
	AnnotationClaim = model.GroupName + "/claim-"
)

const (
	// maxToken is the longest token, in bytes.
	maxToken = 16 << 10
	// skew is how much the clock of an issuer may be ahead.
	skew = time.Minute
	// oldest is the age at which no rule accepts a token.
	oldest = time.Hour
	// repeatable is how long a request can be repeated whose answer did not arrive.
	repeatable = time.Minute
	// KeyPrefix begins the names of the keys.
	KeyPrefix = "job-"
)

// told are the claims that name a job.
var told = []string{
	"sub", "repository", "repository_id", "ref", "sha", "event_name", "environment", "workflow_ref", "run_id", "run_attempt", "actor",
	"project_path", "project_id", "pipeline_id", "job_id", "user_login",
}

// RefusedError says why a token is not exchanged. Source: RFC 8693, 2.2.2.
type RefusedError struct {
	// Code is that of OAuth, and Text what the job reads.
	Code, Text string
	// detail is for the audit.
	detail string
	// near says how much of a rule fits the token, for which of several refusals the job reads.
	near int
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Text }

func refuse(text, detail string) *RefusedError {
	return &RefusedError{Code: "invalid_request", Text: text, detail: detail}
}

// The values of near.
const (
	nearConditions = iota + 1
	nearAudience
	nearTime
)

func (e *RefusedError) at(near int) *RefusedError {
	e.near = near
	return e
}

// unproven is the text for all tokens of which nothing is proven: it does not tell which issuers are trusted. A job whose issuer does not
// answer must try again, so that its tokens get another answer for as long.
const unproven = "the token is not accepted: no trust rule names its issuer, or its issuer has not signed it"

// Flow exchanges tokens. It is safe for concurrent use.
type Flow struct {
	env    *platform.Environment
	jobs   *oidc.Issuers
	rules  *trustrule.Registry
	keys   *accesskey.Registry
	people *directory.Directory
	used   store.Store

	mu    sync.Mutex
	known snapshot
}

// snapshot are the enabled rules at a revision of the resource.
type snapshot struct {
	revision int64
	rules    []*model.TrustRule
}

// Open returns the exchange of an environment. Functions that use it call kinds.Join first.
//
//go:noinline
func Open(env *platform.Environment) *Flow {
	return platform.Single(env, func(env *platform.Environment) *Flow {
		return &Flow{
			env: env, jobs: oidc.OpenIssuers(env), rules: trustrule.Open(env), keys: accesskey.Open(env), people: directory.Open(env), used: signin.Records(env),
		}
	})
}

// Grant is what a job gets for its token.
type Grant struct {
	// Key is the access key, and Name that of its object.
	Key   secret.String
	Name  string
	Owner identity.Owner
	// Expires is when the key stops working.
	Expires time.Time
}

// Exchange makes an access key for the token of a job. Name is the name of the rule; empty: the only one that fits. Attempt names the
// request; empty: it has no name. Notes are for the audit, also after an error.
//
// Where the rule says that a token works once, a request can be repeated for a minute with the same attempt, until the access key of the
// first answer is used. That access key ends.
//
// Errors: RefusedError; ServiceUnavailable if the issuer does not answer; those of the store and of the keys.
func (f *Flow) Exchange(ctx context.Context, raw, name, attempt string) (granted Grant, notes map[string]string, err error) {
	notes = map[string]string{AnnotationOutcome: "refused"}
	defer func() {
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			notes[AnnotationDetail] = resource.Printable(refused.detail)
		}
	}()
	issuer, signed, isToken := glance(raw)
	if !isToken {
		return Grant{}, notes, refuse(unproven, "not a token")
	}
	notes[AnnotationIssuer] = resource.Printable(issuer)
	named, err := f.naming(ctx, issuer)
	if err != nil {
		return Grant{}, notes, err
	}
	if len(named) == 0 {
		return Grant{}, notes, refuse(unproven, "no enabled rule names the issuer")
	}
	rule, claims, err := f.fitting(ctx, named, name, raw, notes)
	if err != nil {
		return Grant{}, notes, err
	}
	notes[AnnotationRule], notes[AnnotationOwner] = rule.Name, trustrule.Owner(rule).String()
	made, err := f.owner(ctx, rule)
	if err != nil {
		return Grant{}, notes, err
	}
	noted := store.Record{}
	if trustrule.Once(rule) {
		if noted, err = f.use(ctx, issuer, signed, claims, rule, attempt); err != nil {
			return Grant{}, notes, err
		}
	}
	key, err := f.grant(ctx, rule, made, claims)
	if err != nil {
		return Grant{}, notes, err
	}
	if err := f.noteKey(ctx, noted, key); err != nil {
		return Grant{}, notes, err
	}
	notes[AnnotationOutcome], notes[AnnotationKey] = "key_made", key.Name
	return grantOf(key), notes, nil
}

// glance reads the issuer of a token, of which nothing is proven, and what is signed of it.
func glance(raw string) (issuer, signed string, isToken bool) {
	parts := strings.Split(raw, ".")
	if len(raw) > maxToken || len(parts) != 3 {
		return "", "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var said struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(payload, &said) != nil || said.Issuer == "" {
		return "", "", false
	}
	return said.Issuer, parts[0] + "." + parts[1], true
}

// naming returns the enabled rules that name an issuer. The rules are read if they have changed since the process read them.
func (f *Flow) naming(ctx context.Context, issuer string) ([]*model.TrustRule, error) {
	now := store.Ref{Resource: accesskey.TrustRules}
	read, err := f.rules.Store.GetRefs(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("reading the revision of the trust rules: %w", err)
	}
	f.mu.Lock()
	known := f.known
	f.mu.Unlock()
	if revision := read[now].Revision; known.revision != revision || revision == 0 {
		// What is written while the rules are read has a later revision, and the next exchange reads them again.
		known = snapshot{revision: revision}
		for record, err := range store.Each(ctx, f.rules.Store, store.Query{}) {
			if err != nil {
				return nil, fmt.Errorf("reading the trust rules: %w", err)
			}
			rule, err := f.rules.Decode(record)
			if err != nil {
				return nil, err
			}
			if !rule.Spec.Disabled && rule.DeletionTimestamp == nil && rule.Spec.Scope != nil {
				known.rules = append(known.rules, rule)
			}
		}
		f.mu.Lock()
		f.known = known
		f.mu.Unlock()
	}
	var named []*model.TrustRule
	for _, rule := range known.rules {
		if rule.Spec.Issuer == issuer {
			named = append(named, rule)
		}
	}
	return named, nil
}

// fitting returns the only rule that fits a token, and its claims.
func (f *Flow) fitting(
	ctx context.Context, named []*model.TrustRule, name, raw string, notes map[string]string,
) (*model.TrustRule, trustrule.Claims, error) {
	type answer struct {
		claims trustrule.Claims
		err    error
	}
	answers := map[string]answer{}
	var found *model.TrustRule
	var proven trustrule.Claims
	var why []string
	wrong := refuse(unproven, "no enabled rule of that name names the issuer")
	for _, rule := range named {
		if name != "" && rule.Name != name {
			continue
		}
		authority := string(rule.Spec.CAData)
		said, asked := answers[authority]
		if !asked {
			said.claims, said.err = f.jobs.Verify(ctx, rule.Spec.Issuer, upstream.Trust{CAData: rule.Spec.CAData}, raw)
			answers[authority] = said
		}
		switch {
		case errors.Is(said.err, oidc.ErrUnreachable):
			return nil, nil, apierror.Upstream("the issuer of the token cannot be reached: try again later").Because(said.err)
		case errors.Is(said.err, oidc.ErrExpired):
			wrong = refuse("the token has expired", "expired").at(nearTime)
			continue
		case said.err != nil:
			why = append(why, rule.Name+": "+said.err.Error())
			continue
		}
		tell(notes, said.claims)
		refused := f.fits(rule, said.claims)
		switch {
		case refused != nil:
			why = append(why, rule.Name+": "+refused.detail)
			if refused.near > wrong.near {
				wrong = refused
			}
		case found != nil:
			return nil, nil, refuse("several trust rules fit the token: name one with the parameter rule", found.Name+" and "+rule.Name+" fit")
		default:
			found, proven = rule, said.claims
		}
	}
	if found == nil {
		if len(why) > 0 {
			wrong.detail = strings.Join(why, "; ")
		}
		return nil, nil, wrong
	}
	return found, proven, nil
}

// fits tells why a rule does not accept a token whose signature is verified. Nil: it does.
func (f *Flow) fits(rule *model.TrustRule, claims trustrule.Claims) *RefusedError {
	if unmet := trustrule.Unmet(rule, claims); len(unmet) > 0 {
		return refuse("no trust rule fits the token: the audit log of the platform says why", "conditions on "+strings.Join(unmet, ", ")).at(nearConditions)
	}
	audience := rule.Spec.Audience
	if audience == "" {
		audience = signin.Address(f.env.Config())
	}
	if audience == "" {
		return refuse("the platform does not know its own address: an admin must set platformHost, or the audience of the trust rule", "no audience").at(nearAudience)
	}
	if !only(claims, audience) {
		return refuse("the token is for another audience: ask for one for "+audience+" alone", "audience").at(nearAudience)
	}
	issued, err := at(claims, "iat")
	now := f.env.Now()
	switch {
	case err != nil:
		return refuse("the token does not say when it was issued", "iat").at(nearTime)
	case issued.After(now.Add(skew)):
		return refuse("the token is not valid yet", "iat is in the future").at(nearTime)
	case !now.Before(issued.Add(trustrule.MaxTokenAge(rule))):
		return refuse("the token is too old: it must have been issued in the last "+trustrule.MaxTokenAge(rule).String(), "age").at(nearTime)
	}
	if from, err := at(claims, "nbf"); err == nil && from.After(now.Add(skew)) {
		return refuse("the token is not valid yet", "nbf is in the future").at(nearTime)
	}
	return nil
}

// only reports whether the claim aud has one audience and no other.
func only(claims trustrule.Claims, audience string) bool {
	if one, isText := claims.Text("aud"); isText {
		return one == audience
	}
	var several []string
	return json.Unmarshal(claims["aud"], &several) == nil && slices.Equal(several, []string{audience})
}

// at returns a claim that is a time.
func at(claims trustrule.Claims, name string) (time.Time, error) {
	text, _ := claims.Text(name)
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds <= 0 || seconds > 1<<40 {
		return time.Time{}, fmt.Errorf("the claim %s is no time", name)
	}
	return time.Unix(int64(seconds), 0), nil
}

// owner returns what is noted of the owner of a key of a rule. The owner must be a user or team of the platform that may use it.
func (f *Flow) owner(ctx context.Context, rule *model.TrustRule) (*model.AccessKeyOwner, error) {
	owner := trustrule.Owner(rule)
	read, err := f.people.Read(ctx, owner)
	if err != nil {
		return nil, fmt.Errorf("reading the owner of a trust rule: %w", err)
	}
	present, err := f.people.Of(ctx, owner, read)
	switch {
	case errors.Is(err, directory.ErrDisabled), errors.Is(err, directory.ErrGone), errors.Is(err, directory.ErrAbsent), err == nil && !present.Managed:
		return nil, refuse("the owner that the trust rule names may not use the platform: ask an admin", "the owner is disabled or does not exist")
	case err != nil:
		return nil, err
	}
	return &model.AccessKeyOwner{UID: present.UID, Generation: present.Generation}, nil
}

// use is the use of a token, as it is stored.
type use struct {
	// Attempt is the digest of the name of the request. Empty: it cannot be repeated.
	Attempt string `json:"attempt,omitempty"`
	// Key is the access key that was made. Nil: none is, or the request cannot be repeated.
	Key *model.AccessKeyReference `json:"key,omitempty"`
}

// use notes that a token is used, and returns the note. Of several requests with one token, one wins, but for a repetition of the same
// request. The note stays as long as a rule could accept the token.
func (f *Flow) use(
	ctx context.Context, issuer, signed string, claims trustrule.Claims, rule *model.TrustRule, attempt string,
) (store.Record, error) {
	kind := "jti"
	id, _ := claims.Text("jti")
	if id == "" {
		// A signature can have several forms. What is signed has one.
		kind, id = "signed", signed
	}
	now := f.env.Now()
	object, err := json.Marshal(use{Attempt: digestOf(attempt)})
	if err != nil {
		return store.Record{}, fmt.Errorf("encoding the use of a token: %w", err)
	}
	note := store.Record{
		Name: "job-" + signin.Digest("job", issuer, kind, id), Owner: trustrule.Owner(rule).String(), Created: now, Expires: now.Add(oldest + 2*skew), Object: object,
	}
	note.Revision, err = f.used.Create(ctx, note)
	if errors.Is(err, store.ErrExists) {
		return f.repeat(ctx, note.Name, attempt)
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("noting the use of a token: %w", err)
	}
	return note, nil
}

// errUsed refuses a token that was used before.
func errUsed() *RefusedError {
	return refuse("the token was used before: a token works once", "replay")
}

// repeat takes the use of a token over from the same request, whose answer did not arrive: its access key was never used, and ends.
func (f *Flow) repeat(ctx context.Context, name, attempt string) (store.Record, error) {
	record, err := f.used.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return store.Record{}, errUsed()
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("reading the use of a token: %w", err)
	}
	var before use
	if err := json.Unmarshal(record.Object, &before); err != nil {
		return store.Record{}, fmt.Errorf("reading the use of a token: %w", err)
	}
	if attempt == "" || before.Attempt != digestOf(attempt) || !f.env.Now().Before(record.Created.Add(repeatable)) {
		return store.Record{}, errUsed()
	}
	if before.Key != nil {
		if err := f.endUnused(ctx, *before.Key); err != nil {
			return store.Record{}, err
		}
	}
	return f.write(ctx, record, use{Attempt: before.Attempt})
}

// endUnused ends an access key that was never used. Error: RefusedError if it was used, or has ended.
func (f *Flow) endUnused(ctx context.Context, of model.AccessKeyReference) error {
	record, err := f.keys.Store.Get(ctx, of.Name)
	if errors.Is(err, store.ErrNotFound) {
		return errUsed()
	}
	if err != nil {
		return fmt.Errorf("reading the access key of a token: %w", err)
	}
	key, err := f.keys.Decode(record)
	switch {
	case err != nil:
		return err
	case string(key.UID) != of.UID || !record.Activity.IsZero() || key.DeletionTimestamp != nil:
		return errUsed()
	}
	return resource.Revoke(ctx, f.keys, signin.Sweeper, key)
}

// noteKey notes the access key that a token gave, if the request can be repeated. If a repetition has taken over, or the note cannot be
// written, the access key ends.
func (f *Flow) noteKey(ctx context.Context, note store.Record, key *model.OwnedAccessKey) error {
	var noted use
	if len(note.Object) > 0 {
		if err := json.Unmarshal(note.Object, &noted); err != nil {
			return fmt.Errorf("reading the use of a token: %w", err)
		}
	}
	if noted.Attempt == "" {
		return nil
	}
	noted.Key = &model.AccessKeyReference{Name: key.Name, UID: string(key.UID)}
	if _, err := f.write(ctx, note, noted); err != nil {
		if failed := resource.Revoke(context.WithoutCancel(ctx), f.keys, signin.Sweeper, key); failed != nil {
			f.env.Log.ErrorContext(ctx, "deleting the access key of a job that did not get it", "key", key.Name, "error", failed)
		}
		return err
	}
	return nil
}

// write changes the note of a use. Error: RefusedError if another request has changed it.
func (f *Flow) write(ctx context.Context, note store.Record, to use) (store.Record, error) {
	object, err := json.Marshal(to)
	if err != nil {
		return store.Record{}, fmt.Errorf("encoding the use of a token: %w", err)
	}
	note.Object = object
	note.Revision, err = f.used.Update(ctx, note)
	switch {
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		return store.Record{}, errUsed()
	case err != nil:
		return store.Record{}, fmt.Errorf("noting the use of a token: %w", err)
	}
	return note, nil
}

// digestOf returns what is stored of the name of a request. Empty: it has none.
func digestOf(attempt string) string {
	if attempt == "" {
		return ""
	}
	return signin.Digest("attempt", attempt)
}

// grant makes the key. Errors: those of the store and of the keys.
func (f *Flow) grant(ctx context.Context, rule *model.TrustRule, made *model.AccessKeyOwner, claims trustrule.Claims) (*model.OwnedAccessKey, error) {
	owner := trustrule.Owner(rule)
	key := &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: KeyPrefix, Annotations: map[string]string{}},
		Spec: model.OwnedAccessKeySpec{
			DisplayName: resource.Printable(rule.Spec.DisplayName), Description: "Made for a job by the trust rule " + rule.Name,
			Type: model.AccessKeyTypeOther, TTLSeconds: int64(trustrule.TTL(rule) / time.Second), Scope: rule.Spec.Scope.DeepCopy(),
		},
	}
	key.Spec.User, key.Spec.Team, _ = owner.Fields()
	tell(key.Annotations, claims)
	// The key is made with the rights of the owner as they are now.
	caller := identity.New(owner, nil)
	caller.OwnerObject = made
	keys := accesskey.ForTrustRule(f.keys, model.TrustRuleReference{Name: rule.Name, UID: string(rule.UID)})
	written, err := resource.Create(ctx, keys, resource.CreateInput[*model.OwnedAccessKey]{Caller: caller, Manager: "exchangetoken", Object: key})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return nil, refuse("the platform made no access key: ask an admin", err.Error())
	case err != nil:
		return nil, err
	}
	return written.Object, nil
}

// grantOf returns what a job gets of an access key.
func grantOf(key *model.OwnedAccessKey) Grant {
	granted := Grant{Key: secret.String(key.Spec.Key), Name: key.Name, Owner: accesskey.OwnerOf(&key.Spec)}
	if end := key.Status.ExpirationTimestamp; end != nil {
		granted.Expires = end.Time
	}
	return granted
}

// tell adds the claims that name a job to annotations.
func tell(annotations map[string]string, claims trustrule.Claims) {
	for _, name := range told {
		if text, given := claims.Text(name); given && text != "" {
			annotations[AnnotationClaim+name] = resource.Printable(text)
		}
	}
}
