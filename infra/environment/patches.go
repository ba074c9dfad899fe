package environment

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"management.platform.sh/shared/api/frame"
)

// readEdition collects which edition of the platform this is.
func readEdition(text func(string) string, wrong func(name, why string)) string {
	name := text(edition)
	if name != frame.Enterprise && name != frame.Community {
		wrong(edition, "must be "+frame.Enterprise+" or "+frame.Community)
	}
	return name
}

// readPatches collects the settings of sync patches.
func readPatches(text func(string) string, wrong func(name, why string)) frame.PatchSettings {
	duration := func(name string) time.Duration {
		value, err := time.ParseDuration(text(name))
		if err != nil || value < frame.LeastPatchTime || value > frame.MostPatchTime {
			wrong(name, fmt.Sprintf("must be a duration from %s to %s", frame.LeastPatchTime, frame.MostPatchTime))
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
	s := frame.PatchSettings{
		ExpressionTime: duration(patchExpressionTime),
		ObjectTime:     duration(patchObjectTime),
		MemoryBytes:    bytes(patchMemory, frame.LeastPatchMemory, frame.MostPatchMemory),
		ResultBytes:    bytes(patchResult, frame.LeastPatchResult, frame.MostPatchResult),
		Depth:          number(patchDepth, frame.LeastPatchDepth, frame.MostPatchDepth),
		Workers:        number(patchWorkers, 1, frame.MostPatchWorkers),
	}
	var err error
	if s.InProcess, err = strconv.ParseBool(text(patchInProcess)); err != nil {
		wrong(patchInProcess, "must be true or false")
	}
	return s
}
