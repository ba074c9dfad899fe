import { batch, computed, signal } from "@preact/signals";
import { list, listPages, session, watch, Refusal, type Column, type Meta, type Row, type Table } from "./api";

/** How a list is kept up to date. "still": it is read on demand. "failed": the last request failed, and another one follows. */
export type Mode = "connecting" | "stream" | "poll" | "paused" | "failed" | "still";

/** How many rows a page of the list has. */
const pageSize = 500;
/** Where watches end sooner than this, in milliseconds, the list is polled: each watch would keep a function running in vain. */
const shortestStream = 20_000;
const pollInterval = 30_000;
const idleAfter = 5 * 60_000;
/** The timer of a list runs each second. After a longer pause, in milliseconds, the page has slept: its stream may be dead without an error. */
const longestPause = 30_000;
/** The API sends a bookmark every 20 seconds. Where nothing has come for this long, in milliseconds, two are missing: the connection is lost. */
const longestSilence = 45_000;

/** Lists are sorted by namespace, then by name. No name contains a space. */
const sortKey = ({ object: { metadata } }: Row<{ metadata: Meta }>) => `${metadata.namespace ?? ""} ${metadata.name}`;

/**
 * Keeps a list up to date while the tab is visible. Nothing is requested while the tab is hidden, after the session has ended, nor after
 * five minutes without a key press or a click. When the tab becomes visible or wakes up, the list is read again at once.
 */
export function watchList<T extends { metadata: Meta }>(path: string) {
  const columns = signal<Column[]>([]);
  const rows = signal<Map<string, Row<T>>>(new Map());
  const more = signal("");
  const mode = signal<Mode>("connecting");
  /** How many objects are on the pages that follow the last one that was read. */
  const remaining = signal(0);
  /** When a failed request is sent again, in milliseconds. */
  const retryTime = signal(0);
  const reading = signal(false);
  /** When the platform sent something the last time, in milliseconds. 0: never. */
  const lastHeard = signal(0);
  let connection = new AbortController();
  let silenceTimer: ReturnType<typeof setTimeout> | undefined;
  let lastKey = "";
  let retry = () => {};
  const problem = signal<Refusal | null>(null);
  const loaded = signal(false);
  let polling = false;
  let listVersion = "";
  let current: AbortController | null = null;
  let lastInput = Date.now();
  let lastTick = 0;

  const idle = () => document.hidden || session.value === "ended" || Date.now() - lastInput > idleAfter;
  const wait = (ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      retry = () => { clearTimeout(timer); resolve(); };
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });

  /** Ends the request of the list: the platform is silent for too long, or the browser is offline. */
  function loseConnection() {
    clearTimeout(silenceTimer);
    connection.abort();
  }

  function limitSilence() {
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(loseConnection, longestSilence);
  }

  function noteHeard() {
    lastHeard.value = Date.now();
    limitSilence();
  }

  /** Reads as many pages as there are already, so that a list that was read on stays as long as it is. */
  async function read(signal: AbortSignal) {
    const next = new Map<string, Row<T>>();
    const size = rows.value.size;
    const pages: Table<T>[] = [];
    for await (const table of listPages<T>(path, { limit: String(pageSize) }, { signal })) {
      pages.push(table);
      noteHeard();
      for (const row of table.rows ?? []) next.set(row.object.metadata.uid, row);
      if (next.size >= size) break;
    }
    const first = pages[0]!;
    batch(() => {
      columns.value = first.columnDefinitions ?? columns.value;
      rows.value = next;
      setPosition(pages.at(-1)!);
      problem.value = null;
      loaded.value = true;
    });
    listVersion = first.metadata?.resourceVersion ?? "";
  }

  /** Keeps what a page says of the pages that follow it. */
  function setPosition({ metadata, rows = [] }: Table<T>) {
    more.value = metadata?.continue ?? "";
    remaining.value = more.value ? metadata?.remainingItemCount ?? 0 : 0;
    const last = rows.at(-1);
    if (last) lastKey = sortKey(last);
  }

  async function follow(signal: AbortSignal) {
    const beginning = Date.now();
    let tooOld = false;
    await watch<T>(path, listVersion, signal, () => { mode.value = "stream"; }, (event) => {
      noteHeard();
      if (event.type === "ERROR") {
        tooOld = true;
        return;
      }
      listVersion = event.object.metadata?.resourceVersion ?? listVersion;
      const next = new Map(rows.value);
      for (const row of event.object.rows ?? []) {
        const { uid, resourceVersion } = row.object.metadata;
        if (resourceVersion) listVersion = resourceVersion;
        // An object of a page that follows is one more there, or one less.
        if (more.value && sortKey(row) > lastKey) remaining.value += event.type === "ADDED" ? 1 : event.type === "DELETED" ? -1 : 0;
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
      const { signal: connected } = (connection = new AbortController());
      limitSilence();
      try {
        if (failures > 0 || listVersion === "" || polling) await read(connected);
        if (polling) {
          failures = 0;
          mode.value = "poll";
          await wait(pollInterval, signal);
        } else {
          await follow(connected);
          failures = 0;
        }
      } catch (failure) {
        loseConnection();
        if (signal.aborted) return;
        failures = mode.value === "stream" ? 1 : failures + 1;
        const refusal = failure instanceof Refusal ? failure : new Refusal(0, "");
        const pause = Math.min(60_000, Math.max(1000 * 2 ** failures, 1000 * refusal.retryAfter));
        batch(() => {
          problem.value = refusal;
          mode.value = "failed";
          retryTime.value = Date.now() + pause;
        });
        await wait(pause, signal);
        if (!signal.aborted) mode.value = "connecting";
      }
    }
  }

  function stop() {
    current?.abort();
    current = null;
    loseConnection();
  }

  function start() {
    if (idle()) {
      stop();
      mode.value = "paused";
      return;
    }
    if (current) return;
    current = new AbortController();
    listVersion = "";
    mode.value = "connecting";
    void run(current.signal);
  }

  function noteInput() {
    lastInput = Date.now();
    if (!current) start();
  }

  /** Starts or stops what keeps the list up to date, and starts it anew if the page has slept. */
  function tick() {
    const now = Date.now();
    const slept = now - lastTick > longestPause;
    lastTick = now;
    if (slept && !document.hidden) lastInput = now;
    if (slept) stop();
    start();
  }

  /** A tab that becomes visible is used. */
  function onVisibility() {
    if (!document.hidden) lastInput = lastTick = Date.now();
    start();
  }

  /** Starts to keep the list up to date, and returns the function that stops it. */
  function begin(): () => void {
    const onOnline = () => retry();
    addEventListener("offline", loseConnection);
    addEventListener("online", onOnline);
    const timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", onVisibility);
    for (const name of ["keydown", "pointerdown"]) document.addEventListener(name, noteInput, { passive: true });
    lastInput = lastTick = Date.now();
    start();
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", onVisibility);
      for (const name of ["keydown", "pointerdown"]) document.removeEventListener(name, noteInput);
      removeEventListener("offline", loseConnection);
      removeEventListener("online", onOnline);
      stop();
    };
  }

  /** Reads the list again at once after a write of the page, unless the list streams. */
  async function refresh() {
    if (mode.value !== "stream" && current) await read(current.signal).catch(() => undefined);
  }

  /** Reads the next page, unless one is being read. */
  async function readNextPage() {
    const position = more.value;
    if (!position || reading.value) return;
    reading.value = true;
    try {
      const table = await list<T>(path, { limit: String(pageSize), continue: position });
      // The list may have been read again meanwhile.
      if (more.value !== position) return;
      batch(() => {
        rows.value = new Map([...rows.value, ...(table.rows ?? []).map((row) => [row.object.metadata.uid, row] as const)]);
        setPosition(table);
        problem.value = null;
      });
    } catch (failure) {
      problem.value = failure instanceof Refusal ? failure : new Refusal(0, "");
    } finally {
      reading.value = false;
    }
  }

  /** How many objects there are, on all pages. */
  const total = computed(() => {
    if (!more.value) return rows.value.size;
    let known = 0;
    for (const row of rows.value.values()) if (sortKey(row) <= lastKey) known++;
    return Math.max(rows.value.size, known + remaining.value);
  });
  const sorted = computed(() => [...rows.value.values()].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)));
  return { columns, rows: sorted, more, total, reading, mode, problem, retryTime, lastHeard, loaded, begin, refresh, next: readNextPage, resume: noteInput, retry: () => retry() };
}
