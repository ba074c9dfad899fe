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

// defaultClusterDomain is the domain of a cluster that says nothing else. Source: Spec 2.8 rule 3.
const defaultClusterDomain = "cluster.local"

// names turns the names of a tenant cluster into those of the host. In multi-namespace mode they are the
// same. Source: Spec 2.8 rule 6; ADR-0013.
type names struct {
	tenant, hostNamespace, clusterDomain string
	multi                                bool
}

// names returns the names of the tenant cluster of the request.
func (r *Request) names() names {
	return names{
		tenant: r.Context.Tenant.Name, hostNamespace: r.Context.Tenant.Namespace,
		clusterDomain: r.ClusterDomain, multi: r.NamespaceMode == model.MultiNamespace,
	}
}

// long is the name of a synced object on the host: name, namespace and tenant, joined by `-x-`. Above 63
// characters it is cut at 52, and the first 10 hex digits of the SHA-256 of the whole follow.
func (n names) long(name, namespace string) string {
	full := n.full(name, namespace)
	if len(full) <= validation.DNS1123LabelMaxLength {
		return full
	}
	digest := sha256.Sum256([]byte(full))
	// A label cannot begin with `-`, as it would where the cut is behind a dot.
	return strings.ReplaceAll(full[:52]+"-"+hex.EncodeToString(digest[:5]), ".-", "-")
}

// generated is the name that references have on the host: v and the first 13 digits, in base 36, of the
// SHA-256 of the name that is not cut. Source: Spec 2.8 rule 6.
func (n names) generated(name, namespace string) string {
	digest := sha256.Sum256([]byte(n.full(name, namespace)))
	digits := new(big.Int).SetBytes(digest[:]).Text(36)
	return "v" + digits[:min(13, len(digits))]
}

func (n names) full(name, namespace string) string {
	return name + "-x-" + namespace + "-x-" + n.tenant
}

// hostDNS turns `<name>.<namespace>.svc[.<domain>]` of a tenant cluster into the name that the service has on
// the host, fully qualified. A domain that is given stays. It is virtualToHostDNS of the expressions.
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
	return n.long(parts[0], parts[1]) + "." + n.hostNamespace + ".svc." + domain, nil
}

// globals returns what expressions see beside the value. Source: Spec 2.8 rule 5.
func (c *Checked) globals() *expression.Globals {
	about := &c.request.Context
	config := about.Tenant.Config
	if config == nil {
		config = map[string]any{}
	}
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
