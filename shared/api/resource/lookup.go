package resource

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// LookupGraph returns the graph of a registry that is only read: the owners of its objects can be looked up, of whatever kind,
// and nothing else. What follows from a deletion is left to functions that know the rules of every kind. Source: ADR-0009, ADR-0019.
func LookupGraph(env *platform.Environment, member Member) *Graph {
	graph := &Graph{members: []Member{member}}
	for _, kind := range platform.StoredKinds {
		if kind.GroupVersionKind() == member.kind() {
			continue
		}
		graph.lookups = append(graph.lookups, lookup{&Registry[*metav1.PartialObjectMetadata]{
			Definition: &Definition[*metav1.PartialObjectMetadata]{
				Resource: kind.Resource, Kind: kind.Kind, Namespaced: kind.Namespaced,
				New: func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} },
			},
			Store: env.Stores(kind.Resource.Resource), Now: env.Now,
		}})
	}
	return graph
}

// lookup is a kind of which the metadata alone is known. It shows its objects to nobody and changes none: what it does not
// know of them would be lost.
type lookup struct {
	*Registry[*metav1.PartialObjectMetadata]
}

var errLookup = errors.New("only the metadata of this kind is known here")

func (l lookup) permits(identity.Caller, string, store.Record) bool { return false }

func (l lookup) deleteNode(context.Context, node, deleteTerms) (outcome, error) {
	return outcome{}, errLookup
}

func (l lookup) editMetadata(context.Context, node, func(metav1.Object)) (outcome, error) {
	return outcome{}, errLookup
}
