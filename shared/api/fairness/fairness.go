// Package fairness shares a process between its callers. A request takes a place before it does its work, and gives it back
// at the end. Each class of work has a number of places, and each caller may have some of them at a time. A request without a
// free place waits in the queue of its caller, and a place that becomes free goes to the callers in turn. So one caller with
// many requests delays another by one turn, whatever the number of the requests. Source: ADR-0020.
//
// The package knows nothing of HTTP and of kinds.
package fairness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/model/apierror"
)

// Class is a class of work that has places of its own.
type Class int

// The classes. A request that takes places in several takes them in this order, so that requests never wait for each other.
// All requests but health checks take one of Requests. A request with a credential takes one of Authentications, under its
// address, and gives it back as soon as its caller is known: before that, nothing else bounds it.
const (
	Authentications Class = iota
	// Bodies are large bodies that arrive or have arrived. They bound memory.
	Bodies
	Watches
	Evaluations
	// Kubeconfigs are requests that render kubeconfigs. The signer of a virtual cluster may be a remote server, which takes time.
	Kubeconfigs
	Lists
	// Heavy are requests with much text. They bound the processors that one kind of request can have.
	Heavy
	Requests
	// Classes is the number of classes.
	Classes
)

// names are the plural of each class, in messages and metrics.
var names = [Classes]string{"authentications", "large bodies", "watches", "evaluations", "kubeconfigs", "large lists", "heavy requests", "requests"}

// String returns the name of the class, such as "large lists".
func (c Class) String() string { return names[c] }

// Bound is how much of a class there may be at a time.
type Bound struct {
	// Total is the number of places in the process.
	Total int
	// PerCaller is how many of them one caller may have at a time.
	PerCaller int
	// Waiting is how many requests of one caller may wait for a place.
	Waiting int
	// Spare is how many further places there are for callers whose requests are short, so that these need not wait for long ones.
	// Such a caller has at most one of them, and none beside another place.
	Spare int
}

// Observer counts what happens to places. Implementations are safe for concurrent use.
type Observer interface {
	// Places notes how many places of a class are taken, and how many requests wait for one. Both are changes: -1, 0 or 1.
	Places(class string, taken, waiting int)
	// Refused counts a request that got no place.
	Refused(class string)
}

// Places has the places of a process. It is safe for concurrent use. A nil *Places has a place for every request.
type Places struct {
	gates [Classes]gate
}

// New returns the places of a process. A class that bounds does not name has no bound. Observer may be nil.
func New(bounds map[Class]Bound, observer Observer) *Places {
	if observer == nil {
		observer = unobserved{}
	}
	p := &Places{}
	for class, bound := range bounds {
		// Only a size below one is an error.
		took, _ := lru.New[string, time.Duration](maxTook)
		p.gates[class] = gate{
			class: class, bound: bound, observer: observer, longest: limits.LongestWait, callers: map[string]*caller{}, took: took,
		}
	}
	return p
}

// Place is a place that a request has taken. The zero value is none.
type Place struct {
	gate   *gate
	caller *caller
	since  time.Time
}

// Take takes a place for a caller, and waits for it where it must. Caller is what the places are shared by, and label how a
// message calls it. Watches never wait, since a watch lasts too long to wait for its end.
//
// Errors: TooManyRequests (429) with the name of the limit when the queue of the caller is full, or when there is no place
// within the longest wait; the error of ctx when it ends before.
func (p *Places) Take(ctx context.Context, class Class, name, label string) (Place, error) {
	if p == nil || p.gates[class].callers == nil {
		return Place{}, nil
	}
	return p.gates[class].take(ctx, name, label)
}

// Release gives a place back. It may be called on no place, and more than once.
func (p *Place) Release() {
	if p.gate != nil {
		p.gate.release(p.caller, time.Since(p.since))
		*p = Place{}
	}
}

// gate has the places of one class.
type gate struct {
	class    Class
	bound    Bound
	observer Observer
	longest  time.Duration

	mu sync.Mutex
	// taken is the number of places that are taken.
	taken int
	// callers has the callers who have a place or wait for one.
	callers map[string]*caller
	// turns are the callers who wait and may have one more place, in the order of their turns.
	turns []*caller
	// took is how long requests of callers held a place: the longest, a tenth less with each request after it.
	took *lru.Cache[string, time.Duration]
}

// maxTook is the number of callers for whom a process remembers how long their requests took.
const maxTook = 4096

// caller is a caller who has places of a class or waits for one.
type caller struct {
	name    string
	taken   int
	waiting []*waiter
	// inTurns reports whether the caller is among the turns of the gate.
	inTurns bool
}

// waiter is a request that waits. Its channel is closed when it has a place.
type waiter struct{ ready chan struct{} }

// take takes a place, or waits for one.
func (g *gate) take(ctx context.Context, name, label string) (Place, error) {
	g.mu.Lock()
	c := g.callers[name]
	if c == nil {
		c = &caller{name: name}
		g.callers[name] = c
	}
	// No waiting request could have this place, so it may be taken at once.
	if g.free(c) && c.taken < g.bound.PerCaller {
		g.taken++
		c.taken++
		g.mu.Unlock()
		g.observer.Places(g.class.String(), 1, 0)
		return g.place(c), nil
	}
	if g.class == Watches || len(c.waiting) >= g.bound.Waiting {
		taken, waiting, own := g.taken, len(c.waiting), c.taken
		g.forget(c)
		g.mu.Unlock()
		g.observer.Refused(g.class.String())
		return Place{}, g.full(label, taken, own, waiting)
	}
	w := &waiter{ready: make(chan struct{})}
	c.waiting = append(c.waiting, w)
	g.enqueue(c)
	g.mu.Unlock()
	g.observer.Places(g.class.String(), 0, 1)
	return g.wait(ctx, c, w)
}

// free reports whether there is a place for a caller, who may have one more.
func (g *gate) free(c *caller) bool {
	if g.taken < g.bound.Total {
		return true
	}
	if g.taken >= g.bound.Total+g.bound.Spare || c.taken > 0 {
		return false
	}
	took, _ := g.took.Peek(c.name)
	return took < limits.ShortRequest
}

// place is the place that a caller has from now on.
func (g *gate) place(c *caller) Place { return Place{gate: g, caller: c, since: time.Now()} }

// wait waits until a request has a place.
func (g *gate) wait(ctx context.Context, c *caller, w *waiter) (Place, error) {
	timer := time.NewTimer(g.longest)
	defer timer.Stop()
	select {
	case <-w.ready:
		return g.place(c), nil
	case <-timer.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready:
		// The place came at the same time.
		return g.place(c), nil
	default:
	}
	for i, other := range c.waiting {
		if other == w {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			break
		}
	}
	if len(c.waiting) == 0 {
		g.dequeue(c)
	}
	g.forget(c)
	g.observer.Places(g.class.String(), 0, -1)
	if err := ctx.Err(); err != nil {
		return Place{}, err
	}
	g.observer.Refused(g.class.String())
	return Place{}, apierror.TooMany(g.class.String()+" are answered too slowly at present: no place within "+g.longest.String(), 1)
}

// release gives back a place that was held for some time, and passes it to the caller with the next turn.
func (g *gate) release(c *caller, duration time.Duration) {
	g.mu.Lock()
	g.taken--
	c.taken--
	if g.bound.Spare > 0 {
		before, _ := g.took.Get(c.name)
		g.took.Add(c.name, max(duration, before*9/10))
	}
	g.enqueue(c)
	served := 0
	for {
		i := slices.IndexFunc(g.turns, g.free)
		if i < 0 {
			break
		}
		next := g.turns[i]
		g.dequeue(next)
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		g.taken++
		next.taken++
		g.enqueue(next)
		close(w.ready)
		served++
	}
	g.forget(c)
	g.mu.Unlock()
	g.observer.Places(g.class.String(), -1, 0)
	for range served {
		g.observer.Places(g.class.String(), 1, -1)
	}
}

// enqueue gives a caller a turn behind the others, if it waits and may have one more place.
func (g *gate) enqueue(c *caller) {
	if !c.inTurns && len(c.waiting) > 0 && c.taken < g.bound.PerCaller {
		c.inTurns = true
		g.turns = append(g.turns, c)
	}
}

// dequeue takes a caller out of the turns.
func (g *gate) dequeue(c *caller) {
	if !c.inTurns {
		return
	}
	c.inTurns = false
	i := slices.Index(g.turns, c)
	g.turns = slices.Delete(g.turns, i, i+1)
}

// forget removes a caller who has no place and waits for none.
func (g *gate) forget(c *caller) {
	if c.taken == 0 && len(c.waiting) == 0 {
		delete(g.callers, c.name)
	}
}

// full is the refusal of a request that may not even wait. It names the limit: the number of the caller, or the number of
// the process.
func (g *gate) full(label string, taken, own, waiting int) error {
	if own < g.bound.PerCaller {
		return apierror.TooMany(fmt.Sprintf("too many %s: %d are open or under way, the limit of this process is %d", g.class, taken, g.bound.Total), 1)
	}
	if g.bound.Waiting == 0 || g.class == Watches {
		return apierror.TooMany(fmt.Sprintf("too many %s of %s: %d are open or under way, the limit is %d", g.class, label, own, g.bound.PerCaller), 1)
	}
	return apierror.TooMany(fmt.Sprintf("too many %s of %s: %d are under way and %d wait, the limits are %d and %d",
		g.class, label, own, waiting, g.bound.PerCaller, g.bound.Waiting), 1)
}

// unobserved is an Observer that counts nothing.
type unobserved struct{}

func (unobserved) Places(string, int, int) {}
func (unobserved) Refused(string)          {}
