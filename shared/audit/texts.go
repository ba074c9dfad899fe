package audit

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"management.platform.sh/shared/model/secret"
)

// shortest is the minimum length of secrets that are searched for elsewhere in an event: shorter ones would be found in
// harmless words. No valid bearer token is shorter than 32 characters, but a refused one can be.
const shortest = 8

// patterns match what is masked anywhere in the text of an event. They are compiled for the first event that may need
// one, not at the start of every function.
type patterns struct {
	// bearers matches text that looks like an access key of the platform or a signed token.
	bearers *regexp.Regexp
	// userinfo and inQuery match passwords and tokens in URLs, within JSON text.
	userinfo, inQuery *regexp.Regexp
}

var compiled = sync.OnceValue(func() patterns {
	return patterns{
		bearers:  regexp.MustCompile(`pak_[0-9A-Za-z]{46}|eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*`),
		userinfo: regexp.MustCompile(`://[^/?#\s"]*@`),
		inQuery:  regexp.MustCompile(`(?i)((?:[?&]|\\u0026)(?:` + secret.Parameters + `)=)[^&#\s"\\]+`),
	}
})

// mask removes secrets from the text of an event, wherever they are: a value that is secret by type in one place must
// not remain in another.
func mask(text []byte, hidden []secret.String) []byte {
	for _, one := range hidden {
		if len(one) < shortest {
			continue
		}
		if word := one.InJSON(); bytes.Contains(text, word) {
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

// Path returns a path as it may be logged: text that looks like an access key of the platform or a signed token is
// masked. Some callers put their key in the place of an object's name.
func Path(path string) string {
	if !strings.Contains(path, "pak_") && !strings.Contains(path, "eyJ") {
		return path
	}
	return compiled().bearers.ReplaceAllString(path, secret.Mark)
}

// longest is the maximum length of a word of a query that is recorded: every bearer token is longer.
const longest = 31

// parameters are the query parameters that the API knows.
var parameters = map[string]bool{
	"allowWatchBookmarks": true, "dryRun": true, "fieldManager": true, "fieldSelector": true, "fieldValidation": true,
	"force": true, "gracePeriodSeconds": true, "includeObject": true, "labelSelector": true, "limit": true,
	"orphanDependents": true, "pretty": true, "propagationPolicy": true, "resourceVersion": true,
	"resourceVersionMatch": true, "reveal": true, "sendInitialEvents": true, "timeout": true, "timeoutSeconds": true,
	"watch": true,
}

// URI returns a path and query as they may be recorded: values of parameters that the API does not know, and words that
// are long enough to be a secret, are masked.
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

// plain reports whether all words of a value are short.
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
