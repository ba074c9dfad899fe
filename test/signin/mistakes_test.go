package signin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/process/processtest"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/test/signin/samltest"
)

// mistake is a line of the table in docs/people.md.
type mistake struct {
	// make makes it, at both sides.
	make func(*samlWorld)
	// saml tells that people sign in with SAML.
	saml bool
	// works tells that the sign-in does.
	works bool
	// refused tells that the configuration is not written, so that nobody signs in.
	refused bool
}

// claims returns a mistake of a claim: the settings name another one than the provider sends.
func claims(change func(settings *model.OIDCProvider, person map[string]any)) func(*samlWorld) {
	return func(w *samlWorld) { change(w.config.Auth.OIDC, w.provider.person) }
}

// samlSetting returns a mistake in the settings of the SAML provider.
func samlSetting(change func(*model.SAMLProvider)) func(*samlWorld) {
	return func(w *samlWorld) { change(w.config.Auth.SAML) }
}

// mistakes are the lines of the table, by their first cell.
var mistakes = map[string]mistake{
	"the client secret is wrong": {make: func(w *samlWorld) {
		w.provider.serve["/token"] = func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/json")
			out.WriteHeader(http.StatusUnauthorized)
			_, _ = out.Write([]byte(`{"error": "invalid_client"}`))
		}
	}},
	"the provider signs for another client": {make: func(w *samlWorld) {
		w.provider.claims = func(claims map[string]any) { claims["aud"] = "another" }
	}},
	"a clock is wrong": {make: func(w *samlWorld) {
		w.provider.claims = func(claims map[string]any) { claims["exp"] = w.clock.Now().Add(-time.Minute).Unix() }
	}},
	"the provider signs with the client secret": {make: func(w *samlWorld) {
		w.provider.token = func(raw string) string { return w.provider.resigned(raw, "HS256") }
	}},
	"`groupsClaim` is misspelt": {works: true, make: claims(func(settings *model.OIDCProvider, _ map[string]any) { settings.GroupsClaim = "grps" })},
	"`groupsClaim` is a path": {works: true, make: claims(func(settings *model.OIDCProvider, person map[string]any) {
		settings.GroupsClaim, person["realm_access"] = "realm_access.roles", map[string]any{"roles": []string{"dev"}}
	})},
	"`scopes` lacks the scope of the groups": {works: true, make: func(w *samlWorld) {
		delete(w.provider.person, "groups")
		w.provider.metadata = func(metadata map[string]any) { metadata["scopes_supported"] = []string{"openid", "groups"} }
	}},
	"`getUserInfo` is false, and the ID token says little": {works: true, make: claims(func(_ *model.OIDCProvider, person map[string]any) {
		maps.DeleteFunc(person, func(name string, _ any) bool { return name == "name" || name == "email" || name == "groups" })
	})},
	"groups are required, without `groupsClaim`": {make: claims(func(settings *model.OIDCProvider, _ map[string]any) {
		settings.Groups, settings.GroupsClaim = []string{"dev"}, ""
	})},
	"groups are required, and `groupsClaim` is misspelt": {make: claims(func(settings *model.OIDCProvider, _ map[string]any) {
		settings.Groups, settings.GroupsClaim = []string{"dev"}, "grps"
	})},
	"SAML: a file is not in base64": {saml: true, refused: true, make: samlSetting(func(settings *model.SAMLProvider) {
		settings.CAData = "-----BEGIN CERTIFICATE-----\n" + settings.CAData + "\n-----END CERTIFICATE-----\n"
	})},
	"SAML: the certificate has expired": {saml: true, make: func(w *samlWorld) {
		now := w.clock.Now()
		w.config.Auth.SAML.CAData = samltest.CAData(samltest.Certificate(w.t, samltest.Key(w.t), now.AddDate(-1, 0, 0), now.AddDate(0, 0, -1)))
	}},
	"SAML: the certificate is another one": {saml: true, make: func(w *samlWorld) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.t.Fatal(err)
		}
		w.config.Auth.SAML.CAData = samltest.CAData(samltest.With(w.t, key, w.clock.Now).Certificate)
	}},
	"SAML: `ssoIssuer` is another one": {saml: true, make: samlSetting(func(settings *model.SAMLProvider) {
		settings.SSOIssuer = "https://another.example"
	})},
	"SAML: `groupsAttr` is misspelt": {saml: true, works: true, make: samlSetting(func(settings *model.SAMLProvider) { settings.GroupsAttr = "grps" })},
	"SAML: the NameID is transient": {saml: true, make: samlSetting(func(settings *model.SAMLProvider) {
		settings.NameIDPolicyFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	})},
}

// write writes the configuration of a world, and returns what that says.
func (w *samlWorld) write(dryRun bool) string {
	w.t.Helper()
	current := platformconfig.New(platformconfig.Options{
		Store: redistest.Open(w.t, w.redis).Resource("configs"), Keyring: w.env.Encryption, Now: w.clock.Now, Random: rand.Reader, Log: w.env.Log,
		Issuer: func(context.Context, *model.OIDCProvider, []byte) ([]string, error) {
			metadata := map[string]any{}
			if w.provider.metadata != nil {
				w.provider.metadata(metadata)
			}
			scopes, _ := metadata["scopes_supported"].([]string)
			return scopes, nil
		},
	})
	written, err := current.Writer(nil).Update(w.t.Context(), resource.UpdateInput[*model.Config]{
		Caller: root, Name: platformconfig.Name, DryRun: dryRun,
		Object: &model.Config{ObjectMeta: metav1.ObjectMeta{Name: platformconfig.Name}, Status: *w.config.DeepCopy()},
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(written.Warnings, "\n")
}

// try signs somebody in, as far as it goes, and returns the last answer.
func (w *samlWorld) try(withSAML bool) *http.Response {
	w.t.Helper()
	b := w.browser()
	if !withSAML {
		answer := b.send(base+"/auth/oidc/login?"+asked().Encode(), nil)
		if answer.StatusCode != http.StatusSeeOther {
			return answer
		}
		return b.send(base+"/auth/oidc/callback?"+w.provider.login(answer.Header.Get("Location")).Encode(), nil)
	}
	answer := b.send(base+"/auth/saml/login?"+asked().Encode(), nil)
	if answer.StatusCode != http.StatusSeeOther {
		return answer
	}
	request := w.idp.Read(w.t, answer.Header.Get("Location"))
	response := w.idp.Answer(request)
	response.Format = request.Policy.Format
	posted := w.post(response.XML(w.t), request.RelayState)
	if posted.StatusCode != http.StatusSeeOther {
		return posted
	}
	return b.send(posted.Header.Get("Location"), nil)
}

var span = regexp.MustCompile("`([^`]+)`")

// wantSaid fails the test unless a text has what each code span of a cell says. Three dots stand for a value.
func wantSaid(t *testing.T, where, cell, said string) {
	t.Helper()
	for _, wanted := range span.FindAllStringSubmatch(cell, -1) {
		pattern := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(wanted[1]), `\.\.\.`, ".*"))
		if !pattern.MatchString(said) {
			t.Errorf("%s does not say %q: %s", where, wanted[1], said)
		}
	}
}

// The table of docs/people.md: what an admin reads of each mistake, when they write the configuration and after a sign-in. The audit has its default level.
func TestMistakes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/people.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| mistake |")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")[2:]
	if len(lines) != len(mistakes) {
		t.Errorf("%d lines, and %d mistakes", len(lines), len(mistakes))
	}
	for _, line := range lines {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) == 2 {
			cells = append(cells, "")
		}
		made, known := mistakes[cells[0]]
		if !known || len(cells) != 3 {
			t.Errorf("nothing makes %q", line)
			continue
		}
		t.Run(cells[0], func(t *testing.T) {
			t.Parallel()
			w := newSAML(t)
			var events processtest.Log
			w.audited(&events)
			w.config.Audit.Level = nil
			made.make(w)
			said := w.write(true)
			wantSaid(t, "the write", cells[1], said)
			if cells[1] == "nothing" && said != "" || strings.Contains(said, w.config.Auth.SAML.CAData) {
				t.Errorf("the write says %s", said)
			}
			if made.refused {
				return
			}
			answer := w.try(made.saml)
			if (answer.StatusCode == http.StatusSeeOther) != made.works {
				t.Errorf("%d %s", answer.StatusCode, text(t, answer))
			}
			audited, logged := strings.ReplaceAll(events.String(), `\"`, `"`), strings.ReplaceAll(w.log.String(), `\"`, `"`)
			if cells[2] == "" {
				t.Error("the sign-in must say something")
			}
			wantSaid(t, "the audit", cells[2], audited)
			if !made.works {
				wantSaid(t, "the log", cells[2], logged)
			}
			w.provider.mu.Lock()
			defer w.provider.mu.Unlock()
			for _, hidden := range append([]string{clientSecret}, w.provider.secrets...) {
				if strings.Contains(audited+logged, hidden) {
					t.Errorf("the log or the audit has %q", hidden)
				}
			}
		})
	}
}

// A first sign-in is in the audit at its default level: the user and the teams that it makes, and the groups.
func TestFirstSignInIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var events processtest.Log
	w.audited(&events)
	w.config.Audit.Level = nil
	w.signIn()
	for _, wanted := range []string{`signin-created-user":"ana"`, `signin-created-teams":"dev"`, `signin-groups-added":"dev"`} {
		if !strings.Contains(events.String(), wanted) {
			t.Errorf("no %s in %s", wanted, events.String())
		}
	}
	if strings.Contains(events.String(), "/auth/info") {
		t.Error("a read is recorded")
	}
}
