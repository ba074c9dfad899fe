package kinds_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/store"
)

// telling matches the names of fields that say who gets something, or what they get.
var telling = regexp.MustCompile(`(?i)user|team|subject|owner|group|role|member|access|scope|connector|claim|issuer|match|audience|signer|clusterRef`)

// stated has the fields with such a name that are no grant, or the objects that hold such fields, and the reason.
var stated = map[string]string{
	"OwnedAccessKey.spec.groups":            "compared by Authorize, because what they give depends on the owner",
	"OwnedAccessKey.spec.identity":          "written by sign-ins alone",
	"OwnedAccessKey.spec.oidcProvider":      "written by sign-ins alone",
	"OwnedAccessKey.spec.oidcLogin":         "written by sign-ins alone",
	"OwnedAccessKey.spec.team":              "one owner: spec.user in this test",
	"OwnedAccessKey.spec.subject":           "one owner: spec.user in this test",
	"User.spec.username":                    "shown, and never compared",
	"DirectClusterEndpointToken.spec.scope": "compared when the token is signed",
}

// filled returns a value of a type with every field set: each list has one entry, and each text is the letter x.
func filled(goType reflect.Type) reflect.Value {
	value := reflect.New(goType).Elem()
	switch goType.Kind() {
	case reflect.Pointer:
		value.Set(filled(goType.Elem()).Addr())
	case reflect.Struct:
		if goType == reflect.TypeFor[metav1.Time]() {
			value.Set(reflect.ValueOf(metav1.Unix(1, 0)))
			break
		}
		for i := range goType.NumField() {
			if goType.Field(i).IsExported() {
				value.Field(i).Set(filled(goType.Field(i).Type))
			}
		}
	case reflect.Slice:
		value.Set(reflect.Append(value, filled(goType.Elem())))
	case reflect.Map:
		value.Set(reflect.MakeMap(goType))
		value.SetMapIndex(filled(goType.Key()), filled(goType.Elem()))
	case reflect.String:
		value.SetString("x")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(1)
	case reflect.Uint8:
		value.SetUint('x')
	default:
		panic("the test fills no " + goType.String())
	}
	return value
}

// fieldsOf returns the paths of the fields of a type whose names match telling. Of nested fields that match it returns the
// outermost.
func fieldsOf(goType reflect.Type, path string) []string {
	for goType.Kind() == reflect.Pointer || goType.Kind() == reflect.Slice || goType.Kind() == reflect.Map {
		goType = goType.Elem()
	}
	if goType.Kind() != reflect.Struct || strings.HasPrefix(goType.PkgPath(), "k8s.io/") {
		return nil
	}
	var found []string
	for i := range goType.NumField() {
		name, _, _ := strings.Cut(goType.Field(i).Tag.Get("json"), ",")
		at := path + "." + name
		switch {
		case name == "":
			found = append(found, fieldsOf(goType.Field(i).Type, path)...)
		case telling.MatchString(name):
			found = append(found, at)
		default:
			found = append(found, fieldsOf(goType.Field(i).Type, at)...)
		}
	}
	return found
}

// bare matches the keys and indices in a path.
var bare = regexp.MustCompile(`\[[^\]]*\]`)

// statements checks that the grants of a kind cover each of its fields from fieldsOf, unless stated excepts the field. The
// registry has the Go type of its kind, so that its parts are found by their names.
func statements(t *testing.T, registry resource.Decider, used map[string]bool) {
	t.Helper()
	part := func(name string) reflect.Value { return reflect.ValueOf(registry).Elem().FieldByName(name).Elem() }
	definition, rules := part("Definition"), part("Rules")
	kind, namesPeople := definition.FieldByName("Kind").String(), definition.FieldByName("NamesPeople").Bool()
	goType := definition.FieldByName("New").Call(nil)[0].Type().Elem()
	object := filled(goType).Addr()
	grants := rules.MethodByName("Grants").Call([]reflect.Value{object})[0].Interface().([]auth.Grant)
	field, _ := goType.FieldByName("Spec")
	for _, path := range fieldsOf(field.Type, "spec") {
		name := kind + "." + path
		exempt := false
		for holder := range stated {
			if name == holder || strings.HasPrefix(name, holder+".") {
				exempt, used[holder] = true, true
			}
		}
		if exempt {
			continue
		}
		if !slices.ContainsFunc(grants, func(grant auth.Grant) bool {
			at := bare.ReplaceAllString(grant.Path.String(), "")
			return at == path || strings.HasPrefix(at, path+".") || strings.HasPrefix(path, at+".")
		}) {
			t.Errorf("%s is no grant, and nothing says why", name)
		}
	}
	owner := rules.MethodByName("Index").Call([]reflect.Value{object, reflect.ValueOf(time.Time{})})[0].String()
	for _, grant := range grants {
		if to := grant.To; to.Name != "" && to.String() != owner && !namesPeople {
			t.Errorf("%s gives something to %s, which is not its owner, and NamesPeople is false", kind, to)
		}
	}
}

// Each field that names a person, a team, a group, a role or a scope is a grant of its kind. Source: ADR-0047.
func TestGrantsAreStated(t *testing.T) {
	t.Parallel()
	config := &model.ConfigStatus{}
	env := &platform.Environment{
		Stores: func(string) store.Store { return nil }, Now: time.Now, Config: func() *model.ConfigStatus { return config },
	}
	used := map[string]bool{}
	for _, registry := range kinds.Readers(env) {
		statements(t, registry, used)
	}
	for name := range stated {
		if !used[name] {
			t.Errorf("there is no field %s without a grant", name)
		}
	}
}
