package project

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0037.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the project."},
	{Name: "Display Name", Type: "string", Description: "Name shown in the UI."},
	{Name: "Namespace", Type: "string", Description: "Namespace of the virtual clusters."},
	{Name: "Owner", Type: "string", Description: "User or team that owns the project."},
	{Name: "Members", Type: "integer", Description: "Number of members."},
	{Name: "Description", Type: "string", Priority: 1, Description: "Free text."},
	{Name: "Age", Type: "string", Description: "Time since the project was created."},
}

func cells(project *model.Project, now time.Time) []any {
	owner := ""
	if project.Spec.Owner != nil {
		owner = ownerOf(project).String()
	}
	return []any{
		project.Name, project.Spec.DisplayName, project.Status.Namespace, owner, int64(len(project.Spec.Members)), project.Spec.Description,
		resource.Age(project, now),
	}
}
