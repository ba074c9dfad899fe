package accesskey_test

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// born is the time at which the tests make keys.
var born = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// seeded returns a source of the same random bytes in every run.
func seeded() io.Reader { return rand.NewChaCha8([32]byte{7}) }

// state returns an empty store of access keys.
func state(t *testing.T) store.Store {
	t.Helper()
	client := redistest.Open(t, redistest.Embedded(t))
	return client.Resource(accesskey.Definition.Resource.Resource)
}

// rules returns the access keys without any state, under a cap.
func rules(limit time.Duration) *accesskey.Registry {
	return accesskey.NewRegistry(nil, func() time.Time { return born }, seeded(), func() accesskey.Limits { return accesskey.Limits{Max: limit} })
}

// spec reads a spec in YAML.
func spec(t *testing.T, text string) model.OwnedAccessKeySpec {
	t.Helper()
	var s model.OwnedAccessKeySpec
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("reading spec %q: %v", text, err)
	}
	return s
}

// key returns a key that was made at born with a spec in YAML.
func key(t *testing.T, text string) *model.OwnedAccessKey {
	t.Helper()
	return &model.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{Name: "ci", CreationTimestamp: metav1.Time{Time: born}},
		Spec:       spec(t, text),
	}
}

// found returns the parts of problems that the tests compare: type and field.
func found(problems field.ErrorList) []string {
	var list []string
	for _, problem := range problems {
		list = append(list, string(problem.Type)+" "+problem.Field)
	}
	slices.Sort(list)
	return list
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatalf("writing the golden file: %v", err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("reading the golden file: %v", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

const (
	required     = string(field.ErrorTypeRequired) + " "
	invalid      = string(field.ErrorTypeInvalid) + " "
	duplicate    = string(field.ErrorTypeDuplicate) + " "
	notSupported = string(field.ErrorTypeNotSupported) + " "
	tooMany      = string(field.ErrorTypeTooMany) + " "
	tooLong      = string(field.ErrorTypeTooLong) + " "
	forbidden    = string(field.ErrorTypeForbidden) + " "
)

var (
	alice   = identity.New(identity.Owner{Kind: identity.User, Name: "alice"}, nil)
	bob     = identity.New(identity.Owner{Kind: identity.User, Name: "bob"}, nil)
	member  = identity.New(identity.Owner{Kind: identity.User, Name: "alice"}, []string{"platform:team:dev", "ops"})
	team    = identity.New(identity.Owner{Kind: identity.Team, Name: "dev"}, nil)
	subject = identity.New(identity.Owner{Kind: identity.Subject, Name: "robot"}, nil)
	admin   = identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
)

// scoped returns the caller with a credential that is narrowed to project a.
func scoped(caller identity.Caller) identity.Caller {
	caller.Scope = &model.Scope{Projects: []model.ScopeProject{{Project: "a"}}}
	return caller
}

func revision(t *testing.T, s store.Store) int64 {
	t.Helper()
	page, err := s.List(context.Background(), store.Query{Limit: 1})
	if err != nil {
		t.Fatalf("reading the revision: %v", err)
	}
	return page.Revision
}
