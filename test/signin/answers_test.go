package signin_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/revalidate"
)

var update = flag.Bool("update", false, "write docs/provider-answers.md anew")

// answersPage is the page with the results of TestAnswers.
const answersPage = "../../docs/provider-answers.md"

// askedProvider is a kind of provider, and how the person signs in there. Each lets in only who is in a group.
type askedProvider struct {
	name string
	// prepare makes the provider of a world, and returns how somebody signs in there, up to the answer to the callback.
	prepare func(*world) func() *http.Response
}

// atProvider returns the sign-in at a connector whose provider is asked with a code.
func (w *world) atProvider(id string, login func(string) url.Values) func() *http.Response {
	return func() *http.Response {
		b := w.browser()
		answer := b.send(base+"/auth/"+id+"/login?"+asked().Encode(), nil)
		if answer.StatusCode == http.StatusSeeOther {
			answer = b.send(base+"/auth/"+id+"/callback?"+login(answer.Header.Get("Location")).Encode(), nil)
		}
		return w.taken(b, answer)
	}
}

// taken has the program take the key of a sign-in that works, and returns the answer to the callback.
func (w *world) taken(b *browser, callback *http.Response) *http.Response {
	if callback.StatusCode != http.StatusSeeOther {
		return callback
	}
	status, answer := w.fetch(b.confirm(callback, "allow").Get("code"), nil)
	if key, _ := answer["access_token"].(string); status == http.StatusOK {
		callback.Header.Set("X-Key", key)
	}
	return callback
}

var askedProviders = []askedProvider{
	{"`oidc`", func(w *world) func() *http.Response {
		settings := w.config.Auth.OIDC
		settings.GetUserInfo, settings.Groups, settings.Scopes = true, []string{"dev"}, []string{"offline_access"}
		w.provider.info = map[string]any{"sub": "1001", "name": "Ana", "email": "ana@example.com", "email_verified": true, "groups": []string{"dev"}}
		return w.atProvider("oidc", w.provider.login)
	}},
	{"`idp1`", func(w *world) func() *http.Response {
		w.idp1()
		w.directory()
		w.config.Auth.IDP1.Groups = []string{"last@example.com"}
		return w.atProvider(connector.IDP1, w.provider.login)
	}},
	{"`idp2`", func(w *world) func() *http.Response {
		w.idp2(tenant)
		w.config.Auth.IDP2.Groups = []string{"name of 007"}
		return w.atProvider(connector.IDP2, w.provider.login)
	}},
	{"`gitforge1`", func(w *world) func() *http.Response {
		h := w.gitForge1()
		w.config.Auth.GitForge1.Orgs = []model.GitForge1Org{{Name: "acme", Teams: []string{"team-7"}}}
		return w.atProvider(connector.GitForge1, h.login)
	}},
	{"`gitforge2`", func(w *world) func() *http.Response {
		h := w.gitForge2()
		w.config.Auth.GitForge2.Groups = []string{"acme/dev"}
		return w.atProvider(connector.GitForge2, h.login)
	}},
	{"`clustermanager`", func(w *world) func() *http.Response {
		w.clusterManager()
		return func() *http.Response {
			b := w.browser()
			return w.taken(b, b.enterToken(userToken, nil))
		}
	}},
}

// fault is what a proxy does to one answer of a provider.
type fault struct {
	name string
	// field is the field that it is about. Empty: it is about all of the answer.
	field string
	// temporary tells that it passes by itself, and harmless that it changes nothing that anybody reads.
	temporary, harmless bool
	do                  func(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc)
	// claims changes the claims of an ID token in place of an answer.
	claims func(map[string]any)
}

func answersWith(status int) fault {
	return fault{name: strconv.Itoa(status), temporary: status != http.StatusForbidden, do: func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.WriteHeader(status)
	}}
}

// hangs is the name of the fault that takes as long as the platform waits.
const hangs = "no answer"

// faults are those that any answer can have.
var faults = []fault{
	answersWith(http.StatusForbidden), answersWith(http.StatusTooManyRequests), answersWith(http.StatusInternalServerError),
	answersWith(http.StatusBadGateway), answersWith(http.StatusServiceUnavailable),
	{name: "a reset", temporary: true, do: func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }},
	{name: hangs, temporary: true, do: func(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}},
	{name: "2 MB", do: func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"x": "`+strings.Repeat("x", 2<<20)+`"}`)
	}},
	{name: "a field more", harmless: true, do: edited(func(answer any) any { return withField(answer) })},
}

// edited changes an answer in JSON.
func edited(change func(any) any) func(http.ResponseWriter, *http.Request, http.HandlerFunc) {
	return func(w http.ResponseWriter, r *http.Request, answer http.HandlerFunc) {
		recorder := httptest.NewRecorder()
		answer(recorder, r)
		var object any
		if json.Unmarshal(recorder.Body.Bytes(), &object) == nil {
			recorder.Body.Reset()
			_ = json.NewEncoder(recorder.Body).Encode(change(object))
		}
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
	}
}

// withField adds a field to each object of a value.
func withField(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			withField(inner)
		}
		value["x_of_this_vendor"] = map[string]any{"since": 7.5, "is": []any{nil, true}}
	case []any:
		for _, inner := range value {
			withField(inner)
		}
	}
	return value
}

// fields returns the fields of a value, with [] for the elements of a list.
func fields(value any, at string, found map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			path := strings.TrimPrefix(at+"."+name, ".")
			found[path] = true
			fields(inner, path, found)
		}
	case []any:
		for _, inner := range value {
			fields(inner, at+"[]", found)
		}
	}
}

// replaced replaces each field at a path.
func replaced(value any, path []string, by func(any) any) any {
	name, list := strings.CutSuffix(path[0], "[]")
	each := func(inner any) any {
		elements, _ := inner.([]any)
		for i, element := range elements {
			elements[i] = replaced(element, path[1:], by)
		}
		return inner
	}
	object, _ := value.(map[string]any)
	switch inner, has := object[name]; {
	case list && name == "":
		return each(value)
	case !has:
	case list:
		each(inner)
	case len(path) == 1:
		object[name] = by(inner)
	default:
		replaced(inner, path[1:], by)
	}
	return value
}

// ofAnotherType returns a value of a type that a field does not have.
func ofAnotherType(value any) any {
	if _, isText := value.(string); isText {
		return map[string]any{"a": "b"}
	}
	return "x y"
}

// fieldFaults returns the faults of each field of an answer, or of the claims of an ID token.
func fieldFaults(answer any, claims bool) []fault {
	found := map[string]bool{}
	fields(answer, "", found)
	var made []fault
	for _, kind := range []struct {
		name string
		by   func(any) any
	}{{"null", func(any) any { return nil }}, {"another type", ofAnotherType}} {
		for _, path := range slices.Sorted(maps.Keys(found)) {
			one := fault{name: kind.name, field: path}
			change := func(answer any) any { return replaced(answer, strings.Split(path, "."), kind.by) }
			if claims {
				one.claims = func(given map[string]any) { change(given) }
			} else {
				one.do = edited(change)
			}
			made = append(made, one)
		}
	}
	return made
}

// answered is what a fault leads to.
type answered struct {
	// outcome is the outcome of a sign-in in the audit, or what became of one that was renewed. detail is what the audit or the log says.
	outcome, detail string
	// subject identifies the person, and groups are theirs.
	subject string
	groups  []string
}

// without returns what is said without the address of the provider, which differs from run to run.
func (a answered) without(address string) answered {
	a.detail = strings.ReplaceAll(a.detail, address, "https://idp.example.com")
	return a
}

func (a answered) String() string {
	if a.detail == "" {
		return a.outcome
	}
	return a.outcome + ": " + a.detail
}

// Outcomes that the audit does not have.
const (
	signedIn   = "signed in"
	stillThere = "as before"
	endedAll   = "ended"
	askedLater = "asked later"
	notAsked   = "not asked"
)

// inFlow runs one flow at a provider: a sign-in, or what follows when the provider is asked again. Only there, the proxy stands before a path. It
// returns what came of it, and the answers of the provider by path.
func (p askedProvider) inFlow(t *testing.T, later bool, path string, broken *fault) (answered, map[string]any) {
	t.Helper()
	w := newWorld(t)
	var events processtest.Log
	w.audited(&events)
	w.config.Audit.Level = nil
	signIn := p.prepare(w)
	long := int64(0)
	w.config.Auth.LoginAccessKeyTTLSeconds = &long
	var key secret.String
	if later {
		answer := signIn()
		if key = secret.String(answer.Header.Get("X-Key")); key == "" {
			t.Fatalf("%d %s", answer.StatusCode, text(t, answer))
		}
	}
	var mu sync.Mutex
	answers := map[string]any{}
	w.provider.proxy = func(out http.ResponseWriter, r *http.Request, answer http.HandlerFunc) {
		if broken != nil && broken.do != nil && r.URL.Path == path {
			broken.do(out, r, answer)
			return
		}
		edited(func(object any) any {
			mu.Lock()
			defer mu.Unlock()
			// A page of a list may be empty.
			if _, has := answers[r.URL.Path]; !has {
				answers[r.URL.Path] = object
			}
			return object
		})(out, r, answer)
	}
	if before := w.provider.claims; broken == nil || broken.claims != nil {
		w.provider.claims = func(claims map[string]any) {
			if before != nil {
				before(claims)
			}
			if broken != nil {
				broken.claims(claims)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[idToken] = maps.Clone(claims)
		}
	}
	if later {
		return w.askedAgain(t, key).without(w.provider.server.URL), answers
	}
	answer := signIn()
	said := answered{outcome: signedIn}
	if answer.StatusCode != http.StatusSeeOther {
		said.outcome, said.detail = lastOutcome(t, events.String())
		if len(w.stored("users"))+len(w.stored("ownedaccesskeys")) > 0 {
			t.Errorf("%s: there is a user or a key", said)
		}
		return said.without(w.provider.server.URL), answers
	}
	found := w.onlyUser(t).Spec
	said.subject, said.groups = found.Subject, found.SSOGroups
	return said, answers
}

// idToken stands for the path of an answer.
const idToken = "the ID token"

// onlyUser returns the one user that there is: the person.
func (w *world) onlyUser(t *testing.T) *model.User {
	t.Helper()
	records := w.stored("users")
	if len(records) != 1 {
		t.Fatalf("%d users", len(records))
	}
	return w.user(records[0].Name)
}

// askedAgain asks the provider about somebody who has signed in.
func (w *world) askedAgain(t *testing.T, key secret.String) answered {
	t.Helper()
	k := kept{w, key, w.stored("ownedaccesskeys")[0].Name}
	w.clock.forward(13 * time.Hour)
	done := w.run()
	var last struct {
		Reason, Error string
	}
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "a provider refuses somebody") || strings.Contains(line, "a provider cannot say") {
			if err := json.Unmarshal([]byte(line), &last); err != nil {
				t.Error(err)
			}
		}
	}
	switch {
	case done == revalidate.Counts{Kept: 1}:
		found := w.onlyUser(t).Spec
		return answered{outcome: stillThere, subject: found.Subject, groups: found.SSOGroups}
	case done == revalidate.Counts{Unanswered: 1} && k.works():
		return answered{outcome: askedLater, detail: last.Error}
	case done.Ended == 1 && !k.works():
		return answered{outcome: endedAll, detail: last.Reason}
	}
	t.Errorf("%+v, and the key works: %v", done, k.works())
	return answered{}
}

// lastOutcome returns what the last event says of a sign-in.
func lastOutcome(t *testing.T, events string) (outcome, detail string) {
	t.Helper()
	for line := range strings.Lines(events) {
		var event struct{ Annotations map[string]string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if said := event.Annotations[annotations.AnnotationOutcome]; said != "" {
			outcome, detail = said, event.Annotations[annotations.AnnotationDetail]
		}
	}
	if outcome == "" {
		t.Errorf("no event has an outcome: %s", events)
	}
	return outcome, detail
}

// both are what a fault leads to when somebody signs in, and when the provider is asked again about them.
type both struct{ first, later answered }

// faultResult is what one fault of one answer of a provider leads to.
type faultResult struct {
	provider, answer string
	broken           fault
	both
}

// outcomes are two cells of a row: what a sign-in leads to, and what follows when the provider is asked again.
type outcomes struct{ first, later string }

// outcomes describes the result. It leaves out the reason of the later outcome if the sign-in has the same reason. NAME stands for the claim that the
// fault is about.
func (r faultResult) outcomes() outcomes {
	named := func(result answered) answered {
		words := strings.Split(result.detail, " ")
		for i := range words {
			if i > 0 && words[i-1] == "claim" && words[i] == r.broken.field {
				words[i] = "NAME"
			}
		}
		result.detail = strings.Join(words, " ")
		return result
	}
	if r.later.detail == r.first.String() {
		return outcomes{named(r.first).String(), r.later.outcome}
	}
	return outcomes{named(r.first).String(), named(r.later).String()}
}

// merged returns the outcomes that stand for both, and whether there are any: an outcome stands for an answer that is not asked for, too.
func (o outcomes) merged(other outcomes) (outcomes, bool) {
	cell := func(a, b string) (string, bool) {
		if a == notAsked {
			return b, true
		}
		return a, a == b || b == notAsked
	}
	first, sameFirst := cell(o.first, other.first)
	later, sameLater := cell(o.later, other.later)
	return outcomes{first, later}, sameFirst && sameLater
}

// answerRow is a row of the page: what some faults lead to at some providers.
type answerRow struct {
	outcomes
	providers []string
	faults    []fault
}

// rowsOf returns the rows of results. Faults that lead to the same at the same providers have one row.
func rowsOf(results []faultResult) []answerRow {
	type key struct{ name, field string }
	var keys []key
	byFault := map[key][]answerRow{}
	for _, result := range results {
		k := key{result.broken.name, result.broken.field}
		if _, has := byFault[k]; !has {
			keys = append(keys, k)
		}
		rows, isNew := byFault[k], true
		for i := range rows {
			if merged, same := rows[i].merged(result.outcomes()); same {
				rows[i].outcomes, rows[i].providers, isNew = merged, append(rows[i].providers, result.provider), false
				break
			}
		}
		if isNew {
			rows = append(rows, answerRow{result.outcomes(), []string{result.provider}, []fault{result.broken}})
		}
		byFault[k] = rows
	}
	var all []answerRow
	for _, k := range keys {
		for _, row := range byFault[k] {
			same := func(other answerRow) bool {
				return other.outcomes == row.outcomes && slices.Equal(other.providers, row.providers)
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i].faults = append(all[i].faults, row.faults...)
			} else {
				all = append(all, row)
			}
		}
	}
	return all
}

// answerTables returns the tables of the page: one of the faults that lead to the same in every answer, and one of the other faults of each answer.
func answerTables(results []faultResult) string {
	var general []fault
	var page strings.Builder
	page.WriteString("\n## Any answer\n\n| what comes | a sign-in | when asked again |\n|---|---|---|\n")
	whole := slices.DeleteFunc(slices.Clone(results), func(r faultResult) bool { return r.broken.field != "" })
	// A row of all answers has each provider once for each of its answers and of the faults.
	for i := range whole {
		whole[i].provider = ""
	}
	for _, row := range rowsOf(whole) {
		ofFault := func(r faultResult) bool { return r.broken.name != row.faults[0].name }
		if len(row.providers) == len(slices.DeleteFunc(slices.Clone(whole), ofFault)) {
			general = append(general, row.faults...)
			fmt.Fprintf(&page, "| %s | %s | %s |\n", listed(row.faults), row.first, row.later)
		}
	}
	var answers []string
	byAnswer := map[string][]faultResult{}
	for _, r := range results {
		if !slices.Contains(answers, r.answer) {
			answers = append(answers, r.answer)
		}
		byAnswer[r.answer] = append(byAnswer[r.answer], r)
	}
	for _, answer := range answers {
		writeAnswer(&page, answer, byAnswer[answer], general)
	}
	return page.String()
}

// writeAnswer writes the section of an answer, without the faults that the table of all answers has.
func writeAnswer(page *strings.Builder, answer string, results []faultResult, general []fault) {
	var providers, once []string
	for _, r := range results {
		if !slices.Contains(providers, r.provider) {
			providers = append(providers, r.provider)
		}
		if r.later.outcome == notAsked && !slices.Contains(once, r.provider) {
			once = append(once, r.provider)
		}
	}
	fmt.Fprintf(page, "\n## %s\n\nFrom %s", strings.ToUpper(answer[:1])+answer[1:], strings.Join(providers, ", "))
	if len(once) > 0 {
		fmt.Fprintf(page, "; not asked again: %s", strings.Join(once, ", "))
	}
	if len(providers) == 1 {
		page.WriteString(".\n\n| what comes | a sign-in | when asked again |\n|---|---|---|\n")
	} else {
		page.WriteString(".\n\n| what comes | from | a sign-in | when asked again |\n|---|---|---|---|\n")
	}
	own := slices.DeleteFunc(slices.Clone(results), func(r faultResult) bool {
		return r.broken.field == "" && slices.ContainsFunc(general, func(f fault) bool { return f.name == r.broken.name })
	})
	for _, row := range rowsOf(own) {
		from := ""
		if len(row.providers) < len(providers) {
			from = strings.Join(row.providers, ", ")
		}
		cells := []string{listed(row.faults), from, row.first, row.later}
		if len(providers) == 1 {
			cells = slices.Delete(cells, 1, 2)
		}
		fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
	}
}

// answerNames are the names of the answers on the page, by path.
var answerNames = map[string]string{
	idToken: "ID token", "/.well-known/openid-configuration": "metadata", "/" + tenant + "/v2.0/.well-known/openid-configuration": "metadata",
	"/keys": "keys", "/token": "token endpoint", "/userinfo": "UserInfo",
	"/robot": "token endpoint for the service account", "/dir/admin/directory/v1/groups": "groups of the directory",
	"/graph/v1.0/me/getMemberGroups": "groups of the account", "/graph/v1.0/directoryObjects/getByIds": "names of the groups",
	"/forge1/login/oauth/access_token": "token endpoint", "/forge1api/user": "account", "/forge1api/user/emails": "addresses",
	"/forge1api/user/memberships/orgs": "organizations", "/forge1api/user/teams": "teams",
	"/forge2/oauth/token": "token endpoint", "/forge2/api/v4/user": "account", "/forge2/oauth/userinfo": "UserInfo",
	"/v3/users": "user", "/v3/principals": "groups",
}

// Each provider behind a proxy that breaks one answer at a time, of each request, when somebody signs in and when the provider is asked again about
// them. What passes by itself is never called a mistake of the settings, and ends nothing; nobody becomes somebody else or gets a group
// more. docs/provider-answers.md has the results. Source: ADR-0031, ADR-0035.
func TestAnswers(t *testing.T) {
	t.Parallel()
	results := make([][]faultResult, len(askedProviders))
	t.Run("providers", func(t *testing.T) {
		for i, provider := range askedProviders {
			t.Run(provider.name, func(t *testing.T) {
				t.Parallel()
				results[i] = provider.breakAnswers(t)
			})
		}
	})
	if t.Failed() {
		return
	}
	page := answersHead
	if !testing.Short() {
		page += answerTables(slices.Concat(results...))
		if *update {
			if err := os.WriteFile(answersPage, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept, err := os.ReadFile(answersPage)
	if testing.Short() {
		kept = kept[:min(len(kept), len(page))] // it has no results for the tables
	}
	if err != nil || string(kept) != page {
		t.Errorf("%s is not what the answers lead to: run go test ./test/signin -run '^TestAnswers$' -update (%v)", answersPage, err)
	}
}

// breakAnswers breaks each answer of a provider in each way, and returns the results. A short test breaks them in two ways that pass by themselves.
func (p askedProvider) breakAnswers(t *testing.T) []faultResult {
	good, answers := p.inFlow(t, false, "", nil)
	goodLater, answersLater := p.inFlow(t, true, "", nil)
	if good.outcome != signedIn || goodLater.outcome != stillThere || good.subject != goodLater.subject {
		t.Fatalf("%s; %s", good, goodLater)
	}
	every := maps.Clone(answers)
	maps.Copy(every, answersLater)
	var results []faultResult
	for _, path := range slices.Sorted(maps.Keys(every)) {
		if answerNames[path] == "" {
			t.Errorf("the answer at %s has no name", path)
		}
		tried := fieldFaults(every[path], path == idToken)
		if path != idToken {
			tried = slices.Concat(faults, tried)
		}
		if testing.Short() {
			tried = slices.DeleteFunc(tried, func(broken fault) bool { return broken.name != "503" && broken.name != "a reset" })
		}
		found := make([]both, len(tried))
		t.Run(answerNames[path], func(t *testing.T) {
			for i, broken := range tried {
				t.Run(broken.name+" "+broken.field, func(t *testing.T) {
					t.Parallel()
					found[i] = both{answered{outcome: notAsked}, answered{outcome: notAsked}}
					if _, asked := answers[path]; asked {
						found[i].first, _ = p.inFlow(t, false, path, &broken)
					}
					if _, asked := answersLater[path]; asked {
						found[i].later, _ = p.inFlow(t, true, path, &broken)
					}
					wantRight(t, broken, found[i].first, good)
					wantRight(t, broken, found[i].later, goodLater)
				})
			}
		})
		for i := range tried {
			results = append(results, faultResult{p.name, answerNames[path], tried[i], found[i]})
		}
	}
	return results
}

// listed names faults, and the fields of each kind of fault together.
func listed(faults []fault) string {
	var names []string
	byKind := map[string]int{}
	for _, broken := range faults {
		if broken.field == "" {
			names = append(names, broken.name)
		} else if at, has := byKind[broken.name]; has {
			names[at] += ", `" + broken.field + "`"
		} else {
			byKind[broken.name] = len(names)
			names = append(names, broken.name+" in `"+broken.field+"`")
		}
	}
	return strings.Join(names, ", ")
}

// wantRight fails the test unless what a fault leads to keeps the rules.
func wantRight(t *testing.T, broken fault, got, good answered) {
	t.Helper()
	switch {
	case got.outcome == notAsked:
	case broken.harmless && got.String() != good.String():
		t.Errorf("a harmless fault leads to %s", got)
	case broken.temporary && (got.outcome == endedAll || got.outcome == "misconfigured" || strings.HasPrefix(got.detail, "misconfigured")):
		t.Errorf("what passes by itself leads to %s", got)
	}
	if got.subject != "" && got.subject != good.subject {
		t.Errorf("a fault makes the person %q", got.subject)
	}
	for _, group := range got.groups {
		if !slices.Contains(good.groups, group) {
			t.Errorf("a fault gives the group %q", group)
		}
	}
}

const answersHead = `# What a provider may answer

This page says what a broken answer of a provider leads to, at a sign-in and when the platform asks again about somebody who has signed in.
A test breaks each answer in each way, and writes this page.
In it, each connector lets in members of one group alone, and ` + "`oidc` has `getUserInfo`" + `.

The audit event of a sign-in has the first word as ` + "`signin-outcome`" + `, and the rest as ` + "`signin-detail`" + `, as has the log:

| outcome | the person reads |
|---|---|
| ` + "`signed in`" + ` | the page that asks whether the program may act for them |
| ` + "`provider_refused`" + ` | 400, the provider did not sign you in: start again where you began |
| ` + "`provider_unreachable`" + ` | 503, the provider cannot be reached: try again later |
| ` + "`not_admitted`" + ` | 403, your account may not use this platform: ask an admin of the platform |
| ` + "`misconfigured`" + ` | 400, the sign-in is not set up correctly: show this page to an admin of the platform |

When the provider is asked again:

| result | means |
|---|---|
| ` + "`as before`" + ` | the provider has confirmed the person; their groups are those that it names now |
| ` + "`asked later`" + ` | the platform asks again; the keys of the sign-in work for 24 hours after the last answer |
| ` + "`ended`" + ` | all credentials of the person have ended |

The log of ` + "`revalidatelogins`" + ` has the reason of the last two. Where the tables give none, it is the reason of the sign-in.

` + "`not asked`" + ` means that the platform does not need the answer then. A name with ` + "`[]`" + ` is a field of each element of a list, and NAME is the
claim that the row names. Where ` + "`from`" + ` is empty, the row holds for each provider that gives the answer.
`
