package fairness_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"management.platform.sh/shared/api/fairness"
	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// counter is an Observer that adds up.
type counter struct {
	mu             sync.Mutex
	taken, waiting map[string]int
	refused        map[string]int
}

func newCounter() *counter {
	return &counter{taken: map[string]int{}, waiting: map[string]int{}, refused: map[string]int{}}
}

func (c *counter) Places(class string, taken, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken[class] += taken
	c.waiting[class] += waiting
}

func (c *counter) Refused(class string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[class]++
}

func (c *counter) count(class fairness.Class) (taken, waiting, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[class.String()], c.waiting[class.String()], c.refused[class.String()]
}

// take takes a place that must be free at once.
func take(t *testing.T, p *fairness.Places, class fairness.Class, caller string) fairness.Place {
	t.Helper()
	place, err := p.Take(context.Background(), class, caller, caller)
	if err != nil {
		t.Fatalf("%s of %s: %v", class, caller, err)
	}
	return place
}

// wants fails the test if an error is not a 429 that says a text.
func wants(t *testing.T, err error, text string) {
	t.Helper()
	status := apierror.From(err).Status()
	if status.Code != http.StatusTooManyRequests || !strings.Contains(status.Message, text) ||
		status.Details == nil || status.Details.RetryAfterSeconds < 1 {
		t.Errorf("the error is %d %q (%v); want 429 with %q and a time to wait", status.Code, status.Message, status.Details, text)
	}
}

// A request below the limit has a place at once, the one at the limit too, and the one above waits until a place is free.
// Source: ADR-0020.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := newCounter()
		p := fairness.New(map[fairness.Class]fairness.Bound{fairness.Lists: {Total: 3, PerCaller: 2, Waiting: 1}}, counter)
		place, two := take(t, p, fairness.Lists, "ana"), take(t, p, fairness.Lists, "ana")
		third := make(chan fairness.Place)
		go func() {
			place, err := p.Take(context.Background(), fairness.Lists, "ana", "ana")
			if err != nil {
				t.Errorf("the one that waits: %v", err)
			}
			third <- place
		}()
		synctest.Wait()
		if taken, waiting, _ := counter.count(fairness.Lists); taken != 2 || waiting != 1 {
			t.Errorf("%d taken and %d waiting; want 2 and 1", taken, waiting)
		}
		_, err := p.Take(context.Background(), fairness.Lists, "ana", "user:ana")
		wants(t, err, "too many large lists of user:ana: 2 are under way and 1 wait, the limits are 2 and 1")
		other := take(t, p, fairness.Lists, "ben")
		place.Release()
		three := <-third
		for _, place := range []*fairness.Place{&place, &two, &three, &other, &two} {
			place.Release()
		}
		if taken, waiting, refused := counter.count(fairness.Lists); taken != 0 || waiting != 0 || refused != 1 {
			t.Errorf("%d taken, %d waiting, %d refused at the end; want 0, 0 and 1", taken, waiting, refused)
		}
	})
}

// A watch never waits: it is refused at the limit of the caller and at the limit of the process. Source: ADR-0020.
func TestWatchesNeverWait(t *testing.T) {
	p := fairness.New(map[fairness.Class]fairness.Bound{fairness.Watches: {Total: 3, PerCaller: 2}}, nil)
	first := take(t, p, fairness.Watches, "ana")
	take(t, p, fairness.Watches, "ana")
	_, err := p.Take(context.Background(), fairness.Watches, "ana", "user:ana")
	wants(t, err, "too many watches of user:ana: 2 are open or under way, the limit is 2")
	take(t, p, fairness.Watches, "ben")
	_, err = p.Take(context.Background(), fairness.Watches, "cleo", "user:cleo")
	wants(t, err, "too many watches: 3 are open or under way, the limit of this process is 3")
	first.Release()
	take(t, p, fairness.Watches, "cleo")
}

// A thousand requests of one caller delay another caller by one turn. Source: ADR-0020.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fairness.New(map[fairness.Class]fairness.Bound{fairness.Evaluations: {Total: 1, PerCaller: 1, Waiting: 1000}}, nil)
		var mu sync.Mutex
		var served []string
		work := func(caller string) {
			place, err := p.Take(context.Background(), fairness.Evaluations, caller, caller)
			if err != nil {
				t.Errorf("%s: %v", caller, err)
				return
			}
			defer place.Release()
			mu.Lock()
			served = append(served, caller)
			mu.Unlock()
			time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
		}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { work("greedy") })
		}
		synctest.Wait()
		for i := range 3 {
			all.Go(func() { work(fmt.Sprint("honest ", i)) })
		}
		synctest.Wait()
		all.Wait()
		for i, caller := range served {
			if caller != "greedy" && i > 5 {
				t.Errorf("%s was served as number %d", caller, i)
			}
		}
		if len(served) != 1003 {
			t.Errorf("%d of 1003 were served", len(served))
		}
	})
}

// Callers with long requests leave the spare place to others. A caller who has had a long request waits for a turn as well, until
// that is long ago. Source: ADR-0020.
func TestSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 10 * limits.ShortRequest
		p := fairness.New(map[fairness.Class]fairness.Bound{fairness.Evaluations: {Total: 1, PerCaller: 2, Waiting: 10, Spare: 1}}, nil)
		work := func(caller string, span time.Duration) (waited time.Duration) {
			began := time.Now()
			place, err := p.Take(context.Background(), fairness.Evaluations, caller, caller)
			if err != nil {
				t.Fatal(err)
			}
			defer place.Release()
			waited = time.Since(began)
			time.Sleep(span) //nolint:forbidigo // the clock of the bubble
			return waited
		}
		for _, greedy := range []string{"greedy", "another"} {
			work(greedy, long)
		}
		first := take(t, p, fairness.Evaluations, "greedy")
		if waited := work("honest", time.Millisecond); waited != 0 {
			t.Errorf("a caller with short requests waited for %v", waited)
		}
		var others sync.WaitGroup
		for _, greedy := range []string{"greedy", "another"} {
			others.Go(func() {
				if waited := work(greedy, 0); waited != long {
					t.Errorf("%s waited for %v", greedy, waited)
				}
			})
		}
		synctest.Wait()
		spare := take(t, p, fairness.Evaluations, "honest")
		others.Go(func() {
			// The second request of the same caller has no spare place.
			if waited := work("honest", 0); waited != long {
				t.Errorf("the second request waited for %v", waited)
			}
		})
		synctest.Wait()
		time.Sleep(long) //nolint:forbidigo // the clock of the bubble
		first.Release()
		spare.Release()
		others.Wait()

		// The spare place was held for long, and after many short requests that is forgotten.
		first = take(t, p, fairness.Evaluations, "greedy")
		others.Go(func() { work("honest", 0) })
		synctest.Wait()
		time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of the bubble
		first.Release()
		others.Wait()
		for range 30 {
			work("honest", 0)
		}
		first = take(t, p, fairness.Evaluations, "greedy")
		if waited := work("honest", 0); waited != 0 {
			t.Errorf("after many short requests a caller waited for %v", waited)
		}
		first.Release()
	})
}

// A request that waits ends with its context, and after the longest wait. Its turn goes to the next one. Source: ADR-0020.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := newCounter()
		p := fairness.New(map[fairness.Class]fairness.Bound{fairness.Requests: {Total: 1, PerCaller: 1, Waiting: 5}}, counter)
		place := take(t, p, fairness.Requests, "ana")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := p.Take(ctx, fairness.Requests, "ben", "ben"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		_, err := p.Take(context.Background(), fairness.Requests, "ben", "ben")
		wants(t, err, "requests are answered too slowly at present: no place within "+limits.LongestWait.String())
		if took := time.Since(began); took != limits.LongestWait {
			t.Errorf("waited for %v", took)
		}
		place.Release()
		second := take(t, p, fairness.Requests, "cleo")
		second.Release()
		if taken, waiting, _ := counter.count(fairness.Requests); taken != 0 || waiting != 0 {
			t.Errorf("%d taken and %d waiting at the end", taken, waiting)
		}
	})
}

// Without places, and in a class without a bound, every request has a place. Source: ADR-0020.
func TestUnbounded(t *testing.T) {
	var none *fairness.Places
	some := fairness.New(map[fairness.Class]fairness.Bound{fairness.Lists: {Total: 1, PerCaller: 1}}, nil)
	for range 100 {
		take(t, none, fairness.Requests, "ana")
		take(t, some, fairness.Requests, "ana")
	}
	var place fairness.Place
	place.Release()
}

// Whatever callers do in whatever order: no limit is exceeded, no place is lost, and no caller waits while there is a place for
// them. Source: ADR-0020.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bound := fairness.Bound{
			Total: rapid.IntRange(1, 4).Draw(rt, "total"), PerCaller: rapid.IntRange(1, 3).Draw(rt, "per caller"),
			Waiting: rapid.IntRange(0, 3).Draw(rt, "waiting"),
		}
		steps := rapid.SliceOfN(rapid.IntRange(0, 7), 1, 60).Draw(rt, "steps")
		synctest.Test(t, func(*testing.T) { play(rt, bound, steps) })
	})
}

// play takes and gives back places: steps 0 to 3 take one for a caller, 4 gives back the oldest, 5 the newest, 6 cancels the
// oldest request that waits, and 7 lets time pass.
func play(rt *rapid.T, bound fairness.Bound, steps []int) {
	counter := newCounter()
	p := fairness.New(map[fairness.Class]fairness.Bound{fairness.Bodies: bound}, counter)
	var mu sync.Mutex
	places := map[string][]fairness.Place{}
	var order []string
	waiting := map[string]int{}
	var cancels []context.CancelFunc
	give := func(i int) {
		mu.Lock()
		caller := order[i]
		order = append(order[:i], order[i+1:]...)
		place := places[caller][0]
		places[caller] = places[caller][1:]
		mu.Unlock()
		place.Release()
	}
	for _, step := range steps {
		switch {
		case step < 4:
			caller := fmt.Sprint("caller ", step)
			ctx, cancel := context.WithCancel(context.Background())
			cancels = append(cancels, cancel)
			mu.Lock()
			waiting[caller]++
			mu.Unlock()
			go func() {
				place, err := p.Take(ctx, fairness.Bodies, caller, caller)
				mu.Lock()
				defer mu.Unlock()
				waiting[caller]--
				if err == nil {
					places[caller] = append(places[caller], place)
					order = append(order, caller)
				}
			}()
		case step == 4 && len(order) > 0:
			give(0)
		case step == 5 && len(order) > 0:
			give(len(order) - 1)
		case step == 6 && len(cancels) > 0:
			cancels[0]()
			cancels = cancels[1:]
		case step == 7:
			time.Sleep(limits.LongestWait / 3) //nolint:forbidigo // the clock of the bubble
		}
		synctest.Wait()
		mu.Lock()
		for caller, number := range waiting {
			if len(places[caller]) > bound.PerCaller || number > bound.Waiting {
				rt.Errorf("%s has %d places and waits for %d; the bound is %+v", caller, len(places[caller]), number, bound)
			}
			if number > 0 && len(places[caller]) < bound.PerCaller && len(order) < bound.Total {
				rt.Errorf("%s waits with %d of %d places taken", caller, len(order), bound.Total)
			}
		}
		if taken, _, _ := counter.count(fairness.Bodies); taken != len(order) || taken > bound.Total {
			rt.Errorf("%d places are taken by the count and %d in fact; there are %d", taken, len(order), bound.Total)
		}
		mu.Unlock()
	}
	for _, cancel := range cancels {
		cancel()
	}
	synctest.Wait()
	for len(order) > 0 {
		give(0)
		synctest.Wait()
	}
	if taken, left, _ := counter.count(fairness.Bodies); taken != 0 || left != 0 {
		rt.Errorf("%d taken and %d waiting at the end", taken, left)
	}
}
