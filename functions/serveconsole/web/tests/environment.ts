// The page that the sources expect around them. A test imports it before them, and answers their requests itself.

/** The listeners of the document, by the name of the event. */
export const listeners = new Map<string, Set<() => void>>();

export const document = {
  hidden: false,
  addEventListener(name: string, listener: () => void) {
    listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
  },
  removeEventListener(name: string, listener: () => void) {
    listeners.get(name)?.delete(listener);
  },
};

/** Tells the document of an event. */
export function dispatch(name: string): void {
  for (const listener of listeners.get(name) ?? []) listener();
}

/** A request of the sources. */
export interface ReceivedRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: string;
  signal: AbortSignal | undefined;
}

const server: { answer: (request: ReceivedRequest) => Response | Promise<Response> } = { answer: () => new Response("", { status: 404 }) };

/** Has a function answer all requests from now on. */
export function answerWith(answer: (request: ReceivedRequest) => Response | Promise<Response>): void {
  server.answer = answer;
}

Object.assign(globalThis, {
  addEventListener: document.addEventListener, removeEventListener: document.removeEventListener,
  location: { pathname: "/console/keys" }, document,
  fetch: async (address: string, { method, body, signal }: RequestInit) => {
    const { pathname, searchParams } = new URL(address, "https://platform.example.com");
    return server.answer({ method: method ?? "GET", path: pathname.replace("/kubernetes/management", ""), query: searchParams, body: String(body ?? ""), signal: signal ?? undefined });
  },
});
