package model

import "management.platform.sh/shared/model/secret"

// ConfigAudit configures which incoming requests are recorded, and where. Source: Spec 2.7, 6.
type ConfigAudit struct {
	// Enabled turns on the recording of incoming API requests. The policy selects the requests. Defaults to
	// false. Source: Spec 2.7, 6.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// DisableAgentSyncBack stops agents from sending their audit logs to the platform. Defaults to false.
	// Source: Spec 2.7.
	// +optional
	DisableAgentSyncBack bool `json:"disableAgentSyncBack,omitempty"`
	// Level selects a built-in policy, from 0 (records nothing) to 4 (records everything). It cannot be combined
	// with policy. If absent, policy applies; if policy has no rules, level 1 applies. Source: Spec 2.7; the
	// values: ADR-0016.
	// +optional
	Level *int32 `json:"level,omitempty"`
	// Policy selects the requests to record, the amount of detail and the stages. Source: Spec 2.7.
	// +optional
	Policy *AuditPolicy `json:"policy,omitempty"`
	// DataStoreEndpoint is the URL of a Redis or PostgreSQL server that stores the events in addition to the
	// files. It may contain a password. Empty means that the events are stored in files only. Source: Spec 2.7,
	// 6; the kinds: ADR-0016.
	// +optional
	DataStoreEndpoint secret.String `json:"dataStoreEndpoint,omitempty" sentTo:"-"`
	// DataStoreTTLHours is the time that the data store keeps events, in hours, at most 2562047. 0 or absent
	// means that events are kept forever. Source: Spec 2.7, 8.
	// +optional
	DataStoreTTLHours int64 `json:"dataStoreTTL,omitempty"`
	// Path is the directory for the audit log files and their backups. `-` means standard output. Required if
	// enabled is true. Source: Spec 2.7; the standard output: ADR-0016.
	// +optional
	Path string `json:"path,omitempty"`
	// MaxAgeDays is the time that old log files are kept, in days. 0 or absent means that they are kept forever.
	// Source: Spec 2.7, 8.
	// +optional
	MaxAgeDays int32 `json:"maxAge,omitempty"`
	// MaxBackups is the number of old log files to keep. 0 or absent means that all of them are kept.
	// Source: Spec 2.7.
	// +optional
	MaxBackups int32 `json:"maxBackups,omitempty"`
	// MaxSizeMegabytes is the size at which a log file is rotated, in megabytes. 0 or absent means 100.
	// Source: Spec 2.7, 8.
	// +optional
	MaxSizeMegabytes int32 `json:"maxSize,omitempty"`
	// Compress compresses rotated files with gzip. Defaults to false. Source: Spec 2.7.
	// +optional
	Compress bool `json:"compress,omitempty"`
}

// AuditPolicy selects the requests to record, the amount of detail and the stages. Source: Spec 2.7.
type AuditPolicy struct {
	// Rules are evaluated in order: the first rule that matches a request decides. A request that no rule
	// matches is not recorded. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Rules []AuditRule `json:"rules,omitempty"`
	// OmitStages are the stages that produce no events: RequestReceived, ResponseStarted, ResponseComplete or Panic. The
	// stages that the matching rule omits are added to these. Source: Spec 2.7; the values: ADR-0003.
	// +optional
	// +listType=atomic
	OmitStages []string `json:"omitStages,omitempty"`
}

// AuditRule matches requests that meet all of its restrictions, and says how much of them is recorded.
// Source: Spec 2.7.
type AuditRule struct {
	// Level is the amount of detail to record: None, Metadata, Request or RequestResponse. Source: Spec 2.7; the
	// values: ADR-0003.
	Level string `json:"level"`
	// Users are the users that the rule applies to. Empty means all users. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// UserGroups are the groups that the rule applies to. It is enough that the user belongs to one of them.
	// Empty means all groups. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	UserGroups []string `json:"userGroups,omitempty"`
	// Verbs are the verbs of the matching requests. Empty means every verb. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Verbs []string `json:"verbs,omitempty"`
	// Resources are the resources of the matching requests. Empty means all resources in all API groups.
	// Source: Spec 2.7, 2.3.
	// +optional
	// +listType=atomic
	Resources []ScopeGroupResources `json:"resources,omitempty"`
	// Namespaces restrict the rule to these namespaces. The empty string matches resources without a namespace.
	// An empty list means every namespace. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// NonResourceURLs are the paths of matching requests that are not for resources. `*` is allowed only as the last
	// character, and matches every path that begins with the text before it. Source: Spec 2.7; ADR-0016.
	// +optional
	// +listType=atomic
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	// OmitStages are the stages for which the rule produces no events, in addition to the stages that the policy omits.
	// Source: Spec 2.7.
	// +optional
	// +listType=atomic
	OmitStages []string `json:"omitStages,omitempty"`
	// RequestTargets restrict the rule to requests for these endpoints: Management, Cluster, ProjectSpace or
	// ProjectVirtualCluster. Empty means all of them. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	RequestTargets []string `json:"requestTargets,omitempty"`
	// Clusters restrict the rule to requests for these connected clusters. If it is not empty, requests that are
	// not for a cluster produce no events. Empty means no restriction. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// FailurePolicy says what happens to a request whose event cannot be recorded: Fail refuses the request with
	// status 503, Ignore serves the request and counts the loss. Defaults to Ignore. Source: ADR-0016.
	// +optional
	FailurePolicy string `json:"failurePolicy,omitempty"`
}
