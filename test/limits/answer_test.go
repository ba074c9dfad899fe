package limits_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model"
)

// answerRows are the limits of the answer to a refused request.
var answerRows = map[string]row{
	"faults": {fmt.Sprintf("%d faults", limits.Faults), func(t *testing.T) {
		w := newWorld(t, nil)
		before := w.storedDigest()
		for _, n := range []int{limits.Faults - 1, limits.Faults, limits.Faults + 1, 3 * limits.Faults} {
			got := w.send(request{method: http.MethodPost, path: keys, body: `{"metadata":{"finalizers":[` + repeat(n, "1") + `]}}`})
			status := got.decoded(t)
			if status.Code != http.StatusBadRequest || status.Details == nil {
				t.Fatalf("%d: %d %.1000s", n, got.status, got.body)
			}
			causes := status.Details.Causes
			if n <= limits.Faults {
				if len(causes) != n || strings.Contains(status.Message, "more") {
					t.Errorf("%d: %d causes: %.2000s", n, len(causes), status.Message)
				}
				continue
			}
			rest := fmt.Sprintf("and %d more", n-limits.Faults)
			if len(causes) != limits.Faults+1 || causes[limits.Faults].Message != rest || !strings.Contains(status.Message, rest) {
				t.Errorf("%d: %d causes: %.2000s", n, len(causes), status.Message)
			}
		}
		if w.storedDigest() != before {
			t.Error("a refused request has written")
		}
	}},
	"fault-bytes": {bytes(limits.FaultBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		for _, size := range []int{limits.FaultBytes - 1, limits.FaultBytes, limits.FaultBytes + 1} {
			name := strings.Repeat("x", size-len("spec."))
			got := w.send(request{method: http.MethodPost, path: keys + "?fieldValidation=Strict", body: `{"spec":{"` + name + `":1}}`})
			status := got.decoded(t)
			if status.Code != http.StatusBadRequest || len(status.Details.Causes) != 1 {
				t.Fatalf("%d: %d %.1000s", size, got.status, got.body)
			}
			field := status.Details.Causes[0].Field
			if whole := field == "spec."+name; whole != (size <= limits.FaultBytes) || len(field) > limits.FaultBytes {
				t.Errorf("a field of %d bytes: %d bytes: %s", size, len(field), field)
			}
		}
		// Values are quoted up to half of the limit, and the whole text stays within it.
		for _, size := range []int{limits.FaultBytes/2 - 1, limits.FaultBytes / 2, limits.FaultBytes/2 + 1, 10 * limits.FaultBytes} {
			value := strings.Repeat("x", size)
			got := w.send(request{method: http.MethodPost, path: keys, body: `{"spec":{"type":"` + value + `"}}`})
			status := got.decoded(t)
			if status.Code != http.StatusUnprocessableEntity || len(status.Details.Causes) != 1 {
				t.Fatalf("%d: %d %.1000s", size, got.status, got.body)
			}
			text := status.Details.Causes[0].Message
			if whole := strings.Contains(text, value); whole != (size <= limits.FaultBytes/2) || len(text) > limits.FaultBytes {
				t.Errorf("a value of %d bytes: %d bytes: %s", size, len(text), text)
			}
		}
	}},
	"warning-characters": {"256 characters", func(t *testing.T) {
		w := newWorld(t, nil)
		const before, after = `unknown field "`, `"`
		for _, n := range []int{255, 256, 257} {
			name := strings.Repeat("x", n-len(before+after))
			got := w.send(request{method: http.MethodPost, path: keys, body: `{"` + name + `":1}`})
			if got.status != http.StatusCreated || len(got.header.Values("Warning")) != 1 {
				t.Fatalf("%d %v", got.status, got.header)
			}
			if whole := strings.Contains(got.header.Get("Warning"), name+`\"`); whole != (n <= 256) {
				t.Errorf("%d: %s", n, got.header.Get("Warning"))
			}
		}
	}},
	"warning-bytes": {bytes(4 << 10), func(t *testing.T) {
		w := newWorld(t, nil)
		all := true
		for n := 1; all; n++ {
			got := w.send(request{method: http.MethodPost, path: keys, body: `{` + repeatNumbered(n, `"`+strings.Repeat("x", 100)+`%d":1`) + `}`})
			warnings := got.header.Values("Warning")
			if size := len(strings.Join(warnings, "")); got.status != http.StatusCreated || size > 4<<10 || n > 100 {
				t.Fatalf("%d: %d with %d bytes of warnings", n, got.status, size)
			}
			if all = len(warnings) == n; !all && len(strings.Join(warnings, ""))+len(warnings[0])+1 < 4<<10 {
				t.Errorf("%d of %d warnings are left out", n-len(warnings), n)
			}
		}
	}},
	"rule-names": {fmt.Sprintf("%d names", limits.RuleNames), func(t *testing.T) {
		w := newWorld(t, nil)
		for _, n := range []int{limits.RuleNames - 1, limits.RuleNames, limits.RuleNames + 1} {
			made := w.send(request{method: http.MethodPost, path: keys, body: fmt.Sprintf(
				`{"spec":{"scope":{"virtualClusters":[%s]}}}`, repeatNumbered(n, `{"project":"a","virtualCluster":"v%d"}`))})
			var key struct{ Spec struct{ Key string } }
			if err := json.Unmarshal([]byte(made.body), &key); err != nil || made.status != http.StatusCreated {
				t.Fatalf("%d %.500s, %v", made.status, made.body, err)
			}
			got := w.send(request{
				method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body: `{"spec":{"namespace":"p-a"}}`,
				header: map[string]string{"Authorization": "Bearer " + key.Spec.Key},
			})
			if got.status != http.StatusCreated || strings.Contains(got.body, `"incomplete":true`) != (n > limits.RuleNames) ||
				strings.Contains(got.body, fmt.Sprintf("names %d objects", n)) != (n > limits.RuleNames) {
				t.Errorf("%d: %d %.1000s", n, got.status, got.body)
			}
		}
	}},
	"subjects": {fmt.Sprintf("%d subjects", limits.Subjects), func(t *testing.T) {
		w := newWorld(t, nil)
		whoCan := func() model.ScopePreviewStatus {
			got := w.send(request{
				bearer: "root-admin", method: http.MethodPost, path: group + "/scopepreviews",
				body: `{"spec":{"whoCan":{"verb":"get","group":"management.platform.sh","resource":"configs"}}}`,
			})
			var preview model.ScopePreview
			if err := json.Unmarshal([]byte(got.body), &preview); err != nil || got.status != http.StatusCreated {
				t.Fatalf("%d %.500s, %v", got.status, got.body, err)
			}
			return preview.Status
		}
		// The owners of keys with groups are subjects as well, without an object.
		for n := len(whoCan().Subjects) + 1; n <= limits.Subjects+1; n++ {
			if made := w.send(request{bearer: "root-admin", method: http.MethodPost, path: group + "/users", body: fmt.Sprintf(`{"metadata":{"name":"u%d"}}`, n)}); made.status != http.StatusCreated {
				t.Fatalf("%d: %d %.500s", n, made.status, made.body)
			}
			if n < limits.Subjects {
				continue
			}
			if got := whoCan(); got.Incomplete != (n > limits.Subjects) || len(got.Subjects) != limits.Subjects {
				t.Errorf("%d subjects: the answer has %d, incomplete: %t", n, len(got.Subjects), got.Incomplete)
			}
		}
	}},
	"message-bytes": {bytes(limits.MessageBytes), func(t *testing.T) {
		w := newWorld(t, nil)
		long := strings.Repeat("x", limits.FaultBytes/4)
		all := false
		for n := 1; n <= limits.Faults/2; n++ {
			got := w.send(request{method: http.MethodPost, path: keys, body: `{"metadata":{"finalizers":[` + repeatNumbered(n, `"_`+long+`%d"`) + `]}}`})
			message := got.decoded(t).Message
			// Each finalizer has two faults. The message names some and counts the others.
			faults, left := strings.Count(message, "metadata.finalizers: "), 0
			if counts := others.FindStringSubmatch(message); counts != nil {
				left, _ = strconv.Atoi(counts[1])
			}
			if len(message) > limits.MessageBytes || faults+left != 2*n {
				t.Fatalf("%d faults: the message has %d bytes, names %d and counts %d", 2*n, len(message), faults, left)
			}
			all = left > 0
		}
		if !all {
			t.Error("all faults fit into the message")
		}
	}},
}

// others matches the count of the faults that a message does not name.
var others = regexp.MustCompile(`, and (\d+) more\]$`)
