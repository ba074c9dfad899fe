package probecredentials

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/settings"
	"management.platform.sh/shared/state/store"
)

// left are the access keys in the state.
func left(t *testing.T, w *issuertest.World) int {
	t.Helper()
	list, err := resource.List(t.Context(), kinds.AccessKeys(w.Env), resource.ListInput{Caller: issuertest.Root})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.(*model.OwnedAccessKeyList).Items)
}

// A run that succeeds leaves no access key, with and without tokens. A run of a probe that is off does nothing.
func TestDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		probe, issuer string
		on            bool
	}{{settings.On, issuertest.URL, true}, {settings.On, "", true}, {settings.Off, issuertest.URL, false}, {"", issuertest.URL, false}} {
		w := issuertest.New(t)
		w.Env.Probe, w.Env.Tokens.Issuer = row.probe, row.issuer
		deps := open(w.Env)
		calls := 0
		create := deps.Create
		deps.Create = func(ctx context.Context) (*model.OwnedAccessKey, error) {
			calls++
			return create(ctx)
		}
		done, err := Do(t.Context(), deps)
		if err != nil || done.On != row.on || done.Failed != "" || (calls == 1) != row.on || left(t, w) != 0 {
			t.Errorf("%+v: %+v, %v, %d keys made, %d left", row, done, err, calls, left(t, w))
		}
	}
}

// A failed run names its step, and leaves no access key unless removing it is what fails.
func TestFailures(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, row := range []struct {
		about  string
		fault  func(*Deps)
		failed string
		keys   int
	}{
		{"no key can be made", func(d *Deps) { d.Create = func(context.Context) (*model.OwnedAccessKey, error) { return nil, away } }, create, 0},
		{"the key is refused", func(d *Deps) {
			d.Use = func(context.Context, secret.String) (identity.Caller, error) { return identity.Caller{}, away }
		}, use, 0},
		{"the key is somebody else's", func(d *Deps) {
			d.Use = func(context.Context, secret.String) (identity.Caller, error) { return issuertest.Root, nil }
		}, use, 0},
		{"no token is issued", func(d *Deps) {
			d.Issue = func(context.Context, identity.Caller) (secret.String, error) { return "", away }
		}, issue, 0},
		{"the token is refused", func(d *Deps) { d.Verify = func(context.Context, secret.String) (string, error) { return "", away } }, verify, 0},
		{"the token is somebody else's", func(d *Deps) { d.Verify = func(context.Context, secret.String) (string, error) { return "root", nil } }, verify, 0},
		{"the key stays", func(d *Deps) { d.Revoke = func(context.Context, *model.OwnedAccessKey) error { return away } }, revoke, 1},
		{"a revoked key is accepted", func(d *Deps) {
			before := d.Use
			var known identity.Caller
			d.Use = func(ctx context.Context, bearer secret.String) (identity.Caller, error) {
				if known.Key != "" {
					return known, nil
				}
				var err error
				known, err = before(ctx, bearer)
				return known, err
			}
		}, refuse, 0},
		{"a revoked key cannot be checked", func(d *Deps) {
			before, calls := d.Use, 0
			d.Use = func(ctx context.Context, bearer secret.String) (identity.Caller, error) {
				if calls++; calls > 1 {
					return identity.Caller{}, store.ErrUnavailable
				}
				return before(ctx, bearer)
			}
		}, refuse, 0},
		{"a revoked token is accepted", func(d *Deps) {
			d.Verify = func(context.Context, secret.String) (string, error) { return prober.Username(), nil }
		}, refuse, 0},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			w := issuertest.New(t)
			w.Env.Probe = settings.On
			deps := open(w.Env)
			row.fault(&deps)
			done, err := Do(t.Context(), deps)
			if err == nil || done.Failed != row.failed || !strings.Contains(err.Error(), "step "+row.failed) {
				t.Errorf("%+v, %v, want the step %s", done, err, row.failed)
			}
			if got := left(t, w); got != row.keys {
				t.Errorf("%d keys are left", got)
			}
		})
	}
}

// The canary permits nothing, ends by itself, and its text is in no log.
func TestCanary(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Env.Probe = settings.On
	var text bytes.Buffer
	w.Env.Log = slog.New(slog.NewJSONHandler(&text, nil))
	deps := open(w.Env)
	key, err := deps.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	caller, err := deps.Use(t.Context(), secret.String(key.Spec.Key))
	if err != nil || caller.Admin() || len(caller.Scopes()) == 0 || key.Status.ExpirationTimestamp.Sub(issuertest.Born).Seconds() != lifetime {
		t.Errorf("%+v, %+v, %v", caller, key.Status, err)
	}
	if err := process.NewServer(w.Env).Run(t.Context(), Function); err != nil {
		t.Fatal(err)
	}
	if line := text.String(); !strings.Contains(line, `"probed":true`) || !strings.Contains(line, `"failed":""`) || strings.Contains(line, "pak_") {
		t.Errorf("logged %s", line)
	}
}
