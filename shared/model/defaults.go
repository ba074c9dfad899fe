package model

// Defaults of the platform configuration that apply where it leaves a field out. Source: Spec 2.7, 8.
const (
	// DefaultProjectNamespacePrefix begins the namespaces of projects.
	DefaultProjectNamespacePrefix = "p-"
	// DefaultLoginAccessKeyTTLSeconds is 20 days.
	DefaultLoginAccessKeyTTLSeconds = 20 * 24 * 60 * 60
)
