package terraform

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

const infra = "../../infra/terraform"

// module is the text of the files of a module by their names.
type module map[string]string

// platforms are the modules, each with the function table beside it.
var platforms = []string{"aws", "gcp"}

func readModule(t *testing.T, platform string) module {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(infra, platform, "*.tf"))
	if err != nil || len(names) < 5 {
		t.Fatalf("found %q, %v: that cannot be all", names, err)
	}
	texts := module{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(content)
	}
	return texts
}

// blocks returns the top-level blocks of all files.
func (m module) blocks() (list []*hclsyntax.Block, findings []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		file, problems := hclsyntax.ParseConfig([]byte(m[name]), name, hcl.InitialPos)
		if problems.HasErrors() {
			return nil, []string{problems.Error()}
		}
		list = append(list, file.Body.(*hclsyntax.Body).Blocks...)
	}
	return list, nil
}

// findUnformatted finds files that `terraform fmt` would change.
func findUnformatted(m module) []string {
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if string(hclwrite.Format([]byte(m[name]))) != m[name] {
			findings = append(findings, name+" is not formatted")
		}
	}
	return findings
}

// address returns the name by which other blocks refer to a top-level block, or the empty string if they cannot.
func address(b *hclsyntax.Block) string {
	switch b.Type {
	case "variable":
		return "var." + b.Labels[0]
	case "resource":
		return strings.Join(b.Labels, ".")
	case "data":
		return "data." + strings.Join(b.Labels, ".")
	default:
		return ""
	}
}

// use is a name that a block refers to.
type use struct {
	block *hclsyntax.Block
	// in is the name of the local that contains the reference, in blocks of locals.
	in string
	// iterators are the names that dynamic blocks around the place declare.
	iterators []string
	traversal hcl.Traversal
}

// path returns the traversal up to its first index: local.functions, data.x.y.json.
func (u use) path() []string {
	var steps []string
	for _, step := range u.traversal {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			steps = append(steps, step.Name)
		case hcl.TraverseAttr:
			steps = append(steps, step.Name)
		}
	}
	return steps
}

func (u use) String() string {
	return fmt.Sprintf("%s: %s", u.traversal.SourceRange(), strings.Join(u.path(), "."))
}

// uses returns all names that blocks refer to.
func uses(blocks []*hclsyntax.Block) []use {
	var list []use
	var walk func(top *hclsyntax.Block, body *hclsyntax.Body, iterators []string)
	walk = func(top *hclsyntax.Block, body *hclsyntax.Body, iterators []string) {
		for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
			if name == "ignore_changes" { // attributes of the resource itself
				continue
			}
			in := ""
			if top.Type == "locals" {
				in = name
			}
			for _, traversal := range body.Attributes[name].Expr.Variables() {
				list = append(list, use{top, in, iterators, traversal})
			}
		}
		for _, inner := range body.Blocks {
			if inner.Type == "dynamic" {
				walk(top, inner.Body, append(slices.Clone(iterators), inner.Labels[0]))
			} else {
				walk(top, inner.Body, iterators)
			}
		}
	}
	for _, b := range blocks {
		walk(b, b.Body, nil)
	}
	return list
}

// findUndeclared finds names without a declaration, and declarations that are not used.
func findUndeclared(blocks []*hclsyntax.Block) []string {
	declared := map[string]bool{}
	findings := []string(nil)
	declare := func(name string) {
		if declared[name] {
			findings = append(findings, name+" is declared twice")
		}
		declared[name] = true
	}
	for _, b := range blocks {
		if name := address(b); name != "" {
			declare(name)
		}
		if b.Type == "locals" {
			for name := range b.Body.Attributes {
				declare("local." + name)
			}
		}
	}
	used := map[string]bool{}
	for _, u := range uses(blocks) {
		path := u.path()
		length := 2
		switch path[0] {
		case "each", "count":
			attribute := map[string]string{"each": "for_each", "count": "count"}[path[0]]
			if u.block.Body.Attributes[attribute] == nil {
				findings = append(findings, u.String()+" without "+attribute)
			}
			continue
		case "path", "terraform", "self":
			continue
		case "string", "number", "bool":
			if u.block.Type == "variable" {
				continue
			}
		case "data":
			length = 3
		}
		// A bare word in depends_on and in lifecycle blocks is a name like any other. A bare word of an iterator is not.
		if slices.Contains(u.iterators, path[0]) {
			continue
		}
		name := strings.Join(path[:min(length, len(path))], ".")
		used[name] = true
		if !declared[name] {
			findings = append(findings, u.String()+" is not declared")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		kind, _, _ := strings.Cut(name, ".")
		if (kind == "var" || kind == "local" || kind == "data") && !used[name] {
			findings = append(findings, name+" is used by nothing")
		}
	}
	return findings
}

// findUndescribed finds variables and outputs without a description.
func findUndescribed(blocks []*hclsyntax.Block) []string {
	var findings []string
	for _, b := range blocks {
		if b.Type == "variable" && (b.Body.Attributes["description"] == nil || b.Body.Attributes["type"] == nil) ||
			b.Type == "output" && b.Body.Attributes["description"] == nil {
			findings = append(findings, b.Type+" "+b.Labels[0]+" does not say what it is")
		}
	}
	return findings
}

// secrets are the attributes that hold a secret.
var secrets = []string{"result", "auth_string", "auth_token", "secret_string", "secret_data", "base64"}

// keepers are the blocks and locals that may contain a secret.
var keepers = []string{
	"aws_elasticache_replication_group.redis", "aws_secretsmanager_secret_version.redis_url",
	"google_secret_manager_secret_version.redis", "local.secrets",
	"aws_secretsmanager_secret_version.encryption_key", "google_secret_manager_secret_version.encryption_key",
}

// findLeaked finds secrets in other places: in outputs, and in settings of functions.
func findLeaked(blocks []*hclsyntax.Block) []string {
	var findings []string
	for _, u := range uses(blocks) {
		path := u.path()
		if !slices.ContainsFunc(path, func(step string) bool { return slices.Contains(secrets, step) }) &&
			strings.Join(path, ".") != "local.secrets" {
			continue
		}
		to := address(u.block)
		if u.in != "" {
			to = "local." + u.in
		}
		if !slices.Contains(keepers, to) {
			findings = append(findings, u.String()+" is a secret; it goes into "+u.block.Type+" "+strings.Join(u.block.Labels, "."))
		}
	}
	return findings
}

// literals returns the texts of an expression: a list of texts, or a local with such a list.
func literals(expression hclsyntax.Expression, locals map[string]hclsyntax.Expression) []string {
	if traversal, ok := expression.(*hclsyntax.ScopeTraversalExpr); ok && traversal.Traversal.RootName() == "local" {
		if inner, known := locals[traversal.Traversal[1].(hcl.TraverseAttr).Name]; known {
			return literals(inner, nil)
		}
	}
	value, problems := expression.Value(nil)
	if problems.HasErrors() || !value.CanIterateElements() {
		return nil
	}
	var found []string
	for _, one := range value.AsValueSlice() {
		found = append(found, one.AsString())
	}
	return found
}

// findTooWide finds rights on all resources, except the rights that Lambda needs to join a network and that are denied to the code. It also finds
// roles of Google that are not bound to one resource.
func findTooWide(blocks []*hclsyntax.Block) []string {
	var findings []string
	locals := map[string]hclsyntax.Expression{}
	for _, b := range blocks {
		if b.Type == "locals" {
			for name, attribute := range b.Body.Attributes {
				locals[name] = attribute.Expr
			}
		}
	}
	for _, b := range blocks {
		name := strings.Join(b.Labels, ".")
		if b.Type == "data" && b.Labels[0] == "aws_iam_policy_document" {
			denied := 0
			for _, statement := range b.Body.Blocks {
				actions := literals(statement.Body.Attributes["actions"].Expr, locals)
				if len(actions) == 0 {
					findings = append(findings, name+" has actions that cannot be read")
				}
				effect := "Allow"
				if attribute := statement.Body.Attributes["effect"]; attribute != nil {
					value, _ := attribute.Expr.Value(nil)
					effect = value.AsString()
				}
				everything := statement.Body.Attributes["resources"] != nil &&
					slices.Contains(literals(statement.Body.Attributes["resources"].Expr, nil), "*")
				if effect == "Deny" {
					denied = len(actions)
					continue
				}
				for _, action := range actions {
					if strings.Contains(action, "*") || everything && !strings.HasPrefix(action, "ec2:") {
						findings = append(findings, fmt.Sprintf("%s allows %s, on everything: %v", name, action, everything))
					}
				}
				if everything {
					denied -= len(actions)
				}
			}
			if denied < 0 {
				findings = append(findings, name+" allows the code what only Lambda needs")
			}
		}
		if strings.HasSuffix(b.Type, "resource") && strings.HasPrefix(b.Labels[0], "google_project_iam") {
			findings = append(findings, name+" is a right in the whole project")
		}
		if role := b.Body.Attributes["role"]; role != nil && strings.HasPrefix(b.Labels[0], "google_") {
			value, _ := role.Expr.Value(nil)
			if got := value.AsString(); got != "roles/run.invoker" && got != "roles/secretmanager.secretAccessor" {
				findings = append(findings, name+" gives "+got)
			}
		}
	}
	return findings
}

// fixed are attributes that must have these values.
var fixed = map[string]map[string]cty.Value{
	"aws_elasticache_replication_group": {
		"transit_encryption_enabled": cty.True, "transit_encryption_mode": cty.StringVal("required"), "at_rest_encryption_enabled": cty.True,
	},
	"aws_lambda_function_event_invoke_config": {"maximum_retry_attempts": cty.NumberIntVal(0), "maximum_event_age_in_seconds": cty.NumberIntVal(60)},
	"google_redis_instance":                   {"auth_enabled": cty.True, "transit_encryption_mode": cty.StringVal("SERVER_AUTHENTICATION")},
}

// present are attributes and blocks that must exist.
var present = map[string][]string{
	"aws_elasticache_replication_group": {"auth_token", "lifecycle"},
	"aws_lambda_function":               {"timeout", "memory_size", "vpc_config", "environment", "reserved_concurrent_executions"},
	"aws_cloudwatch_log_group":          {"retention_in_days"},
	"aws_apigatewayv2_stage":            {"access_log_settings", "default_route_settings"},
	"google_redis_instance":             {"lifecycle", "persistence_config"},
	"google_cloud_scheduler_job":        {"http_target", "retry_config"},
}

// beside are resources that must accompany other resources: Lambda repeats failed scheduled runs unless it is configured not to.
var beside = map[string]string{"aws_cloudwatch_event_target": "aws_lambda_function_event_invoke_config"}

// findUnsafe finds resources that lack a required protection.
func findUnsafe(blocks []*hclsyntax.Block) []string {
	var findings []string
	for _, b := range blocks {
		if b.Type != "resource" {
			continue
		}
		name := strings.Join(b.Labels, ".")
		if other := beside[b.Labels[0]]; other != "" && !slices.ContainsFunc(blocks, func(o *hclsyntax.Block) bool {
			return o.Type == "resource" && o.Labels[0] == other
		}) {
			findings = append(findings, name+" is without "+other)
		}
		for attribute, want := range fixed[b.Labels[0]] {
			var got cty.Value
			if found := b.Body.Attributes[attribute]; found != nil {
				got, _ = found.Expr.Value(nil)
			}
			if got == cty.NilVal || !got.RawEquals(want) {
				findings = append(findings, fmt.Sprintf("%s: want %s = %#v", name, attribute, want))
			}
		}
		for _, part := range present[b.Labels[0]] {
			if b.Body.Attributes[part] == nil && !slices.ContainsFunc(b.Body.Blocks, func(inner *hclsyntax.Block) bool { return inner.Type == part }) {
				findings = append(findings, name+" has no "+part)
			}
		}
	}
	return findings
}

// evaluate computes locals of a module that depend on the function table alone.
func evaluate(t *testing.T, blocks []*hclsyntax.Block, names ...string) map[string]cty.Value {
	t.Helper()
	scope := &hcl.EvalContext{
		Variables: map[string]cty.Value{
			"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(filepath.Join(infra, "aws"))}),
			"var":  cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal("platform-long"), "redis_nodes": cty.NumberIntVal(2)}),
		},
		Functions: map[string]function.Function{
			"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "merge": stdlib.MergeFunc, "flatten": stdlib.FlattenFunc,
			"split": stdlib.SplitFunc, "sort": stdlib.SortFunc, "replace": stdlib.ReplaceFunc,
			"setproduct": stdlib.SetProductFunc, "range": stdlib.RangeFunc, "keys": stdlib.KeysFunc, "format": stdlib.FormatFunc,
			"substr": stdlib.SubstrFunc,
			// A function of Terraform itself, which also accepts texts.
			"length": function.New(&function.Spec{
				Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}}, Type: function.StaticReturnType(cty.Number),
				Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
					if args[0].Type() == cty.String {
						return stdlib.Strlen(args[0])
					}
					return stdlib.Length(args[0])
				},
			}),
			"sha1": function.New(&function.Spec{
				Params: []function.Parameter{{Name: "text", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
				Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
					return cty.StringVal(fmt.Sprintf("%x", sha1.Sum([]byte(args[0].AsString())))), nil
				},
			}),
			"file": function.New(&function.Spec{
				Params: []function.Parameter{{Name: "path", Type: cty.String}}, Type: function.StaticReturnType(cty.String),
				Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
					content, err := os.ReadFile(args[0].AsString())
					return cty.StringVal(string(content)), err
				},
			}),
		},
	}
	values := map[string]cty.Value{}
	for _, name := range names {
		for _, b := range blocks {
			if attribute := b.Body.Attributes[name]; b.Type == "locals" && attribute != nil {
				value, problems := attribute.Expr.Value(scope)
				if problems.HasErrors() {
					t.Fatalf("local.%s: %v", name, problems)
				}
				values[name] = value
				scope.Variables["local"] = cty.ObjectVal(values)
			}
		}
	}
	return values
}

// routes returns the routes of the table: the function of each method and path.
func routes(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(infra, "functions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]struct{ Routes []string }
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	routes := map[string]string{}
	for name, one := range table {
		for _, route := range one.Routes {
			routes[route] = name
		}
	}
	return routes
}

func TestModules(t *testing.T) {
	t.Parallel()
	for _, platform := range platforms {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			m := readModule(t, platform)
			blocks, findings := m.blocks()
			for _, finding := range slices.Concat(findings, findUnformatted(m), findUndeclared(blocks), findUndescribed(blocks), findLeaked(blocks), findTooWide(blocks), findUnsafe(blocks)) {
				t.Error(finding)
			}
		})
	}
}

// The gateways have the routes of the table. Routes without a variable come first if the order counts.
func TestRoutes(t *testing.T) {
	t.Parallel()
	want := routes(t)

	blocks, _ := readModule(t, "aws").blocks()
	routes := map[string]string{}
	for key, name := range evaluate(t, blocks, "functions", "routes")["routes"].AsValueMap() {
		routes[key] = name.AsString()
	}
	if routes["$default"] != "discoverapi" {
		t.Errorf("aws: what no route takes goes to %q", routes["$default"])
	}
	delete(routes, "$default")
	if !maps.Equal(routes, want) {
		t.Errorf("aws: got %v, want %v", routes, want)
	}

	blocks, _ = readModule(t, "gcp").blocks()
	routes, before := map[string]string{}, 0
	for _, rule := range evaluate(t, blocks, "functions", "routed", "rules")["rules"].AsValueSlice() {
		parts := rule.AsValueSlice()
		path := parts[1].AsString()
		routes[parts[2].AsString()+" "+path] = parts[3].AsString()
		if variable := strings.Count(path, "{"); variable < before {
			t.Errorf("gcp: %s comes after paths with more variables", path)
		} else {
			before = variable
		}
	}
	if !maps.Equal(routes, want) {
		t.Errorf("gcp: got %v, want %v", routes, want)
	}
}

// Every function gets the URL of the audit's data store, if there is one: from a secret that it may read, and never in clear text. Source:
// ADR-0016.
func TestAuditStore(t *testing.T) {
	t.Parallel()
	for platform, settings := range map[string]struct{ variable, secret string }{
		"aws": {"PLATFORM_SECRET_AUDIT_STORE_SECRET", "var.audit_store_secret_arn"}, "gcp": {"PLATFORM_SECRET_AUDIT_STORE", "var.audit_store_secret"},
	} {
		m := readModule(t, platform)
		functions := m["functions.tf"]
		uses := strings.Count(functions, settings.secret)
		if !strings.Contains(functions, settings.variable) || uses < 3 || platform == "gcp" && !strings.Contains(functions, `google_secret_manager_secret_iam_member" "audit_store"`) {
			t.Errorf("%s: %s is used %d times: in a right, and in the environment", platform, settings.secret, uses)
		}
		if found := regexp.MustCompile(`name += "` + settings.variable + `"\s+value +=`).FindString(functions); found != "" {
			t.Errorf("%s: the URL is a text: %s", platform, found)
		}
	}
}

// Composed names are unique and have a permitted length.
func TestNames(t *testing.T) {
	t.Parallel()
	blocks, _ := readModule(t, "aws").blocks()
	alarms := evaluate(t, blocks, "redis_limits", "redis_alarms")["redis_alarms"].AsValueMap()
	node := alarms["002-Evictions"]
	if len(alarms) != 8 || node == cty.NilVal || node.GetAttr("node").AsString() != "platform-long-002" {
		t.Errorf("aws: alarms of the Redis: %v", slices.Sorted(maps.Keys(alarms)))
	}
	blocks, _ = readModule(t, "gcp").blocks()
	seen := map[string]bool{}
	for name, account := range evaluate(t, blocks, "functions", "accounts")["accounts"].AsValueMap() {
		if id := account.AsString(); len(id) < 6 || len(id) > 30 || seen[id] {
			t.Errorf("gcp: the account of %s is called %q", name, id)
		} else {
			seen[id] = true
		}
	}
}

func TestFinds(t *testing.T) {
	t.Parallel()
	planted := module{"main.tf": `variable "a" {
  type = string
}
variable "b" { default = var.gone }
locals { c = local.a }
resource "random_password" "p" {}
resource "aws_lambda_function" "f" {
  name = each.key
  password = random_password.p.result
}
resource "aws_elasticache_replication_group" "redis" {
  transit_encryption_enabled = false
}
resource "aws_cloudwatch_event_target" "t" {}
resource "google_cloud_run_v2_service_iam_member" "m" {
  role = "roles/owner"
}
data "aws_iam_policy_document" "d" {
  statement {
    actions   = ["s3:*", "sqs:SendMessage", "ec2:DescribeSubnets"]
    resources = ["*"]
  }
}
output "o" { value = data.aws_iam_policy_document.d.json }
`}
	blocks, findings := planted.blocks()
	report := strings.Join(slices.Concat(findings, findUnformatted(planted), findUndeclared(blocks), findUndescribed(blocks), findLeaked(blocks), findTooWide(blocks), findUnsafe(blocks)), "\n")
	for _, want := range []string{
		"main.tf is not formatted", "var.gone is not declared", "local.a is not declared", "var.a is used by nothing", "local.c is used by nothing",
		"each.key without for_each", "variable a does not say", "output o does not say", "random_password.p.result is a secret",
		"allows s3:*, on everything: true", "allows sqs:SendMessage", "allows the code what only Lambda needs", "gives roles/owner",
		"want transit_encryption_enabled", "is without aws_lambda_function_event_invoke_config", "has no vpc_config", "has no auth_token", "has no reserved_concurrent_executions",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("want %q in:\n%s", want, report)
		}
	}
	if _, findings := (module{"a.tf": "x = {"}).blocks(); len(findings) != 1 {
		t.Errorf("got %q", findings)
	}
}
