package team

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
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the team."},
	{Name: "Display Name", Type: "string", Description: "Name shown in the UI."},
	{Name: "Users", Type: "integer", Description: "Number of users that the team lists."},
	{Name: "Groups", Type: "string", Description: "Groups whose members belong to the team."},
	{Name: "Admin", Type: "boolean", Description: "Whether the members are admins of the platform."},
	{Name: "Disabled", Type: "boolean", Description: "Whether the team is taken from its members."},
	{Name: "Age", Type: "string", Description: "Time since the team was created."},
}

func cells(team *model.Team, now time.Time) []any {
	return []any{
		team.Name, team.Spec.DisplayName, int64(len(team.Spec.Users)), strings.Join(team.Spec.Groups, ","),
		directory.Admins(team.Spec.ClusterRoles), team.Spec.Disabled, resource.Age(team, now),
	}
}
