package platform_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// Source: Spec 2.7 (projectNamespacePrefix), 8.
func TestProjectOfNamespace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ prefix, namespace, want string }{
		{"", "p-a", "a"},
		{"", "a", ""},
		{"", "", ""},
		{"team-", "team-a", "a"},
		{"team-", "p-a", ""},
	} {
		env := &platform.Environment{Config: func() *model.ConfigStatus { return &model.ConfigStatus{ProjectNamespacePrefix: row.prefix} }}
		if got := env.Project(row.namespace); got != row.want {
			t.Errorf("prefix %q, namespace %q: project %q, want %q", row.prefix, row.namespace, got, row.want)
		}
	}
}

// An environment has one value of each type, however many callers ask for it at once. A value that a shell provides is
// used instead of opening one.
func TestSingle(t *testing.T) {
	t.Parallel()
	type registry struct{ of *int }
	env := &platform.Environment{}
	var opened atomic.Int32
	open := func(env *platform.Environment) *registry {
		opened.Add(1)
		return &registry{of: platform.Single(env, func(*platform.Environment) *int { return new(int) })}
	}
	var all sync.WaitGroup
	registries := make([]*registry, 8)
	for i := range registries {
		all.Go(func() { registries[i] = platform.Single(env, open) })
	}
	all.Wait()
	for _, one := range registries {
		if one != registries[0] {
			t.Error("there are two of one type")
		}
	}
	if opened.Load() != 1 {
		t.Errorf("opened %d times", opened.Load())
	}
	if platform.Single(&platform.Environment{}, open) == registries[0] {
		t.Error("two environments share one")
	}
	provided := &registry{}
	other := &platform.Environment{}
	platform.Provide(other, provided)
	if platform.Single(other, open) != provided {
		t.Error("what was provided is not used")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second one is taken")
		}
	}()
	platform.Provide(env, provided)
}
