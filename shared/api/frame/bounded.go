package frame

import (
	"fmt"
	"maps"
	"net/http"

	"management.platform.sh/shared/model/apierror"
)

// Bounded is the ResponseWriter of a platform that takes a response in one piece, and only up to a size. It collects the
// response: a response that cannot be sent is refused before it is recorded and logged. Source: ADR-0010.
type Bounded interface {
	http.ResponseWriter
	// Fits reports whether more bytes can be sent together with the response so far, whatever they are.
	Fits(more int) bool
	// Excess returns how many bytes can be sent, if the response so far is larger; 0 if the response can be sent.
	Excess() int
	// Reset forgets the status and the body.
	Reset()
}

// room is the space for one response.
type room struct {
	// bounded is nil if responses of any size can be sent.
	bounded Bounded
	// before are the headers that the response had when it began.
	before http.Header
}

func roomOf(w http.ResponseWriter) room {
	bounded, ok := w.(Bounded)
	if !ok {
		return room{}
	}
	return room{bounded, w.Header().Clone()}
}

// clear forgets what was written.
func (r room) clear() {
	r.bounded.Reset()
	header := r.bounded.Header()
	clear(header)
	maps.Copy(header, r.before.Clone())
}

// check forgets a response that is too large, and returns the error to answer with; nil if the response can be sent.
func (r room) check() error {
	if r.bounded == nil {
		return nil
	}
	most := r.bounded.Excess()
	if most == 0 {
		return nil
	}
	r.clear()
	return apierror.TooLarge(fmt.Sprintf("the response is larger than the %d bytes that can be sent here: request less, for example with limit", most))
}

// fit returns a response that can be sent: the given one, or a refusal if that is too large.
func (f *frame) fit(w http.ResponseWriter, c *call, result *answer, reply *reply, err error) (*answer, *reply, error) {
	space := roomOf(w)
	if space.bounded == nil || space.bounded.Fits(len(reply.body)) {
		return result, reply, err
	}
	f.setHeaders(w, c, reply)
	reply.write(w, c.http)
	if over := space.check(); over != nil {
		reply, err = f.render(c, nil, over)
		return nil, reply, err
	}
	space.clear()
	return result, reply, err
}
