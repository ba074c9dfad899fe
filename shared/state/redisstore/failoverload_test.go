package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/redisstore/redistest"
	"management.platform.sh/shared/state/store"
)

// replicated are the options with which an acknowledged write survives the loss of the primary.
var replicated = redisstore.Options{PoolSize: 8, Timeout: 5 * time.Second, Replicas: 1, ReplicaTimeout: 2 * time.Second}

// load writes and reads until it is stopped, and knows what was acknowledged.
type load struct {
	t     *testing.T
	s     store.Store
	stop  chan struct{}
	group sync.WaitGroup

	mu sync.Mutex
	// createdNames are the objects whose creation was acknowledged, and removedNames the objects whose removal was.
	createdNames, removedNames map[string]bool
	failures                   int
	// informed are the objects that the informer has.
	informed map[string]int64
	relists  int
}

// begin starts writers, a reader of removed objects and an informer.
func begin(t *testing.T, client *redisstore.Client) *load {
	l := &load{t: t, s: client.Resource("things"), stop: make(chan struct{}), createdNames: map[string]bool{}, removedNames: map[string]bool{}, informed: map[string]int64{}}
	for writer := range 4 {
		l.group.Go(func() { l.write(fmt.Sprint("w", writer)) })
	}
	l.group.Go(l.read)
	return l
}

func (l *load) isStopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// write creates objects, and removes every second one.
func (l *load) write(prefix string) {
	for i := 0; !l.isStopped(); i++ {
		name := prefix + "-" + strconv.Itoa(i)
		revision, err := l.s.Create(context.Background(), thing(name))
		if l.note(err, func() { l.createdNames[name] = true }) && i%2 == 0 {
			// An attempt whose outcome is unknown leaves the object in neither list.
			l.mu.Lock()
			delete(l.createdNames, name)
			l.mu.Unlock()
			_, err = l.s.Delete(context.Background(), name, revision)
			l.note(err, func() { l.removedNames[name] = true })
		}
	}
}

// note counts an attempt, and calls acknowledged if it was acknowledged.
func (l *load) note(err error, acknowledged func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		acknowledged()
		return true
	}
	l.failures++
	if !errors.Is(err, store.ErrUnavailable) {
		l.t.Errorf("a write: %v", err)
	}
	return false
}

// read looks for removed objects, as an authentication does: whatever fails in the meantime, no removed object is found
// again.
func (l *load) read() {
	for !l.isStopped() {
		l.mu.Lock()
		name := ""
		for name = range l.removedNames {
			break
		}
		l.mu.Unlock()
		if name == "" {
			continue
		}
		if _, err := l.s.GetByDigest(context.Background(), "digest-"+name); !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnavailable) {
			l.t.Errorf("the removed object %s: %v", name, err)
		}
	}
}

// awaitWrites waits for that many more acknowledged writes.
func (l *load) awaitWrites(more int, when string) {
	l.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.createdNames) + len(l.removedNames)
	}
	begun := count()
	for end := time.Now().Add(4 * time.Minute); count() < begun+more; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // bounded polling of processes
		if time.Now().After(end) {
			l.t.Fatalf("%s: %d writes of %d are acknowledged", when, count()-begun, more)
		}
	}
}

// inform keeps a copy of the objects as an informer does: it lists, follows the events, and lists again if they are gone.
func (l *load) inform(ctx context.Context) {
	for ctx.Err() == nil {
		copied, revision := map[string]int64{}, int64(0)
		listed := func() error {
			query := store.Query{}
			for {
				page, err := l.s.List(ctx, query)
				if err != nil {
					return err
				}
				if query.After == "" {
					revision = page.Revision
				}
				for _, record := range page.Records {
					copied[record.Name], query.After = record.Revision, record.Name
				}
				if page.Remaining == 0 {
					return nil
				}
			}
		}()
		if listed != nil {
			continue
		}
		for ctx.Err() == nil {
			l.mu.Lock()
			l.informed = copied
			l.mu.Unlock()
			events, err := l.s.Events(ctx, revision, 500, 100*time.Millisecond)
			if errors.Is(err, store.ErrGone) {
				l.mu.Lock()
				l.relists++
				l.mu.Unlock()
				break
			}
			newCopy := make(map[string]int64, len(copied))
			for name, at := range copied {
				newCopy[name] = at
			}
			for _, event := range events {
				revision = event.Revision
				if event.Type == store.Deleted {
					delete(newCopy, event.Record.Name)
				} else if newCopy[event.Record.Name] < event.Record.Revision {
					newCopy[event.Record.Name] = event.Record.Revision
				}
			}
			copied = newCopy
		}
	}
}

// end stops the writers and compares the state and the copy of the informer with what was acknowledged.
func (l *load) end() {
	l.t.Helper()
	close(l.stop)
	l.group.Wait()
	storedRevisions := map[string]int64{}
	eventually(l.t, "listing", func() error {
		clear(storedRevisions)
		for record, err := range store.Each(context.Background(), l.s, store.Query{}) {
			if err != nil {
				return err
			}
			storedRevisions[record.Name] = record.Revision
		}
		return nil
	})
	var lostNames, undoneNames []string
	for name := range l.createdNames {
		if storedRevisions[name] == 0 {
			lostNames = append(lostNames, name)
		}
	}
	for name := range l.removedNames {
		if storedRevisions[name] != 0 {
			undoneNames = append(undoneNames, name)
		}
	}
	if slices.Sort(lostNames); len(lostNames)+len(undoneNames) > 0 {
		l.t.Errorf("%d acknowledged creations are lost: %q; %d acknowledged removals are undone: %q", len(lostNames), lostNames, len(undoneNames), undoneNames)
	}
	eventually(l.t, "the informer", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.informed) != len(storedRevisions) {
			return fmt.Errorf("it has %d objects, and there are %d", len(l.informed), len(storedRevisions))
		}
		for name, revision := range storedRevisions {
			if l.informed[name] != revision {
				return fmt.Errorf("it has revision %d of %s, and there is %d", l.informed[name], name, revision)
			}
		}
		return nil
	})
	l.t.Logf("%d creations and %d removals acknowledged, %d attempts refused, %d objects, %d lists after the first", len(l.createdNames), len(l.removedNames), l.failures, len(storedRevisions), l.relists)
}

// survive kills a primary under load, lets another server take over, and brings the dead server back as its replica. It
// demands that every acknowledged write is there, that no removed object is found again, and that an informer has the
// same objects.
func survive(t *testing.T, client *redisstore.Client, primary *redistest.Process, promoted func() error) {
	l := begin(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var informer sync.WaitGroup
	informer.Go(func() { l.inform(ctx) })
	l.awaitWrites(200, "before")
	primary.Kill()
	eventually(t, "the promotion", promoted)
	primary.Restart()
	l.awaitWrites(200, "after")
	l.end()
	cancel()
	informer.Wait()
}

// TestFailoverUnderLoad: a sentinel promotes the replica of a primary that was killed under load.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	primary := redistest.Server(t, redistest.AppendOnly())
	replica := redistest.Replica(t, primary, redistest.AppendOnly())
	guard := redistest.Sentinel(t, "state", primary, 1)
	survive(t, open(t, "redis-sentinel://"+guard.Address()+"/state", replicated), primary, func() error {
		return isPrimary(t, replica)
	})
}

// TestClusterFailoverUnderLoad: the other primaries of a cluster promote the replica of a primary that was killed under
// load.
func TestClusterFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	nodes := redistest.Nodes(t)
	clients := make([]*redis.Client, len(nodes))
	var urls []string
	for i, node := range nodes {
		clients[i] = raw(t, node.URL())
		urls = append(urls, node.URL())
	}
	slot, err := clients[0].ClusterKeySlot(t.Context(), "p1:{things}:objects").Result()
	must(t, err)
	owner := int(slot) * len(nodes) / 16384
	replica := redistest.ClusterReplica(t, nodes[owner])
	survive(t, open(t, strings.Join(urls, ","), replicated), nodes[owner], func() error { return isPrimary(t, replica) })
}

func isPrimary(t *testing.T, of *redistest.Process) error {
	if role := raw(t, of.URL()).Info(t.Context(), "replication").Val(); !strings.Contains(role, "role:master") {
		return errors.New("it is still a replica")
	}
	return nil
}
