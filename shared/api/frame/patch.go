package frame

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

// readPatch reads a patch with its options. The resource decides which patch types it accepts.
func readPatch(c *call) (resource.PatchInput, error) {
	in := resource.PatchInput{Caller: c.caller, Namespace: c.namespace, Name: c.name, Prefetched: c.prefetched}
	// A media type that cannot be parsed is passed on unchanged, and the resource refuses it as unsupported.
	media := c.http.Header.Get("Content-Type")
	if parsed, _, err := mime.ParseMediaType(media); err == nil {
		media = parsed
	}
	in.Type = resource.PatchType(media)
	createOptions := givenOptions(c.query)
	options := metav1.PatchOptions{DryRun: createOptions.DryRun, FieldManager: createOptions.FieldManager, FieldValidation: createOptions.FieldValidation}
	if c.query.Has("force") {
		in.Force = flag(c.query, "force")
		options.Force = &in.Force
	}
	if err := invalidOptions("PatchOptions", metav1validation.ValidatePatchOptions(&options, types.PatchType(media))); err != nil {
		return in, err
	}
	if in.Type == resource.ApplyPatch {
		in.MayCreate = func() error { return c.may("create") }
	}
	used := usedOptions(c, createOptions)
	in.Validation, in.Manager, in.DryRun = used.validation, used.manager, used.dryRun
	var err error
	if in.Patch, err = c.body(); err != nil {
		return in, err
	}
	if !utf8.Valid(in.Patch) {
		return in, apierror.BadRequest("the body is not valid UTF-8", nil)
	}
	return in, nil
}

// managerOf returns the owner of the fields that a request writes: the given field manager or, if there is none, the part
// of the User-Agent before the first slash.
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
		case manager.Len()+utf8.RuneLen(c) > metav1validation.FieldManagerMaxLength:
			return manager.String()
		default:
			manager.WriteRune(c)
		}
	}
	return manager.String()
}
