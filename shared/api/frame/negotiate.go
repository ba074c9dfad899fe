package frame

import (
	"mime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
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
// or invalid.
func ParseAccept(values []string) []Clause {
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
			index := len(clauses)
			for index > 0 && clauses[index-1].Quality < clause.Quality {
				index--
			}
			clauses = append(clauses[:index], append([]Clause{clause}, clauses[index:]...)...)
		}
	}
	return clauses
}

// Other forms that a response can have instead of the object itself.
const (
	asTable       = "Table"
	asPartial     = "PartialObjectMetadata"
	asPartialList = "PartialObjectMetadataList"
)

// agree chooses the form of the response before the operation runs: a request whose response the client does not accept is
// refused. A document chooses its form itself.
func (f *frame) agree(c *call) error {
	if f.endpoint.Kind == "" {
		return nil
	}
	var err error
	if c.form, err = negotiate(c.http.Header.Values("Accept"), f.endpoint.tabulate != nil); err != nil {
		return err
	}
	switch verb := f.endpoint.Verb; {
	case c.form.as == asTable:
		c.include, err = includeObject(c.query)
	case c.form.as == asPartialList && (verb == "create" || verb == "update" || verb == "patch"):
		err = apierror.NotAcceptable(codec.JSON + ", " + codec.YAML)
	}
	return err
}

// negotiate chooses the form of the first clause that can be served. Table tells whether the endpoint has a Table form. If
// the Accept header is absent or empty, the form is JSON.
func negotiate(values []string, table bool) (form, error) {
	if strings.TrimSpace(strings.Join(values, "")) == "" {
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
