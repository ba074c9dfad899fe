package scope

import (
	"strings"

	"management.platform.sh/shared/model"
)

// Summary names the entries of a scope on one line, for tables: "<all>" for nil, "<none>" for a scope without entries.
func Summary(scope *model.Scope) string {
	if scope == nil {
		return "<all>"
	}
	var parts []string
	for _, entry := range roleEntries(scope) {
		parts = append(parts, "role:"+entry.Role)
	}
	for _, entry := range scope.Projects {
		parts = append(parts, "project:"+entry.Project)
	}
	for _, entry := range scope.Spaces {
		parts = append(parts, "space:"+entry.Project+"/"+entry.Space)
	}
	for _, entry := range scope.VirtualClusters {
		parts = append(parts, "virtualcluster:"+entry.Project+"/"+entry.VirtualCluster)
	}
	for _, entry := range scope.Clusters {
		parts = append(parts, "cluster:"+entry.Cluster)
	}
	if len(scope.Rules) > 0 {
		parts = append(parts, "rules")
	}
	if len(parts) == 0 {
		return "<none>"
	}
	if scope.ReadOnly {
		parts = append(parts, "readonly")
	}
	return strings.Join(parts, ",")
}
