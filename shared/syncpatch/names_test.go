package syncpatch

import (
	"strings"
	"testing"
)

// The vectors were computed without this code. Spec 2.8 rule 6; ADR-0013.
func TestGeneratedNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, namespace, tenant, want string }{
		{"my-secret", "default", "my-vcluster", "v5ri45ovgqam9c"},
		{"nginx", "default", "vcluster", "v1curhi49jlk2e"},
		{"my-example-secret", "default", "my-vcluster", "v67kvh7housba4"},
		{"my-really-long-service-account-name-for-testing", "production-namespace", "tenant-a", "v4ompmu0tmfb2k"},
	} {
		if got := (names{tenant: test.tenant}).generatedName(test.name, test.namespace); got != test.want {
			t.Errorf("%s in %s of %s is %s on the host, want %s", test.name, test.namespace, test.tenant, got, test.want)
		}
	}
}

func TestLongNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, namespace, tenant, want string }{
		{"my-secret", "default", "my-vcluster", "my-secret-x-default-x-my-vcluster"},
		{"my-really-long-service-account-name-for-testing", "production-namespace", "tenant-a", "my-really-long-service-account-name-for-testing-x-pr-bbf08824f4"},
	} {
		if got := (names{tenant: test.tenant}).longName(test.name, test.namespace); got != test.want {
			t.Errorf("%s in %s of %s is %s on the host, want %s", test.name, test.namespace, test.tenant, got, test.want)
		}
	}
	exact := strings.Repeat("a", 63-len("-x-b-x-c"))
	if got := (names{tenant: "c"}).longName(exact, "b"); got != exact+"-x-b-x-c" {
		t.Errorf("63 characters are cut: %s", got)
	}
	if got := (names{tenant: "c"}).longName(exact+"a", "b"); len(got) != 63 || !strings.HasPrefix(got, exact[:52]+"-") {
		t.Errorf("64 characters become %s", got)
	}
	dotted := strings.Repeat("a", 51) + ".rest-that-is-long"
	if got := (names{tenant: "c"}).longName(dotted, "b"); strings.Contains(got, ".") || len(got) != 62 {
		t.Errorf("a cut behind a dot leaves %s", got)
	}
}

// Spec 2.8 rule 3.
func TestHostDNS(t *testing.T) {
	t.Parallel()
	single := names{tenant: "vcluster", hostNamespace: "vcluster-ns"}
	elsewhere := single
	elsewhere.clusterDomain = "k8s.example.org"
	multi := single
	multi.multi = true
	long := strings.Repeat("n", 60)
	for _, test := range []struct {
		names
		service, want string
	}{
		{single, "nginx.default.svc.cluster.local", "nginx-x-default-x-vcluster.vcluster-ns.svc.cluster.local"},
		{single, "nginx.default.svc", "nginx-x-default-x-vcluster.vcluster-ns.svc.cluster.local"},
		{elsewhere, "nginx.default.svc", "nginx-x-default-x-vcluster.vcluster-ns.svc.k8s.example.org"},
		{elsewhere, "nginx.default.svc.cluster.local", "nginx-x-default-x-vcluster.vcluster-ns.svc.cluster.local"},
		{multi, "nginx.default.svc", "nginx.default.svc.cluster.local"},
		{single, long + ".default.svc", single.longName(long, "default") + ".vcluster-ns.svc.cluster.local"},
	} {
		if got, err := test.hostDNS(test.service); err != nil || got != test.want {
			t.Errorf("%s is %s (%v) on the host, want %s", test.service, got, err, test.want)
		}
	}
	for _, service := range []string{
		"", "nginx", "nginx.default", "nginx.default.pod", ".default.svc", "nginx..svc", "nginx.default.svc.",
		"nginx.default.svc.cluster..local", "nginx.default.svc:80", "http://nginx.default.svc", "Nginx.default.svc", "a.b.default.svc",
	} {
		if got, err := single.hostDNS(service); err == nil {
			t.Errorf("%q is taken for a service: %s", service, got)
		}
	}
	if _, err := (names{tenant: "vcluster"}).hostDNS("nginx.default.svc"); err == nil {
		t.Error("a service goes to no namespace")
	}
}
