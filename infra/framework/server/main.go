// Command server is the one image of Cloud Run and Knative: it holds all functions of the catalog and serves the
// function that FUNCTION_TARGET names. An unknown name ends it at once. Source: ADR-0010.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"management.platform.sh/functions/catalog"
	"management.platform.sh/infra/framework"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := framework.Serve(ctx, catalog.Functions, os.Getenv, os.Stderr, nil)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}
