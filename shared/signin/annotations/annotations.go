// Package annotations collects the annotations of audit events about sign-ins. Source: ADR-0031.
package annotations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/signin/refusal"
)

// The annotations of audit events about sign-ins. Source: ADR-0031.
const (
	AnnotationConnector = model.GroupName + "/signin-connector"
	AnnotationOutcome   = model.GroupName + "/signin-outcome"
	AnnotationDetail    = model.GroupName + "/signin-detail"
	AnnotationUser      = model.GroupName + "/signin-user"
	AnnotationCreated   = model.GroupName + "/signin-created-user"
	AnnotationDropped   = model.GroupName + "/signin-dropped-groups"
	// AnnotationLeftOut names the claims of a person, and the first of the dropped groups, that exceed a limit or cannot be read.
	AnnotationLeftOut = model.GroupName + "/signin-left-out"
	// AnnotationAbsent names the settings whose claims the provider did not send.
	AnnotationAbsent  = model.GroupName + "/signin-absent-claims"
	AnnotationAdded   = model.GroupName + "/signin-groups-added"
	AnnotationRemoved = model.GroupName + "/signin-groups-removed"
	AnnotationTeams   = model.GroupName + "/signin-created-teams"
	// AnnotationLeft is the number of groups that have no team yet.
	AnnotationLeft = model.GroupName + "/signin-groups-without-team"
	// AnnotationSubject is a digest of the connector and of the ID of the person there.
	AnnotationSubject = model.GroupName + "/signin-subject"
	AnnotationKey     = model.GroupName + "/signin-key"
	// AnnotationEnded are the names of the keys that the provider has ended, sorted, with commas between them.
	AnnotationEnded = model.GroupName + "/signin-ended-keys"
	// AnnotationUnverified is "true" if the answer of the provider was accepted without a check of its signature.
	AnnotationUnverified = model.GroupName + "/signin-unverified"
)

// maxNamesBytes bounds a list of names in an annotation, in bytes.
const maxNamesBytes = 1024

// Recorder collects the annotations of the audit event of one request. A request that fails has annotations as well. It is not safe for
// concurrent use.
type Recorder struct{ annotations map[string]string }

type recorderKey struct{}

// WithRecorder returns a context whose steps write to a new recorder.
func WithRecorder(ctx context.Context) (context.Context, *Recorder) {
	recorder := &Recorder{annotations: map[string]string{}}
	return context.WithValue(ctx, recorderKey{}, recorder), recorder
}

// RecorderOf returns the recorder of a context, or one that nothing reads if the context has none, as in a scheduled run.
func RecorderOf(ctx context.Context) *Recorder {
	if recorder, ok := ctx.Value(recorderKey{}).(*Recorder); ok {
		return recorder
	}
	return &Recorder{annotations: map[string]string{}}
}

// Annotations returns a copy of the annotations.
func (r *Recorder) Annotations() map[string]string { return maps.Clone(r.annotations) }

// Set records an annotation of a step outside of the sign-in, such as a token exchange.
func (r *Recorder) Set(annotation, value string) { r.annotations[annotation] = value }

// SetConnector records the ID of the connector.
func (r *Recorder) SetConnector(id string) { r.annotations[AnnotationConnector] = id }

// SetOutcome records how the request ended. SetError overrides it.
func (r *Recorder) SetOutcome(outcome string) { r.annotations[AnnotationOutcome] = outcome }

// SetError records the class and the detail of a Refusal, or that the request failed. Nil: it changes nothing.
func (r *Recorder) SetError(err error) {
	var refusal *refusal.Refusal
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		r.SetOutcome(refusal.Class)
		if refusal.Detail != "" {
			r.annotations[AnnotationDetail] = refusal.Detail
		}
	default:
		r.SetOutcome("failed")
	}
}

// SetUser records the name of the user.
func (r *Recorder) SetUser(name string) { r.annotations[AnnotationUser] = name }

// SetCreatedUser records the name of a user that the request created.
func (r *Recorder) SetCreatedUser(name string) { r.annotations[AnnotationCreated] = name }

// SetSubject records the digest of the person's ID at the connector.
func (r *Recorder) SetSubject(digest string) { r.annotations[AnnotationSubject] = digest }

// SetKey records the name of the access key.
func (r *Recorder) SetKey(name string) { r.annotations[AnnotationKey] = name }

// SetAbsentClaims records the settings whose claims the provider did not send. An empty list records nothing.
func (r *Recorder) SetAbsentClaims(settings []string) {
	r.setList(AnnotationAbsent, settings)
}

// SetOmitted records the claims and groups that are left out. An empty list records nothing.
func (r *Recorder) SetOmitted(names []string) { r.setList(AnnotationLeftOut, names) }

// Omitted returns what SetOmitted recorded.
func (r *Recorder) Omitted() string { return r.annotations[AnnotationLeftOut] }

// SetDroppedGroups records the number of groups that are left out.
func (r *Recorder) SetDroppedGroups(count int) { r.annotations[AnnotationDropped] = fmt.Sprint(count) }

// SetGroupChanges records the groups that the user got and lost.
func (r *Recorder) SetGroupChanges(added, removed []string) {
	r.setNames(AnnotationAdded, added)
	r.setNames(AnnotationRemoved, removed)
}

// SetCreatedTeams records the teams that the request created, and the number of groups that have no team yet.
func (r *Recorder) SetCreatedTeams(names []string, groupsWithoutTeam int) {
	r.setNames(AnnotationTeams, names)
	if groupsWithoutTeam > 0 {
		r.annotations[AnnotationLeft] = strconv.Itoa(groupsWithoutTeam)
	}
}

// SetEndedKeys records the keys that a provider has ended, and their users.
func (r *Recorder) SetEndedKeys(keys, users []string) {
	r.setNames(AnnotationEnded, keys)
	r.setNames(AnnotationUser, users)
}

// SetUnverified records that the answer of the provider was accepted without a check of its signature.
func (r *Recorder) SetUnverified() { r.annotations[AnnotationUnverified] = "true" }

// setList records a list of texts.
func (r *Recorder) setList(annotation string, texts []string) {
	if len(texts) > 0 {
		r.annotations[annotation] = strings.Join(texts, ", ")
	}
}

// setNames records a list of names with commas between them, up to maxNamesBytes.
func (r *Recorder) setNames(annotation string, names []string) {
	var text strings.Builder
	for i, name := range names {
		if i > 0 {
			text.WriteByte(',')
		}
		if text.Len()+len(name) > maxNamesBytes {
			text.WriteString("and " + strconv.Itoa(len(names)-i) + " more")
			break
		}
		text.WriteString(name)
	}
	if text.Len() > 0 {
		r.annotations[annotation] = text.String()
	}
}
