package platformconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/lazyjson"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// content is the part of a record that holds the Config. Source: ADR-0015.
type content struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	// Status has a mark in place of each secret. Sealed has the sealed secrets by the paths of their fields, and the
	// placeholders that are stored in clear.
	Status model.ConfigStatus `json:"status"`
	Sealed map[string]string  `json:"sealed,omitempty"`
}

// document is a stored record: a content with its author.
type document struct {
	content
	// Author wrote the document at Time. RolledBackTo is the revision that the write restored. Empty: the write was no
	// rollback.
	Author       string      `json:"author,omitempty"`
	Time         metav1.Time `json:"time"`
	RolledBackTo string      `json:"rolledBackTo,omitempty"`
	// Limits are the changes that lowered the limits on the life of access keys. Source: ADR-0024.
	Limits keyLimits `json:"limits,omitzero"`
	// Trial is set while the write waits for its confirmation. Nil: it needs none.
	Trial *trial `json:"trial,omitempty"`
}

// seam separates the two parts of a text of a Config in stored form: the shown text, with a mark, and the sealed secret.
// Texts that clients send must not contain it.
const seam = "\x00"

// shownPart returns the shown part of a text. A text without a sealed secret is shown whole.
func shownPart(value string) string {
	shown, _, _ := strings.Cut(value, seam)
	return shown
}

// sealContext returns the context for which the secret of a field is sealed. The secret does not open at another path.
func sealContext(path string) string { return Definition.Resource.Resource + "/" + Name + "/" + path }

// decodeRecord returns the document of a record.
func decodeRecord(stored store.Record) (*document, error) { return decodeBy(json.Unmarshal, stored) }

// decodeFirstRecord is decodeRecord for the first record that a process reads. It makes the start faster; records after the
// start would be slower with it.
func decodeFirstRecord(stored store.Record) (*document, error) {
	return decodeBy(lazyjson.Unmarshal, stored)
}

func decodeBy(unmarshal func([]byte, any) error, stored store.Record) (*document, error) {
	decoded := &document{}
	if err := unmarshal(stored.Object, decoded); err != nil {
		return nil, fmt.Errorf("decoding revision %d: %w", stored.Revision, err)
	}
	return decoded, nil
}

// marshalStored returns the JSON of a Config in stored form.
func marshalStored(config *model.Config) ([]byte, error) {
	storedContent := content{Metadata: config.ObjectMeta, Status: *config.Status.DeepCopy()}
	everyText(&storedContent.Status, func(t text) string {
		shown, sealed, isSealed := strings.Cut(t.value, seam)
		if isSealed {
			if storedContent.Sealed == nil {
				storedContent.Sealed = map[string]string{}
			}
			storedContent.Sealed[t.path] = sealed
		}
		return shown
	})
	return json.Marshal(storedContent)
}

// unmarshalStored returns the Config of a stored text, in stored form. It ignores fields that this build does not know: a
// newer build wrote them, and validated them by its own rules.
func unmarshalStored(stored []byte) (*model.Config, error) {
	record := &document{}
	if err := json.Unmarshal(stored, record); err != nil {
		return nil, err
	}
	return record.config(), nil
}

// config returns the Config in stored form.
func (d *content) config() *model.Config {
	config := &model.Config{ObjectMeta: *d.Metadata.DeepCopy(), Status: *d.Status.DeepCopy()}
	everyText(&config.Status, func(t text) string {
		if sealed, found := d.Sealed[t.path]; found && isMark(t) {
			return t.value + seam + sealed
		}
		return t.value
	})
	return config
}

// hide removes the sealed secrets from a status in stored form and leaves the marks.
func hide(status *model.ConfigStatus) {
	everyText(status, func(t text) string { return shownPart(t.value) })
}

// unseal puts the secrets into a status in stored form. It returns the paths of the fields whose secrets cannot be opened,
// and the reasons. Such a field keeps its mark: an empty field would mean that there is no secret.
func unseal(status *model.ConfigStatus, ring *encryption.Keyring) (closedFields []string, err error) {
	everyText(status, func(t text) string {
		shown, sealed, isSealed := strings.Cut(t.value, seam)
		if shown == "" || !isSealed && !t.secret {
			return shown
		}
		plain, openErr := openSecret(t, sealed, ring)
		if openErr == nil {
			return plain
		}
		closedFields = append(closedFields, t.fieldPath)
		err = errors.Join(err, fmt.Errorf("%s: %w", t.fieldPath, openErr))
		if t.secret {
			// An operator may have written another text into the state.
			return secret.Mark
		}
		return shown
	})
	return closedFields, err
}

// openSecret returns the secret of a text. Sealed is the part that is stored beside the mark.
func openSecret(t text, sealed string, ring *encryption.Keyring) (string, error) {
	if isStoredInClear(t, sealed) {
		return sealed, nil
	}
	plain, err := ring.Open(sealed, sealContext(t.path))
	return string(plain), err
}

// isStoredInClear reports whether a value of a field is stored in clear, so that processes without the key can read it. Such
// a value is a placeholder and nothing else, which is no secret. A field is excluded if another field says where its secret
// is sent: an attacker who can write the state, but has no key, could send the value of any placeholder there. Source:
// ADR-0015.
func isStoredInClear(t text, value string) bool {
	return t.secret && t.field.Tag.Get("sentTo") == sentNowhere && placeholder().FindString(value) == value && hasPlaceholder(value)
}

// sealResult is the result of seal.
type sealResult struct {
	// problems name marks that stand for no secret, or for a secret that would be sent elsewhere, and secrets that cannot be
	// sealed.
	problems field.ErrorList
	// placeholders are the fields in which the client writes a new placeholder, or changes where its value is sent.
	placeholders []*field.Path
}

// seal brings a status that a client sent into stored form. A mark keeps the secret that the earlier status, in stored form,
// has at the same path, if the secret is still sent to the same place. An unchanged secret keeps its sealed text, so that a
// comparison of two documents shows which secrets differ.
func seal(status, earlier *model.ConfigStatus, ring *encryption.Keyring, path *field.Path) sealResult {
	earlierTexts := map[string]string{}
	everyText(earlier, func(t text) string {
		earlierTexts[t.path] = t.value
		return t.value
	})
	earlierDestinations, newDestinations := destinations(earlier), destinations(status)
	var result sealResult
	add := func(problem *field.Error) { result.problems = append(result.problems, problem) }
	everyText(status, func(t text) string {
		mark, hasSecret := concealSecret(t.value)
		if t.secret {
			mark = secret.Mark
		}
		if t.value == "" || !t.secret && !hasSecret {
			return t.value
		}
		earlierText := earlierTexts[t.path]
		shown, sealed, wasSealed := strings.Cut(earlierText, seam)
		sameDestination := earlierDestinations[t.path] == newDestinations[t.path]
		sameSecret := shown == t.value
		if wasSealed && !sameSecret {
			plain, err := openSecret(t, sealed, ring)
			url, _ := concealSecret(plain)
			sameSecret = err == nil && (plain == t.value && (sameDestination || !hasPlaceholder(t.value)) || isMark(t) && url == t.value)
			sameDestination = sameDestination || plain == t.value
		}
		switch {
		case sameSecret && sameDestination && isStoredInClear(t, t.value):
			// Earlier builds sealed such a placeholder.
			return mark + seam + t.value
		case sameSecret && sameDestination:
			return earlierText
		case sameSecret:
			names, _ := t.sentTo()
			add(field.Invalid(path.Child(t.fieldPath), field.OmitValueType{},
				"give it again: "+strings.Join(names, " or ")+" has changed, which says where this secret is sent"))
			return t.value
		case isMark(t):
			add(strayMark(path.Child(t.fieldPath)))
			return t.value
		case hasPlaceholder(t.value):
			result.placeholders = append(result.placeholders, path.Child(t.fieldPath))
		}
		if isStoredInClear(t, t.value) {
			return mark + seam + t.value
		}
		ciphertext, err := ring.Seal([]byte(t.value), sealContext(t.path))
		switch {
		case errors.Is(err, encryption.ErrNoKey):
			add(field.Forbidden(path.Child(t.fieldPath), "cannot be sealed: "+err.Error()))
		case err != nil:
			add(field.InternalError(path.Child(t.fieldPath), err))
		}
		return mark + seam + ciphertext
	})
	return result
}

// isMark reports whether a text is a mark, or a URL with a mark in place of its secret.
func isMark(t text) bool {
	mark, hasSecret := concealSecret(t.value)
	return t.secret && t.value == secret.Mark || hasSecret && mark == t.value
}

// strayMark returns the problem of a mark that stands for no secret. Source: ADR-0015.
func strayMark(path *field.Path) *field.Error {
	return field.Invalid(path, field.OmitValueType{},
		"holds the mark "+secret.Mark+" of a hidden secret, but no such secret is stored here: give the secret itself")
}

// strayMarks returns a problem for each mark in a status for which no secrets are stored.
func strayMarks(status *model.ConfigStatus, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	everyText(status, func(t text) string {
		if isMark(t) {
			problems = append(problems, strayMark(path.Child(t.fieldPath)))
		}
		return t.value
	})
	return problems
}

// marshalConcealed returns the JSON of a Config whose secrets are in clear text, with marks in their place.
func marshalConcealed(config *model.Config) ([]byte, error) {
	shownContent := content{Metadata: config.ObjectMeta, Status: *config.Status.DeepCopy()}
	conceal(&shownContent.Status)
	return json.Marshal(shownContent)
}
