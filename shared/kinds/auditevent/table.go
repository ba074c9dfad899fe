package auditevent

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// columns are what kubectl get prints; a priority above 0 is for -o wide. Source: ADR-0034.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Place of the event in the data store."},
	{Name: "User", Type: "string", Description: "Who sent the request."},
	{Name: "Verb", Type: "string", Description: "What the request did."},
	{Name: "Target", Type: "string", Description: "Resource and object of the request, or its path."},
	{Name: "Code", Type: "integer", Description: "Status code of the response; empty before the outcome is known."},
	{Name: "Age", Type: "string", Description: "Time since the event."},
	{Name: "Stage", Type: "string", Priority: 1, Description: "Point of the request."},
	{Name: "Source", Type: "string", Priority: 1, Description: "Address of the client."},
	{Name: "User Agent", Type: "string", Priority: 1, Description: "Program of the client, as the client calls it."},
}

func cells(event *model.AuditEvent, now time.Time) []any {
	status := &event.Status
	var code any
	if status.ResponseStatus != nil {
		code = int64(status.ResponseStatus.Code)
	}
	source := ""
	if len(status.SourceIPs) > 0 {
		source = status.SourceIPs[0]
	}
	return []any{
		event.Name, status.User.Username, status.Verb, target(event), code, resource.Age(event, now), status.Stage, source, status.UserAgent,
	}
}

// target returns the object of a request as resource/name with its subresource and namespace, or the path if the request names no
// resource.
func target(event *model.AuditEvent) string {
	auditEventObject := object(event)
	if auditEventObject.Resource == "" {
		return event.Status.RequestURI
	}
	text := auditEventObject.Resource
	if auditEventObject.Name != "" {
		text += "/" + auditEventObject.Name
	}
	if auditEventObject.Subresource != "" {
		text += "/" + auditEventObject.Subresource
	}
	if auditEventObject.Namespace != "" {
		text += " in " + auditEventObject.Namespace
	}
	return text
}
