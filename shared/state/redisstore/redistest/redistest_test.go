package redistest_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore/redistest"
)

func TestServerKeepsItsDataAcrossAKill(t *testing.T) {
	server := redistest.Server(t, redistest.AppendOnly(), redistest.Password("s3cret"))
	for _, url := range []string{server.URL(), server.UnixURL()} {
		options, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(options)
		if err := client.Set(t.Context(), url, "kept", 0).Err(); err != nil {
			t.Fatal(err)
		}
		server.Kill()
		server.Restart()
		if got := client.Get(t.Context(), url).Val(); got != "kept" {
			t.Errorf("%s after a restart: %q", options.Network, got)
		}
		client.Close()
	}
}

func TestClusterSpreadsItsSlots(t *testing.T) {
	first, _, _ := strings.Cut(redistest.Cluster(t), ",")
	options, err := redis.ParseClusterURL(first)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClusterClient(options)
	defer client.Close()
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		if err := client.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Errorf("set %s: %v", key, err)
		}
	}
}
