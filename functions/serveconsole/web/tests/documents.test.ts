import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson, toJson, lineOf, maskSecrets, rangeIn, rangeOf, parseText, stepsAt, stepsOf, toYaml } from "../studio/documents";

/** The part of a text that a place covers. */
const cut = (text: string, { from, to }: { from: number; to: number }) => text.slice(from, to);

test("YAML is read as Kubernetes reads it", () => {
  for (const [text, value] of [
    ["", null], ["# nothing\n", null], ["mode: 0644", { mode: 420n }], ["on: yes", { true: true }], ["at: 2026-11-27", { at: "2026-11-27" }], ["at: 12:30:45", { at: "12:30:45" }],
    ["big: 9007199254740993", { big: 9007199254740993n }], ["half: 0.5", { half: 0.5 }], ["a: &x [1]\nb: *x", { a: [1n], b: [1n] }],
  ] as const) {
    const { value: found, findings } = parseText(text);
    assert.deepEqual([found, findings], [value, []], text);
  }
});

test("a text that cannot be read has no value, and its mistakes have places in it", () => {
  for (const [text, line] of [["a: [\n", 2], ["a: 1\na: 2\n", 2], ["a: b\n  c: d\n", 1], ["ok: 1\n---\nok: 2\n", 2], ["x: 1\ny: \"", 2]] as const) {
    const { value, findings } = parseText(text);
    assert.equal(value, undefined, text);
    assert(findings.length > 0, text);
    for (const { from, to, severity } of findings) {
      assert(0 <= from && from <= to && to <= text.length, `${text}: ${from} to ${to}`);
      assert.equal(severity, "error");
    }
    assert.equal(lineOf(text, findings[0]!.from), line, text);
  }
  // Neither an infinite number nor a few aliases of aliases get into a request.
  const bomb = `a: &a [x, x, x, x, x, x, x, x, x]\n${["b", "c", "d", "e", "f"].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcde"[i]}`).join(", ")}]\n`).join("")}`;
  for (const text of ["a: .inf", "a: .nan", bomb]) {
    assert.equal(parseText(text).value, undefined, text);
    assert.equal(parseText(text).findings.length, 1, text);
  }
});

test("whole numbers are not rounded, in neither direction", () => {
  const text = '{"a":9007199254740993,"b":[1,"x",null,true,0.5],"c":{}}';
  assert.equal(toJson(parseJson(text)), text);
  assert.equal(toJson(parseJson('{"a":1}')), '{"a":1}');
  assert.equal(toJson({ a: undefined, b: [undefined], 'q"': "\n" }), '{"b":[null],"q\\"":"\\n"}');
  assert.equal(toYaml(parseJson(text)), 'a: 9007199254740993\nb:\n  - 1\n  - x\n  - null\n  - true\n  - 0.5\nc: {}\n');
  assert.throws(() => toJson({ a: NaN }), (failure) => failure instanceof Error);
});

test("YAML that is written is read again as the same", () => {
  assert.equal(toYaml({ b: 1, a: 2 }), "a: 2\nb: 1\n");
  assert.equal(toYaml({ b: 1, a: 2 }, false), "b: 1\na: 2\n");
  const same = { shared: 1n };
  for (const value of [{ a: "yes", b: "0644", c: "12:30", d: "", e: "null", f: "x\ny\n", g: "1e3", h: "~", i: "long ".repeat(50) }, { a: same, b: same }, { '"': "#" }]) {
    assert.deepEqual(parseText(toYaml(value)).value, value);
  }
  assert(!toYaml({ a: same, b: same }).includes("*"), "it has aliases");
});

test("a field path is read into its steps", () => {
  for (const [field, steps] of [
    ["", []], ["spec", ["spec"]], ["spec.patches[0].path", ["spec", "patches", "0", "path"]], ['metadata.labels["a.b/c"].x', ["metadata", "labels", "a.b/c", "x"]],
    ["a[*].b", ["a", "*", "b"]],
  ] as const) {
    assert.deepEqual(stepsOf(field), steps, field);
  }
});

test("a field has a place, and one that is not there has that of its nearest parent", () => {
  const text = "sync:\n  toHost:\n    pods:\n      patches:\n      - path: spec.a\n        expression: 'value'\nlabels:\n  a.b.c: here\n  empty:\n  x.y:\n    z: deep\n  flow: {alone}\n";
  const document = parseText(text);
  for (const [steps, expected] of [
    [["sync", "toHost", "pods", "patches", "0", "path"], "spec.a"], [["sync", "toHost", "pods", "patches", 0, "expression"], "'value'"],
    [["labels", "a.b.c"], "here"], [["labels", "a", "b", "c"], "here"], [["labels", "empty"], ""], [["labels", "a", "b", "c", "d"], "here"],
    [["labels", "x", "y", "z"], "deep"], [["labels", "flow", "alone"], "alone"],
    [["sync", "toHost", "pods", "patches", 7], "- path: spec.a"], [["sync", "toHost", "absent", "x"], "pods:"], [["absent"], "sync:"], [[], "sync:"],
  ] as const) {
    assert.equal(cut(text, rangeOf(document, [...steps])), expected, steps.join("/"));
  }
  assert.deepEqual(rangeOf(parseText(""), ["a"]), { from: 0, to: 0, node: null });
});

test("an offset is in the innermost field whose line or block has it", () => {
  const text = "auth:\n  ttl: 60\n  oidc:\n    issuer: https://a\nlist:\n- a: 1\n- b: 2\n  c: 3\n";
  const document = parseText(text);
  for (const [place, steps] of [
    ["auth", ["auth"]], ["ttl", ["auth", "ttl"]], ["60", ["auth", "ttl"]], ["https", ["auth", "oidc", "issuer"]], ["a: 1", ["list", 0, "a"]], ["c: 3", ["list", 1, "c"]],
  ] as const) {
    assert.deepEqual(stepsAt(document, text.indexOf(place)), steps, place);
  }
  assert.deepEqual(stepsAt(parseText(""), 0), []);
});

test("a column of an expression is its place in the text", () => {
  const text = "a: value.x\nb: \"value.y\"\nc: 'it''s'\nd: |\n  value.z\n";
  const document = parseText(text);
  for (const [field, line, column, expected] of [
    ["a", 1, 7, "x"], ["b", 1, 7, "y"], ["a", 1, 1, "v"], ["a", 1, 99, ""],
    // Without a column of its own, the whole field: another line, an escape, a block, no column.
    ["a", 2, 1, "value.x"], ["a", 1, 0, "value.x"], ["c", 1, 2, "'it''s'"], ["d", 1, 1, "|\n  value.z\n"],
  ] as const) {
    const place = rangeIn(document, [field], line, column);
    assert.equal(cut(text, place), expected, `${field} ${line}:${column}`);
    assert(place.from <= place.to && place.to <= text.length, `${field} ${line}:${column} is after the text`);
  }
});

test("lines count from 1", () => {
  assert.deepEqual([0, 1, 2, 3].map((place) => lineOf("a\nb\n", place)), [1, 1, 2, 2]);
  assert.equal(lineOf("a\nb\n", 4), 3);
});

test("what a Secret has in it is masked, and nothing else is changed", () => {
  const maskedValue = (text: string) => { const found = maskSecrets(text); return found === null ? null : parseText(found).value; };
  const secret = "kind: Secret\nmetadata:\n  name: s\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: hunter2\n    kept: yes please\n" +
    "data: {password: aHVudGVyMg==}\nstringData: {other: hunter2}\ntype: Opaque\n";
  const plain = { kind: "Secret", metadata: { name: "s", annotations: { kept: "yes please" } }, data: { password: "Kioq" }, stringData: { other: "***" }, type: "Opaque" };
  assert.deepEqual(maskedValue(secret), plain);
  const indented = secret.trimEnd().replaceAll("\n", "\n  ");
  assert.deepEqual(maskedValue(`kind: List\nitems:\n- ${indented}\n`), { kind: "List", items: [plain] });
  assert.deepEqual(maskedValue(`spec:\n  template:\n    inner:\n      ${secret.trimEnd().replaceAll("\n", "\n      ")}\n`), { spec: { template: { inner: plain } } });
  // An object without a kind that has data may be a Secret, and data that is no map is masked as a whole.
  assert.deepEqual(maskedValue("data: {a: b}\n"), { data: { a: "Kioq" } });
  assert.deepEqual(maskedValue("stringData: {a: b}\n"), { stringData: { a: "***" } });
  assert.deepEqual(maskedValue("kind: Secret\ndata: hunter2\nstringData: [hunter2]\n"), { kind: "Secret", data: "Kioq", stringData: "***" });
  for (const text of ["# kept as it is\nkind: ConfigMap\ndata: {a:   b}\n", "a: {data: {b: c}}\n", "", "- data: {a: b}\n"]) assert.equal(maskSecrets(text), text);
  assert.equal(maskSecrets("kind: Secret\ndata: {a: [\n"), null);
});
