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

// maxUID is the maximum length of the uid of an owner, in bytes: the store indexes no longer ones. Those of Kubernetes have 36.
const maxUID = 128

// validateOwners checks the references that are new, or that newly block the deletion of an owner. The form of references is
// checked with the rest of the metadata. If this API serves the kind of the owner, the caller must be able to see an owner
// with the given uid: the collector treats an owner with another uid as gone. A reference that is added to a stored object
// lets the collector delete the object, and a reference that blocks keeps the owner alive. Both therefore need the permission
// to delete. There is no such permission for owners that this API does not serve: only admins can block those. Read has records
// of owners that were read already, by the uids in the references.
// Source: Spec 2.2, 7; ADR-0009.
func (r *Registry[T]) validateOwners(
	ctx context.Context, caller identity.Caller, object, old T, records map[types.UID]store.Record,
) (field.ErrorList, error) {
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
		refused, err := r.validateOwner(ctx, caller, r.ownerNamespace(object), reference, isNew, blocks, path, records)
		if err != nil {
			return nil, err
		}
		problems = append(problems, refused...)
		if isNew && update && (r.Admit(caller, "delete", "", old) != nil || !r.graph().Permitted(caller, "delete", member[T]{r}, object.GetNamespace(), object.GetName())) {
			problems = append(problems, field.Forbidden(path, "needs permission to delete this object, which goes with its owners"))
		}
	}
	return problems, nil
}

// validateOwner checks one reference that is new, or that newly blocks the deletion of the owner.
func (r *Registry[T]) validateOwner(
	ctx context.Context, caller identity.Caller, namespace string, reference metav1.OwnerReference, isNew, blocks bool, path *field.Path,
	read map[types.UID]store.Record,
) (field.ErrorList, error) {
	graph := r.graph()
	ownerKind, served := graph.Member(reference.APIVersion, reference.Kind)
	owner, reachable, exists, err := graph.Owner(ctx, reference, namespace, read)
	if err != nil {
		return nil, r.translate(err, reference.Name)
	}
	// To the caller, an object that they may not see does not exist.
	exists = exists && !owner.Deleted() && ownerKind.Permits(caller, "", owner.Record)
	var problems field.ErrorList
	switch {
	case !isNew || !served:
	case !reachable:
		problems = append(problems, field.Invalid(path.Child("kind"), reference.Kind,
			"is the kind of objects in namespaces, which an object without one cannot refer to"))
	case !exists:
		problems = append(problems, field.NotFound(path.Child("name"), reference.Name))
	case owner.Object.GetUID() != reference.UID:
		problems = append(problems, field.Invalid(path.Child("uid"), reference.UID, "is not the uid of the object of that name"))
	}
	if !blocks || len(problems) > 0 {
		return problems, nil
	}
	permitted := caller.Admin()
	if served {
		_, namespaced := ownerKind.Resource()
		if !namespaced {
			namespace = ""
		}
		permitted = exists && owner.Object.GetUID() == reference.UID && ownerKind.Permits(caller, "delete", owner.Record) && graph.Permitted(caller, "delete", ownerKind, namespace, reference.Name)
	}
	if !permitted {
		problems = append(problems, field.Forbidden(path.Child("blockOwnerDeletion"), "needs permission to delete the owner"))
	}
	return problems, nil
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}
