package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
)

// clusterToken is the ephemeral resource platform_cluster_token: a DirectClusterEndpointToken. It cannot be renewed: its end is signed. Source:
// Spec 2.4.
type clusterToken struct{ credential }

func newClusterToken() ephemeral.EphemeralResource {
	return &clusterToken{credential{label: "the token"}}
}

type clusterTokenData struct {
	TTL        *int64  `tfsdk:"ttl" json:"ttl"`
	Scope      *scope  `tfsdk:"scope" json:"scope,omitempty"`
	Name       *string `tfsdk:"name" json:"-"`
	Token      *string `tfsdk:"token" json:"-"`
	Expiration *string `tfsdk:"expiration_timestamp" json:"-"`
}

func (*clusterToken) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster_token"
}

func (*clusterToken) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A token with which Terraform reaches connected clusters directly. It is revoked when Terraform no longer needs it.",
		Attributes: map[string]schema.Attribute{
			"ttl":                  lifetimeAttribute("Lifetime of the token"),
			"scope":                scopeAttribute(),
			"name":                 resultAttribute("Name of the record of the token."),
			"token":                secretAttribute("The token, a signed JWT."),
			"expiration_timestamp": resultAttribute(expirationDescription),
		},
	}
}

func (t *clusterToken) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var data clusterTokenData
	if resp.Diagnostics.Append(req.Config.Get(ctx, &data)...); resp.Diagnostics.HasError() || !t.ready(&resp.Diagnostics) {
		return
	}
	data.TTL = lifetime(data.TTL)
	var token made
	warnings, err := t.client.create(ctx, "directclusterendpointtokens", map[string]any{
		"apiVersion": apiVersion, "kind": "DirectClusterEndpointToken", "metadata": map[string]any{}, "spec": data,
	}, &token)
	if err != nil {
		addProblem(ctx, &resp.Diagnostics, "Cannot create a token", err, req.Config, "")
		return
	}
	addWarnings(&resp.Diagnostics, "Token "+token.Metadata.Name, warnings)
	resp.Diagnostics.Append(writePrivate(ctx, resp.Private, private{Text: token.Status.Token})...)
	data.Name, data.Token, data.Expiration = &token.Metadata.Name, &token.Status.Token, token.expiration()
	resp.Diagnostics.Append(resp.Result.Set(ctx, data)...)
}
