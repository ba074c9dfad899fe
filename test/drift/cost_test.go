package drift_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// secondsPerMonth is the month of docs/scale.md: 730 hours.
const secondsPerMonth = 730 * 60 * 60

// wrongIdleCost compares the cost of schedules in docs/scale.md with the prices in it and with the table of functions.
func wrongIdleCost(p project) []string {
	var table map[string]struct {
		ScheduleMinutes int
		MemoryMB        float64
	}
	if err := json.Unmarshal([]byte(p["infra/terraform/functions.json"]), &table); err != nil {
		return []string{err.Error()}
	}
	page := strings.Join(strings.Fields(p["docs/scale.md"]), " ")
	price := func(pattern string) float64 {
		m := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if m == nil {
			return -1
		}
		value, _ := strconv.ParseFloat(m[1], 64)
		return value
	}
	call, gbSecond, logs := price(`Lambda ([0-9.]+) per million`), price(`per million and ([0-9.]+) per GB-second`), price(`logs ([0-9.]+) per GB;`)
	if call < 0 || gbSecond < 0 || logs < 0 {
		return []string{"docs/scale.md has no prices of calls, GB-seconds and logs"}
	}
	// A run takes 50 ms and writes 1 KB of log.
	runs, time := 0.0, 0.0
	for _, function := range table {
		if function.ScheduleMinutes > 0 {
			each := secondsPerMonth / 60 / float64(function.ScheduleMinutes)
			runs += each
			time += each * 0.05 * function.MemoryMB / 1024 * gbSecond
		}
	}
	var findings []string
	calls, lines := runs*call/1e6+time, runs*logs/1e6
	said := fmt.Sprintf("%d,%03d runs of 50 ms: %.2f for calls and time, and %.2f for logs", int(runs)/1000, int(runs)%1000, calls, lines)
	if !strings.Contains(page, said) {
		findings = append(findings, "docs/scale.md does not say: "+said)
	}
	if calls+lines >= 1 {
		findings = append(findings, fmt.Sprintf("README.md says less than a dollar, and the schedules cost %.2f", calls+lines))
	}
	return findings
}

// The cost of an idle platform in README.md follows from the prices in docs/scale.md.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	report(t, wrongIdleCost(files(t)))
}

func TestIdleCostFinds(t *testing.T) {
	t.Parallel()
	p := project{
		"infra/terraform/functions.json": `{"a": {"scheduleMinutes": 1, "memoryMB": 512}, "b": {"scheduleMinutes": 0, "memoryMB": 512}}`,
		"docs/scale.md":                  "Lambda 0.20 per million and 0.0000133 per\nGB-second; logs 0.50 per GB; 43,800 runs of 50 ms: 0.02 for calls\nand time, and 0.02 for logs",
	}
	expect(t, wrongIdleCost(p))
	p["docs/scale.md"] = strings.Replace(p["docs/scale.md"], "logs 0.50", "logs 50", 1)
	expect(t, wrongIdleCost(p), "does not say: 43,800 runs", "less than a dollar")
}
