package resource

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/resource/gc"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// Decider decides about the objects of a resource, whatever their Go type. A *Registry is one.
type Decider interface {
	// GroupResource is the resource, and KeysAt the KeysAt of its Definition.
	GroupResource() schema.GroupResource
	KeysAt() string
	// Decide is Registry.Decide.
	Decide(ctx context.Context, caller identity.Caller, verb, subresource, namespace, name string) (auth.Decision, error)
	// Recipients is Registry.Recipients.
	Recipients(ctx context.Context, namespace, name string) ([]identity.Owner, error)
}

func (r *Registry[T]) GroupResource() schema.GroupResource { return r.Definition.GroupResource() }

func (r *Registry[T]) KeysAt() string { return r.Definition.KeysAt }

// Decide decides whether a caller may do a verb to the object of a name, or to a subresource of it, as the verbs of this
// package decide it for a request. It is for reviews of access, and costs the round trip of a get.
//
//   - A list and a watch show what the caller sees: they are allowed.
//   - A create has no object yet. It is allowed, unless the object is a credential and so many keys made the caller's that
//     it can make no further one.
//   - A deletecollection of a namespace is allowed if the caller may delete every object that they see there; with a name,
//     if they may delete the object of that name or do not see it.
//   - Without a name, other verbs are allowed: there is an object for which they are.
//   - An object that the caller does not see is hidden, and so is one that does not exist. Admins see everything: to them,
//     an object that does not exist is one that they may create.
//
// Decide does not decide what a request may write into an object. Errors: ServiceUnavailable, or a record that cannot be read.
// Source: ADR-0023.
func (r *Registry[T]) Decide(ctx context.Context, caller identity.Caller, verb, subresource, namespace, name string) (auth.Decision, error) {
	allowed := auth.Decision{Allowed: true}
	switch {
	case verb == "list" || verb == "watch":
		allowed.Reason = "lists leave out what is hidden"
		return allowed, nil
	case verb == "create" && subresource == "":
		return r.decideCreate(ctx, caller)
	case verb == "deletecollection":
		return r.decideCollection(ctx, caller, namespace, name)
	case name == "":
		allowed.Reason = "for the objects that permit it"
		return allowed, nil
	}
	object, record, err := r.Read(ctx, caller, namespace, name)
	if apierrors.IsNotFound(err) && caller.Admin() {
		allowed.Reason = "there is no such object, and nothing is hidden from members of " + identity.Admins
		return allowed, nil
	}
	if apierrors.IsNotFound(err) {
		return auth.Unseen(r.Definition.GroupResource(), namespace, name, r.seenBy()), nil
	}
	if err != nil {
		return auth.Decision{}, err
	}
	seen, err := r.sees(caller, record)
	if err != nil || isRead(verb) {
		return seen, err
	}
	return r.permit(caller, verb, subresource, object, seen), nil
}

// Recipients returns the users and teams that the object of a name gives a right to: its owner, and those that its fields name. Errors:
// NotFound; ServiceUnavailable, or a record that cannot be read. Source: ADR-0057.
func (r *Registry[T]) Recipients(ctx context.Context, namespace, name string) ([]identity.Owner, error) {
	record, err := r.fetch(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	object, err := r.Parse(record)
	if err != nil {
		return nil, err
	}
	kind, owner, _ := strings.Cut(record.Owner, ":")
	recipients := []identity.Owner{{Kind: identity.OwnerKind(kind), Name: owner}}
	for _, grant := range r.Rules.Grants(object) {
		recipients = append(recipients, grant.To)
	}
	return recipients, nil
}

// decideCreate is Decide for create.
func (r *Registry[T]) decideCreate(ctx context.Context, caller identity.Caller) (auth.Decision, error) {
	if r.Provenance != nil {
		refused, err := r.Provenance.RecordProvenance(ctx, caller, r.Definition.New())
		if err != nil {
			return auth.Decision{}, r.translate(err, "")
		}
		if len(refused) > 0 {
			return auth.Decision{Reason: apierror.Summary(refused), Causes: refused}, nil
		}
	}
	return auth.Decision{Allowed: true, Reason: "the contents of the object are decided with the request"}, nil
}

// decideCollection is Decide for deletecollection. It looks only at objects of kinds in which some may be seen and not
// deleted.
func (r *Registry[T]) decideCollection(ctx context.Context, caller identity.Caller, namespace, name string) (auth.Decision, error) {
	allowed := auth.Decision{Allowed: true, Reason: "every visible object may be deleted"}
	if name != "" {
		one, err := r.Decide(ctx, caller, "delete", "", namespace, name)
		if err != nil || one.Allowed || !one.Hidden {
			return one, err
		}
		return allowed, nil
	}
	if r.Visibility == nil || caller.Admin() {
		return allowed, nil
	}
	query := store.Query{Owners: r.owners(caller)}
	if namespace != "" {
		query.Prefix = namespace + "/"
	}
	for record, err := range store.Each(ctx, r.Store, query) {
		if err != nil {
			return auth.Decision{}, r.translate(err, "")
		}
		decision, err := r.sees(caller, record)
		if err != nil {
			return auth.Decision{}, err
		}
		object, err := r.Parse(record)
		if err != nil {
			return auth.Decision{}, err
		}
		if !decision.Allowed || gc.Deleted(object, r.Now()) {
			continue
		}
		if one := r.permit(caller, "delete", "", object, decision); !one.Allowed {
			one.Reason = "of the visible objects, " + object.GetName() + " may not be deleted: " + one.Reason
			return one, nil
		}
	}
	return allowed, nil
}

// isRead reports whether a verb reads an object: every caller who sees the object may do it.
func isRead(verb string) bool { return slices.Contains([]string{"get", "reveal"}, verb) }

// Admit refuses a verb that a caller, who sees the object, may not do to it or to a subresource. Error: Forbidden with
// the reason, or NotFound if the kind hides the refusal.
func (r *Registry[T]) Admit(caller identity.Caller, verb, subresource string, object T) error {
	return r.permit(caller, verb, subresource, object, auth.Decision{Allowed: true}).Error(r.Definition.GroupResource(), object.GetName())
}

// permit decides about an object that the caller sees. Seen is the decision about that.
func (r *Registry[T]) permit(caller identity.Caller, verb, subresource string, object T, seen auth.Decision) auth.Decision {
	if r.Permissions == nil {
		return seen
	}
	return r.Permissions.Permits(caller, verb, subresource, object)
}

// sees decides whether a caller may know of the object of a record.
func (r *Registry[T]) sees(caller identity.Caller, record store.Record) (auth.Decision, error) {
	if r.Visibility == nil {
		return auth.Owned(caller, record.Owner), nil
	}
	object, err := r.Parse(record)
	if err != nil {
		return auth.Decision{}, err
	}
	return r.Visibility.Sees(caller, object), nil
}

func (r *Registry[T]) seenBy() string {
	if r.Visibility != nil {
		return r.Visibility.SeenBy()
	}
	return auth.SeenBy
}
