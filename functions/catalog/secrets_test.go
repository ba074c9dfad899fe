package catalog_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// everyFunction stands for all functions. Most of them have no encryption key: such a secret works with a placeholder alone.
const everyFunction = "every function"

// signIn has the functions that send the secret of a connector to its provider, or that compare the settings of a connector, its
// secret included, with the settings at the beginning of an attempt.
const signIn = "startlogin finishlogin confirmlogin checkpassword approvedevice revalidatelogins"

// secretUsers has the functions that use each secret of the configuration in clear. Only clients use the secrets without a
// function. A function that answers with secrets, or writes them, seals and opens them all.
var secretUsers = map[string]string{
	"AppRepository.password":             "",
	"ConfigAudit.dataStoreEndpoint":      everyFunction,
	"ClusterManagerProvider.bearerToken": signIn,
	"GitForge1Provider.clientSecret":     signIn,
	"GitForge2Provider.clientSecret":     signIn,
	"IDP1Provider.clientSecret":          signIn,
	"IDP2Provider.clientSecret":          signIn,
	"OIDCProvider.clientSecret":          signIn,
	"OIDCServerClient.clientSecret":      "",
	"SecretsStoreAuth.token":             "",
}

// A function that uses a secret of the configuration knows it: it has the encryption key, or the secret is one for which every function
// can have a placeholder. Source: ADR-0015.
func TestSecretUsers(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for name, tag := range secretsOf(reflect.TypeFor[model.ConfigStatus](), map[reflect.Type]bool{}) {
		users, known := secretUsers[name]
		named[name] = true
		switch {
		case !known:
			t.Errorf("%s is a secret of the configuration: say which functions use it", name)
		case users == everyFunction:
			if tag != "-" {
				t.Errorf("every function uses %s, and its placeholders are sealed, because other fields say where it is sent: %s", name, tag)
			}
		default:
			for user := range strings.FieldsSeq(users) {
				at := slices.IndexFunc(catalog.Functions, func(f *frame.Function) bool { return f.Name == user })
				if at < 0 || !catalog.Functions[at].Encrypts {
					t.Errorf("%s uses %s, and has no encryption key", user, name)
				}
			}
		}
	}
	for name := range secretUsers {
		if !named[name] {
			t.Errorf("%s is no secret of the configuration", name)
		}
	}
}

// secretsOf returns the secrets below a type, each with the tag that says where it is sent.
func secretsOf(of reflect.Type, seen map[reflect.Type]bool) map[string]string {
	found := map[string]string{}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return secretsOf(of.Elem(), seen)
	case reflect.Struct:
		if seen[of] {
			return found
		}
		seen[of] = true
		for i := range of.NumField() {
			field := of.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Type == reflect.TypeFor[secret.String]() {
				found[of.Name()+"."+name] = field.Tag.Get("sentTo")
				continue
			}
			for inner, tag := range secretsOf(field.Type, seen) {
				found[inner] = tag
			}
		}
	default:
		// Numbers, booleans and texts are no secrets.
	}
	return found
}
