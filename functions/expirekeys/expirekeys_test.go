package expirekeys

import (
	"errors"
	"testing"
	"time"

	"management.platform.sh/shared/api/fieldmanager"
	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/kinds/platformconfig"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// One run removes keys and stored responses. The tests of package accesskey check which keys are removed.
func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Key("over", "ana", model.OwnedAccessKeySpec{TTLSeconds: 60})
	w.Key("stays", "ana", model.OwnedAccessKeySpec{})
	if _, err := w.Env.Stores(idempotency.Resource).Create(t.Context(), store.Record{
		Name: "attempt", Created: w.Now(), Expires: w.Now().Add(2 * time.Minute), Object: []byte("{}"),
	}); err != nil {
		t.Fatal(err)
	}
	deps := open(w.Env)
	for _, step := range []struct {
		pass time.Duration
		want Output
	}{
		{0, Output{}},
		{time.Minute, Output{Keys: accesskey.Swept{Removed: 1}}},
		{time.Minute, Output{Forgotten: 1}},
		{time.Hour, Output{}},
	} {
		w.Pass(step.pass)
		if done, err := Do(t.Context(), deps); err != nil || done != step.want {
			t.Errorf("%+v, %v, want %+v", done, err, step.want)
		}
	}
	if err := process.NewServer(w.Env).Run(t.Context(), Function); err != nil {
		t.Error(err)
	}
}

// After a configuration that was not confirmed in time, a run stores the configuration that is in force. Source: ADR-0024.
func TestTakesBack(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	deps, current := open(w.Env), platformconfig.Open(w.Env)
	root := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
	config := &model.Config{Status: model.ConfigStatus{PlatformHost: "a.example"}}
	config.Annotations = map[string]string{model.ConfirmWithinAnnotation: "10m"}
	if _, err := current.Writer(fieldmanager.New).Update(t.Context(), resource.UpdateInput[*model.Config]{Caller: root, Name: "config", Object: config}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{false, true, false} {
		if done, err := Do(t.Context(), deps); err != nil || done.Reverted != want {
			t.Errorf("%+v, %v, want %v", done, err, want)
		}
		w.Pass(10 * time.Minute)
	}
	history, err := current.History(t.Context(), resource.GetInput{Caller: root, Name: "config"})
	if err != nil || history.Status.Revisions[0].Author != "subject:expirekeys" || history.Status.Revisions[0].RolledBackTo != "1" {
		t.Errorf("%+v, %v", history, err)
	}
}

// Without state a run fails, and says that it did nothing.
func TestWithoutState(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	away, err := redisstore.Open("redis://127.0.0.1:1", redisstore.Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	deps := open(w.Env)
	deps.Attempts.Records = away.Resource(idempotency.Resource)
	if done, err := Do(t.Context(), deps); !errors.Is(err, store.ErrUnavailable) || done != (Output{}) {
		t.Errorf("%+v, %v", done, err)
	}
}
