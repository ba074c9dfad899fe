package platformconfig

import (
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/state/store"
)

// version is one version of the configuration. It is never changed.
type version struct {
	revision int64
	// record is the version in its stored form. Previous is the record that this version replaced in this process.
	record, previous store.Record
	// fileText is the text of the file. Nil: the version is from the state.
	fileText []byte
	// config is the version as an author wrote it, with secrets in clear text.
	config *model.Config
	// effective is the version with defaults, and with its placeholders replaced.
	effective *model.ConfigStatus
	// unresolvedFields are the fields whose secrets or placeholders are not known to this process. If there are any, each
	// check tries again.
	unresolvedFields []string
	// limits are the limits on the life of access keys. Steps are the changes that lowered them.
	limits accesskey.Limits
	steps  keyLimits
	// stepsUnread reports whether the steps of a file are not read yet. Until then, existing keys have a grace period.
	// StepsUnavailable reports whether the state could not be read: the next check tries again.
	stepsUnread, stepsUnavailable bool
	// trial is set while the version waits for its confirmation.
	trial *trial
	// trialEnded reports whether the time for the confirmation is over. The version is then the one before the trial.
	trialEnded bool
}

// refusal is the error of a version that must not take effect.
type refusal struct {
	// revision is the revision of the refused version. 0: the file cannot be read.
	revision int64
	// fileText is the text of the refused file. Nil: the version is from the state, or the file cannot be read.
	fileText []byte
	// undecodable reports whether the record cannot be decoded.
	undecodable bool
	err         error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// fileRefusal returns the refusal of a file that cannot be read. It has no text, so that the file is a new version once it
// can be read again, even with the same text.
func fileRefusal(err error) *refusal { return &refusal{err: err} }

// initialRecord returns the record of a configuration before its first write. The configuration exists all the same.
func initialRecord() store.Record {
	return store.Record{Name: Name, Revision: store.Beginning, Object: []byte(`{"metadata":{"name":"` + Name + `"},"status":{}}`)}
}
