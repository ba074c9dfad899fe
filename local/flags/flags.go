// Package flags makes the flags of settings: each has the name, the variable, the default and the help that package
// settings lists. Package settings also reads and checks the values. A flag and its variable are the same setting; the
// flag wins.
package flags

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
)

// Settings are the flags of some settings. Make them with ForSettings and embed them in a command. The zero value has no flags.
type Settings struct {
	// Plugins hold the values as kong fills them in.
	kong.Plugins
	// Getenv returns the variables that have no flag here. Nil: the environment of the process.
	Getenv func(name string) string `kong:"-"`

	keys []string
}

// ForSettings returns the flags of the settings with these keys.
func ForSettings(keys ...string) Settings {
	flags := Settings{}
	var fields []reflect.StructField
	for i, setting := range settings.Named(keys...) {
		if setting.Flag == "" {
			continue
		}
		kind := reflect.TypeFor[string]()
		switch {
		case setting.Secret:
			kind = reflect.TypeFor[secret.String]()
		case setting.Unit == "boolean":
			kind = reflect.TypeFor[boolean]()
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("Setting", i), Type: kind, Tag: tag(setting)})
		flags.keys = append(flags.keys, setting.Key())
	}
	flags.Plugins = kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}
	return flags
}

// Serve returns the flags of the serve command.
func Serve() Settings {
	var keys []string
	for _, setting := range settings.List {
		if setting.Flag != "" && setting.Readers&settings.Serve != 0 {
			keys = append(keys, setting.Key())
		}
	}
	return ForSettings(keys...)
}

// Signing returns the flags for signing tokens.
func Signing() Settings {
	return ForSettings(settings.TokenMaxTTL, settings.SigningAlgorithm, settings.SigningRotateEvery, settings.SigningPublishBefore)
}

// DoctorKeys are the settings of a deployment that its examination reads.
var DoctorKeys = []string{
	settings.RedisReplicas, settings.RedisTimeout, settings.TokenMaxTTL, settings.SigningAlgorithm, settings.SigningRotateEvery,
	settings.SigningPublishBefore, settings.SigningKey, settings.SigningKeyFile, settings.Config, settings.ConfigVariables,
	settings.QuotaObjects, settings.QuotaBytes,
}

// Doctor returns the flags of DoctorKeys. Settings without a flag are read from their variables.
func Doctor() Settings { return ForSettings(DoctorKeys...) }

// Patches returns the flags that bound evaluations of sync patches.
func Patches() Settings {
	return ForSettings(settings.PatchExpressionTime, settings.PatchObjectTime, settings.PatchMemory, settings.PatchResult, settings.PatchDepth,
		settings.PatchWorkers, settings.PatchInProcess)
}

// tag is what kong reads of a flag.
func tag(s settings.Setting) reflect.StructTag {
	unit := s.Unit[strings.LastIndex(s.Unit, " ")+1:]
	text := fmt.Sprintf("name:%q placeholder:%q help:%q", s.Flag, strings.ToUpper(unit), Help(s))
	if s.Name != "" {
		text += fmt.Sprintf(" env:%q", s.Name)
	}
	return reflect.StructTag(text)
}

// Help returns the help of a setting: its meaning, the allowed values and the default.
func Help(s settings.Setting) string {
	text := s.Meaning
	switch {
	case s.Unit == "boolean":
		return text
	case s.Min != "":
		text += " From " + s.Min + " to " + s.Max + "."
	case len(s.Words) > 0:
		text += " Use " + s.Allowed() + "."
	}
	if s.Default != "" {
		text += " Default: " + s.Default + "."
	}
	return text
}

// Set sets a flag as the command line does. It panics if there is no such flag.
func (f Settings) Set(key, value string) {
	f.value(key).SetString(value)
}

// value returns the field of a setting; the zero Value if the setting has no flag here.
func (f Settings) value(key string) reflect.Value {
	for i, known := range f.keys {
		if known == key {
			return reflect.ValueOf(f.Plugins[0]).Elem().Field(i)
		}
	}
	return reflect.Value{}
}

// Lookup returns the value of a setting: the value of its flag, else of its variable.
func (f Settings) Lookup(key string) string {
	if value := f.value(key); value.IsValid() && value.String() != "" {
		return value.String()
	}
	if strings.HasPrefix(key, "-") {
		return ""
	}
	return f.getenv(key)
}

func (f Settings) getenv(name string) string {
	if f.Getenv != nil {
		return f.Getenv(name)
	}
	return os.Getenv(name)
}

// InputName returns the flag or the variable by which the operator gave a setting.
func (f Settings) InputName(key string) string {
	value := f.value(key)
	if !value.IsValid() || value.String() == "" || value.String() == f.getenv(key) {
		return key
	}
	return "--" + settings.Named(key)[0].Flag
}

// Read returns the settings from the flags, their variables and the defaults, and an error for each wrong value.
func (f Settings) Read() (settings.Settings, error) {
	return settings.ReadOnly(f.Lookup, f.InputName, f.keys...)
}

// boolean is a flag that may stand without a value, which then means true. Its text is read with the other settings.
type boolean string

// IsBool reports to kong that the flag needs no value.
func (*boolean) IsBool() bool { return true }

// Decode takes the value of the flag, if there is one.
func (b *boolean) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*b = "true"
		return nil
	}
	text, ok := ctx.Scan.Pop().Value.(string)
	if !ok {
		return errors.New("must be true or false")
	}
	*b = boolean(text)
	return nil
}
