// Package store is the contract for versioned state. One Store holds the objects of one resource. Every write is all
// or nothing and raises the resource's revision. Every change is an event, and its id is that revision.
// Source: Spec 2.2 (resourceVersion), 3, 7; ADR-0002.
//
// Implementations pass the suite of package storetest; redisstore is the one that is deployed. The
// package knows nothing of keys, scopes or HTTP: a Record carries an opaque JSON object and the few
// values by which it is found.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// The errors of a Store. Callers compare with errors.Is; an implementation may wrap them to say more.
var (
	// ErrNotFound means that no object has that name or digest.
	ErrNotFound = errors.New("not found")
	// ErrExists means that an object has that name already.
	ErrExists = errors.New("name already exists")
	// ErrTaken means that an object has that digest already.
	ErrTaken = errors.New("digest is already taken")
	// ErrQuota means that the owner has reached a quota. The error is a *QuotaError.
	ErrQuota = errors.New("quota is used up")
	// ErrStale means that the object that a Create requires does not have the required revision.
	ErrStale = errors.New("the required object has changed")
	// ErrConflict means that the object's revision is not the expected one.
	ErrConflict = errors.New("revision has changed")
	// ErrGone means that the event log no longer holds the requested revision, or has not reached it yet.
	ErrGone = errors.New("revision is not in the event log")
	// ErrFormat means that the stored record has a format that this build does not know.
	ErrFormat = errors.New("unknown record format")
	// ErrReadOnly means that the request is a dry run.
	ErrReadOnly = errors.New("a request that changes nothing would have written to the state")
	// ErrUnavailable means that the state could not be reached in time. A write may or may not have been done.
	ErrUnavailable = errors.New("state is unavailable")
)

type readOnlyKey struct{}

// ReadOnly returns a context in which Create, Update and Delete of a Store fail with ErrReadOnly. Dry runs use it, so
// that an operation that forgets the dry run fails instead of writing. Source: ADR-0047.
func ReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

// Writable undoes ReadOnly for writes of the platform itself besides a request, such as a key that is due.
func Writable(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, false)
}

// MayWrite returns ErrReadOnly if ReadOnly made the context.
func MayWrite(ctx context.Context) error {
	if readOnly, _ := ctx.Value(readOnlyKey{}).(bool); readOnly {
		return ErrReadOnly
	}
	return nil
}

// Beginning is the revision of a resource without any write; the first write has the next revision. It is not 0,
// because clients may compare versions as numbers from 1 upwards, and 0 has another meaning in a request.
// Source: ADR-0002.
const Beginning int64 = 1

// Record is one object and the values by which it is found. Callers may change a Record that they have read, unless
// it came with an Event.
type Record struct {
	// Name identifies the object within the resource: "name", or "namespace/name". Not empty, no
	// control characters.
	Name string
	// Revision is the revision of the last write to the object, above Beginning. Ignored by Create.
	Revision int64
	// Owner is the value by which Query.Owners selects. It may be empty; it has no control characters.
	Owner string
	// Digest is a second, unique name for GetByDigest. Empty: none. No blanks or control characters.
	Digest string
	// Created is the time at which the object was created, exact to the millisecond. Not zero.
	Created time.Time
	// Expires is the time at which the object is due for removal, exact to the millisecond. Zero: never.
	Expires time.Time
	// References are the uids of the objects that this one refers to, for Query.Reference and References. nil: none.
	// Each has 1 to 128 bytes and no blanks, commas or control characters. A store may drop repetitions; the order
	// stays.
	References []string
	// Object is the object as JSON. The store neither reads nor changes it.
	Object []byte
	// Activity is the latest time given to Touch, exact to the millisecond. Zero: none. Create and Update ignore
	// this field and keep the stored value; Delete removes it.
	Activity time.Time
	// Quota bounds what the owner may have after a Create or Update of this record. It is not stored.
	Quota Quota
	// Drawn reports whether Digest is the digest of a secret that was drawn at random for this record just now, so that
	// no other object has or had it. It is not stored.
	Drawn bool
	// Requires names an object of the same store that must have a revision for a Create of this record. It is not
	// stored.
	Requires Version
}

// Version is a revision of an object. The zero value names no object.
type Version struct {
	// Name is the name of the object. Empty: no object.
	Name     string
	Revision int64
}

// Quota bounds the objects of one owner in a resource. All objects of the owner count, whichever caller wrote them.
// Source: ADR-0020.
type Quota struct {
	// Objects is the maximum number of objects. 0: no bound.
	Objects int64
	// Bytes is the maximum size of the objects together. Each counts its Object and, once it is stored, some hundred
	// bytes for its other fields. 0: no bound.
	Bytes int64
}

const (
	QuotaObjects = "objects"
	QuotaBytes   = "bytes"
)

// QuotaError names the quota that a write would exceed. It wraps ErrQuota.
type QuotaError struct {
	Owner string
	// Quota is QuotaObjects or QuotaBytes.
	Quota string
	// Used is the amount that the owner has, Adds the amount that the write would add, and Limit the amount that the
	// owner may have.
	Used, Adds, Limit int64
}

// Error names the owner, the quota and its numbers.
func (e *QuotaError) Error() string { return e.TextFor("objects of this kind") }

// TextFor returns the text of Error with the name of the resource, for the caller.
func (e *QuotaError) TextFor(resource string) string {
	owner := e.Owner
	if owner == "" {
		owner = "objects without an owner"
	}
	text := fmt.Sprintf("the quota of %s for %s is used up: %d %s, the limit is %d", owner, resource, e.Used, e.Quota, e.Limit)
	if e.Quota == QuotaBytes {
		text += fmt.Sprintf("; this write adds %d", e.Adds)
	}
	return text
}

func (e *QuotaError) Unwrap() error { return ErrQuota }

// Store holds the objects of one resource. It is safe for concurrent use. Every method fails with
// ErrUnavailable within about a second if the state cannot be reached, and with ErrFormat if a
// record is newer than the build.
type Store interface {
	// Create writes a new object and returns its revision. Errors, in the order in which they are checked: ErrExists if the
	// name is in use, ErrStale if record.Requires does not hold, ErrTaken if the digest is in use, ErrQuota.
	Create(ctx context.Context, record Record) (int64, error)

	// Get returns the object of that name. Error: ErrNotFound.
	Get(ctx context.Context, name string) (Record, error)

	// GetByDigest returns the object with that digest, in one round trip or at most two. Error: ErrNotFound.
	GetByDigest(ctx context.Context, digest string) (Record, error)

	// GetWith is GetByDigest and also returns the existing objects of those names, and the result of GetRefs for refs,
	// if this takes no further round trip. Nil maps mean that it would take one; the next call usually does not. Error:
	// ErrNotFound if no object has the digest.
	GetWith(ctx context.Context, digest string, names []string, refs ...Ref) (Record, Companions, error)

	// GetRefs reads objects and revisions of any resources in the state of this store, in one round trip. Objects that
	// do not exist are missing in the result. Their Activity is not read. The result is not a snapshot.
	// Source: ADR-0029.
	GetRefs(ctx context.Context, refs ...Ref) (map[Ref]Record, error)

	// GetMany looks for the objects with the names, in their order, and returns the objects that exist. It looks for at least one
	// of the names, and for as many as the bounds of a page allow; read is the number of names that it looked for. GetEach looks
	// for all names.
	GetMany(ctx context.Context, names []string) (found []Record, read int, err error)

	// Update replaces the object of record.Name if its revision is record.Revision, and returns the new
	// revision. Errors: ErrNotFound, ErrConflict, ErrTaken if another object has the digest, ErrQuota. An update that
	// keeps the owner and does not make Object larger is within every quota.
	Update(ctx context.Context, record Record) (int64, error)

	// Delete removes the object of that name if its revision is the given one, and returns the revision of the removal.
	// It answers the questions of WithQuestions if this takes no further round trip. Errors: ErrNotFound, ErrConflict.
	Delete(ctx context.Context, name string, revision int64) (int64, error)

	// List returns one page of the resource: a snapshot at one revision. It holds as many records as query.Limit and the
	// bounds of a page allow, and at least one if the query selects any. Page.Remaining reports whether there are more.
	// Source: ADR-0020.
	List(ctx context.Context, query Query) (Page, error)

	// Touch records when the object was used last (activity) and when it is due for removal (expires). A zero time
	// leaves the stored value unchanged, and activity never moves back. Neither the object's revision nor the event log
	// changes. If the object is gone or its digest differs from record's, Touch does nothing and returns no error.
	Touch(ctx context.Context, record Record, activity, expires time.Time) error

	// Due returns objects that are due, as many as query.Limit and the bounds of a page allow. Objects that have been
	// due for the longest time come first. The result is empty only if no object is due after the skipped ones.
	Due(ctx context.Context, query DueQuery) ([]Record, error)

	// References returns up to limit references of all objects, at most limits.PageObjects, sorted by uid and name, and
	// the total number of references. from is the position of the first reference, counted from 0. Positions shift with
	// writes.
	References(ctx context.Context, from int64, limit int) ([]Reference, int64, error)

	// Name returns the name of the resource. No other resource of the state has the same name.
	Name() string

	// Referred reports, for each of the questions, whether an object refers to the uid, in one round trip. The
	// questions may be about any resource in the state of this store. Source: ADR-0002.
	Referred(ctx context.Context, questions []Referral) ([]bool, error)

	// Events returns up to limit events after a revision, oldest first. It waits up to wait for the first one. If no
	// event comes within that time, the result is empty and there is no error. The result may hold fewer events than
	// there are, because it has the bounds of a page. Error: ErrGone if events after the revision have been trimmed, or
	// if the revision is ahead of the store. If wait is positive, the result may include trimmed events that the
	// process still has, which helps slow readers. To learn whether the log still reaches back to a revision, call it
	// with wait 0. The events are shared: callers must change neither them nor their records. Source: ADR-0007.
	Events(ctx context.Context, after int64, limit int, wait time.Duration) ([]Event, error)

	// Trim removes the oldest events, up to the first event that was not written before olderThan. It also removes
	// events whose time is unknown among them. Source: ADR-0007.
	Trim(ctx context.Context, olderThan time.Time) error
}

// Ref names an object of a resource, or the resource itself.
type Ref struct {
	// Resource is the Name of the store of the resource.
	Resource string
	// Name is the name of the object. Empty: only the revision of the resource is read, into Record.Revision.
	Name string
}

// Companions has the records that were read in the same round trip as an object.
type Companions struct {
	// Records are the existing objects of the same resource, by name.
	Records map[string]Record
	// Refs are the objects and revisions of GetRefs.
	Refs map[Ref]Record
}

// Query selects a page. The zero value selects everything.
type Query struct {
	// Prefix selects names with this prefix, such as "namespace/" for one namespace.
	Prefix string
	// Owners selects the objects of these owners. nil: of every owner; empty but not nil: no object.
	Owners []string
	// Reference selects the objects of every owner that refer to this uid; Owners must then be nil. Empty: no
	// selection by reference.
	Reference string
	// After is the last name of the previous page. Empty: begin with the first.
	After string
	// Limit is the maximum number of records. 0, or more than limits.PageObjects: limits.PageObjects. A page may hold fewer,
	// because its records have at most limits.PageBytes together, unless the first one alone has more.
	Limit int
}

// DueQuery selects objects by their due time. It has the bounds of a page.
type DueQuery struct {
	// ByCreated selects the objects whose Created is not after Until, instead of the objects whose Expires is not.
	ByCreated bool
	// Until is the time at which the objects are due. Zero selects nothing.
	Until time.Time
	// Skip is the number of due objects to skip: objects that a caller has seen and left unchanged. Positions shift
	// with writes. Not negative.
	Skip int
	// Limit is the maximum number of records, as in Query.
	Limit int
}

// Page is a part of a list, in order of names.
type Page struct {
	// Revision is the resource's revision at which the page was read.
	Revision int64
	Records  []Record
	// Remaining is the number of selected records after the last record of this page.
	Remaining int64
}

// Each returns the records that a query selects, in order of names, and reads them page by page. Pages may be of
// different revisions: a record that is written in the meantime may be missing, and one that is removed may be there.
// The sequence ends after an error, which is an error of List.
func Each(ctx context.Context, s Store, query Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			page, err := s.List(ctx, query)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, record := range page.Records {
				query.After = record.Name
				if !yield(record, nil) {
					return
				}
			}
			if page.Remaining == 0 || len(page.Records) == 0 {
				return
			}
		}
	}
}

// GetEach returns the existing objects of names, in the order of the names, and reads them page by page. The sequence
// ends after an error, which is an error of GetMany.
func GetEach(ctx context.Context, s Store, names []string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for len(names) > 0 {
			found, read, err := s.GetMany(ctx, names)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, record := range found {
				if !yield(record, nil) {
					return
				}
			}
			names = names[read:]
		}
	}
}

// Reference says that an object refers to a uid.
type Reference struct {
	UID, Name string
}

// Referral asks whether an object of a resource refers to a uid, as Query.Reference selects them.
type Referral struct {
	// Resource is the Name of the store of the resource.
	Resource string
	UID      string
}

// Questions are answered by a Delete in the same round trip: whether any object refers to the deleted object.
type Questions struct {
	Asked []Referral
	// Answers are the results of Referred, in their order. Nil: the Delete did not answer them.
	Answers []bool
}

type questionsKey struct{}

// WithQuestions returns a context with which one Delete answers questions, if it can. The context also reaches a store inside
// of other stores, which do not have to know of it.
func WithQuestions(ctx context.Context, questions *Questions) context.Context {
	return context.WithValue(ctx, questionsKey{}, questions)
}

// QuestionsFrom returns the questions of WithQuestions; nil if there are none.
func QuestionsFrom(ctx context.Context) *Questions {
	questions, _ := ctx.Value(questionsKey{}).(*Questions)
	return questions
}

// EventType says what happened to an object.
type EventType string

const (
	Created EventType = "created"
	Updated EventType = "updated"
	Deleted EventType = "deleted"
)

// Event is one change. Record is the object after the change; for Deleted, it is the object before the removal, with
// the revision of the removal. Previous is the object before the change; nil for Created.
type Event struct {
	Type     EventType
	Revision int64
	// Follows is the previous revision: Revision - 1, or a lower one if two different servers of the state made this
	// event and the previous one. The revisions between the two are never used. Source: ADR-0041.
	Follows  int64
	Record   Record
	Previous *Record
	// At is the time of the write by the writer's clock, exact to the millisecond. Zero: unknown.
	At time.Time
}
