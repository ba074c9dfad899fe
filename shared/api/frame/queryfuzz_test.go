package frame_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/model"
)

// FuzzQuery: for every query, a key that may list and watch one object sees this object and no other, and the
// server never fails.
func FuzzQuery(f *testing.F) {
	w := newWatchWorld(f)
	w.server.Watch.Window = 5 * time.Millisecond
	const oneKey = "one-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-012"
	w.key("one", oneKey, "ana", nil, &model.Scope{Rules: []model.ScopeRule{{
		Verbs: []string{"list", "watch"},
		Resources: []model.ScopeGroupResources{{
			Group: model.GroupName, Resources: []string{"ownedaccesskeys"}, ResourceNames: []string{"ana"},
		}},
	}}})
	for _, seed := range []string{
		"", "fieldSelector=metadata.name%3Dana", "fieldSelector=metadata.name%3Dana&watch", "fieldSelector=metadata.name%3Dana&fieldSelector=", "fieldSelector=metadata.name%3Dana,metadata.name%3Done",
		"fieldSelector=metadata.name%3D%3Dana&labelSelector=a+in+(b)", "fieldSelector=metadata.name!%3Dana", "FieldSelector=metadata.name%3Dana", "fieldSelector=metadata.name%3Dana&%77atch=1&resourceVersion=1",
		"fieldSelector=metadata.name%3Dana;watch", "fieldSelector=metadata.name%3Dana&limit=1&continue=x", "fieldSelector=metadata.name%3Dana&resourceVersion=99", "fieldSelector=metadata.name%3Dana&timeout=1ns",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, root, nil)
		r.URL = &url.URL{Path: root, RawQuery: query}
		r.Header.Set("Authorization", "Bearer "+oneKey)
		answer := w.send(r)
		w.log.take(t)
		if answer.Code != http.StatusOK {
			// 504 is for a revision in the future, and for a deadline.
			if answer.Code < 400 || answer.Code >= 500 && answer.Code != http.StatusGatewayTimeout {
				t.Fatalf("%q is answered %d %s", query, answer.Code, answer.Body)
			}
			return
		}
		type object struct{ Metadata struct{ Name string } }
		var shown []object
		for line := range strings.Lines(answer.Body.String()) {
			var read struct {
				Type   string
				Object object
				Items  []object
			}
			if err := json.Unmarshal([]byte(line), &read); err != nil {
				t.Fatalf("%q is answered %q: %v", query, line, err)
			}
			if shown = append(shown, read.Items...); read.Type == "ADDED" {
				shown = append(shown, read.Object)
			}
		}
		for _, each := range shown {
			if each.Metadata.Name != "ana" {
				t.Fatalf("%q shows %q", query, each.Metadata.Name)
			}
		}
	})
}
