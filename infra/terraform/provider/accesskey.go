package main

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// namePrefix begins the names of keys for which no name is given.
const namePrefix = "terraform-"

// accessKey is the ephemeral resource platform_access_key: an OwnedAccessKey. Source: Spec 2.5.
type accessKey struct{ credential }

func newAccessKey() ephemeral.EphemeralResource {
	return &accessKey{credential{label: "the access key"}}
}

type accessKeyData struct {
	Name        *string  `tfsdk:"name" json:"-"`
	DisplayName *string  `tfsdk:"display_name" json:"displayName,omitempty"`
	Description *string  `tfsdk:"description" json:"description,omitempty"`
	User        *string  `tfsdk:"user" json:"user,omitempty"`
	Team        *string  `tfsdk:"team" json:"team,omitempty"`
	Subject     *string  `tfsdk:"subject" json:"subject,omitempty"`
	Groups      []string `tfsdk:"groups" json:"groups,omitempty"`
	TTL         *int64   `tfsdk:"ttl" json:"ttl"`
	Scope       *scope   `tfsdk:"scope" json:"scope,omitempty"`
	Key         *string  `tfsdk:"key" json:"-"`
	Expiration  *string  `tfsdk:"expiration_timestamp" json:"-"`
}

func (*accessKey) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_access_key"
}

func (*accessKey) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "An access key that exists while Terraform runs. Terraform makes one for the plan and another one for the apply.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				Description: "Name of the access key. If absent, the server makes one that begins with " + namePrefix + ". Two runs at a time cannot use the same name.",
			},
			"display_name":         textAttribute("Name that the console shows."),
			"description":          textAttribute("Free text."),
			"user":                 textAttribute("User that the key acts as. At most one of user, team and subject can be set; if none is set, the key acts as the provider's own."),
			"team":                 textAttribute("Team that the key acts as."),
			"subject":              textAttribute("Generic subject that the key acts as."),
			"groups":               schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "Extra groups for requests with the key."},
			"ttl":                  lifetimeAttribute("Lifetime of the key. While Terraform runs longer, the provider extends it"),
			"scope":                scopeAttribute(),
			"key":                  secretAttribute("The access key, a bearer token."),
			"expiration_timestamp": resultAttribute(expirationDescription),
		},
	}
}

func (k *accessKey) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var data accessKeyData
	if resp.Diagnostics.Append(req.Config.Get(ctx, &data)...); resp.Diagnostics.HasError() || !k.ready(&resp.Diagnostics) {
		return
	}
	data.TTL = lifetime(data.TTL)
	metadata := map[string]any{"generateName": namePrefix}
	if data.Name != nil {
		metadata = map[string]any{"name": *data.Name}
	}
	var key made
	warnings, err := k.client.create(ctx, "ownedaccesskeys", map[string]any{
		"apiVersion": apiVersion, "kind": "OwnedAccessKey", "metadata": metadata, "spec": data,
	}, &key)
	if err != nil {
		addProblem(ctx, &resp.Diagnostics, "Cannot create an access key", err, req.Config, "")
		return
	}
	addWarnings(&resp.Diagnostics, "Access key "+key.Metadata.Name, warnings)
	resp.Diagnostics.Append(writePrivate(ctx, resp.Private, private{
		Text: key.Spec.Key, Name: key.Metadata.Name, UID: key.Metadata.UID, TTL: key.Spec.TTL, Step: key.Spec.TTL, Ends: key.Status.Expiration,
	})...)
	data.Name, data.Key, data.Expiration = &key.Metadata.Name, &key.Spec.Key, key.expiration()
	resp.Diagnostics.Append(resp.Result.Set(ctx, data)...)
	if key.Status.Expiration != nil {
		resp.RenewAt = renewal(time.Now(), key.Status.Expiration.Sub(key.Metadata.CreationTimestamp))
	}
}

// Renew extends the lifetime of the key. A key that cannot be extended works until its end, so a refusal is a warning.
func (k *accessKey) Renew(ctx context.Context, req ephemeral.RenewRequest, resp *ephemeral.RenewResponse) {
	data, problems := readPrivate(ctx, req.Private)
	if resp.Diagnostics.Append(problems...); resp.Diagnostics.HasError() || data.Name == "" || !k.ready(&resp.Diagnostics) {
		return
	}
	var key made
	err := k.client.patch(ctx, "ownedaccesskeys/"+data.Name, map[string]any{
		"metadata": map[string]any{"uid": data.UID}, "spec": map[string]any{"ttl": data.TTL + data.Step},
	}, &key)
	if err != nil {
		resp.Diagnostics.AddWarning("Cannot extend the lifetime of access key "+data.Name, err.Error())
		return
	}
	// A cap of the platform, or the end of the provider's own key, leaves the end where it was. Then there is nothing to renew.
	if key.Status.Expiration != nil && data.Ends != nil && key.Status.Expiration.After(*data.Ends) {
		resp.RenewAt = time.Now().Add(key.Status.Expiration.Sub(*data.Ends))
	}
	data.TTL, data.Ends = key.Spec.TTL, key.Status.Expiration
	resp.Diagnostics.Append(writePrivate(ctx, resp.Private, data)...)
}

// renewal returns the time at which a credential that lives for a time from now on is renewed: a third of its life remains. Only differences of
// the server's times count, because the clocks may differ.
func renewal(now time.Time, life time.Duration) time.Time { return now.Add(life * 2 / 3) }
