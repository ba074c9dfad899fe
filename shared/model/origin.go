package model

// Origin says with which access key an object was made. The server sets it. Source: ADR-0047.
type Origin struct {
	// CreatedBy is the access key with which the object was made, and its owner. Absent if the platform itself made the object, or a
	// version of the platform that did not record it. Source: ADR-0047.
	// +optional
	CreatedBy *AccessKeyReference `json:"createdBy,omitempty"`
	// Lineage is the access keys that led to the object: the first is createdBy, the next one made that, and so on. Source: ADR-0047.
	// +optional
	// +listType=atomic
	Lineage []AccessKeyAncestor `json:"lineage,omitempty"`
}
