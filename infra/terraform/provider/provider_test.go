package main

import (
	"maps"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Fields of the API are the arguments of the same name, as Terraform writes names.
func TestArgumentOf(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]path.Path{
		"spec.ttl":            path.Root("ttl"),
		"spec.certificateTTL": path.Root("certificate_ttl"),
		"metadata.name":       path.Root("name"),
		"spec.scope.virtualClusters[2].virtualCluster": path.Root("scope"),
	} {
		if got, ok := argumentOf(field); !ok || !got.Equal(want) {
			t.Errorf("%s is %s, %v; want %s", field, got, ok, want)
		}
	}
	for _, field := range []string{"", "spec", "spec.", "spec[0]", "status.a"} {
		if got, ok := argumentOf(field); ok {
			t.Errorf("%q is %s", field, got)
		}
	}
}

// The provider accepts the addresses that the program platform accepts.
func TestEndpointOf(t *testing.T) {
	t.Parallel()
	const base = "https://platform.example.com/kubernetes/management"
	for server, want := range map[string]string{
		"platform.example.com": base, "https://platform.example.com/": base, base: base, base + "/": base,
		"http://127.0.0.1:8080": "http://127.0.0.1:8080/kubernetes/management", "localhost:8443": "https://localhost:8443/kubernetes/management",
		"http://platform.example.com": "", "ftp://platform.example.com": "", "https://a:b@platform.example.com": "", "platform.example.com?a=b": "", "": "",
	} {
		if got, err := endpointOf(server); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", server, got, err, want)
		}
	}
}

func TestWarningsIn(t *testing.T) {
	t.Parallel()
	header := http.Header{"Warning": {`299 - "spec.ttl: \"1h\" is long"`, "none"}}
	if got := warningsIn(header); len(got) != 1 || got[0] != `spec.ttl: "1h" is long` {
		t.Errorf("%q", got)
	}
}

// The results of a kubeconfig that is not what the API renders are errors without its text.
func TestReadKubeconfig(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a: [", "{}", "clusters: [{}, {}]\nusers: [{}]"} {
		if err := new(kubeconfigData).read(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	data := kubeconfigData{}
	if err := data.read("clusters: [{cluster: {server: https://a}}]\nusers: [{user: {token: b}}]"); err != nil || *data.Host != "https://a" || *data.Token != "b" || data.Authority != nil || data.ClientKey != nil {
		t.Errorf("%+v, %v", data, err)
	}
}

// While Terraform runs, a key lives on. A key that the provider's own key may not extend is a warning, and works until its end.
func TestRenew(t *testing.T) {
	t.Parallel()
	p := serve(t)
	var narrow made
	if _, err := p.create(t.Context(), "ownedaccesskeys", map[string]any{
		"metadata": map[string]any{"name": "narrow"}, "spec": map[string]any{"scope": map[string]any{}},
	}, &narrow); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		about, bearer string
		ttl           int64
		warns         bool
	}{{"an admin", p.bearer, 1200, false}, {"a key that may not change keys", narrow.Spec.Key, 600, true}} {
		server := providerserver.NewProtocol6(newProvider())()
		schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		if err != nil {
			t.Fatal(err)
		}
		configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: value(t, schemas.Provider, map[string]tftypes.Value{
			"server": text(p.endpoint), "access_key": text(row.bearer), "certificate_authority": text(filepath.Clean(p.authority)),
		})})
		if err != nil || len(configured.Diagnostics) > 0 {
			t.Fatal(err, configured.Diagnostics)
		}
		const name = "platform_access_key"
		opened, err := server.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{TypeName: name, Config: value(t, schemas.EphemeralResourceSchemas[name], map[string]tftypes.Value{
			"name": text("renewed"), "ttl": tftypes.NewValue(tftypes.Number, 600), "scope": emptyScope(schemas.EphemeralResourceSchemas[name]),
		})})
		if err != nil || len(opened.Diagnostics) > 0 {
			t.Fatal(row.about, err, opened.Diagnostics)
		}
		if until := time.Until(opened.RenewAt); until > 400*time.Second || until < 0 {
			t.Errorf("%s: the key of 600 s is renewed after %s", row.about, until)
		}
		renewed, err := server.RenewEphemeralResource(t.Context(), &tfprotov6.RenewEphemeralResourceRequest{TypeName: name, Private: opened.Private})
		if err != nil || (len(renewed.Diagnostics) > 0) != row.warns || row.warns && renewed.Diagnostics[0].Severity != tfprotov6.DiagnosticSeverityWarning {
			t.Fatal(row.about, err, renewed.Diagnostics)
		}
		if row.warns != renewed.RenewAt.IsZero() {
			t.Errorf("%s: the next renewal is at %s", row.about, renewed.RenewAt)
		}
		var key made
		if _, err := p.send(t.Context(), http.MethodGet, "ownedaccesskeys/renewed", "application/json", p.bearer, nil, &key); err != nil || key.Spec.TTL != row.ttl {
			t.Errorf("%s: %v, a lifetime of %d", row.about, err, key.Spec.TTL)
		}
		closed, err := server.CloseEphemeralResource(t.Context(), &tfprotov6.CloseEphemeralResourceRequest{TypeName: name, Private: renewed.Private})
		if err != nil || len(closed.Diagnostics) > 0 {
			t.Fatal(row.about, err, closed.Diagnostics)
		}
		if keys := p.list(t, "ownedaccesskeys"); len(keys) != 2 {
			t.Errorf("%s: the keys are %q", row.about, keys)
		}
	}
}

// value returns a block with some arguments. The others are absent.
func value(t *testing.T, schema *tfprotov6.Schema, set map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	kind := schema.ValueType().(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
	}
	maps.Copy(values, set)
	dynamic, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	if err != nil {
		t.Fatal(err)
	}
	return &dynamic
}

func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

// emptyScope returns the scope that permits the least.
func emptyScope(schema *tfprotov6.Schema) tftypes.Value {
	kind := schema.ValueType().(tftypes.Object).AttributeTypes["scope"].(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		values[name] = tftypes.NewValue(attribute, nil)
	}
	return tftypes.NewValue(kind, values)
}
