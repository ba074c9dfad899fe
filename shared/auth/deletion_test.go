package auth_test

import (
	"context"
	"testing"
	"time"

	"management.platform.sh/shared/api/resource"
	"management.platform.sh/shared/model"
)

// A key authenticates until its deletionTimestamp and never after, even while finalizers keep it. Its use does not
// postpone that time. Source: Spec 2.2, 3; ADR-0009.
func TestGracePeriod(t *testing.T) {
	t.Parallel()
	for about, finalizers := range map[string][]string{"a key": nil, "a key with finalizers": {"example.com/held"}} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			name, bearer := w.create(t, model.OwnedAccessKeySpec{TTLSeconds: 3600, TTLAfterLastActivity: true}, finalizers...)
			if _, err := resource.Delete(context.Background(), w.keys, resource.DeleteInput{
				Caller: admin, Name: name, GracePeriodSeconds: new(int64(600)),
			}); err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				at   time.Duration
				code int32
			}{{0, 200}, {300 * time.Second, 200}, {599*time.Second + 999*time.Millisecond, 200}, {600 * time.Second, 401}, {time.Hour, 401}} {
				w.setTime(step.at)
				if got := code(w.use(bearer)); got != step.code {
					t.Errorf("after %v: %d, want %d", step.at, got, step.code)
				}
			}
			want := born.Add(600 * time.Second)
			if finalizers != nil {
				want = time.Time{}
			}
			if got := w.record(t, name).Expires; !got.Equal(want) {
				t.Errorf("it is due at %v, want %v", got, want)
			}
			// Once the grace period is over, removing its last finalizer removes the key.
			if finalizers != nil {
				w.patch(t, name, `{"metadata":{"finalizers":null}}`)
			}
			if _, err := resource.Get(context.Background(), w.keys, resource.GetInput{Caller: admin, Name: name}); code(err) != 404 {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}
