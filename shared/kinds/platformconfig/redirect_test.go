package platformconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
)

// secretField is a secret in a configuration, with the fields that say where it is sent.
type secretField struct {
	path   string
	sentTo []destination
}

// destination is a field by the pointer of a JSON patch, with another value for it.
type destination struct {
	pointer string
	value   any
}

// others are new values for destinations, by the names of fields. Other texts become a URL.
var others = map[string]any{
	"hostName": "other.example", "host": "other.example", "tenant": "other", "caFile": "/other", "rootCA": "other", "namespace": "other",
}

// secretFields finds the secrets in a value, and reports each one whose tag does not say where it is sent.
func secretFields(t *testing.T, value reflect.Value, path, pointer string, parents []reflect.Value, pointers []string) []secretField {
	t.Helper()
	var found []secretField
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			found = secretFields(t, value.Elem(), path, pointer, parents, pointers)
		}
	case reflect.Slice:
		for i := range value.Len() {
			found = append(found, secretFields(t, value.Index(i), fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%s/%d", pointer, i), parents, pointers)...)
		}
	case reflect.Struct:
		if !strings.HasSuffix(value.Type().PkgPath(), "/shared/model") {
			return nil
		}
		parents, pointers = append(slices.Clip(parents), value), append(slices.Clip(pointers), pointer)
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if strings.Contains(options, "inline") {
				found = append(found, secretFields(t, value.Field(i), path, pointer, parents, pointers)...)
				continue
			}
			if field.Type != reflect.TypeFor[secret.String]() {
				found = append(found, secretFields(t, value.Field(i), path+"."+name, pointer+"/"+name, parents, pointers)...)
				continue
			}
			tag, tagged := field.Tag.Lookup("sentTo")
			if !tagged || tag == "" {
				t.Errorf("%s.%s: the tag sentTo must name the fields that say where the secret is sent, or be -", value.Type().Name(), name)
			}
			if value.Field(i).String() == "" {
				continue
			}
			one := secretField{path: strings.TrimPrefix(path, ".") + "." + name}
			for to := range strings.SplitSeq(tag, ",") {
				outer := strings.TrimLeft(to, "^")
				if outer == "-" {
					continue
				}
				level := len(parents) - 1 - (len(to) - len(outer))
				one.sentTo = append(one.sentTo, destination{pointers[level] + "/" + outer, another(t, parents[level], outer)})
			}
			found = append(found, one)
		}
	default:
	}
	return found
}

// another returns another value for a field.
func another(t *testing.T, structure reflect.Value, name string) any {
	t.Helper()
	for i := range structure.NumField() {
		if wire, _, _ := strings.Cut(structure.Type().Field(i).Tag.Get("json"), ","); wire != name {
			continue
		}
		if structure.Field(i).Kind() == reflect.Bool {
			return !structure.Field(i).Bool()
		}
		if value, known := others[name]; known {
			return value
		}
		return "https://other.example"
	}
	t.Fatalf("%s has no field %s", structure.Type().Name(), name)
	return nil
}

// everySecret has every secret of the configuration, each with the fields that are needed to send it.
const everySecret = `
auth:
  oidc: {issuerUrl: 'https://issuer.example', clientSecret: s1}
  gitforge1: {clientSecret: s2, hostName: git.example}
  gitforge2: {clientSecret: s3, baseURL: 'https://git.example'}
  idp1: {clientSecret: s4}
  idp2: {clientSecret: s5}
  clustermanager: {host: clusters.example, bearerToken: s6}
  connectors:
  - {id: a, oidc: {issuerUrl: 'https://issuer.example', clientSecret: s7}}
oidc: {clients: [{clientId: a, clientSecret: s8}]}
apps: {repositories: [{name: a, url: 'https://charts.example', password: s9}]}
audit: {dataStoreEndpoint: 'redis://:s10@audit.example'}
secretsStore: {address: 'https://vault.example', auth: {token: s11}}
`

// A secret is sent only where its author sent it: a caller who changes a field that says where it is sent has to give the
// secret again. Source: ADR-0024.
func TestRedirectedSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, everySecret)
	found := secretFields(t, reflect.ValueOf(w.get(process, true).Status), "status", "/status", nil, nil)
	if len(found) != 11 {
		t.Fatalf("%d secrets: %+v", len(found), found)
	}
	apply := func(operations ...map[string]any) error {
		text, err := json.Marshal(operations)
		if err != nil {
			t.Fatal(err)
		}
		_, err = process.Patch(t.Context(), resource.PatchInput{Caller: admin, Name: "config", Type: resource.JSONPatch, Patch: text})
		return err
	}
	tried := 0
	for _, secretField := range found {
		for _, to := range secretField.sentTo {
			tried++
			err := apply(map[string]any{"op": "add", "path": to.pointer, "value": to.value})
			known, ok := errors.AsType[*apierror.Error](err)
			if !ok || known.Status().Code != 422 || !strings.Contains(fmt.Sprint(known.Status().Details.Causes), secretField.path) {
				t.Errorf("%s goes to another %s: %v", secretField.path, to.pointer, err)
			}
		}
	}
	if tried < 15 {
		t.Errorf("%d fields say where secrets are sent", tried)
	}
	// If the request has the secret, the destination may change, whether the secret is the same or a new one.
	for _, given := range []string{"s1", "fresh"} {
		if err := apply(
			map[string]any{"op": "replace", "path": "/status/auth/oidc/issuerUrl", "value": "https://" + given + ".example"},
			map[string]any{"op": "replace", "path": "/status/auth/oidc/clientSecret", "value": given},
		); err != nil || process.Status().Auth.OIDC.ClientSecret.Reveal() != given {
			t.Errorf("given again: %v", err)
		}
	}
	// A password in a URL is a secret too.
	w.mustUpdate(process, "apps: {repositories: [{name: a, url: 'https://ana:hunter2@charts.example'}]}")
	err := apply(map[string]any{"op": "add", "path": "/status/apps/repositories/0/insecure", "value": true})
	refusal(t, err, 422, "status.apps.repositories[0].url")
	// Defaults that a client sends back change nothing.
	w.mustUpdate(process, "auth: {idp2: {clientSecret: s1}}")
	shown := w.get(process, false)
	shown.Status.PlatformHost = "platform.example"
	if _, err := w.update(process, shown); err != nil {
		t.Errorf("a default that is sent back: %v", err)
	}
}

// Callers who may not reveal secrets cannot have the value of a placeholder sent where they choose. Source: ADR-0024.
func TestPlacedPlaceholders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	narrow := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.Admins})
	narrow.Scope = &model.Scope{Rules: []model.ScopeRule{{
		Verbs: []string{"get", "update", "patch"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"configs"}}},
	}}}
	patch := func(caller identity.Caller, text string) error {
		_, err := process.Patch(t.Context(), resource.PatchInput{Caller: caller, Name: "config", Type: resource.MergePatch, Patch: []byte(text)})
		return err
	}
	const placed = `{"status":{"auth":{"oidc":{"issuerUrl":"https://a.example","clientSecret":"${PLATFORM_SECRET_A}"}}}}`
	const moved = `{"status":{"auth":{"oidc":{"issuerUrl":"https://b.example","clientSecret":"${PLATFORM_SECRET_A}"}}}}`
	refusal(t, patch(narrow, placed), 403, "status.auth.oidc.clientSecret")
	if err := patch(admin, placed); err != nil {
		t.Error(err)
	}
	refusal(t, patch(narrow, moved), 403, "status.auth.oidc.clientSecret")
	// They may repeat an existing placeholder.
	for _, text := range []string{placed, `{"status":{"platformHost":"platform.example"}}`} {
		if err := patch(narrow, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := patch(admin, moved); err != nil {
		t.Error(err)
	}
}
