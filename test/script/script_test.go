//go:build unix

// Package script_test tells stories: whole sessions of people and machines with the API, as one would type them,
// against the real local runner as a child process and an unmodified kubectl. A story is a file in testdata; its
// first line cites what it shows. It claims nothing about single rules, which the packages under shared test
// themselves, and it knows nothing that a client could not know. Source: Spec 2 to 9; ADR-0006.
//
// The commands that a story may use beside those of testscript are listed in commands.
package script_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	// patience bounds every wait of a story.
	patience = 30 * time.Second
	// pollEvery is the pause between two looks at what a story waits for.
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
//	local ARG...                   another command of the runner, to its end
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
//	canary KEYFILE...              no clear key is in anything that the session left behind
//
// The commands serve and kubectl see the environment of the story. After serve it has ORIGIN (plain HTTP), API (ORIGIN
// and the base path), DATA, ADMIN (the file of the admin key), KUBECONFIG and LOG; KEYS is the path of the access keys and TOKENS that of the tokens.
// A PATH that http is given is below API unless it is a whole URL; a BODY is a file, or text that begins with a brace
// or bracket. Option -issue takes spec.key or status.token out of the answer, which is then the only one in which a key may be seen.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"serve":      serve,
	"drain":      drain,
	"crash":      crash,
	"logged":     logged,
	"local":      local,
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
	"canary":     canary,
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"edit": edit})
}

func TestStories(t *testing.T) {
	build(t)
	_, err := exec.LookPath("redis-server")
	haveRedis := err == nil
	if !haveRedis && os.Getenv("CI") != "" {
		t.Fatal("redis-server is not on PATH, and in CI no story may be skipped")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Cmds:                commands,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name == "redis" {
				return haveRedis, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("KUBECACHEDIR", filepath.Join(home, "cache"))
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
			env.Setenv("KEYS", "/apis/management.platform.sh/v1/ownedaccesskeys")
			env.Setenv("TOKENS", "/apis/management.platform.sh/v1/directclusterendpointtokens")
			session := newSession(env.WorkDir)
			env.Values[sessionKey{}] = session
			env.Defer(session.end)
			return os.MkdirAll(home, 0o700)
		},
	})
}

// The programs under test, after build.
var runnerProgram, kubectlProgram string

// build makes the runner and kubectl. The go command leaves alone what is up to date.
func build(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	runnerProgram = filepath.Join(root, "build", "test", "local")
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
		command := exec.Command("go", each.args...)
		command.Dir = each.folder
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %q in %s: %v\n%s", each.args, each.folder, err, output)
		}
	}
}
