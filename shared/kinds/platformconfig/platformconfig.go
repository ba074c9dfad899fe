// Package platformconfig has the platform configuration, which is the status of the one Config object: its rules and
// defaults, the storage of its secrets, and its history. A valid new version, from the state or from a file, takes effect
// without a restart. An invalid version never takes effect. Source: Spec 2.7, 8; ADR-0015.
//
// A loader reads versions, Current has the version in effect and serves reads, and a Writer writes new versions. The Config
// is a stored kind: its verbs are the verbs of package resource. The package validates and stores the settings of identity
// providers, and does not sign users in.
package platformconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
		return &model.ConfigList{ListMeta: meta, Items: resource.Values(items)}
	},
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the configuration."},
		{Name: "Loaded", Type: "string", Description: "Whether the latest version is in effect."},
		{Name: "Resolved", Type: "string", Description: "Whether all secrets and placeholders are known."},
		{Name: "Revision", Type: "string", Description: "The stored version."},
		{Name: "Age", Type: "string", Description: "Time since the first write."},
	},
	Cells:        cells,
	Fields:       func(*model.Config) fields.Set { return fields.Set{"metadata.namespace": ""} },
	DecodeBody:   Decode,
	WriteOnly:    [][]string{{"metadata", "annotations", model.ForceAnnotation}},
	WritesStatus: true,
}

// HistoryDefinition is the kind that config/{name}/history returns. Source: ADR-0015.
var HistoryDefinition = &resource.Definition[*model.ConfigHistory]{
	Resource: Definition.Resource,
	Kind:     "ConfigHistory",
	New:      func() *model.ConfigHistory { return &model.ConfigHistory{} },
}

// RollbackDefinition is the kind that config/{name}/rollback takes and returns. Source: ADR-0015.
var RollbackDefinition = &resource.Definition[*model.ConfigRollback]{
	Resource: Definition.Resource,
	Kind:     "ConfigRollback",
	New:      func() *model.ConfigRollback { return &model.ConfigRollback{} },
}

func cells(config *model.Config, now time.Time) []any {
	statusOf := func(condition string) string {
		if known := meta.FindStatusCondition(config.Status.Conditions, condition); known != nil {
			return string(known.Status)
		}
		return string(metav1.ConditionUnknown)
	}
	return []any{config.Name, statusOf(ConditionLoaded), statusOf(ConditionResolved), config.ResourceVersion, resource.Age(config, now)}
}

// Decode reads a Config that a client sent. Unknown and duplicate fields are errors, whatever the client asks for: to drop a
// setting silently is worse than an error.
//
// Errors: BadRequest for a body that is not an object; Invalid with a cause for each field that cannot be read, and for each
// other field that breaks a rule.
func Decode(body codec.Body) (*model.Config, error) {
	config := &model.Config{}
	problems, err := decode(body, config)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		problems = append(problems, excludeNested(validate(&config.Status, field.NewPath("status")), problems)...)
		return nil, apierror.Invalid(groupKind, Name, problems)
	}
	return config, nil
}

// ReadFile reads a configuration from a file, as Parse does. The error names the file.
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

// Parse reads a configuration from YAML: the fields of status at the top level, or a whole Config. The error names every
// invalid field.
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
		return nil, errors.New("the platform configuration must be an object")
	}
	var form struct {
		Kind any `json:"kind"`
	}
	if err := json.Unmarshal(trimmed, &form); err != nil {
		return nil, fmt.Errorf("reading the platform configuration: %w", err)
	}
	target, path := any(&config.Status), (*field.Path)(nil)
	if form.Kind == Definition.Kind {
		target, path = config, field.NewPath("status")
	}
	problems, err := decode(body, target)
	if err != nil {
		return nil, err
	}
	if config.Name != "" && config.Name != Name {
		problems = append(problems, field.NotSupported(field.NewPath("metadata", "name"), config.Name, []string{Name}))
	}
	if len(config.Status.Conditions) > 0 {
		problems = append(problems, field.Forbidden(path.Child("conditions"), "must not be set: the platform sets them"))
	}
	problems = append(problems, strayMarks(&config.Status, path)...)
	problems = append(problems, excludeNested(validate(&config.Status, path), problems)...)
	if err := problems.ToAggregate(); err != nil {
		return nil, err
	}
	return config, Definition.CheckKind(config)
}
