package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Logout ends the access key of a sign-in and removes its file. A key that was given to platform login is only forgotten.
type Logout struct {
	Host      string `arg:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login."`
	Authority string `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the ones that the system trusts."`
}

// Run revokes the key, so that it and what is bound to it are refused at the next request. The file stays after an error. The
// context of the kubeconfig stays for the next sign-in.
func (c *Logout) Run(ctx context.Context) error {
	server, folder, err := platformOf(c.Host)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, loginKey)
	key, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("you are not signed in at %s", c.Host)
	case err != nil:
		return err
	}
	borrowed := filepath.Join(folder, loginBorrowed)
	if _, err := os.Stat(borrowed); err == nil {
		// In this order, what is left after an error is not taken for the key of a sign-in.
		if err := errors.Join(remove(file), remove(borrowed)); err != nil {
			return err
		}
		_, err := fmt.Println("You are signed out. The access key that you gave to platform login works on; platform revoke ends it.")
		return err
	}
	endpoint, client, err := connect(server, c.Authority, "credentialrevocations")
	if err != nil {
		return err
	}
	credentials := []string{string(key)}
	if kept, err := (&signedIn{host: c.Host, folder: folder}).read(); err == nil && kept.Refresh != "" {
		credentials = append(credentials, kept.Refresh)
	}
	if err := post(ctx, client, endpoint, credentials); err != nil {
		return err
	}
	if err := errors.Join(forgetJobs(folder), remove(filepath.Join(folder, loginRefresh)), remove(file)); err != nil {
		return err
	}
	if _, err := fmt.Println("You are signed out. The access key is refused from now on."); err != nil {
		return err
	}
	// The key has ended whether or not the platform says more.
	offered, err := waysOf(ctx, client, server)
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
