package apierror_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

func faults(count int, value string) field.ErrorList {
	var list field.ErrorList
	for i := range count {
		list = append(list, field.Invalid(field.NewPath("spec", "groups").Index(i), value, "is wrong"))
	}
	return list
}

// An answer names the first faults and counts the others, in the message and in the causes, whether a list or Faults
// collected them. Source: ADR-0020.
func TestFaults(t *testing.T) {
	for _, row := range []struct{ count, more int }{
		{1, 0}, {2, 0}, {limits.Faults - 1, 0}, {limits.Faults, 0}, {limits.Faults + 1, 1}, {10_000, 10_000 - limits.Faults},
	} {
		var collected apierror.Faults
		all := faults(row.count, "x")
		for _, fault := range all {
			collected.Add(func() *field.Error { return fault })
		}
		for about, err := range map[string]*apierror.Error{
			"Invalid":                 apierror.Invalid(kind, "ci", all),
			"Invalid, collected":      apierror.Invalid(kind, "ci", collected.List()),
			"BadRequest":              apierror.BadRequest(apierror.Summary(all), all),
			"BadRequest, collected":   apierror.BadRequest(apierror.Summary(collected.List()), collected.List()),
			"Forbidden":               apierror.Forbidden(keys, "ci", apierror.Summary(all), all),
			"Forbidden, collected":    apierror.Forbidden(keys, "ci", apierror.Summary(collected.List()), collected.List()),
			"Invalid, collected more": apierror.Invalid(kind, "ci", append(faults(0, ""), collected.List()...)),
		} {
			status := err.Status()
			expected := min(row.count, limits.Faults)
			if got := strings.Count(status.Message, "spec.groups["); got != expected {
				t.Errorf("%s of %d: the message names %d", about, row.count, got)
			}
			causes := status.Details.Causes
			last := fmt.Sprintf("and %d more", row.more)
			if row.more == 0 {
				if len(causes) != expected || strings.Contains(status.Message, " more]") {
					t.Errorf("%s of %d: %d causes: %s", about, row.count, len(causes), status.Message)
				}
			} else if len(causes) != expected+1 || causes[expected].Message != last || !strings.HasSuffix(status.Message, last+"]") {
				t.Errorf("%s of %d: %d causes, the last is %+v: %s", about, row.count, len(causes), causes[len(causes)-1], status.Message)
			}
		}
	}
}

// The text of faults is the same as in Kubernetes.
func TestSummary(t *testing.T) {
	for _, list := range []field.ErrorList{
		problems[:1], problems, append(problems[:1:1], problems[0]), append(problems[:2:2], problems[0]),
	} {
		if got, want := apierror.Summary(list), list.ToAggregate().Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := apierror.Summary(nil); got != "" {
		t.Errorf("nothing is %q", got)
	}
}

// No text of an answer is longer than its limit, and none ends within a character.
func TestTexts(t *testing.T) {
	long := strings.Repeat("ä", limits.BodyBytes/2)
	path := strings.Repeat("ö", limits.FaultBytes)
	wide := field.ErrorList{field.Invalid(field.NewPath(path), long, long)}
	for about, err := range map[string]*apierror.Error{
		"Invalid":       apierror.Invalid(kind, long, append(faults(limits.Faults, long), wide...)),
		"BadRequest":    apierror.BadRequest(long, wide),
		"Forbidden":     apierror.Forbidden(keys, long, long, wide),
		"NotFound":      apierror.NotFound(keys, long),
		"TooLargeField": apierror.TooLargeField(path, long),
		"MediaType":     apierror.UnsupportedMediaType(long, "x"),
		"Method":        apierror.MethodNotAllowed(long),
		"Broken":        apierror.Broken(long),
	} {
		status := err.Status()
		if len(status.Message) > limits.MessageBytes || len(status.Message) < limits.FaultBytes || !utf8.ValidString(status.Message) {
			t.Errorf("%s: a message of %d bytes", about, len(status.Message))
		}
		if status.Details == nil {
			continue
		}
		if name := status.Details.Name; len(name) > limits.FaultBytes || !utf8.ValidString(name) {
			t.Errorf("%s: a name of %d bytes", about, len(name))
		}
		for _, cause := range status.Details.Causes {
			if len(cause.Field) > limits.FaultBytes || len(cause.Message) > limits.FaultBytes || !utf8.ValidString(cause.Field+cause.Message) {
				t.Errorf("%s: a cause of %d and %d bytes", about, len(cause.Field), len(cause.Message))
			}
		}
	}
}
