package resource

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"management.platform.sh/shared/model"
)

// ForgetApplied removes the values at some paths from the manifest that kubectl apply stores in an annotation. A manifest
// that is not a JSON object stays as it is.
func ForgetApplied(object metav1.Object, paths [][]string) {
	EditApplied(object, func(fields map[string]any) (changed bool) {
		for _, path := range paths {
			if value, exists, err := unstructured.NestedFieldNoCopy(fields, path...); err == nil && exists && value != nil {
				unstructured.RemoveNestedField(fields, path...)
				changed = true
			}
		}
		return changed
	})
}

// EditApplied changes the manifest that kubectl apply stores in an annotation. Edit changes the fields and reports whether
// it did: without a change, the text stays as it is, so that applying the same manifest again changes nothing. EditApplied
// reports whether the manifest is a JSON object or absent. Otherwise it does not call edit.
func EditApplied(object metav1.Object, edit func(fields map[string]any) (changed bool)) bool {
	annotations := object.GetAnnotations()
	manifest, ok := annotations[model.LastAppliedAnnotation]
	if !ok {
		return true
	}
	var fields map[string]any
	// Numbers keep their digits: kubectl compares the rest of the manifest with the next one.
	decoder := json.NewDecoder(strings.NewReader(manifest))
	decoder.UseNumber()
	if !json.Valid([]byte(manifest)) || decoder.Decode(&fields) != nil {
		return false
	}
	if edit(fields) {
		// A value that was just read from JSON can be written as JSON.
		text, _ := json.Marshal(fields)
		// kubectl ends its manifest with a line feed.
		annotations[model.LastAppliedAnnotation] = string(text) + "\n"
		object.SetAnnotations(annotations)
	}
	return true
}
