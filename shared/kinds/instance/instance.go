// Package instance has the rules of virtual cluster instances, for which kubeconfigs are rendered: what an instance may hold, who
// sees, uses and changes it, and how the material of its signer is stored. Source: Spec 2.6; ADR-0003, ADR-0017.
//
// Package resource has the verbs; package kubeconfig renders.
package instance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// The verbs that spec.access gives. Source: ADR-0003.
const (
	Use    = "use"
	Update = "update"
	Delete = "delete"
	All    = "*"
)

// defaultDuration is the signing duration of instances that name none: one year. Source: Spec 8.
const defaultDuration = 365 * 24 * time.Hour

// equalities returns the equalities of Kubernetes with a faster comparison of byte slices, such as certificates: Kubernetes
// compares them byte by byte, by reflection.
var equalities = sync.OnceValue(func() conversion.Equalities {
	faster := apiequality.Semantic.Copy()
	if err := faster.AddFunc(bytes.Equal); err != nil {
		panic(err)
	}
	return faster
})

// Registry has the virtual cluster instances and their state.
type Registry = resource.Registry[*model.VirtualClusterInstance]

// Definition is the resource virtualclusterinstances. Source: Spec 4 row 1; ADR-0017.
var Definition = &resource.Definition[*model.VirtualClusterInstance]{
	Resource:   model.SchemeGroupVersion.WithResource("virtualclusterinstances"),
	Kind:       "VirtualClusterInstance",
	Singular:   "virtualclusterinstance",
	ShortNames: []string{"vci"},
	Namespaced: true,
	ReadAhead:  true,
	NamePrefix: "virtualcluster-",
	KeysAt:     Kubeconfig,
	New:        func() *model.VirtualClusterInstance { return &model.VirtualClusterInstance{} },
	NewList: func(meta metav1.ListMeta, items []*model.VirtualClusterInstance) runtime.Object {
		return &model.VirtualClusterInstanceList{ListMeta: meta, Items: resource.Values(items)}
	},
	NamesPeople: true,
	Columns:     columns,
	Cells:       cells,
	WriteOnly:   [][]string{{"spec", "signer", "ca"}, {"spec", "signer", "kubeconfig"}},
	Origin:      func(instance *model.VirtualClusterInstance) *model.Origin { return &instance.Status.Origin },
	Fields: func(instance *model.VirtualClusterInstance) fields.Set {
		set := fields.Set{"spec.owner.user": "", "spec.owner.team": "", "spec.clusterRef.cluster": "", "status.phase": instance.Status.Phase}
		if owner := instance.Spec.Owner; owner != nil {
			set["spec.owner.user"], set["spec.owner.team"] = owner.User, owner.Team
		}
		if at := instance.Spec.ClusterRef; at != nil {
			set["spec.clusterRef.cluster"] = at.Cluster
		}
		return set
	},
	CopyStatus: func(from, into *model.VirtualClusterInstance) { into.Status = *from.Status.DeepCopy() },
}

// Settings are what the rules need besides the instance.
type Settings struct {
	// Project returns the project of a namespace. Empty: the namespace belongs to no project.
	Project func(namespace string) string
	// Keyring returns the keys that encrypt the material of signers. nil: the process has no keys.
	Keyring func() (*encryption.Keyring, error)
	// AllowLocal permits signers at the loopback addresses of this machine. Source: ADR-0017.
	AllowLocal bool
}

// NewRegistry returns the instances in a store.
func NewRegistry(state store.Store, now func() time.Time, random io.Reader, settings Settings) *Registry {
	own := &rules{now: now, Settings: settings}
	return &Registry{Definition: Definition, Store: state, Now: now, Random: random, Strategy: resource.Strategy[*model.VirtualClusterInstance]{
		Rules: own, Visibility: own, Permissions: own, Status: own, Splicer: own,
	}}
}

type rules struct {
	Settings
	now func() time.Time
}

// Sees implements resource.Visibility: callers see an instance if they may do at least one thing with it.
func (r *rules) Sees(caller identity.Caller, instance *model.VirtualClusterInstance) auth.Decision {
	seen := r.permits(caller, anyVerb, instance)
	seen.Hidden = !seen.Allowed
	return seen
}

func (r *rules) SeenBy() string {
	return "their owner, callers that their spec.access names, members of their project, and members of " + identity.Admins
}

// Permits implements resource.Permissions: an update, also of the status, needs the verb update; a kubeconfig needs the verb
// use, and a scope that covers the scope of the kubeconfig.
func (r *rules) Permits(caller identity.Caller, verb, subresource string, instance *model.VirtualClusterInstance) auth.Decision {
	switch {
	case subresource == Kubeconfig:
		return r.mayRender(caller, instance)
	case verb == "patch":
		verb = Update
	}
	permitted := r.permits(caller, verb, instance)
	if !permitted.Allowed {
		return auth.Decision{Reason: fmt.Sprintf("seeing it is not enough to %s it: that needs the verb %q or %q in its spec.access, its owner, "+
			"an admin of its project or a member of %s", verb, verb, All, identity.Admins)}
	}
	return permitted
}

// mayRender decides whether a caller may have a kubeconfig. For callers who may not use the instance, the kubeconfig does not
// exist: 404.
func (r *rules) mayRender(caller identity.Caller, instance *model.VirtualClusterInstance) auth.Decision {
	permitted := r.permits(caller, Use, instance)
	if !permitted.Allowed {
		return auth.Decision{Hidden: true, Reason: fmt.Sprintf(
			"seeing it is not enough to use it: that needs the verb %q or %q in its spec.access, its owner, the role %q or %q in its project, or a member of %s",
			Use, All, model.ProjectRoleUse, model.ProjectRoleAdmin, identity.Admins)}
	}
	if project := r.Project(instance.Namespace); project != "" {
		if excess := auth.Exceeds(KubeconfigScope(project, instance.Name), caller, field.NewPath("scope")); len(excess) > 0 {
			return auth.Decision{Causes: excess, Reason: apierror.Summary(excess) + fmt.Sprintf(
				"; a scope with virtualClusters {project: %q, virtualCluster: %q} permits it", project, instance.Name)}
		}
	}
	return permitted
}

// Kubeconfig is the subresource at which kubeconfigs are rendered.
const Kubeconfig = "kubeconfig"

// KubeconfigScope is the scope of the access key in a kubeconfig of the instance of that name. Source: ADR-0017.
func KubeconfigScope(project, name string) *model.Scope {
	return &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: project, VirtualCluster: name}}}
}

// anyVerb stands for each verb.
const anyVerb = ""

// permits decides whether a caller may do a verb. A refusal has no reason.
func (r *rules) permits(caller identity.Caller, verb string, instance *model.VirtualClusterInstance) auth.Decision {
	return auth.AnyOf(caller, r.rights(caller, verb, instance))
}

// controls decides whether a caller may do everything with an instance.
func (r *rules) controls(caller identity.Caller, instance *model.VirtualClusterInstance) auth.Decision {
	return r.permits(caller, All, instance)
}

// rights returns what permits a verb to a caller. Admins of the platform and of the project and the owner may do everything. Other
// callers may do what their role in the project and the entries of spec.access give them. Source: ADR-0017, ADR-0037.
func (r *rules) rights(caller identity.Caller, verb string, instance *model.VirtualClusterInstance) iter.Seq[auth.Decision] {
	return func(yield func(auth.Decision) bool) {
		if caller.Admin() {
			yield(auth.PermittedAdmin)
			return
		}
		role := r.role(caller, instance)
		if role == model.ProjectRoleAdmin || role == model.ProjectRoleUse && verb == Use || role != "" && verb == anyVerb {
			if !yield(auth.PermittedByRole(role, r.Project(instance.Namespace))) {
				return
			}
		}
		if owner := instance.Spec.Owner; owner != nil {
			switch {
			case caller.Owner == identity.OwnerOf(owner.User, owner.Team, ""):
				if !yield(auth.PermittedOwner) {
					return
				}
			case isMember(caller, identity.Team, owner.Team):
				if !yield(auth.PermittedOwningTeam) {
					return
				}
			}
		}
		for i, entry := range instance.Spec.Access {
			given := slices.IndexFunc(entry.Verbs, func(given string) bool { return given == verb || given == All || verb == anyVerb })
			if given < 0 || !names(caller, entry) {
				continue
			}
			reason := fmt.Sprintf("spec.access[%d] of the instance gives %q", i, entry.Verbs[given])
			if !yield(auth.Decision{Allowed: true, Source: auth.SourceAccess, Reason: reason}) {
				return
			}
		}
	}
}

// role returns the role of a caller in the project of an instance. Empty: none.
func (r *rules) role(caller identity.Caller, instance *model.VirtualClusterInstance) string {
	if len(caller.Roles) == 0 {
		return ""
	}
	return caller.Roles[r.Project(instance.Namespace)]
}

// names reports whether an entry of spec.access names a caller.
func names(caller identity.Caller, entry model.InstanceAccess) bool {
	return slices.ContainsFunc(entry.Users, func(user string) bool { return isMember(caller, identity.User, user) }) ||
		slices.ContainsFunc(entry.Teams, func(team string) bool { return isMember(caller, identity.Team, team) })
}

// isMember reports whether a caller is the user of a name, or is the team of a name or belongs to it.
func isMember(caller identity.Caller, kind identity.OwnerKind, name string) bool {
	return name != "" && caller.Owns(identity.Owner{Kind: kind, Name: name}.String())
}

// Default keeps the stored signer if a replacement leaves it out, and updates the status after a change of the spec.
func (r *rules) Default(_ identity.Caller, instance, old *model.VirtualClusterInstance) {
	exists := old != nil
	if !exists {
		instance.Status = model.VirtualClusterInstanceStatus{}
		old = &model.VirtualClusterInstance{}
	} else if instance.Spec.Signer == nil {
		instance.Spec.Signer = old.Spec.Signer.DeepCopy()
	}
	if exists && equalities().DeepEqual(instance.Spec, old.Spec) {
		// A write of the metadata does not change the status, which other clients may have reported.
		return
	}
	before := signerType(old)
	if signer := instance.Spec.Signer; signer != nil && (signer.Type == "" || old.Spec.Signer != nil && signer.Type == before) {
		// A stored type that differs from the type of the new material is no contradiction: patches and applies do not repeat the
		// type.
		switch {
		case signer.CA != nil:
			signer.Type = model.InstanceSignerTypeCA
		case signer.Kubeconfig != "":
			signer.Type = model.InstanceSignerTypeKubeconfig
		default:
			signer.Type = before
		}
	}
	// A status that other clients have reported stays, unless the part of the spec that it describes has changed.
	observed := instance.Status
	observed.Origin = model.Origin{}
	reported := exists && !equalities().DeepEqual(observed, model.VirtualClusterInstanceStatus{})
	published := reported && equalities().DeepEqual(instance.Spec.AccessPoint, old.Spec.AccessPoint)
	if !published {
		r.publish(instance)
	}
	signer := instance.Spec.Signer
	if !reported || signerType(instance) != before || signer != nil && (signer.CA != nil || signer.Kubeconfig != "") {
		r.noteSigner(instance)
	}
	if !published {
		instance.Status.Phase = model.InstancePending
		if instance.Status.Ingress != nil {
			instance.Status.Phase = model.InstanceReady
		}
	}
}

// signerType returns the type of the signer of an instance.
func signerType(instance *model.VirtualClusterInstance) string {
	if instance.Spec.Signer == nil || instance.Spec.Signer.Type == "" {
		return model.InstanceSignerTypeNone
	}
	return instance.Spec.Signer.Type
}

// publish writes the ingress endpoint of the spec to the status.
func (r *rules) publish(instance *model.VirtualClusterInstance) {
	instance.Status.Ingress = nil
	status, reason, message := metav1.ConditionFalse, "NotConfigured", "spec.accessPoint.ingress is not enabled"
	if at := instance.Spec.AccessPoint; at != nil && at.Ingress != nil && at.Ingress.Enabled && at.Ingress.Host != "" {
		instance.Status.Ingress = &model.InstancePublishedIngress{Host: at.Ingress.Host, CAData: slices.Clone(at.Ingress.CAData)}
		status, reason, message = metav1.ConditionTrue, "Configured", "clients reach the virtual cluster at "+at.Ingress.Host
	}
	r.setCondition(instance, model.InstanceIngressReady, status, reason, message)
}

// noteSigner writes to the status which signer the instance has. Each use checks whether the signer works.
func (r *rules) noteSigner(instance *model.VirtualClusterInstance) {
	instance.Status.SignerNotAfter = nil
	status, reason, message := metav1.ConditionFalse, "NotConfigured", "spec.signer is not set"
	switch signer := instance.Spec.Signer; signerType(instance) {
	case model.InstanceSignerTypeCA:
		status, reason, message = metav1.ConditionTrue, "CA", "a client certificate authority signs"
		if signer.CA != nil {
			if ca, wrong, _ := parseCA(signer, r.now); wrong == nil {
				end := ca.Certificate.NotAfter.UTC()
				instance.Status.SignerNotAfter = &metav1.Time{Time: end}
				message = "the client certificate authority signs until " + end.Format(time.RFC3339)
			}
		}
	case model.InstanceSignerTypeKubeconfig:
		status, reason, message = metav1.ConditionTrue, "Kubeconfig", "the virtual cluster is asked to sign"
	}
	r.setCondition(instance, model.InstanceSignerReady, status, reason, message)
}

func (r *rules) setCondition(instance *model.VirtualClusterInstance, condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.Time{Time: r.now().UTC().Truncate(time.Second)},
	})
}

// Grants returns the owner of the instance, what each caller may do with it, and the addresses to which the credentials of its
// users are sent.
func (r *rules) Grants(instance *model.VirtualClusterInstance) []auth.Grant {
	spec := &instance.Spec
	all := KubeconfigScope(r.Project(instance.Namespace), instance.Name)
	var grants []auth.Grant
	if spec.Owner != nil {
		grants = append(grants, auth.BelongsTo(specPath.Child("owner"), identity.OwnerOf(spec.Owner.User, spec.Owner.Team, "")))
	}
	for _, entry := range spec.Access {
		for _, verb := range entry.Verbs {
			for _, user := range entry.Users {
				grants = append(grants, auth.Permits(specPath.Child("access"), verb, all).WithRecipient(identity.Owner{Kind: identity.User, Name: user}))
			}
			for _, team := range entry.Teams {
				grants = append(grants, auth.Permits(specPath.Child("access"), verb, all).WithRecipient(identity.Owner{Kind: identity.Team, Name: team}))
			}
		}
	}
	for _, address := range []struct {
		path  *field.Path
		value any
	}{
		{specPath.Child("clusterRef"), spec.ClusterRef},
		{specPath.Child("accessPoint"), spec.AccessPoint},
		{specPath.Child("signer"), spec.Signer},
		{statusPath.Child("ingress"), instance.Status.Ingress},
	} {
		// Values of these types always have a text.
		text, _ := json.Marshal(address.value)
		grants = append(grants, auth.Permits(address.path, string(text), all).ForExisting())
	}
	return grants
}

// Authorize returns the changed fields that only callers who may do everything with an instance may change. Otherwise callers who
// may only update could give themselves more rights, or get the credentials of others by changing the endpoint, the authority
// that verifies the endpoint, or the signer. Source: ADR-0017, ADR-0021.
func (r *rules) Authorize(caller identity.Caller, instance, old *model.VirtualClusterInstance) field.ErrorList {
	if old == nil || r.controls(caller, old).Allowed {
		return nil
	}
	var excess field.ErrorList
	for _, part := range []struct {
		name       string
		value, was any
	}{
		{"owner", instance.Spec.Owner, old.Spec.Owner},
		{"access", instance.Spec.Access, old.Spec.Access},
		{"clusterRef", instance.Spec.ClusterRef, old.Spec.ClusterRef},
		{"accessPoint", instance.Spec.AccessPoint, old.Spec.AccessPoint},
		{"signer", instance.Spec.Signer, old.Spec.Signer},
	} {
		if !equalities().DeepEqual(part.value, part.was) {
			excess = append(excess, field.Forbidden(specPath.Child(part.name), controlled))
		}
	}
	return excess
}

// controlled is the refusal for the fields that decide where the credentials of others are sent. It says who may change them.
const controlled = "may be changed only by the owner, by users with all verbs, and by admins of the platform and of the project"

// AuthorizeStatus returns the field of the status in which a caller would change the endpoint without controlling the instance:
// kubeconfigs send the credentials of others to that endpoint. Source: ADR-0021.
func (r *rules) AuthorizeStatus(caller identity.Caller, instance, old *model.VirtualClusterInstance) field.ErrorList {
	if r.controls(caller, old).Allowed || equalities().DeepEqual(instance.Status.Ingress, old.Status.Ingress) {
		return nil
	}
	return field.ErrorList{field.Forbidden(statusPath.Child("ingress"), controlled)}
}

// Index returns the owner whose quota counts the instance: its owner, or its project if it has no owner. Instances never expire.
func (r *rules) Index(instance *model.VirtualClusterInstance, _ time.Time) (owner string, expires time.Time) {
	switch instanceOwner := instance.Spec.Owner; {
	case instanceOwner == nil:
		if project := r.Project(instance.Namespace); project != "" {
			return "project:" + project, time.Time{}
		}
		return "", time.Time{}
	case instanceOwner.User != "":
		return identity.Owner{Kind: identity.User, Name: instanceOwner.User}.String(), time.Time{}
	default:
		return identity.Owner{Kind: identity.Team, Name: instanceOwner.Team}.String(), time.Time{}
	}
}

// Observe removes the material of the signer from answers.
func (r *rules) Observe(instance *model.VirtualClusterInstance, record store.Record) {
	if signer := instance.Spec.Signer; signer != nil && record.Name != "" {
		signer.CA, signer.Kubeconfig = nil, ""
	}
}

// Basis implements resource.Splicer: Observed adds nothing to an instance, and an instance fits if it has no material of a
// signer.
func (r *rules) Basis(instance *model.VirtualClusterInstance) (basis string, fit bool) {
	signer := instance.Spec.Signer
	return "", signer == nil || signer.CA == nil && signer.Kubeconfig == ""
}

func (r *rules) Observed(text []byte, _ string, _ store.Record) []byte { return text }

func (r *rules) Warn(*model.VirtualClusterInstance) []string { return nil }
