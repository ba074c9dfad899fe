package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings/keypem"
)

// Readers are the programs that read a setting.
type Readers uint8

// The readers.
const (
	// Functions are deployed functions, in whatever shell.
	Functions Readers = 1 << iota
	// Serve is the runner that serves the API.
	Serve
	// Commands are other commands of the runner.
	Commands
)

// Setting is one setting: a variable, a flag of the runner, or both.
type Setting struct {
	// Name is the variable. Empty: the setting is a flag alone.
	Name string
	// Flag is the flag of the runner, without hyphens. Empty: there is none.
	Flag string
	// Readers are the programs that read the setting.
	Readers Readers
	// Required are the readers that do not start without the setting or another setting that replaces it. 0: it is
	// optional.
	Required Readers
	// Instead is the key of the setting that this one replaces. This setting gives the value in another form: the path
	// of a file, or a reference to a secret. Empty: none.
	Instead string
	// Unit is the unit or the form of the value, such as duration, number, URL or path.
	Unit string
	// Default is the value if the setting is absent or empty. Empty: there is no fixed default.
	Default string
	// Min and Max are the minimum and the maximum, inclusive. Empty: the value has no bounds.
	Min, Max string
	// Words are the allowed values. Nil: the value is not from a fixed list.
	Words []string
	// Secret reports whether the value must not be shown.
	Secret bool
	// Meaning describes the setting in plain text, for the documentation and for help.
	Meaning string

	set func(into *Settings, text string) error
}

// Key returns the name by which the setting is looked up: the variable or, if there is none, the flag with its hyphens.
func (s Setting) Key() string {
	if s.Name == "" {
		return "--" + s.Flag
	}
	return s.Name
}

// Allowed describes the allowed values, such as "from 1m to 24h". Empty: they have neither bounds nor a fixed list.
func (s Setting) Allowed() string {
	switch {
	case s.Min != "":
		return "from " + s.Min + " to " + s.Max
	case len(s.Words) > 0:
		return enumerate(s.Words, "or")
	}
	return ""
}

func (s Setting) describe(unit string, readers Readers, meaning string) Setting {
	s.Unit, s.Readers, s.Meaning = unit, readers, meaning
	return s
}

func (s Setting) required(readers Readers) Setting {
	s.Required = readers
	return s
}

func (s Setting) insteadOf(name string) Setting {
	s.Instead = name
	return s
}

// boundsError returns the error for a value that is malformed or out of bounds.
func (s Setting) boundsError(kind string) error {
	return fmt.Errorf("must be a %s %s", kind, s.Allowed())
}

func text(name, flag, value string, field func(*Settings) *string) Setting {
	return checkedText(name, flag, value, func(string) error { return nil }, field)
}

// checkedText returns a text setting whose value must pass a check.
func checkedText(name, flag, value string, check func(string) error, field func(*Settings) *string) Setting {
	return Setting{Name: name, Flag: flag, Default: value, set: func(into *Settings, text string) error {
		if err := check(text); err != nil {
			return err
		}
		*field(into) = text
		return nil
	}}
}

// list returns a setting of texts that are separated by commas.
func list(name, flag string, field func(*Settings) *[]string) Setting {
	return Setting{Name: name, Flag: flag, set: func(into *Settings, text string) error {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*field(into) = append(*field(into), item)
			}
		}
		return nil
	}}
}

// word returns a setting with a fixed list of values. What names the values in errors.
func word(name, flag, what, value string, words []string, field func(*Settings) *string) Setting {
	return Setting{Name: name, Flag: flag, Default: value, Words: words, set: func(into *Settings, text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("unknown %s: use %s", what, enumerate(words, "or"))
		}
		*field(into) = text
		return nil
	}}
}

// level returns the setting of the log level, in lower or upper case.
func level(name, flag string) Setting {
	words := []string{"debug", "info", "warn", "error"}
	return Setting{Name: name, Flag: flag, Default: "info", Words: words, set: func(into *Settings, text string) error {
		var level slog.Level
		if level.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("unknown log level: use %s", enumerate(words, "or"))
		}
		into.LogLevel = level
		return nil
	}}
}

func boolean(name, flag string, field func(*Settings) *bool) Setting {
	return Setting{Name: name, Flag: flag, Default: "false", Words: []string{"true", "false"}, set: func(into *Settings, text string) error {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		*field(into) = value
		return nil
	}}
}

func number(name, flag, value string, least, most int, field func(*Settings) *int) Setting {
	s := Setting{Name: name, Flag: flag, Default: value, Min: strconv.Itoa(least), Max: strconv.Itoa(most)}
	s.set = func(into *Settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return s.boundsError("number")
		}
		*field(into) = n
		return nil
	}
	return s
}

func duration(name, flag, value string, least, most time.Duration, field func(*Settings) *time.Duration) Setting {
	s := Setting{Name: name, Flag: flag, Default: value, Min: formatDuration(least), Max: formatDuration(most)}
	s.set = func(into *Settings, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return s.boundsError("duration")
		}
		*field(into) = d
		return nil
	}
	return s
}

// formatDuration formats a duration without units that are zero: 24h, not 24h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// quantity returns a setting of a number of bytes, such as 64Mi.
func quantity(name, flag, value string, least, most int64, field func(*Settings) *int64) Setting {
	s := Setting{
		Name: name, Flag: flag, Default: value,
		Min: resource.NewQuantity(least, resource.BinarySI).String(), Max: resource.NewQuantity(most, resource.BinarySI).String(),
	}
	s.set = func(into *Settings, text string) error {
		bytes, err := resource.ParseQuantity(text)
		if err != nil || bytes.Value() < least || bytes.Value() > most {
			return s.boundsError("quantity")
		}
		*field(into) = bytes.Value()
		return nil
	}
	return s
}

// source is the field of a secret that several settings can set.
type source struct {
	value *secret.String
	// from receives the name of the setting that has set the value. Nil: the name is not needed.
	from  *string
	check func(secret.String) error
}

func (s source) fill(name string, value secret.String) error {
	if err := s.check(value); err != nil {
		return err
	}
	*s.value = value
	if s.from != nil {
		*s.from = name
	}
	return nil
}

func anyText(secret.String) error { return nil }

func secretText(name, flag string, field func(*Settings) source) Setting {
	return Setting{Name: name, Flag: flag, Secret: true, set: func(into *Settings, text string) error {
		return field(into).fill(name, secret.String(text))
	}}
}

// secretFile returns the setting of the path of a file with a secret. Errors do not quote the path, because an operator
// may have set the variable to the secret itself.
func secretFile(name, instead string, field func(*Settings) source) Setting {
	return Setting{Name: name, Instead: instead, set: func(into *Settings, path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
				err = wrong.Err
			}
			return fmt.Errorf("names a file that cannot be read: %w", err)
		}
		text := strings.TrimSpace(string(content))
		if text == "" {
			return errors.New("names an empty file")
		}
		return field(into).fill(name, secret.String(text))
	}}
}

// readByCommand returns a setting that a command reads itself.
func readByCommand(name, flag string) Setting {
	return Setting{Name: name, Flag: flag, set: func(*Settings, string) error { return nil }}
}

// checkSigningKeys returns an error for keys that cannot sign tokens.
func checkSigningKeys(text secret.String) error {
	_, err := keypem.Parse(text)
	return err
}

// checkIssuer returns an error if a text cannot be the URL of an issuer, to which verifiers append paths. The error does not
// quote the text. Source: OpenID Connect Discovery 1.0, section 3.
func checkIssuer(issuer string) error {
	parsed, err := url.Parse(issuer)
	switch {
	case err != nil || parsed.Scheme != "https" || parsed.Host == "":
		return errors.New("must be a URL that begins with https:// and names a host")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" || strings.Contains(issuer, "#"):
		return errors.New("must have no user, query or fragment")
	case strings.HasSuffix(issuer, "/"):
		return errors.New("must not end with a slash")
	}
	return nil
}

// reservedVariables are the prefixes of variables with the credentials of the process itself.
var reservedVariables = []string{"PLATFORM_", "AWS_", "GOOGLE_", "LAMBDA_", "PARAMETERS_SECRETS_"}

// checkVariables refuses a prefix of variables that includes variables of the process itself. Source: ADR-0024.
func checkVariables(prefix string) error {
	odd := func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}
	if strings.ContainsFunc(prefix, odd) || !strings.HasSuffix(prefix, "_") || prefix[0] >= '0' && prefix[0] <= '9' {
		return errors.New("must have only letters, digits and _, begin with no digit and end with _")
	}
	upper := strings.ToUpper(prefix)
	if strings.HasPrefix(upper, DefaultConfigVariables) {
		return nil
	}
	for _, reserved := range reservedVariables {
		if strings.HasPrefix(upper, reserved) || strings.HasPrefix(reserved, upper) {
			return errors.New("must not include variables that begin with " + reserved + ": they belong to the platform itself")
		}
	}
	return nil
}

// checkLoopback refuses addresses that other machines can reach.
func checkLoopback(address string) error {
	if port, local := strings.CutPrefix(address, "localhost:"); local {
		address = "127.0.0.1:" + port
	}
	if parsed, err := netip.ParseAddrPort(address); err != nil || !parsed.Addr().IsLoopback() {
		return errors.New("must be a loopback address with a port, such as 127.0.0.1:8080 or [::1]:8080: bearer tokens must not cross a network unencrypted")
	}
	return nil
}
