// Package crud makes the functions that do nothing but a verb of a stored resource. Each is a package of its own nevertheless, with a
// name, a program and a size. A function with logic of its own binds its operation with package frame. Source: ADR-0049.
//
// The functions take how their registry is opened. Functions that read hand in Open of the kind; functions that write hand in the
// function of package kinds, which knows what depends on an object. What creates, updates or patches hands in fieldmanager.New as
// well, so that only the programs of such functions contain it.
package crud

import (
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/platform"
)

// Open returns the registry of a function in an environment.
type Open[T resource.Object] = func(*platform.Environment) *resource.Registry[T]

// Create returns the function of POST on a resource. The function returns the errors of resource.Create; nothing is stored then.
func Create[T resource.Object](name string, definition *resource.Definition[T], open Open[T], newManager resource.NewFieldManager) *frame.Function {
	return &frame.Function{Name: name, Endpoints: []frame.Endpoint{
		frame.Create(definition, managed(open, newManager), resource.Create[T]),
	}}
}

// Get returns the function of GET on one object, and on its status if that is a subresource. Errors: NotFound, also for an object that the
// caller may not see.
func Get[T resource.Object](name string, definition *resource.Definition[T], open Open[T]) *frame.Function {
	function := &frame.Function{Name: name, Endpoints: []frame.Endpoint{frame.Get(definition, open, resource.Get[T])}}
	if definition.CopyStatus != nil {
		function.Endpoints = append(function.Endpoints, frame.GetStatus(definition, open, resource.Get[T]))
	}
	return function
}

// List returns the function of GET on a resource, as a list or as a watch, of one namespace or of all if the resource has namespaces. The
// watches have their deprecated paths as well.
// Errors: BadRequest, Expired or Timeout as resource.List and resource.Watch say.
func List[T resource.Object](name string, definition *resource.Definition[T], open Open[T]) *frame.Function {
	list, watch := frame.List(definition, open, resource.List[T]), frame.Watch(definition, open, resource.Watch[T])
	endpoints := []frame.Endpoint{list, watch}
	if definition.Namespaced {
		endpoints = append(endpoints, frame.AllNamespaces(list), frame.AllNamespaces(watch))
	}
	return &frame.Function{Name: name, Endpoints: frame.WithWatchPaths(endpoints...)}
}

// Update returns the function of PUT on one object, and on its status if that is a subresource. The function returns the errors
// of resource.Update; nothing is stored then.
func Update[T resource.Object](name string, definition *resource.Definition[T], open Open[T], newManager resource.NewFieldManager) *frame.Function {
	open = managed(open, newManager)
	function := &frame.Function{Name: name, Endpoints: []frame.Endpoint{frame.Update(definition, open, resource.Update[T])}}
	if definition.CopyStatus != nil {
		function.Endpoints = append(function.Endpoints, frame.UpdateStatus(definition, open, resource.Update[T]))
	}
	return function
}

// Patch returns the function of PATCH on one object, and on its status if that is a subresource. The function returns the errors
// of resource.Patch; nothing is stored then.
func Patch[T resource.Object](name string, definition *resource.Definition[T], open Open[T], newManager resource.NewFieldManager) *frame.Function {
	open = managed(open, newManager)
	function := &frame.Function{Name: name, Endpoints: []frame.Endpoint{frame.Patch(definition, open, resource.Patch[T])}}
	if definition.CopyStatus != nil {
		function.Endpoints = append(function.Endpoints, frame.PatchStatus(definition, open, resource.Patch[T]))
	}
	return function
}

// Delete returns the function of DELETE on one object, or on a selection, whose objects it returns as they were. It removes an object, or
// marks it as deleted while a grace period or finalizers keep it. The function returns the errors of resource.Delete.
func Delete[T resource.Object](name string, definition *resource.Definition[T], open Open[T]) *frame.Function {
	return &frame.Function{Name: name, Endpoints: []frame.Endpoint{
		frame.Delete(definition, open, resource.Delete[T]), frame.DeleteCollection(definition, open, resource.Delete[T]),
	}}
}

// managed returns how a registry is opened whose writes record who set which field.
func managed[T resource.Object](open Open[T], newManager resource.NewFieldManager) Open[T] {
	return func(env *platform.Environment) *resource.Registry[T] { return open(env).WithFieldManager(newManager) }
}

// Encrypting marks a function whose objects have secrets that are sealed in the state: it has the encryption key.
func Encrypting(function *frame.Function) *frame.Function {
	function.Encrypts = true
	return function
}

// Delivering marks a function whose responses may have a credential that is shown once; see frame.Endpoint.Delivering.
func Delivering(function *frame.Function) *frame.Function {
	for i, endpoint := range function.Endpoints {
		function.Endpoints[i] = endpoint.Delivering()
	}
	return function
}
