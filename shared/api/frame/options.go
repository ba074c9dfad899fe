package frame

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// writeOptions are the query parameters of create, update and patch.
type writeOptions struct {
	dryRun     bool
	validation codec.Strictness
	// manager is the owner of the written fields.
	manager string
}

// readWriteOptions reads the query parameters of a create or an update, which are the same. Errors name the options by kind.
func readWriteOptions(c *call, kind string) (writeOptions, error) {
	given := givenOptions(c.query)
	return usedOptions(c, given), invalidOptions(kind, metav1validation.ValidateCreateOptions(&given))
}

// givenOptions returns the query parameters that all writes share, without validation or defaults.
func givenOptions(query url.Values) metav1.CreateOptions {
	manager := query.Get("fieldManager")
	// The validation reports each character that cannot be printed, and quotes the whole name each time. A name that
	// is too long is therefore truncated, so that the response stays small.
	manager = manager[:min(len(manager), metav1validation.FieldManagerMaxLength+1)]
	return metav1.CreateOptions{DryRun: query["dryRun"], FieldManager: manager, FieldValidation: query.Get("fieldValidation")}
}

// usedOptions returns valid options with their defaults.
func usedOptions(c *call, given metav1.CreateOptions) writeOptions {
	return writeOptions{
		dryRun:     len(given.DryRun) > 0,
		validation: cmp.Or(codec.Strictness(given.FieldValidation), codec.Warn),
		manager:    managerOf(given.FieldManager, c.http.UserAgent()),
	}
}

func invalidOptions(kind string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return apierror.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
}

// listNumber reads a numeric parameter of a list or watch. 0: the parameter is absent.
func listNumber(query url.Values, name string) (int64, error) {
	if !query.Has(name) {
		return 0, nil
	}
	text := query.Get(name)
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, unreadable(name, text, "must be a whole number, not negative")
	}
	return number, nil
}

// checkSelector refuses a selector with too many terms, before it is parsed: the parser takes quadratic time to report
// invalid values.
func checkSelector(query url.Values, name string) error {
	terms := strings.Count(query.Get(name), ",") + 1
	if terms <= limits.SelectorTerms {
		return nil
	}
	why := fmt.Sprintf("has %d terms; the limit is %d", terms, limits.SelectorTerms)
	return apierror.BadRequest(name+": "+why, field.ErrorList{field.Invalid(field.NewPath(name), field.OmitValueType{}, why)})
}

// readSelectors reads the selectors of a list or watch.
func readSelectors(query url.Values) (labels.Selector, fields.Selector, error) {
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if err := checkSelector(query, name); err != nil {
			return nil, nil, err
		}
	}
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
	// A list ignores timeoutSeconds, but a value that is not a number is an error.
	if _, err = listNumber(query, "timeoutSeconds"); err != nil {
		return err
	}
	given := givenListOptions(query)
	in.Continue, in.ResourceVersion = given.Continue, given.ResourceVersion
	in.Exact = given.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	problems := internalvalidation.ValidateListOptions(&given, true)
	// Kubernetes leaves this rule to its storage, which responds with 400.
	if in.Continue != "" && in.ResourceVersion != "" && in.ResourceVersion != "0" {
		forbidden := field.Forbidden(field.NewPath("resourceVersion"), "resourceVersion is forbidden when continue is provided")
		if len(problems) == 0 {
			return apierror.BadRequest("resourceVersion is not allowed together with continue", field.ErrorList{forbidden})
		}
		problems = append(problems, forbidden)
	}
	return invalidOptions("ListOptions", problems)
}

// givenListOptions returns the query parameters of a list or watch that are validated together.
func givenListOptions(query url.Values) internalversion.ListOptions {
	listOptions := internalversion.ListOptions{
		ResourceVersion:      query.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")),
		Continue:             query.Get("continue"),
	}
	if query.Has("sendInitialEvents") {
		listOptions.SendInitialEvents = new(flag(query, "sendInitialEvents"))
	}
	return listOptions
}

// flag reads a boolean parameter as Kubernetes does: a parameter that is present is true unless it is "0" or "false".
func flag(query url.Values, name string) bool {
	values, given := query[name]
	return given && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// checkVersion refuses a resourceVersion that is not a number. It accepts every number: the server always reads the current
// state of an object, which is not older than any version.
func checkVersion(text string) error {
	if text == "" {
		return nil
	}
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return unreadable("resourceVersion", text, "must be a decimal number")
	}
	return nil
}
