package authority

import (
	"context"
	"strings"
	"testing"

	"management.platform.sh/local/localtest"
	"management.platform.sh/shared/platform"
	"management.platform.sh/shared/state/encryption"
	"management.platform.sh/shared/state/store"
)

// withKey returns an environment with the stores of another one and an encryption key.
func withKey(t *testing.T, env *platform.Environment, text string) *platform.Environment {
	t.Helper()
	changed := &platform.Environment{Stores: env.Stores}
	if text != "" {
		ring, err := encryption.Parse(encryption.Generate())
		if err != nil {
			t.Fatal(err)
		}
		changed.Encryption = func(context.Context) (*encryption.Keyring, error) { return ring, nil }
	}
	return changed
}

// All processes with the same state and encryption key have the same authority. Its key is sealed in the state. Source: ADR-0053.
func TestSharedAuthority(t *testing.T) {
	env, _ := localtest.Environment(t)
	mine := withKey(t, env, "key")
	first, err := OpenShared(t.Context(), mine, start)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenShared(t.Context(), mine, start.Add(year))
	if err != nil {
		t.Fatal(err)
	}
	if !first.key.Equal(second.key) {
		t.Error("the second process has another authority")
	}
	if err := verify(first.PEM, leafOf(t, second, start, "127.0.0.1:1"), "127.0.0.1", start); err != nil {
		t.Error(err)
	}
	record, err := env.Stores(sharedResource).Get(t.Context(), sharedName)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(record.Object), "PRIVATE KEY") {
		t.Error("the state has the key in clear")
	}
	// An authority that ends before a certificate that it signs is replaced, once.
	third, err := OpenShared(t.Context(), mine, start.Add(9*year))
	if err != nil || third.key.Equal(first.key) {
		t.Errorf("after nine years: the same authority, %v", err)
	}
	fourth, err := OpenShared(t.Context(), mine, start.Add(9*year))
	if err != nil || !fourth.key.Equal(third.key) {
		t.Errorf("after nine years, again: another authority, %v", err)
	}
}

// A process that cannot read the authority does not replace it.
func TestSharedAuthorityIsRefused(t *testing.T) {
	env, _ := localtest.Environment(t)
	if _, err := OpenShared(t.Context(), withKey(t, env, ""), start); err == nil || !strings.Contains(err.Error(), "encryption key") {
		t.Errorf("without an encryption key: %v", err)
	}
	if _, err := OpenShared(t.Context(), withKey(t, env, "key"), start); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenShared(t.Context(), withKey(t, env, "another key"), start); err == nil {
		t.Error("another encryption key opens the authority")
	}
	records := env.Stores(sharedResource)
	kept, err := records.Get(t.Context(), sharedName)
	if err != nil {
		t.Fatal(err)
	}
	for about, object := range map[string]string{"no JSON": "x", "an empty record": "{}"} {
		changed := store.Record{Name: sharedName, Revision: kept.Revision, Created: kept.Created, Object: []byte(object)}
		if kept.Revision, err = records.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenShared(t.Context(), withKey(t, env, "key"), start); err == nil {
			t.Errorf("%s is an authority", about)
		}
	}
}

// overtaken is a store in which another process makes an authority after the first look.
type overtaken struct {
	store.Store
	other func()
}

func (s *overtaken) Get(ctx context.Context, name string) (store.Record, error) {
	record, err := s.Store.Get(ctx, name)
	if other := s.other; other != nil {
		s.other = nil
		other()
	}
	return record, err
}

func TestSharedAuthorityOfTheFirst(t *testing.T) {
	env, _ := localtest.Environment(t)
	mine := withKey(t, env, "key")
	var first *Authority
	late := &platform.Environment{Encryption: mine.Encryption}
	late.Stores = func(name string) store.Store {
		return &overtaken{env.Stores(name), func() {
			var err error
			if first, err = OpenShared(t.Context(), mine, start); err != nil {
				t.Error(err)
			}
		}}
	}
	second, err := OpenShared(t.Context(), late, start)
	if err != nil {
		t.Fatal(err)
	}
	if !second.key.Equal(first.key) {
		t.Error("the process that was overtaken has an authority of its own")
	}
}
