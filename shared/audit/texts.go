package audit

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"management.platform.sh/shared/model/lazyregexp"
	"management.platform.sh/shared/model/secret"
)

// shortest is the minimum length of secrets that are searched for elsewhere in an event: shorter ones would match
// harmless words. No valid bearer token is shorter than 32 characters, but a refused one can be.
const shortest = 8

// The texts that are masked anywhere in an event. bearers matches text that looks like an access key of the platform or
// a signed token. userinfo and inQuery match passwords and tokens in URLs, within JSON text.
var (
	bearers  = lazyregexp.New(`pak_[0-9A-Za-z]{46}|eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*`)
	userinfo = lazyregexp.New(`://[^/?#\s"]*@`)
	inQuery  = lazyregexp.New(`(?i)((?:[?&]|\\u0026)(?:` + secret.Parameters + `)=)[^&#\s"\\]+`)
)

// mask removes secrets from the whole text of an event: a value that is secret by type in one place must not remain in
// another.
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
		text = userinfo().ReplaceAll(text, []byte("://"+secret.Mark+"@"))
		text = inQuery().ReplaceAll(text, []byte("${1}"+secret.Mark))
	}
	if bytes.Contains(text, []byte("pak_")) || bytes.Contains(text, []byte("eyJ")) {
		text = bearers().ReplaceAll(text, []byte(secret.Mark))
	}
	return text
}

// Text returns a text as it may be logged: without the hidden texts, and without anything that looks like an access key
// of the platform or a signed token.
func Text(text string, hidden ...secret.String) string {
	for _, one := range hidden {
		if len(one) >= shortest {
			text = strings.ReplaceAll(text, one.Reveal(), secret.Mark)
		}
	}
	if !strings.Contains(text, "pak_") && !strings.Contains(text, "eyJ") {
		return text
	}
	return bearers().ReplaceAllString(text, secret.Mark)
}

// longest is the maximum length of a recorded word of a query: every bearer token is longer.
const longest = 31

// Strays returns the parts of a request's head in which a client has put a credential by mistake. Bearers are the
// credentials of the request itself. Path is escaped, as it was sent. A path segment is returned if it contains a
// bearer, or if it is as long as a key and cannot be the name of an object. A word of the user agent is returned if it
// is as long as a key and is no version. Texts that look like a key of the platform are masked everywhere and are not
// returned.
func Strays(bearers []secret.String, path, agent string) []secret.String {
	var strays []secret.String
	for step := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(step)
		if err != nil {
			name = step
		}
		if len(name) > longest && !isName(name) || slices.ContainsFunc(bearers, func(bearer secret.String) bool {
			return len(bearer) >= shortest && step != name && strings.Contains(name, bearer.Reveal())
		}) {
			strays = append(strays, secret.String(step), secret.String(name))
		}
	}
	for word := range strings.FieldsFuncSeq(agent, func(c rune) bool { return strings.ContainsRune(" \t/;,()", c) }) {
		if len(word) > longest && !isVersion(word) {
			strays = append(strays, secret.String(word))
		}
	}
	return strays
}

// isName reports whether a text has only the characters of an object's name.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != ':'
	})
}

// isVersion reports whether a word of a user agent begins with a version, such as v0.0.0-20260102150405-abcdefabcdef.
func isVersion(word string) bool {
	rest := strings.TrimLeft(strings.TrimPrefix(word, "v"), "0123456789")
	return rest != word && len(rest) > 1 && rest[0] == '.' && rest[1] >= '0' && rest[1] <= '9'
}

// parameters are the query parameters that the API knows.
var parameters = map[string]bool{
	"allowWatchBookmarks": true, "dryRun": true, "fieldManager": true, "fieldSelector": true, "fieldValidation": true,
	"force": true, "gracePeriodSeconds": true, "includeObject": true, "labelSelector": true, "limit": true,
	"orphanDependents": true, "pretty": true, "propagationPolicy": true, "resourceVersion": true,
	"resourceVersionMatch": true, "reveal": true, "sendInitialEvents": true, "timeout": true, "timeoutSeconds": true,
	"watch": true,
}

// URI returns a path and query as they may be recorded. It masks the values of parameters that the API does not know,
// and words that are long enough to be a secret.
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
		case hasShortWords(value):
			out.WriteString(part)
		default:
			out.WriteString(name + "=" + secret.Mark)
		}
	}
	return out.String()
}

// hasShortWords reports whether all words of a value are short.
func hasShortWords(value string) bool {
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
