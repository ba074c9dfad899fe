// Checks the links of the patch studio. browser_test.go bundles its source and starts this with the path of the bundle.
import assert from "node:assert/strict";

const { fragment, fromFragment, largest, Unreadable } = await import(process.argv[2]);
let seed = 42;
const random = (below) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
};
const letters = ["a", "Z", "0", " ", "\n", "\r\n", "\t", "\0", '"', "\\", "é", "漢", "🎉", "\ud800", "\u2028", "\ufeff", "#", "+", "/", "="];
const word = () => Array.from({ length: random(200) }, () => letters[random(letters.length)]).join("");
const work = (text) => ({ configuration: text(), tenant: text(), host: text(), resource: text(), name: text(), namespace: text(), mode: text() });

for (let i = 0; i < 1000; i++) {
  const given = work(word);
  const link = await fragment(given);
  assert.match(link, /^#1[\w-]+$/);
  assert.deepEqual(await fromFragment(link), given);
}
const large = work(() => "");
const refused = async (link, why) => assert.rejects(fromFragment(link), (failure) => failure instanceof Unreadable && failure.why === why);
await refused(await fragment({ ...large, tenant: "x".repeat(largest) }), "linkLarge");
const good = await fragment(work(() => "text"));
await refused(good.slice(0, -4), "linkBroken");
await refused(`#2${good.slice(2)}`, "linkVersion");
console.log("ok");
