package frame

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// answer is the result of an operation, before it gets the form that the client asked for.
type answer struct {
	status   int
	object   any
	warnings []string
	// text is the object in JSON. Nil: it has to be encoded.
	text []byte
	// raw is an encoded body, sent instead of object with the media type mediaType.
	raw       []byte
	mediaType string
	header    http.Header
	// rest is the rest of a list whose beginning object is; nil if there is none.
	rest *resource.Rest
	// annotations are the annotations for the audit event of the request.
	annotations map[string]string
	// omitted reports whether the object is too large for the audit.
	omitted bool
	// stream is sent event by event, instead of all other fields.
	stream stream
}

// reply is an encoded response.
type reply struct {
	status int
	reason string
	header http.Header
	body   []byte
}

// write sends the response to a request. If this fails, the client is gone, and the error cannot be reported to anyone. Sent is false
// then: the server may still be sending a part of the body, although the write has returned, so that its memory must not be used again.
func (r *reply) write(w http.ResponseWriter, request *http.Request) (sent bool) {
	w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	if request.Method == http.MethodHead {
		w.WriteHeader(r.status)
		return send(w, nil) == nil
	}
	out, done := compressedBody(w, request, len(r.body))
	w.WriteHeader(r.status)
	_, err := out.Write(r.body)
	return errors.Join(err, done()) == nil
}

// challenge is what WWW-Authenticate says in a 401.
const challenge = `Bearer realm="management"`

// setHeaders sets the headers of a response.
func (f *frame) setHeaders(w http.ResponseWriter, c *call, r *reply) {
	header := w.Header()
	for name, values := range r.header {
		header[name] = values
	}
	if r.status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", challenge)
		if isOAuth(c.http) {
			header.Set("WWW-Authenticate", oauthChallenge)
		}
	}
	header.Set(requestIDHeader, c.id)
	if f.endpoint.html {
		guardPage(header)
	}
	f.addCustomHeaders(header)
}

// maxPart is the size of the parts of an answer that have a deadline each, in bytes.
const maxPart = 64 << 10

// send writes a text in parts. It returns an error if the client does not receive each of them in time. The server then closes
// the connection.
func send(w http.ResponseWriter, text []byte) error {
	control := http.NewResponseController(w)
	// A server that does not support deadlines has a limit of its own. The last deadline stays: the server sends what it
	// buffers after the handler, and the next answer on the connection begins with a new deadline.
	_ = control.SetWriteDeadline(time.Now().Add(limits.WriteDuration))
	for part := range slices.Chunk(text, maxPart) {
		_ = control.SetWriteDeadline(time.Now().Add(limits.WriteDuration))
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// render encodes an answer, or an error, in the form that the client asked for. The error that it returns is the one that
// the response reports: the given error, or the error of encoding the answer. Nil: the response reports no error.
func (f *frame) render(c *call, result *answer, err error) (*reply, error) {
	if err == nil {
		var rendered *reply
		if rendered, err = f.encode(c, result); err == nil {
			return rendered, nil
		}
	}
	status := c.statusOf(err)
	rendered := &reply{
		status: int(status.Code),
		reason: string(status.Reason),
		header: http.Header{"Content-Type": {codec.JSON}, "Cache-Control": {"no-cache, private"}},
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		rendered.header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if isOAuth(c.http) {
		oauthError(status, rendered)
		return rendered, err
	}
	// A Status holds only strings and numbers: it always marshals.
	text, _ := json.Marshal(status)
	if chosen, err := negotiate(c.http.Header.Values("Accept"), true); err == nil && chosen.yaml {
		if converted, err := yaml.JSONToYAML(text); err == nil {
			text = converted
			rendered.header.Set("Content-Type", codec.YAML)
		}
	}
	text = append(text, '\n')
	rendered.body = text
	f.errorPage(c, status, rendered)
	return rendered, err
}

// statusOf returns the Status that reports an error to the client. A failure of the platform names the request, which the
// log explains.
func (c *call) statusOf(err error) metav1.Status {
	status := apierror.From(err).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	if status.Code >= http.StatusInternalServerError {
		status.Message += " (request " + c.id + ")"
	}
	return status
}

// encode encodes an answer, and turns a panic into an error.
func (f *frame) encode(c *call, result *answer) (rendered *reply, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			c.panicked = true
			rendered, err = nil, panicked(problem)
		}
	}()
	rendered = &reply{status: result.status, header: http.Header{"Cache-Control": {"no-cache, private"}}}
	for name, values := range result.header {
		rendered.header[name] = values
	}
	addWarnings(rendered.header, result.warnings)
	if result.raw != nil {
		rendered.header.Set("Content-Type", result.mediaType)
		rendered.body = result.raw
		return rendered, nil
	}
	chosen := c.form
	if _, isStatus := result.object.(*metav1.Status); isStatus {
		// As in Kubernetes, a Status has no other form.
		chosen.as = ""
	}
	object, err := f.transform(c, result.object, chosen)
	if err != nil {
		return nil, err
	}
	if c.reveal && chosen.as == "" {
		// This converter keeps the text of secrets, unlike encoding/json.
		if object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
			return nil, fmt.Errorf("encoding the answer: %w", err)
		}
	}
	text, encoded := resource.EncodedText(object)
	if result.text != nil && c.answersFromText() {
		text, encoded = result.text, true
	}
	if !encoded {
		if text, err = json.Marshal(object); err != nil {
			return nil, fmt.Errorf("encoding the answer: %w", err)
		}
	}
	mediaType := codec.JSON
	if chosen.yaml {
		mediaType = codec.YAML
		if text, err = yaml.JSONToYAML(text); err != nil {
			return nil, fmt.Errorf("encoding the answer: %w", err)
		}
	} else if c.pretty() {
		if text, err = json.MarshalIndent(object, "", "  "); err != nil {
			return nil, fmt.Errorf("encoding the answer: %w", err)
		}
	}
	rendered.header.Set("Content-Type", mediaType)
	text = append(text, '\n')
	rendered.body = text
	return rendered, nil
}

// pretty reports whether the client asks for an indented text.
func (c *call) pretty() bool {
	pretty := c.query.Get("pretty")
	return pretty == "true" || pretty == "1"
}

// answersFromText reports whether the answer is the JSON of an object and nothing else, so that it can be made from a stored text. The audit
// needs the object if it records answers.
func (c *call) answersFromText() bool {
	return c.form == (form{}) && !c.pretty() && !c.reveal &&
		(c.recording == nil || !c.recording.decision.Level.Covers(audit.RequestResponse))
}

// Maximum sizes of one warning and of all warnings: gateways refuse responses with large headers.
const (
	maxWarningRunes  = 256
	maxWarningsBytes = 4 << 10
)

// addWarnings adds a header for each warning. It truncates long warnings, and leaves out warnings beyond the maximum size.
func addWarnings(header http.Header, warnings []string) {
	left := maxWarningsBytes
	for _, warning := range warnings {
		if runes := []rune(warning); len(runes) > maxWarningRunes {
			warning = string(runes[:maxWarningRunes]) + "..."
		}
		text, err := utilnet.NewWarningHeader(299, "-", warning)
		if err != nil {
			continue
		}
		if left -= len(text); left < 0 {
			return
		}
		header.Add("Warning", text)
	}
}

// transform turns the object into a Table or into its metadata alone, if the client asked for that.
func (f *frame) transform(c *call, answered any, chosen form) (any, error) {
	object, isObject := answered.(runtime.Object)
	if chosen.as == "" || !isObject {
		return answered, nil
	}
	if chosen.as != asTable {
		return partial(object, chosen)
	}
	table, err := f.endpoint.tabulate(object, c.include, c.now())
	if err != nil {
		return nil, err
	}
	return versioned(table, chosen.version), nil
}

// includeObject reads the query parameter includeObject: how much of each object the rows of a Table contain.
func includeObject(query url.Values) (metav1.IncludeObjectPolicy, error) {
	options := metav1.TableOptions{IncludeObject: metav1.IncludeObjectPolicy(query.Get("includeObject"))}
	if problems := metav1validation.ValidateTableOptions(&options); len(problems) > 0 {
		return "", apierror.BadRequest("Unable to convert to Table as requested: "+problems[0].Error(), problems)
	}
	return cmp.Or(options.IncludeObject, metav1.IncludeMetadata), nil
}

// versioned sets the API version of a Table and of the metadata in its rows.
func versioned(table *metav1.Table, version string) *metav1.Table {
	table.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	table.APIVersion = metav1.GroupName + "/" + version
	for _, row := range table.Rows {
		if metadata, ok := row.Object.Object.(*metav1.PartialObjectMetadata); ok {
			metadata.APIVersion = table.APIVersion
		}
	}
	return table
}

// partial returns the metadata of an object, or of every item of a list.
func partial(object runtime.Object, chosen form) (any, error) {
	version := metav1.GroupName + "/" + chosen.version
	isList := meta.IsListType(object)
	if isList != (chosen.as == asPartialList) {
		return nil, apierror.NotAcceptable(codec.JSON + ", " + codec.YAML)
	}
	if !isList {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return nil, fmt.Errorf("reading metadata: %w", err)
		}
		metadata := meta.AsPartialObjectMetadata(accessor)
		metadata.Kind, metadata.APIVersion = "PartialObjectMetadata", version
		return metadata, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.Kind, list.APIVersion = "PartialObjectMetadataList", version
	if source, err := meta.ListAccessor(object); err == nil {
		list.ResourceVersion, list.Continue = source.GetResourceVersion(), source.GetContinue()
		list.RemainingItemCount = source.GetRemainingItemCount()
	}
	err := meta.EachListItem(object, func(item runtime.Object) error {
		accessor, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		metadata := meta.AsPartialObjectMetadata(accessor)
		metadata.Kind, metadata.APIVersion = "PartialObjectMetadata", version
		list.Items = append(list.Items, *metadata)
		return nil
	})
	return list, err
}
