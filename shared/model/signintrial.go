package model

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of SignInTrial status.phase. Source: ADR-0031.
const (
	// SignInTrialPending means that nobody has signed in for the trial yet.
	SignInTrialPending = "Pending"
	// SignInTrialComplete means that somebody has, or that the provider's answer was refused: the report is there.
	SignInTrialComplete = "Complete"
)

// SignInTrial runs one sign-in at a connector on trial: all checks run, and nobody is signed in. It is cluster-scoped and created at
// signintrials, twice or more: with spec.connector to begin a trial, and then with spec.trial to learn what came of it. The server keeps
// a trial for ten minutes, and gives its report once. Source: ADR-0031.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SignInTrial struct {
	metav1.TypeMeta `json:",inline"`
	// Metadata is standard object metadata. It may be empty. Source: Spec 2.2.
	// +optional
	metav1.ObjectMeta `json:"metadata"`
	// Spec says which trial to begin, or which one to report. Source: ADR-0031.
	Spec SignInTrialSpec `json:"spec"`
	// Status is the answer. It is ignored in requests. Source: ADR-0031.
	// +optional
	Status SignInTrialStatus `json:"status"`
}

// SignInTrialSpec says which trial to begin, or which one to report. Set exactly one of its fields. Source: ADR-0031.
type SignInTrialSpec struct {
	// Connector is the ID of a connector of the configuration, such as oidc. A trial begins there. Source: ADR-0031.
	// +optional
	Connector string `json:"connector,omitempty"`
	// Trial is the status.trial of the answer that began a trial. Only the caller who has begun the trial learns what came of it.
	// Responses do not contain this field. Source: ADR-0031.
	// +optional
	Trial string `json:"trial,omitempty" secret:"true"`
}

// SignInTrialStatus says where a person signs in for a trial, or what came of it. A dry run of a beginning has an empty one.
// Source: ADR-0031.
type SignInTrialStatus struct {
	// Phase is Pending until somebody has signed in, and Complete then. Source: ADR-0031.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Address is where a person signs in, with a browser. It contains the trial. Present in the response that begins a trial.
	// Source: ADR-0031.
	// +optional
	Address string `json:"address,omitempty" secret:"true"`
	// Trial is an opaque text by which the caller asks for the report, in spec.trial. Present in the response that begins a trial.
	// Source: ADR-0031.
	// +optional
	Trial string `json:"trial,omitempty" secret:"true"`
	// ExpirationTimestamp is when the trial ends, with or without a report. Absent once the report has been given. Source: ADR-0031.
	// +optional
	ExpirationTimestamp *metav1.Time `json:"expirationTimestamp,omitempty"`
	// Report is what the sign-in would have done. Absent while the phase is Pending. A report is given once. Source: ADR-0031.
	// +optional
	Report *SignInTrialReport `json:"report,omitempty"`
}

// SignInTrialReport says what a sign-in would have done. Nothing of it was done. Source: ADR-0031.
type SignInTrialReport struct {
	// Refusal is the check that refuses the sign-in, with the reason, as the audit has it. Absent if all checks pass.
	// Source: ADR-0031.
	// +optional
	Refusal string `json:"refusal,omitempty"`
	// Claims are the names of the claims that the provider sent, sorted. Source: ADR-0031.
	// +optional
	// +listType=atomic
	Claims []string `json:"claims,omitempty"`
	// Absent are the settings of the connector whose claims the provider did not send, each with its claim. Source: ADR-0031.
	// +optional
	// +listType=atomic
	Absent []string `json:"absent,omitempty"`
	// LeftOut names what the provider sent and does not fit, with commas between the names. Source: ADR-0031.
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
	// User is the name of the user of the person. Absent if there is none. Source: ADR-0031.
	// +optional
	User string `json:"user,omitempty"`
	// NewUser is the name that a new user would have, if the name is free. Absent if the person has a user, or gets none.
	// Source: ADR-0031.
	// +optional
	NewUser string `json:"newUser,omitempty"`
	// Groups are the groups that the user would have. Source: ADR-0031.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// Teams are the teams that the user would be a member of: they list the user or one of the groups. Source: ADR-0031.
	// +optional
	// +listType=atomic
	Teams []string `json:"teams,omitempty"`
	// NewTeams are the groups for each of which a team would be made. Source: ADR-0031.
	// +optional
	// +listType=atomic
	NewTeams []string `json:"newTeams,omitempty"`
}
