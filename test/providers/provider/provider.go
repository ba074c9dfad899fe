// Package provider runs an OpenID Connect provider that others have written as a program: over TLS on a free port of the loopback, with one client,
// until its standard input ends. Source: ADR-0031.
package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// Client is the only client of the provider.
type Client struct{ ID, Secret, Callback string }

// The person who signs in, and the groups in which they are.
const (
	Subject  = "1001"
	Username = "ana"
	Password = "any"
)

// Groups returns the groups of the person.
func Groups() []string { return []string{"dev", "ops"} }

// Main runs a provider whose issuer has a path, which may be empty. The arguments of the program are the files of the key and the certificate, and
// the callback of the client. CLIENT_SECRET in the environment is its secret. It prints the issuer.
func Main(path string, open func(issuer string, client Client) (http.Handler, error)) {
	if err := run(path, open); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, open func(string, Client) (http.Handler, error)) error {
	if len(os.Args) != 4 {
		return errors.New("usage: KEY CERTIFICATE CALLBACK")
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	issuer := "https://" + listener.Addr().String() + path
	handler, err := open(issuer, Client{ID: "platform", Secret: os.Getenv("CLIENT_SECRET"), Callback: os.Args[3]})
	if err != nil {
		return fmt.Errorf("opening the provider: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	_, _ = fmt.Println(issuer)
	if err := server.ServeTLS(listener, os.Args[2], os.Args[1]); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
