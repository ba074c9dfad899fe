// Package gc collects garbage: it deletes or changes the objects that depend on an object which was deleted. Objects depend on
// their owners, credentials on the credentials that made them, and the credentials of a user or team on that user or team. The
// kinds join in a Graph, which knows them as Members and does not know their Go types. Source: Spec 2.2 (ownerReferences), 3;
// ADR-0009, ADR-0021, ADR-0029.
package gc

import (
	"context"
	"encoding/json"
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

// Graph joins the resources of an API, because objects of one resource may own objects of another. It is safe for concurrent use
// once all members have joined.
type Graph struct {
	members []Member
	permits Permission
	// lookups are kinds that are only read, to find owners. A graph with lookups collects nothing.
	lookups []Member
}

// Permission reports whether scope and resource permit a caller a verb on an object: the check that precedes every
// request.
type Permission func(caller identity.Caller, verb string, resource schema.GroupVersionResource, namespace, name string) bool

// Member is one resource in a Graph.
type Member interface {
	// GroupVersionKind is the kind of one object.
	GroupVersionKind() schema.GroupVersionKind
	// Resource is the plural name, and whether objects live in namespaces.
	Resource() (resource schema.GroupVersionResource, namespaced bool)
	// RecordName is the name of an object's record in the store.
	RecordName(namespace, name string) string
	// Store holds the objects.
	Store() store.Store
	// Now is the clock.
	Now() time.Time
	// Parse returns the object of a record. The object is shared: it is not changed.
	Parse(record store.Record) (metav1.Object, error)
	// Delete deletes the object of a record on behalf of the system. The errors are the store's.
	Delete(ctx context.Context, record store.Record, terms Terms) (Outcome, error)
	// EditMetadata changes the metadata of the object of a record on behalf of the system. The errors are the store's.
	EditMetadata(ctx context.Context, record store.Record, change func(metav1.Object)) (Outcome, error)
	// Permits reports whether a caller sees the object of a record and may do a verb to it. An empty verb asks only for
	// seeing.
	Permits(caller identity.Caller, verb string, record store.Record) bool
	// OwnerNamespace is the namespace of an object's owners. Empty: they have none.
	OwnerNamespace(object metav1.Object) string
	// HasLineage reports whether objects of the resource make each other.
	HasLineage() bool
	// Ancestors returns the makers of an object, which are of the same resource: the makers that it cannot outlive, and the others.
	Ancestors(object metav1.Object) (bounding, others []metav1.OwnerReference)
	// IsCredential reports whether the objects are credentials.
	IsCredential() bool
	// CredentialOwner is the owner whose credentials are deleted with an object. Empty: none.
	CredentialOwner(object metav1.Object) string
	// GrantedOwners adds to granted each of the owners to which an object gives a right. Names are the names of the owners in JSON.
	GrantedOwners(ctx context.Context, owners []identity.Owner, names [][]byte, granted map[identity.Owner]bool) error
}

// Node is one object in a graph, as it was read.
type Node struct {
	Member Member
	Record store.Record
	// Object is shared: it is not changed.
	Object metav1.Object
}

// Deleted reports whether the deletion of the object is complete.
func (n Node) Deleted() bool { return Deleted(n.Object, n.Member.Now()) }

// Outcome is an object after a write: its new form or, if it is gone, its last form.
type Outcome struct {
	Node
	// Gone reports whether the write removed the object.
	Gone bool
	// Dependents are the questions about dependents that the write answered. Nil: it was asked nothing.
	Dependents *store.Questions
}

// NewGraph returns a graph without members. Permits decides whether a caller may block the deletion of an owner; nil permits
// everything.
func NewGraph(permits Permission) *Graph { return &Graph{permits: permits} }

// NewLookupGraph returns the graph of a resource that is only read: owners of its objects are looked up in it and in the
// lookups, and nothing is collected. Source: ADR-0019.
func NewLookupGraph(member Member, lookups ...Member) *Graph {
	return &Graph{members: []Member{member}, lookups: lookups}
}

// Join adds a member. All members join before the graph is used.
func (g *Graph) Join(member Member) { g.members = append(g.members, member) }

// OnlyLooksUp reports whether the graph looks owners up and collects nothing.
func (g *Graph) OnlyLooksUp() bool { return len(g.lookups) > 0 }

// Kinds returns the kinds that the graph joins, in the order in which they joined.
func (g *Graph) Kinds() []platform.StoredKind {
	joined := make([]platform.StoredKind, 0, len(g.members))
	for _, member := range g.members {
		target, namespaced := member.Resource()
		joined = append(joined, platform.StoredKind{Resource: target, Kind: member.GroupVersionKind().Kind, Namespaced: namespaced})
	}
	return joined
}

// Permitted reports whether scope and resource permit a caller a verb on an object of a member.
func (g *Graph) Permitted(caller identity.Caller, verb string, member Member, namespace, name string) bool {
	resource, _ := member.Resource()
	return g.permits == nil || g.permits(caller, verb, resource, namespace, name)
}

// GrantedOwners returns which of some users and teams an object of any kind gives a right, such as a role in a project, whether or
// not they exist: a new user or team of that name would have the right. It reads every object of the kinds that name people, once.
// Errors are the store's. Source: ADR-0047.
func (g *Graph) GrantedOwners(ctx context.Context, owners ...identity.Owner) (map[identity.Owner]bool, error) {
	granted := map[identity.Owner]bool{}
	// A name always has a JSON form.
	names := make([][]byte, len(owners))
	for i, owner := range owners {
		names[i], _ = json.Marshal(owner.Name)
	}
	for _, member := range g.members {
		if err := member.GrantedOwners(ctx, owners, names, granted); err != nil {
			return nil, err
		}
	}
	return granted, nil
}

// Member returns the resource of a kind, and false when this API does not serve it.
func (g *Graph) Member(apiVersion, kind string) (Member, bool) {
	for _, members := range [][]Member{g.members, g.lookups} {
		for _, member := range members {
			known := member.GroupVersionKind()
			if known.Kind == kind && known.GroupVersion().String() == apiVersion {
				return member, true
			}
		}
	}
	return nil, false
}

// Owner returns the object that a reference names, seen from an object in a namespace. Served reports whether this API serves
// the owner's kind there, and exists whether an object has that name, whatever its uid. Records are owners that were read
// already, by the uids in the references.
func (g *Graph) Owner(
	ctx context.Context, reference metav1.OwnerReference, namespace string, records map[types.UID]store.Record,
) (owner Node, served, exists bool, err error) {
	member, served := g.Member(reference.APIVersion, reference.Kind)
	if !served {
		return Node{}, false, false, nil
	}
	if _, namespaced := member.Resource(); !namespaced {
		namespace = ""
	} else if namespace == "" {
		return Node{}, false, false, nil
	}
	if len(validation.NameIsDNSSubdomain(reference.Name, false)) > 0 {
		return Node{}, true, false, nil
	}
	name := member.RecordName(namespace, reference.Name)
	if record, ok := records[reference.UID]; ok && record.Name == name {
		owner, err = newNode(member, record)
		return owner, true, err == nil, err
	}
	owner, exists, err = findNode(ctx, member, name)
	return owner, true, exists, err
}

// ExistingOwner is Owner with the uid of the reference, unless its deletion is complete. An owner of a kind that this
// API does not serve counts as existing, without an object.
func (g *Graph) ExistingOwner(ctx context.Context, reference metav1.OwnerReference, namespace string) (owner Node, exists bool, err error) {
	owner, served, exists, err := g.Owner(ctx, reference, namespace, nil)
	switch {
	case err != nil:
		return Node{}, false, err
	case !served:
		return Node{}, true, nil
	case !exists || owner.Object.GetUID() != reference.UID || owner.Deleted():
		return Node{}, false, nil
	}
	return owner, true, nil
}

// newNode returns the object of a record.
func newNode(member Member, record store.Record) (Node, error) {
	object, err := member.Parse(record)
	if err != nil {
		return Node{}, err
	}
	return Node{Member: member, Record: record, Object: object}, nil
}

// findNode returns the object of a name in the store, and false when there is none. Its deletion may be complete.
func findNode(ctx context.Context, member Member, name string) (Node, bool, error) {
	record, err := member.Store().Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return Node{}, false, nil
	}
	if err != nil {
		return Node{}, false, err
	}
	node, err := newNode(member, record)
	return node, err == nil, err
}

// page is a page of the objects of a member.
type page struct {
	nodes []Node
	// last is the name in the store with which the page ends, and more reports whether others follow.
	last string
	more bool
}

// readPage reads a page of at most pageOfDependents objects. Objects that cannot be read are left out; the error names them.
func readPage(ctx context.Context, member Member, query store.Query) (page, error) {
	query.Limit = pageOfDependents
	records, err := member.Store().List(ctx, query)
	if err != nil {
		return page{}, err
	}
	read := page{more: records.Remaining > 0}
	for _, record := range records.Records {
		read.last = record.Name
		node, broken := newNode(member, record)
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		read.nodes = append(read.nodes, node)
	}
	return read, err
}

// dependentsOf returns a page of the objects that refer to a uid, after a name.
func dependentsOf(ctx context.Context, member Member, uid types.UID, after string) (page, error) {
	return readPage(ctx, member, store.Query{Reference: string(uid), After: after})
}
