package resource

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Join adds a resource to a graph and returns its registry there: a copy, whose deletions follow to the other members. All members
// join before any of them is used. Source: ADR-0009, ADR-0049.
func Join[T Object](graph *gc.Graph, registry *Registry[T]) *Registry[T] {
	joined := registry.clone()
	joined.Graph = graph
	graph.Join(member[T]{joined})
	return joined
}

// Orphaned reports whether an object had owners and all of them are gone: the next collection removes it. It costs one
// round trip for each owner. Errors are the store's. Source: Spec 2.2 (ownerReferences); ADR-0017.
func (r *Registry[T]) Orphaned(ctx context.Context, object T) (bool, error) {
	references := object.GetOwnerReferences()
	for _, reference := range references {
		if _, exists, err := r.graph().ExistingOwner(ctx, reference, r.ownerNamespace(object)); err != nil || exists {
			return false, err
		}
	}
	return len(references) > 0, nil
}

// GrantedOwners is GrantedOwners of the graph to which the resource was joined.
func (r *Registry[T]) GrantedOwners(ctx context.Context, owners ...identity.Owner) (map[identity.Owner]bool, error) {
	return r.graph().GrantedOwners(ctx, owners...)
}

// graph returns the graph of the registry or, if there is none, a graph of the resource alone.
func (r *Registry[T]) graph() *gc.Graph {
	if r.Graph != nil {
		return r.Graph
	}
	graph := gc.NewGraph(nil)
	graph.Join(member[T]{r})
	return graph
}

// collect follows up on objects that a request deleted or changed. Its removals are reported as consequences.
func (r *Registry[T]) collect(ctx context.Context, outcomes ...gc.Outcome) {
	r.graph().Collect(withConsequences(ctx), outcomes...)
}

// ownerNamespace is the namespace of an object's owners. Empty: they have none.
func (r *Registry[T]) ownerNamespace(object metav1.Object) string {
	if r.Definition.OwnersIn == "" {
		return object.GetNamespace()
	}
	return object.GetLabels()[r.Definition.OwnersIn]
}

// ancestors returns the credentials that made an object; see Lineage.
func (r *Registry[T]) ancestors(object T) (bounding, others []metav1.OwnerReference) {
	if r.Lineage == nil {
		return nil, nil
	}
	return r.Lineage.Ancestors(object)
}

// credentialOwner returns the owner whose credentials are deleted with an object. Empty: none.
func (r *Registry[T]) credentialOwner(object T) string {
	if r.CredentialOwner == nil {
		return ""
	}
	return r.CredentialOwner.CredentialsOf(object)
}

// member is a registry as a graph sees it.
type member[T Object] struct{ registry *Registry[T] }

func (m member[T]) GroupVersionKind() schema.GroupVersionKind {
	return m.registry.Definition.GroupVersionKind()
}

func (m member[T]) Resource() (schema.GroupVersionResource, bool) {
	return m.registry.Definition.Resource, m.registry.Definition.Namespaced
}

func (m member[T]) RecordName(namespace, name string) string { return storeName(namespace, name) }

func (m member[T]) Store() store.Store { return m.registry.Store }

func (m member[T]) Now() time.Time { return m.registry.Now() }

func (m member[T]) Parse(record store.Record) (metav1.Object, error) { return m.registry.Parse(record) }

func (m member[T]) Delete(ctx context.Context, record store.Record, terms gc.Terms) (gc.Outcome, error) {
	terms = m.registry.deletionTerms(terms)
	return m.EditMetadata(ctx, record, func(object metav1.Object) { gc.MarkDeleted(object, terms, m.registry.Now()) })
}

func (m member[T]) EditMetadata(ctx context.Context, record store.Record, change func(metav1.Object)) (gc.Outcome, error) {
	_, after, err := m.registry.rewriteMetadata(ctx, record, false, change)
	return after, err
}

func (m member[T]) Permits(caller identity.Caller, verb string, record store.Record) bool {
	seen, err := m.registry.sees(caller, record)
	if err != nil || !seen.Allowed || verb == "" {
		return err == nil && seen.Allowed
	}
	object, err := m.registry.Parse(record)
	return err == nil && m.registry.permit(caller, verb, "", object, seen).Allowed
}

func (m member[T]) OwnerNamespace(object metav1.Object) string {
	return m.registry.ownerNamespace(object)
}

func (m member[T]) HasLineage() bool { return m.registry.Lineage != nil }

func (m member[T]) Ancestors(object metav1.Object) (bounding, others []metav1.OwnerReference) {
	return m.registry.ancestors(object.(T))
}

func (m member[T]) IsCredential() bool { return m.registry.Definition.Credentials }

func (m member[T]) CredentialOwner(object metav1.Object) string {
	return m.registry.credentialOwner(object.(T))
}

func (m member[T]) GrantedOwners(ctx context.Context, owners []identity.Owner, names [][]byte, granted map[identity.Owner]bool) error {
	r := m.registry
	if !r.Definition.NamesPeople {
		return nil
	}
	for record, err := range store.Each(ctx, r.Store, store.Query{}) {
		if err != nil {
			return fmt.Errorf("looking for %s that name people: %w", r.Definition.GroupResource(), err)
		}
		// Most records have none of the names in their text.
		if !slices.ContainsFunc(names, func(name []byte) bool { return bytes.Contains(record.Object, name) }) {
			continue
		}
		object, err := r.Parse(record)
		if err != nil {
			return err
		}
		for _, grant := range r.Rules.Grants(object) {
			if slices.Contains(owners, grant.To) {
				granted[grant.To] = true
			}
		}
	}
	return nil
}
