package model

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// ConfigCloud configures the hosted platform. Source: Spec 2.7.
type ConfigCloud struct {
	// ReleaseChannel is the channel that updates come from. Source: Spec 2.7.
	// +optional
	ReleaseChannel string `json:"releaseChannel,omitempty"`
	// MaintenanceWindow is the time at which updates may be installed. If absent, they may be installed at any
	// time. Source: Spec 2.7.
	// +optional
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`
	// CostControl configures the dashboard of costs and savings. Source: Spec 2.7.
	// +optional
	CostControl *CostControl `json:"costControl,omitempty"`
}

// MaintenanceWindow is the weekly time at which updates may be installed. Source: Spec 2.7.
type MaintenanceWindow struct {
	// DayOfWeek is the English name of a day, such as `Sunday`. Source: Spec 2.7.
	// +optional
	DayOfWeek string `json:"dayOfWeek,omitempty"`
	// TimeWindow is the start and the end in the form `HH:MM-HH:MM`, in 24-hour time and UTC. Source: Spec 2.7.
	// +optional
	TimeWindow string `json:"timeWindow,omitempty"`
}

// CostControl configures the dashboard of costs and savings. Source: Spec 2.7.
type CostControl struct {
	// Enabled shows the dashboard and deploys the infrastructure for its metrics. Defaults to false.
	// Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Global configures the components that run once for all connected clusters. Source: Spec 2.7.
	// +optional
	Global *CostControlGlobal `json:"global,omitempty"`
	// Cluster configures the components that run in each connected cluster. Source: Spec 2.7.
	// +optional
	Cluster *CostControlCluster `json:"cluster,omitempty"`
	// Settings are the prices that costs are computed from. Source: Spec 2.7.
	// +optional
	Settings *CostControlSettings `json:"settings,omitempty"`
}

// CostControlGlobal configures the components that run once for all connected clusters. Source: Spec 2.7.
type CostControlGlobal struct {
	// Metrics configures the metrics backend that aggregates all connected clusters. Source: Spec 2.7.
	// +optional
	Metrics *MetricsBackend `json:"metrics,omitempty"`
}

// CostControlCluster configures the components that run in each connected cluster. Source: Spec 2.7.
type CostControlCluster struct {
	// Metrics configures the metrics backend of a connected cluster. The spec of a cluster can override it.
	// Source: Spec 2.7.
	// +optional
	Metrics *MetricsBackend `json:"metrics,omitempty"`
	// CostEngine configures the engine that computes the costs of a connected cluster. Source: Spec 2.7.
	// +optional
	CostEngine *CostEngine `json:"costEngine,omitempty"`
}

// CostEngine configures the engine that computes the costs of a connected cluster. Source: Spec 2.7.
type CostEngine struct {
	// Replicas is the number of engines. If absent, the platform chooses it. Source: Spec 2.7.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are the compute resources of each engine. Source: Spec 2.7.
	// +optional
	Resources *ComputeResources `json:"resources,omitempty"`
}

// CostControlSettings are the prices that costs are computed from. Source: Spec 2.7.
type CostControlSettings struct {
	// PriceCurrency is the currency of the prices, such as `USD`. Source: Spec 2.7.
	// +optional
	PriceCurrency string `json:"priceCurrency,omitempty"`
	// AverageCPUPricePerNode is the average price of the CPUs of a node: an object whose fields are not checked.
	// Source: Spec 2.7.
	// +optional
	AverageCPUPricePerNode *JSON `json:"averageCPUPricePerNode,omitempty"`
	// AverageRAMPricePerNode is the average price of the memory of a node: an object whose fields are not
	// checked. Source: Spec 2.7.
	// +optional
	AverageRAMPricePerNode *JSON `json:"averageRAMPricePerNode,omitempty"`
}

// MetricsBackend configures a backend that stores metrics. Source: Spec 2.7.
type MetricsBackend struct {
	// Replicas is the number of backends. If absent, the platform chooses it. Source: Spec 2.7.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are the compute resources of each backend. Source: Spec 2.7.
	// +optional
	Resources *ComputeResources `json:"resources,omitempty"`
	// Retention is the time that metrics are kept: a number followed by s, m, h, d, w, M or y, such as `90d`.
	// Defaults to `1y`. Source: Spec 2.7, 8.
	// +optional
	Retention string `json:"retention,omitempty"`
	// Storage configures the volume of each backend. Source: Spec 2.7.
	// +optional
	Storage *MetricsStorage `json:"storage,omitempty"`
}

// MetricsStorage configures the volume of a metrics backend. Source: Spec 2.7.
type MetricsStorage struct {
	// StorageClass is the storage class of the volume. `-` or empty disables dynamic provisioning. If absent,
	// the default of the cluster is used. Source: Spec 2.7.
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`
	// Size is the size of the volume, such as `60Gi`. Source: Spec 2.7.
	// +optional
	Size string `json:"size,omitempty"`
}

// ComputeResources are the compute resources that a container requires and may use. Source: Spec 2.7.
type ComputeResources struct {
	// Limits are the maximum amounts by resource name, such as `cpu` and `memory`. Source: Spec 2.7.
	// +optional
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
	// Requests are the minimum amounts by resource name. They cannot exceed the limits. They default to the
	// limits, if limits are set. Source: Spec 2.7.
	// +optional
	Requests map[string]resource.Quantity `json:"requests,omitempty"`
	// Claims are the resource claims of the pod that the container uses. They cannot be changed. Source: Spec
	// 2.7.
	// +optional
	// +listType=map
	// +listMapKey=name
	Claims []ComputeResourceClaim `json:"claims,omitempty"`
}

// ComputeResourceClaim selects a resource claim of the pod. Source: Spec 2.7.
type ComputeResourceClaim struct {
	// Name is the name of an entry in the resource claims of the pod. It must be unique in the list.
	// Source: Spec 2.7.
	Name string `json:"name"`
	// Request is the part of the claim to use. Empty means the entire claim. Source: Spec 2.7.
	// +optional
	Request string `json:"request,omitempty"`
}
