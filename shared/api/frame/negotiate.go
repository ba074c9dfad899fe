package frame

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// form is the form of a response: of the available forms, the one that the client prefers.
type form struct {
	yaml bool
	// as is empty, Table, PartialObjectMetadata or PartialObjectMetadataList. Unless as is empty, version is v1 or v1beta1.
	as, version string
}

// Clause is one media type of an Accept header, with its parameters.
type Clause struct {
	// MediaType is "type/subtype", in lower case.
	MediaType string
	// Params are the parameters, without q.
	Params map[string]string
	// Quality is the parameter q: above 0 and at most 1. The default is 1.
	Quality float64
}

// ParseAccept parses Accept headers. It returns the clauses in the client's order of preference: by descending quality, and
// in their given order among equals. It leaves out clauses that cannot be parsed or whose quality is 0
// or invalid. Headers that are larger than limits.AcceptBytes have no clauses: requests with them are refused.
func ParseAccept(values []string) []Clause {
	if sizeOf(values) > limits.AcceptBytes {
		return nil
	}
	var clauses []Clause
	for _, value := range values {
		for text := range strings.SplitSeq(value, ",") {
			// Clients name the protobuf form of OpenAPI with an @. The grammar of media types does not allow it, and
			// Kubernetes reads it as a dot.
			media, params, err := mime.ParseMediaType(strings.ReplaceAll(strings.TrimSpace(text), "@", "."))
			if err != nil {
				continue
			}
			clause := Clause{MediaType: media, Params: params, Quality: 1}
			if q, ok := params["q"]; ok {
				delete(params, "q")
				quality, err := strconv.ParseFloat(q, 64)
				if err != nil || quality <= 0 || quality > 1 {
					continue
				}
				clause.Quality = quality
			}
			clauses = append(clauses, clause)
		}
	}
	slices.SortStableFunc(clauses, func(a, b Clause) int { return cmp.Compare(b.Quality, a.Quality) })
	return clauses
}

// checkHeader refuses a head of a request that would cost more to read than others: too many lines, or too large Accept
// headers. The error is HeaderTooLarge. It needs no credential, and is cheap.
func checkHeader(header http.Header) error {
	lines := 0
	for _, values := range header {
		lines += len(values)
	}
	if lines > limits.HeaderLines {
		return apierror.HeaderTooLarge(fmt.Sprintf("the request has %d header lines; the limit is %d", lines, limits.HeaderLines))
	}
	if size := sizeOf(header.Values("Accept")); size > limits.AcceptBytes {
		return apierror.HeaderTooLarge(fmt.Sprintf("the Accept header has %d bytes; the limit is %d", size, limits.AcceptBytes))
	}
	return nil
}

// sizeOf returns the size of the values of a header together, in bytes.
func sizeOf(values []string) int {
	size := 0
	for _, value := range values {
		size += len(value)
	}
	return size
}

// Other forms that a response can have instead of the object itself.
const (
	asTable       = "Table"
	asPartial     = "PartialObjectMetadata"
	asPartialList = "PartialObjectMetadataList"
)

// negotiate chooses the form of the response before the operation runs: a request whose response the client does not accept is
// refused. A document chooses its form itself.
func (f *frame) negotiate(c *call) error {
	if f.endpoint.Kind == "" {
		return nil
	}
	var err error
	if c.form, err = negotiate(c.http.Header.Values("Accept"), f.endpoint.tabulate != nil); err != nil {
		return err
	}
	switch verb := f.endpoint.Verb; {
	case c.form.as == asTable:
		if c.include, err = includeObject(c.query); f.endpoint.credential && verb == "create" {
			c.include = metav1.IncludeObject
		}
	case c.form.as == asPartial && f.endpoint.credential && (verb == "create" || f.isApply(c)):
		err = apierror.NotAcceptable(codec.JSON + ", " + codec.YAML)
	case c.form.as == asPartialList && (verb == "create" || verb == "update" || verb == "patch"):
		err = apierror.NotAcceptable(codec.JSON + ", " + codec.YAML)
	}
	return err
}

// isApply reports whether a request is an apply, which may create its object.
func (f *frame) isApply(c *call) bool {
	media, _, err := mime.ParseMediaType(c.http.Header.Get("Content-Type"))
	return err == nil && f.endpoint.Verb == "patch" && resource.PatchType(media) == resource.ApplyPatch
}

// negotiate chooses the form of the first clause that can be served. Table reports whether the endpoint has a Table form. If
// the Accept header is absent or empty, the form is JSON.
func negotiate(values []string, table bool) (form, error) {
	if !slices.ContainsFunc(values, func(value string) bool { return strings.TrimSpace(value) != "" }) {
		return form{}, nil
	}
	for _, clause := range ParseAccept(values) {
		var chosen form
		switch clause.MediaType {
		case codec.JSON, "*/*", "application/*", "text/json":
		case codec.YAML, "application/x-yaml", "text/yaml", "application/vnd.yaml":
			chosen.yaml = true
		default:
			continue
		}
		as, transformed := clause.Params["as"]
		if !transformed {
			return chosen, nil
		}
		chosen.as, chosen.version = as, clause.Params["v"]
		known := as == asTable && table || as == asPartial || as == asPartialList
		if known && clause.Params["g"] == metav1.GroupName && (chosen.version == "v1" || chosen.version == "v1beta1") {
			return chosen, nil
		}
	}
	return form{}, apierror.NotAcceptable(codec.JSON + ", " + codec.YAML)
}
