package platformconfig

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// document is the configuration as the state holds it. Source: ADR-0015.
type document struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	// Status has a mark for each secret, and Sealed the secrets by their paths.
	Status model.ConfigStatus `json:"status"`
	Sealed map[string]string  `json:"sealed,omitempty"`
	// Author wrote it, at Time. RolledBackTo is the revision that it brought back, if it did.
	Author       string      `json:"author,omitempty"`
	Time         metav1.Time `json:"time"`
	RolledBackTo string      `json:"rolledBackTo,omitempty"`
}

// place binds a sealed secret to where it stands.
func place(path string) string { return Definition.Resource.Resource + "/" + Name + "/" + path }

// seal makes the document of a configuration. Secrets that the earlier document holds already, with the key that
// seals now, are taken from there: so that two documents show which of their secrets differ.
func seal(config *model.Config, ring *encryption.Keyring, earlier *document) (document, error) {
	made := document{Metadata: config.ObjectMeta, Status: *config.Status.DeepCopy()}
	made.Metadata.ResourceVersion = ""
	made.Status.Conditions = nil
	for path, plain := range secrets(&config.Status) {
		if made.Sealed == nil {
			made.Sealed = map[string]string{}
		}
		if earlier != nil && !ring.Stale(earlier.Sealed[path]) {
			if known, err := ring.Open(earlier.Sealed[path], place(path)); err == nil && string(known) == plain {
				made.Sealed[path] = earlier.Sealed[path]
				continue
			}
		}
		sealed, err := ring.Seal([]byte(plain), place(path))
		if err != nil {
			return document{}, fmt.Errorf("sealing %s: %w", path, err)
		}
		made.Sealed[path] = sealed
	}
	conceal(&made.Status)
	return made, nil
}

// unseal returns the configuration of a document, and the paths of the secrets that cannot be opened, with the reason.
// These are empty then; a URL keeps its mark.
func (d *document) unseal(ring *encryption.Keyring) (config *model.Config, closed []string, err error) {
	config = &model.Config{ObjectMeta: d.Metadata, Status: *d.Status.DeepCopy()}
	everyText(&config.Status, func(t text) string {
		if t.value == "" || !t.secret && !marked(t.value) {
			return t.value
		}
		sealed, found := d.Sealed[t.path]
		if !found && !t.secret {
			return t.value // a text that looks like one with a mark
		}
		plain, problem := ring.Open(sealed, place(t.path))
		if problem != nil {
			closed = append(closed, t.at)
			err = errors.Join(err, fmt.Errorf("%s: %w", t.at, problem))
			if t.secret {
				return ""
			}
			return t.value
		}
		return string(plain)
	})
	return config, closed, err
}

// marked tells whether a text is a URL with a mark in place of its secret.
func marked(value string) bool {
	hidden, found := concealed(value)
	return found && hidden == value
}

// restore puts the secrets of an earlier configuration where the new one has a mark in their place, and returns the
// fields whose mark stands for none. Source: ADR-0015.
func restore(config *model.ConfigStatus, earlier map[string]string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	everyText(config, func(t text) string {
		whole := t.secret && t.value == secret.Mark
		if !whole && !marked(t.value) {
			return t.value
		}
		known, found := earlier[t.path]
		if hidden, _ := concealed(known); found && (whole || hidden == t.value) {
			return known
		}
		problems = append(problems, field.Invalid(below(path, t.at), field.OmitValueType{},
			"holds the mark "+secret.Mark+" of a hidden secret, and there is none here that it could stand for: give the secret"))
		return t.value
	})
	return problems
}

// read decodes a record. A field that this build does not know was written by a newer one, whose rules it passed.
func read(record store.Record) (*document, error) {
	held := &document{}
	if err := json.Unmarshal(record.Object, held); err != nil {
		return nil, fmt.Errorf("decoding revision %d: %w", record.Revision, err)
	}
	return held, nil
}
