// Package v1 has the types of management.platform.sh/v1 for Go programs that use the API: every kind and its lists, with deep copies, and
// AddToScheme for the clients of client-go and controller-runtime. The types are those of the server, without the server: the module requires
// k8s.io/apimachinery alone. Secrets are plain text here, so do not print objects that have one.
package v1
