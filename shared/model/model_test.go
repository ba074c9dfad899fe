package model_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/lazyjson"
	"management.platform.sh/shared/model/secret"
)

// kinds returns the kinds of the group in the scheme, without the options of requests.
func kinds(t *testing.T) map[string]reflect.Type {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := model.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	goTypes := map[string]reflect.Type{}
	for kind, goType := range scheme.KnownTypes(model.SchemeGroupVersion) {
		if goType.PkgPath() == reflect.TypeFor[model.Scope]().PkgPath() {
			goTypes[kind] = goType
		}
	}
	return goTypes
}

// fill sets every field below value to something that is not its zero value.
func fill(t *testing.T, value reflect.Value, secretText secret.String) {
	t.Helper()
	switch value.Interface().(type) {
	case metav1.Time:
		value.Set(reflect.ValueOf(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())))
		return
	case metav1.MicroTime:
		value.Set(reflect.ValueOf(metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC).Local())))
		return
	case metav1.Duration:
		value.Set(reflect.ValueOf(metav1.Duration{Duration: 90 * time.Minute}))
		return
	case metav1.FieldsV1:
		value.Set(reflect.ValueOf(*metav1.NewFieldsV1(`{"f:spec":{}}`)))
		return
	case resource.Quantity:
		value.Set(reflect.ValueOf(resource.MustParse("500m")))
		return
	case model.JSON:
		value.Set(reflect.ValueOf(model.JSON{Raw: []byte(`{"b":[1,null,"x"],"a":1e400}`)}))
		return
	case secret.String:
		value.Set(reflect.ValueOf(secretText))
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString("text")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(7)
	case reflect.Uint8:
		value.SetUint(200)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(t, value.Elem(), secretText)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 2, 2))
		for i := range value.Len() {
			fill(t, value.Index(i), secretText)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		element := reflect.New(value.Type().Elem()).Elem()
		fill(t, element, secretText)
		value.SetMapIndex(reflect.ValueOf("key"), element)
	case reflect.Struct:
		for i := range value.NumField() {
			fill(t, value.Field(i), secretText)
		}
	default:
		t.Fatalf("no value for %s", value.Type())
	}
}

func filled(t *testing.T, goType reflect.Type, secretText secret.String) runtime.Object {
	t.Helper()
	object := reflect.New(goType)
	fill(t, object.Elem(), secretText)
	return object.Interface().(runtime.Object)
}

// A secret prints as its mark, so secrets are filled with the mark, which survives.
func TestEveryKindSurvivesJSONAndYAML(t *testing.T) {
	t.Parallel()
	for kind, goType := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			want := filled(t, goType, secret.Mark)
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got := reflect.New(goType).Interface()
			strict, err := kjson.UnmarshalStrict(text, got)
			if err != nil || len(strict) > 0 {
				t.Fatal(err, strict)
			}
			if !apiequality.Semantic.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			lazily := reflect.New(goType).Interface()
			if err := lazyjson.Unmarshal(text, lazily); err != nil || !apiequality.Semantic.DeepEqual(lazily, want) {
				t.Errorf("got %+v, %v\nwant %+v", lazily, err, want)
			}
			document, err := yaml.JSONToYAML(text)
			if err != nil {
				t.Fatal(err)
			}
			fromYAML := reflect.New(goType).Interface()
			if err := yaml.UnmarshalStrict(document, fromYAML); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestEveryKindCopiesDeeply(t *testing.T) {
	t.Parallel()
	for kind, goType := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			original, want := filled(t, goType, "a"), filled(t, goType, "a")
			duplicate := original.DeepCopyObject()
			if !apiequality.Semantic.DeepEqual(duplicate, want) {
				t.Fatalf("got %+v\nwant %+v", duplicate, want)
			}
			scramble(reflect.ValueOf(duplicate).Elem())
			if !apiequality.Semantic.DeepEqual(original, want) {
				t.Error("a change of the copy reached the original")
			}
		})
	}
}

// scramble changes the data that slices, maps and pointers below value share with other values.
func scramble(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			scramble(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			scramble(value.Index(i))
		}
		if value.Len() > 0 && value.Index(0).CanSet() {
			value.Index(0).SetZero()
		}
	case reflect.Map:
		if value.CanInterface() {
			value.Clear()
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				scramble(value.Field(i))
			}
		}
	default:
	}
}

// A configuration with every secret set shows no secret in JSON, at any depth.
func TestConfigNeverShowsSecrets(t *testing.T) {
	t.Parallel()
	const canary = "canary-5f2c"
	text, err := json.Marshal(filled(t, reflect.TypeFor[model.ConfigList](), canary))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), canary) {
		t.Error("a secret is in the clear")
	}
	for _, field := range []string{"clientSecret", "password", "token", "bearerToken"} {
		if !strings.Contains(string(text), `"`+field+`":"`+secret.Mark+`"`) {
			t.Errorf("%s is not marked", field)
		}
	}
}

// Absent and zero differ. Spec 2.6, 2.7.
func TestAbsentIsNotZero(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		absent     func(t *testing.T, text string) bool
	}{
		{"certificateTTL: one day, or the signing duration (Spec 2.6)", `{"certificateTTL":0}`, func(t *testing.T, text string) bool {
			return decode[model.VirtualClusterInstanceKubeConfigSpec](t, text).CertificateTTLSeconds == nil
		}},
		{"loginAccessKeyTTLSeconds: 20 days, or no ttl (Spec 2.7)", `{"loginAccessKeyTTLSeconds":0}`, func(t *testing.T, text string) bool {
			return decode[model.ConfigAuth](t, text).LoginAccessKeyTTLSeconds == nil
		}},
		{"storageClass: the default, or no provisioning (Spec 2.7)", `{"storageClass":""}`, func(t *testing.T, text string) bool {
			return decode[model.MetricsStorage](t, text).StorageClass == nil
		}},
		{"enabled: true, or false (Spec 2.8)", `{"enabled":false}`, func(t *testing.T, text string) bool {
			return decode[model.EndpointsSync](t, text).Enabled == nil
		}},
		{"labels: an empty object is a mode (Spec 2.8)", `{"labels":{}}`, func(t *testing.T, text string) bool {
			return decode[model.SyncPatch](t, text).Labels == nil
		}},
		{"scope: an empty one permits nothing (Spec 2.3)", `{"scope":{}}`, func(t *testing.T, text string) bool {
			return decode[model.OwnedAccessKeySpec](t, text).Scope == nil
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if !test.absent(t, `{}`) {
				t.Error("absent is taken for present")
			}
			if test.absent(t, test.text) {
				t.Errorf("%s is taken for absent", test.text)
			}
		})
	}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var target T
	if err := json.Unmarshal([]byte(text), &target); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	if name, _, found := strings.Cut(strings.TrimPrefix(text, `{"`), `"`); found && !strings.Contains(string(again), name) {
		t.Errorf("%s became %s", text, again)
	}
	return target
}

func TestJSONKeepsTheText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"z":1,"a":{"deep":[1e400,0.10]}}`, `"x"`, `12345678901234567890`, `false`, `null`, `[]`} {
		var value model.JSON
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != text {
			t.Errorf("%s became %s", text, again)
		}
	}
	if zero, err := json.Marshal(model.JSON{}); err != nil || string(zero) != "null" {
		t.Errorf("the zero value is %s, %v", zero, err)
	}
	if _, err := json.Marshal(model.JSON{Raw: []byte(`{"a":`)}); err == nil {
		t.Error("half a value was encoded")
	}
}

func TestResourceHasTheGroup(t *testing.T) {
	t.Parallel()
	if got := model.Resource("ownedaccesskeys").String(); got != "ownedaccesskeys.management.platform.sh" {
		t.Errorf("got %s", got)
	}
}
