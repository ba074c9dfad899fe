package browser_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"management.platform.sh/test/signin/providertest"
	"management.platform.sh/test/signin/samltest"
)

// A browser brings no cookie with the form that a provider has it post, and brings it with the redirect that is the answer. So the browser
// that began is signed in, and another one is not. Source: ADR-0038.
func TestPostedSignIn(t *testing.T) {
	program := browser(t)
	origin, key := serve(t, false)
	certificate := samltest.New(t, time.Now).Certificate
	issuer := providertest.StartSAML(t, "../signin/providertest", samltest.Key(t), certificate, origin+"/auth/saml/callback")
	ctx, cancel := context.WithTimeout(t.Context(), storyTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "node", "posted.mjs", origin, key, program, issuer, samltest.CAData(certificate))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
