package gc

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

const (
	// inlineSteps and inlineTime bound the work of a request on the dependents of the object that it deleted. The schedule
	// does the rest. Source: ADR-0009.
	inlineSteps = 100
	inlineTime  = 10 * time.Second
	// lineageSteps and lineageTime bound the work of a request on what a deleted credential made, which is deleted before the
	// request is answered. Source: ADR-0021.
	lineageSteps = 10_000
	lineageTime  = 30 * time.Second
	// pageOfDependents is how many objects are read in one round trip.
	pageOfDependents = 100
	// maxTries bounds how often one run looks at an object that others write at the same time.
	maxTries = 3
)

// Collected counts what a collection did.
type Collected struct {
	// Removed counts objects that were removed, Marked objects whose deletion has begun and which finalizers or a grace period
	// hold, Changed objects that lost references or finalizers, Busy objects that others wrote at the same time, and Broken
	// objects that cannot be read.
	Removed, Marked, Changed, Busy, Broken int
	// Unfinished reports whether the run reached its bound before the work was done.
	Unfinished bool
}

// task is one step of a collection: it looks at one object, or at a page of the objects that refer to a uid.
type task struct {
	member Member
	// name is the name of the object in the store; empty for a page. uid is the uid that the object must have; empty: any.
	name string
	uid  types.UID
	// owner is the uid whose dependents are on the page. The page begins after the name after.
	owner types.UID
	after string
	// referred reports whether the page is to be read: it has objects, as far as is known.
	referred bool
	tries    int
}

// collection is one run of the collector over a graph. Each write requires the record on which it was decided. Runs can
// therefore overlap, and can stop at any step: a later run finds what is left, by the reference to an owner that is gone or by
// the finalizer of an owner that waits. Source: Spec 2.2; ADR-0009.
type collection struct {
	graph *Graph
	// budget is how many more objects may be looked at.
	budget int
	queue  []task
	// waiting are owners to look at again when the queue is empty.
	waiting []task
	// gone and alive are uids that were seen absent and present.
	gone, alive map[types.UID]bool
	// walked are owners whose dependents have been queued.
	walked map[types.UID]bool
	// referred are answers that came with a removal: whether objects refer to a uid.
	referred map[store.Referral]bool
	report   Collected
	// broken is the first error about an object that cannot be read.
	broken error
}

func (g *Graph) collection(steps int) *collection {
	return &collection{
		graph: g, budget: steps,
		gone: map[types.UID]bool{}, alive: map[types.UID]bool{}, walked: map[types.UID]bool{}, referred: map[store.Referral]bool{},
	}
}

// Questions returns what a collection asks first about an object that is removed: the removal can answer it in the same round
// trip. Nil: the graph collects nothing.
func (g *Graph) Questions(removed Node) *store.Questions {
	if g.OnlyLooksUp() {
		return nil
	}
	c := g.collection(0)
	c.followUp(Outcome{Node: removed, Gone: true})
	questions := &store.Questions{}
	for _, page := range c.queue {
		questions.Asked = append(questions.Asked, page.question())
	}
	return questions
}

// Collect follows up on objects that a request deleted or changed, up to the bound of a request. A failure does not fail the
// request: the schedule finds what is left. A graph that only looks owners up leaves everything to the schedule.
func (g *Graph) Collect(ctx context.Context, outcomes ...Outcome) {
	if g.OnlyLooksUp() {
		return
	}
	c := g.collection(inlineSteps)
	steps := lineageSteps
	for _, outcome := range outcomes {
		if outcome.Gone || NeedsPropagation(outcome.Object) {
			c.followUp(outcome)
		}
		if !outcome.Gone && slices.Contains(outcome.Object.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			ctx, cancel := context.WithTimeout(ctx, lineageTime)
			_, _ = c.deleteLineage(ctx, outcome.Node, &steps)
			cancel()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, inlineTime)
	defer cancel()
	_ = c.run(ctx)
}

// question asks whether the page of a task has objects.
func (t task) question() store.Referral {
	return store.Referral{Resource: t.member.Store().Name(), UID: string(t.owner)}
}

// run takes steps until the queue is empty or the bound is reached. A step that fails for one object does not stop the
// others; errors of the state and of the context end the run.
func (c *collection) run(ctx context.Context) error {
	for len(c.queue) > 0 || len(c.waiting) > 0 {
		if c.budget == 0 {
			c.report.Unfinished = true
			return nil
		}
		if len(c.queue) == 0 {
			c.queue, c.waiting = c.waiting, nil
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		if next.name != "" {
			c.budget--
		}
		if err := c.step(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) step(ctx context.Context, t task) error {
	var err error
	switch {
	case t.name != "":
		err = c.visit(ctx, t)
	case !t.referred:
		err = c.askForDependents(ctx, t)
	default:
		err = c.enqueueDependents(ctx, t)
	}
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, store.ErrUnavailable):
		return err
	case errors.Is(err, store.ErrConflict):
		if t.tries++; t.tries < maxTries {
			c.queue = append(c.queue, t)
		} else {
			c.report.Busy++
		}
		return nil
	default:
		c.recordBroken(err)
		return nil
	}
}

// recordBroken keeps the first error about an object that cannot be read.
func (c *collection) recordBroken(err error) {
	c.report.Broken++
	if c.broken == nil {
		c.broken = err
	}
}

// push puts an object into the queue.
func (c *collection) push(n Node) {
	c.queue = append(c.queue, task{member: n.Member, name: n.Record.Name, uid: n.Object.GetUID()})
}

// pushDependents puts the objects that refer to a uid into the queue, of every resource.
func (c *collection) pushDependents(owner types.UID) {
	for _, member := range c.graph.members {
		c.queue = append(c.queue, task{member: member, owner: owner})
	}
}

// askForDependents finds out in one round trip which of the pages at the head of the queue have objects, and leaves out the others: most
// objects that are deleted own nothing. A page alone is read without asking. Source: ADR-0002.
func (c *collection) askForDependents(ctx context.Context, first task) error {
	pages := []task{first}
	for len(c.queue) > 0 && len(pages) < limits.PageObjects && c.queue[0].name == "" && !c.queue[0].referred {
		pages, c.queue = append(pages, c.queue[0]), c.queue[1:]
	}
	var questions []store.Referral
	for _, page := range pages {
		if question := page.question(); !c.hasAnswer(question) {
			questions = append(questions, question)
		}
	}
	if len(questions) > 1 {
		answers, err := first.member.Store().Referred(ctx, questions)
		if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		if err == nil {
			c.rememberAnswers(questions, answers)
		}
	}
	referred := make([]bool, len(pages))
	for i, page := range pages {
		// Reading a page reports whether it can be read.
		referred[i] = !c.hasAnswer(page.question()) || c.referred[page.question()]
		delete(c.referred, page.question())
	}
	var full []task
	for i, page := range pages {
		if referred[i] {
			page.referred = true
			full = append(full, page)
		}
	}
	c.queue = append(full, c.queue...)
	return nil
}

func (c *collection) hasAnswer(question store.Referral) bool {
	_, known := c.referred[question]
	return known
}

// rememberAnswers keeps answers until the pages are read, once.
func (c *collection) rememberAnswers(questions []store.Referral, answers []bool) {
	for i, question := range questions {
		c.referred[question] = answers[i]
	}
}

// enqueueDependents puts a page of the objects that refer to an owner into the queue, and the next page behind them.
func (c *collection) enqueueDependents(ctx context.Context, t task) error {
	read, err := dependentsOf(ctx, t.member, t.owner, t.after)
	for _, dependent := range read.nodes {
		c.push(dependent)
	}
	if read.more && read.last != "" {
		t.after, t.tries = read.last, 0
		c.queue = append(c.queue, t)
	}
	return err
}

// visit takes the next step for one object.
func (c *collection) visit(ctx context.Context, t task) error {
	n, exists, err := findNode(ctx, t.member, t.name)
	if err != nil || !exists || t.uid != "" && n.Object.GetUID() != t.uid {
		return err
	}
	finalizers := n.Object.GetFinalizers()
	switch {
	case n.Object.GetDeletionTimestamp() == nil:
		return c.keepOrDelete(ctx, n)
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return c.orphan(ctx, n)
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return c.foreground(ctx, n)
	case len(finalizers) == 0:
		// The deletion is complete, or the grace period runs, which a second request does not change.
		return c.deleteNode(ctx, n, Terms{})
	default:
		return nil
	}
}

// keepOrDelete keeps, changes or deletes an object that is not being deleted, depending on what became of its makers and owners.
func (c *collection) keepOrDelete(ctx context.Context, n Node) error {
	if outlived, err := c.outlived(ctx, n); err != nil {
		return err
	} else if outlived {
		return c.deleteNode(ctx, n, Terms{GracePeriodSeconds: new(int64)})
	}
	var solid, dangling, waiting []types.UID
	var owners []Node
	for _, reference := range n.Object.GetOwnerReferences() {
		owner, exists, err := c.owner(ctx, n, reference)
		switch {
		case err != nil:
			return err
		case !exists:
			dangling = append(dangling, reference.UID)
		case owner.Object != nil && NeedsPropagation(owner.Object) && slices.Contains(owner.Object.GetFinalizers(), metav1.FinalizerDeleteDependents):
			waiting, owners = append(waiting, reference.UID), append(owners, owner)
		default:
			solid = append(solid, reference.UID)
		}
	}
	stale := slices.Concat(dangling, waiting)
	switch {
	case len(stale) == 0:
		return nil
	case len(solid) > 0:
		if err := c.editNode(ctx, n, func(object metav1.Object) { dropReferences(object, stale) }); err != nil {
			return err
		}
		c.requeueOwners(owners)
		return nil
	case len(waiting) > 0:
		return c.deleteInForeground(ctx, n, owners)
	default:
		return c.deleteNode(ctx, n, Terms{})
	}
}

// owner returns the owner that an object refers to, and whether it exists. An owner of a kind that this API does not
// serve counts as existing, without an object.
func (c *collection) owner(ctx context.Context, n Node, reference metav1.OwnerReference) (Node, bool, error) {
	owner, exists, err := c.graph.ExistingOwner(ctx, reference, n.Member.OwnerNamespace(n.Object))
	if owner.Object != nil {
		c.alive[reference.UID] = true
	}
	return owner, exists, err
}

// deleteInForeground deletes an object whose owners wait for it. Its own dependents go first. In a cycle every object
// would wait for the next; so an object with a dependent that waits too stops blocking its owners.
func (c *collection) deleteInForeground(ctx context.Context, n Node, owners []Node) error {
	owns, cycle := false, false
	err := c.eachDependent(ctx, n, func(dependent Node) bool {
		owns = true
		cycle = NeedsPropagation(dependent.Object) && slices.Contains(dependent.Object.GetFinalizers(), metav1.FinalizerDeleteDependents)
		return !cycle
	})
	if err != nil {
		return err
	}
	if !owns {
		return c.deleteNode(ctx, n, Terms{})
	}
	if cycle {
		after, err := n.Member.EditMetadata(ctx, n.Record, func(object metav1.Object) {
			references := slices.Clone(object.GetOwnerReferences())
			for i := range references {
				if ptr.Deref(references[i].BlockOwnerDeletion, false) {
					references[i].BlockOwnerDeletion = new(false)
				}
			}
			object.SetOwnerReferences(references)
		})
		if err != nil {
			return err
		}
		c.report.Changed++
		c.requeueOwners(owners)
		n = after.Node
	}
	return c.deleteNode(ctx, n, Terms{Propagation: metav1.DeletePropagationForeground})
}

// foreground deletes what an owner that waits made, and its remaining dependents. It then removes its finalizer unless a
// dependent blocks it.
func (c *collection) foreground(ctx context.Context, n Node) error {
	if uid := n.Object.GetUID(); !c.walked[uid] {
		if ended, err := c.deleteCredentials(ctx, n); err != nil || !ended {
			return err
		}
		if ended, err := c.deleteLineage(ctx, n, &c.budget); err != nil || !ended {
			return err
		}
		c.walked[uid] = true
		c.pushDependents(uid)
		c.requeueOwners([]Node{n})
		return nil
	}
	blocked := false
	err := c.eachDependent(ctx, n, func(dependent Node) bool {
		blocked = slices.ContainsFunc(dependent.Object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
			return reference.UID == n.Object.GetUID() && ptr.Deref(reference.BlockOwnerDeletion, false)
		})
		return !blocked
	})
	if err != nil || blocked {
		return err
	}
	return c.editNode(ctx, n, func(object metav1.Object) { setPropagation(object, "") })
}

// orphan removes the references of dependents to their owner, and then the finalizer of the owner.
func (c *collection) orphan(ctx context.Context, n Node) error {
	uid := n.Object.GetUID()
	var nodes []Node
	size := 0
	if err := c.eachDependent(ctx, n, func(dependent Node) bool {
		nodes = append(nodes, dependent)
		size += len(dependent.Record.Object)
		return len(nodes) < pageOfDependents && size < limits.PageBytes
	}); err != nil {
		return err
	}
	for _, dependent := range nodes {
		if c.budget == 0 {
			break
		}
		c.budget--
		err := c.editNode(ctx, dependent, func(object metav1.Object) { dropReferences(object, []types.UID{uid}) })
		if err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if len(nodes) > 0 {
		// Again, until there are none.
		c.push(n)
		return nil
	}
	return c.editNode(ctx, n, func(object metav1.Object) { setPropagation(object, "") })
}

// eachDependent visits the objects of every resource that refer to another one, until visit returns false. It skips an
// object that refers to itself. An object that cannot be read is an error: it might block.
func (c *collection) eachDependent(ctx context.Context, n Node, visit func(Node) bool) error {
	for _, member := range c.graph.members {
		for read := (page{more: true}); read.more; {
			var err error
			if read, err = dependentsOf(ctx, member, n.Object.GetUID(), read.last); err != nil {
				return err
			}
			for _, dependent := range read.nodes {
				if dependent.Object.GetUID() != n.Object.GetUID() && !visit(dependent) {
					return nil
				}
			}
		}
	}
	return nil
}

// deleteNode deletes an object and follows up on that.
func (c *collection) deleteNode(ctx context.Context, n Node, terms Terms) error {
	before := n.Object.GetDeletionTimestamp()
	after, err := n.Member.Delete(ctx, n.Record, terms)
	if err != nil {
		return err
	}
	switch {
	case after.Gone:
		c.report.Removed++
	case before == nil:
		c.report.Marked++
	}
	if after.Gone || NeedsPropagation(after.Object) {
		c.followUp(after)
	}
	return nil
}

// editNode changes an object and follows up on that.
func (c *collection) editNode(ctx context.Context, n Node, change func(metav1.Object)) error {
	after, err := n.Member.EditMetadata(ctx, n.Record, change)
	if err != nil {
		return err
	}
	if !after.Gone {
		c.report.Changed++
		return nil
	}
	c.report.Removed++
	c.followUp(after)
	return nil
}

// followUp queues what follows from an object that is gone, or whose next step is the collector's.
func (c *collection) followUp(after Outcome) {
	if !after.Gone {
		c.push(after.Node)
		return
	}
	if after.Dependents != nil && after.Dependents.Answers != nil {
		c.rememberAnswers(after.Dependents.Asked, after.Dependents.Answers)
	}
	uid := after.Object.GetUID()
	c.gone[uid] = true
	delete(c.alive, uid)
	c.pushDependents(uid)
	delete(c.alive, boundTo+uid)
	c.pushBound(after.Node)
	// An owner may have waited for this one.
	for _, reference := range after.Object.GetOwnerReferences() {
		member, known := c.graph.Member(reference.APIVersion, reference.Kind)
		if !known || c.gone[reference.UID] {
			continue
		}
		namespace := after.Member.OwnerNamespace(after.Object)
		if _, namespaced := member.Resource(); !namespaced {
			namespace = ""
		}
		c.enqueueLast(task{member: member, name: member.RecordName(namespace, reference.Name), uid: reference.UID})
	}
}

// requeueOwners queues owners that wait, to look at them again.
func (c *collection) requeueOwners(owners []Node) {
	for _, owner := range owners {
		c.enqueueLast(task{member: owner.Member, name: owner.Record.Name, uid: owner.Object.GetUID()})
	}
}

// enqueueLast puts a task behind all others, once.
func (c *collection) enqueueLast(t task) {
	if !slices.Contains(c.waiting, t) {
		c.waiting = append(c.waiting, t)
	}
}

// dropReferences removes the references to some uids from an object.
func dropReferences(object metav1.Object, uids []types.UID) {
	object.SetOwnerReferences(slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(reference metav1.OwnerReference) bool {
		return slices.Contains(uids, reference.UID)
	}))
}
