package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
)

// withPlatform makes commands use a handler as their platform, with the access key pak_mine of a kubeconfig.
func withPlatform(t *testing.T, handler http.HandlerFunc) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"insecure-skip-tls-verify":true,"server":"`+server.URL+`/kubernetes/management"}}],"users":[{"name":"a","user":{"token":"pak_mine"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
}

// The tree has the objects that were made with a key, page by page, below their nearest existing ancestor. It counts
// the credentials that end with the key: the keys that are bound to it, and the tokens of these keys. Source: ADR-0021.
func TestKeyTree(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	meta := func(name string, minute int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))}
	}
	// lineage names makers; those with a star bind.
	lineage := func(names ...string) (found []model.AccessKeyAncestor) {
		for _, name := range names {
			short := strings.TrimSuffix(name, "*")
			found = append(found, model.AccessKeyAncestor{Name: short, UID: "uid-" + short, Bounds: short != name})
		}
		return found
	}
	key := func(name string, minute int, kind string, makers ...string) model.OwnedAccessKey {
		key := model.OwnedAccessKey{ObjectMeta: meta(name, minute), Spec: model.OwnedAccessKeySpec{User: "ana", Type: kind}}
		key.Status.Lineage = lineage(makers...)
		if len(makers) > 0 {
			key.Status.CreatedBy = &model.AccessKeyReference{Name: strings.TrimSuffix(makers[0], "*")}
		}
		return key
	}
	token := func(name string, minute int, makers ...string) model.DirectClusterEndpointToken {
		key := model.DirectClusterEndpointToken{ObjectMeta: meta(name, minute)}
		key.Status.Team, key.Status.Lineage = "web", lineage(makers...)
		key.Status.ExpirationTimestamp = &metav1.Time{Time: start.Add(time.Hour)}
		return key
	}
	pages := map[string][]any{
		// free outlives its maker. The objects that free made do so, too, except that a token ends with its own key.
		// lost is gone.
		"/ownedaccesskeys": {
			key("late", 9, "", "free*", "root"), key("free", 1, "", "root"), key("dev", 2, model.AccessKeyTypeKubeconfig, "root*"),
			key("orphan", 3, "", "lost", "root"),
		},
		"/directclusterendpointtokens": {token("t-free", 4, "free*", "root"), token("t-root", 5, "root"), token("t-dev", 6, "dev", "root*")},
	}
	// A user and a virtual cluster were made with the key. The user has a key, with which they made another key and a
	// trust rule. The tree has only the keys of this rule, not the keys of an earlier rule of the same name.
	object := func(name, namespace string, minute int, makers ...string) originObject {
		one := originObject{ObjectMeta: meta(name, minute), Status: model.Origin{Lineage: lineage(makers...)}}
		one.Namespace = namespace
		one.Status.CreatedBy = &model.AccessKeyReference{Name: makers[0], UID: "uid-" + makers[0], Owner: "user:ana"}
		return one
	}
	job, earlier := key("job", 20, ""), key("earlier", 20, "")
	job.Status.TrustRule, earlier.Status.TrustRule = &model.TrustRuleReference{Name: "rule", UID: "uid-rule"}, &model.TrustRuleReference{Name: "rule", UID: "old"}
	others := map[string][]any{
		"/ownedaccesskeys status.lineage.uid=uid-gone":         {key("survivor", 1, "", "gone")},
		"/users status.lineage.uid=uid-root":                   {object("mallory", "", 10, "free", "root")},
		"/virtualclusterinstances status.lineage.uid=uid-root": {object("vc", "p-web", 11, "root")},
		"/ownedaccesskeys spec.user=mallory":                   {key("theirs", 12, model.AccessKeyTypeLogin)},
		"/ownedaccesskeys status.lineage.uid=uid-theirs":       {key("second", 13, "", "theirs")},
		"/trustrules status.lineage.uid=uid-theirs":            {object("rule", "", 14, "theirs")},
		"/ownedaccesskeys status.trustRule.name=rule":          {job, earlier},
	}
	const base = "/kubernetes/management/apis/management.platform.sh/v1"
	var requests []string
	withPlatform(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer pak_mine" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		path, query := strings.TrimPrefix(r.URL.Path, base), r.URL.Query()
		requests = append(requests, path+" "+query.Get("fieldSelector"))
		switch {
		case path == "/ownedaccesskeys/root":
			_ = json.NewEncoder(w).Encode(key("root", 0, ""))
		case path == "/ownedaccesskeys/none":
			_, _ = w.Write([]byte("{}"))
		case pages[path] != nil && query.Get("fieldSelector") == "status.lineage.uid=uid-root" && query.Get("limit") != "":
			all, list := pages[path], map[string]any{}
			if query.Get("continue") == "" {
				list["metadata"], list["items"] = map[string]string{"continue": "c"}, all[:2]
			} else {
				list["items"] = all[2:]
			}
			_ = json.NewEncoder(w).Encode(list)
		case path == "/teams":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"not for you"}`))
		case query.Get("fieldSelector") != "":
			_ = json.NewEncoder(w).Encode(map[string]any{"items": others[path+" "+query.Get("fieldSelector")]})
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"there is no such key"}`))
		}
	})
	run := func(name, format string) (string, error) {
		var out strings.Builder
		err := (&KeyTree{Name: name, Output: format, Out: &out}).Run(t.Context())
		return out.String(), err
	}
	text, err := run("root", "text")
	want := `NAME             TYPE              OWNER      ENDS                   ENDS WITH THE KEY
root             User              user:ana   never
  free           User              user:ana   never                  only with --cascade=foreground
    t-free       token             team:web   2026-01-01T01:00:00Z   only with --cascade=foreground
    late         User              user:ana   never                  only with --cascade=foreground
    mallory      user              user:ana   never                  no
      theirs     Login             user:ana   never                  no
        second   User              user:ana   never                  no
        rule     trust rule        user:ana   never                  no
          job    User              user:ana   never                  no
  dev            Kubeconfig        user:ana   never                  yes
    t-dev        token             team:web   2026-01-01T01:00:00Z   yes
  orphan         User              user:ana   never                  only with --cascade=foreground
  t-root         token             team:web   2026-01-01T01:00:00Z   yes
  p-web/vc       virtual cluster   user:ana   never                  no

kubectl delete oak root ends 1 access key and 2 tokens with it.
kubectl delete oak root --cascade=foreground ends 4 access keys and 3 tokens with it.
platform keys end root ends the rest, and deletes its users, teams and trust rules. Projects and virtual clusters stay.
You may not list teams: what is there is not shown.
`
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
	if want := "/directclusterendpointtokens status.lineage.uid=uid-root"; !slices.Contains(requests, want) {
		t.Errorf("asked for %q", requests)
	}
	for format, decode := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) }} {
		var got tree
		text, err := run("root", format)
		if err != nil || decode([]byte(text), &got) != nil || got.Key.Name != "root" || got.Foreground.AccessKeys != 4 || got.EndsWithKey.Tokens != 2 ||
			len(got.Key.Made) != 5 || got.Key.Made[2].MadeBy != "lost" {
			t.Errorf("%s: %v\n%s", format, err, text)
		}
	}
	// The key is gone, or another key has its name.
	for _, name := range []string{"root", "other"} {
		var out strings.Builder
		err := (&KeyTree{Name: name, UID: "uid-gone", Output: "text", Out: &out}).Run(t.Context())
		want := "NAME         TYPE      OWNER      ENDS    ENDS WITH THE KEY\n" + fmt.Sprintf("%-12s deleted\n", name) + `  survivor   User      user:ana   never   no

platform keys end ` + name + ` --uid uid-gone ends the rest, and deletes its users, teams and trust rules. Projects and virtual clusters stay.
You may not list teams: what is there is not shown.
`
		if err != nil || out.String() != want {
			t.Errorf("%s is gone: %v\n%s", name, err, out.String())
		}
	}
	for _, name := range []string{"other", "none"} {
		if _, err := run(name, "text"); err == nil || name == "other" && !strings.Contains(err.Error(), "there is no such key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
