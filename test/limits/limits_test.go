// Package limits_test has a case for each row of the table of limits. A request just below or at a bound is served. A request above the bound
// is refused with the status, the field, the limit and the value found, before anything is written. The cases send requests to the whole
// catalog over a real state. Source: ADR-0020.
package limits_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/settings"
)

// row is the case of one limit.
type row struct {
	// bound is the expected text of the table, made from the constants in the code. Settings are compared with their defaults instead.
	bound string
	// try sends requests below, at and above the bound.
	try func(t *testing.T)
}

// rows are the cases by the name of the limit.
var rows = merge(connectionRows, requestRows, signInRows, objectRows, answerRows, placeRows, patchRows, quotaRows)

func merge(parts ...map[string]row) map[string]row {
	all := map[string]row{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// Each row has a case, and each case a row.
func TestRows(t *testing.T) {
	t.Parallel()
	var names []string
	for _, limit := range limits.List {
		names = append(names, limit.Name)
		if _, ok := rows[limit.Name]; !ok {
			t.Errorf("the limit %s has no case", limit.Name)
		}
		if limit.What == "" || limit.Bound == "" || limit.Answer == "" {
			t.Errorf("the row %s is not complete: %+v", limit.Name, limit)
		}
		if _, err := os.Stat("../../" + limit.Where); err != nil {
			t.Errorf("the limit %s is enforced nowhere: %v", limit.Name, err)
		}
	}
	for name := range rows {
		if !slices.Contains(names, name) {
			t.Errorf("there is no limit %s", name)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(limits.List) {
		t.Error("a limit is listed twice")
	}
}

// The table agrees with the constants and the settings.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, limit := range limits.List {
		// A setting without a default depends on the shell.
		if limit.Setting == "" || rows[limit.Name].bound != "" {
			if want := rows[limit.Name].bound; limit.Bound != want {
				t.Errorf("the bound of %s is %q; the code has %q", limit.Name, limit.Bound, want)
			}
			continue
		}
		i := slices.IndexFunc(settings.List, func(s settings.Setting) bool { return s.Name == limit.Setting })
		if i < 0 {
			t.Errorf("the limit %s has the setting %s, which does not exist", limit.Name, limit.Setting)
			continue
		}
		number, _, _ := strings.Cut(limit.Bound, ";")
		// The setting uses the unit Mi, the table MiB.
		value := strings.NewReplacer(" ", "", "iB", "i").Replace(number)
		if want := settings.List[i].Default; want == "" || value != want && !strings.HasPrefix(number, want+" ") && (want != "0" || number != "no limit") {
			t.Errorf("the bound of %s is %q; the default of %s is %q", limit.Name, limit.Bound, limit.Setting, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range limits.List {
		if one, ok := rows[limit.Name]; ok {
			t.Run(limit.Name, func(t *testing.T) {
				t.Parallel()
				one.try(t)
			})
		}
	}
}

// sizeCase returns a case for a limit on the size of a request.
type sizeCase struct {
	limit int
	// ask returns a request of a size. The world has a key alice, of user alice.
	ask func(n int) request
	// status is the status of a request above the limit. field is the field in a cause of the answer, unless it is empty.
	status int
	field  string
	// says are texts in the answer. Empty: the size found and the limit.
	says []string
}

func (s sizeCase) try(t *testing.T) {
	t.Helper()
	w := newWorld(t, nil)
	for _, n := range []int{s.limit - 1, s.limit} {
		if got := w.send(s.ask(n)); got.status > 299 {
			t.Errorf("%d: %d %.1000s", n, got.status, got.body)
		}
	}
	before := w.storedDigest()
	got := w.send(s.ask(s.limit + 1))
	if got.status != s.status {
		t.Fatalf("%d: %d %.1000s; want %d", s.limit+1, got.status, got.body, s.status)
	}
	says := s.says
	if says == nil {
		says = []string{fmt.Sprint(s.limit + 1), fmt.Sprint(s.limit)}
	}
	got.checkRefusal(t, s.field, says...)
	if after := w.storedDigest(); after != before {
		t.Errorf("the refused request has written: %s, then %s", before, after)
	}
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// decoded returns the answer as a Status.
func (a answer) decoded(t *testing.T) metav1.Status {
	t.Helper()
	var found metav1.Status
	if err := json.Unmarshal([]byte(a.body), &found); err != nil || int(found.Code) != a.status {
		t.Fatalf("%d is not answered with a Status: %.500s: %v", a.status, a.body, err)
	}
	return found
}

// checkRefusal fails the test if a refusal does not name a field or does not contain some texts.
func (a answer) checkRefusal(t *testing.T, field string, says ...string) {
	t.Helper()
	status := a.decoded(t)
	named := field == ""
	if status.Details != nil {
		named = named || slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
	}
	if !named {
		t.Errorf("the answer does not name %s: %.1000s", field, a.body)
	}
	for _, text := range says {
		if !strings.Contains(status.Message, text) {
			t.Errorf("the answer does not say %q: %.1000s", text, status.Message)
		}
	}
	if status.Code == http.StatusTooManyRequests && (a.header.Get("Retry-After") == "" || status.Details == nil || status.Details.RetryAfterSeconds < 1) {
		t.Errorf("the answer does not say when to repeat the request: %v %.500s", a.header, a.body)
	}
}

// bytes returns a size in the form of the table.
func bytes(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// request is one request. Zero values mean alice's key, GET, JSON and the usual address.
type request struct {
	bearer, method, path, kind, body, from string
	header                                 map[string]string
}

// Bearers that are not names of keys.
const (
	anonymous = "no credential"
	// guess is a bearer token whose lookup waits while requests are held.
	guess = "held"
)

func (r request) verb() string { return cmp.Or(r.method, http.MethodGet) }
