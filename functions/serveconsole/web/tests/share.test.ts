import assert from "node:assert/strict";
import { test } from "node:test";
import { workFragment, parseFragment, maxWorkBytes, Unreadable, parseWork, workText, type Work } from "../studio/share";

let seed = 42;
function random(below: number): number {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
}
const letters = ["a", "Z", "0", " ", "\n", "\r\n", "\t", "\0", '"', "\\", "é", "漢", "🎉", "\ud800", "\u2028", "\ufeff", "#", "+", "/", "="];
const word = () => Array.from({ length: random(200) }, () => letters[random(letters.length)]!).join("");
const workWith = (text: () => string): Work => ({ configuration: text(), tenant: text(), host: text(), resource: text(), name: text(), namespace: text(), mode: text(), naming: text() });
const refusing = (why: Unreadable["why"]) => (failure: unknown) => failure instanceof Unreadable && failure.why === why;
/** A link whose data is packed from any bytes. Those that are cut off are missing at the end of what is packed. */
async function linkTo(bytes: Uint8Array<ArrayBuffer>, cutOff = 0): Promise<string> {
  const packed = new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer());
  return `#1${btoa(String.fromCharCode(...packed.slice(0, packed.length - cutOff))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

test("a link and a file return each text as it was", async () => {
  for (let i = 0; i < 1000; i++) {
    const given = workWith(word);
    const link = await workFragment(given);
    assert.match(link, /^#1[\w-]+$/);
    assert.deepEqual(await parseFragment(link), given);
    assert.deepEqual(parseWork(workText(given)), given);
  }
});

test("a link that cannot be read is refused", async () => {
  const good = await workFragment(workWith(() => "text"));
  for (const [link, why] of [
    [good.slice(0, -4), "studio.linkBroken"], ["#1", "studio.linkBroken"], ["#1!!!", "studio.linkBroken"], [`${good}=`, "studio.linkBroken"], ["#1abc", "studio.linkBroken"],
    [`#2${good.slice(2)}`, "studio.linkVersion"], [good.slice(1), "studio.linkVersion"], ["", "studio.linkVersion"],
  ] as const) {
    await assert.rejects(parseFragment(link), refusing(why), link);
  }
  // What is not UTF-8 is not replaced by other letters, and a mark of the order of bytes is no JSON.
  const whole = new TextEncoder().encode(workText(workWith(() => "a\u00e9")));
  assert.deepEqual(await parseFragment(await linkTo(whole)), workWith(() => "a\u00e9"));
  await assert.rejects(parseFragment(await linkTo(whole.map((byte) => (byte === 0xc3 ? 0xff : byte)))), refusing("studio.linkBroken"));
  await assert.rejects(parseFragment(await linkTo(Uint8Array.of(0xef, 0xbb, 0xbf, ...whole))), refusing("studio.linkBroken"));
});

test("a link is unpacked up to the largest work, and no further", async () => {
  const empty = workWith(() => "");
  const room = maxWorkBytes - workText(empty).length;
  assert.equal((await parseFragment(await workFragment({ ...empty, tenant: "x".repeat(room) }))).tenant.length, room);
  await assert.rejects(parseFragment(await workFragment({ ...empty, tenant: "x".repeat(room + 1) })), refusing("studio.linkLarge"));
  assert.throws(() => parseWork(workText({ ...empty, tenant: "x".repeat(room + 1) })), refusing("studio.linkLarge"));
  // What is broken behind that is not found.
  await assert.rejects(parseFragment(await linkTo(new Uint8Array(1.5 * maxWorkBytes), 4)), refusing("studio.linkLarge"));
  await assert.rejects(parseFragment(await linkTo(new Uint8Array(0.5 * maxWorkBytes), 4)), refusing("studio.linkBroken"));
});

test("work of an earlier version has the neutral naming", () => {
  const { naming: _, ...earlier } = workWith(() => "text");
  assert.deepEqual(parseWork(JSON.stringify(earlier)), { ...earlier, naming: "neutral" });
});

test("work has all its fields as texts, and no others", () => {
  const whole = workWith(() => "text");
  for (const text of ["", "[]", "null", "1", '"text"', "{}", "{", ...Object.keys(whole).flatMap((field) => [
    ...(field === "naming" ? [] : [JSON.stringify({ ...whole, [field]: undefined })]),
    JSON.stringify({ ...whole, [field]: 1 }), JSON.stringify({ ...whole, [field]: null }),
  ])]) {
    assert.throws(() => parseWork(text), refusing("studio.linkBroken"), text);
  }
  assert.deepEqual(parseWork(JSON.stringify({ ...whole, __proto__: null, extra: "text" })), whole);
  assert.equal(workText({ ...whole, extra: "text" } as Work), workText(whole));
});
