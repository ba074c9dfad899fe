package model

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// ConfigCloud are the settings of the hosted platform. Source: Spec 2.7.
type ConfigCloud struct {
	// ReleaseChannel is where updates come from. Source: Spec 2.7.
	// +optional
	ReleaseChannel string `json:"releaseChannel,omitempty"`
	// MaintenanceWindow is when updates may happen. Absent: at any time. Source: Spec 2.7.
	// +optional
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`
	// CostControl is what clusters cost and save. Source: Spec 2.7.
	// +optional
	CostControl *CostControl `json:"costControl,omitempty"`
}

// MaintenanceWindow is when updates may happen, once a week. Source: Spec 2.7.
type MaintenanceWindow struct {
	// DayOfWeek is the English name of a day, such as `Sunday`. Source: Spec 2.7.
	// +optional
	DayOfWeek string `json:"dayOfWeek,omitempty"`
	// TimeWindow is `HH:MM-HH:MM`, in 24 hours and UTC. Source: Spec 2.7.
	// +optional
	TimeWindow string `json:"timeWindow,omitempty"`
}

// CostControl is what clusters cost and save. Source: Spec 2.7.
type CostControl struct {
	// Enabled shows the dashboard and deploys the infrastructure for its metrics. Source: Spec 2.7.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Global is the part that runs once for all connected clusters. Source: Spec 2.7.
	// +optional
	Global *CostControlGlobal `json:"global,omitempty"`
	// Cluster is the part that runs in each connected cluster. Source: Spec 2.7.
	// +optional
	Cluster *CostControlCluster `json:"cluster,omitempty"`
	// Settings are the prices. Source: Spec 2.7.
	// +optional
	Settings *CostControlSettings `json:"settings,omitempty"`
}

// CostControlGlobal runs once for all connected clusters. Source: Spec 2.7.
type CostControlGlobal struct {
	// Metrics is the metrics backend that aggregates all connected clusters. Source: Spec 2.7.
	// +optional
	Metrics *MetricsBackend `json:"metrics,omitempty"`
}

// CostControlCluster runs in each connected cluster. Source: Spec 2.7.
type CostControlCluster struct {
	// Metrics is the metrics backend of a connected cluster; the spec of a cluster can override it.
	// Source: Spec 2.7.
	// +optional
	Metrics *MetricsBackend `json:"metrics,omitempty"`
	// CostEngine computes the costs of a connected cluster. Source: Spec 2.7.
	// +optional
	CostEngine *CostEngine `json:"costEngine,omitempty"`
}

// CostEngine computes the costs of a connected cluster. Source: Spec 2.7.
type CostEngine struct {
	// Replicas is the number of engines. Absent: the platform's choice. Source: Spec 2.7.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are the compute resources of an engine. Source: Spec 2.7.
	// +optional
	Resources *ComputeResources `json:"resources,omitempty"`
}

// CostControlSettings are the prices. Source: Spec 2.7.
type CostControlSettings struct {
	// PriceCurrency is the currency of the prices, such as `USD`. Source: Spec 2.7.
	// +optional
	PriceCurrency string `json:"priceCurrency,omitempty"`
	// AverageCPUPricePerNode is the price of the CPUs of a node. Its fields are free. Source: Spec 2.7.
	// +optional
	AverageCPUPricePerNode *JSON `json:"averageCPUPricePerNode,omitempty"`
	// AverageRAMPricePerNode is the price of the memory of a node. Its fields are free. Source: Spec 2.7.
	// +optional
	AverageRAMPricePerNode *JSON `json:"averageRAMPricePerNode,omitempty"`
}

// MetricsBackend stores metrics. Source: Spec 2.7.
type MetricsBackend struct {
	// Replicas is the number of backends. Absent: the platform's choice. Source: Spec 2.7.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Resources are the compute resources of a backend. Source: Spec 2.7.
	// +optional
	Resources *ComputeResources `json:"resources,omitempty"`
	// Retention is how long metrics are kept, such as `90d`. Empty means `1y`. Source: Spec 2.7, 8.
	// +optional
	Retention string `json:"retention,omitempty"`
	// Storage is the volume of a backend. Source: Spec 2.7.
	// +optional
	Storage *MetricsStorage `json:"storage,omitempty"`
}

// MetricsStorage is the volume of a metrics backend. Source: Spec 2.7.
type MetricsStorage struct {
	// StorageClass is the storage class of the volume. `-` or empty disables dynamic provisioning; absent
	// means the default of the cluster. Source: Spec 2.7.
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`
	// Size is the size of the volume, such as `60Gi`. Source: Spec 2.7.
	// +optional
	Size string `json:"size,omitempty"`
}

// ComputeResources are what a container may and must get. Source: Spec 2.7.
type ComputeResources struct {
	// Limits are the maximum amounts by resource name, such as `cpu` and `memory`. Source: Spec 2.7.
	// +optional
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
	// Requests are the minimum amounts by resource name, never above the limits. Absent means the limits,
	// where these are set. Source: Spec 2.7.
	// +optional
	Requests map[string]resource.Quantity `json:"requests,omitempty"`
	// Claims are the resource claims of the pod that the container uses. They cannot be changed.
	// Source: Spec 2.7.
	// +optional
	// +listType=map
	// +listMapKey=name
	Claims []ComputeResourceClaim `json:"claims,omitempty"`
}

// ComputeResourceClaim names a resource claim of the pod. Source: Spec 2.7.
type ComputeResourceClaim struct {
	// Name is the name of an entry in the resource claims of the pod. Source: Spec 2.7.
	Name string `json:"name"`
	// Request is the part of the claim that is wanted. Empty means everything. Source: Spec 2.7.
	// +optional
	Request string `json:"request,omitempty"`
}
