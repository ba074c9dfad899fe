// Package shells_test starts the shells side by side. Source: ADR-0010.
package shells_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/apimachinery/pkg/api/resource"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/framework"
	"management.platform.sh/local/runner"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// absentFile is a path at which there is no file.
const absentFile = "/nowhere/at/all"

// TestMain removes the settings from the environment in which the tests run.
func TestMain(m *testing.M) {
	for _, s := range settings.List {
		if s.Name != "" {
			_ = os.Unsetenv(s.Name)
		}
	}
	os.Exit(m.Run())
}

// examples are valid and invalid values of a setting.
type examples struct{ right, wrong []string }

// bounds returns values at the bounds of a setting and just beyond them. It returns none if the setting has no bounds.
func bounds(t *testing.T, s settings.Setting) examples {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case s.Unit == "boolean":
		return examples{[]string{"true", "false", "1", "0"}, []string{"yes"}}
	case len(s.Words) > 0:
		return examples{slices.Clone(s.Words), []string{"nonsense"}}
	case s.Min == "":
		return examples{}
	}
	var beyond []string
	switch s.Unit {
	case "number":
		least, err := strconv.Atoi(s.Min)
		must(err)
		most, err := strconv.Atoi(s.Max)
		must(err)
		beyond = []string{strconv.Itoa(least - 1), strconv.Itoa(most + 1)}
	case "duration":
		least, err := time.ParseDuration(s.Min)
		must(err)
		most, err := time.ParseDuration(s.Max)
		must(err)
		beyond = []string{(least - 1).String(), (most + 1).String(), "30"}
	case "quantity":
		least, err := resource.ParseQuantity(s.Min)
		must(err)
		most, err := resource.ParseQuantity(s.Max)
		must(err)
		beyond = []string{strconv.FormatInt(least.Value()-1, 10), strconv.FormatInt(most.Value()+1, 10)}
	default:
		t.Fatalf("%s has bounds, and its unit %s has no examples", s.Key(), s.Unit)
	}
	return examples{[]string{s.Min, s.Max}, append(beyond, "many")}
}

// specialExamples are the examples of settings whose values have no bounds.
func specialExamples(t *testing.T, state string) map[string]examples {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"platform.example"}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	one := encryption.Generate().Reveal()
	return map[string]examples{
		settings.RedisURL:      {[]string{state}, []string{"mysql://127.0.0.1", "127.0.0.1"}},
		settings.EncryptionKey: {[]string{one, one + "," + encryption.Generate().Reveal()}, []string{one + "," + one, "short", "AAAA,"}},
		settings.Issuer: {
			[]string{"https://issuer.example", "https://issuer.example/a"},
			[]string{"http://issuer.example", "https://issuer.example/", "https:///path", "https://u@issuer.example"},
		},
		settings.LogLevel: {right: []string{"WARN"}},
		settings.HTTP:     {[]string{"127.0.0.1:0"}, []string{"0.0.0.0:0", "localhost"}},
		settings.SigningKey: {
			[]string{block("PRIVATE KEY", private)},
			[]string{block("CERTIFICATE", private), block("PUBLIC KEY", public), block("PRIVATE KEY", public), "hunter2"},
		},
		settings.Config: {
			[]string{write(t, "platformHost: a.example\n")},
			[]string{write(t, "platformHost: a/b\n"), write(t, "nope: ["), absentFile},
		},
		settings.AdminKey:    {right: []string{"given-key-8Kx20wQm57ZtLp93VrNc4Hd6", settings.NoAdminKey}},
		settings.TLSCertFile: {[]string{write(t, block("CERTIFICATE", certificate))}, []string{absentFile, write(t, "nope")}},
		settings.TLSKeyFile:  {[]string{write(t, block("PRIVATE KEY", private))}, []string{absentFile, write(t, "nope")}},
	}
}

// write makes a file with a text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// examplesOf returns the examples of a setting: the values at its bounds, the special values and, for a file with the value of another setting, files
// with the examples of that setting.
func examplesOf(t *testing.T, s settings.Setting, special map[string]examples) examples {
	t.Helper()
	list := bounds(t, s)
	list.right, list.wrong = append(list.right, special[s.Key()].right...), append(list.wrong, special[s.Key()].wrong...)
	if s.Instead != "" && s.Unit == "path" {
		value := examplesOf(t, settings.Named(s.Instead)[0], special)
		for _, text := range value.right {
			list.right = append(list.right, write(t, text))
		}
		for _, text := range append(value.wrong, " \n") {
			list.wrong = append(list.wrong, write(t, text))
		}
		list.wrong = append(list.wrong, absentFile)
	}
	return list
}

// server is the server of deployed functions.
func server(t *testing.T, lookup func(string) string) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return framework.Serve(ctx, catalog.Functions, lookup, io.Discard, func(net.Addr) { stop() })
}

// run starts the runner with flags and variables.
func run(t *testing.T, lookup func(string) string, line ...string) error {
	t.Helper()
	command := runner.New("test")
	command.Getenv = lookup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	command.Ready = stop
	parser, err := kong.New(&command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(line, "--listen=127.0.0.1:0", "--data="+filepath.Join(t.TempDir(), "data"))); err != nil {
		return err
	}
	return command.Run(ctx)
}

// startOutput returns the output of a shell about its start.
func startOutput(err error) string {
	if err == nil {
		return "it starts"
	}
	return err.Error()
}

// starts starts a shell and returns its output. At the lower bound of the time for the state a busy machine may not reach the
// state, but not five times in a row.
func starts(shell func() error) string {
	err := shell()
	for attempt := 1; attempt < 5 && errors.Is(err, store.ErrUnavailable); attempt++ {
		err = shell()
	}
	return startOutput(err)
}

// Every shell that reads a setting treats the same value in the same way and in the same words, from the variable or from the flag: it starts
// with a value at a bound, and names the setting for a value beyond it. The values are made from the list of settings, so that a new setting is
// tested without a line here. Source: ADR-0010.
func TestSettings(t *testing.T) {
	state := redistest.Embedded(t)
	special := specialExamples(t, state)
	for _, s := range settings.List {
		// A runner with a delay ends after it.
		if s.Readers&(settings.Functions|settings.Serve) == 0 || slices.Contains([]string{settings.Listen, settings.Data, settings.ShutdownDelay}, s.Key()) {
			continue
		}
		t.Run(s.Key(), func(t *testing.T) {
			values := examplesOf(t, s, special)
			if s.Required == 0 && s.Instead != settings.RedisURL {
				values.right = append(values.right, "") // absent
			}
			for i, value := range append(values.right, values.wrong...) {
				answers := ask(t, s, value, state, special)
				for where, answer := range answers {
					for other, otherwise := range answers {
						if answer != otherwise {
							t.Errorf("value %d: %s: %s\n%s: %s", i, where, answer, other, otherwise)
						}
					}
					if right := i < len(values.right); right != (answer == startOutput(nil)) || !right && !strings.HasPrefix(answer, s.Key()+": ") {
						t.Errorf("value %d, %s: %s", i, where, answer)
					}
					if s.Key() == settings.Config {
						// The path of the configuration is not a secret, and the error names the file.
						if value == absentFile && !strings.Contains(answer, value) {
							t.Errorf("%s does not name the file: %s", where, answer)
						}
					} else if len(value) > 3 && strings.Contains(answer, value) {
						t.Errorf("value %d, %s quotes the value: %s", i, where, answer)
					}
				}
			}
		})
	}
}

// ask starts every shell that reads a setting, with a value of the setting.
func ask(t *testing.T, s settings.Setting, value, state string, special map[string]examples) map[string]string {
	t.Helper()
	variables := map[string]string{
		"FUNCTION_TARGET": "whoami", "PORT": "0", settings.RedisURL: state,
		// The bounds of these settings can be reached only together with these values.
		settings.SigningPublishBefore: "10m", settings.SigningRotateEvery: "87840h",
	}
	if s.Instead == settings.RedisURL {
		delete(variables, settings.RedisURL)
	}
	if s.Key() != settings.EncryptionKey && s.Instead != settings.EncryptionKey {
		variables[settings.EncryptionKey] = special[settings.EncryptionKey].right[0]
	}
	given := maps.Clone(variables)
	if value != "" {
		given[s.Key()] = value
		if other := map[string]string{settings.TLSCertFile: settings.TLSKeyFile, settings.TLSKeyFile: settings.TLSCertFile}[s.Key()]; other != "" {
			variables[other], given[other] = special[other].right[0], special[other].right[0]
		}
	}
	lookup := func(from map[string]string) func(string) string {
		return func(name string) string { return from[name] }
	}
	answers := map[string]string{}
	if s.Readers&settings.Functions != 0 {
		answers["the server"] = starts(func() error { return server(t, lookup(given)) })
	}
	if s.Readers&settings.Serve != 0 && s.Name != "" {
		if given[settings.EncryptionKey] == "" && given[settings.EncryptionKeyFile] == "" {
			// The runner refuses a Redis without the key. It starts its own.
			delete(given, settings.RedisURL)
		}
		answers["the runner by its variable"] = starts(func() error { return run(t, lookup(given)) })
	}
	if s.Readers&settings.Serve != 0 && s.Flag != "" && value != "" {
		text := starts(func() error { return run(t, lookup(variables), "--"+s.Flag+"="+value) })
		answers["the runner by its flag"] = strings.ReplaceAll(text, "--"+s.Flag+": ", s.Key()+": ")
	}
	return answers
}

// Without a state a function does not start, and the runner starts its own.
func TestNoState(t *testing.T) {
	none := func(name string) string { return map[string]string{"FUNCTION_TARGET": "whoami", "PORT": "0"}[name] }
	if err := server(t, none); err == nil || !strings.HasPrefix(err.Error(), settings.RedisURL+": is missing") {
		t.Errorf("the server: %s", startOutput(err))
	}
	if err := run(t, none); err != nil {
		t.Errorf("the runner: %v", err)
	}
}
