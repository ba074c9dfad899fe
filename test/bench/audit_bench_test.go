package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/redisstore/redistest"
)

// BenchmarkAudit is what the audit costs an authenticated get: without one, at level 1, where the policy leaves a get
// out, at level 4, where its answer is recorded in a file, and where it waits until the event is on disk.
func BenchmarkAudit(b *testing.B) {
	everything := func(failure string) *model.ConfigAudit {
		return &model.ConfigAudit{Policy: &model.AuditPolicy{Rules: []model.AuditRule{
			{Level: string(audit.RequestResponse), OmitStages: []string{string(audit.RequestReceived)}, FailurePolicy: failure},
		}}}
	}
	s := newServer(b, redistest.Server(b).UnixURL(), time.Now)
	for _, row := range []struct {
		name   string
		config *model.ConfigAudit
	}{
		{"off", nil},
		{"level=1", &model.ConfigAudit{Level: new(int32(1))}},
		{"level=4", &model.ConfigAudit{Level: new(int32(4))}},
		{"everything/failurePolicy=Fail", everything(audit.FailRequests)},
	} {
		b.Run(row.name, func(b *testing.B) {
			s.Audit = nil
			if row.config != nil {
				row.config.Enabled, row.config.Path, row.config.MaxBackups = true, b.TempDir(), 1
				config := &model.ConfigStatus{Audit: row.config}
				trail := audit.NewTrail(audit.Options{
					Config:  func() *model.ConfigStatus { return config },
					Openers: []audit.Opener{filesink.Opener(nil, slog.New(slog.DiscardHandler))},
					Log:     slog.New(slog.DiscardHandler), Metrics: s.Metrics.(audit.Metrics),
				})
				s.Audit = trail
				b.Cleanup(func() { trail.Close(context.Background()) })
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if got := s.call(http.MethodGet, fmt.Sprint(collectionPath, "/", objectName(i%objects)), "", nil); got != http.StatusOK {
					b.Fatalf("HTTP status %d", got)
				}
			}
		})
	}
}
