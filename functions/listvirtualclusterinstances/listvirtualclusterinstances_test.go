package listvirtualclusterinstances

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// Source: Spec 2.6, 4; ADR-0017.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, ana, ben := open(w.Env), w.Key("ana", "ana", model.OwnedAccessKeySpec{}), w.Key("ben", "ben", model.OwnedAccessKeySpec{})
	instancetest.Store(t, kinds.Instances(w.Env), instancetest.Instance(t, "dev"))
	for _, row := range []struct {
		caller    identity.Caller
		namespace string
		sees      int
	}{{ana, "", 1}, {ana, "p-shop", 1}, {ana, "p-other", 0}, {ben, "p-shop", 0}} {
		got, err := Do(t.Context(), deps, Input{Caller: row.caller, Namespace: row.namespace})
		if err != nil || meta.LenList(got) != row.sees {
			t.Errorf("%s in %q sees %+v, %v", row.caller.Key, row.namespace, got, err)
		}
		watcher, err := Watch(t.Context(), deps, WatchInput{Caller: row.caller, Namespace: row.namespace})
		if err != nil {
			t.Fatal(err)
		}
		if events, err := watcher.Next(t.Context(), 0); err != nil || len(events) != row.sees {
			t.Errorf("%s in %q sees %d events, %v", row.caller.Key, row.namespace, len(events), err)
		}
	}
	if _, err := Do(t.Context(), deps, Input{Caller: ana, Continue: "x"}); accesskeytest.Code(err) != 400 {
		t.Errorf("a list with a bad token: %v", err)
	}
}
