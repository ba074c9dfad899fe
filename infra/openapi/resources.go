package main

import (
	"slices"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
)

// resourcePaths is the part of a resource or subresource on which its paths and operations depend.
type resourcePaths struct {
	// Resource is the plural name in paths.
	Resource string
	// Subresource is the last segment below one object. Empty: the resource itself.
	Subresource string
	// Singular is the name of one object of the resource.
	Singular string
	// Kind is the kind in bodies. A list has the kind with the suffix List.
	Kind string
	// Namespaced puts the namespace into the paths. A list across namespaces is then also served.
	Namespaced bool
	// Accepts reports whether the response to a create is 202.
	Accepts bool
	// Lists reports whether the response to a get is a list. Under reports whether the kind is the kind of another
	// resource.
	Lists, Under bool
	// Reveals reports whether reads have the parameter reveal.
	Reveals bool
	// Verbs are create, get, list, watch, update, patch, delete and deletecollection.
	Verbs []string
}

// resources are the resources to describe: the resources of the management group in the catalog, in its order.
var resources = servedResources(catalog.Functions)

func servedResources(functions []*frame.Function) []resourcePaths {
	var list []resourcePaths
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			if endpoint.Resource.GroupVersion() != model.SchemeGroupVersion {
				continue
			}
			index := slices.IndexFunc(list, func(r resourcePaths) bool {
				return r.Resource == endpoint.Resource.Resource && r.Subresource == endpoint.Subresource
			})
			if index < 0 {
				index = len(list)
				list = append(list, resourcePaths{
					Resource: endpoint.Resource.Resource, Subresource: endpoint.Subresource,
					Singular: endpoint.Singular, Kind: endpoint.Kind, Namespaced: endpoint.Namespaced, Accepts: endpoint.Accepts,
				})
			}
			if endpoint.Lists {
				list[index].Lists, list[index].Under = true, true
			}
			list[index].Reveals = list[index].Reveals || endpoint.Reveals
			if !slices.Contains(list[index].Verbs, endpoint.Verb) {
				list[index].Verbs = append(list[index].Verbs, endpoint.Verb)
			}
		}
	}
	return list
}

// objectKind returns the kind of the object that the path names: an object of the kind, except at a subresource that has
// objects of another resource.
func (r resourcePaths) objectKind() string {
	if r.Under {
		return r.Singular
	}
	return r.Kind
}
