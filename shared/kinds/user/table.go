package user

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0029.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the user."},
	{Name: "Display Name", Type: "string", Description: "Name shown in the UI."},
	{Name: "Email", Type: "string", Description: "Email address of the user."},
	{Name: "Admin", Type: "boolean", Description: "Whether a cluster role of the user makes them an admin of the platform."},
	{Name: "Disabled", Type: "boolean", Description: "Whether the credentials of the user are refused."},
	{Name: "Age", Type: "string", Description: "Time since the user was created."},
	{Name: "Connector", Type: "string", Priority: 1, Description: "Connector at which the user signs in."},
	{Name: "Groups", Type: "string", Priority: 1, Description: "Groups that the platform gives the user."},
}

func cells(user *model.User, now time.Time) []any {
	return []any{
		user.Name, user.Spec.DisplayName, user.Spec.Email, directory.Admins(user.Spec.ClusterRoles), user.Spec.Disabled, resource.Age(user, now),
		user.Spec.Connector, strings.Join(user.Spec.Groups, ","),
	}
}
