// Package model contains the wire types of management.platform.sh/v1: what clients send and receive, with the
// JSON names of the specification. The OpenAPI documents and the output of `kubectl explain` are generated
// from its docstrings, and the deep copy functions from its types. Source: Spec 2.1 to 2.8; ADR-0003.
//
// It has no behaviour: no defaults, no validation, no conversion and no storage format. Secrets that only
// the server reads have the type secret.String. Secrets that clients must be able to write or receive are
// plain strings here; the server converts them to secret.String right after decoding.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=sh.platform.management.v1
// +groupName=management.platform.sh
package model
