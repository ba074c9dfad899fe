package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of SignInTrial status.phase. Source: ADR-0031.
const (
	// SignInTrialPending means that no person has signed in for the trial yet.
	SignInTrialPending = "Pending"
	// SignInTrialComplete means that the report is ready: a person has signed in, or the response of the provider was
	// refused.
	SignInTrialComplete = "Complete"
)

// SignInTrial tries one sign-in at a connector: all checks run, but the person is not signed in. It is cluster-scoped and
// created at signintrials: first with spec.connector to begin a trial, then with spec.trial until the report is ready. The
// server keeps a trial for ten minutes, and returns its report once. Source: ADR-0031.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SignInTrial struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec selects the connector to try, or the trial to report. Source: ADR-0031.
	Spec SignInTrialSpec `json:"spec"`
	// Status is the answer. It is ignored in requests. Source: ADR-0031.
	// +optional
	Status SignInTrialStatus `json:"status"`
}

// SignInTrialSpec selects the connector to try, or the trial to report. Set exactly one of its fields. Source: ADR-0031.
type SignInTrialSpec struct {
	// Connector is the ID of the connector at which a trial begins, such as oidc. Source: ADR-0031.
	// +optional
	Connector string `json:"connector,omitempty"`
	// Trial is the status.trial of the response that began the trial. Only the caller who began the trial gets its report.
	// Responses do not contain this field. Source: ADR-0031.
	// +optional
	Trial string `json:"trial,omitempty" secret:"true"`
}

// SignInTrialStatus says where a person signs in for a trial, or contains the report. It is empty in the response to a dry
// run that would begin a trial. Source: ADR-0031.
type SignInTrialStatus struct {
	// Phase is Pending until a person has signed in or the response of the provider was refused, and Complete afterwards.
	// Source: ADR-0031.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Address is the URL at which a person signs in, with a browser. It contains the trial. Present in the response that
	// begins a trial. Source: ADR-0031.
	// +optional
	Address string `json:"address,omitempty" secret:"true"`
	// Trial is an opaque text. To get the report, the caller sends it as spec.trial. Present in the response that begins a
	// trial. Source: ADR-0031.
	// +optional
	Trial string `json:"trial,omitempty" secret:"true"`
	// ExpirationTimestamp is the time at which the trial ends, with or without a report. Absent once the report has been
	// returned. Source: ADR-0031.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// Report says what the sign-in would have done. Absent while the phase is Pending. A report is returned once. Source:
	// ADR-0031.
	// +optional
	Report *SignInTrialReport `json:"report,omitempty"`
}

// SignInTrialReport says what a sign-in would have done. The trial itself changed nothing. Source: ADR-0031.
type SignInTrialReport struct {
	// Refusal is the check that refuses the sign-in, with the reason, in the words of the audit event. Absent if all checks
	// pass. Source: ADR-0031.
	// +optional
	Refusal string `json:"refusal,omitempty"`
	// Claims are the names of the claims that the provider sent, sorted. Source: ADR-0031.
	// +optional
	// +listType=atomic
	Claims []string `json:"claims,omitempty"`
	// Absent are the settings of the connector whose claim the provider did not send, each with the name of the claim.
	// Source: ADR-0031.
	// +optional
	// +listType=atomic
	Absent []string `json:"absent,omitempty"`
	// LeftOut names the claims and groups from the provider that are left out because they do not fit, separated by commas.
	// Source: ADR-0031.
	// +optional
	LeftOut string `json:"leftOut,omitempty"`
	// ID identifies the person at the connector. Source: ADR-0031.
	// +optional
	ID string `json:"id,omitempty"`
	// DisplayName is the display name that the user would have. Source: ADR-0031.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Email is the email address that the user would have. Source: ADR-0031.
	// +optional
	Email string `json:"email,omitempty"`
	// User is the name of the existing user of the person. Absent if the person has no user. Source: ADR-0031.
	// +optional
	User string `json:"user,omitempty"`
	// NewUser is the name of the user that the sign-in would create, if the name is free. Absent if the person has a user,
	// or if no user would be created. Source: ADR-0031.
	// +optional
	NewUser string `json:"newUser,omitempty"`
	// Groups are the groups that the user would have. Source: ADR-0031.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Teams are the teams that the user would be a member of, because a team lists the user or one of the groups. Source:
	// ADR-0031.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
	// NewTeams are the groups for which the sign-in would create teams, one team for each group. Source: ADR-0031.
	// +optional
	// +listType=atomic
	NewTeams []string `json:"newTeams,omitempty"`
}
