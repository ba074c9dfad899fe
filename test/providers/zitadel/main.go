// Command zitadel is the example provider of github.com/zitadel/oidc, with the groups of its person in the UserInfo. A POST to /leave signs the
// person out, so that their refresh tokens end.
package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/text/language"

	"management.platform.sh/test/providers/provider"
)

func main() { provider.Main("", open) }

func open(issuer string, client provider.Client) (http.Handler, error) {
	storage.RegisterClients(storage.WebClient(client.ID, client.Secret, client.Callback))
	state := people{storage.NewStorage(users{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, r *http.Request) {
		if err := state.TerminateSession(r.Context(), provider.Subject, client.ID); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.Handle("/", exampleop.SetupServer(issuer, state, slog.New(slog.DiscardHandler), false))
	return mux, nil
}

// people is the storage of the example, which knows no groups.
type people struct{ *storage.Storage }

// SetUserinfoFromToken implements op.Storage.
func (p people) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := p.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	info.AppendClaims("groups", provider.Groups())
	return nil
}

// users has one person.
type users struct{}

// GetUserByID implements storage.UserStore.
func (users) GetUserByID(id string) *storage.User {
	if id != provider.Subject {
		return nil
	}
	return &storage.User{
		ID: provider.Subject, Username: provider.Username, Password: provider.Password, FirstName: "Ana", Email: "ana@example.com", EmailVerified: true,
		PreferredLanguage: language.English,
	}
}

// GetUserByUsername implements storage.UserStore.
func (u users) GetUserByUsername(name string) *storage.User {
	if name != provider.Username {
		return nil
	}
	return u.GetUserByID(provider.Subject)
}

// ExampleClientID implements storage.UserStore.
func (users) ExampleClientID() string { return "service" }
