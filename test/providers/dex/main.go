// Command dex is the provider dex below a path, with its connector for tests, which signs everybody in as one person. WEB in the environment is
// the folder of its pages. A POST to /leave ends the refresh tokens of the person.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"management.platform.sh/test/providers/provider"
)

func main() { provider.Main("/dex", open) }

func open(issuer string, client provider.Client) (http.Handler, error) {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	state := storage.WithStaticClients(memory.New(log), []storage.Client{{
		ID: client.ID, Secret: client.Secret, RedirectURIs: []string{client.Callback}, Name: "platform",
	}})
	if err := state.CreateConnector(storage.Connector{ID: "mock", Type: "mockCallback", Name: "Mock"}); err != nil {
		return nil, fmt.Errorf("making the connector: %w", err)
	}
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer: issuer, Storage: state, SkipApprovalScreen: true, Web: server.WebConfig{Dir: os.Getenv("WEB")}, Logger: log,
		PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the server: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, _ *http.Request) {
		tokens, err := state.ListRefreshTokens()
		for _, token := range tokens {
			if err == nil {
				err = state.DeleteRefresh(token.ID)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.Handle("/", dex)
	return mux, nil
}
