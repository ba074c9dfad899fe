package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// bao is an OpenBao that issues tokens with ES256 and client certificates with keys of P-256.
type bao struct {
	address string
	// root is the token of the administrator; caller is the token of the clients.
	root, caller string
}

// startOpenBao starts an OpenBao with its state on disk and its audit in a file.
func startOpenBao(ctx context.Context, folder string) (_ *side, err error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cluster, err := freeAddress()
	if err != nil {
		return nil, err
	}
	state := filepath.Join(folder, "raft")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("preparing OpenBao: %w", err)
	}
	config := filepath.Join(folder, "bao.hcl")
	text := fmt.Sprintf(`storage "raft" {
  path    = %q
  node_id = "load"
}
listener "tcp" {
  address     = %q
  tls_disable = true
}
audit "file" "file" {
  options {
    file_path = %q
  }
}
api_addr     = "http://%s"
cluster_addr = "https://%s"
log_level    = "error"
`, state, address, filepath.Join(folder, "audit.log"), address, cluster)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("preparing OpenBao: %w", err)
	}
	server, err := startPeer(folder, "bao", "server", "-config="+config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			server.stop()
		}
	}()
	b := &bao{address: address}
	var unsealed struct {
		Keys []string `json:"keys"`
		Root string   `json:"root_token"`
	}
	if err := server.waitUntilReady(ctx, func(ctx context.Context) error {
		return b.ask(ctx, "", "sys/init", `{"secret_shares":1,"secret_threshold":1}`, &unsealed)
	}); err != nil {
		return nil, err
	}
	if len(unsealed.Keys) != 1 {
		return nil, errors.New("OpenBao has not returned a key to unseal it")
	}
	b.root = unsealed.Root
	if err := b.ask(ctx, "", "sys/unseal", fmt.Sprintf(`{"key":%q}`, unsealed.Keys[0]), nil); err != nil {
		return nil, fmt.Errorf("unsealing OpenBao: %w", err)
	}
	// OpenBao becomes the leader of its cluster a moment later.
	var health struct {
		Version string `json:"version"`
	}
	if err := server.waitUntilReady(ctx, func(ctx context.Context) error {
		return ask(ctx, http.DefaultClient, http.MethodGet, "http://"+b.address+"/v1/sys/health", nil, nil, &health)
	}); err != nil {
		return nil, err
	}
	for _, step := range []request{
		{"sys/mounts/pki", `{"type":"pki"}`},
		{"pki/root/generate/internal", `{"common_name":"load","key_type":"ec","key_bits":256,"ttl":"720h"}`},
		// The API does not store certificates either.
		{"pki/roles/load", `{"allow_any_name":true,"enforce_hostnames":false,"client_flag":true,"server_flag":false,"key_type":"ec","key_bits":256,"no_store":true,"max_ttl":"24h"}`},
		{"identity/oidc/key/load", `{"algorithm":"ES256","allowed_client_ids":["*"]}`},
		{"identity/oidc/role/load", `{"key":"load","ttl":"1h","template":"{\"user\":{{identity.entity.name}}}"}`},
		{"sys/policies/acl/load", `{"policy":"path \"identity/oidc/token/load\" { capabilities = [\"read\"] }\npath \"pki/issue/load\" { capabilities = [\"update\"] }"}`},
		{"sys/auth/userpass", `{"type":"userpass"}`},
		{"auth/userpass/users/load", `{"password":"a measurement","token_policies":["load"]}`},
	} {
		if err := b.ask(ctx, b.root, step.path, step.body, nil); err != nil {
			return nil, fmt.Errorf("preparing OpenBao: %s: %w", step.path, err)
		}
	}
	var login struct {
		Auth struct {
			Token string `json:"client_token"`
		} `json:"auth"`
	}
	if err := b.ask(ctx, "", "auth/userpass/login/load", `{"password":"a measurement"}`, &login); err != nil {
		return nil, fmt.Errorf("signing in to OpenBao: %w", err)
	}
	b.caller = login.Auth.Token
	return &side{
		name: openBaoName, server: server.processes(), subject: b.subject, stop: server.stop,
		about: "OpenBao " + health.Version + ", state in raft on disk, certificates not stored, audit in a file",
	}, nil
}

// ask sends a request that is not measured.
func (b *bao) ask(ctx context.Context, token, path, body string, into any) error {
	header := http.Header{}
	if token != "" {
		header.Set("X-Vault-Token", token)
	}
	return ask(ctx, http.DefaultClient, http.MethodPost, "http://"+b.address+"/v1/"+path, header, []byte(body), into)
}

func (b *bao) subject(op string) *subject {
	var text []byte
	head := fmt.Sprintf("HTTP/1.1\r\nHost: %s\r\nX-Vault-Token: %s\r\n", b.address, b.caller)
	switch op {
	case opToken:
		text = fmt.Appendf(nil, "GET /v1/identity/oidc/token/load %s\r\n", head)
	case opCertificate:
		const body = `{"common_name":"load","ttl":"1h"}`
		text = fmt.Appendf(nil, "POST /v1/pki/issue/load %sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", head, jsonType, len(body), body)
	default:
		return nil
	}
	return &subject{client: func(ctx context.Context, _ int) (*client, error) {
		return httpClient(ctx, plainDialer(b.address), func(*connection) []byte { return text })
	}}
}
