package resource_test

import (
	"encoding/json"
	"strings"
	"testing"

	"management.platform.sh/shared/api/resource"
)

// Characters that turn the direction of text are refused, and texts from the right are not. An object that was stored with such characters
// keeps them until its text is changed.
func TestDirection(t *testing.T) {
	t.Parallel()
	const turning = "safe\u202egnp.exe"
	for _, row := range []struct {
		about, displayName, description string
		wrong                           refusal
	}{
		{"from the right", "مفتاح النشر", "مفتاح\nالنشر", refusal{}},
		{"turned display name", turning, "", invalid("spec.displayName")},
		{"turned description", "", "a\n" + turning, invalid("spec.description")},
		{"isolated", "a\u2067b\u2069", "", invalid("spec.displayName")},
		{"embedded, in both", "\u202ab", "\u2066", invalid("spec.displayName", "spec.description")},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			object := grantee("ci")
			object.Spec.DisplayName, object.Spec.Description = row.displayName, row.description
			_, err := resource.Create(t.Context(), open(t), resource.CreateInput[*key]{Caller: admin, Object: object})
			expect(t, err, row.wrong)
		})
	}
	for _, row := range []struct {
		about, change string
		wrong         refusal
	}{
		{"another field", `{"spec":{"disabled":true}}`, refusal{}},
		{"a better text", `{"spec":{"displayName":"safe"}}`, refusal{}},
		{"no text", `{"spec":{"displayName":null}}`, refusal{}},
		{"another turned text", `{"spec":{"displayName":"\u202eb"}}`, invalid("spec.displayName")},
		{"a turned text beside it", `{"spec":{"description":"` + turning + `"}}`, invalid("spec.description")},
		{"another field that is wrong", `{"spec":{"ttl":-1}}`, invalid("spec.ttl")},
	} {
		t.Run("stored before: "+row.about, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			create(t, r, admin, grantee("ci"))
			record, err := r.Store.Get(t.Context(), "ci")
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(turning)
			if err != nil {
				t.Fatal(err)
			}
			record.Object = []byte(strings.Replace(string(record.Object), `"spec":{`, `"spec":{"displayName":`+string(text)+`,`, 1))
			if _, err := r.Store.Update(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			_, err = patch(t, r, "ci", mergeP, row.change)
			expect(t, err, row.wrong)
		})
	}
}
