package audit

import (
	"context"
	"fmt"
	"io"
	"sync"

	"management.platform.sh/shared/model"
)

// Output returns the opener of the sink for audit.path "-". The sink writes lines to an output: the standard output of
// a process, which the hosting platform collects. Source: ADR-0016.
func Output(out io.Writer) Opener {
	mu := &sync.Mutex{}
	return Opener{Name: "output", Field: "path", Open: func(config *model.ConfigAudit) (Sink, error) {
		if config.Path != "-" {
			return nil, nil
		}
		return &output{out: out, mu: mu}, nil
	}}
}

type output struct {
	mu  *sync.Mutex
	out io.Writer
}

func (o *output) Write(_ context.Context, records []*Record, _ bool) error {
	var text []byte
	for _, r := range records {
		text = append(append(text, r.JSON...), '\n')
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.out.Write(text); err != nil {
		return fmt.Errorf("writing audit events: %w", err)
	}
	return nil
}

func (o *output) Close() error { return nil }
