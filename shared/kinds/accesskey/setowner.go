package accesskey

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
)

// Subresource is the subresource of users and teams at which their access keys are. Source: ADR-0029.
const Subresource = "accesskeys"

// SetOwner makes a user or a team the owner of a new key. Error: Invalid if the key names another owner; the key is unchanged
// then.
func SetOwner(key *model.OwnedAccessKey, owner identity.Owner) error {
	switch named := OwnerOf(&key.Spec); named {
	case identity.Owner{}:
		key.Spec.User, key.Spec.Team, key.Spec.Subject = owner.Fields()
		return nil
	case owner:
		return nil
	default:
		return apierror.Invalid(Definition.GroupVersionKind().GroupKind(), key.Name, field.ErrorList{field.Invalid(
			specPath.Child(string(named.Kind)), named.Name, fmt.Sprintf("the path says that the key belongs to the %s %q", owner.Kind, owner.Name))})
	}
}
