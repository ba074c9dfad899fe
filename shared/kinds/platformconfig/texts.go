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
	// path is where it stands. Entries of a list stand under their own id or name where that tells them apart,
	// so that the path survives when others are added or removed.
	path string
	// at is where it stands by the positions of lists, as causes of errors name it.
	at string
	// value is its clear text.
	value string
	// secret tells whether it is one by its type.
	secret bool
}

// lazily is a regular expression that is compiled when it is first used: not at the start of every function.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// everyText hands each string of a configuration to change and puts its answer there.
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
		// Quantities, times and free JSON are no texts.
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
		// Numbers and truth values are no texts.
	}
}

// idsOf are what the entries of a list are known by: an id or name, or what else stands for them where they have
// none, if no other has the same; else the position.
func idsOf(list reflect.Value) []string {
	ids := make([]string, list.Len())
	times := map[string]int{}
	for i := range ids {
		switch entry := list.Index(i).Interface().(type) {
		case model.AuthConnector:
			ids[i] = entry.ID
		case model.AppRepository:
			// A URL may hold a secret, which is not to be in a path.
			address, _ := concealed(entry.URL)
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

// concealed returns a text that is a URL with a secret in it with a mark instead of that, and whether it is one.
// A user name stays where there is a password beside it; alone it may be a token.
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

// conceal puts marks for the secrets in URLs. Those that are secrets by their type print as a mark anyway.
func conceal(config *model.ConfigStatus) {
	everyText(config, func(t text) string {
		if t.secret {
			return t.value
		}
		hidden, _ := concealed(t.value)
		return hidden
	})
}

// secrets are the secrets of a configuration by their paths: those by type, and URLs that hold one.
func secrets(config *model.ConfigStatus) map[string]string {
	found := map[string]string{}
	everyText(config, func(t text) string {
		if _, inURL := concealed(t.value); t.value != "" && (t.secret || inURL) {
			found[t.path] = t.value
		}
		return t.value
	})
	return found
}

// placeholder is ${NAME}; a second dollar in front makes it plain text.
var placeholder = lazily(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts what lookup knows in place of the placeholders of a text; others stay.
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

// open tells whether a text has a placeholder whose value is not known here.
func open(value string) bool {
	found := false
	expand(value, func(string) (string, bool) {
		found = true
		return "", false
	})
	return found
}

// ours are the beginnings of variables that hold the credentials of the process itself. Who may write the
// configuration may not thereby read these. Source: ADR-0015.
var ours = []string{"PLATFORM_", "AWS_", "GOOGLE_", "LAMBDA_", "PARAMETERS_SECRETS_"}

func isOurs(name string) bool {
	for _, prefix := range ours {
		if strings.HasPrefix(strings.ToUpper(name), prefix) {
			return true
		}
	}
	return false
}

// resolve replaces the placeholders of a configuration by what lookup knows, and returns the paths of those that
// it does not know, which stay as they are.
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
