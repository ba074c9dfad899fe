package signin_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"management.platform.sh/local/doctor"
	"management.platform.sh/shared/credentials/signin"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/settings"
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
		want             func(signin.Trial) bool
	}{
		{"OpenID Connect", "oidc", nil, 200, func(found signin.Trial) bool {
			return found.Refusal == "" && slices.Contains(found.Claims, "preferred_username") && found.ID == "1001" && found.NewUser == "ana" &&
				slices.Equal(found.Groups, []string{"dev"}) && slices.Equal(found.NewTeams, []string{"dev"}) && found.Email == "ana@example.com"
		}},
		{"a claim that does not come", "oidc", func(w *samlWorld) { w.config.Auth.OIDC.GroupsClaim = "grps" }, 200, func(found signin.Trial) bool {
			return found.Refusal == "" && slices.Contains(found.Absent, `groupsClaim "grps"`) && len(found.Groups) == 0
		}},
		{"a check that fails", "oidc", func(w *samlWorld) {
			w.provider.claims = func(claims map[string]any) { claims["aud"] = "another" }
		}, 400, func(found signin.Trial) bool { return strings.Contains(found.Refusal, "is not for the client") }},
		{"a required group", "oidc", func(w *samlWorld) { w.config.Auth.OIDC.Groups = []string{"ops"} }, 200, func(found signin.Trial) bool {
			return found.Refusal == "not_admitted: in none of the required groups"
		}},
		{"no new users", "oidc", func(w *samlWorld) { w.config.Auth.DisableUserCreation = true }, 200, func(found signin.Trial) bool {
			return found.Refusal == "not_set_up: disableUserCreation" && found.NewUser == ""
		}},
		{"no new teams", "oidc", func(w *samlWorld) { w.config.Auth.DisableTeamCreation = true }, 200, func(found signin.Trial) bool {
			return found.Refusal == "" && len(found.NewTeams) == 0
		}},
		{"SAML", "saml", nil, 200, func(found signin.Trial) bool {
			return found.Refusal == "" && slices.Contains(found.Claims, "groups") && found.ID == "1001" && found.NewUser != ""
		}},
		{"SAML with another issuer", "saml", func(w *samlWorld) { w.config.Auth.SAML.SSOIssuer = "https://another.example" }, 400, func(found signin.Trial) bool {
			return strings.Contains(found.Refusal, "its Issuer is not ssoIssuer")
		}},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := newSAML(t)
			if row.change != nil {
				row.change(w)
			}
			flow := signin.Open(w.env)
			address, state, err := flow.BeginTrial(t.Context(), row.connector)
			if err != nil {
				t.Fatal(err)
			}
			if _, done, err := flow.EndTrial(t.Context(), state); done || err != nil {
				t.Errorf("before anybody has signed in: %v, %v", done, err)
			}
			b := w.browser()
			answer := w.follow(b, address)
			if body := text(t, answer); answer.StatusCode != row.status || row.status == http.StatusOK && !strings.Contains(body, "Nobody was signed in") {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
			for _, record := range w.stored(signin.Resource) {
				if strings.Contains(string(record.Object), "1001") || strings.Contains(record.Name+string(record.Object), state) {
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
			found, done, err := flow.EndTrial(t.Context(), state)
			if err != nil || !done || !row.want(found) {
				t.Errorf("%+v, %v, %v", found, done, err)
			}
			if left := w.stored(signin.Resource); len(left) > 0 {
				t.Errorf("%d records are left", len(left))
			}
			w.wantNobody()
			if _, _, err := flow.EndTrial(t.Context(), state); err == nil {
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
	flow := signin.Open(w.env)
	address, state, err := flow.BeginTrial(t.Context(), "oidc")
	if err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	query := w.provider.login(b.send(address, nil).Header.Get("Location"))
	if answer := w.browser().send(base+"/auth/oidc/callback?"+query.Encode(), nil); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("another browser: %d", answer.StatusCode)
	}
	if answer := w.browser().prove(); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("a sign-in beside it: %d", answer.StatusCode)
	}
	if _, done, err := flow.EndTrial(t.Context(), state); done || err != nil {
		t.Errorf("%v, %v", done, err)
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
