package instance

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0017.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the virtual cluster, unique in its project."},
	{Name: "Phase", Type: "string", Description: "The conditions in one word."},
	{Name: "Endpoint", Type: "string", Description: "Host at which clients reach the virtual cluster."},
	{Name: "Signer", Type: "string", Description: "Who signs client certificates."},
	{Name: "Owner", Type: "string", Description: "User or team that may do everything with it."},
	{Name: "Age", Type: "string", Description: "Time since it was registered."},
	{Name: "Display Name", Type: "string", Priority: 1, Description: "Name shown in the UI."},
	{Name: "Cluster", Type: "string", Priority: 1, Description: "Connected cluster that it runs on."},
	{Name: "Description", Type: "string", Priority: 1, Description: "Free text."},
	{Name: "Signer Expires", Type: "string", Priority: 1, Description: "When the client certificate authority of the signer expires."},
}

func cells(instance *model.VirtualClusterInstance, now time.Time) []any {
	endpoint, owner, cluster, signerExpires := "<none>", "<none>", "<none>", "<none>"
	if at := instance.Status.Ingress; at != nil {
		endpoint = at.Host
	}
	if at := instance.Spec.Owner; at != nil && at.User != "" {
		owner = "user:" + at.User
	} else if at != nil && at.Team != "" {
		owner = "team:" + at.Team
	}
	if at := instance.Spec.ClusterRef; at != nil && at.Cluster != "" {
		cluster = at.Cluster
	}
	if at := instance.Status.SignerNotAfter; at != nil {
		signerExpires = resource.Expires(at, now)
	}
	return []any{
		instance.Name, instance.Status.Phase, endpoint, signerType(instance), owner, resource.Age(instance, now),
		instance.Spec.DisplayName, cluster, instance.Spec.Description, signerExpires,
	}
}
