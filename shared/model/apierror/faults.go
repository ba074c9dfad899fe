package apierror

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/limits"
)

// Faults collects the faults of a request. It keeps the first limits.Faults faults and counts the others, so that a request
// with many faults costs no more than a request with many values. The zero value is ready to use.
type Faults struct {
	first field.ErrorList
	more  int
}

// Add adds a fault. It calls fault only if the list is not full.
func (f *Faults) Add(fault func() *field.Error) {
	if len(f.first) == limits.Faults {
		f.more++
		return
	}
	f.first = append(f.first, fault())
}

// List returns the faults as a list for an Error. If there are more faults than entries, the last entry counts the others.
func (f *Faults) List() field.ErrorList {
	if f.more == 0 {
		return f.first
	}
	return append(f.first, &field.Error{Type: uncounted, BadValue: f.more, Detail: othersText(f.more)})
}

// uncounted is the type of the entry that counts the faults that a list does not name.
const uncounted = field.ErrorTypeTooMany

func othersText(count int) string { return fmt.Sprintf("and %d more", count) }

// splitFaults returns the faults of a list that an answer names, and the number of the others.
func splitFaults(problems field.ErrorList) (first field.ErrorList, more int) {
	first = problems
	if last := len(problems) - 1; last >= 0 && problems[last].Field == "" && problems[last].Type == uncounted {
		if count, counts := problems[last].BadValue.(int); counts {
			first, more = problems[:last], count
		}
	}
	if len(first) > limits.Faults {
		more += len(first) - limits.Faults
		first = first[:limits.Faults]
	}
	return first, more
}

// Summary returns the text of faults for a message: the text of field.ErrorList.ToAggregate, in linear time. It names at
// most limits.Faults faults, each in at most limits.FaultBytes and all in at most limits.MessageBytes, and ends with the
// number of the others.
func Summary(problems field.ErrorList) string {
	first, more := splitFaults(problems)
	seen := map[string]bool{}
	var text strings.Builder
	for i, problem := range first {
		fault := shorten(problem.Field, limits.FaultBytes) + ": " + body(problem)
		if seen[fault] {
			continue
		}
		if text.Len()+len(fault) > limits.MessageBytes-limits.FaultBytes {
			more += len(first) - i
			break
		}
		seen[fault] = true
		if text.Len() > 0 {
			text.WriteString(", ")
		}
		text.WriteString(fault)
	}
	if more > 0 {
		text.WriteString(", " + othersText(more))
	} else if len(seen) < 2 {
		return text.String()
	}
	return "[" + text.String() + "]"
}

// causes returns the faults of a list as the causes of a Status. If there are more faults than causes, the last cause
// counts the others.
func causes(problems field.ErrorList) []metav1.StatusCause {
	first, more := splitFaults(problems)
	list := make([]metav1.StatusCause, 0, len(first)+1)
	for _, problem := range first {
		list = append(list, metav1.StatusCause{
			Type:    metav1.CauseType(problem.Type),
			Field:   shorten(problem.Field, limits.FaultBytes),
			Message: body(problem),
		})
	}
	if more > 0 {
		list = append(list, metav1.StatusCause{Type: metav1.CauseType(uncounted), Message: othersText(more)})
	}
	return list
}

// body returns the text of a fault without the path of its field. The value is shortened before it is quoted.
func body(problem *field.Error) string {
	if value, isText := problem.BadValue.(string); isText && len(value) > limits.FaultBytes/2 {
		shown := *problem
		shown.BadValue = shorten(value, limits.FaultBytes/2)
		problem = &shown
	}
	return shorten(problem.ErrorBody(), limits.FaultBytes)
}

// shortenStatus shortens the texts of a status, and names no more causes than limits.Faults.
func shortenStatus(status metav1.Status) metav1.Status {
	status.Message = shorten(status.Message, limits.MessageBytes)
	if status.Details == nil {
		return status
	}
	details := *status.Details
	details.Name = shorten(details.Name, limits.FaultBytes)
	if extra := len(details.Causes) - limits.Faults; extra > 0 {
		details.Causes = append(details.Causes[:limits.Faults:limits.Faults],
			metav1.StatusCause{Type: metav1.CauseType(uncounted), Message: othersText(extra)})
	}
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Field, cause.Message = shorten(cause.Field, limits.FaultBytes), shorten(cause.Message, limits.FaultBytes)
	}
	status.Details = &details
	return status
}

// shorten truncates a text to a number of bytes, at the boundary of a character.
func shorten(text string, most int) string {
	const mark = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}
