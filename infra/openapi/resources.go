package main

// resourcePaths is one resource, or one subresource, as far as the paths and operations that it is
// served at depend on it.
type resourcePaths struct {
	// Resource is the plural name in paths.
	Resource string
	// Subresource is the last segment below one object. Empty: the resource itself.
	Subresource string
	// Kind is the kind in bodies. A list has the kind with the suffix List.
	Kind string
	// Namespaced puts the namespace into the paths; a list across namespaces is then served besides.
	Namespaced bool
	// Verbs are create, get, list, update, patch, delete and deletecollection.
	Verbs []string
}

// resources are what is described: what is served, in the order of the documents.
var resources = []resourcePaths{
	{
		Resource: "ownedaccesskeys", Kind: "OwnedAccessKey",
		Verbs: []string{"create", "get", "list", "update", "patch", "delete", "deletecollection"},
	},
	{Resource: "selves", Kind: "Self", Verbs: []string{"create"}},
}
