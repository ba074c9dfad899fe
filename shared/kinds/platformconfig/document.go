package platformconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
)

// content is what a record says of the Config itself. Source: ADR-0015.
type content struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	// Status has a mark in place of each secret, and Sealed has the secrets by their paths.
	Status model.ConfigStatus `json:"status"`
	Sealed map[string]string  `json:"sealed,omitempty"`
}

// document is a stored record: a content, and who wrote it.
type document struct {
	content
	// Author wrote it, at Time. RolledBackTo is the revision that it brought back, if it did.
	Author       string      `json:"author,omitempty"`
	Time         metav1.Time `json:"time"`
	RolledBackTo string      `json:"rolledBackTo,omitempty"`
}

// seam parts the two halves of a sealed text: the text with a mark, which is shown, and the sealed secret. A Config in
// stored form has such texts; no text that a client sends may contain it.
const seam = "\x00"

// shownPart is the half of a text that is shown: all of it where nothing is sealed.
func shownPart(value string) string {
	shown, _, _ := strings.Cut(value, seam)
	return shown
}

// place binds a sealed secret to its path.
func place(path string) string { return Definition.Resource.Resource + "/" + Name + "/" + path }

// marshalStored returns the JSON of a Config in stored form.
func marshalStored(config *model.Config) ([]byte, error) {
	made := content{Metadata: config.ObjectMeta, Status: *config.Status.DeepCopy()}
	everyText(&made.Status, func(t text) string {
		shown, sealed, found := strings.Cut(t.value, seam)
		if found {
			if made.Sealed == nil {
				made.Sealed = map[string]string{}
			}
			made.Sealed[t.path] = sealed
		}
		return shown
	})
	return json.Marshal(made)
}

// unmarshalStored returns the Config of a stored text, in stored form. It ignores a field that this build does not know: a newer
// build wrote it, and checked it by its own rules.
func unmarshalStored(stored []byte) (*model.Config, error) {
	known := &document{}
	if err := json.Unmarshal(stored, known); err != nil {
		return nil, err
	}
	return known.config(), nil
}

// config is the Config of a document, in stored form.
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

// hide leaves the marks of a status in stored form.
func hide(status *model.ConfigStatus) {
	everyText(status, func(t text) string { return shownPart(t.value) })
}

// unseal puts the secrets into a status in stored form. It returns the fields whose secret cannot be opened, with the
// reason. Such a field is empty; a URL keeps its mark.
func unseal(status *model.ConfigStatus, ring *encryption.Keyring) (closed []string, err error) {
	everyText(status, func(t text) string {
		shown, sealed, found := strings.Cut(t.value, seam)
		if shown == "" || !found && !t.secret {
			return shown
		}
		plain, problem := ring.Open(sealed, place(t.path))
		if problem == nil {
			return string(plain)
		}
		closed = append(closed, t.at)
		err = errors.Join(err, fmt.Errorf("%s: %w", t.at, problem))
		if t.secret {
			return ""
		}
		return shown
	})
	return closed, err
}

// seal gives a status that a client sent the stored form. A mark keeps the secret that the earlier status, in stored
// form, has at the same path; so does a secret that is still the same, so that two documents show which of their
// secrets differ. It returns the fields whose mark stands for nothing, and those that cannot be sealed.
func seal(status, earlier *model.ConfigStatus, ring *encryption.Keyring, path *field.Path) field.ErrorList {
	known := map[string]string{}
	everyText(earlier, func(t text) string {
		known[t.path] = t.value
		return t.value
	})
	var problems field.ErrorList
	everyText(status, func(t text) string {
		hidden, inURL := concealed(t.value)
		if t.secret {
			hidden = secret.Mark
		}
		if t.value == "" || !t.secret && !inURL {
			return t.value
		}
		before := known[t.path]
		shown, sealed, found := strings.Cut(before, seam)
		if shown == t.value {
			return before
		}
		if found {
			plain, err := ring.Open(sealed, place(t.path))
			url, _ := concealed(string(plain))
			if err == nil && (string(plain) == t.value || isMark(t) && url == t.value) {
				return before
			}
		}
		if isMark(t) {
			problems = append(problems, strayMark(below(path, t.at)))
			return t.value
		}
		made, err := ring.Seal([]byte(t.value), place(t.path))
		switch {
		case errors.Is(err, encryption.ErrNoKey):
			problems = append(problems, field.Forbidden(below(path, t.at), "cannot be sealed: "+err.Error()))
		case err != nil:
			problems = append(problems, field.InternalError(below(path, t.at), err))
		}
		return hidden + seam + made
	})
	return problems
}

// isMark tells whether a text is a mark, or a URL with a mark in place of its secret.
func isMark(t text) bool {
	hidden, inURL := concealed(t.value)
	return t.secret && t.value == secret.Mark || inURL && hidden == t.value
}

// strayMark is the problem of a mark that stands for no secret. Source: ADR-0015.
func strayMark(path *field.Path) *field.Error {
	return field.Invalid(path, field.OmitValueType{},
		"holds the mark "+secret.Mark+" of a hidden secret, but no such secret is stored here: give the secret itself")
}

// strayMarks are the fields of a status without a predecessor that have a mark.
func strayMarks(status *model.ConfigStatus, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	everyText(status, func(t text) string {
		if isMark(t) {
			problems = append(problems, strayMark(below(path, t.at)))
		}
		return t.value
	})
	return problems
}

// marshalConcealed returns the JSON of a Config whose secrets are in clear, with marks in their place.
func marshalConcealed(config *model.Config) ([]byte, error) {
	shown := content{Metadata: config.ObjectMeta, Status: *config.Status.DeepCopy()}
	conceal(&shown.Status)
	return json.Marshal(shown)
}
