import { signal } from "@preact/signals";

/** The base path of the API. The page may be below it, at the root, or below the prefix of a proxy. */
const basePath = "/kubernetes/management";
const prefix = location.pathname.slice(0, location.pathname.lastIndexOf("/console"));
export const base = prefix.endsWith(basePath) ? prefix : prefix + basePath;

/** The path of the console. */
export const home = `${prefix}/console`;

/** The group of the platform's own resources. */
export const group = "/apis/management.platform.sh/v1";

/** A cause of a refusal: the field that is wrong, and why. The reason is a word of the API, such as FieldValueRequired. */
export interface Cause {
  field?: string;
  reason?: string;
  message?: string;
}

/** An error of the API or the network. Code 0: the platform was not reached. Code -1: the page itself failed. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly causes: Cause[] = [],
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

/** The fields of object metadata that the console reads. */
export interface Meta {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion?: string;
  creationTimestamp: string;
}

/** A column of a Table. */
export interface Column {
  name: string;
  description: string;
  priority: number;
}

/** A row of a Table, with the whole object. */
export interface Row<T> {
  cells: unknown[];
  object: T;
}

/** A Table, as the API serves it. */
export interface Table<T> {
  columnDefinitions?: Column[];
  rows?: Row<T>[];
  metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
}

/** An event of a watch: a Table of one row, or a Status. */
export interface Event<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: Table<T> & { code?: number };
}

/**
 * Whether somebody is signed in. "ended" is a session that was there: the page stays as it is behind a dialog. "guest": the page
 * needs no session.
 */
export const session = signal<"unknown" | "out" | "in" | "ended" | "guest">("unknown");

/** Whether the sign-in is open to extend a session that has not ended. */
export const extending = signal(false);

let waitingRequests: (() => void)[] = [];

/** Starts a session, and repeats the requests that wait for one. */
export function startSession(): void {
  session.value = "in";
  extending.value = false;
  const requests = waitingRequests;
  waitingRequests = [];
  for (const repeat of requests) repeat();
}

const tables = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";

/** The options of a request. Without options, it is a GET. */
export interface RequestOptions {
  method?: string;
  body?: string;
  mediaType?: string;
  accept?: string;
  headers?: Record<string, string>;
  /** The request tests whether there is a session: a 401 is its answer, and it does not wait for a new session. */
  probing?: boolean;
  signal?: AbortSignal;
}

/**
 * Sends a request below the API, and returns the response. A refusal of the API, and a network that fails, is a Refusal. When the
 * session has ended, the request waits until somebody has signed in again, and is then repeated with the same headers.
 */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? "application/json", ...options.headers };
  if (options.body !== undefined) headers["Content-Type"] = options.mediaType ?? "application/json";
  for (;;) {
    let response: Response;
    try {
      response = await fetch(base + path, {
        method: options.method ?? "GET", body: options.body, headers, signal: options.signal, credentials: "same-origin", cache: "no-store",
      });
    } catch (failure) {
      if (options.signal?.aborted) throw failure;
      throw new Refusal(0, "");
    }
    if (response.ok) return response;
    const refusal = await refusalOf(response);
    if (response.status !== 401 || options.probing || (session.value !== "in" && session.value !== "ended")) throw refusal;
    session.value = "ended";
    await new Promise<void>((go) => waitingRequests.push(go));
  }
}

async function refusalOf(response: Response): Promise<Refusal> {
  let status: { message?: string; reason?: string; details?: { causes?: Cause[]; retryAfterSeconds?: number } } = {};
  try {
    status = await response.json();
  } catch {
    // A gateway answered with a text of its own.
  }
  const message = status.message ?? `${response.status} ${response.statusText}`;
  const retryAfter = status.details?.retryAfterSeconds ?? 0;
  // A name that is taken is the fault of a field. Of a generated name, the next attempt makes another one.
  const causes = status.reason === "AlreadyExists" && retryAfter === 0 ? [{ field: "metadata.name", reason: status.reason, message }] : status.details?.causes ?? [];
  return new Refusal(response.status, message, causes, retryAfter);
}

/** Sends a request and returns the JSON of the response. */
export async function ask<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  return response.json().catch((failure) => {
    if (options.signal?.aborted) throw failure;
    throw new Refusal(0, "");
  }) as Promise<T>;
}

/** Returns one page of a list as a Table with whole objects. */
export function list<T>(path: string, query: Record<string, string> = {}, signal?: AbortSignal): Promise<Table<T>> {
  return ask<Table<T>>(`${path}?${new URLSearchParams({ includeObject: "Object", ...query })}`, { accept: tables, signal });
}

/**
 * Reads the pages of a list one after the other, as long as the caller takes them, and at most a number of them. Position is the metadata.continue of the page
 * before the first one; empty: the list is read from its beginning.
 */
export async function* listPages<T>(path: string, query: Record<string, string>, { signal, position = "", most = Infinity }: { signal?: AbortSignal; position?: string; most?: number } = {}) {
  for (let read = 0; read < most && (read === 0 || position !== ""); read++) {
    const table = await list<T>(path, position === "" ? query : { ...query, continue: position }, signal);
    position = table.metadata?.continue ?? "";
    yield table;
  }
}

/** Reads the events of a watch until the watch ends, and passes each on as it arrives. OnOpen runs when the API has accepted the watch. */
export async function watch<T>(path: string, resourceVersion: string, signal: AbortSignal, onOpen: () => void, onEvent: (event: Event<T>) => void): Promise<void> {
  const query = new URLSearchParams({
    watch: "true", includeObject: "Object", resourceVersion, allowWatchBookmarks: "true", timeoutSeconds: "290",
  });
  const response = await send(`${path}?${query}`, { accept: tables, signal });
  if (!response.body) return;
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let incomplete = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (incomplete + value).split("\n");
    incomplete = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") onEvent(JSON.parse(line) as Event<T>);
  }
}

/** Returns the texts of the warnings of a response. */
export function warningsOf(response: Response): string[] {
  const header = response.headers.get("Warning") ?? "";
  return [...header.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) => (match[1] ?? "").replace(/\\(.)/g, "$1"));
}
