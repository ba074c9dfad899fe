package audit

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"management.platform.sh/shared/model/secret"
)

// shortest is the length from which on a secret is looked for elsewhere in an event: a shorter one would be found in
// innocent words. No bearer is shorter than 32 characters; what is refused for that may be.
const shortest = 8

// patterns of what is masked wherever it stands in the text of an event. They are compiled for the first event that
// may need one: not at the start of every function.
type patterns struct {
	// bearers look like access keys that the platform made, and like signed tokens.
	bearers *regexp.Regexp
	// userinfo and inQuery are where a URL holds a password or token, in a text of JSON.
	userinfo, inQuery *regexp.Regexp
}

var compiled = sync.OnceValue(func() patterns {
	return patterns{
		bearers:  regexp.MustCompile(`pak_[0-9A-Za-z]{46}|eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*`),
		userinfo: regexp.MustCompile(`://[^/?#\s"]*@`),
		inQuery:  regexp.MustCompile(`(?i)((?:[?&]|\\u0026)(?:` + secret.Parameters + `)=)[^&#\s"\\]+`),
	}
})

// mask takes secrets out of the text of an event, wherever they stand in it: what is secret by type in one place must
// not remain in another.
func mask(text []byte, hidden []secret.String) []byte {
	for _, one := range hidden {
		if len(one) < shortest {
			continue
		}
		// In a text of JSON it stands as JSON writes it.
		quoted, err := json.Marshal(one.Reveal())
		if err != nil {
			continue
		}
		if word := quoted[1 : len(quoted)-1]; bytes.Contains(text, word) {
			text = bytes.ReplaceAll(text, word, []byte(secret.Mark))
		}
	}
	if bytes.Contains(text, []byte("://")) {
		text = compiled().userinfo.ReplaceAll(text, []byte("://"+secret.Mark+"@"))
		text = compiled().inQuery.ReplaceAll(text, []byte("${1}"+secret.Mark))
	}
	if bytes.Contains(text, []byte("pak_")) || bytes.Contains(text, []byte("eyJ")) {
		text = compiled().bearers.ReplaceAll(text, []byte(secret.Mark))
	}
	return text
}

// Path is a path as it may be logged: what looks like an access key that the platform made, or like a signed token, is
// masked. Some put theirs where the name of an object belongs.
func Path(path string) string {
	if !strings.Contains(path, "pak_") && !strings.Contains(path, "eyJ") {
		return path
	}
	return compiled().bearers.ReplaceAllString(path, secret.Mark)
}

// longest is the length up to which a word of a query is recorded: no bearer is as short.
const longest = 31

// parameters are those of the query whose values say what was asked for.
var parameters = map[string]bool{
	"allowWatchBookmarks": true, "dryRun": true, "fieldManager": true, "fieldSelector": true, "fieldValidation": true,
	"force": true, "gracePeriodSeconds": true, "includeObject": true, "labelSelector": true, "limit": true,
	"orphanDependents": true, "pretty": true, "propagationPolicy": true, "resourceVersion": true,
	"resourceVersionMatch": true, "reveal": true, "sendInitialEvents": true, "timeout": true, "timeoutSeconds": true,
	"watch": true,
}

// URI is a path and query as they may be recorded: values of parameters that the API does not know, and words that are
// long enough to be a secret, are masked.
func URI(path, query string) string {
	if query == "" {
		return path
	}
	var out strings.Builder
	out.WriteString(path)
	separator := byte('?')
	for part := range strings.SplitSeq(query, "&") {
		out.WriteByte(separator)
		separator = '&'
		name, value, given := strings.Cut(part, "=")
		switch {
		case !parameters[name]:
			out.WriteString(secret.Mark)
		case !given:
			out.WriteString(name)
		case plain(value):
			out.WriteString(part)
		default:
			out.WriteString(name + "=" + secret.Mark)
		}
	}
	return out.String()
}

// plain tells whether all words of a value are short.
func plain(value string) bool {
	decoded, err := url.QueryUnescape(value)
	if err != nil {
		return false
	}
	for word := range strings.FieldsFuncSeq(decoded, func(c rune) bool { return strings.ContainsRune("=!,() \t", c) }) {
		if len(word) > longest {
			return false
		}
	}
	return true
}
