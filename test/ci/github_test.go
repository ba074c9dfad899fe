//go:build unix

package ci_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// action is what action.yml says.
type action struct {
	Inputs map[string]struct {
		Required bool   `json:"required"`
		Default  string `json:"default"`
	} `json:"inputs"`
	Outputs map[string]any `json:"outputs"`
	Runs    struct {
		Using, Main, Post string
	} `json:"runs"`
}

// step is a step of a job.
type step struct {
	Uses string            `json:"uses"`
	With map[string]string `json:"with"`
	Run  string            `json:"run"`
}

// githubJob runs the steps of a job as the runner of GitHub Actions does.
type githubJob struct {
	*world
	workspace, temp string
	variables       map[string]string
	outputs         map[string]string
	// printed is what the steps have printed, and log what the runner shows of it.
	printed, log bytes.Buffer
	masks        []string
	// posts are the steps at the end of the job, which the runner starts in the opposite order.
	posts []func() error
}

func (w *world) githubJob(t testing.TB) *githubJob {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("node is not on PATH, and in CI no test may be skipped")
		}
		t.Skip("node is not on PATH")
	}
	j := &githubJob{world: w, workspace: checkout(t), temp: t.TempDir(), variables: w.environment(t.TempDir()), outputs: map[string]string{}}
	maps.Copy(j.variables, map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": j.workspace, "RUNNER_TEMP": j.temp,
		"ACTIONS_ID_TOKEN_REQUEST_URL": w.github, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": runnerSecret,
	})
	return j
}

// start runs a program of a step, and takes the commands and the files that it leaves.
func (j *githubJob) start(variables map[string]string, state map[string]string, program ...string) error {
	files := map[string]string{}
	all := maps.Clone(j.variables)
	maps.Copy(all, variables)
	for _, name := range []string{"GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE"} {
		file, err := os.CreateTemp(j.t.TempDir(), name)
		j.must(err)
		j.must(file.Close())
		files[name], all[name] = file.Name(), file.Name()
	}
	command := exec.Command(program[0], program[1:]...)
	command.Dir, command.Env = j.workspace, list(all)
	printed, failure := command.CombinedOutput()
	j.printed.Write(printed)
	for line := range strings.Lines(string(printed)) {
		if mask, found := strings.CutPrefix(strings.TrimSpace(line), "::add-mask::"); found {
			j.masks = append(j.masks, mask)
			continue
		}
		for _, mask := range j.masks {
			line = strings.ReplaceAll(line, mask, "***")
		}
		j.log.WriteString(line)
	}
	for name, into := range map[string]map[string]string{"GITHUB_ENV": j.variables, "GITHUB_OUTPUT": j.outputs, "GITHUB_STATE": state} {
		text, err := os.ReadFile(files[name])
		j.must(err)
		for line := range strings.Lines(string(text)) {
			key, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if !found || into == nil {
				j.t.Errorf("%s has the line %q", name, line)
				continue
			}
			into[key] = value
		}
	}
	text, err := os.ReadFile(files["GITHUB_PATH"])
	j.must(err)
	for _, folder := range strings.Fields(string(text)) {
		j.variables["PATH"] = folder + ":" + j.variables["PATH"]
	}
	return failure
}

// do does a step.
func (j *githubJob) do(s step) error {
	if s.Run != "" {
		return j.start(nil, nil, "bash", "-e", "-c", s.Run)
	}
	folder, found := strings.CutPrefix(s.Uses[:strings.LastIndex(s.Uses, "@")], "OWNER/REPOSITORY/")
	if !found {
		return nil // an action of others: actions/checkout
	}
	folder = filepath.Join(root, folder)
	text, err := os.ReadFile(filepath.Join(folder, "action.yml"))
	j.must(err)
	var a action
	j.must(yaml.UnmarshalStrict(dropDescriptions(j.t, text), &a))
	inputs := map[string]string{}
	for name, input := range a.Inputs {
		inputs["INPUT_"+strings.ToUpper(name)] = input.Default
		if input.Required && s.With[name] == "" {
			j.t.Errorf("the input %s is absent", name)
		}
	}
	for name, value := range s.With {
		if _, known := a.Inputs[name]; !known {
			j.t.Errorf("the action has no input %s", name)
		}
		inputs["INPUT_"+strings.ToUpper(name)] = value
	}
	if !strings.HasPrefix(a.Runs.Using, "node") {
		j.t.Fatalf("the action uses %s", a.Runs.Using)
	}
	folder, err = filepath.Abs(folder)
	j.must(err)
	state := map[string]string{}
	if a.Runs.Post != "" {
		j.posts = append(j.posts, func() error {
			variables := maps.Clone(inputs)
			for key, value := range state {
				variables["STATE_"+key] = value
			}
			return j.start(variables, state, "node", filepath.Join(folder, a.Runs.Post))
		})
	}
	err = j.start(inputs, state, "node", filepath.Join(folder, a.Runs.Main))
	for name := range j.outputs {
		if _, known := a.Outputs[name]; !known {
			j.t.Errorf("action.yml does not name the output %s", name)
		}
	}
	return err
}

// dropDescriptions returns action.yml without the texts for people.
func dropDescriptions(t testing.TB, text []byte) []byte {
	t.Helper()
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	delete(document, "name")
	delete(document, "description")
	for _, input := range document["inputs"].(map[string]any) {
		delete(input.(map[string]any), "description")
	}
	result, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// run does steps up to the first that fails, and returns its failure.
func (j *githubJob) run(steps ...step) error {
	for _, s := range steps {
		if err := j.do(s); err != nil {
			return err
		}
	}
	return nil
}

// end does the steps at the end of the job.
func (j *githubJob) end() error {
	var err error
	for _, post := range slices.Backward(j.posts) {
		err = errors.Join(err, post())
	}
	return err
}

// steps returns the steps of the page. The platform and its release are those of the test. Changes replace inputs.
func (w *world) steps(changes ...string) []step {
	w.t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Permissions map[string]string
			Steps       []step
		}
	}
	w.must(yaml.Unmarshal([]byte(block(w.t, "infra/ci/github@")), &workflow))
	job := workflow.Jobs["deploy"]
	if job.Permissions["id-token"] != "write" || len(job.Steps) != 3 {
		w.t.Fatalf("the job of the page is %v", job)
	}
	with := job.Steps[1].With
	with["host"], with["archives"], with["certificate-authority"] = w.host, w.archives, w.authority
	for i := 0; i+1 < len(changes); i += 2 {
		with[changes[i]] = changes[i+1]
	}
	return job.Steps
}

// checkSecrets checks that what the job has printed contains no secret, except to have it masked.
func (j *githubJob) checkSecrets(secrets ...string) {
	j.t.Helper()
	for line := range strings.Lines(j.printed.String()) {
		for _, secret := range j.world.secrets(secrets) {
			if strings.Contains(line, secret) && strings.TrimSpace(line) != "::add-mask::"+secret {
				j.t.Errorf("a step prints a secret: %s", line)
			}
		}
	}
}

// checkEnded checks that no credential of the job works, and that no file of it is left.
func (j *githubJob) checkEnded(secrets ...string) {
	j.t.Helper()
	for _, secret := range secrets {
		if j.works(secret) {
			j.t.Error("a credential of the job works after its end")
		}
	}
	if left := j.keysOfRule(); left != 0 {
		j.t.Errorf("%d access keys of jobs are left", left)
	}
	if files, err := os.ReadDir(j.temp); err != nil || len(files) != 0 {
		j.t.Errorf("%d files are left, %v", len(files), err)
	}
}

func (j *githubJob) secrets() []string {
	return secretsIn(j.t, filepath.Join(j.temp, "platform-*", "secrets"))
}

// The job of the page deploys. Its key ends with the job, whether or not a step fails.
func TestGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, fails := range []bool{false, true} {
		j := w.githubJob(t)
		if err := j.run(w.steps()...); err != nil {
			t.Fatalf("%v\n%s", err, j.log.String())
		}
		secrets := j.secrets()
		if len(secrets) != 2 || !slices.Equal(secrets, j.masks) || !w.works(secrets[0]) || !w.works(secrets[1]) {
			t.Fatalf("%d secrets, %d masks: not an access key and a token that work", len(secrets), len(j.masks))
		}
		w.checkDeployed()
		j.checkSecrets(secrets...)
		checkClosed(t, filepath.Dir(j.variables["KUBECONFIG"]))
		if j.outputs["kubeconfig"] != j.variables["KUBECONFIG"] {
			t.Errorf("the outputs are %v", j.outputs)
		}
		// Steps find the program, and use the platform. What they print is masked.
		err := j.run(step{Run: "platform version; kubectl --kubeconfig '" + j.outputs["platform-kubeconfig"] + "' -n p-web get virtualclusterinstance shop; cat \"$KUBECONFIG\""})
		if err != nil || strings.Contains(j.log.String(), secrets[1]) || !strings.Contains(j.log.String(), "token: ***") {
			t.Errorf("%v\n%s", err, j.log.String())
		}
		if fails && j.run(step{Run: "false"}, step{Run: "kubectl version"}) == nil {
			t.Error("a step that fails does not")
		}
		if err := j.end(); err != nil {
			t.Errorf("%v\n%s", err, j.log.String())
		}
		j.checkEnded(secrets...)
	}
}

// Each mistake fails the step that signs in, says what is wrong, and leaves no key and no file.
func TestGitHubMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := "127.0.0.1:1"
	damaged, missing := t.TempDir(), t.TempDir()
	name := "platform_" + version + "_" + platformOfMachine() + ".tar.gz"
	for _, folder := range []string{damaged, missing} {
		w.must(os.CopyFS(folder, os.DirFS(w.release)))
	}
	w.must(os.WriteFile(filepath.Join(damaged, name), []byte("another archive"), 0o600))
	w.must(os.Remove(filepath.Join(missing, name)))
	two := t.TempDir()
	for _, other := range []string{"1.2.3", "1.2.4"} {
		writeRelease(t, two, other, map[string]string{platformOfMachine(): "#!/bin/sh\n"})
	}
	mark := filepath.Join(t.TempDir(), "mark")
	injection := `"; touch ` + mark + `; $(touch ` + mark + `) ` + "`touch " + mark + "`" + ` '; touch ` + mark + ` #`
	for about, row := range map[string]struct {
		with []string
		want string
	}{
		"a wrong checksum":            {[]string{"archives", damaged}, "the SHA-256 of " + name},
		"a missing archive":           {[]string{"archives", missing}, "has no " + name},
		"a missing archive by HTTP":   {[]string{"archives", w.archives + "/absent"}, "has no checksums.txt"},
		"an unknown version":          {[]string{"version", "9.9.9"}, "checksums.txt has no platform_9.9.9"},
		"two versions":                {[]string{"archives", two}, "set the version"},
		"another archive by its path": {[]string{"archives", filepath.Join(w.release, name), "version", "9.9.9"}, "archives names " + name},
		"plain HTTP":                  {[]string{"archives", "http://downloads.example"}, "must be an https URL"},
		"a secret in the URL":         {[]string{"archives", "http://user:hush@downloads.example"}, "not http://downloads.example"},
		"a wrong host":                {[]string{"host", closed}, "connection refused"},
		"no host":                     {[]string{"host", " "}, "the input host is empty"},
		"an unknown authority":        {[]string{"certificate-authority", ""}, "certificate"},
		"an absent authority":         {[]string{"certificate-authority", "absent.pem"}, "there is no file absent.pem"},
		"another rule":                {[]string{"rule", "other"}, "the platform made no access key for the job"},
		"another virtual cluster":     {[]string{"virtual-cluster", "p-web/other"}, "the scope"},
		"an option as virtual one":    {[]string{"virtual-cluster", "--help"}, "invalid instance"},
		"two lines":                   {[]string{"rule", "a\n::set-output name=x::y"}, "more than one line"},
		"code as host":                {[]string{"host", injection}, "invalid platform"},
		"code as archives":            {[]string{"archives", injection}, "has no checksums.txt"},
		"code as version":             {[]string{"version", injection}, "checksums.txt has no"},
		"code as rule":                {[]string{"rule", injection}, "the platform made no access key for the job"},
		"code as authority":           {[]string{"certificate-authority", injection}, "there is no file"},
		"code as virtual cluster":     {[]string{"virtual-cluster", injection}, "invalid instance"},
	} {
		j := w.githubJob(t)
		if err := j.run(w.steps(row.with...)...); err == nil {
			t.Errorf("%s: the job goes on", about)
		}
		if !strings.Contains(j.log.String(), row.want) || !strings.Contains(j.log.String(), "::error::") || strings.Contains(j.log.String(), "hush") {
			t.Errorf("%s: the log does not say %q:\n%s", about, row.want, j.log.String())
		}
		if j.variables["KUBECONFIG"] != "" {
			t.Errorf("%s: KUBECONFIG is set", about)
		}
		secrets := j.secrets()
		if err := j.end(); err != nil {
			t.Errorf("%s: the end: %v\n%s", about, err, j.log.String())
		}
		j.checkSecrets(secrets...)
		j.checkEnded(secrets...)
		if _, err := os.Stat(mark); err == nil {
			t.Fatalf("%s: the job runs text of an input", about)
		}
	}
}

// A release is found in a folder, by the path of the archive and at a URL, and without a virtual cluster the kubeconfig is for the platform.
func TestGitHubInputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := "platform_" + version + "_" + platformOfMachine() + ".tar.gz"
	for _, with := range [][]string{
		{"archives", w.release}, {"archives", w.release + "/", "version", "v" + version}, {"archives", filepath.Join(w.release, name)},
		{"archives", w.archives + "/", "version", version, "rule", "deploy-shop"}, {"host", "https://" + w.host + basePath},
	} {
		j := w.githubJob(t)
		steps := w.steps(append(with, "virtual-cluster", "")...)
		steps[2].Run = "kubectl -n p-web get virtualclusterinstance shop -o name"
		if err := j.run(steps...); err != nil {
			t.Fatalf("%q: %v\n%s", with, err, j.log.String())
		}
		secrets := j.secrets()
		if len(secrets) != 1 || !w.works(secrets[0]) {
			t.Errorf("%q: %d secrets", with, len(secrets))
		}
		j.checkSecrets(secrets...)
		if err := j.end(); err != nil {
			t.Errorf("%q: %v\n%s", with, err, j.log.String())
		}
		j.checkEnded(secrets...)
	}
}

// Two platforms in one job, and a second job on the same machine, do not end the keys of each other. An end that fails fails the job.
func TestGitHubBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.githubJob(t), w.githubJob(t)
	second.variables["HOME"] = first.variables["HOME"]
	w.must(first.run(w.steps()...))
	w.must(second.run(w.steps()...))
	kept := second.secrets()
	if err := first.end(); err != nil {
		t.Error(err)
	}
	for i, secret := range kept {
		if !w.works(secret) {
			t.Errorf("the end of a job ends credential %d of another one", i)
		}
	}
	files, err := filepath.Glob(filepath.Join(second.temp, "platform-*", "host"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	w.must(os.WriteFile(files[0], []byte("127.0.0.1:1\n"), 0o600))
	if err := second.end(); err == nil || !strings.Contains(second.log.String(), "was not ended") {
		t.Errorf("a key that does not end: %v\n%s", err, second.log.String())
	}
	if files, err := os.ReadDir(second.temp); err != nil || len(files) != 0 {
		t.Error("an end that fails leaves files")
	}
}
