package resource

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// ListInput is a request for a page of objects.
type ListInput struct {
	Caller identity.Caller
	// Namespace selects one namespace; empty selects all.
	Namespace string
	// Labels and Fields select objects; nil or empty selects all. Fields may only name what the resource offers.
	Labels labels.Selector
	Fields fields.Selector
	// Limit is the most objects in the page; 0 means all.
	Limit int64
	// Continue is the token of the page before.
	Continue string
	// ResourceVersion is the oldest acceptable state; with Exact it is the only one. Empty: the newest.
	ResourceVersion string
	Exact           bool
	// Reveal asks for secrets in clear. The frame has checked that the caller may have them.
	Reveal bool
}

// maxLimit is the largest page: more objects than there can be, in 31 bits.
const maxLimit = 1 << 30

// List returns one page of the objects that the caller may see, in order of their names, as a list
// object. A page is one consistent snapshot; the list's resourceVersion is that of the first page, so that
// a watch from it misses nothing. With selectors a page may hold fewer than Limit objects and still not be
// the last: only an empty continue token ends a list.
//
// Errors: BadRequest for an unsupported field selector, and for a resourceVersion or continue token that cannot be read
// or belongs to another query; Expired for an exact resourceVersion of the past; Timeout for one of the future. Source:
// Spec 2.2; ADR-0004.
func List[T Object](ctx context.Context, r *Registry[T], in ListInput) (runtime.Object, error) {
	if in.Labels == nil {
		in.Labels = labels.Everything()
	}
	if in.Fields == nil {
		in.Fields = fields.Everything()
	}
	if err := r.checkFields(in.Fields); err != nil {
		return nil, err
	}
	query := store.Query{Owners: r.owners(in.Caller), Limit: int(min(in.Limit, maxLimit))}
	if in.Namespace != "" {
		query.Prefix = in.Namespace + "/"
	}
	fingerprint := r.fingerprint(in, query)
	var from position
	if in.Continue != "" {
		var err error
		if from, err = readContinue(in.Continue, fingerprint); err != nil {
			return nil, err
		}
		query.After = from.After
	}
	page, err := r.Store.List(ctx, query)
	if err != nil {
		return nil, r.translate(err, "")
	}
	if err := checkRevision(in, page.Revision); err != nil {
		return nil, err
	}
	items, last, remaining, err := r.fill(ctx, in, query, page)
	if err != nil {
		return nil, err
	}
	revision := page.Revision
	if from.Revision != 0 {
		revision = from.Revision
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	if remaining > 0 {
		meta.Continue = writeContinue(position{Revision: revision, After: last, Query: fingerprint})
		_, custom := r.Rules.(Visibility[T])
		if in.Labels.Empty() && in.Fields.Empty() && (!custom || in.Caller.Admin()) {
			meta.RemainingItemCount = &remaining
		}
	}
	list := r.Definition.NewList(meta, items)
	list.GetObjectKind().SetGroupVersionKind(r.Definition.Resource.GroupVersion().WithKind(r.Definition.Kind + "List"))
	return list, nil
}

// Values returns objects as the items of a list, which is never nil.
func Values[T any](objects []*T) []T {
	values := make([]T, len(objects))
	for i, object := range objects {
		values[i] = *object
	}
	return values
}

// fill returns the selected objects of a page. Where selectors leave room it reads the next page, as long as the state
// does not change, so that the result is one snapshot. It also returns the last name that it read and how many follow.
func (r *Registry[T]) fill(ctx context.Context, in ListInput, query store.Query, page store.Page) (items []T, last string, remaining int64, err error) {
	const readAhead = 100
	// maxRemoved bounds the removals that a list does in passing.
	const maxRemoved = 16
	var ended []store.Record
	// After the pages are read: a removal changes the revision.
	defer func() {
		for _, record := range ended[:min(len(ended), maxRemoved)] {
			r.removeDeleted(ctx, record)
		}
	}()
	for revision := page.Revision; ; {
		for i, record := range page.Records {
			last = record.Name
			if seen, err := r.sees(in.Caller, record); err != nil {
				return nil, "", 0, err
			} else if !seen {
				continue
			}
			object, err := r.Decode(record)
			if err != nil {
				return nil, "", 0, err
			}
			if Deleted(object, r.Now()) {
				ended = append(ended, record)
				continue
			}
			if !r.selects(in, object) {
				continue
			}
			if items = append(items, object); in.Limit > 0 && int64(len(items)) == in.Limit {
				return items, last, page.Remaining + int64(len(page.Records)-i-1), nil
			}
		}
		if remaining = page.Remaining; remaining == 0 {
			return items, last, 0, nil
		}
		query.After, query.Limit = last, max(query.Limit, readAhead)
		next, err := r.Store.List(ctx, query)
		if err != nil {
			return nil, "", 0, r.translate(err, "")
		}
		if next.Revision != revision {
			return items, last, remaining, nil
		}
		page = next
	}
}

func (r *Registry[T]) selects(in ListInput, object T) bool {
	return in.Labels.Matches(labels.Set(object.GetLabels())) &&
		(in.Fields.Empty() || in.Fields.Matches(r.fieldSet(object)))
}

// fieldSet is what field selectors see of an object.
func (r *Registry[T]) fieldSet(object T) fields.Set {
	set := fields.Set{}
	if r.Definition.Fields != nil {
		set = r.Definition.Fields(object)
	}
	set["metadata.name"] = object.GetName()
	if r.Definition.Namespaced {
		set["metadata.namespace"] = object.GetNamespace()
	}
	return set
}

func (r *Registry[T]) checkFields(selector fields.Selector) error {
	known := r.fieldSet(r.Definition.New())
	for _, requirement := range selector.Requirements() {
		if _, ok := known[requirement.Field]; !ok {
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			return apierror.BadRequest(fmt.Sprintf("field label not supported: %s; supported are %s",
				requirement.Field, strings.Join(names, ", ")), field.ErrorList{
				field.NotSupported(field.NewPath("fieldSelector"), requirement.Field, names)})
		}
	}
	return nil
}

// checkRevision refuses a page that is not of the requested revision.
func checkRevision(in ListInput, current int64) error {
	if in.ResourceVersion == "" || in.ResourceVersion == "0" {
		return nil
	}
	asked, err := strconv.ParseInt(in.ResourceVersion, 10, 64)
	if err != nil || asked < 0 || strconv.FormatInt(asked, 10) != in.ResourceVersion {
		return apierror.BadRequest(fmt.Sprintf("resourceVersion: invalid value %q: must be a decimal number", in.ResourceVersion),
			field.ErrorList{field.Invalid(field.NewPath("resourceVersion"), in.ResourceVersion, "must be a decimal number")})
	}
	switch {
	case asked > current:
		return apierror.VersionTooLarge(asked, current)
	case in.Exact && asked < current:
		return apierror.Expired(fmt.Sprintf("the resource version %d is too old: the current one is %d", asked, current))
	default:
		return nil
	}
}

// position is where the next page of a list begins. The continue token holds it.
type position struct {
	// Revision is that of the first page.
	Revision int64 `json:"rv"`
	// After is the last name that was read.
	After string `json:"after"`
	// Query is a fingerprint of the request: a token is valid for the same query only.
	Query string `json:"query"`
}

func (r *Registry[T]) fingerprint(in ListInput, query store.Query) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q",
		r.Definition.GroupResource().String(), query.Prefix, in.Caller.Owners(), in.Labels.String(), in.Fields.String()))
	return hex.EncodeToString(sum[:8])
}

const continueChecksum = 8

// writeContinue encodes a position with a checksum, so that an altered token is noticed. It needs no signature: a
// forged token shows nothing that the same request without it would not show.
func writeContinue(at position) string {
	// A struct of strings and a number always marshals.
	text, _ := json.Marshal(at)
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(append(sum[:continueChecksum], text...))
}

func readContinue(token, fingerprint string) (position, error) {
	refuse := func(why string) (position, error) {
		return position{}, apierror.BadRequest("continue key is not valid: "+why,
			field.ErrorList{field.Invalid(field.NewPath("continue"), field.OmitValueType{}, why)})
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < continueChecksum {
		return refuse("it is not a token of this server")
	}
	sum := sha256.Sum256(raw[continueChecksum:])
	var at position
	if string(sum[:continueChecksum]) != string(raw[:continueChecksum]) || json.Unmarshal(raw[continueChecksum:], &at) != nil || at.Revision < 1 {
		return refuse("it has been altered")
	}
	if at.Query != fingerprint {
		return refuse("it belongs to a list with other selectors or another caller")
	}
	return at, nil
}
