package password

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/digest"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/store"
)

// decoyDigest is a digest that costs as much to check as the digest of a user. No password matches it: its hash is all zeros.
var decoyDigest = digestPrefix + strings.Repeat("A", base64.RawStdEncoding.EncodedLen(saltBytes)) + "$" + strings.Repeat("A", base64.RawStdEncoding.EncodedLen(hashBytes))

// Check returns the user with a name and a password. Address identifies the client. The work is the same whether or not
// there is such a user. Nil: no user has the name and the password, or the user may not sign in. Detail is the reason, for the
// audit alone.
//
// Errors: TooManyRequests after too many wrong passwords, before anything is hashed; the store's errors.
func (p *Passwords) Check(ctx context.Context, name string, password secret.String, address string) (account *model.User, detail string, err error) {
	giveBack, err := p.failures.Take(ctx, userCount(name), addressCount(address))
	if err != nil {
		return nil, "", err
	}
	account, passwordDigest, detail, err := p.readDigest(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if len(password) > MaxBytes {
		password, passwordDigest = password[:MaxBytes], decoyDigest
	}
	matches, err := p.hasher.Matches(ctx, passwordDigest, password)
	switch {
	case err != nil:
		return nil, "", err
	case detail != "":
		return nil, detail, nil
	case !matches:
		return nil, "wrong password", nil
	}
	giveBack(ctx)
	return account, "", nil
}

// readDigest returns a user with the digest of their password, or a decoy digest and the reason.
func (p *Passwords) readDigest(ctx context.Context, name string) (account *model.User, passwordDigest, reason string, err error) {
	lookupName := name
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		// No user can have the name. Looking up another name that no user has costs the same.
		lookupName = digest.Sum("nobody", name)
	}
	record, err := p.users.Store.Get(ctx, lookupName)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && lookupName != name:
		return nil, decoyDigest, "unknown user", nil
	case err != nil:
		return nil, "", "", fmt.Errorf("reading a user: %w", err)
	}
	if account, err = p.users.Decode(record); err != nil {
		return nil, "", "", err
	}
	sealed, err := resource.Private(record)
	switch {
	case err != nil:
		return nil, "", "", err
	case sealed == "":
		return nil, decoyDigest, "no password", nil
	}
	ring, err := p.env.Keyring(ctx)
	if err != nil {
		return nil, "", "", err
	}
	text, err := ring.Open(sealed, sealContext(account))
	if err != nil {
		return nil, "", "", fmt.Errorf("opening the password of %q: %w", name, err)
	}
	switch {
	case account.DeletionTimestamp != nil:
		reason = "the user is being deleted"
	case account.Spec.Disabled:
		reason = "the user is disabled"
	}
	return account, string(text), reason, nil
}
