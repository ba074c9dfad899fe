package platformconfig

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/lazyregexp"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
)

// text is one string of a configuration.
type text struct {
	// path identifies the field. An entry of a list is named by its own id or name where that is unique, so that the path
	// stays the same when other entries are added or removed.
	path string
	// fieldPath is the path with list positions, as errors name it.
	fieldPath string
	// value is the text.
	value string
	// secret means that the field has the type of a secret.
	secret bool
	// field is the field of a struct that holds the text, and parents are that struct and those around it, innermost last.
	// A text in a list or map has the field of that.
	field   reflect.StructField
	parents []reflect.Value
}

// sentNowhere is the tag sentTo of a secret for which no other field says where it is sent.
const sentNowhere = "-"

// sentTo returns the names and values of the fields that say where the text is sent, as the tag sentTo lists them: a name
// with ^ is a field one object further out. Secrets in the values are marks. Empty: none.
func (t text) sentTo() (names []string, values string) {
	var texts []string
	for name := range strings.SplitSeq(t.field.Tag.Get("sentTo"), ",") {
		outer := strings.TrimLeft(name, "^")
		levels := len(name) - len(outer)
		if outer == "" || outer == sentNowhere || levels >= len(t.parents) {
			continue
		}
		value := fieldNamed(t.parents[len(t.parents)-1-levels], outer)
		shown := fmt.Sprint(value.Interface())
		if value.Kind() == reflect.String {
			shown, _ = concealSecret(shownPart(value.String()))
		}
		names, texts = append(names, outer), append(texts, fmt.Sprintf("%s=%q", outer, shown))
	}
	return names, strings.Join(texts, " ")
}

// fieldNamed returns the field of a struct by its JSON name. It panics if there is none: tags are checked by a test.
func fieldNamed(structure reflect.Value, name string) reflect.Value {
	for i := range structure.NumField() {
		if wire, _, _ := strings.Cut(structure.Type().Field(i).Tag.Get("json"), ","); wire == name {
			return structure.Field(i)
		}
	}
	panic("platformconfig: " + structure.Type().Name() + " has no field " + name)
}

// destinations returns where the texts of a configuration are sent, by their paths. Defaults count as written.
func destinations(config *model.ConfigStatus) map[string]string {
	defaulted := config.DeepCopy()
	setDefaults(defaulted)
	destinationsByPath := map[string]string{}
	everyText(defaulted, func(t text) string {
		_, destinationsByPath[t.path] = t.sentTo()
		return t.value
	})
	return destinationsByPath
}

// everyText calls change for each string of a configuration, and replaces the string by the result.
func everyText(config *model.ConfigStatus, change func(text) string) {
	walk(reflect.ValueOf(config).Elem(), text{}, change)
}

var (
	secretType = reflect.TypeFor[secret.String]()
	modelPath  = reflect.TypeFor[model.ConfigStatus]().PkgPath()
)

// walk visits the texts in a value. Here is the place of the value.
func walk(value reflect.Value, place text, change func(text) string) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			walk(value.Elem(), place, change)
		}
	case reflect.String:
		place.value, place.secret = value.String(), value.Type() == secretType
		if now := change(place); now != place.value {
			value.SetString(now)
		}
	case reflect.Struct:
		// Quantities, times and free JSON are not texts.
		if value.Type().PkgPath() != modelPath || value.Type() == reflect.TypeFor[model.JSON]() {
			return
		}
		parents := append(slices.Clip(place.parents), value)
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if strings.Contains(options, "inline") {
				walk(value.Field(i), text{path: place.path, fieldPath: place.fieldPath, parents: parents}, change)
				continue
			}
			walk(value.Field(i), text{
				path: strings.TrimPrefix(place.path+"."+name, "."), fieldPath: strings.TrimPrefix(place.fieldPath+"."+name, "."), field: field, parents: parents,
			}, change)
		}
	case reflect.Slice:
		ids := idsOf(value)
		for i := range value.Len() {
			entry := place
			entry.path, entry.fieldPath = fmt.Sprintf("%s[%s]", place.path, ids[i]), fmt.Sprintf("%s[%d]", place.fieldPath, i)
			walk(value.Index(i), entry, change)
		}
	case reflect.Map:
		if value.Type().Elem().Kind() != reflect.String {
			return
		}
		for _, key := range value.MapKeys() {
			entry := place
			entry.path, entry.fieldPath = fmt.Sprintf("%s[%s]", place.path, key), fmt.Sprintf("%s[%s]", place.fieldPath, key)
			entry.value = value.MapIndex(key).String()
			if now := change(entry); now != entry.value {
				value.SetMapIndex(key, reflect.ValueOf(now).Convert(value.Type().Elem()))
			}
		}
	default:
		// Numbers and booleans are not texts.
	}
}

// idsOf returns what identifies each entry of a list: its id or name, else another field that identifies it, if it is
// unique; else the position.
func idsOf(list reflect.Value) []string {
	ids := make([]string, list.Len())
	times := map[string]int{}
	for i := range ids {
		switch entry := list.Index(i).Interface().(type) {
		case model.AuthConnector:
			ids[i] = entry.ID
		case model.AppRepository:
			// A URL may hold a secret, which must not be in a path.
			address, _ := concealSecret(shownPart(entry.URL))
			ids[i] = cmp.Or(entry.Name, address)
		case model.OIDCServerClient:
			ids[i] = cmp.Or(entry.ClientID, entry.Name)
		}
		times[ids[i]]++
	}
	for i, id := range ids {
		if id == "" || times[id] > 1 {
			ids[i] = fmt.Sprintf("#%d", i)
		}
	}
	return ids
}

// secretParameter is a secret in the query of a URL.
var secretParameter = lazyregexp.New(`(?i)([?&](?:` + secret.Parameters + `)=)([^&#\s]+)`)

// concealSecret returns a text with a mark in place of the secret if it is a URL with a secret, and reports whether it is. A
// user name stays if a password follows it; without a password, it may be a token.
func concealSecret(value string) (string, bool) {
	scheme, rest, isURL := strings.Cut(value, "://")
	if !isURL || strings.ContainsAny(scheme, " \t\r\n/?#") {
		return value, false
	}
	masked, hasSecret := value, false
	authority := rest
	if end := strings.IndexAny(rest, "/?# \t\r\n\f"); end >= 0 {
		authority = rest[:end]
	}
	if index := strings.LastIndex(authority, "@"); index > 0 {
		user, _, hasPassword := strings.Cut(authority[:index], ":")
		if hasPassword {
			user += ":"
		} else {
			user = ""
		}
		masked, hasSecret = scheme+"://"+user+secret.Mark+rest[index:], true
	}
	if strings.Contains(masked, "=") && secretParameter().MatchString(masked) {
		masked, hasSecret = secretParameter().ReplaceAllString(masked, "${1}"+secret.Mark), true
	}
	return masked, hasSecret
}

// conceal puts marks in place of the secrets in URLs. Fields with the type of a secret are encoded as marks anyway.
func conceal(config *model.ConfigStatus) {
	everyText(config, func(t text) string {
		if t.secret {
			return t.value
		}
		hidden, _ := concealSecret(t.value)
		return hidden
	})
}

// placeholder matches ${NAME}. A second dollar sign in front makes it plain text.
var placeholder = lazyregexp.New(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces the placeholders of a text that lookup knows; others stay.
func expand(value string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(value, "${") {
		return value
	}
	return placeholder().ReplaceAllStringFunc(value, func(reference string) string {
		if plain, escaped := strings.CutPrefix(reference, "$$"); escaped {
			return "$" + plain
		}
		if known, ok := lookup(reference[len("${") : len(reference)-1]); ok {
			return known
		}
		return reference
	})
}

// hasPlaceholder reports whether a text has a placeholder.
func hasPlaceholder(value string) bool {
	exists := false
	expand(value, func(string) (string, bool) {
		exists = true
		return "", false
	})
	return exists
}

// DefaultVariables begins the names of the variables that placeholders can name if the deployment does not say otherwise.
// Source: ADR-0024.
const DefaultVariables = settings.DefaultConfigVariables

// why the placeholders of a text cannot be used; empty if they can. Placeholders stand for secrets: their values must not get
// into what is sent to clients or shown, and callers who may write the configuration must not read the process's own
// variables with them. The default of secretsStore.address is the platform's own. Source: ADR-0024.
func (l loader) placeholderProblem(t text, name string) string {
	switch {
	case t.fieldPath == secretsStoreAddress && t.value == "${"+secretsStoreVariable+"}":
		return ""
	case !t.secret:
		return "placeholders are only allowed in secrets; write $${" + name + "} for the text itself"
	case !strings.HasPrefix(name, l.variablePrefix()):
		return "the placeholder ${" + name + "} is not allowed: its name must begin with " + l.variablePrefix()
	default:
		return ""
	}
}

// variablePrefix begins the names of the variables that placeholders can name.
func (l loader) variablePrefix() string { return cmp.Or(l.Variables, DefaultVariables) }

// resolve replaces the placeholders of a configuration that are allowed and known. The others stay as they are; it returns
// their paths and names.
func (l loader) resolve(config *model.ConfigStatus) []string {
	var unresolvedFields []string
	everyText(config, func(t text) string {
		return expand(t.value, func(name string) (string, bool) {
			if l.placeholderProblem(t, name) != "" {
				unresolvedFields = append(unresolvedFields, t.fieldPath+" ("+name+" is not allowed)")
				return "", false
			}
			value, known := l.Lookup(name)
			if !known {
				unresolvedFields = append(unresolvedFields, t.fieldPath+" ("+name+")")
			}
			return value, known
		})
	})
	return unresolvedFields
}

// validatePlaceholders returns a problem for each placeholder that cannot be used.
func (l loader) validatePlaceholders(config *model.ConfigStatus, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	everyText(config, func(t text) string {
		expand(t.value, func(name string) (string, bool) {
			if why := l.placeholderProblem(t, name); why != "" {
				problems = append(problems, field.Forbidden(path.Child(t.fieldPath), why))
			}
			return "", false
		})
		return t.value
	})
	return problems
}
