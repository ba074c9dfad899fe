package main

import (
	"k8s.io/kube-openapi/pkg/common"
)

// container, route, parameter and answer implement the interfaces of both builders of kube-openapi, so that one
// description of an operation becomes its v2 and its v3 form.
type container []common.Route

func (container) RootPath() string                   { return groupPath }
func (container) PathParameters() []common.Parameter { return nil }
func (c container) Routes() []common.Route           { return c }

type route struct {
	method      string
	path        string
	operation   string
	description string
	action      string
	kind        string
	consumes    []string
	produces    []string
	parameters  []common.Parameter
	body        any
	answers     []common.StatusCodeResponse
}

func (r route) Method() string                                   { return r.method }
func (r route) Path() string                                     { return r.path }
func (r route) OperationName() string                            { return r.operation }
func (r route) Parameters() []common.Parameter                   { return r.parameters }
func (r route) Description() string                              { return r.description }
func (r route) Consumes() []string                               { return r.consumes }
func (r route) Produces() []string                               { return r.produces }
func (r route) RequestPayloadSample() any                        { return r.body }
func (r route) ResponsePayloadSample() any                       { return nil }
func (r route) StatusCodeResponses() []common.StatusCodeResponse { return r.answers }

func (r route) Metadata() map[string]any {
	return map[string]any{extensionAction: r.action, extensionGVK: kindExtension(groupVersion.WithKind(r.kind))}
}

type parameter struct {
	name        string
	description string
	kind        common.ParameterKind
	dataType    string
	required    bool
}

func (p parameter) Name() string               { return p.name }
func (p parameter) Description() string        { return p.description }
func (p parameter) Required() bool             { return p.required }
func (p parameter) Kind() common.ParameterKind { return p.kind }
func (p parameter) DataType() string           { return p.dataType }
func (p parameter) AllowMultiple() bool        { return false }

type answer struct {
	code    int
	message string
	model   any
}

func (a answer) Code() int       { return a.code }
func (a answer) Message() string { return a.message }
func (a answer) Model() any      { return a.model }
