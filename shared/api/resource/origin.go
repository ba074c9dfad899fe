package resource

import (
	"k8s.io/apimachinery/pkg/fields"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
)

// recordOrigin notes in a new object with which access key it is made.
func (r *Registry[T]) recordOrigin(caller identity.Caller, object T) {
	if r.Definition.Origin == nil {
		return
	}
	origin := model.Origin{}
	if caller.Key != "" && caller.KeyUID != "" {
		origin.CreatedBy = &model.AccessKeyReference{Name: caller.Key, UID: caller.KeyUID, Owner: caller.Person()}
		origin.Lineage = append(origin.Lineage, model.AccessKeyAncestor{Name: caller.Key, UID: caller.KeyUID})
		for _, ancestor := range caller.KeyLineage[:min(len(caller.KeyLineage), limits.Lineage)] {
			origin.Lineage = append(origin.Lineage, model.AccessKeyAncestor{Name: ancestor.Name, UID: ancestor.UID})
		}
	}
	*r.Definition.Origin(object) = origin
}

// keepOrigin keeps with which access key an object was made.
func (r *Registry[T]) keepOrigin(object, old T) {
	if r.Definition.Origin != nil {
		*r.Definition.Origin(object) = *r.Definition.Origin(old).DeepCopy()
	}
}

// selectOrigin adds what field selectors see of the origin of an object to a set of fields.
func (r *Registry[T]) selectOrigin(set fields.Set, object T) {
	if r.Definition.Origin == nil {
		return
	}
	origin := r.Definition.Origin(object)
	by := model.AccessKeyReference{}
	if origin.CreatedBy != nil {
		by = *origin.CreatedBy
	}
	set["status.createdBy.name"], set["status.createdBy.uid"], set["status.createdBy.owner"] = by.Name, by.UID, by.Owner
	WithLineage(set, origin.Lineage)
}

// WithLineage adds the uids of a lineage to a set of fields for selectors, and returns it.
func WithLineage(set fields.Set, lineage []model.AccessKeyAncestor) fields.Set {
	const name = "status.lineage.uid"
	set[name] = Each
	for _, ancestor := range lineage {
		set[FieldOf(name, ancestor.UID)] = Each
	}
	return set
}
