package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/model/secret"
	"management.platform.sh/test/launch"
)

// platform is a runner of its own with its Redis, which writes every change to disk before it answers.
type platform struct {
	runner *launch.Runner
	api    *api
	redis  *redis.Client
}

// platformOptions are the options of a runner.
type platformOptions struct {
	// name is the name of the side, program the path of the runner and its first arguments.
	name    string
	program []string
	// folder is a new folder for its data, log the file for its log.
	folder, log string
	// audit is true if the audit is written to a file, at level 1.
	audit bool
	// keys is the number of access keys at the beginning of the measurements, at least 500.
	keys int
	// deletes is true if the operation delete is measured.
	deletes bool
}

// startPlatform starts a runner and makes the objects that the operations need.
func startPlatform(ctx context.Context, options platformOptions) (_ *platform, _ *side, err error) {
	// Neither a quota nor a pause of a shared machine must end a measurement.
	variables := []string{"PLATFORM_QUOTA_OBJECTS=1000000000", "PLATFORM_QUOTA_BYTES=1Ti", "PLATFORM_REDIS_TIMEOUT=20s"}
	about := "appendfsync always, audit off"
	if options.audit {
		about = "appendfsync always, audit at level 1 in a file"
		config := filepath.Join(options.folder, "config.yaml")
		text := fmt.Sprintf("audit:\n  enabled: true\n  level: 1\n  path: %q\n", filepath.Join(options.folder, "audit"))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, nil, fmt.Errorf("writing the configuration: %w", err)
		}
		variables = append(variables, "PLATFORM_CONFIG="+config)
	}
	runner, err := launch.StartProgram(ctx, options.program, options.folder, options.log, variables...)
	if err != nil {
		return nil, nil, err
	}
	p := &platform{runner: runner}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if runner.Redis() == "" {
		return nil, nil, errors.New("redis-server is not on PATH: there is no durable state to measure")
	}
	if p.redis, err = openRedis(runner.Redis()); err != nil {
		return nil, nil, err
	}
	store, version, err := redisProcess(ctx, p.redis)
	if err != nil {
		return nil, nil, err
	}
	key, err := os.ReadFile(runner.KeyFile())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key: %w", err)
	}
	base, err := url.Parse(runner.Server)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the address of the runner: %w", err)
	}
	p.api = &api{
		base: runner.Server, address: base.Host, prefix: strings.TrimSuffix(base.Path, "/"), dial: plainDialer(base.Host), http: http.DefaultClient,
		bearer: secret.String(strings.TrimSpace(string(key))), deletes: options.deletes,
		token: request{groupPath + "/directclusterendpointtokens", `{"metadata":{},"spec":{}}`},
	}
	if err := p.api.prepare(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.register(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.seed(ctx, options.keys); err != nil {
		return nil, nil, err
	}
	return p, &side{
		name: options.name, server: processes{runner.PID}, store: store, subject: p.api.subject, stop: p.stop,
		about: version + ", " + about,
	}, nil
}

func (p *platform) stop() {
	if p.redis != nil {
		_ = p.redis.Close()
	}
	p.runner.Stop()
}

// register registers a virtual cluster with an authority of its own, which signs the certificates of kubeconfigs.
func (p *platform) register(ctx context.Context) error {
	certificate, key, err := newAuthority()
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("making an authority: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": "load"},
		"spec": map[string]any{
			"accessPoint": map[string]any{"ingress": map[string]any{"enabled": true, "host": "load.example.com", "caData": text}},
			"signer": map[string]any{"ca": map[string]any{
				"certData": text, "keyData": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("making an instance: %w", err)
	}
	const instances = groupPath + "/namespaces/p-load/virtualclusterinstances"
	if err := p.api.ask(ctx, http.MethodPost, instances, body, nil); err != nil {
		return fmt.Errorf("registering an instance: %w", err)
	}
	p.api.kubeconfigs = instances + "/load/kubeconfig"
	return nil
}

// newAuthority makes an authority for client certificates with a key of P-256.
func newAuthority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "load"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	return certificate, key, nil
}

// redisProcess returns the process and the version of a Redis.
func redisProcess(ctx context.Context, client *redis.Client) (processes, string, error) {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return nil, "", fmt.Errorf("asking Redis for its process: %w", err)
	}
	field := func(name string) string {
		_, rest, _ := strings.Cut(info, "\n"+name+":")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	pid, err := strconv.Atoi(field("process_id"))
	if err != nil {
		return nil, "", fmt.Errorf("asking Redis for its process: %w", err)
	}
	return processes{pid}, "Redis " + field("redis_version"), nil
}
