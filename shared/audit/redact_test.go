package audit_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

const canary = "canary-Zq81xWv9Kt27Lm4PcY6Ua05Bn3"

// fill puts the canary into fields whose type is a secret, and plain values into all others.
func fill(t *testing.T, value reflect.Value, hidden bool) (canaries int) {
	t.Helper()
	switch value.Interface().(type) {
	case metav1.Time, metav1.MicroTime, metav1.Duration, resource.Quantity, metav1.FieldsV1:
		return 0
	case model.JSON:
		value.Set(reflect.ValueOf(model.JSON{Raw: []byte(`{"any":"` + canary + `"}`)}))
		return 1
	}
	hidden = hidden || value.Type() == reflect.TypeFor[secret.String]()
	switch value.Kind() {
	case reflect.String:
		value.SetString("plain")
		if hidden {
			value.SetString(canary)
			return 1
		}
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(7)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return fill(t, value.Elem(), hidden)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte("plain"))
			if hidden {
				value.SetBytes([]byte(canary))
				return 1
			}
			return 0
		}
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		for i := range value.Len() {
			canaries += fill(t, value.Index(i), hidden)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		element := reflect.New(value.Type().Elem()).Elem()
		canaries = fill(t, element, hidden)
		value.SetMapIndex(reflect.ValueOf("entry").Convert(value.Type().Key()), element)
	case reflect.Struct:
		for i := range value.NumField() {
			canaries += fill(t, value.Field(i), hidden || value.Type().Field(i).Tag.Get("secret") == "true")
		}
	default:
		t.Fatalf("a %s cannot be filled", value.Type())
	}
	return canaries
}

// Every kind of the API is recorded without its secrets, as a response and as a request. Every secret is a canary.
func TestNoSecretOfAnyKind(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secrets := 0
	for kind, goType := range scheme.KnownTypes(model.SchemeGroupVersion) {
		if goType.PkgPath() != reflect.TypeFor[model.Scope]().PkgPath() {
			continue
		}
		value := reflect.New(goType)
		secrets += fill(t, value.Elem(), false)
		object := value.Interface().(runtime.Object)
		shown := reveal(t, object)
		text, why := audit.Object(object)
		if why != "" {
			t.Errorf("%s: an answer is not recorded: %s", kind, why)
		}
		if again := reveal(t, object); string(again) != string(shown) {
			t.Errorf("%s: recording has changed the object", kind)
		}
		check(t, kind+" as an answer", text)
		text, hidden, why := audit.Body(goType, audit.Whole, shown)
		if why != "" {
			t.Errorf("%s: a request is not recorded: %s", kind, why)
		}
		check(t, kind+" as a request", text)
		if strings.Contains(string(shown), canary) && len(hidden) == 0 {
			t.Errorf("%s: its secrets are not known of", kind)
		}
		if len(hidden) > 0 && !audit.MayHide(goType, shown) {
			t.Errorf("%s: its secrets would not be looked for", kind)
		}
	}
	if secrets < 20 {
		t.Errorf("only %d secrets were found in all kinds", secrets)
	}
}

func check(t *testing.T, what string, text []byte) {
	t.Helper()
	if !strings.Contains(string(text), "plain") {
		t.Errorf("%s: nothing is left: %s", what, text)
	}
	// Bytes are base64 in JSON.
	encoded, _ := json.Marshal([]byte(canary))
	for _, word := range []string{canary, strings.Trim(string(encoded), `"`)} {
		if strings.Contains(string(text), word) {
			t.Errorf("%s shows a secret: %s", what, text)
		}
	}
}

// reveal returns an object in the form in which a client writes it, with every secret.String in clear.
func reveal(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(text), `"`+secret.Mark+`"`, `"`+canary+`"`))
}

func TestObjectsOfOthers(t *testing.T) {
	t.Parallel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: canary, Audiences: []string{"plain"}}}
	text, why := audit.Object(review)
	if why != "" || strings.Contains(string(text), canary) || !strings.Contains(string(text), "plain") {
		t.Errorf("a review is recorded as %s %s", text, why)
	}
	for _, object := range []any{map[string]any{"a": canary}, json.RawMessage(`"` + canary + `"`), canary, &runtime.Unknown{Raw: []byte(canary)}} {
		if text, why := audit.Object(object); why != "unknown-type" || text != nil {
			t.Errorf("a %T is recorded as %s", object, text)
		}
	}
	applied := &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"key":"` + canary + `"}}`, "a": "plain",
	}}}
	text, _ = audit.Object(applied)
	check(t, "an applied manifest", text)
	if !strings.Contains(applied.Annotations["kubectl.kubernetes.io/last-applied-configuration"], canary) {
		t.Error("recording has changed the object")
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	key := reflect.TypeFor[*model.OwnedAccessKey]()
	for _, row := range []struct {
		name string
		form audit.Form
		body string
		want string
		why  string
	}{
		{"a merge patch", audit.Whole, `{"spec":{"key":"` + canary + `","ttl":60,"scope":null}}`, `{"spec":{"key":"***","scope":null,"ttl":60}}`, ""},
		{"unknown fields are pruned", audit.Whole, `{"spec":{"kye":"` + canary + `","ttl":1}}`, `{"spec":{"ttl":1}}`, ""},
		{"the case of names matters", audit.Whole, `{"spec":{"Key":"` + canary + `"}}`, `{"spec":{}}`, ""},
		{"a secret of a wrong type", audit.Whole, `{"spec":{"key":["` + canary + `"]}}`, `{"spec":{"key":"***"}}`, ""},
		{"a secret in place of an object", audit.Whole, `{"spec":"` + canary + `"}`, "", "decode-failed"},
		{"a secret in place of a number", audit.Whole, `{"spec":{"ttl":"` + canary + `"}}`, "", "decode-failed"},
		{"a secret in place of a time", audit.Whole, `{"metadata":{"creationTimestamp":"` + canary + `"}}`, "", "decode-failed"},
		{"a secret alone", audit.Whole, `"` + canary + `"`, "", "decode-failed"},
		{"broken JSON", audit.Whole, `{"spec":{"key":"` + canary + `"`, "", "decode-failed"},
		{"what kubectl applied", audit.Whole, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + canary + `"}}}`,
			`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"***"}}}`, ""},
		{"managed fields", audit.Whole, `{"metadata":{"name":"a","managedFields":[{"manager":"` + canary + `"}]}}`, `{"metadata":{"name":"a"}}`, ""},
		{"a JSON patch", audit.Operations, `[{"op":"add","path":"/spec/key","value":"` + canary + `"},{"op":"replace","path":"/spec/ttl","value":5}]`,
			`[{"op":"add","path":"/spec/key","value":"***"},{"op":"replace","path":"/spec/ttl","value":5}]`, ""},
		{"a JSON patch of a whole", audit.Operations, `[{"op":"add","path":"/spec","value":{"key":"` + canary + `"}}]`,
			`[{"op":"add","path":"/spec","value":{"key":"***"}}]`, ""},
		{"a JSON patch of a list", audit.Operations, `[{"op":"add","path":"/spec/groups/-","value":"dev"}]`, `[{"op":"add","path":"/spec/groups/-","value":"dev"}]`, ""},
		{"a JSON patch with an escaped step", audit.Operations,
			`[{"op":"add","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":"` + canary + `"}]`,
			`[{"op":"add","path":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","value":"***"}]`, ""},
		{"a JSON patch of an unknown field", audit.Operations, `[{"op":"add","path":"/spec/kye","value":"` + canary + `"}]`, "", "decode-failed"},
		{"a JSON patch below a word", audit.Operations, `[{"op":"add","path":"/spec/ttl/x","value":"` + canary + `"}]`, "", "decode-failed"},
		{"a text that is not a JSON patch", audit.Operations, `{"op":"add"}`, "", "decode-failed"},
		{"a large body", audit.Whole, `{"spec":{"description":"` + strings.Repeat("x", audit.MaxPayloadBytes) + `"}}`, "", "too-large"},
	} {
		text, hidden, why := audit.Body(key, row.form, []byte(row.body))
		if why == "" && len(hidden) > 0 && !audit.MayHide(key, []byte(row.body)) {
			t.Errorf("%s: the secret would not be looked for", row.name)
		}
		if string(text) != row.want && row.why == "" || why != row.why || strings.Contains(string(text), canary) {
			t.Errorf("%s: %.200s %q", row.name, text, why)
		}
	}
	if text, _, why := audit.Body(reflect.TypeFor[map[string]any](), audit.Whole, []byte(`{}`)); text != nil || why != "unknown-type" {
		t.Errorf("a body of no known type is recorded as %s", text)
	}
}

// Bodies without secrets are not searched.
func TestMayHide(t *testing.T) {
	t.Parallel()
	key := reflect.TypeFor[*model.OwnedAccessKey]()
	for body, want := range map[string]bool{
		`{"apiVersion":"v1","kind":"OwnedAccessKey","metadata":{"name":"mine","managedFields":[{"manager":"a"}]},"spec":{"ttl":5}}`: false,
		`[{"op":"replace","path":"/spec/ttl","value":5}]`:                       false,
		`{"spec":{"key":"a"}}`:                                                  true,
		`{"spec":{"oidcLogin":{"idToken":"a"}}}`:                                true,
		`{"spec":{"k\u0065y":"a"}}`:                                             true,
		`[{"op":"replace","path":"/spec/key","value":"a"}]`:                     true,
		`[{"op":"copy","path":"/spec","value":{"key":"a"}}]`:                    true,
		`[{"op":"add","path":"/metadata/managedFields/0/manager","value":"a"}]`: true,
	} {
		if got := audit.MayHide(key, []byte(body)); got != want {
			t.Errorf("%s: %t, want %t", body, got, want)
		}
	}
	if audit.MayHide(reflect.TypeFor[map[string]any](), []byte(`{"key":"a"}`)) {
		t.Error("a body of no known type is searched")
	}
}

// MayHide finds every text in which Body hides a value.
func FuzzMayHide(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"key":"a","scope":{"roles":[]}},"metadata":{"annotations":{"a":"b"}}}`, `[{"op":"add","path":"/spec","value":{"key":"b"}}]`,
		`[{"op":"add","path":"/spec/oidcLogin/idToken","value":"b"},{"op":"test","path":"","value":{"spec":{}}}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, goType := range []reflect.Type{reflect.TypeFor[*model.OwnedAccessKey](), reflect.TypeFor[*model.Config]()} {
			for _, form := range []audit.Form{audit.Whole, audit.Operations} {
				_, hidden, why := audit.Body(goType, form, []byte(text))
				if why == "" && len(hidden) > 0 && !audit.MayHide(goType, []byte(text)) {
					t.Errorf("%s: %q would not be looked for in %s", goType, hidden[0].Reveal(), text)
				}
			}
		}
	})
}

func TestURI(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ query, want string }{
		{"", "/p"},
		{"watch=true&timeoutSeconds=5", "/p?watch=true&timeoutSeconds=5"},
		{"labelSelector=a%3Db%2Cc%21%3Dd", "/p?labelSelector=a%3Db%2Cc%21%3Dd"},
		{"fieldSelector=metadata.name%3D" + canary, "/p?fieldSelector=***"},
		{"labelSelector=a+in+(" + canary + ")", "/p?labelSelector=***"},
		{"continue=abc", "/p?***"},
		{"access_token=" + canary + "&limit=5", "/p?***&limit=5"},
		{canary, "/p?***"},
		{"limit=%zz", "/p?limit=***"},
		{"pretty", "/p?pretty"},
	} {
		if got := audit.URI("/p", row.query); got != row.want {
			t.Errorf("%s: %s", row.query, got)
		}
	}
}

// Keys that clients put into the path or the user agent by mistake are found. Source: ADR-0016.
func TestStrays(t *testing.T) {
	t.Parallel()
	const own = "own-Key_0123456789abcdefghijABCDEFGHIJ"
	const lower = "0123456789-0123456789-0123456789-0123"
	for _, row := range []struct {
		name, path, agent string
		want              string
	}{
		{"a usual request", "/apis/management.platform.sh/v1/namespaces/p-one/virtualclusterinstances/" + lower, "kubectl/v1.33.0 (linux/amd64) kubernetes/0a1b2c3", ""},
		{"a long version", "/version", "tool/v0.0.0-20260102150405-abcdefabcdef (linux; amd64)", ""},
		{"a key in the path", "/apis/a/v1/ownedaccesskeys/" + own, "", own + " " + own},
		{"an escaped key in the path", "/apis/a/v1/ownedaccesskeys/" + strings.ReplaceAll(own, "K", "%4B"), "", strings.ReplaceAll(own, "K", "%4B") + " " + own},
		{"the bearer itself, escaped", "/apis/a/v1/ownedaccesskeys/" + strings.ReplaceAll(lower, "-", "%2D"), "", strings.ReplaceAll(lower, "-", "%2D") + " " + lower},
		{"a key in the user agent", "/", "curl/8 (" + own + ")", own},
	} {
		var got []string
		for _, one := range audit.Strays([]secret.String{lower}, row.path, row.agent) {
			got = append(got, one.Reveal())
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// Whatever a client sends, no secret of the body is recorded.
func FuzzBody(f *testing.F) {
	f.Add(`{"spec":{"key":"%s"}}`, false)
	f.Add(`{"spec":{"oidcLogin":{"idToken":"%s"}},"metadata":{"name":"a"}}`, false)
	f.Add(`[{"op":"add","path":"/spec/key","value":{"a":["%s"]}}]`, true)
	f.Add(`[{"op":"test","path":"","value":{"spec":{"key":"%s"}}}]`, true)
	f.Fuzz(func(t *testing.T, body string, operations bool) {
		form := audit.Whole
		if operations {
			form = audit.Operations
		}
		text, hidden, why := audit.Body(reflect.TypeFor[model.OwnedAccessKey](), form, []byte(body))
		if why != "" && text != nil && why != "too-large" {
			t.Fatalf("%s, and still %s", why, text)
		}
		if text != nil && !json.Valid(text) {
			t.Fatalf("no JSON: %s", text)
		}
		if text != nil && form == audit.Whole {
			var key model.OwnedAccessKey
			if err := json.Unmarshal(text, &key); err == nil && key.Spec.Key != "" && key.Spec.Key != secret.Mark {
				t.Fatalf("the key of %s is %q, and %d are hidden", text, key.Spec.Key, len(hidden))
			}
		}
	})
}
