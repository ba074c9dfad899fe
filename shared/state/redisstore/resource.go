package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

// errCorrupt means that the keys of a resource contradict each other, or that a script returned an unexpected reply.
// The contract has no error value for it, because no program can repair it.
var errCorrupt = errors.New("state contradicts itself")

// resource is the Store of one resource.
type resource struct {
	client *Client
	name   string
	keys   keys
	feed   *feed
	// names caches the name of the object of each digest.
	names *lru.Cache[string, string]
	// pages has the names of the first pages of lists.
	pages pages
}

var _ store.Store = (*resource)(nil)

func (r *resource) Name() string { return r.name }

func (r *resource) Create(ctx context.Context, record store.Record) (int64, error) {
	if err := check(record); err != nil {
		return 0, err
	}
	return r.write(ctx, "creating", record, createScript(), r.client.options.Replicas,
		record.Name, milliseconds(record.Created), optionalMilliseconds(record.Expires, none), digestToken(record.Digest),
		referencesToken(record.References), record.Owner, record.Object, r.client.options.LogLength,
		max(record.Quota.Objects, 0), max(record.Quota.Bytes, 0),
		record.Requires.Name, strconv.FormatInt(record.Requires.Revision, 10))
}

func (r *resource) Update(ctx context.Context, record store.Record) (int64, error) {
	if err := check(record); err != nil {
		return 0, err
	}
	return r.write(ctx, "updating", record, updateScript(), r.client.options.Replicas,
		record.Name, strconv.FormatInt(record.Revision, 10),
		milliseconds(record.Created), optionalMilliseconds(record.Expires, none), digestToken(record.Digest),
		referencesToken(record.References), record.Owner, record.Object, r.client.options.LogLength,
		max(record.Quota.Objects, 0), max(record.Quota.Bytes, 0))
}

func (r *resource) Delete(ctx context.Context, name string, revision int64) (int64, error) {
	return r.write(ctx, "deleting", store.Record{Name: name}, deleteScript(), r.client.options.Replicas,
		name, strconv.FormatInt(revision, 10), r.client.options.LogLength)
}

// answersQuestions reports whether a write answers questions in its round trip. It does not if the keys of the questions may
// be on other nodes of a cluster, or if the write waits for replicas.
func (c *Client) answersQuestions(questions *store.Questions, replicas int) bool {
	_, spread := c.redis.(*redis.ClusterClient)
	return questions != nil && len(questions.Asked) > 0 && !spread && replicas == 0
}

// writeAsking runs the script of a removal, and asks questions on the same connection: Redis answers them after the
// removal.
func (r *resource) writeAsking(ctx context.Context, script *redis.Script, args []any, questions *store.Questions) (string, error) {
	var firstMembers []*redis.StringSliceCmd
	answer := runPipeline(ctx, r.client.redis, script, r.keys.all(), args, func(pipe redis.Pipeliner, run func() *redis.Cmd) *redis.Cmd {
		answer := run()
		firstMembers = askReferred(ctx, pipe, questions.Asked)
		return answer
	})
	text, err := answer.Text()
	if err != nil {
		return "", err
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return text, nil //nolint:nilerr // the word of a refusal
	}
	for _, members := range firstMembers {
		if members != nil && members.Err() != nil {
			return text, nil //nolint:nilerr // whoever needs the answers asks again
		}
	}
	questions.Answers = decodeReferred(firstMembers)
	return text, nil
}

func (r *resource) Touch(ctx context.Context, record store.Record, activity, expires time.Time) error {
	_, err := r.write(ctx, "touching", record, touchScript(), 0,
		record.Name, digestToken(record.Digest), optionalMilliseconds(activity, ""), optionalMilliseconds(expires, ""))
	return err
}

// write runs a script that returns a revision or a word, and waits until that many replicas have acknowledged the
// write. It adds the last arguments of record.lua.
func (r *resource) write(ctx context.Context, doing string, record store.Record, script *redis.Script, replicas int, args ...any) (int64, error) {
	if err := store.MayWrite(ctx); err != nil {
		return 0, fmt.Errorf("%s record %q of %s: %w", doing, record.Name, r.Name(), err)
	}
	doing = fmt.Sprintf("%s record %q", doing, record.Name)
	args = append(args, milliseconds(time.Now()), limits.LogBytes, limits.LogEvents)
	var answer string
	short := 0
	err := r.client.runOnce(ctx, doing, func(ctx context.Context) error {
		var err error
		if questions := store.QuestionsFrom(ctx); script == deleteScript() && r.client.answersQuestions(questions, replicas) {
			answer, err = r.writeAsking(ctx, script, args, questions)
		} else if replicas == 0 {
			answer, err = script.Run(ctx, r.client.redis, r.keys.all(), args...).Text()
		} else {
			answer, short, err = r.client.runReplicated(ctx, script, r.keys.all(), args)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	var refusal error
	switch answer {
	case "OK":
		return 0, nil
	case "EXISTS":
		refusal = store.ErrExists
	case "STALE":
		refusal = store.ErrStale
	case "TAKEN":
		refusal = store.ErrTaken
	case "NOTFOUND":
		refusal = store.ErrNotFound
	case "CONFLICT":
		refusal = store.ErrConflict
	case "FORMAT":
		refusal = store.ErrFormat
	default:
		if over := quotaError(answer, record); over != nil {
			refusal = over
			break
		}
		revision, err := strconv.ParseInt(answer, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w: answer %q", doing, errCorrupt, answer)
		}
		if short > 0 {
			return 0, fmt.Errorf("%s: %w: written at revision %d, but may still be lost: %d of %d replicas have not acknowledged it",
				doing, store.ErrUnavailable, revision, short, replicas)
		}
		return revision, nil
	}
	return 0, fmt.Errorf("%s: %w", doing, refusal)
}

// quotaError returns the error for the reply QUOTA; nil for other replies.
func quotaError(answer string, record store.Record) error {
	// Every write that succeeds comes here, and parsing with a format is slow.
	if !strings.HasPrefix(answer, "QUOTA ") {
		return nil
	}
	quotaErr := &store.QuotaError{Owner: record.Owner, Limit: record.Quota.Objects}
	if n, _ := fmt.Sscanf(answer, "QUOTA %s %d %d", &quotaErr.Quota, &quotaErr.Used, &quotaErr.Adds); n != 3 {
		return nil
	}
	if quotaErr.Quota == store.QuotaBytes {
		quotaErr.Limit = record.Quota.Bytes
	}
	return quotaErr
}

func (r *resource) Get(ctx context.Context, name string) (store.Record, error) {
	doing := fmt.Sprintf("reading record %q", name)
	records, err := r.readAll(ctx, doing, name)
	if err != nil {
		return store.Record{}, err
	}
	if len(records) == 0 {
		return store.Record{}, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	return records[0], nil
}

// ignoreAbsence returns err, or nil if err says that a value is absent.
func ignoreAbsence(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func (r *resource) GetByDigest(ctx context.Context, digest string) (store.Record, error) {
	record, _, err := r.GetWith(ctx, digest, nil)
	return record, err
}

// GetWith first tries the name that the digest last led to. This costs Redis less than a lookup, and the same round
// trip can read the other objects. The digest in the record shows whether the name is still right.
func (r *resource) GetWith(
	ctx context.Context, digest string, names []string, refs ...store.Ref,
) (store.Record, store.Companions, error) {
	if name, ok := r.names.Get(digest); ok {
		var records []store.Record
		var companions map[store.Ref]store.Record
		err := r.client.run(ctx, "reading record by digest", func(ctx context.Context) (err error) {
			records, companions, err = r.getTogether(ctx, append([]string{name}, names...), refs)
			return err
		})
		if err != nil {
			return store.Record{}, store.Companions{}, err
		}
		if len(records) > 0 && records[0].Name == name && records[0].Digest == digest {
			byName := make(map[string]store.Record, len(names))
			for _, other := range records[1:] {
				byName[other.Name] = other
			}
			return records[0], store.Companions{Records: byName, Refs: companions}, nil
		}
		r.names.Remove(digest)
	}
	record, err := r.lookUp(ctx, digest)
	return record, store.Companions{}, err
}

func (r *resource) GetRefs(ctx context.Context, refs ...store.Ref) (found map[store.Ref]store.Record, err error) {
	err = r.client.run(ctx, "reading records of other resources", func(ctx context.Context) (err error) {
		_, found, err = r.getTogether(ctx, nil, refs)
		return err
	})
	return found, err
}

// getAll returns the existing objects with the given names, in the order of the names, in one round trip.
func (r *resource) getAll(ctx context.Context, names ...string) ([]store.Record, error) {
	found, _, err := r.getTogether(ctx, names, nil)
	return found, err
}

// getTogether is getAll, and reads refs in the same round trip. In a cluster, the parts of the pipeline go to their
// nodes concurrently.
func (r *resource) getTogether(ctx context.Context, names []string, refs []store.Ref) ([]store.Record, map[store.Ref]store.Record, error) {
	var objects, activity *redis.SliceCmd
	revisions, objectsOfRefs := make([]*redis.StringCmd, len(refs)), make([]*redis.SliceCmd, len(refs))
	_, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		if len(names) > 0 {
			objects = pipe.HMGet(ctx, r.keys.objects, names...)
			activity = pipe.HMGet(ctx, r.keys.activity, names...)
		}
		for i, ref := range refs {
			if ref.Name == "" {
				revisions[i] = pipe.Get(ctx, revisionKey(ref.Resource))
			} else {
				// HMGET returns no error for an absent object. The library handles errors slowly.
				objectsOfRefs[i] = pipe.HMGet(ctx, objectsKey(ref.Resource), ref.Name)
			}
		}
		return nil
	})
	// The pipeline returns the first error of its commands, and an absent value is such an error.
	if ignoreAbsence(err) != nil {
		return nil, nil, err
	}
	var records []store.Record
	if len(names) > 0 {
		if err := errors.Join(objects.Err(), activity.Err()); err != nil {
			return nil, nil, err
		}
		if records, err = decodeAll(names, objects.Val(), activity.Val()); err != nil {
			return nil, nil, err
		}
	}
	read, err := decodeRefs(refs, revisions, objectsOfRefs)
	return records, read, err
}

// decodeRefs reads the replies about refs: revisions or records.
func decodeRefs(refs []store.Ref, revisions []*redis.StringCmd, records []*redis.SliceCmd) (map[store.Ref]store.Record, error) {
	result := make(map[store.Ref]store.Record, len(refs))
	for i, ref := range refs {
		if ref.Name == "" {
			revision, err := revisionOf(revisions[i])
			if err != nil {
				return nil, err
			}
			result[ref] = store.Record{Revision: revision}
			continue
		}
		answer, err := records[i].Result()
		if err != nil {
			return nil, err
		}
		text, exists := answer[0].(string)
		if !exists {
			continue
		}
		if result[ref], err = decode(ref.Name, text, ""); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// decodeAll reads the stored records and activities of names, and leaves out names without a record.
func decodeAll(names []string, objects, activity []any) ([]store.Record, error) {
	records := make([]store.Record, 0, len(names))
	for i, name := range names {
		object, ok := objects[i].(string)
		if !ok {
			continue
		}
		used, _ := activity[i].(string)
		record, err := decode(name, object, used)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// readAll runs getAll as an operation of its own.
func (r *resource) readAll(ctx context.Context, doing string, names ...string) (found []store.Record, err error) {
	err = r.client.run(ctx, doing, func(ctx context.Context) error {
		found, err = r.getAll(ctx, names...)
		return err
	})
	return found, err
}

func (r *resource) GetMany(ctx context.Context, names []string) (records []store.Record, read int, err error) {
	names = names[:min(len(names), limits.PageObjects)]
	if len(names) == 0 {
		return nil, 0, nil
	}
	args := []any{limits.PageBytes, listDirectly}
	for _, name := range names {
		args = append(args, name)
	}
	err = r.client.run(ctx, "reading records", func(ctx context.Context) error {
		parts, err := r.call(ctx, getManyScript(), []string{r.keys.objects, r.keys.activity}, args)
		if err != nil {
			return err
		}
		switch len(parts) {
		case 1:
			records, read, err = r.getFirst(ctx, names, parts[0])
		case 3:
			records, read, err = existingRecords(parts)
		default:
			err = fmt.Errorf("%w: %d parts of records", errCorrupt, len(parts))
		}
		return err
	})
	return records, read, err
}

// getFirst returns the existing objects with the first of the names, as many names as a script allows.
func (r *resource) getFirst(ctx context.Context, names []string, many any) (records []store.Record, read int, err error) {
	n, ok := many.(int64)
	if !ok || n < 1 || n > int64(len(names)) {
		return nil, 0, fmt.Errorf("%w: %v of %d records", errCorrupt, many, len(names))
	}
	read = int(n)
	records, err = r.getAll(ctx, names[:read]...)
	return records, read, err
}

func (r *resource) lookUp(ctx context.Context, digest string) (store.Record, error) {
	// The digest belongs to a credential, so errors do not contain it.
	const doing = "reading record by digest"
	if digest == "" {
		return store.Record{}, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	var answer []string
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		keys := []string{r.keys.digests, r.keys.objects, r.keys.activity}
		var err error
		answer, err = byDigestScript().Run(ctx, r.client.redis, keys, digestToken(digest)).StringSlice()
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

// records reads three lists of the same length: names, stored records, activities. Each name has a record.
func records(parts []any) ([]store.Record, error) {
	found, read, err := existingRecords(parts)
	if err == nil && len(found) < read {
		err = fmt.Errorf("%w: %d names, %d records", errCorrupt, read, len(found))
	}
	return found, err
}

// existingRecords is records for names that may have no record. It also returns the number of names.
func existingRecords(parts []any) (records []store.Record, read int, err error) {
	var lists [3][]string
	for i := range lists {
		if lists[i], err = stringList(parts[i]); err != nil {
			return nil, 0, err
		}
	}
	names, raw, activity := lists[0], lists[1], lists[2]
	if len(raw) != len(names) || len(activity) != len(names) {
		return nil, 0, fmt.Errorf("%w: %d names, %d records, %d activities", errCorrupt, len(names), len(raw), len(activity))
	}
	records = make([]store.Record, 0, len(names))
	for i, name := range names {
		if raw[i] == "" {
			continue
		}
		record, err := decode(name, raw[i], activity[i])
		if err != nil {
			return nil, 0, err
		}
		records = append(records, record)
	}
	return records, len(names), nil
}

// pageLimit returns the maximum number of records on a page for a caller that asks for a number of records. 0: any
// number.
func pageLimit(asked int) int {
	if asked <= 0 {
		return limits.PageObjects
	}
	return min(asked, limits.PageObjects)
}

func (r *resource) Due(ctx context.Context, query store.DueQuery) ([]store.Record, error) {
	if query.Until.IsZero() {
		return nil, nil
	}
	index := r.keys.expires
	if query.ByCreated {
		index = r.keys.created
	}
	var dueRecords []store.Record
	err := r.client.run(ctx, "finding due records", func(ctx context.Context) error {
		keys := []string{index, r.keys.objects, r.keys.activity}
		args := []any{milliseconds(query.Until), max(query.Skip, 0), pageLimit(query.Limit), limits.PageBytes}
		parts, err := r.call(ctx, dueScript(), keys, args)
		if err != nil {
			return err
		}
		if len(parts) != 3 {
			return fmt.Errorf("%w: %d parts of due records", errCorrupt, len(parts))
		}
		dueRecords, err = records(parts)
		return err
	})
	return dueRecords, err
}

func (r *resource) References(ctx context.Context, from int64, limit int) ([]store.Reference, int64, error) {
	if limit < 1 || from < 0 {
		return nil, 0, errors.New("reading references: the position must not be negative and the limit must be positive")
	}
	limit = min(limit, limits.PageObjects)
	var total *redis.IntCmd
	var members *redis.StringSliceCmd
	err := r.client.run(ctx, "reading references", func(ctx context.Context) error {
		_, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			total = pipe.ZCard(ctx, r.keys.references)
			members = pipe.ZRange(ctx, r.keys.references, from, from+int64(limit)-1)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	references := make([]store.Reference, 0, len(members.Val()))
	for _, member := range members.Val() {
		uid, name, ok := strings.Cut(member, "\x00")
		if !ok {
			return nil, 0, fmt.Errorf("reading references: %w: member %q", errCorrupt, member)
		}
		references = append(references, store.Reference{UID: uid, Name: name})
	}
	return references, total.Val(), nil
}

func (r *resource) Referred(ctx context.Context, questions []store.Referral) ([]bool, error) {
	const doing = "looking for references"
	for _, question := range questions {
		if !validResource(question.Resource) {
			return nil, fmt.Errorf("%s: resource name %q", doing, question.Resource)
		}
	}
	var firstMembers []*redis.StringSliceCmd
	err := r.client.run(ctx, doing, func(ctx context.Context) error {
		_, err := r.client.redis.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			firstMembers = askReferred(ctx, pipe, questions)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return decodeReferred(firstMembers), nil
}

// askReferred reads the first member of each index of references; nil for an invalid uid.
func askReferred(ctx context.Context, pipe redis.Pipeliner, questions []store.Referral) []*redis.StringSliceCmd {
	firstMembers := make([]*redis.StringSliceCmd, len(questions))
	for i, question := range questions {
		// No object refers to an invalid uid. A NUL in it would end the uid in the index.
		if !validReference(question.UID) {
			continue
		}
		part := rangeArguments(question.UID, "[", "")
		firstMembers[i] = pipe.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: keyOf(question.Resource, referencesPart), ByLex: true, Start: part[0], Stop: part[1], Count: 1,
		})
	}
	return firstMembers
}

// decodeReferred reads the replies to askReferred.
func decodeReferred(first []*redis.StringSliceCmd) []bool {
	found := make([]bool, len(first))
	for i, members := range first {
		found[i] = members != nil && len(members.Val()) > 0
	}
	return found
}
