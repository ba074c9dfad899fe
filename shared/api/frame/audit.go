package frame

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
)

// auditIDHeader carries the auditID of a request's events to the client, as in Kubernetes.
const auditIDHeader = "Audit-Id"

// managementTarget is the request target of all endpoints of this API. Source: Spec 2.7 (requestTargets).
const managementTarget = "Management"

// recording is the audit recording of one request or run, or of what it removes. Nil: there is no audit.
type recording struct {
	trail    Audit
	decision audit.Decision
	event    audit.Event
	hidden   []secret.String
	settled  bool
	// held is the audit from before the request, if the request may change it. Nil: it may not.
	held *audit.Held
	// changes are the objects that the request, run or command has removed so far, and what a command has written.
	changes []resource.Change
}

// audited reports whether the request may have events: there is an audit at present, or the request may begin one.
func (f *frame) audited() bool {
	return f.server.Audit != nil && (f.server.Audit.Enabled() || f.changesAudit())
}

// changesAudit reports whether requests to the endpoint may change the audit.
func (f *frame) changesAudit() bool {
	at := f.endpoint.Resource
	return audit.Attributes{Group: at.Group, Resource: at.Resource, Verb: f.endpoint.Verb}.Configures()
}

// bearers returns the values of the Authorization header of a request, and the bearer tokens in them.
func bearers(r *http.Request) []secret.String {
	var found []secret.String
	for _, given := range r.Header.Values("Authorization") {
		_, bearer, _ := strings.Cut(given, " ")
		found = append(found, secret.String(given), secret.String(strings.TrimSpace(bearer)))
	}
	return found
}

// credentials returns the texts of a request that must not be logged or recorded: its bearer tokens, and what Strays finds in
// its head.
func credentials(r *http.Request) []secret.String {
	found := bearers(r)
	path, _, _ := strings.Cut(cmp.Or(r.RequestURI, r.URL.EscapedPath()), "?")
	return append(found, audit.Strays(found, path, r.UserAgent())...)
}

// userOf returns a caller as the user that the audit policy matches.
func userOf(caller identity.Caller) audit.User {
	if caller.Owner == (identity.Owner{}) {
		return audit.Anonymous
	}
	return audit.User{Username: caller.Owner.Username(), Groups: caller.Groups}
}

// startRecording begins the recording of a request, with the event RequestReceived, once its caller is known. It returns an error
// if the event cannot be recorded and the policy refuses such requests.
func (f *frame) startRecording(c *call) error {
	if c.auditID == "" || c.recording != nil {
		return nil
	}
	request := audit.Attributes{
		User: userOf(c.caller), Verb: c.request.Verb, Group: c.request.Group, Resource: c.request.Resource,
		Subresource: c.request.Subresource, Namespace: c.request.Namespace, Name: c.request.Name, Path: c.request.Path,
		Target: managementTarget, Reveals: flag(c.query, "reveal"),
	}
	if request.Verb == "" {
		request.Verb = strings.ToLower(method(c.http))
	}
	decision := f.server.Audit.Evaluate(request)
	if f.endpoint.servesUnrecorded && c.caller.Admin() && !c.reveal {
		decision.Fail = false
	}
	r := &recording{trail: f.server.Audit, decision: decision, event: audit.Event{
		Level: decision.Level, AuditID: c.auditID, Verb: request.Verb, User: request.User, RequestReceivedTimestamp: metav1.NewMicroTime(c.received),
	}}
	c.recording = r
	if !r.hasEvents() {
		// What the request removes has events of its own.
		return nil
	}
	r.locate(c)
	r.event.UserAgent = c.http.UserAgent()
	if c.caller.Key != "" {
		r.event.User.UID = c.caller.Owner.String()
		r.event.User.Extra = map[string][]string{identity.ExtraAccessKey: {c.caller.Key}}
	}
	var claimed []string
	if r.event.SourceIPs, claimed = f.clientAddresses(c.http); len(claimed) > 0 {
		r.event.Annotate(audit.Claimed, strings.Join(claimed, ","))
	}
	if request.Resource != "" {
		r.event.ObjectRef = &audit.ObjectReference{
			Resource: request.Resource, Namespace: request.Namespace, Name: request.Name, APIGroup: request.Group,
			APIVersion: f.endpoint.Resource.Version, Subresource: request.Subresource,
		}
	}
	r.event.Annotate(audit.RequestID, c.id)
	if request.Configures() {
		r.held = f.server.Audit.Hold()
	}
	return r.record(audit.RequestReceived)
}

// hasEvents reports whether the request itself has events.
func (r *recording) hasEvents() bool { return r.decision.Level.Covers(audit.Metadata) }

// locate adds the path and query of the request to its event, and notes what must not be recorded of them.
func (r *recording) locate(c *call) {
	path := c.http.URL.Path
	// Below a base path, http.URL has only the rest of the path.
	if whole, _, _ := strings.Cut(c.http.RequestURI, "?"); strings.HasPrefix(whole, "/") {
		path = whole
	}
	r.event.RequestURI = audit.URI(path, c.http.URL.RawQuery)
	r.hidden = append(r.hidden, credentials(c.http)...)
}

// maxClaimed is the number of claimed addresses that an event contains.
const maxClaimed = 16

// clientAddresses returns the address of the client of a request, and the addresses that only the client claims.
func (f *frame) clientAddresses(r *http.Request) (verified, claimed []string) {
	client := f.client(r)
	if client != "" {
		verified = []string{client}
	}
	given := slices.Concat(r.Header.Values("X-Forwarded-For"), r.Header.Values("X-Real-Ip"), []string{r.RemoteAddr})
	for text := range strings.SplitSeq(strings.Join(given, ","), ",") {
		address := parseAddress(strings.TrimSpace(text))
		text = address.String()
		if address.IsValid() && text != client && !slices.Contains(claimed, text) && len(claimed) < maxClaimed {
			claimed = append(claimed, text)
		}
	}
	return verified, claimed
}

// release gives back what the recording of a change of the configuration holds.
func (r *recording) release() {
	if r != nil && r.held != nil {
		r.held.Release()
	}
}

// annotateDecision annotates the event with the decision of the authorization. Err is nil if the request is allowed.
func (r *recording) annotateDecision(err error) {
	if r == nil || !r.hasEvents() {
		return
	}
	if err != nil {
		r.event.Annotate(audit.AuthorizationDecision, "forbid")
		return
	}
	r.event.Annotate(audit.AuthorizationDecision, "allow")
}

// record records the event of a stage.
func (r *recording) record(stage audit.Stage) error {
	if !r.decision.Records(stage) {
		return nil
	}
	event := r.event
	event.Stage, event.StageTimestamp = stage, metav1.NowMicro()
	if stage == audit.RequestReceived {
		event.StageTimestamp = event.RequestReceivedTimestamp
		// Later stages add annotations.
		event.Annotations = map[string]string{}
		for _, name := range []string{audit.RequestID, audit.Claimed} {
			if value := r.event.Annotations[name]; value != "" {
				event.Annotations[name] = value
			}
		}
	}
	entry := audit.Entry{Decision: r.decision, Event: &event}
	if r.held != nil && stage != audit.RequestReceived {
		return r.conclusive(entry)
	}
	return r.send(entry)
}

// conclusive records events where they were recorded before a change of the configuration, and where they are recorded now.
func (r *recording) conclusive(events ...audit.Entry) error {
	return asUnrecorded(r.held.Record(events, r.hidden...))
}

func (r *recording) send(events ...audit.Entry) error {
	return asUnrecorded(r.trail.Record(events, r.hidden...))
}

// asUnrecorded returns the error for the caller, if an event could not be recorded.
func asUnrecorded(err error) error {
	if err != nil {
		return apierror.Unrecorded().Because(err)
	}
	return nil
}

// watchRemovals returns a context whose operations report the objects that they remove to the recording.
func (r *recording) watchRemovals(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	return resource.ObserveRemovals(ctx, r.addChange)
}

func (r *recording) addChange(change resource.Change) { r.changes = append(r.changes, change) }

// changesPerBatch is the number of changes that are recorded at once.
const changesPerBatch = 500

// recordChanges records the events of changes.
func (r *recording) recordChanges(changes []resource.Change) error {
	var unrecorded error
	for batch := range slices.Chunk(changes, changesPerBatch) {
		if events := r.eventsOf(batch); len(events) > 0 {
			unrecorded = cmp.Or(unrecorded, r.send(events...))
		}
	}
	return unrecorded
}

// eventsOf returns an event for each object that was written or removed, if the policy wants it. The user of the event is the caller
// who changed the object. For an object that was removed in consequence of another removal, it is the garbage collector, no matter
// whether the object was removed during the request or by the schedule.
func (r *recording) eventsOf(changes []resource.Change) []audit.Entry {
	var events []audit.Entry
	for _, change := range changes {
		if entry, recorded := r.changeEvent(change); recorded {
			events = append(events, entry)
		}
	}
	return events
}

// changeEvent returns the event of a change. Not recorded: the policy wants none.
func (r *recording) changeEvent(change resource.Change) (entry audit.Entry, recorded bool) {
	request := audit.Attributes{
		User: r.event.User, Verb: change.Verb, Group: change.Resource.Group, Resource: change.Resource.Resource,
		Namespace: change.Namespace, Name: change.Name, Target: managementTarget,
	}
	if change.Consequence {
		request.User = systemUser("collectgarbage")
	}
	decision := r.trail.Evaluate(request)
	if !decision.Records(audit.ResponseComplete) {
		return audit.Entry{}, false
	}
	event := &audit.Event{
		Level: decision.Level, AuditID: uuid.NewString(), Stage: audit.ResponseComplete, RequestURI: r.event.RequestURI,
		Verb: request.Verb, User: request.User, RequestReceivedTimestamp: r.event.RequestReceivedTimestamp, StageTimestamp: metav1.NowMicro(),
		ResponseStatus: statusOf(nil),
		ObjectRef: &audit.ObjectReference{
			Resource: request.Resource, Namespace: request.Namespace, Name: request.Name, UID: string(change.UID),
			APIGroup: request.Group, APIVersion: change.Resource.Version,
		},
	}
	event.Annotate(audit.Cause, r.event.AuditID)
	if change.Object != nil && decision.Level.Covers(audit.Request) {
		text, why := audit.Object(change.Object)
		if why != "" {
			event.Annotate(audit.RequestOmitted, why)
		}
		event.RequestObject = text
	}
	return audit.Entry{Decision: decision, Event: event}, true
}

// systemUser returns the user of a function that the platform itself runs.
func systemUser(function string) audit.User {
	caller := identity.New(identity.Owner{Kind: identity.Subject, Name: function}, []string{identity.Admins})
	user := userOf(caller)
	user.Username, user.UID = function, caller.Owner.String()
	return user
}

// recordStreamStart records that a streamed response is about to begin.
func (f *frame) recordStreamStart(c *call) error {
	if c.recording == nil {
		return nil
	}
	c.recording.event.ResponseStatus = &metav1.Status{Code: http.StatusOK}
	return c.recording.record(audit.ResponseStarted)
}

// conclude records the outcome of a request before its response is sent. If it returns an error, the response must report
// that error instead.
func (f *frame) conclude(c *call, result *answer, reply *reply, err error) error {
	// Requests that were refused before their caller was known are recorded as well.
	if observed := f.startRecording(c); observed != nil {
		return observed
	}
	r := c.recording
	if r == nil || r.settled {
		return nil
	}
	r.settled = true
	// The event of the request itself covers the object that the request names. A review names none.
	changes := r.changes
	if f.endpoint.Verb != "deletecollection" && f.endpoint.isStored {
		changes = slices.DeleteFunc(changes, func(change resource.Change) bool { return !change.Consequence })
	}
	if !r.hasEvents() {
		if len(changes) > 0 {
			r.locate(c)
		}
		return r.recordChanges(changes)
	}
	unrecorded := r.recordChanges(changes)
	status := &metav1.Status{Code: int32(reply.status)}
	if unrecorded != nil {
		err, status.Code = unrecorded, http.StatusServiceUnavailable
	}
	if err != nil {
		reported := apierror.From(err).Status()
		status.Status, status.Reason, status.Message = reported.Status, reported.Reason, reported.Message
	}
	r.event.ResponseStatus = status
	stage := audit.ResponseComplete
	if c.panicked {
		stage = audit.Panic
	}
	if result != nil {
		for name, value := range result.annotations {
			r.event.Annotate(name, value)
		}
	}
	f.requestObject(c, r, err)
	f.responseObject(c, r, result, err)
	return cmp.Or(unrecorded, r.record(stage))
}

// requestObject adds the request body to the event, without its secrets. It also notes the secrets, so that they are hidden
// wherever else they occur in the event.
func (f *frame) requestObject(c *call, r *recording, err error) {
	if len(c.sent) == 0 || err == nil && !r.decision.Level.Covers(audit.Request) && !f.mayHide(c.sent) {
		return
	}
	text, form, why := c.sent, audit.Whole, ""
	media := c.http.Header.Get("Content-Type")
	if f.endpoint.Verb == "patch" {
		if parsed, _, err := mime.ParseMediaType(media); err == nil {
			media = parsed
		}
		switch resource.PatchType(media) {
		case resource.JSONPatch:
			form, media = audit.Operations, codec.JSON
		case resource.ApplyPatch:
			media = codec.YAML
		default:
			media = codec.JSON
		}
	}
	body, unreadable := codec.Read(media, text)
	if unreadable != nil {
		why = "decode-failed"
	}
	if why == "" {
		var hidden []secret.String
		text, hidden, why = audit.Body(f.endpoint.requestType(), form, body.JSON)
		// Secrets are hidden even if the level includes no object, since an error may quote the body.
		r.hidden = append(r.hidden, hidden...)
	}
	switch {
	case !r.decision.Level.Covers(audit.Request):
	case why != "":
		r.event.Annotate(audit.RequestOmitted, why)
	default:
		r.event.RequestObject = text
	}
}

// mayHide reports whether a body that the operation has accepted may have a secret.
func (f *frame) mayHide(text []byte) bool {
	// YAML writes the names of fields in many ways.
	return !json.Valid(text) || audit.MayHide(f.endpoint.requestType(), text)
}

// requestType returns the type of the object that requests send, or that their patch is for.
func (e *Endpoint) requestType() reflect.Type {
	if e.Verb == "delete" || e.Verb == "deletecollection" {
		return reflect.TypeFor[metav1.DeleteOptions]()
	}
	return e.objectType
}

// responseObject adds the response body to the event, without its secrets.
func (f *frame) responseObject(c *call, r *recording, result *answer, err error) {
	if err == nil && result != nil && result.object != nil && r.event.ObjectRef != nil {
		// The request that creates an object may leave its name to the server.
		if object, accessErr := meta.Accessor(result.object); accessErr == nil && f.endpoint.isStored {
			ref := *r.event.ObjectRef
			ref.Name, ref.UID, ref.ResourceVersion = object.GetName(), string(object.GetUID()), object.GetResourceVersion()
			r.event.ObjectRef = &ref
		}
	}
	if !r.decision.Level.Covers(audit.RequestResponse) || f.endpoint.Resource.Resource == "" {
		return
	}
	var object any
	switch {
	case err != nil:
		status := apierror.From(err).Status()
		status.Kind, status.APIVersion = "Status", "v1"
		object = &status
	case flag(c.query, "reveal"):
		r.event.Annotate(audit.ResponseOmitted, "revealed")
		return
	case result != nil && result.omitted:
		r.event.Annotate(audit.ResponseOmitted, "too-large")
		return
	case result == nil || result.object == nil:
		return
	default:
		object = result.object
	}
	text, why := audit.Object(object)
	if why != "" {
		r.event.Annotate(audit.ResponseOmitted, why)
		return
	}
	r.event.ResponseObject = text
}

// scheduledPath is the path that the events of scheduled runs give. It serves no requests.
const scheduledPath = "/schedules/"

// scheduled begins the recording of a run, with the event RequestReceived. An error means that the function must not run.
// Operations in the returned context report the objects that they remove to the recording.
func (s *Server) scheduled(ctx context.Context, name string, started time.Time) (context.Context, *recording, error) {
	if s.Audit == nil || !s.Audit.Enabled() {
		return ctx, nil, nil
	}
	r := s.running(systemUser(name), scheduledPath+name, started)
	return r.watchRemovals(ctx), r, r.record(audit.RequestReceived)
}

// running returns the recording of work without a request.
func (s *Server) running(user audit.User, path string, started time.Time) *recording {
	request := audit.Attributes{User: user, Verb: "run", Path: path, Target: managementTarget}
	decision := s.Audit.Evaluate(request)
	return &recording{trail: s.Audit, decision: decision, event: audit.Event{
		Level: decision.Level, AuditID: uuid.NewString(), RequestURI: request.Path, Verb: request.Verb, User: request.User,
		RequestReceivedTimestamp: metav1.NewMicroTime(started),
	}}
}

// concludeRun records an event for each object that a run removed, and one for the outcome of the run.
func (r *recording) concludeRun(stage audit.Stage, attrs []slog.Attr, err error) error {
	if r == nil {
		return nil
	}
	unrecorded := r.recordChanges(r.changes)
	r.event.ResponseStatus = statusOf(err)
	for _, attr := range attrs {
		r.event.Annotate(model.GroupName+"/"+attr.Key, attr.Value.String())
	}
	return cmp.Or(unrecorded, r.record(stage))
}
