//go:build unix

package ci_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// gitlabJob is a job of GitLab CI after its configuration was read.
type gitlabJob struct {
	Extends  string
	IDTokens map[string]struct {
		Aud string
	} `json:"id_tokens"`
	Variables map[string]struct {
		Value  string
		Expand *bool
	}
	BeforeScript []string `json:"before_script"`
	Script       []string
	AfterScript  []string `json:"after_script"`
}

// pipeline is a configuration that includes the component.
type pipeline struct {
	Include []struct {
		Project, Ref, File string
		Inputs             map[string]string
	}
	Deploy gitlabJob
}

// pipeline returns the configuration of the page. The platform and its release are those of the test. Changes replace inputs.
func (w *world) pipeline(changes ...string) pipeline {
	w.t.Helper()
	var p pipeline
	w.must(yaml.Unmarshal([]byte(block(w.t, "infra/ci/gitlab/")), &p))
	if len(p.Include) != 1 || p.Include[0].Project != "OWNER/REPOSITORY" {
		w.t.Fatalf("the page includes %v", p.Include)
	}
	inputs := p.Include[0].Inputs
	inputs["host"], inputs["archives"], inputs["certificate-authority"] = w.host, w.archives, w.authority
	for i := 0; i+1 < len(changes); i += 2 {
		inputs[changes[i]] = changes[i+1]
	}
	return p
}

var interpolation = regexp.MustCompile(`\$\[\[ *(.*?) *\]\]`)

// include returns the hidden jobs of a component with inputs. GitLab puts inputs into the text, and reads the YAML after that.
func include(t testing.TB, file string, inputs map[string]string) (map[string]gitlabJob, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	header, content, found := strings.Cut(string(text), "\n---\n")
	var spec struct {
		Spec struct {
			Inputs map[string]struct {
				Description string
				Default     *string
				Regex       string
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(header), &spec); err != nil || !found {
		t.Fatal(err)
	}
	values := map[string]string{}
	for name, input := range spec.Spec.Inputs {
		value, given := inputs[name]
		if !given && input.Default == nil {
			return nil, fmt.Errorf("%s: required value has not been provided", name)
		}
		if !given {
			value = *input.Default
		}
		if !regexp.MustCompile(input.Regex).MatchString(value) || input.Regex == "" {
			return nil, fmt.Errorf("%s: provided value does not match required RegEx pattern", name)
		}
		values[name] = value
	}
	for name := range inputs {
		if _, known := values[name]; !known {
			return nil, fmt.Errorf("unknown input arguments: %s", name)
		}
	}
	content = interpolation.ReplaceAllStringFunc(content, func(block string) string {
		name, isInput := strings.CutPrefix(interpolation.FindStringSubmatch(block)[1], "inputs.")
		value, known := values[name]
		if !isInput || !known {
			t.Errorf("the component has %s", block)
		}
		return value
	})
	jobs := map[string]gitlabJob{}
	if err := yaml.UnmarshalStrict([]byte(content), &jobs); err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	return jobs, nil
}

// gitlabRun is a run of a job.
type gitlabRun struct {
	*world
	job       gitlabJob
	project   string
	variables map[string]string
	log       bytes.Buffer
}

// start reads the configuration, as GitLab does, and gives the job its variables.
func (w *world) start(t testing.TB, p pipeline) *gitlabRun {
	t.Helper()
	jobs, err := include(t, p.Include[0].File, p.Include[0].Inputs)
	if err != nil {
		t.Fatal(err)
	}
	job, found := jobs[p.Deploy.Extends]
	if !found {
		t.Fatalf("the component has no job %s", p.Deploy.Extends)
	}
	job.Script = p.Deploy.Script
	r := &gitlabRun{world: w, job: job, project: checkout(t), variables: w.environment(t.TempDir())}
	maps.Copy(r.variables, map[string]string{"GITLAB_CI": "true", "CI": "true", "CI_PROJECT_DIR": r.project, "CI_JOB_ID": "4711"})
	for name, token := range job.IDTokens {
		r.variables[name] = w.token(token.Aud)
	}
	for name, variable := range job.Variables {
		if variable.Expand == nil || *variable.Expand {
			t.Errorf("GitLab expands the variable %s", name)
		}
		r.variables[name] = variable.Value
	}
	return r
}

// stage runs lines in a shell of their own, which reads them from its standard input, as the runner does. The log has each line.
func (r *gitlabRun) stage(shell string, lines []string) error {
	var script strings.Builder
	fmt.Fprintf(&script, "set -e\ncd \"$CI_PROJECT_DIR\"\n")
	for _, line := range lines {
		first, _, _ := strings.Cut(line, "\n")
		fmt.Fprintf(&r.log, "$ %s\n", first)
		fmt.Fprintf(&script, "%s\n", line)
	}
	command := exec.Command(shell)
	command.Stdin, command.Env = strings.NewReader(script.String()), list(r.variables)
	printed, err := command.CombinedOutput()
	r.log.Write(printed)
	return err
}

// run runs the job: first its scripts, and then after_script, whose failure counts for nothing.
func (r *gitlabRun) run(shell string, between func()) error {
	err := r.stage(shell, append(r.job.BeforeScript, r.job.Script...))
	between()
	_ = r.stage(shell, r.job.AfterScript)
	return err
}

func (r *gitlabRun) folder() string { return r.project + ".tmp/platform-4711" }

// check checks that the job has left no secret in the log, in its checkout and on the machine, and that no credential of it works.
func (r *gitlabRun) check(secrets []string) {
	r.t.Helper()
	for _, secret := range r.secrets(secrets) {
		if strings.Contains(r.log.String(), secret) {
			r.t.Errorf("the log has a secret:\n%s", r.log.String())
		}
	}
	for _, secret := range secrets {
		if r.works(secret) {
			r.t.Error("a credential of the job works after its end")
		}
	}
	if left := r.keysOfRule(); left != 0 {
		r.t.Errorf("%d access keys of jobs are left", left)
	}
	if _, err := os.Stat(r.folder()); !os.IsNotExist(err) {
		r.t.Errorf("files are left: %v", err)
	}
	if files, err := os.ReadDir(r.project); err != nil || len(files) != 1 {
		r.t.Errorf("the checkout has %v, %v", files, err)
	}
}

// The job of the page deploys, in each shell. Its key ends with the job, whether or not its script fails.
func TestGitLab(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, shell := range []string{"sh", "bash"} {
		for _, fails := range []bool{false, true} {
			p := w.pipeline()
			p.Deploy.Script = append(p.Deploy.Script, "platform version")
			if fails {
				p.Deploy.Script = append(p.Deploy.Script, "false", "echo not reached")
			}
			r := w.start(t, p)
			var secrets []string
			err := r.run(shell, func() {
				secrets = secretsIn(t, filepath.Join(r.folder(), "secrets"))
				if len(secrets) != 2 || !w.works(secrets[0]) || !w.works(secrets[1]) {
					t.Errorf("%d secrets: not an access key and a token that work\n%s", len(secrets), r.log.String())
				}
				checkClosed(t, r.folder())
			})
			if (err != nil) != fails || strings.Contains(r.log.String(), "\nnot reached") {
				t.Errorf("%v\n%s", err, r.log.String())
			}
			w.checkDeployed()
			r.check(secrets)
		}
	}
}

// Each mistake fails the job before its script begins, and leaves no key and no file.
func TestGitLabMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for about, row := range map[string]struct {
		inputs []string
		want   string
	}{
		"an unknown version":      {[]string{"version", "9.9.9"}, "checksums.txt has no platform_9.9.9"},
		"a missing folder":        {[]string{"archives", "absent"}, "absent has no checksums.txt"},
		"an unknown authority":    {[]string{"certificate-authority", ""}, "certificate"},
		"another rule":            {[]string{"rule", "other"}, "the platform made no access key for the job"},
		"another virtual cluster": {[]string{"virtual-cluster", "p-web/other"}, "the scope"},
	} {
		p := w.pipeline(row.inputs...)
		p.Deploy.Script = []string{"echo not reached"}
		r := w.start(t, p)
		var secrets []string
		if err := r.run("sh", func() { secrets = secretsIn(t, filepath.Join(r.folder(), "secrets")) }); err == nil {
			t.Errorf("%s: the job goes on", about)
		}
		if !strings.Contains(r.log.String(), row.want) || strings.Contains(r.log.String(), "\nnot reached") {
			t.Errorf("%s: the log does not say %q:\n%s", about, row.want, r.log.String())
		}
		r.check(secrets)
	}
}

// GitLab refuses inputs that could be more than text.
func TestGitLabInputs(t *testing.T) {
	t.Parallel()
	const file = "infra/ci/gitlab/templates/platform.yml"
	good := map[string]string{"host": "platform.example:8443", "archives": "https://downloads.example/platform/1.2.3"}
	jobs, err := include(t, file, good)
	if err != nil || jobs[".platform"].IDTokens["PLATFORM_ID_TOKEN"].Aud != "https://platform.example:8443" {
		t.Errorf("%v %v", jobs, err)
	}
	for _, name := range []string{"host", "archives", "version", "rule", "certificate-authority", "virtual-cluster", "name"} {
		for _, text := range []string{"'", `"`, "$(id)", "`id`", "$HOME", "a b", "a\nb", "\na", "a\n", `\`, "#", "{", "a;b", "$[[ inputs.host ]]"} {
			changed := maps.Clone(good)
			changed[name] = text
			if _, err := include(t, file, changed); err == nil {
				t.Errorf("the input %s may be %q", name, text)
			}
		}
	}
	good["name"] = ".second"
	if jobs, err := include(t, file, good); err != nil || len(jobs[".second"].BeforeScript) == 0 {
		t.Errorf("%v", err)
	}
}
