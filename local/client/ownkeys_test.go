package client

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
)

// keysPlatform has commands reach a platform with the access keys of ana. It notes what it was asked: the method, the path, the selector and the
// body of each request.
func keysPlatform(t *testing.T) (requests *[]string) {
	t.Helper()
	const base = "/kubernetes/management/apis/management.platform.sh/v1"
	requests = &[]string{}
	withPlatform(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path, query := strings.TrimPrefix(r.URL.Path, base), r.URL.Query()
		*requests = append(*requests, strings.Join([]string{r.Method, path, query.Get("fieldSelector"), string(body)}, " "))
		end := metav1.NewTime(time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC))
		table := strings.Contains(r.Header.Get("Accept"), "as=Table")
		var answer any
		switch {
		case path == "/selves":
			w.WriteHeader(http.StatusCreated)
			answer = model.Self{Status: model.SelfStatus{User: &model.SelfUser{Name: "ana"}}}
		case path == "/ownedaccesskeys" && r.Method == http.MethodPost:
			var created model.OwnedAccessKey
			if err := json.Unmarshal(body, &created); err != nil {
				t.Error(err)
			}
			created.Spec.User, created.Spec.Key, created.Status.ExpirationTimestamp = "ana", "pak_new", &end
			w.Header().Set("Warning", `299 - "the key ends with yours"`)
			w.WriteHeader(http.StatusCreated)
			answer = created
		case path == "/ownedaccesskeys/ci" && r.Method == http.MethodPatch && r.Header.Get("Content-Type") == "application/merge-patch+json":
			answer = model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: "ci"}, Spec: model.OwnedAccessKeySpec{Disabled: true}}
		case path == "/ownedaccesskeys" && table && query.Get("continue") == "":
			answer = metav1.Table{
				ListMeta:          metav1.ListMeta{Continue: "c"},
				ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Made With", Priority: 1}, {Name: "Age"}},
				Rows:              []metav1.TableRow{{Cells: []any{"ci", "admin", "3d"}}},
			}
		case path == "/ownedaccesskeys" && table:
			answer = metav1.Table{
				ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Made With", Priority: 1}, {Name: "Age"}},
				Rows:              []metav1.TableRow{{Cells: []any{"other-key", "admin", "10m"}}},
			}
		case path == "/ownedaccesskeys":
			answer = model.OwnedAccessKeyList{Items: []model.OwnedAccessKey{{ObjectMeta: metav1.ObjectMeta{Name: "ci"}}, {ObjectMeta: metav1.ObjectMeta{Name: "other-key"}}}}
		default:
			w.WriteHeader(http.StatusNotFound)
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	return requests
}

// The list has the keys of the caller, as the platform shows them in a table.
func TestKeyList(t *testing.T) {
	requests := keysPlatform(t)
	run := func(all bool, format string) string {
		t.Helper()
		*requests = nil
		var out strings.Builder
		if err := (&KeyList{All: all, Output: format, Out: &out}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const table = "NAME        AGE\nci          3d\nother-key   10m\n"
	mine := "GET /ownedaccesskeys spec.user=ana "
	if got, want := run(false, "text"), []string{"POST /selves  {}", mine, mine}; got != table || !reflect.DeepEqual(*requests, want) {
		t.Errorf("%s\nasked %q", got, *requests)
	}
	everything := "GET /ownedaccesskeys  "
	if got, want := run(true, "text"), []string{everything, everything}; got != table || !reflect.DeepEqual(*requests, want) {
		t.Errorf("%s\nasked %q", got, *requests)
	}
	if got := run(false, "name"); got != "ownedaccesskey.management.platform.sh/ci\nownedaccesskey.management.platform.sh/other-key\n" {
		t.Errorf("%s", got)
	}
	var list model.OwnedAccessKeyList
	if err := json.Unmarshal([]byte(run(false, "json")), &list); err != nil || list.Kind != "OwnedAccessKeyList" || list.APIVersion != "management.platform.sh/v1" || len(list.Items) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// The key that was made is on the standard output alone. Without a flag that limits it there is no scope.
func TestKeyCreate(t *testing.T) {
	requests := keysPlatform(t)
	for about, row := range map[string]struct {
		command KeyCreate
		want    model.OwnedAccessKeySpec
		refused string
	}{
		"nothing but a name": {KeyCreate{}, model.OwnedAccessKeySpec{}, ""},
		"an owner, a lifetime and a text": {
			KeyCreate{DisplayName: "CI", Team: "web", TTL: time.Hour}, model.OwnedAccessKeySpec{DisplayName: "CI", Team: "web", TTLSeconds: 3600}, "",
		},
		"a scope": {
			KeyCreate{Project: names{"shop"}, Virtual: virtualNames{{Project: "a", VirtualCluster: "b"}}, Cluster: names{"c", "d"}, Role: names{"platformCLI"}, ReadOnly: true},
			model.OwnedAccessKeySpec{Scope: &model.Scope{
				Projects: []model.ScopeProject{{Project: "shop"}}, VirtualClusters: []model.ScopeVirtualCluster{{Project: "a", VirtualCluster: "b"}},
				Clusters: []model.ScopeCluster{{Cluster: "c"}, {Cluster: "d"}}, Roles: []model.ScopeRole{{Role: "platformCLI"}}, ReadOnly: true,
			}}, "",
		},
		"read-only of nothing":    {KeyCreate{ReadOnly: true}, model.OwnedAccessKeySpec{}, "--read-only"},
		"a fraction of a second":  {KeyCreate{TTL: time.Millisecond}, model.OwnedAccessKeySpec{}, "--ttl"},
		"an end before the start": {KeyCreate{TTL: -time.Second}, model.OwnedAccessKeySpec{}, "--ttl"},
	} {
		*requests = nil
		var out, messages strings.Builder
		row.command.Name, row.command.Output, row.command.Out, row.command.Messages = "ci", "text", &out, &messages
		err := row.command.Run(t.Context())
		if row.refused != "" {
			if err == nil || !strings.Contains(err.Error(), row.refused) || len(*requests) > 0 {
				t.Errorf("%s: %v, asked %q", about, err, *requests)
			}
			continue
		}
		if err != nil || out.String() != "pak_new\n" || !strings.Contains(messages.String(), "ci acts as user:ana and ends at 2027-03-04T05:06:07Z") ||
			strings.Contains(messages.String(), "pak_new") || len(*requests) != 1 {
			t.Errorf("%s: %v, asked %q, prints %q and says %q", about, err, *requests, out.String(), messages.String())
			continue
		}
		var sent model.OwnedAccessKey
		text, found := strings.CutPrefix((*requests)[0], "POST /ownedaccesskeys  ")
		if err := json.Unmarshal([]byte(text), &sent); err != nil || !found || sent.Name != "ci" || !reflect.DeepEqual(sent.Spec, row.want) {
			t.Errorf("%s: sent %s, %v", about, (*requests)[0], err)
		}
	}
	var out strings.Builder
	var made model.OwnedAccessKey
	if err := (&KeyCreate{Name: "ci", Output: "json", Out: &out, Messages: io.Discard}).Run(t.Context()); err != nil ||
		json.Unmarshal([]byte(out.String()), &made) != nil || made.Spec.Key != "pak_new" {
		t.Errorf("%v: %s", err, out.String())
	}
}

// A key is disabled by its name.
func TestKeyDisable(t *testing.T) {
	asked := keysPlatform(t)
	var out strings.Builder
	if err := (&KeyDisable{Name: "ci", Out: &out}).Run(t.Context()); err != nil || out.String() != "disabled the access key ci\n" ||
		!reflect.DeepEqual(*asked, []string{`PATCH /ownedaccesskeys/ci  {"spec":{"disabled":true}}`}) {
		t.Errorf("%v, asked %q, prints %q", err, *asked, out.String())
	}
	if err := (&KeyDisable{Name: "other", Out: io.Discard}).Run(t.Context()); err == nil {
		t.Error("a key that is not there is disabled")
	}
}
