package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

const (
	// seeders is the number of keys that are written at the same time.
	seeders = 32
	// rewriteWithin is the time within which Redis must write all keys to disk.
	rewriteWithin = 10 * time.Minute
	// uidDigits is the number of last digits of a uid, which differ in each seeded key.
	uidDigits = 12
)

// seed makes keys until the given number exists. It copies the record of a key that the API has made, under other names of the same length, and
// writes the copies through the store, as the API does: all indexes are written, and the log of events has its usual length. While it writes,
// Redis keeps the keys in memory; they are on disk when it returns.
func (p *platform) seed(ctx context.Context, keys int) error {
	if keys <= p.api.objectCount {
		return nil
	}
	client, err := redisstore.Open(p.runner.Redis().Reveal(), redisstore.Options{Timeout: time.Minute})
	if err != nil {
		return fmt.Errorf("opening the state: %w", err)
	}
	defer func() { _ = client.Close() }()
	records := client.Resource("ownedaccesskeys")
	first, err := records.Get(ctx, keptName(0))
	if err != nil {
		return fmt.Errorf("reading a key: %w", err)
	}
	copied, err := newCopier(first)
	if err != nil {
		return err
	}
	if err := p.redis.ConfigSet(ctx, "appendonly", "no").Err(); err != nil {
		return fmt.Errorf("preparing Redis: %w", err)
	}
	var (
		next  atomic.Int64
		group sync.WaitGroup
		mu    sync.Mutex
		wrong error
	)
	next.Store(int64(p.api.objectCount))
	for range seeders {
		group.Go(func() {
			for ctx.Err() == nil {
				number := int(next.Add(1) - 1)
				if number >= keys {
					return
				}
				if _, err := records.Create(ctx, copied(number)); err != nil {
					mu.Lock()
					wrong = errors.Join(wrong, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	if err := errors.Join(ctx.Err(), wrong); err != nil {
		return fmt.Errorf("writing keys: %w", err)
	}
	p.api.objectCount = keys
	if err := p.redis.ConfigSet(ctx, "appendonly", "yes").Err(); err != nil {
		return fmt.Errorf("writing keys to disk: %w", err)
	}
	return repeatUntilSuccess(ctx, rewriteWithin, "writing keys to disk", func(ctx context.Context) error {
		info, err := p.redis.Info(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		for _, wanted := range []string{"aof_enabled:1", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok"} {
			if !bytes.Contains([]byte(info), []byte(wanted)) {
				return errors.New("the rewrite of the append-only file has not ended")
			}
		}
		return nil
	})
}

// newCopier returns a function that makes the record of a kept key from the record of the first key. Errors: the record does not contain the
// name and the uid as the copies need them.
func newCopier(first store.Record) (func(number int) store.Record, error) {
	var object struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(first.Object, &object); err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	uid := object.Metadata.UID
	if len(uid) <= uidDigits || !bytes.Contains(first.Object, []byte(keptName(0))) {
		return nil, errors.New("reading a key: its record has no name or no uid")
	}
	if again, err := withChecksum(first.Object); err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	} else if !bytes.Equal(again, first.Object) {
		return nil, errors.New("reading a key: its record has another checksum than copies would have")
	}
	return func(number int) store.Record {
		duplicate := first
		duplicate.Name = keptName(number)
		duplicate.Digest = fmt.Sprintf("%064x", number)
		duplicate.Object = bytes.ReplaceAll(first.Object, []byte(keptName(0)), []byte(duplicate.Name))
		duplicate.Object = bytes.ReplaceAll(duplicate.Object, []byte(uid), fmt.Appendf(nil, "%s%0*x", uid[:len(uid)-uidDigits], uidDigits, number))
		duplicate.Object, _ = withChecksum(duplicate.Object)
		return duplicate
	}, nil
}

// withChecksum returns the text of a record with its new checksum, so that it is read as quickly as if the API had written it. Errors: the record
// has no checksum. Source: ADR-0028.
func withChecksum(text []byte) ([]byte, error) {
	const name, schemaBytes = `,"splice":"`, 4
	body, value, found := bytes.Cut(text, []byte(name))
	length := base64.RawURLEncoding.EncodedLen(2 * schemaBytes)
	value, ended := bytes.CutSuffix(value, []byte(`"}`))
	if !found || !ended || len(value) < length {
		return nil, errors.New("the record has no checksum")
	}
	sum, err := base64.RawURLEncoding.DecodeString(string(value[:length]))
	if err != nil {
		return nil, fmt.Errorf("the checksum: %w", err)
	}
	binary.BigEndian.PutUint32(sum[schemaBytes:], crc32.Update(crc32.ChecksumIEEE(body), crc32.IEEETable, value[length:]))
	made := base64.RawURLEncoding.AppendEncode(append(bytes.Clone(body), name...), sum)
	return append(append(made, value[length:]...), `"}`...), nil
}
