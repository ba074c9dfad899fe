package limits_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/connector"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/signin/annotations"
	"management.platform.sh/shared/signin/authorize"
	"management.platform.sh/shared/signin/oauth"
	"management.platform.sh/shared/signin/provider"
)

// signInRows are the limits of the claims of a person from a provider.
var signInRows = map[string]row{
	"signin-groups": {fmt.Sprintf("%d groups", limits.SignInGroups), func(t *testing.T) {
		for n, want := range atLimit(limits.SignInGroups) {
			person := provider.Person{Subject: "1", Username: "ana"}
			for i := range n {
				person.Groups = append(person.Groups, fmt.Sprintf("group-%04d", i))
			}
			user, left := signIn(t, person)
			if len(user.Spec.SSOGroups) != min(n, limits.SignInGroups) || left != want {
				t.Errorf("%d: %d groups, left out: %v", n, len(user.Spec.SSOGroups), left)
			}
		}
	}},
	"signin-text-bytes": {fmt.Sprintf("%d bytes", limits.SignInTextBytes), func(t *testing.T) {
		for n, want := range atLimit(limits.SignInTextBytes) {
			text := strings.Repeat("x", n)
			user, left := signIn(t, provider.Person{Subject: "1", Username: "ana", DisplayName: text, Groups: []string{text}})
			if (user.Spec.DisplayName == "") != want || (len(user.Spec.SSOGroups) == 0) != want || left != want {
				t.Errorf("%d: %+v, left out: %v", n, user.Spec, left)
			}
		}
	}},
	"signin-claim-bytes": {bytes(limits.SignInClaimBytes), func(t *testing.T) {
		for n, want := range atLimit(limits.SignInClaimBytes) {
			user, left := signIn(t, provider.Person{Subject: "1", Username: "ana", Extra: map[string]string{"dept": strings.Repeat("x", n)}})
			if (len(user.Spec.ExtraClaims) == 0) != want || left != want {
				t.Errorf("%d: %d claims, left out: %v", n, len(user.Spec.ExtraClaims), left)
			}
		}
	}},
	"signin-trials": {fmt.Sprintf("%d trials", limits.SignInTrials), func(t *testing.T) {
		w := newWorld(t, nil)
		if got := w.send(request{
			bearer: "root-admin", method: http.MethodPatch, path: group + "/configs/config", kind: "application/merge-patch+json",
			body: `{"status":{"auth":{"gitforge1":{"clientId":"c","redirectURI":"https://platform.example/auth/gitforge1/callback"}}}}`,
		}); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		begin := func(bearer string) answer {
			return w.send(request{bearer: bearer, method: http.MethodPost, path: group + "/signintrials", body: `{"spec":{"connector":"gitforge1"}}`})
		}
		for n := range limits.SignInTrials {
			if got := begin("root-admin"); got.status != http.StatusCreated {
				t.Fatalf("%d: %d %s", n, got.status, got.body)
			}
		}
		if got := begin("root-admin"); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "too many trials of sign-ins are open") {
			t.Errorf("above: %d %s", got.status, got.body)
		}
		if got := begin("alice-admin"); got.status != http.StatusCreated {
			t.Errorf("another admin: %d %s", got.status, got.body)
		}
	}},
}

// atLimit returns a limit and the number after it, each with whether it is above the limit.
func atLimit(limit int) map[int]bool { return map[int]bool{limit: false, limit + 1: true} }

// claimsProvider is a provider that returns fixed claims of a person.
type claimsProvider struct {
	person provider.Person
	state  string
}

func (s *claimsProvider) AuthorizationURL(_ context.Context, _ provider.Connector, request provider.Request) (string, error) {
	s.state = request.State
	return "https://idp.example", nil
}

func (s *claimsProvider) HandleCallback(context.Context, provider.Connector, provider.Response) (provider.Person, error) {
	return s.person, nil
}

func (s *claimsProvider) EndSessionURL(context.Context, provider.Connector) (string, error) {
	return "", nil
}

// signIn signs a person in. It returns their user, and whether claims were left out.
func signIn(t *testing.T, person provider.Person) (user *model.User, left bool) {
	t.Helper()
	w := newWorld(t, nil)
	config := &model.ConfigStatus{Auth: &model.ConfigAuth{IdentityProviders: model.IdentityProviders{OIDC: &model.OIDCProvider{
		IssuerURL: "https://idp.example", ClientID: "platform", ClientSecret: "hush", RedirectURI: "https://platform.example/auth/oidc/callback",
		AllowedExtraClaims: []string{"dept"},
	}}}}
	w.env.Config = func() *model.ConfigStatus { return config }
	provider := &claimsProvider{person: person}
	_, cookies, err := authorize.OpenStarter(w.env).Start(t.Context(), provider, connector.OIDC, url.Values{
		"response_type": {"code"}, "client_id": {oauth.ClientID}, "redirect_uri": {"http://127.0.0.1:4711/callback"},
		"code_challenge": {strings.Repeat("c", 43)}, "code_challenge_method": {"S256"}, "state": {"12345678"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, cookie := range cookies {
		kept[cookie.Name] = cookie.Value
	}
	ctx, recorder := annotations.WithRecorder(t.Context())
	_, err = authorize.OpenCallback(w.env, kinds.Users(w.env), kinds.Teams(w.env), kinds.AccessKeys(w.env)).HandleCallback(ctx, provider, connector.OIDC, url.Values{"state": {provider.state}}, kept)
	if err != nil {
		t.Fatal(err)
	}
	root := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	user, err = resource.Get(t.Context(), kinds.Users(w.env), resource.GetInput{Caller: root, Name: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	return user, recorder.Omitted() != ""
}
