package resource

import (
	"bytes"
	"fmt"
	"io"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource/stored"
	"management.platform.sh/shared/model/apierror"
)

const (
	// suffixLength and suffixAlphabet make generated names: the form that Kubernetes gives them.
	suffixLength   = 5
	suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	// maxGeneratedName is the longest generated name; a longer prefix is truncated. Source: Spec 2.2.
	maxGeneratedName = 63
)

var metadataPath = field.NewPath("metadata")

// prepareMetadata sets the metadata of a new object that belongs to the server.
func (r *Registry[T]) prepareMetadata(object T, namespace string, random io.Reader) error {
	if object.GetName() == "" {
		prefix := object.GetGenerateName()
		if prefix == "" {
			prefix = r.Definition.NamePrefix
		}
		suffix, err := randomText(random, suffixAlphabet, suffixLength)
		if err != nil {
			return err
		}
		object.SetName(prefix[:min(len(prefix), maxGeneratedName-suffixLength)] + suffix)
	}
	uid, err := NewUID(random)
	if err != nil {
		return err
	}
	if r.Definition.Namespaced && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	object.SetUID(uid)
	object.SetCreationTimestamp(metav1.Time{Time: r.Now().UTC().Truncate(1e9)})
	object.SetGeneration(1)
	object.SetSelfLink("")
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	object.SetManagedFields(nil)
	return nil
}

// keepMetadata copies the metadata that belongs to the server from the stored object into its replacement. Fields that
// a client may omit but not change (uid, creationTimestamp) are filled in only where they are omitted.
func keepMetadata(object, old metav1.Object) {
	object.SetSelfLink("")
	object.SetGeneration(old.GetGeneration())
	if object.GetUID() == "" {
		object.SetUID(old.GetUID())
	}
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	// Once set, deletionTimestamp belongs to the server, whatever a client sends; the grace period may be omitted.
	if old.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if object.GetDeletionGracePeriodSeconds() == nil {
		object.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	if object.GetGenerateName() == "" {
		object.SetGenerateName(old.GetGenerateName())
	}
}

func (r *Registry[T]) validateMetadata(object T) field.ErrorList {
	return validation.ValidateObjectMetaAccessor(object, r.Definition.Namespaced, validation.NameIsDNSSubdomain, metadataPath)
}

// validateMetadataUpdate checks the metadata of a replacement by itself and against the stored object.
func (r *Registry[T]) validateMetadataUpdate(object, old T) field.ErrorList {
	problems := r.validateMetadata(object)
	if old.GetDeletionTimestamp() != nil {
		problems = append(problems, validation.ValidateNoNewFinalizers(
			object.GetFinalizers(), old.GetFinalizers(), metadataPath.Child("finalizers"))...)
	}
	problems = append(problems, validation.ValidateImmutableField(
		object.GetDeletionTimestamp(), old.GetDeletionTimestamp(), metadataPath.Child("deletionTimestamp"))...)
	problems = append(problems, validation.ValidateImmutableField(
		object.GetDeletionGracePeriodSeconds(), old.GetDeletionGracePeriodSeconds(), metadataPath.Child("deletionGracePeriodSeconds"))...)
	newCreated, oldCreated := object.GetCreationTimestamp(), old.GetCreationTimestamp()
	if !newCreated.Equal(&oldCreated) {
		problems = append(problems, field.Invalid(metadataPath.Child("creationTimestamp"), newCreated, validation.FieldImmutableErrorMsg))
	}
	return problems
}

// checkPreconditions compares what the caller expects with the stored object. Empty values expect nothing.
func (r *Registry[T]) checkPreconditions(object T, uid types.UID, resourceVersion string) error {
	if uid != "" && uid != object.GetUID() {
		return apierror.Conflict(r.Definition.GroupResource(), object.GetName(), fmt.Sprintf(
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, object.GetUID()))
	}
	if resourceVersion != "" && resourceVersion != object.GetResourceVersion() {
		return apierror.Modified(r.Definition.GroupResource(), object.GetName())
	}
	return nil
}

// desiredChanged reports whether the desired state of two encoded objects differs: all but their metadata, and their status
// where clients do not write that. Source: Spec 2.2 (generation).
func (r *Registry[T]) desiredChanged(text, old []byte) bool {
	return differ(text, old, func(name string) bool { return name == "metadata" || name == status && !r.Definition.WritesStatus })
}

// differ reports whether two encoded objects differ in other members than some.
func differ(a, b []byte, except func(name string) bool) bool {
	count := 0
	for name, value := range stored.Members(a) {
		if except(string(name)) {
			continue
		}
		if other, found := stored.Member(b, string(name)); !found || !bytes.Equal(value, other) {
			return true
		}
		count++
	}
	for name := range stored.Members(b) {
		if !except(string(name)) {
			count--
		}
	}
	return count != 0
}

func randomText(random io.Reader, alphabet string, length int) (string, error) {
	text := make([]byte, 0, length)
	// Bytes beyond the last whole multiple of the alphabet are discarded, so that all letters are equally likely.
	usable := 256 - 256%len(alphabet)
	var buffer [1]byte
	for len(text) < length {
		if _, err := io.ReadFull(random, buffer[:]); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		if int(buffer[0]) < usable {
			text = append(text, alphabet[int(buffer[0])%len(alphabet)])
		}
	}
	return string(text), nil
}

// NewUID makes a version 4 UUID for an object.
func NewUID(random io.Reader) (types.UID, error) {
	id, err := uuid.NewRandomFromReader(random)
	if err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return types.UID(id.String()), nil
}
