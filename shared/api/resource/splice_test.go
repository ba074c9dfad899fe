package resource_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// lenient are the rules of a kind, except that every object is valid.
type lenient[T resource.Object] struct {
	resource.Rules[T]
}

func (lenient[T]) Default(identity.Caller, T, T)                   {}
func (lenient[T]) Validate(T, T) field.ErrorList                   { return nil }
func (lenient[T]) Grants(T) []auth.Grant                           { return nil }
func (lenient[T]) Authorize(identity.Caller, T, T) field.ErrorList { return nil }
func (lenient[T]) Seal(object T, stored store.Record) (resource.Sealed[T], field.ErrorList) {
	return resource.Sealed[T]{Digest: cmp.Or(stored.Digest, "of-"+object.GetName())}, nil
}

// scribble fills a value with random content. The texts have everything that JSON escapes.
func scribble(random *rand.Rand, value reflect.Value, depth int) {
	if random.IntN(3) == 0 || depth > 6 {
		return
	}
	switch into := value.Addr().Interface().(type) {
	case *metav1.Time:
		into.Time = time.Unix(1_700_000_000+random.Int64N(1e9), random.Int64N(1e9))
		return
	case *model.JSON:
		into.Raw = []byte(`{"b": [1, "<x>"], "a":1.50}`)
		return
	}
	switch value.Kind() {
	case reflect.String:
		texts := []string{"x", `"status":{"uid":"`, "a\\\"b", "<&>\u2028", "ünï 世界", "\xff\xfe", "\ufffd", "\x00\x1f", `","splice":"`, "}}", ""}
		value.SetString(texts[random.IntN(len(texts))] + texts[random.IntN(len(texts))])
	case reflect.Bool:
		value.SetBool(random.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(random.Int64N(1 << 20))
	case reflect.Float64:
		value.SetFloat(random.Float64())
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		scribble(random, value.Elem(), depth+1)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), random.IntN(3), 3))
		for i := range value.Len() {
			scribble(random, value.Index(i), depth+1)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for range random.IntN(3) {
			name, entry := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
			scribble(random, name, depth+1)
			scribble(random, entry, depth+1)
			value.SetMapIndex(name, entry)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			scribble(random, value.Field(i), depth+1)
		}
	default:
	}
}

// scribbleMetadata gives an object random metadata that is valid.
func scribbleMetadata(random *rand.Rand, object metav1.Object) {
	texts := map[string]string{}
	for range random.IntN(4) {
		texts[fmt.Sprintf("example.com/n%d", random.IntN(9))] = `<"status":{}>` + fmt.Sprint(random.IntN(9))
	}
	object.SetAnnotations(texts)
	if random.IntN(2) == 0 {
		object.SetLabels(map[string]string{"a": "b"})
	}
	if random.IntN(3) == 0 {
		object.SetFinalizers([]string{"example.com/keep"})
	}
}

// spliced are answers of one kind, by way of the text and by way of the object.
type spliced[T resource.Object] struct {
	t         *testing.T
	registry  *resource.Registry[T]
	namespace string
	// texts is how many answers were made from the stored text.
	texts int
}

// same checks the answer for one object, and returns whether it was made from the stored text.
func (s *spliced[T]) same(name string) (text []byte) {
	s.t.Helper()
	in := resource.GetInput{Caller: admin, Namespace: s.namespace, Name: name}
	object, err := resource.Get(s.t.Context(), s.registry, in)
	in.Text = &resource.Text{}
	_, again := resource.Get(s.t.Context(), s.registry, in)
	if fmt.Sprint(err) != fmt.Sprint(again) {
		s.t.Fatalf("%s: error %v as text, %v as an object", name, again, err)
	}
	if err != nil || in.Text.JSON == nil {
		return nil
	}
	s.texts++
	want, err := json.Marshal(object)
	if err != nil {
		s.t.Fatal(err)
	}
	if !bytes.Equal(in.Text.JSON, want) {
		s.t.Fatalf("%s is\n%s\nas text, and\n%s\nas an object", name, in.Text.JSON, want)
	}
	if in.Text.Name != object.GetName() || in.Text.Namespace != object.GetNamespace() || in.Text.UID != object.GetUID() ||
		in.Text.ResourceVersion != object.GetResourceVersion() {
		s.t.Fatalf("%s has the metadata %+v, want %+v", name, in.Text.ObjectMeta, object)
	}
	return in.Text.JSON
}

// continueToken is the token in the JSON of a list.
var continueToken = regexp.MustCompile(`"continue":"[\w-]+"`)

// sameList checks the list of all objects, whole and by pages.
func (s *spliced[T]) sameList() {
	s.t.Helper()
	for _, limit := range []int64{0, 7} {
		for in := (resource.ListInput{Caller: admin, Limit: limit}); ; {
			list, err := resource.List(s.t.Context(), s.registry, in)
			if err != nil {
				s.t.Fatal(err)
			}
			want, err := json.Marshal(list)
			if err != nil {
				s.t.Fatal(err)
			}
			in.Text = true
			textual, err := resource.List(s.t.Context(), s.registry, in)
			if err != nil {
				s.t.Fatal(err)
			}
			// Two tokens of one position differ.
			sealed := []byte(`"continue":"sealed"`)
			got, ok := resource.EncodedText(textual)
			if !ok || !bytes.Equal(continueToken.ReplaceAll(got, sealed), continueToken.ReplaceAll(want, sealed)) {
				s.t.Fatalf("the list is\n%s\nas text, and\n%s\nas objects", got, want)
			}
			in.Text, in.Continue = false, list.(metav1.ListInterface).GetContinue()
			if in.Continue == "" {
				break
			}
		}
	}
}

// checkSpliced writes random objects of a kind, and compares their answers.
func checkSpliced[T resource.Object](t *testing.T, w *issuertest.World, registry *resource.Registry[T], random *rand.Rand, clean func(T)) {
	t.Helper()
	definition := registry.Definition
	writer := registry
	if registry.Splicer != nil {
		writer = registry.WithStrategy(resource.Strategy[T]{
			Rules: lenient[T]{Rules: registry.Rules}, Splicer: registry.Splicer, Relations: registry.Relations,
		}).WithFieldManager(fieldmanager.New)
	}
	s := &spliced[T]{t: t, registry: registry}
	if definition.Namespaced {
		s.namespace = "p-a"
	}
	fill := func(object T) {
		for _, part := range []string{"Spec", "Status"} {
			scribble(random, reflect.ValueOf(object).Elem().FieldByName(part), 0)
		}
		scribbleMetadata(random, object)
		clean(object)
	}
	for i := range 120 {
		object := definition.New()
		fill(object)
		object.SetName(fmt.Sprintf("n%03d", i))
		w.Pass(time.Duration(random.IntN(3)) * 400 * time.Millisecond)
		created, err := resource.Create(t.Context(), writer, resource.CreateInput[T]{Caller: admin, Namespace: s.namespace, Object: object, Manager: "m\u2028\xff"[:1+random.IntN(5)]})
		if err != nil {
			t.Fatalf("%+v: %v", object, err)
		}
		name := created.Object.GetName()
		s.same(name)
		if random.IntN(2) == 0 {
			record, err := registry.Store.Get(t.Context(), strings.TrimPrefix(s.namespace+"/"+name, "/"))
			if err != nil {
				t.Fatal(err)
			}
			if err := registry.Store.Touch(t.Context(), record, w.Now(), time.Time{}); err != nil {
				t.Fatal(err)
			}
			s.same(name)
		}
		for range random.IntN(3) {
			object := definition.New()
			fill(object)
			result, err := resource.Update(t.Context(), writer, resource.UpdateInput[T]{Caller: admin, Namespace: s.namespace, Name: name, Object: object, Manager: "other"})
			if err != nil {
				t.Fatalf("%+v: %v", object, err)
			}
			if want, err := json.Marshal(result.Object); result.Text != nil && !bytes.Equal(result.Text, want) {
				t.Fatalf("the answer to an update is\n%s\nas text, and\n%s, %v\nas an object", result.Text, want, err)
			}
			if text := s.same(name); !bytes.Equal(text, result.Text) {
				t.Fatalf("an update answers\n%s\nand a get\n%s", result.Text, text)
			}
		}
	}
	s.sameList()
	if registry.Splicer != nil && s.texts < 40 {
		t.Errorf("%d answers were made from stored texts", s.texts)
	}
	if registry.Splicer == nil && s.texts > 0 {
		t.Errorf("%d answers were made from stored texts of a kind without a Splicer", s.texts)
	}
}

// An answer that is made from the stored text is the answer that is made from the object, byte for byte: of every kind, whatever
// the objects hold. Source: ADR-0028.
func TestSpliced(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	config := &model.ConfigStatus{Auth: &model.ConfigAuth{AccessKeyMaxTTLSeconds: 1 << 19}}
	w.Env.Config = func() *model.ConfigStatus { return config }
	random := rand.New(rand.NewPCG(7, 28))
	stored := kinds.Open(w.Env)
	t.Run("keys", func(t *testing.T) {
		checkSpliced(t, w, stored.AccessKeys, random, func(key *model.OwnedAccessKey) {
			key.Spec.Key, key.Spec.User, key.Spec.Team, key.Spec.Subject = "", "ana", "", ""
			if random.IntN(2) == 0 {
				key.Spec.OIDCLogin, key.Status.Lineage = nil, nil
			}
			if key.Spec.Identity != nil && random.IntN(2) == 0 {
				key.Spec.Identity.ConnectorData = ""
			}
			if random.IntN(4) == 0 {
				key.Spec.Type = model.AccessKeyTypeLogin
			}
		})
	})
	t.Run("instances", func(t *testing.T) {
		checkSpliced(t, w, stored.Instances, random, func(instance *model.VirtualClusterInstance) {
			instance.Spec.Owner = nil
			if random.IntN(2) == 0 {
				instance.Spec.Signer = nil
			}
		})
	})
}

// Records of other builds, and damaged ones, are answered as before: from the object. Source: ADR-0028.
func TestNotSpliced(t *testing.T) {
	t.Parallel()
	r := open(t)
	object := grantee("ci")
	object.Spec.TTLSeconds, object.Spec.Description = 3600, "x"
	create(t, r, ana, object)
	s := &spliced[*key]{t: t, registry: r}
	if s.same("ci") == nil {
		t.Fatal("the text of this build is not used")
	}
	record, err := r.Store.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	ours := record.Object
	write := func(text []byte) {
		t.Helper()
		record.Object = text
		if record.Revision, err = r.Store.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for at := range ours {
		damaged := bytes.Clone(ours)
		damaged[at] ^= 1
		write(damaged)
		if text := s.same("ci"); text != nil {
			t.Fatalf("with another byte at %d, the answer is %s", at, text)
		}
	}
	for _, row := range []struct {
		about  string
		change func(fields map[string]any)
	}{
		{"of a build that does not know the member", func(fields map[string]any) { delete(fields, "splice") }},
		{"that such a build has rewritten", func(fields map[string]any) { fields["spec"].(map[string]any)["description"] = "y" }},
		{"of a newer build", func(fields map[string]any) { fields["spec"].(map[string]any)["new"] = "y" }},
	} {
		var fields map[string]any
		if err := json.Unmarshal(ours, &fields); err != nil {
			t.Fatal(err)
		}
		row.change(fields)
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		write(text)
		if text := s.same("ci"); text != nil {
			t.Errorf("a record %s is answered with %s", row.about, text)
		}
		list, err := resource.List(t.Context(), r, resource.ListInput{Caller: admin})
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var answer runtime.Object
		if answer, err = resource.List(t.Context(), r, resource.ListInput{Caller: admin, Text: true}); err != nil {
			t.Fatal(err)
		}
		if got, _ := resource.EncodedText(answer); !bytes.Equal(got, want) {
			t.Errorf("a list with a record %s is\n%s\nwant\n%s", row.about, got, want)
		}
		object := get(t, r, "ci")
		object.Spec.DisplayName = row.about
		if _, err := update(t, r, object); err != nil {
			t.Fatal(err)
		}
		if record, err = r.Store.Get(t.Context(), "ci"); err != nil {
			t.Fatal(err)
		}
		// A field that this build does not know is kept, and only then the text is not its own.
		unknown := bytes.Contains(record.Object, []byte(`"new":"y"`))
		if now := s.same("ci"); (now == nil) != unknown {
			t.Errorf("after an update, the record %s is %s", row.about, record.Object)
		}
		if unknown != (row.about == "of a newer build") || bytes.Count(record.Object, []byte(`"splice"`)) > 1 || unknown && bytes.Contains(record.Object, []byte(`"splice"`)) {
			t.Errorf("the record %s became %s", row.about, record.Object)
		}
	}
}

// The member for splicing makes no object larger that does not grow by itself: such a write is within every quota.
// Source: ADR-0020, ADR-0028.
func TestSpliceWithinBounds(t *testing.T) {
	t.Parallel()
	r := open(t)
	object := grantee("ci")
	object.Spec.Description = "x"
	create(t, r, ana, object)
	record, err := r.Store.Get(t.Context(), "ci")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(record.Object, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "splice")
	if record.Object, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if _, err = r.Store.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	r.Quota = store.Quota{Bytes: 1}
	object = get(t, r, "ci")
	object.Spec.Description = "longer"
	if _, err := update(t, r, object); err == nil {
		t.Fatal("the key became longer and is within the quota")
	}
	object.Spec.Description = "y"
	if _, err := update(t, r, object); err != nil {
		t.Fatalf("a key of the same length: %v", err)
	}
	object = get(t, r, "ci")
	object.Spec.Description = ""
	if _, err := update(t, r, object); err != nil {
		t.Fatalf("a shorter key: %v", err)
	}
}
