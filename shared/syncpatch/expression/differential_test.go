package expression

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// TestDifferential: every expression that is not refused gives the same result as in Node.js.
func TestDifferential(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("make node has not installed node: %v", err)
		}
		t.Skipf("node is not installed (make node): %v", err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "differential.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var values, expressions []string
	differs := map[string]bool{}
	for _, line := range strings.Split(strings.ReplaceAll(string(text), "\\\n", "\x00"), "\n") {
		line = strings.ReplaceAll(line, "\x00", "\\\n")
		if expression, ok := strings.CutPrefix(line, "differs "); ok {
			differs[expression], line = false, expression
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if refused, ok := strings.CutPrefix(line, "refused "); ok {
			if _, err := Compile(refused); err == nil {
				t.Errorf("%s is not refused", refused)
			}
			continue
		}
		if value, ok := strings.CutPrefix(line, "value "); ok && json.Valid([]byte(value)) {
			values = append(values, value)
			continue
		}
		expressions = append(expressions, line)
	}
	var questions []json.RawMessage
	for _, expression := range expressions {
		for _, value := range values {
			quoted, err := json.Marshal(expression)
			if err != nil {
				t.Fatal(err)
			}
			questions = append(questions, json.RawMessage("["+value+","+string(quoted)+"]"))
		}
	}
	input, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(node, filepath.Join("testdata", "differential.js"))
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []struct {
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	}
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions: %v", len(answers), len(questions), err)
	}
	results := 0
	for i, answer := range answers {
		expression, value := expressions[i/len(values)], values[i%len(values)]
		ours := differentialResult(t, expression, value)
		theirs := "error"
		if answer.Error == "" {
			results++
			theirs = canonical(t, answer.Result)
		}
		if _, known := differs[expression]; known {
			differs[expression] = differs[expression] || ours != theirs
			continue
		}
		if ours != theirs {
			t.Errorf("%s with %s: here %.200s, in Node.js %.200s %s", expression, value, ours, theirs, answer.Error)
		}
	}
	for expression, found := range differs {
		if !found {
			t.Errorf("%s does not differ any more", expression)
		}
	}
	t.Logf("%d expressions with %d values: %d results and %d errors are the same", len(expressions), len(values), results, len(answers)-results)
}

// differentialResult returns the result of an expression as canonical JSON, or "error".
func differentialResult(t *testing.T, expression, text string) string {
	t.Helper()
	e, err := Compile(expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return "refused"
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	about := globals(map[string]any{"list": []any{int64(1), int64(2), int64(3)}, "name": "c"})
	about.Context["virtualObject"] = map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}
	m := NewMachine(slow, about)
	result, _, err := m.Run(e, value, true, "spec.a")
	if err != nil {
		return "error"
	}
	out, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return canonical(t, out)
}

// canonical returns JSON with sorted keys and one form of each number.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
