import { answerWith, dispatch, document, listeners, type ReceivedRequest } from "./environment";
import assert from "node:assert/strict";
import { test } from "node:test";
import { watchList } from "../live";
import type { Event, Meta, Row, Table } from "../api";

interface Thing {
  metadata: Meta;
  value: string;
}

const row = (name: string, value = "", more: Partial<Meta> = {}): Row<Thing> => ({ cells: [], object: { metadata: { name, uid: name, creationTimestamp: "", ...more }, value } });
const table = (rows: Row<Thing>[], metadata: Table<Thing>["metadata"] = { resourceVersion: "10" }): Table<Thing> => ({ rows, metadata });
const event = (type: Event<Thing>["type"], rows: Row<Thing>[], resourceVersion?: string) => `${JSON.stringify({ type, object: table(rows, { resourceVersion }) })}\n`;

/** Lets everything run that waits for no time. */
async function settle() {
  for (let i = 0; i < 50; i++) await new Promise<void>((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { port1.close(); done(); }; port2.postMessage(0); });
}

/** A platform whose lists are tables, and whose watches send what a test has them send, and a bookmark every 20 seconds until silence is called. */
function serve(lists: (Table<Thing> | number)[]) {
  const requests: ReceivedRequest[] = [];
  const watches: { send(text: string | Uint8Array): void; end(): void; silence(): void; request: ReceivedRequest }[] = [];
  answerWith((request) => {
    requests.push(request);
    if (!request.query.has("watch")) {
      const next = lists.length > 1 ? lists.shift()! : lists[0]!;
      return typeof next === "number" ? Response.json({ message: "no", details: { retryAfterSeconds: next } }, { status: 503 }) : Response.json(next);
    }
    let stream: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (controller) => { stream = controller; } });
    const send = (text: string | Uint8Array) => stream.enqueue(typeof text === "string" ? new TextEncoder().encode(text) : text);
    const bookmarks = setInterval(() => send(event("BOOKMARK", [])), 20_000);
    const silence = () => clearInterval(bookmarks);
    request.signal?.addEventListener("abort", () => { silence(); stream.error(new Error("aborted")); });
    watches.push({ request, send, silence, end: () => { silence(); stream.close(); } });
    return new Response(body);
  });
  return { requests, watches, reads: () => requests.filter(({ query }) => !query.has("watch")).length };
}

/** Begins to follow a list, with a clock that the test moves. */
async function begin(t: Parameters<Parameters<typeof test>[1]>[0], lists: (Table<Thing> | number)[]) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  const platform = serve(lists);
  const list = watchList<Thing>("/things");
  const end = list.begin();
  t.after(() => { document.hidden = false; end(); });
  await settle();
  const advance = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      t.mock.timers.tick(1000);
      await settle();
    }
  };
  return { ...platform, list, end, advance, names: () => list.rows.value.map(({ object }) => `${object.metadata.name}=${object.value}`).join(" ") };
}

test("a list is read, and followed from its version", async (t) => {
  const { list, requests, watches, names } = await begin(t, [{ ...table([row("b"), row("a")], { resourceVersion: "10", continue: "next" }), columnDefinitions: [{ name: "Name", description: "", priority: 0 }] }]);
  assert.equal(names(), "a= b=");
  assert.deepEqual([list.mode.value, list.loaded.value, list.more.value, list.problem.value, list.columns.value.length], ["stream", true, "next", null, 1]);
  assert.deepEqual(requests.map(({ path, query }) => [path, query.get("limit"), query.get("watch"), query.get("resourceVersion")]), [["/things", "500", null, null], ["/things", null, "true", "10"]]);
  assert.deepEqual([watches[0]!.request.query.get("allowWatchBookmarks"), watches[0]!.request.query.get("includeObject")], ["true", "Object"]);
});

test("events change the rows with their uid; a bookmark changes none", async (t) => {
  const { list, watches: [watch], names } = await begin(t, [table([row("a", "1"), row("b", "1")])]);
  watch!.send(event("ADDED", [row("c", "1")], "11") + event("MODIFIED", [row("a", "2")], "12"));
  await settle();
  assert.equal(names(), "a=2 b=1 c=1");
  watch!.send(event("DELETED", [row("b")], "13"));
  await settle();
  assert.equal(names(), "a=2 c=1");
  const before = list.rows.value;
  watch!.send(event("BOOKMARK", [row("bookmark", "", { resourceVersion: "14" })], "14"));
  await settle();
  assert(list.rows.value === before, "the rows are drawn again for a bookmark");
});

test("a line may come in pieces, and several at once", async (t) => {
  const { watches: [watch], names } = await begin(t, [table([])]);
  const bytes = new TextEncoder().encode(`${event("ADDED", [row("a", "漢🎉")])}\n${event("ADDED", [row("b", "é")])}`);
  for (const byte of bytes.slice(0, -1)) watch!.send(Uint8Array.of(byte));
  await settle();
  assert.equal(names(), "a=漢🎉");
  watch!.send(bytes.slice(-1));
  await settle();
  assert.equal(names(), "a=漢🎉 b=é");
});

test("a watch that ends goes on from the last version that it had, and the list is not read again", async (t) => {
  const { list, watches, advance, reads } = await begin(t, [table([])]);
  for (const [i, [line, version]] of ([
    [event("BOOKMARK", [], "20"), "20"], [event("BOOKMARK", [row("x", "", { resourceVersion: "25" })]), "25"], [event("ADDED", [row("a", "", { resourceVersion: "30" })]), "30"],
    [event("MODIFIED", [row("a")], "31"), "31"], ["", "31"],
  ] as const).entries()) {
    watches[i]!.send(line);
    await advance(21);
    watches[i]!.end();
    await settle();
    assert.equal(watches[i + 1]!.request.query.get("resourceVersion"), version);
  }
  assert.deepEqual([reads(), list.mode.value], [1, "stream"]);
});

test("a version that is gone has the list read again", async (t) => {
  const { watches, advance, names, reads } = await begin(t, [table([row("old")]), table([row("new")], { resourceVersion: "50" })]);
  await advance(21);
  watches[0]!.send('{"type":"ERROR","object":{"code":410}}\n');
  watches[0]!.end();
  await settle();
  assert.deepEqual([names(), reads(), watches[1]!.request.query.get("resourceVersion")], ["new=", 2, "50"]);
});

test("a deployment that ends watches early is asked every 30 s", async (t) => {
  const { list, watches, advance, reads } = await begin(t, [table([])]);
  await advance(19);
  watches[0]!.end();
  await settle();
  assert.deepEqual([list.mode.value, reads(), watches.length], ["poll", 2, 1]);
  await advance(29);
  assert.equal(reads(), 2);
  await advance(1);
  assert.deepEqual([reads(), watches.length], [3, 1]);
  await list.refresh();
  assert.equal(reads(), 4);
});

test("a failure is shown and asked again later: each time twice as long, and not before the platform says", async (t) => {
  const { list, advance, reads } = await begin(t, [0, 0, 10, table([row("a")])]);
  assert.deepEqual([list.problem.value?.code, list.loaded.value], [503, false]);
  for (const seconds of [2, 4, 10]) {
    const before = reads();
    await advance(seconds - 1);
    assert.equal(reads(), before);
    await advance(1);
    assert.equal(reads(), before + 1);
  }
  assert.deepEqual([list.problem.value, list.loaded.value, list.rows.value.length], [null, true, 1]);
});

test("nothing is asked while nobody looks", async (t) => {
  const { list, watches, advance, requests } = await begin(t, [table([])]);
  document.hidden = true;
  dispatch("visibilitychange");
  await settle();
  assert.deepEqual([list.mode.value, watches[0]!.request.signal?.aborted], ["paused", true]);
  await advance(60);
  assert.equal(requests.length, 2);
  document.hidden = false;
  dispatch("visibilitychange");
  await settle();
  assert.deepEqual([list.mode.value, requests.length], ["stream", 4]);
  // Five minutes without a key press or a click.
  await advance(4 * 60);
  dispatch("keydown");
  await advance(5 * 60);
  assert.equal(list.mode.value, "stream");
  await advance(2);
  assert.equal(list.mode.value, "paused");
  const before = requests.length;
  await advance(60);
  assert.equal(requests.length, before);
  dispatch("pointerdown");
  await settle();
  assert.deepEqual([list.mode.value, requests.length], ["stream", before + 2]);
});

test("a page that wakes up reads its list again at once, and once: its stream may be dead without an error", async (t) => {
  const { list, watches, advance, names, requests } = await begin(t, [table([row("old")]), table([row("new")], { resourceVersion: "50" })]);
  t.mock.timers.setTime(Date.now() + 3_600_000);
  await advance(1);
  assert.deepEqual([names(), list.mode.value, watches[0]!.request.signal?.aborted, requests.length], ["new=", "stream", true, 4]);
  await advance(60);
  assert.equal(requests.length, 4);
});

test("a tab that is shown after an hour reads its list again at once, and once", async (t) => {
  const { list, advance, names, requests } = await begin(t, [table([row("old")]), table([row("new")])]);
  document.hidden = true;
  dispatch("visibilitychange");
  t.mock.timers.setTime(Date.now() + 3_600_000);
  await advance(1);
  assert.deepEqual([list.mode.value, requests.length], ["paused", 2]);
  t.mock.timers.setTime(Date.now() + 3_600_000);
  document.hidden = false;
  dispatch("visibilitychange");
  await settle();
  assert.deepEqual([names(), list.mode.value, requests.length], ["new=", "stream", 4]);
  await advance(60);
  assert.equal(requests.length, 4);
});

test("a stream without bookmarks is not live: the list says when it was last heard, and is read again", async (t) => {
  const { list, watches, advance, reads, names } = await begin(t, [table([row("old")]), 0, table([row("new")])]);
  await advance(70);
  assert.deepEqual([list.mode.value, watches.length, reads()], ["stream", 1, 1]);
  watches[0]!.silence();
  const heard = list.lastHeard.value;
  await advance(34);
  assert.equal(list.mode.value, "stream");
  await advance(1);
  assert.deepEqual([list.mode.value, list.problem.value?.code, list.lastHeard.value, watches[0]!.request.signal?.aborted, names()], ["failed", 0, heard, true, "old="]);
  assert.equal(Date.now() - list.lastHeard.value, 45_000);
  await advance(2);
  assert.deepEqual([list.mode.value, list.problem.value?.code, reads()], ["failed", 503, 2]);
  await advance(4);
  assert.deepEqual([list.mode.value, list.problem.value, reads(), names()], ["stream", null, 3, "new="]);
});

test("a read without an answer is given up, too", async (t) => {
  const { list, advance } = await begin(t, [table([row("a")])]);
  answerWith(({ signal }) => new Promise((_, refuse) => signal?.addEventListener("abort", () => refuse(new Error("aborted")))));
  dispatch("offline");
  await settle();
  await advance(2);
  assert.equal(list.mode.value, "connecting");
  await advance(45);
  assert.deepEqual([list.mode.value, list.problem.value?.code], ["failed", 0]);
});

test("a browser that is offline is not live, and reads again when it is online", async (t) => {
  const { list, watches, reads } = await begin(t, [table([row("a")])]);
  dispatch("offline");
  await settle();
  assert.deepEqual([list.mode.value, watches[0]!.request.signal?.aborted, reads()], ["failed", true, 1]);
  dispatch("online");
  await settle();
  assert.deepEqual([list.mode.value, list.problem.value, reads(), watches.length], ["stream", null, 2, 2]);
});

test("the end leaves neither a request nor a listener", async (t) => {
  const { watches, end, advance, requests } = await begin(t, [table([])]);
  end();
  await settle();
  assert.equal(watches[0]!.request.signal?.aborted, true);
  await advance(60);
  assert.deepEqual([requests.length, [...listeners.values()].reduce((sum, { size }) => sum + size, 0)], [2, 0]);
});

test("rows are sorted by namespace, then by name, and pages are added", async (t) => {
  const { list, requests } = await begin(t, [
    table([row("b", "", { namespace: "p-b" }), row("c", "", { namespace: "p-a" }), row("z")], { resourceVersion: "10", continue: "second" }), table([row("a", "", { namespace: "p-b" })], { resourceVersion: "11" }),
  ]);
  const names = () => list.rows.value.map(({ object: { metadata } }) => `${metadata.namespace ?? ""}/${metadata.name}`);
  assert.deepEqual(names(), ["/z", "p-a/c", "p-b/b"]);
  await list.next();
  assert.equal(requests.at(-1)!.query.get("continue"), "second");
  assert.deepEqual([names(), list.more.value], [["/z", "p-a/c", "p-b/a", "p-b/b"], ""]);
});

test("the count is of all pages, whatever happens on those that were not read", async (t) => {
  const { list, watches: [watch] } = await begin(t, [table([row("a"), row("c")], { resourceVersion: "10", continue: "second", remainingItemCount: 3 }), table([row("x"), row("y"), row("z")], { resourceVersion: "10" })]);
  const count = async (...events: string[]) => {
    for (const text of events) watch!.send(text);
    await settle();
    return list.total.value;
  };
  assert.equal(list.total.value, 5);
  assert.equal(await count(event("ADDED", [row("b")], "11")), 6);
  assert.equal(await count(event("DELETED", [row("b")], "12")), 5);
  assert.equal(await count(event("MODIFIED", [row("x", "changed")], "13")), 5, "an object of a page that was not read");
  assert.equal(await count(event("ADDED", [row("w")], "14")), 6);
  assert.equal(await count(event("DELETED", [row("w")], "15")), 5);
  assert.equal(await count(event("DELETED", [row("z")], "16")), 4);
});

test("a list that was read on is read again as far, and shown at once", async (t) => {
  const { list, watches, advance, reads } = await begin(t, [
    table([row("a")], { resourceVersion: "10", continue: "second", remainingItemCount: 1 }), table([row("b")], { resourceVersion: "10" }),
    table([row("a", "2")], { resourceVersion: "20", continue: "second", remainingItemCount: 1 }), table([row("b", "2")], { resourceVersion: "20" }),
  ]);
  await Promise.all([list.next(), list.next()]);
  assert.deepEqual([list.rows.value.length, list.total.value, reads()], [2, 2, 2], "a page is read once");
  const lengths: number[] = [];
  list.rows.subscribe((rows) => lengths.push(rows.length));
  await advance(25); // the watch does not end at once
  watches[0]!.send(`${JSON.stringify({ type: "ERROR", object: { code: 410 } })}\n`);
  watches[0]!.end();
  await settle();
  assert.deepEqual([list.rows.value.map(({ object }) => object.value), lengths], [["2", "2"], [2, 2]]);
});

test("a list says when it is tried again, and is tried at once when somebody wants", async (t) => {
  const { list, reads, advance } = await begin(t, [30, table([row("a")])]);
  assert.deepEqual([list.mode.value, list.retryTime.value - Date.now()], ["failed", 30_000]);
  await advance(5);
  assert.equal(reads(), 1);
  list.retry();
  await settle();
  assert.deepEqual([list.mode.value, list.problem.value, reads()], ["stream", null, 2]);
});
