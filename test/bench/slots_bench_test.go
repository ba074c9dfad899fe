package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/test/slots"
)

// credential is what authentication needs of an access key.
type credential struct {
	Name, UID, Owner, Type string
	Groups                 []string                  `json:",omitempty"`
	Scope                  *model.Scope              `json:",omitempty"`
	Ends                   string                    `json:",omitempty"`
	Lineage                []model.AccessKeyAncestor `json:",omitempty"`
	Disabled, Owned        bool                      `json:",omitempty"`
}

// BenchmarkAuthenticationRecord looks up keys by digest: as the platform does it, and through a small record in a slot of its own.
// redis-us/op is the CPU time of the Redis, and redis-B what a key or a record takes there. Source: ADR-0027.
func BenchmarkAuthenticationRecord(b *testing.B) {
	server := redistest.Server(b)
	s := newServer(b, server.UnixURL(), time.Now)
	options, err := redis.ParseURL(server.UnixURL())
	if err != nil {
		b.Fatal(err)
	}
	raw := redis.NewClient(options)
	b.Cleanup(func() { _ = raw.Close() })
	registry := kinds.AccessKeys(s.env)
	spread := &slots.Spread{Store: registry.Store, Redis: raw, Text: func(record store.Record) (string, error) {
		key, err := registry.Parse(record)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(credential{
			Name: key.Name, UID: string(key.UID), Owner: accesskey.OwnerOf(&key.Spec).String(), Type: key.Spec.Type, Groups: key.Spec.Groups,
			Scope: key.Spec.Scope, Lineage: key.Status.Lineage, Disabled: key.Spec.Disabled, Owned: len(key.OwnerReferences) > 0,
		})
		return string(text), err
	}}
	size := func(key string) int64 {
		used, err := raw.Do(b.Context(), "MEMORY", "USAGE", key, "SAMPLES", 0).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			b.Fatal(err)
		}
		return used
	}
	const objectsKey = "p1:{ownedaccesskeys}:objects"
	var digests []string
	objectBytes, recordBytes := -size(objectsKey), int64(0)
	for i := range 1000 {
		digests = append(digests, accesskey.Digest(s.create(b, accessKey(fmt.Sprintf("spread-%04d", i)))))
	}
	objectBytes += size(objectsKey)
	for _, digest := range digests {
		if _, err := spread.Look(b.Context(), digest); err != nil {
			b.Fatal(err)
		}
	}
	for slot := range 256 {
		recordBytes += size(fmt.Sprintf("p1:{auth:%02x}:digests", slot))
	}
	measure := func(name string, size int64, look func(digest string) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuOf(b, raw)
			b.ResetTimer()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := look(digests[rand.IntN(len(digests))]); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric((cpuOf(b, raw)-before)*1e6/float64(b.N), "redis-us/op")
			b.ReportMetric(float64(size)/float64(len(digests)), "redis-B")
		})
	}
	measure("object", objectBytes, func(digest string) error {
		record, err := registry.Store.GetByDigest(b.Context(), digest)
		if err != nil {
			return err
		}
		_, err = registry.Parse(record)
		return err
	})
	measure("record", recordBytes, func(digest string) error {
		answer, err := spread.Look(b.Context(), digest)
		if err != nil {
			return err
		}
		var found credential
		return json.Unmarshal([]byte(answer.Text), &found)
	})
}

// cpuOf is the CPU time that a Redis has used, in seconds.
func cpuOf(b *testing.B, client *redis.Client) float64 {
	b.Helper()
	info, err := client.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, rest, _ := strings.Cut(info, "\r\n"+name)
		number, _, _ := strings.Cut(rest, "\r\n")
		seconds, err := strconv.ParseFloat(number, 64)
		if err != nil {
			b.Fatalf("%s%q: %v", name, number, err)
		}
		total += seconds
	}
	return total
}
