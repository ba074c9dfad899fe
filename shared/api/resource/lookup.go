package resource

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// LookupGraph returns the graph of a registry that is only read: the owners of its objects can be looked up, of whatever kind,
// and nothing else. Functions that know the rules of every kind follow up on deletions. Source: ADR-0009, ADR-0019.
func LookupGraph[T Object](env *platform.Environment, registry *Registry[T]) *gc.Graph {
	var lookups []gc.Member
	for _, kind := range platform.StoredKinds {
		if kind.GroupVersionKind() == registry.Definition.GroupVersionKind() {
			continue
		}
		lookups = append(lookups, lookup{member[*metav1.PartialObjectMetadata]{&Registry[*metav1.PartialObjectMetadata]{
			Definition: &Definition[*metav1.PartialObjectMetadata]{
				Resource: kind.Resource, Kind: kind.Kind, Namespaced: kind.Namespaced,
				New: func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} },
			},
			Store: env.Stores(kind.Resource.Resource), Now: env.Now,
		}}})
	}
	return gc.NewLookupGraph(member[T]{registry}, lookups...)
}

// lookup is a kind of which only the metadata is known. It shows its objects to no caller and changes none, because fields that it
// does not know would be lost.
type lookup struct {
	member[*metav1.PartialObjectMetadata]
}

var errLookup = errors.New("only the metadata of this kind is known here")

func (l lookup) Permits(identity.Caller, string, store.Record) bool { return false }

func (l lookup) Delete(context.Context, store.Record, gc.Terms) (gc.Outcome, error) {
	return gc.Outcome{}, errLookup
}

func (l lookup) EditMetadata(context.Context, store.Record, func(metav1.Object)) (gc.Outcome, error) {
	return gc.Outcome{}, errLookup
}
