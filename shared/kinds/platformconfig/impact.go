package platformconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

const (
	// reachWithin bounds the time in which a write tries to reach all that it names.
	reachWithin = 5 * time.Second
	// maxKeys bounds how many keys a write reads to say which of them it ends.
	maxKeys = 2000
	// maxOwners bounds for how many owners a write looks for another key.
	maxOwners = 10
	// maxNamedKeys bounds how many ended keys a warning names.
	maxNamedKeys = 10
)

// impact is the part of a document that follows from the effects of the write.
type impact struct {
	limits keyLimits
	trial  *trial
}

// checkImpact finds out how a write affects callers, and adds its warnings to the write. Errors: Forbidden for a placeholder
// of a caller who may not reveal secrets; Invalid for a write that ends the credential of its writer, or names a sink, an
// issuer or a file that cannot be reached, unless the write is forced; the errors of the state. Source: ADR-0024.
func (s *writeStore) checkImpact(ctx context.Context, base *document, newContent *content) (impact, error) {
	if err := s.authorizePlaceholders(); err != nil {
		return impact{}, err
	}
	now := s.current.Now()
	earlier, next := s.current.loader.unsealedStatus(base.config(), s.ring), s.current.loader.unsealedStatus(newContent.config(), s.ring)
	steps := base.Limits.forConfig(earlier)
	result := impact{limits: steps.withLimits(next, now)}
	var err error
	if result.trial, err = newTrial(s.base, base, newContent, now); err != nil {
		return result, err
	}
	var problems field.ErrorList
	if !s.operator {
		if problems, err = s.checkOwnKey(ctx, earlier, next, now); err != nil {
			return result, translateError(err)
		}
		unreachable, warnings := s.writer.checkNewReachable(ctx, earlier, next)
		problems, s.warnings = append(problems, unreachable...), append(s.warnings, warnings...)
	}
	if len(problems) > 0 && s.force != "true" {
		for _, problem := range problems {
			problem.Detail += "; the annotation " + model.ForceAnnotation + ": \"true\" writes it nevertheless"
		}
		return result, apierror.Invalid(groupKind, Name, problems)
	}
	for _, problem := range problems {
		s.warnings = append(s.warnings, problem.Field+": forced, although it "+problem.Detail)
	}
	keyWarning, err := s.describeEndedKeys(ctx, steps.limits(earlier), result.limits.limits(next), now)
	if err != nil {
		return result, translateError(err)
	}
	if keyWarning != "" {
		s.warnings = append(s.warnings, keyWarning)
	}
	if next.DisableConfigEndpoint && !earlier.DisableConfigEndpoint {
		s.warnings = append(s.warnings, "status.disableConfigEndpoint: nobody can write the configuration through the API any more; an operator can, with platform configure")
	}
	return result, nil
}

// authorizePlaceholders refuses placeholders of callers who may not reveal secrets: such callers would choose where the
// values are sent.
func (s *writeStore) authorizePlaceholders() error {
	reveal := scope.Request{
		Verb: "reveal", Group: Definition.Resource.Group, Resource: Definition.Resource.Resource, Name: Name,
	}
	if len(s.placeholders) == 0 || auth.Decide(s.caller, reveal).Allowed {
		return nil
	}
	var problems field.ErrorList
	for _, path := range s.placeholders {
		problems = append(problems, field.Forbidden(path, "only callers who may reveal secrets can say where the value of a placeholder is sent"))
	}
	return apierror.Forbidden(Definition.GroupResource(), Name, apierror.Summary(problems), problems)
}

// unsealedStatus returns the effective form of a configuration in stored form. A secret that cannot be opened stays a mark.
func (l loader) unsealedStatus(config *model.Config, ring *encryption.Keyring) *model.ConfigStatus {
	_, _ = unseal(&config.Status, ring)
	effective, _, err := l.effective(&config.Status)
	if err != nil {
		// A refused version has no effect, but its fields are compared nevertheless.
		effective = &config.Status
		setDefaults(effective)
	}
	return effective
}

// checkOwnKey returns a problem if a lowered limit ends the access key of the writer, or a key to which that key is bound. A
// bound key ends together with the keys to which it is bound.
func (s *writeStore) checkOwnKey(ctx context.Context, earlier, next *model.ConfigStatus, now time.Time) (field.ErrorList, error) {
	before, after := accesskey.LimitsOf(earlier), accesskey.LimitsOf(next)
	if s.current.Keys == nil || s.caller.Key == "" || before.Max == after.Max && before.Login == after.Login {
		return nil, nil
	}
	keys := s.current.Keys()
	for record, err := range store.GetEach(ctx, keys.Store, append([]string{s.caller.Key}, accesskey.Bounding(s.caller.KeyLineage)...)) {
		if err != nil {
			return nil, fmt.Errorf("reading the access keys of the request: %w", err)
		}
		key, err := keys.Parse(record)
		if err != nil {
			return nil, err
		}
		if problem := s.endingProblem(key, record.Activity, before, after, now); problem != nil {
			return field.ErrorList{problem}, nil
		}
	}
	return nil, nil
}

// endingProblem returns the problem if a lowered limit ends a key on which the request depends. Nil: it ends no such key.
func (s *writeStore) endingProblem(key *model.OwnedAccessKey, activity time.Time, before, after accesskey.Limits, now time.Time) *field.Error {
	auth := field.NewPath("status", "auth")
	keyText := fmt.Sprintf("the access key of this request, %q", key.Name)
	if key.Name != s.caller.Key {
		keyText = "a key that the access key of this request was made with"
	}
	for _, limit := range []struct {
		path          *field.Path
		before, after accesskey.Limits
	}{
		{auth.Child("accessKeyMaxTTLSeconds"), accesskey.Limits{Max: before.Max}, accesskey.Limits{Max: after.Max}},
		{auth.Child("loginAccessKeyTTLSeconds"), accesskey.Limits{Login: before.Login}, accesskey.Limits{Login: after.Login}},
	} {
		earlier, end := accesskey.Expiry(key, activity, limit.before), accesskey.Expiry(key, activity, limit.after)
		if accesskey.Expired(end, now) && (earlier.IsZero() || end.Before(earlier)) {
			return field.Invalid(limit.path, int64((limit.after.Max + limit.after.Login).Seconds()), fmt.Sprintf(
				"would end %s, which is %s old", keyText, now.Sub(key.CreationTimestamp.Time).Round(time.Second)))
		}
	}
	return nil
}

// checkNewReachable returns a problem for each sink, issuer and file that a write adds or changes and that this process
// cannot reach, and a warning for each doubtful setting of an issuer.
func (w *Writer) checkNewReachable(ctx context.Context, earlier, next *model.ConfigStatus) (problems field.ErrorList, warnings []string) {
	earlierTexts := map[string]string{}
	withDestination := func(t text) string {
		_, sentTo := t.sentTo()
		return t.value + " " + sentTo
	}
	everyText(earlier, func(t text) string {
		earlierTexts[t.path] = withDestination(t)
		return t.value
	})
	_, problems, warnings = w.checkReachable(ctx, earlier, next, func(t text) bool { return earlierTexts[t.path] != withDestination(t) })
	return problems, warnings
}

// CheckReachable tries to reach every sink, issuer and file that the current configuration names. It returns the fields that
// it tried, in their order, a problem for each one that this process cannot reach, and the warnings that a write of the
// configuration would return about its connectors. The results contain no secret. Source: ADR-0039.
func (w *Writer) CheckReachable(ctx context.Context) (triedFields []string, problems field.ErrorList, warnings []string) {
	current := w.current.Status()
	triedFields, problems, warnings = w.checkReachable(ctx, &model.ConfigStatus{}, current, func(text) bool { return true })
	return triedFields, problems, append(signInWarnings(current, w.current.Now()), warnings...)
}

// checkReachable tries to reach the sinks of a configuration that the earlier one does not have, and the issuers and files
// in the selected texts.
func (w *Writer) checkReachable(
	ctx context.Context, earlier, next *model.ConfigStatus, isSelected func(text) bool,
) (triedFields []string, problems field.ErrorList, warnings []string) {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	status := field.NewPath("status")
	if sinks := w.current.Sinks; sinks != nil && next.Audit != nil && next.Audit.Enabled {
		triedFields = append(triedFields, status.Child("audit").String())
		problems = append(problems, sinks(ctx, earlier.Audit, next.Audit, status.Child("audit"))...)
	}
	everyText(next, func(t text) string {
		if t.value == "" || hasPlaceholder(t.value) || !isSelected(t) {
			return t.value
		}
		var err error
		isReference := false
		switch provider, isProvider := t.parents[len(t.parents)-1].Interface().(model.OIDCProvider); t.field.Tag.Get("reach") {
		case "file":
			isReference, err = true, checkReadable(t.value)
		case "issuer":
			if w.current.Issuer != nil && isProvider {
				var roots []byte
				if checkReadable(provider.CAFile) == nil {
					roots, _ = os.ReadFile(provider.CAFile)
				}
				var scopes []string
				isReference = true
				if scopes, err = w.current.Issuer(ctx, &provider, roots); err == nil {
					if warning := scopeWarning(&provider, scopes); warning != "" {
						warnings = append(warnings, status.Child(strings.TrimSuffix(t.fieldPath, "issuerUrl")+"scopes").String()+": "+warning)
					}
				}
			}
		}
		if isReference {
			triedFields = append(triedFields, status.Child(t.fieldPath).String())
		}
		if err != nil {
			problems = append(problems, field.Invalid(status.Child(t.fieldPath), field.OmitValueType{}, err.Error()))
		}
		return t.value
	})
	return triedFields, problems, warnings
}

// checkReadable returns an error if a file cannot be read.
func checkReadable(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err == nil {
		var file *os.File
		if file, err = os.Open(path); err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("cannot be read where this request was served: %w", err)
	}
	return nil
}

// describeEndedKeys returns a warning about the keys that a lowered limit ends now and within a day: how many, which ones,
// and the owners to whom no other key is left. Empty: it ends none.
func (s *writeStore) describeEndedKeys(ctx context.Context, before, after accesskey.Limits, now time.Time) (string, error) {
	lowest := after.ForType(model.AccessKeyTypeLogin)
	if s.current.Keys == nil || lowest == 0 || before.Max == after.Max && before.Login == after.Login {
		return "", nil
	}
	keys, day := s.current.Keys(), now.Add(accesskey.Grace)
	var endedNow, endedWithinDay, keyCount int
	var owners, names []string
	for keyCount < maxKeys {
		records, err := keys.Store.Due(ctx, store.DueQuery{ByCreated: true, Until: day.Add(-lowest), Skip: keyCount, Limit: limits.PageObjects})
		if err != nil {
			return "", fmt.Errorf("looking for access keys that end: %w", err)
		}
		if len(records) == 0 {
			break
		}
		keyCount += len(records)
		for _, record := range records {
			key, err := keys.Parse(record)
			if err != nil {
				continue // a key that cannot be read does not authenticate
			}
			earlier, end := accesskey.Expiry(key, record.Activity, before), accesskey.Expiry(key, record.Activity, after)
			if end.IsZero() || end.After(day) || accesskey.Expired(earlier, now) || !earlier.IsZero() && !end.Before(earlier) {
				continue
			}
			if accesskey.Expired(end, now) {
				endedNow++
			} else {
				endedWithinDay++
			}
			if len(names) < maxNamedKeys {
				names = append(names, key.Name)
			}
			if !slices.Contains(owners, record.Owner) {
				owners = append(owners, record.Owner)
			}
		}
	}
	if endedNow+endedWithinDay == 0 {
		return "", nil
	}
	var ownersWithoutKey []string
	for _, owner := range owners[:min(len(owners), maxOwners)] {
		hasOther, err := hasLastingKey(ctx, keys, owner, after, day)
		if err != nil {
			return "", err
		}
		if !hasOther {
			ownersWithoutKey = append(ownersWithoutKey, owner)
		}
	}
	text := fmt.Sprintf("status.auth: the limits on the life of access keys end %d access keys now and %d within a day, of %d owners", endedNow, endedWithinDay, len(owners))
	if keyCount >= maxKeys {
		text += fmt.Sprintf(" (of the oldest %d keys)", keyCount)
	}
	if len(ownersWithoutKey) > 0 {
		text += "; no other key is left to " + strings.Join(ownersWithoutKey, ", ")
	}
	if more := len(owners) - maxOwners; more > 0 {
		text += fmt.Sprintf("; %d owners were not looked at", more)
	}
	text += "; the keys are " + strings.Join(names, ", ")
	if more := endedNow + endedWithinDay - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text, nil
}

// hasLastingKey reports whether an owner has a key that works beyond a time. It reads one page of keys, and assumes that a
// further page has such a key.
func hasLastingKey(ctx context.Context, keys *accesskey.Registry, owner string, bounds accesskey.Limits, instant time.Time) (bool, error) {
	page, err := keys.Store.List(ctx, store.Query{Owners: []string{owner}})
	if err != nil {
		return false, fmt.Errorf("looking for other access keys: %w", err)
	}
	for _, record := range page.Records {
		if key, err := keys.Parse(record); err == nil {
			if _, err := accesskey.Usable(key, record.Activity, bounds, instant); err == nil {
				return true, nil
			}
		}
	}
	return page.Remaining > 0, nil
}
