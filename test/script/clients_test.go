//go:build unix

package script_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// runProgram runs another command of the program to its end. With -until it repeats the command until its output matches.
func runProgram(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) > 1 && args[0] == "-until" {
		refuseNegation(ts, neg)
		pattern := compile(ts, args[1])
		await(ts, func() string {
			_ = ts.Exec(runnerProgram, args[2:]...)
			if output := ts.ReadFile("stdout"); !pattern.MatchString(output) {
				return "the output has no match for " + pattern.String() + ":\n" + output + ts.ReadFile("stderr")
			}
			return ""
		})
		return
	}
	check(ts, neg, ts.Exec(runnerProgram, args...))
}

// programs puts kubectl and platform on the PATH of the story.
func programs(ts *testscript.TestScript, neg bool, _ []string) {
	refuseNegation(ts, neg)
	folder := ts.MkAbs("build")
	ts.Check(os.MkdirAll(folder, 0o700))
	for name, program := range map[string]string{"kubectl": kubectlProgram, "platform": runnerProgram} {
		if err := os.Symlink(program, filepath.Join(folder, name)); !errors.Is(err, os.ErrExist) {
			ts.Check(err)
		}
	}
	ts.Setenv("PATH", folder+string(filepath.ListSeparator)+ts.Getenv("PATH"))
}

// runDocumented runs a block of a document of the project in a shell. kubectl and build/platform are the programs under test.
func runDocumented(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: documented FILE BEGINNING KEYFILE")
	}
	text, err := os.ReadFile(filepath.Join(repository, args[0]))
	ts.Check(err)
	_, text, found := bytes.Cut(text, []byte("```console\n$ "+args[1]+" "))
	command, _, closed := bytes.Cut(text, []byte("\n```\n"))
	if !found || !closed {
		ts.Fatalf("%s has no block that begins with %s", args[0], args[1])
	}
	path, key := ts.Getenv("PATH"), strings.TrimSpace(ts.ReadFile(args[2]))
	programs(ts, neg, nil)
	ts.Setenv("ACCESS_KEY", key)
	err = ts.Exec("bash", "-c", args[1]+" "+string(command))
	ts.Setenv("PATH", path)
	ts.Setenv("ACCESS_KEY", "")
	check(ts, neg, err)
}

// kubectl runs kubectl in the environment of the story.
func kubectl(ts *testscript.TestScript, neg bool, args []string) {
	exit, issue := -1, ""
	for len(args) > 1 && (args[0] == "-exit" || args[0] == "-issue") {
		switch args[0] {
		case "-exit":
			if _, err := fmt.Sscan(args[1], &exit); err != nil {
				ts.Fatalf("-exit: %v", err)
			}
		case "-issue":
			issue = args[1]
		}
		args = args[2:]
	}
	err := ts.Exec(kubectlProgram, args...)
	stdout := ts.ReadFile("stdout")
	if issue != "" {
		takeKey(ts, []byte(stdout), issue)
		stdout = ""
	}
	sessionOf(ts).saw(stdout + ts.ReadFile("stderr"))
	if exit < 0 {
		check(ts, neg, err)
		return
	}
	code := 0
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != exit {
		ts.Fatalf("kubectl ended with %d, not %d", code, exit)
	}
}

func check(ts *testscript.TestScript, neg bool, err error) {
	if err != nil && !neg {
		ts.Fatalf("the command failed: %v", err)
	}
	if err == nil && neg {
		ts.Fatalf("the command succeeded, but must fail")
	}
}

// takeKey writes spec.key or status.token of an answer to a file.
func takeKey(ts *testscript.TestScript, answer []byte, file string) {
	var issued struct {
		Spec struct {
			Key string `json:"key"`
		} `json:"spec"`
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	err := json.Unmarshal(answer, &issued)
	text := issued.Spec.Key + issued.Status.Token
	if err != nil || text == "" {
		ts.Fatalf("the answer has no spec.key and no status.token (%v)", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text+"\n"), 0o600))
}

// headerFlags are the repeated option -H.
type headerFlags []string

func (h *headerFlags) String() string { return strings.Join(*h, ", ") }

func (h *headerFlags) Set(value string) error {
	*h = append(*h, value)
	return nil
}

// attempts is the number of attempts of option -within, because a busy machine may delay an answer or two.
const attempts = 4

// request sends an HTTP request. It prints the status line, the headers that are the same in every answer, and the body.
func request(ts *testscript.TestScript, neg bool, args []string) {
	options := flag.NewFlagSet("http", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	key := options.String("k", "", "")
	mediaType := options.String("t", "application/json", "")
	output := options.String("o", "", "")
	issue := options.String("issue", "", "")
	until := options.String("until", "", "")
	within := options.Duration("within", patience, "")
	var headers headerFlags
	options.Var(&headers, "H", "")
	ts.Check(options.Parse(args))
	if options.NArg() < 2 || options.NArg() > 3 {
		ts.Fatalf("usage: http [OPTION...] METHOD PATH [BODY]")
	}
	url, body := options.Arg(1), []byte(nil)
	if !strings.Contains(url, "://") {
		url = ts.Getenv("API") + url
	}
	if text := options.Arg(2); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		body = []byte(text)
	} else if text != "" {
		body = []byte(ts.ReadFile(text))
	}
	send := func() (string, []byte, error) {
		request, err := http.NewRequest(options.Arg(0), url, bytes.NewReader(body))
		if err != nil {
			return "", nil, err
		}
		if body != nil && *mediaType != "" {
			request.Header.Set("Content-Type", *mediaType)
		}
		if *key != "" {
			request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(*key)))
		}
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ":")
			request.Header.Add(name, strings.TrimSpace(value))
		}
		return exchange(client(ts, patience), request)
	}

	if *until != "" {
		pattern := compile(ts, *until)
		await(ts, func() string {
			head, answer, err := send()
			if err != nil {
				return err.Error()
			}
			if whole := head + "\n" + string(answer); !pattern.MatchString(whole) {
				return "the answer has no match for " + pattern.String() + ":\n" + whole
			}
			return ""
		})
	}
	var head string
	var answer []byte
	var err error
	for attempt := 1; ; attempt++ {
		begun := time.Now()
		head, answer, err = send()
		took := time.Since(begun)
		if took <= *within {
			break
		}
		if attempt == attempts {
			ts.Fatalf("the answer took %s, longer than %s, in every attempt", took, *within)
		}
	}
	check(ts, neg, err)
	if *output != "" {
		ts.Check(os.WriteFile(ts.MkAbs(*output), []byte(head+"\n"+string(answer)), 0o600))
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "%s\n%s", head, answer)
	if *issue != "" {
		takeKey(ts, answer, *issue)
		answer = nil
	}
	sessionOf(ts).saw(head + "\n" + string(answer))
}

// betweenWarnings matches the end of a warning and the code of the next warning.
var betweenWarnings = regexp.MustCompile(`, (\d{3} - ")`)

// exchange returns the status line with the headers, and the body.
func exchange(client *http.Client, request *http.Request) (string, []byte, error) {
	answer, err := client.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", nil, err
	}
	answer.Header.Del("Date")
	if request.Header.Get("X-Request-Id") == "" {
		answer.Header.Del("X-Request-Id")
	}
	lines := []string{}
	for name, values := range answer.Header {
		if name == "Warning" {
			// A gateway may join several warnings into one header.
			values = strings.Split(betweenWarnings.ReplaceAllString(strings.Join(values, ", "), "\n$1"), "\n")
		}
		for _, value := range values {
			lines = append(lines, name+": "+value+"\n")
		}
	}
	slices.Sort(lines)
	return answer.Status + "\n" + strings.Join(lines, ""), body, nil
}

// client trusts the authority of the runner, and opens a connection for each request.
func client(ts *testscript.TestScript, timeout time.Duration) *http.Client {
	trusted := x509.NewCertPool()
	if authority, err := os.ReadFile(filepath.Join(ts.Getenv("DATA"), "ca.crt")); err == nil {
		trusted.AppendCertsFromPEM(authority)
	}
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
	}}
}

// kubeconfig writes a kubeconfig with a key for the runner.
func kubeconfig(ts *testscript.TestScript, neg bool, args []string) {
	refuseNegation(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: kubeconfig KEYFILE FILE")
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: story
contexts: [{name: story, context: {cluster: story, user: story}}]
clusters: [{name: story, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: story, user: {token: %q}}]
`, ts.Getenv("SECURE")+"/kubernetes/management", filepath.Join(ts.Getenv("DATA"), "ca.crt"), strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
