//go:build unix

// Package script_test tells stories: whole sessions of people and machines with the API, as one would type them,
// against the real local runner as a child process and an unmodified kubectl. A story is a file in testdata; its
// first line cites what it shows. It claims nothing about single rules, which the packages under shared test
// themselves, and it knows nothing that a client could not know. The same stories are told to each shape in which the
// API is deployed; what a shape leaves out is said with its reason. Source: Spec 2 to 9; ADR-0006, ADR-0010.
//
// The commands that a story may use beside those of testscript are listed in commands.
package script_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/lambda/lambdatest"
)

const (
	// patience bounds every wait of a story. It is long enough for a machine that is busy with other work.
	patience = 2 * time.Minute
	// pollEvery is the pause between two polls while a story waits.
	pollEvery = 20 * time.Millisecond

	// kubectlMinor and kubectlPatch are the release that test/kubectl builds, which kubectl is told by its linker.
	kubectlMinor = "37"
	kubectlPatch = "2"
)

// commands are what a story can say beside the words of testscript.
//
//	serve [-name NAME] [FLAG...]   start the runner and wait for its announcement; with ! it must refuse to start
//	drain [NAME]                   SIGTERM, which must end it with 0
//	crash [NAME]                   SIGKILL
//	logged PATTERN                 wait until the runner's log matches
//	platform ARG...                another command of the program, to its end
//	documented FILE BEGINNING KEYFILE   the block of a document whose command begins so, with that key as $ACCESS_KEY
//	kubectl [-exit N] [-issue FILE] ARG...
//	background NAME ARG...         kubectl goes on while the story does
//	until NAME PATTERN             wait until what it has printed matches
//	finish [-within TIME] NAME     its output, at its end; one that watches is interrupted, or ends by itself within a time
//	http [-k KEYFILE] [-H 'NAME: VALUE'] [-t TYPE] [-o FILE] [-issue FILE] [-until PATTERN] [-within TIME] METHOD PATH [BODY]
//	oidc [-audience AUDIENCE] [-later TIME] [-forge altered|foreign|none] TOKENFILE
//	                               an unmodified verifier, which knows the issuer alone, prints the claims or why it refuses
//	kubeconfig KEYFILE FILE        a kubeconfig with that key for the runner
//	same FILE NAME FILE NAME       the files are equal but for the names
//	take NAME PATTERN              a variable, of what the group of the pattern matches in stdout
//	apart TIME                     the two timestamps in stdout are that far from each other
//	mode OCTAL FILE...             the files' permissions
//	generate FILE PART...          a file of parts; N*text repeats, \xNN is a byte
//	redis kill|freeze|thaw         signals to the redis-server of the runner
//	redis await SOCKET             wait until a redis-server answers
//	writes begin|end               create keys all the time; at the end all acknowledged ones must be there
//	authority NAME                 a certificate authority: NAME.crt, NAME.key, and both in base64 as .crt64 and .key64
//	cluster AUTHORITY              a TLS server that demands client certificates and says who came; at $CLUSTER
//	certified KUBECONFIG AUTHORITY USER SECONDS   its certificate is good, that user's, and lives so long
//	fill TEMPLATE FILE NAME...     variables and lines of files in place of their names in braces
//	field FILE PATH OUTPUT         one text of a YAML or JSON document
//	canary KEYFILE...              no clear key is in anything that the session left behind
//
// The commands serve and kubectl see the environment of the story. After serve it has ORIGIN (plain HTTP), API (ORIGIN
// and the base path), DATA, ADMIN (the file of the admin key), KUBECONFIG and LOG; KEYS is the path of the access keys and TOKENS that of the tokens.
// A PATH that http is given is below API unless it is a whole URL; a BODY is a file, or text that begins with a brace
// or bracket. A line that begins with [local] is for the runner alone. Option -issue takes spec.key or status.token out of the answer, which is then the only one in which a key may be seen.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"serve":      serve,
	"drain":      drain,
	"crash":      crash,
	"logged":     logged,
	"platform":   runProgram,
	"documented": documented,
	"kubectl":    kubectl,
	"background": background,
	"until":      until,
	"finish":     finish,
	"http":       request,
	"oidc":       verify,
	"kubeconfig": kubeconfig,
	"same":       same,
	"take":       take,
	"apart":      apart,
	"mode":       mode,
	"generate":   generate,
	"redis":      redisCommand,
	"writes":     writes,
	"authority":  authority,
	"cluster":    clusterServer,
	"certified":  certified,
	"fill":       fill,
	"field":      field,
	"canary":     canary,
}

// atOnce is how many stories are told at the same time: they wait more than they work.
const atOnce = 4

func TestMain(m *testing.M) {
	// What the command line says counts more.
	if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"edit": edit})
}

func TestStories(t *testing.T) {
	build(t)
	_, err := exec.LookPath("redis-server")
	haveRedis := err == nil
	if !haveRedis && os.Getenv("CI") != "" {
		t.Fatal("redis-server is not on PATH, and in CI no story may be skipped")
	}
	for _, as := range shapes {
		t.Run(string(as), func(t *testing.T) {
			t.Parallel()
			buildShape(t, as)
			testscript.Run(t, testscript.Params{
				Files:               stories(t, as),
				Cmds:                commands,
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
				Condition: func(name string) (bool, error) {
					switch name {
					case "redis":
						return haveRedis, nil
					case "local":
						return as == localRunner, nil
					}
					return false, fmt.Errorf("unknown condition %q", name)
				},
				Setup: func(env *testscript.Env) error {
					home := filepath.Join(env.WorkDir, "home")
					env.Setenv("HOME", home)
					env.Setenv("KUBECACHEDIR", filepath.Join(home, "cache"))
					env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
					// A busy machine is no outage. Stories of outages set what holds by default.
					env.Setenv("PLATFORM_REDIS_TIMEOUT", "15s")
					env.Setenv("KEYS", "/apis/management.platform.sh/v1/ownedaccesskeys")
					env.Setenv("TOKENS", "/apis/management.platform.sh/v1/directclusterendpointtokens")
					session := newSession(as, env.WorkDir)
					env.Values[sessionKey{}] = session
					env.Defer(session.end)
					return os.MkdirAll(home, 0o700)
				},
			})
		})
	}
}

// stories are the files of those that a shape runs: all but those that are about the runner.
func stories(t *testing.T, as shape) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	known := map[string]bool{}
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		known[name] = true
		if aboutTheRunner[name] == "" || as == localRunner {
			files = append(files, file)
		}
	}
	for name := range aboutTheRunner {
		if !known[name] {
			t.Errorf("there is no story %s that could be about the runner", name)
		}
	}
	return files
}

// The programs under test, as build and buildShape make them.
var runnerProgram, kubectlProgram, serverProgram string

// bootstraps is the folder of the programs for AWS Lambda, and repository is the folder of the project.
var bootstraps, repository string

// build makes the programs that every shape needs. The go command skips what is up to date. build reads the metadata of
// every source file, so that the test cache knows them and a cached result is not taken for that of changed programs.
func build(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	repository = root
	for _, folder := range []string{"functions", "infra", "local", "shared", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			if err == nil && !entry.IsDir() {
				_, err = os.Stat(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	runnerProgram = filepath.Join(root, "build", "test", "platform")
	serverProgram = filepath.Join(root, "build", "test", "server")
	bootstraps = filepath.Join(root, "build", "test", "lambda")
	kubectlProgram = filepath.Join(root, "build", "test", "kubectl")
	const set = "-X k8s.io/component-base/version."
	for _, each := range []struct {
		folder string
		args   []string
	}{
		{root, []string{"build", "-o", runnerProgram, "./local"}},
		{filepath.Join(root, "test", "kubectl"), []string{
			"build", "-ldflags", set + "gitVersion=v1." + kubectlMinor + "." + kubectlPatch + " " +
				set + "gitMajor=1 " + set + "gitMinor=" + kubectlMinor, "-o", kubectlProgram, ".",
		}},
	} {
		if err := goBuild(each.folder, each.args...); err != nil {
			t.Fatal(err)
		}
	}
}

func goBuild(folder string, args ...string) error {
	command := exec.Command("go", args...)
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %q in %s: %w\n%s", args, folder, err, output)
	}
	return nil
}

// buildShape makes the programs of a shape, so that a single story builds only what it runs.
func buildShape(t *testing.T, as shape) {
	t.Helper()
	var err error
	switch {
	case as == frameworkServers:
		err = goBuild(repository, "build", "-o", serverProgram, "./infra/framework/server")
	case gateways[as] != nil:
		err = buildBootstraps()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// buildBootstraps makes the programs for AWS Lambda once for all gateways.
var buildBootstraps = sync.OnceValue(func() error {
	var names []string
	for _, f := range catalog.Functions {
		names = append(names, f.Name)
	}
	return lambdatest.Build(bootstraps, names...)
})
