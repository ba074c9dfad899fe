package function

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

	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/codec"
	"management.platform.sh/shared/resource"
)

// maxFieldManager is the longest name of a field manager, as in Kubernetes.
const maxFieldManager = 128

// writeOptions are the query parameters of create, update and patch.
type writeOptions struct {
	dryRun     bool
	validation codec.Strictness
}

// readWriteOptions reads the parameters that all writes share. Kind names them in an error.
func readWriteOptions(query url.Values, kind string) (writeOptions, error) {
	var options writeOptions
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
	return options, invalidOptions(kind, problems)
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
	if text := query.Get("limit"); text != "" {
		if in.Limit, err = strconv.ParseInt(text, 10, 64); err != nil || in.Limit < 0 {
			return apierror.BadRequest(fmt.Sprintf("limit: invalid value %q: must be a number that is not negative", text),
				field.ErrorList{field.Invalid(field.NewPath("limit"), text, "must be a number that is not negative")})
		}
	}
	in.Continue = query.Get("continue")
	in.ResourceVersion = query.Get("resourceVersion")
	var problems field.ErrorList
	path := field.NewPath("resourceVersionMatch")
	switch match := metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")); match {
	case "":
	case metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan:
		in.Exact = match == metav1.ResourceVersionMatchExact
		switch {
		case in.ResourceVersion == "":
			problems = append(problems, field.Forbidden(path, "is forbidden unless resourceVersion is given"))
		case in.Continue != "":
			problems = append(problems, field.Forbidden(path, "is forbidden when continue is given"))
		case in.Exact && in.ResourceVersion == "0":
			problems = append(problems, field.Forbidden(path, `"Exact" is forbidden for resourceVersion "0"`))
		}
	default:
		problems = append(problems, field.NotSupported(path, match,
			[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan}))
	}
	if in.Continue != "" && in.ResourceVersion != "" && in.ResourceVersion != "0" {
		problems = append(problems, field.Forbidden(field.NewPath("resourceVersion"), "is forbidden when continue is given"))
	}
	if query.Has("sendInitialEvents") {
		problems = append(problems, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	}
	return invalidOptions("ListOptions", problems)
}

// readDeleteOptions reads the body and query of a delete. The query wins where both speak.
func readDeleteOptions(c *call) (resource.DeleteInput, error) {
	in := resource.DeleteInput{Caller: c.caller, Namespace: c.namespace, Name: c.name}
	data, err := c.body()
	if err != nil {
		return in, err
	}
	var options metav1.DeleteOptions
	if len(data) > 0 {
		body, err := codec.Read(c.http.Header.Get("Content-Type"), data)
		if err != nil {
			return in, err
		}
		if _, err := codec.Decode(body, &options, codec.Ignore); err != nil {
			return in, err
		}
	}
	dryRun := options.DryRun
	if given, ok := c.query["dryRun"]; ok {
		dryRun = given
	}
	var problems field.ErrorList
	if in.DryRun, problems = readDryRun(dryRun); len(problems) > 0 {
		return in, invalidOptions("DeleteOptions", problems)
	}
	if options.Preconditions != nil {
		if options.Preconditions.UID != nil {
			in.UID = *options.Preconditions.UID
		}
		if options.Preconditions.ResourceVersion != nil {
			in.ResourceVersion = *options.Preconditions.ResourceVersion
		}
	}
	return in, nil
}
