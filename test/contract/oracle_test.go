package contract

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// adminBearer is the key of the requests to our side.
const adminBearer = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"

// keysPath is the resource that both sides serve.
const keysPath = "/apis/management.platform.sh/v1/ownedaccesskeys"

// step is one request of a scenario. Path follows keysPath. A path that begins with "//" is absolute, after its first slash. In path, query and
// body, {rv:a}, {uid:a} and {old:a} stand for the newest resourceVersion, the uid and the first resourceVersion of the object a on that side,
// {list} for the resourceVersion of the last list and {continue} for its continue token.
type step struct {
	method, path, query, body string
	// header holds "Name: value" lines.
	header []string
}

// scenario is a sequence of requests to a state that holds only the admin key. After the sequence follow requests that are each sent alone, to
// a state of their own.
type scenario struct {
	name        string
	steps       []step
	singleSteps []step
}

// side is one of the two servers, with the values learned from its answers.
type side struct {
	handler                  http.Handler
	uid, first, newest       map[string]string
	versions                 map[string][]string
	list, next, bearer, name string
}

// newSides makes the two servers, each over a state of its own with the admin key in it.
func newSides(t *testing.T) (ours, theirs *side) {
	t.Helper()
	client, err := redisstore.Open(redistest.Embedded(t), redisstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("opening store: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	env := &platform.Environment{
		Stores: client.Resource, Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		Config: func() *model.ConfigStatus { return &model.ConfigStatus{} }, Version: "test",
	}
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})
	createdKey, err := resource.Create(t.Context(), kinds.AccessKeys(env), resource.CreateInput[*model.OwnedAccessKey]{
		Caller: caller,
		Object: &model.OwnedAccessKey{
			ObjectMeta: metav1.ObjectMeta{Name: "admin"},
			Spec:       model.OwnedAccessKeySpec{User: "admin", Groups: []string{identity.Admins}, Key: adminBearer},
		},
	})
	if err != nil {
		t.Fatalf("creating the admin key: %v", err)
	}
	admin := createdKey.Object.DeepCopy()
	admin.ResourceVersion, admin.Spec.Key, admin.Status = "", "", model.OwnedAccessKeyStatus{}
	text, err := json.Marshal(admin)
	if err != nil {
		t.Fatal(err)
	}
	kubeState := client.Resource("kube")
	if _, err := kubeState.Create(t.Context(), store.Record{
		Name: "/ownedaccesskeys/admin", Created: admin.CreationTimestamp.Time, Object: text}); err != nil {
		t.Fatalf("creating the admin key: %v", err)
	}
	ours = newSide(process.NewServer(env).Mount(catalog.Functions...), adminBearer, "ours")
	theirs = newSide(kubeHandler(kinds.AccessKeys(env), kubeState, caller), "", "kube")
	return ours, theirs
}

func newSide(handler http.Handler, bearer, name string) *side {
	return &side{handler: handler, bearer: bearer, name: name,
		uid: map[string]string{}, first: map[string]string{}, newest: map[string]string{}, versions: map[string][]string{}}
}

var reference = regexp.MustCompile(`\{(rv|uid|old|list|continue)(?::([^}]*))?\}`)

// resolve replaces placeholders with the values of the side.
func (s *side) resolve(text string) string {
	return reference.ReplaceAllStringFunc(text, func(placeholder string) string {
		parts := reference.FindStringSubmatch(placeholder)
		switch parts[1] {
		case "rv":
			return s.newest[parts[2]]
		case "old":
			return s.first[parts[2]]
		case "uid":
			return s.uid[parts[2]]
		case "list":
			return s.list
		default:
			return s.next
		}
	})
}

// reaction is an answer in a form that can be compared: its parts by name.
type reaction map[string]string

// ask sends a request and splits the answer into its parts.
func (s *side) ask(ctx context.Context, st step) reaction {
	path := keysPath + st.path
	if strings.HasPrefix(st.path, "//") {
		path = st.path[1:]
	}
	target := "http://localhost" + s.resolve(path)
	if st.query != "" {
		target += "?" + s.resolve(st.query)
	}
	r := httptest.NewRequestWithContext(ctx, st.method, target, strings.NewReader(s.resolve(st.body)))
	r.Header.Set("User-Agent", "oracle")
	if st.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range st.header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	if s.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	answer := w.Result()
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)

	parts := reaction{"status": fmt.Sprint(answer.StatusCode)}
	for _, name := range []string{"Content-Type", "Cache-Control", "Retry-After", "Allow"} {
		parts["header "+name] = strings.ReplaceAll(strings.Join(answer.Header.Values(name), " | "), "; ", ";")
	}
	parts["warnings"] = fmt.Sprint(len(answer.Header.Values("Warning")))
	if strings.Contains(answer.Header.Get("Content-Type"), "yaml") {
		body, _ = yaml.YAMLToJSON(body)
	}
	value, err := values(body)
	if err != nil {
		parts["body"] = "no JSON"
		return parts
	}
	s.learn(value)
	flatten(parts, "", s.mask(value))
	return parts
}

// values reads one JSON value, or the values of a stream as a list.
func values(body []byte) (any, error) {
	var list []any
	decoder := json.NewDecoder(bytes.NewReader(body))
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) && len(list) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return list, nil
}

// learn records versions, uids and continue tokens.
func (s *side) learn(value any) {
	if events, isStream := value.([]any); isStream {
		for _, event := range events {
			s.learn(event)
		}
		return
	}
	object, _ := value.(map[string]any)
	if inner, isEvent := object["object"]; isEvent {
		s.learn(inner)
		return
	}
	metadata, _ := object["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	if items, isList := object["items"].([]any); isList {
		s.list = version
		s.next, _ = metadata["continue"].(string)
		for _, item := range items {
			s.learn(item)
		}
		return
	}
	name, _ := metadata["name"].(string)
	if name == "" || version == "" {
		return
	}
	if s.first[name] == "" {
		s.first[name] = version
	}
	s.newest[name] = version
	if !slices.Contains(s.versions[name], version) {
		s.versions[name] = append(s.versions[name], version)
	}
	s.uid[name], _ = metadata["uid"].(string)
}

// maskedFields are values that differ by nature, by the last step of their path. A resourceVersion becomes the number of
// versions of that object that the side has shown.
var maskedFields = map[string]bool{"uid": true, "creationTimestamp": true, "deletionTimestamp": true, "continue": true, "resourceVersion": true}

// maskedColumns are the columns of times, and of the key with which a key was made.
var maskedColumns = []string{"Expires", "Last Activity", "Age", "Created By"}

// generatedName matches a name that a server made.
var generatedName = regexp.MustCompile(`^(gen-|Gen-|accesskey-|x{50,})[a-z0-9]{5}$`)

// mask replaces values that differ by nature. It removes the parts that Kubernetes does not have: the bearer token, and the last use and the
// origin of the key. Prose is not compared.
func (s *side) mask(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value["kind"] == "Status" {
			delete(value, "message")
			if details, ok := value["details"].(map[string]any); ok {
				if causes, ok := details["causes"].([]any); ok {
					details["causes"] = sortCauses(causes)
				}
			}
		}
		if value["kind"] == "OwnedAccessKey" || value["spec"] != nil {
			delete(value, "status")
			if spec, ok := value["spec"].(map[string]any); ok {
				delete(spec, "key")
			}
		}
		if metadata, ok := value["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
			name, _ := metadata["name"].(string)
			version, _ := metadata["resourceVersion"].(string)
			if at := slices.Index(s.versions[name], version); at >= 0 {
				metadata["resourceVersion"] = at + 1
			}
		}
		if cells, ok := value["cells"].([]any); ok && len(cells) == len(accesskey.Definition.Columns) {
			for i, column := range accesskey.Definition.Columns {
				if slices.Contains(maskedColumns, column.Name) {
					cells[i] = nil
				}
			}
		}
		for name, each := range value {
			if text, ok := each.(string); ok && text != "" && (maskedFields[name] || name == "name" && generatedName.MatchString(text)) {
				value[name] = "<" + name + ">"
				continue
			}
			value[name] = s.mask(each)
		}
	case []any:
		for i := range value {
			value[i] = s.mask(value[i])
		}
	case string:
		if generatedName.MatchString(value) {
			return "<name>"
		}
	}
	return value
}

// sortCauses returns the field and the reason of each cause, in a fixed order.
func sortCauses(causes []any) []any {
	var lines []string
	for _, cause := range causes {
		parts, _ := cause.(map[string]any)
		lines = append(lines, fmt.Sprintf("%v %v", parts["field"], parts["reason"]))
	}
	sort.Strings(lines)
	lines = slices.Compact(lines)
	result := make([]any, len(lines))
	for i, line := range lines {
		result[i] = line
	}
	return result
}

func flatten(into reaction, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, each := range value {
			flatten(into, path+"."+name, each)
		}
		if len(value) == 0 && path != "" {
			into[path] = "{}"
		}
	case []any:
		for i, member := range value {
			key := fmt.Sprint(i)
			if object, ok := member.(map[string]any); ok && path == ".items" {
				// Keyed by name, so that an additional or missing object is one difference.
				metadata, _ := object["metadata"].(map[string]any)
				key = fmt.Sprint(metadata["name"])
			}
			flatten(into, path+"["+key+"]", member)
		}
		into[path+"#"] = fmt.Sprint(len(value))
	default:
		into[path] = fmt.Sprint(value)
	}
}

// difference is one part of an answer in which the sides differ. An absent part is "-".
type difference struct {
	where, part, ours, theirs string
}

func (d difference) String() string {
	return fmt.Sprintf("%s: %s: ours %q, kube-apiserver's %q", d.where, d.part, d.ours, d.theirs)
}

// compare returns the parts that differ. If the status differs, nothing else is compared.
func compare(where string, ours, theirs reaction) []difference {
	if ours["status"] != theirs["status"] {
		return []difference{{where, "status", ours["status"] + " " + ours[".reason"], theirs["status"] + " " + theirs[".reason"]}}
	}
	var names []string
	for name := range ours {
		names = append(names, name)
	}
	for name := range theirs {
		if _, there := ours[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var differences []difference
	value := func(r reaction, name string) string {
		if text, there := r[name]; there {
			return text
		}
		return "-"
	}
	for _, name := range names {
		if a, b := value(ours, name), value(theirs, name); a != b {
			differences = append(differences, difference{where, name, a, b})
		}
	}
	return differences
}

// TestOracle sends every scenario to both sides. It fails for a difference that knownDifferences does not explain, and for an explanation
// without a difference.
func TestOracle(t *testing.T) {
	occurrences := make([]int, len(knownDifferences))
	requests := 0
	for _, sc := range append(slices.Clone(scenarios), randomScenarios()...) {
		t.Run(sc.name, func(t *testing.T) {
			ours, theirs := newSides(t)
			send := func(i int, st step) {
				requests++
				where := fmt.Sprintf("%s/%d %s %s?%s", sc.name, i, st.method, st.path, st.query)
				a, b := ours.ask(t.Context(), st), theirs.ask(t.Context(), st)
				for _, d := range compare(where, a, b) {
					explanation := slices.IndexFunc(knownDifferences, func(k knownDifference) bool { return k.explains(d, st) })
					if explanation < 0 {
						t.Errorf("%s\n\tbody %.200s", d, st.body)
						continue
					}
					occurrences[explanation]++
				}
			}
			for i, st := range sc.steps {
				send(i, st)
			}
			for i, st := range sc.singleSteps {
				ours, theirs = newSides(t)
				for _, before := range sc.steps {
					ours.ask(t.Context(), before)
					theirs.ask(t.Context(), before)
				}
				send(len(sc.steps)+i, st)
			}
		})
	}
	t.Logf("counted: %d requests", requests)
	if testing.Short() || t.Failed() {
		return
	}
	for i, known := range knownDifferences {
		if occurrences[i] == 0 {
			t.Errorf("this difference no longer occurs: %s", known.about)
		}
	}
}
