package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"management.platform.sh/shared/settings"
)

// object is a piece of a manifest.
type object = map[string]any

// A function that streams is deployed a second time, from the same program and with its own URL: a function on AWS
// answers either buffered or streaming, and an HTTP API supports only buffered answers.
const (
	streamSuffix = "Stream"
	// streamSeconds is the longest timeout of Lambda; streamWindow ends a watch before that, with a bookmark.
	streamSeconds = 900
	streamWindow  = "14m"
	// streamConcurrency bounds the instances of such a function. A URL has no other throttle: each watch holds an instance
	// until it ends, and without a bound the watches of one key take all instances of the account. Source: ADR-0020.
	streamConcurrency = "${param:streamConcurrency}"
)

// encryptionKey refers to the secret with the encryption keys.
const encryptionKey = "${param:encryptionKeySecretArn}"

// The secret with the URL of the audit's data store is optional. A variable without a value counts as absent. A
// statement needs a resource, so without the secret it names one that the role can read in any case.
const (
	auditStoreVariable = settings.DefaultConfigVariables + "AUDIT_STORE_SECRET"
	auditStoreSecret   = "${param:auditStoreSecretArn, ''}"
	auditStoreResource = "${param:auditStoreSecretArn, param:redisSecretArn}"
)

// roleOf returns the name of a function's role in the stack.
func roleOf(function string) string { return strings.ToUpper(function[:1]) + function[1:] + "Role" }

// deployedName returns the name of a function on AWS, with the variables of serverless.yml.
func deployedName(function string) string { return "${self:service}-${sls:stage}-" + function }

func serverlessFunctions(entries map[string]entry) object {
	functions := object{}
	for name, entry := range entries {
		function := func(deployed string, timeout int) object {
			definition := object{
				"name": deployedName(deployed), "handler": "bootstrap", "role": roleOf(deployed),
				"timeout": timeout, "memorySize": entry.MemoryMB,
				// The name of the file distinguishes uploads.
				"package": object{"artifact": "build/serverless/" + name + ".zip"}, "environment": object{auditStoreVariable: auditStoreSecret},
			}
			if entry.Encrypts {
				definition["environment"].(object)[settings.EncryptionKeySecret] = encryptionKey
			}
			return definition
		}
		events := []any{}
		if entry.Fallback {
			// Paths without a route come here, like the paths of this function.
			events = append(events, object{"httpApi": "*"})
		} else {
			for _, each := range httpRoutes(entry.Routes) {
				events = append(events, object{"httpApi": each})
			}
		}
		if entry.ScheduleMinutes > 0 {
			events = append(events, object{"schedule": object{"rate": []string{rate(entry.ScheduleMinutes)}}})
		}
		definition := function(name, entry.TimeoutSeconds)
		definition["events"] = events
		if entry.ScheduleMinutes > 0 {
			definition["maximumRetryAttempts"], definition["maximumEventAge"] = 0, maxEventAge
		}
		functions[name] = definition
		if entry.Stream {
			stream := function(name+streamSuffix, streamSeconds)
			stream["url"] = object{"invokeMode": "RESPONSE_STREAM"}
			stream["reservedConcurrency"] = streamConcurrency
			environment := stream["environment"].(object)
			environment[settings.Stream], environment[settings.WatchWindow] = "true", streamWindow
			functions[name+streamSuffix] = stream
		}
	}
	return functions
}

// httpRoutes returns the routes of a function. A path with several methods has one route for all methods, because a
// stack has at most 500 resources. The function itself refuses other methods.
func httpRoutes(routes []string) []object {
	var routeEvents []object
	byPath := map[string]object{}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		if known, found := byPath[path]; found {
			known["method"] = "*"
			continue
		}
		byPath[path] = object{"method": method, "path": path}
		routeEvents = append(routeEvents, byPath[path])
	}
	return routeEvents
}

// maxEventAge is how many seconds Lambda keeps a schedule's event for which it cannot start the function. It is the
// minimum, because the next run does the work of a lost run. By default Lambda keeps an event for six hours and repeats
// a failed run twice.
const maxEventAge = 60

// rate returns an interval in the form of EventBridge.
func rate(minutes int) string {
	if minutes == 1 {
		return "rate(1 minute)"
	}
	return fmt.Sprintf("rate(%d minutes)", minutes)
}

// networkActions are the permissions that Lambda needs to put a function into a VPC. The role of the function must grant
// them, for all resources.
var networkActions = []string{
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces",
	"ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
}

// gatewayRole is the name in the stack of the role with which the HTTP API calls functions. infra/serverless/gateway.js
// uses it.
const gatewayRole = "GatewayRole"

// serverlessRoles returns the resources of serverless.yml: one role for each function, and one for the HTTP API. The
// role of a function permits it to write its own log and to read the URL of the Redis, the URL of the audit's data
// store and, for functions that seal secrets, the encryption key. It also permits Lambda to join the network, but
// denies that to the code of the function. The role of the HTTP API permits it to call the functions that have routes.
func serverlessRoles(entries map[string]entry) object {
	var called []object
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if len(entries[name].Routes) > 0 || entries[name].Fallback {
			called = append(called, object{"Fn::GetAtt": []string{strings.ToUpper(name[:1]) + name[1:] + "LambdaFunction", "Arn"}})
		}
	}
	roles := object{gatewayRole: roleFor("apigateway.amazonaws.com", []object{{
		"Sid": "CallFunctions", "Effect": "Allow", "Action": []string{"lambda:InvokeFunction"}, "Resource": called,
	}})}
	for name, one := range entries {
		roles[roleOf(name)] = role(deployedName(name), one.Encrypts)
		if one.Stream {
			roles[roleOf(name+streamSuffix)] = role(deployedName(name+streamSuffix), one.Encrypts)
		}
	}
	return object{"Resources": roles}
}

func role(deployed string, encrypts bool) object {
	arn := func(service, resource string) object {
		return object{"Fn::Sub": "arn:${AWS::Partition}:" + service + ":${AWS::Region}:${AWS::AccountId}:" + resource}
	}
	statements := []object{
		{
			"Sid": "WriteOwnLog", "Effect": "Allow", "Action": []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			"Resource": arn("logs", "log-group:/aws/lambda/"+deployed+":*"),
		},
		{
			"Sid": "ReadRedisURL", "Effect": "Allow", "Action": []string{"secretsmanager:GetSecretValue"},
			"Resource": "${param:redisSecretArn}",
		},
		{
			"Sid": "ReadAuditStore", "Effect": "Allow", "Action": []string{"secretsmanager:GetSecretValue"},
			"Resource": auditStoreResource,
		},
		{"Sid": "JoinNetwork", "Effect": "Allow", "Action": networkActions, "Resource": "*"},
		{
			"Sid": "NotFromCode", "Effect": "Deny", "Action": networkActions, "Resource": "*",
			"Condition": object{"ArnEquals": object{"lambda:SourceFunctionArn": arn("lambda", "function:"+deployed)}},
		},
	}
	if encrypts {
		statements = append(statements, object{
			"Sid": "ReadEncryptionKey", "Effect": "Allow", "Action": []string{"secretsmanager:GetSecretValue"},
			"Resource": encryptionKey,
		})
	}
	return roleFor("lambda.amazonaws.com", statements)
}

// roleFor returns a role that a service can assume, with its rights.
func roleFor(service string, statements []object) object {
	return object{"Type": "AWS::IAM::Role", "Properties": object{
		"AssumeRolePolicyDocument": object{"Version": "2012-10-17", "Statement": []object{{
			"Effect": "Allow", "Principal": object{"Service": service}, "Action": "sts:AssumeRole",
		}}},
		"Policies": []object{{
			"PolicyName": "own", "PolicyDocument": object{"Version": "2012-10-17", "Statement": statements},
		}},
	}}
}
