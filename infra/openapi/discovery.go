package main

import (
	"encoding/json"
	"fmt"
	"slices"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
)

// discovery describes the served resources in the aggregated form of Kubernetes discovery: each group, each resource
// with the verbs that some function has an endpoint for, and its subresources.
func discovery(functions []*frame.Function) ([]byte, error) {
	var list discoveryv2.APIGroupDiscoveryList
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			if endpoint.Resource.Resource == "" {
				continue
			}
			resource := resourceOf(versionOf(groupOf(&list, endpoint), endpoint), endpoint)
			if endpoint.Subresource == "" {
				// A subresource that comes first may have the kind of another resource.
				resource.ResponseKind = kindOf(endpoint)
				resource.Verbs = insertSorted(resource.Verbs, endpoint.Verb)
				resource.Categories = categories(endpoint.Resource.Group, resource.Verbs)
				continue
			}
			index := slices.IndexFunc(resource.Subresources, func(s discoveryv2.APISubresourceDiscovery) bool {
				return s.Subresource == endpoint.Subresource
			})
			if index < 0 {
				index = len(resource.Subresources)
				resource.Subresources = append(resource.Subresources, discoveryv2.APISubresourceDiscovery{
					Subresource: endpoint.Subresource, ResponseKind: kindOf(endpoint),
				})
			}
			resource.Subresources[index].Verbs = insertSorted(resource.Subresources[index].Verbs, endpoint.Verb)
		}
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the discovery document: %w", err)
	}
	return append(text, '\n'), nil
}

// category names all objects of the platform's own kinds in one word: `kubectl get platform` lists them.
const category = "platform"

// categories returns the categories of a resource with these verbs. The category has the kinds that the platform keeps as objects, which
// can be listed and watched. Audit events are records that the sink keeps: a list of them may be long, or refused without a sink.
func categories(group string, verbs []string) []string {
	if group != model.GroupName || !slices.Contains(verbs, "list") || !slices.Contains(verbs, "watch") {
		return nil
	}
	return []string{category}
}

func groupOf(list *discoveryv2.APIGroupDiscoveryList, endpoint frame.Endpoint) *discoveryv2.APIGroupDiscovery {
	for i := range list.Items {
		if list.Items[i].Name == endpoint.Resource.Group {
			return &list.Items[i]
		}
	}
	list.Items = append(list.Items, discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: endpoint.Resource.Group}})
	return &list.Items[len(list.Items)-1]
}

func versionOf(group *discoveryv2.APIGroupDiscovery, endpoint frame.Endpoint) *discoveryv2.APIVersionDiscovery {
	for i := range group.Versions {
		if group.Versions[i].Version == endpoint.Resource.Version {
			return &group.Versions[i]
		}
	}
	group.Versions = append(group.Versions, discoveryv2.APIVersionDiscovery{
		Version: endpoint.Resource.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent,
	})
	return &group.Versions[len(group.Versions)-1]
}

func resourceOf(version *discoveryv2.APIVersionDiscovery, endpoint frame.Endpoint) *discoveryv2.APIResourceDiscovery {
	for i := range version.Resources {
		if version.Resources[i].Resource == endpoint.Resource.Resource {
			return &version.Resources[i]
		}
	}
	scope := discoveryv2.ScopeCluster
	if endpoint.Namespaced {
		scope = discoveryv2.ScopeNamespace
	}
	version.Resources = append(version.Resources, discoveryv2.APIResourceDiscovery{
		Resource: endpoint.Resource.Resource, SingularResource: endpoint.Singular, ShortNames: endpoint.ShortNames,
		Scope: scope, ResponseKind: kindOf(endpoint), Verbs: []string{},
	})
	return &version.Resources[len(version.Resources)-1]
}

func kindOf(endpoint frame.Endpoint) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: endpoint.Resource.Group, Version: endpoint.Resource.Version, Kind: endpoint.Kind}
}

// insertSorted adds a word to a sorted list, unless the list has it.
func insertSorted(words []string, word string) []string {
	if at, found := slices.BinarySearch(words, word); !found {
		words = slices.Insert(words, at, word)
	}
	return words
}
