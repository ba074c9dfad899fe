package redisstore_test

import (
	"strings"
	"testing"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// TestInspect: each primary of a cluster describes itself, and the contents include all primaries.
func TestInspect(t *testing.T) {
	t.Parallel()
	client := open(t, redistest.Cluster(t), redisstore.Options{})
	names := []string{freshName(), freshName(), freshName(), freshName()}
	for i, name := range names {
		for j := range 3 {
			record := thing(string(rune('a' + j)))
			record.Owner, record.Quota = "ana", store.Quota{Bytes: 1 << 20}
			if i == 0 {
				record.Owner = "bo"
			}
			_, err := client.Resource(name).Create(t.Context(), record)
			must(t, err)
		}
	}
	nodes, err := client.Inspect(t.Context())
	must(t, err)
	if len(nodes) != 3 {
		t.Fatalf("%d nodes", len(nodes))
	}
	for _, node := range nodes {
		if !node.Primary || node.Product != "redis" || !strings.Contains(node.Version, ".") || node.Cluster != "ok" || node.Policy != "noeviction" ||
			node.UsedBytes == 0 || node.AppendOnly || node.Fsync != "everysec" || node.Took <= 0 || node.Unsaved || node.Snapshots {
			t.Errorf("%+v", node)
		}
	}
	found, err := client.Contents(t.Context(), 1000)
	must(t, err)
	if len(found) != len(names) {
		t.Fatalf("%+v", found)
	}
	for i, contents := range found {
		owner := "ana"
		if contents.Resource == names[0] {
			owner = "bo"
		}
		if contents.Layout != redisstore.Layout || contents.Objects != 3 || contents.Looked != 3 || contents.Formats["1"] != 3 ||
			len(contents.Owners) != 1 || contents.Owners[0].Owner != owner || contents.Owners[0].Objects != 3 || contents.Owners[0].Bytes < 6 {
			t.Errorf("%d: %+v", i, contents)
		}
	}
}
