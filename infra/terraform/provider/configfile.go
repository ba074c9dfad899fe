package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// target is a platform, with the access key and the certificate authority with which it is reached.
type target struct {
	server, bearer string
	// authority is certificates in PEM, or a file. Empty: the authorities of the system.
	authority string
	// authorityField is the field of a kubeconfig that has the authority. Empty: the target is from no kubeconfig.
	authorityField string
}

// kubeconfigFile has the parts of a kubeconfig that the provider reads.
type kubeconfigFile struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string         `json:"name"`
		Cluster map[string]any `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string         `json:"name"`
		User map[string]any `json:"user"`
	} `json:"users"`
}

// contextError says what is wrong with the name of a context.
type contextError struct{ text string }

func (e *contextError) Error() string { return e.text }

// readTarget reads a context of a kubeconfig. An empty name selects the current context. Programs that make credentials are not started. Errors
// name fields of the file, and quote none of its values but names.
func readTarget(file, name string) (target, error) {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return target{}, err
		}
		file = filepath.Join(home, rest)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return target{}, err
	}
	var document kubeconfigFile
	if err := yaml.Unmarshal(text, &document); err != nil {
		return target{}, errors.New("it must be a kubeconfig in YAML") // the error of the library may quote the text
	}
	if name == "" {
		name = document.CurrentContext
	}
	cluster, user, err := document.find(name)
	if err != nil {
		return target{}, err
	}
	at := "clusters[" + cluster + "].cluster"
	of, err := fieldsOf(document.clusterNamed(cluster), at, "server", "certificate-authority", "certificate-authority-data")
	if err != nil {
		return target{}, fmt.Errorf("%w: the provider reads server, certificate-authority and certificate-authority-data", err)
	}
	found := target{server: of["server"], authority: of["certificate-authority"], authorityField: at + ".certificate-authority"}
	if _, err := endpointOf(found.server); err != nil {
		return target{}, fmt.Errorf("%s.server: %w", at, err)
	}
	if data := of["certificate-authority-data"]; data != "" {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil || !strings.Contains(string(decoded), "-----BEGIN") {
			return target{}, errors.New(at + ".certificate-authority-data: must be certificates in PEM, encoded in base64")
		}
		found.authority, found.authorityField = string(decoded), at+".certificate-authority-data"
	} else if found.authority != "" {
		found.authority = besides(file, found.authority)
	}
	at = "users[" + user + "].user"
	if of, err = fieldsOf(document.userNamed(user), at, "token", "tokenFile"); err != nil {
		return target{}, fmt.Errorf("%w: the provider reads token and tokenFile, and starts no programs", err)
	}
	found.bearer = of["token"]
	if of["tokenFile"] != "" {
		text, err := os.ReadFile(besides(file, of["tokenFile"]))
		if err != nil {
			return target{}, fmt.Errorf("%s.tokenFile: %w", at, err)
		}
		found.bearer = strings.TrimSpace(string(text))
	}
	if found.bearer == "" {
		return target{}, errors.New(at + ": must have an access key in token or tokenFile")
	}
	return found, nil
}

// find returns the names of the cluster and of the user of a context.
func (f *kubeconfigFile) find(name string) (cluster, user string, err error) {
	var names []string
	for _, c := range f.Contexts {
		if c.Name == name && name != "" {
			return c.Context.Cluster, c.Context.User, nil
		}
		names = append(names, fmt.Sprintf("%q", c.Name))
	}
	known := "it has no contexts"
	if len(names) > 0 {
		known = "use one of " + strings.Join(names, ", ")
	}
	if name == "" {
		return "", "", &contextError{"the kubeconfig has no current-context: " + known}
	}
	return "", "", &contextError{fmt.Sprintf("the kubeconfig has no context %q: %s", name, known)}
}

func (f *kubeconfigFile) clusterNamed(name string) map[string]any {
	for _, c := range f.Clusters {
		if c.Name == name {
			return c.Cluster
		}
	}
	return nil
}

func (f *kubeconfigFile) userNamed(name string) map[string]any {
	for _, u := range f.Users {
		if u.Name == name {
			return u.User
		}
	}
	return nil
}

// fieldsOf returns some fields of a cluster or a user. Another field that is set is an error: it would say how to connect, and have no effect.
func fieldsOf(object map[string]any, at string, known ...string) (map[string]string, error) {
	if object == nil {
		return nil, errors.New(at + ": is missing")
	}
	values := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		text, isText := value.(string)
		switch {
		case value == nil, value == false, isText && text == "", name == "extensions", name == "disable-compression":
		case !slices.Contains(known, name):
			return nil, errors.New(at + "." + name + ": is not supported")
		case !isText:
			return nil, errors.New(at + "." + name + ": must be a text")
		default:
			values[name] = text
		}
	}
	return values, nil
}

// besides returns the path of a file that a kubeconfig names: relative paths begin at its folder.
func besides(kubeconfig, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(kubeconfig), file)
}
