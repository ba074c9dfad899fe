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

/** A platform whose lists are tables, and whose watches send what a test has them send. */
function serve(lists: (Table<Thing> | number)[]) {
  const asked: ReceivedRequest[] = [];
  const watches: { send(text: string | Uint8Array): void; end(): void; asked: ReceivedRequest }[] = [];
  answerWith((one) => {
    asked.push(one);
    if (!one.query.has("watch")) {
      const next = lists.length > 1 ? lists.shift()! : lists[0]!;
      return typeof next === "number" ? Response.json({ message: "no", details: { retryAfterSeconds: next } }, { status: 503 }) : Response.json(next);
    }
    let out: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (controller) => { out = controller; } });
    one.signal?.addEventListener("abort", () => out.error(new Error("aborted")));
    watches.push({ asked: one, send: (text) => out.enqueue(typeof text === "string" ? new TextEncoder().encode(text) : text), end: () => out.close() });
    return new Response(body);
  });
  return { asked, watches, reads: () => asked.filter(({ query }) => !query.has("watch")).length };
}

/** Begins to follow a list, with a clock that the test moves. */
async function begin(t: Parameters<Parameters<typeof test>[1]>[0], lists: (Table<Thing> | number)[]) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
  const platform = serve(lists);
  const it = watchList<Thing>("/things");
  const end = it.begin();
  t.after(() => { document.hidden = false; end(); });
  await settle();
  const after = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      t.mock.timers.tick(1000);
      await settle();
    }
  };
  return { ...platform, it, end, after, names: () => it.rows.value.map(({ object }) => `${object.metadata.name}=${object.value}`).join(" ") };
}

test("a list is read, and followed from its version", async (t) => {
  const { it, asked, watches, names } = await begin(t, [{ ...table([row("b"), row("a")], { resourceVersion: "10", continue: "next" }), columnDefinitions: [{ name: "Name", description: "", priority: 0 }] }]);
  assert.equal(names(), "a= b=");
  assert.deepEqual([it.mode.value, it.loaded.value, it.more.value, it.problem.value, it.columns.value.length], ["stream", true, "next", null, 1]);
  assert.deepEqual(asked.map(({ path, query }) => [path, query.get("limit"), query.get("watch"), query.get("resourceVersion")]), [["/things", "500", null, null], ["/things", null, "true", "10"]]);
  assert.deepEqual([watches[0]!.asked.query.get("allowWatchBookmarks"), watches[0]!.asked.query.get("includeObject")], ["true", "Object"]);
});

test("events change the rows with their uid; a bookmark changes none", async (t) => {
  const { it, watches: [watch], names } = await begin(t, [table([row("a", "1"), row("b", "1")])]);
  watch!.send(event("ADDED", [row("c", "1")], "11") + event("MODIFIED", [row("a", "2")], "12"));
  await settle();
  assert.equal(names(), "a=2 b=1 c=1");
  watch!.send(event("DELETED", [row("b")], "13"));
  await settle();
  assert.equal(names(), "a=2 c=1");
  const before = it.rows.value;
  watch!.send(event("BOOKMARK", [row("bookmark", "", { resourceVersion: "14" })], "14"));
  await settle();
  assert(it.rows.value === before, "the rows are drawn again for a bookmark");
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
  const { it, watches, after, reads } = await begin(t, [table([])]);
  for (const [i, [line, version]] of ([
    [event("BOOKMARK", [], "20"), "20"], [event("BOOKMARK", [row("x", "", { resourceVersion: "25" })]), "25"], [event("ADDED", [row("a", "", { resourceVersion: "30" })]), "30"],
    [event("MODIFIED", [row("a")], "31"), "31"], ["", "31"],
  ] as const).entries()) {
    watches[i]!.send(line);
    await after(21);
    watches[i]!.end();
    await settle();
    assert.equal(watches[i + 1]!.asked.query.get("resourceVersion"), version);
  }
  assert.deepEqual([reads(), it.mode.value], [1, "stream"]);
});

test("a version that is gone has the list read again", async (t) => {
  const { watches, after, names, reads } = await begin(t, [table([row("old")]), table([row("new")], { resourceVersion: "50" })]);
  await after(21);
  watches[0]!.send('{"type":"ERROR","object":{"code":410}}\n');
  watches[0]!.end();
  await settle();
  assert.deepEqual([names(), reads(), watches[1]!.asked.query.get("resourceVersion")], ["new=", 2, "50"]);
});

test("a deployment that ends watches early is asked every 30 s", async (t) => {
  const { it, watches, after, reads } = await begin(t, [table([])]);
  await after(19);
  watches[0]!.end();
  await settle();
  assert.deepEqual([it.mode.value, reads(), watches.length], ["poll", 2, 1]);
  await after(29);
  assert.equal(reads(), 2);
  await after(1);
  assert.deepEqual([reads(), watches.length], [3, 1]);
  await it.refresh();
  assert.equal(reads(), 4);
});

test("a failure is shown and asked again later: each time twice as long, and not before the platform says", async (t) => {
  const { it, after, reads } = await begin(t, [0, 0, 10, table([row("a")])]);
  assert.deepEqual([it.problem.value?.code, it.loaded.value], [503, false]);
  for (const seconds of [2, 4, 10]) {
    const before = reads();
    await after(seconds - 1);
    assert.equal(reads(), before);
    await after(1);
    assert.equal(reads(), before + 1);
  }
  assert.deepEqual([it.problem.value, it.loaded.value, it.rows.value.length], [null, true, 1]);
});

test("nothing is asked while nobody looks", async (t) => {
  const { it, watches, after, asked } = await begin(t, [table([])]);
  document.hidden = true;
  dispatch("visibilitychange");
  await settle();
  assert.deepEqual([it.mode.value, watches[0]!.asked.signal?.aborted], ["paused", true]);
  await after(60);
  assert.equal(asked.length, 2);
  document.hidden = false;
  dispatch("visibilitychange");
  await settle();
  assert.deepEqual([it.mode.value, asked.length], ["stream", 4]);
  // Five minutes without a key press or a click.
  await after(4 * 60);
  dispatch("keydown");
  await after(5 * 60);
  assert.equal(it.mode.value, "stream");
  await after(2);
  assert.equal(it.mode.value, "paused");
  const before = asked.length;
  await after(60);
  assert.equal(asked.length, before);
  dispatch("pointerdown");
  await settle();
  assert.deepEqual([it.mode.value, asked.length], ["stream", before + 2]);
});

test("the end leaves neither a request nor a listener", async (t) => {
  const { watches, end, after, asked } = await begin(t, [table([])]);
  end();
  await settle();
  assert.equal(watches[0]!.asked.signal?.aborted, true);
  await after(60);
  assert.deepEqual([asked.length, [...listeners.values()].reduce((sum, { size }) => sum + size, 0)], [2, 0]);
});

test("rows are sorted by namespace, then by name, and pages are added", async (t) => {
  const { it, asked } = await begin(t, [
    table([row("b", "", { namespace: "p-b" }), row("c", "", { namespace: "p-a" }), row("z")], { resourceVersion: "10", continue: "second" }), table([row("a", "", { namespace: "p-b" })], { resourceVersion: "11" }),
  ]);
  const names = () => it.rows.value.map(({ object: { metadata } }) => `${metadata.namespace ?? ""}/${metadata.name}`);
  assert.deepEqual(names(), ["/z", "p-a/c", "p-b/b"]);
  await it.next();
  assert.equal(asked.at(-1)!.query.get("continue"), "second");
  assert.deepEqual([names(), it.more.value], [["/z", "p-a/c", "p-b/a", "p-b/b"], ""]);
});
