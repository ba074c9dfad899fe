package listaccesskeys

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/accesskey/accesskeytest"
	"management.platform.sh/shared/model"
)

func TestDo(t *testing.T) {
	t.Parallel()
	deps := Deps{Keys: accesskeytest.New(t)}
	first, second := accesskeytest.Seed(t, deps.Keys, "a"), accesskeytest.Seed(t, deps.Keys, "b")
	got, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana})
	want := &model.OwnedAccessKeyList{
		TypeMeta: metav1.TypeMeta{APIVersion: "management.platform.sh/v1", Kind: "OwnedAccessKeyList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "2"}, Items: []model.OwnedAccessKey{*first, *second},
	}
	if err != nil || !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	got, err = Do(t.Context(), deps, Input{Caller: accesskeytest.Ben})
	if list, ok := got.(*model.OwnedAccessKeyList); err != nil || !ok || len(list.Items) != 0 {
		t.Errorf("ben sees %+v, %v", got, err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, Continue: "x"}); accesskeytest.Code(err) != 400 {
		t.Errorf("a bad token: %v", err)
	}
	if _, err := Do(t.Context(), deps, Input{Caller: accesskeytest.Ana, ResourceVersion: "1", Exact: true}); accesskeytest.Code(err) != 410 {
		t.Errorf("an old state: %v", err)
	}
}
