package bench

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore"
)

// objects is how many access keys there are to read, and the length of a page.
const objects = 500

// collectionPath is that of the access keys below the root of the API.
var collectionPath = frame.BasePath + "/apis/" + model.SchemeGroupVersion.String() + "/ownedaccesskeys"

// server is the whole API in this process, without a network in front of it.
type server struct {
	*frame.Server
	http.Handler
	env    *platform.Environment
	bearer secret.String
}

// nowhere discards the log. Its lines are formatted as for a real log.
type nowhere struct{}

func (nowhere) Write(line []byte) (int, error) { return len(line), nil }

// newServer mounts the catalog over the Redis at a URL and makes the key of an admin and the objects. The
// log is written, and thrown away.
func newServer(t testing.TB, redisURL string, now func() time.Time) *server {
	t.Helper()
	client, err := redisstore.Open(redisURL, redisstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	log := slog.New(slog.NewJSONHandler(nowhere{}, nil))
	current := platformconfig.New(platformconfig.Options{
		Store: client.Resource("configs"), Now: now, Random: rand.Reader, Log: log,
	})
	env := &platform.Environment{
		Stores:  client.Resource,
		Now:     now,
		Random:  rand.Reader,
		Log:     log,
		Version: "bench",
	}
	platformconfig.Use(env, current)
	s := &server{Server: process.NewServer(env), env: env}
	s.Configuration, s.Metrics, s.Tracer = current, metrics.New(prometheus.NewRegistry()), otel.Tracer("management.platform.sh")
	s.Handler = s.Mount(catalog.Functions...)
	s.bearer = s.create(t, &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		Spec:       model.OwnedAccessKeySpec{User: "admin", Groups: []string{identity.Admins}},
	})
	for i := range objects {
		s.create(t, accessKey(objectName(i)))
	}
	return s
}

// create makes a key without the API and returns its bearer token.
func (s *server) create(t testing.TB, key *model.OwnedAccessKey) secret.String {
	t.Helper()
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})
	written, err := resource.Create(t.Context(), kinds.AccessKeys(s.env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: caller, Object: key,
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret.String(written.Object.Spec.Key)
}

func objectName(i int) string { return fmt.Sprintf("key-%03d", i) }

// accessKey returns a typical key.
func accessKey(name string) *model.OwnedAccessKey {
	return &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "bench", "stage": "main"},
		},
		Spec: model.OwnedAccessKeySpec{
			DisplayName: "Pipeline of the main repository",
			Description: "Deploys what was merged, and rolls it back where that does not become ready",
			User:        "robot",
			TTLSeconds:  86400,
			Type:        model.AccessKeyTypeOther,
			Scope:       narrowScope(),
		},
	}
}

func narrowScope() *model.Scope {
	return &model.Scope{
		Roles:           []model.ScopeRole{{Role: "vcluster"}},
		Projects:        []model.ScopeProject{{Project: "default"}, {Project: "staging"}},
		VirtualClusters: []model.ScopeVirtualCluster{{Project: "default", VirtualCluster: "main"}},
	}
}

// objectBody is the request body of a key with that name and description.
func objectBody(name, description string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"OwnedAccessKey","metadata":{"name":%q,`+
		`"labels":{"app.kubernetes.io/managed-by":"bench","stage":"main"}},`+
		`"spec":{"displayName":"Pipeline of the main repository","description":%q,"user":"robot","ttl":86400,`+
		`"type":"Other","scope":{"roles":[{"role":"vcluster"}],"projects":[{"project":"default"},{"project":"staging"}],`+
		`"virtualClusters":[{"project":"default","virtualCluster":"main"}]}}}`,
		model.SchemeGroupVersion.String(), name, description)
}

// call sends JSON; see send.
func (s *server) call(method, path, query string, body []byte) int {
	return s.send(method, path, query, "application/json", body)
}

// send sends a request straight into the handler and returns the answer's status. It makes no more garbage
// than a server does.
func (s *server) send(method, path, query, contentType string, body []byte) int {
	request := &http.Request{
		Method: method, URL: &url.URL{Path: path, RawQuery: query}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Authorization": {"Bearer " + s.bearer.Reveal()}, "Accept": {"application/json"}, "Content-Type": {contentType},
		},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	answer := &discarded{header: http.Header{}}
	s.ServeHTTP(answer, request)
	return answer.status
}

// discarded is an answer that nobody reads.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) WriteHeader(status int)         { d.status = status }
func (d *discarded) Write(text []byte) (int, error) { return len(text), nil }
