package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
)

// readSecrets returns a command line with the content of a file in place of each `@FILE` that is the value of a secret
// flag. It refuses a secret in the line itself, because other users of the machine see the command lines of all
// processes. The URL of a server is a secret only if it contains a password. Errors do not quote values.
func readSecrets(app *kong.Application, line []string) ([]string, error) {
	variables := secretFlagNames(app)
	read := append([]string(nil), line...)
	for i := 0; i < len(read) && read[i] != "--"; i++ {
		flag, value, joined := strings.Cut(read[i], "=")
		variable, isSecret := variables[flag]
		if !isSecret {
			continue
		}
		if !joined {
			if i++; i == len(read) {
				break // the parser reports the missing value
			}
			value = read[i]
		}
		text, err := readSecret(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; name a file with %s=@FILE, or set %s", flag, err, flag, variable)
		}
		if joined {
			text = flag + "=" + text
		}
		read[i] = text
	}
	return read, nil
}

// secretFlagNames returns the flags whose values are secrets, with hyphens, and the variable of each.
func secretFlagNames(app *kong.Application) map[string]string {
	variables := map[string]string{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Target.Type() == reflect.TypeFor[secret.String]() {
			variables["--"+flag.Name] = strings.Join(flag.Envs, " or ")
		}
		return next(nil)
	})
	return variables
}

// readSecret returns the text that the value of a secret flag stands for.
func readSecret(value string) (string, error) {
	file, named := strings.CutPrefix(value, "@")
	switch {
	case named:
		content, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
			// The name may be a secret that begins with the same letter.
			err = wrong.Err
		}
		if err != nil {
			return "", fmt.Errorf("names a file that cannot be read: %w", err)
		}
		return strings.TrimSpace(string(content)), nil
	case value == "" || value == settings.NoAdminKey || strings.Contains(value, "://") && !strings.Contains(value, "@") && !strings.Contains(strings.ToLower(value), "password="):
		return value, nil
	default:
		return "", errors.New("a secret on the command line is visible to other users of the machine")
	}
}
