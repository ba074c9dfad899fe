package instance_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselectors "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds/accesskey/accesskeytest"
	"management.platform.sh/shared/kinds/instance"
	"management.platform.sh/shared/kinds/instance/instancetest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/signing/clusterca/clustercatest"
	"management.platform.sh/shared/state/encryption"
)

type object = model.VirtualClusterInstance

// fields returns the fields of the causes of an error.
func fields(err error) []string {
	var list []string
	if err == nil {
		return nil
	}
	if details := apierror.From(err).Status().Details; details != nil {
		for _, cause := range details.Causes {
			list = append(list, cause.Field)
		}
	}
	return list
}

func TestValidate(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	expired, expiredKey := clustercatest.Authority(t, func(c *x509.Certificate) { c.NotAfter = instancetest.Now })
	leaf, leafKey := clustercatest.Authority(t, func(c *x509.Certificate) { c.IsCA = false })
	_, another := clustercatest.Authority(t, nil)
	pair := func(certificate, key []byte) *model.InstanceSigner {
		return &model.InstanceSigner{CA: &model.InstanceSignerCA{CertData: certificate, KeyData: key}}
	}
	const ca = "spec.signer.ca"
	for _, row := range []struct {
		about  string
		change func(*object)
		fields []string
	}{
		{"a good one", func(*object) {}, nil},
		{"an empty one", func(o *object) { o.Spec = model.VirtualClusterInstanceSpec{} }, nil},
		{"in the namespace of no project (Spec 8)", func(o *object) { o.Namespace = "default" }, []string{"metadata.namespace"}},
		{"a name that is no label", func(o *object) { o.Name = "a.b" }, []string{"metadata.name"}},
		{"a long name", func(o *object) { o.Name = strings.Repeat("a", 64) }, []string{"metadata.name"}},
		{"two owners", func(o *object) { o.Spec.Owner.Team = "shop" }, []string{"spec.owner.team"}},
		{"no owner in the owner", func(o *object) { o.Spec.Owner.User = "" }, []string{"spec.owner"}},
		{"a display name of two lines", func(o *object) { o.Spec.DisplayName = "a\nb" }, []string{"spec.displayName"}},
		{"a long description", func(o *object) { o.Spec.Description = strings.Repeat("a", 4097) }, []string{"spec.description"}},
		{"a cluster that has no such name", func(o *object) {
			o.Spec.ClusterRef = &model.InstanceClusterRef{Cluster: "A", Namespace: "a.b", VirtualCluster: "-"}
		}, []string{"spec.clusterRef.cluster", "spec.clusterRef.namespace", "spec.clusterRef.virtualCluster"}},
		{"an ingress without a host", func(o *object) { o.Spec.AccessPoint.Ingress.Host = "" }, []string{"spec.accessPoint.ingress.host"}},
		{"an ingress with a URL", func(o *object) { o.Spec.AccessPoint.Ingress.Host = "https://a" }, []string{"spec.accessPoint.ingress.host"}},
		{"an ingress with no authority", func(o *object) { o.Spec.AccessPoint.Ingress.CAData = []byte("x") }, []string{"spec.accessPoint.ingress.caData"}},
		{"access for nobody to do nothing", func(o *object) { o.Spec.Access = []model.InstanceAccess{{}} }, []string{"spec.access[0].verbs", "spec.access[0].users"}},
		{"access to do something else", func(o *object) {
			o.Spec.Access = []model.InstanceAccess{{Verbs: []string{"use", "get", "use"}, Users: []string{"a", "", "a"}}}
		}, []string{"spec.access[0].verbs[1]", "spec.access[0].verbs[2]", "spec.access[0].users[1]", "spec.access[0].users[2]"}},
		{"a type of its own", func(o *object) { o.Spec.Signer.Type = "Other" }, []string{"spec.signer.type"}},
		{"none, with an authority", func(o *object) { o.Spec.Signer.Type = "None" }, []string{ca}},
		{"an authority that is not given", func(o *object) { o.Spec.Signer = &model.InstanceSigner{Type: "CA"} }, []string{ca}},
		{"two signers", func(o *object) { o.Spec.Signer.Kubeconfig = "x" }, []string{"spec.signer.kubeconfig", "spec.signer.kubeconfig"}},
		{"a kubeconfig that runs a program", func(o *object) {
			o.Spec.Signer = &model.InstanceSigner{Kubeconfig: `{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], ` +
				`clusters: [{name: c, cluster: {server: "https://a"}}], users: [{name: u, user: {exec: {command: sh}}}]}`}
		}, []string{"spec.signer.kubeconfig"}},
		{"a kubeconfig for where clouds serve credentials", func(o *object) {
			o.Spec.Signer = &model.InstanceSigner{Kubeconfig: `{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], ` +
				`clusters: [{name: c, cluster: {server: "https://169.254.169.254"}}], users: [{name: u, user: {token: sesame}}]}`}
		}, []string{"spec.signer.kubeconfig"}},
		{"an authority that is expired", func(o *object) { o.Spec.Signer = pair(expired, expiredKey) }, []string{ca + ".certData"}},
		{"no authority", func(o *object) { o.Spec.Signer = pair(leaf, leafKey) }, []string{ca + ".certData"}},
		{"the key of another authority", func(o *object) { o.Spec.Signer.CA.KeyData = another }, []string{ca + ".keyData"}},
		{"an authority without its key", func(o *object) { o.Spec.Signer.CA.KeyData = nil }, []string{ca + ".keyData"}},
		{"no duration", func(o *object) { o.Spec.Signer.CertificateDuration = &metav1.Duration{} }, []string{"spec.signer.certificateDuration"}},
		{"its key in an annotation", func(o *object) {
			o.Annotations = map[string]string{"a": "x" + base64.StdEncoding.EncodeToString(o.Spec.Signer.CA.KeyData)}
		}, []string{ca + ".keyData"}},
		{"its key in the description", func(o *object) { o.Spec.Description = string(o.Spec.Signer.CA.KeyData) }, []string{ca + ".keyData"}},
		{"all at once", func(o *object) {
			o.Spec.Owner.Team, o.Spec.AccessPoint.Ingress.Host, o.Spec.Signer = "a", "", pair(expired, another)
		}, []string{"spec.owner.team", "spec.accessPoint.ingress.host", ca + ".certData", ca + ".keyData"}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			instance := instancetest.Instance(t, "dev")
			row.change(instance)
			key := ""
			if at := instance.Spec.Signer; at != nil && at.CA != nil {
				key = string(at.CA.KeyData)
			}
			_, err := resource.Create(t.Context(), w.Instances, resource.CreateInput[*object]{
				Caller: instancetest.Admin, Namespace: instance.Namespace, Object: instance, DryRun: true,
			})
			if got := fields(err); !slices.Equal(got, row.fields) || err != nil && accesskeytest.Code(err) != 422 {
				t.Errorf("fields %q, %v", got, err)
			}
			if err != nil && key != "" && strings.Contains(err.Error(), key[60:100]) {
				t.Errorf("it quotes: %v", err)
			}
		})
	}
}

// Source: ADR-0017.
func TestAccess(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	given := instancetest.Instance(t, "dev")
	team := func(name string) identity.Caller {
		return identity.New(identity.Owner{Kind: identity.User, Name: "x"}, []string{"platform:team:" + name})
	}
	user := func(name string) identity.Caller {
		return identity.New(identity.Owner{Kind: identity.User, Name: name}, nil)
	}
	given.Spec.Access = []model.InstanceAccess{
		{Verbs: []string{"use"}, Users: []string{"usa"}, Teams: []string{"users"}},
		{Verbs: []string{"update"}, Users: []string{"upa"}},
		{Verbs: []string{"delete"}, Users: []string{"dela"}},
		{Verbs: []string{"*"}, Teams: []string{"ops"}},
	}
	w.Seed(t, given)
	w.Seed(t, instancetest.Instance(t, "other"))
	for _, row := range []struct {
		about                             string
		caller                            identity.Caller
		seen                              int
		use, update, changeAccess, delete bool
	}{
		{"the owner", instancetest.Ana, 2, true, true, true, true},
		{"an admin", instancetest.Admin, 2, true, true, true, true},
		{"a user who may use", user("usa"), 1, true, false, false, false},
		{"a team that may use", team("users"), 1, true, false, false, false},
		{"the team itself", identity.New(identity.Owner{Kind: identity.Team, Name: "users"}, nil), 1, true, false, false, false},
		{"a user who may update", user("upa"), 1, false, true, false, false},
		{"a user who may delete", user("dela"), 1, false, false, false, true},
		{"a team that may do all", team("ops"), 1, true, true, true, true},
		{"a stranger", instancetest.Ben, 0, false, false, false, false},
		{"a subject of the owner's name", identity.New(identity.Owner{Kind: identity.Subject, Name: "ana"}, nil), 0, false, false, false, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			code := func(allowed bool) int32 {
				switch {
				case allowed:
					return 0
				case row.seen == 0:
					return 404
				default:
					return 403
				}
			}
			list, err := resource.List(t.Context(), w.Instances, resource.ListInput{Caller: row.caller, Limit: 10})
			if err != nil || meta.LenList(list) != row.seen {
				t.Errorf("sees %d, %v", meta.LenList(list), err)
			}
			watcher, err := resource.Watch(t.Context(), w.Instances, resource.WatchInput{Caller: row.caller})
			if err != nil {
				t.Fatal(err)
			}
			if events, err := watcher.Next(t.Context(), 0); err != nil || len(events) != row.seen {
				t.Errorf("watches %d, %v", len(events), err)
			}
			got, err := resource.Get(t.Context(), w.Instances, resource.GetInput{Caller: row.caller, Namespace: "p-shop", Name: "dev"})
			if accesskeytest.Code(err) != code(row.seen > 0) {
				t.Errorf("get: %v", err)
			}
			if err == nil && (w.Instances.Admit(row.caller, "create", instance.Kubeconfig, got) == nil) != row.use {
				t.Errorf("use: %v", !row.use)
			}
			patch := func(text string) int32 {
				_, err := resource.Patch(t.Context(), w.Instances, resource.PatchInput{
					Caller: row.caller, Namespace: "p-shop", Name: "dev", Type: resource.MergePatch, Patch: []byte(text), DryRun: true,
				})
				return accesskeytest.Code(err)
			}
			if got := patch(`{"spec":{"displayName":"x"}}`); got != code(row.update) {
				t.Errorf("update: %d", got)
			}
			if got := patch(`{"spec":{"access":[]}}`); got != code(row.changeAccess) {
				t.Errorf("changing access: %d", got)
			}
			// Only an admin may set another owner, whose quota then counts the instance.
			if got := patch(`{"spec":{"owner":{"user":"upa"}}}`); got != code(row.changeAccess && row.caller.Admin()) {
				t.Errorf("changing the owner: %d", got)
			}
			_, err = resource.Delete(t.Context(), w.Instances, resource.DeleteInput{Caller: row.caller, Namespace: "p-shop", Name: "dev", DryRun: true})
			if accesskeytest.Code(err) != code(row.delete) {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

// A list does not tell callers how many instances remain that they do not see.
func TestRemainingIsNotTold(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	for i := range 5 {
		w.Seed(t, instancetest.Instance(t, fmt.Sprintf("dev-%d", i)))
	}
	for caller, want := range map[string]bool{"ana": false, "admin": true} {
		who := instancetest.Ana
		if caller == "admin" {
			who = instancetest.Admin
		}
		list, err := resource.List(t.Context(), w.Instances, resource.ListInput{Caller: who, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := list.(*model.VirtualClusterInstanceList); len(got.Items) != 2 || got.Continue == "" || (got.RemainingItemCount != nil) != want {
			t.Errorf("%s: %d, remaining %v", caller, len(got.Items), got.RemainingItemCount)
		}
	}
}

// Lists and watches select instances by these fields. Source: Spec 2.6; ADR-0017.
func TestSelectors(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	other := instancetest.Instance(t, "other")
	other.Spec = model.VirtualClusterInstanceSpec{
		Owner: &model.InstanceOwner{Team: "core"}, ClusterRef: &model.InstanceClusterRef{Cluster: "eu", Namespace: "vc", VirtualCluster: "other"},
	}
	w.Seed(t, other)
	for text, want := range map[string]string{
		"metadata.namespace=p-shop": "dev other", "metadata.namespace=p-other": "", "spec.owner.user=ana": "dev", "spec.owner.team=core": "other",
		"spec.clusterRef.cluster=eu": "other", "status.phase=Ready": "dev", "status.phase=Pending": "other", "spec.owner.user!=ana": "other",
	} {
		selector, err := fieldselectors.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		list, err := resource.List(t.Context(), w.Instances, resource.ListInput{Caller: instancetest.Admin, Fields: selector})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var listed, watched []string
		for _, item := range list.(*model.VirtualClusterInstanceList).Items {
			listed = append(listed, item.Name)
		}
		watcher, err := resource.Watch(t.Context(), w.Instances, resource.WatchInput{Caller: instancetest.Admin, Fields: selector})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		events, err := watcher.Next(t.Context(), 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, event := range events {
			shown, err := event.Object()
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			watched = append(watched, shown.Name)
		}
		if strings.Join(listed, " ") != want || strings.Join(watched, " ") != want {
			t.Errorf("%s: listed %q, watched %q, want %q", text, listed, watched, want)
		}
	}
}

// A collection contains the instances that a caller may see in the namespace. An instance that the caller may only use stops the
// deletion of the collection. Source: Spec 3; ADR-0009, ADR-0017.
func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	for _, name := range []string{"one", "two"} {
		given := instancetest.Instance(t, name)
		given.Labels = map[string]string{"name": name}
		given.Spec.Access = []model.InstanceAccess{{Verbs: []string{"use"}, Users: []string{"ben"}}}
		w.Seed(t, given)
	}
	for _, row := range []struct {
		about     string
		caller    identity.Caller
		namespace string
		selector  string
		code      int32
		left      int
	}{
		{"another project's", instancetest.Ana, "p-other", "", 0, 2},
		{"of one who may use them", instancetest.Ben, "p-shop", "", 403, 2},
		{"those that are selected", instancetest.Ana, "p-shop", "name=one", 0, 1},
		{"all", instancetest.Ana, "p-shop", "", 0, 0},
	} {
		selector, err := labels.Parse(row.selector)
		if err != nil {
			t.Fatal(err)
		}
		_, err = resource.Delete(t.Context(), w.Instances, resource.DeleteInput{
			Caller: row.caller, Namespace: row.namespace,
			Selection: &resource.ListInput{Caller: row.caller, Namespace: row.namespace, Labels: selector},
		})
		if accesskeytest.Code(err) != row.code {
			t.Errorf("%s: %v", row.about, err)
		}
		list, err := resource.List(t.Context(), w.Instances, resource.ListInput{Caller: instancetest.Ana})
		if err != nil || meta.LenList(list) != row.left {
			t.Errorf("%s: %d are left, want %d (%v)", row.about, meta.LenList(list), row.left, err)
		}
	}
}

// stored returns the instance as the state has it.
func stored(t *testing.T, w *instancetest.World) (*object, string) {
	t.Helper()
	record, err := w.Instances.Store.Get(t.Context(), "p-shop/dev")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := w.Instances.Parse(record)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, string(record.Object)
}

// After a change of the encryption key, any write seals the stored material with the new key. Source: ADR-0018.
func TestNewEncryptionKey(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	old, young := encryption.Generate(), encryption.Generate()
	use := func(keys ...string) {
		t.Helper()
		ring, err := encryption.Parse(secret.String(strings.Join(keys, ",")))
		if err != nil {
			t.Fatal(err)
		}
		w.Ring = ring
	}
	use(old.Reveal())
	given := instancetest.Instance(t, "dev")
	w.Seed(t, given)
	use(young.Reveal(), old.Reveal())
	if _, err := resource.Patch(t.Context(), w.Instances, resource.PatchInput{
		Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Type: resource.MergePatch, Patch: []byte(`{"metadata":{"labels":{"a":"b"}}}`), Manager: "m",
	}); err != nil {
		t.Fatal(err)
	}
	use(young.Reveal())
	parsed, _ := stored(t, w)
	if got, err := instance.OpenMaterial(parsed, w.Ring); err != nil || string(got.Key) != string(given.Spec.Signer.CA.KeyData) {
		t.Errorf("%d bytes, %v", len(got.Key), err)
	}
}

// The material is sealed in the state and absent from every response. Requests without it keep it, requests with it change it,
// and signer type None removes it. Source: ADR-0017, ADR-0018.
func TestMaterial(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	w.Instances = w.Instances.WithFieldManager(fieldmanager.New)
	given := instancetest.Instance(t, "dev")
	pair := *given.Spec.Signer.CA
	manifest, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	given.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(manifest)}
	line := strings.Split(string(pair.KeyData), "\n")[1]
	encoded := base64.StdEncoding.EncodeToString(pair.KeyData)
	hidden := func(what string, value any) {
		t.Helper()
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		all := string(text) + fmt.Sprintf("%+v %#v", value, value)
		for _, word := range []string{line, encoded[40:80], "keyData", "certData"} {
			if strings.Contains(all, word) {
				t.Errorf("%s: %q is in %s", what, word, all)
			}
		}
	}
	material := func(about string, want model.InstanceSignerCA, kubeconfig string) {
		t.Helper()
		parsed, text := stored(t, w)
		if strings.Contains(text, line) || strings.Contains(text, encoded[40:80]) {
			t.Errorf("%s: the state holds it in clear", about)
		}
		got, err := instance.OpenMaterial(parsed, w.Ring)
		if err != nil || string(got.Certificate) != string(want.CertData) || string(got.Key) != string(want.KeyData) || got.Kubeconfig.Reveal() != kubeconfig {
			t.Errorf("%s: %d and %d bytes, %v", about, len(got.Certificate), len(got.Key), err)
		}
	}
	created := w.Seed(t, given)
	hidden("created", created)
	material("created", pair, "")
	if created.Spec.Signer.Type != "CA" || created.Generation != 1 {
		t.Errorf("%+v", created.Spec.Signer)
	}
	if text := created.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; !strings.Contains(text, "example.com") {
		t.Errorf("the manifest is gone: %q", text)
	}
	patch := func(text string) *object {
		t.Helper()
		result, err := resource.Patch(t.Context(), w.Instances, resource.PatchInput{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Type: resource.MergePatch, Patch: []byte(text), Manager: "m",
		})
		if err != nil {
			t.Fatal(err)
		}
		hidden("patched", result.Object)
		return result.Object
	}
	update := func(change func(*object)) *object {
		t.Helper()
		got, err := resource.Get(t.Context(), w.Instances, resource.GetInput{Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev"})
		if err != nil {
			t.Fatal(err)
		}
		hidden("read", got)
		change(got)
		result, err := resource.Update(t.Context(), w.Instances, resource.UpdateInput[*object]{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Object: got, Manager: "m",
		})
		if err != nil {
			t.Fatal(err)
		}
		hidden("updated", result.Object)
		return result.Object
	}
	apply := func(text string) *object {
		t.Helper()
		result, err := resource.Patch(t.Context(), w.Instances, resource.PatchInput{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Type: resource.ApplyPatch, Manager: "applier", Force: true,
			Patch: []byte(`{"apiVersion":"management.platform.sh/v1","kind":"VirtualClusterInstance",` + text + `}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		hidden("applied", result.Object)
		return result.Object
	}
	given64 := fmt.Sprintf(`{"ca":{"certData":%q,"keyData":%q}}`, base64.StdEncoding.EncodeToString(pair.CertData), encoded)

	patch(`{"spec":{"displayName":"a"}}`)
	material("a patch of something else", pair, "")
	update(func(o *object) { o.Spec.Signer, o.Spec.DisplayName = nil, "b" })
	material("a PUT without a signer", pair, "")
	update(func(o *object) {
		o.Spec.Signer = &model.InstanceSigner{CertificateDuration: &metav1.Duration{Duration: time.Hour}}
	})
	material("a PUT with a signer without material", pair, "")
	before := update(func(*object) {})
	if same := patch(`{"spec":{"signer":` + given64 + `}}`); same.ResourceVersion != before.ResourceVersion || same.Generation != before.Generation {
		t.Errorf("the same material again is a change: %s, %s", before.ResourceVersion, same.ResourceVersion)
	}
	applied := apply(`"spec":{"displayName":"c","signer":` + given64 + `}`)
	material("applied", pair, "")
	for _, entry := range applied.ManagedFields {
		if text := string(entry.FieldsV1.GetRawBytes()); strings.Contains(text, "f:ca\"") || strings.Contains(text, "f:kubeconfig") {
			t.Errorf("%s owns the material: %s", entry.Manager, text)
		}
	}
	apply(`"spec":{"displayName":"d"}`)
	material("applied without it", pair, "")
	otherCertificate, otherKey := clustercatest.Authority(t, nil)
	other := model.InstanceSignerCA{CertData: otherCertificate, KeyData: otherKey}
	changed := update(func(o *object) { o.Spec.Signer.CA = other.DeepCopy() })
	material("another authority", other, "")
	if changed.Generation == applied.Generation {
		t.Error("another authority is no change of the spec")
	}
	const config = `{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], ` +
		`clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: sesame-open-0123456789}}]}`
	asked := update(func(o *object) { o.Spec.Signer = &model.InstanceSigner{Kubeconfig: secret.WriteOnly(config)} })
	material("a kubeconfig in its place", model.InstanceSignerCA{}, config)
	if asked.Spec.Signer.Type != "Kubeconfig" {
		t.Errorf("%+v", asked.Spec.Signer)
	}
	patch(`{"spec":{"signer":{"type":"None"}}}`)
	material("none", model.InstanceSignerCA{}, "")
	if _, text := stored(t, w); strings.Contains(text, "kubeconfig\":") || strings.Contains(text, "keyData") {
		t.Errorf("something is left: %s", text)
	}
	// If the type is absent, it follows from the material, as for a new instance.
	patch(`{"spec":{"signer":{"ca":{"certData":"` + base64.StdEncoding.EncodeToString(pair.CertData) + `","keyData":"` + encoded + `"}}}}`)
	material("an authority again", pair, "")
	if followed := patch(`{"spec":{"signer":{"kubeconfig":` + strconv.Quote(config) + `}}}`); followed.Spec.Signer.Type != "Kubeconfig" {
		t.Errorf("%+v", followed.Spec.Signer)
	}
	material("a kubeconfig again", model.InstanceSignerCA{}, config)
}

// Material of another instance cannot be opened for this one. Without the key, opening fails with an error.
func TestMaterialElsewhere(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	w.Seed(t, instancetest.Instance(t, "dev"))
	parsed, _ := stored(t, w)
	moved := parsed.DeepCopy()
	moved.Name = "other"
	if material, err := instance.OpenMaterial(moved, w.Ring); err == nil || len(material.Key) > 0 {
		t.Error("it opens elsewhere")
	}
	ring, err := encryption.Parse(encryption.Generate())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := instance.OpenMaterial(parsed, ring); err == nil {
		t.Error("it opens with another key")
	}
	w.Ring = nil
	_, err = resource.Create(t.Context(), w.Instances, resource.CreateInput[*object]{
		Caller: instancetest.Admin, Namespace: "p-shop", Object: instancetest.Instance(t, "new"),
	})
	if got := fields(err); accesskeytest.Code(err) != 422 || !slices.Equal(got, []string{"spec.signer"}) {
		t.Errorf("without a key: %v", err)
	}
}

// In its last 30 days, the table says when the certificate authority of the signer ends: the phase is about the endpoint alone.
func TestSignerColumn(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	column := slices.IndexFunc(instance.Definition.Columns, func(c metav1.TableColumnDefinition) bool { return c.Name == "Signer" })
	for left, want := range map[time.Duration]string{60 * 24 * time.Hour: "CA", 72 * time.Hour: "CA, ends in 3d", -time.Hour: "CA, expired"} {
		given := instancetest.Instance(t, "dev")
		certificate, key := clustercatest.Authority(t, func(c *x509.Certificate) { c.NotAfter = instancetest.Now.Add(100 * 24 * time.Hour) })
		given.Spec.Signer = &model.InstanceSigner{CA: &model.InstanceSignerCA{CertData: certificate, KeyData: key}}
		given.Name = fmt.Sprintf("dev-%d", int(left.Hours())+100)
		created := w.Seed(t, given)
		if got := instance.Definition.Cells(created, instancetest.Now.Add(100*24*time.Hour-left))[column]; got != want {
			t.Errorf("%s before the end: %q, want %q", left, got, want)
		}
	}
	given := instancetest.Instance(t, "none")
	given.Spec.Signer = nil
	if got := instance.Definition.Cells(w.Seed(t, given), instancetest.Now)[column]; got != "None" {
		t.Errorf("without a signer: %q", got)
	}
}

// The status follows changes of the spec. Status and spec are written separately, and each write leaves the other part unchanged.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	given := instancetest.Instance(t, "dev")
	given.Status.Phase = "Failed"
	created := w.Seed(t, given)
	ready := func(o *object, kind string) metav1.ConditionStatus {
		condition := meta.FindStatusCondition(o.Status.Conditions, kind)
		if condition == nil {
			return "absent"
		}
		return condition.Status
	}
	if created.Status.Phase != "Ready" || created.Status.Ingress.Host != "dev.example.com" ||
		ready(created, "IngressReady") != "True" || ready(created, "SignerReady") != "True" || !created.Status.SignerNotAfter.After(w.Clock) {
		t.Errorf("created: %+v", created.Status)
	}
	write := func(status bool, change func(*object)) (*object, error) {
		changed := created.DeepCopy()
		changed.ResourceVersion = ""
		change(changed)
		written, err := resource.Update(t.Context(), w.Instances, resource.UpdateInput[*object]{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Object: changed, Status: status,
		})
		return written.Object, err
	}
	both := func(o *object) {
		o.Spec.DisplayName, o.Labels, o.Status.Phase = "x", map[string]string{"a": "b"}, "Failed"
		o.Status.Ingress = &model.InstancePublishedIngress{Host: "published.example.com:8443"}
	}
	got, err := write(true, both)
	if err != nil || got.Status.Phase != "Failed" || got.Status.Ingress.Host != "published.example.com:8443" || got.Spec.DisplayName != "" || got.Labels != nil || got.Generation != 1 {
		t.Errorf("status: %+v, %v", got, err)
	}
	got, err = write(false, func(o *object) { o.Spec.DisplayName, o.Status.Phase = "y", "Pending" })
	if err != nil || got.Status.Phase != "Failed" || got.Status.Ingress.Host != "published.example.com:8443" || got.Spec.DisplayName != "y" || got.Generation != 2 {
		t.Errorf("spec: %+v, %v", got, err)
	}
	parsed, _ := stored(t, w)
	if material, err := instance.OpenMaterial(parsed, w.Ring); err != nil || len(material.Key) == 0 {
		t.Errorf("the material is gone: %v", err)
	}
	got, err = write(false, func(o *object) { o.Spec.AccessPoint, o.Spec.Signer = nil, &model.InstanceSigner{Type: "None"} })
	if err != nil || got.Status.Phase != "Pending" || got.Status.Ingress != nil || ready(got, "IngressReady") != "False" || ready(got, "SignerReady") != "False" ||
		got.Status.SignerNotAfter != nil {
		t.Errorf("without endpoint and signer: %+v, %v", got.Status, err)
	}
	_, err = write(true, func(o *object) {
		o.Status.Phase, o.Status.Ingress = "Other", &model.InstancePublishedIngress{Host: "a/b"}
		o.Status.Conditions = []metav1.Condition{{Type: "x"}}
	})
	if got := fields(err); accesskeytest.Code(err) != 422 || !slices.Contains(got, "status.phase") || !slices.Contains(got, "status.ingress.host") || !slices.Contains(got, "status.conditions[0].status") {
		t.Errorf("a bad status: %v", err)
	}
}

// The owners of status fields are recorded. The status of an existing instance can be applied without spec and metadata.
// The apply does not remove fields without an owner. Source: Spec 2.2; ADR-0008, ADR-0017.
func TestStatusOwners(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	w.Instances = w.Instances.WithFieldManager(fieldmanager.New)
	created := w.Seed(t, instancetest.Instance(t, "dev"))
	owners := func(o *object) map[string]string {
		found := map[string]string{}
		for _, entry := range o.ManagedFields {
			if entry.Subresource == "status" {
				found[entry.Manager+" "+string(entry.Operation)] = entry.FieldsV1.String()
			}
		}
		return found
	}
	changed := created.DeepCopy()
	changed.Status.Phase, changed.Spec.DisplayName = "Failed", "other"
	result, err := resource.Update(t.Context(), w.Instances, resource.UpdateInput[*object]{
		Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Object: changed, Manager: "ctl", Status: true,
	})
	if got := owners(result.Object); err != nil || len(got) != 1 || !strings.Contains(got["ctl Update"], `{"f:status":{"f:phase":{}}}`) {
		t.Fatalf("%v, %v", got, err)
	}
	apply := func(name, manager string, force bool, status string) (*object, error) {
		written, err := resource.Patch(t.Context(), w.Instances, resource.PatchInput{
			Caller: instancetest.Ana, Namespace: "p-shop", Name: name, Status: true, Type: resource.ApplyPatch, Manager: manager, Force: force,
			Patch: fmt.Appendf(nil, `{"apiVersion":"management.platform.sh/v1","kind":"VirtualClusterInstance","metadata":{"name":%q,"labels":{"a":"b"}},`+
				`"spec":{"displayName":"other"},"status":%s}`, name, status),
		})
		return written.Object, err
	}
	conditions := func(o *object) []string {
		var kinds []string
		for _, condition := range o.Status.Conditions {
			kinds = append(kinds, condition.Type)
		}
		return kinds
	}
	const observed = `{"phase":"Ready","conditions":[{"type":"Synced","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
	if _, err := apply("dev", "gitops", false, observed); accesskeytest.Code(err) != 409 || !slices.Equal(fields(err), []string{".status.phase"}) {
		t.Errorf("over another's field: %v", err)
	}
	got, err := apply("dev", "gitops", true, observed)
	if err != nil {
		t.Fatal(err)
	}
	if has := owners(got); len(has) != 1 || !strings.Contains(has["gitops Apply"], "Synced") || got.Status.Phase != "Ready" ||
		got.Spec.DisplayName != created.Spec.DisplayName || got.Labels != nil || got.Generation != created.Generation {
		t.Errorf("forced: %+v, %v", got, has)
	}
	if want := []string{"IngressReady", "SignerReady", "Synced"}; !slices.Equal(conditions(got), want) {
		t.Errorf("%v, want %v", conditions(got), want)
	}
	got, err = apply("dev", "gitops", false, `{}`)
	if want := []string{"IngressReady", "SignerReady"}; err != nil || !slices.Equal(conditions(got), want) || got.Status.Phase != "" || got.Status.Ingress == nil {
		t.Errorf("let go of: %+v, %v", got, err)
	}
	// A write of the status does not change other entries: each stays, with its time.
	before := got.DeepCopy()
	if len(before.ManagedFields) == 0 {
		t.Fatal("nobody owns anything")
	}
	w.Clock = w.Clock.Add(time.Hour)
	forgetful := got.DeepCopy()
	forgetful.ManagedFields, forgetful.Status.Phase = []metav1.ManagedFieldsEntry{}, "Pending"
	result, err = resource.Update(t.Context(), w.Instances, resource.UpdateInput[*object]{
		Caller: instancetest.Ana, Namespace: "p-shop", Name: "dev", Object: forgetful, Manager: "ctl", Status: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range before.ManagedFields {
		if !slices.ContainsFunc(result.Object.ManagedFields, func(kept metav1.ManagedFieldsEntry) bool {
			return kept.Manager == entry.Manager && kept.Subresource == entry.Subresource && kept.Time.Equal(entry.Time)
		}) {
			t.Errorf("%s %s is not in %v", entry.Manager, entry.Time, result.Object.ManagedFields)
		}
	}
	if _, err := apply("absent", "gitops", false, observed); accesskeytest.Code(err) != 404 {
		t.Errorf("the status of nothing: %v", err)
	}
}

// A role in the project of an instance gives its rights there. A role in another project gives nothing. Source: ADR-0037.
func TestProjectRoles(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	stored := w.Seed(t, instancetest.Instance(t, "dev"))
	rules := w.Instances.Strategy
	cleo := identity.Owner{Kind: identity.User, Name: "cleo"}
	for _, row := range []struct {
		project, role              string
		sees, renders, updates, up bool
	}{
		{"shop", "", false, false, false, false},
		{"shop", model.ProjectRoleView, true, false, false, false},
		{"shop", model.ProjectRoleUse, true, true, false, false},
		{"shop", model.ProjectRoleAdmin, true, true, true, true},
		{"web", model.ProjectRoleAdmin, false, false, false, false},
		{"", model.ProjectRoleAdmin, false, false, false, false},
	} {
		caller := identity.New(cleo, nil)
		caller.Roles = map[string]string{row.project: row.role}
		if got := rules.Visibility.Sees(caller, stored); got.Allowed != row.sees {
			t.Errorf("%q in %q sees it: %v", row.role, row.project, got)
		}
		if got := rules.Permissions.Permits(caller, "create", instance.Kubeconfig, stored); got.Allowed != row.renders {
			t.Errorf("%q in %q renders a kubeconfig: %v", row.role, row.project, got)
		}
		for _, verb := range []string{"update", "patch", "delete"} {
			if got := rules.Permissions.Permits(caller, verb, "", stored); got.Allowed != row.updates {
				t.Errorf("%q in %q may %s it: %v", row.role, row.project, verb, got)
			}
		}
		moved := stored.DeepCopy()
		moved.Spec.AccessPoint.Ingress.Host = "other.example.com"
		if refused := w.Instances.Rules.Authorize(caller, moved, stored); (len(refused) == 0) != row.up {
			t.Errorf("%q in %q moves the endpoint: %v", row.role, row.project, refused)
		}
	}
}

// An admin of a project creates instances for themselves, for a team of theirs or without an owner. An instance without an owner
// counts for the quota of the project. Source: ADR-0037.
func TestOwnersOfNewInstances(t *testing.T) {
	t.Parallel()
	w := instancetest.New(t)
	caller := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.TeamPrefix + "web"})
	caller.Roles = map[string]string{"shop": model.ProjectRoleAdmin}
	for _, row := range []struct {
		owner *model.InstanceOwner
		want  []string
		index string
	}{
		{nil, nil, "project:shop"},
		{&model.InstanceOwner{User: "ana"}, nil, "user:ana"},
		{&model.InstanceOwner{Team: "web"}, nil, "team:web"},
		{&model.InstanceOwner{User: "ben"}, []string{"spec.owner"}, "user:ben"},
		{&model.InstanceOwner{Team: "ops"}, []string{"spec.owner"}, "team:ops"},
	} {
		instance := instancetest.Instance(t, "new")
		instance.Spec.Owner = row.owner
		var got []string
		grants := w.Instances.Rules.Grants(instance)
		for _, problem := range auth.ExceededGrants(caller, grants, nil) {
			got = append(got, problem.Field)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%+v: refused %q, want %q", row.owner, got, row.want)
		}
		if refused := auth.ExceededGrants(instancetest.Admin, grants, nil); len(refused) > 0 {
			t.Errorf("%+v: an admin of the platform is refused %v", row.owner, refused)
		}
		if owner, _ := w.Instances.Rules.Index(instance, time.Time{}); owner != row.index {
			t.Errorf("%+v: the owner in the index is %q, want %q", row.owner, owner, row.index)
		}
	}
}
