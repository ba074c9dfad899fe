package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
)

// WhoAmI prints the identity that a credential acts as. It asks the platform, so that it shows the current rights of
// the credential. Source: Spec 5; ADR-0031.
type WhoAmI struct {
	platformAddress
	Output string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	// Out is the writer for the report. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

func (c *WhoAmI) Run(ctx context.Context) error {
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	response, err := platform.send(mayRepeat(ctx), http.MethodPost, selves, strings.NewReader("{}"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, refusal, err := readAnswer(response)
	switch {
	case err != nil:
		return fmt.Errorf("asking the platform: %w", err)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s is not a platform", platform.base)
	case refusal != "":
		return fmt.Errorf("the platform refuses the credential: %s", refusal)
	}
	var self model.Self
	if err := json.Unmarshal(text, &self); err != nil || self.Status.UID == "" {
		return fmt.Errorf("%s gave no answer of a platform", platform.base)
	}
	out := cmp.Or[io.Writer](c.Out, os.Stdout)
	return output.Write(out, c.Output, self, func() []byte { return describe(self.Status) })
}

// selves is the path of the request below the base address of the API.
var selves = "/apis/" + model.SchemeGroupVersion.String() + "/selves"

// describe returns the identity as text.
func describe(status model.SelfStatus) []byte {
	kind, name, _ := strings.Cut(status.UID, ":")
	text := fmt.Appendf(nil, "%-10s %s\n", strings.ToUpper(kind[:1])+kind[1:], name)
	text = fmt.Appendf(text, "%-10s %s\n", "Groups", cmp.Or(strings.Join(status.Groups, ", "), "none"))
	if status.AccessKey != "" {
		text = fmt.Appendf(text, "%-10s %s (%s)\n", "Access key", status.AccessKey, cmp.Or(status.AccessKeyType, model.AccessKeyTypeUser))
	}
	if status.AccessKeyScope != nil {
		text = fmt.Appendf(text, "%-10s %s\n", "Scope", "limited; use -o yaml to see it")
	}
	return text
}
