package deploy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
)

// The checks find each fault that is planted into the real stack.
func TestServerlessFinds(t *testing.T) {
	t.Parallel()
	made, output, err := pack(t, packager(t), copySources(t), "dev", parameters)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	sound := jsonText(made)
	for _, test := range []struct{ old, new, want string }{
		{`"RouteKey":"POST /kubernetes`, `"RouteKey":"PUT /kubernetes`, "there is no route"},
		{`"IntegrationUri":{"Fn::GetAtt":["Getaccesskey`, `"IntegrationUri":{"Fn::GetAtt":["Deleteaccesskey`, "does not lead to getaccesskey"},
		{`"Principal":{"Service":"apigateway.amazonaws.com"}`, `"Principal":{"Service":"s3.amazonaws.com"}`, "the gateway may not call"},
		{`"Principal":{"Service":"apigateway.amazonaws.com"}`, `"Principal":{"AWS":"*"}`, "nor to the gateway alone"},
		{`"CredentialsArn":{"Fn::GetAtt":["GatewayRole"`, `"CredentialsArn":{"Fn::GetAtt":["WhoamiRole"`, "the gateway may not call"},
		{`"Action":["lambda:InvokeFunction"]`, `"Action":["lambda:*"]`, `the gateway may do ["lambda:*"]`},
		{`{"Fn::GetAtt":["GetaccesskeyLambdaFunction","Arn"]},{`, `{"Fn::GetAtt":["ExpirekeysLambdaFunction","Arn"]},{`, "which has no route"},
		{`"State":"ENABLED"`, `"State":"DISABLED"`, "no rule starts"},
		{`"Principal":"events.amazonaws.com"`, `"Principal":"s3.amazonaws.com"`, "the rule may not start"},
		{`"MaximumRetryAttempts":0`, `"MaximumRetryAttempts":2`, "Lambda repeats runs of"},
		{`"MaximumEventAgeInSeconds":60,`, ``, "Lambda repeats runs of"},
		{`"RESPONSE_STREAM"`, `"BUFFERED"`, "no URL streams"},
		{`"PLATFORM_STREAM":"true"`, `"PLATFORM_STREAM":"false"`, "does not know it"},
		{`"ReservedConcurrentExecutions":25`, `"ReservedConcurrentExecutions":0`, "may take all instances"},
		{`"ReservedConcurrentExecutions":25`, `"ReservedConcurrentExecutions":250`, "instances are reserved, of 1000"},
		{`"ThrottlingRateLimit":500`, `"ThrottlingRateLimit":0`, "has no ThrottlingRateLimit"},
		{`"secretsmanager:GetSecretValue"`, `"secretsmanager:*"`, `may do ["secretsmanager:*"]`},
		{`"Resource":"` + parameters["redisSecretArn"], `"Resource":"*","x":"`, "may do secretsmanager:GetSecretValue to everything"},
		{`:secret:platform/redis-AbCdEf","Sid"`, `:secret:*","Sid"`, "may reach"},
		{`"Effect":"Deny","Resource"`, `"Effect":"None","Resource"`, "the code of"},
		{`log-group:/aws/lambda/platform-dev-whoami:*`, `log-group:/aws/lambda/platform-dev-other:*`, "may reach"},
		{`"Fn::GetAtt":["WhoamiRole"`, `"Fn::GetAtt":["GetaccesskeyRole"`, "is not the only one"},
		{`"PLATFORM_REDIS_URL_SECRET":"arn:aws:secretsmanager:`, `"PLATFORM_REDIS_URL_SECRET":"rediss://x:y@z/arn:`, "in clear"},
		{`"PLATFORM_LOG_LEVEL":"info"`, `"PLATFORM_ADMIN_KEY":"pak_123"`, "PLATFORM_ADMIN_KEY in clear"},
		{`"PLATFORM_REDIS_URL_SECRET"`, `"PLATFORM_OTHER"`, "has no Redis"},
		{`"PLATFORM_VERSION":"dev"`, `"PLATFORM_OTHER":"dev"`, "does not know its release"},
		{`"PLATFORM_WATCH_WINDOW":"10s"`, `"PLATFORM_STREAM":"true"`, "is called by an HTTP API"},
		{`Secrets-Lambda-Extension`, `Other-Extension`, "cannot read its secret"},
		{`"PLATFORM_LOG_LEVEL":"info"`, `"PLATFORM_ENCRYPTION_KEY_SECRET":"x"`, "whoami has the encryption key and needs none"},
		{`"PLATFORM_SECRET_AUDIT_STORE_SECRET":""`, `"PLATFORM_SECRET_AUDIT_STORE_SECRET":"x"`, `has the data store "x"`},
		{`"PLATFORM_SECRET_AUDIT_STORE_SECRET":""`, `"PLATFORM_SECRET_AUDIT_STORE_SECRET":"redis://x"`, "PLATFORM_SECRET_AUDIT_STORE_SECRET in clear"},
		{`"Timeout":29`, `"Timeout":31`, "gives up after 30"},
		{`"Timeout":75`, `"Timeout":60`, "for a run"},
		{`"Timeout":900`, `"Timeout":901`, "Lambda permits 1 to 900"},
		{`"MemorySize":512`, `"MemorySize":64`, "64 MB"},
		{`"provided.al2023"`, `"provided.al2"`, "runs on"},
		{`subnet-1,subnet-2`, ``, "is in no network"},
		{`"RetentionInDays":30`, `"RetentionInDays":0`, "no log that ends"},
		{`/whoami.zip"`, `/getaccesskey.zip"`, "has the upload of"},
		{`$context.requestId`, `$context.authorizer.header`, "a log without headers"},
	} {
		var planted stack
		if err := json.Unmarshal([]byte(strings.ReplaceAll(sound, test.old, test.new)), &planted); err != nil {
			t.Fatal(err)
		}
		found := slices.Concat(findMisrouted(planted, catalog.Functions), findUnscheduled(planted, catalog.Functions),
			findUnstreamed(planted, catalog.Functions), findUnbounded(planted), findTooWide(planted), findInClear(planted), findUnkeyed(planted, catalog.Functions), findUnrecorded(planted, ""), findUnfit(planted, catalog.Functions))
		if !slices.ContainsFunc(found, func(finding string) bool { return strings.Contains(finding, test.want) }) {
			t.Errorf("with %s for %s: found %q, want %q", test.new, test.old, found, test.want)
		}
	}
}
