import { batch, computed, signal } from "@preact/signals";
import { list, watch, Refusal, type Column, type Meta, type Row } from "./api";

/** How a list is kept up to date. "still": it is read on demand. */
export type Mode = "stream" | "poll" | "paused" | "still";

/** How many rows a page of the list has. */
const pageSize = 500;
/** Where watches end sooner than this, in milliseconds, the list is polled: each watch would keep a function running in vain. */
const shortestStream = 20_000;
const pollInterval = 30_000;
const idleAfter = 5 * 60_000;

/** Lists are sorted by namespace, then by name. No name contains a space. */
const sortKey = ({ object: { metadata } }: Row<{ metadata: Meta }>) => `${metadata.namespace ?? ""} ${metadata.name}`;

/**
 * Keeps a list up to date while the tab is visible. Nothing is requested while the tab is hidden, nor after five minutes
 * without a key press or a click.
 */
export function watchList<T extends { metadata: Meta }>(path: string) {
  const columns = signal<Column[]>([]);
  const rows = signal<Map<string, Row<T>>>(new Map());
  const more = signal("");
  const mode = signal<Mode>("stream");
  const problem = signal<Refusal | null>(null);
  const loaded = signal(false);
  let polling = false;
  let listVersion = "";
  let current: AbortController | null = null;
  let lastInput = Date.now();

  const idle = () => document.hidden || Date.now() - lastInput > idleAfter;
  const wait = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });

  async function read(signal: AbortSignal) {
    const table = await list<T>(path, { limit: String(pageSize) }, signal);
    batch(() => {
      if (table.columnDefinitions) columns.value = table.columnDefinitions;
      rows.value = new Map((table.rows ?? []).map((row) => [row.object.metadata.uid, row]));
      more.value = table.metadata?.continue ?? "";
      problem.value = null;
      loaded.value = true;
    });
    listVersion = table.metadata?.resourceVersion ?? "";
  }

  async function follow(signal: AbortSignal) {
    const beginning = Date.now();
    let tooOld = false;
    await watch<T>(path, listVersion, signal, (event) => {
      if (event.type === "ERROR") {
        tooOld = true;
        return;
      }
      listVersion = event.object.metadata?.resourceVersion ?? listVersion;
      const next = new Map(rows.value);
      for (const row of event.object.rows ?? []) {
        const { uid, resourceVersion } = row.object.metadata;
        if (resourceVersion) listVersion = resourceVersion;
        if (event.type === "DELETED") next.delete(uid);
        else if (event.type !== "BOOKMARK") next.set(uid, row);
      }
      if (event.type !== "BOOKMARK") rows.value = next;
    });
    if (!signal.aborted && Date.now() - beginning < shortestStream) polling = true;
    if (tooOld) await read(signal);
  }

  async function run(signal: AbortSignal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (failures > 0 || listVersion === "" || polling) await read(signal);
        failures = 0;
        mode.value = polling ? "poll" : "stream";
        if (polling) await wait(pollInterval, signal);
        else await follow(signal);
      } catch (failure) {
        if (signal.aborted) return;
        problem.value = failure instanceof Refusal ? failure : new Refusal(0, "");
        failures++;
        await wait(Math.min(60_000, Math.max(1000 * 2 ** failures, 1000 * problem.value.retryAfter)), signal);
      }
    }
  }

  function stop() {
    current?.abort();
    current = null;
  }

  function start() {
    if (idle()) {
      if (current) { stop(); mode.value = "paused"; }
      return;
    }
    if (current) return;
    current = new AbortController();
    listVersion = "";
    void run(current.signal);
  }

  function noteInput() {
    lastInput = Date.now();
    if (!current) start();
  }

  /** Starts to keep the list up to date, and returns the function that stops it. */
  function begin(): () => void {
    const timer = setInterval(start, 1000);
    document.addEventListener("visibilitychange", start);
    for (const name of ["keydown", "pointerdown"]) document.addEventListener(name, noteInput, { passive: true });
    lastInput = Date.now();
    start();
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", start);
      for (const name of ["keydown", "pointerdown"]) document.removeEventListener(name, noteInput);
      stop();
    };
  }

  /** Reads the list again at once after a write of the page, unless the list streams. */
  async function refresh() {
    if (mode.value !== "stream" && current) await read(current.signal).catch(() => undefined);
  }

  /** Reads the next page. */
  async function readNextPage() {
    try {
      const table = await list<T>(path, { limit: String(pageSize), continue: more.value });
      batch(() => {
        rows.value = new Map([...rows.value, ...(table.rows ?? []).map((row) => [row.object.metadata.uid, row] as const)]);
        more.value = table.metadata?.continue ?? "";
        problem.value = null;
      });
    } catch (failure) {
      problem.value = failure instanceof Refusal ? failure : new Refusal(0, "");
    }
  }

  const sorted = computed(() => [...rows.value.values()].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)));
  return { columns, rows: sorted, more, mode, problem, loaded, begin, refresh, next: readNextPage, resume: noteInput };
}
