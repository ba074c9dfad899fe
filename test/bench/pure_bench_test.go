package bench

import (
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/auth/scope"
	"management.platform.sh/shared/kinds/accesskey"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/state/store"
)

// keep stops the compiler from leaving out what is measured.
var keep any

// storedKey is a key as the store has it.
func storedKey(b *testing.B, name string) store.Record {
	b.Helper()
	key := accessKey(name)
	key.SetGroupVersionKind(accesskey.Definition.GroupVersionKind())
	key.UID = "4a2f6a52-5f6e-4d51-9b0c-0e2f1d7a5b11"
	key.CreationTimestamp = metav1.Time{Time: time.Unix(1_700_000_000, 0).UTC()}
	key.Generation = 1
	text, err := json.Marshal(key)
	if err != nil {
		b.Fatal(err)
	}
	return store.Record{
		Name: name, Revision: 7, Owner: accesskey.OwnerOf(&key.Spec).String(), Created: key.CreationTimestamp.Time,
		Expires: key.CreationTimestamp.Add(24 * time.Hour), Activity: key.CreationTimestamp.Add(time.Hour), Object: text,
	}
}

func registry() *accesskey.Registry {
	return accesskey.NewRegistry(nil, time.Now, rand.Reader, func() accesskey.Limits { return accesskey.Limits{} })
}

// BenchmarkCheckBearer measures the check of a bearer token's form, which comes before the lookup in the state.
func BenchmarkCheckBearer(b *testing.B) {
	bearer, err := accesskey.NewBearer(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := accesskey.CheckBearer(bearer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDigest measures the digest by which a bearer token is looked up.
func BenchmarkDigest(b *testing.B) {
	bearer, err := accesskey.NewBearer(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		keep = accesskey.Digest(bearer)
	}
}

// BenchmarkDecode is a stored key as the API shows it: one that is seen for the first time, and one that is
// read again.
func BenchmarkDecode(b *testing.B) {
	record := storedKey(b, "one")
	for name, next := range map[string]func(*accesskey.Registry) *accesskey.Registry{
		"first": func(*accesskey.Registry) *accesskey.Registry { return registry() },
		"again": func(same *accesskey.Registry) *accesskey.Registry { return same },
	} {
		b.Run(name, func(b *testing.B) {
			keys := registry()
			b.SetBytes(int64(len(record.Object)))
			b.ReportAllocs()
			for b.Loop() {
				keys = next(keys)
				key, err := keys.Decode(record)
				if err != nil {
					b.Fatal(err)
				}
				keep = key
			}
		})
	}
}

// BenchmarkEncode is a key as an answer.
func BenchmarkEncode(b *testing.B) {
	key, err := registry().Decode(storedKey(b, "one"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		text, err := json.Marshal(key)
		if err != nil {
			b.Fatal(err)
		}
		keep = text
	}
}

// BenchmarkReadBody is a request body with unknown fields looked for.
func BenchmarkReadBody(b *testing.B) {
	text := objectBody("one", "Deploys what was merged")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		body, err := codec.Read(codec.JSON, text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := codec.Decode(body, &model.OwnedAccessKey{}, codec.Strict); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCaller is the groups of a caller.
func BenchmarkCaller(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		keep = identity.New(identity.Owner{Kind: identity.User, Name: "admin"}, []string{identity.Admins})
	}
}

// BenchmarkAllows measures the decision whether a scope permits a request.
func BenchmarkAllows(b *testing.B) {
	request := scope.Request{
		Verb: "get", Group: model.GroupName, Resource: "virtualclusterinstances",
		Namespace: "p-default", Name: "main", Project: "default", Target: scope.TargetManagement,
	}
	foreign := request
	foreign.Group, foreign.Resource, foreign.Name = "", "secrets", "one"
	foreign.Namespace, foreign.Project = "p-other", "other"
	rules := &model.Scope{Rules: []model.ScopeRule{{
		Verbs: []string{"get", "list"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"*"}}},
	}}}
	for _, question := range []struct {
		name    string
		scope   *model.Scope
		request scope.Request
		allowed bool
	}{
		{"none", nil, request, true},
		{"narrow", narrowScope(), request, true},
		{"narrow refused", narrowScope(), foreign, false},
		{"rules", rules, request, true},
	} {
		b.Run(question.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if scope.Allows(question.scope, question.request) != question.allowed {
					b.Fatalf("want allowed=%t", question.allowed)
				}
			}
		})
	}
}

// BenchmarkTable500 is a page of keys as kubectl prints it.
func BenchmarkTable500(b *testing.B) {
	keys := registry()
	var page []*model.OwnedAccessKey
	for i := range objects {
		key, err := keys.Decode(storedKey(b, objectName(i)))
		if err != nil {
			b.Fatal(err)
		}
		page = append(page, key)
	}
	now := time.Now()
	b.Run("cells", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, key := range page {
				keep = keys.Definition.Cells(key, now)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		list := keys.Definition.NewList(metav1.ListMeta{}, page)
		b.ReportAllocs()
		for b.Loop() {
			text, err := json.Marshal(list)
			if err != nil {
				b.Fatal(err)
			}
			keep = text
		}
	})
}
