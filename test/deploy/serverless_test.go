package deploy_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
)

const root = "../.."

// parameters are the parameters without a default in serverless.yml.
var parameters = map[string]string{
	"redisSecretArn":         "arn:aws:secretsmanager:eu-central-1:111122223333:secret:platform/redis-AbCdEf",
	"encryptionKeySecretArn": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:platform/encryption-GhIjKl",
	"secretsLayerArn":        "arn:aws:lambda:eu-central-1:111122223333:layer:AWS-Parameters-and-Secrets-Lambda-Extension-Arm64:1",
	"subnetIds":              "subnet-1,subnet-2",
	"securityGroupIds":       "sg-1",
}

// tools is the folder with the packager, and with a Node.js if the Node.js of the machine is too old for the packager.
const tools = root + "/infra/serverless/node_modules/.bin"

// packager is the pinned packager. It is always present in CI.
func packager(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(tools, "osls"))
	if err != nil {
		t.Fatal(err)
	}
	_, missing := os.Stat(path)
	if _, err := exec.LookPath("node"); err != nil {
		missing = err
	}
	if missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("make node has not installed the packager: %v", missing)
		}
		t.Skipf("the packager is not installed (make node): %v", missing)
	}
	return path
}

// copySources copies the files that the packager reads into a new folder, beside stubs of the programs.
func copySources(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"serverless.yml", "infra/serverless/functions.json", "infra/serverless/roles.json", "infra/serverless/gateway.js"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(folder, name), content)
	}
	for _, f := range catalog.Functions {
		var archive strings.Builder
		writer := zip.NewWriter(&archive)
		program, err := writer.Create("bootstrap")
		if err == nil {
			_, err = program.Write([]byte(f.Name))
		}
		if err == nil {
			err = writer.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(folder, "build/serverless", f.Name+".zip"), []byte(archive.String()))
	}
	return folder
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pack runs the packager without credentials, and with a proxy that does not exist: it needs neither an account nor a network.
func pack(t *testing.T, program, folder, stage string, given map[string]string) (stack, string, error) {
	t.Helper()
	arguments := []string{"package", "--stage", stage, "--package", "out"}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		arguments = append(arguments, "--param="+name+"="+given[name])
	}
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = folder
	command.Env = []string{
		"PATH=" + filepath.Dir(program) + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + folder, "CI=true", "AWS_EC2_METADATA_DISABLED=true",
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9",
	}
	output, err := command.CombinedOutput()
	var result stack
	if err == nil {
		var content []byte
		if content, err = os.ReadFile(filepath.Join(folder, "out/cloudformation-template-update-stack.json")); err == nil {
			err = json.Unmarshal(content, &result)
		}
	}
	return result, string(output), err
}

func TestServerless(t *testing.T) {
	t.Parallel()
	program := packager(t)
	for _, stage := range []string{"dev", "prod"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			result, output, err := pack(t, program, copySources(t), stage, parameters)
			if err != nil || strings.Contains(output, "Warning") || strings.Contains(output, "Deprecat") {
				t.Fatalf("%v\n%s", err, output)
			}
			report(t, findMisrouted(result, catalog.Functions))
			report(t, findUnscheduled(result, catalog.Functions))
			report(t, findUnstreamed(result, catalog.Functions))
			report(t, findUnbounded(result))
			report(t, findTooWide(result))
			report(t, findInClear(result))
			report(t, findUnkeyed(result, catalog.Functions))
			report(t, findUnrecorded(result, ""))
			report(t, findUnfit(result, catalog.Functions))
		})
	}
}

// Every function gets the URL of the audit's data store, if there is one, and may read it. Source: ADR-0016.
func TestServerlessAuditStore(t *testing.T) {
	t.Parallel()
	arguments := maps.Clone(parameters)
	arguments["auditStoreSecretArn"] = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:platform/audit-JkLmNo"
	result, output, err := pack(t, packager(t), copySources(t), "dev", arguments)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	report(t, findUnrecorded(result, arguments["auditStoreSecretArn"]))
	report(t, findInClear(result))
	report(t, findTooWide(result))
	report(t, findUnfit(result, catalog.Functions))
}

// The packager fails if something is misspelt or missing.
func TestServerlessRefuses(t *testing.T) {
	t.Parallel()
	program := packager(t)
	for name, change := range map[string]func(folder string, given map[string]string){
		"a property that there is not": func(folder string, _ map[string]string) {
			file := filepath.Join(folder, "serverless.yml")
			content, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			writeFile(t, file, []byte(strings.Replace(string(content), "  versionFunctions:", "  versionFunction:", 1)))
		},
		"a parameter without a value": func(_ string, given map[string]string) { delete(given, "redisSecretArn") },
		"a program that was not built": func(folder string, _ map[string]string) {
			if err := os.Remove(filepath.Join(folder, "build/serverless", catalog.Functions[0].Name+".zip")); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, given := copySources(t), maps.Clone(parameters)
			change(folder, given)
			if _, output, err := pack(t, program, folder, "dev", given); err == nil {
				t.Errorf("packaged with %s:\n%s", name, output)
			}
		})
	}
}

// The function table of Terraform has the functions of the catalog.
func TestTable(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "infra/terraform/functions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]struct {
		Routes          []string `json:"routes"`
		Stream          bool     `json:"stream"`
		ScheduleMinutes int      `json:"scheduleMinutes"`
	}
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	routes := map[string]string{}
	for name, one := range table {
		for _, route := range one.Routes {
			routes[route] = name
		}
	}
	if want := catalogRoutes(catalog.Functions); !maps.Equal(routes, want) {
		t.Errorf("the table has %v, want %v: run make gen", routes, want)
	}
	for _, f := range catalog.Functions {
		streams := false
		for _, e := range f.Endpoints {
			streams = streams || e.Verb == "watch"
		}
		if one, ok := table[f.Name]; !ok || (f.Schedule != nil) != (one.ScheduleMinutes > 0) || streams != one.Stream {
			t.Errorf("the table says of %s: %s", f.Name, fmt.Sprint(one))
		}
	}
	if len(table) != len(catalog.Functions) {
		t.Errorf("the table has %d functions, want %d", len(table), len(catalog.Functions))
	}
}
