// Command terraform-provider-platform is a provider for Terraform and OpenTofu that gets credentials as ephemeral resources: an access key, a
// token for connected clusters, and a kubeconfig of a virtual cluster. Terraform writes none of them to a state or a plan, and the provider
// revokes each one when Terraform no longer needs it. Objects without secrets are left to the provider for Kubernetes. It is a module of its own,
// so that no function depends on the framework for providers. Source: Spec 2.3 to 2.6, 4; ADR-0052.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
)

// address is the name by which configurations name the provider.
const address = "management.platform.sh/platform/platform"

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "Serve for a debugger, and print the variable for Terraform.")
	flag.Parse()
	if err := providerserver.Serve(context.Background(), newProvider, providerserver.ServeOpts{Address: address, Debug: *debug}); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-platform:", err)
		os.Exit(1)
	}
}
