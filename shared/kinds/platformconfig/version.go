package platformconfig

import (
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// version is one version of the configuration. It is never changed.
type version struct {
	revision int64
	// record is the version as it is stored. previous is the record that it replaced in this process.
	record, previous store.Record
	// config is the version as it was written, with secrets in clear text.
	config *model.Config
	// effective is the version with defaults, and with its placeholders replaced.
	effective *model.ConfigStatus
	// unresolvedFields are the fields whose secrets or placeholders are not known here.
	unresolvedFields []string
	// partial means that secrets or placeholders are not known here. The next check tries again.
	partial bool
	// limits are those on the life of access keys, and steps are how they were lowered.
	limits accesskey.Limits
	steps  keyLimits
	// stepsUnread means that the steps of a file are not read yet. Until then, keys that exist have a grace period. asked means that the
	// state could not be read: the next check tries again.
	stepsUnread, stepsUnavailable bool
	// trial is set while the version waits for its confirmation. trialEnded means that its time is over: the version is the one
	// before it.
	trial      *trial
	trialEnded bool
}

// refusal says why a newer version is not in effect.
type refusal struct {
	// revision is that of the newer version, or 0 if its file cannot be read.
	revision int64
	reason   string
	// unreadable means that its record cannot be decoded.
	unreadable bool
}

// invalidVersion is a version that may not take effect.
type invalidVersion struct {
	revision int64
	// unreadable means that its record cannot be decoded.
	unreadable bool
	err        error
}

func (b *invalidVersion) Error() string { return b.err.Error() }

func (b *invalidVersion) Unwrap() error { return b.err }

// initialRecord returns the record of a configuration that nobody has written yet. It exists all the same.
func initialRecord() store.Record {
	return store.Record{Name: Name, Revision: store.Beginning, Object: []byte(`{"metadata":{"name":"` + Name + `"},"status":{}}`)}
}
