package frame

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

// readPatch reads a patch with its options. Which types there are, the resource says.
func readPatch(c *call) (resource.PatchInput, error) {
	in := resource.PatchInput{Caller: c.caller, Namespace: c.namespace, Name: c.name}
	// An unreadable media type is unsupported as it stands.
	media := c.http.Header.Get("Content-Type")
	if parsed, _, err := mime.ParseMediaType(media); err == nil {
		media = parsed
	}
	in.Type = resource.PatchType(media)
	var problems []*field.Error
	if in.Type == resource.ApplyPatch {
		in.Force = isTrue(c.query["force"])
		in.MayCreate = func() error { return c.may("create") }
		if c.query.Get("fieldManager") == "" {
			problems = append(problems, field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
		}
	} else if c.query.Has("force") {
		problems = append(problems, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	options, err := readWriteOptions(c, "PatchOptions", problems...)
	if err != nil {
		return in, err
	}
	in.Validation, in.Manager, in.DryRun = options.validation, options.manager, options.dryRun
	if in.Patch, err = c.body(); err != nil {
		return in, err
	}
	if !utf8.Valid(in.Patch) {
		return in, apierror.BadRequest("the body is not valid UTF-8", nil)
	}
	return in, nil
}

// isTrue reads a parameter as Kubernetes does: present, it is true unless it says false or 0.
func isTrue(values []string) bool {
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// managerOf is who owns the fields of a write: the one that the request names, else the client's first word for itself.
// Source: Spec 2.2; ADR-0008.
func managerOf(named, userAgent string) string {
	if named != "" {
		return named
	}
	product, _, _ := strings.Cut(userAgent, "/")
	var manager strings.Builder
	for _, c := range product {
		switch {
		case !unicode.IsPrint(c):
		case manager.Len()+utf8.RuneLen(c) > maxFieldManager:
			return manager.String()
		default:
			manager.WriteRune(c)
		}
	}
	return manager.String()
}
