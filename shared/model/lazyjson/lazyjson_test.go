package lazyjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type document struct {
	Common
	Name     string          `json:"name,omitempty"`
	Untagged int             `json:",omitempty"`
	Hidden   string          `json:"-"`
	Part     *part           `json:"part,omitempty"`
	Inside   part            `json:"inside"`
	Parts    []part          `json:"parts,omitempty"`
	Pointers []*part         `json:"pointers,omitempty"`
	Named    map[string]part `json:"named,omitempty"`
	Fixed    [2]part         `json:"fixed"`
	Any      any             `json:"any,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	At       time.Time       `json:"at"`
	Own      selfDecoder     `json:"own"`
	Words    words           `json:"words"`
	_        part
	Bytes    []byte           `json:"bytes,omitempty"`
	Flags    map[string]*bool `json:"flags,omitempty"`
}

type Common struct {
	Kind string `json:"kind,omitempty"`
	// Name is hidden by the Name of the document.
	Name string `json:"name,omitempty"`
}

type further struct {
	*Common
	More string `json:"more,omitempty"`
}

type part struct {
	Number int    `json:"number,omitempty"`
	Next   *part  `json:"next,omitempty"`
	Nested []part `json:"nested,omitempty"`
}

// selfDecoder implements json.Unmarshaler.
type selfDecoder struct{ text string }

func (o *selfDecoder) UnmarshalJSON(text []byte) error {
	if string(text) == `"no"` {
		return errors.New("it says no")
	}
	o.text = string(text)
	return nil
}

// words implements encoding.TextUnmarshaler.
type words struct{ text string }

func (w *words) UnmarshalText(text []byte) error {
	w.text = string(text)
	return nil
}

// quotedNumber has a number that JSON holds as text.
type quotedNumber struct {
	Count int `json:"count,string"`
}

// agree compares the result for a text with the result of encoding/json.
func agree[T any](t interface{ Fatalf(string, ...any) }, text string) {
	var got, want T
	gotErr, wantErr := Unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &want)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\n got %+v, %v\nwant %+v, %v", text, got, gotErr, want, wantErr)
	}
}

// Unmarshal decodes and refuses the same texts as encoding/json.
func TestUnmarshal(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `null`, `[]`, `"a"`, `{`, `{}}`, ` {"name" : "a"} `, `{"name":"a","name":"b"}`, `{"NAME":"a"}`, `{"name":"a","Name":"b"}`,
		`{"untagged":1}`, `{"Untagged":1}`, `{"Hidden":"a","-":"c"}`, `{"unknown":{"name":1}}`, `{"kind":"a","more":"b"}`,
		`{"part":null}`, `{"part":{"number":1},"part":{"next":{"number":2}}}`, `{"part":{"number":1},"part":null}`, `{"part":[]}`, `{"part":7}`,
		`{"inside":null}`, `{"inside":{"number":"a","next":{}}}`, `{"inside":{"number":1.5}}`, `{"inside":{"number":1e400}}`,
		`{"parts":[]}`, `{"parts":null}`, `{"parts":[{"number":1},null,{"nested":[{}]}]}`, `{"parts":[{"number":1,"next":{}}],"parts":[{}]}`, `{"parts":{}}`, `{"parts":[1]}`,
		`{"pointers":[null,{"number":1}]}`, `{"named":{"a":{"number":1}},"named":{"b":{}}}`, `{"fixed":[{"number":1}]}`,
		`{"any":{"a":[1]},"raw": {"b" : 2} ,"at":"2026-01-02T03:04:05Z","own":[1, 2],"bytes":"AAEC","flags":{"a":true,"b":null}}`,
		`{"own":{"text":"a"}}`, `{"words":"a"}`, `{"words":{"text":"a"}}`, `{"_":{"number":1}}`, `{"at":"yesterday"}`, `{"own":"no"}`, `{"own":null}`, `{"bytes":"!"}`, "{\"name\":\"\\ud800\xff\"}", `{"na\u006de":"a"}`, `{"name":1,"inside":{"number":"a"}}`,
		`{"parts":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`,
	} {
		agree[document](t, text)
	}
	for _, text := range []string{`{"count":"1"}`, `{"count":1}`, `{"kind":"a","more":"b"}`} {
		agree[quotedNumber](t, text)
		agree[further](t, text)
	}
}

// Usual texts are decoded here: a fallback to encoding/json would hide faults of this package.
func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"kind":"a","name":"b","Untagged":1,"part":{"number":1,"next":{}},"inside":{},"parts":[{},null],"named":{},"own":[],"at":null,"unknown":{}}`: true,
		`{"part":{"number":1},"part":{"next":{"number":2}},"parts":[{"number":1}],"parts":[{}]}`:                                                      true,
		`{"Hidden":"a"}`: true, `{"-":"a"}`: true, `{"untagged":1}`: false, `{"NAME":"a"}`: false, `{"own":"no"}`: false,
	} {
		if got := decode([]byte(text), reflect.ValueOf(&document{}).Elem()); got != want {
			t.Errorf("%s is decoded: %v", text, got)
		}
	}
}

// Unmarshal agrees with encoding/json for generated texts too: documents with members changed, doubled or damaged.
func TestUnmarshalAnything(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"name", "Name", "kind", "more", "part", "inside", "parts", "pointers", "named", "number", "next", "nested", "other", "own", "any"})
	rapid.Check(t, func(t *rapid.T) {
		text := write(t, names, 4)
		if rapid.Bool().Draw(t, "damaged") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text = text[:at] + text[at+1:]
		}
		agree[document](t, text)
	})
}

// write returns the text of a value with at most this number of levels.
func write(t *rapid.T, names *rapid.Generator[string], levels int) string {
	kinds := []string{"object", "object", "list", "text", "number", "null", "true"}
	if levels == 0 {
		kinds = kinds[3:]
	}
	var inner []string
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "object":
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			inner = append(inner, strconv.Quote(names.Draw(t, "name"))+":"+write(t, names, levels-1))
		}
		return "{" + strings.Join(inner, ",") + "}"
	case "list":
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			inner = append(inner, write(t, names, levels-1))
		}
		return "[" + strings.Join(inner, ",") + "]"
	case "text":
		return `"a"`
	case "number":
		return strconv.Itoa(rapid.IntRange(-1, 1000).Draw(t, "number"))
	default:
		return kind
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(`{"name":"a","parts":[{"number":1}]}`)
	f.Fuzz(func(t *testing.T, text string) { agree[document](t, text) })
}
