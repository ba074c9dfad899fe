// Package helm checks the chart in infra/helm with the unmodified Helm, kube-apiserver and etcd, which it builds from their modules. There
// are no nodes: the tests start the command lines of the pods themselves. It is a module of its own, so that nothing else depends on theirs.
// Source: ADR-0053.
package helm

import _ "sigs.k8s.io/gateway-api/apis/v1" // its module has the definitions of the Gateway API
