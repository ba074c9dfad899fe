package syncpatch_test

import (
	"context"
	"fmt"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// Twice the matches cost twice as much. The cost is counted in allocations, which do not depend on the load of the
// machine. ADR-0013.
func TestCostIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("counts allocations over large objects")
	}
	for _, test := range []struct {
		name string
		make func(size int) syncpatch.Request
	}{
		{"elements", func(n int) syncpatch.Request {
			return syncpatch.Request{Object: map[string]any{"list": distinctStrings(n)}, Patches: patches(t, `[{path: 'list[*]', expression: 'value + "x"'}]`)}
		}},
		{"removed elements", func(n int) syncpatch.Request {
			return syncpatch.Request{Object: map[string]any{"list": distinctStrings(n)}, Patches: patches(t, `[{path: 'list[*]', expression: 'value.length > 1 ? null : value'}]`)}
		}},
		{"keys", func(n int) syncpatch.Request {
			keys := map[string]any{}
			for i := range n {
				keys[fmt.Sprintf("key-%06d", i)] = "x"
			}
			return syncpatch.Request{Object: map[string]any{"map": keys}, Patches: patches(t, `[{path: 'map.*', expression: value}, {path: map, labels: {}}]`), Context: tenant()}
		}},
		{"misses", func(n int) syncpatch.Request {
			list := make([]any, n)
			for i := range list {
				list[i] = map[string]any{"a": []any{}}
			}
			return syncpatch.Request{Object: map[string]any{"list": list}, Patches: patches(t, `[{path: 'list[*].a[*].b', expression: value}, {path: 'list[*].c', expression: value}]`)}
		}},
		{"references", func(n int) syncpatch.Request {
			return syncpatch.Request{
				Object: map[string]any{"list": distinctStrings(n)}, Patches: patches(t, `[{path: 'list[*]', reference: {apiVersion: v1, kind: Secret}}]`),
				Context: tenant(), Checks: []string{model.CheckRoundTrip, model.CheckFixpoint},
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cost := func(size int) float64 {
				request, limits := mustCheck(t, test.make(size)), generous()
				return testing.AllocsPerRun(1, func() {
					if result, err := syncpatch.Evaluate(context.Background(), request, limits); err != nil || result.Error != nil {
						t.Errorf("%+v, %v", result, err)
					}
				})
			}
			const size = 2000
			small, large := cost(size), cost(4*size)
			t.Logf("%d: %.0f allocations, %d: %.0f", size, small, 4*size, large)
			if large > 4.5*small {
				t.Errorf("%d matches cost %.0f allocations, and %d cost %.0f", size, small, 4*size, large)
			}
		})
	}
}

// distinctStrings returns different strings.
func distinctStrings(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = fmt.Sprintf("name-%d", i)
	}
	return list
}

// BenchmarkEvaluate is ten patches on an object with thirty containers, in the process of the caller.
func BenchmarkEvaluate(b *testing.B) {
	containers := make([]any, 30)
	for i := range containers {
		containers[i] = map[string]any{
			"name": fmt.Sprintf("container-%d", i), "image": "docker.io/library/nginx:1.27",
			"env": []any{map[string]any{"name": "HOST", "value": "db.internal.svc"}}, "ports": []any{map[string]any{"containerPort": int64(80)}},
		}
	}
	request := syncpatch.Request{
		Context: tenant(),
		Object: map[string]any{
			"metadata": map[string]any{"name": "web", "namespace": "default", "annotations": map[string]any{"example.com/a": "b"}, "labels": map[string]any{"release": "r"}},
			"spec":     map[string]any{"containers": containers, "replicas": int64(2), "secretRef": "my-secret", "nodeName": "n"},
		},
		Patches: patches(b, `
- {path: 'spec.containers[*].image', expression: 'value.replace("docker.io/", "registry.internal/")'}
- {path: 'spec.containers[*].name', expression: '`+"`${context.tenant.name}-${value}`"+`'}
- {path: 'spec.containers[*].env[*].value', expression: 'value.endsWith(".svc") ? value + ".cluster.local" : value'}
- {path: 'spec.containers[*].ports[*].containerPort', expression: value + 8000}
- {path: 'metadata.annotations[*]', expression: '"p-" + value'}
- {path: spec.replicas, expression: 'context.tenant.config.replicas ?? value'}
- {path: spec.nodeName, expression: 'null'}
- {path: spec.secretRef, reference: {apiVersion: v1, kind: Secret}}
- {path: metadata.labels, labels: {}}
- {path: spec.missing, expression: value}
`),
	}
	limits := generous()
	b.ReportAllocs()
	for b.Loop() {
		if result, err := syncpatch.Evaluate(context.Background(), mustCheck(b, request), limits); err != nil || result.Error != nil {
			b.Fatal(result, err)
		}
	}
}

// BenchmarkMatches is the cost of one match as their number grows.
func BenchmarkMatches(b *testing.B) {
	for _, size := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			request := mustCheck(b, syncpatch.Request{Object: map[string]any{"list": distinctStrings(size)}, Patches: patches(b, `[{path: 'list[*]', expression: 'value + "x"'}]`)})
			limits := generous()
			for b.Loop() {
				if result, err := syncpatch.Evaluate(context.Background(), request, limits); err != nil || result.Error != nil {
					b.Fatal(result, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/match")
		})
	}
}
