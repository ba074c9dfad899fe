package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// run is the result of a run. Its samples were measured in turn, so that they can be compared with each other, and not with samples of another
// run.
type run struct {
	// Begun is the time at which the measurements began, in RFC 3339.
	Begun   string  `json:"begun"`
	Machine machine `json:"machine"`
	// Seconds is the duration of each measurement.
	Seconds float64 `json:"secondsEach"`
	Rounds  int     `json:"rounds"`
	// Sides are the measured servers. Each ratio divides the rate of the first side by the rate of another side.
	Sides []sideReport `json:"sides"`
	// Absent says which sides could not be measured, and why.
	Absent  []string `json:"absent,omitempty"`
	Samples []sample `json:"samples"`
}

// sideReport is a side after the measurements.
type sideReport struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Server and Store are resident memory in MB. Store 0: the store has no process of its own.
	Server float64 `json:"serverMB"`
	Store  float64 `json:"storeMB"`
}

// values are the results of several measurements of one figure.
type values []float64

// median returns the median, or 0 if there are no values.
func (v values) median() float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// medianAndRange returns the median, with the range in parentheses, or a hyphen if there are no values.
func (v values) medianAndRange(format string) string {
	if len(v) == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", v.median(), slices.Min(v), slices.Max(v))
}

// ratios returns the rate of the first side divided by the rate of the second side, for each round of each run in which both were measured.
// Measurements of two runs, or of two rounds, are never compared, because the conditions on the machine change.
func ratios(runs []run, op string, clients int, first, second string) values {
	var list values
	for _, one := range runs {
		for _, a := range one.Samples {
			if a.Side != first || a.Op != op || a.Clients != clients {
				continue
			}
			for _, b := range one.Samples {
				if b.Side == second && b.Op == op && b.Clients == clients && b.Round == a.Round && b.Rate > 0 {
					list = append(list, a.Rate/b.Rate)
				}
			}
		}
	}
	return list
}

// figures are the figures of a side, from all rounds of all runs.
func figures(runs []run, op string, clients int, side string, figure func(sample) float64) values {
	var list values
	for _, one := range runs {
		for _, each := range one.Samples {
			if each.Side == side && each.Op == op && each.Clients == clients {
				list = append(list, figure(each))
			}
		}
	}
	return list
}

func rateOf(s sample) float64   { return s.Rate }
func p50Of(s sample) float64    { return s.P50 / 1000 }
func p99Of(s sample) float64    { return s.P99 / 1000 }
func serverOf(s sample) float64 { return s.Server }
func storeOf(s sample) float64  { return s.Store }

// row is an operation with a number of clients.
type row struct {
	op      string
	clients int
}

// rows returns the rows of all runs in the order of the operations, and the names of all sides in the order in which they
// first appear.
func rows(runs []run) (all []row, sides []string) {
	for _, result := range runs {
		for _, each := range result.Sides {
			if !slices.Contains(sides, each.Name) {
				sides = append(sides, each.Name)
			}
		}
		for _, each := range result.Samples {
			if next := (row{each.Op, each.Clients}); !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b row) int {
		if a.clients != b.clients {
			return a.clients - b.clients
		}
		return slices.Index(operations, a.op) - slices.Index(operations, b.op)
	})
	return all, sides
}

// markdown writes the tables of runs.
func markdown(out io.Writer, runs []run) error {
	var text strings.Builder
	line := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	table := func(header ...string) {
		line("| %s |", strings.Join(header, " | "))
		line("|%s", strings.Repeat("---|", len(header)))
	}
	all, sides := rows(runs)
	if len(all) == 0 {
		return fmt.Errorf("there are no measurements in %d runs", len(runs))
	}
	first, others := sides[0], sides[1:]
	line("# Speed")
	line("")
	line("`make bench` measured this, and `make speed` wrote it. Every side was measured in turn, round after round. A ratio is")
	line("the rate of `%s` divided by the rate of another side in the same round of the same run. Figures are medians, with", first)
	line("the range in parentheses. Clients, servers and stores shared the machine. Writes were on disk before they were answered.")
	line("")
	header := []string{"operation", "clients", "requests/s"}
	for _, other := range others {
		header = append(header, "x "+other)
	}
	table(append(header, "server CPU ms", "store CPU ms")...)
	for _, each := range all {
		cells := []string{titles[each.op], fmt.Sprint(each.clients), figures(runs, each.op, each.clients, first, rateOf).medianAndRange("%.0f")}
		for _, other := range others {
			cells = append(cells, ratios(runs, each.op, each.clients, first, other).medianAndRange("%.2f"))
		}
		cells = append(cells, figures(runs, each.op, each.clients, first, serverOf).medianAndRange("%.2f"), figures(runs, each.op, each.clients, first, storeOf).medianAndRange("%.2f"))
		line("| %s |", strings.Join(cells, " | "))
	}
	line("")
	line("## Each side")
	line("")
	table("operation", "clients", "side", "requests/s", "p50 ms", "p99 ms", "server CPU ms", "store CPU ms")
	for _, current := range all {
		for _, side := range sides {
			if found := figures(runs, current.op, current.clients, side, rateOf); len(found) > 0 {
				of := func(figure func(sample) float64) float64 {
					return figures(runs, current.op, current.clients, side, figure).median()
				}
				line("| %s | %d | %s | %s | %.2f | %.2f | %.3f | %.3f |", titles[current.op], current.clients, side, found.medianAndRange("%.0f"),
					of(p50Of), of(p99Of), of(serverOf), of(storeOf))
			}
		}
	}
	for i, result := range runs {
		line("")
		line("## Run %d: %s", i+1, result.Begun)
		line("")
		line("- %d rounds of %gs for each measurement.", result.Rounds, result.Seconds)
		line("- %s, %d processors, %s, %s, build %s.", result.Machine.CPU, result.Machine.Procs, result.Machine.Kernel, result.Machine.Go, orUnknown(result.Machine.Build))
		line("- Load average %s before and %s after. Programs outside of the run used %.0f %% of the processors.",
			result.Machine.LoadBefore, result.Machine.LoadAfter, result.Machine.Others*100)
		line("- A write of 1 KiB was on the disk after %.0f us.", result.Machine.SyncMicroseconds)
		for _, side := range result.Sides {
			memory := fmt.Sprintf("%.0f MB after the run", side.Server)
			if side.Store > 0 {
				memory += fmt.Sprintf(", its store %.0f MB", side.Store)
			}
			line("- `%s`: %s; %s.", side.Name, side.About, memory)
		}
		for _, absent := range result.Absent {
			line("- Not measured: %s.", absent)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// failure returns an error with the first error of a measurement. Nil: there was none.
func (r *run) failure() error {
	for _, one := range r.Samples {
		if one.Errors > 0 {
			return fmt.Errorf("%d errors in %s of %s with %d clients, the first: %s", one.Errors, one.Op, one.Side, one.Clients, one.Error)
		}
	}
	return nil
}

// tableCommand prints the tables of saved runs.
type tableCommand struct {
	Files []string `arg:"" type:"existingfile" help:"Runs that --json has written."`
}

// Run prints the tables.
func (c *tableCommand) Run() error {
	var runs []run
	for _, file := range c.Files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a run: %w", err)
		}
		var one run
		if err := json.Unmarshal(text, &one); err != nil {
			return fmt.Errorf("reading a run: %s: %w", file, err)
		}
		runs = append(runs, one)
	}
	return markdown(os.Stdout, runs)
}
