package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"management.platform.sh/shared/audit"
	"management.platform.sh/shared/model"
)

// Our events are events of audit.k8s.io/v1: its type has all of their fields, with the same JSON. Source: ADR-0016.
func TestAuditEventIsThatOfKubernetes(t *testing.T) {
	out := &bytes.Buffer{}
	config := &model.ConfigStatus{Audit: &model.ConfigAudit{Enabled: true, Path: "-", Policy: &model.AuditPolicy{
		Rules: []model.AuditRule{{Level: "RequestResponse"}},
	}}}
	trail := audit.NewTrail(audit.Options{
		Config: func() *model.ConfigStatus { return config }, Openers: []audit.Opener{audit.Output(out)}, Log: slog.New(slog.DiscardHandler),
	})
	timestamp := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))
	event := &audit.Event{
		Level: audit.RequestResponse, AuditID: "id", Stage: audit.ResponseComplete, RequestURI: "/p?q", Verb: "get",
		User:      audit.User{Username: "u", UID: "i", Groups: []string{"g"}, Extra: map[string][]string{"e": {"v"}}},
		SourceIPs: []string{"127.0.0.1"}, UserAgent: "agent",
		ObjectRef: &audit.ObjectReference{
			Resource: "r", Namespace: "n", Name: "m", UID: "i", APIGroup: "g", APIVersion: "v1", ResourceVersion: "7", Subresource: "s",
		},
		ResponseStatus:           &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Message: "m", Code: http.StatusNotFound},
		RequestObject:            json.RawMessage(`{"kind":"A","apiVersion":"v1"}`),
		ResponseObject:           json.RawMessage(`{"kind":"B","apiVersion":"v1"}`),
		RequestReceivedTimestamp: timestamp, StageTimestamp: timestamp,
		Annotations: map[string]string{"a": "b"},
	}
	if err := trail.Record([]audit.Entry{{Decision: audit.Decision{Level: audit.RequestResponse, Fail: true}, Event: event}}); err != nil {
		t.Fatal(err)
	}
	trail.Close(t.Context())
	lines := 0
	for line := range bytes.Lines(out.Bytes()) {
		lines++
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		var theirs auditv1.Event
		if err := decoder.Decode(&theirs); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(line); string(text)+"\n" != got {
			t.Errorf("Kubernetes writes\n%s\nand here is\n%s", text, got)
		}
	}
	// The second event reports the end of the recording.
	if lines != 2 {
		t.Errorf("%d events are written", lines)
	}
}

// Our rules match the same requests as the rules of a kube-apiserver, for the fields that both have.
func TestAuditRulesMatchAsInKubernetes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pickSome := func(words ...string) []string {
		var list []string
		for _, word := range words {
			if random.IntN(2*len(words)) == 0 {
				list = append(list, word)
			}
		}
		return list
	}
	pickOne := func(words ...string) string { return words[random.IntN(len(words))] }
	levels := []string{"None", "Metadata", "Request", "RequestResponse"}
	matched := map[audit.Level]int{}
	for range 20_000 {
		ours := &model.ConfigAudit{Enabled: true, Policy: &model.AuditPolicy{OmitStages: pickSome("RequestReceived", "Panic")}}
		theirs := &internal.Policy{}
		for _, stage := range ours.Policy.OmitStages {
			theirs.OmitStages = append(theirs.OmitStages, internal.Stage(stage))
		}
		for range 1 + random.IntN(4) {
			rule := model.AuditRule{
				Level: pickOne(levels...), Users: pickSome("ana", "bob"), UserGroups: pickSome("dev", "ops"), Verbs: pickSome("get", "create"),
				Namespaces: pickSome("", "one"), OmitStages: pickSome("ResponseStarted", "ResponseComplete"),
			}
			if random.IntN(3) == 0 {
				rule.NonResourceURLs, rule.Namespaces = pickSome("/version", "/open*", "*"), nil
			} else {
				for range random.IntN(3) {
					rule.Resources = append(rule.Resources, model.ScopeGroupResources{
						Group: pickOne("", "g"), Resources: pickSome("pods", "pods/log", "pods/*", "*/log", "*", "other"), ResourceNames: pickSome("a", "b"),
					})
				}
			}
			ours.Policy.Rules = append(ours.Policy.Rules, rule)
			their := internal.PolicyRule{
				Level: internal.Level(rule.Level), Users: rule.Users, UserGroups: rule.UserGroups, Verbs: rule.Verbs,
				Namespaces: rule.Namespaces, NonResourceURLs: rule.NonResourceURLs,
			}
			for _, stage := range rule.OmitStages {
				their.OmitStages = append(their.OmitStages, internal.Stage(stage))
			}
			for _, each := range rule.Resources {
				their.Resources = append(their.Resources, internal.GroupResources{
					Group: each.Group, Resources: each.Resources, ResourceNames: each.ResourceNames,
				})
			}
			theirs.Rules = append(theirs.Rules, their)
		}
		attributes := audit.Attributes{User: audit.User{Username: pickOne("ana", "bob", "eve"), Groups: pickSome("dev", "ops", "all")}, Verb: pickOne("get", "create", "list")}
		record := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: attributes.User.Username, Groups: attributes.User.Groups}, Verb: attributes.Verb}
		if random.IntN(3) == 0 {
			attributes.Path = pickOne("/version", "/openapi/v3", "/other")
			record.Path = attributes.Path
		} else {
			attributes.Group, attributes.Resource, attributes.Subresource = pickOne("", "g"), pickOne("pods", "other"), pickOne("", "", "log", "exec")
			attributes.Namespace, attributes.Name = pickOne("", "one", "two"), pickOne("", "a", "b", "c")
			record.APIGroup, record.Resource, record.Subresource = attributes.Group, attributes.Resource, attributes.Subresource
			record.Namespace, record.Name, record.ResourceRequest = attributes.Namespace, attributes.Name, true
		}
		got := audit.NewPolicy(ours).Evaluate(attributes)
		want := policy.NewPolicyRuleEvaluator(theirs).EvaluatePolicyRule(&record)
		matched[got.Level]++
		ourDecision := fmt.Sprint(got.Level)
		kubeDecision := fmt.Sprint(want.Level)
		for _, stage := range []audit.Stage{audit.RequestReceived, audit.ResponseStarted, audit.ResponseComplete, audit.Panic} {
			omitted := want.Level == internal.LevelNone
			for _, other := range want.OmitStages {
				omitted = omitted || string(other) == string(stage)
			}
			ourDecision += fmt.Sprint(" ", got.Records(stage))
			kubeDecision += fmt.Sprint(" ", !omitted)
		}
		if ourDecision != kubeDecision {
			rules, _ := json.Marshal(ours)
			t.Fatalf("%+v under %s: %s instead of %s", attributes, rules, ourDecision, kubeDecision)
		}
	}
	for _, level := range levels {
		if matched[audit.Level(level)] < 100 {
			t.Errorf("only %d were %s", matched[audit.Level(level)], level)
		}
	}
}
