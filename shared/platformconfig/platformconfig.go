// Package platformconfig reads the platform configuration: the status of the one Config object, from a YAML
// file that holds either its fields at the top level or the whole object. A new version takes effect without
// a restart, and a bad one never does: the one before stays, and the error says what is wrong.
// Source: Spec 2.7; ADR-0006.
package platformconfig

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/codec"
	"management.platform.sh/shared/model"
)

// Source is a configuration that is kept up to date. It is safe for concurrent use, but for Reload, which
// one goroutine at a time may call.
type Source struct {
	path    string
	text    []byte
	current atomic.Pointer[model.ConfigStatus]
}

// Open reads a file. An empty path is the empty configuration.
func Open(path string) (*Source, error) {
	source := &Source{path: path}
	source.current.Store(&model.ConfigStatus{})
	if path == "" {
		return source, nil
	}
	_, err := source.Reload()
	return source, err
}

// Current is the configuration of this moment. It is never nil and not to be changed.
func (s *Source) Current() *model.ConfigStatus { return s.current.Load() }

// Reload reads the file anew and tells whether its content is another one. On an error the configuration
// stays as it was, and the same content is not complained of again.
func (s *Source) Reload() (changed bool, err error) {
	if s.path == "" {
		return false, nil
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return false, fmt.Errorf("reading the platform configuration: %w", err)
	}
	if bytes.Equal(text, s.text) {
		return false, nil
	}
	s.text = text
	config, err := Parse(text)
	if err != nil {
		return false, fmt.Errorf("platform configuration %s: %w", s.path, err)
	}
	s.current.Store(config)
	return true, nil
}

// Parse reads a configuration in either form. It refuses unknown and duplicate fields and values that break
// a rule, all of them at once.
func Parse(text []byte) (*model.ConfigStatus, error) {
	body, err := codec.Read(codec.YAML, text)
	if err != nil {
		return nil, err
	}
	var form struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	var config model.Config
	into := any(&config.Status)
	if form.Kind == "Config" {
		into = &config
	}
	if len(bytes.TrimSpace(body.JSON)) == 0 || string(bytes.TrimSpace(body.JSON)) == "null" {
		return &config.Status, nil
	}
	if _, err := codec.Decode(body, into, codec.Strict); err != nil {
		return nil, err
	}
	if err := validate(&config.Status).ToAggregate(); err != nil {
		return nil, err
	}
	return &config.Status, nil
}

func validate(config *model.ConfigStatus) field.ErrorList {
	var problems field.ErrorList
	if auth := config.Auth; auth != nil && auth.AccessKeyMaxTTLSeconds < 0 {
		problems = append(problems, field.Invalid(field.NewPath("auth", "accessKeyMaxTTLSeconds"),
			auth.AccessKeyMaxTTLSeconds, "must not be negative"))
	}
	return problems
}
