package vcluster

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/loft-sh/vcluster/pkg/config"
	"github.com/loft-sh/vcluster/pkg/mappings/resources"
	"github.com/loft-sh/vcluster/pkg/syncer/synccontext"
	"github.com/loft-sh/vcluster/pkg/util/translate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var update = flag.Bool("update", false, "write the vectors")

// file has the vectors, one a line.
const file = "../../shared/syncpatch/testdata/vcluster.jsonl"

// vector is one name, or one set of labels, with its translation.
type vector struct {
	// Form is the kind of the translation: the name of a referent, labels to the host, labels to the tenant cluster, or the keys of matchLabels
	// to the host.
	Form           string `json:"form"`
	VirtualCluster string `json:"virtualCluster"`
	HostNamespace  string `json:"hostNamespace"`
	// APIVersion, Kind and Name identify a referent.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Name       string `json:"name,omitempty"`
	// Namespace is the namespace of the referent, or of the object with the labels. Empty: the object is cluster-scoped.
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Want is the name on the host, and WantLabels are the labels on the other side.
	Want       string            `json:"want,omitempty"`
	WantLabels map[string]string `json:"wantLabels,omitempty"`
}

// The committed vectors are the output of this version of the syncer. go test -update writes them.
func TestVectors(t *testing.T) {
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	names := 0
	for _, v := range vectors(t) {
		if err := encoder.Encode(v); err != nil {
			t.Fatal(err)
		}
		if v.Form == "name" {
			names++
		}
	}
	if names != 1000 {
		t.Errorf("there are %d names", names)
	}
	if *update {
		if err := os.WriteFile(file, made.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.SplitAfter(made.String(), "\n"), strings.SplitAfter(string(committed), "\n")
	if len(want) != len(got) {
		t.Fatalf("%s has %d lines, want %d; go test -update writes them", file, len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("%s:%d: %swant: %s", file, i+1, got[i], want[i])
		}
	}
}

// vectors makes all vectors. They are the same in each run.
func vectors(t *testing.T) []vector {
	r := source{rand.New(rand.NewPCG(48, 0))}
	var all []vector
	for _, v := range edges() {
		all = append(all, v.name(t))
	}
	all = append(all, randomNames(t, r, 1000-len(all))...)
	for range 100 {
		all = append(all, labels(r)...)
	}
	return all
}

// translator is the real translator of a virtual cluster. The whole process has only one.
func translator(virtualCluster, hostNamespace string) translate.Translator {
	translate.VClusterName = virtualCluster
	translate.Default = translate.NewSingleNamespaceTranslator(hostNamespace)
	return translate.Default
}

// manager has no cluster: mappers keep its client for objects that they look up.
type manager struct{ ctrl.Manager }

func (manager) GetClient() client.Client { return nil }

// mappers create the mappers of the kinds that need no requests to a cluster, as in a syncer that writes all of these kinds to the host.
var mappers = []func(*synccontext.RegisterContext) (synccontext.Mapper, error){
	resources.CreateSecretsMapper, resources.CreateConfigMapsMapper, resources.CreateServiceMapper, resources.CreatePodsMapper,
	resources.CreateServiceAccountsMapper, resources.CreatePersistentVolumeClaimsMapper, resources.CreateEndpointsMapper,
	resources.CreateEndpointSlicesMapper, resources.CreateIngressesMapper, resources.CreateNetworkPoliciesMapper,
	resources.CreatePersistentVolumesMapper, resources.CreateStorageClassesMapper, resources.CreatePriorityClassesMapper,
	resources.CreateNodesMapper, resources.CreateNamespacesMapper,
}

// named are the other kinds, with the method of the translator that their mappers call.
var named = map[schema.GroupVersionKind]func(of translate.Translator, name, namespace string) string{
	{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"}:                 short,
	{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaimTemplate"}:         short,
	{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}:        long,
	{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent"}: clusterScoped,
	{Group: "example.com", Version: "v1", Kind: "Backup"}:                            long,
}

func short(of translate.Translator, name, namespace string) string {
	return of.HostNameShort(nil, name, namespace).Name
}

func long(of translate.Translator, name, namespace string) string {
	return of.HostName(nil, name, namespace).Name
}

func clusterScoped(of translate.Translator, name, _ string) string { return of.HostNameCluster(name) }

// kinds returns the kinds of both tables.
func kinds(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	var all []schema.GroupVersionKind
	for _, create := range mappers {
		all = append(all, mapper(t, create, "any").GroupVersionKind())
	}
	for _, kind := range []string{"ResourceClaim", "ResourceClaimTemplate", "VolumeSnapshot", "VolumeSnapshotContent", "Backup"} {
		for known := range named {
			if known.Kind == kind {
				all = append(all, known)
			}
		}
	}
	return all
}

func mapper(t *testing.T, create func(*synccontext.RegisterContext) (synccontext.Mapper, error), hostNamespace string) synccontext.Mapper {
	t.Helper()
	about := &config.VirtualClusterConfig{}
	about.HostNamespace = hostNamespace
	about.Sync.ToHost.PersistentVolumes.Enabled = true
	about.Sync.ToHost.StorageClasses.Enabled = true
	about.Sync.ToHost.PriorityClasses.Enabled = true
	m, err := create(&synccontext.RegisterContext{Context: t.Context(), Config: about, CurrentNamespace: hostNamespace, VirtualManager: manager{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// name returns the vector with the name of its referent on the host.
func (v vector) name(t *testing.T) vector {
	t.Helper()
	v.Form = "name"
	of := translator(v.VirtualCluster, v.HostNamespace)
	kind := schema.FromAPIVersionAndKind(v.APIVersion, v.Kind)
	if naming := named[kind]; naming != nil {
		v.Want = naming(of, v.Name, v.Namespace)
		return v
	}
	var object client.Object
	if v.Kind == "PersistentVolume" {
		// The mapper translates the name of a volume that it sees.
		object = &corev1.PersistentVolume{}
	}
	ctx := &synccontext.SyncContext{Context: t.Context(), CurrentNamespace: v.HostNamespace}
	for _, create := range mappers {
		if m := mapper(t, create, v.HostNamespace); m.GroupVersionKind() == kind {
			v.Want = m.VirtualToHost(ctx, types.NamespacedName{Name: v.Name, Namespace: v.Namespace}, object).Name
		}
	}
	return v
}

// edges returns names around the length at which names are cut, with a dot around the cut, and names with a special meaning.
func edges() []vector {
	var all []vector
	for _, v := range []vector{
		{APIVersion: "v1", Kind: "Service", Name: "kubernetes", Namespace: "default"},
		{APIVersion: "v1", Kind: "Service", Name: "kubernetes", Namespace: "kube-system"},
		{APIVersion: "v1", Kind: "Endpoints", Name: "kubernetes", Namespace: "default"},
		{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Name: "kubernetes", Namespace: "default"},
		{APIVersion: "v1", Kind: "Service", Name: "kube-dns", Namespace: "kube-system"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "kube-root-ca.crt", Namespace: "default"},
		{APIVersion: "v1", Kind: "Namespace", Name: "default"},
		{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: "system-cluster-critical"},
	} {
		v.VirtualCluster, v.HostNamespace = "my-vcluster", "my-vcluster-ns"
		all = append(all, v)
	}
	for length := 60; length <= 66; length++ {
		name := strings.Repeat("a", length-len("-x-b-x-c"))
		all = append(all, vector{VirtualCluster: "c", HostNamespace: "d", APIVersion: "v1", Kind: "Secret", Name: name, Namespace: "b"})
		name = strings.Repeat("a", length-len("vcluster--x-d-x-c"))
		all = append(all, vector{VirtualCluster: "c", HostNamespace: "d", APIVersion: "v1", Kind: "PersistentVolume", Name: name})
	}
	for dot := 49; dot <= 54; dot++ {
		name := strings.Repeat("a", dot) + "." + strings.Repeat("b", 20)
		all = append(all, vector{VirtualCluster: "c", HostNamespace: "d", APIVersion: "v1", Kind: "Secret", Name: name, Namespace: "b"})
		name = name[len("vcluster-"):]
		all = append(all, vector{VirtualCluster: "c", HostNamespace: "d", APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: name})
	}
	return all
}

// source makes texts at random.
type source struct{ *rand.Rand }

// label returns a DNS label of at most some bytes.
func (r source) label(most int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	text := make([]byte, 1+r.IntN(most))
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
		if i > 0 && i < len(text)-1 && r.IntN(6) == 0 {
			text[i] = '-'
		}
	}
	return string(text)
}

// subdomain returns a DNS subdomain, sometimes a long one.
func (r source) subdomain() string {
	text := r.label([]int{10, 20, 40, 63}[r.IntN(4)])
	for r.IntN(3) == 0 && len(text) < 180 {
		text += "." + r.label(40)
	}
	return text
}

func randomNames(t *testing.T, r source, count int) []vector {
	t.Helper()
	all := make([]vector, count)
	known := kinds(t)
	for i := range all {
		kind := known[r.IntN(len(known))]
		v := vector{
			VirtualCluster: r.label([]int{8, 20, 53}[r.IntN(3)]), HostNamespace: r.label([]int{8, 30, 63}[r.IntN(3)]),
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: r.subdomain(), Namespace: r.label([]int{8, 20, 63}[r.IntN(3)]),
		}
		switch kind.Kind {
		case "PersistentVolume", "StorageClass", "PriorityClass", "VolumeSnapshotContent", "Node", "Namespace":
			v.Namespace = ""
		}
		all[i] = v.name(t)
	}
	return all
}

// labels returns labels with their translation to the host and back, and the keys of a selector.
func labels(r source) []vector {
	about := vector{VirtualCluster: r.label([]int{8, 20, 53}[r.IntN(3)]), HostNamespace: r.label([]int{8, 20, 63}[r.IntN(3)])}
	of := translator(about.VirtualCluster, about.HostNamespace)
	toHost := about
	toHost.Form, toHost.Labels = "labels", map[string]string{}
	if r.IntN(4) > 0 {
		toHost.Namespace = r.label(20)
	}
	choices := []string{
		"release", translate.MarkerLabel, translate.NamespaceLabel, translate.ControllerLabel, "app", "app.kubernetes.io/name",
		"platform.sh/managed-by", translate.NamespaceLabelPrefix + "-a", translate.LabelPrefix + "-other-x-a4d451ec23",
	}
	for _, key := range choices {
		if r.IntN(2) == 0 {
			toHost.Labels[key] = r.label(20)
		}
	}
	// A selector has these keys. The translation of a key that has been translated before would depend on the order of a map.
	selector := about
	selector.Form, selector.Labels = "selector", maps.Clone(toHost.Labels)
	selector.WantLabels = translate.HostLabelSelector(&metav1.LabelSelector{MatchLabels: selector.Labels}).MatchLabels

	reserved := of.LabelsToTranslate()
	for _, key := range choices {
		if reserved[key] && r.IntN(8) == 0 {
			toHost.Labels[translate.HostLabel(key)] = "translated"
		}
	}
	toHost.WantLabels = translate.HostLabelsMap(toHost.Labels, nil, toHost.Namespace, true)

	toTenant := about
	toTenant.Form, toTenant.Labels = "labels-back", maps.Clone(toHost.WantLabels)
	for _, key := range []string{"release", translate.ControllerLabel, "added"} {
		if r.IntN(3) == 0 {
			toTenant.Labels[key] = "host"
		}
	}
	// Without the reserved keys that the tenant's object has, the result would depend on the order of a map.
	has := map[string]string{}
	for key, value := range toHost.Labels {
		if reserved[key] {
			has[key] = value
		}
	}
	toTenant.WantLabels = translate.VirtualLabelsMap(toTenant.Labels, has)
	return []vector{toHost, toTenant, selector}
}
