package evaluation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// columns are the columns of a Table of an evaluation. A priority above 0 is for -o wide. Source: ADR-0004.
var columns = []metav1.TableColumnDefinition{
	{Name: "Patch", Type: "integer", Description: "Index of the patch in the list, from 0."},
	{Name: "Path", Type: "string", Description: "Concrete path of the value, or the path of the patch if nothing matched."},
	{Name: "Outcome", Type: "string", Description: "What the patch did to the value."},
	{Name: "Reason", Type: "string", Description: "Why the value was not changed."},
	{Name: "Before", Type: "string", Priority: 1, Description: "Value before the patch, as JSON."},
	{Name: "After", Type: "string", Priority: 1, Description: "Value after the patch, as JSON."},
}

// Table returns an evaluation with a row for each match of each patch, in the order of the trace. Source: ADR-0004.
func Table(object runtime.Object, include metav1.IncludeObjectPolicy) (*metav1.Table, error) {
	evaluation, ok := object.(*model.SyncPatchEvaluation)
	if !ok {
		return nil, fmt.Errorf("printing an evaluation: unexpected type %T", object)
	}
	table := &metav1.Table{ColumnDefinitions: columns, Rows: []metav1.TableRow{}}
	for _, patch := range evaluation.Status.Patches {
		for _, match := range patch.Matches {
			table.Rows = append(table.Rows, resource.Row(evaluation, include,
				patch.Index, match.Path, match.Outcome, match.Reason, text(match.Before), text(match.After)))
		}
	}
	return table, nil
}

func text(value *model.JSON) string {
	if value == nil {
		return ""
	}
	return string(value.Raw)
}
