package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/store"
)

// errCorrupt: the keys of a resource contradict each other, or a script and its reader do. It has no
// sentinel in the contract: nobody can do anything about it but a person.
var errCorrupt = errors.New("state contradicts itself")

// resource is the Store of one resource.
type resource struct {
	client *Client
	keys   keys
	feed   *feed
	// names are the names that digests led to.
	names *lru.Cache[string, string]
}

var _ store.Store = (*resource)(nil)

func (r *resource) Create(ctx context.Context, record store.Record) (int64, error) {
	if err := check(record); err != nil {
		return 0, err
	}
	return r.write(ctx, "creating", record.Name, createScript,
		record.Name, milliseconds(record.Created), optional(record.Expires, none), digestToken(record.Digest),
		record.Owner, record.Object, r.client.logLength)
}

func (r *resource) Update(ctx context.Context, record store.Record) (int64, error) {
	if err := check(record); err != nil {
		return 0, err
	}
	return r.write(ctx, "updating", record.Name, updateScript,
		record.Name, strconv.FormatInt(record.Revision, 10),
		milliseconds(record.Created), optional(record.Expires, none), digestToken(record.Digest),
		record.Owner, record.Object, r.client.logLength)
}

func (r *resource) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	return r.write(ctx, "deleting", name, deleteScript,
		name, strconv.FormatInt(revision, 10), r.client.logLength)
}

func (r *resource) Touch(ctx context.Context, record store.Record, activity, expires time.Time) error {
	_, err := r.write(ctx, "touching", record.Name, touchScript,
		record.Name, digestToken(record.Digest), optional(activity, ""), optional(expires, ""))
	return err
}

// write runs a script that answers with a revision or a word. The time is the last argument of each.
func (r *resource) write(ctx context.Context, doing, name string, script *redis.Script, args ...any) (int64, error) {
	doing = fmt.Sprintf("%s record %q", doing, name)
	args = append(args, milliseconds(time.Now()))
	var answer string
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		var err error
		answer, err = script.Run(ctx, r.client.redis, r.keys.all(), args...).Text()
		return err
	})
	if err != nil {
		return 0, err
	}
	var refused error
	switch answer {
	case "OK":
		return 0, nil
	case "EXISTS":
		refused = store.ErrExists
	case "TAKEN":
		refused = store.ErrTaken
	case "NOTFOUND":
		refused = store.ErrNotFound
	case "CONFLICT":
		refused = store.ErrConflict
	case "FORMAT":
		refused = store.ErrFormat
	default:
		revision, err := strconv.ParseInt(answer, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w: answer %q", doing, errCorrupt, answer)
		}
		return revision, nil
	}
	return 0, fmt.Errorf("%s: %w", doing, refused)
}

func (r *resource) Get(ctx context.Context, name string) (store.Record, error) {
	var object, activity *redis.StringCmd
	doing := fmt.Sprintf("reading record %q", name)
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		_, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			object = pipe.HGet(ctx, r.keys.objects, name)
			activity = pipe.HGet(ctx, r.keys.activity, name)
			return nil
		})
		return present(err)
	})
	if err != nil {
		return store.Record{}, err
	}
	if errors.Is(object.Err(), redis.Nil) {
		return store.Record{}, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	return decode(name, object.Val(), activity.Val())
}

// present is err, unless it says that a value is absent.
func present(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// GetByDigest tries the name that the digest led to before, which costs the state less than looking it up. The
// record itself says whether it is the one.
func (r *resource) GetByDigest(ctx context.Context, digest string) (store.Record, error) {
	// A digest is a credential's: it stays out of errors.
	const doing = "reading record by digest"
	if digest == "" {
		return store.Record{}, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	if name, known := r.names.Get(digest); known {
		record, err := r.Get(ctx, name)
		if !errors.Is(err, store.ErrNotFound) && (err != nil || record.Digest == digest) {
			return record, err
		}
		r.names.Remove(digest)
	}
	var answer []string
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		keys := []string{r.keys.digests, r.keys.objects, r.keys.activity}
		var err error
		answer, err = byDigestScript.Run(ctx, r.client.redis, keys, digestToken(digest)).StringSlice()
		return err
	})
	if err != nil {
		return store.Record{}, err
	}
	if len(answer) != 3 {
		return store.Record{}, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	if answer[1] == "" {
		return store.Record{}, fmt.Errorf("%s: %w: no record %q", doing, errCorrupt, answer[0])
	}
	r.names.Add(digest, answer[0])
	return decode(answer[0], answer[1], answer[2])
}

func (r *resource) List(ctx context.Context, query store.Query) (store.Page, error) {
	keys := []string{r.keys.revision, r.keys.objects, r.keys.names, r.keys.activity}
	args := []any{max(query.Limit, 0)}
	lower, upper := bounds(query)
	if query.Owners == nil {
		if upper == "" {
			upper = "+"
		}
		args = append(args, lower, upper, 0)
	} else {
		keys[2] = r.keys.owners
		seen := map[string]bool{}
		for _, owner := range query.Owners {
			// Nothing has an owner with a control character, and NUL ends the owner in the index.
			if seen[owner] || hasControl(owner) {
				continue
			}
			seen[owner] = true
			end := "(" + owner + "\x01"
			if upper != "" {
				end = "(" + owner + "\x00" + upper[1:]
			}
			args = append(args, lower[:1]+owner+"\x00"+lower[1:], end, len(owner)+1)
		}
	}

	var page store.Page
	err := r.client.run(ctx, "listing records", func(ctx context.Context) error {
		parts, err := r.call(ctx, listScript, keys, args)
		if err != nil {
			return err
		}
		if len(parts) != 5 {
			return fmt.Errorf("%w: %d parts of a list", errCorrupt, len(parts))
		}
		for i, value := range []*int64{&page.Revision, &page.Remaining} {
			if *value, err = strconv.ParseInt(fmt.Sprint(parts[i]), 10, 64); err != nil {
				return fmt.Errorf("%w: %w", errCorrupt, err)
			}
		}
		page.Records, err = records(parts[2:])
		return err
	})
	if err != nil {
		return store.Page{}, err
	}
	sort.Slice(page.Records, func(i, j int) bool { return page.Records[i].Name < page.Records[j].Name })
	return page, nil
}

// bounds are the lexicographical limits of a query's names, as ZRANGE BYLEX writes them. upper is empty
// when there is none.
func bounds(query store.Query) (lower, upper string) {
	lower = "[" + query.Prefix
	if query.After != "" && query.After >= query.Prefix {
		lower = "(" + query.After
	}
	// The first string above all that begin with the prefix is the prefix with its last byte raised.
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

// records reads three lists of the same length: names, stored records, activities.
func records(parts []any) ([]store.Record, error) {
	var lists [3][]string
	for i := range lists {
		var err error
		if lists[i], err = stringList(parts[i]); err != nil {
			return nil, err
		}
	}
	names, raw, activity := lists[0], lists[1], lists[2]
	if len(raw) != len(names) || len(activity) != len(names) {
		return nil, fmt.Errorf("%w: %d names, %d records, %d activities", errCorrupt, len(names), len(raw), len(activity))
	}
	result := make([]store.Record, 0, len(names))
	for i, name := range names {
		if raw[i] == "" {
			return nil, fmt.Errorf("%w: no record %q", errCorrupt, name)
		}
		record, err := decode(name, raw[i], activity[i])
		if err != nil {
			return nil, err
		}
		result = append(result, record)
	}
	return result, nil
}

func (r *resource) Due(ctx context.Context, expiredBy, createdBy time.Time, limit int) ([]store.Record, error) {
	if limit < 1 || expiredBy.IsZero() && createdBy.IsZero() {
		return nil, nil
	}
	var due []store.Record
	err := r.client.run(ctx, "finding due records", func(ctx context.Context) error {
		keys := []string{r.keys.objects, r.keys.expires, r.keys.created, r.keys.activity}
		parts, err := r.call(ctx, dueScript, keys, []any{optional(expiredBy, ""), optional(createdBy, ""), limit})
		if err != nil {
			return err
		}
		if len(parts) != 3 {
			return fmt.Errorf("%w: %d parts of due records", errCorrupt, len(parts))
		}
		due, err = records(parts)
		return err
	})
	return due, err
}
