package platformconfig_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// refusal expects an error with a status code that names the fields.
func refusal(t *testing.T, err error, code int32, names ...string) {
	t.Helper()
	problem, ok := errors.AsType[*apierror.Error](err)
	if !ok || problem.Status().Code != code {
		t.Errorf("the error is %v, want %d", err, code)
		return
	}
	for i, name := range names {
		if causes := problem.Status().Details.Causes; len(causes) != len(names) || causes[i].Field != name {
			t.Errorf("the causes are %+v, want %q", causes, names)
		}
	}
}

func (w *world) update(s testProcess, config *model.Config) (*model.Config, error) {
	written, err := s.Update(w.t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: config})
	return written.Object, err
}

// canaried is a configuration with a secret in every field that can hold one.
const canaried = `
auth:
  oidc: {issuerUrl: 'https://issuer.example', clientSecret: canary-1}
  gitforge1: {clientSecret: canary-2}
  gitforge2: {clientSecret: canary-3, baseURL: 'https://ana:canary-4@git.example'}
  idp1: {clientSecret: canary-5}
  idp2: {clientSecret: canary-6}
  clustermanager: {bearerToken: canary-7}
  connectors:
  - {id: a, oidc: {clientSecret: canary-8}}
  - {id: b, clustermanager: {bearerToken: canary-9}}
oidc: {clients: [{clientId: a, clientSecret: canary-10}, {clientId: b, clientSecret: canary-11}]}
apps: {repositories: [{name: a, url: 'https://canary-12@charts.example', password: canary-13}, {name: b, url: 'https://b.example/?token=canary-14'}]}
audit: {dataStoreEndpoint: 'postgres://audit:canary-15@db.example/audit?sslpassword=canary-16&sslmode=require'}
secretsStore: {auth: {token: canary-17}}
`

// Secrets are sealed in the state, shown as marks, and revealed on request. Source: ADR-0015.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, canaried)
	record, err := w.client.Resource("configs").Get(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	events, err := w.client.Resource("configs").Events(t.Context(), store.Beginning, 10, 0)
	if err != nil || len(events) != 1 {
		t.Fatal(events, err)
	}
	text, err := json.Marshal(w.get(process, false))
	if err != nil {
		t.Fatal(err)
	}
	list, err := process.List(t.Context(), resource.ListInput{Labels: labels.Everything(), Fields: fields.Everything()})
	if err != nil {
		t.Fatal(err)
	}
	listed, _ := json.Marshal(list)
	history, err := process.History(t.Context(), resource.GetInput{Name: "config"})
	if err != nil {
		t.Fatal(err)
	}
	told, _ := json.Marshal(history)
	for what, text := range map[string][]byte{
		"the record": record.Object, "the event": events[0].Record.Object, "the answer": text, "the list": listed, "the history": told, "the log": w.log.Bytes(),
	} {
		if bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s holds a secret: %s", what, text)
		}
	}
	revealed := fmt.Sprintf("%+v", reveal(w.get(process, true)))
	for i := 1; i <= 17; i++ {
		if !strings.Contains(revealed, fmt.Sprintf("canary-%d", i)) {
			t.Errorf("canary-%d is lost", i)
		}
	}
	// Another process opens the secrets.
	if got := w.get(w.process(""), true).Status; !apiequality.Semantic.DeepEqual(got.Auth, w.get(process, true).Status.Auth) {
		t.Errorf("another process has %+v", got)
	}
	// Secrets that are sealed for other names do not open.
	moved := bytes.Replace(record.Object, []byte(`"auth.gitforge1.clientSecret":`), []byte(`"auth.x":`), 1)
	moved = bytes.Replace(moved, []byte(`"auth.oidc.clientSecret":`), []byte(`"auth.gitforge1.clientSecret":`), 1)
	record.Object = moved
	if record.Revision, err = w.client.Resource("configs").Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if got := w.get(w.process(""), true).Status.Auth.GitForge1.ClientSecret; got != secret.Mark {
		t.Errorf("a moved secret is %q", got.Reveal())
	}
}

// reveal returns the texts of a configuration, with secrets in clear.
func reveal(config *model.Config) []string {
	var texts []string
	var walk func(value reflect.Value)
	walk = func(value reflect.Value) {
		switch value.Kind() {
		case reflect.String:
			texts = append(texts, value.String())
		case reflect.Pointer:
			if !value.IsNil() {
				walk(value.Elem())
			}
		case reflect.Slice:
			for i := range value.Len() {
				walk(value.Index(i))
			}
		case reflect.Struct:
			for i := range value.NumField() {
				if value.Type().Field(i).IsExported() {
					walk(value.Field(i))
				}
			}
		default:
		}
	}
	walk(reflect.ValueOf(config.Status))
	return texts
}

// A mark that a client sends back keeps the secret, even if lists have changed. A mark that stands for no secret is refused.
// Source: ADR-0015.
func TestMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, canaried)
	before := w.get(process, true)
	shown := w.get(process, false)
	if text, _ := json.Marshal(shown); bytes.Contains(text, []byte("canary")) || !bytes.Contains(text, []byte(secret.Mark)) {
		t.Fatalf("shown is %s", text)
	}
	// A client has the configuration as JSON.
	again := func() *model.Config {
		text, err := json.Marshal(w.get(process, false))
		if err != nil {
			t.Fatal(err)
		}
		config, err := platformconfig.Decode(codec.Body{JSON: text})
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	written, err := w.update(process, again())
	if err != nil || written.ResourceVersion != shown.ResourceVersion {
		t.Fatalf("sent back as it was shown: %v, %v", written, err)
	}
	config := again()
	config.Status.PlatformHost = "platform.example"
	config.Status.Auth.Connectors = config.Status.Auth.Connectors[1:]
	clients := config.Status.OIDC.Clients
	clients[0], clients[1] = clients[1], clients[0]
	repositories := config.Status.Apps.Repositories
	repositories[0], repositories[1] = repositories[1], repositories[0]
	if _, err := w.update(process, config); err != nil {
		t.Fatal(err)
	}
	after := w.get(process, true)
	if after.Status.Auth.Connectors[0].ClusterManager.BearerToken != "canary-9" || after.Status.OIDC.Clients[0].ClientSecret != "canary-11" ||
		after.Status.Audit.DataStoreEndpoint != before.Status.Audit.DataStoreEndpoint || after.Status.Apps.Repositories[1] != before.Status.Apps.Repositories[0] {
		t.Errorf("after a change are %+v", reveal(after))
	}
	for _, row := range []struct {
		sentence string
		change   func(*model.ConfigStatus)
		field    string
	}{
		{"a new connector", func(s *model.ConfigStatus) { s.Auth.Connectors[0].ID = "c" }, "status.auth.connectors[0].clustermanager.bearerToken"},
		{"another provider", func(s *model.ConfigStatus) { s.Auth.OIDC, s.Auth.SAML = nil, nil; s.OIDC.Clients[0].ClientID = "z" }, "status.oidc.clients[0].clientSecret"},
		{"the whole URL is the secret", func(s *model.ConfigStatus) { s.Audit.DataStoreEndpoint = "postgres://ana:***@evil.example/audit" }, "status.audit.dataStoreEndpoint"},
		{"a URL of another host", func(s *model.ConfigStatus) { s.Auth.GitForge2.BaseURL = "https://ana:***@evil.example" }, "status.auth.gitforge2.clientSecret status.auth.gitforge2.baseURL"},
	} {
		config := again()
		row.change(&config.Status)
		_, err := w.update(process, config)
		refusal(t, err, 422, strings.Fields(row.field)...)
	}
	// A new secret replaces the old secret, and an absent secret is removed.
	config = again()
	config.Status.Auth.OIDC.ClientSecret, config.Status.Auth.GitForge1.ClientSecret = "fresh", ""
	if _, err := w.update(process, config); err != nil {
		t.Fatal(err)
	}
	if got := w.get(process, true).Status.Auth; got.OIDC.ClientSecret != "fresh" || got.GitForge1.ClientSecret != "" {
		t.Errorf("after new secrets: %q, %q", got.OIDC.ClientSecret.Reveal(), got.GitForge1.ClientSecret.Reveal())
	}
}

// A mark in an entry without id or name stands for the secret of the same destination, not of the same position: otherwise
// the removal of one repository would send its password to the next one. Source: ADR-0015.
func TestMarksOfNamelessEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, `
oidc: {clients: [{name: one, clientSecret: s-one}, {name: two, clientSecret: s-two}]}
apps: {repositories: [{url: 'https://one.example', password: p-one}, {url: 'https://ana:p-url@two.example', password: p-two}]}
`)
	record, err := w.client.Resource("configs").Get(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record.Object, []byte("p-url")) {
		t.Errorf("the record holds a secret: %s", record.Object)
	}
	config := w.get(process, false)
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if config, err = platformconfig.Decode(codec.Body{JSON: text}); err != nil {
		t.Fatal(err)
	}
	config.Status.Apps.Repositories, config.Status.OIDC.Clients = config.Status.Apps.Repositories[1:], config.Status.OIDC.Clients[1:]
	if _, err := w.update(process, config.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	after := w.get(process, true).Status
	if got := after.Apps.Repositories[0]; got.Password != "p-two" || got.URL != "https://ana:p-url@two.example" {
		t.Errorf("the second repository is now %q, %q", got.URL, got.Password.Reveal())
	}
	if got := after.OIDC.Clients[0].ClientSecret; got != "s-two" {
		t.Errorf("the second client has %q", got.Reveal())
	}
	config.ResourceVersion = ""
	config.Status.Apps.Repositories[0].URL = "https://evil.example"
	_, err = w.update(process, config)
	refusal(t, err, 422, "status.apps.repositories[0].password")
}

// Writes check their preconditions, change only the given fields, and are executed once. Source: Spec 2.2; ADR-0015.
func TestUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	first := w.get(process, false)
	if first.ResourceVersion != "1" || first.Generation != 0 || first.Kind != "Config" || first.APIVersion != "management.platform.sh/v1" {
		t.Errorf("before the first write: %+v", first.ObjectMeta)
	}
	config := w.mustUpdate(process, "kind: Config\nmetadata: {labels: {a: b}, annotations: {c: d}}\nstatus: {auth: {accessKeyMaxTTLSeconds: 60}}")
	if config.UID == "" || config.Generation != 1 || config.CreationTimestamp.IsZero() || config.ResourceVersion != "2" || config.Labels["a"] != "b" {
		t.Errorf("after it: %+v", config.ObjectMeta)
	}
	stale := config.DeepCopy()
	same, err := w.update(process, config.DeepCopy())
	if err != nil || same.ResourceVersion != config.ResourceVersion {
		t.Errorf("a write that changes nothing: %v, %v", same, err)
	}
	config.Labels["a"] = "c"
	labelled, err := w.update(process, config)
	if err != nil || labelled.Generation != 1 || labelled.ResourceVersion != "3" {
		t.Errorf("a label: %+v, %v", labelled, err)
	}
	labelled.Status.Auth.AccessKeyMaxTTLSeconds = 70
	dry, err := process.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "config", Object: labelled.DeepCopy(), DryRun: true})
	if err != nil || limit(&dry.Object.Status) != 70 || limit(process.Status()) != 60 {
		t.Errorf("a dry run: %+v, %v", dry.Object, err)
	}
	capped, err := w.update(process, labelled)
	if err != nil || capped.Generation != 2 || limit(process.Status()) != 70 {
		t.Errorf("a cap: %+v, %v", capped, err)
	}
	for sentence, row := range map[string]struct {
		change func(*model.Config)
		code   int32
		fields []string
	}{
		"a stale resourceVersion": {func(c *model.Config) { *c = *stale }, 409, nil},
		"another uid":             {func(c *model.Config) { c.UID = "x" }, 409, nil},
		"another name":            {func(c *model.Config) { c.Name = "x" }, 400, nil},
		"a namespace":             {func(c *model.Config) { c.Namespace = "x" }, 400, nil},
		"a finalizer":             {func(c *model.Config) { c.Finalizers = []string{"a/b"} }, 422, []string{"metadata.finalizers"}},
		"a bad label":             {func(c *model.Config) { c.Labels = map[string]string{"a": "b c"} }, 422, []string{"metadata.labels"}},
		"several rules":           {func(c *model.Config) { c.Status.PlatformHost, c.Status.ProjectNamespacePrefix = "a/b", "A" }, 422, []string{"status.platformHost", "status.projectNamespacePrefix"}},
		"too large": {func(c *model.Config) {
			c.Status.UISettings = &model.ConfigUISettings{LegalTemplate: strings.Repeat("x", 300<<10)}
		}, 413, nil},
	} {
		config := capped.DeepCopy()
		row.change(config)
		_, err := w.update(process, config)
		if known, ok := errors.AsType[*apierror.Error](err); !ok || known.Status().Code != row.code {
			t.Errorf("%s: %v", sentence, err)
		} else if len(row.fields) > 0 {
			refusal(t, err, row.code, row.fields...)
		}
	}
	if got := w.get(process, false); got.ResourceVersion != capped.ResourceVersion {
		t.Errorf("a refused write changed it: %+v", got)
	}
	_, err = process.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: admin, Name: "other", Object: &model.Config{}})
	refusal(t, err, 404)
	if _, err := process.Get(t.Context(), resource.GetInput{Name: "other"}); err == nil {
		t.Error("there is another one")
	}
	// From here on, callers cannot write through the API.
	capped.Status.DisableConfigEndpoint = true
	if _, err := w.update(process, capped); err != nil {
		t.Fatal(err)
	}
	for _, process := range []testProcess{process, w.process("")} {
		if err := process.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = w.update(process, &model.Config{})
		refusal(t, err, 403)
		_, err = process.Rollback(t.Context(), resource.SubresourceInput[*model.ConfigRollback]{
			Caller: admin, Name: "config", Object: &model.ConfigRollback{Spec: model.ConfigRollbackSpec{Revision: "2"}},
		})
		refusal(t, err, 403)
		_, err = process.Patch(t.Context(), resource.PatchInput{Caller: admin, Name: "config", Type: resource.MergePatch, Patch: []byte(`{}`)})
		refusal(t, err, 403)
	}
	// An operator can write.
	if _, err := process.Install(t.Context(), admin, &model.Config{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.update(process, &model.Config{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A client that sends back the shown configuration changes nothing, whatever the order of its lists. Source: ADR-0015.
func TestShownIsUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	config := w.mustUpdate(process, `auth:
  saml: {insecureSkipSignatureValidation: true, nameIDPolicyFormat: emailAddress}
  connectors: [{id: a, oidc: {clientId: a}}, {id: b, idp2: {clientId: b}}, {id: c, oidc: {clientId: c, scopes: [email]}}]
`)
	if format := config.Status.Auth.SAML.NameIDPolicyFormat; !strings.HasPrefix(format, "urn:") {
		t.Fatalf("the format is shown as %q", format)
	}
	again, err := w.update(process, config)
	if err != nil || again.ResourceVersion != config.ResourceVersion || again.Generation != config.Generation {
		t.Errorf("sent back: %v, %v", again, err)
	}
	slices.Reverse(config.Status.Auth.Connectors)
	if _, err := w.update(process, config); err != nil {
		t.Fatal(err)
	}
	record, err := w.client.Resource("configs").Get(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	for _, filled := range []string{"profile", "common", "urn:"} {
		if bytes.Contains(record.Object, []byte(filled)) {
			t.Errorf("%s is stored: %s", filled, record.Object)
		}
	}
}

// An empty map of requests counts as absent, in the process that writes it and in the next. Source: Spec 2.7.
func TestEmptyRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, "imageBuilder: {resources: {limits: {cpu: 2}, requests: {}}}")
	for name, process := range map[string]testProcess{"this process": process, "another": w.process("")} {
		if cpu := w.get(process, false).Status.ImageBuilder.Resources.Requests["cpu"]; cpu.String() != "2" {
			t.Errorf("in %s the request is %s", name, cpu.String())
		}
	}
}

// A default that is shown and sent back remains unset. Source: ADR-0015.
func TestDefaultsStayOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	shown := w.mustUpdate(process, "imageBuilder: {enabled: true, resources: {limits: {cpu: 2}}}\naudit: {level: 1}\nauth: {oidc: {issuerUrl: 'https://a.example', clientSecret: hunter2}}")
	if cpu := shown.Status.ImageBuilder.Resources.Requests["cpu"]; cpu.String() != "2" || shown.Status.Audit.MaxSizeMegabytes != 100 || len(shown.Status.Auth.OIDC.Scopes) != 2 {
		t.Fatalf("defaults are missing: %+v", shown.Status)
	}
	shown.Status.PlatformHost = "platform.example"
	if _, err := w.update(process, shown); err != nil {
		t.Fatal(err)
	}
	record, err := w.client.Resource("configs").Get(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	for _, filled := range []string{"requests", "maxSize", "loginAccessKeyTTLSeconds", "projectNamespacePrefix", "scopes"} {
		if bytes.Contains(record.Object, []byte(filled)) {
			t.Errorf("%s is stored: %s", filled, record.Object)
		}
	}
	if got := process.Status().Auth.OIDC.ClientSecret; got.Reveal() != "hunter2" {
		t.Errorf("the secret is %q", got.Reveal())
	}
	// A lower limit lowers the request that follows it.
	result, err := process.Patch(t.Context(), resource.PatchInput{
		Caller: admin, Name: "config", Type: resource.MergePatch, Patch: []byte(`{"status":{"imageBuilder":{"resources":{"limits":{"cpu":"1"},"requests":null}}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := result.Object.Status.ImageBuilder.Resources.Requests["cpu"]; cpu.String() != "1" {
		t.Errorf("the request is %s", cpu.String())
	}
	// A field that a client sets to its default on purpose stays set.
	if _, err := process.Patch(t.Context(), resource.PatchInput{
		Caller: admin, Name: "config", Type: resource.JSONPatch, Patch: []byte(`[{"op":"replace","path":"/status/projectNamespacePrefix","value":"team-"}]`),
	}); err != nil || process.Status().ProjectNamespacePrefix != "team-" {
		t.Errorf("a patch of what was shown by default: %v", err)
	}
}

// Patches apply to the configuration as it is shown. Source: ADR-0015.
func TestPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, canaried)
	patch := func(kind resource.PatchType, text string) (*model.Config, error) {
		written, err := process.Patch(t.Context(), resource.PatchInput{Caller: admin, Name: "config", Type: kind, Patch: []byte(text)})
		return written.Object, err
	}
	if config, err := patch(resource.MergePatch, `{"status":{"auth":{"accessKeyMaxTTLSeconds":60}}}`); err != nil || limit(&config.Status) != 60 {
		t.Errorf("a merge patch: %v", err)
	}
	if config, err := patch(resource.JSONPatch, `[{"op":"test","path":"/status/auth/oidc/clientSecret","value":"***"},{"op":"add","path":"/metadata/labels/a","value":"b"}]`); err != nil || config.Labels["a"] != "b" {
		t.Errorf("a JSON patch: %v", err)
	}
	if got := w.get(process, true).Status.Auth.OIDC.ClientSecret; got != "canary-1" {
		t.Errorf("afterwards the secret is %q", got.Reveal())
	}
	for sentence, row := range map[string]struct {
		kind resource.PatchType
		text string
		code int32
	}{
		"a guess of a secret":  {resource.JSONPatch, `[{"op":"test","path":"/status/auth/oidc/clientSecret","value":"canary-1"}]`, 422},
		"an unknown field":     {resource.MergePatch, `{"status":{"colour":"red"}}`, 422},
		"a broken rule":        {resource.MergePatch, `{"status":{"platformHost":"a/b"}}`, 422},
		"a stale version":      {resource.MergePatch, `{"metadata":{"resourceVersion":"2"}}`, 409},
		"another kind":         {resource.MergePatch, `{"kind":"Pod"}`, 400},
		"no patch":             {resource.MergePatch, `[]`, 400},
		"an apply by nobody":   {resource.ApplyPatch, `{}`, 400},
		"a copy of a secret":   {resource.JSONPatch, `[{"op":"copy","from":"/status/auth/oidc/clientSecret","path":"/status/platformHost"}]`, 422},
		"a secret moved along": {resource.JSONPatch, `[{"op":"copy","from":"/status/auth/oidc","path":"/status/auth/connectors/0/oidc"},{"op":"replace","path":"/status/auth/connectors/0/id","value":"x"}]`, 422},
	} {
		_, err := patch(row.kind, row.text)
		if known, ok := errors.AsType[*apierror.Error](err); !ok || known.Status().Code != row.code {
			t.Errorf("%s: %v", sentence, err)
		} else if strings.Contains(fmt.Sprint(known.Status()), "canary") && sentence != "a guess of a secret" {
			t.Errorf("%s: the answer holds a secret: %v", sentence, known.Status())
		}
	}
}

// Two writers never lose a change of each other.
func TestConcurrentPatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const writers = 8
	var running sync.WaitGroup
	for i := range writers {
		options := w.options("")
		options.Report = nil
		process := newProcess(options, nil)
		if err := process.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			text := fmt.Sprintf(`{"status":{"auth":{"customHttpHeaders":{"X-%d":"a"}}}}`, i)
			if _, err := process.Patch(t.Context(), resource.PatchInput{Caller: admin, Name: "config", Type: resource.MergePatch, Patch: []byte(text)}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if got := w.get(w.process(""), false); len(got.Status.Auth.CustomHTTPHeaders) != writers || got.Generation != writers {
		t.Errorf("there are %v at generation %d", got.Status.Auth.CustomHTTPHeaders, got.Generation)
	}
}

// The manifest of kubectl apply is stored without its secrets, and with its own fields alone.
func TestLastApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	const annotation = "kubectl.kubernetes.io/last-applied-configuration"
	apply := func(manifest string) string {
		config := &model.Config{}
		config.Annotations = map[string]string{annotation: manifest, "a": "b"}
		written, err := w.update(process, config)
		if err != nil || written.Annotations["a"] != "b" {
			t.Fatal(err)
		}
		return written.Annotations[annotation]
	}
	kept := apply(`{"apiVersion":"management.platform.sh/v1","kind":"Config","metadata":{"name":"config"},"status":{"auth":{"oidc":{"clientSecret":"canary"}},"audit":{"dataStoreEndpoint":"redis://:canary@a.example"}}}`)
	if want := `{"apiVersion":"management.platform.sh/v1","kind":"Config","metadata":{"name":"config"},"status":{"audit":{"dataStoreEndpoint":"***"},"auth":{"oidc":{"clientSecret":"***"}}}}` + "\n"; kept != want {
		t.Errorf("kept is %s", kept)
	}
	if kept := apply(`{"status":{"x":"canary"}}`); kept != "" {
		t.Errorf("of what cannot be read is kept %s", kept)
	}
}

// The history has the last twenty revisions, with their authors and changes. Each can be restored.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	history := func() []model.ConfigRevision {
		t.Helper()
		history, err := process.History(t.Context(), resource.GetInput{Name: "config"})
		if err != nil || history.Kind != "ConfigHistory" {
			t.Fatal(err)
		}
		return history.Status.Revisions
	}
	if got := history(); len(got) != 0 {
		t.Errorf("before the first write: %+v", got)
	}
	w.mustUpdate(process, "auth: {accessKeyMaxTTLSeconds: 60, oidc: {clientSecret: hunter2}}\nuiSettings: {customCss: ['https://a.example']}")
	config := w.get(process, false)
	config.Status.Auth.OIDC.ClientSecret, config.Status.Auth.AccessKeyMaxTTLSeconds, config.Status.UISettings = "hunter3", 0, nil
	config.Status.PlatformHost = "platform.example"
	ana := identity.New(identity.Owner{Kind: identity.User, Name: "ana"}, []string{identity.Admins})
	if _, err := process.Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: ana, Name: "config", Object: config}); err != nil {
		t.Fatal(err)
	}
	got := history()
	if len(got) != 3 || got[0].Revision != "3" || got[0].Author != "user:ana" || got[1].Author != "user:root" || !got[0].Time.Time.Equal(w.now) {
		t.Fatalf("%+v", got)
	}
	text, _ := json.Marshal(got[0].Changes)
	if want := `[{"path":"status.auth.accessKeyMaxTTLSeconds","from":60},{"path":"status.auth.oidc.clientSecret","from":"***","to":"***"},` +
		`{"path":"status.platformHost","to":"platform.example"},{"path":"status.uiSettings.customCss","from":["https://a.example"]}]`; string(text) != want {
		t.Errorf("changed is %s", text)
	}
	// Roll back to the first revision, with its secret.
	rollback := func(to, version string, dryRun bool) (*model.ConfigRollback, error) {
		in := &model.ConfigRollback{Spec: model.ConfigRollbackSpec{Revision: to}}
		in.ResourceVersion = version
		done, err := process.Rollback(t.Context(), resource.SubresourceInput[*model.ConfigRollback]{Caller: ana, Name: "config", Object: in, DryRun: dryRun})
		return done.Object, err
	}
	if dry, err := rollback("2", "3", true); err != nil || len(dry.Status.Changes) != 4 || limit(process.Status()) != 0 {
		t.Errorf("a dry run: %+v, %v", dry, err)
	}
	_, err := rollback("2", "2", false)
	refusal(t, err, 409)
	_, err = rollback("9", "", false)
	refusal(t, err, 422, "spec.revision")
	done, err := rollback("2", "3", false)
	if err != nil || done.Status.ResourceVersion != "4" || len(done.Status.Changes) != 4 {
		t.Errorf("%+v, %v", done, err)
	}
	if now := process.Status(); limit(now) != 60 || now.Auth.OIDC.ClientSecret.Reveal() != "hunter2" || now.PlatformHost != "" {
		t.Errorf("after the rollback: %+v", now)
	}
	if got := history(); len(got) != 4 || got[0].RolledBackTo != "2" {
		t.Errorf("%+v", got)
	}
	// The configuration before the first write can be restored, too.
	if _, err := rollback("1", "", false); err != nil || limit(process.Status()) != 0 || process.Status().Auth.OIDC != nil {
		t.Errorf("the first one: %+v, %v", process.Status(), err)
	}
	// The history has the revisions of a month, and at least twenty. Writes of labels remove none.
	for i := range 25 {
		w.mustUpdate(process, fmt.Sprintf("auth: {accessKeyMaxTTLSeconds: %d}", 100+i))
	}
	for i := range 60 {
		config := w.get(process, false)
		config.Labels = map[string]string{"a": strconv.Itoa(i)}
		if _, err := w.update(process, config); err != nil {
			t.Fatal(err)
		}
	}
	if got := history(); len(got) != 30 || got[0].Revision != "30" || got[29].Revision != "1" {
		t.Errorf("%d revisions, from %s", len(got), got[0].Revision)
	}
	w.now = w.now.Add(31 * 24 * time.Hour)
	if got := history(); len(got) != 21 || got[0].Revision != "30" || got[19].Revision != "11" || got[20].Revision != "10" || len(got[20].Changes) != 0 {
		t.Errorf("%d revisions after a month, from %s", len(got), got[0].Revision)
	}
	_, err = rollback("9", "", false)
	refusal(t, err, 422, "spec.revision")
	if !strings.Contains(err.Error(), ": 30, 29, 28,") {
		t.Errorf("the error names no revisions: %v", err)
	}
	// After the log is trimmed, the history has the remaining revisions.
	if err := w.client.Resource("configs").Trim(t.Context(), w.now.Add(1)); err != nil {
		t.Fatal(err)
	}
	if got := history(); len(got) != 1 || got[0].Revision != "90" || len(got[0].Changes) != 0 {
		t.Errorf("after a trim: %+v", got)
	}
}

// A reason belongs to the write that sets it, and a rollback has its own reason. Source: ADR-0024.
func TestReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	because := func(why string) map[string]string { return map[string]string{model.ChangeCauseAnnotation: why} }
	write := func(host string, change func(*model.Config)) {
		t.Helper()
		config := &model.Config{}
		if host != "a.example" {
			config = w.get(process, false)
		}
		config.Status.PlatformHost = host
		change(config)
		if _, err := w.update(process, config); err != nil {
			t.Fatal(err)
		}
	}
	write("a.example", func(config *model.Config) { config.Annotations = because("the host is new") })
	write("b.example", func(*model.Config) {})
	write("c.example", func(config *model.Config) { config.Annotations = because(strings.Repeat("é", 300) + "!") })
	write("d.example", func(config *model.Config) { config.Annotations = nil })
	write("e.example", func(config *model.Config) { config.Annotations = because("once more") })
	back := func(annotations map[string]string) {
		t.Helper()
		in := &model.ConfigRollback{Spec: model.ConfigRollbackSpec{Revision: "2"}}
		in.Annotations = annotations
		if _, err := process.Rollback(t.Context(), resource.SubresourceInput[*model.ConfigRollback]{Caller: admin, Name: "config", Object: in}); err != nil {
			t.Fatal(err)
		}
	}
	back(nil)
	write("f.example", func(*model.Config) {})
	back(because("the host is back"))
	history, err := process.History(t.Context(), resource.GetInput{Name: "config"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range history.Status.Revisions {
		got = append(got, one.Reason)
	}
	if want := []string{"the host is back", "", "", "once more", "", strings.Repeat("é", 250), "", "the host is new", ""}; !slices.Equal(got, want) {
		t.Errorf("the reasons are %q, want %q", got, want)
	}
}

// The history continues when another server takes over the state, whose first revision is far from the last one. Source:
// ADR-0041.
func TestHistoryOfServers(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	w := worldOf(t, server.URL())
	process := w.process("")
	for i := range 7 {
		if i == 2 || i == 6 {
			server.WroteElsewhere("configs")
		}
		w.mustUpdate(process, fmt.Sprintf("auth: {accessKeyMaxTTLSeconds: %d}", 100+i))
	}
	history, err := process.History(t.Context(), resource.GetInput{Name: "config"})
	if err != nil {
		t.Fatal(err)
	}
	got := history.Status.Revisions
	if len(got) != 8 || got[7].Revision != "1" || got[5].Revision != "3" {
		t.Fatalf("%d revisions: %+v", len(got), got)
	}
	for i, one := range got[:7] {
		if want := strconv.Itoa(106 - i); len(one.Changes) != 1 || string(one.Changes[0].To.Raw) != want {
			t.Errorf("revision %s changed %+v, want it to write %s", one.Revision, one.Changes, want)
		}
	}
	in := &model.ConfigRollback{Spec: model.ConfigRollbackSpec{Revision: "3"}}
	if _, err := process.Rollback(t.Context(), resource.SubresourceInput[*model.ConfigRollback]{Caller: admin, Name: "config", Object: in}); err != nil || limit(process.Status()) != 101 {
		t.Errorf("back to revision 3: %+v, %v", process.Status(), err)
	}
}

// The list has the one configuration if the selectors select it.
func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	process := w.process("")
	w.mustUpdate(process, "kind: Config\nmetadata: {labels: {a: b}}")
	for _, row := range []struct {
		labels, fields string
		items          int
	}{{"", "", 1}, {"a=b", "metadata.name=config", 1}, {"a=c", "", 0}, {"", "metadata.name=x", 0}} {
		byLabel, err := labels.Parse(row.labels)
		if err != nil {
			t.Fatal(err)
		}
		list, err := process.List(t.Context(), resource.ListInput{Labels: byLabel, Fields: fields.ParseSelectorOrDie(row.fields)})
		if err != nil || len(list.(*model.ConfigList).Items) != row.items || list.(*model.ConfigList).ResourceVersion != "2" {
			t.Errorf("%+v: %v, %v", row, list, err)
		}
	}
	_, err := process.List(t.Context(), resource.ListInput{Labels: labels.Everything(), Fields: fields.ParseSelectorOrDie("spec.x=y")})
	refusal(t, err, 400)
}

// Encryption keys can be rotated: the next write seals again what an older key has sealed.
func TestNewKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old, fresh := encryption.Generate(), encryption.Generate()
	ring := func(keys ...secret.String) {
		texts := make([]string, len(keys))
		for i, key := range keys {
			texts[i] = key.Reveal()
		}
		var err error
		if w.ring, err = encryption.Parse(secret.String(strings.Join(texts, ","))); err != nil {
			t.Fatal(err)
		}
	}
	ring(old)
	process := w.process("")
	w.mustUpdate(process, "auth: {oidc: {clientSecret: hunter2}}")
	ring(fresh, old)
	config := w.get(process, false)
	config.Status.PlatformHost = "platform.example"
	if _, err := w.update(process, config); err != nil {
		t.Fatal(err)
	}
	ring(fresh)
	if got := w.get(w.process(""), true).Status.Auth.OIDC.ClientSecret; got != "hunter2" {
		t.Errorf("with the new key alone it is %q", got.Reveal())
	}
}
