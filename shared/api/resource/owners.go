package resource

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// maxUID is the most bytes of the uid of an owner: what the store indexes. Kubernetes makes uids of 36.
const maxUID = 128

func uidOf(reference store.Reference) types.UID { return types.UID(reference.UID) }

// validateOwners checks what an object newly refers to; the form of the references is checked with the rest of
// the metadata. An owner of a kind that this API serves must be there for the caller and have the uid that is
// given: to the collector, another uid is an owner that is gone. Who adds a reference to a stored object lets it be
// deleted with the owner, and who blocks the deletion of an owner keeps it alive, so that both need the permission
// to delete. Owners that this API does not serve cannot be asked for: only admins may block those.
// Source: Spec 2.2, 7; ADR-0009.
func (r *Registry[T]) validateOwners(ctx context.Context, caller identity.Caller, object, old T) (field.ErrorList, error) {
	var none T
	update := any(old) != any(none)
	var had []metav1.OwnerReference
	if update {
		had = old.GetOwnerReferences()
	}
	var problems field.ErrorList
	for i, reference := range object.GetOwnerReferences() {
		path := metadataPath.Child("ownerReferences").Index(i)
		if reference.APIVersion == "" || reference.Kind == "" || reference.Name == "" || reference.UID == "" {
			continue
		}
		if len(reference.UID) > maxUID || strings.ContainsFunc(string(reference.UID), func(c rune) bool { return c <= ' ' || c == ',' || c == 0x7f }) {
			problems = append(problems, field.Invalid(path.Child("uid"), reference.UID,
				"must have at most 128 bytes, without blanks, commas and control characters"))
			continue
		}
		isNew := !slices.ContainsFunc(had, func(kept metav1.OwnerReference) bool { return sameOwner(kept, reference) })
		blocks := ptr.Deref(reference.BlockOwnerDeletion, false) && !slices.ContainsFunc(had, func(kept metav1.OwnerReference) bool {
			return sameOwner(kept, reference) && ptr.Deref(kept.BlockOwnerDeletion, false)
		})
		if !isNew && !blocks {
			continue
		}
		found, err := r.validateOwner(ctx, caller, r.ownersIn(object), reference, isNew, blocks, path)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
		if isNew && update && (r.admit(caller, "delete", old) != nil || !r.graph().may(caller, "delete", r, object.GetNamespace(), object.GetName())) {
			problems = append(problems, field.Forbidden(path, "needs permission to delete this object, which goes with its owners"))
		}
	}
	return problems, nil
}

// validateOwner checks one reference that is new, or that blocks the deletion of the owner newly.
func (r *Registry[T]) validateOwner(
	ctx context.Context, caller identity.Caller, namespace string, reference metav1.OwnerReference, isNew, blocks bool, path *field.Path,
) (field.ErrorList, error) {
	graph := r.graph()
	member, served := graph.member(reference.APIVersion, reference.Kind)
	owner, reachable, found, err := graph.owner(ctx, reference, namespace)
	if err != nil {
		return nil, r.translate(err, reference.Name)
	}
	// What the caller may not see does not exist.
	found = found && !owner.ended && member.may(caller, "", owner.record)
	var problems field.ErrorList
	switch {
	case !isNew || !served:
	case !reachable:
		problems = append(problems, field.Invalid(path.Child("kind"), reference.Kind,
			"is the kind of objects in namespaces, which an object without one cannot refer to"))
	case !found:
		problems = append(problems, field.NotFound(path.Child("name"), reference.Name))
	case owner.object.GetUID() != reference.UID:
		problems = append(problems, field.Invalid(path.Child("uid"), reference.UID, "is not the uid of the object of that name"))
	}
	if !blocks || len(problems) > 0 {
		return problems, nil
	}
	permitted := caller.Admin()
	if served {
		_, namespaced := member.definition()
		if !namespaced {
			namespace = ""
		}
		permitted = found && owner.object.GetUID() == reference.UID && member.may(caller, "delete", owner.record) && graph.may(caller, "delete", member, namespace, reference.Name)
	}
	if !permitted {
		problems = append(problems, field.Forbidden(path.Child("blockOwnerDeletion"), "needs permission to delete the owner"))
	}
	return problems, nil
}

// may asks the permission of the graph.
func (g *Graph) may(caller identity.Caller, verb string, member Member, namespace, name string) bool {
	resource, _ := member.definition()
	return g.permits == nil || g.permits(caller, verb, resource, namespace, name)
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}
