// Package deploy_test checks deployments without an account: the stack that the packager makes from serverless.yml, and the table that
// Terraform reads. It compares both with the catalog, and looks for rights that are too wide and secrets in clear. Source: ADR-0001,
// docs/deploy.md.
package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/api/frame"
)

// stack is a CloudFormation template.
type stack struct {
	Resources map[string]resource `json:"Resources"`
}

type resource struct {
	Type       string         `json:"Type"`
	Properties map[string]any `json:"Properties"`
}

// resourcesOfType returns the sorted names of the resources of a type.
func (s stack) resourcesOfType(kind string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name, r := range s.Resources {
			if r.Type == kind && !yield(name) {
				return
			}
		}
	})
}

// function returns the resource name of a function in the stack.
func (s stack) function(name string) string {
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		if deployed, _ := s.Resources[logical].Properties["FunctionName"].(string); strings.HasSuffix(deployed, "-"+name) {
			return logical
		}
	}
	return ""
}

// jsonText returns a value of a template as JSON.
func jsonText(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// refers reports whether a value names a resource of the stack.
func refers(value any, logical string) bool {
	return strings.Contains(jsonText(value), `{"Fn::GetAtt":["`+logical+`","Arn"]}`) || strings.Contains(jsonText(value), `{"Ref":"`+logical+`"}`)
}

// hasPermission reports whether a service may call a function.
func (s stack) hasPermission(service, logical string) bool {
	return slices.ContainsFunc(s.resourcesOfType("AWS::Lambda::Permission"), func(name string) bool {
		p := s.Resources[name].Properties
		return p["Principal"] == service && p["Action"] == "lambda:InvokeFunction" && refers(p["FunctionName"], logical)
	})
}

// mayCall reports whether the role of an integration may call the function.
func (s stack) mayCall(integration, logical string) bool {
	return slices.ContainsFunc(s.resourcesOfType("AWS::IAM::Role"), func(name string) bool {
		return refers(s.Resources[integration].Properties["CredentialsArn"], name) && assumableBy(s.Resources[name].Properties, "apigateway.amazonaws.com") &&
			slices.ContainsFunc(statements(s.Resources[name].Properties), func(one map[string]any) bool {
				return one["Effect"] == "Allow" && slices.Contains(list(one["Action"]), any("lambda:InvokeFunction")) && refers(one["Resource"], logical)
			})
	})
}

// assumableBy reports whether a service may assume a role.
func assumableBy(role map[string]any, service string) bool {
	return strings.Contains(jsonText(role["AssumeRolePolicyDocument"]), `"Principal":{"Service":"`+service+`"}`)
}

// statements returns the statements of the policies in a role.
func statements(role map[string]any) []map[string]any {
	var found []map[string]any
	for _, policy := range list(role["Policies"]) {
		document, _ := policy.(map[string]any)["PolicyDocument"].(map[string]any)
		for _, one := range list(document["Statement"]) {
			statement, _ := one.(map[string]any)
			found = append(found, statement)
		}
	}
	return found
}

var rest = regexp.MustCompile(`\{(\w+)\.\.\.\}`)

// catalogRoutes returns the routes of the catalog, with the function that answers each route.
func catalogRoutes(functions []*frame.Function) map[string]string {
	routes := map[string]string{}
	for _, f := range functions {
		for _, e := range f.Endpoints {
			for _, path := range e.Paths() {
				routes[e.Method+" "+rest.ReplaceAllString(path, "{$1+}")] = f.Name
			}
		}
	}
	return routes
}

// findMisrouted finds endpoints that the gateway does not route to their function, and routes that no function serves.
func findMisrouted(s stack, functions []*frame.Function) []string {
	want := catalogRoutes(functions)
	routes, findings := map[string]string{}, []string(nil)
	for _, name := range s.resourcesOfType("AWS::ApiGatewayV2::Route") {
		key, _ := s.Resources[name].Properties["RouteKey"].(string)
		routes[key] = name
		_, path, _ := strings.Cut(key, " ")
		if key != "$default" && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(wanted string) bool {
			return wanted == key || key == "ANY "+path && strings.HasSuffix(wanted, " "+path)
		}) {
			findings = append(findings, fmt.Sprintf("the route %q is no endpoint of the catalog", key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		route, known := selectRoute(routes, key)
		if !known {
			findings = append(findings, fmt.Sprintf("there is no route %q", key))
			continue
		}
		logical := s.function(want[key])
		if logical == "" {
			findings = append(findings, fmt.Sprintf("there is no function %s", want[key]))
			continue
		}
		integrations := s.resourcesOfType("AWS::ApiGatewayV2::Integration")
		i := slices.IndexFunc(integrations, func(name string) bool {
			return refers(s.Resources[route].Properties["Target"], name) && refers(s.Resources[name].Properties["IntegrationUri"], logical)
		})
		if i < 0 {
			findings = append(findings, fmt.Sprintf("the route %q does not lead to %s", key, want[key]))
		} else if !s.mayCall(integrations[i], logical) {
			findings = append(findings, fmt.Sprintf("the gateway may not call %s", want[key]))
		}
	}
	return findings
}

// selectRoute returns the route that an HTTP API selects for a method and a path: the route for both, else the route for all methods of the path,
// else the fallback route, unless another route fits the path.
func selectRoute(routes map[string]string, key string) (string, bool) {
	_, path, _ := strings.Cut(key, " ")
	for _, candidate := range []string{key, "ANY " + path} {
		if found, known := routes[candidate]; known {
			return found, true
		}
	}
	for other := range routes {
		if _, pattern, _ := strings.Cut(other, " "); fits(pattern, path) {
			return "", false
		}
	}
	found, known := routes["$default"]
	return found, known
}

// fits reports whether a path matches a route.
func fits(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, segment := range want {
		switch {
		case strings.HasSuffix(segment, "+}"):
			return i < len(got)
		case i >= len(got), segment != got[i] && !strings.HasPrefix(segment, "{"):
			return false
		}
	}
	return len(want) == len(got)
}

// findUnscheduled finds functions with a schedule that no timer starts, or that something else can start as well.
func findUnscheduled(s stack, functions []*frame.Function) []string {
	var findings []string
	for _, f := range functions {
		if f.Schedule == nil {
			continue
		}
		logical := s.function(f.Name)
		if !slices.ContainsFunc(s.resourcesOfType("AWS::Events::Rule"), func(name string) bool {
			p := s.Resources[name].Properties
			expression, _ := p["ScheduleExpression"].(string)
			return strings.HasPrefix(expression, "rate(") && p["State"] == "ENABLED" && refers(p["Targets"], logical)
		}) {
			findings = append(findings, fmt.Sprintf("no rule starts %s", f.Name))
		} else if !s.hasPermission("events.amazonaws.com", logical) {
			findings = append(findings, fmt.Sprintf("the rule may not start %s", f.Name))
		}
		// Numbers in CloudFormation are JSON numbers.
		if !slices.ContainsFunc(s.resourcesOfType("AWS::Lambda::EventInvokeConfig"), func(name string) bool {
			p := s.Resources[name].Properties
			return refers(p["FunctionName"], logical) && p["MaximumRetryAttempts"] == 0.0 && p["MaximumEventAgeInSeconds"] == 60.0
		}) {
			findings = append(findings, fmt.Sprintf("Lambda repeats runs of %s", f.Name))
		}
	}
	return findings
}

// findUnstreamed finds functions with a watch that no URL streams, and functions that stream behind something that cannot stream.
func findUnstreamed(s stack, functions []*frame.Function) []string {
	var findings []string
	for _, f := range functions {
		if !slices.ContainsFunc(f.Endpoints, func(e frame.Endpoint) bool { return e.Verb == "watch" }) {
			continue
		}
		logical := s.function(f.Name + "Stream")
		if !slices.ContainsFunc(s.resourcesOfType("AWS::Lambda::Url"), func(name string) bool {
			p := s.Resources[name].Properties
			return p["InvokeMode"] == "RESPONSE_STREAM" && refers(p["TargetFunctionArn"], logical)
		}) {
			findings = append(findings, fmt.Sprintf("no URL streams the watch of %s", f.Name))
		} else if variables(s.Resources[logical])["PLATFORM_STREAM"] != "true" {
			findings = append(findings, fmt.Sprintf("%s has a URL that streams and does not know it", logical))
		}
	}
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		called := slices.ContainsFunc(s.resourcesOfType("AWS::ApiGatewayV2::Integration"), func(name string) bool {
			return refers(s.Resources[name].Properties["IntegrationUri"], logical)
		})
		if called && variables(s.Resources[logical])["PLATFORM_STREAM"] != nil {
			findings = append(findings, fmt.Sprintf("%s streams, and is called by an HTTP API", logical))
		}
	}
	return findings
}

// The number of instances of an account, and the number that AWS keeps for functions without a reservation.
const accountInstances, unreservedInstances = 1000, 100

// findUnbounded finds functions through which one client can occupy all instances of the account, and reservations that leave too few instances.
// The gateway throttles its calls. A URL is throttled only by the number of instances of its function. Source: ADR-0020.
func findUnbounded(s stack) []string {
	var findings []string
	reserved := 0.0
	for _, name := range s.resourcesOfType("AWS::Lambda::Url") {
		i := slices.IndexFunc(s.resourcesOfType("AWS::Lambda::Function"), func(logical string) bool {
			return refers(s.Resources[name].Properties["TargetFunctionArn"], logical)
		})
		if i < 0 {
			findings = append(findings, fmt.Sprintf("%s leads to no function", name))
			continue
		}
		logical := s.resourcesOfType("AWS::Lambda::Function")[i]
		instances, _ := s.Resources[logical].Properties["ReservedConcurrentExecutions"].(float64)
		if instances < 1 {
			findings = append(findings, fmt.Sprintf("%s has a URL and may take all instances", logical))
		}
		reserved += instances
	}
	if reserved > accountInstances-unreservedInstances {
		findings = append(findings, fmt.Sprintf("%.0f instances are reserved, of %d", reserved, accountInstances))
	}
	for _, name := range s.resourcesOfType("AWS::ApiGatewayV2::Stage") {
		settings, _ := s.Resources[name].Properties["DefaultRouteSettings"].(map[string]any)
		for _, throttle := range []string{"ThrottlingRateLimit", "ThrottlingBurstLimit"} {
			if limit, _ := settings[throttle].(float64); limit < 1 {
				findings = append(findings, fmt.Sprintf("%s has no %s", name, throttle))
			}
		}
	}
	return findings
}

func variables(r resource) map[string]any {
	environment, _ := r.Properties["Environment"].(map[string]any)
	found, _ := environment["Variables"].(map[string]any)
	return found
}

// openActions are the actions on all resources that Lambda requires to connect a function to a network. They are the only exception, and the
// same role denies them to the code of the function.
var openActions = []string{
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces",
	"ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
}

// list returns a value as a list. A template may contain a single value instead of a list.
func list(value any) []any {
	if many, ok := value.([]any); ok {
		return many
	}
	return []any{value}
}

// findTooWide finds rights of functions beyond their own log, their secret and the network.
func findTooWide(s stack) []string {
	var findings []string
	users := map[string]int{}
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		f := s.Resources[logical].Properties
		name, _ := f["FunctionName"].(string)
		own := 0
		for _, role := range s.resourcesOfType("AWS::IAM::Role") {
			if !refers(f["Role"], role) {
				continue
			}
			own++
			if users[role]++; users[role] > 1 {
				findings = append(findings, fmt.Sprintf("%s is not the only one with %s", name, role))
			}
			findings = append(findings, tooWideRole(name, s.Resources[role].Properties)...)
		}
		if own != 1 {
			findings = append(findings, fmt.Sprintf("%s has %d roles of the stack", name, own))
		}
	}
	for _, name := range s.resourcesOfType("AWS::IAM::Role") {
		if users[name] == 0 {
			findings = append(findings, findTooWideGateway(s, name)...)
		}
	}
	for _, kind := range []string{"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::User"} {
		for _, name := range s.resourcesOfType(kind) {
			findings = append(findings, fmt.Sprintf("%s is a %s: rights of functions belong to their roles", name, kind))
		}
	}
	return findings
}

// The limit of AWS for the policies in a role, in characters, and the length of the longest ARN of a function, whose name has at most 64
// characters.
const rolePolicies, functionARN = 10240, len(`"arn:aws-us-gov:lambda:ap-southeast-1:111122223333:function:",`) + 64

// findTooWideGateway finds rights in the roles of gateways beyond the right to call the functions with routes.
func findTooWideGateway(s stack, name string) []string {
	role := s.Resources[name].Properties
	var findings []string
	if !assumableBy(role, "apigateway.amazonaws.com") || strings.Count(jsonText(role["AssumeRolePolicyDocument"]), "Principal") != 1 {
		findings = append(findings, fmt.Sprintf("%s belongs neither to a function nor to the gateway alone", name))
	}
	if managed, ok := role["ManagedPolicyArns"]; ok {
		findings = append(findings, fmt.Sprintf("%s has rights of others: %s", name, jsonText(managed)))
	}
	length := 0
	for _, statement := range statements(role) {
		length += len(jsonText(statement))
		if jsonText(statement["Action"]) != `["lambda:InvokeFunction"]` {
			findings = append(findings, fmt.Sprintf("the gateway may do %s", jsonText(statement["Action"])))
		}
		for _, on := range list(statement["Resource"]) {
			length += functionARN
			if !slices.ContainsFunc(s.resourcesOfType("AWS::ApiGatewayV2::Integration"), func(integration string) bool {
				uri := s.Resources[integration].Properties["IntegrationUri"]
				return uri != nil && jsonText(uri) == jsonText(on)
			}) {
				findings = append(findings, fmt.Sprintf("the gateway may call %s, which has no route", jsonText(on)))
			}
		}
		length -= len(jsonText(statement["Resource"]))
	}
	if length > rolePolicies {
		findings = append(findings, fmt.Sprintf("the policies of %s have up to %d characters; a role has at most %d", name, length, rolePolicies))
	}
	return findings
}

func tooWideRole(name string, role map[string]any) []string {
	var findings []string
	if managed, ok := role["ManagedPolicyArns"]; ok {
		findings = append(findings, fmt.Sprintf("%s has rights of others: %s", name, jsonText(managed)))
	}
	var denied []any
	var allowed []map[string]any
	for _, statement := range statements(role) {
		if statement["Effect"] == "Deny" && strings.Contains(jsonText(statement["Condition"]), ":function:"+name+`"`) {
			denied = append(denied, list(statement["Action"])...)
		} else if statement["Effect"] == "Allow" {
			allowed = append(allowed, statement)
		}
	}
	for _, statement := range allowed {
		actions := list(statement["Action"])
		for _, action := range actions {
			if action, ok := action.(string); !ok || strings.Contains(action, "*") {
				findings = append(findings, fmt.Sprintf("%s may do %s", name, jsonText(statement["Action"])))
			}
		}
		for _, on := range list(statement["Resource"]) {
			if on == "*" {
				for _, action := range actions {
					if action, _ := action.(string); !slices.Contains(openActions, action) {
						findings = append(findings, fmt.Sprintf("%s may do %s to everything", name, action))
					} else if !slices.Contains(denied, any(action)) {
						findings = append(findings, fmt.Sprintf("the code of %s may do %s to everything", name, action))
					}
				}
				continue
			}
			// The star behind a log group stands for its streams.
			if strings.Contains(strings.Replace(jsonText(on), ":log-group:/aws/lambda/"+name+":*", "", 1), "*") {
				findings = append(findings, fmt.Sprintf("%s may reach %s", name, jsonText(on)))
			}
		}
	}
	return findings
}

var (
	sensitive = regexp.MustCompile(`(?i)secret|password|token|key|auth|url|redis`)
	reference = regexp.MustCompile(`^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+$`)
)

// findInClear finds settings that may be secrets but do not refer to a secret, and functions that cannot read their secret.
func findInClear(s stack) []string {
	var findings []string
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		environment := variables(s.Resources[logical])
		if environment["PLATFORM_REDIS_URL_SECRET"] == nil {
			findings = append(findings, fmt.Sprintf("%s has no Redis", logical))
		}
		if layers := jsonText(s.Resources[logical].Properties["Layers"]); !strings.Contains(layers, "Secrets-Lambda-Extension") {
			findings = append(findings, fmt.Sprintf("%s cannot read its secret: its layers are %s", logical, layers))
		}
		for _, name := range slices.Sorted(maps.Keys(environment)) {
			value, _ := environment[name].(string)
			if environment[name] == "" {
				continue // a variable without a value counts as absent
			}
			if (sensitive.MatchString(name) || strings.Contains(value, "://")) && !reference.MatchString(value) {
				findings = append(findings, fmt.Sprintf("%s has %s in clear", logical, name))
			}
		}
	}
	return findings
}

// findUnkeyed finds functions that seal secrets but do not get the key, and functions that get the key without need.
func findUnkeyed(s stack, functions []*frame.Function) []string {
	encrypts := map[string]bool{}
	for _, f := range functions {
		encrypts[f.Name], encrypts[f.Name+"Stream"] = f.Encrypts, f.Encrypts
	}
	var findings []string
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		resource := s.Resources[logical]
		full, _ := resource.Properties["FunctionName"].(string)
		name := full[strings.LastIndex(full, "-")+1:]
		key, hasKey := variables(resource)["PLATFORM_ENCRYPTION_KEY_SECRET"]
		readable := slices.ContainsFunc(s.resourcesOfType("AWS::IAM::Role"), func(role string) bool {
			return refers(resource.Properties["Role"], role) &&
				strings.Contains(jsonText(s.Resources[role].Properties["Policies"]), `"Resource":`+jsonText(key)+`,"Sid":"ReadEncryptionKey"`)
		})
		switch {
		case encrypts[name] && (!hasKey || !readable):
			findings = append(findings, name+" has no encryption key")
		case !encrypts[name] && hasKey:
			findings = append(findings, name+" has the encryption key and needs none")
		}
	}
	return findings
}

// findUnrecorded finds functions that do not get the URL of the audit's data store, or that get a URL although there is no data store.
func findUnrecorded(s stack, store string) []string {
	var findings []string
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		resource := s.Resources[logical]
		readable := slices.ContainsFunc(s.resourcesOfType("AWS::IAM::Role"), func(role string) bool {
			return refers(resource.Properties["Role"], role) && strings.Contains(jsonText(s.Resources[role].Properties["Policies"]), `"Resource":`+jsonText(store)+`,"Sid":"ReadAuditStore"`)
		})
		if given, _ := variables(resource)["PLATFORM_SECRET_AUDIT_STORE_SECRET"].(string); given != store || readable != (store != "") {
			findings = append(findings, fmt.Sprintf("%s has the data store %q of the audit, and may read it: %v", logical, given, readable))
		}
	}
	return findings
}

// findUnfit finds functions outside the limits of Lambda and of their callers, outside the network, or with a log that never expires. It also finds
// two programs in one upload.
func findUnfit(s stack, functions []*frame.Function) []string {
	var findings []string
	uploads := map[string]string{}
	routed, scheduled := map[string]bool{}, map[string]bool{}
	for _, f := range functions {
		routed[f.Name], scheduled[f.Name] = len(f.Endpoints) > 0, f.Schedule != nil
	}
	for _, logical := range s.resourcesOfType("AWS::Lambda::Function") {
		p := s.Resources[logical].Properties
		full, _ := p["FunctionName"].(string)
		name := full[strings.LastIndex(full, "-")+1:]
		wrong := func(format string, values ...any) {
			findings = append(findings, name+": "+fmt.Sprintf(format, values...))
		}
		if release, _ := variables(s.Resources[logical])["PLATFORM_VERSION"].(string); release == "" {
			wrong("does not know its release")
		}
		seconds, _ := p["Timeout"].(float64)
		switch {
		case routed[name] && !scheduled[name] && (seconds < 1 || seconds > 30):
			wrong("%v seconds behind an HTTP API, which gives up after 30", seconds)
		case scheduled[name] && seconds <= frame.MaxDuration.Seconds():
			wrong("%v seconds for a run of up to %v", seconds, frame.MaxDuration)
		case seconds < 1 || seconds > 900:
			wrong("%v seconds; Lambda permits 1 to 900", seconds)
		}
		if megabytes, _ := p["MemorySize"].(float64); megabytes < 128 || megabytes > 10240 {
			wrong("%v MB; Lambda permits 128 to 10240", megabytes)
		}
		if p["Runtime"] != "provided.al2023" || jsonText(p["Architectures"]) != `["arm64"]` {
			wrong("runs on %s, %s", jsonText(p["Runtime"]), jsonText(p["Architectures"]))
		}
		network, _ := p["VpcConfig"].(map[string]any)
		if !strings.Contains(jsonText(network["SubnetIds"]), "subnet-") || !strings.Contains(jsonText(network["SecurityGroupIds"]), "sg-") {
			wrong("is in no network: %s", jsonText(network))
		}
		if !slices.ContainsFunc(s.resourcesOfType("AWS::Logs::LogGroup"), func(log string) bool {
			l := s.Resources[log].Properties
			days, _ := l["RetentionInDays"].(float64)
			return l["LogGroupName"] == "/aws/lambda/"+full && days >= 1
		}) {
			wrong("has no log that ends")
		}
		code, _ := p["Code"].(map[string]any)
		key, _ := code["S3Key"].(string)
		program := strings.TrimSuffix(name, "Stream")
		if other, taken := uploads[key]; taken && other != program {
			wrong("has the upload of %s", other)
		}
		uploads[key] = program
	}
	if count := len(s.Resources); count > 500 {
		findings = append(findings, fmt.Sprintf("%d resources; a stack has at most 500", count))
	}
	for _, name := range s.resourcesOfType("AWS::ApiGatewayV2::Stage") {
		if settings := jsonText(s.Resources[name].Properties); !strings.Contains(settings, "ThrottlingRateLimit") ||
			!strings.Contains(settings, "AccessLogSettings") || strings.Contains(strings.ToLower(settings), "header") {
			findings = append(findings, name+": want limits, and a log without headers")
		}
	}
	return findings
}

// report fails the test for each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, finding := range findings {
		t.Error(finding)
	}
}
