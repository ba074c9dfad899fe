package lambdatest

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"management.platform.sh/infra/lambda/bootstrap"
)

// Programs are the programs of all functions, for the processor of this machine.
type Programs struct {
	// Folder has a program for each function, under its name.
	Folder string
	// ByName has, for each function, the lines in which the linker reports lookups of methods by name. It is nil for a
	// program without such lines.
	ByName map[string][]string
}

// Path returns the path of the program of a function.
func (p *Programs) Path(function string) string { return filepath.Join(p.Folder, function) }

// source are the packages of the programs, from the top of the checkout.
const source = "./infra/lambda/functions/..."

// keys is the pattern for the names of finished folders. A folder that is being made has another name.
const keys = "????????????????"

// notes is the file beside the programs with the linker's output.
const notes = "linker.json"

// BuildAll links the programs of all functions in build/test/lambda of the checkout at root, or returns the programs
// that are there. Tests in different processes share them: the name of their folder is a digest of their sources.
func BuildAll(root string) (*Programs, error) {
	key, err := contentKey(root)
	if err != nil {
		return nil, err
	}
	all, err := filepath.Abs(filepath.Join(root, "build", "test", "lambda"))
	if err != nil {
		return nil, err
	}
	programs := &Programs{Folder: filepath.Join(all, key)}
	if text, err := os.ReadFile(filepath.Join(programs.Folder, notes)); err == nil {
		return programs, json.Unmarshal(text, &programs.ByName)
	}
	if err := os.MkdirAll(all, 0o750); err != nil {
		return nil, err
	}
	// Programs of other sources are no longer of use.
	earlier, err := filepath.Glob(filepath.Join(all, keys))
	if err != nil {
		return nil, err
	}
	for _, folder := range earlier {
		if err := os.RemoveAll(folder); err != nil {
			return nil, err
		}
	}
	part, err := os.MkdirTemp(all, "part-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(part) }()
	if programs.ByName, err = link(root, part); err != nil {
		return nil, err
	}
	text, err := json.Marshal(programs.ByName)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(part, notes), text, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(part, programs.Folder); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return programs, nil
}

// contentKey returns a digest of the sources of the programs: the build IDs of their packages, which change with each
// imported package.
func contentKey(root string) (string, error) {
	list := bootstrap.Go("list", "-export", "-f", "{{.ImportPath}} {{.BuildID}}", source)
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("listing the programs: %w", err)
	}
	digest := sha256.Sum256(append(output, bootstrap.LinkFlags...))
	return hex.EncodeToString(digest[:8]), nil
}

// link links the programs into a folder, and returns the linker's lines about methods that are looked up by name.
func link(root, folder string) (map[string][]string, error) {
	build := bootstrap.Command(folder+string(filepath.Separator), "-ldflags", bootstrap.LinkFlags+" -dumpdep", source)
	build.Dir = root
	output, err := build.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := build.Start(); err != nil {
		return nil, err
	}
	byName := map[string][]string{}
	var function string
	var last []string
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		last = append(last[max(0, len(last)-20):], text)
		// The output of each link begins with the package.
		if of, begins := strings.CutPrefix(text, "# "); begins {
			function = path.Base(of)
			byName[function] = []string{}
		} else if strings.Contains(text, "<ReflectMethod>") {
			byName[function] = append(byName[function], text)
		}
	}
	if err := errors.Join(lines.Err(), build.Wait()); err != nil {
		return nil, fmt.Errorf("linking the programs: %w: %s", err, strings.Join(last, "\n"))
	}
	return byName, nil
}
