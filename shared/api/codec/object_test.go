package codec_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// A review with an unknown field may ask for something else than the client means: fieldValidation says what becomes of it,
// as it does for stored objects. Source: Spec 2.1, 9.
func TestDecodeObject(t *testing.T) {
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
			var fields []string
			self := &model.Self{}
			_, warnings, err := codec.DecodeObject(row.contentType, []byte(row.body), self, model.SchemeGroupVersion.WithKind("Self"), row.validation)
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
