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
	{Name: "Signer", Type: "string", Description: "Who signs client certificates, and when that ends if it is soon."},
	{Name: "Owner", Type: "string", Description: "User or team that may do everything with it."},
	{Name: "Age", Type: "string", Description: "Time since it was registered."},
	{Name: "Display Name", Type: "string", Priority: 1, Description: "Name shown in the UI."},
	{Name: "Cluster", Type: "string", Priority: 1, Description: "Connected cluster that it runs on."},
	{Name: "Description", Type: "string", Priority: 1, Description: "Free text."},
}

func cells(instance *model.VirtualClusterInstance, now time.Time) []any {
	endpoint, owner, cluster := "<none>", "<none>", "<none>"
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
	return []any{
		instance.Name, instance.Status.Phase, endpoint, signerText(instance, now), owner, resource.Age(instance, now),
		instance.Spec.DisplayName, cluster, instance.Spec.Description,
	}
}

// SignerEndingPeriod is how long before its end the table and the console say when a signer ends: its successor takes time to make. It is
// whole days.
const SignerEndingPeriod = 30 * 24 * time.Hour

// signerText returns the type of the signer and, in the last days of its certificate authority, when it ends.
func signerText(instance *model.VirtualClusterInstance, now time.Time) string {
	text, end := signerType(instance), instance.Status.SignerNotAfter
	switch {
	case end == nil || end.Sub(now) > SignerEndingPeriod:
		return text
	case !now.Before(end.Time):
		return text + ", expired"
	default:
		return text + ", ends " + resource.Expires(end, now)
	}
}
