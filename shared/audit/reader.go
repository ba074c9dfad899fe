package audit

import (
	"context"
	"errors"
	"time"

	"management.platform.sh/shared/model"
)

// Bounds on the times at which events are stored. Source: ADR-0034.
const (
	// storedWithin is how long after its stage an event is stored at the latest, for Range.Before.
	storedWithin = 24 * time.Hour
	// clocksWithin is how far the clocks of a process and of a data store may differ, for Range.After.
	clocksWithin = 5 * time.Minute
)

// Reader reads the events of a data store. It is for one request. Source: ADR-0034.
type Reader interface {
	// Page returns events, the newest first, and whether there are more. It returns the errors of the data store, which
	// contain no secret.
	Page(ctx context.Context, of Range) (page []Stored, more bool, err error)
	// Lookup returns the event of that name, and false if there is none.
	Lookup(ctx context.Context, name string) (Stored, bool, error)
	// Close ends the use of the data store.
	Close() error
}

// Stored is an event in a data store.
type Stored struct {
	// Name is the place of the event in the store. It is a valid name of an object, and does not change.
	Name string
	JSON []byte
}

// Range selects the events of a page. Readers apply the times coarsely: a page may have events outside of them.
type Range struct {
	// Behind is the name of the last event of the previous page. Empty: the page begins with the newest event.
	Behind string
	// After and Before bound the times of the stages. Zero: there is no bound.
	After, Before time.Time
	// Events and Bytes bound the page. A page has at least one event if any matches.
	Events, Bytes int
}

// StoredBetween returns the times between which the events of a range were stored. Zero: no bound.
func (r Range) StoredBetween() (after, before time.Time) {
	if !r.After.IsZero() {
		after = r.After.Add(-clocksWithin)
	}
	if !r.Before.IsZero() {
		before = r.Before.Add(storedWithin)
	}
	return after, before
}

// ErrUnreadable means that events cannot be read, because of the audit's configuration or of what this program
// supports. Its text gives the reason.
var ErrUnreadable = errors.New("audit events cannot be read here")

// unreadable is ErrUnreadable with a reason for the caller.
type unreadable string

func (u unreadable) Error() string { return string(u) }

func (unreadable) Is(target error) bool { return target == ErrUnreadable }

// ReadWith returns a function that opens the data store of the current configuration. It returns ErrUnreadable, with a
// text for the caller, and the errors of an opener.
func ReadWith(openers []Opener, config func() *model.ConfigStatus) func() (Reader, error) {
	return func() (Reader, error) {
		current := config().Audit
		if current == nil || !current.Enabled {
			return nil, unreadable("audit events cannot be read: the audit is off; set audit.enabled and audit.dataStoreEndpoint in the configuration")
		}
		if current.DataStoreEndpoint == "" {
			return nil, unreadable("audit events cannot be read: they are stored in files only; set audit.dataStoreEndpoint in the configuration")
		}
		if why := checkKnownURL(current); why != nil {
			return nil, unreadable("audit events cannot be read: " + why.Error())
		}
		for _, opener := range openers {
			if opener.Read == nil {
				continue
			}
			if reader, err := opener.Read(current); reader != nil || err != nil {
				return reader, err
			}
		}
		return nil, unreadable("audit events cannot be read: this deployment has no client for the store in audit.dataStoreEndpoint")
	}
}
