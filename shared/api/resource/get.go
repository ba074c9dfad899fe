package resource

import (
	"context"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// GetInput is a request to read one object.
type GetInput struct {
	Caller          identity.Caller
	Namespace, Name string
	// Prefetched has the record of that name where authentication read it in the same round trip, and records that its
	// status depends on. Get reads what is missing.
	Prefetched map[string]store.Record
	// Reveal asks for secrets in clear. The frame has checked that the caller may have them.
	Reveal bool
	// Text gets the object in place of the result where its JSON can be made from the stored text, which is faster. Nil: the
	// answer is not JSON, or the caller of Get needs the object.
	Text *Text
}

// Get returns one object, without secrets. If it fills in.Text, the result is the zero value. NotFound also for an object that
// the caller may not see. Source: ADR-0004, ADR-0028.
func Get[T Object](ctx context.Context, r *Registry[T], in GetInput) (T, error) {
	var none T
	record, err := r.fetchAhead(ctx, in.Namespace, in.Name, in.Prefetched)
	if err != nil {
		return none, err
	}
	if in.Text != nil {
		seen, err := r.sees(in.Caller, record)
		if err != nil {
			return none, err
		}
		if seen.Allowed {
			var done bool
			if *in.Text, done = r.textOf(record); done {
				return none, nil
			}
		}
	}
	return r.decodeVisible(ctx, in.Caller, record, in.Name, in.Prefetched)
}
