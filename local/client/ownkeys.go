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
	"net/url"
	"os"
	"slices"
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
	out := cmp.Or[io.Writer](c.Out, os.Stdout)
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
	_, err = at.createKey(ctx, body, c.Output, c.Out, c.Messages)
	return err
}

// createKey creates the access key of a request. It prints the key itself once on out, and what the key is on messages. Nil: the standard output and
// error of the process.
func (r *platformClient) createKey(ctx context.Context, body []byte, format string, out, messages io.Writer) (*model.OwnedAccessKey, error) {
	var created model.OwnedAccessKey
	if err := r.ask(ctx, http.MethodPost, keysPath, bytes.NewReader(body), &created); err != nil {
		return nil, err
	}
	if created.Spec.Key == "" {
		return nil, errors.New("asking for the access key: the answer has none")
	}
	out, messages = cmp.Or[io.Writer](out, os.Stdout), cmp.Or[io.Writer](messages, os.Stderr)
	if err := output.Write(out, format, created, func() []byte { return []byte(created.Spec.Key + "\n") }); err != nil {
		return nil, err
	}
	ends := "has no end"
	if until := created.Status.ExpirationTimestamp; until != nil {
		ends = "ends at " + until.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(messages, "The access key %s acts as %s and %s. It is not shown again.\n", created.Name, owner(created.Spec.User, created.Spec.Team, created.Spec.Subject), ends)
	return &created, err
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
	out := cmp.Or[io.Writer](c.Out, os.Stdout)
	_, err = fmt.Fprintf(out, "disabled the access key %s\n", changed.Name)
	return err
}

// KeyRotate makes a key like another one, and lets that one end after a time of grace, in which both work. Source: Spec 2.5.
type KeyRotate struct {
	Name string `arg:"" name:"name" placeholder:"NAME" help:"Name of the access key."`
	platformAddress
	NewName string        `placeholder:"NAME" help:"Name of the new access key. Absent: the name of the old one, with a random suffix."`
	Grace   time.Duration `default:"24h" placeholder:"DURATION" help:"How long the old key works on, in whole seconds, at least 1s (${default}). A key that ends sooner ends then."`
	Output  string        `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text is the new key alone, json and yaml are the object with the key (${default})."`

	// Out is the writer for the key, and Messages the writer for all other text. Nil: the standard output and error of
	// the process.
	Out      io.Writer `kong:"-"`
	Messages io.Writer `kong:"-"`
}

// Run creates the new key first: after an error, the old key works as before.
func (c *KeyRotate) Run(ctx context.Context) error {
	if c.Grace < time.Second || c.Grace%time.Second != 0 {
		return errors.New("--grace: must be a whole number of seconds, at least 1s")
	}
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	var old model.OwnedAccessKey
	if err := platform.get(ctx, keysPath+"/"+url.PathEscape(c.Name), &old); err != nil {
		return err
	}
	switch {
	case old.Spec.Disabled:
		return fmt.Errorf("the access key %s is disabled: make a new one with platform keys create", c.Name)
	case !slices.Contains([]string{"", model.AccessKeyTypeUser, model.AccessKeyTypeOther}, old.Spec.Type):
		return fmt.Errorf("the access key %s has the type %s: only keys that people make are rotated", c.Name, old.Spec.Type)
	}
	next := model.OwnedAccessKey{TypeMeta: metav1.TypeMeta{APIVersion: model.SchemeGroupVersion.String(), Kind: keyKind}, Spec: old.Spec}
	next.Spec.Key = ""
	if next.Labels, next.Name = old.Labels, c.NewName; c.NewName == "" {
		next.GenerateName = c.Name + "-"
	}
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	var trial model.OwnedAccessKey
	if err := platform.ask(mayRepeat(ctx), http.MethodPost, keysPath+"?dryRun=All", bytes.NewReader(body), &trial); err != nil {
		return err
	}
	if slices.ContainsFunc(trial.Status.Lineage, func(a model.AccessKeyAncestor) bool { return a.Bounds && a.UID == string(old.UID) }) {
		return fmt.Errorf("a key that you make now ends with the access key %s: use a credential that was not made with it", c.Name)
	}
	created, err := platform.createKey(ctx, body, c.Output, c.Out, c.Messages)
	if err != nil {
		return err
	}
	messages := cmp.Or[io.Writer](c.Messages, os.Stderr)
	// The clock of the platform counts.
	end := created.CreationTimestamp.Add(c.Grace)
	if until := old.Status.ExpirationTimestamp; until == nil || until.After(end) {
		if err := platform.endKeyAt(ctx, &old, end); err != nil {
			return fmt.Errorf("the access key %s works as before: %w", c.Name, err)
		}
	} else {
		end = until.Time
	}
	_, err = fmt.Fprintf(messages, "The access key %s works until %s, and credentials that are bound to it end with it: platform keys tree %s shows them.\n", c.Name, end.UTC().Format(time.RFC3339), c.Name)
	return err
}

// endKeyAt sets the lifetime of a key, so that it ends at a time. Another key with its name is left as it is.
func (r *platformClient) endKeyAt(ctx context.Context, key *model.OwnedAccessKey, end time.Time) error {
	change, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": key.UID},
		"spec":     map[string]any{"ttl": int64(end.Sub(key.CreationTimestamp.Time) / time.Second), "ttlAfterLastActivity": false},
	})
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/merge-patch+json"}}
	return r.askAs(mayRepeat(ctx), http.MethodPatch, keysPath+"/"+url.PathEscape(key.Name), bytes.NewReader(change), header, &model.OwnedAccessKey{})
}
