package main

import (
	"encoding/json"
	"fmt"

	"management.platform.sh/shared/api/frame"
)

// routes returns the methods of each path that functions serve, for the function that answers requests without a route.
func routes(functions []*frame.Function) ([]byte, error) {
	found := map[string][]string{}
	for _, f := range functions {
		for _, endpoint := range f.Endpoints {
			found[endpoint.Path] = with(found[endpoint.Path], endpoint.Method)
		}
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the routes: %w", err)
	}
	return append(text, '\n'), nil
}
