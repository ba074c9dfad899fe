package frame_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// A question with a field that nobody knows may be another question than the asker means: fieldValidation says what
// becomes of it, as it does for what is stored. Source: Spec 2.1, 9; D2 of the design.
func TestQuestionsAreValidated(t *testing.T) {
	t.Parallel()
	const unknown, twice = `{"spec":{"accesskey":"x"}}`, `{"spec":{"accessKey":"x","accessKey":"y"}}`
	for _, row := range []struct {
		about, contentType, body string
		validation               codec.Strictness
		warnings                 []string
		fields                   []string
	}{
		{"unknown", codec.JSON, unknown, "", []string{`unknown field "spec.accesskey"`}, nil},
		{"unknown", codec.JSON, unknown, codec.Warn, []string{`unknown field "spec.accesskey"`}, nil},
		{"unknown in YAML", codec.YAML, "spec:\n  accesskey: x\n", codec.Warn, []string{`unknown field "spec.accesskey"`}, nil},
		{"unknown", codec.JSON, unknown, codec.Ignore, nil, nil},
		{"unknown", codec.JSON, unknown, codec.Strict, nil, []string{"spec.accesskey"}},
		{"twice", codec.JSON, twice, codec.Warn, []string{`duplicate field "spec.accessKey"`}, nil},
		{"twice", codec.JSON, twice, codec.Strict, nil, []string{"spec.accessKey"}},
		{"nothing", "", "", codec.Strict, nil, nil},
	} {
		t.Run(row.about+" "+string(row.validation), func(t *testing.T) {
			t.Parallel()
			var warnings, fields []string
			self := &model.Self{}
			err := frame.Question{
				ContentType: row.contentType, Body: []byte(row.body), Validation: row.validation,
				Warn: func(said ...string) { warnings = append(warnings, said...) },
			}.Read(self, model.SchemeGroupVersion.WithKind("Self"), nil)
			if err != nil {
				status := apierror.From(err).Status()
				if status.Reason != metav1.StatusReasonBadRequest || status.Details == nil {
					t.Fatalf("refused with %+v", status)
				}
				for _, cause := range status.Details.Causes {
					fields = append(fields, cause.Field)
				}
			} else if self.Kind != "Self" {
				t.Errorf("read as %+v", self)
			}
			if !reflect.DeepEqual(warnings, row.warnings) || !reflect.DeepEqual(fields, row.fields) {
				t.Errorf("warned of %q and refused %q, want %q and %q", warnings, fields, row.warnings, row.fields)
			}
		})
	}
}
