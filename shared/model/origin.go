package model

// Origin records which access key created an object. The server sets it. Source: ADR-0047.
type Origin struct {
	// CreatedBy is the access key that created the object, with the owner of the key. Absent if the platform itself created
	// the object, or an older version of the platform did not record the key. Source: ADR-0047.
	// +optional
	CreatedBy *AccessKeyReference `json:"createdBy,omitempty"`
	// Lineage lists the access keys that led to the object. The first is createdBy; each further key created the key before
	// it. Source: ADR-0047.
	// +optional
	// +listType=atomic
	Lineage []AccessKeyAncestor `json:"lineage,omitempty"`
}
