package password

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/auth/throttle"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// nobody is a digest of the same cost as that of a user. No password fits it: its hash is that of nothing.
var nobody = head + strings.Repeat("A", base64.RawStdEncoding.EncodedLen(saltBytes)) + "$" + strings.Repeat("A", base64.RawStdEncoding.EncodedLen(hashBytes))

// Check returns the user with a name and a password. Address identifies the client. The work is the same whether or not
// there is such a user. Nil: they do not belong together, or the user may not sign in. Detail says why, for the audit alone.
//
// Errors: TooManyRequests after too many wrong passwords, before anything is hashed; those of the store.
func (p *Passwords) Check(ctx context.Context, name string, given secret.String, address string) (found *model.User, detail string, err error) {
	giveBack, err := p.failures.Take(ctx, ofUser(name), ofAddress(address))
	if err != nil {
		return nil, "", err
	}
	found, digest, detail, err := p.digest(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if len(given) > MaxBytes {
		given, digest = given[:MaxBytes], nobody
	}
	fits, err := p.hasher.Fits(ctx, digest, given)
	switch {
	case err != nil:
		return nil, "", err
	case detail != "":
		return nil, detail, nil
	case !fits:
		return nil, "wrong password", nil
	}
	giveBack(ctx)
	return found, "", nil
}

// digest returns a user with the digest of their password, or a digest that fits no password and why there is no other.
func (p *Passwords) digest(ctx context.Context, name string) (found *model.User, digest, why string, err error) {
	read := name
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		// No user has the name. Another one that no user has costs the same.
		read = throttle.Name("nobody", name)
	}
	record, err := p.users.Store.Get(ctx, read)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && read != name:
		return nil, nobody, "unknown user", nil
	case err != nil:
		return nil, "", "", fmt.Errorf("reading a user: %w", err)
	}
	if found, err = p.users.Decode(record); err != nil {
		return nil, "", "", err
	}
	sealed, err := resource.Private(record)
	switch {
	case err != nil:
		return nil, "", "", err
	case sealed == "":
		return nil, nobody, "no password", nil
	}
	ring, err := p.env.Keyring(ctx)
	if err != nil {
		return nil, "", "", err
	}
	text, err := ring.Open(sealed, place(found))
	if err != nil {
		return nil, "", "", fmt.Errorf("opening the password of %q: %w", name, err)
	}
	switch {
	case found.DeletionTimestamp != nil:
		why = "the user is being deleted"
	case found.Spec.Disabled:
		why = "the user is disabled"
	}
	return found, string(text), why, nil
}
