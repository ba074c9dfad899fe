package audit

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// endpoint is the field of the configuration with the URL of a store.
const endpoint = "dataStoreEndpoint"

// checkKnownURL returns an error if this process does not know the URL of the configured store, because the configuration has
// a mark or a placeholder in its place. The error says what to do. Source: ADR-0016.
func checkKnownURL(config *model.ConfigAudit) error {
	switch url := config.DataStoreEndpoint.Reveal(); {
	case url == secret.Mark:
		return errors.New("audit.dataStoreEndpoint is not known here: it is sealed, and this process cannot open it; write it as ${PLATFORM_SECRET_AUDIT_STORE}, and give every function this variable")
	case strings.HasPrefix(url, "${"):
		name, _, closed := strings.Cut(url[len("${"):], "}")
		if !closed {
			name = "of its placeholder"
		}
		return errors.New("audit.dataStoreEndpoint is not known here: give every function, or the runner, the variable " + name)
	default:
		return nil
	}
}

// Checked is a sink that can find out whether it could store events. Check leaves no trace.
type Checked interface {
	Sink
	Check(ctx context.Context) error
}

// Checker returns a function that names the sinks of a new configuration that cannot store events from here. It checks
// nothing if the earlier configuration, which may be nil, has the same sinks. Source: ADR-0024.
func Checker(openers []Opener) func(ctx context.Context, was, next *model.ConfigAudit, path *field.Path) field.ErrorList {
	return func(ctx context.Context, was, next *model.ConfigAudit, path *field.Path) field.ErrorList {
		if sameSinks(was, next) {
			return nil
		}
		missing := map[string]bool{"path": next.Path != "", endpoint: next.DataStoreEndpoint != ""}
		var problems field.ErrorList
		for _, opener := range openers {
			sink, err := opener.Open(next)
			if sink == nil && err == nil {
				continue
			}
			missing[opener.Field] = false
			if err == nil {
				if checked, can := sink.(Checked); can {
					err = checked.Check(ctx)
				}
				_ = sink.Close()
			}
			switch {
			case err == nil:
			case opener.Field == endpoint:
				// The error may name the host, which is a part of the secret.
				problems = append(problems, field.Invalid(path.Child(opener.Field), field.OmitValueType{}, "cannot be reached from here"))
			default:
				problems = append(problems, field.Invalid(path.Child(opener.Field), field.OmitValueType{}, "cannot record events from here: "+err.Error()))
			}
		}
		for _, name := range []string{"path", endpoint} {
			switch why := checkKnownURL(next); {
			case !missing[name]:
			case name == endpoint && why != nil:
				problems = append(problems, field.Invalid(path.Child(name), field.OmitValueType{}, "cannot record events: "+why.Error()))
			default:
				problems = append(problems, field.Invalid(path.Child(name), field.OmitValueType{}, "cannot record events: this program has no such sink"))
			}
		}
		return problems
	}
}
