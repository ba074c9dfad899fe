package resource_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// list requests a page as an admin, unless another caller is given.
func list(t testing.TB, r *registry, in resource.ListInput) (*model.OwnedAccessKeyList, error) {
	t.Helper()
	if in.Caller.Owner == (identity.Owner{}) {
		in.Caller = admin
	}
	page, err := resource.List(t.Context(), r, in)
	if err != nil {
		return nil, err
	}
	return page.(*model.OwnedAccessKeyList), nil
}

func mustList(t testing.TB, r *registry, in resource.ListInput) *model.OwnedAccessKeyList {
	t.Helper()
	page, err := list(t, r, in)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func selectLabels(t testing.TB, text string) labels.Selector {
	t.Helper()
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

func selectFields(t testing.TB, text string) fields.Selector {
	t.Helper()
	selector, err := fields.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

// populate creates the keys k00, k01 and so on, which ana owns, with label n = number mod 3.
func populate(t testing.TB, r *registry, count int) {
	t.Helper()
	// The order differs from the order of the names.
	for i := range count {
		number := (i*7 + 3) % count
		object := grantee(fmt.Sprintf("k%02d", number))
		object.Labels = map[string]string{"n": fmt.Sprint(number % 3)}
		create(t, r, ana, object)
	}
}

func TestListOrder(t *testing.T) {
	t.Parallel()
	r := open(t)
	if empty := mustList(t, r, resource.ListInput{}); empty.Items == nil || len(empty.Items) != 0 || empty.ResourceVersion != "1" ||
		empty.Kind != "OwnedAccessKeyList" || empty.APIVersion != "management.platform.sh/v1" {
		t.Errorf("an empty list is %+v", empty)
	}
	for _, name := range []string{"b", "a.b", "a", "a-b", "10", "9"} {
		create(t, r, ana, grantee(name))
	}
	page := mustList(t, r, resource.ListInput{})
	if got, want := names(page), "10 9 a a-b a.b b"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	if page.ResourceVersion != "7" || page.Continue != "" || page.RemainingItemCount != nil {
		t.Errorf("list metadata %+v", page.ListMeta)
	}
	for _, item := range page.Items {
		if item.Spec.Key != "" || item.ResourceVersion == "" || item.Kind != "OwnedAccessKey" {
			t.Errorf("item %+v", item)
		}
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	const count = 23
	r := open(t)
	populate(t, r, count)
	all := names(mustList(t, r, resource.ListInput{}))
	for _, selector := range []string{"", "n=1", "n in (0,2)", "n=9"} {
		want := names(mustList(t, r, resource.ListInput{Labels: selectLabels(t, selector)}))
		if selector == "" && want != all {
			t.Fatalf("an empty selector selects %q", want)
		}
		for _, limit := range []int64{1, 2, 5, 8, 22, 23, 24, 1000, math.MaxInt64} {
			var pages []string
			in := resource.ListInput{Labels: selectLabels(t, selector), Limit: limit}
			seen := int64(0)
			for {
				page := mustList(t, r, in)
				if int64(len(page.Items)) > limit {
					t.Fatalf("limit %d gives %d", limit, len(page.Items))
				}
				seen += int64(len(page.Items))
				if page.ResourceVersion != fmt.Sprint(store.Beginning+count) {
					t.Errorf("resourceVersion %q", page.ResourceVersion)
				}
				if len(page.Items) > 0 {
					pages = append(pages, names(page))
				}
				switch remaining := page.RemainingItemCount; {
				case page.Continue == "" || selector != "":
					if remaining != nil {
						t.Errorf("limit %d, %q: remainingItemCount %d", limit, selector, *remaining)
					}
				case remaining == nil || *remaining != count-seen:
					t.Errorf("limit %d: remainingItemCount %v, want %d", limit, remaining, count-seen)
				}
				if page.Continue == "" {
					break
				}
				in.Continue = page.Continue
			}
			if got := strings.Join(pages, " "); got != want {
				t.Errorf("limit %d, %q: pages\n%s\nwant\n%s", limit, selector, got, want)
			}
		}
	}
}

// Writes between the pages do not disturb a slow list: each object that stays is listed once, and the
// resourceVersion is that of the first page, so that a watch from there sees the rest.
func TestListWhileOthersWrite(t *testing.T) {
	t.Parallel()
	r := open(t)
	populate(t, r, 12)
	in := resource.ListInput{Limit: 5}
	var got []string
	for page := 0; ; page++ {
		answer := mustList(t, r, in)
		if answer.ResourceVersion != "13" {
			t.Errorf("page %d has resourceVersion %s", page, answer.ResourceVersion)
		}
		got = append(got, names(answer))
		if in.Continue = answer.Continue; in.Continue == "" {
			break
		}
		if page == 0 {
			// A listed object, one that was not listed yet, the last listed object, and a new one.
			for _, name := range []string{"k01", "k07", "k04"} {
				if _, err := resource.Delete(t.Context(), r, resource.DeleteInput{Caller: admin, Name: name}); err != nil {
					t.Fatal(err)
				}
			}
			create(t, r, ana, grantee("k085"))
		}
	}
	if want := "k00 k01 k02 k03 k04|k05 k06 k08 k085 k09|k10 k11"; strings.Join(got, "|") != want {
		t.Errorf("pages %q, want %q", got, want)
	}
}

func TestListSelectors(t *testing.T) {
	t.Parallel()
	r := open(t)
	populate(t, r, 9)
	team := grantee("t1")
	team.Spec.Team, team.Spec.Type = "core", "Other"
	create(t, r, ana, team)
	create(t, r, ben, grantee("b1"))
	for _, row := range []struct {
		about, labels, fields string
		want                  string
		wrong                 refusal
	}{
		{"a label", "n=1", "", "k01 k04 k07", refusal{}},
		{"a label that is absent", "!n", "", "b1 t1", refusal{}},
		{"metadata.name", "", "metadata.name=k03", "k03", refusal{}},
		{"a name that is not there", "", "metadata.name=x", "", refusal{}},
		{"spec.user", "", "spec.user=ben", "b1", refusal{}},
		{"spec.team", "", "spec.team=core", "t1", refusal{}},
		{"spec.type", "", "spec.type=Other", "t1", refusal{}},
		{"not", "", "spec.user!=ana", "b1 t1", refusal{}},
		{"labels and fields", "n=1", "metadata.name!=k04", "k01 k07", refusal{}},
		{"a field that is not offered", "", "spec.description=x", "", refusal{400, "BadRequest", []string{"fieldSelector"}}},
		{"a cluster scoped resource has no metadata.namespace", "", "metadata.namespace=x", "", refusal{400, "BadRequest", []string{"fieldSelector"}}},
	} {
		for _, limit := range []int64{0, 1, 2, 100} {
			in := resource.ListInput{Labels: selectLabels(t, row.labels), Fields: selectFields(t, row.fields), Limit: limit}
			var found []string
			for {
				page, err := list(t, r, in)
				expect(t, err, row.wrong)
				if err != nil {
					break
				}
				if len(page.Items) > 0 {
					found = append(found, names(page))
				}
				if in.Continue = page.Continue; in.Continue == "" {
					break
				}
			}
			if got := strings.Join(found, " "); got != row.want {
				t.Errorf("%s, limit %d: %q, want %q", row.about, limit, got, row.want)
			}
		}
	}
}

// Callers see their own objects and those of their teams. Admins see everything (ADR-0005).
func TestListOwners(t *testing.T) {
	t.Parallel()
	r := open(t)
	create(t, r, ana, grantee("a2"))
	create(t, r, ben, grantee("a1"))
	shared := grantee("a0")
	shared.Spec.Team = "core"
	create(t, r, ana, shared)
	member := identity.New(identity.Owner{Kind: identity.User, Name: "cleo"}, []string{identity.TeamPrefix + "core"})
	team := identity.New(identity.Owner{Kind: identity.Team, Name: "core"}, nil)
	for _, row := range []struct {
		caller identity.Caller
		want   string
	}{{ana, "a0 a2"}, {ben, "a1"}, {member, "a0"}, {team, "a0"}, {admin, "a0 a1 a2"}, {identity.New(identity.Owner{Kind: identity.User, Name: "core"}, nil), ""}} {
		page := mustList(t, r, resource.ListInput{Caller: row.caller})
		if got := names(page); got != row.want {
			t.Errorf("%s sees %q, want %q", row.caller.Owner, got, row.want)
		}
		paged := mustList(t, r, resource.ListInput{Caller: row.caller, Limit: 1})
		if want := strings.Count(row.want, " "); want > 0 && (paged.RemainingItemCount == nil || *paged.RemainingItemCount != int64(want)) {
			t.Errorf("the response to %s says that %v remain, want %d", row.caller.Owner, paged.RemainingItemCount, want)
		}
	}
}

func TestListContinueTokens(t *testing.T) {
	t.Parallel()
	r := open(t)
	populate(t, r, 6)
	token := mustList(t, r, resource.ListInput{Caller: ana, Limit: 2}).Continue
	wrong := refusal{400, "BadRequest", []string{"continue"}}
	flip := func(at int) string {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			t.Fatal(err)
		}
		raw[at] ^= 1
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	for _, row := range []struct {
		about string
		in    resource.ListInput
		wrong refusal
	}{
		{"the same question", resource.ListInput{Caller: ana, Limit: 2, Continue: token}, refusal{}},
		{"another limit", resource.ListInput{Caller: ana, Limit: 3, Continue: token}, refusal{}},
		{"no limit", resource.ListInput{Caller: ana, Continue: token}, refusal{}},
		{"altered at its beginning", resource.ListInput{Caller: ana, Limit: 2, Continue: flip(0)}, wrong},
		{"altered in its content", resource.ListInput{Caller: ana, Limit: 2, Continue: flip(20)}, wrong},
		{"cut short", resource.ListInput{Caller: ana, Limit: 2, Continue: token[:len(token)-4]}, wrong},
		{"lengthened", resource.ListInput{Caller: ana, Limit: 2, Continue: token + "AAAA"}, wrong},
		{"garbage", resource.ListInput{Caller: ana, Limit: 2, Continue: "x"}, wrong},
		{"no base64", resource.ListInput{Caller: ana, Limit: 2, Continue: "!!"}, wrong},
		{"another label selector", resource.ListInput{Caller: ana, Limit: 2, Continue: token, Labels: selectLabels(t, "n=1")}, wrong},
		{"another field selector", resource.ListInput{Caller: ana, Limit: 2, Continue: token, Fields: selectFields(t, "spec.user=ana")}, wrong},
		{"another caller", resource.ListInput{Caller: ben, Limit: 2, Continue: token}, wrong},
		{"an admin", resource.ListInput{Caller: admin, Limit: 2, Continue: token}, wrong},
		{"another namespace", resource.ListInput{Caller: ana, Namespace: "p-a", Limit: 2, Continue: token}, wrong},
	} {
		_, err := list(t, r, row.in)
		t.Log(row.about)
		expect(t, err, row.wrong)
	}
}

func TestListResourceVersions(t *testing.T) {
	t.Parallel()
	r := open(t)
	populate(t, r, 3)
	bad := refusal{400, "BadRequest", []string{"resourceVersion"}}
	for _, row := range []struct {
		version string
		exact   bool
		wrong   refusal
	}{
		{"", false, refusal{}},
		{"0", false, refusal{}},
		{"2", false, refusal{}},
		{"4", false, refusal{}},
		{"4", true, refusal{}},
		{"3", true, refusal{code: 410, reason: metav1.StatusReasonExpired}},
		{"5", false, refusal{504, metav1.StatusReasonTimeout, []string{""}}},
		{"5", true, refusal{504, metav1.StatusReasonTimeout, []string{""}}},
		{"x", false, bad},
		{"-1", false, bad},
		{"04", false, bad},
		{"+4", false, bad},
		{"4.0", false, bad},
		{"99999999999999999999", false, bad},
	} {
		page, err := list(t, r, resource.ListInput{ResourceVersion: row.version, Exact: row.exact})
		t.Logf("resourceVersion %q, exact %v", row.version, row.exact)
		expect(t, err, row.wrong)
		if err == nil && page.ResourceVersion != "4" {
			t.Errorf("answered resourceVersion %s", page.ResourceVersion)
		}
	}
}
