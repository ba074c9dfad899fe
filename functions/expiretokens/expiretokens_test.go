package expiretokens

import (
	"testing"
	"time"

	"management.platform.sh/shared/credentials/issuer/issuertest"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/process"
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
