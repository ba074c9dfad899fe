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

// A key like another one is made before the other one gets its end. What ends sooner than the grace keeps its end.
func TestKeyRotate(t *testing.T) {
	const base = "/kubernetes/management/apis/management.platform.sh/v1"
	begun := metav1.NewTime(time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC))
	now := metav1.NewTime(begun.Add(10 * time.Hour))
	end := func(hours int) *metav1.Time { return &metav1.Time{Time: now.Add(time.Duration(hours) * time.Hour)} }
	spec := model.OwnedAccessKeySpec{User: "ana", DisplayName: "CI", Groups: []string{"builders"}, TTLSeconds: 7200, Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "shop"}}}}
	for about, row := range map[string]struct {
		command KeyRotate
		old     model.OwnedAccessKey
		// refusing is the method that the platform refuses. "bound": a new key is bound to the old one.
		refusing string
		// change is the change of the old key.
		change, says, refused string
	}{
		"a key without an end": {
			KeyRotate{Grace: 2 * time.Hour}, model.OwnedAccessKey{}, "",
			`{"metadata":{"uid":"u"},"spec":{"ttl":43200,"ttlAfterLastActivity":false}}`, "ci works until 2027-01-02T12:00:00Z", "",
		},
		"a key with a later end, and another name": {
			KeyRotate{Grace: time.Hour, NewName: "next"}, model.OwnedAccessKey{Status: model.OwnedAccessKeyStatus{ExpirationTimestamp: end(5)}}, "",
			`{"metadata":{"uid":"u"},"spec":{"ttl":39600,"ttlAfterLastActivity":false}}`, "ci works until 2027-01-02T11:00:00Z", "",
		},
		"a key that ends sooner": {KeyRotate{Grace: 24 * time.Hour}, model.OwnedAccessKey{Status: model.OwnedAccessKeyStatus{ExpirationTimestamp: end(5)}}, "", "", "ci works until 2027-01-02T15:00:00Z", ""},
		"a disabled key":         {KeyRotate{Grace: time.Hour}, model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{Disabled: true}}, "", "", "", "is disabled"},
		"a key of a kubeconfig":  {KeyRotate{Grace: time.Hour}, model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{Type: "Kubeconfig"}}, "", "", "", "has the type Kubeconfig"},
		"the key of the caller":  {KeyRotate{Grace: time.Hour}, model.OwnedAccessKey{Status: model.OwnedAccessKeyStatus{ExpirationTimestamp: end(5)}}, "bound", "", "", "ends with the access key ci"},
		"no grace":               {KeyRotate{}, model.OwnedAccessKey{}, "", "", "", "--grace"},
		"a key that is not made": {KeyRotate{Grace: time.Hour}, model.OwnedAccessKey{}, http.MethodPost, "", "", "no"},
		"an end that is refused": {KeyRotate{Grace: time.Hour}, model.OwnedAccessKey{}, http.MethodPatch, "", "", "ci works as before"},
	} {
		var made *model.OwnedAccessKey
		changed := ""
		withPlatform(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if r.Method == row.refusing {
				w.WriteHeader(http.StatusForbidden)
				_ = json.NewEncoder(w).Encode(metav1.Status{Message: "no"})
				return
			}
			switch r.Method + " " + strings.TrimPrefix(r.URL.Path, base) {
			case "GET /ownedaccesskeys/ci":
				old := row.old
				disabled, kind := old.Spec.Disabled, old.Spec.Type
				old.Name, old.UID, old.CreationTimestamp, old.Spec, old.Labels = "ci", "u", begun, spec, map[string]string{"stage": "build"}
				old.Spec.Disabled, old.Spec.Type = disabled, kind
				_ = json.NewEncoder(w).Encode(old)
			case "POST /ownedaccesskeys":
				if r.URL.Query().Has("dryRun") {
					trial := model.OwnedAccessKey{Status: model.OwnedAccessKeyStatus{Lineage: []model.AccessKeyAncestor{{Name: "ci", UID: "u", Bounds: row.refusing == "bound"}}}}
					w.WriteHeader(http.StatusCreated)
					_ = json.NewEncoder(w).Encode(trial)
					return
				}
				made = &model.OwnedAccessKey{}
				if err := json.Unmarshal(body, made); err != nil || changed != "" {
					t.Errorf("%s: %v, changed before: %s", about, err, changed)
				}
				answer := *made
				answer.Name, answer.CreationTimestamp, answer.Spec.Key = "ci-x1", now, "pak_new"
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(answer)
			case "PATCH /ownedaccesskeys/ci":
				changed = string(body)
				_ = json.NewEncoder(w).Encode(model.OwnedAccessKey{})
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		})
		var out, messages strings.Builder
		row.command.Name, row.command.Output, row.command.Out, row.command.Messages = "ci", "text", &out, &messages
		err := row.command.Run(t.Context())
		if (err != nil) != (row.refused != "") || err != nil && !strings.Contains(err.Error(), row.refused) || changed != row.change || !strings.Contains(messages.String(), row.says) ||
			strings.Contains(messages.String(), "pak_new") || row.says == "" && row.refusing != http.MethodPatch && made != nil {
			t.Errorf("%s: %v, changed %s, says %q", about, err, changed, messages.String())
		}
		if row.says == "" {
			continue
		}
		if out.String() != "pak_new\n" || !reflect.DeepEqual(made.Spec, spec) || made.Labels["stage"] != "build" || made.Name != row.command.NewName || (made.GenerateName == "ci-") != (row.command.NewName == "") {
			t.Errorf("%s: prints %q, made %+v", about, out.String(), made)
		}
	}
}
