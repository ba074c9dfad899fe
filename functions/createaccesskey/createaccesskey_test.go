package createaccesskey

import (
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	const bearer = "0123456789-0123456789-0123456789-0123456789"
	created := metav1.Time{Time: accesskeytest.Now}
	key := func(meta metav1.ObjectMeta, spec model.OwnedAccessKeySpec) *model.OwnedAccessKey {
		return &model.OwnedAccessKey{ObjectMeta: meta, Spec: spec}
	}
	stored := func(name string, spec model.OwnedAccessKeySpec, end *metav1.Time) *model.OwnedAccessKey {
		return &model.OwnedAccessKey{
			TypeMeta:   metav1.TypeMeta{APIVersion: "management.platform.sh/v1", Kind: "OwnedAccessKey"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, CreationTimestamp: created, ResourceVersion: "2"},
			Spec:       spec, Status: model.OwnedAccessKeyStatus{ExpirationTimestamp: end},
		}
	}
	for _, row := range []struct {
		about string
		given *model.OwnedAccessKey
		want  *model.OwnedAccessKey
		code  int32
	}{
		{
			"a key of the caller's (Spec 2.5)", key(metav1.ObjectMeta{Name: "ci"}, model.OwnedAccessKeySpec{Key: bearer}),
			stored("ci", model.OwnedAccessKeySpec{User: "ana", Type: "User", Key: bearer}, nil), 0,
		},
		{
			"with a ttl (Spec 2.5)", key(metav1.ObjectMeta{Name: "ci"}, model.OwnedAccessKeySpec{Key: bearer, TTLSeconds: 60, DisplayName: "CI"}),
			stored("ci", model.OwnedAccessKeySpec{User: "ana", Type: "User", Key: bearer, TTLSeconds: 60, DisplayName: "CI"},
				&metav1.Time{Time: accesskeytest.Now.Add(time.Minute)}), 0,
		},
		{"a key for another user", key(metav1.ObjectMeta{Name: "ci"}, model.OwnedAccessKeySpec{User: "ben"}), nil, 403},
		{"two owners", key(metav1.ObjectMeta{Name: "ci"}, model.OwnedAccessKeySpec{User: "ana", Team: "core"}), nil, 422},
		{"a type of the server's", key(metav1.ObjectMeta{Name: "ci"}, model.OwnedAccessKeySpec{Type: "Login"}), nil, 422},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			got, err := Do(t.Context(), Deps{Keys: accesskeytest.New(t).Managed(fieldmanager.New)}, Input{Caller: accesskeytest.Ana, Object: row.given, Manager: "curl"})
			if accesskeytest.Code(err) != row.code {
				t.Fatalf("%+v, %v", got.Object, err)
			}
			if err != nil {
				return
			}
			if got.Object.UID == "" {
				t.Error("no uid")
			}
			if fields := got.Object.ManagedFields; len(fields) != 1 || fields[0].Manager != "curl" {
				t.Errorf("managedFields are %+v", fields)
			}
			got.Object.UID, got.Object.ManagedFields = "", nil
			if !apiequality.Semantic.DeepEqual(got.Object, row.want) {
				t.Errorf("answered\n%+v\nwant\n%+v", got.Object, row.want)
			}
		})
	}
}

// Only the response has the key in clear text, and that key authenticates.
func TestKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	deps := Deps{Keys: accesskeytest.New(t).Managed(fieldmanager.New)}
	got, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Object: &model.OwnedAccessKey{}})
	if err != nil {
		t.Fatal(err)
	}
	shown := got.Object.Spec.Key
	if !strings.HasPrefix(shown, "pak_") || len(shown) != 50 {
		t.Errorf("a key of %d characters", len(shown))
	}
	again, err := resource.Get(t.Context(), deps.Keys, resource.GetInput{Caller: accesskeytest.Ana, Name: got.Object.Name})
	if err != nil || again.Spec.Key != "" {
		t.Errorf("read again: %v, shown %v", err, again.Spec.Key != "")
	}
	record, err := deps.Keys.Store.Get(t.Context(), got.Object.Name)
	if err != nil || strings.Contains(string(record.Object), shown) {
		t.Errorf("the state holds the key in clear (%v)", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ben, Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{Key: shown}}}); accesskeytest.Code(err) != 409 {
		t.Errorf("the same key once more: %v", err)
	}
}
