package syncpatch

import (
	"fmt"
	"slices"
	"strings"
)

// hint is advice about a path that matches nothing: what its author has probably meant.
type hint struct {
	// about is the mistake, for the tests.
	about string
	// advise returns the advice, or "" if this is not the mistake.
	advise func(w *walk, request *Request) string
}

// hints are the common mistakes. The first that fits is a part of the reason in the trace, so that the API, the program and the studio
// say the same.
var hints = []hint{
	{"a JSON pointer", func(w *walk, _ *Request) string { return pointer(w.path) }},
	{"patches of another resource than the object", func(_ *walk, request *Request) string { return otherKind(request) }},
	{"a key with dots that is not quoted", func(w *walk, _ *Request) string { return unquoted(w) }},
	{"a field that is to be added", func(w *walk, _ *Request) string { return absentField(w) }},
}

// nothingMatches is the reason for a path that matches nothing, with advice if there is some.
func nothingMatches(w *walk, request *Request) string {
	reason := "nothing matches: " + w.missed
	for _, h := range hints {
		if advice := h.advise(w, request); advice != "" {
			return reason + "; " + advice
		}
	}
	return reason
}

// pointer recognizes a JSON pointer, such as /spec/containers/0/image.
func pointer(path Path) string {
	text := joinKeys(path.segments)
	if !strings.HasPrefix(text, "/") || len(text) == 1 {
		return ""
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	var b []byte
	for _, step := range strings.Split(strings.Trim(text, "/"), "/") {
		switch step = unescape.Replace(step); step {
		case "":
			return ""
		case "-":
			b = append(b, "[*]"...)
		default:
			if _, isIndex := index(step); isIndex && len(b) > 0 {
				b = append(append(append(b, '['), step...), ']')
				continue
			}
			b = appendStep(b, step)
		}
	}
	return "paths have dots: " + string(b)
}

// joinKeys returns the keys of segments with dots between them.
func joinKeys(segments []segment) string {
	keys := make([]string, len(segments))
	for i, s := range segments {
		keys[i] = s.key
	}
	return strings.Join(keys, ".")
}

// appendStep adds a key to a path as people write it: in brackets, if it needs quotes.
func appendStep(b []byte, key string) []byte {
	quoted := appendKey(nil, key)
	if quoted[0] != '"' {
		return append(join(b), quoted...)
	}
	return append(append(append(b, '['), quoted...), ']')
}

// unquoted recognizes a key with dots that is written without quotes: the object has the key, or its parts belong to a map of names,
// such as annotations.
func unquoted(w *walk) string {
	passed := w.missedDepth - 1
	rest := w.path.segments[passed:]
	parent, isMap := w.missedAt.(map[string]any)
	if !isMap || len(rest) < 2 {
		return ""
	}
	count := 0
	for i := 1; i < len(rest) && !rest[i].wildcard; i++ {
		if _, exists := parent[joinKeys(rest[:i+1])]; exists {
			count = i + 1
		}
	}
	if count == 0 && passed > 0 && namesMap(w.path.segments[passed-1].key) && !slices.ContainsFunc(rest, func(s segment) bool { return s.wildcard }) {
		count = len(rest)
	}
	if count == 0 {
		return ""
	}
	b := appendStep([]byte(Path{w.path.segments[:passed]}.String()), joinKeys(rest[:count]))
	if after := (Path{rest[count:]}).String(); after != "" {
		b = append(join(b), after...)
	}
	return "quote a key with dots: " + string(b)
}

// namesMap reports whether a field is a map of Kubernetes whose keys often have dots.
func namesMap(key string) bool {
	return slices.Contains([]string{"annotations", "labels", "matchLabels", "nodeSelector", "data", "binaryData", "stringData", "limits", "requests"}, key)
}

// absentField recognizes a field that the object does not have. A patch never creates one.
func absentField(w *walk) string {
	object, isMap := w.missedAt.(map[string]any)
	if !isMap || len(w.path.segments) < w.missedDepth || w.path.segments[w.missedDepth-1].wildcard {
		return ""
	}
	key := w.path.segments[w.missedDepth-1].key
	for other := range object {
		if strings.EqualFold(other, key) {
			return ""
		}
	}
	if parent := (Path{w.path.segments[:w.missedDepth-1]}).String(); parent != "" {
		return "to add the field, patch its parent: " + parent
	}
	return `to add the field, patch the whole object: ""`
}

// otherKind recognizes patches of a resource for an object of another kind.
func otherKind(request *Request) string {
	kind, _ := request.Object["kind"].(string)
	resource := strings.TrimPrefix(strings.TrimPrefix(request.Resource, fromHost+"."), toHost+".")
	if kind == "" || resource == "" {
		return ""
	}
	name, isCustom := strings.CutPrefix(resource, "customResources.")
	if isCustom {
		name, _, _ = strings.Cut(name, ".")
	} else {
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	if slices.Contains(Plurals(kind), strings.ToLower(name)) {
		return ""
	}
	return fmt.Sprintf("the patches are for %s, and the object is of kind %q", resource, kind)
}

// Plurals are the possible resources of a kind, in lower case, such as gateways and gatewaies.
func Plurals(kind string) []string {
	singular := strings.ToLower(kind)
	return []string{singular + "s", singular + "es", strings.TrimSuffix(singular, "y") + "ies", singular}
}
