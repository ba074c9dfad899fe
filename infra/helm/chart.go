// Package helm holds the chart that runs the platform as a Deployment. Source: ADR-0053.
package helm

import (
	"embed"
	"io/fs"
)

// The pattern all: includes the files of templates whose names begin with an underscore.
//
//go:embed all:platform
var files embed.FS

// Chart returns the files of the chart.
func Chart() fs.FS {
	chart, err := fs.Sub(files, "platform")
	if err != nil {
		panic(err) // the name is a constant
	}
	return chart
}
