package framework_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/framework"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// lasting is a test whose state ends with the process.
type lasting struct{ testing.TB }

func (lasting) Cleanup(func()) {}

// register registers all functions, once: the framework takes each name once in a process, however often the test runs. The
// state lasts as long, because a function keeps the state that it opened first.
var register sync.Once

// The server of Cloud Functions finds a registered function, and calls it for every path.
func TestRegister(t *testing.T) {
	t.Setenv("FUNCTION_TARGET", "getaccesskey")
	register.Do(func() {
		t.Setenv("PLATFORM_REDIS_URL", processtest.New(lasting{t}).URL)
		for _, f := range catalog.Functions {
			framework.Register(f)
		}
	})
	port := strconv.Itoa(redistest.FreePort(t))
	address := net.JoinHostPort("127.0.0.1", port)
	failed := make(chan error, 1)
	go func() { failed <- funcframework.StartHostPort("127.0.0.1", port) }()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+processtest.Root+"/admin", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+processtest.Admin)
	for begun := time.Now(); ; {
		answer, err := http.DefaultClient.Do(r)
		if err != nil && time.Since(begun) < 30*time.Second {
			select {
			case err := <-failed:
				t.Fatal(err)
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 200 || !strings.Contains(string(text), `"name":"admin"`) {
			t.Errorf("answered %d %s, %v", answer.StatusCode, text, err)
		}
		return
	}
}
