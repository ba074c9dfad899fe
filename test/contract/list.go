package contract

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"management.platform.sh/shared/state/store"
)

const (
	expired         = "The resourceVersion for the provided list is too old."
	continueExpired = "The provided continue parameter is too old to display a consistent list result. You can start a " +
		"new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results."
	// maxPage bounds how far a page grows when a selector leaves room in it.
	maxPage = 10000
	// batch is how many events are read at a time.
	batch = 1000
)

// page is a part of a list at one revision.
type page struct {
	records  []store.Record
	revision int64
	// count is the number of records from the start of the page on, including the page.
	count int64
}

func (s *Storage) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	key, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := itemsOf(listObj)
	if err != nil {
		return err
	}
	revision, start, err := storage.ValidateListOptions(key, s.Versioner(), opts)
	if err != nil {
		return err
	}
	continued := opts.Predicate.Continue != ""
	limit := opts.Predicate.Limit
	newItem := itemFunc(listObj, items.Type().Elem())
	var lastName string
	var count int64
	var more bool
	for {
		p, err := s.page(ctx, key, opts.Recursive, start, limit, revision)
		if errors.Is(err, store.ErrGone) {
			return tooOld(continued, start, key)
		}
		if err != nil {
			return err
		}
		if revision == 0 {
			if err := s.notOlder(opts.ResourceVersion, p.revision); err != nil {
				return err
			}
			revision = p.revision
		}
		count, more = p.count, int64(len(p.records)) < p.count
		for _, record := range p.records {
			if opts.Predicate.Limit > 0 && int64(items.Len()) >= opts.Predicate.Limit {
				more = true
				break
			}
			lastName = record.Name
			obj := newItem()
			if err := s.read(ctx, record, obj); err != nil {
				return err
			}
			// An object without the attributes of the selector is not selected.
			if matched, err := opts.Predicate.Matches(obj); err == nil && matched {
				items.Set(reflect.Append(items, reflect.ValueOf(obj).Elem()))
			}
		}
		if !more || int64(items.Len()) >= opts.Predicate.Limit {
			break
		}
		start, limit = lastName+"\x00", min(2*limit, maxPage)
	}
	if items.IsNil() {
		items.Set(reflect.MakeSlice(items.Type(), 0, 0))
	}
	next, remaining, err := storage.PrepareContinueToken(lastName, key, revision, count, more, opts)
	if err != nil {
		return err
	}
	return s.Versioner().UpdateList(listObj, uint64(revision), next, remaining)
}

func itemsOf(listObj runtime.Object) (reflect.Value, error) {
	pointer, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return reflect.Value{}, err
	}
	items, err := conversion.EnforcePtr(pointer)
	if err != nil || items.Kind() != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("need pointer to slice: %w", err)
	}
	return items, nil
}

func itemFunc(listObj runtime.Object, elem reflect.Type) func() runtime.Object {
	if list, ok := listObj.(*unstructured.UnstructuredList); ok {
		return func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": list.GetAPIVersion()}}
		}
	}
	return func() runtime.Object { return reflect.New(elem).Interface().(runtime.Object) }
}

// tooOld returns the error of a list whose revision is no longer in the event log.
func tooOld(continued bool, start, key string) error {
	if !continued {
		return apierrors.NewResourceExpired(expired)
	}
	expiredError := apierrors.NewResourceExpired(continueExpired)
	if token, err := storage.EncodeContinue(start, key, -1); err == nil {
		expiredError.ErrStatus.Continue = token
	}
	return expiredError
}

// page reads up to limit records from start on, as they were at a revision. 0 means the current revision. The error is ErrGone if the revision
// is too old.
func (s *Storage) page(ctx context.Context, key string, recursive bool, start string, limit, revision int64) (page, error) {
	query := store.Query{Prefix: key, Limit: int(limit)}
	// Names have no control characters: from "name NUL" on is after "name".
	after, simple := strings.CutSuffix(start, "\x00")
	query.After = after
	if !recursive {
		query.Limit = 1
	}
	if simple || start == "" {
		p, err := s.store.List(ctx, query)
		if err != nil {
			return page{}, translate(err, key)
		}
		if !recursive {
			p.Remaining = 0
			if len(p.Records) > 0 && p.Records[0].Name != key {
				p.Records = nil
			}
		}
		if revision == 0 || revision == p.Revision {
			return page{p.Records, p.Revision, int64(len(p.Records)) + p.Remaining}, nil
		}
	}
	p, err := s.whole(ctx, key)
	if err != nil {
		return page{}, translate(err, key)
	}
	if revision > p.Revision {
		return page{}, storage.NewTooLargeResourceVersionError(uint64(revision), uint64(p.Revision), 0)
	}
	records := p.Records
	if revision > 0 {
		if records, err = s.takeBack(ctx, key, records, revision, p.Revision); err != nil {
			return page{}, err
		}
	} else {
		revision = p.Revision
	}
	records = slices.DeleteFunc(records, func(r store.Record) bool {
		return r.Name < start || !recursive && r.Name != key
	})
	count := int64(len(records))
	if limit > 0 && count > limit {
		records = records[:limit]
	}
	return page{records, revision, count}, nil
}

// whole reads all records with a prefix at one revision.
func (s *Storage) whole(ctx context.Context, prefix string) (store.Page, error) {
	for {
		result := store.Page{}
		query := store.Query{Prefix: prefix}
		for {
			p, err := s.store.List(ctx, query)
			if err != nil {
				return store.Page{}, err
			}
			if query.After != "" && p.Revision != result.Revision {
				break
			}
			result.Revision, result.Records = p.Revision, append(result.Records, p.Records...)
			if p.Remaining == 0 {
				return result, nil
			}
			query.After = p.Records[len(p.Records)-1].Name
		}
	}
}

// takeBack computes the records at a revision from the current records: the first event of a name after the revision contains the earlier
// record.
func (s *Storage) takeBack(ctx context.Context, prefix string, records []store.Record, revision, current int64) ([]store.Record, error) {
	earlierRecords := map[string]*store.Record{}
	for cursor := revision; cursor < current; {
		events, err := s.store.Events(ctx, cursor, batch, 0)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("no events after revision %d of %d", cursor, current)
		}
		for _, event := range events {
			cursor = event.Revision
			if _, known := earlierRecords[event.Record.Name]; !known && cursor <= current && strings.HasPrefix(event.Record.Name, prefix) {
				earlierRecords[event.Record.Name] = event.Previous
			}
		}
	}
	records = slices.DeleteFunc(slices.Clone(records), func(r store.Record) bool {
		_, changed := earlierRecords[r.Name]
		return changed
	})
	for _, record := range earlierRecords {
		if record != nil {
			records = append(records, *record)
		}
	}
	slices.SortFunc(records, func(a, b store.Record) int { return strings.Compare(a.Name, b.Name) })
	return records, nil
}
