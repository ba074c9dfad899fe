package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
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
	Server     types.String `tfsdk:"server"`
	AccessKey  types.String `tfsdk:"access_key"`
	Authority  types.String `tfsdk:"certificate_authority"`
	Kubeconfig types.String `tfsdk:"kubeconfig"`
	Context    types.String `tfsdk:"context"`
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
			"kubeconfig": schema.StringAttribute{
				Optional: true,
				Description: "A kubeconfig file of the platform, in place of server, access_key and certificate_authority. " +
					"Its user has an access key in token or tokenFile.",
			},
			"context": schema.StringAttribute{
				Optional:    true,
				Description: "A context in kubeconfig. If absent, its current-context.",
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
	arguments := []types.String{config.Server, config.AccessKey, config.Authority, config.Kubeconfig, config.Context}
	if slices.ContainsFunc(arguments, types.String.IsUnknown) {
		if req.ClientCapabilities.DeferralAllowed {
			resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
		}
		return
	}
	chosen := config.target(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	endpoint, err := endpointOf(chosen.server)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("server"), "Invalid platform", err.Error())
		return
	}
	connection, err := connect(chosen.authority)
	switch {
	case err != nil && chosen.authorityField != "":
		resp.Diagnostics.AddAttributeError(path.Root("kubeconfig"), "Invalid kubeconfig", chosen.authorityField+": "+err.Error())
		return
	case err != nil:
		resp.Diagnostics.AddAttributeError(path.Root("certificate_authority"), "Invalid certificate authority", err.Error())
		return
	}
	resp.EphemeralResourceData = &client{endpoint: endpoint, bearer: chosen.bearer, http: connection}
}

// target returns the platform that the arguments name, and adds what is wrong with them. With a kubeconfig, the environment has no say: its key
// may permit more.
func (s *settings) target(problems *diag.Diagnostics) target {
	if s.Kubeconfig.ValueString() == "" {
		chosen := target{
			server:    cmp.Or(s.Server.ValueString(), os.Getenv(serverVariable)),
			bearer:    cmp.Or(s.AccessKey.ValueString(), os.Getenv(accessKeyVariable)),
			authority: s.Authority.ValueString(),
		}
		if s.Context.ValueString() != "" {
			problems.AddAttributeError(path.Root("context"), "No kubeconfig", "Set kubeconfig, the file that has the context.")
		}
		if chosen.server == "" {
			problems.AddAttributeError(path.Root("server"), "No platform", "Set server or kubeconfig, or the environment variable "+serverVariable+".")
		}
		if chosen.bearer == "" {
			problems.AddAttributeError(path.Root("access_key"), "No access key", "Set access_key or kubeconfig, or the environment variable "+accessKeyVariable+".")
		}
		return chosen
	}
	for _, other := range []struct {
		name  string
		value types.String
	}{{"server", s.Server}, {"access_key", s.AccessKey}, {"certificate_authority", s.Authority}} {
		if other.value.ValueString() != "" {
			problems.AddAttributeError(path.Root(other.name), "Two platforms", "Leave out either "+other.name+" or kubeconfig, which has the same.")
		}
	}
	if problems.HasError() {
		return target{}
	}
	chosen, err := readTarget(s.Kubeconfig.ValueString(), s.Context.ValueString())
	switch wrong := (*contextError)(nil); {
	case errors.As(err, &wrong):
		problems.AddAttributeError(path.Root("context"), "Invalid context", err.Error())
	case err != nil:
		problems.AddAttributeError(path.Root("kubeconfig"), "Invalid kubeconfig", err.Error())
	}
	return chosen
}

func (*platformProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{newAccessKey, newClusterToken, newKubeconfig}
}

func (*platformProvider) Resources(context.Context) []func() resource.Resource { return nil }

func (*platformProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }
