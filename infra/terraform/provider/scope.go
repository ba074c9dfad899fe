package main

import (
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// scope narrows a credential. It has the fields of the API that are not deprecated. Source: Spec 2.3.
type scope struct {
	Roles           []scopeRole           `tfsdk:"roles" json:"roles,omitempty"`
	Projects        []scopeProject        `tfsdk:"projects" json:"projects,omitempty"`
	Spaces          []scopeSpace          `tfsdk:"spaces" json:"spaces,omitempty"`
	VirtualClusters []scopeVirtualCluster `tfsdk:"virtual_clusters" json:"virtualClusters,omitempty"`
	Clusters        []scopeCluster        `tfsdk:"clusters" json:"clusters,omitempty"`
	ReadOnly        *bool                 `tfsdk:"read_only" json:"readOnly,omitempty"`
}

type scopeRole struct {
	Role            string   `tfsdk:"role" json:"role"`
	Projects        []string `tfsdk:"projects" json:"projects,omitempty"`
	VirtualClusters []string `tfsdk:"virtual_clusters" json:"virtualClusters,omitempty"`
}

type scopeProject struct {
	Project string `tfsdk:"project" json:"project"`
}

type scopeSpace struct {
	Project string `tfsdk:"project" json:"project"`
	Space   string `tfsdk:"space" json:"space"`
}

type scopeVirtualCluster struct {
	Project        string `tfsdk:"project" json:"project"`
	VirtualCluster string `tfsdk:"virtual_cluster" json:"virtualCluster"`
}

type scopeCluster struct {
	Cluster string `tfsdk:"cluster" json:"cluster"`
}

// scopeAttribute is the argument scope.
func scopeAttribute() schema.Attribute {
	required := func(description string) schema.Attribute {
		return schema.StringAttribute{Required: true, Description: description}
	}
	names := func(description string) schema.Attribute {
		return schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: description}
	}
	list := func(description string, attributes map[string]schema.Attribute) schema.Attribute {
		return schema.ListNestedAttribute{Optional: true, Description: description, NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		Description: "What the credential may do at most. If absent, the credential may do everything that its owner may do. An empty scope permits " +
			"only what every credential may do.",
		Attributes: map[string]schema.Attribute{
			"roles": list("Roles whose permissions apply to the credential.", map[string]schema.Attribute{
				"role":             required("Name of the role, such as platformCLI."),
				"projects":         names("Projects that the role applies to. If empty, every project."),
				"virtual_clusters": names("Virtual clusters that the role applies to. If empty, every virtual cluster."),
			}),
			"projects": list("Projects that the credential may access.", map[string]schema.Attribute{
				"project": required("Name of the project; * selects all."),
			}),
			"spaces": list("Spaces that the credential may access.", map[string]schema.Attribute{
				"project": required("Name of the project of the space."),
				"space":   required("Name of the space; * selects all spaces of the project."),
			}),
			"virtual_clusters": list("Virtual clusters that the credential may access.", map[string]schema.Attribute{
				"project":         required("Name of the project of the virtual cluster."),
				"virtual_cluster": required("Name of the virtual cluster; * selects all virtual clusters of the project."),
			}),
			"clusters": list("Connected clusters that the credential may access.", map[string]schema.Attribute{
				"cluster": required("Name of the connected cluster; * selects all."),
			}),
			"read_only": schema.BoolAttribute{Optional: true, Description: "If true, the credential only reads, and makes no other credential."},
		},
	}
}
