package main

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// addProblem adds what the API says about a request. Causes that name a field are shown at the argument of that field. missing is the argument
// that names an object which does not exist; empty: the request names none.
func addProblem(ctx context.Context, problems *diag.Diagnostics, summary string, err error, config tfsdk.Config, missing string) {
	refusal := (*apiError)(nil)
	if !errors.As(err, &refusal) {
		problems.AddError(summary, err.Error())
		return
	}
	if refusal.Reason != "" {
		summary += ": " + refusal.Reason
	}
	shown := false
	for _, c := range refusal.Details.Causes {
		argument, ok := argumentOf(c.Field)
		if !ok {
			continue
		}
		if _, unknown := config.Schema.AttributeAtPath(ctx, argument); unknown.HasError() {
			continue
		}
		problems.AddAttributeError(argument, summary, c.Field+": "+c.Message)
		shown = true
	}
	switch {
	case shown:
	case refusal.Code == http.StatusNotFound && missing != "":
		problems.AddAttributeError(path.Root(missing), summary, refusal.Message)
	default:
		problems.AddError(summary, refusal.Message)
	}
}

// addWarnings adds the warnings of the API.
func addWarnings(problems *diag.Diagnostics, summary string, warnings []string) {
	for _, text := range warnings {
		problems.AddWarning(summary, text)
	}
}

var (
	fieldStep = regexp.MustCompile(`^([A-Za-z]+)((?:\[\d+\])*)$`)
	fieldWord = regexp.MustCompile(`([a-z])([A-Z])`)
)

// argumentOf returns the argument for the field of an object: spec.scope.virtualClusters[0].project is scope.virtual_clusters[0].project. It
// reports whether the field can be an argument.
func argumentOf(fieldPath string) (path.Path, bool) {
	_, rest, ok := strings.Cut(fieldPath, ".") // metadata or spec
	if !ok {
		return path.Empty(), false
	}
	argument := path.Empty()
	for step := range strings.SplitSeq(rest, ".") {
		parts := fieldStep.FindStringSubmatch(step)
		if parts == nil {
			return path.Empty(), false
		}
		argument = argument.AtName(strings.ToLower(fieldWord.ReplaceAllString(parts[1], "${1}_$2")))
		for index := range strings.SplitSeq(strings.Trim(parts[2], "[]"), "][") {
			if number, err := strconv.Atoi(index); err == nil {
				argument = argument.AtListIndex(number)
			}
		}
	}
	return argument, true
}
