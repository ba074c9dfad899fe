package worker

import (
	"bufio"
	"bytes"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch"
)

// filled returns values in which every field is set, so that a field that is not sent is noticed.
func filled(t *testing.T, into any) {
	t.Helper()
	randfill.NewWithSeed(1).NilChance(0).NumElements(2, 3).Funcs(
		func(j *model.JSON, _ randfill.Continue) { j.Raw = []byte(`{"a":1}`) },
		func(p *problem, c randfill.Continue) {
			*p = problem{"Invalid", "a", "x", "y", true, 1, 2, syncpatch.Offset{Line: 3, Column: 4}}
		},
	).Fill(into)
}

// Every field that is sent arrives.
func TestFrames(t *testing.T) {
	var q question
	filled(t, &q)
	q.Read = false
	frame, err := appendCBOR(nil, q)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readQuestion(frame); err != nil || !reflect.DeepEqual(got, q) {
		t.Errorf("the question is %+v (%v), want %+v", got, err, q)
	}
	for _, failed := range []bool{false, true} {
		var a answer
		filled(t, &a)
		if !failed {
			a.Status.Error = nil
		}
		if frame, err = appendAnswer(nil, a); err != nil {
			t.Fatal(err)
		}
		if failed {
			a.Status.Object = nil
		}
		if got, err := readAnswer(frame); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("the answer is %+v (%v), want %+v", got.Status, err, a.Status)
		}
	}
}

// Problems arrive with the same text.
func TestProblems(t *testing.T) {
	at := field.NewPath("spec", "a")
	all := field.ErrorList{
		field.Invalid(at, "x", "y"), field.Invalid(at, field.OmitValueType{}, "y"), field.Required(at, "y"), field.TooMany(at, 3, 2), field.TooLong(at, "x", 1),
		field.NotSupported(at, "x", []string{"y"}), field.Duplicate(at, "x"), field.Forbidden(at, "y"), field.TypeInvalid(at, "a string", "y"),
	}
	for _, e := range all {
		frame, err := appendAnswer(nil, answer{Problems: problemsOf([]syncpatch.Problem{{Error: e, Line: 1}})})
		if err != nil {
			t.Fatal(err)
		}
		a, err := readAnswer(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got := foundOf(a.Problems); len(got) != 1 || got[0].Error.Error() != e.Error() || got[0].Line != 1 {
			t.Errorf("%v became %v", e, got)
		}
	}
}

// Absent and empty stay different.
func TestFramesOfNothing(t *testing.T) {
	for _, a := range []answer{{}, {Error: "x"}, {Status: &model.SyncPatchEvaluationStatus{Patches: []model.SyncPatchTrace{{}, {Matches: []model.SyncPatchMatch{{Path: "a"}}}}}}} {
		frame, err := appendAnswer(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readAnswer(frame); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v (%v), want %+v", got, err, a)
		}
	}
	if q, err := readQuestion([]byte{1, 0xa0}); err == nil {
		t.Errorf("a frame without a question is %+v", q)
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
	for _, a := range []answer{{Error: "x"}, {Status: &model.SyncPatchEvaluationStatus{Patches: []model.SyncPatchTrace{{Matches: []model.SyncPatchMatch{{Path: "a", Before: &model.JSON{Raw: []byte("1")}}}}}}}} {
		frame, err := appendAnswer(nil, a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Add([]byte{0})
	head, err := appendCBOR(nil, answer{Status: &model.SyncPatchEvaluationStatus{Patches: []model.SyncPatchTrace{{}}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, rest := range []string{strings.Repeat("\x06\x01", 200_000), "\x06\xff\xff\xff\xff\x0f", "\x03" + strings.Repeat("\xff", 20), "\x07\x01\x01", "\x08", "\x00\x01"} {
		f.Add([]byte(string(head) + rest))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		a, err := readAnswer(frame)
		if err != nil {
			return
		}
		_ = a.outcome()
		if frame, err = appendAnswer(nil, a); err != nil {
			t.Fatal(err)
		}
		if _, err := readAnswer(frame); err != nil {
			t.Fatalf("what was read cannot be sent: %v", err)
		}
	})
}
