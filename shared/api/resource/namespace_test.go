package resource_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/identity"
)

// The namespace of an object is that of the request. Source: Spec 2.2 (namespace).
func TestCreateInNamespace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about string
		given metav1.ObjectMeta
		name  string
		wrong refusal
	}{
		{"the same in the body", metav1.ObjectMeta{Name: "ci", Namespace: "p-a"}, "ci", refusal{}},
		{"none in the body", metav1.ObjectMeta{Name: "ci"}, "ci", refusal{}},
		{"another one in the body", metav1.ObjectMeta{Name: "ci", Namespace: "p-b"}, "", badFields("metadata.namespace")},
		{"without a name", metav1.ObjectMeta{}, "widget-", refusal{}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			written, err := resource.Create(t.Context(), w.widgets, resource.CreateInput[*widget]{
				Caller: ana, Namespace: "p-a", Object: &widget{ObjectMeta: row.given},
			})
			expect(t, err, row.wrong)
			if err == nil && (written.Object.Namespace != "p-a" || !strings.HasPrefix(written.Object.Name, row.name)) {
				t.Errorf("created %+v", written.Object)
			}
		})
	}
}

// Objects with one name in two namespaces are two objects, and no name leads out of a namespace. Source: Spec 2.2 (namespace).
func TestNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"p-a/ci", "p-b/ci"} {
		if err := w.create(ana, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range []struct{ namespace, name string }{{"p-c", "ci"}, {"", "p-a/ci"}, {"p-b", "a/ci"}, {"p-a/x", "ci"}, {"p-a/", "ci"}} {
		_, getErr := resource.Get(t.Context(), w.widgets, resource.GetInput{Caller: ana, Namespace: at.namespace, Name: at.name})
		_, updateErr := resource.Update(t.Context(), w.widgets, resource.UpdateInput[*widget]{Caller: ana, Namespace: at.namespace, Name: at.name, Object: &widget{}})
		_, patchErr := resource.Patch(t.Context(), w.widgets, resource.PatchInput{
			Caller: ana, Namespace: at.namespace, Name: at.name, Type: resource.MergePatch, Patch: []byte(`{}`),
		})
		_, deleteErr := resource.Delete(t.Context(), w.widgets, resource.DeleteInput{Caller: ana, Namespace: at.namespace, Name: at.name})
		for verb, err := range map[string]error{"get": getErr, "update": updateErr, "patch": patchErr, "delete": deleteErr} {
			if got := refusalOf(err); got.code != 404 {
				t.Errorf("%s of %q in %q: %v", verb, at.name, at.namespace, err)
			}
		}
	}
	moved := &widget{ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "p-b"}}
	_, err := resource.Update(t.Context(), w.widgets, resource.UpdateInput[*widget]{Caller: ana, Namespace: "p-a", Name: "ci", Object: moved})
	expect(t, err, badFields("metadata.namespace"))
	for _, row := range []struct {
		about, namespace, fields string
		caller                   identity.Caller
		want                     []string
	}{
		{"all namespaces", "", "", ana, []string{"p-a/ci", "p-b/ci"}},
		{"one namespace", "p-b", "", ana, []string{"p-b/ci"}},
		{"an empty namespace", "p-c", "", ana, nil},
		{"one namespace, by field", "", "metadata.namespace=p-a", ana, []string{"p-a/ci"}},
		{"another caller", "", "", ben, nil},
	} {
		list, err := resource.List(t.Context(), w.widgets, resource.ListInput{Caller: row.caller, Namespace: row.namespace, Fields: selectFields(t, row.fields)})
		if err != nil {
			t.Fatalf("%s: %v", row.about, err)
		}
		var listed []string
		for _, item := range list.(*metav1.PartialObjectMetadataList).Items {
			listed = append(listed, item.Namespace+"/"+item.Name)
		}
		watcher, err := resource.Watch(t.Context(), w.widgets, resource.WatchInput{Caller: row.caller, Namespace: row.namespace, Fields: selectFields(t, row.fields)})
		if err != nil {
			t.Fatalf("%s: %v", row.about, err)
		}
		events, err := watcher.Next(t.Context(), 0)
		var watched []string
		for _, event := range events {
			object, wrong := event.Object()
			if wrong != nil {
				t.Fatalf("%s: %v", row.about, wrong)
			}
			watched = append(watched, object.Namespace+"/"+object.Name)
		}
		if err != nil || !slices.Equal(listed, row.want) || !slices.Equal(watched, row.want) {
			t.Errorf("%s: listed %q, watched %q, %v, want %q", row.about, listed, watched, err, row.want)
		}
	}
	if _, err := resource.Delete(t.Context(), w.widgets, resource.DeleteInput{
		Caller: ana, Namespace: "p-a", Selection: &resource.ListInput{Caller: ana, Namespace: "p-a"},
	}); err != nil {
		t.Fatal(err)
	}
	w.expectLeft("after the deletion of a namespace's", "p-b/ci")
}
