package codec

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model/apierror"
)

// CheckKind returns BadRequest for an object with another kind or API version than want, with a cause for each. An object may
// omit both, since the endpoint implies them. If want has no version, every version is accepted.
// Source: Spec 2.1, 7, 9.
func CheckKind(object runtime.Object, want schema.GroupVersionKind) error {
	apiVersion, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if written, ok := object.GetObjectKind().(*metav1.TypeMeta); ok {
		// As it was written: one that cannot be parsed was not left out.
		apiVersion, kind = written.APIVersion, written.Kind
	}
	wantVersion := want.GroupVersion().String()
	var problems field.ErrorList
	text := ""
	if apiVersion != "" && want.Version != "" && apiVersion != wantVersion {
		text = fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", apiVersion, wantVersion)
		problems = append(problems, field.NotSupported(field.NewPath("apiVersion"), apiVersion, []string{wantVersion}))
	}
	if kind != "" && kind != want.Kind {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", kind, want.Kind)
		problems = append(problems, field.NotSupported(field.NewPath("kind"), kind, []string{want.Kind}))
	}
	if len(problems) == 0 {
		return nil
	}
	return apierror.BadRequest(text, problems)
}
