package trustrule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0036.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the trust rule."},
	{Name: "Issuer", Type: "string", Description: "Issuer of the tokens."},
	{Name: "Owner", Type: "string", Description: "User or team that the access keys act as."},
	{Name: "TTL", Type: "string", Description: "Lifetime of an access key."},
	{Name: "Disabled", Type: "boolean", Description: "Whether the rule accepts no token."},
	{Name: "Display Name", Type: "string", Priority: 1, Description: "Name shown in the UI."},
	{Name: "Age", Type: "string", Description: "Time since the trust rule was created."},
}

func cells(rule *model.TrustRule, now time.Time) []any {
	return []any{
		rule.Name, rule.Spec.Issuer, Owner(rule).String(), duration.HumanDuration(TTL(rule)), rule.Spec.Disabled, rule.Spec.DisplayName, resource.Age(rule, now),
	}
}
