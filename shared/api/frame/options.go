package frame

import (
	"fmt"
	"net/url"
	"strconv"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

// maxFieldManager is the longest name of a field manager, as in Kubernetes.
const maxFieldManager = 128

// writeOptions are the query parameters of create, update and patch.
type writeOptions struct {
	dryRun     bool
	validation codec.Strictness
	// manager is who owns the fields that are written.
	manager string
}

// readWriteOptions reads the parameters that all writes share. Kind names them in an error.
func readWriteOptions(c *call, kind string, more ...*field.Error) (writeOptions, error) {
	var options writeOptions
	query := c.query
	var problems field.ErrorList
	options.dryRun, problems = readDryRun(query["dryRun"])
	options.validation = codec.Strictness(query.Get("fieldValidation"))
	switch options.validation {
	case codec.Ignore, codec.Warn, codec.Strict:
	case "":
		options.validation = codec.Warn
	default:
		problems = append(problems, field.NotSupported(field.NewPath("fieldValidation"), options.validation,
			[]codec.Strictness{codec.Ignore, codec.Warn, codec.Strict}))
	}
	path := field.NewPath("fieldManager")
	manager := query.Get("fieldManager")
	if len(manager) > maxFieldManager {
		problems = append(problems, field.TooLong(path, field.OmitValueType{}, maxFieldManager))
	}
	for _, c := range manager {
		if !unicode.IsPrint(c) {
			problems = append(problems, field.Invalid(path, manager, "must only contain printable characters"))
			break
		}
	}
	options.manager = managerOf(manager, c.http.UserAgent())
	return options, invalidOptions(kind, append(more, problems...))
}

func readDryRun(values []string) (bool, field.ErrorList) {
	for _, value := range values {
		if value != metav1.DryRunAll {
			return false, field.ErrorList{field.NotSupported(field.NewPath("dryRun"), value, []string{metav1.DryRunAll})}
		}
	}
	return len(values) > 0, nil
}

func invalidOptions(kind string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierror.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
}

// listNumber reads a parameter of a list or watch that is a number. 0: it is not given.
func listNumber(query url.Values, name string) (int64, error) {
	if !query.Has(name) {
		return 0, nil
	}
	text := query.Get(name)
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, unreadable(name, text, "must be a number that is not negative")
	}
	return number, nil
}

// readSelectors reads the selectors of a list or watch.
func readSelectors(query url.Values) (labels.Selector, fields.Selector, error) {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, nil, apierror.BadRequest("labelSelector: "+err.Error(), field.ErrorList{
			field.Invalid(field.NewPath("labelSelector"), query.Get("labelSelector"), err.Error())})
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, nil, apierror.BadRequest("fieldSelector: "+err.Error(), field.ErrorList{
			field.Invalid(field.NewPath("fieldSelector"), query.Get("fieldSelector"), err.Error())})
	}
	return byLabel, byField, nil
}

// readListOptions reads the query parameters of a list.
func readListOptions(query url.Values, in *resource.ListInput) error {
	var err error
	if in.Labels, in.Fields, err = readSelectors(query); err != nil {
		return err
	}
	if in.Limit, err = listNumber(query, "limit"); err != nil {
		return err
	}
	// A list takes as long as it takes; what cannot be read is a mistake all the same.
	if _, err = listNumber(query, "timeoutSeconds"); err != nil {
		return err
	}
	in.Continue = query.Get("continue")
	in.ResourceVersion = query.Get("resourceVersion")
	var problems field.ErrorList
	path := field.NewPath("resourceVersionMatch")
	switch match := metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")); match {
	case "":
	case metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan:
		in.Exact = match == metav1.ResourceVersionMatchExact
		if in.Continue != "" {
			problems = append(problems, field.Forbidden(path, "is forbidden when continue is given"))
		}
		switch {
		case in.ResourceVersion == "":
			problems = append(problems, field.Forbidden(path, "is forbidden unless resourceVersion is given"))
		case in.Exact && in.ResourceVersion == "0":
			problems = append(problems, field.Forbidden(path, `"Exact" is forbidden for resourceVersion "0"`))
		}
	default:
		problems = append(problems, field.NotSupported(path, match,
			[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan}))
	}
	if in.Continue != "" && in.ResourceVersion != "" && in.ResourceVersion != "0" {
		forbidden := field.Forbidden(field.NewPath("resourceVersion"), "is forbidden when continue is given")
		if len(problems) == 0 {
			return apierror.BadRequest("resourceVersion is not allowed together with continue", field.ErrorList{forbidden})
		}
		problems = append(problems, forbidden)
	}
	if query.Has("sendInitialEvents") {
		problems = append(problems, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	}
	return invalidOptions("ListOptions", problems)
}

// checkVersion refuses a resourceVersion that is no number. An object is always read as it is now, which is not
// older than any version that there was.
func checkVersion(text string) error {
	if text == "" {
		return nil
	}
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return apierror.BadRequest(fmt.Sprintf("resourceVersion: invalid value %q: must be a decimal number", text),
			field.ErrorList{field.Invalid(field.NewPath("resourceVersion"), text, "must be a decimal number")})
	}
	return nil
}
