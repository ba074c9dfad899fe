package resource_test

import (
	"bytes"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/util/managedfields"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

// FuzzApply: whatever a client applies, or sends as managedFields, is an answer below 500 or an object whose owners can be
// read again, and never a panic. Neither contains the key of the object.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"ci","labels":{"a":"c"}},"spec":{"displayName":"x"}}`,
		"apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  finalizers: [a.example/x, b.example/x]\nspec:\n  scope: {}\n",
		`{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"ownerReferences":[{"uid":"1","name":"x","kind":"K","apiVersion":"v1"}]},"spec":null}`,
		`{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","spec":{"identity":{"extraClaims":{"a":"b"}},"unknown":[{"x":{}}]},"status":{"lastActivity":null}}`,
	} {
		f.Add(false, []byte(seed))
	}
	for _, seed := range []string{
		`[]`, `[{}]`,
		`[{"manager":"x","operation":"Apply","apiVersion":"management.platform.sh/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:scope":{"f:roles":{}}}}}]`,
		`[{"manager":"x","operation":"Update","apiVersion":"management.platform.sh/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{\"a\":1}":{"v:1":{}},"i:0":{}},"f:nothing":{"f:more":{}}}}]`,
		`[{"manager":"x","operation":"Update","apiVersion":"other/v9","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"a\"":{}}}}}]`,
	} {
		f.Add(true, []byte(seed))
	}
	r := open(f)
	given := grantee("ci")
	given.Labels = map[string]string{"a": "b"}
	given.Finalizers = []string{"a.example/x"}
	given.Spec.DisplayName, given.Spec.Key = "one", secret
	create(f, r, admin, given)
	f.Fuzz(func(t *testing.T, asManagedFields bool, document []byte) {
		in := resource.PatchInput{Caller: admin, Name: "ci", Type: resource.ApplyPatch, Manager: "ops", Force: true, DryRun: true, Patch: document, Validation: codec.Ignore}
		if asManagedFields {
			in.Type, in.Patch = resource.MergePatch, []byte(`{"spec":{"ttl":60},"metadata":{"managedFields":`+string(document)+`}}`)
		}
		result, err := resource.Patch(t.Context(), r, in)
		if err != nil {
			if known, ok := errors.AsType[*apierror.Error](err); !ok || known.Status().Code < 400 || known.Status().Code >= 500 {
				t.Fatalf("%s: %v", document, err)
			}
			return
		}
		if err := managedfields.ValidateManagedFields(result.Object.ManagedFields); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		for _, entry := range result.Object.ManagedFields {
			if bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte("f:key")) && !asManagedFields {
				t.Fatalf("%s: %s", document, entry.FieldsV1)
			}
		}
	})
}
