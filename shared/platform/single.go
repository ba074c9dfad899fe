package platform

import (
	"reflect"
	"sync"
)

// singles holds the values that an environment has only one of, by type.
type singles struct {
	mu     sync.Mutex
	byType map[reflect.Type]*single
}

// single is one value that is opened at its first use.
type single struct {
	once  sync.Once
	value any
}

func (s *singles) entry(key reflect.Type) *single {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byType == nil {
		s.byType = map[reflect.Type]*single{}
	}
	if s.byType[key] == nil {
		s.byType[key] = &single{}
	}
	return s.byType[key]
}

// Single returns the one T of an environment, which open makes at the first call. Open may call Single for other types,
// but not for T. It is safe for concurrent use.
//
// A function that calls Single is not inlined (go:noinline): Go compiles a generic type anew in each package that
// mentions it, and a registry is such a type. Inlined, the opening of one registry would bring those that it opens in
// turn.
func Single[T any](env *Environment, open func(*Environment) T) T {
	entry := env.singles.entry(reflect.TypeFor[T]())
	entry.once.Do(func() { entry.value = open(env) })
	return entry.value.(T)
}

// Provide makes value the one T of an environment, for values that a shell has opened itself. It panics if there
// already is one, because operations would continue to use the earlier value.
func Provide[T any](env *Environment, value T) {
	provided := false
	Single(env, func(*Environment) T { provided = true; return value })
	if !provided {
		panic("platform: provided too late: " + reflect.TypeFor[T]().String())
	}
}
