package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkFields measures the cost of recording who set which field, without a state: a create, an update and an
// apply, each of one field among those of a typical key. The metric record/B is the size of its text, entries/B
// the part with the owners of fields.
func BenchmarkFields(b *testing.B) {
	kind := accesskey.Definition.GroupVersionKind()
	fields, err := fieldmanager.New(kind, func() resource.Object { return &model.OwnedAccessKey{} }, "", []string{"status"}, []string{"spec", "key"})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	empty := &model.OwnedAccessKey{}
	empty.SetGroupVersionKind(kind)
	made := accessKey("one")
	made.SetGroupVersionKind(kind)
	if err := fields.Update(empty, made, "kubectl-create", now); err != nil {
		b.Fatal(err)
	}
	made.UID = "4a2f6a52-5f6e-4d51-9b0c-0e2f1d7a5b11"
	changed := made.DeepCopy()
	changed.Spec.Description = "changed"
	run := func(name string, step func() (*model.OwnedAccessKey, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var last *model.OwnedAccessKey
			for b.Loop() {
				var err error
				if last, err = step(); err != nil {
					b.Fatal(err)
				}
			}
			whole, entries := length(b, last), length(b, last.ManagedFields)
			b.ReportMetric(float64(whole), "record/B")
			b.ReportMetric(float64(entries), "entries/B")
		})
	}
	run("create", func() (*model.OwnedAccessKey, error) {
		object := made.DeepCopy()
		object.ManagedFields = nil
		return object, fields.Update(empty, object, "kubectl-create", now)
	})
	run("update", func() (*model.OwnedAccessKey, error) {
		object := changed.DeepCopy()
		return object, fields.Update(made, object, "kubectl-patch", now)
	})
	run("apply", func() (*model.OwnedAccessKey, error) {
		merged, err := fields.Apply(made, map[string]any{
			"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "one"},
			"spec": map[string]any{"description": "changed", "displayName": made.Spec.DisplayName},
		}, "kubectl", true, now)
		if err != nil {
			return nil, err
		}
		return merged.(*model.OwnedAccessKey), nil
	})
}

func length(b *testing.B, of any) int {
	b.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		b.Fatal(err)
	}
	return len(text)
}

// BenchmarkApply is whole server-side applies through the mounted catalog, each of which changes something.
func BenchmarkApply(b *testing.B) {
	s := newServer(b, redistest.Server(b).UnixURL(), time.Now)
	var serial atomic.Int64
	b.ReportAllocs()
	for b.Loop() {
		i := serial.Add(1)
		name := objectName(int(i) % objects)
		if got := s.apply(name, fmt.Sprint("Apply ", i)); got != http.StatusOK {
			b.Fatalf("HTTP status %d", got)
		}
	}
}

// apply applies a key by force, with that description.
func (s *server) apply(name, description string) int {
	return s.send(http.MethodPatch, collectionPath+"/"+name, "fieldManager=bench&force=true", "application/apply-patch+yaml", objectBody(name, description))
}
