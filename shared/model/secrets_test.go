package model_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// telling are the words in the names of fields that may hold a secret.
var telling = []string{
	"key", "token", "secret", "password", "passwd", "kubeconfig", "credential", "private", "bearer", "endpoint", "headers", "cookie",
}

// harmless are the fields whose names contain such a word although they are no secrets, with the reason.
var harmless = map[string]string{
	"ConfigAuth.customHttpHeaders":                  "headers of answers, which every client sees",
	"DirectClusterEndpointTokenStatus.accessKey":    "the name of an object",
	"DirectClusterEndpointTokenStatus.accessKeyUID": "the uid of an object",
	"ScopePreviewSubject.accessKey":                 "the name of an object",
	"SecretKeyRef.key":                              "the name of a field",
	"SelfStatus.accessKey":                          "the name of an object",
	"SelfStatus.accessKeyType":                      "a word of a list",
}

// A field that may hold a secret is a secret.String, has the tag secret:"true", or stands in harmless with the reason why
// it holds none. Audit events and other records are redacted by these types and tags. Source: ADR-0016.
func TestSecretsAreMarked(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	used := map[string]bool{}
	for _, goType := range kinds(t) {
		markedBelow(t, goType, seen, used)
	}
	for name := range harmless {
		if !used[name] {
			t.Errorf("%s is no field of a kind that has to be explained", name)
		}
	}
}

func markedBelow(t *testing.T, goType reflect.Type, seen map[reflect.Type]bool, used map[string]bool) {
	for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map {
		goType = goType.Elem()
	}
	if goType.Kind() != reflect.Struct || seen[goType] {
		return
	}
	seen[goType] = true
	switch goType {
	case reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.ListMeta](), reflect.TypeFor[metav1.Condition](),
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[model.JSON]():
		return
	}
	for i := range goType.NumField() {
		field := goType.Field(i)
		wire, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		marked := field.Type == reflect.TypeFor[secret.String]()
		if mark, has := field.Tag.Lookup("secret"); has {
			kind := field.Type.Kind()
			if kind == reflect.Slice {
				kind = field.Type.Elem().Kind()
			}
			if mark != "true" || kind != reflect.String && kind != reflect.Uint8 {
				t.Errorf(`%s.%s: only texts and bytes can be marked, with secret:"true"`, goType.Name(), wire)
			}
			marked = true
		}
		name := strings.ToLower(wire)
		if !marked && holdsText(field.Type) && slices.ContainsFunc(telling, func(word string) bool { return strings.Contains(name, word) }) {
			full := goType.Name() + "." + wire
			_, explained := harmless[full]
			if used[full] = true; !explained {
				t.Errorf(`%s may hold a secret: make it a secret.String, mark it with secret:"true", or say why not`, full)
			}
		}
		markedBelow(t, field.Type, seen, used)
	}
}

// holdsText reports whether a field is text, or a list or map of texts.
func holdsText(goType reflect.Type) bool {
	for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map {
		if goType == reflect.TypeFor[[]byte]() {
			return true
		}
		goType = goType.Elem()
	}
	return goType.Kind() == reflect.String
}
