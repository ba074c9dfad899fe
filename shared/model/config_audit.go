package model

import "management.platform.sh/shared/model/secret"

// ConfigAudit is what is recorded of incoming requests, and where. Source: Spec 2.7, 6.
type ConfigAudit struct {
	// Enabled records incoming API requests according to the policy. Source: Spec 2.7, 6.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// DisableAgentSyncBack keeps agents from sending their audit logs to the platform. Source: Spec 2.7.
	// +optional
	DisableAgentSyncBack bool `json:"disableAgentSyncBack,omitempty"`
	// Level is a built-in policy, from 0 (nothing) to 4 (everything). It cannot be combined with policy.
	// Absent: policy decides, or 1 where that has no rules. Source: Spec 2.7; the values: ADR-0016.
	// +optional
	Level *int32 `json:"level,omitempty"`
	// Policy is which requests are recorded, how much of them and at which stages. Source: Spec 2.7.
	// +optional
	Policy *AuditPolicy `json:"policy,omitempty"`
	// DataStoreEndpoint is where to store events besides the files: the URL of a Redis or of a PostgreSQL, which may
	// hold a password. Empty: nowhere. Source: Spec 2.7, 6; the kinds: ADR-0016.
	// +optional
	DataStoreEndpoint secret.String `json:"dataStoreEndpoint,omitempty"`
	// DataStoreTTLHours is how long events stay in the data store, in hours. Source: Spec 2.7, 8.
	// +optional
	DataStoreTTLHours int64 `json:"dataStoreTTL,omitempty"`
	// Path is the directory for the audit log files and their backups; `-` is the standard output. Required when
	// enabled. Source: Spec 2.7; the standard output: ADR-0016.
	// +optional
	Path string `json:"path,omitempty"`
	// MaxAgeDays is how long old log files are kept, in days. 0 or absent means for ever.
	// Source: Spec 2.7, 8.
	// +optional
	MaxAgeDays int32 `json:"maxAge,omitempty"`
	// MaxBackups is how many old log files are kept. 0 or absent means all. Source: Spec 2.7.
	// +optional
	MaxBackups int32 `json:"maxBackups,omitempty"`
	// MaxSizeMegabytes is the size at which a log file is rotated, in megabytes. 0 or absent means 100.
	// Source: Spec 2.7, 8.
	// +optional
	MaxSizeMegabytes int32 `json:"maxSize,omitempty"`
	// Compress compresses rotated files with gzip. Source: Spec 2.7.
	// +optional
	Compress bool `json:"compress,omitempty"`
}

// AuditPolicy is which requests are recorded, how much of them and at which stages. Source: Spec 2.7.
type AuditPolicy struct {
	// Rules are in order: the first that matches a request decides. A request that none matches is not
	// recorded. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Rules []AuditRule `json:"rules,omitempty"`
	// OmitStages are stages for which no events are made: RequestReceived, ResponseStarted,
	// ResponseComplete or Panic. Those of the matching rule are added. Source: Spec 2.7; the values:
	// ADR-0003.
	// +optional
	// +listType=atomic
	OmitStages []string `json:"omitStages,omitempty"`
}

// AuditRule matches requests by all of its restrictions and says how much of them is recorded.
// Source: Spec 2.7.
type AuditRule struct {
	// Level is None, Metadata, Request or RequestResponse. Source: Spec 2.7; the values: ADR-0003.
	Level string `json:"level"`
	// Users are the users that the rule applies to. Empty means all. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Users []string `json:"users,omitempty"`
	// UserGroups are the groups that the rule applies to; one of the user's is enough. Empty means all.
	// Source: Spec 2.7.
	// +optional
	// +listType=atomic
	UserGroups []string `json:"userGroups,omitempty"`
	// Verbs are the request verbs. Empty means every verb. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Verbs []string `json:"verbs,omitempty"`
	// Resources are the kinds of objects. Empty means all kinds in all API groups. Source: Spec 2.7, 2.3.
	// +optional
	// +listType=atomic
	Resources []ScopeGroupResources `json:"resources,omitempty"`
	// Namespaces restrict the rule to namespaces. The empty string matches non-namespaced resources; an
	// empty list means every namespace. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// NonResourceURLs are URL paths that are no resources. `*` is allowed only as the full final path
	// step. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	// OmitStages are stages for which the rule makes no events, besides those of the policy.
	// Source: Spec 2.7.
	// +optional
	// +listType=atomic
	OmitStages []string `json:"omitStages,omitempty"`
	// RequestTargets are the kinds of endpoint a request is for. Empty means all. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	RequestTargets []string `json:"requestTargets,omitempty"`
	// Clusters restrict the rule to requests for these connected clusters; requests that are not for a
	// cluster then make no events. Empty means no restriction. Source: Spec 2.7.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// FailurePolicy is what becomes of a request whose event cannot be recorded: Fail refuses it with 503, Ignore
	// serves it and counts the loss. Empty means Ignore. Source: ADR-0016.
	// +optional
	FailurePolicy string `json:"failurePolicy,omitempty"`
}
