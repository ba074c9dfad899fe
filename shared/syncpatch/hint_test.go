package syncpatch_test

import (
	"strings"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// A path that matches nothing says what its author has probably meant. Source: ADR-0013.
func TestHints(t *testing.T) {
	t.Parallel()
	const pod = `{kind: Pod, metadata: {annotations: {example.com/a: x, a.b: {c: 1}}}, spec: {containers: [{image: a}], replicas: 2}}`
	for _, row := range []struct{ path, resource, want string }{
		{`/spec/containers/0/image`, "", `; paths have dots: spec.containers[0].image`},
		{`/metadata/annotations/cert-manager.io~1issuer`, "", `; paths have dots: metadata.annotations["cert-manager.io/issuer"]`},
		{`metadata.annotations.example.com/a`, "", `; quote a key with dots: metadata.annotations["example.com/a"]`},
		{`metadata.annotations.a.b.c`, "", `; quote a key with dots: metadata.annotations["a.b"].c`},
		{`metadata.annotations.cert-manager.io/issuer`, "", `; quote a key with dots: metadata.annotations["cert-manager.io/issuer"]`},
		{`metadata.labels`, "", `; to add the field, patch its parent: metadata`},
		{`spec.containers[*].env`, "", `; to add the field, patch its parent: spec.containers.*`},
		{`spec.tolerations[0].key`, "", `; to add the field, patch its parent: spec`},
		{`data`, "", `; to add the field, patch the whole object: ""`},
		{`spec.Replicas`, "", `; did you mean "replicas"?`},
		{`spec.containers[4]`, "", `spec.containers has 1 elements, none at index 4`},
		{`spec.rules`, "ingresses", `; the patches are for ingresses, and the object is of kind "Pod"`},
		{`spec.rules`, "fromHost.nodes", `; the patches are for nodes, and the object is of kind "Pod"`},
		{`spec.rules`, "toHost.customResources.widgets.example.com", `; the patches are for customResources.widgets.example.com, and the object is of kind "Pod"`},
		{`spec.rules`, "pods", `; to add the field, patch its parent: spec`},
	} {
		result := evaluate(t, syncpatch.Request{
			Context: tenant(), Resource: row.resource, Object: object(t, pod),
			Patches: []model.SyncPatch{{Path: row.path, Expression: "1"}},
		})
		if reason := result.Patches[0].Reason; !strings.HasPrefix(reason, "nothing matches: ") || !strings.HasSuffix(reason, row.want) {
			t.Errorf("%s: %q, want %q", row.path, reason, row.want)
		}
	}
}
