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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// KeyEnd ends an access key, and the credentials and other objects that were made with it. Projects and virtual
// clusters stay, because other people work with them. Source: ADR-0047.
type KeyEnd struct {
	Name string `arg:"" name:"name" placeholder:"NAME" help:"Name of the access key."`
	platformAddress
	UID string `name:"uid" placeholder:"UID" help:"UID of the access key, if it is gone. The audit has it, and the status of each object that was made with the key."`
	Yes bool   `help:"End them. Absent: only print what would end."`

	// Out is the writer for the report. Nil: the standard output of the process.
	Out io.Writer `kong:"-"`
}

// maxRounds bounds how often the command looks again for objects that were made in the meantime.
const maxRounds = 8

// Run prints the objects that were made with the key and, with --yes, ends them, one line for each object.
func (c *KeyEnd) Run(ctx context.Context) error {
	out := cmp.Or[io.Writer](c.Out, os.Stdout)
	platform, err := reach(ctx, c.Host, c.Authority)
	if err != nil {
		return err
	}
	ancestry, err := treeOf(ctx, platform, c.Name, c.UID)
	if err != nil {
		return err
	}
	if len(ancestry.Hidden) > 0 {
		return fmt.Errorf("the key may have led to more than you see: you may not list %s", strings.Join(ancestry.Hidden, ", "))
	}
	if err := refuseOwnCredential(ctx, platform, ancestry); err != nil {
		return err
	}
	if !c.Yes {
		if _, err := out.Write(ancestry.describe()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "Nothing was changed. platform keys end %s --yes does it.\n", ancestry.Key.arguments())
		return err
	}
	done := &deletion{at: platform, out: out, tried: map[string]bool{ancestry.Key.UID: ancestry.Key.Gone}}
	for round := 0; ; round++ {
		changed := done.end(ctx, ancestry)
		if !changed || round == maxRounds {
			break
		}
		// Until the key and the users were gone, they could make more objects.
		if ancestry, err = grownFrom(ctx, platform, ancestry.Key); err != nil {
			return err
		}
	}
	_, stays := ancestry.remaining()
	for _, one := range stays {
		_, _ = fmt.Fprintf(out, "the %s %s stays\n", one.label(), one.title())
	}
	return errors.Join(done.problems...)
}

// refuseOwnCredential refuses a tree that contains the credential of the command itself: the command would lose its credential before
// it has finished.
func refuseOwnCredential(ctx context.Context, platform *platformClient, ancestry tree) error {
	self, err := platform.self(ctx)
	if err != nil {
		return err
	}
	var own func(c credential) bool
	own = func(c credential) bool {
		return c.Kind == keyKind && c.Name == self.AccessKey || slices.ContainsFunc(c.Made, own)
	}
	if own(ancestry.Key) {
		return fmt.Errorf("your own access key %s is among them: use the key of another admin", self.AccessKey)
	}
	return nil
}

// deletion is one run of the command.
type deletion struct {
	at  *platformClient
	out io.Writer
	// tried are the uids of objects that were deleted, or could not be.
	tried    map[string]bool
	problems []error
}

// end deletes the objects that were not tried before. The key is first, then users, teams and trust rules, then the
// remaining credentials. Changed reports whether any object was deleted.
func (e *deletion) end(ctx context.Context, found tree) (changed bool) {
	gone, _ := found.remaining()
	changed = e.delete(ctx, &found.Key)
	for _, kind := range []string{"TrustRule", "User", "Team", keyKind} {
		for _, one := range gone {
			if one.Kind == kind && e.delete(ctx, one) {
				changed = true
			}
		}
	}
	return changed
}

// delete deletes an object. If the object is a key, it also deletes the objects that were made with the key. It reports
// whether the object existed.
func (e *deletion) delete(ctx context.Context, object *credential) bool {
	if e.tried[object.UID] {
		return false
	}
	e.tried[object.UID] = true
	paths := map[string]string{keyKind: keysPath}
	for _, kind := range originated {
		paths[kind.kind] = kind.path
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(object.UID))}}
	if object.Kind == keyKind {
		options.PropagationPolicy = ptr.To(metav1.DeletePropagationForeground)
	}
	body, err := json.Marshal(&options)
	if err == nil {
		var answer any
		err = e.at.ask(ctx, http.MethodDelete, paths[object.Kind]+"/"+url.PathEscape(object.Name), bytes.NewReader(body), &answer)
	}
	var refusal *answerError
	switch {
	case errors.As(err, &refusal) && refusal.code == http.StatusNotFound:
		// The object was deleted with its owner.
		return false
	case err != nil:
		e.problems = append(e.problems, fmt.Errorf("the %s %s: %w", object.noun(), object.Name, err))
		return false
	}
	_, _ = fmt.Fprintf(e.out, "ended the %s %s\n", object.noun(), object.Name)
	return true
}

// noun names the object within a sentence.
func (c *credential) noun() string {
	if c.Kind == keyKind {
		return "access key"
	}
	return c.label()
}
