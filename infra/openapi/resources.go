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
var resources = served(catalog.Functions)

func served(functions []*frame.Function) []resourcePaths {
	var list []resourcePaths
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			if endpoint.Resource.GroupVersion() != model.SchemeGroupVersion {
				continue
			}
			at := slices.IndexFunc(list, func(r resourcePaths) bool {
				return r.Resource == endpoint.Resource.Resource && r.Subresource == endpoint.Subresource
			})
			if at < 0 {
				at = len(list)
				list = append(list, resourcePaths{
					Resource: endpoint.Resource.Resource, Subresource: endpoint.Subresource,
					Singular: endpoint.Singular, Kind: endpoint.Kind, Namespaced: endpoint.Namespaced, Accepts: endpoint.Accepts,
				})
			}
			if endpoint.Lists {
				list[at].Lists, list[at].Under = true, true
			}
			list[at].Reveals = list[at].Reveals || endpoint.Reveals
			if !slices.Contains(list[at].Verbs, endpoint.Verb) {
				list[at].Verbs = append(list[at].Verbs, endpoint.Verb)
			}
		}
	}
	return list
}

// named returns the kind of the object that the path names: an object of the kind, except at a subresource that has
// objects of another resource.
func (r resourcePaths) named() string {
	if r.Under {
		return r.Singular
	}
	return r.Kind
}
