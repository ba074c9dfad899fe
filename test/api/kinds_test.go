package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/kinds/issuedtoken"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
	"management.platform.sh/test/sample"
)

// storedKind is a kind that is stored, with what the test needs to write requests for it.
type storedKind struct {
	kind, resource, path string
	// bearer is the bearer token of a caller who may do everything with the objects.
	bearer string
	// section and field name a field that clients can change, which holds a text.
	section, field string
	// status is true if clients can change the status separately from the section.
	status bool
	// spec returns the spec of a new object with a secret. Nil: clients cannot create objects.
	spec func(secret string) map[string]any
	// createShows is true if the response to a create contains the secret.
	createShows bool
	// adminsCreate is true if only admins can create objects.
	adminsCreate bool
	// waits is true if a deleted object waits for its credentials: it is marked for deletion before it is gone.
	waits bool
	// writes and deletes say whether clients can change and delete objects.
	writes, deletes bool
}

// objectName returns the name of the object that a rule is tested on. The configuration has a fixed name.
func (k storedKind) objectName() string {
	if k.spec == nil {
		return "config"
	}
	return "one"
}

const canary = "canary-8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-"

// particulars are what kinds have in which they differ from plain kinds: only admins create objects of plain kinds, clients can change and
// delete the objects, and no response contains a secret.
var particulars = map[string]func(*storedKind){
	"ownedaccesskeys":         func(k *storedKind) { k.bearer, k.createShows, k.adminsCreate = anaBearer, true, false },
	"virtualclusterinstances": func(k *storedKind) { k.bearer, k.status = anaBearer, true },
	"directclusterendpointtokens": func(k *storedKind) {
		k.bearer, k.createShows, k.adminsCreate, k.writes, k.field = anaBearer, true, false, false, ""
	},
	"users": func(k *storedKind) { k.waits = true },
	"teams": func(k *storedKind) { k.waits = true },
}

var storedKinds = func() []storedKind {
	var list []storedKind
	for _, stored := range platform.StoredKinds {
		name := stored.Resource.Resource
		k := storedKind{
			kind: stored.Kind, resource: name, path: sample.Path(stored), bearer: adminBearer, section: "spec", field: "displayName",
			spec:         func(secret string) map[string]any { return sample.Spec(name, "ana", secret) },
			adminsCreate: true, writes: true, deletes: true,
		}
		if differ := particulars[name]; differ != nil {
			differ(&k)
		}
		list = append(list, k)
	}
	return append(list, storedKind{
		kind: "Config", resource: "configs", path: configs, bearer: adminBearer, section: "status", field: "platformHost", writes: true,
	})
}()

// manifest is an object with more metadata, each member with a leading comma.
func (k storedKind) manifest(name, metadata string) string {
	spec, err := json.Marshal(k.spec(canary + name))
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"apiVersion":"management.platform.sh/v1","kind":%q,"metadata":{"name":%q%s},"spec":%s}`, k.kind, name, metadata, spec)
}

// kindWorld is the whole API with one stored object of a kind.
type kindWorld struct {
	*configWorld
	storedKind
	// secret is the secret of that object.
	secret string
}

// mountSeparately makes each function a process of its own, as on a function platform: it opens what it needs by itself.
func (c *configWorld) mountSeparately() {
	routes := http.NewServeMux()
	for _, f := range catalog.Functions {
		process := sync.OnceValue(func() http.Handler {
			env := &platform.Environment{
				Stores: c.env.Stores, Now: c.env.Now, Random: c.env.Random, Encryption: c.env.Encryption, Log: c.env.Log, Version: c.env.Version,
				Tokens: c.env.Tokens,
			}
			return c.mount(env, f)
		})
		served := map[string]bool{}
		for _, endpoint := range f.Endpoints {
			if pattern := endpoint.Method + " " + endpoint.Path; !served[pattern] {
				served[pattern] = true
				routes.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { process().ServeHTTP(w, r) })
			}
		}
	}
	c.handler = routes
}

// everyKind runs the test of a rule for each kind that the rule applies to.
func everyKind(t *testing.T, about func(storedKind) bool, rule func(t *testing.T, w *kindWorld)) {
	t.Helper()
	t.Parallel()
	for _, k := range storedKinds {
		if !about(k) {
			continue
		}
		t.Run(k.kind, func(t *testing.T) {
			t.Parallel()
			w := &kindWorld{configWorld: newConfigWorld(t, redistest.Embedded(t)), storedKind: k, secret: canary}
			w.mountSeparately()
			w.seed()
			if k.spec == nil {
				w.setConfig(`{"auth":{"oidc":{"issuerUrl":"https://a.example","clientSecret":"` + canary + `"}}}`)
			} else {
				w.create("one", "")
			}
			for _, bearer := range []string{adminBearer, anaBearer, benBearer} {
				// The state records the first use of a key.
				w.expect(http.StatusCreated, bearer, "POST", selves, "")
			}
			rule(t, w)
		})
	}
}

func all(storedKind) bool           { return true }
func isWritable(k storedKind) bool  { return k.writes }
func isCreatable(k storedKind) bool { return k.spec != nil }

// createRequest returns a request to create an object, from a caller who may create it.
func (w *kindWorld) createRequest(name, metadata string) request {
	r := request{method: "POST", body: w.manifest(name, metadata)}
	if w.adminsCreate {
		r.bearer = adminBearer
	}
	return r
}

// applyRequest returns a server-side apply that creates an object.
func (w *kindWorld) applyRequest(name string) request {
	r := w.createRequest(name, "")
	r.method, r.path, r.contentType = "PATCH", "/"+name+"?fieldManager=ops", applyPatch
	return r
}

// create makes an object and keeps its secret.
func (w *kindWorld) create(name, metadata string) string {
	w.t.Helper()
	text := w.sendExpecting(http.StatusCreated, w.createRequest(name, metadata))
	var made struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		w.t.Fatal(err)
	}
	if made.Status.Token != "" {
		w.secret = made.Status.Token
	}
	return text
}

// sendRequest sends a request whose path is below the path of the kind. An empty bearer means the bearer of the kind.
func (w *kindWorld) sendRequest(r request) (int, string) {
	w.t.Helper()
	r.path = w.path + r.path
	if r.bearer == "" {
		r.bearer = w.bearer
	}
	answer, text := w.send(r)
	return answer.StatusCode, text
}

// sendExpecting sends a request and returns the body of an answer with that status.
func (w *kindWorld) sendExpecting(status int, r request) string {
	w.t.Helper()
	code, text := w.sendRequest(r)
	if code != status {
		w.t.Fatalf("%s %s %s: %d %s, want %d", r.method, r.path, r.body, code, text, status)
	}
	return text
}

// storedRecords returns what the state holds of the kind.
func (w *kindWorld) storedRecords() []store.Record {
	w.t.Helper()
	page, err := w.env.Stores(w.resource).List(w.t.Context(), store.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Records
}

// readObject returns the object as a read shows it.
func (w *kindWorld) readObject() map[string]any {
	w.t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(w.sendExpecting(http.StatusOK, request{method: "GET", path: "/" + w.objectName()})), &object); err != nil {
		w.t.Fatal(err)
	}
	return object
}

const (
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// change is a request that gives a field a value.
type change struct {
	about string
	// operation is the operation of the entry in managedFields.
	operation string
	request   request
}

// changes returns all ways to give the field of an object a value, and the status too if clients change it separately. The query follows each
// path. PUT sends back the given object.
func (w *kindWorld) changes(object map[string]any, value, query string) []change {
	w.t.Helper()
	list := w.changesAt("", object, w.section, w.field, value, query)
	if w.status {
		list = append(list, w.changesAt("/status", object, "status", "ingress", map[string]any{"host": value}, query)...)
	}
	return list
}

func (w *kindWorld) changesAt(subresource string, object map[string]any, section, field string, value any, query string) []change {
	w.t.Helper()
	marshal := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			w.t.Fatal(err)
		}
		return string(text)
	}
	var replacement map[string]any
	if err := json.Unmarshal([]byte(marshal(object)), &replacement); err != nil {
		w.t.Fatal(err)
	}
	replacement[section].(map[string]any)[field] = value
	metadata := replacement["metadata"].(map[string]any)
	path, text := "/"+w.objectName()+subresource+"?"+query, marshal(value)
	preconditions := fmt.Sprintf(`"resourceVersion":%q,"uid":%q`, metadata["resourceVersion"], metadata["uid"])
	return []change{
		{"PUT" + subresource, "Update", request{method: "PUT", path: path, body: marshal(replacement)}},
		{"merge patch" + subresource, "Update", request{method: "PATCH", path: path, contentType: mergePatch,
			body: fmt.Sprintf(`{"metadata":{%s},%q:{%q:%s}}`, preconditions, section, field, text)}},
		{"JSON patch" + subresource, "Update", request{method: "PATCH", path: path, contentType: jsonPatch,
			body: fmt.Sprintf(`[{"op":"add","path":"/metadata/resourceVersion","value":%q},{"op":"add","path":"/%s/%s","value":%s}]`,
				metadata["resourceVersion"], section, field, text)}},
		{"apply" + subresource, "Apply", request{method: "PATCH", path: path + "&force=true", contentType: applyPatch,
			body: fmt.Sprintf(`{"apiVersion":"management.platform.sh/v1","kind":%q,"metadata":{"name":%q,%s},%q:{%q:%s}}`,
				w.kind, w.objectName(), preconditions, section, field, text)}},
	}
}

// state returns what the state holds of all kinds, and which tokens and keys are revoked.
func (w *kindWorld) state() string {
	w.t.Helper()
	var text strings.Builder
	resources := []string{issuedtoken.RevokedResource, "retiredkeys", logins.Resource}
	for _, k := range storedKinds {
		resources = append(resources, k.resource)
	}
	for _, resource := range resources {
		page, err := w.env.Stores(resource).List(w.t.Context(), store.Query{})
		if err != nil {
			w.t.Fatal(err)
		}
		fmt.Fprintln(&text, resource, page.Records)
	}
	return text.String()
}

// addQuery adds a parameter to the query.
func (r request) addQuery(parameter string) request {
	r.path += map[bool]string{true: "&", false: "?"}[strings.Contains(r.path, "?")] + parameter
	return r
}

// A dry run gets the same answer as the request itself, without a credential, and changes nothing in the state, neither of this kind nor of
// another. Source: Spec 4; ADR-0004.
func TestDryRun(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		try := func(about string, r request) string {
			t.Helper()
			before := w.state()
			code, text := w.sendRequest(r.addQuery("dryRun=All"))
			if after := w.state(); after != before {
				t.Errorf("a dry run of %s stores something:\n%s\nwas\n%s", about, after, before)
			}
			for _, secret := range []string{w.secret, canary, "pak_", `"token":"ey`} {
				if strings.Contains(text, secret) {
					t.Errorf("a dry run of %s shows a secret: %s", about, text)
				}
			}
			if stored, answer := w.sendRequest(r); code != stored || code >= 300 {
				t.Errorf("a dry run of %s is answered %d %s, and the request %d %s", about, code, text, stored, answer)
			}
			if w.state() == before {
				t.Errorf("%s stores nothing", about)
			}
			return text
		}
		if w.spec != nil {
			try("create", w.createRequest("new", ""))
		}
		if w.writes {
			for i := range w.changes(w.readObject(), "", "") {
				value := fmt.Sprintf("by-%d.example", i)
				c := w.changes(w.readObject(), value, "fieldManager=ops")[i]
				if text := try(c.about, c.request); !strings.Contains(text, value) {
					t.Errorf("a dry run of %s is answered %s", c.about, text)
				}
			}
			if w.spec != nil {
				try("apply to an absent name", w.applyRequest("more"))
			}
		}
		if w.deletes {
			try("delete", request{method: "DELETE", path: "/one"})
			try("delete of a selection", request{method: "DELETE", path: "?fieldSelector=metadata.name%3Dnew"})
		}
	})
}

// Each request that writes a field records its manager. Source: Spec 2.2; ADR-0008.
func TestManagedFields(t *testing.T) {
	everyKind(t, isWritable, func(t *testing.T, w *kindWorld) {
		expect := func(about, text, manager, operation string) {
			t.Helper()
			var object struct {
				Metadata struct {
					ManagedFields []struct{ Manager, Operation string }
				}
			}
			if err := json.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			for _, entry := range object.Metadata.ManagedFields {
				if entry.Manager == manager && entry.Operation == operation {
					return
				}
			}
			t.Errorf("after %s by %s there is %+v", about, manager, object.Metadata.ManagedFields)
		}
		if w.spec != nil {
			r := w.createRequest("new", "")
			r.path = "?fieldManager=maker"
			expect("create", w.sendExpecting(http.StatusCreated, r), "maker", "Update")
			expect("apply to an absent name", w.sendExpecting(http.StatusCreated, w.applyRequest("more")), "ops", "Apply")
		}
		for i := range w.changes(w.readObject(), "", "") {
			manager := fmt.Sprint("m", i)
			c := w.changes(w.readObject(), manager+".example", "fieldManager="+manager)[i]
			text := w.sendExpecting(http.StatusOK, c.request)
			expect(c.about, text, manager, c.operation)
			expect("a read after "+c.about, w.sendExpecting(http.StatusOK, request{method: "GET", path: "/" + w.objectName()}), manager, c.operation)
		}
	})
}

// fieldValidation decides about a field that the kind does not have: the request is refused, gets a warning, or the field is ignored. The
// configuration refuses such fields with every fieldValidation. Source: Spec 2.1; ADR-0003, ADR-0015.
func TestFieldValidation(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		field := w.section + ".colour"
		try := func(about string, r request) {
			t.Helper()
			if r.contentType == jsonPatch {
				r.body = strings.TrimSuffix(r.body, "]") + fmt.Sprintf(`,{"op":"add","path":"/%s/colour","value":"red"}]`, w.section)
			} else {
				var object map[string]any
				if err := json.Unmarshal([]byte(r.body), &object); err != nil {
					t.Fatal(err)
				}
				object[w.section].(map[string]any)["colour"] = "red"
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				r.body = string(text)
			}
			r.path = w.path + r.path
			if r.bearer == "" {
				r.bearer = w.bearer
			}
			for _, validation := range []string{"Strict", "Warn", "Ignore"} {
				sent := r.addQuery("fieldValidation=" + validation)
				if validation != "Strict" {
					sent = sent.addQuery("dryRun=All")
				}
				before := w.state()
				answer, text := w.send(sent)
				warned := strings.Contains(strings.Join(answer.Header.Values("Warning"), "\n"), field)
				switch {
				case validation == "Strict" || w.spec == nil:
					if answer.StatusCode != http.StatusBadRequest && w.spec != nil || answer.StatusCode < 400 || !strings.Contains(text, `"field":"`+field+`"`) {
						t.Errorf("%s with %s: %d %s", about, validation, answer.StatusCode, text)
					}
				case answer.StatusCode > 299 || warned != (validation == "Warn") || strings.Contains(text, "colour"):
					t.Errorf("%s with %s: %d %q %s", about, validation, answer.StatusCode, answer.Header.Values("Warning"), text)
				}
				if w.state() != before {
					t.Errorf("%s with %s stores something", about, validation)
				}
			}
		}
		if w.spec != nil {
			try("create", w.createRequest("new", ""))
		}
		if !w.writes {
			return
		}
		for _, c := range w.changesAt("", w.readObject(), w.section, w.field, "x.example", "fieldManager=ops") {
			try(c.about, c.request)
		}
		if w.spec != nil {
			try("apply to an absent name", w.applyRequest("more"))
		}
	})
}

// A get and a list as a Table have the same columns, and a cell for each column in each row. Source: Spec 4; ADR-0001.
func TestTables(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		type table struct {
			metav1.TypeMeta
			ColumnDefinitions []metav1.TableColumnDefinition
			Rows              []struct {
				Cells  []any
				Object metav1.PartialObjectMetadata
			}
		}
		var columns []metav1.TableColumnDefinition
		for _, path := range []string{"/" + w.objectName(), "?fieldSelector=metadata.name%3D" + w.objectName()} {
			var got table
			text := w.sendExpecting(http.StatusOK, request{method: "GET", path: path, accept: asTable})
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if got.Kind != "Table" || got.APIVersion != "meta.k8s.io/v1" || len(got.Rows) != 1 || len(got.ColumnDefinitions) < 2 || got.ColumnDefinitions[0].Name != "Name" {
				t.Fatalf("GET %s: %s", path, text)
			}
			row := got.Rows[0]
			if len(row.Cells) != len(got.ColumnDefinitions) || row.Cells[0] != w.objectName() || row.Object.Name != w.objectName() || row.Object.Kind != "PartialObjectMetadata" {
				t.Errorf("GET %s has the row %+v", path, row)
			}
			if columns != nil && !reflect.DeepEqual(columns, got.ColumnDefinitions) {
				t.Errorf("GET %s has the columns %+v, and the object alone %+v", path, got.ColumnDefinitions, columns)
			}
			columns = got.ColumnDefinitions
		}
	})
}

// A request that names another version or another uid than the stored object changes nothing. Source: Spec 2.2.
func TestPreconditions(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		refuse := func(about string, r request) {
			t.Helper()
			before := w.storedRecords()
			if text := w.sendExpecting(http.StatusConflict, r); !strings.Contains(text, `"reason":"Conflict"`) {
				t.Errorf("%s: %s", about, text)
			}
			if after := w.storedRecords(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%s stores something", about)
			}
		}
		object := w.readObject()
		metadata := object["metadata"].(map[string]any)
		if w.writes {
			w.sendExpecting(http.StatusOK, w.changes(object, "first.example", "")[1].request)
			for _, c := range w.changes(object, "late.example", "fieldManager=ops") {
				refuse(c.about+" of an old version", c.request)
			}
			current := w.readObject()["metadata"].(map[string]any)
			uid := metadata["uid"]
			metadata["resourceVersion"], metadata["uid"] = current["resourceVersion"], "other"
			for _, c := range w.changes(object, "late.example", "fieldManager=ops") {
				if c.request.contentType != jsonPatch {
					refuse(c.about+" of another object", c.request)
				}
			}
			metadata["uid"] = uid
		}
		if !w.deletes {
			return
		}
		for _, path := range []string{"/one", "?fieldSelector=metadata.name%3Done"} {
			for _, condition := range []string{`"uid":"other"`, `"resourceVersion":"1"`} {
				refuse("DELETE "+path+" with "+condition, request{method: "DELETE", path: path, body: `{"preconditions":{` + condition + `}}`})
			}
		}
		w.sendExpecting(http.StatusOK, request{method: "DELETE", path: "/one",
			body: fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, metadata["uid"], metadata["resourceVersion"])})
		w.sendExpecting(http.StatusNotFound, request{method: "GET", path: "/one"})
	})
}

// The objects of others do not exist for a caller. All callers can read the configuration. Source: Spec 2.4, 2.5; ADR-0005, ADR-0017.
func TestObjectsOfOthers(t *testing.T) {
	everyKind(t, isCreatable, func(t *testing.T, w *kindWorld) {
		before := w.storedRecords()
		requests := []request{{method: "GET", path: "/one"}, {method: "DELETE", path: "/one"}}
		if w.writes {
			for _, c := range w.changes(w.readObject(), "x", "") {
				if c.operation == "Update" {
					requests = append(requests, c.request)
				}
			}
		}
		for _, r := range requests {
			absent := r
			absent.path, absent.body = strings.Replace(r.path, "/one", "/two", 1), strings.Replace(r.body, `"name":"one"`, `"name":"two"`, 1)
			r.bearer, absent.bearer = benBearer, benBearer
			got, want := w.sendExpecting(http.StatusNotFound, r), w.sendExpecting(http.StatusNotFound, absent)
			if got != strings.ReplaceAll(want, "two", "one") {
				t.Errorf("%s %s is answered %s, and an absent name %s", r.method, r.path, got, want)
			}
		}
		for _, r := range []request{{method: "GET"}, {method: "DELETE", path: "?fieldSelector=metadata.name%3Done"}} {
			r.bearer = benBearer
			var list struct{ Items []any }
			if err := json.Unmarshal([]byte(w.sendExpecting(http.StatusOK, r)), &list); err != nil || slices.ContainsFunc(list.Items, func(item any) bool {
				return item.(map[string]any)["metadata"].(map[string]any)["name"] == "one"
			}) {
				t.Errorf("%s %s is answered %v, %v", r.method, r.path, list.Items, err)
			}
		}
		if !w.adminsCreate {
			// The name is taken. A caller who may create an object with that name learns this.
			taken := []request{{method: "POST", body: strings.Replace(w.manifest("one", ""), "canary-", "another-", 1)}}
			if w.writes {
				taken = append(taken, request{method: "PATCH", path: "/one?fieldManager=ops&force=true", contentType: applyPatch, body: taken[0].body})
			}
			for _, r := range taken {
				r.bearer = benBearer
				if text := w.sendExpecting(http.StatusConflict, r); !strings.Contains(text, `"reason":"AlreadyExists"`) {
					t.Errorf("%s with the name is answered %s", r.method, text)
				}
			}
		}
		if after := w.storedRecords(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("something was stored")
		}
	})
}

// A secret is only in the response to the create that made it: not in another response, not in the state and not in the log. Source: Spec 2.4,
// 2.5, 2.7; ADR-0005, ADR-0011, ADR-0015, ADR-0017.
func TestSecretsAreShownOnce(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		if w.spec != nil {
			w.sendExpecting(http.StatusOK, request{method: "DELETE", path: "/one"})
			// With a finalizer, if the kind permits one, the response to DELETE is the object.
			metadata := ""
			if w.writes {
				metadata = `,"finalizers":["example.com/hold"]`
			}
			if text := w.create("one", metadata); strings.Contains(text, w.secret) != w.createShows {
				t.Errorf("created: %s", text)
			}
		}
		requests := []request{
			{method: "GET", path: "/" + w.objectName()}, {method: "GET", path: "/" + w.objectName(), accept: "application/yaml"}, {method: "GET"},
			{method: "GET", path: "?includeObject=Object", accept: asTable},
		}
		if w.writes {
			for i := range w.changes(w.readObject(), "", "") {
				requests = append(requests, w.changes(w.readObject(), "x.example", "fieldManager=ops")[i].request.addQuery("dryRun=All"))
			}
		}
		if w.deletes {
			requests = append(requests, request{method: "DELETE", path: "?dryRun=All&fieldSelector=metadata.name%3Done"}, request{method: "DELETE", path: "/one"})
		}
		hidden := func(about, text string) {
			t.Helper()
			if strings.Contains(text, w.secret) {
				t.Errorf("%s has the secret in it: %s", about, text)
			}
		}
		w.watches(w.bearer, "", 1)
		for _, r := range requests {
			hidden(r.method+" "+r.path+" "+r.contentType, w.sendExpecting(http.StatusOK, r))
		}
		for _, record := range w.storedRecords() {
			hidden("the state", string(record.Object))
		}
		hidden("the log", w.log.String())
	})
}

// An object with finalizers is marked by DELETE, and ends with its last finalizer. Source: Spec 2.2, 3.
func TestFinalizers(t *testing.T) {
	both := func(k storedKind) bool { return k.writes && k.deletes }
	everyKind(t, both, func(t *testing.T, w *kindWorld) {
		finalizers := func(list string) request {
			return request{method: "PATCH", path: "/one", contentType: mergePatch, body: `{"metadata":{"finalizers":` + list + `}}`}
		}
		marked := func() bool { return w.readObject()["metadata"].(map[string]any)["deletionTimestamp"] != nil }
		w.sendExpecting(http.StatusOK, finalizers(`["example.com/a","example.com/b"]`))
		for range 2 {
			if text := w.sendExpecting(http.StatusOK, request{method: "DELETE", path: "/one"}); !strings.Contains(text, `"kind":"`+w.kind+`"`) || !marked() {
				t.Errorf("DELETE is answered %s", text)
			}
		}
		w.sendExpecting(http.StatusUnprocessableEntity, finalizers(`["example.com/a","example.com/b","example.com/c"]`))
		w.sendExpecting(http.StatusOK, finalizers(`["example.com/b"]`))
		if !marked() {
			t.Error("the mark is gone")
		}
		w.sendExpecting(http.StatusOK, finalizers(`[]`))
		w.sendExpecting(http.StatusNotFound, request{method: "GET", path: "/one"})
	})
}

// A list comes in pages. The continue token of a page gets the next page. Source: Spec 2.2; ADR-0006.
func TestPages(t *testing.T) {
	everyKind(t, isCreatable, func(t *testing.T, w *kindWorld) {
		for _, name := range []string{"p1", "p2", "p3"} {
			w.create(name, `,"labels":{"page":"yes"}`)
		}
		type page struct {
			Kind     string
			Metadata struct{ Continue, ResourceVersion string }
			Items    []struct{ Metadata struct{ Name string } }
		}
		list := func(query string) (got page, names []string) {
			t.Helper()
			if err := json.Unmarshal([]byte(w.sendExpecting(http.StatusOK, request{method: "GET", path: "?labelSelector=page&limit=2" + query})), &got); err != nil {
				t.Fatal(err)
			}
			for _, item := range got.Items {
				names = append(names, item.Metadata.Name)
			}
			return got, names
		}
		first, names := list("")
		if first.Kind != w.kind+"List" || !slices.Equal(names, []string{"p1", "p2"}) {
			t.Errorf("the first page is %+v", first)
		}
		second, names := list("&continue=" + first.Metadata.Continue)
		if second.Metadata.Continue != "" || second.Metadata.ResourceVersion != first.Metadata.ResourceVersion || !slices.Equal(names, []string{"p3"}) {
			t.Errorf("the second page is %+v", second)
		}
		w.sendExpecting(http.StatusBadRequest, request{method: "GET", path: "?continue=x"})
		w.sendExpecting(http.StatusBadRequest, request{method: "GET", path: "?fieldSelector=spec.none%3Dx"})
		w.sendExpecting(http.StatusGone, request{method: "GET", path: "?resourceVersionMatch=Exact&resourceVersion=2"})
		w.sendExpecting(http.StatusGatewayTimeout, request{method: "GET", path: "?resourceVersion=99999"})
	})
}

// A list and a watch of a namespace show the objects in the namespace. A list and a watch without a namespace show all objects. Source: Spec
// 2.2; ADR-0007.
func TestNamespaces(t *testing.T) {
	namespaced := func(k storedKind) bool { return strings.Contains(k.path, "/namespaces/p-shop") }
	everyKind(t, namespaced, func(t *testing.T, w *kindWorld) {
		for with, sees := range map[string]bool{"/namespaces/p-shop": true, "/namespaces/p-other": false, "": true} {
			scopedWorld := *w
			scopedWorld.path = strings.Replace(w.path, "/namespaces/p-shop", with, 1)
			if text := scopedWorld.sendExpecting(http.StatusOK, request{method: "GET"}); strings.Contains(text, `"name":"one"`) != sees {
				t.Errorf("GET %s: %s", scopedWorld.path, text)
			}
			want := []string{"BOOKMARK "}
			if sees {
				want = []string{"ADDED one", "BOOKMARK "}
			}
			if got := scopedWorld.watches(w.bearer, initialEvents, len(want)); !slices.Equal(got, want) {
				t.Errorf("a watch of %s: %q, want %q", scopedWorld.path, got, want)
			}
		}
	})
}

// initialEvents are the parameters of a watch that begins with the objects in the state.
const initialEvents = "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"

// A watch shows a caller their objects, and what happens to them. Source: Spec 2.2; ADR-0007.
func TestWatch(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		version := fmt.Sprint(w.readObject()["metadata"].(map[string]any)["resourceVersion"])
		expect := func(about, bearer, query string, want ...string) {
			t.Helper()
			if got := w.watches(bearer, query, len(want)); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", about, got, want)
			}
		}
		added := "ADDED " + w.objectName()
		expect("from the state", w.bearer, initialEvents, added, "BOOKMARK ")
		if w.spec != nil {
			expect("for another caller", benBearer, initialEvents, "BOOKMARK ")
		}
		want := []string{}
		if w.writes {
			w.sendExpecting(http.StatusOK, w.changes(w.readObject(), "x.example", "")[1].request)
			want = append(want, "MODIFIED "+w.objectName())
		}
		if w.deletes {
			w.sendExpecting(http.StatusOK, request{method: "DELETE", path: "/one"})
			if w.waits {
				want = append(want, "MODIFIED "+w.objectName())
			}
			want = append(want, "DELETED "+w.objectName())
		}
		expect("from a version", w.bearer, "&resourceVersion="+version, want...)
		w.sendExpecting(http.StatusGone, request{method: "GET", path: "?watch=true&resourceVersion=99999"})
	})
}

// watches returns the first events of a watch of the object, each as "type name".
func (w *kindWorld) watches(bearer, query string, count int) []string {
	w.t.Helper()
	events := []string{}
	for _, line := range w.watch(bearer, w.path+"?watch=true&fieldSelector=metadata.name%3D"+w.objectName()+query, count) {
		if strings.Contains(line, w.secret) {
			w.t.Errorf("a watch shows the secret: %s", line)
		}
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			w.t.Fatal(err)
		}
		events = append(events, event.Type+" "+event.Object.Metadata.Name)
	}
	return events
}

// Old clients watch each kind at a path that says so, also in all namespaces. Source: ADR-0007.
func TestWatchPaths(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		const version = "/apis/management.platform.sh/v1/"
		below, _ := strings.CutPrefix(w.path, version)
		for _, path := range []string{below, w.resource} {
			lines := w.watch(w.bearer, version+"watch/"+path+"?fieldSelector=metadata.name%3D"+w.objectName(), 1)
			if len(lines) != 1 || !strings.HasPrefix(lines[0], `{"type":"ADDED",`) {
				t.Errorf("%s: %q", path, lines)
			}
		}
	})
}

// Each verb of a kind requires exactly the permission for that verb and resource. Every key can create keys and tokens that are no wider than
// itself. Source: Spec 2.3.
func TestVerbs(t *testing.T) {
	everyKind(t, all, func(t *testing.T, w *kindWorld) {
		requests := map[string]request{"get": {method: "GET", path: "/" + w.objectName()}, "list": {method: "GET"}, "watch": {method: "GET", path: "?watch=true&resourceVersion=99999"}}
		if w.spec != nil {
			requests["create"] = request{method: "POST", path: "?dryRun=All", body: w.manifest("new", "")}
		}
		if w.writes {
			changes := w.changes(w.readObject(), "x.example", "dryRun=All&fieldManager=ops")
			requests["update"], requests["patch"] = changes[0].request, changes[1].request
		}
		if w.deletes {
			requests["delete"] = request{method: "DELETE", path: "/one?dryRun=All"}
			requests["deletecollection"] = request{method: "DELETE", path: "?dryRun=All&fieldSelector=metadata.name%3Done"}
		}
		verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
		for verb, r := range requests {
			others := slices.DeleteFunc(slices.Clone(verbs), func(other string) bool { return other == verb })
			resources := []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{w.resource}}}
			for _, row := range []struct {
				about string
				rule  model.ScopeRule
				may   bool
			}{
				{"that verb", model.ScopeRule{Verbs: []string{verb}, Resources: resources}, true},
				{"the other verbs", model.ScopeRule{Verbs: others, Resources: resources}, false},
				{"another resource", model.ScopeRule{Verbs: []string{verb}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"selves"}}}}, false},
			} {
				r.bearer = w.createNarrowKey(verb+" "+row.about, row.rule)
				may := row.may || verb == "create" && !w.adminsCreate
				// A refusal with causes comes from the rules of the kind: the caller was authorized.
				code, text := w.sendRequest(r)
				if permitted := code != http.StatusForbidden || strings.Contains(text, `"causes"`); permitted != may {
					t.Errorf("%s with a scope of %s: %d %s", verb, row.about, code, text)
				}
			}
		}
	})
}

// Each object names the access key that created it, whatever clients write. Selectors find it. Source: ADR-0021, ADR-0047.
func TestOrigin(t *testing.T) {
	everyKind(t, isCreatable, func(t *testing.T, w *kindWorld) {
		forged := `"status":{"createdBy":{"name":"forged","uid":"forged"},"lineage":[{"name":"forged","uid":"forged"}]}`
		creation := w.createRequest("one", "")
		if creation.bearer == "" {
			creation.bearer = w.bearer
		}
		var self struct{ Status struct{ AccessKey string } }
		if err := json.Unmarshal([]byte(w.expect(http.StatusCreated, creation.bearer, "POST", selves, "")), &self); err != nil {
			t.Fatal(err)
		}
		status := func(name string) string {
			t.Helper()
			var object struct {
				Status struct {
					CreatedBy model.AccessKeyReference
					Lineage   []model.AccessKeyAncestor
				}
			}
			text := w.sendExpecting(http.StatusOK, request{method: "GET", path: "/" + name})
			if err := json.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			by := object.Status.CreatedBy
			if by.Name != self.Status.AccessKey || by.UID == "" || len(object.Status.Lineage) != 1 || object.Status.Lineage[0].UID != by.UID ||
				object.Status.Lineage[0].Name != by.Name {
				t.Errorf("%s was made with %+v, want %s", name, object.Status, self.Status.AccessKey)
			}
			return by.UID
		}
		uid := status("one")
		body := w.manifest("two", "")
		if w.section != "status" {
			body = strings.TrimSuffix(body, "}") + "," + forged + "}"
		}
		w.sendExpecting(http.StatusCreated, request{method: "POST", bearer: creation.bearer, body: body})
		status("two")
		if w.writes {
			for _, change := range w.changes(w.readObject(), "changed", "") {
				_, _ = w.sendRequest(change.request)
				status("one")
			}
			for _, path := range []string{"/one", "/one/status"} {
				w.sendRequest(request{method: "PATCH", path: path, contentType: mergePatch, body: "{" + forged + "}"})
				w.sendRequest(request{method: "PATCH", path: path, contentType: mergePatch, body: `{"status":null}`})
				status("one")
			}
		}
		for selector, want := range map[string]int{
			"status.createdBy.name=" + self.Status.AccessKey: 2, "status.createdBy.uid=" + uid: 2, "status.lineage.uid=" + uid: 2,
			"status.createdBy.name=forged": 0, "status.lineage.uid=forged": 0,
		} {
			text := w.sendExpecting(http.StatusOK, request{method: "GET", path: "?fieldSelector=" + selector})
			var list struct{ Items []any }
			if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Items) != want {
				t.Errorf("%s selects %d objects, want %d: %v", selector, len(list.Items), want, err)
			}
		}
	})
}
