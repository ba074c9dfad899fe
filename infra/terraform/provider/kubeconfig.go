package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"sigs.k8s.io/yaml"
)

// kubeconfig is the ephemeral resource platform_kubeconfig: a VirtualClusterInstanceKubeConfig. Closing it revokes the token in the kubeconfig;
// a client certificate cannot be revoked. Source: Spec 2.6, 4 row 1.
type kubeconfig struct{ credential }

func newKubeconfig() ephemeral.EphemeralResource {
	return &kubeconfig{credential{label: "the kubeconfig's token"}}
}

type kubeconfigData struct {
	Namespace         string  `tfsdk:"namespace" json:"-"`
	Name              string  `tfsdk:"name" json:"-"`
	CertificateTTL    *int64  `tfsdk:"certificate_ttl" json:"certificateTTL"`
	Server            *string `tfsdk:"server" json:"server,omitempty"`
	ClientCert        *bool   `tfsdk:"client_cert" json:"clientCert,omitempty"`
	Kubeconfig        *string `tfsdk:"kubeconfig" json:"-"`
	Host              *string `tfsdk:"host" json:"-"`
	Authority         *string `tfsdk:"cluster_ca_certificate" json:"-"`
	Token             *string `tfsdk:"token" json:"-"`
	ClientCertificate *string `tfsdk:"client_certificate" json:"-"`
	ClientKey         *string `tfsdk:"client_key" json:"-"`
	Expiration        *string `tfsdk:"expiration_timestamp" json:"-"`
}

func (*kubeconfig) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_kubeconfig"
}

func (*kubeconfig) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A kubeconfig for a virtual cluster. Its token is revoked when Terraform no longer needs it. The results have the names of the arguments of the provider kubernetes.",
		Attributes: map[string]schema.Attribute{
			"namespace":              schema.StringAttribute{Required: true, Description: "Namespace of the virtual cluster, which is the namespace of its project, such as p-shop."},
			"name":                   schema.StringAttribute{Required: true, Description: "Name of the virtual cluster."},
			"certificate_ttl":        lifetimeAttribute("Lifetime of the token or the certificate"),
			"server":                 textAttribute("HTTPS URL of the virtual cluster, in place of its ingress endpoint."),
			"client_cert":            schema.BoolAttribute{Optional: true, Description: "If true, a client certificate in place of a token. A certificate cannot be revoked."},
			"kubeconfig":             secretAttribute("The kubeconfig, as YAML."),
			"host":                   resultAttribute("URL of the virtual cluster."),
			"cluster_ca_certificate": resultAttribute("Certificate authority of the virtual cluster, in PEM. Absent if the authorities of the system verify it."),
			"token":                  secretAttribute("The token. Absent with a client certificate."),
			"client_certificate":     secretAttribute("The client certificate, in PEM. Absent with a token."),
			"client_key":             secretAttribute("The private key of the client certificate, in PEM. Absent with a token."),
			"expiration_timestamp":   resultAttribute(expirationDescription),
		},
	}
}

func (k *kubeconfig) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var data kubeconfigData
	if resp.Diagnostics.Append(req.Config.Get(ctx, &data)...); resp.Diagnostics.HasError() || !k.ready(&resp.Diagnostics) {
		return
	}
	data.CertificateTTL = lifetime(data.CertificateTTL)
	resource := "namespaces/" + url.PathEscape(data.Namespace) + "/virtualclusterinstances/" + url.PathEscape(data.Name) + "/kubeconfig"
	var answer made
	warnings, err := k.client.create(ctx, resource, map[string]any{
		"apiVersion": apiVersion, "kind": "VirtualClusterInstanceKubeConfig", "metadata": map[string]any{"namespace": data.Namespace}, "spec": data,
	}, &answer)
	if err != nil {
		addProblem(ctx, &resp.Diagnostics, "Cannot get a kubeconfig", err, req.Config, "name")
		return
	}
	addWarnings(&resp.Diagnostics, "Kubeconfig of "+data.Namespace+"/"+data.Name, warnings)
	if err := data.read(answer.Status.KubeConfig); err != nil {
		resp.Diagnostics.AddError("Cannot read the kubeconfig", err.Error())
		return
	}
	if data.Token != nil {
		resp.Diagnostics.Append(writePrivate(ctx, resp.Private, private{Text: *data.Token})...)
	}
	data.Expiration = answer.expiration()
	resp.Diagnostics.Append(resp.Result.Set(ctx, data)...)
}

// read sets the results from the text of a kubeconfig, which has one cluster and one user.
func (data *kubeconfigData) read(text string) error {
	var document struct {
		Clusters []struct {
			Cluster struct {
				Server    string `json:"server"`
				Authority []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Token       string `json:"token"`
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return errors.New("it is not YAML") // the error of the library may quote the text
	}
	if len(document.Clusters) != 1 || len(document.Users) != 1 {
		return errors.New("it must have one cluster and one user")
	}
	optional := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	cluster, user := document.Clusters[0].Cluster, document.Users[0].User
	data.Kubeconfig, data.Host, data.Authority = &text, &cluster.Server, optional(string(cluster.Authority))
	data.Token, data.ClientCertificate, data.ClientKey = optional(user.Token), optional(string(user.Certificate)), optional(string(user.Key))
	return nil
}
