package resource

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// Graph joins the resources of an API, because objects of one resource may own objects of another. It does not know their Go
// types. It is safe for concurrent use. Source: Spec 2.2 (ownerReferences); ADR-0009.
type Graph struct {
	members []Member
	permits Permission
	// lookups are kinds that are only read, to find owners. A graph with lookups collects nothing.
	lookups []Member
}

// Permission reports whether scope and resource permit a caller a verb on an object: the check that precedes every
// request.
type Permission func(caller identity.Caller, verb string, resource schema.GroupVersionResource, namespace, name string) bool

// Member is a resource in a Graph: a *Registry of any type.
type Member interface {
	// kind is the kind of one object.
	kind() schema.GroupVersionKind
	definition() (resource schema.GroupVersionResource, namespaced bool)
	// ownersIn is the namespace of the owners of an object; empty for those without one.
	ownersIn(object metav1.Object) string
	// findNode returns the object of that name in the store, and false when there is none. Its deletion may be complete.
	findNode(ctx context.Context, name string) (node, bool, error)
	// dependentsOf returns a page of the objects that refer to a uid, and whether there are more. Those that cannot
	// be read are left out; the error says so.
	dependentsOf(ctx context.Context, uid types.UID, after string, limit int) (page []node, last string, more bool, err error)
	// state is where the objects are, and now the clock.
	state() store.Store
	now() time.Time
	// parse returns the object of a record. It is shared.
	parse(record store.Record) (node, error)
	// deleteNode deletes an object on behalf of the system.
	deleteNode(ctx context.Context, n node, asked deleteTerms) (after outcome, err error)
	// permits reports whether a caller sees the object of a record and may do a verb to it. An empty verb asks only for
	// seeing.
	permits(caller identity.Caller, verb string, record store.Record) bool
	// ancestors are the objects of the resource that made an object: those that it cannot outlive, and the others. Both are
	// empty unless makes, which reports whether objects of the resource make each other.
	ancestors(object metav1.Object) (bounding, others []metav1.OwnerReference)
	hasLineage() bool
	// credentialOwner is the owner whose credentials go with an object; empty for kinds that own none. Credentials reports whether the objects
	// of the kind are credentials, and ownedBy returns a page of those of an owner, as referring does.
	credentialOwner(object metav1.Object) string
	isCredential() bool
	credentialsOf(ctx context.Context, owner, after string, limit int) (page []node, last string, more bool, err error)
	// grantedOwners adds those of some owners, whose names are quoted as in JSON, to which an object gives something.
	grantedOwners(ctx context.Context, owners []identity.Owner, quoted [][]byte, named map[identity.Owner]bool) error
	// editMetadata changes the metadata of an object on behalf of the system.
	editMetadata(ctx context.Context, n node, change func(metav1.Object)) (after outcome, err error)
}

// node is one object in a graph, as it was read.
type node struct {
	member Member
	record store.Record
	// object is shared: it is not changed.
	object metav1.Object
	// ended tells that its deletion is complete.
	ended bool
}

// outcome is an object after a write: its new form or, if it is gone, its last form.
type outcome struct {
	node
	gone bool
	// answered tells what the write found out about the objects that refer to it; nil if nothing was asked.
	answered *store.Questions
}

// NewGraph returns a graph without members. Permits decides whether a caller may block the deletion of an owner; nil permits
// everything.
func NewGraph(permits Permission) *Graph { return &Graph{permits: permits} }

// Join adds a resource to a graph and returns its registry there: a copy, whose deletions follow to the other members. All members
// join before the first of them is used. Source: ADR-0009, ADR-0049.
func Join[T Object](graph *Graph, registry *Registry[T]) *Registry[T] {
	joined := registry.clone()
	joined.Graph = graph
	graph.members = append(graph.members, joined)
	return joined
}

// Kinds returns the kinds that the graph joins, in the order in which they joined.
func (g *Graph) Kinds() []platform.StoredKind {
	joined := make([]platform.StoredKind, 0, len(g.members))
	for _, member := range g.members {
		target, namespaced := member.definition()
		joined = append(joined, platform.StoredKind{Resource: target, Kind: member.kind().Kind, Namespaced: namespaced})
	}
	return joined
}

// member returns the resource of a kind, and false when this API does not serve it.
func (g *Graph) member(apiVersion, kind string) (Member, bool) {
	for _, members := range [][]Member{g.members, g.lookups} {
		for _, member := range members {
			known := member.kind()
			if known.Kind == kind && known.GroupVersion().String() == apiVersion {
				return member, true
			}
		}
	}
	return nil, false
}

// owner returns the object that a reference names, seen from an object in a namespace. It is known when this API serves
// its kind there, and found when an object has that name, whatever its uid. Read has records of owners that were read already,
// by the uids in the references.
func (g *Graph) owner(
	ctx context.Context, reference metav1.OwnerReference, namespace string, records map[types.UID]store.Record,
) (owner node, known, found bool, err error) {
	member, known := g.member(reference.APIVersion, reference.Kind)
	if !known {
		return node{}, false, false, nil
	}
	if _, namespaced := member.definition(); !namespaced {
		namespace = ""
	} else if namespace == "" {
		return node{}, false, false, nil
	}
	if len(validation.NameIsDNSSubdomain(reference.Name, false)) > 0 {
		return node{}, true, false, nil
	}
	name := storeName(namespace, reference.Name)
	if record, ok := records[reference.UID]; ok && record.Name == name {
		owner, err = member.parse(record)
		return owner, true, err == nil, err
	}
	owner, found, err = member.findNode(ctx, name)
	return owner, true, found, err
}

// existingOwner is owner with the uid of the reference, unless its deletion is complete. An owner of a kind that this
// API does not serve counts as existing, without an object.
func (g *Graph) existingOwner(ctx context.Context, reference metav1.OwnerReference, namespace string) (owner node, exists bool, err error) {
	owner, known, found, err := g.owner(ctx, reference, namespace, nil)
	switch {
	case err != nil:
		return node{}, false, err
	case !known:
		return node{}, true, nil
	case !found || owner.object.GetUID() != reference.UID || owner.ended:
		return node{}, false, nil
	}
	return owner, true, nil
}

// Orphaned reports whether an object had owners and all of them are gone: the next collection removes it. It costs one
// round trip for each owner. Errors are those of the store. Source: Spec 2.2 (ownerReferences); ADR-0017.
func (r *Registry[T]) Orphaned(ctx context.Context, object T) (bool, error) {
	references := object.GetOwnerReferences()
	for _, reference := range references {
		if _, exists, err := r.graph().existingOwner(ctx, reference, r.ownersIn(object)); err != nil || exists {
			return false, err
		}
	}
	return len(references) > 0, nil
}

// graph returns the graph of the registry or, if there is none, a graph of the resource alone.
func (r *Registry[T]) graph() *Graph {
	if r.Graph != nil {
		return r.Graph
	}
	return &Graph{members: []Member{r}}
}

func (r *Registry[T]) kind() schema.GroupVersionKind { return r.Definition.GroupVersionKind() }

func (r *Registry[T]) definition() (schema.GroupVersionResource, bool) {
	return r.Definition.Resource, r.Definition.Namespaced
}

func (r *Registry[T]) ownersIn(object metav1.Object) string {
	if r.Definition.OwnersIn == "" {
		return object.GetNamespace()
	}
	return object.GetLabels()[r.Definition.OwnersIn]
}

func (r *Registry[T]) state() store.Store { return r.Store }

func (r *Registry[T]) parse(record store.Record) (node, error) {
	object, err := r.Parse(record)
	if err != nil {
		return node{}, err
	}
	return node{member: r, record: record, object: object, ended: Deleted(object, r.Now())}, nil
}

func (r *Registry[T]) now() time.Time { return r.Now() }

func (r *Registry[T]) findNode(ctx context.Context, name string) (node, bool, error) {
	record, err := r.Store.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return node{}, false, nil
	}
	if err != nil {
		return node{}, false, err
	}
	found, err := r.parse(record)
	return found, err == nil, err
}

func (r *Registry[T]) dependentsOf(ctx context.Context, uid types.UID, after string, limit int) (page []node, last string, more bool, err error) {
	records, err := r.Store.List(ctx, store.Query{Reference: string(uid), After: after, Limit: limit})
	if err != nil {
		return nil, "", false, err
	}
	for _, record := range records.Records {
		last = record.Name
		each, broken := r.parse(record)
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		page = append(page, each)
	}
	return page, last, records.Remaining > 0, err
}

func (r *Registry[T]) deleteNode(ctx context.Context, n node, asked deleteTerms) (outcome, error) {
	asked = r.deletionTerms(asked)
	return r.editMetadata(ctx, n, func(object metav1.Object) { markDeleted(object, asked, r.Now()) })
}

func (r *Registry[T]) editMetadata(ctx context.Context, n node, change func(metav1.Object)) (outcome, error) {
	_, after, err := r.rewriteMetadata(ctx, n.record, false, change)
	return after, err
}
