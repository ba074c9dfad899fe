package gc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"management.platform.sh/shared/limits"
	"management.platform.sh/shared/state/store"
)

const (
	// sweepSteps bounds the objects that one run looks at; the next run continues.
	sweepSteps = 10_000
	// sweepReferences is how many references of each resource one run reads.
	sweepReferences = 10_000
	// eventAge is how long events are kept for those who resume a watch. Source: ADR-0007.
	eventAge = 24 * time.Hour
)

// Sweep does what requests have left. It first trims old events of every resource, then continues the deletions
// that are due, and then walks through the references, from a random place, for objects whose owners are gone. It may
// run late, twice at once or stop half-way. The output counts what was done, also beside an error. Source: Spec 2.2, 3;
// ADR-0009.
func (g *Graph) Sweep(ctx context.Context) (Collected, error) {
	c := g.collection(sweepSteps)
	for _, member := range g.members {
		if err := member.Store().Trim(ctx, member.Now().Add(-eventAge)); err != nil {
			return c.report, fmt.Errorf("trimming the events of %s: %w", member.GroupVersionKind().Kind, err)
		}
	}
	for _, member := range g.members {
		if err := c.due(ctx, member); err != nil {
			return c.report, fmt.Errorf("deleting what is due of %s: %w", member.GroupVersionKind().Kind, err)
		}
	}
	for _, member := range g.members {
		if err := c.walk(ctx, member); err != nil {
			return c.report, fmt.Errorf("walking through the references of %s: %w", member.GroupVersionKind().Kind, err)
		}
	}
	return c.report, c.broken
}

// due continues the deletions of a resource that are due.
func (c *collection) due(ctx context.Context, member Member) error {
	looked := map[string]bool{}
	for skip := 0; c.budget > 0; {
		records, err := member.Store().Due(ctx, store.DueQuery{Until: member.Now(), Skip: skip, Limit: pageOfDependents})
		if err != nil || len(records) == 0 {
			return err
		}
		for _, record := range records {
			if looked[record.Name] {
				// An object that stays due after a look remains at the head of the queue, and so does an object that only the
				// rules of the resource make due.
				skip++
				continue
			}
			if len(looked) == sweepSteps {
				c.report.Unfinished = true
				return nil
			}
			looked[record.Name] = true
			n, err := newNode(member, record)
			if err != nil {
				c.recordBroken(err)
				continue
			}
			if n.Object.GetDeletionTimestamp() == nil {
				continue
			}
			c.push(n)
			if err := c.run(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk looks at the objects of a resource that refer to owners, or to makers that they cannot outlive, until these are
// seen alive. It begins anywhere, so that no part of a long index is always the last.
func (c *collection) walk(ctx context.Context, member Member) error {
	_, total, err := member.Store().References(ctx, 0, 1)
	if err != nil || total == 0 {
		return err
	}
	// All are read before the first is looked at: a removal would move the rest.
	var references []store.Reference
	start := rand.Int64N(total) //nolint:gosec // where a walk begins is no secret
	most := min(total, sweepReferences)
	for int64(len(references)) < most {
		from := (start + int64(len(references))) % total
		limit := min(limits.PageObjects, most-int64(len(references)), total-from)
		page, _, err := member.Store().References(ctx, from, int(limit))
		if err != nil {
			return err
		}
		references = append(references, page...)
		if int64(len(page)) < limit {
			break
		}
	}
	for _, reference := range references {
		if c.alive[types.UID(reference.UID)] || strings.HasPrefix(reference.UID, madeBy) {
			continue
		}
		c.queue = append(c.queue, task{member: member, name: reference.Name})
		if err := c.run(ctx); err != nil {
			return err
		}
		if c.report.Unfinished {
			return nil
		}
	}
	return nil
}
