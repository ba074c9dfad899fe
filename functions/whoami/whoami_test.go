package whoami

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"management.platform.sh/shared/api/codec"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/credentials/review"
	"management.platform.sh/shared/model"
	"management.platform.sh/shared/model/apierror"
	"management.platform.sh/shared/model/identity"
	"management.platform.sh/shared/model/secret"
)

const bearer = "8Kx20wQm57-tLp93VrNc4-Hd6ZyB1sFg-0123456789"

var (
	narrow = &model.Scope{Rules: []model.ScopeRule{{
		Verbs: []string{"get"}, Resources: []model.ScopeGroupResources{{Group: model.GroupName, Resources: []string{"ownedaccesskeys"}}},
	}}}
	ana  = caller(identity.User, "ana", nil, "ci")
	tia  = caller(identity.Team, "core", narrow, "team-ci")
	sub  = caller(identity.Subject, "robot", nil, "bot")
	root = func() identity.Caller {
		admin := identity.New(identity.Owner{Kind: identity.User, Name: "root"}, []string{identity.Admins})
		admin.Key, admin.KeyType = "admin", "User"
		return admin
	}()
)

func caller(kind identity.OwnerKind, name string, scope *model.Scope, key string) identity.Caller {
	made := identity.New(identity.Owner{Kind: kind, Name: name}, []string{"extra"})
	made.Scope, made.Key, made.KeyType = scope, key, "User"
	return made
}

// deps returns dependencies that know one other key, which belongs to a team.
func deps(config model.ConfigStatus) Deps {
	return Deps{
		Inspect: func(_ context.Context, given secret.String) (identity.Caller, error) {
			if given.Reveal() != bearer {
				return identity.Caller{}, apierror.Unauthorized("invalid bearer token")
			}
			return tia, nil
		},
		Access: &review.Access{Project: func(namespace string) string { return strings.TrimPrefix(namespace, "p-") }},
		Config: func() *model.ConfigStatus { return &config },
	}
}

// object is an object that kubectl sends.
type object interface{ Marshal() ([]byte, error) }

// protobuf returns a body in the form in which Kubernetes clients send it.
func protobuf(t testing.TB, apiVersion, kind string, o object) []byte {
	t.Helper()
	raw, err := o.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	text, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), text...)
}

func code(err error) int32 {
	if err == nil {
		return 0
	}
	return apierror.From(err).Status().Code
}

// decoded calls an operation with the object in a body, as the frame does.
func decoded[T, O runtime.Object](
	do func(context.Context, Deps, frame.ReviewRequest[T]) (O, error), config model.ConfigStatus, caller identity.Caller, contentType string, body []byte, object T,
	kind schema.GroupVersionKind,
) (O, error) {
	if _, _, err := codec.DecodeObject(contentType, body, object, kind, codec.Warn); err != nil {
		var none O
		return none, err
	}
	return do(context.Background(), deps(config), frame.ReviewRequest[T]{Caller: caller, Object: object})
}

func TestSelf(t *testing.T) {
	t.Parallel()
	meta := metav1.TypeMeta{APIVersion: "management.platform.sh/v1", Kind: "Self"}
	of := func(status model.SelfStatus) *model.Self { return &model.Self{TypeMeta: meta, Status: status} }
	asTeam := of(model.SelfStatus{
		Team: &model.SelfTeam{Name: "core"}, UID: "team:core", Groups: tia.Groups,
		AccessKey: "team-ci", AccessKeyType: "User", AccessKeyScope: narrow, ProjectNamespacePrefix: "p-",
	})
	shown := ana
	shown.DisplayName = "Ana Martínez"
	expiring := ana
	expiring.KeyExpires = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	asAna := of(model.SelfStatus{
		User: &model.SelfUser{Name: "ana"}, UID: "user:ana", Groups: ana.Groups,
		AccessKey: "ci", AccessKeyType: "User", ProjectNamespacePrefix: "p-",
	})
	for _, row := range []struct {
		about             string
		caller            identity.Caller
		contentType, body string
		config            model.ConfigStatus
		want              *model.Self
		code              int32
	}{
		{"a user, without a body (Spec 5.1)", ana, "", "", model.ConfigStatus{}, asAna, 0},
		{"an empty object", ana, "application/json", "{}", model.ConfigStatus{}, asAna, 0},
		{"a user with a display name", shown, "", "", model.ConfigStatus{}, of(model.SelfStatus{
			User: &model.SelfUser{Name: "ana", DisplayName: "Ana Martínez"}, UID: "user:ana", Groups: ana.Groups,
			AccessKey: "ci", AccessKeyType: "User", ProjectNamespacePrefix: "p-",
		}), 0},
		{"a team", tia, "application/json", "{}", model.ConfigStatus{}, asTeam, 0},
		{"a subject", sub, "application/json", "{}", model.ConfigStatus{}, of(model.SelfStatus{
			Subject: "robot", UID: "subject:robot", Groups: sub.Groups, AccessKey: "bot", AccessKeyType: "User", ProjectNamespacePrefix: "p-",
		}), 0},
		{"a key that expires", expiring, "", "", model.ConfigStatus{}, of(model.SelfStatus{
			User: &model.SelfUser{Name: "ana"}, UID: "user:ana", Groups: ana.Groups, AccessKey: "ci", AccessKeyType: "User",
			AccessKeyExpirationTimestamp: &metav1.Time{Time: expiring.KeyExpires}, ProjectNamespacePrefix: "p-",
		}), 0},
		{"the prefix of the configuration (Spec 2.7)", sub, "", "", model.ConfigStatus{ProjectNamespacePrefix: "team-"}, of(model.SelfStatus{
			Subject: "robot", UID: "subject:robot", Groups: sub.Groups, AccessKey: "bot", AccessKeyType: "User", ProjectNamespacePrefix: "team-",
		}), 0},
		{"another key", ana, "application/json", `{"spec":{"accessKey":"` + bearer + `"}}`, model.ConfigStatus{}, asTeam, 0},
		{"another key, in YAML", ana, "application/yaml", "spec:\n  accessKey: " + bearer + "\n", model.ConfigStatus{}, asTeam, 0},
		{"another key that is refused", ana, "application/json", `{"spec":{"accessKey":"` + strings.Repeat("x", 40) + `"}}`, model.ConfigStatus{}, nil, 401},
		{"a status that was sent is nothing", ana, "application/json", `{"status":{"uid":"user:root","groups":["platform:admins"]}}`, model.ConfigStatus{}, asAna, 0},
		{"no object", ana, "application/json", `[]`, model.ConfigStatus{}, nil, 400},
		{"no JSON", ana, "application/json", `{`, model.ConfigStatus{}, nil, 400},
		{"a wrong type", ana, "application/json", `{"spec":{"accessKey":["` + bearer + `"]}}`, model.ConfigStatus{}, nil, 400},
		{"a wrong type in YAML", ana, "application/yaml", "spec: [" + bearer + "]\n", model.ConfigStatus{}, nil, 400},
		{"another kind", ana, "application/json", `{"kind":"Pod","apiVersion":"v1"}`, model.ConfigStatus{}, nil, 400},
		{"its own kind", ana, "application/json", `{"kind":"Self","apiVersion":"management.platform.sh/v1"}`, model.ConfigStatus{}, asAna, 0},
		{"protobuf is for the kinds of Kubernetes", ana, "application/vnd.kubernetes.protobuf", "k8s\x00", model.ConfigStatus{}, nil, 415},
		{"another media type", ana, "text/plain", "{}", model.ConfigStatus{}, nil, 415},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			got, err := decoded(Do, row.config, row.caller, row.contentType, []byte(row.body), &model.Self{}, model.SchemeGroupVersion.WithKind("Self"))
			if code(err) != row.code || !reflect.DeepEqual(got, row.want) {
				t.Errorf("answered %+v, %v\nwant %+v, %d", got, err, row.want, row.code)
			}
			text, _ := json.Marshal(got)
			if strings.Contains(string(text)+fmt.Sprint(err), bearer) {
				t.Errorf("the answer echoes the key: %s, %v", text, err)
			}
		})
	}
}

func TestSubjectReview(t *testing.T) {
	t.Parallel()
	meta := metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}
	empty := protobuf(t, "authentication.k8s.io/v1", "SelfSubjectReview", &authenticationv1.SelfSubjectReview{})
	for _, row := range []struct {
		about       string
		caller      identity.Caller
		contentType string
		body        []byte
		username    string
		code        int32
	}{
		{"what kubectl auth whoami sends", ana, "application/vnd.kubernetes.protobuf", empty, "ana", 0},
		{"JSON", ana, "application/json", []byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`), "ana", 0},
		{"YAML", ana, "application/yaml", []byte("kind: SelfSubjectReview\napiVersion: authentication.k8s.io/v1\n"), "ana", 0},
		{"no body", ana, "", nil, "ana", 0},
		{"a team has the name of its group", tia, "", nil, "platform:team:core", 0},
		{"a subject has a name of its own", sub, "", nil, "platform:subject:robot", 0},
		{"a status that was sent is nothing", ana, "application/json", []byte(`{"status":{"userInfo":{"username":"root"}}}`), "ana", 0},
		{"another kind", ana, "application/json", []byte(`{"kind":"Pod","apiVersion":"v1"}`), "", 400},
		{"protobuf without its mark", ana, "application/vnd.kubernetes.protobuf", empty[4:], "", 400},
		{"protobuf cut short", ana, "application/vnd.kubernetes.protobuf", empty[:len(empty)-3], "", 400},
		{"no JSON", ana, "application/json", []byte(`{`), "", 400},
		{"another media type", ana, "text/plain", []byte("x"), "", 415},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			got, err := decoded(subjectReview, model.ConfigStatus{}, row.caller, row.contentType, row.body,
				&authenticationv1.SelfSubjectReview{}, authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
			if code(err) != row.code {
				t.Fatalf("answered %+v, %v", got, err)
			}
			if err != nil {
				return
			}
			want := &authenticationv1.SelfSubjectReview{TypeMeta: meta, Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{
				Username: row.username, UID: row.caller.Owner.String(), Groups: row.caller.Groups,
				Extra: map[string]authenticationv1.ExtraValue{"management.platform.sh/access-key": {row.caller.Key}},
			}}}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("answered %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestAccessReview(t *testing.T) {
	t.Parallel()
	type attributes = authorizationv1.ResourceAttributes
	keys := func(verb string) *attributes {
		return &attributes{Group: "management.platform.sh", Version: "v1", Resource: "ownedaccesskeys", Verb: verb}
	}
	scoped := ana
	scoped.Scope = narrow
	for _, row := range []struct {
		about   string
		caller  identity.Caller
		spec    authorizationv1.SelfSubjectAccessReviewSpec
		allowed bool
		code    int32
	}{
		{"everybody may list keys", ana, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: keys("list")}, true, 0},
		{"a scope permits (Spec 2.3)", scoped, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: keys("get")}, true, 0},
		{"and refuses (Spec 2.3)", scoped, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: keys("delete")}, false, 0},
		{"what is for admins", ana, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes{
			Group: "management.platform.sh", Resource: "virtualclusterinstances", Verb: "create", Namespace: "p-a",
		}}, false, 0},
		{"what everybody may evaluate", ana, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes{
			Group: "management.platform.sh", Resource: "syncpatchevaluations", Verb: "create",
		}}, true, 0},
		{"an admin", root, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes{
			Group: "management.platform.sh", Resource: "syncpatchevaluations", Verb: "create", Namespace: "p-a",
		}}, true, 0},
		{"what the API does not have", root, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes{Resource: "pods", Verb: "list", Namespace: "p-a"}}, false, 0},
		{"everything, by an admin", root, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes{Resource: "*", Verb: "*"}}, true, 0},
		{"everything, by another", ana, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes{Resource: "*", Verb: "*"}}, false, 0},
		{"a path", ana, authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/version", Verb: "get"}}, true, 0},
		{"nothing", ana, authorizationv1.SelfSubjectAccessReviewSpec{}, false, 400},
		{"two things", ana, authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: keys("get"), NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/version", Verb: "get"},
		}, false, 400},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			meta := metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
			sent := &authorizationv1.SelfSubjectAccessReview{TypeMeta: meta, Spec: row.spec}
			asJSON, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			for contentType, body := range map[string][]byte{
				"application/json":                    asJSON,
				"application/yaml":                    asJSON,
				"application/vnd.kubernetes.protobuf": protobuf(t, meta.APIVersion, meta.Kind, sent),
			} {
				got, err := decoded(accessReview, model.ConfigStatus{}, row.caller, contentType, body,
					&authorizationv1.SelfSubjectAccessReview{}, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
				if code(err) != row.code {
					t.Fatalf("%s: answered %+v, %v", contentType, got, err)
				}
				if err != nil {
					continue
				}
				if got.Status.Allowed != row.allowed || got.Status.Reason == "" || got.TypeMeta != meta || !reflect.DeepEqual(got.Spec, row.spec) {
					t.Errorf("%s: answered %+v", contentType, got)
				}
			}
		})
	}
}

// What the caller may do is listed with the names that the scope gives. Source: ADR-0023.
func TestRulesReview(t *testing.T) {
	t.Parallel()
	one := ana
	one.Scope = &model.Scope{VirtualClusters: []model.ScopeVirtualCluster{{Project: "a", VirtualCluster: "dev"}}}
	for _, row := range []struct {
		about     string
		caller    identity.Caller
		namespace string
		want      string
		code      int32
	}{
		{"a user", ana, "p-a", "ownedaccesskeys: get,list,watch,create,update,patch,delete,deletecollection", 0},
		{"a user creates no instance", ana, "p-a", "virtualclusterinstances: get,list,watch,update,patch,delete,deletecollection", 0},
		{"an admin creates instances", root, "p-a", "virtualclusterinstances: get,list,watch,update,patch,delete,deletecollection,create", 0},
		{"a scope of one virtual cluster", one, "p-a", "virtualclusterinstances[dev]: get,list,watch,update,patch,delete", 0},
		{"and its kubeconfig", one, "p-a", "virtualclusterinstances/kubeconfig[dev]: create", 0},
		{"creates keys", one, "p-a", "ownedaccesskeys: create", 0},
		{"in another project", one, "p-b", "ownedaccesskeys: create", 0},
		{"a scope of verbs", tia, "p-a", "ownedaccesskeys: get,create", 0},
		{"no namespace", ana, "", "", 400},
	} {
		t.Run(row.about, func(t *testing.T) {
			t.Parallel()
			body, err := json.Marshal(authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: row.namespace}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := decoded(rulesReview, model.ConfigStatus{}, row.caller, "application/json", body,
				&authorizationv1.SelfSubjectRulesReview{}, authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"))
			if code(err) != row.code {
				t.Fatalf("answered %+v, %v", got, err)
			}
			if err != nil {
				return
			}
			var lines []string
			for _, rule := range got.Status.ResourceRules {
				line := strings.Join(rule.Resources, ",")
				if len(rule.ResourceNames) > 0 {
					line += fmt.Sprint(rule.ResourceNames)
				}
				lines = append(lines, line+": "+strings.Join(rule.Verbs, ","))
			}
			if !slices.Contains(lines, row.want) || len(got.Status.NonResourceRules) == 0 || got.Status.Incomplete {
				t.Errorf("%s\nhas no %s; paths are %v", strings.Join(lines, "\n"), row.want, got.Status.NonResourceRules)
			}
			if foreign := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "[dev]") }); foreign != (row.caller.Scope == one.Scope && row.namespace == "p-a") {
				t.Errorf("%s", strings.Join(lines, "\n"))
			}
		})
	}
}

// The frame opens what the operation needs.
func TestOpen(t *testing.T) {
	t.Parallel()
	if Function.Name != "whoami" || len(Function.Endpoints) != 5 {
		t.Errorf("%+v", Function)
	}
	for _, endpoint := range Function.Endpoints {
		if endpoint.Method != "POST" || endpoint.Verb != "create" || endpoint.Kind == "" || endpoint.Singular == "" {
			t.Errorf("endpoint %+v", endpoint)
		}
	}
}
