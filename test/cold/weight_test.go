package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/lambda/lambdatest"
)

// budget is the largest that the program of a function may be, in MiB. Of the 15, go-redis, net/http with TLS and the
// metadata of Kubernetes are two thirds. Each stored kind adds a fifth to the functions that know the rules of all kinds.
const budget = 15

// verbBudgets are those of functions that store what clients write, by the verb with which their names begin: the field managers of
// Kubernetes are 4 MiB (structured-merge-diff, kube-openapi with the parsers of gnostic, the swag libraries and a second YAML), and JSON
// patches one more.
var verbBudgets = map[string]int{"create": 19, "update": 20, "patch": 20}

// budgets are those of other functions that have a reason to be larger.
var budgets = map[string]int{
	// The record of a token ends with the key that asked for it, so that the program has every kind.
	"issuetoken": 16,
	// The field managers of Kubernetes. A password brings its hash and the list of guessable ones.
	"signoutuser":    20,
	"setpassword":    20,
	"patchconfig":    19,
	"rollbackconfig": 19,
	// client-go: its REST client, which asks virtual clusters to sign, and clientcmd, which reads what was written as a
	// client does. 5 MiB, and one for the kinds that decide who may ask. The key has no field manager (ADR-0049).
	"renderkubeconfig": 21,
	// The clients of connectors, and what checks the tokens that they and the issuers of jobs sign: go-oidc, go-jose and oauth2. 1 MiB.
	"finishlogin":      16,
	"endlogin":         16,
	"exchangetoken":    16,
	"revalidatelogins": 16,
	// It makes, uses and revokes credentials of two kinds.
	"probecredentials": 16,
	// An interpreter of JavaScript with its parser, tables of Unicode and regular expressions, and for byName every method.
	"evaluatepatches": 31,
}

// budgetOf returns the largest that the program of a function may be, in MiB.
func budgetOf(name string) int {
	if most, special := budgets[name]; special {
		return most
	}
	for verb, most := range verbBudgets {
		if strings.HasPrefix(name, verb) {
			return most
		}
	}
	return budget
}

// byName are the functions that look up methods by name, each with its reason.
var byName = map[string]string{
	"evaluatepatches": "goja can show methods of Go to JavaScript, which nothing here asks it to",
}

// TestWeight holds the size of programs, and that none of them looks up methods by name: the linker then keeps every
// exported method of every type.
func TestWeight(t *testing.T) {
	if testing.Short() {
		t.Skip("it links every function")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the budgets are those of Linux on amd64")
	}
	t.Parallel()
	built, err := lambdatest.BuildAll("../..")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range catalog.Functions {
		known[f.Name] = true
		found, linked := built.ByName[f.Name]
		if !linked {
			t.Fatalf("%s: the linker says nothing", f.Name)
		}
		if len(found) > 0 && byName[f.Name] == "" {
			t.Errorf("%s looks up methods by name: %s", f.Name, found[0])
		}
		if len(found) == 0 && byName[f.Name] != "" {
			t.Errorf("%s does not look up methods by name any more", f.Name)
		}
		info, err := os.Stat(built.Path(f.Name))
		if err != nil {
			t.Fatal(err)
		}
		most := budgetOf(f.Name)
		if size := info.Size(); size > int64(most)<<20 {
			t.Errorf("%s is of %.2f MiB, more than %d", f.Name, float64(size)/(1<<20), most)
		}
	}
	for name := range budgets {
		if !known[name] {
			t.Errorf("there is a budget for %s, which is no function", name)
		}
	}
}

// The linker reports programs that look up methods by name.
func TestWeightFinds(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	const text = `package main

import (
	"os"
	"reflect"
)

func main() { reflect.ValueOf(os.Stdout).MethodByName(os.Args[0]).Call(nil) }
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	graph, err := exec.Command("go", "build", "-ldflags", "-dumpdep", "-o", filepath.Join(folder, "main"), source).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, graph)
	}
	if !bytes.Contains(graph, []byte("<ReflectMethod>")) {
		t.Error("the linker does not say so any more")
	}
}
