import { group, listPages, type Meta, text, type Text } from "../shared";

/** An event of the audit. Its status has the fields of audit.k8s.io/v1. */
export interface AuditEvent {
  metadata: Meta;
  status: {
    verb: string; requestURI: string; stage?: string; stageTimestamp: string; userAgent?: string; sourceIPs?: string[];
    user: { username?: string; uid?: string; extra?: Record<string, string[]> };
    objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string };
    responseStatus?: { code?: number; reason?: string; message?: string };
  };
}

/** The path of the events in the API. */
export const eventsPath = `${group}/auditevents`;

/** How many pages are read for one that has events. */
const maxPages = 5;

/** Escapes a value for a field selector. */
export const escapeSelectorValue = (value: string) => value.replace(/[\\,=]/g, "\\$&");

/**
 * Reads the next events that a field selector selects, the newest first, until a number of pages had events. Position is where an earlier answer ended; empty:
 * at the newest event. The answer has no event if none is on several pages of the audit. Its position is empty if there are no more pages.
 */
export async function readEvents(fieldSelector: string, limit: number, position: string, signal?: AbortSignal, pages = 1): Promise<{ events: AuditEvent[]; position: string }> {
  const events: AuditEvent[] = [];
  const query = { limit: String(limit), ...(fieldSelector && { fieldSelector }) };
  for await (const { rows = [], metadata } of listPages<AuditEvent>(eventsPath, query, { signal, position, most: pages * maxPages })) {
    events.push(...rows.map((row) => row.object));
    position = metadata?.continue ?? "";
    if (rows.length > 0 && --pages === 0) break;
  }
  return { events, position };
}

/** Reports whether the request of an event was refused or failed. */
export function wasRefused({ status: { responseStatus } }: AuditEvent): boolean {
  return (responseStatus?.code ?? 0) >= 400;
}

/** Returns the name of the access key of an event's request. Empty: the request had another credential, or none. */
export function accessKeyOf({ status: { user } }: AuditEvent): string {
  return Object.entries(user.extra ?? {}).find(([name]) => name.endsWith("/access-key"))?.[1].join(", ") ?? "";
}

const verbs: Record<string, Text> = {
  create: "audit.verbCreate", update: "audit.verbReplace", patch: "audit.verbChange", delete: "audit.verbDelete", deletecollection: "audit.verbDelete",
  get: "audit.verbRead", list: "audit.verbList", watch: "audit.verbWatch",
};

/** The names of an object of a resource, and of several. */
const kinds: Record<string, [object: Text, objects: Text]> = {
  ownedaccesskeys: ["audit.key", "audit.keys"], directclusterendpointtokens: ["audit.token", "audit.tokens"], virtualclusterinstances: ["audit.cluster", "audit.clusters"],
  "virtualclusterinstances/kubeconfig": ["audit.kubeconfig", "audit.kubeconfig"], users: ["audit.oneUser", "audit.users"], teams: ["audit.team", "audit.teams"],
  projects: ["audit.project", "audit.projects"], trustrules: ["audit.trustrule", "audit.trustrules"], configs: ["audit.config", "audit.config"],
  "configs/history": ["audit.history", "audit.history"], auditevents: ["audit.oneEvent", "audit.events"],
};
const severalVerbs = new Set(["list", "watch", "deletecollection"]);

/** Returns the resource of an event with its subresource after a slash. Empty: the request is about a path. */
export function resourceOf({ status: { objectRef } }: AuditEvent): string {
  return [objectRef?.resource, objectRef?.subresource].filter(Boolean).join("/");
}

/** Returns the request of an event as the API calls it: "create ownedaccesskeys/ci". */
export function requestText(event: AuditEvent): string {
  const { verb, requestURI, objectRef } = event.status;
  if (!objectRef?.resource) return `${verb} ${requestURI}`;
  return `${verb} ${[objectRef.resource, objectRef.name, objectRef.subresource].filter(Boolean).join("/")}`;
}

/**
 * Returns the request of an event in words: "Create access key", the name of the object, and what stands after it. A request about a path has its verb
 * and its path, unless it begins or ends a session.
 */
export function requestParts(event: AuditEvent): [before: string, name: string, after: string] {
  const { verb, requestURI, objectRef } = event.status;
  if (requestURI.endsWith("/auth/session")) return [text(verb === "delete" ? "session.signOut" : "signin.title"), "", ""];
  if (!objectRef?.resource) return [`${verb.toUpperCase()} ${requestURI}`, "", ""];
  const resource = resourceOf(event);
  const known = kinds[resource];
  const names = known ?? kinds[objectRef.resource];
  const kind = names ? text(names[severalVerbs.has(verb) && !objectRef.name ? 1 : 0]) : objectRef.resource;
  const subresource = !known && objectRef.subresource ? `(${objectRef.subresource})` : "";
  const place = objectRef.namespace ? text("audit.inNamespace", { namespace: objectRef.namespace }) : "";
  const name = objectRef.resource === "configs" ? "" : objectRef.name ?? "";
  return [`${verbs[verb] ? text(verbs[verb]) : verb} ${kind}`, name, [place, subresource].filter(Boolean).join(" ")];
}

/** Returns the request of an event in words: "Create access key ci". */
export const requestWords = (event: AuditEvent) => requestParts(event).filter(Boolean).join(" ");
