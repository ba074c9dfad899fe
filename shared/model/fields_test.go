package model_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// blocks are the types that testdata/fields.txt describes, by their names.
func blocks() map[string]reflect.Type {
	blocks := map[string]reflect.Type{}
	for _, sample := range []any{
		metav1.ObjectMeta{}, metav1.ListMeta{},
		model.Scope{}, model.ScopeGroupResources{},
		model.DirectClusterEndpointToken{}, model.DirectClusterEndpointTokenList{},
		model.OwnedAccessKey{}, model.OwnedAccessKeyList{},
		model.VirtualClusterInstanceKubeConfig{},
		model.Config{}, model.ConfigList{}, model.ConfigHistory{}, model.ConfigRollback{},
		model.OIDCProvider{}, model.GitForge1Provider{}, model.GitForge2Provider{}, model.IDP1Provider{},
		model.IDP2Provider{}, model.SAMLProvider{}, model.ClusterManagerProvider{},
		model.MetricsBackend{}, model.ComputeResources{},
		model.EndpointsSync{}, model.SyncPatch{},
		model.VirtualClusterInstance{}, model.VirtualClusterInstanceList{},
		model.Self{}, model.SyncPatchEvaluation{}, model.CredentialRevocation{}, model.ScopePreview{}, model.SignInTrial{},
		model.AuditEvent{}, model.AuditEventList{},
		model.User{}, model.UserList{}, model.UserPassword{}, model.UserSignOut{}, model.Team{}, model.TeamList{},
		model.TrustRule{}, model.TrustRuleList{}, model.Project{}, model.ProjectList{},
	} {
		goType := reflect.TypeOf(sample)
		blocks[goType.Name()] = goType
	}
	return blocks
}

// words are the types that become a single JSON value, whatever they are in Go.
var words = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():       "time",
	reflect.TypeFor[metav1.MicroTime]():  "time",
	reflect.TypeFor[metav1.Duration]():   "duration",
	reflect.TypeFor[metav1.FieldsV1]():   "any",
	reflect.TypeFor[model.JSON]():        "any",
	reflect.TypeFor[resource.Quantity](): "quantity",
	reflect.TypeFor[[]byte]():            "bytes",

	reflect.TypeFor[secret.WriteOnlyBytes](): "bytes",
}

func TestFieldsAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	var block string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case !strings.HasPrefix(line, " "):
			block = fields[0]
			if _, seen := want[block]; seen {
				t.Errorf("%s stands twice", block)
			}
			want[block] = []string{}
		default:
			want[block] = append(want[block], strings.TrimPrefix(strings.Join(fields, " "), "+ "))
		}
	}
	types := blocks()
	for name := range want {
		if _, found := types[name]; !found {
			t.Errorf("testdata/fields.txt describes %s, which blocks does not list", name)
		}
	}
	for name, goType := range types {
		got := paths(goType, "", types)
		for _, path := range got {
			if !slices.Contains(want[name], path) {
				t.Errorf("%s: the type has %q, the table has not", name, path)
			}
		}
		for _, path := range want[name] {
			if !slices.Contains(got, path) {
				t.Errorf("%s: the table has %q, the type has not", name, path)
			}
		}
	}
}

// Every kind must be in the table, or a field of a new kind would go unchecked.
func TestFieldsCoverEveryKind(t *testing.T) {
	t.Parallel()
	types := blocks()
	for kind, goType := range kinds(t) {
		if types[kind] != goType {
			t.Errorf("kind %s has no line in blocks; describe it in testdata/fields.txt as well", kind)
		}
	}
}

func paths(goType reflect.Type, prefix string, blocks map[string]reflect.Type) []string {
	var lines []string
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			lines = append(lines, paths(field.Type, prefix, blocks)...)
			continue
		}
		word, nested := describe(field.Type, blocks)
		lines = append(lines, prefix+name+" "+word)
		if nested != nil {
			lines = append(lines, paths(nested, prefix+name+strings.TrimSuffix(word, "object")+".", blocks)...)
		}
	}
	return lines
}

// describe returns the word of the table for a type, and the struct whose fields follow, if any.
func describe(goType reflect.Type, blocks map[string]reflect.Type) (string, reflect.Type) {
	if goType.Kind() == reflect.Pointer {
		return describe(goType.Elem(), blocks)
	}
	if word, found := words[goType]; found {
		return word, nil
	}
	if blocks[goType.Name()] == goType {
		return goType.Name(), nil
	}
	switch goType.Kind() {
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Int32, reflect.Int64:
		return "integer", nil
	case reflect.Slice:
		word, nested := describe(goType.Elem(), blocks)
		return "[]" + word, nested
	case reflect.Map:
		word, nested := describe(goType.Elem(), blocks)
		return "{}" + word, nested
	case reflect.Struct:
		return "object", goType
	default:
		return "unknown " + goType.String(), nil
	}
}
