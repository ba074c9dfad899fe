package instance_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
)

// Callers who may update an instance and do not control it cannot change where the credentials of others are sent: in the spec or
// in the status, by any verb. Callers who control it can. Source: ADR-0021.
func TestUpdateDoesNotRedirect(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	given := instancetest.Instance(t, "dev")
	given.Spec.Access = []model.InstanceAccess{{Verbs: []string{"use", "update", "delete"}, Users: []string{"upa"}}, {Verbs: []string{"*"}, Users: []string{"all"}}}
	seeded := w.Seed(t, given)
	certificate, key := clustercatest.Authority(t, nil)
	encoded := base64.StdEncoding.EncodeToString
	material := fmt.Sprintf(`{"ca":{"certData":%q,"keyData":%q}}`, encoded(certificate), encoded(key))
	user := func(name string) identity.Caller {
		return identity.New(identity.Owner{Kind: identity.User, Name: name}, nil)
	}
	for _, row := range []struct {
		field, patch string
		status       bool
	}{
		{"spec.accessPoint", `{"spec":{"accessPoint":{"ingress":{"host":"evil.example.com"}}}}`, false},
		{"spec.accessPoint", `{"spec":{"accessPoint":{"ingress":{"caData":null}}}}`, false},
		{"spec.accessPoint", `{"spec":{"accessPoint":null}}`, false},
		{"spec.clusterRef", `{"spec":{"clusterRef":{"cluster":"evil"}}}`, false},
		{"spec.signer", `{"spec":{"signer":` + material + `}}`, false},
		{"spec.signer", `{"spec":{"signer":{"type":"None"}}}`, false},
		{"spec.signer", `{"spec":{"signer":{"certificateDuration":"1h"}}}`, false},
		{"spec.owner", `{"spec":{"owner":null}}`, false},
		{"spec.access", `{"spec":{"access":null}}`, false},
		{"status.ingress", `{"status":{"ingress":{"host":"evil.example.com"}}}`, true},
		{"status.ingress", `{"status":{"ingress":{"caData":null}}}`, true},
		{"status.ingress", `{"status":{"ingress":null}}`, true},
		{"", `{"spec":{"displayName":"new"},"metadata":{"labels":{"a":"b"}}}`, false},
		{"", `{"status":{"phase":"Failed"}}`, true},
	} {
		for name, controls := range map[string]bool{"upa": false, "ana": true, "all": true} {
			_, err := resource.Patch(t.Context(), w.Instances, resource.PatchInput{
				Caller: user(name), Namespace: "p-shop", Name: "dev", Type: resource.MergePatch, Patch: []byte(row.patch), Status: row.status, DryRun: true,
			})
			if controls || row.field == "" {
				if err != nil {
					t.Errorf("%s: %.80s: %v", name, row.patch, err)
				}
			} else if accesskeytest.Code(err) != 403 || !slices.Contains(fields(err), row.field) {
				t.Errorf("%s: %.80s: %v", name, row.patch, err)
			}
		}
	}
	// A replacement that repeats the stored values changes nothing.
	again := seeded.DeepCopy()
	again.Spec.Description = time.Minute.String()
	if _, err := resource.Update(t.Context(), w.Instances, resource.UpdateInput[*model.VirtualClusterInstance]{
		Caller: user("upa"), Namespace: "p-shop", Name: "dev", Object: again,
	}); err != nil {
		t.Error(err)
	}
}
