package syncpatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch/expression"
)

// defaultClusterDomain is the domain of a cluster unless the request has another. Source: Spec 2.8 rule 3.
const defaultClusterDomain = "cluster.local"

// names translates names in a tenant cluster to names on the host. In multi-namespace mode they are equal.
// Source: Spec 2.8 rule 6; ADR-0013, ADR-0048.
type names struct {
	tenant, hostNamespace, clusterDomain string
	multi                                bool
	// vcluster reports whether names follow the open syncer of vcluster.
	vcluster bool
}

// names returns the translation for the tenant cluster of the request.
func (r *Request) names() names {
	return names{
		tenant: r.Context.Tenant.Name, hostNamespace: r.Context.Tenant.Namespace,
		clusterDomain: r.ClusterDomain, multi: r.NamespaceMode == model.MultiNamespace, vcluster: r.Naming == model.NamingVCluster,
	}
}

// A form is the way in which the open syncer of vcluster names the objects of a kind on the host. Source: ADR-0048.
type form int

// The forms. Objects have a namespace in the first two.
const (
	longForm form = iota
	shortForm
	// prefixedForm is the form of cluster-scoped objects that are written to the host.
	prefixedForm
	// sameForm is the form of cluster-scoped objects that come from the host.
	sameForm
	// hostNamespaceForm is the form of namespaces, which all become one.
	hostNamespaceForm
)

// forms has the kinds without the long form.
var forms = map[schema.GroupKind]form{
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                 shortForm,
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:         shortForm,
	{Group: "", Kind: "PersistentVolume"}:                             prefixedForm,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   prefixedForm,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               prefixedForm,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotContent"}: prefixedForm,
	{Group: "", Kind: "Node"}:                                         sameForm,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                      sameForm,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                sameForm,
	{Group: "gateway.networking.k8s.io", Kind: "GatewayClass"}:        sameForm,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                   sameForm,
	{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshotClass"}:   sameForm,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                      sameForm,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                        sameForm,
	{Group: "", Kind: "Namespace"}:                                    hostNamespaceForm,
}

// serviceKind is the kind whose names virtualToHostDNS translates.
var serviceKind = schema.GroupKind{Kind: "Service"}

// apiServerKinds are the kinds of the objects with which clients find the API server.
var apiServerKinds = []schema.GroupKind{serviceKind, {Kind: "Endpoints"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}}

// form returns the form of the names of a kind on the host. Custom resources have the long form.
func (n names) form(kind schema.GroupKind) form {
	if !n.vcluster {
		return shortForm
	}
	return forms[kind]
}

// clusterScoped reports whether the objects of a kind are known to have no namespace.
func (n names) clusterScoped(kind schema.GroupKind) bool { return n.form(kind) >= prefixedForm }

// onHost returns the name of a referent on the host. It does not use the namespace of cluster-scoped kinds. Source:
// Spec 2.8 rule 6; ADR-0013, ADR-0048.
func (n names) onHost(kind schema.GroupKind, name, namespace string) string {
	switch n.form(kind) {
	case shortForm:
		return n.generatedName(name, namespace)
	case prefixedForm:
		return n.prefixedName(name)
	case sameForm:
		return name
	case hostNamespaceForm:
		return n.hostNamespace
	default:
		if isAPIServer(name, namespace) && slices.Contains(apiServerKinds, kind) {
			return n.tenant
		}
		return n.longName(name, namespace)
	}
}

// possibleNames returns the names that a referent may have on the host while its kind is not known. Names that are the same
// on both sides are not among them, and a namespace of the host stands for many.
func (n names) possibleNames(name, namespace string) []string {
	all := []string{n.generatedName(name, namespace), n.longName(name, namespace)}
	if n.vcluster {
		all = append(all, n.prefixedName(name))
		if isAPIServer(name, namespace) {
			all = append(all, n.tenant)
		}
	}
	return all
}

// isAPIServer reports whether an object of apiServerKinds belongs to the API server, which has an object of its own on
// the host.
func isAPIServer(name, namespace string) bool { return name == "kubernetes" && namespace == "default" }

// longName returns the name of a synced object on the host: name, namespace and tenant, joined by `-x-`.
func (n names) longName(name, namespace string) string { return cutName(n.fullName(name, namespace)) }

// prefixedName returns the name of a cluster-scoped object on the host.
func (n names) prefixedName(name string) string {
	return cutName("vcluster-" + name + "-x-" + n.hostNamespace + "-x-" + n.tenant)
}

// cutName returns a name of at most 63 bytes. A longer name is cut after 52 bytes, and the first 10 hex digits of the
// SHA-256 of the full name follow.
func cutName(full string) string {
	if len(full) <= validation.DNS1123LabelMaxLength {
		return full
	}
	digest := sha256.Sum256([]byte(full))
	// A DNS label cannot begin with `-`, as it would if the cut came after a dot.
	return strings.ReplaceAll(full[:52]+"-"+hex.EncodeToString(digest[:5]), ".-", "-")
}

// generatedName returns the short form of the name of a referent on the host: v and the first 13 digits, in base 36, of the
// SHA-256 of the full name. With the naming vcluster, each zero byte at the beginning of the SHA-256 is one more digit 0 at
// the beginning of the digits. Source: Spec 2.8 rule 6; ADR-0048.
func (n names) generatedName(name, namespace string) string {
	digest := sha256.Sum256([]byte(n.fullName(name, namespace)))
	digits := new(big.Int).SetBytes(digest[:]).Text(36)
	if n.vcluster {
		digits = strings.Repeat("0", len(digest)-len(bytes.TrimLeft(digest[:], "\x00"))) + digits
	}
	return "v" + digits[:min(13, len(digits))]
}

func (n names) fullName(name, namespace string) string {
	return name + "-x-" + namespace + "-x-" + n.tenant
}

// hostDNS translates `<name>.<namespace>.svc[.<domain>]` in a tenant cluster to the fully qualified name of the service
// on the host. A given domain is kept. Expressions call it as virtualToHostDNS.
// Source: Spec 2.8 rule 3; ADR-0013.
func (n names) hostDNS(service string) (string, error) {
	parts := strings.SplitN(service, ".", 4)
	shaped := len(parts) >= 3 && parts[2] == "svc" &&
		len(validation.IsDNS1123Label(parts[0])) == 0 && len(validation.IsDNS1123Label(parts[1])) == 0
	domain := n.clusterDomain
	if domain == "" {
		domain = defaultClusterDomain
	}
	if shaped && len(parts) == 4 {
		domain = parts[3]
		shaped = len(validation.IsDNS1123Subdomain(domain)) == 0
	}
	if !shaped {
		return "", fmt.Errorf("virtualToHostDNS: %q is not <name>.<namespace>.svc[.<cluster domain>]", service)
	}
	if n.multi {
		return parts[0] + "." + parts[1] + ".svc." + domain, nil
	}
	if n.tenant == "" || n.hostNamespace == "" {
		return "", errors.New("virtualToHostDNS: needs context.tenant.name and context.tenant.namespace")
	}
	name := n.longName(parts[0], parts[1])
	if n.vcluster {
		name = n.onHost(serviceKind, parts[0], parts[1])
	}
	// The parts are checked, wherever they come from. The whole name may still be too long.
	onHost := name + "." + n.hostNamespace + ".svc." + domain
	if len(validation.IsDNS1123Subdomain(onHost)) > 0 {
		return "", fmt.Errorf("virtualToHostDNS: the name on the host of %q is not a host name", service)
	}
	return onHost, nil
}

// globals returns the values that expressions can use in addition to the variable value. Source: Spec 2.8 rule 5.
func (c *Checked) globals() *expression.Globals {
	context := &c.request.Context
	config := merge(context.Tenant.Config, defaults)
	tenant := map[string]any{"name": context.Tenant.Name, "namespace": context.Tenant.Namespace, "config": config}
	globals := &expression.Globals{
		Context: map[string]any{"hostObject": nil, "virtualObject": nil, "tenant": tenant},
		HostDNS: c.names.hostDNS,
	}
	if c.names.vcluster {
		globals.Context["vcluster"] = tenant
	}
	if context.HostObject != nil {
		globals.Context["hostObject"] = context.HostObject
	}
	if context.VirtualObject != nil {
		globals.Context["virtualObject"] = context.VirtualObject
	}
	return globals
}
