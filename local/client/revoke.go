package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/secret"
)

// Revoke revokes credentials by their texts. It reads them from the standard input, so that they do not appear in
// process lists and shell histories. It needs no credential, and does not learn which of the texts were credentials: it
// reports their forms. Source: ADR-0022.
type Revoke struct {
	Host   string `arg:"" optional:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login. Absent: the platform of --server, else of the current context of the kubeconfig."`
	Server string `env:"PLATFORM_SERVER" placeholder:"HOST" help:"The platform, for scripts that have it in a variable."`
	authorityFlag

	// Input is the standard input, Out the writer for the report, and Warnings the writer for warnings about damaged
	// texts. Nil: the streams of the process.
	Input         io.Reader `kong:"-"`
	Out, Warnings io.Writer `kong:"-"`
}

// Run sends the lines of the standard input. After an error, the lines that were sent before it are revoked.
func (c *Revoke) Run(ctx context.Context) error {
	input := cmp.Or[io.Reader](c.Input, os.Stdin)
	out, warnings := cmp.Or[io.Writer](c.Out, os.Stdout), cmp.Or[io.Writer](c.Warnings, os.Stderr)
	platform, err := c.platform()
	if err != nil {
		return err
	}
	var texts []string
	var counts forms
	lines := bufio.NewScanner(input)
	for number := 1; lines.Scan(); number++ {
		text := secret.String(bytes.TrimSpace(lines.Bytes()))
		if text == "" {
			continue
		}
		texts = append(texts, text.Reveal())
		if damage := counts.add(text); damage != nil {
			output.Warn(warnings, "line %d begins like an access key and is none: %v", number, damage)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the standard input: %w", err)
	}
	if len(texts) == 0 {
		return errors.New("the standard input has no text: write the texts of the credentials to it, one a line")
	}
	if err := platform.revoke(ctx, texts); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s got %s. Those that it knew are refused from now on; it does not say which these are.\n", shortAddress(platform.server), counts)
	return err
}

// platform returns the platform that the flags name. It does not send the credential of a kubeconfig.
func (c *Revoke) platform() (*signedIn, error) {
	if host := cmp.Or(c.Host, c.Server); host != "" {
		at, err := openSignedIn(host, c.Authority)
		if err != nil && c.Host == "" {
			return nil, fmt.Errorf("--server: %w", err)
		}
		return at, err
	}
	config, err := currentContext()
	if err != nil {
		return nil, fmt.Errorf("name a HOST, or use a kubeconfig: %w", err)
	}
	at, err := clientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("the current context of the kubeconfig: %w", err)
	}
	return &signedIn{server: at.base, client: at.client}, nil
}

// keyPrefix is the prefix of the access keys that a platform makes. Source: ADR-0005.
const keyPrefix = "pak_"

// forms counts texts by their form. Only the platform knows whether a text is a credential.
type forms struct {
	count
	others int
}

// add counts a text. Damage is the error in a text with the prefix of an access key.
func (f *forms) add(text secret.String) (damage error) {
	if bearer, _, ok := accesskey.SplitRefreshToken(text); ok {
		text = bearer
	}
	switch {
	case strings.HasPrefix(text.Reveal(), keyPrefix):
		if damage = accesskey.CheckBearer(text); damage != nil {
			f.others++
			return damage
		}
		f.AccessKeys++
	case strings.HasPrefix(text.Reveal(), "eyJ") && strings.Count(text.Reveal(), ".") == 2:
		f.Tokens++
	default:
		f.others++
	}
	return nil
}

func (f forms) String() string {
	if f.others == 0 {
		return f.count.String()
	}
	return plural(f.AccessKeys, "access key") + ", " + plural(f.Tokens, "token") + " and " + plural(f.others, "other text")
}

// revoke sends texts, as many at a time as a request may have.
func (s *signedIn) revoke(ctx context.Context, texts []string) error {
	for some := range slices.Chunk(texts, limits.Revocations) {
		if err := s.post(ctx, some); err != nil {
			return fmt.Errorf("revoking credentials: %w", err)
		}
	}
	return nil
}

// post sends some texts.
func (s *signedIn) post(ctx context.Context, texts []string) error {
	body, err := json.Marshal(model.CredentialRevocation{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "CredentialRevocation"},
		Spec:     model.CredentialRevocationSpec{Credentials: texts},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(mayRepeat(ctx), http.MethodPost, s.server+"/apis/"+model.SchemeGroupVersion.String()+"/credentialrevocations", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusAccepted {
		return nil
	}
	_, refusal, err := readAnswer(response)
	if err != nil {
		return err
	}
	return errors.New(refusal)
}
