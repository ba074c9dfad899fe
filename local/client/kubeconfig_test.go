package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"management.platform.sh/shared/model"
)

// platform serves a platform that answers with kubeconfigs for one cluster. It returns a kubeconfig that reaches it, and a count of requests.
func platform(t *testing.T) (file string, asked func() int) {
	t.Helper()
	return platformOfCluster(t, "https://dev.example.com")
}

func platformOfCluster(t *testing.T, cluster string) (file string, asked func() int) {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: vcluster\nclusters: [{name: vcluster, cluster: {server: '" + cluster + "'}}]\n" +
		"users: [{name: vcluster, user: {token: sesame}}]\ncontexts: [{name: vcluster, context: {cluster: vcluster, user: vcluster}}]\n"
	var mu sync.Mutex
	count := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		count++
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(model.VirtualClusterInstanceKubeConfig{Status: model.VirtualClusterInstanceKubeConfigStatus{
			KubeConfig: text, ExpirationTimestamp: &metav1.Time{Time: time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)},
		}})
	}))
	t.Cleanup(server.Close)
	file = filepath.Join(t.TempDir(), "platform")
	config := clientcmdapi.NewConfig()
	config.Clusters["platform"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["platform"] = &clientcmdapi.AuthInfo{Token: "sesame"}
	config.Contexts["platform"] = &clientcmdapi.Context{Cluster: "platform", AuthInfo: "platform"}
	config.CurrentContext = "platform"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// contexts returns the contexts in a file, and the name of the current one.
func contexts(t *testing.T, file string) (names map[string]*clientcmdapi.Context, current string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return config.Contexts, config.CurrentContext
}

// mine writes an existing kubeconfig.
func mine(t *testing.T, file string) {
	t.Helper()
	const text = "apiVersion: v1\nkind: Config\ncurrent-context: mine\nclusters: [{name: mine, cluster: {server: 'https://mine', certificate-authority: ca.crt, proxy-url: 'http://proxy'}}]\n" +
		"users: [{name: mine, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}}]\n" +
		"contexts: [{name: mine, context: {cluster: mine, user: mine, namespace: shop}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestKubeconfigOutput(t *testing.T) {
	t.Parallel()
	file, requests := platform(t)
	for _, row := range []struct {
		about string
		// prepare returns the path to write, and the file that is to hold the result.
		prepare func(t *testing.T, dir string) (path, result string)
		merge   bool
		refused bool
		kept    bool
	}{
		{"a file that is not there", func(_ *testing.T, dir string) (string, string) {
			return filepath.Join(dir, "a", "b"), filepath.Join(dir, "a", "b")
		}, false, false, false},
		{"a file that is there", func(t *testing.T, dir string) (string, string) {
			mine(t, filepath.Join(dir, "f"))
			return filepath.Join(dir, "f"), filepath.Join(dir, "f")
		}, false, false, false},
		{"merged into none", func(_ *testing.T, dir string) (string, string) {
			return filepath.Join(dir, "f"), filepath.Join(dir, "f")
		}, true, false, false},
		{"merged", func(t *testing.T, dir string) (string, string) {
			mine(t, filepath.Join(dir, "f"))
			return filepath.Join(dir, "f"), filepath.Join(dir, "f")
		}, true, false, true},
		{"merged by a link to a link elsewhere", func(t *testing.T, dir string) (string, string) {
			if err := os.Mkdir(filepath.Join(dir, "far"), 0o700); err != nil {
				t.Fatal(err)
			}
			mine(t, filepath.Join(dir, "far", "f"))
			link(t, "f", filepath.Join(dir, "far", "to"))
			link(t, filepath.Join("far", "to"), filepath.Join(dir, "link"))
			return filepath.Join(dir, "link"), filepath.Join(dir, "far", "f")
		}, true, false, true},
		{"by a link that leads to nothing yet", func(t *testing.T, dir string) (string, string) {
			link(t, filepath.Join(dir, "f"), filepath.Join(dir, "link"))
			return filepath.Join(dir, "link"), filepath.Join(dir, "f")
		}, true, false, false},
		{"by a link to itself", func(t *testing.T, dir string) (string, string) {
			link(t, "link", filepath.Join(dir, "link"))
			return filepath.Join(dir, "link"), ""
		}, false, true, false},
		{"a folder", func(_ *testing.T, dir string) (string, string) { return dir, "" }, false, true, false},
		// Not a device of this machine: replacing it would break other programs.
		{"a socket", func(t *testing.T, dir string) (string, string) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			return filepath.Join(dir, "s"), ""
		}, false, true, false},
		{"merged into what is no kubeconfig", func(t *testing.T, dir string) (string, string) {
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte("a: ["), 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "f"), ""
		}, true, true, false},
		{"merged into the standard output", func(*testing.T, string) (string, string) { return "-", "" }, true, true, false},
	} {
		t.Run(row.about, func(t *testing.T) {
			dir := t.TempDir()
			path, result := row.prepare(t, dir)
			before := requests()
			err := (&Kubeconfig{Instance: "p-shop/dev", Platform: file, Output: path, Merge: row.merge}).Run(t.Context())
			if (err != nil) != row.refused {
				t.Fatalf("%v", err)
			}
			if row.refused {
				if requests() != before {
					t.Error("a credential was made for nothing")
				}
				return
			}
			listener, err := os.Lstat(result)
			if err != nil || listener.Mode() != 0o600 {
				t.Fatalf("%v, %v", listener, err)
			}
			if path != result {
				if listener, err := os.Lstat(path); err != nil || listener.Mode()&os.ModeSymlink == 0 {
					t.Errorf("the link is gone: %v, %v", listener, err)
				}
			}
			names, current := contexts(t, result)
			want := "vcluster"
			if row.merge {
				want = "dev-p-shop"
			}
			if (names["mine"] != nil) != row.kept || names[want] == nil || current != want {
				t.Errorf("%v, current %q", names, current)
			}
			text, err := os.ReadFile(result)
			if err != nil || row.kept != strings.Contains(string(text), "certificate-authority: ca.crt") || row.kept != strings.Contains(string(text), "command: login") {
				t.Errorf("%s, %v", text, err)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(result), "f.*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Who names the project gets the namespace of the project as advice. A namespace of a project has no better name.
func TestKubeconfigOfAProject(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Code: http.StatusNotFound, Message: r.URL.Path + " not found"})
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "platform")
	config := clientcmdapi.NewConfig()
	config.Clusters["platform"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["platform"] = &clientcmdapi.Context{Cluster: "platform"}
	config.CurrentContext = "platform"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for instance, advised := range map[string]bool{"shop/dev": true, "p-shop/dev": false} {
		err := (&Kubeconfig{Instance: instance, Platform: file, Output: "-"}).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "did you mean p-shop/dev") != advised {
			t.Errorf("%s: %v", instance, err)
		}
	}
}

// Clusters of two platforms that have the same name stand side by side. Each is found again by the next merge. What another program has written
// under the name stays.
func TestKubeconfigOfTwoPlatforms(t *testing.T) {
	t.Parallel()
	first, _ := platformOfCluster(t, "https://first.example.com")
	second, _ := platformOfCluster(t, "https://second.example.com")
	reaches, err := clientcmd.LoadFromFile(second)
	if err != nil {
		t.Fatal(err)
	}
	const short = "dev-p-shop"
	full := "p-shop/dev@" + strings.TrimPrefix(reaches.Clusters["platform"].Server, "http://")
	output := filepath.Join(t.TempDir(), "f")
	merge := func(platform string, want map[string]string, current string) {
		t.Helper()
		if err := (&Kubeconfig{Instance: "p-shop/dev", Platform: platform, Output: output, Merge: true}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := clientcmd.LoadFromFile(output)
		if err != nil {
			t.Fatal(err)
		}
		servers := map[string]string{}
		for name, at := range got.Contexts {
			if at.Cluster != name || at.AuthInfo != name {
				t.Errorf("%s is of %s and %s", name, at.Cluster, at.AuthInfo)
			}
			servers[name] = got.Clusters[name].Server
		}
		if !maps.Equal(servers, want) || got.CurrentContext != current || len(got.Clusters) != len(want) {
			t.Errorf("%v, current %q, want %v, current %q", servers, got.CurrentContext, want, current)
		}
	}
	both := map[string]string{short: "https://first.example.com", full: "https://second.example.com"}
	merge(first, map[string]string{short: "https://first.example.com"}, short)
	for range 2 {
		merge(second, both, full)
		merge(first, both, short)
	}
	// An entry that got the longer name keeps it, also when the shorter one is free.
	config, err := clientcmd.LoadFromFile(output)
	if err != nil {
		t.Fatal(err)
	}
	delete(config.Clusters, short)
	delete(config.Contexts, short)
	if err := clientcmd.WriteToFile(*config, output); err != nil {
		t.Fatal(err)
	}
	merge(second, map[string]string{full: "https://second.example.com"}, full)
	// A user of another program has the shorter name.
	config = clientcmdapi.NewConfig()
	config.AuthInfos[short] = &clientcmdapi.AuthInfo{Token: "theirs"}
	if err := clientcmd.WriteToFile(*config, output); err != nil {
		t.Fatal(err)
	}
	merge(second, map[string]string{full: "https://second.example.com"}, full)
	if config, err = clientcmd.LoadFromFile(output); err != nil || config.AuthInfos[short].Token != "theirs" {
		t.Errorf("the user of another program is %v, %v", config.AuthInfos[short], err)
	}
}

// Files of clusters that have the same name at two platforms can be in one KUBECONFIG, if their contexts are named.
func TestKubeconfigContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for name, server := range map[string]string{"first": "https://first.example.com", "second": "https://second.example.com"} {
		platform, _ := platformOfCluster(t, server)
		files = append(files, filepath.Join(dir, name))
		if err := (&Kubeconfig{Instance: "p-shop/dev", Platform: platform, Output: files[len(files)-1], Context: name}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rules := clientcmd.ClientConfigLoadingRules{Precedence: files}
	both, err := rules.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		context := both.Contexts[name]
		if context == nil || context.Cluster != name || context.AuthInfo != name || both.Clusters[name].Server != "https://"+name+".example.com" || both.AuthInfos[name] == nil {
			t.Errorf("%s: %v of %v", name, context, slices.Sorted(maps.Keys(both.Clusters)))
		}
	}
	// A merge uses the name, unless an entry of another server has it.
	second, _ := platformOfCluster(t, "https://second.example.com")
	for _, row := range []struct{ context, current string }{{"mine", "mine"}, {"first", "p-shop/dev@"}} {
		if err := (&Kubeconfig{Instance: "p-shop/dev", Platform: second, Output: filepath.Join(dir, "first"), Context: row.context, Merge: true}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, current := contexts(t, filepath.Join(dir, "first")); !strings.HasPrefix(current, row.current) {
			t.Errorf("%s: the current context is %s", row.context, current)
		}
	}
}

// Two platforms at one host have contexts and folders of their own.
func TestLoginAtTwoPaths(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	for _, row := range []struct{ host, name string }{
		{"platform.example", "platform.example"}, {"platform.example/other", "platform.example/other"}, {"https://platform.example/kubernetes/management/", "platform.example"},
		{"platform.example/other/", "platform.example/other"},
	} {
		server, err := addressOf(row.host)
		if err != nil {
			t.Fatal(err)
		}
		if name, err := (&Login{}).merge(t.Context(), server, nil, "key", file); err != nil || name != row.name {
			t.Errorf("%s has the context %q, %v", row.host, name, err)
		}
	}
	if names, _ := contexts(t, file); len(names) != 2 {
		t.Errorf("the contexts are %v", names)
	}
	for server, want := range map[string]string{
		"https://platform.example/kubernetes/management": "platform.example", "https://platform.example:8443/kubernetes/management": "platform.example_8443",
		"https://platform.example/other": "platform.example%2Fother",
	} {
		if folder, err := folderOf(server); err != nil || filepath.Base(folder) != want {
			t.Errorf("%s has the folder %s, %v", server, folder, err)
		}
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip(err)
	}
}

// Concurrent merges lose no entry.
func TestKubeconfigAtOnce(t *testing.T) {
	t.Parallel()
	file, _ := platform(t)
	output := filepath.Join(t.TempDir(), "f")
	mine(t, output)
	const many = 8
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			if err := (&Kubeconfig{Instance: fmt.Sprintf("p-shop/dev%d", i), Platform: file, Output: output, Merge: true}).Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if names, _ := contexts(t, output); len(names) != many+1 {
		t.Errorf("%d contexts", len(names))
	}
}

// An entry is merged into the file that kubectl would write, but never into the file that reaches the platform.
func TestKubeconfigMergesInto(t *testing.T) {
	dir := t.TempDir()
	there, platform, absent := filepath.Join(dir, "there"), filepath.Join(dir, "platform"), filepath.Join(dir, "absent")
	mine(t, there)
	mine(t, platform)
	for list, want := range map[string]string{
		"": clientcmd.RecommendedHomeFile, there: there, absent: absent, platform: clientcmd.RecommendedHomeFile,
		absent + ":" + there: there, platform + ":" + there: there, absent + ":" + absent + "2": absent + "2", ":" + there + ":": there,
	} {
		t.Setenv("KUBECONFIG", strings.ReplaceAll(list, ":", string(filepath.ListSeparator)))
		if got := mergeTarget(platform); got != want {
			t.Errorf("KUBECONFIG=%s: %s, want %s", list, got, want)
		}
	}
}

// Without a data folder, the command uses the platform of the current context, as after platform login. A merge, which
// changes that context, and a file that was named do not.
func TestKubeconfigOfCurrentContext(t *testing.T) {
	file, requests := platform(t)
	t.Setenv("KUBECONFIG", file)
	folder := t.TempDir()
	for _, row := range []struct {
		about   string
		command Kubeconfig
		asked   int
	}{
		{"without a data folder", Kubeconfig{}, 1},
		{"a merge", Kubeconfig{Merge: true}, 0},
		{"a file that is missing", Kubeconfig{Platform: filepath.Join(folder, "none")}, 0},
	} {
		before := requests()
		row.command.Instance, row.command.Data, row.command.Output = "p-shop/dev", filepath.Join(folder, "data"), filepath.Join(folder, "out")
		err := row.command.Run(t.Context())
		if got := requests() - before; got != row.asked || (err == nil) != (row.asked == 1) {
			t.Errorf("%s: %d requests, %v", row.about, got, err)
		}
	}
}
