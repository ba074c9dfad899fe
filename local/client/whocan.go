package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
)

// WhoCan prints the users and teams that may make a request, and the rules that permit it to each of them. Source: ADR-0057.
type WhoCan struct {
	Verb   string `arg:"" name:"verb" placeholder:"VERB" help:"The verb, such as get or delete. use is to get a kubeconfig for a virtual cluster."`
	Target string `arg:"" name:"target" placeholder:"RESOURCE[/NAME]" help:"The resource, or one of its objects. After use: NAMESPACE/NAME of a virtual cluster."`
	platformAddress
	Namespace   string `short:"n" placeholder:"NAME" help:"Namespace of the object or, without a name, of the request."`
	Subresource string `placeholder:"NAME" help:"Subresource, such as kubeconfig."`
	Output      string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	// Out is the writer for the answer, and Messages the writer for all other text. Nil: the standard output and error of the process.
	Out      io.Writer `kong:"-"`
	Messages io.Writer `kong:"-"`
}

func (c *WhoCan) Run(ctx context.Context) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	preview := model.ScopePreview{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: "ScopePreview"}, Spec: model.ScopePreviewSpec{WhoCan: request},
	}
	body, err := json.Marshal(preview)
	if err != nil {
		return err
	}
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	if err := platform.ask(mayRepeat(ctx), http.MethodPost, "/scopepreviews", bytes.NewReader(body), &preview); err != nil {
		return err
	}
	out, messages := cmp.Or[io.Writer](c.Out, os.Stdout), cmp.Or[io.Writer](c.Messages, os.Stderr)
	status := preview.Status
	if c.Output == "text" && len(status.Subjects) == 0 {
		_, err := fmt.Fprintln(messages, "Nobody may do this.")
		return err
	}
	if err := output.Write(out, c.Output, preview, func() []byte { return subjectTable(status.Subjects) }); err != nil {
		return err
	}
	if status.Incomplete {
		output.Warn(messages, "the answer has the first %d users and teams; more may do this", len(status.Subjects))
	}
	return nil
}

// request returns the request that the arguments name.
func (c *WhoCan) request() (*model.ScopePreviewRequest, error) {
	first, second, hasSlash := strings.Cut(c.Target, "/")
	if first == "" || hasSlash && second == "" || strings.Contains(second, "/") {
		return nil, fmt.Errorf("invalid target %q: use RESOURCE, RESOURCE/NAME or, after the verb use, NAMESPACE/NAME", c.Target)
	}
	if c.Verb != "use" {
		resource, group, _ := strings.Cut(first, ".")
		if group == "" {
			group = model.GroupName
		}
		return &model.ScopePreviewRequest{Verb: c.Verb, Group: group, Resource: resource, Subresource: c.Subresource, Namespace: c.Namespace, Name: second}, nil
	}
	request := &model.ScopePreviewRequest{Verb: "create", Group: model.GroupName, Resource: "virtualclusterinstances", Subresource: "kubeconfig", Namespace: c.Namespace, Name: first}
	if hasSlash {
		request.Namespace, request.Name = first, second
	}
	switch {
	case c.Subresource != "":
		return nil, errors.New("--subresource: the verb use has none")
	case request.Namespace == "":
		return nil, fmt.Errorf("invalid virtual cluster %q: use NAMESPACE/NAME", c.Target)
	}
	return request, nil
}

// subjectTable returns the subjects as a table, with a row for each rule that permits the request.
func subjectTable(subjects []model.ScopePreviewSubject) []byte {
	rows := [][]string{{"KIND", "NAME", "DISPLAY NAME", "TEAMS", "REASON"}}
	for _, subject := range subjects {
		kind, name := "User", subject.User
		switch {
		case subject.Team != "":
			kind, name = "Team", subject.Team
		case subject.Subject != "":
			kind, name = "Subject", subject.Subject
		}
		grants := append([]model.ScopePreviewGrant{{Source: subject.Source, Reason: subject.Reason}}, subject.Also...)
		for _, grant := range grants {
			reason := grant.Reason
			if subject.AccessKey != "" {
				reason += ", by the access key " + subject.AccessKey
			}
			rows = append(rows, []string{kind, name, subject.DisplayName, strings.Join(subject.Teams, ","), reason})
		}
	}
	return []byte(alignRows(rows))
}
