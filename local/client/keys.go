package client

import (
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
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/local/output"
	"management.platform.sh/shared/model"
)

// Keys are commands about access keys.
type Keys struct {
	Tree KeyTree `cmd:"" help:"Print what was made with an access key and with what was made with it: keys, tokens and kubeconfigs, and what ends with it."`
}

// KeyTree prints what an access key led to. It reads the API as any client does, so that it shows what its caller may see. Source: ADR-0021.
type KeyTree struct {
	Name      string `arg:"" name:"name" placeholder:"NAME" help:"Name of the access key."`
	Host      string `arg:"" optional:"" name:"host" placeholder:"HOST" help:"The platform, as at platform login. Absent: that of the current context of the kubeconfig, with its credential."`
	Authority string `name:"certificate-authority" type:"path" placeholder:"FILE" help:"Certificate authority of the platform. Absent: the ones that the system trusts."`
	Output    string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	// Out is where it prints. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

// tree is what is printed.
type tree struct {
	// Key is the access key, with what was made with it.
	Key credential `json:"key"`
	// EndsWithKey counts what ends when the key is deleted, and Foreground what ends if that is done with --cascade=foreground. Neither
	// counts the key itself.
	EndsWithKey count `json:"endsWithKey"`
	Foreground  count `json:"endsInForeground"`
}

// count is a number of credentials.
type count struct {
	AccessKeys int `json:"accessKeys"`
	Tokens     int `json:"tokens"`
}

func (c count) String() string {
	return plural(c.AccessKeys, "access key") + " and " + plural(c.Tokens, "token")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}

// credential is an access key or a token.
type credential struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Type is that of an access key: a kubeconfig is one of the type Kubeconfig.
	Type  string `json:"type,omitempty"`
	Owner string `json:"owner"`
	// Ends is when it ends by itself. Absent: never.
	Ends *metav1.Time `json:"expirationTimestamp,omitempty"`
	// MadeBy is the key with which it was made. Absent keys are gone: what they made stands below the nearest one that is left.
	MadeBy string `json:"createdBy,omitempty"`
	// EndsWithKey tells that it ends when the key at the top is deleted. Others end only with --cascade=foreground.
	EndsWithKey bool         `json:"endsWithKey"`
	Made        []credential `json:"made,omitempty"`

	lineage []model.AccessKeyAncestor
	created metav1.Time
}

// isToken tells a token from an access key.
func (c *credential) isToken() bool { return c.Kind == tokenKind }

const (
	keyKind   = "OwnedAccessKey"
	tokenKind = "DirectClusterEndpointToken"
	// pageOf is how many objects are asked for at a time.
	pageOf = 250
)

// Run asks the platform and prints the tree.
func (c *KeyTree) Run(ctx context.Context) error {
	at, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	var root model.OwnedAccessKey
	if err := at.get(ctx, "/ownedaccesskeys/"+url.PathEscape(c.Name), &root); err != nil {
		return err
	}
	if root.UID == "" {
		return errors.New("asking for the access key: the answer has none")
	}
	below := "status.lineage.uid=" + string(root.UID)
	var found []credential
	if err := each(ctx, at, "/ownedaccesskeys", below, func(k model.OwnedAccessKey) { found = append(found, ofKey(&k)) }); err != nil {
		return err
	}
	if err := each(ctx, at, "/directclusterendpointtokens", below, func(t model.DirectClusterEndpointToken) { found = append(found, ofToken(&t)) }); err != nil {
		return err
	}
	out := c.Out
	if out == nil {
		out = os.Stdout
	}
	printed := grow(ofKey(&root), found)
	return output.Write(out, c.Output, printed, printed.describe)
}

func ofKey(k *model.OwnedAccessKey) credential {
	return credential{
		Kind: keyKind, Name: k.Name, UID: string(k.UID), Type: cmp.Or(k.Spec.Type, model.AccessKeyTypeUser), Owner: owner(k.Spec.User, k.Spec.Team, k.Spec.Subject),
		Ends: k.Status.ExpirationTimestamp, MadeBy: maker(k.Status.CreatedBy), lineage: k.Status.Lineage, created: k.CreationTimestamp,
	}
}

func ofToken(t *model.DirectClusterEndpointToken) credential {
	return credential{
		Kind: tokenKind, Name: t.Name, UID: string(t.UID), Owner: owner(t.Status.User, t.Status.Team, t.Status.Subject),
		Ends: t.Status.ExpirationTimestamp, MadeBy: maker(t.Status.CreatedBy), lineage: t.Status.Lineage, created: t.CreationTimestamp,
	}
}

func owner(user, team, subject string) string {
	switch {
	case user != "":
		return "user:" + user
	case team != "":
		return "team:" + team
	default:
		return "subject:" + subject
	}
}

func maker(reference *model.AccessKeyReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

// grow puts credentials below the nearest of their makers that is left.
func grow(root credential, found []credential) tree {
	slices.SortStableFunc(found, func(a, b credential) int {
		return cmp.Or(a.created.Compare(b.created.Time), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	left := map[string]bool{root.UID: true}
	for _, each := range found {
		left[each.UID] = !each.isToken()
	}
	made := map[string][]credential{}
	for _, each := range found {
		at := slices.IndexFunc(each.lineage, func(a model.AccessKeyAncestor) bool { return left[a.UID] })
		if at >= 0 {
			made[each.lineage[at].UID] = append(made[each.lineage[at].UID], each)
		}
	}
	grown := tree{}
	var below func(parent *credential, ends bool)
	below = func(parent *credential, ends bool) {
		parent.EndsWithKey, parent.Made = ends, made[parent.UID]
		for i := range parent.Made {
			child := &parent.Made[i]
			// A token ends with the key that requested it. A key ends with those that bind it.
			bound := slices.ContainsFunc(child.lineage, func(a model.AccessKeyAncestor) bool { return a.UID == root.UID && a.Bounds }) ||
				child.isToken() && ends
			grown.Foreground.add(child)
			if bound {
				grown.EndsWithKey.add(child)
			}
			below(child, bound)
		}
	}
	below(&root, true)
	grown.Key = root
	return grown
}

func (c *count) add(one *credential) {
	if one.isToken() {
		c.Tokens++
	} else {
		c.AccessKeys++
	}
}

// describe returns what people read.
func (t tree) describe() []byte {
	rows := [][]string{{"NAME", "TYPE", "OWNER", "ENDS", "ENDS WITH THE KEY"}}
	var add func(c *credential, depth int)
	add = func(c *credential, depth int) {
		ends, with := "never", "yes"
		if c.Ends != nil {
			ends = c.Ends.UTC().Format(time.RFC3339)
		}
		switch {
		case depth == 0:
			with = ""
		case !c.EndsWithKey:
			with = "only with --cascade=foreground"
		}
		rows = append(rows, []string{strings.Repeat("  ", depth) + c.Name, cmp.Or(c.Type, "token"), c.Owner, ends, with})
		for i := range c.Made {
			add(&c.Made[i], depth+1)
		}
	}
	add(&t.Key, 0)
	var aligned, text strings.Builder
	table := tabwriter.NewWriter(&aligned, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush()
	for line := range strings.Lines(aligned.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	fmt.Fprintf(&text, "\nkubectl delete oak %s ends %s with it.\n", t.Key.Name, t.EndsWithKey)
	fmt.Fprintf(&text, "kubectl delete oak %s --cascade=foreground ends %s with it.\n", t.Key.Name, t.Foreground)
	return []byte(text.String())
}

// get reads what is at a path of the API into a value.
func (r *reached) get(ctx context.Context, path string, into any) error {
	response, err := r.send(ctx, http.MethodGet, "/apis/"+model.SchemeGroupVersion.String()+path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		_, refusal, err := readAnswer(response)
		if err != nil {
			return fmt.Errorf("asking the platform: %w", err)
		}
		return fmt.Errorf("asking the platform: %s", refusal)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxList)).Decode(into); err != nil {
		return fmt.Errorf("asking the platform: %w", err)
	}
	return nil
}

// maxList is how much of a page is read, in bytes.
const maxList = 64 << 20

// each reads a list page by page.
func each[T any](ctx context.Context, at *reached, path, selector string, do func(T)) error {
	query := url.Values{"fieldSelector": {selector}, "limit": {fmt.Sprint(pageOf)}}
	for {
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []T `json:"items"`
		}
		if err := at.get(ctx, path+"?"+query.Encode(), &page); err != nil {
			return err
		}
		for _, one := range page.Items {
			do(one)
		}
		if page.Continue == "" {
			return nil
		}
		query.Set("continue", page.Continue)
	}
}
