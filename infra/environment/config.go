package environment

import (
	"log/slog"
	"sync"
	"time"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platformconfig"
)

// lookEvery is the least time between two looks at the configuration file.
const lookEvery = 10 * time.Second

// fresh looks at the configuration file when it is asked: a process that is frozen between requests has no ticker.
type fresh struct {
	source *platformconfig.Source
	log    *slog.Logger

	mu     sync.Mutex
	looked time.Time
}

func (f *fresh) current() *model.ConfigStatus {
	// Who comes while another looks takes what is there.
	if f.mu.TryLock() {
		defer f.mu.Unlock()
		if now := time.Now(); now.Sub(f.looked) >= lookEvery {
			f.looked = now
			if _, err := f.source.Reload(); err != nil {
				f.log.Error("platform configuration refused; the one before stays", "error", err.Error())
			}
		}
	}
	return f.source.Current()
}
