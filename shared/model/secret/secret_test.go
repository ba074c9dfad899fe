package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model/secret"
)

const canary = "s3cr3t-5f2c"

type holder struct {
	Name  string                   `json:"name"`
	Token secret.String            `json:"token,omitempty"`
	More  []secret.String          `json:"more,omitempty"`
	ByKey map[string]secret.String `json:"byKey,omitempty"`
	Ref   *secret.String           `json:"ref,omitempty"`
}

func full() holder {
	text := secret.String(canary)
	return holder{Name: "x", Token: canary, More: []secret.String{canary}, ByKey: map[string]secret.String{"k": canary}, Ref: &text}
}

func mustHide(t *testing.T, how, text string) {
	t.Helper()
	if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) || strings.Contains(text, fmt.Sprintf("%v", []byte(canary))) {
		t.Errorf("%s shows the secret: %s", how, text)
	}
	if !strings.Contains(text, secret.Mark) {
		t.Errorf("%s shows no mark: %s", how, text)
	}
}

func TestFormatHidesWithEveryVerb(t *testing.T) {
	t.Parallel()
	text := secret.String(canary)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%#q", "%x", "%X", "% x", "%d", "%t", "%U", "%10s", "%-40v", "%.3s", "%T %v"} {
		arguments := []any{text}
		if strings.HasPrefix(verb, "%T") {
			arguments = []any{text, text}
		}
		mustHide(t, verb, fmt.Sprintf(verb, arguments...))
		mustHide(t, verb+" of a struct", fmt.Sprintf(strings.Replace(verb, "%T ", "", 1), full().More))
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		value := full()
		value.Ref = nil
		mustHide(t, verb+" of a struct", fmt.Sprintf(verb, value))
		mustHide(t, verb+" of a pointer", fmt.Sprintf(verb, &value))
	}
	mustHide(t, "Sprint", fmt.Sprint(text))
	mustHide(t, "Sprintln", fmt.Sprintln("a", text))
	mustHide(t, "Errorf", fmt.Errorf("reading %v: %w", text, errors.New("x")).Error())
	mustHide(t, "String", text.String())
}

func TestEmptyPrintsNothing(t *testing.T) {
	t.Parallel()
	var none secret.String
	if got := fmt.Sprintf("%v%s%x", none, none, none); got != "" {
		t.Errorf("got %q", got)
	}
	text, err := json.Marshal(holder{Name: "x"})
	if err != nil || string(text) != `{"name":"x"}` {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestSlogHides(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	for name, handler := range map[string]slog.Handler{
		"text": slog.NewTextHandler(&buffer, nil),
		"json": slog.NewJSONHandler(&buffer, nil),
	} {
		for how, value := range map[string]any{"value": secret.String(canary), "struct": full(), "list": full().More, "map": full().ByKey} {
			if name == "text" && how == "struct" {
				value = struct{ Token secret.String }{canary}
			}
			buffer.Reset()
			slog.New(handler).With("with", value).Info("message", slog.Group("group", "key", value))
			mustHide(t, "slog "+name+" of a "+how, buffer.String())
		}
	}
}

func TestEncodersHide(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	mustHide(t, "json", string(text))
	document, err := yaml.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	mustHide(t, "yaml", string(document))
}

func TestDecodersTakeTheClearText(t *testing.T) {
	t.Parallel()
	var got holder
	if err := json.Unmarshal([]byte(`{"token":"`+canary+`","ref":null}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Token.Reveal() != canary || got.Ref != nil {
		t.Errorf("got %q", got.Token.Reveal())
	}
	if err := yaml.UnmarshalStrict([]byte("token: "+canary), &got); err != nil || got.Token.Reveal() != canary {
		t.Errorf("got %q, %v", got.Token.Reveal(), err)
	}
	if err := json.Unmarshal([]byte(`{"token":7}`), &got); err == nil {
		t.Error("a number was taken for a secret")
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b secret.String
		want bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a", "b", false},
		{"a", "", false},
		{"a", "aa", false},
		{canary, canary, true},
		{secret.Mark, canary, false},
	}
	for _, test := range tests {
		if got := test.a.Equal(test.b); got != test.want {
			t.Errorf("Equal(%q, %q) = %t", test.a.Reveal(), test.b.Reveal(), got)
		}
	}
}
