package main

import (
	"context"
	"errors"
	"net/http"
	"regexp"
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
	// fieldName matches the first field below metadata or spec.
	fieldName = regexp.MustCompile(`^(?:metadata|spec)\.([A-Za-z]+)`)
	fieldWord = regexp.MustCompile(`([a-z])([A-Z])`)
)

// argumentOf returns the argument for the field of an object: spec.certificateTTL is certificate_ttl. A field within an argument is the whole
// argument, because Terraform finds the line of nothing below it. It reports whether the field can be an argument.
func argumentOf(field string) (path.Path, bool) {
	parts := fieldName.FindStringSubmatch(field)
	if parts == nil {
		return path.Empty(), false
	}
	return path.Root(strings.ToLower(fieldWord.ReplaceAllString(parts[1], "${1}_$2"))), true
}
