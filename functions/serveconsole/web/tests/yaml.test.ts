import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { yamlOf } from "../parts/yaml";

let seed = 7;
function random(below: number): number {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
}
const texts = ["shop", "*", "true", "No", "null", "1", "1e3", "0x1", "-", "- a", "a: b", "a #b", "", " ", "p-shop/dev", "/metrics", "a\nb", '"', "'", "{}", "[a]", "&a", "!a", "|", "%", "@", "~", "é", "2026-01-01"];
const anyText = () => texts[random(texts.length)]!;
function anyValue(depth: number): unknown {
  switch (random(depth > 0 ? 6 : 4)) {
    case 0: return random(2) === 0;
    case 1: return random(1000);
    case 2: case 3: return anyText();
    case 4: return Array.from({ length: random(4) }, () => anyValue(depth - 1));
    default: return Object.fromEntries(Array.from({ length: random(4) }, () => [anyText(), anyValue(depth - 1)]));
  }
}

test("YAML is read as the value that it was written from, also as YAML 1.1", () => {
  for (let i = 0; i < 3000; i++) {
    const value = anyValue(4);
    for (const version of ["1.1", "1.2"] as const) assert.deepEqual(parse(yamlOf(value), { version }), value, yamlOf(value));
  }
});
