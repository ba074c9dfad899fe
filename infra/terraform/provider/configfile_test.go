package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const testKey = "pak_0123456789abcdef0123456789abcdef"

// document is a kubeconfig with one context whose cluster and user have more fields.
func document(cluster, user string) string {
	return "current-context: dev\ncontexts:\n- name: dev\n  context: {cluster: east, user: ana}\nclusters:\n- name: east\n  cluster: {" + cluster +
		"}\nusers:\n- name: ana\n  user: {" + user + "}\n"
}

// A context of a kubeconfig is a platform with its access key and certificate authority. Paths begin at the folder of the file.
func TestReadTarget(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "kubeconfig")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	authority := string(httpsAuthority(t))
	write("key", testKey+"\n")
	write("ca.crt", authority)
	const server = "server: https://platform.example.com/kubernetes/management"
	for _, row := range []struct {
		cluster, user, name string
		want                target
	}{
		{
			server + ", certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(authority)), "token: " + testKey, "",
			target{bearer: testKey, authority: authority, authorityField: "clusters[east].cluster.certificate-authority-data"},
		},
		{
			server + ", certificate-authority: ca.crt, insecure-skip-tls-verify: false", "tokenFile: key", "dev",
			target{bearer: testKey, authority: filepath.Join(folder, "ca.crt"), authorityField: "clusters[east].cluster.certificate-authority"},
		},
	} {
		write("kubeconfig", document(row.cluster, row.user))
		row.want.server = "https://platform.example.com/kubernetes/management"
		if got, err := readTarget(file, row.name); err != nil || got != row.want {
			t.Errorf("%q, %q: %+v, %v", row.cluster, row.user, got, err)
		}
	}
}

// Wrong arguments are errors at the argument that is wrong. They name the field of the kubeconfig and the reason, and never the access key.
func TestKubeconfigProblems(t *testing.T) {
	t.Setenv(serverVariable, "https://other.example.com")
	t.Setenv(accessKeyVariable, "of-the-environment")
	folder := t.TempDir()
	file := filepath.Join(folder, "kubeconfig")
	const good, token = "server: https://platform.example.com", "token: " + testKey
	for _, row := range []struct {
		about, document string
		more            map[string]string
		// argument is where the error is, and says is what it says.
		argument, says string
	}{
		{about: "a good one", document: document(good, token)},
		{"a key as well", document(good, token), map[string]string{"access_key": testKey}, "access_key", "Leave out either access_key or kubeconfig"},
		{"a server as well", document(good, token), map[string]string{"server": "a"}, "server", "Leave out either server or kubeconfig"},
		{"an authority as well", document(good, token), map[string]string{"certificate_authority": "a"}, "certificate_authority", "kubeconfig"},
		{"a context without a file", "", map[string]string{"kubeconfig": "", "context": "dev"}, "context", "Set kubeconfig"},
		{"another context", document(good, token), map[string]string{"context": "prod"}, "context", `no context "prod": use one of "dev"`},
		{"no current context", strings.Replace(document(good, token), "current-context: dev", "", 1), nil, "context", `no current-context: use one of "dev"`},
		{"an empty file", "{}", nil, "context", "it has no contexts"},
		{"no file", "", map[string]string{"kubeconfig": filepath.Join(folder, "gone")}, "kubeconfig", "gone"},
		{"no YAML", "token: " + testKey + "\n\tx", nil, "kubeconfig", "must be a kubeconfig in YAML"},
		{"no server", document("certificate-authority: a", token), nil, "kubeconfig", "clusters[east].cluster.server: it must be HOST"},
		{"a server without TLS", document("server: http://platform.example.com", token), nil, "kubeconfig", "clusters[east].cluster.server: it must have the scheme https"},
		{"a server that is not verified", document(good+", insecure-skip-tls-verify: true", token), nil, "kubeconfig", "clusters[east].cluster.insecure-skip-tls-verify: is not supported"},
		{"a proxy", document(good+", proxy-url: http://a", token), nil, "kubeconfig", "clusters[east].cluster.proxy-url: is not supported"},
		{"an authority that is not there", document(good+", certificate-authority: gone.crt", token), nil, "kubeconfig", "clusters[east].cluster.certificate-authority: open " + filepath.Join(folder, "gone.crt")},
		{"an authority that is a path in base64", document(good+", certificate-authority-data: a2V5", token), nil, "kubeconfig", "clusters[east].cluster.certificate-authority-data: must be certificates"},
		{"no key", document(good, ""), nil, "kubeconfig", "users[ana].user: must have an access key"},
		{"a program", document(good, "exec: {command: "+testKey+"}"), nil, "kubeconfig", "users[ana].user.exec: is not supported: the provider reads token and tokenFile, and starts no programs"},
		{"another user", document(good, token+", as: bob"), nil, "kubeconfig", "users[ana].user.as: is not supported"},
		{"a number", document(good, "token: 123456"), nil, "kubeconfig", "users[ana].user.token: must be a text"},
		{"a file of a key that is not there", document(good, "tokenFile: gone.key"), nil, "kubeconfig", "users[ana].user.tokenFile: open " + filepath.Join(folder, "gone.key")},
		{"a user that is not there", strings.Replace(document(good, token), "name: ana", "name: bob", 1), nil, "kubeconfig", "users[ana].user: is missing"},
	} {
		if err := os.WriteFile(file, []byte(row.document), 0o600); err != nil {
			t.Fatal(err)
		}
		server := providerserver.NewProtocol6(newProvider())()
		schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		if err != nil {
			t.Fatal(err)
		}
		arguments := map[string]tftypes.Value{"kubeconfig": text(file)}
		for name, given := range row.more {
			arguments[name] = text(given)
		}
		configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: value(t, schemas.Provider, arguments)})
		if err != nil {
			t.Fatal(err)
		}
		if row.argument == "" {
			if len(configured.Diagnostics) > 0 {
				t.Errorf("%s: %+v", row.about, configured.Diagnostics[0])
			}
			continue
		}
		if len(configured.Diagnostics) != 1 {
			t.Errorf("%s: there are %d messages", row.about, len(configured.Diagnostics))
			continue
		}
		found := configured.Diagnostics[0]
		if want := tftypes.NewAttributePath().WithAttributeName(row.argument); !found.Attribute.Equal(want) || !strings.Contains(found.Detail, row.says) {
			t.Errorf("%s: %s says %q; want %q at %s", row.about, found.Attribute, found.Detail, row.says, row.argument)
		}
		if strings.Contains(found.Summary+found.Detail, testKey) {
			t.Errorf("%s: the message has the access key: %s", row.about, found.Detail)
		}
	}
}

// With a kubeconfig, the server and the key of the environment have no effect.
func TestKubeconfigAlone(t *testing.T) {
	t.Setenv(serverVariable, "https://other.example.com")
	t.Setenv(accessKeyVariable, "of-the-environment")
	p := serve(t)
	server := providerserver.NewProtocol6(newProvider())()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: value(t, schemas.Provider, map[string]tftypes.Value{
		"kubeconfig": text(filepath.Join(filepath.Dir(p.authority), "kubeconfig")), "context": text("platform"),
	})})
	if err != nil || len(configured.Diagnostics) > 0 {
		t.Fatal(err, configured.Diagnostics)
	}
	const name = "platform_access_key"
	opened, err := server.OpenEphemeralResource(t.Context(), &tfprotov6.OpenEphemeralResourceRequest{
		TypeName: name, Config: value(t, schemas.EphemeralResourceSchemas[name], map[string]tftypes.Value{"name": text("from-file")}),
	})
	if err != nil || len(opened.Diagnostics) > 0 {
		t.Fatal(err, opened.Diagnostics)
	}
	if keys := p.list(t, "ownedaccesskeys"); len(keys) != 2 {
		t.Errorf("the keys are %q", keys)
	}
	if closed, err := server.CloseEphemeralResource(t.Context(), &tfprotov6.CloseEphemeralResourceRequest{TypeName: name, Private: opened.Private}); err != nil || len(closed.Diagnostics) > 0 {
		t.Error(err, closed.Diagnostics)
	}
}
