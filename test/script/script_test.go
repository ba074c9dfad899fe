//go:build unix

// Package script_test runs stories: whole sessions of users and machines with the API, as they would type them, against the real program as a
// child process and an unmodified kubectl. A story is a file in testdata. Its first line cites the rules that it shows. Stories do not test
// single rules: the packages under shared do. A story knows only what a client can know. The same stories run against each shape in which the
// API is deployed. If a shape leaves a story out, aboutTheRunner has the reason. Source: Spec 2 to 9; ADR-0006, ADR-0010.
//
// commands lists the commands that a story can use in addition to the commands of testscript.
package script_test

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"management.platform.sh/infra/lambda/lambdatest"
	"management.platform.sh/test/launch"
)

const (
	// patience bounds every wait of a story. It is long enough for a machine that is busy with other work.
	patience = 2 * time.Minute
	// pollEvery is the pause between two polls while a story waits.
	pollEvery = 20 * time.Millisecond
)

// commands are the commands that a story can use in addition to the commands of testscript.
//
//	serve [-previous] [-name NAME] [FLAG...]   start the runner, or the runner of the previous release, and wait for its welcome;
//	                               with ! it must refuse to start
//	drain [NAME]                   SIGTERM; the runner must exit with 0
//	crash [NAME]                   SIGKILL
//	logged PATTERN                 wait until the runner's log matches
//	platform [-until PATTERN] ARG...   run another command of the program, until its output matches
//	programs                       put kubectl and the program on PATH, for the plugins of kubeconfigs
//	documented FILE BEGINNING KEYFILE   run the block of a document whose command begins so, with that key as $ACCESS_KEY
//	example NAME                   run a script of docs/examples, or build and run a program of it
//	follow                         run the commands of all documents, except those that documents_test.go names
//	walk [-job] FILE SECTION [BLOCK]   run the commands of a section of a document, or of one of its blocks; with -job what
//	                               its blocks of YAML make jobs run
//	kubectl [-exit N] [-issue FILE] ARG...
//	background [-platform] NAME ARG...   run kubectl, or another command of the program, in the background
//	approve [-deny] CODE USER PASSWORDFILE   enter the code of a device in a browser, sign in and decide; prints the question
//	signin ADDRESS                 open the address of platform login in a browser with a session at the provider, and allow it
//	stopwatch begin|read           print the seconds since its beginning
//	until NAME PATTERN             wait until its output matches
//	finish [-peek] [-within TIME] NAME   print its output at its end; a watch is interrupted, or must end by itself within the time
//	http [-k KEYFILE] [-H 'NAME: VALUE'] [-t TYPE] [-o FILE] [-issue FILE] [-until PATTERN] [-within TIME] METHOD PATH [BODY]
//	oidc [-audience AUDIENCE] [-later TIME] [-forge altered|foreign|none] TOKENFILE
//	                               an unmodified verifier, which knows only the issuer, prints the claims or why it refuses the token
//	kubeconfig KEYFILE FILE        write a kubeconfig with that key for the runner
//	same FILE NAME FILE NAME       the files are equal except for the names
//	take NAME PATTERN              set a variable to the match of the pattern's group in stdout
//	apart TIME                     the two timestamps in stdout have that distance
//	mode OCTAL FILE...             the files have these permissions
//	generate FILE PART...          write a file from parts; N*text repeats, \xNN is a byte
//	redis kill|freeze|thaw         signal the redis-server of the runner
//	redis await SOCKET             wait until a redis-server answers
//	writes begin|end               create keys continuously; at the end all acknowledged keys must exist
//	authority NAME                 a certificate authority: NAME.crt, NAME.key, and both in base64 as .crt64 and .key64
//	cluster AUTHORITY              a TLS server at $CLUSTER that requires client certificates and answers with their user
//	issuer                         a system at $ISSUER that signs the tokens of jobs; its authority is in issuer.crt and
//	                               issuer.crt64. As GitHub Actions does, it gives the token in the file github.token to its job
//	job FILE CLAIM=TEXT...         write the token of a job with these claims, for the runner
//	certified KUBECONFIG AUTHORITY USER SECONDS   its certificate is valid, names that user, and has that lifetime
//	fill TEMPLATE FILE NAME...     replace names in braces with variables and lines of files
//	field FILE PATH OUTPUT         write one string of a YAML or JSON document to a file
//	console                        the page of the console and its assets are equal to the files of the repository
//	canary KEYFILE...              no clear key is in the data, logs and answers of the session
//
// The commands serve and kubectl see the environment of the story. After serve it has ORIGIN (plain HTTP), API (ORIGIN
// and the base path), DATA, ADMIN (the file of the admin key), KUBECONFIG and LOG. KEYS is the path of the access keys, and
// TOKENS the path of the tokens. A PATH for http is below API unless it is a whole URL. A BODY is a file, or text that begins
// with a brace or a bracket. A line that begins with [local] is for the runner only. Option -issue writes spec.key or
// status.token of the answer to a file. Only such an answer may contain a key.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"serve":      serve,
	"drain":      drain,
	"crash":      crash,
	"logged":     waitForLog,
	"platform":   runProgram,
	"documented": runDocumented,
	"example":    example,
	"follow":     follow,
	"walk":       walk,
	"kubectl":    kubectl,
	"background": background,
	"approve":    approve,
	"signin":     signIn,
	"stopwatch":  stopwatch,
	"until":      waitForOutput,
	"finish":     finish,
	"http":       request,
	"oidc":       verify,
	"kubeconfig": kubeconfig,
	"same":       compareFiles,
	"take":       take,
	"apart":      checkDistance,
	"mode":       mode,
	"generate":   generate,
	"redis":      redisCommand,
	"writes":     writes,
	"authority":  authority,
	"cluster":    clusterServer,
	"issuer":     issuer,
	"job":        job,
	"certified":  checkCertificate,
	"fill":       fill,
	"field":      field,
	"canary":     canary,
	"console":    console,
	"programs":   programs,
}

// atOnce is the number of stories that run at the same time. Stories wait more than they work.
const atOnce = 4

func TestMain(m *testing.M) {
	// A flag on the command line wins.
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
	shapes := shapes
	if testing.Short() {
		shapes = shortRunShapes
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
					case "previous":
						// The previous release is compiled from its own source, which takes minutes.
						if testing.Short() {
							return false, nil
						}
						return havePrevious()
					}
					return false, fmt.Errorf("unknown condition %q", name)
				},
				Setup: func(env *testscript.Env) error {
					home := filepath.Join(env.WorkDir, "home")
					env.Setenv("HOME", home)
					env.Setenv("KUBECACHEDIR", filepath.Join(home, "cache"))
					env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
					// A busy machine is not an outage. Stories about outages set the default.
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

// waitingRank returns 1 for a story that waits most of its time.
func waitingRank(file string) int {
	if slices.Contains([]string{"watch.txtar", "kubectl.txtar"}, filepath.Base(file)) {
		return 1
	}
	return 0
}

// stories returns the files of the stories that a shape runs. Stories about the runner are for the runner only.
func stories(t *testing.T, as shape) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	names := map[string]bool{}
	for _, file := range all {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		names[name] = true
		whole := as == lambdaRESTAPI || as == frameworkServers && !testing.Short()
		if as == localRunner || aboutTheRunner[name] == "" && (whole || slices.Contains(storiesOfEveryShape, name)) {
			files = append(files, file)
		}
	}
	for _, name := range storiesOfEveryShape {
		if !names[name] || aboutTheRunner[name] != "" {
			t.Errorf("ofEveryShape names %s, which is not a story of all shapes", name)
		}
	}
	for name := range aboutTheRunner {
		if !names[name] {
			t.Errorf("aboutTheRunner names %s, which is not a story", name)
		}
	}
	// Stories that wait most of their time begin first, so that they do not run alone at the end.
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(waitingRank(b), waitingRank(a)) })
	return files
}

// The programs under test, as build and buildShape make them.
var runnerProgram, kubectlProgram, serverProgram string

// repository is the folder of the project.
var repository string

// build makes the programs that every shape needs. The go command skips programs that are up to date. build reads the metadata of every source
// file, so that the test cache knows the files and returns no cached result after a program has changed.
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
	if err := goBuild(root, "build", "-o", runnerProgram, "./local"); err != nil {
		t.Fatal(err)
	}
	if kubectlProgram, err = launch.Kubectl(t.Context(), root); err != nil {
		t.Fatal(err)
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
		_, err = buildBootstraps()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// buildBootstraps makes the programs for AWS Lambda once for all gateways.
var buildBootstraps = sync.OnceValues(func() (*lambdatest.Programs, error) { return lambdatest.BuildAll(repository) })
