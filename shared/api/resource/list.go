package resource

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource/continuetoken"
	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/api/resource/snapshot"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// ListInput is a request for a page of objects.
type ListInput struct {
	Caller identity.Caller
	// Namespace selects one namespace; empty selects all.
	Namespace string
	// Parent is the name of the object at whose subresource the request is; empty for a request to the resource itself. List does not look
	// at it.
	Parent string
	// Owner selects the objects of one owner, as Rules.Index returns it; empty selects all. It is for kinds without Visibility.
	Owner string
	// Labels and Fields select objects; nil or empty selects all. Fields may only name what the resource offers.
	Labels labels.Selector
	Fields fields.Selector
	// Limit is the maximum number of objects in the page, which may hold fewer. 0: the whole list.
	Limit int64
	// Continue is the token of the page before, and ContinueKeys seal the tokens. Nil: the tokens are for this process.
	Continue     string
	ContinueKeys *continuetoken.Keys
	// ResourceVersion is the oldest acceptable state; with Exact it is the only one. Empty: the newest.
	ResourceVersion string
	Exact           bool
	// Reveal asks for secrets in clear. The frame has checked that the caller may have them.
	Reveal bool
	// Rest gets the rest of a list without a limit, if the list is longer than a page of the state. The answer is then its
	// beginning. Nil: the answer is the whole list.
	Rest *Rest
	// Text asks for lists of which EncodedText returns the JSON, made from the stored texts where that is possible.
	Text bool
}

// Rest is the rest of a list, which is read when it is asked for. The zero value says that there is none. It is not safe for
// concurrent use, and needs no closing.
type Rest struct {
	// Empty is the list without its objects. Nil: there is no rest.
	Empty runtime.Object
	next  func(context.Context) (runtime.Object, error)
}

// Next returns the next part of the list, perhaps without objects; nil after the last part. Each part has the metadata of the
// list. Errors: an error that wraps store.ErrGone if the event log no longer reaches back to the beginning of the list, so
// that the list cannot be completed; ServiceUnavailable; the errors of the context.
func (r *Rest) Next(ctx context.Context) (runtime.Object, error) { return r.next(ctx) }

// maxLimit is the largest limit: more objects than there can be, in 31 bits.
const maxLimit = 1 << 30

// maxAttempts is how often a list begins if the event log does not reach back to its beginning.
const maxAttempts = 3

// List returns the objects that the caller may see, in order of their names, as a list object: one consistent snapshot.
// With a limit, it returns one page of them. Every page has the resourceVersion of the first page, so that a watch from
// there misses nothing. A page may hold fewer than Limit objects and still not be the last one, because of its size or because
// the selectors select few objects: only an empty continue token ends a list.
//
// Errors: BadRequest for an unsupported field selector, and for a resourceVersion or continue token that cannot be read
// or belongs to another query; Expired for an exact resourceVersion of the past, and if others write so much meanwhile that
// the list cannot be completed; Timeout for a resourceVersion of the future. Source: Spec 2.2; ADR-0004, ADR-0020.
func List[T Object](ctx context.Context, r *Registry[T], in ListInput) (runtime.Object, error) {
	for attempt := 1; ; attempt++ {
		l, err := r.beginList(ctx, in, false)
		if err != nil {
			return nil, err
		}
		if in.Limit > 0 {
			return l.page(ctx)
		}
		if in.Rest != nil && !l.reader.Done {
			return l.part(ctx, in.Rest)
		}
		whole, err := l.whole(ctx)
		if !errors.Is(err, store.ErrGone) || attempt == maxAttempts {
			return whole, err
		}
	}
}

// listing is a list that is being read.
type listing[T Object] struct {
	registry *Registry[T]
	in       ListInput
	reader   *snapshot.Reader
	// records are the records of the page that was read last.
	records []store.Record
	// meta is the metadata of the list, and fingerprint the fingerprint of the request.
	meta        metav1.ListMeta
	fingerprint string
	// ended are records of objects whose deletion is complete, and endedBytes is their size.
	ended      []store.Record
	endedBytes int
	// visit is called with the objects of each page. Nil: nothing is called.
	visit func(context.Context, []T) error
	// spliced has room for the head of a list and then the texts of the page that was read last, each with a comma before it.
	spliced []byte
}

// entry is an object of a list: its JSON if that was made from the stored text, or else the object.
type entry[T Object] struct {
	text   []byte
	object T
}

// beginList checks the request for a list and reads the first page. With latest, each further page shows the state at
// its own revision.
func (r *Registry[T]) beginList(ctx context.Context, in ListInput, latest bool) (*listing[T], error) {
	if in.Labels == nil {
		in.Labels = labels.Everything()
	}
	if in.Fields == nil {
		in.Fields = fields.Everything()
	}
	if in.ContinueKeys == nil {
		in.ContinueKeys = continuetoken.ProcessKeys()
	}
	var err error
	if in.Fields, err = r.readFields(in.Fields); err != nil {
		return nil, err
	}
	query := store.Query{Owners: r.owners(in.Caller), Limit: int(min(in.Limit, maxLimit))}
	if in.Owner != "" {
		// Objects that the caller does not see are left out as in every list.
		query.Owners = []string{in.Owner}
	}
	if in.Namespace != "" {
		query.Prefix = in.Namespace + "/"
	}
	l := &listing[T]{registry: r, in: in, fingerprint: r.fingerprint(in, query)}
	var from continuetoken.Position
	if in.Continue != "" {
		var err error
		if from, err = in.ContinueKeys.Open(ctx, in.Continue, l.fingerprint); err != nil {
			return nil, err
		}
		query.After = from.After
	}
	l.reader = snapshot.New(r.Store, query)
	l.reader.Latest = latest
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	if err := checkRevision(in, l.reader.Revision); err != nil {
		return nil, err
	}
	l.meta.ResourceVersion = strconv.FormatInt(cmp.Or(from.Revision, l.reader.Revision), 10)
	return l, nil
}

// read reads the next page of the state.
func (l *listing[T]) read(ctx context.Context) (err error) {
	if l.records, err = l.reader.Next(ctx); errors.Is(err, store.ErrGone) {
		return apierror.Expired("others write so much that the list cannot be completed: request pages with limit").Because(err)
	}
	if l.in.Text {
		size := headRoom + len("]}\n")
		for _, record := range l.records {
			size += len(record.Object) + addedBytes
		}
		l.spliced = textBuffer(size)[:headRoom]
	}
	return l.registry.translate(err, "")
}

// headRoom is the room for what a list has before its first object. A longer head costs a copy of the list.
const headRoom = 2048

// textBuffers are buffers for the texts of lists, which are not used any more when the list has been sent.
var textBuffers sync.Pool // *[]byte

// textBuffer returns an empty buffer for a number of bytes.
func textBuffer(size int) []byte {
	if used, _ := textBuffers.Get().(*[]byte); used != nil && cap(*used) >= size {
		return (*used)[:0]
	}
	return make([]byte, 0, size)
}

// releaseBuffer gives a buffer back. Nothing in it is used after that.
func releaseBuffer(buffer []byte) {
	if cap(buffer) > 0 {
		textBuffers.Put(&buffer)
	}
}

// maxEnded bounds the removals that a list does in passing.
const maxEnded = 16

// show returns the object of a record. Shown is whether the caller may see it and has selected it.
func (l *listing[T]) show(record store.Record) (one entry[T], shown bool, err error) {
	r := l.registry
	if seen, err := r.sees(l.in.Caller, record); err != nil || !seen.Allowed {
		return one, false, err
	}
	if l.in.Text && l.in.Labels.Empty() && l.in.Fields.Empty() {
		end := len(l.spliced)
		if l.spliced, shown = r.splice(append(l.spliced, ','), record); shown {
			return entry[T]{text: l.spliced[end+1:]}, true, nil
		}
		l.spliced = l.spliced[:end]
	}
	object, err := r.Decode(record)
	if err != nil {
		return one, false, err
	}
	if gc.Deleted(object, r.Now()) {
		if l.endedBytes += len(record.Object); len(l.ended) < maxEnded && l.endedBytes <= limits.PageBytes {
			l.ended = append(l.ended, record)
		}
		return one, false, nil
	}
	return entry[T]{object: object}, r.matchesSelectors(l.in, object), nil
}

// pick returns the objects to show of the page that was read last.
func (l *listing[T]) pick(ctx context.Context) ([]entry[T], error) {
	var entries []entry[T]
	for _, record := range l.records {
		one, shown, err := l.show(record)
		if err != nil {
			return nil, err
		}
		if shown {
			entries = append(entries, one)
		}
	}
	l.records = nil
	return entries, l.complete(ctx, entries)
}

// complete completes the objects of a page.
func (l *listing[T]) complete(ctx context.Context, entries []entry[T]) error {
	items := objectsOf(entries)
	if err := l.registry.translate(l.registry.relate(ctx, items, nil), ""); err != nil {
		return err
	}
	if l.visit != nil {
		return l.visit(ctx, items)
	}
	return nil
}

// objectsOf returns the entries that are objects.
func objectsOf[T Object](entries []entry[T]) []T {
	var items []T
	for _, each := range entries {
		if each.text == nil {
			items = append(items, each.object)
		}
	}
	return items
}

// list returns a list with the metadata of the list.
func (l *listing[T]) list(entries []entry[T]) (runtime.Object, error) {
	if !l.in.Text {
		return l.listOf(objectsOf(entries)), nil
	}
	empty := l.listOf(nil)
	text, err := json.Marshal(empty)
	if err != nil {
		return nil, fmt.Errorf("encoding a list: %w", err)
	}
	text, found := bytes.CutSuffix(text, []byte("[]}"))
	if !found {
		return nil, errors.New("encoding a list: its objects are not its last member")
	}
	list := &listText{}
	list.SetGroupVersionKind(empty.GetObjectKind().GroupVersionKind())
	if l.inPlace(entries) && len(text) <= headRoom {
		begin := headRoom - len(text)
		copy(l.spliced[begin:], text)
		l.spliced[headRoom] = '['
		l.spliced = append(l.spliced, "]}"...)
		list.json, list.buffer, l.spliced = l.spliced[begin:], l.spliced, nil
		return list, nil
	}
	size := len(text) + len("[]}\n")
	for _, each := range entries {
		size += len(each.text) + 1
	}
	whole := append(append(make([]byte, 0, size), text...), '[')
	for i, entry := range entries {
		if entry.text == nil {
			if entry.text, err = json.Marshal(entry.object); err != nil {
				return nil, fmt.Errorf("encoding an object of a list: %w", err)
			}
		}
		if i > 0 {
			whole = append(whole, ',')
		}
		whole = append(whole, entry.text...)
	}
	whole = append(whole, "]}"...)
	list.json = whole
	releaseBuffer(l.spliced)
	l.spliced = nil
	return list, nil
}

// inPlace reports whether the entries are the texts of the page that was read last, all of them and nothing else: the list begins with
// the first of them, and has their length. The page is then the text of the list.
func (l *listing[T]) inPlace(entries []entry[T]) bool {
	begin := headRoom + len(",")
	if len(entries) == 0 || entries[0].text == nil || len(l.spliced) <= begin || &entries[0].text[0] != &l.spliced[begin] {
		return false
	}
	size := headRoom
	for _, each := range entries {
		if each.text == nil {
			return false
		}
		size += len(",") + len(each.text)
	}
	return size == len(l.spliced)
}

// listOf returns a list object with the metadata of the list.
func (l *listing[T]) listOf(items []T) runtime.Object {
	definition := l.registry.Definition
	list := definition.NewList(l.meta, items)
	list.GetObjectKind().SetGroupVersionKind(definition.Resource.GroupVersion().WithKind(definition.Kind + "List"))
	return list
}

// finish removes objects whose deletion is complete. It runs after the last page, because a removal changes the revision.
func (l *listing[T]) finish(ctx context.Context) {
	for _, record := range l.ended {
		l.registry.removeDeleted(ctx, record)
	}
}

// part returns the first part of the list, and the rest.
func (l *listing[T]) part(ctx context.Context, rest *Rest) (runtime.Object, error) {
	entries, err := l.pick(ctx)
	if err != nil {
		return nil, err
	}
	*rest = Rest{Empty: l.listOf(nil), next: func(ctx context.Context) (runtime.Object, error) {
		if l.reader.Done {
			l.finish(ctx)
			return nil, nil
		}
		if err := l.read(ctx); err != nil {
			return nil, err
		}
		entries, err := l.pick(ctx)
		if err != nil {
			return nil, err
		}
		return l.list(entries)
	}}
	return l.list(entries)
}

// whole returns the whole list.
func (l *listing[T]) whole(ctx context.Context) (runtime.Object, error) {
	var all []entry[T]
	for {
		entries, err := l.pick(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
		if l.reader.Done {
			l.finish(ctx)
			return l.list(all)
		}
		if err := l.read(ctx); err != nil {
			return nil, err
		}
	}
}

// page returns one page of the list. Where selectors leave room, it reads further pages of the state.
func (l *listing[T]) page(ctx context.Context) (runtime.Object, error) {
	var items []entry[T]
	// last is the name with which the page ends, and remaining the number of records after it.
	last, size := "", 0
	var remaining int64
	for pages := 1; ; pages++ {
		for i, record := range l.records {
			entry, shown, err := l.show(record)
			if err != nil {
				return nil, err
			}
			if !shown {
				last = record.Name
				continue
			}
			if size += len(record.Object); size > limits.PageBytes && len(items) > 0 {
				return l.ending(ctx, items, last, l.reader.Remaining+int64(len(l.records)-i))
			}
			last = record.Name
			if items = append(items, entry); int64(len(items)) == l.in.Limit {
				return l.ending(ctx, items, last, l.reader.Remaining+int64(len(l.records)-i-1))
			}
		}
		if l.reader.Done {
			return l.ending(ctx, items, last, 0)
		}
		last, remaining = l.reader.Query.After, l.reader.Remaining
		if pages == limits.ListPages {
			return l.ending(ctx, items, last, remaining)
		}
		l.reader.Query.Limit = limits.PageObjects
		if err := l.read(ctx); errors.Is(err, store.ErrGone) {
			// The next request begins with a snapshot of its own.
			return l.ending(ctx, items, last, remaining)
		} else if err != nil {
			return nil, err
		}
	}
}

// ending returns a page that ends with a name, with the number of records that follow.
func (l *listing[T]) ending(ctx context.Context, items []entry[T], last string, remaining int64) (runtime.Object, error) {
	if err := l.complete(ctx, items); err != nil {
		return nil, err
	}
	l.finish(ctx)
	if remaining > 0 {
		// begin has formatted the number.
		revision, _ := strconv.ParseInt(l.meta.ResourceVersion, 10, 64)
		var err error
		if l.meta.Continue, err = l.in.ContinueKeys.Seal(ctx, continuetoken.Position{Revision: revision, After: last, Query: l.fingerprint}); err != nil {
			return nil, err
		}
		if l.in.Labels.Empty() && l.in.Fields.Empty() && (l.registry.Visibility == nil || l.in.Caller.Admin()) {
			l.meta.RemainingItemCount = &remaining
		}
	}
	return l.list(items)
}

// Values returns objects as the items of a list, which is never nil.
func Values[T any](objects []*T) []T {
	values := make([]T, len(objects))
	for i, object := range objects {
		values[i] = *object
	}
	return values
}

func (r *Registry[T]) matchesSelectors(in ListInput, object T) bool {
	return in.Labels.Matches(labels.Set(object.GetLabels())) &&
		(in.Fields.Empty() || in.Fields.Matches(r.fieldSet(object)))
}

// fieldSet is what field selectors see of an object.
func (r *Registry[T]) fieldSet(object T) fields.Set {
	set := fields.Set{}
	if r.Definition.Fields != nil {
		set = r.Definition.Fields(object)
	}
	r.selectOrigin(set, object)
	set["metadata.name"] = object.GetName()
	if r.Definition.Namespaced {
		set["metadata.namespace"] = object.GetNamespace()
	}
	return set
}

// Each is the value in a set of fields of a field with several values. For each of these values, the set has the field FieldOf with the value
// Each.
const Each = "*"

// FieldOf is the name in a set of fields of one value of a field with several values.
func FieldOf(name, value string) string { return name + "=" + value }

// readFields returns a selector as fieldSet has the fields. Error: BadRequest for an unknown field.
func (r *Registry[T]) readFields(selector fields.Selector) (fields.Selector, error) {
	known := r.fieldSet(r.Definition.New())
	return selector.Transform(func(name, value string) (string, string, error) {
		switch has, ok := known[name]; {
		case !ok:
			names := slices.Sorted(maps.Keys(known))
			return "", "", apierror.BadRequest(fmt.Sprintf("field label not supported: %s; supported are %s", name, strings.Join(names, ", ")),
				field.ErrorList{field.NotSupported(field.NewPath("fieldSelector"), name, names)})
		case has == Each:
			return FieldOf(name, value), Each, nil
		default:
			return name, value, nil
		}
	})
}

// checkRevision refuses a page that is not of the requested revision.
func checkRevision(in ListInput, current int64) error {
	if in.ResourceVersion == "" || in.ResourceVersion == "0" {
		return nil
	}
	requested, err := strconv.ParseInt(in.ResourceVersion, 10, 64)
	if err != nil || requested < 0 || strconv.FormatInt(requested, 10) != in.ResourceVersion {
		return apierror.BadRequest(fmt.Sprintf("resourceVersion: invalid value %q: must be a decimal number", in.ResourceVersion),
			field.ErrorList{field.Invalid(field.NewPath("resourceVersion"), in.ResourceVersion, "must be a decimal number")})
	}
	switch {
	case requested > current:
		return apierror.VersionTooLarge(requested, current)
	case in.Exact && requested < current:
		return apierror.Expired(fmt.Sprintf("the resource version %d is too old: the current one is %d", requested, current))
	default:
		return nil
	}
}

func (r *Registry[T]) fingerprint(in ListInput, query store.Query) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q",
		r.Definition.GroupResource().String(), query.Prefix, in.Caller.Owners(), in.Owner, in.Labels.String(), in.Fields.String()))
	return hex.EncodeToString(sum[:8])
}
