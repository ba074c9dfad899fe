package kubeconfig

import (
	"fmt"
	"testing"

	"management.platform.sh/shared/signing/clusterca"
)

// A process keeps a bounded number of authorities: the most recently used ones. Source: ADR-0026.
func TestAuthoritiesAreBounded(t *testing.T) {
	t.Parallel()
	var kept authorityCache
	from, ca := source{certificate: "a", key: "b"}, &clusterca.CA{}
	for i := range maxAuthorities + 1 {
		kept.add(fmt.Sprint(i), from, ca)
		if kept.lookup("0", from) != ca {
			t.Fatalf("the first one, used just now, is forgotten after %d", i)
		}
	}
	if kept.lookup("1", from) != nil || kept.lookup("2", from) != ca {
		t.Errorf("of %d authorities, another one than the oldest is forgotten", maxAuthorities+1)
	}
	if kept.lookup("2", source{certificate: "c", key: "b"}) != nil || kept.lookup("2", from) != nil {
		t.Error("an authority is kept after the instance has another one")
	}
}
