import "./environment";
import assert from "node:assert/strict";
import { test } from "node:test";
import { complete, explain, names, subjectAt } from "../studio/language";

const configuration = `sync:
  toHost:
    pods:
      enabled: true
      patches:
      - path: spec.a
        expression: value + context.tenant.name.length
        reverseExpression: |
          const a = 1;
          atob(value)
      - path: b
        reference:
          apiVersion: v1
          ki
      - {path: c, expression: btoa(value)}
      - p
`;

/** Returns the place at the end of the first occurrence of a text. */
function after(part: string, text = configuration): number {
  return text.indexOf(part) + part.length;
}

test("the names are those of the page about patches", () => {
  for (const name of ["value", "valueExists", "context.tenant.name", "context.tenant.namespace", "context.path", "atob", "btoa", "virtualToHostDNS"]) {
    assert.equal(names.some((term) => term.name === name && term.help !== ""), true, name);
  }
});

test("a place belongs to an expression, to a patch or to a reference", () => {
  for (const [part, expected] of [
    ["value + con", "expression"], ["path: spec", null], ["reverseExpression: |\n          const", "expression"], ["ato", "expression"], ["btoa(val", "expression"],
    ["          ki", "reference"], ["      - p\n".slice(0, -1), "patch"], ["    pods", null], ["enabled: tr", null],
  ] as const) assert.equal(subjectAt(configuration, part === "      - p" ? configuration.lastIndexOf("- p") + 3 : after(part)), expected, part);
  assert.equal(subjectAt("- path: a\n  exp", 15), "patch");
  assert.equal(subjectAt("pa", 2), null);
});

test("what is written is completed from the names and the fields", () => {
  const labels = (part: string, values = {}) => complete(configuration, after(part), false, values)?.options.map(({ label, apply, detail }) => [label, apply, detail]);
  assert.deepEqual(labels("value + context.tenant.na"), [["context.tenant.name", undefined, undefined], ["context.tenant.namespace", undefined, undefined]]);
  assert.deepEqual(labels("value + context.tenant.na", { "context.tenant.name": "t" })?.[0], ["context.tenant.name", undefined, "t"]);
  assert.deepEqual(labels("          ki"), [["kind", "kind: ", undefined], ["kindPath", "kindPath: ", undefined]]);
  assert.deepEqual(labels("path: spec"), undefined);
  // Nothing is offered for what is whole already, or before something is written, unless a person asks.
  assert.equal(complete("- path: a\n  expression: atob", 28, false, {}), null);
  assert.equal(complete("- path: a\n  expression: ", 24, false, {}), null);
  assert.equal(complete("- path: a\n  expression: ", 24, true, {})?.options.length, names.length);
});

test("a name is explained up to the part that is pointed at", () => {
  const explained = (part: string) => { const found = explain(configuration, after(part)); return found && [configuration.slice(found.from, found.to), found.term.name]; };
  assert.deepEqual(explained("value + context.tenant.na"), ["context.tenant.name", "context.tenant.name"]);
  assert.deepEqual(explained("value + context.te"), ["context.tenant", "context.tenant"]);
  assert.match(explain(configuration, after("value + con"))!.term.help, /context\.hostObject/);
  assert.deepEqual(explained("atob(va"), ["value", "value"]);
  assert.deepEqual(explained("reverseExp"), ["reverseExpression", "reverseExpression"]);
  assert.deepEqual(explained("apiVer"), ["apiVersion", "reference.apiVersion"]);
  assert.equal(explained("path: sp"), null);
  assert.equal(explained("const"), null);
});
