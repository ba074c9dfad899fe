package accesskey

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0004.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the key, unique on the platform."},
	{Name: "Owner", Type: "string", Description: "User, team or subject that the key acts as."},
	{Name: "Type", Type: "string", Description: "Who manages the key."},
	{Name: "Scope", Type: "string", Description: "What the key is narrowed to: the first entry, and how many more there are."},
	{Name: "Disabled", Type: "boolean", Description: "Whether the key is refused."},
	{Name: "Expires", Type: "string", Description: "When the key stops working."},
	{Name: "Last Activity", Type: "string", Description: "When the key was last used."},
	{Name: "Age", Type: "string", Description: "Time since the key was created."},
	{Name: "Display Name", Type: "string", Priority: 1, Description: "Name shown in the UI."},
	{Name: "All Scopes", Type: "string", Priority: 1, Description: "All entries that the key is narrowed to."},
	{Name: "Created By", Type: "string", Priority: 1, Description: "Access key that the key was made with."},
	{Name: "Description", Type: "string", Priority: 1, Description: "Free text."},
}

func cells(key *model.OwnedAccessKey, now time.Time) []any {
	return []any{
		key.Name, OwnerOf(&key.Spec).String(), key.Spec.Type, scope.Brief(key.Spec.Scope), key.Spec.Disabled,
		resource.Expires(key.Status.ExpirationTimestamp, now), ageText(key.Status.LastActivity, now), resource.Age(key, now),
		key.Spec.DisplayName, scope.Summary(key.Spec.Scope), createdBy(key).Name, key.Spec.Description,
	}
}

func ageText(at *metav1.Time, now time.Time) string {
	if at == nil {
		return "never"
	}
	return duration.HumanDuration(now.Sub(at.Time)) + " ago"
}
