package main

import (
	"encoding/json"
	"fmt"

	"management.platform.sh/shared/api/frame"
)

// routes returns the methods of each path that functions serve, for the function that answers requests without a route.
func routes(functions []*frame.Function) ([]byte, error) {
	methods := map[string][]string{}
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			methods[endpoint.Path] = insertSorted(methods[endpoint.Path], endpoint.Method)
		}
	}
	text, err := json.MarshalIndent(methods, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the routes: %w", err)
	}
	return append(text, '\n'), nil
}
