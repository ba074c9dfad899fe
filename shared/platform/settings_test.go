package platform_test

import (
	"testing"

	"management.platform.sh/shared/platform"
)

// Source: OpenID Connect Discovery 1.0, section 3.
func TestCheckIssuer(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"https://a.example", "https://127.0.0.1:8443/kubernetes/management"} {
		if err := platform.CheckIssuer(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "a.example", "http://a.example", "https:///a", "https://a.example/", "https://a.example/?", "https://a.example?x=y",
		"https://a.example#", "https://u:p@a.example", "https://a.example/%zz",
	} {
		if platform.CheckIssuer(bad) == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
