package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
)

// KeyList prints the access keys that act as its caller. Source: Spec 2.5.
type KeyList struct {
	platformAddress
	All    bool   `help:"List every access key that you may see."`
	Output string `short:"o" enum:"text,json,yaml,name" default:"text" help:"Output format: text, json, yaml or name (${default})."`

	// Out is the writer for the list. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

func (c *KeyList) Run(ctx context.Context) error {
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	selector := ""
	if !c.All {
		if selector, err = platform.ownKeys(ctx); err != nil {
			return err
		}
	}
	out := c.Out
	if out == nil {
		out = os.Stdout
	}
	if c.Output == "text" {
		return platform.printKeys(ctx, out, selector)
	}
	list := model.OwnedAccessKeyList{
		TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: keyKind + "List"}, Items: []model.OwnedAccessKey{},
	}
	if err := eachItem(ctx, platform, keysPath, selector, func(key model.OwnedAccessKey) { list.Items = append(list.Items, key) }); err != nil {
		return err
	}
	return output.Write(out, c.Output, list, func() []byte {
		var text []byte
		for _, key := range list.Items {
			text = fmt.Appendf(text, "%s.%s/%s\n", strings.ToLower(keyKind), model.SchemeGroupVersion.Group, key.Name)
		}
		return text
	})
}

// self returns the identity that the credential acts as.
func (r *platformClient) self(ctx context.Context) (model.SelfStatus, error) {
	var self model.Self
	err := r.ask(mayRepeat(ctx), http.MethodPost, "/selves", strings.NewReader("{}"), &self)
	return self.Status, err
}

// ownKeys returns the field selector of the keys that act as the caller.
func (r *platformClient) ownKeys(ctx context.Context) (string, error) {
	self, err := r.self(ctx)
	switch {
	case err != nil:
		return "", err
	case self.User != nil:
		return "spec.user=" + self.User.Name, nil
	case self.Team != nil:
		return "spec.team=" + self.Team.Name, nil
	default:
		return "spec.subject=" + self.Subject, nil
	}
}

// printKeys prints the platform's table of access keys, as kubectl does.
func (r *platformClient) printKeys(ctx context.Context, out io.Writer, selector string) error {
	query := url.Values{"fieldSelector": {selector}, "includeObject": {string(metav1.IncludeNone)}}
	header := http.Header{"Accept": {"application/json;as=Table;g=" + metav1.GroupName + ";v=v1"}}
	var rows [][]string
	err := pages(query, func() (next string, err error) {
		var page metav1.Table
		if err := r.askAs(ctx, http.MethodGet, keysPath+"?"+query.Encode(), nil, header, &page); err != nil {
			return "", err
		}
		row := func(cell func(column int) string) {
			var shown []string
			for i, column := range page.ColumnDefinitions {
				if column.Priority == 0 {
					shown = append(shown, cell(i))
				}
			}
			rows = append(rows, shown)
		}
		if len(rows) == 0 {
			row(func(i int) string { return strings.ToUpper(page.ColumnDefinitions[i].Name) })
		}
		for _, one := range page.Rows {
			if len(one.Cells) != len(page.ColumnDefinitions) {
				return "", errors.New("asking the platform: the answer is no table")
			}
			row(func(i int) string { return fmt.Sprint(one.Cells[i]) })
		}
		return page.Continue, nil
	})
	if err != nil {
		return err
	}
	if len(rows) == 1 {
		_, err = fmt.Fprintln(os.Stderr, "There are no access keys.")
		return err
	}
	_, err = io.WriteString(out, alignRows(rows))
	return err
}

// KeyCreate creates an access key. It prints the key itself once, and only on the standard output. Source: Spec 2.3,
// 2.5.
type KeyCreate struct {
	Name string `arg:"" name:"name" placeholder:"NAME" help:"Name of the access key."`
	platformAddress
	DisplayName string        `placeholder:"TEXT" help:"The name that people read."`
	User        string        `xor:"owner" placeholder:"NAME" help:"User that the key acts as. Absent: you."`
	Team        string        `xor:"owner" placeholder:"NAME" help:"Team that the key acts as."`
	TTL         time.Duration `name:"ttl" placeholder:"DURATION" help:"Lifetime, in whole seconds. Absent: no end of its own."`
	Project     names         `placeholder:"NAME" help:"Project that the key is for. This and the next flags can be repeated. Without any of them, the key has all rights of its owner."`
	Virtual     virtualNames  `name:"virtual-cluster" placeholder:"PROJECT/NAME" help:"Virtual cluster that the key is for."`
	Cluster     names         `placeholder:"NAME" help:"Connected cluster that the key is for."`
	Role        names         `placeholder:"NAME" help:"Role that the key has, such as platformCLI."`
	ReadOnly    bool          `help:"Limit the key to get, list and watch."`
	Output      string        `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text is the key alone, json and yaml are the object with the key (${default})."`

	// Out is the writer for the key, and Messages the writer for all other text. Nil: the standard output and error of
	// the process.
	Out      io.Writer `kong:"-"`
	Messages io.Writer `kong:"-"`
}

func (c *KeyCreate) Run(ctx context.Context) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	body, err := json.Marshal(key)
	if err != nil {
		return err
	}
	at, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	var created model.OwnedAccessKey
	if err := at.ask(ctx, http.MethodPost, keysPath, bytes.NewReader(body), &created); err != nil {
		return err
	}
	if created.Spec.Key == "" {
		return errors.New("asking for the access key: the answer has none")
	}
	out, messages := c.Out, c.Messages
	if out == nil {
		out = os.Stdout
	}
	if messages == nil {
		messages = os.Stderr
	}
	if err := output.Write(out, c.Output, created, func() []byte { return []byte(created.Spec.Key + "\n") }); err != nil {
		return err
	}
	ends := "has no end"
	if until := created.Status.ExpirationTimestamp; until != nil {
		ends = "ends at " + until.UTC().Format(time.RFC3339)
	}
	_, err = fmt.Fprintf(messages, "The access key %s acts as %s and %s. It is not shown again.\n", created.Name, owner(created.Spec.User, created.Spec.Team, created.Spec.Subject), ends)
	return err
}

// key returns the access key to create. It has no scope unless a flag limits it.
func (c *KeyCreate) key() (*model.OwnedAccessKey, error) {
	if c.TTL < 0 || c.TTL%time.Second != 0 {
		return nil, errors.New("--ttl: must be a whole number of seconds, at least 0s")
	}
	key := &model.OwnedAccessKey{
		TypeMeta:   metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: keyKind},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name},
		Spec:       model.OwnedAccessKeySpec{DisplayName: c.DisplayName, User: c.User, Team: c.Team, TTLSeconds: int64(c.TTL / time.Second)},
	}
	switch {
	case len(c.Project)+len(c.Virtual)+len(c.Cluster)+len(c.Role) > 0:
	case c.ReadOnly:
		return nil, errors.New("--read-only: name what the key may read with --project, --virtual-cluster, --cluster or --role")
	default:
		return key, nil
	}
	key.Spec.Scope = &model.Scope{ReadOnly: c.ReadOnly, VirtualClusters: c.Virtual}
	for _, name := range c.Project {
		key.Spec.Scope.Projects = append(key.Spec.Scope.Projects, model.ScopeProject{Project: name})
	}
	for _, name := range c.Cluster {
		key.Spec.Scope.Clusters = append(key.Spec.Scope.Clusters, model.ScopeCluster{Cluster: name})
	}
	for _, name := range c.Role {
		key.Spec.Scope.Roles = append(key.Spec.Scope.Roles, model.ScopeRole{Role: name})
	}
	return key, nil
}

// KeyDisable disables an access key. Source: Spec 2.5.
type KeyDisable struct {
	Name string `arg:"" name:"name" placeholder:"NAME" help:"Name of the access key."`
	platformAddress

	// Out is the writer for the report. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

func (c *KeyDisable) Run(ctx context.Context) error {
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	var changed model.OwnedAccessKey
	header := http.Header{"Content-Type": {"application/merge-patch+json"}}
	err = platform.askAs(mayRepeat(ctx), http.MethodPatch, keysPath+"/"+url.PathEscape(c.Name), strings.NewReader(`{"spec":{"disabled":true}}`), header, &changed)
	if err != nil {
		return err
	}
	if !changed.Spec.Disabled {
		return errors.New("asking the platform: the access key is not disabled")
	}
	out := c.Out
	if out == nil {
		out = os.Stdout
	}
	_, err = fmt.Fprintf(out, "disabled the access key %s\n", changed.Name)
	return err
}
