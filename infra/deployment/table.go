package main

import (
	"fmt"
	"regexp"
	"slices"

	"management.platform.sh/shared/api/frame"
)

// fallback is the function that answers what no route takes, so that clients get the Status that they understand
// and not the words of a gateway.
const fallback = "discoverapi"

// Limits of a function on AWS; docs/deploy.md says why.
const (
	// gatewaySeconds is below the 30 seconds after which an HTTP API gives up.
	gatewaySeconds = 29
	// scheduledSeconds is above the longest run of a schedule, frame.MaxDuration, so that the run itself ends first.
	scheduledSeconds = 75
	// memoryMB decides on the share of a processor as well: about a third of one.
	memoryMB = 512
	// everyMinutes is how often schedules run: as often as EventBridge can.
	everyMinutes = 1
)

// entry is what a deployment needs to know of a function.
type entry struct {
	// Routes are methods with paths from the root of the host, in the form of an API Gateway: "GET /a/{b}".
	Routes []string `json:"routes"`
	// Fallback tells whether the function takes what no route does.
	Fallback bool `json:"fallback"`
	// Stream tells whether answers may last for minutes: the function has a watch. Where a function is invoked either
	// buffered or streaming, as on AWS, it is deployed a second time for that.
	Stream bool `json:"stream"`
	// Encrypts tells whether the function is given the encryption key.
	Encrypts bool `json:"encrypts"`
	// ScheduleMinutes is how often the function runs by the clock. 0: never.
	ScheduleMinutes int `json:"scheduleMinutes"`
	// TimeoutSeconds is the limit on AWS, for buffered answers.
	TimeoutSeconds int `json:"timeoutSeconds"`
	// MemoryMB is the limit of its memory.
	MemoryMB int `json:"memoryMB"`
}

var (
	rest    = regexp.MustCompile(`\{(\w+)\.\.\.\}$`)
	pattern = regexp.MustCompile(`^(/([\w.][\w.-]*|\{\w+\}))*(/\{\w+\+\})?$`)
	name    = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// table is the entry of each function by its name. Errors: a name or path that no gateway can take, or a function
// that nothing starts.
func table(functions []*frame.Function) (map[string]entry, error) {
	entries := map[string]entry{}
	for _, f := range functions {
		if !name.MatchString(f.Name) {
			return nil, fmt.Errorf("function %q: want a name of small letters and digits", f.Name)
		}
		one := entry{Routes: []string{}, Fallback: f.Name == fallback, Encrypts: f.Encrypts, TimeoutSeconds: gatewaySeconds, MemoryMB: memoryMB}
		for _, endpoint := range f.Endpoints {
			for _, path := range endpoint.Paths() {
				path = rest.ReplaceAllString(path, "{$1+}")
				if !pattern.MatchString(path) {
					return nil, fmt.Errorf("function %s: a gateway has no pattern for the path %q", f.Name, endpoint.Path)
				}
				if route := endpoint.Method + " " + path; !slices.Contains(one.Routes, route) {
					one.Routes = append(one.Routes, route)
				}
			}
			if endpoint.Verb == "watch" {
				one.Stream = true
			}
		}
		one.MemoryMB = max(one.MemoryMB, f.MemoryMB)
		if f.Schedule != nil {
			one.ScheduleMinutes, one.TimeoutSeconds = everyMinutes, max(one.TimeoutSeconds, scheduledSeconds)
		}
		if len(one.Routes) == 0 && f.Schedule == nil {
			return nil, fmt.Errorf("function %s has neither a route nor a schedule", f.Name)
		}
		entries[f.Name] = one
	}
	if _, known := entries[fallback]; !known {
		return nil, fmt.Errorf("there is no function %s to answer what no route takes", fallback)
	}
	return entries, nil
}
