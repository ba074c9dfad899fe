package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// refusedError is what a template says of the values.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// chartFiles are the files of a chart that templates read.
type chartFiles struct{ chart fs.FS }

// Get returns the text of a file. A file that is not there is empty, as with Helm.
func (f chartFiles) Get(name string) string {
	text, err := fs.ReadFile(f.chart, name)
	if err != nil {
		return ""
	}
	return string(text)
}

// functions returns the functions of Helm and Sprig that the chart uses. The value that a pipe passes comes last.
func functions(templates *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out bytes.Buffer
			err := templates.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"fail": func(message string) (string, error) { return "", &refusedError{message} },
		"required": func(message string, value any) (any, error) {
			if value == nil || value == "" {
				return nil, &refusedError{message}
			}
			return value, nil
		},
		"default": func(fallback, value any) any {
			if empty(value) {
				return fallback
			}
			return value
		},
		"toYaml": func(value any) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"quote":    func(value any) string { return strconv.Quote(text(value)) },
		"toString": text,
		"nindent": func(width int, value string) string {
			margin := strings.Repeat(" ", width)
			return "\n" + margin + strings.ReplaceAll(value, "\n", "\n"+margin)
		},
		"trunc":           func(length int, value string) string { return value[:min(length, len(value))] },
		"trimSuffix":      func(suffix, value string) string { return strings.TrimSuffix(value, suffix) },
		"replace":         func(before, after, value string) string { return strings.ReplaceAll(value, before, after) },
		"contains":        func(part, value string) bool { return strings.Contains(value, part) },
		"regexMatch":      func(pattern, value string) bool { return regexp.MustCompile(pattern).MatchString(value) },
		"regexReplaceAll": func(pattern, value, by string) string { return regexp.MustCompile(pattern).ReplaceAllString(value, by) },
		"splitList":       func(separator, value string) []string { return strings.Split(value, separator) },
		"sha256sum": func(value string) string {
			sum := sha256.Sum256([]byte(value))
			return hex.EncodeToString(sum[:])
		},
		"list":   func(items ...any) []any { return items },
		"concat": concat,
		"uniq":   unique,
		"join": func(separator string, items []any) string {
			texts := make([]string, len(items))
			for i, item := range items {
				texts[i] = text(item)
			}
			return strings.Join(texts, separator)
		},
		"dict":   dict,
		"hasKey": func(object map[string]any, key string) bool { _, found := object[key]; return found },
		"get":    func(object map[string]any, key string) any { return object[key] },
		"kindIs": func(kind string, value any) bool {
			return value != nil && reflect.TypeOf(value).Kind().String() == kind
		},
		"ternary": func(yes, no any, condition bool) any {
			if condition {
				return yes
			}
			return no
		},
		"int64": integer,
		"add":   func(a, b any) int64 { return integer(a) + integer(b) },
		"mul":   func(a, b any) int64 { return integer(a) * integer(b) },
		"div":   func(a, b any) int64 { return integer(a) / integer(b) },
	}
}

// empty reports whether templates treat a value as absent.
func empty(value any) bool {
	truth, _ := template.IsTrue(value)
	return !truth
}

// text returns the text of a value; an absent value is empty.
func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// integer returns the integer in a value. Numbers in YAML are floating-point numbers here, as with Helm.
func integer(value any) int64 {
	switch number := reflect.ValueOf(value); {
	case number.CanInt():
		return number.Int()
	case number.CanFloat():
		return int64(number.Float())
	default:
		parsed, _ := strconv.ParseInt(text(value), 0, 64)
		return parsed
	}
}

func concat(lists ...[]any) []any {
	var all []any
	for _, each := range lists {
		all = append(all, each...)
	}
	return all
}

func unique(items []any) []any {
	var found []any
	seen := map[string]bool{}
	for _, item := range items {
		if !seen[text(item)] {
			seen[text(item)], found = true, append(found, item)
		}
	}
	return found
}

// dict returns an object of keys, each followed by its value.
func dict(pairs ...any) map[string]any {
	object := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		object[text(pairs[i])] = pairs[i+1]
	}
	return object
}
