package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Keys are the commands about access keys.
type Keys struct {
	List    KeyList    `cmd:"" help:"List your access keys."`
	Create  KeyCreate  `cmd:"" help:"Make an access key, and print it on standard output."`
	Rotate  KeyRotate  `cmd:"" help:"Make an access key like another one, print it on standard output, and let the other one end after a time of grace."`
	Disable KeyDisable `cmd:"" help:"Disable an access key: the platform refuses it until it is enabled again."`
	Tree    KeyTree    `cmd:"" help:"Print the tree of an access key: the credentials and objects that were made with it, directly or not, and which of them end with it."`
	End     KeyEnd     `cmd:"" help:"End an access key and what was made with it, directly or not: keys, tokens, and users, teams and trust rules with their credentials."`
}

// KeyTree prints the objects that were made with an access key. It reads the API like any client, so that it shows what
// its caller may see. Source: ADR-0021, ADR-0047.
type KeyTree struct {
	Name string `arg:"" name:"name" placeholder:"NAME" help:"Name of the access key."`
	platformAddress
	UID    string `name:"uid" placeholder:"UID" help:"UID of the access key, if it is gone. The audit has it, and the status of each object that was made with the key."`
	Output string `short:"o" enum:"text,json,yaml" default:"text" help:"Output format: text, json or yaml (${default})."`

	// Out is the writer for the tree. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

type tree struct {
	// Key is the access key, with the objects that were made with it.
	Key credential `json:"key"`
	// EndsWithKey counts the credentials that end when the key is deleted. Foreground counts the credentials that end when the
	// key is deleted with --cascade=foreground. Neither counts the key itself.
	EndsWithKey count `json:"endsWithKey"`
	Foreground  count `json:"endsInForeground"`
	// Hidden are the resources that the caller may not list.
	Hidden []string `json:"hidden,omitempty"`
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

// credential is an access key, a token, or another object that was made with an access key.
type credential struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Type is the type of an access key. A kubeconfig is an access key of type Kubeconfig.
	Type  string `json:"type,omitempty"`
	Owner string `json:"owner"`
	// Ends is when the credential expires. Absent: never.
	Ends *metav1.Time `json:"expirationTimestamp,omitempty"`
	// MadeBy is the key with which the object was made. If this key is gone, the object is listed below its nearest
	// existing ancestor.
	MadeBy string `json:"createdBy,omitempty"`
	// Gone reports whether the access key was deleted before the command. Only the key at the top can be gone.
	Gone bool `json:"gone,omitempty"`
	// EndsWithKey reports whether the object ends when the key at the top is deleted. EndsInForeground reports whether
	// it ends when the key is deleted with --cascade=foreground.
	EndsWithKey      bool         `json:"endsWithKey"`
	EndsInForeground bool         `json:"endsInForeground"`
	Made             []credential `json:"made,omitempty"`

	namespace string
	lineage   []model.AccessKeyAncestor
	// from is the uid of the user, team or trust rule that owns the credential.
	from    string
	created metav1.Time
}

// isToken reports whether a credential is a token and not an access key.
func (c *credential) isToken() bool { return c.Kind == tokenKind }

func (c *credential) isCredential() bool { return c.Kind == keyKind || c.isToken() }

const (
	keyKind   = "OwnedAccessKey"
	tokenKind = "DirectClusterEndpointToken"
	keysPath  = "/ownedaccesskeys"
	// pageOf is the number of objects on a requested page.
	pageOf = 250
)

func (c *KeyTree) Run(ctx context.Context) error {
	at, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	printed, err := treeOf(ctx, at, c.Name, c.UID)
	if err != nil {
		return err
	}
	out := cmp.Or[io.Writer](c.Out, os.Stdout)
	return output.Write(out, c.Output, printed, printed.describe)
}

// treeOf returns the tree of an access key. A key with a uid may be gone, and another key may have its name. Without a
// uid, the existing key of the name is meant.
func treeOf(ctx context.Context, platform *platformClient, name, uid string) (tree, error) {
	var root model.OwnedAccessKey
	err := platform.get(ctx, keysPath+"/"+url.PathEscape(name), &root)
	var refusal *answerError
	missing := errors.As(err, &refusal) && refusal.code == http.StatusNotFound
	switch {
	case uid != "" && (missing || err == nil && string(root.UID) != uid):
		return grownFrom(ctx, platform, credential{Kind: keyKind, Name: name, UID: uid, Gone: true})
	case missing:
		return tree{}, fmt.Errorf("%w; a key that was deleted is found by its --uid", err)
	case err != nil:
		return tree{}, err
	case root.UID == "":
		return tree{}, errors.New("asking for the access key: the answer has none")
	}
	return grownFrom(ctx, platform, credentialOfKey(&root))
}

// grownFrom returns the tree of an access key, which may be gone.
func grownFrom(ctx context.Context, at *platformClient, root credential) (tree, error) {
	s := &search{at: at, seen: map[string]bool{root.UID: true}, hidden: map[string]bool{}}
	if err := s.addMadeWith(ctx, root.UID); err != nil {
		return tree{}, err
	}
	grown := grow(root, s.found)
	grown.Hidden = slices.Sorted(maps.Keys(s.hidden))
	return grown, nil
}

// search finds the objects that were made with an access key, the credentials of the users, teams and trust rules among
// them, the objects that were made with these credentials, and so on.
type search struct {
	at    *platformClient
	found []credential
	// seen are the uids of the objects in the tree.
	seen map[string]bool
	// hidden are the resources that the caller may not list.
	hidden map[string]bool
}

// originObject is an object with the origin in its status.
type originObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            model.Origin `json:"status"`
}

// originated are the resources, besides credentials, whose objects record the key with which they were made.
// Credentials is the field selector of the access keys that an object gives.
var originated = []struct{ path, kind, credentials string }{
	{"/users", "User", "spec.user"}, {"/teams", "Team", "spec.team"}, {"/trustrules", "TrustRule", "status.trustRule.name"},
	{"/projects", "Project", ""}, {"/virtualclusterinstances", "VirtualClusterInstance", ""},
}

// addMadeWith adds the objects that were made with the key of a uid.
func (s *search) addMadeWith(ctx context.Context, uid string) error {
	selector := "status.lineage.uid=" + uid
	if err := s.credentials(ctx, selector, nil); err != nil {
		return err
	}
	for _, kind := range originated {
		var objects []originObject
		if err := listVisible(s, ctx, kind.path, selector, func(one originObject) { objects = append(objects, one) }); err != nil {
			return err
		}
		for _, one := range objects {
			object := credential{
				Kind: kind.kind, Name: one.Name, UID: string(one.UID), MadeBy: maker(one.Status.CreatedBy), namespace: one.Namespace,
				lineage: one.Status.Lineage, created: one.CreationTimestamp,
			}
			if by := one.Status.CreatedBy; by != nil {
				object.Owner = by.Owner
			}
			if !s.add(object) || kind.credentials == "" {
				continue
			}
			if err := s.credentials(ctx, kind.credentials+"="+object.Name, &object); err != nil {
				return err
			}
		}
	}
	return nil
}

// credentials adds keys and tokens. With an object, it adds the credentials of the object, and the objects that were
// made with them.
func (s *search) credentials(ctx context.Context, selector string, parent *credential) error {
	var children []credential
	err := listVisible(s, ctx, keysPath, selector, func(k model.OwnedAccessKey) {
		key := credentialOfKey(&k)
		if rule := k.Status.TrustRule; parent != nil && parent.Kind == "TrustRule" && (rule == nil || rule.UID != parent.UID) {
			return
		}
		if parent != nil {
			key.from = parent.UID
		}
		children = append(children, key)
	})
	if err == nil && parent == nil {
		err = listVisible(s, ctx, "/directclusterendpointtokens", selector, func(t model.DirectClusterEndpointToken) { children = append(children, credentialOfToken(&t)) })
	}
	if err != nil {
		return err
	}
	for _, one := range children {
		if s.add(one) && parent != nil {
			if err := s.addMadeWith(ctx, one.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an object that is not in the tree yet.
func (s *search) add(one credential) bool {
	if s.seen[one.UID] {
		return false
	}
	s.seen[one.UID] = true
	s.found = append(s.found, one)
	return true
}

// listVisible reads a list, and leaves out a resource that the caller may not list.
func listVisible[T any](s *search, ctx context.Context, path, selector string, do func(T)) error { //nolint:revive // the search is what a method would have
	err := eachItem(ctx, s.at, path, selector, do)
	var refusal *answerError
	if errors.As(err, &refusal) && refusal.code == http.StatusForbidden {
		s.hidden[strings.TrimPrefix(path, "/")] = true
		return nil
	}
	return err
}

func credentialOfKey(k *model.OwnedAccessKey) credential {
	return credential{
		Kind: keyKind, Name: k.Name, UID: string(k.UID), Type: cmp.Or(k.Spec.Type, model.AccessKeyTypeUser), Owner: owner(k.Spec.User, k.Spec.Team, k.Spec.Subject),
		Ends: k.Status.ExpirationTimestamp, MadeBy: maker(k.Status.CreatedBy), lineage: k.Status.Lineage, created: k.CreationTimestamp,
	}
}

func credentialOfToken(t *model.DirectClusterEndpointToken) credential {
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

// grow puts each object below its nearest existing ancestor. An object without an existing ancestor goes below the
// object whose credential it is.
func grow(root credential, objects []credential) tree {
	slices.SortStableFunc(objects, func(a, b credential) int {
		return cmp.Or(a.created.Compare(b.created.Time), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	existing := map[string]bool{root.UID: true}
	for _, each := range objects {
		existing[each.UID] = !each.isToken()
	}
	below := map[string][]credential{}
	for _, each := range objects {
		at := slices.IndexFunc(each.lineage, func(a model.AccessKeyAncestor) bool { return existing[a.UID] })
		switch {
		case at >= 0:
			below[each.lineage[at].UID] = append(below[each.lineage[at].UID], each)
		case each.from != "":
			below[each.from] = append(below[each.from], each)
		}
	}
	grown := tree{}
	var place func(parent *credential, ends bool)
	place = func(parent *credential, ends bool) {
		parent.EndsWithKey, parent.Made = ends, below[parent.UID]
		for i := range parent.Made {
			child := &parent.Made[i]
			ofRoot := slices.IndexFunc(child.lineage, func(a model.AccessKeyAncestor) bool { return a.UID == root.UID })
			// A token ends with the key that requested it. A key ends with the keys that it is bound to.
			bound := child.isCredential() && ofRoot >= 0 && child.lineage[ofRoot].Bounds || child.isToken() && ends
			child.EndsInForeground = child.isCredential() && (ofRoot >= 0 && !root.Gone || bound)
			if child.EndsInForeground {
				grown.Foreground.add(child)
			}
			if bound {
				grown.EndsWithKey.add(child)
			}
			place(child, bound)
		}
	}
	place(&root, true)
	root.EndsInForeground = !root.Gone
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

// describe returns the tree as text.
func (t tree) describe() []byte {
	rows := [][]string{{"NAME", "TYPE", "OWNER", "ENDS", "ENDS WITH THE KEY"}}
	var add func(c *credential, depth int)
	add = func(c *credential, depth int) {
		ends, endsWithKey := "never", "yes"
		if c.Ends != nil {
			ends = c.Ends.UTC().Format(time.RFC3339)
		}
		if c.Gone {
			ends = ""
		}
		switch {
		case depth == 0:
			endsWithKey = ""
		case !c.EndsInForeground:
			endsWithKey = "no"
		case !c.EndsWithKey:
			endsWithKey = "only with --cascade=foreground"
		}
		rows = append(rows, []string{strings.Repeat("  ", depth) + c.title(), c.label(), c.Owner, ends, endsWithKey})
		for i := range c.Made {
			add(&c.Made[i], depth+1)
		}
	}
	add(&t.Key, 0)
	var text strings.Builder
	text.WriteString(alignRows(rows) + "\n")
	if !t.Key.Gone {
		fmt.Fprintf(&text, "kubectl delete oak %s ends %s with it.\n", t.Key.Name, t.EndsWithKey)
		fmt.Fprintf(&text, "kubectl delete oak %s --cascade=foreground ends %s with it.\n", t.Key.Name, t.Foreground)
	}
	if gone, stays := t.remaining(); len(gone)+len(stays) > 0 {
		fmt.Fprintf(&text, "platform keys end %s ends the rest, and deletes its users, teams and trust rules. Projects and virtual clusters stay.\n", t.Key.arguments())
	}
	if len(t.Hidden) > 0 {
		fmt.Fprintf(&text, "You may not list %s: what is there is not shown.\n", strings.Join(t.Hidden, ", "))
	}
	return []byte(text.String())
}

// alignRows returns the rows of a table as kubectl prints them.
func alignRows(rows [][]string) string {
	var wide, text strings.Builder
	table := tabwriter.NewWriter(&wide, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush()
	for line := range strings.Lines(wide.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return text.String()
}

// remaining returns the objects that remain after the key is deleted: first the objects that other keys end, then the
// objects that stay.
func (t tree) remaining() (endedLater, stays []*credential) {
	var add func(c *credential)
	add = func(c *credential) {
		switch {
		case c.EndsInForeground || c.Gone:
		case c.Kind == "Project" || c.Kind == "VirtualClusterInstance":
			stays = append(stays, c)
		default:
			endedLater = append(endedLater, c)
		}
		for i := range c.Made {
			add(&c.Made[i])
		}
	}
	add(&t.Key)
	return endedLater, stays
}

// arguments are the parameters for finding an access key.
func (c *credential) arguments() string {
	if c.Gone {
		return c.Name + " --uid " + c.UID
	}
	return c.Name
}

// title is the name, with the namespace.
func (c *credential) title() string {
	if c.namespace == "" {
		return c.Name
	}
	return c.namespace + "/" + c.Name
}

// label is the type of an access key, or a noun for another object.
func (c *credential) label() string {
	if c.Gone {
		return "deleted"
	}
	switch c.Kind {
	case keyKind:
		return c.Type
	case tokenKind:
		return "token"
	case "TrustRule":
		return "trust rule"
	case "VirtualClusterInstance":
		return "virtual cluster"
	default:
		return strings.ToLower(c.Kind)
	}
}

// answerError means that the platform did not serve a request.
type answerError struct {
	code    int
	message string
}

// Error returns the message of the platform.
func (e *answerError) Error() string { return "asking the platform: " + e.message }

// get decodes the response at a path of the API into a value.
func (r *platformClient) get(ctx context.Context, path string, into any) error {
	return r.ask(ctx, http.MethodGet, path, nil, into)
}

// ask sends a request to a path of the API and decodes the response into a value. Errors: answerError; the reason why
// there is no response.
func (r *platformClient) ask(ctx context.Context, method, path string, body io.Reader, into any) error {
	return r.askAs(ctx, method, path, body, nil, into)
}

// askAs is ask with headers.
func (r *platformClient) askAs(ctx context.Context, method, path string, body io.Reader, header http.Header, into any) error {
	response, err := r.send(ctx, method, "/apis/"+model.SchemeGroupVersion.String()+path, body, header)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		_, refusal, err := readAnswer(response)
		if err != nil {
			return fmt.Errorf("asking the platform: %w", err)
		}
		return &answerError{code: response.StatusCode, message: refusal}
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxList)).Decode(into); err != nil {
		return fmt.Errorf("asking the platform: %w", err)
	}
	return nil
}

// maxList bounds a page that is read, in bytes.
const maxList = 64 << 20

// eachItem reads a list page by page.
func eachItem[T any](ctx context.Context, platform *platformClient, path, selector string, do func(T)) error {
	query := url.Values{"fieldSelector": {selector}}
	return pages(query, func() (next string, err error) {
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []T `json:"items"`
		}
		err = platform.get(ctx, path+"?"+query.Encode(), &page)
		for _, one := range page.Items {
			do(one)
		}
		return page.Continue, err
	})
}

// pages reads the pages of a list. It changes the query before each page.
func pages(query url.Values, read func() (next string, err error)) error {
	query.Set("limit", fmt.Sprint(pageOf))
	for {
		next, err := read()
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}
