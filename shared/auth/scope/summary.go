package scope

import (
	"fmt"
	"strings"

	"management.platform.sh/shared/model"
)

// Summary names the entries of a scope on one line, for tables: "<all>" for nil, "<none>" for a scope without entries.
func Summary(scope *model.Scope) string {
	if scope == nil {
		return "<all>"
	}
	parts := entryNames(scope)
	if len(parts) == 0 {
		return "<none>"
	}
	if scope.ReadOnly {
		parts = append(parts, "readonly")
	}
	return strings.Join(parts, ",")
}

// briefCharacters is the longest entry that Brief prints in full.
const briefCharacters = 28

// Brief names the first entry of a scope and the number of its other entries, for tables that must stay narrow.
func Brief(scope *model.Scope) string {
	if scope == nil {
		return Summary(scope)
	}
	parts := entryNames(scope)
	if len(parts) == 0 {
		return Summary(scope)
	}
	first := parts[0]
	if characters := []rune(first); len(characters) > briefCharacters {
		first = string(characters[:briefCharacters-1]) + "…"
	}
	if scope.ReadOnly {
		first += ",readonly"
	}
	if len(parts) > 1 {
		first += fmt.Sprintf(" +%d", len(parts)-1)
	}
	return first
}

// entryNames returns the names of the entries of a scope. All rules together have one name.
func entryNames(scope *model.Scope) []string {
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
	return parts
}
