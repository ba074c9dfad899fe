package environment

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"management.platform.sh/shared/function"
)

// readEdition collects which edition of the platform this is.
func readEdition(text func(string) string, wrong func(name, why string)) string {
	name := text(edition)
	if name != function.Enterprise && name != function.Community {
		wrong(edition, "must be "+function.Enterprise+" or "+function.Community)
	}
	return name
}

// readPatches collects the settings of sync patches.
func readPatches(text func(string) string, wrong func(name, why string)) function.PatchSettings {
	duration := func(name string) time.Duration {
		value, err := time.ParseDuration(text(name))
		if err != nil || value < function.LeastPatchTime || value > function.MostPatchTime {
			wrong(name, fmt.Sprintf("must be a duration from %s to %s", function.LeastPatchTime, function.MostPatchTime))
		}
		return value
	}
	bytes := func(name string, least, most int64) int64 {
		value, err := resource.ParseQuantity(text(name))
		if err != nil || value.Value() < least || value.Value() > most {
			wrong(name, fmt.Sprintf("must be a quantity from %s to %s",
				resource.NewQuantity(least, resource.BinarySI), resource.NewQuantity(most, resource.BinarySI)))
		}
		return value.Value()
	}
	number := func(name string, least, most int) int {
		value, err := strconv.Atoi(text(name))
		if err != nil || value < least || value > most {
			wrong(name, fmt.Sprintf("must be a number from %d to %d", least, most))
		}
		return value
	}
	s := function.PatchSettings{
		ExpressionTime: duration(patchExpressionTime),
		ObjectTime:     duration(patchObjectTime),
		MemoryBytes:    bytes(patchMemory, function.LeastPatchMemory, function.MostPatchMemory),
		ResultBytes:    bytes(patchResult, function.LeastPatchResult, function.MostPatchResult),
		Depth:          number(patchDepth, function.LeastPatchDepth, function.MostPatchDepth),
		Workers:        number(patchWorkers, 1, function.MostPatchWorkers),
	}
	var err error
	if s.InProcess, err = strconv.ParseBool(text(patchInProcess)); err != nil {
		wrong(patchInProcess, "must be true or false")
	}
	return s
}
