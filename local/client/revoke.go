package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
)

// Revoke revokes credentials by their texts. It reads them from the standard input, so that they stand in no list of processes
// and in no history of a shell. It needs no credential, and does not learn which of the texts were credentials.
// Source: ADR-0022.
type Revoke struct {
	Server    string `required:"" env:"PLATFORM_SERVER" placeholder:"URL" help:"Base address of the platform's API: https://HOST/kubernetes/management."`
	Authority string `name:"certificate-authority" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the ones that the system trusts."`

	input io.Reader
}

// Run sends the lines of the standard input. After an error those that were sent before it are revoked.
func (c *Revoke) Run(ctx context.Context) error {
	endpoint, client, err := connect(c.Server, c.Authority, "credentialrevocations")
	if err != nil {
		return err
	}
	input := c.input
	if input == nil {
		input = os.Stdin
	}
	var texts []string
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 {
			texts = append(texts, string(text))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the standard input: %w", err)
	}
	if len(texts) == 0 {
		return errors.New("the standard input has no text: write the texts of the credentials to it, one a line")
	}
	for some := range slices.Chunk(texts, limits.Revocations) {
		if err := post(ctx, client, endpoint, some); err != nil {
			return err
		}
	}
	return nil
}

// post sends some texts.
func post(ctx context.Context, client *http.Client, endpoint string, texts []string) error {
	body, err := json.Marshal(model.CredentialRevocation{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "CredentialRevocation"},
		Spec:     model.CredentialRevocationSpec{Credentials: texts},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("revoking credentials: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusAccepted {
		return nil
	}
	_, refusal, err := readAnswer(response)
	if err != nil {
		return fmt.Errorf("revoking credentials: %w", err)
	}
	return fmt.Errorf("revoking credentials: %s", refusal)
}
