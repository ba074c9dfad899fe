import { answerWith, type ReceivedRequest } from "./environment";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refusal } from "../api";
import { lineOf, parseText, rangeOf } from "../studio/documents";
import {
  evaluate, failuresOf, findingsOf, idlePatches, resourceFor, resourcesOf, specOf, stepsToPatch, withFirstPatches, type Direction, type Reference, type Resource, type Spec, type Status,
} from "../studio/evaluate";
import type { Work } from "../studio/share";

const configuration = `sync:
  toHost:
    pods:
      patches:
      - path: spec.a
        expression: value.absent
      - path: spec.b
        expression: '"x" + value'
        reverseExpression: value.slice(1)
    customResources:
      things.example.com/v1:
        patches:
        - path: spec
  fromHost:
    configMaps: {patches: []}
    events: {enabled: true}
`;
const work: Work = { configuration, tenant: "", host: "", resource: "", name: "t", namespace: "n", mode: "Single", naming: "neutral" };
const lists = resourcesOf(parseText(configuration).value);

test("the lists of patches in a configuration are found on both sides", () => {
  assert.deepEqual(lists, [
    { name: "toHost.pods", steps: ["sync", "toHost", "pods", "patches"] },
    { name: "toHost.customResources.things.example.com/v1", steps: ["sync", "toHost", "customResources", "things.example.com/v1", "patches"] },
    { name: "fromHost.configMaps", steps: ["sync", "fromHost", "configMaps", "patches"] },
  ]);
  for (const none of [null, undefined, [], "sync", { sync: null }, { sync: { toHost: { patches: [] } } }, { sync: { elsewhere: { pods: { patches: [] } } } }, { sync: { toHost: { pods: { patches: { patches: [] } } } } }]) {
    assert.deepEqual(resourcesOf(none), []);
  }
});

test("a patch outside of the lists of patches is found by its fields", () => {
  const patch = (column: number) => `- path: a\n  expression: b\n`.replace(/^/gm, " ".repeat(column)).trimEnd();
  for (const [text, line, steps] of [
    [`sync:\n  toHost:\n    pods:\n    patches:\n${patch(4)}\n`, 5, ["sync", "toHost", "patches", "0"]], [`sync:\n  toHost:\n    pods:\n  patches:\n${patch(2)}\n`, 5, ["sync", "patches", "0"]],
    [`toHost:\n  pods:\n    patches:\n${patch(4)}\n`, 4, ["toHost", "pods", "patches", "0"]], ["sync:\n  toHost:\n    pods:\n      patches:\n      path: a\n      expression: b\n", 4, ["sync", "toHost", "pods"]],
    ["path: a\nexpression: b\n", 1, []], ["a: 1\npods:\n  reverseExpression: b\n", 3, ["pods"]], ["pods: {path: a, reference: {kind: Secret}}\n", 1, ["pods"]], ["patches:\n- labels: {}\n", 2, ["patches", "0"]],
  ] as const) {
    const parsed = parseText(text);
    assert.deepEqual([stepsToPatch(parsed.value), resourcesOf(parsed.value)], [steps, []], text);
    assert.equal(lineOf(text, rangeOf(parsed, [...steps]).from), line, text);
  }
  for (const none of [null, "path", [], { sync: {} }, { controlPlane: { labels: { a: "b" }, replicas: 1n } }, { hostPath: { path: "/a" } }, { labels: { a: "b" } }, { patches: "path" }]) assert.equal(stepsToPatch(none), null);
});

test("the list of patches follows the kind of the object", () => {
  const all = ["toHost.pods", "toHost.ingresses", "toHost.networkPolicies", "toHost.endpoints", "toHost.customResources.things.example.com/v1", "fromHost.configMaps"].map((name) => ({ name, steps: [] }));
  for (const [object, expected] of [
    [{ kind: "Pod" }, "toHost.pods"], [{ kind: "Ingress" }, "toHost.ingresses"], [{ kind: "NetworkPolicy" }, "toHost.networkPolicies"], [{ kind: "Endpoints" }, "toHost.endpoints"],
    [{ kind: "ConfigMap" }, "fromHost.configMaps"], [{ kind: "Thing", apiVersion: "example.com/v1" }, "toHost.customResources.things.example.com/v1"],
    // Without one for it, the first.
    [{ kind: "Thing", apiVersion: "example.org/v1" }, "toHost.pods"], [{ kind: 1 }, "toHost.pods"], [null, "toHost.pods"],
  ] as const) {
    assert.equal(resourceFor(all, object)?.name, expected, JSON.stringify(object));
  }
  assert.equal(resourceFor([], { kind: "Pod" }), undefined);
});

test("a spec has what its direction and its expressions need", () => {
  const value = parseText(configuration).value;
  const references: Reference[] = [{ name: "a", hostName: "a-x" }];
  const [tenant, host] = [{ kind: "Pod" }, { kind: "Pod", metadata: { name: "host" } }];
  const spec = (direction: Direction, of = work, more: Reference[] = references) => specOf(of, value, lists[0], direction, tenant, host, more);
  const context = { tenant: { name: "t", namespace: "n", config: value } };
  assert.deepEqual(spec("TenantToHost"), {
    direction: "TenantToHost", namespaceMode: "Single", resource: "toHost.pods", configuration: value, object: tenant, context, checks: ["RoundTrip", "Fixpoint"],
  });
  assert.deepEqual(spec("HostToTenant"), {
    direction: "HostToTenant", namespaceMode: "Single", resource: "toHost.pods", configuration: value, object: host, context: { ...context, references }, checks: ["RoundTrip", "Fixpoint"],
  });
  assert.deepEqual(spec("HostToTenant", work, []).context, context);
  assert.equal(spec("TenantToHost", { ...work, mode: "Multi" }).namespaceMode, "Multi");
  assert.equal(spec("TenantToHost", { ...work, naming: "vcluster" }).naming, "vcluster");
  // The objects of both sides are sent where an expression may read them.
  assert.deepEqual(spec("TenantToHost", { ...work, configuration: "hostObject.x" }).context, { ...context, hostObject: host });
  assert.deepEqual(spec("TenantToHost", { ...work, configuration: "virtualObject.x" }).context, { ...context, virtualObject: tenant });
  assert.deepEqual(specOf({ ...work, configuration: "hostObject virtualObject" }, value, lists[0], "TenantToHost", null, null, []).context, context);
  // A list of patches alone is no configuration.
  const alone = specOf(work, [{ path: "a" }], undefined, "TenantToHost", tenant, host, []);
  assert.deepEqual([alone.patches, alone.resource, alone.configuration, alone.context], [[{ path: "a" }], undefined, undefined, { tenant: { name: "t", namespace: "n" } }]);
});

test("the first patches of a spec are cut from its own list, or from the list of its resource", () => {
  const value = parseText(configuration).value;
  const spec = (more: Partial<Spec>): Spec => ({ direction: "TenantToHost", namespaceMode: "Single", object: {}, context: {}, checks: ["RoundTrip"], ...more });
  const first = (more: Partial<Spec>, list: Resource | undefined) => {
    const { checks, patches, resource, configuration: rest } = withFirstPatches(spec(more), list, 1);
    assert.equal(checks, undefined);
    return { patches, resource, configuration: rest };
  };
  assert.deepEqual(first({ patches: [1, 2] }, lists[0]), { patches: [1], resource: undefined, configuration: undefined });
  const cut = structuredClone(value) as { sync: { toHost: { pods: { patches: unknown[] } } } };
  assert.equal(cut.sync.toHost.pods.patches.length, 2);
  cut.sync.toHost.pods.patches.length = 1;
  assert.deepEqual(first({ resource: "toHost.pods", configuration: value }, lists[0]), { patches: undefined, resource: "toHost.pods", configuration: cut });
  for (const list of [undefined, { name: "x", steps: ["sync", "toHost", "absent", "patches"] }]) {
    assert.equal(JSON.stringify(first({ resource: "x", configuration: value }, list).configuration), JSON.stringify(value));
  }
});

const object = "kind: Pod\nspec:\n  a: 1\n";
const [documents, objects] = [parseText(configuration), parseText(object)];

/** A finding as the line and the text that it marks, and its message. */
const describeFinding = (text: string) => ({ from, to, severity, message }: { from: number; to: number; severity: string; message: string }) => [severity, lineOf(text, from), text.slice(from, to), message];

test("a cause of a refusal is at its place in the text that it is about", () => {
  const field = (path: string) => `spec.configuration.sync.toHost.pods.patches${path}`;
  const causes = [
    { field: field("[0].expression"), message: 'Invalid value: "value.x": line 1, column 7: no such field' }, { field: field("[1].path"), message: "wrong" }, { field: field(""), message: "too many" },
    { field: "spec.configuration.sync.toHost.customResources[things.example.com/v1].patches[0].path", message: "wrong" },
    { field: "spec.configuration.sync.fromHost.configMaps.patches", message: "too few" }, { field: "spec.configuration.sync.fromHost.events.enabled", message: "wrong" },
    { field: "spec.object.spec.a", message: "no text" }, { field: "spec.object", message: "too large" },
    { field: "spec.direction", message: "unknown" }, { field: "metadata.name", message: "not here" }, { field: "status.object.spec.a", message: "not there" }, { message: "without a field" },
  ];
  const findings = findingsOf(new Refusal(422, "", causes), documents, lists[0], objects);
  assert.deepEqual(findings.configuration.map(describeFinding(configuration)), [
    ["error", 6, "a", "toHost.pods: no such field"], ["error", 7, "spec.b", "toHost.pods: 1.path: wrong"], ["error", 5, "- path: spec.a", "toHost.pods: patches: too many"],
    // The list of the field, not the one that is evaluated. Outside of a list, the field alone.
    ["error", 13, "spec", "toHost.customResources.things.example.com/v1: 0.path: wrong"], ["error", 15, "[]", "fromHost.configMaps: patches: too few"], ["error", 16, "true", "enabled: wrong"],
  ]);
  assert.deepEqual(findings.object.map(describeFinding(object)), [["error", 3, "1", "spec.a: no text"], ["error", 1, "kind: Pod", "too large"]]);
  assert.deepEqual(findings.other, causes.slice(8));
  const alone = parseText("- path: a\n  expression: b\n");
  // In one direction, the line is enough.
  const oneWay = parseText(configuration.slice(0, configuration.indexOf("  fromHost:")));
  assert.deepEqual(findingsOf(new Refusal(422, "", causes.slice(1, 4)), oneWay, lists[0], objects).configuration.map(({ message }) => message), ["1.path: wrong", "patches: too many", "0.path: wrong"]);
  assert.deepEqual(findingsOf(new Refusal(422, "", [{ field: "spec.patches[0].expression", message: "wrong" }]), alone, undefined, objects).configuration.map(describeFinding(alone.text)), [["error", 2, "b", "0.expression: wrong"]]);
});

test("the failure and the warnings of an evaluation are at their places", () => {
  const spec = (direction: Direction, patches?: unknown[]): Spec => ({ direction, namespaceMode: "Single", object: {}, context: {}, patches });
  const error = { index: 1n, path: "spec.b", message: "broken", line: 1n, column: 7n };
  const fail = (direction: Direction, more: Partial<Status> = {}) => failuresOf({ error, ...more }, spec(direction), documents, lists[0], objects);
  assert.deepEqual(fail("TenantToHost").configuration.map(describeFinding(configuration)), [["error", 8, "v", "toHost.pods: spec.b: broken"]]);
  assert.deepEqual(fail("HostToTenant").configuration.map(describeFinding(configuration)), [["error", 9, "s", "toHost.pods: spec.b: broken"]]);
  assert.deepEqual(fail("HostToTenant", { error: { index: 1n, path: "spec.b", message: "broken" } }).configuration.map(describeFinding(configuration)), [["error", 9, "value.slice(1)", "toHost.pods: spec.b: broken"]]);
  const fromHost = "sync:\n  fromHost:\n    nodes:\n      patches:\n      - path: a\n        expression: b\n      - path: c\n        reverseExpression: d\n";
  const nodes = parseText(fromHost);
  for (const [index, expected] of [[0, ["error", 6, "b", "a: broken"]], [1, ["error", 8, "d", "a: broken"]]] as const) {
    const failed = failuresOf({ error: { index, path: "a", message: "broken" } }, { ...spec("HostToTenant"), resource: "fromHost.nodes", configuration: nodes.value }, nodes, resourcesOf(nodes.value)[0], objects);
    assert.deepEqual(failed.configuration.map(describeFinding(fromHost)), [expected]);
  }
  const alone = parseText("- path: a\n  expression: b\n");
  assert.deepEqual(failuresOf({ error: { index: 0, path: "a", message: "broken" } }, spec("TenantToHost", []), alone, lists[0], objects).configuration.map(describeFinding(alone.text)), [["error", 2, "b", "a: broken"]]);
  const warned = failuresOf({ warnings: ["spec.object.spec.a: unknown\nfield", "about nothing"] }, spec("TenantToHost"), documents, lists[0], objects);
  assert.deepEqual(warned.object.map(describeFinding(object)), [["warning", 3, "1", "spec.a: unknown\nfield"]]);
  assert.deepEqual([warned.configuration, warned.other], [[], [{ message: "about nothing" }]]);
  assert.deepEqual(failuresOf({}, spec("TenantToHost"), documents, lists[0], objects), { configuration: [], object: [], other: [] });
});

test("an evaluation sends and reads whole numbers without rounding them", async () => {
  const requests: ReceivedRequest[] = [];
  answerWith((request) => {
    requests.push(request);
    return new Response(requests.length === 1 ? '{"status":{"object":{"n":9007199254740993}}}' : "{}", { status: 201 });
  });
  const spec: Spec = { direction: "TenantToHost", namespaceMode: "Single", patches: [], object: { n: 9007199254740993n }, context: {} };
  const { signal } = new AbortController();
  assert.deepEqual(await evaluate(spec, signal), { object: { n: 9007199254740993n } });
  assert.deepEqual(await evaluate(spec, signal), {});
  const { method, path, query, body } = requests[0]!;
  assert.deepEqual([method, path, String(query)], ["POST", "/apis/management.platform.sh/v1/syncpatchevaluations", "fieldValidation=Strict"]);
  assert.equal(body, '{"apiVersion":"management.platform.sh/v1","kind":"SyncPatchEvaluation","spec":{"direction":"TenantToHost","namespaceMode":"Single","patches":[],"object":{"n":9007199254740993},"context":{}}}');
  answerWith(() => Response.json({ message: "no", details: { causes: [{ field: "spec.object", message: "x" }] } }, { status: 422 }));
  await assert.rejects(evaluate(spec, signal), (failure) => failure instanceof Refusal && failure.code === 422 && failure.causes[0]?.field === "spec.object");
});

test("a patch that did nothing is marked at its path, unless it has nothing for the direction", () => {
  const documents = parseText(configuration);
  const object = parseText("kind: Pod\n");
  const spec = specOf(work, documents.value, lists[0], "TenantToHost", object.value, null, []);
  const reason = 'nothing matches: the object has no field "spec"; to add the field, patch the whole object: ""';
  const status: Status = {
    patches: [
      { index: 0, path: "spec.a", outcome: "Skipped", reason },
      { index: 1, path: "spec.b", outcome: "Skipped", reason: "the patch has no expression, so it does nothing from tenant to host" },
      { index: 2, path: "spec.c", outcome: "Skipped", reason: "patch 1 failed" }, { index: 3, path: "", outcome: "Unchanged", reason: "the same" },
    ],
  };
  assert.deepEqual(idlePatches(status).map(({ index }) => index), [0]);
  const { configuration: found } = failuresOf(status, spec, documents, lists[0], object);
  assert.deepEqual(found.map(({ severity, from, to, message }) => [severity, lineOf(configuration, from), configuration.slice(from, to), message]), [["warning", 5, "spec.a", `toHost.pods: ${reason}`]]);
  assert.deepEqual(idlePatches({}), []);
});
