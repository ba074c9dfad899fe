package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"management.platform.sh/infra/lambda/bootstrap"
	"management.platform.sh/shared/api/frame"
)

// module is the path of this project.
const module = "management.platform.sh"

// architectures are the architectures of AWS Lambda. serverless.yml and the module for Terraform deploy the first one by default.
var architectures = []string{"arm64", "amd64"}

// chooseArchitectures takes arguments of the form --architecture=arm64 out of args. Without one, it returns the first architecture.
func chooseArchitectures(args []string) (chosen, others []string, err error) {
	for _, arg := range args {
		architecture, ok := strings.CutPrefix(arg, "--architecture=")
		switch {
		case !ok:
			others = append(others, arg)
		case !slices.Contains(architectures, architecture):
			return nil, nil, fmt.Errorf("unknown architecture %q: use %s", architecture, strings.Join(architectures, " or "))
		default:
			chosen = append(chosen, architecture)
		}
	}
	if len(chosen) == 0 {
		chosen = architectures[:1]
	}
	return chosen, others, nil
}

// buildLambda makes <dir>/<function>/<architecture>/bootstrap and bootstrap.zip beside it.
func buildLambda(dir string, architectures []string, functions []*frame.Function) error {
	for _, architecture := range architectures {
		together, err := os.MkdirTemp("", "bootstraps-")
		if err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(together) }()
		packages := []string{}
		for _, f := range functions {
			packages = append(packages, "./"+lambdaFolder+"/"+f.Name)
		}
		command := bootstrap.Command(together+string(filepath.Separator), packages...)
		command.Env = append(command.Env, "GOOS=linux", "GOARCH="+architecture)
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("building for %s: %w", architecture, err)
		}
		// All processors compress.
		failures := make([]error, runtime.GOMAXPROCS(0))
		var packing sync.WaitGroup
		for worker := range failures {
			packing.Go(func() {
				for i := worker; i < len(functions) && failures[worker] == nil; i += len(failures) {
					name := functions[i].Name
					failures[worker] = packProgram(filepath.Join(together, name), filepath.Join(dir, name, architecture))
				}
			})
		}
		packing.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

// packProgram writes a program to a folder as bootstrap, and as bootstrap.zip.
func packProgram(file, folder string) error {
	program, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the program: %w", err)
	}
	packed, err := pack(program)
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(folder, "bootstrap"), program, 0o755),
		writeFile(filepath.Join(folder, "bootstrap.zip"), packed, 0o644),
	)
}

// pack returns a zip file with the program as bootstrap. The same program always makes the same file. The best compression makes it
// one percent smaller in five times the time.
func pack(program []byte) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(0o755)
	w, err := archive.CreateHeader(header)
	if err == nil {
		_, err = w.Write(program)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}

// stage writes <dir>/<function>: a module with the name of this one, with the function at its root and the packages of
// this project that the function needs.
func stage(root, dir string, functions []*frame.Function) error {
	for _, f := range functions {
		if err := stageOne(root, filepath.Join(dir, f.Name), f); err != nil {
			return fmt.Errorf("staging %s: %w", f.Name, err)
		}
	}
	return nil
}

func stageOne(root, dir string, f *frame.Function) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	text, err := fill(stagedFunction, f)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, "function.go"), text, 0o644); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(root, name)); err != nil {
			return err
		}
	}
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Module,GoFiles,EmbedFiles",
		"./functions/"+f.Name, "./infra/framework")
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct {
			ImportPath, Dir     string
			Module              *struct{ Path string }
			GoFiles, EmbedFiles []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("listing packages: %w", err)
		}
		if p.Module == nil || p.Module.Path != module {
			continue
		}
		for _, name := range append(p.GoFiles, p.EmbedFiles...) {
			to := filepath.Join(dir, strings.TrimPrefix(p.ImportPath, module+"/"), name)
			if err := copyFile(to, filepath.Join(p.Dir, name)); err != nil {
				return err
			}
		}
	}
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("reading the staged files: %w", err)
	}
	return writeFile(to, text, 0o644)
}
