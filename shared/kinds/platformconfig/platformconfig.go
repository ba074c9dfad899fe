// Package platformconfig is what is true of the platform configuration, the status of the one Config object: its
// rules and defaults, where it comes from, how a new version takes effect without a restart and a bad one never
// does, what of it may be shown, and how it is written, looked back at and rolled back.
// Source: Spec 2.7, 8; ADR-0015.
//
// It signs nobody in: the blocks of the providers are checked and kept for those who do.
package platformconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
)

// Name is the name of the one Config. Source: Spec 2.7.
const Name = "config"

var groupKind = model.SchemeGroupVersion.WithKind("Config").GroupKind()

// Definition is the resource configs, which is served at config too. Source: Spec 2.7, 4 rows 2 and 3.
var Definition = &resource.Definition[*model.Config]{
	Resource: model.SchemeGroupVersion.WithResource("configs"),
	Kind:     "Config",
	Singular: "config",
	New:      func() *model.Config { return &model.Config{} },
	NewList: func(meta metav1.ListMeta, items []*model.Config) runtime.Object {
		list := &model.ConfigList{ListMeta: meta, Items: make([]model.Config, len(items))}
		list.SetGroupVersionKind(model.SchemeGroupVersion.WithKind("ConfigList"))
		for i, item := range items {
			list.Items[i] = *item
		}
		return list
	},
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the configuration."},
		{Name: "Loaded", Type: "string", Description: "Whether its latest version is in effect."},
		{Name: "Resolved", Type: "string", Description: "Whether its secrets and placeholders have their text."},
		{Name: "Revision", Type: "string", Description: "The version in effect."},
		{Name: "Age", Type: "string", Description: "Time since it was first written."},
	},
	Cells:      cells,
	Fields:     func(*model.Config) fields.Set { return fields.Set{} },
	DecodeBody: Decode,
}

// HistoryDefinition is what config/{name}/history answers. Source: ADR-0015.
var HistoryDefinition = &resource.Definition[*model.ConfigHistory]{
	Resource: Definition.Resource,
	Kind:     "ConfigHistory",
	New:      func() *model.ConfigHistory { return &model.ConfigHistory{} },
}

// RollbackDefinition is what config/{name}/rollback takes and answers. Source: ADR-0015.
var RollbackDefinition = &resource.Definition[*model.ConfigRollback]{
	Resource: Definition.Resource,
	Kind:     "ConfigRollback",
	New:      func() *model.ConfigRollback { return &model.ConfigRollback{} },
}

func cells(config *model.Config, now time.Time) []any {
	of := func(condition string) string {
		for _, one := range config.Status.Conditions {
			if one.Type == condition {
				return string(one.Status)
			}
		}
		return string(metav1.ConditionUnknown)
	}
	return []any{config.Name, of(ConditionLoaded), of(ConditionResolved), config.ResourceVersion, resource.Age(config, now)}
}

// Decode reads a Config that a client sent. Unknown and duplicate fields are errors here whatever the client asks
// for, since a setting that is silently dropped is worse than none.
//
// Errors: BadRequest for what is no object; Invalid with a cause for each field of a wrong form, and for each that
// breaks a rule beside these.
func Decode(body codec.Body) (*model.Config, error) {
	config := &model.Config{}
	problems, err := decode(body, config)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		problems = append(problems, beside(validate(&config.Status, field.NewPath("status")), problems)...)
		return nil, apierror.Invalid(groupKind, Name, problems)
	}
	return config, nil
}

// ReadFile is Parse of a file; the error names it.
func ReadFile(path string) (*model.Config, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	config, err := Parse(content)
	if err != nil {
		return nil, fmt.Errorf("platform configuration %s: %w", path, err)
	}
	return config, nil
}

// Parse reads a configuration from YAML: the fields of status at the top level, or a whole Config. The error names
// every field that is wrong.
func Parse(text []byte) (*model.Config, error) {
	body, err := codec.Read(codec.YAML, text)
	if err != nil {
		return nil, err
	}
	config := &model.Config{}
	trimmed := bytes.TrimSpace(body.JSON)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return config, nil
	}
	if trimmed[0] != '{' {
		return nil, errors.New("the platform configuration is not an object")
	}
	var form struct {
		Kind any `json:"kind"`
	}
	if err := json.Unmarshal(trimmed, &form); err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	into, path := any(&config.Status), (*field.Path)(nil)
	if form.Kind == Definition.Kind {
		into, path = config, field.NewPath("status")
	}
	problems, err := decode(body, into)
	if err != nil {
		return nil, err
	}
	if config.Name != "" && config.Name != Name {
		problems = append(problems, field.NotSupported(field.NewPath("metadata", "name"), config.Name, []string{Name}))
	}
	if len(config.Status.Conditions) > 0 {
		problems = append(problems, field.Forbidden(below(path, "conditions"), "are the platform's own"))
	}
	problems = append(problems, restore(&config.Status, nil, path)...)
	problems = append(problems, beside(validate(&config.Status, path), problems)...)
	if err := problems.ToAggregate(); err != nil {
		return nil, err
	}
	return config, Definition.CheckKind(config)
}
