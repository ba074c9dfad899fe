package main

import (
	"maps"
	"testing"
	"time"
)

func TestInitializations(t *testing.T) {
	t.Parallel()
	got, err := initializations("init internal/bytealg @0.008 ms, 0 ms clock, 0 bytes, 0 allocs\nready\n" +
		"init net/http @1.2 ms, 0.25 ms clock, 1024 bytes, 2 allocs\ninit ial words of a log line, which say 3 ms\n")
	want := map[string]time.Duration{"internal/bytealg": 0, "net/http": 250 * time.Microsecond}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "ready\n", "init net/http @1.2 ms, 7 us clock, 0 bytes, 0 allocs\n"} {
		if _, err := initializations(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	p := &program{packages: map[string]time.Duration{"a": 1e6, "b": 3e6, "c": 2e6, "d": 0}}
	if got := p.most(); got != "b 3.00, c 2.00, a 1.00" || p.initializing() != 6*time.Millisecond {
		t.Errorf("the largest are %q of %v", got, p.initializing())
	}
}

// A name that no function has is refused before anything is built.
func TestUnknownFunction(t *testing.T) {
	t.Parallel()
	if _, err := build(t.TempDir(), []string{"nofunction"}); err == nil {
		t.Error("it is accepted")
	}
}
