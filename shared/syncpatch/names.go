package syncpatch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/syncpatch/expression"
)

// defaultClusterDomain is the domain of a cluster unless the request has another. Source: Spec 2.8 rule 3.
const defaultClusterDomain = "cluster.local"

// names translates names in a tenant cluster to names on the host. In multi-namespace mode they are equal. Source: Spec 2.8 rule 6; ADR-0013.
type names struct {
	tenant, hostNamespace, clusterDomain string
	multi                                bool
}

// names returns the translation for the tenant cluster of the request.
func (r *Request) names() names {
	return names{
		tenant: r.Context.Tenant.Name, hostNamespace: r.Context.Tenant.Namespace,
		clusterDomain: r.ClusterDomain, multi: r.NamespaceMode == model.MultiNamespace,
	}
}

// long returns the name of a synced object on the host: name, namespace and tenant, joined by `-x-`. A name of more
// than 63 characters is cut after 52, and the first 10 hex digits of the SHA-256 of the full name follow.
func (n names) long(name, namespace string) string {
	full := n.full(name, namespace)
	if len(full) <= validation.DNS1123LabelMaxLength {
		return full
	}
	digest := sha256.Sum256([]byte(full))
	// A DNS label cannot begin with `-`, as it would if the cut came after a dot.
	return strings.ReplaceAll(full[:52]+"-"+hex.EncodeToString(digest[:5]), ".-", "-")
}

// generated returns the name of a referent on the host: v and the first 13 digits, in base 36, of the
// SHA-256 of the full name. Source: Spec 2.8 rule 6.
func (n names) generated(name, namespace string) string {
	digest := sha256.Sum256([]byte(n.full(name, namespace)))
	digits := new(big.Int).SetBytes(digest[:]).Text(36)
	return "v" + digits[:min(13, len(digits))]
}

func (n names) full(name, namespace string) string {
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
	// Its parts are checked wherever they come from. The whole may still be too long.
	onHost := n.long(parts[0], parts[1]) + "." + n.hostNamespace + ".svc." + domain
	if len(validation.IsDNS1123Subdomain(onHost)) > 0 {
		return "", fmt.Errorf("virtualToHostDNS: the name on the host of %q is not a host name", service)
	}
	return onHost, nil
}

// globals returns what expressions can use in addition to the value. Source: Spec 2.8 rule 5.
func (c *Checked) globals() *expression.Globals {
	about := &c.request.Context
	config := merge(about.Tenant.Config, defaults)
	globals := &expression.Globals{
		Context: map[string]any{
			"hostObject": nil, "virtualObject": nil,
			"tenant": map[string]any{"name": about.Tenant.Name, "namespace": about.Tenant.Namespace, "config": config},
		},
		HostDNS: c.names.hostDNS,
	}
	if about.HostObject != nil {
		globals.Context["hostObject"] = about.HostObject
	}
	if about.VirtualObject != nil {
		globals.Context["virtualObject"] = about.VirtualObject
	}
	return globals
}
