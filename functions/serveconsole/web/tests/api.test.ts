import { answerWith, type ReceivedRequest } from "./environment";
import assert from "node:assert/strict";
import { test } from "node:test";
import { listPages, Refusal } from "../api";

/** A platform whose list has pages with these positions after them, and what it was asked. A position that is undefined is a failure. */
function serve(positions: (string | undefined)[]): ReceivedRequest[] {
  const requests: ReceivedRequest[] = [];
  answerWith((request) => {
    const position = positions[requests.push(request) - 1];
    return position === undefined ? Response.json({ message: "no" }, { status: 503 }) : Response.json({ rows: [{ object: requests.length }], metadata: { ...(position && { continue: position }) } });
  });
  return requests;
}

/** Reads pages, and returns the numbers of those that were read. */
async function numbersOf(pages: AsyncIterable<{ rows?: { object: unknown }[] }>): Promise<unknown[]> {
  const numbers: unknown[] = [];
  for await (const { rows = [] } of pages) numbers.push(...rows.map(({ object }) => object));
  return numbers;
}

const query = { limit: "2", fieldSelector: "a=b" };
const positionsOf = (requests: ReceivedRequest[]) => requests.map(({ query }) => query.get("continue"));

test("all pages of a list are read, each from where the one before has ended", async () => {
  const requests = serve(["second", "third", ""]);
  assert.deepEqual(await numbersOf(listPages("/things", query)), [1, 2, 3]);
  assert.deepEqual(positionsOf(requests), [null, "second", "third"]);
  for (const { path, query } of requests) assert.deepEqual([path, query.get("limit"), query.get("fieldSelector"), query.get("includeObject")], ["/things", "2", "a=b", "Object"]);
});

test("reading goes on from a position, and ends after a number of pages or when the caller has enough", async () => {
  const bounded = serve(["third", "fourth", ""]);
  assert.deepEqual(await numbersOf(listPages("/things", query, { position: "second", most: 2 })), [1, 2]);
  assert.deepEqual(positionsOf(bounded), ["second", "third"]);
  const left = serve(["second", ""]);
  for await (const _ of listPages("/things", query)) break;
  assert.deepEqual(positionsOf(left), [null]);
});

test("a failure of a page is thrown, and an abort ends the reading", async () => {
  const failing = serve(["second", undefined]);
  await assert.rejects(numbersOf(listPages("/things", query)), (failure) => failure instanceof Refusal && failure.code === 503);
  assert.deepEqual(positionsOf(failing), [null, "second"]);
  const controller = new AbortController();
  answerWith(({ signal }) => { assert.equal(signal, controller.signal); throw new Error("aborted"); });
  controller.abort();
  await assert.rejects(numbersOf(listPages("/things", query, { signal: controller.signal })), (failure) => !(failure instanceof Refusal));
});
