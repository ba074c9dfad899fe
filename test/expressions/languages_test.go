// Package expressions compares the cost of expressions in sync patches with languages that are made to be embedded, for tasks that all of them
// can express. It is a module of its own, so that the platform does not depend on them.
package expressions

import (
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/expr-lang/expr"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// said is the same expression in three languages, for each of thirty images.
var said = []struct{ name, javascript, cel, expr string }{
	{
		"replace", `value.replace("docker.io/", "registry.internal/")`,
		`value.replace("docker.io/", "registry.internal/")`, `replace(value, "docker.io/", "registry.internal/")`,
	},
	{"concat", "tenant + '-' + value", "tenant + '-' + value", "tenant + '-' + value"},
	{
		"condition", `value.startsWith("docker.io/") ? value : "x/" + value`,
		`value.startsWith("docker.io/") ? value : "x/" + value`, `value startsWith "docker.io/" ? value : "x/" + value`,
	},
	{"pattern", `/^docker\.io\/[a-z]+/.test(value)`, `value.matches("^docker\\.io/[a-z]+")`, `value matches "^docker\\.io/[a-z]+"`},
	{"split", `value.split("/")[1]`, `value.split("/")[1]`, `split(value, "/")[1]`},
}

const image = "docker.io/library/nginx:1.25"

// BenchmarkLanguages evaluates one expression for thirty values. For our language it measures the whole evaluation of an object, with its
// copies, limits and trace; for the other languages it measures calls of a compiled program.
func BenchmarkLanguages(b *testing.B) {
	for _, s := range said {
		b.Run(s.name, func(b *testing.B) {
			b.Run("ours", func(b *testing.B) {
				request := syncpatch.Request{
					Object:  map[string]any{"images": []any{}},
					Patches: []model.SyncPatch{{Path: "images[*]", Expression: strings.ReplaceAll(s.javascript, "tenant", "context.tenant.name")}},
					Context: syncpatch.Context{Tenant: syncpatch.Tenant{Name: "tenant"}},
				}
				for range 30 {
					request.Object["images"] = append(request.Object["images"].([]any), image)
				}
				for b.Loop() {
					checked, _ := request.Check()
					result, err := syncpatch.Evaluate(b.Context(), checked, syncpatch.Limits{Expression: time.Minute, Object: time.Minute})
					if err != nil || result.Error != nil {
						b.Fatal(err, result)
					}
				}
			})
			b.Run("cel", func(b *testing.B) {
				environment, err := cel.NewEnv(cel.Variable("value", cel.StringType), cel.Variable("tenant", cel.StringType), ext.Strings())
				if err != nil {
					b.Fatal(err)
				}
				parsed, issues := environment.Compile(s.cel)
				if issues.Err() != nil {
					b.Fatal(issues.Err())
				}
				program, err := environment.Program(parsed)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					for range 30 {
						if _, _, err := program.Eval(map[string]any{"value": image, "tenant": "tenant"}); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
			b.Run("expr", func(b *testing.B) {
				program, err := expr.Compile(s.expr, expr.Env(map[string]any{"value": "", "tenant": ""}))
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					for range 30 {
						if _, err := expr.Run(program, map[string]any{"value": image, "tenant": "tenant"}); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		})
	}
}
