package frame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

const (
	// heldBytes is the size from which a list is sent part by part, in bytes. Until then, it can begin again, and an error is
	// a Status. A list that the audit records is not larger.
	heldBytes = audit.MaxPayloadBytes
	// maxAttempts is how often a list begins of which nothing has been sent.
	maxAttempts = 3
)

// cutOff is what the log says about a list of which the client has received a part.
const cutOff = "the response was cut off"

// list sends a list that has a rest. Whole is the answer if the list is so short that nothing has been sent. Sent is the
// response if a part of it has been sent, and an error then means that the connection must be aborted: a client must not take
// a part of a list for the whole. If sent is nil, the response can report the error.
func (f *frame) list(ctx context.Context, w http.ResponseWriter, c *call, begun *answer) (whole *answer, sent *reply, err error) {
	ctx, cancel := context.WithDeadline(ctx, c.end)
	defer cancel()
	space := roomOf(w)
	out := &lister{frame: f, call: c, http: w, space: space}
	defer func() {
		if problem := recover(); problem != nil {
			c.panicked = true
			err = panicked(problem)
		}
		if isOver(ctx) && errors.Is(err, store.ErrUnavailable) {
			err = apierror.Timeout().Because(err)
		}
		if err != nil && out.sent != nil && space.bounded != nil {
			// What was written can be taken back.
			space.clear()
			out.sent = nil
		}
		sent = out.sent
	}()
	watched := c.recording.watchRemovals(ctx)
	for attempt := 1; ; attempt++ {
		whole, err = out.run(watched, begun)
		if !errors.Is(err, store.ErrGone) || out.sent != nil || !f.endpoint.lists() || attempt == maxAttempts {
			return whole, nil, err
		}
		// Nothing has been sent: the list begins again.
		if begun, err = f.operate(watched, c); err != nil || begun.rest == nil || begun.rest.Empty == nil {
			return begun, nil, err
		}
		*out = lister{frame: f, call: c, http: w, space: space}
	}
}

// endPartialList ends a request for a list of which a part has been sent. With an error, it aborts the connection.
func (f *frame) endPartialList(ctx context.Context, span trace.Span, c *call, sent *reply, err error, done func(string, int, time.Duration)) {
	// Later parts of the list may have failed after the response has begun. It is too late to refuse the request if its event
	// cannot be recorded.
	_ = f.conclude(c, &answer{omitted: true}, sent, err)
	var attrs []slog.Attr
	complete := err == nil
	switch {
	case complete:
	case errors.Is(err, errGone) || ctx.Err() != nil:
		err, attrs = nil, []slog.Attr{slog.String("ended", endedByClient)}
	default:
		sent.reason = string(apierror.From(err).Status().Reason)
		attrs = []slog.Attr{slog.String("ended", cutOff)}
	}
	took := time.Since(c.received)
	done(f.verb(c), sent.status, took)
	f.describe(span, c, sent)
	f.log(ctx, span, c, sent, err, took, attrs...)
	if !complete {
		panic(http.ErrAbortHandler)
	}
}

// lister sends the parts of one list.
type lister struct {
	frame  *frame
	call   *call
	http   http.ResponseWriter
	space  room
	layout layout
	// held is the text that has not been sent. items is whether there are objects in the list so far.
	held  []byte
	items bool
	// records is whether the audit records the list, and recorded are its objects so far.
	records  bool
	recorded []runtime.Object
	// sent is the response; nil until a part of it has been sent. out and done are the results of compressedBody.
	sent *reply
	out  io.Writer
	done func() error
}

// run reads the list to its end. It returns the whole list if no part of it has been sent.
func (l *lister) run(ctx context.Context, begun *answer) (*answer, error) {
	f, c := l.frame, l.call
	empty, err := f.encode(c, &answer{status: begun.status, object: begun.rest.Empty})
	if err != nil {
		return nil, err
	}
	if l.layout, err = newLayout(empty.body, c.form.yaml); err != nil {
		return nil, err
	}
	l.records = c.recording != nil && c.recording.decision.Level.Covers(audit.RequestResponse)
	for part := begun.object.(runtime.Object); part != nil; {
		encoded, err := f.encode(c, &answer{status: begun.status, object: part, warnings: begun.warnings, header: begun.header})
		if err != nil {
			return nil, err
		}
		if err := l.add(encoded, part); err != nil {
			return nil, err
		}
		resource.Release(part)
		if part, err = begun.rest.Next(ctx); err != nil {
			return nil, err
		}
	}
	l.held = append(l.held, l.layout.end(l.items)...)
	if l.sent == nil {
		whole := &answer{status: begun.status, warnings: begun.warnings, header: begun.header, raw: l.held, mediaType: empty.header.Get("Content-Type")}
		if l.records {
			list := begun.object.(runtime.Object)
			whole.object = list
			return whole, meta.SetList(list, l.recorded)
		}
		return whole, nil
	}
	// Every removal has been done.
	if l.space.bounded != nil {
		if err := l.finish(); err != nil {
			return nil, err
		}
		return nil, f.conclude(c, &answer{omitted: true}, l.sent, nil)
	}
	if err := f.conclude(c, &answer{omitted: true}, l.sent, nil); err != nil {
		return nil, err
	}
	return nil, l.finish()
}

// finish sends what is left. It returns an error if the client does not receive it, or if the list is too large.
func (l *lister) finish() error {
	if err := l.flush(); err != nil {
		return err
	}
	if err := l.done(); err != nil {
		return errGone
	}
	return l.space.check()
}

// add adds an encoded part of the list, and sends what has come together.
func (l *lister) add(encoded *reply, part runtime.Object) error {
	text, err := l.layout.cut(encoded.body)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		l.held = append(l.held, l.layout.begin(l.items)...)
		l.held = append(l.held, text...)
		l.items = true
	}
	if l.sent == nil && len(l.held) <= heldBytes {
		if l.records {
			items, err := meta.ExtractList(part)
			l.recorded = append(l.recorded, items...)
			return err
		}
		return nil
	}
	if l.sent == nil {
		l.recorded, l.records = nil, false
		if l.frame.endpoint.lists() && l.space.bounded == nil {
			// Nothing is sent that the audit cannot record.
			if err := l.frame.conclude(l.call, &answer{omitted: true}, encoded, nil); err != nil {
				return err
			}
		}
		l.sent = &reply{status: encoded.status, header: encoded.header}
		l.frame.setHeaders(l.http, l.call, l.sent)
		l.out, l.done = compressedBody(l.http, l.call.http, len(l.held))
		l.http.WriteHeader(encoded.status)
	}
	return l.flush()
}

// flush sends the text that is held.
func (l *lister) flush() error {
	_, err := l.out.Write(l.held)
	l.held = l.held[:0]
	if err != nil {
		return errGone
	}
	return nil
}

// layout is how an encoded list is put together from its encoded parts, which have the same metadata.
type layout struct {
	// empty is the list without objects. head is what stands before the objects, separator between two parts, and tail after
	// the objects.
	empty, head, separator, tail []byte
}

// noItems are the ends of an encoded list without objects, with what replaces them if there are objects.
var noItems = []struct{ empty, head, tail string }{
	{"[]}\n", "[", "]}\n"},
	{"null}\n", "[", "]}\n"},
	{"[]\n}\n", "[", "\n  ]\n}\n"},
	{"null\n}\n", "[", "\n  ]\n}\n"},
}

// noItemsYAML are the lines of a list without objects.
var noItemsYAML = []string{"\nitems: []\n", "\nitems: null\n", "\nrows: []\n"}

// newLayout returns the layout of a list from its encoding without objects.
func newLayout(empty []byte, yaml bool) (layout, error) {
	if yaml {
		for _, line := range noItemsYAML {
			if before, after, found := bytes.Cut(empty, []byte(line)); found {
				name, _, _ := bytes.Cut([]byte(line), []byte(" "))
				return layout{empty: empty, head: append(bytes.Clone(before), append(name, '\n')...), tail: after}, nil
			}
		}
	} else {
		for _, form := range noItems {
			if before, found := bytes.CutSuffix(empty, []byte(form.empty)); found {
				return layout{empty: empty, head: append(bytes.Clone(before), form.head...), separator: []byte(","), tail: []byte(form.tail)}, nil
			}
		}
	}
	return layout{}, fmt.Errorf("encoding a list: its form without objects is not known: %q", empty)
}

// cut returns the text of the objects of an encoded part.
func (l layout) cut(part []byte) ([]byte, error) {
	if bytes.Equal(part, l.empty) {
		return nil, nil
	}
	if len(part) < len(l.head)+len(l.tail) || !bytes.HasPrefix(part, l.head) || !bytes.HasSuffix(part, l.tail) {
		return nil, errors.New("encoding a list: the parts differ in more than their objects")
	}
	return part[len(l.head) : len(part)-len(l.tail)], nil
}

// begin returns what stands before a part with objects. Items is whether there were objects before.
func (l layout) begin(items bool) []byte {
	if items {
		return l.separator
	}
	return l.head
}

// end returns what stands after the last part.
func (l layout) end(items bool) []byte {
	if items {
		return l.tail
	}
	return l.empty
}
