package contract

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"sigs.k8s.io/yaml"
)

// A kube-apiserver accepts the authentication file of the document. The file refuses tokens with a scope. Source: ADR-0022.
func TestDocumentedAuthentication(t *testing.T) {
	var file apiserverv1.AuthenticationConfiguration
	if err := yaml.UnmarshalStrict([]byte(codeBlock(t, "# authentication.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(&file)
	var config apiserver.AuthenticationConfiguration
	if err := scheme.Convert(&file, &config, nil); err != nil {
		t.Fatal(err)
	}
	compiler := authenticationcel.NewDefaultCompiler()
	if problems := validation.ValidateAuthenticationConfiguration(compiler, &config, nil); len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	rules := config.JWT[0].ClaimValidationRules
	if len(rules) != 1 {
		t.Fatalf("%+v", rules)
	}
	compiled, err := compiler.CompileClaimsExpression(&authenticationcel.ClaimValidationCondition{Expression: rules[0].Expression})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		claims map[string]any
		want   bool
	}{
		{map[string]any{"sub": "ana"}, true},
		{map[string]any{"sub": "ana", "scope": map[string]any{}}, false},
		{map[string]any{"sub": "ana", "scope": map[string]any{"clusters": []any{}}}, false},
	} {
		got, _, err := compiled.Program.ContextEval(t.Context(), map[string]any{"claims": row.claims})
		if err != nil || got.Value() != row.want {
			t.Errorf("%v: %v, %v", row.claims, got, err)
		}
	}
}
