package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrustRule lets jobs exchange a token that their own system signs, such as a CI system, Kubernetes or SPIFFE, for an
// access key. It is cluster-scoped and served at trustrules. Only admins see and write trust rules. Source: ADR-0036.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TrustRule struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says which tokens are accepted, and which access key they are exchanged for. Source: ADR-0036.
	// +optional
	Spec TrustRuleSpec `json:"spec"`
	// Status is empty. It is ignored in requests. Source: ADR-0036.
	// +optional
	Status TrustRuleStatus `json:"status"`
}

// TrustRuleList is one page of trust rules. Source: Spec 2.1; ADR-0036.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TrustRuleList struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard list metadata. Source: Spec 2.2.
	// +optional
	metav1.ListMeta `json:"metadata"`
	// Items are the trust rules in the order of their names.
	// +listType=atomic
	Items []TrustRule `json:"items"`
}

// TrustRuleSpec says which tokens are accepted, and which access key they are exchanged for. Source: ADR-0036.
type TrustRuleSpec struct {
	// DisplayName is the name shown in the UI, at most 256 bytes. Source: ADR-0036.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description is free text, at most 4096 bytes. Source: ADR-0036.
	// +optional
	Description string `json:"description,omitempty"`
	// Disabled stops the rule: no token is accepted, and the access keys that the rule made are refused at the next
	// request. The keys work again when disabled is false. Source: ADR-0036.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// Issuer is the claim `iss` of the tokens, an https URL such as https://token.actions.githubusercontent.com. The
	// platform reads the keys of the issuer from the OpenID Connect metadata below this URL. Source: ADR-0036.
	Issuer string `json:"issuer"`
	// CAData contains the certificate authority of the issuer, in PEM format and encoded in base64. Empty means the root
	// certificates that the platform's system trusts. Source: ADR-0036.
	// +optional
	CAData []byte `json:"caData,omitempty"`
	// Audience is the only value that the claim `aud` of a token may have. If absent, it is the address of the platform,
	// such as https://platform.example. Source: ADR-0036.
	// +optional
	Audience string `json:"audience,omitempty"`
	// Match are the conditions on the claims of a token, 1 to 32. A token must meet all of them. Rules for issuers that
	// many organizations share, such as GitHub and GitLab, need a condition with is or isOneOf on an ID, such as
	// repository_id. Source: ADR-0036.
	// +listType=atomic
	Match []TrustRuleCondition `json:"match"`
	// MaxTokenAgeSeconds is how long ago a token may have been issued, in seconds: 600 if absent, at most 3600. Source: ADR-0036.
	// +optional
	MaxTokenAgeSeconds int64 `json:"maxTokenAgeSeconds,omitempty"`
	// Once permits only one exchange of each token. If false, a token can be exchanged as long as it is valid, and each
	// exchange makes an access key. If absent, once is true for issuers that make a token for each request (GitHub and
	// Buildkite) and false for other issuers, whose jobs have one token each. Source: ADR-0036.
	// +optional
	Once *bool `json:"once,omitempty"`
	// Owner is the user or team that the access keys act as. Source: ADR-0036.
	Owner *TrustRuleOwner `json:"owner"`
	// Scope narrows the access keys. It is required. A change also narrows the access keys that the rule has made. Source: ADR-0036.
	Scope *Scope `json:"scope"`
	// TTLSeconds is the lifetime of an access key in seconds: 600 if absent, at most 3600. Source: ADR-0036.
	// +optional
	TTLSeconds int64 `json:"ttl,omitempty"`
}

// TrustRuleOwner is the user or the team that the access keys of a trust rule act as. Source: ADR-0036.
type TrustRuleOwner struct {
	// User is the name of the user. Exactly one of user and team must be set. Source: ADR-0036.
	// +optional
	User string `json:"user,omitempty"`
	// Team is the name of the team. Source: ADR-0036.
	// +optional
	Team string `json:"team,omitempty"`
}

// TrustRuleCondition is a condition on one claim of a token. Exactly one of is, isOneOf and hasPrefix must be set. There are no
// wildcards. Numbers and booleans are compared as JSON writes them. Source: ADR-0036.
type TrustRuleCondition struct {
	// Claim is the name of the claim, at the top level of the token. Source: ADR-0036.
	Claim string `json:"claim"`
	// Is is the value of the claim. Source: ADR-0036.
	// +optional
	Is string `json:"is,omitempty"`
	// IsOneOf are the allowed values of the claim, at most 64. Source: ADR-0036.
	// +optional
	// +listType=atomic
	IsOneOf []string `json:"isOneOf,omitempty"`
	// HasPrefix is the beginning of the value of the claim. It must end in `:` or `/`. Source: ADR-0036.
	// +optional
	HasPrefix string `json:"hasPrefix,omitempty"`
}

// TrustRuleStatus is what the server observes of a trust rule. Source: ADR-0036.
type TrustRuleStatus struct {
	Origin `json:",inline"`
}

// TrustRuleReference names a trust rule. Source: ADR-0036.
type TrustRuleReference struct {
	// Name is the name of the trust rule. Source: ADR-0036.
	Name string `json:"name"`
	// UID is the UID of the trust rule. A new rule with the same name has another UID. Source: ADR-0036.
	UID string `json:"uid"`
}
