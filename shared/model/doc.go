// Package model holds the wire types of management.platform.sh/v1: what clients send and what they are
// answered, with the JSON names of the specification. The docstrings are what `kubectl explain` and the
// OpenAPI documents say, which are generated from them together with the deep copies.
// Source: Spec 2.1 to 2.8; ADR-0003.
//
// It has no behaviour: no defaults, no validation, no conversion, no storage form. Secrets that only
// the server reads are secret.String; what clients must be able to write or receive is a plain string
// here, and the server moves it into secret.String right after decoding.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=sh.platform.management.v1
// +groupName=management.platform.sh
package model
