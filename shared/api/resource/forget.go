package resource

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"management.platform.sh/shared/model"
)

// ForgetApplied takes the values at some paths out of the manifest that kubectl apply stores in an annotation.
func ForgetApplied(object metav1.Object, paths [][]string) {
	annotations := object.GetAnnotations()
	manifest, ok := annotations[model.LastAppliedAnnotation]
	if !ok {
		return
	}
	var fields map[string]any
	// Numbers keep their digits: kubectl compares the rest of the manifest with the next one.
	decoder := json.NewDecoder(strings.NewReader(manifest))
	decoder.UseNumber()
	if !json.Valid([]byte(manifest)) || decoder.Decode(&fields) != nil {
		return
	}
	changed := false
	for _, path := range paths {
		if value, found, err := unstructured.NestedFieldNoCopy(fields, path...); err == nil && found && value != nil {
			unstructured.RemoveNestedField(fields, path...)
			changed = true
		}
	}
	if !changed {
		return
	}
	// Fields that were just read from JSON can be written as JSON.
	text, _ := json.Marshal(fields)
	annotations[model.LastAppliedAnnotation] = string(text) + "\n"
	object.SetAnnotations(annotations)
}
