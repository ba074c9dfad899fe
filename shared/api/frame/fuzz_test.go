package frame

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model/apierror"
)

// FuzzListOptions: a query is read, or refused as a mistake of the client. Options that were read can be written again.
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
			mistake(t, err)
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

// FuzzWatchOptions: a query is read, or refused as a mistake of the client. Options that were read are consistent.
func FuzzWatchOptions(f *testing.F) {
	for _, seed := range []string{
		"", "resourceVersion=5", "timeoutSeconds=1&allowWatchBookmarks", "sendInitialEvents&resourceVersionMatch=NotOlderThan", "sendInitialEvents=false",
		"timeoutSeconds=9223372036854775807", "timeoutSeconds=-1", "timeoutSeconds=", "limit=x", "resourceVersionMatch=Exact&continue=x", "labelSelector=a+in+(",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, _ := url.ParseQuery(text)
		var in resource.WatchInput
		limit, err := readWatchOptions(query, &in)
		if err != nil {
			mistake(t, err)
			return
		}
		if limit < 0 || in.Labels == nil || in.Fields == nil {
			t.Fatalf("%q: %v, %+v", text, limit, in)
		}
	})
}

// FuzzDeleteOptions: the body or, without one, the query is read, or refused as a mistake of the client. Options that were read are valid and consistent.
func FuzzDeleteOptions(f *testing.F) {
	for _, seed := range []struct{ query, media, body string }{
		{"", "", ""}, {"dryRun=All", "application/json", `{"gracePeriodSeconds":5}`}, {"gracePeriodSeconds=-1", "", ""}, {"orphanDependents=x", "", ""},
		{"propagationPolicy=Orphan", "application/json", `{"orphanDependents":true}`}, {"", "application/yaml", "preconditions:\n  uid: x\n"},
		{"", "application/json", `{"preconditions":{"uid":null},"dryRun":["x"]}`}, {"gracePeriodSeconds=9223372036854775807", "", ""}, {"", "application/json", `{"kind":`},
		{"dryRun=", "text/plain", "x"}, {"", "application/vnd.kubernetes.protobuf", "k8s\x00\n"},
	} {
		f.Add(seed.query, seed.media, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, text, media string, body []byte) {
		query, _ := url.ParseQuery(text)
		c := &call{
			http: &http.Request{Header: http.Header{"Content-Type": {media}}}, parameters: parameters{query: query},
			body: func() ([]byte, error) { return body, nil },
		}
		options, err := readDeleteOptions(c)
		if err != nil {
			mistake(t, err)
			return
		}
		_, in := deletion(t.Context(), c, options)
		if grace := in.GracePeriodSeconds; grace != nil && (*grace < 0 || *grace > resource.MaxGracePeriodSeconds) {
			t.Fatalf("%q with %q: grace period %d", text, body, *grace)
		}
		switch in.Propagation {
		case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		default:
			t.Fatalf("%q with %q: propagation %q", text, body, in.Propagation)
		}
		if len(body) == 0 && query.Has("dryRun") && !in.DryRun {
			t.Fatalf("%q with %q is no dry run", text, body)
		}
	})
}

// mistake expects an error that the client caused.
func mistake(t *testing.T, err error) {
	t.Helper()
	known, ok := errors.AsType[*apierror.Error](err)
	if !ok || known.Status().Code < 400 || known.Status().Code >= 500 {
		t.Fatalf("%v", err)
	}
}

// FuzzAccept: the best clause comes first, and the chosen form is one that the client requested.
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
		chosen, err := negotiate([]string{text}, true)
		if err != nil {
			if known, ok := errors.AsType[*apierror.Error](err); !ok || known.Status().Code != 406 {
				t.Fatalf("%q: %v", text, err)
			}
		} else if chosen.as != "" && chosen.version == "" {
			t.Fatalf("%q: %+v", text, chosen)
		}
	})
}
