// Command typed creates an access key, reads the kubeconfig of a virtual cluster and watches the keys, with the types of the platform. It is a
// module of its own, as a program of yours would be. It reads the kubeconfig that KUBECONFIG names.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	managementv1 "management.platform.sh/infra/client/go/v1"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "typed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := managementv1.AddToScheme(scheme); err != nil {
		return err
	}
	config.APIPath, config.GroupVersion = "/apis", &managementv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return err
	}
	keys := gentype.NewClientWithList("ownedaccesskeys", client, runtime.NewParameterCodec(scheme), "",
		func() *managementv1.OwnedAccessKey { return &managementv1.OwnedAccessKey{} },
		func() *managementv1.OwnedAccessKeyList { return &managementv1.OwnedAccessKeyList{} })

	list, err := keys.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the keys: %w", err)
	}
	events, err := keys.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("watching the keys: %w", err)
	}
	defer events.Stop()

	key, err := keys.Create(ctx, &managementv1.OwnedAccessKey{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "ci-"},
		Spec: managementv1.OwnedAccessKeySpec{
			DisplayName: "Nightly builds", TTLSeconds: 3600,
			Scope: &managementv1.Scope{VirtualClusters: []managementv1.ScopeVirtualCluster{{Project: "shop", VirtualCluster: "dev"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a key: %w", err)
	}
	// Only this response has key.Spec.Key: store it where the job finds it, and nowhere else.
	fmt.Println("created a key that ends at", key.Status.ExpirationTimestamp.UTC())

	var answer managementv1.VirtualClusterInstanceKubeConfig
	err = client.Post().Namespace("p-shop").Resource("virtualclusterinstances").Name("dev").SubResource("kubeconfig").
		Body(&managementv1.VirtualClusterInstanceKubeConfig{}).Do(ctx).Into(&answer)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cluster, err := clientcmd.RESTConfigFromKubeConfig([]byte(answer.Status.KubeConfig))
	if err != nil {
		return fmt.Errorf("the kubeconfig: %w", err)
	}
	fmt.Println("the virtual cluster is at", cluster.Host)

	if err := keys.Delete(ctx, key.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the key: %w", err)
	}
	for event := range events.ResultChan() {
		if changed, ok := event.Object.(*managementv1.OwnedAccessKey); ok && changed.Name == key.Name {
			fmt.Println("seen:", event.Type)
			if event.Type == watch.Deleted {
				return nil
			}
		}
	}
	return errors.New("the watch ended before the key was gone")
}
