// Package sample has one valid object of each stored kind, for the tests of what all kinds have in common. It says nothing about what
// a kind refuses: the tests of the kind do.
package sample

import (
	"fmt"

	"management.platform.sh/shared/model"
	"management.platform.sh/shared/platform"
)

// specs are the specs of the objects, by resource. Owner is the name of a user. A kind with a secret of clients has the secret, unless it
// is empty.
var specs = map[string]func(owner, secret string) map[string]any{
	// Callers own the keys that they create.
	"ownedaccesskeys": func(_, secret string) map[string]any {
		if secret == "" {
			return map[string]any{}
		}
		return map[string]any{"key": secret}
	},
	"directclusterendpointtokens": func(string, string) map[string]any { return map[string]any{} },
	"virtualclusterinstances": func(owner, secret string) map[string]any {
		spec := map[string]any{"owner": map[string]any{"user": owner}}
		if secret != "" {
			spec["signer"] = map[string]any{"kubeconfig": fmt.Sprintf(`{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],`+
				`"clusters":[{"name":"c","cluster":{"server":"https://a.example"}}],"users":[{"name":"u","user":{"token":%q}}]}`, secret)}
		}
		return spec
	},
	"users": func(string, string) map[string]any { return map[string]any{"groups": []string{"developers"}} },
	"teams": func(owner, _ string) map[string]any { return map[string]any{"users": []string{owner}} },
	"trustrules": func(owner, _ string) map[string]any {
		return map[string]any{
			"issuer": "https://issuer.example", "match": []map[string]any{{"claim": "sub", "is": "job"}}, "owner": map[string]any{"user": owner},
			"scope": map[string]any{"virtualClusters": []map[string]any{{"project": "shop", "virtualCluster": "x"}}},
		}
	},
	"projects": func(owner, _ string) map[string]any {
		return map[string]any{"owner": map[string]any{"user": owner}, "members": []map[string]any{{"kind": "User", "name": owner, "role": "use"}}}
	},
}

// Spec returns the spec of a new object of a resource, in JSON. An empty secret leaves secrets out.
func Spec(resource, owner, secret string) map[string]any {
	spec, found := specs[resource]
	if !found {
		panic("test/sample has no object of " + resource)
	}
	return spec(owner, secret)
}

// Path returns the path of the objects of a kind. Namespaced objects are in the namespace of the project shop.
func Path(kind platform.StoredKind) string {
	version := "/apis/" + model.SchemeGroupVersion.String() + "/"
	if kind.Namespaced {
		version += "namespaces/p-shop/"
	}
	return version + kind.Resource.Resource
}
