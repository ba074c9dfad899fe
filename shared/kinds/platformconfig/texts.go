package platformconfig

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// text is one string of a configuration.
type text struct {
	// path identifies the field. An entry of a list is named by its own id or name where that is unique, so that the path
	// stays the same when other entries are added or removed.
	path string
	// at is the path with list positions, as errors name it.
	at string
	// value is the text.
	value string
	// secret means that the field has the type of a secret.
	secret bool
}

// lazily compiles a regular expression at its first use, to keep that out of the start of every function.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// everyText calls change for each string of a configuration, and replaces the string by the result.
func everyText(config *model.ConfigStatus, change func(text) string) {
	walk(reflect.ValueOf(config).Elem(), "", "", change)
}

var (
	secretType = reflect.TypeFor[secret.String]()
	modelPath  = reflect.TypeFor[model.ConfigStatus]().PkgPath()
)

func walk(value reflect.Value, path, at string, change func(text) string) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			walk(value.Elem(), path, at, change)
		}
	case reflect.String:
		is := text{path: path, at: at, value: value.String(), secret: value.Type() == secretType}
		if now := change(is); now != is.value {
			value.SetString(now)
		}
	case reflect.Struct:
		// Quantities, times and free JSON are not texts.
		if value.Type().PkgPath() != modelPath || value.Type() == reflect.TypeFor[model.JSON]() {
			return
		}
		for i := range value.NumField() {
			name, options, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if strings.Contains(options, "inline") {
				walk(value.Field(i), path, at, change)
				continue
			}
			walk(value.Field(i), strings.TrimPrefix(path+"."+name, "."), strings.TrimPrefix(at+"."+name, "."), change)
		}
	case reflect.Slice:
		ids := idsOf(value)
		for i := range value.Len() {
			walk(value.Index(i), fmt.Sprintf("%s[%s]", path, ids[i]), fmt.Sprintf("%s[%d]", at, i), change)
		}
	case reflect.Map:
		if value.Type().Elem().Kind() != reflect.String {
			return
		}
		for _, key := range value.MapKeys() {
			is := text{path: fmt.Sprintf("%s[%s]", path, key), at: fmt.Sprintf("%s[%s]", at, key), value: value.MapIndex(key).String()}
			if now := change(is); now != is.value {
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
			address, _ := concealed(shownPart(entry.URL))
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

// parameter is a secret in the query of a URL.
var parameter = lazily(`(?i)([?&](?:` + secret.Parameters + `)=)([^&#\s]+)`)

// concealed returns a text with a mark in place of the secret if it is a URL with a secret, and reports whether it is. A
// user name stays if a password follows it; without a password, it may be a token.
func concealed(value string) (string, bool) {
	scheme, rest, isURL := strings.Cut(value, "://")
	if !isURL || strings.ContainsAny(scheme, " \t\r\n/?#") {
		return value, false
	}
	hidden, found := value, false
	authority := rest
	if end := strings.IndexAny(rest, "/?# \t\r\n\f"); end >= 0 {
		authority = rest[:end]
	}
	if at := strings.LastIndex(authority, "@"); at > 0 {
		user, _, pair := strings.Cut(authority[:at], ":")
		if pair {
			user += ":"
		} else {
			user = ""
		}
		hidden, found = scheme+"://"+user+secret.Mark+rest[at:], true
	}
	if strings.Contains(hidden, "=") && parameter().MatchString(hidden) {
		hidden, found = parameter().ReplaceAllString(hidden, "${1}"+secret.Mark), true
	}
	return hidden, found
}

// conceal puts marks in place of the secrets in URLs. Fields with the type of a secret are encoded as marks anyway.
func conceal(config *model.ConfigStatus) {
	everyText(config, func(t text) string {
		if t.secret {
			return t.value
		}
		hidden, _ := concealed(t.value)
		return hidden
	})
}

// placeholder matches ${NAME}. A second dollar sign in front makes it plain text.
var placeholder = lazily(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces the placeholders of a text that lookup knows; others stay.
func expand(value string, lookup func(name string) (string, bool)) string {
	if !strings.Contains(value, "${") {
		return value
	}
	return placeholder().ReplaceAllStringFunc(value, func(found string) string {
		if plain, escaped := strings.CutPrefix(found, "$$"); escaped {
			return "$" + plain
		}
		if known, ok := lookup(found[len("${") : len(found)-1]); ok {
			return known
		}
		return found
	})
}

// open reports whether a text has a placeholder.
func open(value string) bool {
	found := false
	expand(value, func(string) (string, bool) {
		found = true
		return "", false
	})
	return found
}

// ours are the prefixes of variables that hold the credentials of the process itself. A caller who may write the
// configuration must not be able to read these. Source: ADR-0015.
var ours = []string{"PLATFORM_", "AWS_", "GOOGLE_", "LAMBDA_", "PARAMETERS_SECRETS_"}

func isOurs(name string) bool {
	for _, prefix := range ours {
		if strings.HasPrefix(strings.ToUpper(name), prefix) {
			return true
		}
	}
	return false
}

// resolve replaces the placeholders of a configuration that lookup knows. The others stay as they are; it returns their
// paths and names.
func resolve(config *model.ConfigStatus, lookup func(string) (string, bool)) []string {
	var missing []string
	everyText(config, func(t text) string {
		return expand(t.value, func(name string) (string, bool) {
			value, known := lookup(name)
			if known && !isOurs(name) {
				return value, true
			}
			missing = append(missing, t.at+" ("+name+")")
			return "", false
		})
	})
	return missing
}
