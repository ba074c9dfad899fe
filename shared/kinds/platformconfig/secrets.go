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
	// path identifies the field. It names an entry of a list by the entry's unique id or name, so that it stays the same
	// when other entries are added or removed.
	path string
	// fieldPath is the path with list positions, as errors name it.
	fieldPath string
	// value is the text.
	value string
	// secret reports whether the field has the type of a secret.
	secret bool
	// field is the field of a struct that has the text, or the list or map with the text. Parents are that struct and the
	// structs around it, innermost last.
	field   reflect.StructField
	parents []reflect.Value
}

// sentNowhere is the tag sentTo of a secret whose destination no other field changes.
const sentNowhere = "-"

// sentTo returns the names and values of the fields that say where the text is sent. The tag sentTo lists the names: a name
// with ^ is a field one object further out. Marks replace secrets in the values. Empty: there are no such fields.
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

// fieldNamed returns the field of a struct by its JSON name. It panics if there is no such field: a test checks the tags.
func fieldNamed(structure reflect.Value, name string) reflect.Value {
	for i := range structure.NumField() {
		if wire, _, _ := strings.Cut(structure.Type().Field(i).Tag.Get("json"), ","); wire == name {
			return structure.Field(i)
		}
	}
	panic("platformconfig: " + structure.Type().Name() + " has no field " + name)
}

// destinations returns where the texts of a configuration are sent, by their paths. Defaults count as if they were written.
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

// walk visits the texts in a value. Place describes the value.
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

// idsOf returns what identifies each entry of a list: its id, its name or another identifying field if that is unique, and
// otherwise its position.
func idsOf(list reflect.Value) []string {
	ids := make([]string, list.Len())
	times := map[string]int{}
	for i := range ids {
		switch entry := list.Index(i).Interface().(type) {
		case model.AuthConnector:
			ids[i] = entry.ID
		case model.AppRepository:
			// A URL may contain a secret, which must not be in a path.
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

// secretParameter matches a secret in the query of a URL.
var secretParameter = lazyregexp.New(`(?i)([?&](?:` + secret.Parameters + `)=)([^&#\s]+)`)

// concealSecret returns a URL with a mark in place of its secret, and reports whether there is a secret. Other texts stay as
// they are. A user name stays if a password follows it. Without a password, it may be a token.
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

// expand replaces the placeholders of a text for which lookup has a value. Other placeholders stay.
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

// DefaultVariables is the prefix of the names of variables that placeholders can name, if the deployment does not set
// another one. Source: ADR-0024.
const DefaultVariables = settings.DefaultConfigVariables

// placeholderProblem returns why a placeholder cannot be used in a text. Empty: it can. Placeholders stand for secrets:
// their values must not be shown or sent to clients, and callers who may write the configuration must not read the process's
// own variables with them. The default of secretsStore.address comes from the platform itself. Source: ADR-0024.
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

// variablePrefix is the prefix of the names of variables that placeholders can name.
func (l loader) variablePrefix() string { return cmp.Or(l.Variables, DefaultVariables) }

// resolve replaces the allowed placeholders of a configuration whose variables are set. Other placeholders stay, and it
// returns their paths and names.
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
