package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"management.platform.sh/test/launch"
)

const (
	// attackers is the number of simultaneous attacking requests.
	attackers = 16
	// maxRatio is the factor by which the honest tenant may wait longer during an attack.
	maxRatio = 10
	// maxMemory is the memory that the serving process may hold, in bytes.
	maxMemory = 256 << 20
	// answersWithin is the time within which the process must answer after an attack.
	answersWithin = time.Second
	// quiet is the pause in which the process finishes the work of the attackers before the next measurement.
	quiet = 500 * time.Millisecond
)

// plan says what is measured.
type plan struct {
	classes               []class
	alone, each, together time.Duration
	// tokens is the number of tokens of an attacker.
	tokens   int
	progress io.Writer
}

// row is the result for one class of input.
type row struct {
	class string
	// honest is the experience of the honest tenant.
	honest experience
	// answers counts the answers to the attackers by status; 0 means no answer. failure describes the first answer with 5xx.
	answers map[int]int
	failure string
	// memory is the peak memory of the process, in bytes. 0: unknown.
	memory int64
	// recovery is the time until the process answered after the attack.
	recovery time.Duration
}

// report has the row without an attack, and one for each class.
type report struct {
	alone row
	rows  []row
	// yielded is true if the attackers had a low priority. They stand for other machines, which do not take the processor of this one.
	yielded bool
}

// attack is the state that the attackers share.
type attack struct {
	site *site
	// honest is the tenant that is attacked.
	honest tenant
	// tenants are the attackers' keys. Several of them belong to one user. The last tenant has no key.
	tenants []tenant
	// hoarder is the key of the tenant with large objects and many tokens.
	hoarder string
	// hoarded is true if the large objects exist.
	hoarded bool
	tokens  int

	mu      sync.Mutex
	answers map[int]int
	failure string
}

// note counts an answer.
func (a *attack) note(name string, status int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[status]++
	if status >= 500 && a.failure == "" {
		a.failure = fmt.Sprintf("%s: %d %.300s", strings.TrimSpace(name), status, strings.TrimSpace(text))
	}
}

// measure lets the honest tenant work alone and then during each attack.
func measure(ctx context.Context, runner *launch.Runner, p plan) (*report, error) {
	if err := launch.RequireLoopback(runner.Server); err != nil {
		return nil, err
	}
	root, err := admin(runner)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	a := &attack{site: newSite(runner.Server), tokens: p.tokens}
	if a.honest, err = a.site.tenant(ctx, root, "honest", "honest"); err != nil {
		return nil, err
	}
	h, err := startWorker(runner.Server, a.honest)
	if err != nil {
		return nil, err
	}
	defer h.stop()
	// The runner and the honest tenant have their processes already, so only the attackers yield.
	results := &report{yielded: yieldProcessor()}
	for _, user := range []string{"mallory", "oscar", "trudy"} {
		for number := range 2 {
			one, err := a.site.tenant(ctx, root, user, fmt.Sprintf("%s-%d", user, number))
			if err != nil {
				return nil, err
			}
			a.tenants = append(a.tenants, one)
		}
	}
	a.hoarder = a.tenants[0].Key
	a.tenants = append(a.tenants, tenant{Object: a.tenants[0].Object})
	for _, one := range p.classes {
		if one.prepare == nil {
			continue
		}
		if err := one.prepare(ctx, a); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", one.name, err)
		}
	}

	// The first requests of the process and of each connection do not count.
	if _, err := h.work(p.alone / 4); err != nil {
		return nil, err
	}
	if results.alone, err = measureAttack(ctx, runner, h, a, nil, p.alone); err != nil {
		return nil, err
	}
	stages := make([][]class, 0, len(p.classes)+1)
	for _, one := range p.classes {
		stages = append(stages, []class{one})
	}
	if p.together > 0 {
		stages = append(stages, p.classes)
	}
	for i, stage := range stages {
		span := p.each
		if i == len(p.classes) {
			span = p.together
		}
		one, err := measureAttack(ctx, runner, h, a, stage, span)
		if err != nil {
			return nil, err
		}
		results.rows = append(results.rows, one)
		_, _ = fmt.Fprintf(p.progress, "attack: %s is done\n", one.class)
	}
	return results, nil
}

// measureAttack measures the honest tenant while classes attack.
func measureAttack(ctx context.Context, runner *launch.Runner, h *worker, a *attack, stage []class, span time.Duration) (row, error) {
	result := row{class: "none"}
	switch {
	case len(stage) == 1:
		result.class = stage[0].name
	case len(stage) > 1:
		result.class = "all together"
	}
	a.answers, a.failure = map[int]int{}, ""
	forget(runner.PID)
	bounded, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var shooting sync.WaitGroup
	a.begin(bounded, &shooting, stage)
	var err error
	result.honest, err = h.work(span)
	cancel()
	shooting.Wait()
	a.site.client.CloseIdleConnections()
	if err != nil {
		return result, err
	}
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if result.recovery, err = a.site.timeToAnswer(ctx, a.honest); err != nil {
		return result, fmt.Errorf("%s: %w", result.class, err)
	}
	result.answers, result.failure, result.memory = a.answers, a.failure, resident(runner.PID)
	pause(ctx, quiet)
	return result, nil
}

// begin starts the attackers. A class with clients of its own has all of them; the others share the attackers.
func (a *attack) begin(ctx context.Context, shooting *sync.WaitGroup, stage []class) {
	var shared []class
	for _, attackClass := range stage {
		if attackClass.clients == 0 {
			shared = append(shared, attackClass)
			continue
		}
		for number := range attackClass.clients {
			shooting.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					attackClass.fire(ctx, a, number, n)
				}
			})
		}
	}
	if len(shared) == 0 {
		return
	}
	for number := range attackers {
		shooting.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Attackers take turns, so that they work on different classes, and within a class on different requests.
				shared[(number+n)%len(shared)].fire(ctx, a, number, n/len(shared))
			}
		})
	}
}

// forget resets the peak memory of a process. It fails on systems other than Linux, where the memory is unknown anyway.
func forget(pid int) { _ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200) }

// resident returns the peak memory of a process since the last forget, in bytes. 0: unknown.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// ratio returns the operation that suffered most, and how much longer it took than without an attack.
func (r *report) ratio(one row) (string, float64) {
	worst, most := "", 0.0
	for _, operation := range operations {
		if alone := r.alone.honest.Percentile[operation]; alone > 0 {
			if ratio := float64(one.honest.Percentile[operation]) / float64(alone); ratio > most {
				worst, most = operation, ratio
			}
		}
	}
	return worst, most
}

// harm describes the harm that an attack did. Nil: none.
func (r *report) harm() error {
	var harms []error
	for _, result := range r.rows {
		add := func(text string, values ...any) {
			harms = append(harms, fmt.Errorf("%s: "+text, append([]any{result.class}, values...)...))
		}
		if operation, ratio := r.ratio(result); ratio >= maxRatio {
			add("the honest tenant's %s took %.0f times as long", operation, ratio)
		}
		if len(result.honest.Failed) > 0 {
			add("honest requests failed: %s: %s", counts(result.honest.Failed), result.honest.First)
		}
		if result.failure != "" {
			add("an attacker got %s", result.failure)
		}
		if result.memory >= maxMemory {
			add("the process held %d MB", result.memory>>20)
		}
		if result.recovery > answersWithin {
			add("the process answered after %v", result.recovery)
		}
	}
	return errors.Join(harms...)
}

// counts returns the text of the numbers by status.
func counts(numbers map[int]int) string {
	var texts []string
	statuses := make([]int, 0, len(numbers))
	for status := range numbers {
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		name := strconv.Itoa(status)
		if status == 0 {
			name = "none"
		}
		texts = append(texts, fmt.Sprintf("%s:%d", name, numbers[status]))
	}
	return strings.Join(texts, " ")
}

func (r *report) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(table, "class")
	for _, operation := range operations {
		_, _ = fmt.Fprintf(table, "\t%s", operation)
	}
	_, _ = fmt.Fprint(table, "\tratio\thonest failures\tMB\tagain\tanswers to attackers\n")
	for _, result := range append([]row{r.alone}, r.rows...) {
		_, _ = fmt.Fprint(table, result.class)
		for _, operation := range operations {
			_, _ = fmt.Fprintf(table, "\t%.1f", float64(result.honest.Percentile[operation].Microseconds())/1000)
		}
		_, ratio := r.ratio(result)
		_, _ = fmt.Fprintf(table, "\t%.1f\t%s\t%d\t%v\t%s\n", ratio, counts(result.honest.Failed), result.memory>>20, result.recovery.Round(time.Millisecond), counts(result.answers))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	priority := "The attackers had the priority of the server: their own work counts as harm."
	if r.yielded {
		priority = "The attackers had a low priority: they stand for other machines."
	}
	_, err := fmt.Fprintf(out, "\nThe 99th percentile of the honest tenant's operations in ms, and the largest ratio to the one without an attack.\n%s\n", priority)
	return err
}
