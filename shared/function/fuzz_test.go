package function

import (
	"errors"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/apierror"
	"management.platform.sh/shared/resource"
)

// FuzzListOptions: a query is read, or refused as the client's mistake; what was read can be written again.
func FuzzListOptions(f *testing.F) {
	for _, seed := range []string{
		"labelSelector=a%3Db,c+in+(d,e)&fieldSelector=metadata.name%3Dx&limit=5", "labelSelector=!a", "fieldSelector=a%3D%5C,b",
		"resourceVersion=1&resourceVersionMatch=Exact", "continue=x&resourceVersion=2", "limit=-1", "labelSelector=((", "fieldSelector=a!=b,c==d",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, _ := url.ParseQuery(text)
		var in resource.ListInput
		if err := readListOptions(query, &in); err != nil {
			known, ok := errors.AsType[*apierror.Error](err)
			if !ok || known.Status().Code < 400 || known.Status().Code >= 500 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if in.Limit < 0 {
			t.Fatalf("%q: limit %d", text, in.Limit)
		}
		if again, err := labels.Parse(in.Labels.String()); err != nil || again.String() != in.Labels.String() {
			t.Fatalf("%q: label selector %q, then %v (%v)", text, in.Labels, again, err)
		}
		if again, err := fields.ParseSelector(in.Fields.String()); err != nil || again.String() != in.Fields.String() {
			t.Fatalf("%q: field selector %q, then %v (%v)", text, in.Fields, again, err)
		}
	})
}

// FuzzAccept: clauses come best first, and what is chosen was asked for.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "application/json;q=0.5,application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io", ";;,,", "a/b;q=x", "application/yaml;q=1e-9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 1.0
		for _, clause := range ParseAccept([]string{text}) {
			if clause.Quality > last || clause.Quality <= 0 {
				t.Fatalf("%q: quality %v after %v", text, clause.Quality, last)
			}
			last = clause.Quality
		}
		chosen, err := negotiate([]string{text})
		if err != nil {
			if known, ok := errors.AsType[*apierror.Error](err); !ok || known.Status().Code != 406 {
				t.Fatalf("%q: %v", text, err)
			}
		} else if chosen.as != "" && chosen.version == "" {
			t.Fatalf("%q: %+v", text, chosen)
		}
	})
}
