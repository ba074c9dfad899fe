package frame

import (
	"mime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/model/apierror"
)

// form is the form of an answer that a client prefers among those there are.
type form struct {
	yaml bool
	// as is empty, Table, PartialObjectMetadata or PartialObjectMetadataList; version is then v1 or v1beta1.
	as, version string
}

// Clause is one media type of an Accept header, with its parameters.
type Clause struct {
	// MediaType is "type/subtype", in lower case.
	MediaType string
	// Params are the parameters, without q.
	Params map[string]string
	// Quality is q, 1 by default; 0 means never.
	Quality float64
}

// ParseAccept reads Accept headers in the client's order of preference: as they stand, but for those of
// lower quality, which come later. Clauses that cannot be read are left out.
func ParseAccept(values []string) []Clause {
	var clauses []Clause
	for _, value := range values {
		for text := range strings.SplitSeq(value, ",") {
			// Clients name OpenAPI's protobuf form with an @, which the grammar of media types does not know and
			// Kubernetes reads as a dot.
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
			at := len(clauses)
			for at > 0 && clauses[at-1].Quality < clause.Quality {
				at--
			}
			clauses = append(clauses[:at], append([]Clause{clause}, clauses[at:]...)...)
		}
	}
	return clauses
}

// The forms that answers have beside their own.
const (
	asTable       = "Table"
	asPartial     = "PartialObjectMetadata"
	asPartialList = "PartialObjectMetadataList"
)

// agree finds the form of the answer: nothing is done whose answer the client cannot take. A document has forms of its
// own.
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

// negotiate picks the first clause that can be served, and a Table only where there is one. No Accept header, or an empty
// one, takes JSON.
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
