package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"management.platform.sh/shared/model"
)

// schemas returns the schemas for the computation of field ownership, a file for each kind that can be changed: the
// schemas of the kind and its parts, as in the OpenAPI v3 document but without descriptions. Source: ADR-0008.
func schemas(document []byte, resources []resourcePaths) (map[string][]byte, error) {
	var described spec3.OpenAPI
	if err := json.Unmarshal(document, &described); err != nil {
		return nil, fmt.Errorf("reading OpenAPI v3 back: %w", err)
	}
	files := map[string][]byte{}
	for _, r := range resources {
		if r.Subresource != "" || !slices.Contains(r.Verbs, "update") && !slices.Contains(r.Verbs, "patch") {
			continue
		}
		needed := map[string]*spec.Schema{}
		for name, candidate := range described.Components.Schemas {
			if describes(candidate, r.Kind) {
				collectSchemas(name, described.Components.Schemas, needed)
			}
		}
		text, err := json.MarshalIndent(needed, "", " ")
		if err != nil {
			return nil, fmt.Errorf("encoding the schemas of %s: %w", r.Kind, err)
		}
		files[r.Kind+".json"] = append(text, '\n')
	}
	return files, nil
}

// describes reports whether a schema describes a kind of the management group.
func describes(candidate *spec.Schema, kind string) bool {
	kinds, _ := candidate.Extensions[extensionGVK].([]any)
	return slices.ContainsFunc(kinds, func(each any) bool {
		gvk, _ := each.(map[string]any)
		return gvk["group"] == model.GroupName && gvk["version"] == model.Version && gvk["kind"] == kind
	})
}

// collectSchemas puts a schema, and the schemas that it refers to, into a map.
func collectSchemas(name string, all, into map[string]*spec.Schema) {
	found := all[name]
	if _, seen := into[name]; seen || found == nil {
		return
	}
	into[name] = found
	withoutDescriptions(found, func(reference string) {
		collectSchemas(reference[strings.LastIndexByte(reference, '/')+1:], all, into)
	})
}

// withoutDescriptions removes the descriptions from a schema and its parts, and calls visit for the schemas to which it refers.
func withoutDescriptions(s *spec.Schema, visit func(reference string)) {
	s.Description = ""
	if reference := s.Ref.String(); reference != "" {
		visit(reference)
	}
	for i := range s.AllOf {
		withoutDescriptions(&s.AllOf[i], visit)
	}
	for name, property := range s.Properties {
		withoutDescriptions(&property, visit)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutDescriptions(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutDescriptions(s.AdditionalProperties.Schema, visit)
	}
}
