// Command clientgo makes an access key for a CI job, waits in a watch until it is gone, and shows how to distinguish errors. It uses the
// dynamic client of client-go, so that it needs no types of this project. It reads the kubeconfig that KUBECONFIG names.
package main

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var accessKeys = schema.GroupVersionResource{Group: "management.platform.sh", Version: "v1", Resource: "ownedaccesskeys"}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "clientgo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	keys := client.Resource(accessKeys)

	created, err := keys.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "management.platform.sh/v1",
		"kind":       "OwnedAccessKey",
		"metadata":   map[string]any{"generateName": "ci-"},
		"spec": map[string]any{
			"displayName": "Nightly builds",
			"ttl":         int64(3600),
			"scope":       map[string]any{"roles": []any{map[string]any{"role": "platformCLI"}}},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a key: %w", err)
	}
	// Only this answer has the text of the key: store it where the job finds it, and nowhere else.
	key, _, _ := unstructured.NestedString(created.Object, "spec", "key")

	events, err := keys.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + created.GetName(), ResourceVersion: created.GetResourceVersion(),
	})
	if err != nil {
		return fmt.Errorf("watching the key: %w", err)
	}
	defer events.Stop()

	// The job uses its own key. Every key may read and delete itself.
	job := rest.AnonymousClientConfig(config)
	job.BearerToken = key
	own, err := dynamic.NewForConfig(job)
	if err != nil {
		return err
	}
	if err := own.Resource(accessKeys).Delete(ctx, created.GetName(), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("giving the key back: %w", err)
	}
	for event := range events.ResultChan() {
		if event.Type == watch.Deleted {
			fmt.Println("the key is gone")
			break
		}
	}
	_, err = own.Resource(accessKeys).Get(ctx, created.GetName(), metav1.GetOptions{})
	if !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the key that was given back is not refused: %w", err)
	}
	fmt.Println("and it is refused")
	return nil
}
