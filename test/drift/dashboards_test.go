package drift_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/shared/api/frame"
	"management.platform.sh/shared/api/metrics"
)

const dashboards = "infra/dashboards/"

var (
	descText    = regexp.MustCompile(`fqName: "([a-z_]+)".*variableLabels: \{([a-z,]*)\}`)
	inPromQL    = regexp.MustCompile(`\b(platform_[a-z_]+)(?:\{([^}]*)\})?`)
	labelInTest = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouped     = regexp.MustCompile(`by \(([a-z, ]+)\)`)
	legend      = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
	search      = regexp.MustCompile(`^SEARCH\('\{([A-Za-z/]+),(\w+)\} MetricName="(\w+)"', '(\w+)', \d+\)$`)
	emfMetric   = regexp.MustCompile(`(?:count\("|metric\{")(\w+)"`)
	emfWrite    = regexp.MustCompile(`e\.write\("(\w+)"`)
	alarmed     = regexp.MustCompile(`(?m)^\s*(?:metric_name\s*=\s*"(\w+)"|(\w+)\s*=\s*\{ above)`)
)

// families returns the metrics of the program with their labels, from their own descriptions.
func families() map[string][]string {
	labels := map[string][]string{}
	for each := range descriptions() {
		each.labels = append(each.labels, "le", "instance")
		for _, end := range []string{"", "_bucket", "_sum", "_count"} {
			labels[each.name+end] = each.labels
		}
	}
	return labels
}

type description struct {
	name   string
	labels []string
}

func descriptions() func(func(description) bool) {
	return func(yield func(description) bool) {
		var collected collectors
		metrics.New(&collected)
		for _, one := range collected {
			all := make(chan *prometheus.Desc, 8)
			one.Describe(all)
			close(all)
			for desc := range all {
				m := descText.FindStringSubmatch(desc.String())
				if m != nil && !yield(description{m[1], strings.Split(m[2], ",")}) {
					return
				}
			}
		}
	}
}

// collectors is a registry that keeps the registered collectors.
type collectors []prometheus.Collector

func (c *collectors) Register(one prometheus.Collector) error { c.MustRegister(one); return nil }
func (c *collectors) MustRegister(all ...prometheus.Collector) {
	*c = append(*c, all...)
}
func (*collectors) Unregister(prometheus.Collector) bool { return false }

// deadMetrics finds metrics, labels and functions that the program does not have, in a Prometheus expression and in the texts about its labels.
func deadMetrics(where, expression, legends string) []string {
	var findings []string
	families := families()
	labels := map[string]bool{}
	for _, m := range inPromQL.FindAllStringSubmatch(expression, -1) {
		familyLabels, ok := families[m[1]]
		if !ok {
			findings = append(findings, fmt.Sprintf("%s: there is no metric %s", where, m[1]))
		}
		for _, label := range familyLabels {
			labels[label] = true
		}
		for _, matcher := range labelInTest.FindAllStringSubmatch(m[2], -1) {
			switch {
			case !slices.Contains(familyLabels, matcher[1]):
				findings = append(findings, fmt.Sprintf("%s: %s has no label %s", where, m[1], matcher[1]))
			case matcher[1] == "function" && matcher[2] == "=" && !slices.ContainsFunc(catalog.Functions, func(f *frame.Function) bool { return f.Name == matcher[3] }):
				findings = append(findings, fmt.Sprintf("%s: there is no function %s", where, matcher[3]))
			}
		}
	}
	if len(labels) == 0 {
		return findings // of another program
	}
	var used []string
	for _, m := range grouped.FindAllStringSubmatch(expression, -1) {
		used = append(used, strings.Split(m[1], ", ")...)
	}
	for _, m := range legend.FindAllStringSubmatch(legends, -1) {
		used = append(used, m[1])
	}
	for _, label := range used {
		if !labels[label] {
			findings = append(findings, fmt.Sprintf("%s: its metrics have no label %s", where, label))
		}
	}
	return findings
}

type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

type grafana struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

type cloudwatch struct {
	Widgets []struct {
		Properties struct {
			Title   string
			Metrics [][]struct{ Expression string }
		}
	}
}

// Each metric in the dashboards and rules is in the code or in the alarms of the module for AWS. Each metric of the code is on a dashboard.
func TestDashboards(t *testing.T) {
	t.Parallel()
	p := files(t)
	var alerts rules
	if err := yaml.UnmarshalStrict([]byte(p[dashboards+"alerts.yaml"]), &alerts); err != nil {
		t.Fatal(err)
	}
	count, metrics := 0, map[string]bool{}
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			count++
			if rule.Alert == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["do"] == "" {
				t.Errorf("%+v lacks a word", rule)
			}
			report(t, deadMetrics("alert "+rule.Alert, rule.Expr, rule.Annotations["summary"]))
		}
	}
	var board grafana
	if err := json.Unmarshal([]byte(p[dashboards+"grafana.json"]), &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			count++
			report(t, deadMetrics("panel "+panel.Title, target.Expr, target.LegendFormat))
			for _, m := range inPromQL.FindAllStringSubmatch(target.Expr, -1) {
				metrics[strings.TrimSuffix(m[1], "_bucket")] = true
			}
		}
	}
	for each := range descriptions() {
		if !metrics[each.name] {
			t.Errorf("grafana.json does not show %s", each.name)
		}
	}
	if count < 20 {
		t.Errorf("%d expressions: that cannot be all", count)
	}
}

// The metrics for CloudWatch are the metrics that functions write. The metrics of AWS are the metrics for which the module has alarms.
func TestCloudWatchDashboard(t *testing.T) {
	t.Parallel()
	p := files(t)
	var board cloudwatch
	if err := json.Unmarshal([]byte(p[dashboards+"cloudwatch.json"]), &board); err != nil {
		t.Fatal(err)
	}
	ours, theirs, dimensions := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range emfMetric.FindAllStringSubmatch(p["infra/lambda/emf.go"], -1) {
		ours[m[1]] = true
	}
	for _, m := range emfWrite.FindAllStringSubmatch(p["infra/lambda/emf.go"], -1) {
		dimensions[m[1]] = true
	}
	for _, m := range alarmed.FindAllStringSubmatch(p["infra/terraform/aws/alarms.tf"], -1) {
		theirs[m[1]+m[2]] = true
	}
	if len(ours) < 8 || len(theirs) < 6 || len(dimensions) != 3 {
		t.Fatalf("found %v, %v and %v: that cannot be all", ours, theirs, dimensions)
	}
	for _, widget := range board.Widgets {
		for _, each := range widget.Properties.Metrics {
			m := search.FindStringSubmatch(each[0].Expression)
			switch {
			case m == nil:
				t.Errorf("%s: cannot read %s", widget.Properties.Title, each[0].Expression)
			case m[1] == "ManagementPlatform":
				if !ours[m[3]] || !dimensions[m[2]] {
					t.Errorf("%s: functions write no %s by %s", widget.Properties.Title, m[3], m[2])
				}
				delete(ours, m[3])
			case !theirs[m[3]]:
				t.Errorf("%s: the module has no alarm for %s", widget.Properties.Title, m[3])
			}
		}
	}
	if len(ours) > 0 {
		t.Errorf("the dashboard does not show %q", slices.Sorted(maps.Keys(ours)))
	}
}

func TestDashboardsFinds(t *testing.T) {
	t.Parallel()
	expect(t, slices.Concat(
		deadMetrics("a", `sum by (code) (rate(platform_requests_total{code=~"5.."}[5m]))`, "{{code}}"),
		deadMetrics("b", `rate(platform_gone_total[5m])`, ""),
		deadMetrics("c", `rate(platform_requests_total{status="500"}[5m])`, ""),
		deadMetrics("d", `platform_scheduled_runs_total{function="gone"}`, ""),
		deadMetrics("e", `sum by (verb) (platform_watches)`, "{{ $labels.kind }}"),
		deadMetrics("f", `redis_connected_slaves < 1`, "{{instance}}"),
	), "b: there is no metric platform_gone_total", "c: platform_requests_total has no label status", "d: there is no function gone",
		"e: its metrics have no label verb", "e: its metrics have no label kind")
}
