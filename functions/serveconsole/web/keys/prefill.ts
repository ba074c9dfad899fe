import { type Cause, type Key, type Owner, secondsOf, text } from "../shared";
import { yamlOf } from "../parts/yaml";
import type { FormField } from "../pages/keys";
import { isOwn, mayOwn } from "./owners";

/** The kinds of the scopes in the form of a new key. */
export type ScopeKind = "read" | "project" | "cluster" | "nothing" | "all" | "yaml";

/** What the form of a new key begins with, and what an address says that the form cannot have. */
export interface Prefill {
  displayName: string;
  description: string;
  owner: Owner;
  groups: string;
  scope: { kind: ScopeKind; project: string; cluster: string; yaml: string } | null;
  /** Null: the address names none. */
  ttl: number | null;
  afterLastActivity: boolean;
  problems: Cause[];
}

const readScope = JSON.stringify({ roles: [{ role: "platformCLI" }] });

/** Returns a scope as the addresses of forms have it: a word, a project, a virtual cluster, or JSON. */
export function scopeField(scope: Record<string, unknown> | undefined): string {
  if (!scope) return "all";
  const json = JSON.stringify(scope);
  if (json === "{}") return "nothing";
  if (json === readScope) return "read";
  const { projects, virtualClusters, ...others } = scope as { projects?: { project: string }[]; virtualClusters?: { project: string; virtualCluster: string }[] };
  if (Object.keys(others).length > 0 || (projects ?? []).length + (virtualClusters ?? []).length !== 1) return json;
  return projects?.[0] ? `project:${projects[0].project}` : `virtualcluster:${virtualClusters![0]!.project}/${virtualClusters![0]!.virtualCluster}`;
}

function readScopeField(value: string): Prefill["scope"] {
  const none = { project: "", cluster: "", yaml: "" };
  if (value === "read" || value === "nothing" || value === "all") return { ...none, kind: value };
  const [, project] = value.match(/^project:([^/\s]+)$/) ?? [];
  if (project) return { ...none, kind: "project", project };
  const [, parent, cluster] = value.match(/^virtualcluster:([^/\s]+)\/([^/\s]+)$/) ?? [];
  if (parent && cluster) return { ...none, kind: "cluster", project: parent, cluster };
  try {
    const scope: unknown = JSON.parse(value);
    if (typeof scope === "object" && scope !== null && !Array.isArray(scope)) return { ...none, kind: "yaml", yaml: yamlOf(scope) };
  } catch {
    // The form says what is right.
  }
  return null;
}

/** Returns a lifetime in seconds, or null if it is none: a number of seconds, or a number with s, m, h or d. */
function readLifetime(value: string): number | null {
  const [, count, unit] = value.match(/^(\d{1,10})([smhd]?)$/) ?? [];
  return count === undefined ? null : secondsOf(count + (unit || "s"));
}

const size = (value: string) => new TextEncoder().encode(value).length;

/** Returns what the form of a new key begins with, from the fields of an address. */
export function readPrefill(fields: Record<FormField, string>): Prefill {
  const { displayName, description, user, team, groups, scope, ttl, ttlAfterLastActivity } = fields;
  const problems: Cause[] = [];
  const refuse = (field: string, message: string) => { problems.push({ field, message }); };
  if (size(displayName) > 256) refuse("spec.displayName", text("prefill.tooLong", { size: 256 }));
  if (size(description) > 4096) refuse("spec.description", text("prefill.tooLong", { size: 4096 }));
  let owner: Owner = team ? { team } : user ? { user } : {};
  if (isOwn(owner)) owner = {};
  if (team && user) refuse("spec.team", text("prefill.owners"));
  else if ((owner.team || owner.user) && !mayOwn(owner)) {
    refuse(team ? "spec.team" : "spec.user", text("prefill.owner", { name: team || user }));
    owner = {};
  }
  const chosen = scope ? readScopeField(scope) : null;
  if (scope && !chosen) refuse("spec.scope", text("prefill.scope", { value: scope }));
  const seconds = ttl ? readLifetime(ttl) : null;
  if (ttl && seconds === null) refuse("spec.ttl", text("prefill.ttl", { value: ttl }));
  if (ttlAfterLastActivity && ttlAfterLastActivity !== "true" && ttlAfterLastActivity !== "false") refuse("spec.ttlAfterLastActivity", text("prefill.boolean", { value: ttlAfterLastActivity }));
  return { displayName, description, owner, groups, scope: chosen, ttl: seconds, afterLastActivity: ttlAfterLastActivity === "true", problems };
}

/** Returns the fields of an address whose form makes a key like another key. */
export function fieldsLike({ spec }: Key): Record<FormField, string> {
  const own = isOwn(spec);
  return {
    displayName: spec.displayName ?? "", description: spec.description ?? "", user: own ? "" : spec.user ?? "", team: own ? "" : spec.team ?? "",
    groups: (spec.groups ?? []).join(" "), scope: scopeField(spec.scope), ttl: String(spec.ttl ?? 0), ttlAfterLastActivity: spec.ttlAfterLastActivity ? "true" : "",
  };
}
