// Package store is the contract for versioned state: one Store holds the objects of one resource,
// every write is all or nothing and moves one rising revision, and every change is an event whose id
// is that revision. Source: Spec 2.2 (resourceVersion), 3, 7; ADR-0002.
//
// Implementations pass the suite of package storetest; redisstore is the one that is deployed. The
// package knows nothing of keys, scopes or HTTP: a Record carries an opaque JSON object and the few
// values that it is found by.
package store

import (
	"context"
	"errors"
	"time"
)

// The errors of a Store. Callers compare with errors.Is; an implementation may wrap them to say more.
var (
	// ErrNotFound: no object has that name or digest.
	ErrNotFound = errors.New("not found")
	// ErrExists: an object has that name already.
	ErrExists = errors.New("name exists already")
	// ErrTaken: an object has that digest already.
	ErrTaken = errors.New("digest is taken already")
	// ErrConflict: the object has another revision than the one expected.
	ErrConflict = errors.New("revision has changed")
	// ErrGone: the event log no longer holds the revision asked for, or has not reached it yet.
	ErrGone = errors.New("revision is not in the event log")
	// ErrFormat: the stored record was written in a format that this build does not know.
	ErrFormat = errors.New("unknown record format")
	// ErrUnavailable: the state could not be reached in time. Whether a write was done is not known.
	ErrUnavailable = errors.New("state is unavailable")
)

// Beginning is the revision of a resource that nothing was ever written to; the first write has the next one.
// Clients may compare versions as numbers from 1 upwards: 0 means another thing in a request. Source: ADR-0002.
const Beginning int64 = 1

// Record is one object and what it is found by. A Record that was read is the caller's to change, unless it
// came with an Event.
type Record struct {
	// Name identifies the object within the resource: "name", or "namespace/name". Not empty, no
	// control characters.
	Name string
	// Revision is the revision of the last write to the object, above Beginning. Ignored by Create.
	Revision int64
	// Owner is the value that Query.Owners selects by. May be empty; no control characters.
	Owner string
	// Digest is a second, unique name for GetByDigest. Empty: none. No blanks or control characters.
	Digest string
	// Created is when the object was made, exact to the millisecond. Not zero.
	Created time.Time
	// Expires is when the object is due for removal, exact to the millisecond. Zero: never.
	Expires time.Time
	// References are the uids of the objects that this one refers to, for Query.Reference and References.
	// nil: none. Each is not empty, at most 128 bytes long and without blanks, commas and control characters.
	// A store may drop repeated ones; the order stays.
	References []string
	// Object is the object as JSON. The store neither reads nor changes it.
	Object []byte
	// Activity is the last time given to Touch, exact to the millisecond. Zero: none. Writes ignore it
	// and keep what there is; Delete removes it.
	Activity time.Time
}

// Store holds the objects of one resource. It is safe for concurrent use. Every method fails with
// ErrUnavailable within about a second when the state cannot be reached, and with ErrFormat when a
// record is newer than the build.
type Store interface {
	// Create writes a new object and returns its revision. ErrExists when the name is in use (checked
	// first), ErrTaken when the digest is.
	Create(ctx context.Context, record Record) (int64, error)

	// Get returns the object of that name. ErrNotFound.
	Get(ctx context.Context, name string) (Record, error)

	// GetByDigest returns the object with that digest, in one round trip or at most two. ErrNotFound.
	GetByDigest(ctx context.Context, digest string) (Record, error)

	// GetWith is GetByDigest that brings the object of a name along, where that takes no further round trip.
	// nil: it does, or there is none; Get knows. ErrNotFound when no object has the digest.
	GetWith(ctx context.Context, digest, name string) (Record, *Record, error)

	// Update replaces the object of record.Name if its revision is record.Revision, and returns the new
	// revision. ErrNotFound, ErrConflict, ErrTaken when the digest is another object's.
	Update(ctx context.Context, record Record) (int64, error)

	// Delete removes the object of that name if its revision is the given one, and returns the revision
	// of the removal. ErrNotFound, ErrConflict.
	Delete(ctx context.Context, name string, revision int64) (int64, error)

	// List returns one page of a resource: a snapshot of one revision.
	List(ctx context.Context, query Query) (Page, error)

	// Touch notes that the object was used at a time, and moves its due time. The zero time leaves either
	// as it is; activity never moves back. Neither the object's revision nor the event log changes. It
	// does nothing, without an error, when the object is gone or has another digest than record.
	Touch(ctx context.Context, record Record, activity, expires time.Time) error

	// Due returns up to limit objects whose Expires is not after expiredBy, or whose Created is not after
	// createdBy, the longest due first. A zero time selects nothing.
	Due(ctx context.Context, expiredBy, createdBy time.Time, limit int) ([]Record, error)

	// References returns up to limit references, of all objects, in the order of uid and name, beginning with
	// the one at a position from 0 on, and how many there are in all. The order stands still only while nobody
	// writes.
	References(ctx context.Context, from int64, limit int) ([]Reference, int64, error)

	// Events returns up to limit events after a revision, oldest first, waiting up to wait for the first
	// one. No event within that time is an empty result without an error. ErrGone when events after the
	// revision have been trimmed, or when the revision is ahead of the store. Where wait is positive the result
	// may hold fewer events than there are, and trimmed ones that the process still has: it helps those who are
	// slow. Whether the log reaches back to a revision is asked without waiting. The events are shared: neither
	// they nor their records are to be changed. Source: ADR-0007.
	Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]Event, error)

	// Trim removes the oldest events, up to the first that was not written before olderThan. Events of unknown
	// time go with those around them. Source: ADR-0007.
	Trim(ctx context.Context, olderThan time.Time) error
}

// Query selects a page. The zero value selects everything.
type Query struct {
	// Prefix selects names that begin with it, "namespace/" for one namespace.
	Prefix string
	// Owners selects objects of any of these owners. nil: of every owner; empty but not nil: none.
	Owners []string
	// Reference selects objects that refer to this uid, of every owner: Owners has to be nil then. Empty: it
	// does not matter.
	Reference string
	// After is the last name of the page before. Empty: from the first.
	After string
	// Limit is the most records to return. 0: all of them.
	Limit int
}

// Page is a part of a list, in order of names.
type Page struct {
	// Revision is the resource's revision at which the page was true.
	Revision int64
	// Records are the objects.
	Records []Record
	// Remaining is how many more the query selects after the last record.
	Remaining int64
}

// Reference says that an object refers to a uid.
type Reference struct {
	UID, Name string
}

// EventType tells what happened to an object.
type EventType string

// The types of events.
const (
	Created EventType = "created"
	Updated EventType = "updated"
	Deleted EventType = "deleted"
)

// Event is one change. Record is the object after it, for a Deleted one as it was before, with the
// revision of the removal. Previous is the object before the change; nil for a Created one.
type Event struct {
	Type     EventType
	Revision int64
	Record   Record
	Previous *Record
	// At is when the change was written, by the clock of who wrote it, exact to the millisecond. Zero: unknown.
	At time.Time
}
