package auth_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/auth"
	"management.platform.sh/shared/directory"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// The object of a request is read together with the key of the caller, in a process that knows the key and in one that
// does not, even if the object is the caller's own owner. Records of other resources, which may have the same name, are
// not among the prefetched ones. Source: ADR-0002.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	s := newSociety(t)
	keys, a := s.process()
	// The key is bound to a key of another owner, which a new process looks up in a further round trip.
	maker, err := s.create(keys, admin, model.OwnedAccessKeySpec{User: "root", Groups: []string{identity.Admins}, TTLSeconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := a.Bearer(t.Context(), secret.String(maker.Spec.Key))
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.create(keys, caller, model.OwnedAccessKeySpec{User: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []store.Record{{Name: key.Name}, {Name: "p-shop/dev"}} {
		object.Created, object.Object = s.now, []byte(`{}`)
		for _, resource := range []string{"virtualclusterinstances", "trustrules"} {
			if _, err := s.client.Resource(resource).Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	rows := []struct {
		about string
		ahead store.Ref
		want  []string
	}{
		{"none", store.Ref{}, nil},
		{"an instance", store.Ref{Resource: "virtualclusterinstances", Name: "p-shop/dev"}, []string{"p-shop/dev"}},
		{"an object with the name of the key", store.Ref{Resource: "trustrules", Name: key.Name}, []string{key.Name}},
		{"none, in a resource that has objects", store.Ref{Resource: "trustrules", Name: "gone"}, nil},
		{"the key itself", store.Ref{Resource: accesskey.Definition.Resource.Resource, Name: key.Name}, []string{key.Name, maker.Name}},
		{"another key", store.Ref{Resource: accesskey.Definition.Resource.Resource, Name: "gone"}, []string{maker.Name}},
		{"the user of the key", store.Ref{Resource: directory.Users, Name: "ana"}, nil},
	}
	check := func(about, bearer string, managed bool) {
		t.Helper()
		_, warm := s.process()
		for range 2 {
			for _, row := range rows {
				if bearer == maker.Spec.Key && row.ahead.Resource == accesskey.Definition.Resource.Resource {
					// The other key that the process has cached comes with it.
					continue
				}
				_, cold := s.process()
				want := slices.Sorted(slices.Values(row.want))
				if row.ahead.Resource == directory.Users && managed {
					want = []string{"ana"}
				}
				for process, authenticator := range map[string]*auth.Authenticator{"a process that knows the key": warm, "a new process": cold} {
					_, found, err := authenticator.Header(t.Context(), http.Header{"Authorization": {"Bearer " + bearer}}, row.ahead)
					if names := slices.Sorted(maps.Keys(found)); err != nil || !slices.Equal(names, want) {
						t.Errorf("%s, %s, %s: read %q, %v, want %q", about, process, row.about, names, err, want)
					}
					if record, read := found[row.ahead.Name]; read && !sameRecord(s, t, row.ahead, record) {
						t.Errorf("%s, %s, %s: %+v is not what is stored", about, process, row.about, record)
					}
				}
			}
		}
	}
	check("no users", maker.Spec.Key, false)
	check("no users, a bound key", key.Spec.Key, false)
	s.storeObject(user("ana", model.UserSpec{}))
	check("a user", maker.Spec.Key, true)
	check("a user, a bound key", key.Spec.Key, true)
}

// An object of the request that this build cannot read does not keep the caller from being known.
func TestReadAheadOfAnUnreadableObject(t *testing.T) {
	t.Parallel()
	url := redistest.Embedded(t)
	s := &society{t: t, client: redistest.Open(t, url), now: born}
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	raw := redis.NewClient(options)
	defer func() { _ = raw.Close() }()
	keys, _ := s.process()
	key, err := s.create(keys, admin, model.OwnedAccessKeySpec{User: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	for _, managed := range []bool{false, true} {
		if managed {
			s.storeObject(user("ana", model.UserSpec{}))
		}
		for _, ref := range []store.Ref{{Resource: "virtualclusterinstances", Name: "p-shop/dev"}, {Resource: accesskey.Definition.Resource.Resource, Name: "other"}} {
			if err := raw.HSet(t.Context(), "p1:{"+ref.Resource+"}:objects", ref.Name, "9 newer\n{}").Err(); err != nil {
				t.Fatal(err)
			}
			_, a := s.process()
			for range 3 {
				caller, found, err := a.Header(t.Context(), http.Header{"Authorization": {"Bearer " + key.Spec.Key}}, ref)
				if _, read := found[ref.Name]; err != nil || caller.Owner.Name != "ana" || read {
					t.Errorf("managed %v, %+v: %v, %v, %v", managed, ref, caller.Owner, found, err)
				}
			}
		}
	}
}

// sameRecord reports whether a record equals the stored one. Its last use does not count.
func sameRecord(s *society, t *testing.T, ref store.Ref, record store.Record) bool {
	t.Helper()
	stored, err := s.client.Resource(ref.Resource).Get(t.Context(), ref.Name)
	if err != nil {
		t.Fatal(err)
	}
	stored.Activity = record.Activity
	return fmt.Sprint(stored) == fmt.Sprint(record)
}
