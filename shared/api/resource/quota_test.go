package resource_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/state/store"
)

var overQuota = refusal{code: 429, reason: metav1.StatusReasonTooManyRequests}

// The quota is that of the owner, whoever writes. Its answer names it with its numbers, and says when to try again.
// Source: ADR-0020.
func TestQuota(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("before")) // without a quota, as by an older build
	r.Quota = store.Quota{Objects: 2}
	create(t, r, ana, grantee("second"))

	before := revision(t, r.Store)
	_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("third")})
	expect(t, err, overQuota)
	status := apierror.From(err).Status()
	if want := "the quota of user:ana for ownedaccesskeys is used up: 2 objects, the limit is 2"; status.Message != want || status.Details.RetryAfterSeconds != 1 {
		t.Errorf("%q, repeat after %d s; want %q", status.Message, status.Details.RetryAfterSeconds, want)
	}
	forAna := grantee("third")
	forAna.Spec.User = "ana"
	_, err = resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: admin, Object: forAna})
	expect(t, err, overQuota)
	_, err = resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("second")})
	expect(t, err, alreadyExists)
	if after := revision(t, r.Store); after != before {
		t.Error("a refused request has written something")
	}

	create(t, r, ben, grantee("of-ben"))
	if _, err := patch(t, r, "second", resource.MergePatch, `{"spec":{"displayName":"still writable"}}`); err != nil {
		t.Errorf("an update that adds no object: %v", err)
	}
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "before"}); err != nil {
		t.Fatal(err)
	}
	create(t, r, ana, grantee("third"))
}

// Above a quota of bytes, an owner can still shrink and delete objects, and the system can do its work.
// Source: ADR-0020.
func TestQuotaBytes(t *testing.T) {
	t.Parallel()
	r := open(t)
	held := grantee("held")
	held.Finalizers = []string{"example.com/a", "example.com/b"}
	held.Annotations = map[string]string{"note": strings.Repeat("x", 1000)}
	create(t, r, ana, held)
	create(t, r, ana, grantee("ci"))
	r.Quota = store.Quota{Bytes: 10}

	_, err := resource.Create(t.Context(), r, resource.CreateInput[*key]{Caller: ana, Object: grantee("third")})
	expect(t, err, overQuota)
	if message := apierror.From(err).Status().Message; !strings.Contains(message, "user:ana for ownedaccesskeys is used up: ") || !strings.Contains(message, " bytes, the limit is 10; this write adds ") {
		t.Errorf("%q", message)
	}
	_, err = patch(t, r, "ci", resource.MergePatch, `{"metadata":{"annotations":{"note":"`+strings.Repeat("x", 2000)+`"}}}`)
	expect(t, err, overQuota)
	if _, err = patch(t, r, "held", resource.MergePatch, `{"metadata":{"annotations":null}}`); err != nil {
		t.Errorf("an update that shrinks: %v", err)
	}
	// The mark of the deletion makes the object larger.
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "held"}); err != nil {
		t.Errorf("a deletion that finalizers hold: %v", err)
	}
	if get(t, r, "held").DeletionTimestamp == nil {
		t.Error("the deletion has not begun")
	}
	if _, err = patch(t, r, "held", resource.MergePatch, `{"metadata":{"finalizers":null}}`); err != nil {
		t.Errorf("an update that ends the deletion: %v", err)
	}
	if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: ana, Name: "ci"}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	if page, err := r.Store.List(t.Context(), store.Query{}); err != nil || len(page.Records) != 0 {
		t.Errorf("%d objects are left (%v)", len(page.Records), err)
	}
}
