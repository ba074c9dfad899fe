package contract

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// object returns a manifest with these further fields of metadata and spec, in JSON. Each is empty or has a leading comma.
func object(name, metadata, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":%q%s},"spec":{"displayName":"x"%s}}`, name, metadata, spec)
}

func create(name string) step { return step{method: "POST", body: object(name, "", "")} }

// createLabelled creates an object with labels, given as JSON members.
func createLabelled(name, labels string) step {
	return step{method: "POST", body: object(name, `,"labels":{`+labels+`}`, "")}
}

func get(path, query string, header ...string) step {
	return step{method: "GET", path: path, query: query, header: header}
}

func merge(name, body string) step {
	return step{method: "PATCH", path: "/" + name, body: body, header: []string{"Content-Type: application/merge-patch+json"}}
}

func jsonPatch(name, body string) step {
	return step{method: "PATCH", path: "/" + name, body: body, header: []string{"Content-Type: application/json-patch+json"}}
}

func replace(name, body string) step { return step{method: "PUT", path: "/" + name, body: body} }

func remove(name, body string) step { return step{method: "DELETE", path: "/" + name, body: body} }

// withQuery returns the step with a query.
func (s step) withQuery(query string) step { s.query = query; return s }

// withHeader returns the step with a header line.
func (s step) withHeader(line string) step {
	s.header = append(s.header[:len(s.header):len(s.header)], line)
	return s
}

const (
	tableForm   = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
	partialForm = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partialList = "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	yamlForm    = "Accept: application/yaml"
	yamlBody    = "Content-Type: application/yaml"
)

// scenarios are the requests that are sent to both sides. The scenarios of watch and apply follow below.
var scenarios = []scenario{
	{"create", []step{create("a")}, []step{
		create("a"),
		create("a"),
		get("/a", ""),
		get("/b", ""),
		{method: "POST", body: `{"metadata":{"name":"b"},"spec":{}}`},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"generateName":"gen-"},"spec":{}}`},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"generateName":"gen-","name":"c"},"spec":{}}`},
		{method: "POST", body: object("d", `,"generateName":"`+strings.Repeat("x", 70)+`"`, "")},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"generateName":"` + strings.Repeat("x", 70) + `"},"spec":{}}`},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"generateName":"Gen-"},"spec":{}}`},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{},"spec":{}}`},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","spec":{}}`},
		{method: "POST", body: object("e", `,"uid":"mine","generation":7,"selfLink":"/x","creationTimestamp":"2001-01-01T00:00:00Z"`, "")},
		{method: "POST", body: object("f", `,"resourceVersion":"5"`, "")},
		{method: "POST", body: object("g", `,"resourceVersion":"0"`, "")},
		{method: "POST", body: object("h", `,"deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":5`, "")},
		{method: "POST", body: object("i", `,"namespace":"default"`, "")},
		{method: "POST", body: object("j", `,"finalizers":["example.com/hold"]`, "")},
		{method: "POST", body: object("k", `,"finalizers":["hold"]`, "")},
		{method: "POST", body: object("l", `,"finalizers":["orphan"]`, "")},
		{method: "POST", body: object("m", `,"finalizers":["foregroundDeletion","orphan"]`, "")},
		{method: "POST", body: strings.Replace(object("n", "", ""), `"spec"`, `"status":{"lastActivity":"2001-01-01T00:00:00Z"},"spec"`, 1)},
		get("/j", ""),
		get("", ""),
	}},
	{"names", []step{}, []step{
		create("A"), create("a_b"), create("a b"), create("-a"), create("a-"), create("a..b"), create("a/b"), create("."), create(".."),
		create("%"), create("ä"), create(strings.Repeat("a", 253)), create(strings.Repeat("a", 254)), create("1"), create("a.b-c"),
		get("/A", ""), get("/a_b", ""), get("/a%20b", ""), get("/%C3%A4", ""), get("/"+strings.Repeat("a", 254), ""),
		remove("A", ""), merge("A", `{}`), replace("A", object("A", "", "")),
	}},
	{"labels", []step{}, []step{
		createLabelled("a", `"app":"x"`), createLabelled("b", `"-bad":"x"`), createLabelled("c", `"app":"-bad"`), createLabelled("d", `"a/b/c":"x"`),
		createLabelled("e", `"example.com/app":"x"`), createLabelled("f", `"Example.COM/app":"x"`), createLabelled("g", `"":"x"`), createLabelled("h", `"app":""`),
		createLabelled("i", `"app":"`+strings.Repeat("x", 64)+`"`), createLabelled("j", `"`+strings.Repeat("x", 64)+`":"x"`),
		createLabelled("k", `"app":5`), createLabelled("l", `"app":null`),
		{method: "POST", body: object("m", `,"annotations":{"Any Thing":"x"}`, "")},
		{method: "POST", body: object("n", `,"annotations":{"example.com/a":"x","EXAMPLE.com/B":"y"}`, "")},
		{method: "POST", body: object("o", `,"annotations":{"big":"`+strings.Repeat("x", 262145)+`"}`, "")},
		{method: "POST", body: object("p", `,"labels":[]`, "")},
		{method: "POST", body: object("q", `,"annotations":null,"labels":null`, "")},
		{method: "POST", body: object("r", `,"labels":{"-bad":"-bad"},"annotations":{"-":"x"},"finalizers":["x"]`, `,"ttl":-1`)},
	}},
	{"owners", []step{create("a")}, []step{
		{method: "POST", body: object("b", `,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]`, "")},
		{method: "POST", body: object("c", `,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p"}]`, "")},
		{method: "POST", body: object("d", `,"ownerReferences":[{"kind":"Pod","name":"p","uid":"u"}]`, "")},
		{method: "POST", body: object("e", `,"ownerReferences":[{}]`, "")},
		{method: "POST", body: object("f", `,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"v","controller":true}]`, "")},
		{method: "POST", body: object("g", `,"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"p","uid":"u"}]`, "")},
		{method: "POST", body: object("h", `,"ownerReferences":[{"apiVersion":"v1/v1/v1","kind":"Pod","name":"p","uid":"u"}]`, "")},
		{method: "POST", body: object("i", `,"ownerReferences":[{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","name":"a","uid":"{uid:a}","blockOwnerDeletion":true}]`, "")},
	}},
	{"bad bodies", []step{}, []step{
		{method: "POST", body: ``}, {method: "POST", body: `{`}, {method: "POST", body: `null`}, {method: "POST", body: `[]`},
		{method: "POST", body: `"x"`}, {method: "POST", body: `5`}, {method: "POST", body: `{}`}, {method: "POST", body: `{"a":}`},
		{method: "POST", body: "\xff\xfe"}, {method: "POST", body: object("a", "", "") + "x"}, {method: "POST", body: object("a", "", "") + object("b", "", "")},
		{method: "POST", body: strings.Replace(object("a", "", ""), "OwnedAccessKey", "Pod", 1)},
		{method: "POST", body: strings.Replace(object("a", "", ""), "management.platform.sh/v1", "v1", 1)},
		{method: "POST", body: strings.Replace(object("a", "", ""), "management.platform.sh/v1", "management.platform.sh/v2", 1)},
		{method: "POST", body: strings.Replace(object("a", "", ""), "management.platform.sh/v1", "a/b/c", 1)},
		{method: "POST", body: strings.Replace(object("a", "", ""), "OwnedAccessKey", "OwnedAccessKeyList", 1)},
		{method: "POST", body: strings.Replace(object("a", "", ""), `"spec":{`, `"spec":"x","x":{`, 1)},
		{method: "POST", body: strings.Replace(object("a", "", ""), `"metadata":{`, `"metadata":[],"x":{`, 1)},
		{method: "POST", body: object("a", "", `,"ttl":"x"`)}, {method: "POST", body: object("a", "", `,"ttl":1.5`)},
		{method: "POST", body: object("a", "", `,"ttl":99999999999999999999`)}, {method: "POST", body: object("a", "", `,"ttl":-5`)},
		{method: "POST", body: object("a", "", `,"disabled":"yes"`)}, {method: "POST", body: object("a", "", `,"groups":"x"`)},
		{method: "POST", body: object("a", "", `,"type":"Nonsense","ttl":-5,"groups":["",""]`)},
		{method: "POST", body: object("a", "", `,"scope":{"roles":[{"role":"nobody"}]}`)},
		{method: "POST", body: object("a", "", `,"key":"short"`)},
		{method: "POST", body: object("a", `,"creationTimestamp":"yesterday"`, "")},
		{method: "POST", body: object("a", `,"generation":"x"`, "")},
		{method: "POST", body: strings.Repeat("[", 20000)},
		{method: "POST", body: `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","x":"` + strings.Repeat("x", 3<<20) + `"}`},
		create("a").withHeader("Content-Type: text/plain"), create("a").withHeader("Content-Type: application/xml"),
		create("a").withHeader("Content-Type: ;;"), create("a").withHeader("Content-Type: application/json; charset=utf-8"),
		create("b").withHeader("Content-Type: application/vnd.kubernetes.protobuf"),
		create("c").withHeader("Content-Type: application/JSON"),
		create("d").withHeader("Content-Type: "),
		get("", ""),
	}},
	{"yaml", []step{
		{method: "POST", body: "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  name: a\nspec:\n  ttl: 60\n", header: []string{yamlBody}},
		{method: "POST", body: "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  name: b\nspec:\n  ttl: 60\n  ttl: 70\n", header: []string{yamlBody}},
		{method: "POST", query: "fieldValidation=Strict", body: "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  name: c\nspec:\n  ttl: 60\n  ttl: 70\n", header: []string{yamlBody}},
		{method: "POST", query: "fieldValidation=Strict", body: "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  name: d\nspec:\n  nonsense: 70\n", header: []string{yamlBody}},
		{method: "POST", body: "a: [", header: []string{yamlBody}},
		{method: "POST", body: "- a", header: []string{yamlBody}},
		{method: "POST", body: "just text", header: []string{yamlBody}},
		{method: "POST", body: object("e", "", ""), header: []string{yamlBody}},
		get("/a", "", yamlForm), get("", "", yamlForm), get("/none", "", yamlForm),
		replace("a", "apiVersion: management.platform.sh/v1\nkind: OwnedAccessKey\nmetadata:\n  name: a\nspec:\n  ttl: 90\n").withHeader(yamlBody),
		remove("a", "apiVersion: v1\nkind: DeleteOptions\n").withHeader(yamlBody),
	}, nil},
	{"field validation", []step{create("g")}, []step{
		{method: "POST", body: object("a", "", `,"nonsense":1`)},
		{method: "POST", query: "fieldValidation=Ignore", body: object("b", "", `,"nonsense":1`)},
		{method: "POST", query: "fieldValidation=Warn", body: object("c", "", `,"nonsense":1,"more":2`)},
		{method: "POST", query: "fieldValidation=Strict", body: object("d", "", `,"nonsense":1`)},
		{method: "POST", query: "fieldValidation=Strict", body: object("d", "", `,"ttl":1,"ttl":2`)},
		{method: "POST", query: "fieldValidation=Warn", body: object("e", "", `,"ttl":1,"ttl":2`)},
		{method: "POST", query: "fieldValidation=Strict", body: object("f", `,"nonsense":{}`, "")},
		{method: "POST", query: "fieldValidation=Strict", body: object("f", "", `,"DisplayName":"x"`)},
		{method: "POST", query: "fieldValidation=strict", body: object("g", "", "")},
		{method: "POST", query: "fieldValidation=", body: object("g", "", "")},
		replace("g", object("g", "", `,"nonsense":1`)).withQuery("fieldValidation=Strict"),
		replace("g", object("g", "", `,"nonsense":1`)),
		merge("g", `{"spec":{"nonsense":1}}`).withQuery("fieldValidation=Strict"),
		merge("g", `{"spec":{"nonsense":1}}`),
		merge("g", `{"spec":{"ttl":1,"ttl":2}}`).withQuery("fieldValidation=Strict"),
		jsonPatch("g", `[{"op":"add","path":"/spec/nonsense","value":1}]`).withQuery("fieldValidation=Strict"),
		jsonPatch("g", `[{"op":"add","path":"/spec/nonsense","value":1}]`),
		get("/g", ""),
	}},
	{"options", []step{
		create("a").withQuery("dryRun=All"), get("/a", ""), create("a").withQuery("dryRun=all"), create("a").withQuery("dryRun="), create("a").withQuery("dryRun=All&dryRun=All"),
		create("a").withQuery("dryRun=All&dryRun=None"), create("a"), create("a").withQuery("dryRun=All"),
		replace("a", object("a", "", `,"ttl":5`)).withQuery("dryRun=All"), get("/a", ""),
		merge("a", `{"spec":{"ttl":5}}`).withQuery("dryRun=All"), jsonPatch("a", `[{"op":"add","path":"/spec/ttl","value":5}]`).withQuery("dryRun=All"),
		merge("a", `{"spec":{"ttl":5}}`).withQuery("dryRun=x"), replace("a", object("a", "", "")).withQuery("dryRun=x"), remove("a", "").withQuery("dryRun=x"),
		remove("a", "").withQuery("dryRun=All"), get("/a", ""), remove("a", `{"dryRun":["All"]}`), get("/a", ""), remove("a", `{"dryRun":["x"]}`),
		create("b").withQuery("fieldManager=me"), create("c").withQuery("fieldManager=" + strings.Repeat("x", 129)), create("d").withQuery("fieldManager=%07"),
		create("e").withQuery("pretty=true"), create("f").withQuery("nonsense=true"), create("g").withQuery("timeout=5s"), create("h").withQuery("timeout=x"),
		get("/a", "timeout=x"), get("/a", "pretty=1"), get("/a", "resourceVersion=0"), get("/a", "resourceVersion=x"), get("/a", "resourceVersion=1"),
		get("/a", "resourceVersion=999999"),
	}, nil},
	{"get forms", []step{
		createLabelled("a", `"app":"x"`),
		get("/a", "", tableForm), get("", "", tableForm), get("/a", "includeObject=None", tableForm), get("", "includeObject=Object", tableForm),
		get("", "includeObject=Metadata", tableForm), get("", "includeObject=x", tableForm),
		get("/a", "", partialForm), get("", "", partialForm), get("", "", partialList), get("/a", "", partialList),
		get("/a", "", "Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io"), get("/a", "", "Accept: application/json;as=Table;v=v2;g=meta.k8s.io"),
		get("/a", "", "Accept: application/json;as=Nonsense;v=v1;g=meta.k8s.io"), get("/a", "", "Accept: application/json;as=Table;v=v1;g=other"),
		get("/a", "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
		get("/a", "", "Accept: application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/json"),
		get("/a", "", "Accept: text/html"), get("/a", "", "Accept: text/html,*/*"), get("/a", "", "Accept: */*"), get("/a", "", "Accept: application/*"),
		get("/a", "", "Accept: application/vnd.kubernetes.protobuf"), get("/a", "", "Accept: application/vnd.kubernetes.protobuf,application/json"),
		get("/a", "", "Accept: application/json;q=0.1,application/yaml"), get("/a", "", "Accept: "), get("/a", "", "Accept: ;;"),
		get("/none", "", tableForm), get("/none", "", "Accept: text/html"), get("", "limit=1", tableForm), get("", "limit=1", partialList),
		create("b").withHeader(tableForm), create("c").withHeader(partialForm), merge("a", `{"spec":{"ttl":5}}`).withHeader(tableForm), remove("a", "").withHeader(tableForm),
		replace("b", object("b", "", `,"ttl":9`)).withHeader(partialForm), create("d").withHeader("Accept: text/html"), get("/d", ""),
	}, nil},
	{"list", []step{
		createLabelled("a", `"app":"x","tier":"1"`), createLabelled("b", `"app":"y"`), createLabelled("c", `"app":"x"`), create("d"), create("e"),
		get("", ""), get("", "labelSelector=app"), get("", "labelSelector=app%3Dx"), get("", "labelSelector=app!%3Dx"), get("", "labelSelector=!app"),
		get("", "labelSelector=app+in+(x,y)"), get("", "labelSelector=app+notin+(x)"), get("", "labelSelector=app%3Dx,tier%3D1"), get("", "labelSelector=tier%3E0"),
		get("", "labelSelector=app+in"), get("", "labelSelector=%3D%3D"), get("", "labelSelector=app%3D-bad-"), get("", "labelSelector=a/b/c%3Dx"), get("", "labelSelector=,"),
		get("", "fieldSelector=metadata.name%3Da"), get("", "fieldSelector=metadata.name!%3Da"), get("", "fieldSelector=metadata.name%3Dnone"),
		get("", "fieldSelector=spec.user%3Dadmin"), get("", "fieldSelector=spec.type%3DUser"), get("", "fieldSelector=spec.ttl%3D5"), get("", "fieldSelector=nonsense"),
		get("", "fieldSelector=metadata.name%3Da,metadata.name%3Db"), get("", "fieldSelector=metadata.namespace%3Dx"), get("", "fieldSelector=metadata.uid%3Dx"),
		get("", "fieldSelector=metadata.name%3Da&labelSelector=app%3Dx"), get("", "fieldSelector=metadata.name%3Da_b"),
		get("", "limit=2"), get("", "limit=2&continue={continue}"), get("", "limit=2&continue={continue}"), get("", "limit=0"), get("", "limit=-1"), get("", "limit=x"),
		get("", "limit=100"), get("", "limit=1&labelSelector=app%3Dx"), get("", "limit=1&labelSelector=app%3Dx&continue={continue}"),
		get("", "limit=6"), get("", "limit=5"), get("", "continue=nonsense"), get("", "limit=2&continue=!"), get("", "limit=2"), get("", "continue={continue}"),
		get("", "limit=2"), create("bb"), get("", "limit=2&continue={continue}"),
		get("", "limit=1"), get("", "limit=1&continue={continue}&resourceVersion=1"), get("", "limit=1"), get("", "limit=1&continue={continue}&resourceVersion=0"),
		get("", "limit=1"), get("", "limit=1&continue={continue}&resourceVersionMatch=Exact"),
		get("", "pretty=true"),
	}, nil},
	{"resource versions", []step{
		create("a"), get("", ""), get("", "resourceVersion=0"), get("", "resourceVersion={list}"), create("b"), get("", "resourceVersion={list}"),
		get("", "resourceVersion={list}&resourceVersionMatch=Exact"), get("", "resourceVersion={list}&resourceVersionMatch=NotOlderThan"),
		get("", "resourceVersion=1&resourceVersionMatch=NotOlderThan"), get("", "resourceVersion=999999"), get("", "resourceVersion=999999&resourceVersionMatch=Exact"),
		get("", "resourceVersion=999999&resourceVersionMatch=NotOlderThan"), get("", "resourceVersionMatch=Exact"), get("", "resourceVersionMatch=NotOlderThan"),
		get("", "resourceVersion=0&resourceVersionMatch=Exact"), get("", "resourceVersion=0&resourceVersionMatch=NotOlderThan"),
		get("", "resourceVersion={list}&resourceVersionMatch=nonsense"), get("", "resourceVersion=x"), get("", "resourceVersion=-1"), get("", "resourceVersion=01"),
		get("", "resourceVersion=1.5"), get("", "resourceVersion=99999999999999999999"),
		get("", "sendInitialEvents=true"), get("", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
		get("", "resourceVersion=1&resourceVersionMatch=Exact"), get("", "resourceVersion=1&limit=1"),
	}, nil},
	{"update", []step{create("a")}, []step{
		replace("a", object("a", "", `,"ttl":5`)), replace("a", object("a", "", `,"ttl":5`)),
		replace("a", object("a", `,"resourceVersion":"{rv:a}"`, `,"ttl":6`)), replace("a", object("a", `,"resourceVersion":"{old:a}"`, `,"ttl":7`)),
		replace("a", object("a", `,"resourceVersion":"999999"`, `,"ttl":7`)), replace("a", object("a", `,"resourceVersion":"x"`, `,"ttl":7`)),
		replace("a", object("a", `,"resourceVersion":"0"`, `,"ttl":7`)),
		replace("a", object("b", "", "")), replace("a", object("", "", "")), replace("none", object("none", "", "")),
		replace("none", object("none", `,"resourceVersion":"5"`, "")), replace("none", object("none", `,"uid":"u"`, "")),
		replace("a", object("a", `,"uid":"{uid:a}"`, `,"ttl":8`)), replace("a", object("a", `,"uid":"other"`, "")),
		replace("a", object("a", `,"creationTimestamp":"2001-01-01T00:00:00Z"`, `,"ttl":9`)), replace("a", object("a", `,"creationTimestamp":null`, `,"ttl":10`)),
		replace("a", object("a", `,"generation":77`, `,"ttl":10`)), replace("a", object("a", `,"deletionTimestamp":"2001-01-01T00:00:00Z"`, `,"ttl":11`)),
		replace("a", object("a", `,"namespace":"default"`, "")), replace("a", object("a", `,"labels":{"app":"x"}`, `,"ttl":11`)), replace("a", object("a", `,"labels":{"-":"x"}`, "")),
		replace("a", object("a", `,"generateName":"gen-"`, "")), replace("a", object("a", `,"selfLink":"/x"`, "")), replace("a", object("a", `,"finalizers":["example.com/x"]`, "")),
		replace("a", object("a", "", `,"ttl":-1`)), replace("a", strings.Replace(object("a", "", ""), "OwnedAccessKey", "Pod", 1)), replace("a", `{`), replace("a", ``), replace("a", `{}`),
		replace("a", strings.Replace(object("a", "", ""), "management.platform.sh/v1", "v1", 1)), replace("a", `[]`), replace("a", object("a", "", "")).withHeader("Content-Type: text/plain"),
		get("/a", ""),
	}},
	{"merge patch", []step{create("a")}, []step{
		merge("a", `{"spec":{"ttl":5}}`), merge("a", `{"spec":{"ttl":5}}`), merge("a", `{"spec":{"ttl":null}}`), merge("a", `{}`),
		merge("a", `{"metadata":{"labels":{"app":"x"}}}`), merge("a", `{"metadata":{"labels":{"app":null}}}`), merge("a", `{"metadata":{"labels":null}}`),
		merge("a", `{"metadata":{"annotations":{"a":"b"}}}`), merge("a", `{"metadata":{"resourceVersion":"{rv:a}"},"spec":{"ttl":6}}`),
		merge("a", `{"metadata":{"resourceVersion":"{old:a}"},"spec":{"ttl":7}}`), merge("a", `{"metadata":{"resourceVersion":"x"}}`),
		merge("a", `{"metadata":{"resourceVersion":null},"spec":{"ttl":8}}`), merge("a", `{"metadata":{"resourceVersion":""},"spec":{"ttl":9}}`),
		merge("a", `{"metadata":{"name":"b"}}`), merge("a", `{"metadata":{"name":null}}`), merge("a", `{"metadata":{"uid":"other"}}`), merge("a", `{"metadata":{"uid":null}}`),
		merge("a", `{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z"}}`), merge("a", `{"metadata":{"creationTimestamp":null}}`),
		merge("a", `{"metadata":{"generation":99}}`), merge("a", `{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}`), merge("a", `{"metadata":null}`),
		merge("a", `{"kind":"Pod"}`), merge("a", `{"apiVersion":"v1"}`), merge("a", `{"kind":null}`), merge("a", `{"spec":null}`), merge("a", `{"spec":"x"}`), merge("a", `{"spec":{"ttl":"x"}}`),
		merge("a", `{"spec":{"ttl":-1}}`), merge("a", `{"status":{"lastActivity":"2001-01-01T00:00:00Z"}}`), merge("a", `[]`), merge("a", `null`), merge("a", `x`), merge("a", ``),
		merge("a", `"x"`), merge("a", `5`), merge("none", `{}`), merge("none", `{"spec":{}}`), merge("a", `{"metadata":{"labels":{"-":"x"}}}`), merge("a", `{"metadata":{"namespace":"x"}}`),
		{method: "PATCH", path: "/a", body: `{}`, header: []string{"Content-Type: application/strategic-merge-patch+json"}},
		{method: "PATCH", path: "/a", body: `{}`, header: []string{"Content-Type: application/json"}},
		{method: "PATCH", path: "/a", body: `{}`, header: []string{"Content-Type: text/plain"}},
		{method: "PATCH", path: "/a", body: `{}`, header: []string{"Content-Type: "}},
		{method: "PATCH", path: "/a", body: `{"spec":{"ttl":3}}`, header: []string{"Content-Type: application/merge-patch+json; charset=utf-8"}},
		merge("a", `{}`).withQuery("force=true"), get("/a", ""),
	}},
	{"json patch", []step{create("a")}, []step{
		jsonPatch("a", `[{"op":"add","path":"/spec/ttl","value":5}]`), jsonPatch("a", `[{"op":"replace","path":"/spec/ttl","value":6}]`),
		jsonPatch("a", `[{"op":"remove","path":"/spec/ttl"}]`), jsonPatch("a", `[{"op":"remove","path":"/spec/ttl"}]`), jsonPatch("a", `[{"op":"replace","path":"/spec/ttl","value":6}]`),
		jsonPatch("a", `[{"op":"test","path":"/spec/displayName","value":"x"}]`), jsonPatch("a", `[{"op":"test","path":"/spec/displayName","value":"y"}]`),
		jsonPatch("a", `[{"op":"copy","from":"/spec/displayName","path":"/spec/description"}]`), jsonPatch("a", `[{"op":"move","from":"/spec/description","path":"/spec/displayName"}]`),
		jsonPatch("a", `[{"op":"add","path":"/metadata/labels/app","value":"x"}]`), jsonPatch("a", `[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`),
		jsonPatch("a", `[{"op":"add","path":"/metadata/annotations/c~1d","value":"e"}]`), jsonPatch("a", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/x"}]`),
		jsonPatch("a", `[{"op":"add","path":"/spec/groups","value":["x"]}]`), jsonPatch("a", `[{"op":"add","path":"/spec/groups/-","value":"y"}]`), jsonPatch("a", `[{"op":"add","path":"/spec/groups/9","value":"z"}]`),
		jsonPatch("a", `[{"op":"remove","path":"/spec/groups/-1"}]`), jsonPatch("a", `[{"op":"nonsense","path":"/spec/ttl"}]`), jsonPatch("a", `[{"path":"/spec/ttl"}]`),
		jsonPatch("a", `[{"op":"add","value":5}]`), jsonPatch("a", `[{"op":"add","path":"spec","value":5}]`), jsonPatch("a", `[{"op":"add","path":"","value":{}}]`),
		jsonPatch("a", `{}`), jsonPatch("a", `[]`), jsonPatch("a", `null`), jsonPatch("a", `x`), jsonPatch("a", ``), jsonPatch("a", `[5]`), jsonPatch("a", `[{"op":"add","path":"/spec/ttl"}]`),
		jsonPatch("a", `[{"op":"replace","path":"/metadata/name","value":"b"}]`), jsonPatch("a", `[{"op":"replace","path":"/metadata/uid","value":"b"}]`),
		jsonPatch("a", `[{"op":"test","path":"/metadata/resourceVersion","value":"{old:a}"}]`), jsonPatch("a", `[{"op":"replace","path":"/metadata/resourceVersion","value":"{old:a}"}]`),
		jsonPatch("a", `[{"op":"replace","path":"/spec/ttl","value":"x"}]`), jsonPatch("a", `[{"op":"add","path":"/spec/ttl","value":-1}]`), jsonPatch("none", `[]`), jsonPatch("none", `[{"op":"remove","path":"/x"}]`),
		jsonPatch("a", `[`+strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"OwnedAccessKey"},`, 10001), ",")+`]`),
		get("/a", ""),
	}},
	{"delete", []step{
		create("a"), create("b"), create("c"), create("d"), create("e"), create("f"),
		remove("a", ""), remove("a", ""), get("/a", ""), remove("b", `{"kind":"DeleteOptions","apiVersion":"v1"}`), remove("c", `{"preconditions":{"uid":"other"}}`),
		remove("c", `{"preconditions":{"uid":"{uid:c}"}}`), remove("d", `{"preconditions":{"resourceVersion":"999999"}}`), remove("d", `{"preconditions":{"resourceVersion":"{rv:d}"}}`),
		remove("f", `{`), remove("f", `[]`), remove("f", `{}`),
		remove("none", `{"preconditions":{"uid":"u"}}`), remove("admin2", ""),
		create("j"), remove("j", `{"preconditions":{"uid":"{uid:j}","resourceVersion":"{rv:j}"}}`), get("", ""),
	}, nil},
	{"delete options", []step{create("a")}, []step{
		remove("a", "").withQuery("gracePeriodSeconds=0"), remove("a", "").withQuery("propagationPolicy=Background"), remove("a", "").withQuery("propagationPolicy=Nonsense"),
		remove("a", "").withQuery("gracePeriodSeconds=x"), remove("a", "").withQuery("gracePeriodSeconds=-1"), remove("a", "").withQuery("orphanDependents=false&propagationPolicy=Background"),
		remove("a", `{"kind":"DeleteOptions","apiVersion":"v1","nonsense":1}`), remove("a", `{"propagationPolicy":"x"}`), remove("a", `{"gracePeriodSeconds":-5}`),
		remove("a", `{"orphanDependents":true,"propagationPolicy":"Orphan"}`), remove("a", `{"kind":"DeleteOptions","apiVersion":"v1"}`).withHeader("Content-Type: text/plain"),
		remove("a", `{"kind":"DeleteOptions","apiVersion":"management.platform.sh/v1"}`), remove("a", `{"kind":"Pod","apiVersion":"v1"}`),
		remove("a", `{"preconditions":{"resourceVersion":""}}`), remove("a", `{"preconditions":{"uid":""}}`),
	}},
	{"finalizers", []step{
		{method: "POST", body: object("a", `,"finalizers":["example.com/x","example.com/y"]`, "")}, remove("a", ""), get("/a", ""), remove("a", ""),
		merge("a", `{"metadata":{"finalizers":["example.com/x","example.com/z"]}}`), merge("a", `{"spec":{"ttl":5}}`), merge("a", `{"metadata":{"deletionTimestamp":null}}`),
		merge("a", `{"metadata":{"finalizers":["example.com/x"]}}`), create("a"), merge("a", `{"metadata":{"finalizers":null}}`), get("/a", ""), create("a"),
		{method: "POST", body: object("b", `,"finalizers":["example.com/x"]`, "")}, remove("b", "").withQuery("dryRun=All"), get("/b", ""), remove("b", `{"preconditions":{"uid":"other"}}`), remove("b", ""),
		replace("b", object("b", "", "")), get("/b", ""),
	}, nil},
	{"methods and paths", []step{
		{method: "PUT", body: object("a", "", "")}, {method: "PATCH", body: `{}`, header: []string{"Content-Type: application/merge-patch+json"}},
		{method: "POST", path: "/a", body: object("a", "", "")}, {method: "HEAD"}, {method: "OPTIONS"}, {method: "TRACE"}, {method: "NONSENSE"}, {method: "HEAD", path: "/admin"},
		get("/admin/status", ""), get("/admin/scale", ""), get("/admin/x/y", ""), get("//apis/management.platform.sh/v1/nonsense", ""), get("//apis/management.platform.sh/v2/ownedaccesskeys", ""),
		get("//apis/nonsense/v1/ownedaccesskeys", ""), get("//apis/management.platform.sh/v1/namespaces/x/ownedaccesskeys", ""), get("//nonsense", ""), get("//apis/management.platform.sh/v1/ownedaccesskeys/", ""),
		get("//apis/management.platform.sh/v1/OwnedAccessKeys", ""), get("//api/v1/pods", ""), replace("admin/status", object("admin", "", "")),
	}, nil},
	watchScenarios,
	applyScenarios,
}

// watchFrom returns a watch of one second that begins after the first version of a. The query is added to its path.
func watchFrom(query string, header ...string) step {
	return get("", "watch=true&timeoutSeconds=1&"+query, header...)
}

// watchPath is the deprecated path of a watch.
const watchPath = "//apis/management.platform.sh/v1/watch/ownedaccesskeys"

// watchScenarios are the watch requests. Before them, a was added, entered and left a selection, and b was added and deleted.
var watchScenarios = scenario{"watch",
	[]step{
		create("a"), merge("a", `{"metadata":{"labels":{"app":"x"}}}`), create("b"), merge("a", `{"metadata":{"labels":{"app":"y"}}}`), remove("b", ""),
		get("", ""),
	},
	[]step{
		watchFrom(""), watchFrom("resourceVersion=0"), watchFrom("resourceVersion={list}"), watchFrom("resourceVersion={old:a}"), watchFrom("resourceVersion={old:a}", tableForm),
		watchFrom("resourceVersion={old:a}", partialForm), watchFrom("resourceVersion={old:a}", yamlForm),
		watchFrom("resourceVersion={old:a}&labelSelector=app%3Dx"), watchFrom("resourceVersion={old:a}&fieldSelector=metadata.name%3Db"),
		watchFrom("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
		watchFrom("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={list}&labelSelector=app%3Dy", tableForm),
		watchFrom("sendInitialEvents=true"), watchFrom("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1"), watchFrom("resourceVersionMatch=NotOlderThan"),
		watchFrom("sendInitialEvents=false&resourceVersionMatch=NotOlderThan"), watchFrom("resourceVersion=x"), watchFrom("resourceVersion=-1"), watchFrom("labelSelector=app+in"),
		watchFrom("fieldSelector=nonsense"), watchFrom("limit=x"), watchFrom("limit="), watchFrom("limit=-1"), watchFrom("continue=x"), watchFrom("resourceVersion=0", "Accept: text/html"),
		get("", "watch=1&timeoutSeconds=x"), get("", "watch=1&timeoutSeconds="), get("", "watch=1&timeoutSeconds=-1"),
		get("", "watch=false&timeoutSeconds=1"), get("", "watch=0"), get("", "watch=FALSE"), get("", "watch=0&watch=1"), get("", "timeoutSeconds=x"), get("", "timeoutSeconds="), get("", "limit="),
		get("", "watch=nonsense&timeoutSeconds=1&resourceVersion={list}"), get("", "watch&timeoutSeconds=1&resourceVersion={list}"), get("", "watch=&timeoutSeconds=1&resourceVersion={list}"),
		get("", "%77atch=1&timeoutSeconds=1&resourceVersion={list}"), get("", "watch=1&watch=0&timeoutSeconds=1&resourceVersion={list}"),
		get("/a", "watch=true&timeoutSeconds=1"),
		get(watchPath, "timeoutSeconds=1&resourceVersion={old:a}"), get(watchPath, "watch=false&timeoutSeconds=1&resourceVersion={old:a}&labelSelector=app%3Dx"),
		get(watchPath+"/a", "timeoutSeconds=1&resourceVersion={old:a}"),
	},
}

// apply returns a server-side apply by a manager.
func apply(name, manager, body string) step {
	return step{method: "PATCH", path: "/" + name, query: "fieldManager=" + manager, body: body, header: []string{"Content-Type: application/apply-patch+yaml"}}
}

// applyScenarios are the requests of server-side apply. managedFields are not compared.
var applyScenarios = scenario{"apply",
	[]step{create("a").withQuery("fieldManager=m"), merge("a", `{"spec":{"ttl":5}}`).withQuery("fieldManager=m")},
	[]step{
		apply("z", "n", object("z", "", `,"ttl":5`)), apply("a", "m", object("a", "", `,"ttl":6`)), apply("a", "n", object("a", "", `,"ttl":6`)),
		apply("a", "n", object("a", "", `,"ttl":5`)), apply("a", "n&force=true", object("a", "", `,"ttl":6`)), apply("a", "n&dryRun=All&force=true", object("a", "", `,"ttl":6`)),
		apply("a", "", object("a", "", "")), apply("a", strings.Repeat("x", 129), object("a", "", "")), apply("a", "n&force=x", object("a", "", "")),
		apply("a", "n", `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey"}`), apply("a", "n", `{"apiVersion":"management.platform.sh/v1","kind":"OwnedAccessKey","metadata":{"name":"a"}}`),
		apply("a", "n", object("b", "", "")), apply("a", "n", object("a", `,"uid":"other"`, "")), apply("a", "n", object("a", `,"resourceVersion":"{old:a}"`, "")),
		apply("a", "n", object("a", `,"managedFields":[{"manager":"x","operation":"Apply"}]`, "")), apply("a", "n", object("a", `,"labels":{"-":"x"}`, "")),
		apply("a", "n", strings.Replace(object("a", "", ""), "OwnedAccessKey", "Pod", 1)), apply("a", "n", `{"metadata":{"name":"a"}}`), apply("a", "n", `{`), apply("a", "n", ``), apply("a", "n", `[]`),
		apply("a", "n", object("a", "", "")+"\n---\n"+object("a", "", "")), apply("a", "n&fieldValidation=Strict", object("a", "", `,"nonsense":1`)), apply("a", "n", object("a", "", `,"nonsense":1`)),
		apply("a", "n", object("a", "", `,"ttl":-1`)),
	},
}

// randomScenarios are sequences of requests that clients might send, drawn from a fixed seed.
func randomScenarios() []scenario {
	const sequences, length = 8, 25
	var result []scenario
	for seed := range sequences {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
		name := func() string { return pick("a", "b", "c") }
		metadata := func(objectName string) string {
			return pick("", "", `,"labels":{"app":"x"}`, `,"annotations":{"n":"1"}`, `,"resourceVersion":"{rv:`+objectName+`}"`, `,"resourceVersion":"{old:`+objectName+`}"`,
				`,"uid":"{uid:`+objectName+`}"`, `,"finalizers":["example.com/x"]`, `,"labels":{"-":""}`)
		}
		spec := func() string {
			return pick("", `,"ttl":60`, `,"ttl":70`, `,"disabled":true`, `,"groups":["x"]`, `,"ttl":-1`, `,"nonsense":1`, `,"description":"d"`)
		}
		query := func() string { return pick("", "", "", "dryRun=All", "fieldValidation=Strict", "fieldManager=m") }
		sc := scenario{name: fmt.Sprintf("random %d", seed)}
		for range length {
			objectName := name()
			var st step
			switch r.IntN(10) {
			case 0, 1:
				st = step{method: "POST", body: object(objectName, pick("", `,"labels":{"app":"y"}`, `,"finalizers":["example.com/x"]`), spec()), query: query()}
			case 2, 3:
				st = replace(objectName, object(objectName, metadata(objectName), spec())).withQuery(query())
			case 4, 5:
				st = merge(objectName, `{"metadata":{`+strings.TrimPrefix(metadata(objectName), ",")+`},"spec":{`+strings.TrimPrefix(spec(), ",")+`}}`).withQuery(query())
			case 6:
				st = jsonPatch(objectName, pick(`[{"op":"add","path":"/spec/ttl","value":80}]`, `[{"op":"remove","path":"/spec/ttl"}]`, `[{"op":"remove","path":"/metadata/finalizers"}]`,
					`[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/spec/description","value":"e"}]`)).withQuery(query())
			case 7:
				st = remove(objectName, pick("", `{}`, `{"preconditions":{"uid":"{uid:`+objectName+`}"}}`, `{"preconditions":{"resourceVersion":"{old:`+objectName+`}"}}`))
				if st.body == "" {
					st = st.withQuery(pick("", "dryRun=All"))
				}
			case 8:
				st = get("", pick("", "limit=2", "labelSelector=app%3Dx", "labelSelector=app&limit=1", "fieldSelector=metadata.name%3Da", "resourceVersion={list}"))
			default:
				st = get("/"+objectName, "", pick("Accept: */*", tableForm, partialForm, yamlForm))
			}
			sc.steps = append(sc.steps, st)
		}
		result = append(result, sc)
	}
	return result
}
