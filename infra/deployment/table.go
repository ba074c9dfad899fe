package main

import (
	"fmt"
	"regexp"
	"slices"

	"management.platform.sh/shared/api/frame"
)

// fallback is the function that answers requests without a route, so that clients get a Status, which they understand,
// and not the text of a gateway.
const fallback = "discoverapi"

// Limits of a function on AWS; docs/deploy.md says why.
const (
	// gatewaySeconds is less than the 30 seconds after which an HTTP API gives up.
	gatewaySeconds = 29
	// scheduledSeconds is more than the longest run of a schedule, frame.MaxDuration, so that the run itself ends first.
	scheduledSeconds = 75
	// memoryMB also sets the share of a processor: about a third of one.
	memoryMB = 512
	// everyMinutes is how often schedules run: as often as EventBridge can.
	everyMinutes = 1
)

// entry is the description of a function for deployments.
type entry struct {
	// Routes are methods with paths from the root of the host, in the form of an API Gateway: "GET /a/{b}".
	Routes []string `json:"routes"`
	// Fallback reports whether the function takes requests without a route.
	Fallback bool `json:"fallback"`
	// Stream reports whether responses may last for minutes, because the function has a watch. On platforms that invoke
	// a function either buffered or streaming, such as AWS, the function is deployed a second time for streaming.
	Stream bool `json:"stream"`
	// Encrypts reports whether the function gets the encryption key.
	Encrypts bool `json:"encrypts"`
	// ScheduleMinutes is the interval at which the function runs on a schedule. 0: it has no schedule.
	ScheduleMinutes int `json:"scheduleMinutes"`
	// TimeoutSeconds is the timeout on AWS, for buffered responses.
	TimeoutSeconds int `json:"timeoutSeconds"`
	MemoryMB       int `json:"memoryMB"`
}

var (
	rest    = regexp.MustCompile(`\{(\w+)\.\.\.\}$`)
	pattern = regexp.MustCompile(`^(/([\w.][\w.-]*|\{\w+\}))*(/\{\w+\+\})?$`)
	name    = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// table returns the entry of each function by its name. It returns an error for a name or path that a gateway cannot
// take, and for a function without a route and a schedule.
func table(functions []*frame.Function) (map[string]entry, error) {
	entries := map[string]entry{}
	for _, f := range functions {
		if !name.MatchString(f.Name) {
			return nil, fmt.Errorf("function %q: the name must consist of small letters and digits", f.Name)
		}
		row := entry{Routes: []string{}, Fallback: f.Name == fallback, Encrypts: f.Encrypts, TimeoutSeconds: gatewaySeconds, MemoryMB: memoryMB}
		for _, endpoint := range f.Endpoints {
			for _, path := range endpoint.Paths() {
				path = rest.ReplaceAllString(path, "{$1+}")
				if !pattern.MatchString(path) {
					return nil, fmt.Errorf("function %s: the path %q cannot be a route of a gateway", f.Name, endpoint.Path)
				}
				if route := endpoint.Method + " " + path; !slices.Contains(row.Routes, route) {
					row.Routes = append(row.Routes, route)
				}
			}
			if endpoint.Verb == "watch" {
				row.Stream = true
			}
		}
		row.MemoryMB = max(row.MemoryMB, f.MemoryMB)
		if f.Schedule != nil {
			row.ScheduleMinutes, row.TimeoutSeconds = everyMinutes, max(row.TimeoutSeconds, scheduledSeconds)
		}
		if len(row.Routes) == 0 && f.Schedule == nil {
			return nil, fmt.Errorf("function %s has neither a route nor a schedule", f.Name)
		}
		entries[f.Name] = row
	}
	if _, known := entries[fallback]; !known {
		return nil, fmt.Errorf("there is no function %s to answer requests without a route", fallback)
	}
	return entries, nil
}
