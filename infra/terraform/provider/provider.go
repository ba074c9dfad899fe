package main

import (
	"cmp"
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Environment variables of the provider. The program platform has the same ones.
const (
	serverVariable    = "PLATFORM_SERVER"
	accessKeyVariable = "PLATFORM_ACCESS_KEY"
)

type platformProvider struct{}

func newProvider() provider.Provider { return &platformProvider{} }

// settings are the arguments of a provider block.
type settings struct {
	Server    types.String `tfsdk:"server"`
	AccessKey types.String `tfsdk:"access_key"`
	Authority types.String `tfsdk:"certificate_authority"`
}

func (*platformProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "platform", version
}

func (*platformProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Credentials of a management API of virtual clusters, as ephemeral resources.",
		Attributes: map[string]schema.Attribute{
			"server": schema.StringAttribute{
				Optional:    true,
				Description: "The platform: HOST, or https://HOST/kubernetes/management. If absent, the value of " + serverVariable + ".",
			},
			"access_key": schema.StringAttribute{
				Optional: true, Sensitive: true,
				Description: "The access key with which the provider authenticates. If absent, the value of " + accessKeyVariable + ".",
			},
			"certificate_authority": schema.StringAttribute{
				Optional:    true,
				Description: "Certificate authority of the platform: a file, or certificates in PEM. If absent, the authorities of the system.",
			},
		},
	}
}

func (*platformProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config settings
	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); resp.Diagnostics.HasError() {
		return
	}
	// A value may be known in the apply only. The variables of the environment do not stand in for it: their key may permit more.
	if config.Server.IsUnknown() || config.AccessKey.IsUnknown() || config.Authority.IsUnknown() {
		if req.ClientCapabilities.DeferralAllowed {
			resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
		}
		return
	}
	server, key := cmp.Or(config.Server.ValueString(), os.Getenv(serverVariable)), cmp.Or(config.AccessKey.ValueString(), os.Getenv(accessKeyVariable))
	if server == "" {
		resp.Diagnostics.AddAttributeError(path.Root("server"), "No platform", "Set server, or the environment variable "+serverVariable+".")
	}
	if key == "" {
		resp.Diagnostics.AddAttributeError(path.Root("access_key"), "No access key", "Set access_key, or the environment variable "+accessKeyVariable+".")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	endpoint, err := endpointOf(server)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("server"), "Invalid platform", err.Error())
		return
	}
	connection, err := connect(config.Authority.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("certificate_authority"), "Invalid certificate authority", err.Error())
		return
	}
	resp.EphemeralResourceData = &client{endpoint: endpoint, bearer: key, http: connection}
}

func (*platformProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{newAccessKey, newClusterToken, newKubeconfig}
}

func (*platformProvider) Resources(context.Context) []func() resource.Resource { return nil }

func (*platformProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
