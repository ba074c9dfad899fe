package resource_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/state/store"
)

// TestOlderRecords: a record of another build has fields that this build does not know, and lacks fields that were
// added later. A write by this build keeps every field that it does not mean to change. The file never changes.
// Source: ADR-0002.
func TestOlderRecords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/older/ownedaccesskey.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		about  string
		change func(t *testing.T, r *registry) error
		// changed are the fields that are meant to change, and wants is a part of the stored text afterwards.
		changed, wants string
	}{
		{"update", func(t *testing.T, r *registry) error {
			object := get(t, r, "ci")
			object.Spec.Description = "written now"
			_, err := update(t, r, object)
			return err
		}, "spec.description metadata.generation", `"description":"written now"`},
		{"update of a list beside", func(t *testing.T, r *registry) error {
			object := get(t, r, "ci")
			object.Finalizers = append(object.Finalizers, "example.com/more")
			_, err := update(t, r, object)
			return err
		}, "metadata.finalizers", `"example.com/more"`},
		{"merge patch", func(t *testing.T, r *registry) error {
			_, err := patch(t, r, "ci", mergeP, `{"spec":{"description":"written now"}}`)
			return err
		}, "spec.description metadata.generation", `"description":"written now"`},
		{"json patch", func(t *testing.T, r *registry) error {
			_, err := patch(t, r, "ci", resource.JSONPatch, `[{"op":"replace","path":"/spec/description","value":"written now"}]`)
			return err
		}, "spec.description metadata.generation", `"description":"written now"`},
		{"apply", func(t *testing.T, r *registry) error {
			_, err := apply(t, r, applying{spec: `"description":"written now"`, force: true})
			return err
		}, "spec.description metadata.generation", `"description":"written now"`},
		{"delete, held", func(t *testing.T, r *registry) error {
			_, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: admin, Name: "ci"})
			return err
		}, "metadata.generation", `"deletionTimestamp"`},
		{"touch", func(t *testing.T, r *registry) error {
			record, err := r.Store.Get(t.Context(), "ci")
			if err != nil {
				return err
			}
			return r.Store.Touch(t.Context(), record, now, now.Add(time.Hour))
		}, "", `"audit"`},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			_, err := r.Store.Create(t.Context(), store.Record{
				Name: "ci", Owner: "user:ana", Digest: "d", Created: now.Add(-time.Hour), Object: bytes.TrimSpace(text),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := row.change(t, r); err != nil {
				t.Fatal(err)
			}
			record, err := r.Store.Get(t.Context(), "ci")
			if err != nil {
				t.Fatal(err)
			}
			if record.Digest != "d" || !record.Created.Equal(now.Add(-time.Hour).Truncate(time.Millisecond)) {
				t.Errorf("the record is now of digest %q, made at %v", record.Digest, record.Created)
			}
			if !strings.Contains(string(record.Object), row.wants) {
				t.Errorf("no %s in %s", row.wants, record.Object)
			}
			for _, lost := range lost("", tree(t, text), tree(t, record.Object)) {
				if !strings.Contains(" "+row.changed+" ", " "+lost+" ") {
					t.Errorf("%s is not what it was in %s", lost, record.Object)
				}
			}
		})
	}
}

func tree(t *testing.T, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// lost names the fields that another object lacks or has another value for. Lists are compared as a whole.
func lost(path string, before, after any) []string {
	fields, ok := before.(map[string]any)
	if !ok {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []string{path}
	}
	others, _ := after.(map[string]any)
	var found []string
	for name, value := range fields {
		found = append(found, lost(strings.TrimPrefix(fmt.Sprint(path, ".", name), "."), value, others[name])...)
	}
	return found
}
