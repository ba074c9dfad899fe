package expirekeys

import (
	"errors"
	"testing"
	"time"

	"management.platform.sh/shared/api/idempotency"
	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
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
