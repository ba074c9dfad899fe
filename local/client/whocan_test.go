package client

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"management.platform.sh/shared/model"
)

// The command asks about the request that its arguments name, and prints who may make it.
func TestWhoCan(t *testing.T) {
	var asked model.ScopePreview
	var status model.ScopePreviewStatus
	withPlatform(t, func(w http.ResponseWriter, r *http.Request) {
		asked = model.ScopePreview{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !strings.HasSuffix(r.URL.Path, "/scopepreviews") {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(model.ScopePreview{Status: status})
	})
	const group = model.GroupName
	kubeconfig := model.ScopePreviewRequest{Verb: "create", Group: group, Resource: "virtualclusterinstances", Subresource: "kubeconfig", Namespace: "p-shop", Name: "dev"}
	for _, row := range []struct {
		command WhoCan
		want    model.ScopePreviewRequest
		err     string
	}{
		{command: WhoCan{Verb: "use", Target: "p-shop/dev"}, want: kubeconfig},
		{command: WhoCan{Verb: "use", Target: "dev", Namespace: "p-shop"}, want: kubeconfig},
		{command: WhoCan{Verb: "get", Target: "users"}, want: model.ScopePreviewRequest{Verb: "get", Group: group, Resource: "users"}},
		{command: WhoCan{Verb: "delete", Target: "ownedaccesskeys/ci"}, want: model.ScopePreviewRequest{Verb: "delete", Group: group, Resource: "ownedaccesskeys", Name: "ci"}},
		{command: WhoCan{Verb: "create", Target: "subjectaccessreviews.authorization.k8s.io"}, want: model.ScopePreviewRequest{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}},
		{command: WhoCan{Verb: "create", Target: "teams/web", Subresource: "accesskeys"}, want: model.ScopePreviewRequest{Verb: "create", Group: group, Resource: "teams", Subresource: "accesskeys", Name: "web"}},
		{command: WhoCan{Verb: "use", Target: "dev"}, err: `invalid virtual cluster "dev": use NAMESPACE/NAME`},
		{command: WhoCan{Verb: "use", Target: "p-shop/dev", Subresource: "kubeconfig"}, err: "--subresource: the verb use has none"},
		{command: WhoCan{Verb: "get", Target: "users/"}, err: `invalid target "users/": use RESOURCE, RESOURCE/NAME or, after the verb use, NAMESPACE/NAME`},
		{command: WhoCan{Verb: "get", Target: "a/b/c"}, err: `invalid target "a/b/c": use RESOURCE, RESOURCE/NAME or, after the verb use, NAMESPACE/NAME`},
	} {
		var out, messages strings.Builder
		row.command.Out, row.command.Messages, row.command.Output = &out, &messages, "text"
		err := row.command.Run(t.Context())
		if row.err != "" {
			if err == nil || err.Error() != row.err {
				t.Errorf("%+v: %v", row.command, err)
			}
			continue
		}
		if err != nil || asked.Spec.WhoCan == nil || *asked.Spec.WhoCan != row.want || out.Len() > 0 || messages.String() != "Nobody may do this.\n" {
			t.Errorf("%+v asked about %+v and printed %q %q: %v", row.command, asked.Spec.WhoCan, out.String(), messages.String(), err)
		}
	}
	status = model.ScopePreviewStatus{Incomplete: true, Subjects: []model.ScopePreviewSubject{
		{Team: "testers", Reason: "member of the team"}, {User: "ana", DisplayName: "Ana", Teams: []string{"testers", "web"}, Reason: "owner of the object", Also: []model.ScopePreviewGrant{
			{Source: "Access", Reason: `spec.access[0] of the instance gives "use"`},
		}},
		{Subject: "ci", AccessKey: "nightly", Reason: "member of platform:admins"},
	}}
	var out, messages strings.Builder
	command := WhoCan{Verb: "get", Target: "teams/testers", Output: "text", Out: &out, Messages: &messages}
	if err := command.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	const table = "KIND      NAME      DISPLAY NAME   TEAMS         REASON\n" +
		"Team      testers                                member of the team\n" +
		"User      ana       Ana            testers,web   owner of the object\n" +
		"User      ana       Ana            testers,web   spec.access[0] of the instance gives \"use\"\n" +
		"Subject   ci                                     member of platform:admins, by the access key nightly\n"
	if out.String() != table || !strings.Contains(messages.String(), "the answer has the first 3 users and teams; more may do this") {
		t.Errorf("%s\n%s", out.String(), messages.String())
	}
}
