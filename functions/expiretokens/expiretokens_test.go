package expiretokens

import (
	"testing"
	"time"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/process"
	"management.platform.sh/shared/state/store"
)

func TestDo(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	ana := w.Key("ana", "ana", model.OwnedAccessKeySpec{})
	w.Issue(ana, model.DirectClusterEndpointTokenSpec{TTLSeconds: 60})
	w.Issue(ana, model.DirectClusterEndpointTokenSpec{})
	deps := open(w.Env)
	for _, step := range []struct {
		do   func()
		want Output
	}{
		{func() {}, Output{}},
		{func() { w.Pass(time.Minute) }, Output{Expired: 1}},
		{func() { w.Change("ana", func(spec *model.OwnedAccessKeySpec) { spec.Disabled = true }) }, Output{Revoked: 1}},
		{func() { w.Pass(time.Hour) }, Output{Forgotten: 1}},
	} {
		step.do()
		if done, err := Do(t.Context(), deps); err != nil || done != step.want {
			t.Errorf("%+v, %v, want %+v", done, err, step.want)
		}
	}
	if err := process.NewServer(w.Env).Run(t.Context(), Function); err != nil {
		t.Error(err)
	}
}

// The access keys of a disabled user count as ended: their tokens are revoked for verifiers that do not ask the platform.
// Source: ADR-0029.
func TestDisabledUser(t *testing.T) {
	t.Parallel()
	w := issuertest.New(t)
	w.Issue(w.Key("ana", "ana", model.OwnedAccessKeySpec{}), model.DirectClusterEndpointTokenSpec{})
	w.Issue(w.Key("ben", "ben", model.OwnedAccessKeySpec{}), model.DirectClusterEndpointTokenSpec{})
	record := store.Record{Name: "ana", Created: time.Now(), Object: []byte(`{"metadata":{"name":"ana","uid":"u"},"spec":{"disabled":true}}`)}
	if _, err := w.Env.Stores(directory.Users).Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if done, err := Do(t.Context(), open(w.Env)); err != nil || done != (Output{Revoked: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
}
