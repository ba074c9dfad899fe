package main

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// keyID matches the id of a signing key with a hyphen at its beginning: a SHA-256 thumbprint in base64url.
var keyID = regexp.MustCompile(`^-[A-Za-z0-9_-]{42}$`)

// separateIDs moves key ids with a hyphen at their beginning behind `--`, where kong takes no argument for a flag. One
// id in 64 begins with a hyphen, and no flag is that long. The value of a flag stays where it is.
func separateIDs(app *kong.Application, line []string) []string {
	withValue := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && !flag.IsBool() {
			withValue["--"+flag.Name] = true
			if flag.Short != 0 {
				withValue["-"+string(flag.Short)] = true
			}
		}
		return next(nil)
	})
	var arguments, ids []string
	isValue := false
	for i, argument := range line {
		if argument == "--" && !isValue {
			return joinArguments(arguments, append(ids, line[i+1:]...))
		}
		if keyID.MatchString(argument) && !isValue {
			ids = append(ids, argument)
			continue
		}
		arguments = append(arguments, argument)
		isValue = !isValue && strings.HasPrefix(argument, "-") && withValue[argument]
	}
	if len(ids) == 0 {
		return line
	}
	return joinArguments(arguments, ids)
}

func joinArguments(before, after []string) []string {
	return append(append(before, "--"), after...)
}
