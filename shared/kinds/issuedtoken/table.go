package issuedtoken

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0011.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the record."},
	{Name: "Owner", Type: "string", Description: "User, team or subject that the token acts as."},
	{Name: "Access Key", Type: "string", Description: "Access key that the token was issued to."},
	{Name: "Expires", Type: "string", Description: "When the token stops working."},
	{Name: "Age", Type: "string", Description: "Time since the token was issued."},
	{Name: "ID", Type: "string", Priority: 1, Description: "Claim jti of the token."},
	{Name: "Scope", Type: "string", Priority: 1, Description: "What the token is narrowed to."},
	{Name: "User Agent", Type: "string", Priority: 1, Description: "Client that asked for the token."},
}

func cells(token *model.DirectClusterEndpointToken, now time.Time) []any {
	return []any{
		token.Name, OwnerOf(&token.Status).String(), token.Status.AccessKey,
		resource.Expires(token.Status.ExpirationTimestamp, now), resource.Age(token, now), string(token.UID), scope.Summary(token.Spec.Scope), token.Status.UserAgent,
	}
}
