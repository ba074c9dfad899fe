package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// defaultTTL is how long a credential lives at most if no lifetime is given, in seconds. The API has no end, an hour and a day; a credential of
// a run that was killed must end soon. Source: ADR-0052.
const defaultTTL = 3600

// credential is what all ephemeral resources of the provider have in common: a connection, and a text that is revoked in the end.
type credential struct {
	client *client
	// label names the credential in messages.
	label string
}

func (c *credential) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	c.client, _ = req.ProviderData.(*client)
}

// ready reports whether the provider has a connection, and adds an error if it has none.
func (c *credential) ready(problems *diag.Diagnostics) bool {
	if c.client == nil {
		problems.AddError("The provider is not configured", "Its arguments depend on values that are known in the apply only. Let this resource depend on them as well.")
	}
	return c.client != nil
}

// made is an object as the API answers a create.
type made struct {
	Metadata struct {
		Name              string    `json:"name"`
		UID               string    `json:"uid"`
		CreationTimestamp time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Key string `json:"key"`
		TTL int64  `json:"ttl"`
	} `json:"spec"`
	Status struct {
		Token      string     `json:"token"`
		KubeConfig string     `json:"kubeConfig"`
		Expiration *time.Time `json:"expirationTimestamp"`
	} `json:"status"`
}

// expiration returns the time at which the credential ends, as text. Nil: it has no end.
func (m *made) expiration() *string {
	if m.Status.Expiration == nil {
		return nil
	}
	text := m.Status.Expiration.UTC().Format(time.RFC3339)
	return &text
}

// private is what Terraform keeps in memory between Open and Close. Terraform writes it nowhere.
type private struct {
	// Text is the credential.
	Text string `json:"text"`
	// Name, UID, TTL, Step and Ends are for renewing an access key: its lifetime in seconds, by how much it is extended, and its end.
	Name string     `json:"name,omitempty"`
	UID  string     `json:"uid,omitempty"`
	TTL  int64      `json:"ttl,omitempty"`
	Step int64      `json:"step,omitempty"`
	Ends *time.Time `json:"ends,omitempty"`
}

// privateKey is the key under which Terraform keeps private.
const privateKey = "credential"

// privateReader and privateWriter are what the framework offers for private data.
type (
	privateReader interface {
		GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	}
	privateWriter interface {
		SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
	}
)

func readPrivate(ctx context.Context, from privateReader) (private, diag.Diagnostics) {
	var data private
	text, problems := from.GetKey(ctx, privateKey)
	if !problems.HasError() && len(text) > 0 {
		if err := json.Unmarshal(text, &data); err != nil {
			problems.AddError("Reading the private data of an ephemeral resource", err.Error())
		}
	}
	return data, problems
}

func writePrivate(ctx context.Context, to privateWriter, data private) diag.Diagnostics {
	text, err := json.Marshal(data)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Writing the private data of an ephemeral resource", err.Error())}
	}
	return to.SetKey(ctx, privateKey, text)
}

// Close revokes the credential.
func (c *credential) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	data, problems := readPrivate(ctx, req.Private)
	if resp.Diagnostics.Append(problems...); resp.Diagnostics.HasError() || data.Text == "" || !c.ready(&resp.Diagnostics) {
		return
	}
	if err := c.client.revoke(ctx, data.Text); err != nil {
		resp.Diagnostics.AddError("Cannot revoke "+c.label, fmt.Sprintf("It still works until it expires: %v", err))
	}
}

// lifetimeAttribute is an argument for a lifetime in seconds.
func lifetimeAttribute(description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, Computed: true, Validators: []validator.Int64{positive{}},
		Description: fmt.Sprintf("%s, in seconds. Defaults to %d.", description, defaultTTL),
	}
}

func secretAttribute(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, Sensitive: true, Description: description}
}

func resultAttribute(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, Description: description}
}

func textAttribute(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, Description: description}
}

const expirationDescription = "Time at which the credential stops working, in RFC 3339. No credential ends later than the key that made it."

// positive refuses a lifetime that is not at least one second. 0 has another meaning in the API: no lifetime.
type positive struct{}

func (positive) Description(context.Context) string { return "must be at least 1" }

func (p positive) MarkdownDescription(ctx context.Context) string { return p.Description(ctx) }

func (p positive) ValidateInt64(ctx context.Context, req validator.Int64Request, resp *validator.Int64Response) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && req.ConfigValue.ValueInt64() < 1 {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid lifetime", req.Path.String()+" "+p.Description(ctx)+".")
	}
}

// lifetime returns a lifetime, or the default if there is none.
func lifetime(seconds *int64) *int64 {
	if seconds == nil {
		result := int64(defaultTTL)
		return &result
	}
	return seconds
}
