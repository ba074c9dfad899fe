package worker

import (
	"bufio"
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/randfill"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// filled returns values in which every field is set, so that a field that is not sent is noticed.
func filled(t *testing.T, into any) {
	t.Helper()
	randfill.NewWithSeed(1).NilChance(0).NumElements(2, 3).Funcs(
		func(object *map[string]any, _ randfill.Continue) { *object = everyKind() },
		func(j *model.JSON, _ randfill.Continue) { j.Raw = []byte(`{"a":1}`) },
	).Fill(into)
}

func everyKind() map[string]any {
	return map[string]any{
		"null": nil, "true": true, "false": false, "zero": int64(0), "least": int64(math.MinInt64), "most": int64(math.MaxInt64),
		"fraction": -0.5, "negative zero": math.Copysign(0, -1), "text": "\x00é", "empty": "", "": []any{}, "array": []any{map[string]any{}, nil, int64(-1)},
		"deep": nested(1000),
	}
}

// Every field that is sent arrives.
func TestFrames(t *testing.T) {
	var q question
	q.Request = &syncpatch.Request{}
	filled(t, &q)
	frame, err := appendQuestion(nil, q)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readQuestion(string(frame)); err != nil || !reflect.DeepEqual(got, q) {
		t.Errorf("the question is %+v (%v), want %+v", got, err, q)
	}
	var a answer
	filled(t, &a)
	a.Result.Error = nil
	frame, err = appendAnswer(nil, a)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAnswer(string(frame)); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("the answer is %+v (%v), want %+v", got.Result, err, a.Result)
	}
	filled(t, &a)
	if frame, err = appendAnswer(nil, a); err != nil {
		t.Fatal(err)
	}
	a.Result.Object = nil
	if got, err := readAnswer(string(frame)); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("the answer with an error is %+v (%v), want %+v", got.Result, err, a.Result)
	}
}

// Absent and empty stay different.
func TestFramesOfNothing(t *testing.T) {
	for _, request := range []syncpatch.Request{{}, {Object: map[string]any{}, Context: syncpatch.Context{HostObject: map[string]any{}}}} {
		frame, err := appendQuestion(nil, question{Request: &request})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readQuestion(string(frame)); err != nil || !reflect.DeepEqual(*got.Request, request) {
			t.Errorf("%+v (%v), want %+v", got.Request, err, request)
		}
	}
	for _, a := range []answer{{}, {Error: "x"}, {Result: &syncpatch.Result{Object: map[string]any{}, Patches: []model.SyncPatchTrace{{}, {Matches: []model.SyncPatchMatch{{Path: "a"}}}}}}} {
		frame, err := appendAnswer(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readAnswer(string(frame)); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v (%v), want %+v", got, err, a)
		}
	}
}

// A value that is not JSON is an error that says so.
func TestUnusableValue(t *testing.T) {
	pool := newPool(t, Settings{Processes: 1})
	request := checked(t, "value", func(r *syncpatch.Request) { r.Object["bad"] = []any{int32(1)} })
	if _, err := pool.Evaluate(t.Context(), request); err == nil || !strings.Contains(err.Error(), "int32") {
		t.Errorf("the error is %v", err)
	}
}

// Values that are nested too deep are an error, not the end of the stack.
func TestFrameDepth(t *testing.T) {
	for levels, fits := range map[int]bool{maxDepth - 1: true, maxDepth + 1: false} {
		u := unpacker{text: strings.Repeat(string([]byte{packedArray, 1}), levels) + string([]byte{packedNull})}
		if u.value(); (u.err == nil) != fits {
			t.Errorf("%d levels: %v", levels, u.err)
		}
	}
}

func TestFrameLength(t *testing.T) {
	f := frames{in: bufio.NewReader(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0}))}
	if text, err := f.receive(); err == nil {
		t.Errorf("a frame of 4 GiB is %q", text)
	}
}

// Nothing that a worker sends harms the program. ADR-0014.
func FuzzAnswer(f *testing.F) {
	for _, a := range []answer{{Error: "x"}, {Result: &syncpatch.Result{Object: everyKind(), Patches: []model.SyncPatchTrace{{Matches: []model.SyncPatchMatch{{Path: "a", Before: &model.JSON{Raw: []byte("1")}}}}}}}} {
		frame, err := appendAnswer(nil, a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(frame))
	}
	f.Add("\x00")
	head, err := appendCBOR(nil, answer{Result: &syncpatch.Result{Patches: []model.SyncPatchTrace{{}}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, rest := range []string{strings.Repeat("\x06\x01", 200_000), "\x06\xff\xff\xff\xff\x0f", "\x03" + strings.Repeat("\xff", 20), "\x07\x01\x01", "\x08", "\x00\x01"} {
		f.Add(string(head) + rest)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := readAnswer(text)
		if err != nil {
			return
		}
		frame, err := appendAnswer(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAnswer(string(frame)); err != nil {
			t.Fatalf("what was read cannot be sent: %v", err)
		}
	})
}
