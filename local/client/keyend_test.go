package client

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/model"
)

// The command ends the key first, then users, teams and trust rules, and then the remaining keys. Objects that were
// made in the meantime end as well. Projects stay. Without --yes nothing changes, nor if the tree has the credential of
// the command. Source: ADR-0047.
func TestKeyEnd(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}
	}
	below := func(name string, makers ...string) originObject {
		object := originObject{ObjectMeta: meta(name)}
		for _, maker := range makers {
			object.Status.Lineage = append(object.Status.Lineage, model.AccessKeyAncestor{Name: maker, UID: "uid-" + maker})
		}
		return object
	}
	key := func(name string, makers ...string) model.OwnedAccessKey {
		object := model.OwnedAccessKey{ObjectMeta: meta(name)}
		object.Status.Lineage = below(name, makers...).Status.Lineage
		return object
	}
	lists := map[string][]any{}
	fill := func() {
		lists = map[string][]any{
			"/ownedaccesskeys status.lineage.uid=uid-stolen": {key("child", "stolen")},
			"/users status.lineage.uid=uid-stolen":           {below("mallory", "stolen")},
			"/ownedaccesskeys spec.user=mallory":             {key("theirs")},
			"/trustrules status.lineage.uid=uid-stolen":      {below("rule", "child", "stolen")},
			"/projects status.lineage.uid=uid-stolen":        {below("shop", "stolen")},
		}
	}
	var deleted []string
	credentialName, hidden := "mine", ""
	const base = "/kubernetes/management/apis/management.platform.sh/v1"
	withPlatform(t, func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, base)
		switch {
		case path == "/selves":
			self := model.Self{}
			self.Status.AccessKey = credentialName
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(self)
		case r.Method == http.MethodDelete:
			body, _ := io.ReadAll(r.Body)
			var options metav1.DeleteOptions
			if err := json.Unmarshal(body, &options); err != nil || options.Preconditions == nil || !strings.HasSuffix(path, strings.TrimPrefix(string(*options.Preconditions.UID), "uid-")) ||
				strings.HasPrefix(path, keysPath) != (options.PropagationPolicy != nil) {
				t.Errorf("%s: %s", path, body)
			}
			deleted = append(deleted, path)
			switch path {
			case "/users/mallory":
				// In the meantime the thief has made a team.
				lists["/teams status.lineage.uid=uid-stolen"] = []any{below("late", "stolen")}
			case "/ownedaccesskeys/theirs":
				w.WriteHeader(http.StatusNotFound)
			case "/trustrules/rule":
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(`{"kind":"Status","message":"try again"}`))
				return
			}
			_, _ = w.Write([]byte(`{"kind":"Status"}`))
		case path == "/ownedaccesskeys/stolen":
			_ = json.NewEncoder(w).Encode(key("stolen"))
		case path == hidden:
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"not for you"}`))
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"items": lists[path+" "+r.URL.Query().Get("fieldSelector")]})
		}
	})
	run := func(yes bool) (string, error) {
		fill()
		deleted = nil
		var out strings.Builder
		err := (&KeyEnd{Name: "stolen", Yes: yes, Out: &out}).Run(t.Context())
		return out.String(), err
	}
	if text, err := run(false); err != nil || len(deleted) > 0 || !strings.HasSuffix(text, "Nothing was changed. platform keys end stolen --yes does it.\n") || !strings.Contains(text, "mallory") {
		t.Errorf("without --yes: %v, deleted %q\n%s", err, deleted, text)
	}
	text, err := run(true)
	want := []string{"/ownedaccesskeys/stolen", "/trustrules/rule", "/users/mallory", "/ownedaccesskeys/theirs", "/teams/late"}
	if !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, want %q", deleted, want)
	}
	if err == nil || !strings.Contains(err.Error(), "the trust rule rule: asking the platform: try again") {
		t.Errorf("%v", err)
	}
	if want := "ended the access key stolen\nended the user mallory\nended the team late\nthe project shop stays\n"; text != want {
		t.Errorf("it says\n%s", text)
	}
	// The key is gone. The objects that were made with it are not.
	lists = map[string][]any{"/ownedaccesskeys status.lineage.uid=uid-earlier": {key("survivor", "earlier")}}
	var out strings.Builder
	deleted = nil
	if err := (&KeyEnd{Name: "stolen", UID: "uid-earlier", Yes: true, Out: &out}).Run(t.Context()); err != nil ||
		!slices.Equal(deleted, []string{"/ownedaccesskeys/survivor"}) || out.String() != "ended the access key survivor\n" {
		t.Errorf("a key that is gone: %v, deleted %q\n%s", err, deleted, out.String())
	}
	credentialName = "child"
	if _, err := run(true); err == nil || !strings.Contains(err.Error(), "your own access key child is among them") || len(deleted) > 0 {
		t.Errorf("its own credential: %v, deleted %q", err, deleted)
	}
	credentialName, hidden = "mine", "/teams"
	if _, err := run(true); err == nil || !strings.Contains(err.Error(), "you may not list teams") || len(deleted) > 0 {
		t.Errorf("what it does not see: %v, deleted %q", err, deleted)
	}
}
