package signin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/functions/finishlogin"
	"management.platform.sh/functions/startlogin"
	"management.platform.sh/functions/trysignin"
	"management.platform.sh/local/client"
	"management.platform.sh/local/doctor"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/signin/logins"
	"management.platform.sh/shared/signin/trial"
	"management.platform.sh/test/signin/samltest"
)

// wantNobody fails the test if there is a user, a team or a key.
func (w *world) wantNobody() {
	w.t.Helper()
	for _, resource := range []string{"users", "teams", "ownedaccesskeys"} {
		if found := w.stored(resource); len(found) > 0 {
			w.t.Errorf("there are %d %s", len(found), resource)
		}
	}
}

// follow opens the address of a trial and signs in at the provider, as a person does.
func (w *samlWorld) follow(b *browser, address string) *http.Response {
	w.t.Helper()
	answer := b.send(address, nil)
	location := answer.Header.Get("Location")
	switch {
	case answer.StatusCode != http.StatusSeeOther:
		return answer
	case strings.HasPrefix(location, w.provider.server.URL):
		return b.send(base+"/auth/oidc/callback?"+w.provider.login(location).Encode(), nil)
	default:
		request := w.idp.Read(w.t, location)
		return w.post(w.idp.Answer(request).XML(w.t), request.RelayState)
	}
}

// A trial says what a sign-in would do, at a provider whose answer is good and at one whose answer is refused. It makes nobody a user, also afterwards.
func TestTrial(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, connector string
		change           func(*samlWorld)
		status           int
		want             func(*model.SignInTrialReport) bool
	}{
		{"OpenID Connect", "oidc", nil, 200, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "" && slices.Contains(found.Claims, "preferred_username") && found.ID == "1001" && found.NewUser == "ana" &&
				slices.Equal(found.Groups, []string{"dev"}) && slices.Equal(found.NewTeams, []string{"dev"}) && found.Email == "ana@example.com"
		}},
		{"a claim that does not come", "oidc", func(w *samlWorld) { w.config.Auth.OIDC.GroupsClaim = "grps" }, 200, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "" && slices.Contains(found.Absent, `groupsClaim "grps"`) && len(found.Groups) == 0
		}},
		{"a check that fails", "oidc", func(w *samlWorld) {
			w.provider.claims = func(claims map[string]any) { claims["aud"] = "another" }
		}, 400, func(found *model.SignInTrialReport) bool {
			return strings.Contains(found.Refusal, "is not for the client")
		}},
		{"a required group", "oidc", func(w *samlWorld) { w.config.Auth.OIDC.Groups = []string{"ops"} }, 200, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "not_admitted: in none of the required groups"
		}},
		{"no new users", "oidc", func(w *samlWorld) { w.config.Auth.DisableUserCreation = true }, 200, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "not_set_up: disableUserCreation" && found.NewUser == ""
		}},
		{"no new teams", "oidc", func(w *samlWorld) { w.config.Auth.DisableTeamCreation = true }, 200, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "" && len(found.NewTeams) == 0
		}},
		{"SAML", "saml", nil, 200, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "" && slices.Contains(found.Claims, "groups") && found.ID == "1001" && found.NewUser != ""
		}},
		{"SAML with another issuer", "saml", func(w *samlWorld) { w.config.Auth.SAML.SSOIssuer = "https://another.example" }, 400, func(found *model.SignInTrialReport) bool {
			return strings.Contains(found.Refusal, "its Issuer is not ssoIssuer")
		}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newSAML(t)
			if row.change != nil {
				row.change(w)
			}
			trials := trial.Open(w.env)
			begun, err := trials.Begin(t.Context(), row.connector, "")
			if err != nil {
				t.Fatal(err)
			}
			if found, _, err := trials.End(t.Context(), begun.State, ""); found != nil || err != nil {
				t.Errorf("before anybody has signed in: %v, %v", found, err)
			}
			b := w.browser()
			answer := w.follow(b, begun.Address)
			if body := text(t, answer); answer.StatusCode != row.status || row.status == http.StatusOK && !strings.Contains(body, "Nobody was signed in") {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
			for _, record := range w.stored(logins.Resource) {
				if strings.Contains(string(record.Object), `"1001`) || strings.Contains(record.Name+string(record.Object), begun.State) {
					t.Errorf("the state has %s %s", record.Name, record.Object)
				}
			}
			// Nothing leads on from there.
			for name := range b.cookies {
				id := strings.TrimPrefix(name, "__Host-signin-")
				for _, path := range []string{"/auth/confirm?id=", "/auth/resume?id="} {
					if next := b.send(base+path+id, nil); next.StatusCode != http.StatusBadRequest {
						t.Errorf("%s: %d", path, next.StatusCode)
					}
				}
			}
			found, _, err := trials.End(t.Context(), begun.State, "")
			if err != nil || found == nil || !row.want(found) {
				t.Errorf("%+v, %v", found, err)
			}
			if left := w.stored(logins.Resource); len(left) > 0 {
				t.Errorf("%d records are left", len(left))
			}
			w.wantNobody()
			if _, _, err := trials.End(t.Context(), begun.State, ""); !errors.Is(err, trial.ErrUnknown) {
				t.Error("a trial has two reports")
			}
		})
	}
}

// Nobody signs somebody in with a state that they have chosen: a trial that no program has stored is refused, whatever the provider says.
func TestForgedTrial(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	chosen := strings.Repeat("a", 43)
	for _, connector := range []string{"oidc", "saml"} {
		b := w.browser()
		answer := w.follow(b, base+"/auth/"+connector+"/login?trial="+chosen)
		if connector == "saml" {
			// The post has no cookie. What goes on is the browser.
			if answer.StatusCode != http.StatusSeeOther {
				t.Fatalf("%d %s", answer.StatusCode, text(t, answer))
			}
			answer = b.send(answer.Header.Get("Location"), nil)
		}
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", connector, answer.StatusCode, text(t, answer))
		}
	}
	w.wantNobody()
	for _, query := range []url.Values{{"trial": {""}}, {"trial": {"short"}}, {"trial": {chosen, chosen}}} {
		if answer := w.browser().send(base+"/auth/oidc/login?"+query.Encode(), nil); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", query, answer.StatusCode)
		}
	}
	// A sign-in that is not a trial does not become one, and the answer of another browser is not the one of the trial.
	trials := trial.Open(w.env)
	begun, err := trials.Begin(t.Context(), "oidc", "")
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	query := w.provider.login(b.send(begun.Address, nil).Header.Get("Location"))
	if answer := w.browser().send(base+"/auth/oidc/callback?"+query.Encode(), nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("another browser: %d", answer.StatusCode)
	}
	if answer := w.browser().prove(); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("a sign-in beside it: %d", answer.StatusCode)
	}
	if found, _, err := trials.End(t.Context(), begun.State, ""); found != nil || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	// The state of a trial at one connector is none at another.
	if answer := w.follow(w.browser(), strings.Replace(begun.Address, "/oidc/", "/saml/", 1)); answer.StatusCode == http.StatusOK {
		t.Errorf("another connector: %d", answer.StatusCode)
	}
	if found, _, err := trials.End(t.Context(), begun.State, ""); found != nil || err != nil {
		t.Errorf("after the answer of another connector: %v, %v", found, err)
	}
	w.clock.forward(10 * time.Minute)
	if answer := b.send(base+"/auth/oidc/callback?"+query.Encode(), nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("too late: %d", answer.StatusCode)
	}
}

// The doctor prints the address, and reports what came.
func TestDoctorSignsIn(t *testing.T) {
	t.Parallel()
	w := newSAML(t)
	w.config.Auth.OIDC.GroupsClaim = "grps"
	w.config.Auth.SAML.CAData = samltest.CAData(w.idp.Certificate)
	if said := w.write(false); said != "" {
		t.Fatal(said)
	}
	ring, err := w.env.Encryption(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	deployment := doctor.Deployment{
		Settings: settings.Settings{Redis: settings.Redis{URL: secret.String(w.redis)}}, Keyring: ring, Here: true, Version: "test", Now: w.clock.Now,
	}
	report, err := doctor.SignIn(t.Context(), deployment, "oidc", func(address string) {
		if answer := w.follow(w.browser(), address); answer.StatusCode != http.StatusOK {
			t.Errorf("%d %s", answer.StatusCode, text(t, answer))
		}
	})
	if err != nil || report.Level != doctor.Warning {
		t.Errorf("%+v, %v", report, err)
	}
	var lines []string
	for _, finding := range report.Findings {
		lines = append(lines, finding.Is)
	}
	for _, wanted := range []string{"all checks of the answer have passed", `settings whose claims did not come: groupsClaim "grps"`, "the ID of the person: 1001"} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, wanted) }) {
			t.Errorf("no %q in %q", wanted, lines)
		}
	}
	w.wantNobody()
	deployment.Keyring = nil
	if _, err := doctor.SignIn(t.Context(), deployment, "oidc", nil); err == nil {
		t.Error("it needs the encryption key")
	}
}

// The program asks a platform with the access key of platform login, and reports the same lines.
func TestDoctorAsksThePlatform(t *testing.T) {
	s := serve(t)
	s.config.Auth.OIDC.GroupsClaim = "grps"
	signedIn := func(groups ...string) {
		t.Helper()
		made, err := resource.Create(t.Context(), kinds.AccessKeys(s.env), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: root, Object: &model.OwnedAccessKey{Spec: model.OwnedAccessKeySpec{User: "root", Groups: groups}},
		})
		if err != nil {
			t.Fatal(err)
		}
		login := s.login(nil)
		login.KeyStdin, login.Input = true, strings.NewReader(made.Object.Spec.Key)
		if err := login.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	try := func(connector string) (*model.SignInTrialReport, error) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		return client.TrySignIn(ctx, s.server.URL, s.ca, connector, func(address string) {
			b := s.browser()
			query := s.provider.login(b.send(address, nil).Header.Get("Location"))
			if answer := b.send(s.server.URL+"/auth/oidc/callback?"+query.Encode(), nil); answer.StatusCode != http.StatusOK {
				t.Errorf("%d %s", answer.StatusCode, text(t, answer))
				stop()
			}
		})
	}
	if _, err := try("oidc"); err == nil || !strings.Contains(err.Error(), "not signed in") {
		t.Errorf("without a key: %v", err)
	}
	signedIn()
	if _, err := try("oidc"); err == nil || !strings.Contains(err.Error(), identity.Admins) {
		t.Errorf("not an admin: %v", err)
	}
	signedIn(identity.Admins)
	if _, err := try("saml"); err == nil || !strings.Contains(err.Error(), "spec.connector") {
		t.Errorf("no such connector: %v", err)
	}
	found, err := try("oidc")
	if err != nil {
		t.Fatal(err)
	}
	report := doctor.TrialReport(doctor.Deployment{Version: "test", Now: s.clock.Now}, found)
	if report.Level != doctor.Warning || report.Version != "test" || len(report.Findings) < 5 {
		t.Errorf("%+v", report)
	}
}

const trialsPath = "/apis/management.platform.sh/v1/signintrials"

// tryWorld is a platform at which admins try sign-ins over the API, with its audit.
type tryWorld struct {
	*samlWorld
	events processtest.Log
	keys   map[string]secret.String
}

func newTryWorld(t *testing.T) *tryWorld {
	t.Helper()
	w := &tryWorld{samlWorld: newSAML(t), keys: map[string]secret.String{}}
	w.audited(&w.events)
	w.handler = w.server.Mount(startlogin.Function, finishlogin.Function, trysignin.Function)
	may := func(verb string) *model.Scope {
		return &model.Scope{Rules: []model.ScopeRule{{
			Verbs: []string{verb}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"signintrials"}}},
		}}}
	}
	for name, spec := range map[string]model.OwnedAccessKeySpec{
		"root":    {User: "root", Groups: []string{identity.Admins}},
		"other":   {User: "other", Groups: []string{identity.Admins}},
		"ana":     {User: "ana"},
		"scoped":  {User: "root", Groups: []string{identity.Admins}, Scope: may("create")},
		"reader":  {User: "root", Groups: []string{identity.Admins}, Scope: may("get")},
		"project": {User: "root", Groups: []string{identity.Admins}, Scope: &model.Scope{Projects: []model.ScopeProject{{Project: "shop"}}}},
		"auditor": {User: "root", Groups: []string{identity.Admins}, Scope: &model.Scope{ReadOnly: true, Roles: []model.ScopeRole{{Role: "platformCLI"}}}},
	} {
		made, err := resource.Create(t.Context(), kinds.AccessKeys(w.env), resource.CreateInput[*model.OwnedAccessKey]{
			Caller: root, Object: &model.OwnedAccessKey{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.keys[name] = secret.String(made.Object.Spec.Key)
	}
	return w
}

// ask sends a request to the API with the key of a name, and returns the status, the answer, and the fields that a refusal names.
func (w *tryWorld) ask(key, query, spec string) (code int, answer model.SignInTrialStatus, fields []string) {
	w.t.Helper()
	body := `{"apiVersion":"management.platform.sh/v1","kind":"SignInTrial","spec":` + spec + `}`
	request := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, base+trialsPath+query, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+w.keys[key].Reveal())
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusCreated {
		var status metav1.Status
		if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil {
			w.t.Fatal(err)
		}
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		return recorder.Code, answer, fields
	}
	var trial model.SignInTrial
	decoder := json.NewDecoder(bytes.NewReader(recorder.Body.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&trial); err != nil || trial.Kind != "SignInTrial" || trial.Spec.Trial != "" {
		w.t.Errorf("%s, %v", recorder.Body, err)
	}
	return recorder.Code, trial.Status, nil
}

// begin begins a trial as root.
func (w *tryWorld) begin(connector string) model.SignInTrialStatus {
	w.t.Helper()
	code, begun, _ := w.ask("root", "", fmt.Sprintf(`{"connector":%q}`, connector))
	if code != http.StatusCreated || begun.Phase != model.SignInTrialPending || begun.Trial == "" || !strings.Contains(begun.Address, begun.Trial) ||
		begun.Report != nil || begun.ExpirationTimestamp == nil || !begun.ExpirationTimestamp.Equal(&metav1.Time{Time: w.clock.Now().Add(10 * time.Minute)}) {
		w.t.Fatalf("%d %+v", code, begun)
	}
	return begun
}

// report is the spec that asks for the report of a trial.
func reportOf(begun model.SignInTrialStatus) string { return fmt.Sprintf(`{"trial":%q}`, begun.Trial) }

// An admin begins a trial over the API, and learns what came of it, once. Nobody is signed in. Source: ADR-0031.
func TestTrialOverTheAPI(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		about, connector, key string
		change                func(*samlWorld)
		want                  func(*model.SignInTrialReport) bool
	}{
		{"OpenID Connect", "oidc", "root", nil, func(found *model.SignInTrialReport) bool {
			return found.Refusal == "" && slices.Contains(found.Claims, "preferred_username") && found.NewUser == "ana" && slices.Equal(found.NewTeams, []string{"dev"})
		}},
		{"a scope that permits it", "oidc", "scoped", nil, func(found *model.SignInTrialReport) bool { return found.ID == "1001" }},
		{"a check that fails", "oidc", "root", func(w *samlWorld) {
			w.provider.claims = func(claims map[string]any) { claims["aud"] = "another" }
		}, func(found *model.SignInTrialReport) bool {
			return strings.Contains(found.Refusal, "is not for the client")
		}},
		{"SAML", "saml", "root", nil, func(found *model.SignInTrialReport) bool { return found.Refusal == "" && found.ID == "1001" }},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newTryWorld(t)
			if row.change != nil {
				row.change(w.samlWorld)
			}
			begun := w.begin(row.connector)
			if code, pending, _ := w.ask(row.key, "", reportOf(begun)); code != http.StatusCreated || pending.Phase != model.SignInTrialPending ||
				pending.Report != nil || !pending.ExpirationTimestamp.Equal(begun.ExpirationTimestamp) || pending.Address+pending.Trial != "" {
				t.Errorf("before anybody has signed in: %d %+v", code, pending)
			}
			w.follow(w.browser(), begun.Address)
			// A dry run shows the report, and leaves it where it is.
			if code, done, _ := w.ask(row.key, "?dryRun=All", reportOf(begun)); code != http.StatusCreated || done.Report == nil {
				t.Errorf("a dry run: %d %+v", code, done)
			}
			code, done, _ := w.ask(row.key, "", reportOf(begun))
			if code != http.StatusCreated || done.Phase != model.SignInTrialComplete || done.Report == nil || !row.want(done.Report) {
				t.Errorf("%d %+v %+v", code, done, done.Report)
			}
			if code, _, fields := w.ask(row.key, "", reportOf(begun)); code != http.StatusUnprocessableEntity || !slices.Equal(fields, []string{"spec.trial"}) {
				t.Errorf("a second time: %d %v", code, fields)
			}
			if left := w.stored(logins.Resource); len(left) > 0 || len(w.stored("users")) > 0 || len(w.stored("teams")) > 0 || len(w.stored("ownedaccesskeys")) != len(w.keys) {
				t.Errorf("%d records are left, or there is a user, a team or a key", len(left))
			}
		})
	}
}

// What does not begin or report a trial says which field is wrong, and stores nothing.
func TestTrialRefused(t *testing.T) {
	t.Parallel()
	w := newTryWorld(t)
	w.config.Auth.GitForge1 = &model.GitForge1Provider{ClientID: "c", RedirectURI: "https://platform.example/elsewhere"}
	unknown := strings.Repeat("a", 43)
	for about, row := range map[string]struct {
		key, query, spec string
		code             int
		fields           []string
	}{
		"no credential":                        {"", "", `{"connector":"oidc"}`, 401, nil},
		"not an admin":                         {"ana", "", `{"connector":"oidc"}`, 403, nil},
		"not an admin, a report":               {"ana", "", `{"trial":"` + unknown + `"}`, 403, nil},
		"a scope that reads":                   {"reader", "", `{"connector":"oidc"}`, 403, nil},
		"a scope of a project":                 {"project", "", `{"connector":"oidc"}`, 403, nil},
		"an auditor":                           {"auditor", "", `{"connector":"oidc"}`, 403, nil},
		"neither":                              {"root", "", `{}`, 422, []string{"spec.connector", "spec.trial"}},
		"both":                                 {"root", "", `{"connector":"oidc","trial":"` + unknown + `"}`, 422, []string{"spec.trial"}},
		"no such connector":                    {"root", "", `{"connector":"oid"}`, 422, []string{"spec.connector"}},
		"the password":                         {"root", "", `{"connector":"password"}`, 422, []string{"spec.connector"}},
		"a connector with a wrong setting":     {"root", "", `{"connector":"gitforge1"}`, 422, []string{"spec.connector"}},
		"a dry run with no such connector":     {"root", "?dryRun=All", `{"connector":"oid"}`, 422, []string{"spec.connector"}},
		"an unknown trial":                     {"root", "", `{"trial":"` + unknown + `"}`, 422, []string{"spec.trial"}},
		"an unknown trial, a dry run":          {"root", "?dryRun=All", `{"trial":"` + unknown + `"}`, 422, []string{"spec.trial"}},
		"a dry run begins none":                {"root", "?dryRun=All", `{"connector":"oidc"}`, 201, nil},
		"a dry run of somebody who may not":    {"ana", "?dryRun=All", `{"connector":"oidc"}`, 403, nil},
		"an unknown field, strictly validated": {"root", "?fieldValidation=Strict", `{"conector":"oidc"}`, 400, []string{"spec.conector"}},
	} {
		code, answer, fields := w.ask(row.key, row.query, row.spec)
		if code != row.code || !slices.Equal(fields, row.fields) || answer.Phase+answer.Address+answer.Trial != "" {
			t.Errorf("%s: %d %v %+v", about, code, fields, answer)
		}
	}
	w.config.Auth.OIDC, w.config.Auth.SAML, w.config.Auth.GitForge1 = nil, nil, nil
	if code, _, fields := w.ask("root", "", `{"connector":"oidc"}`); code != http.StatusUnprocessableEntity || !slices.Equal(fields, []string{"spec.connector"}) {
		t.Errorf("without connectors: %d %v", code, fields)
	}
	if left := w.stored(logins.Resource); len(left) > 0 {
		t.Errorf("%d records are left", len(left))
	}
}

// A trial is that of the admin who has begun it, and ends after ten minutes, with or without a report. The record of a sign-in is no trial.
func TestTrialsOfOthers(t *testing.T) {
	t.Parallel()
	w := newTryWorld(t)
	refused := func(about, key, spec string) {
		t.Helper()
		if code, answer, fields := w.ask(key, "", spec); code != http.StatusUnprocessableEntity || !slices.Equal(fields, []string{"spec.trial"}) {
			t.Errorf("%s: %d %v %+v", about, code, fields, answer)
		}
	}
	first, second := w.begin("oidc"), w.begin("oidc")
	w.follow(w.browser(), first.Address)
	refused("another admin", "other", reportOf(first))
	if found, _, err := trial.Open(w.env).End(t.Context(), first.Trial, ""); !errors.Is(err, trial.ErrUnknown) {
		t.Errorf("a program with the state: %v, %v", found, err)
	}
	b := w.browser()
	query := w.provider.login(b.start())
	if answer := b.send(base+"/auth/oidc/callback?"+query.Encode(), nil); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("a sign-in beside it: %d", answer.StatusCode)
	}
	refused("a sign-in that is no trial", "root", fmt.Sprintf(`{"trial":%q}`, query.Get("state")))
	w.clock.forward(10*time.Minute - time.Second)
	if code, pending, _ := w.ask("root", "", reportOf(second)); code != http.StatusCreated || pending.Phase != model.SignInTrialPending {
		t.Errorf("a second before its end: %d %+v", code, pending)
	}
	w.clock.forward(time.Second)
	refused("expired, with a report", "root", reportOf(first))
	refused("expired, without one", "root", reportOf(second))
}

// An admin has a bounded number of trials, and takes none from others.
func TestTrialsAreBounded(t *testing.T) {
	t.Parallel()
	w := newTryWorld(t)
	for range limits.SignInTrials {
		w.begin("oidc")
	}
	if code, _, _ := w.ask("root", "", `{"connector":"oidc"}`); code != http.StatusTooManyRequests {
		t.Errorf("%d", code)
	}
	if code, _, _ := w.ask("other", "", `{"connector":"oidc"}`); code != http.StatusCreated {
		t.Errorf("another admin: %d", code)
	}
	if _, err := trial.Open(w.env).Begin(t.Context(), "oidc", ""); err != nil {
		t.Errorf("a program with the state: %v", err)
	}
}

// Neither the log nor the audit nor the state has the secret of a trial, whatever becomes of it. Each request has an event.
func TestTrialIsASecret(t *testing.T) {
	t.Parallel()
	w := newTryWorld(t)
	begun, pending := w.begin("oidc"), w.begin("saml")
	w.ask("root", "", reportOf(pending))
	w.ask("other", "", reportOf(begun))
	w.ask("ana", "", reportOf(begun))
	w.ask("root", "", fmt.Sprintf(`{"connector":"oidc","trial":%q}`, begun.Trial))
	w.follow(w.browser(), begun.Address)
	w.follow(w.browser(), pending.Address)
	state := w.everything()
	w.ask("root", "?dryRun=All", reportOf(begun))
	if code, done, _ := w.ask("root", "", reportOf(begun)); code != http.StatusCreated || done.Report == nil {
		t.Fatalf("%d %+v", code, done)
	}
	state += w.everything()
	events := w.events.String()
	for place, text := range map[string]string{"the log": w.log.String(), "the audit": events, "the state": state} {
		for i, hidden := range []string{begun.Trial, pending.Trial, url.QueryEscape(begun.Address)} {
			if strings.Contains(text, hidden) {
				t.Errorf("%s has the secret %d", place, i)
			}
		}
	}
	if strings.Contains(state, "ana@example.com") {
		t.Error("the state has the address of the person in clear")
	}
	for _, wanted := range []string{`"resource":"signintrials"`, `"management.platform.sh/signin-connector":"oidc"`, `"phase":"Pending"`, `"phase":"Complete"`, `"trial":"***"`} {
		if !strings.Contains(events, wanted) {
			t.Errorf("no event has %s", wanted)
		}
	}
}
