// Package flags has the groups of flags that several commands take.
package flags

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"management.platform.sh/shared/credentials/issuer"
	"management.platform.sh/shared/settings"
)

// LogLevel is a level whose error says which there are.
type LogLevel slog.Level

// UnmarshalText reads a level as slog writes it, in letters of any size.
func (l *LogLevel) UnmarshalText(text []byte) error {
	if err := (*slog.Level)(l).UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is none of debug, info, warn and error", text)
	}
	return nil
}

// The bounds of Patches. Source: ADR-0014.
const (
	leastPatchTime   = time.Millisecond
	mostPatchTime    = 25 * time.Second
	leastPatchMemory = 16 << 20
	mostPatchMemory  = 1 << 30
	leastPatchResult = 1 << 10
	mostPatchResult  = 16 << 20
	leastPatchDepth  = 10
	mostPatchDepth   = 1000
	mostPatchWorkers = 64
)

// Signing say how tokens are signed. The defaults are those of package issuer.
type Signing struct {
	TokenMaxTTL   time.Duration `name:"token-max-ttl" env:"PLATFORM_TOKEN_MAX_TTL" default:"24h" help:"The longest life of a token (${default})."`
	Algorithm     string        `name:"signing-algorithm" env:"PLATFORM_SIGNING_ALGORITHM" default:"ES256" enum:"ES256,RS256" help:"How tokens are signed: ES256 or RS256 (${default})."`
	RotateEvery   time.Duration `name:"signing-rotate-every" env:"PLATFORM_SIGNING_ROTATE_EVERY" default:"168h" help:"How long a signing key signs (${default})."`
	PublishBefore time.Duration `name:"signing-publish-before" env:"PLATFORM_SIGNING_PUBLISH_BEFORE" default:"1h" help:"How long a signing key is published before it signs (${default})."`
}

// Settings are those that the flags say.
func (f Signing) Settings() settings.Tokens {
	return settings.Tokens{MaxTTL: f.TokenMaxTTL, Algorithm: f.Algorithm, RotateEvery: f.RotateEvery, PublishBefore: f.PublishBefore}
}

// Check returns what is wrong with the flags, all at once.
func (f Signing) Check() error {
	var problems []error
	if f.TokenMaxTTL < time.Minute {
		problems = append(problems, fmt.Errorf("--token-max-ttl: %s is less than a minute", f.TokenMaxTTL))
	}
	if f.PublishBefore < issuer.MinPublishBefore {
		problems = append(problems, fmt.Errorf("--signing-publish-before: %s is less than %s, for which verifiers may not ask again", f.PublishBefore, issuer.MinPublishBefore))
	}
	if f.RotateEvery < 2*f.PublishBefore {
		problems = append(problems, fmt.Errorf("--signing-rotate-every: %s is less than twice --signing-publish-before", f.RotateEvery))
	}
	return errors.Join(problems...)
}

// Patches bound evaluations, for the server and offline.
type Patches struct {
	ExpressionTime time.Duration `name:"patch-expression-time" env:"PLATFORM_PATCH_EXPRESSION_TIME" default:"100ms" help:"The time for one expression of a sync patch, from a millisecond to 25 seconds, as the next (${default})."`
	ObjectTime     time.Duration `name:"patch-object-time" env:"PLATFORM_PATCH_OBJECT_TIME" default:"1s" help:"The time for all sync patches of an object (${default})."`
	Memory         Quantity      `name:"patch-memory" env:"PLATFORM_PATCH_MEMORY" default:"64Mi" help:"What an evaluation may use, from 16Mi to 1Gi (${default})."`
	Result         Quantity      `name:"patch-result" env:"PLATFORM_PATCH_RESULT" default:"1Mi" help:"The result of an expression, from 1Ki to 16Mi (${default})."`
	Depth          int           `name:"patch-depth" env:"PLATFORM_PATCH_DEPTH" default:"200" help:"How deep calls and results may be nested, from 10 to 1000 (${default})."`
	Workers        int           `name:"patch-workers" env:"PLATFORM_PATCH_WORKERS" placeholder:"N" help:"How many evaluations run at a time, from 1 to 64 (one per CPU)."`
	InProcess      bool          `name:"patch-in-process" env:"PLATFORM_PATCH_IN_PROCESS" help:"Evaluate without workers, for trusted patches."`
}

// Quantity is a number of bytes, such as 64Mi.
type Quantity int64

// UnmarshalText reads it.
func (q *Quantity) UnmarshalText(text []byte) error {
	parsed, err := resource.ParseQuantity(string(text))
	if err != nil || parsed.Value() <= 0 {
		return errors.New("must be a quantity above zero, such as 64Mi")
	}
	*q = Quantity(parsed.Value())
	return nil
}

// Check returns what is wrong with the flags, all at once.
func (f *Patches) Check() error {
	var problems []error
	within := func(flag string, ok bool, least, most any) {
		if !ok {
			problems = append(problems, fmt.Errorf("--%s: must be from %v to %v", flag, least, most))
		}
	}
	times := func(flag string, value time.Duration) {
		within(flag, value >= leastPatchTime && value <= mostPatchTime, leastPatchTime, mostPatchTime)
	}
	bytes := func(flag string, value Quantity, least, most int64) {
		within(flag, int64(value) >= least && int64(value) <= most,
			resource.NewQuantity(least, resource.BinarySI), resource.NewQuantity(most, resource.BinarySI))
	}
	times("patch-expression-time", f.ExpressionTime)
	times("patch-object-time", f.ObjectTime)
	bytes("patch-memory", f.Memory, leastPatchMemory, mostPatchMemory)
	bytes("patch-result", f.Result, leastPatchResult, mostPatchResult)
	within("patch-depth", f.Depth >= leastPatchDepth && f.Depth <= mostPatchDepth, leastPatchDepth, mostPatchDepth)
	within("patch-workers", f.Workers >= 0 && f.Workers <= mostPatchWorkers, 1, mostPatchWorkers)
	return errors.Join(problems...)
}

// Settings are those that the flags say.
func (f *Patches) Settings() settings.Patches {
	return settings.Patches{
		ExpressionTime: f.ExpressionTime, ObjectTime: f.ObjectTime, MemoryBytes: int64(f.Memory), ResultBytes: int64(f.Result),
		Depth: f.Depth, Workers: f.Workers, InProcess: f.InProcess,
	}
}
