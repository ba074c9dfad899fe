package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report is what a run found.
type report struct {
	// Procs is GOMAXPROCS of this process and of the bare handlers.
	Procs   int     `json:"procs"`
	Seconds float64 `json:"secondsEach"`
	Rounds  int     `json:"rounds"`
	// Rows are the medians of the samples.
	Rows    []row    `json:"rows"`
	Samples []sample `json:"samples"`
}

// row is one subject with one number of clients.
type row struct {
	Subject string  `json:"subject"`
	Clients int     `json:"clients"`
	Rate    float64 `json:"requestsPerSecond"`
	P50     float64 `json:"p50Microseconds"`
	P99     float64 `json:"p99Microseconds"`
	// Ratio is the rate over that of the handler with two round trips, the median over the rounds. 0: there
	// is no such handler in this run.
	Ratio  float64 `json:"ratio,omitempty"`
	Errors int     `json:"errors"`
}

// summarize makes the rows, in the order in which the subjects were measured.
func (r *report) summarize() {
	type at struct {
		subject        string
		clients, round int
	}
	rates := map[at]float64{}
	for _, one := range r.Samples {
		rates[at{one.Subject, one.Clients, one.Round}] = one.Rate
	}
	for _, first := range r.Samples {
		if first.Round > 0 {
			continue
		}
		made := row{Subject: first.Subject, Clients: first.Clients}
		var rate, p50, p99, ratio []float64
		for _, one := range r.Samples {
			if one.Subject != made.Subject || one.Clients != made.Clients {
				continue
			}
			rate, p50, p99 = append(rate, one.Rate), append(p50, one.P50), append(p99, one.P99)
			if base := rates[at{redisHello, one.Clients, one.Round}]; base > 0 {
				ratio = append(ratio, one.Rate/base)
			}
			made.Errors += one.Errors
		}
		made.Rate, made.P50, made.P99, made.Ratio = median(rate), median(p50), median(p99), median(ratio)
		r.Rows = append(r.Rows, made)
	}
}

// median is 0 for no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

func (r *report) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(table, "clients\tsubject\treq/s\tp50 us\tp99 us\tratio\terrors\t\n")
	for _, each := range r.Rows {
		ratio := "-"
		if each.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", each.Ratio)
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%.0f\t%.0f\t%.0f\t%s\t%d\t\n",
			each.Clients, each.Subject, each.Rate, each.P50, each.P99, ratio, each.Errors)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nMedians of %d rounds of %gs, in turn; ratio: of the rate to that of %q in the same round; %d processors.\n",
		r.Rounds, r.Seconds, redisHello, r.Procs)
	return err
}

// failure says what went wrong, if anything did.
func (r *report) failure() error {
	for _, one := range r.Samples {
		if one.Errors > 0 {
			return fmt.Errorf("%d errors in %s with %d clients, the first: %s", one.Errors, one.Subject, one.Clients, one.Error)
		}
	}
	return nil
}
