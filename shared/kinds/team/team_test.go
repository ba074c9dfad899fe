package team

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
)

// A refusal names the field of each mistake. Source: ADR-0029.
func TestValidate(t *testing.T) {
	t.Parallel()
	named := func(name string, count int) []string {
		var names []string
		for i := range count {
			names = append(names, fmt.Sprintf("%s-%d", name, i))
		}
		return names
	}
	for about, row := range map[string]struct {
		name   string
		owners int
		spec   model.TeamSpec
		want   []string
	}{
		"empty":            {"web", 0, model.TeamSpec{}, nil},
		"full":             {"web", 0, model.TeamSpec{DisplayName: "Web", Users: named("u", maxUsers), Groups: []string{"Web developers", "日本"}, ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}}}, nil},
		"too many users":   {"web", 0, model.TeamSpec{Users: named("u", maxUsers+1)}, []string{"spec.users"}},
		"a user twice":     {"web", 0, model.TeamSpec{Users: []string{"a", "b", "a"}}, []string{"spec.users[2]"}},
		"no names":         {"web", 0, model.TeamSpec{Users: []string{"", "A", "a b", "user:a"}}, []string{"spec.users[0]", "spec.users[1]", "spec.users[2]", "spec.users[3]"}},
		"wrong groups":     {"web", 0, model.TeamSpec{Groups: []string{"", "a", "a", "system:masters", "platform:admins", "a\nb", " "}}, []string{"spec.groups[0]", "spec.groups[2]", "spec.groups[3]", "spec.groups[4]", "spec.groups[5]", "spec.groups[6]"}},
		"an unknown role":  {"web", 0, model.TeamSpec{ClusterRoles: []model.ClusterRole{{Name: "root"}}}, []string{"spec.clusterRoles[0].name"}},
		"a role twice":     {"web", 0, model.TeamSpec{ClusterRoles: []model.ClusterRole{{Name: model.ClusterRoleAdmin}, {Name: model.ClusterRoleAdmin}}}, []string{"spec.clusterRoles[1].name"}},
		"a blank name":     {"web", 0, model.TeamSpec{DisplayName: " "}, []string{"spec.displayName"}},
		"a long name":      {"web", 0, model.TeamSpec{DisplayName: strings.Repeat("a", 1<<12)}, []string{"spec.displayName"}},
		"an owner":         {"web", 1, model.TeamSpec{}, []string{"metadata.ownerReferences"}},
		"a name of theirs": {"system:web", 0, model.TeamSpec{}, []string{"metadata.name"}},
	} {
		team := &model.Team{ObjectMeta: metav1.ObjectMeta{Name: row.name, OwnerReferences: make([]metav1.OwnerReference, row.owners)}, Spec: row.spec}
		var got []string
		for _, problem := range (&rules{}).Validate(team, nil) {
			got = append(got, problem.Field)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: problems with %q, want %q", about, got, row.want)
		}
	}
}
