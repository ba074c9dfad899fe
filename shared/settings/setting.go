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
	// Readers are the programs that read it.
	Readers Readers
	// Required are those of the readers that do not start without it, or without a setting that stands Instead of it.
	Required Readers
	// Instead is the setting whose value this one gives in another way: the path of a file or a reference to a secret.
	Instead string
	// Unit is what the value is.
	Unit string
	// Default is what holds when the setting is absent or empty. It may be empty itself.
	Default string
	// Min and Max are the bounds, which are allowed. Empty: there are none.
	Min, Max string
	// Words are the values that are allowed. nil: the value is not one of some words.
	Words []string
	// Inside and Outside are values at the bounds and just beyond them, for tests of shells.
	Inside, Outside []string
	// Secret tells that the value must not be shown.
	Secret bool
	// Meaning says in a sentence what it is for.
	Meaning string

	set func(into *Settings, text string) error
}

// Key is by what the setting is looked up and named in errors: the variable, else the flag with its hyphens.
func (s Setting) Key() string {
	if s.Name == "" {
		return "--" + s.Flag
	}
	return s.Name
}

// Allowed says which values are allowed, such as "from 1m to 24h". Empty: nothing short can be said.
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

func (s Setting) inside(values ...string) Setting {
	s.Inside = values
	return s
}

func (s Setting) outside(values ...string) Setting {
	s.Outside = values
	return s
}

// bounded is the error of a value beyond the bounds of a setting.
func (s Setting) bounded(kind string) error {
	return fmt.Errorf("must be a %s %s", kind, s.Allowed())
}

func text(name, flag, value string, field func(*Settings) *string) Setting {
	return checked(name, flag, value, func(string) error { return nil }, field)
}

// checked is a text that must pass a check.
func checked(name, flag, value string, check func(string) error, field func(*Settings) *string) Setting {
	return Setting{Name: name, Flag: flag, Default: value, set: func(into *Settings, text string) error {
		if err := check(text); err != nil {
			return err
		}
		*field(into) = text
		return nil
	}}
}

// list is texts separated by commas.
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

// word is one of some words. What says of what they are.
func word(name, flag, what, value string, words []string, field func(*Settings) *string) Setting {
	return Setting{Name: name, Flag: flag, Default: value, Words: words, Inside: words, Outside: []string{"nonsense"}, set: func(into *Settings, text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("unknown %s: use %s", what, enumerate(words, "or"))
		}
		*field(into) = text
		return nil
	}}
}

// level is a level of the log, in letters of any size.
func level(name, flag string) Setting {
	words := []string{"debug", "info", "warn", "error"}
	return Setting{Name: name, Flag: flag, Default: "info", Words: words, Inside: append(slices.Clone(words), "WARN"), Outside: []string{"nonsense"}, set: func(into *Settings, text string) error {
		var level slog.Level
		if level.UnmarshalText([]byte(text)) != nil {
			return fmt.Errorf("unknown log level: use %s", enumerate(words, "or"))
		}
		into.LogLevel = level
		return nil
	}}
}

func boolean(name, flag string, field func(*Settings) *bool) Setting {
	words := []string{"true", "false"}
	return Setting{Name: name, Flag: flag, Default: "false", Words: words, Inside: append(slices.Clone(words), "1", "0"), Outside: []string{"yes"}, set: func(into *Settings, text string) error {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		*field(into) = value
		return nil
	}}
}

func number(name, flag, value string, least, most int, field func(*Settings) *int) Setting {
	s := Setting{
		Name: name, Flag: flag, Default: value, Min: strconv.Itoa(least), Max: strconv.Itoa(most),
		Inside:  []string{strconv.Itoa(least), strconv.Itoa(most)},
		Outside: []string{strconv.Itoa(least - 1), strconv.Itoa(most + 1), "many"},
	}
	s.set = func(into *Settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return s.bounded("number")
		}
		*field(into) = n
		return nil
	}
	return s
}

func duration(name, flag, value string, least, most time.Duration, field func(*Settings) *time.Duration) Setting {
	s := Setting{
		Name: name, Flag: flag, Default: value, Min: short(least), Max: short(most),
		Inside:  []string{least.String(), most.String()},
		Outside: []string{(least - 1).String(), (most + 1).String(), "30", "soon"},
	}
	s.set = func(into *Settings, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return s.bounded("duration")
		}
		*field(into) = d
		return nil
	}
	return s
}

// short writes a duration without the units that are zero: 24h, not 24h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// quantity is a number of bytes, such as 64Mi.
func quantity(name, flag, value string, least, most int64, field func(*Settings) *int64) Setting {
	s := Setting{
		Name: name, Flag: flag, Default: value,
		Min: resource.NewQuantity(least, resource.BinarySI).String(), Max: resource.NewQuantity(most, resource.BinarySI).String(),
	}
	s.Inside = []string{s.Min, s.Max, strconv.FormatInt(least, 10)}
	s.Outside = []string{strconv.FormatInt(least-1, 10), strconv.FormatInt(most+1, 10), "much"}
	s.set = func(into *Settings, text string) error {
		bytes, err := resource.ParseQuantity(text)
		if err != nil || bytes.Value() < least || bytes.Value() > most {
			return s.bounded("quantity")
		}
		*field(into) = bytes.Value()
		return nil
	}
	return s
}

// source is a secret that several settings can give.
type source struct {
	value *secret.String
	// from takes the name of the setting that gave it. nil: nobody asks.
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

// secretFile is the path of a file with a secret.
func secretFile(name, instead string, field func(*Settings) source) Setting {
	return Setting{Name: name, Instead: instead, Outside: []string{"/nowhere/at/all"}, set: func(into *Settings, path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return unreadable(err)
		}
		text := strings.TrimSpace(string(content))
		if text == "" {
			return errors.New("names an empty file")
		}
		return field(into).fill(name, secret.String(text))
	}}
}

// checkFile refuses a file that cannot be opened.
func checkFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return unreadable(err)
	}
	return file.Close()
}

// unreadable says why a file cannot be read, without its path.
func unreadable(err error) error {
	if wrong := (*fs.PathError)(nil); errors.As(err, &wrong) {
		err = wrong.Err
	}
	return fmt.Errorf("names a file that cannot be read: %w", err)
}

// elsewhere is a setting that the command which has it reads itself.
func elsewhere(name, flag string) Setting {
	return Setting{Name: name, Flag: flag, set: func(*Settings, string) error { return nil }}
}

// checkSigningKeys refuses keys that cannot sign tokens.
func checkSigningKeys(text secret.String) error {
	_, err := keypem.Parse(text)
	return err
}

// CheckIssuer tells what is wrong with the URL of an issuer, without quoting it. Verifiers append paths to it.
// Source: OpenID Connect Discovery 1.0, section 3.
func CheckIssuer(issuer string) error {
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

// checkLoopback refuses to offer plain HTTP to other machines.
func checkLoopback(address string) error {
	colon := strings.LastIndex(address, ":")
	host := address[:max(colon, 0)]
	bare := host
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		bare = host[1 : len(host)-1]
	}
	if colon < 0 || strings.Contains(bare, ":") != (bare != host) {
		return errors.New("must be a host and a port, such as 127.0.0.1:8080 or [::1]:8080")
	}
	if ip, err := netip.ParseAddr(bare); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("must be a loopback address: bearer tokens must not cross a network unencrypted")
}
