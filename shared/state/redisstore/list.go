package redisstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// listDirectly is the maximum number of records that the scripts of List and GetMany read themselves, in one round
// trip. A longer page costs two round trips, but half of the time in Redis: the script returns the names, and a second
// call reads the records. Source: ADR-0002.
const listDirectly = 16

// listAttempts bounds how often a page is read in two round trips because its objects were written between them. After
// that the script reads the whole page.
const listAttempts = 2

func (r *resource) List(ctx context.Context, query store.Query) (store.Page, error) {
	index, ranges, err := r.ranges(query)
	if err != nil {
		return store.Page{}, err
	}
	limit := pageLimit(query.Limit)
	var page store.Page
	err = r.client.run(ctx, "listing records", func(ctx context.Context) error {
		for attempt := range listAttempts + 1 {
			direct := listDirectly
			if attempt == listAttempts {
				direct = limit
			}
			names, complete, err := r.listOnce(ctx, query, index, []any{limit, limits.PageBytes, direct}, ranges, &page)
			if err != nil || complete {
				return err
			}
			if page.Records, complete, err = r.recordsAt(ctx, names, page.Revision); err != nil || complete {
				return err
			}
		}
		return fmt.Errorf("%w: no records of a list", errCorrupt)
	})
	if err != nil {
		return store.Page{}, err
	}
	return page, nil
}

// keyOfPage returns the key of a page in the cache. The length before each text tells where the text ends, whatever is
// in it.
func keyOfPage(index string, bounds, ranges []any) pageKey {
	key := []byte(index)
	for _, each := range slices.Concat(bounds, ranges) {
		text := fmt.Sprint(each)
		key = fmt.Appendf(key, " %d:%s", len(text), text)
	}
	return sha256.Sum256(key)
}

// ranges returns the index that a query reads, and the arguments of the list script for its ranges.
func (r *resource) ranges(query store.Query) (index string, ranges []any, err error) {
	lower, upper := bounds(query)
	switch {
	case query.Reference != "" && query.Owners != nil:
		return "", nil, errors.New("listing records: a query selects by owners or by a reference, not by both")
	case query.Reference != "":
		// No object refers to an invalid uid. A NUL in it would end the uid in the index.
		if validReference(query.Reference) {
			ranges = rangeArguments(query.Reference, lower, upper)
		}
		return r.keys.references, ranges, nil
	case query.Owners == nil:
		if upper == "" {
			upper = "+"
		}
		return r.keys.names, []any{lower, upper, 0}, nil
	default:
		seenOwners := map[string]bool{}
		for _, owner := range query.Owners {
			// No object has an owner with a control character. A NUL in it would end the owner in the index.
			if seenOwners[owner] || hasControl(owner) {
				continue
			}
			seenOwners[owner] = true
			ranges = append(ranges, rangeArguments(owner, lower, upper)...)
		}
		return r.keys.owners, ranges, nil
	}
}

// listOnce runs the script of a list. The page is complete unless the script returned only names. It may return the
// names of an earlier page: they are not read again if nothing was written since. The names of the first pages are
// kept.
func (r *resource) listOnce(
	ctx context.Context, query store.Query, index string, bounds, ranges []any, page *store.Page,
) (names []string, complete bool, err error) {
	var key pageKey
	var lastPage *namedPage
	knownRevision, server := "", ""
	if query.After == "" {
		key = keyOfPage(index, bounds, ranges)
		if lastPage = r.pages.get(key); lastPage != nil {
			knownRevision, server = strconv.FormatInt(lastPage.revision, 10), lastPage.server
		}
	}
	keys := []string{r.keys.revision, r.keys.objects, index, r.keys.activity, r.keys.server}
	parts, err := r.call(ctx, listScript(), keys, slices.Concat(bounds, []any{knownRevision, server}, ranges))
	if err != nil {
		return nil, false, err
	}
	if len(parts) == 0 && lastPage != nil {
		page.Revision, page.Remaining = lastPage.revision, lastPage.remaining
		return lastPage.names, false, nil
	}
	if len(parts) != 4 && len(parts) != 5 {
		return nil, false, fmt.Errorf("%w: %d parts of a list", errCorrupt, len(parts))
	}
	for i, value := range []*int64{&page.Revision, &page.Remaining} {
		if *value, err = strconv.ParseInt(fmt.Sprint(parts[i]), 10, 64); err != nil {
			return nil, false, fmt.Errorf("%w: %w", errCorrupt, err)
		}
	}
	if len(parts) == 5 {
		page.Records, err = records(parts[2:])
		return nil, true, err
	}
	names, err = stringList(parts[2])
	// Without the id of the server that made it, a revision may stand for two writes.
	if madeBy := fmt.Sprint(parts[3]); err == nil && query.After == "" && madeBy != "" {
		r.pages.add(key, &namedPage{revision: page.Revision, remaining: page.Remaining, server: madeBy, names: names})
	}
	return names, false, err
}

// recordsAt returns the records of names as they were at a revision at which all of them existed. Ok is false if one of
// them has been written since. A record that was not written since is the record of that revision, whatever happened to
// others. A use of an object is not a write, so a record may have a newer activity.
func (r *resource) recordsAt(ctx context.Context, names []string, revision int64) ([]store.Record, bool, error) {
	// Read the activities first: an object that is then unchanged existed when they were read.
	var objects, activity *redis.SliceCmd
	if _, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		activity = pipe.HMGet(ctx, r.keys.activity, names...)
		objects = pipe.HMGet(ctx, r.keys.objects, names...)
		return nil
	}); err != nil {
		return nil, false, err
	}
	records, err := decodeAll(names, objects.Val(), activity.Val())
	if err != nil {
		return nil, false, err
	}
	newer := func(record store.Record) bool { return record.Revision > revision }
	if len(records) < len(names) || slices.ContainsFunc(records, newer) {
		return nil, false, nil
	}
	return records, true, nil
}

// rangeArguments returns the arguments of the list script for a range of names in the part of an index that belongs to one
// owner or uid.
func rangeArguments(part, lower, upper string) []any {
	end := "(" + part + "\x01"
	if upper != "" {
		end = "(" + part + "\x00" + upper[1:]
	}
	return []any{lower[:1] + part + "\x00" + lower[1:], end, len(part) + 1}
}

// bounds returns the lexicographical limits of a query's names, in the form of ZRANGE BYLEX. upper is empty
// if there is no upper limit.
func bounds(query store.Query) (lower, upper string) {
	lower = "[" + query.Prefix
	if query.After != "" && query.After >= query.Prefix {
		lower = "(" + query.After
	}
	// The upper limit is the first string after all strings with the prefix: the prefix with its last byte raised.
	end := []byte(query.Prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
		upper = "(" + string(end)
	}
	return lower, upper
}

// maxPages bounds the cached pages of a resource, each of which has at most limits.PageObjects names.
const maxPages = 16

// pages caches up to maxPages pages by their queries. It is safe for concurrent use. A cache of package lru would make
// each program 28 KB larger.
type pages struct {
	mu    sync.Mutex
	byKey map[pageKey]*namedPage
}

// get returns the page of a query, which must not be changed; nil if it is not cached.
func (p *pages) get(key pageKey) *namedPage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[key]
}

// add caches a page in place of any other page.
func (p *pages) add(key pageKey, page *namedPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey = map[pageKey]*namedPage{}
	}
	for other := range p.byKey {
		if len(p.byKey) < maxPages || p.byKey[key] != nil {
			break
		}
		delete(p.byKey, other)
	}
	p.byKey[key] = page
}

// namedPage has the names of a page, at a revision that a server has made.
type namedPage struct {
	revision, remaining int64
	server              string
	names               []string
}

type pageKey [sha256.Size]byte
