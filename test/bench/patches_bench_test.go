package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
	"management.platform.sh/shared/syncpatch/worker"
)

// pod is an object with thirty containers.
func pod() map[string]any {
	containers := make([]any, 30)
	for i := range containers {
		containers[i] = map[string]any{
			"name":  fmt.Sprintf("container-%d", i),
			"image": fmt.Sprintf("docker.io/library/nginx:1.%d", i),
			"env":   []any{map[string]any{"name": "URL", "value": "http://db.internal.svc:5432/"}},
			"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080 + i), "protocol": "TCP"}},
			"resources": map[string]any{
				"limits": map[string]any{"cpu": "500m", "memory": "256Mi"}, "requests": map[string]any{"cpu": "100m", "memory": "64Mi"},
			},
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "annotations": map[string]any{"team": "shop", "example.com/key": "bXktdmFsdWU="},
		},
		"spec": map[string]any{"containers": containers, "nodeSelector": map[string]any{"zone": "a"}, "priority": int64(0)},
	}
}

// podPatches are ten patches, six of which apply to every container.
var podPatches = []model.SyncPatch{
	{Path: "spec.containers[*].image", Expression: `value.replace("docker.io/", "registry.internal/")`},
	{Path: "spec.containers[*].name", Expression: "`${context.tenant.name}-${value}`"},
	{Path: "spec.containers[*].env[*].value", Expression: `value.replace(/internal\.svc/, "internal.svc.cluster.local")`},
	{Path: "spec.containers[*].ports[*].containerPort", Expression: `value > 8090 ? value + 1000 : value`},
	{Path: "spec.containers[*].resources.limits.cpu", Expression: `value.endsWith("m") ? (parseInt(value) * 2) + "m" : value`},
	{Path: "spec.containers[*].resources.requests", Expression: `({...value, "ephemeral-storage": "1Gi"})`},
	{Path: `metadata.annotations["example.com/key"]`, Expression: `atob(value).toUpperCase()`},
	{Path: "metadata.annotations", Expression: `Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("x-")))`},
	{Path: "spec.nodeSelector", Expression: `value?.zone ? {...value, zone: value.zone + "-1"} : value`},
	{Path: "spec.priority", Expression: `value ?? 0`},
}

// rawPatches does the same with nothing but the interpreter: programs are compiled ahead and the runtime is kept; values
// are shared with it, and there is no check, no limit and no trace.
type rawPatches struct {
	runtime  *goja.Runtime
	programs []*goja.Program
}

func newRawPatches(b *testing.B) *rawPatches {
	r := &rawPatches{runtime: goja.New()}
	if err := r.runtime.Set("context", map[string]any{"tenant": map[string]any{"name": "tenant", "namespace": "host"}}); err != nil {
		b.Fatal(err)
	}
	if err := r.runtime.Set("atob", func(text string) string { return strings.ToLower(text) }); err != nil {
		b.Fatal(err)
	}
	for _, p := range podPatches {
		r.programs = append(r.programs, goja.MustCompile("", "("+p.Expression+")", true))
	}
	return r
}

func (r *rawPatches) apply(b *testing.B, at any, path []string, program *goja.Program) any {
	if len(path) == 0 {
		if err := r.runtime.Set("value", at); err != nil {
			b.Fatal(err)
		}
		result, err := r.runtime.RunProgram(program)
		if err != nil {
			b.Fatal(err)
		}
		return result.Export()
	}
	switch v := at.(type) {
	case []any:
		for i := range v {
			v[i] = r.apply(b, v[i], path[1:], program)
		}
	case map[string]any:
		if next, ok := v[path[0]]; ok {
			v[path[0]] = r.apply(b, next, path[1:], program)
		}
	}
	return at
}

// segments are those of the paths above; quoted keys hold dots.
func segments(path string) []string {
	if before, key, ok := strings.Cut(path, `["`); ok {
		return append(strings.Split(before, "."), strings.TrimSuffix(key, `"]`))
	}
	return strings.Split(strings.ReplaceAll(path, "[*]", ".*"), ".")
}

// BenchmarkPatches is one object with thirty containers through ten patches: 184 expressions are run. `raw` is the bare
// interpreter, warm; `process` is Evaluate, with its checks, limits and trace; `worker` is the same in another process, from JSON to JSON.
func BenchmarkPatches(b *testing.B) {
	request := syncpatch.Request{
		Patches: podPatches,
		Context: syncpatch.Context{Tenant: syncpatch.Tenant{Name: "tenant", Namespace: "host"}},
	}
	limits := syncpatch.Limits{Expression: time.Minute, Object: time.Minute}
	b.Run("raw", func(b *testing.B) {
		raw := newRawPatches(b)
		measure(b, func() {
			object := runtime.DeepCopyJSON(pod())
			for i, p := range podPatches {
				keep = raw.apply(b, object, segments(p.Path), raw.programs[i])
			}
		})
	})
	b.Run("process", func(b *testing.B) {
		measure(b, func() {
			request.Object = pod()
			checked, _ := request.Check()
			result, err := syncpatch.Evaluate(b.Context(), checked, limits)
			if err != nil || result.Error != nil {
				b.Fatal(err, result)
			}
		})
	})
	b.Run("worker", func(b *testing.B) {
		object, err := json.Marshal(pod())
		if err != nil {
			b.Fatal(err)
		}
		spec := &model.SyncPatchEvaluationSpec{
			Patches: podPatches, Object: &model.JSON{Raw: object},
			Context: model.SyncPatchContext{Tenant: model.SyncPatchTenant{Name: "tenant", Namespace: "host"}},
		}
		pool := worker.New(worker.Settings{Limits: limits, Processes: 1})
		defer pool.Close()
		measure(b, func() {
			outcome, err := pool.Evaluate(b.Context(), spec)
			if err != nil || outcome.Status == nil || outcome.Status.Error != nil {
				b.Fatal(err, outcome)
			}
		})
	})
}

// measure runs a function, once before it counts, and reports the ninety-ninth percentile beside the mean.
func measure(b *testing.B, run func()) {
	b.Helper()
	run()
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		run()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "evaluations/s")
}
