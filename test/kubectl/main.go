// Command kubectl is the unmodified Kubernetes command line, built from its own module at the
// version that go.mod pins, so that the stories of test/script need no kubectl on the machine.
// It adds nothing and refuses nothing: it is k8s.io/kubectl's own entry point.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
