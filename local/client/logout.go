package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Logout ends the access key of a sign-in and removes its file. A key that was given to platform login is only removed.
type Logout struct {
	Host string `arg:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login."`
	authorityFlag
}

// Run revokes the key, so that the platform refuses the key and the credentials bound to it from the next request on.
// After an error the file stays. The context of the kubeconfig stays for the next sign-in.
func (c *Logout) Run(ctx context.Context) error {
	s, err := openSignedIn(c.Host, c.Authority)
	if err != nil {
		return err
	}
	file := filepath.Join(s.folder, loginKey)
	key, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("you are not signed in at %s", c.Host)
	case err != nil:
		return err
	}
	borrowed := filepath.Join(s.folder, loginBorrowed)
	if _, err := os.Stat(borrowed); err == nil {
		// In this order, a file that remains after an error is not taken for the key of a sign-in.
		if err := errors.Join(remove(file), remove(borrowed)); err != nil {
			return err
		}
		_, err := fmt.Println("You are signed out. The access key that you gave to platform login works on; platform revoke ends it.")
		return err
	}
	credentials := []string{string(key)}
	if kept, err := s.read(); err == nil && kept.Refresh != "" {
		credentials = append(credentials, kept.Refresh)
	}
	if err := s.revoke(ctx, credentials); err != nil {
		return err
	}
	if err := errors.Join(forgetJobs(s.folder), remove(filepath.Join(s.folder, loginRefresh)), remove(file)); err != nil {
		return err
	}
	if _, err := fmt.Println("You are signed out. The access key is refused from now on."); err != nil {
		return err
	}
	// The key has ended, whether or not the platform describes a logout.
	offered, err := waysOf(ctx, s.client, s.server)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for _, one := range offered.SSO {
		if checkAddresses(one.LogoutEndpoint) == nil {
			_, err = fmt.Printf("Your browser may still be signed in at the provider. That ends at %s\n", one.LogoutEndpoint)
		}
	}
	return err
}
