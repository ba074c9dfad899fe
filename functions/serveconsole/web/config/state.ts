import { batch, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { group, send, warningsOf, type Refusal } from "../api";
import connectorBlocks from "../connectors.json";
import { asRefusal } from "../parts/problem";
import { useUnsaved } from "../parts/unsaved";
import { may, usePermitted } from "../rights";
import { fromJson, isFields, json, placeOf, read, stepsOf, yaml, type Fields, type Finding } from "../studio/documents";
import { lineFeeds, type Replacement } from "../studio/editor";
import { text } from "../texts";

export const path = `${group}/config/config`;
export const force = "management.platform.sh/force";
export const within = "management.platform.sh/confirm-within";
export const cause = "kubernetes.io/change-cause";
const none: Finding[] = [];

/** The configuration, as far as the console reads it. */
export interface Config extends Fields {
  metadata: Fields & { resourceVersion: string; annotations?: Record<string, string> };
  status: Fields & { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}

/** A field that a write changes. */
export interface Change {
  path: string;
  from?: unknown;
  to?: unknown;
}

/** A write of the configuration. */
export interface Revision {
  revision: string;
  author?: string;
  time?: string;
  rolledBackTo?: string;
  reason?: string;
  changes?: Change[];
}

/** Sends a request about the configuration. Whole numbers are not rounded. */
export async function sent<T>(at: string, method: string, body?: unknown, mediaType?: string): Promise<{ object: T; warnings: string[] }> {
  const response = await send(at, { method, body: body === undefined ? undefined : json(body), mediaType });
  return { object: fromJson(await response.text()) as T, warnings: warningsOf(response) };
}

/** Tells whether a configuration waits for a confirmation. */
export function isTrial(config: Config | null): boolean {
  return config?.metadata.annotations?.[within] !== undefined && (config.status.conditions ?? []).some(({ type, status }) => type === "Confirmed" && status === "False");
}

/** Returns the milliseconds of a duration, such as 1h30m. */
function durationOf(text = ""): number {
  const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  return [...text.matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit ?? ""] ?? 0), 0);
}

/** Returns the configuration as it is edited: without what the platform says about it. */
export function textOf(config: Config): string {
  const { conditions: _, ...fields } = config.status;
  return Object.keys(fields).length === 0 ? "" : lineFeeds(yaml(fields, false));
}

/** Returns the connectors of the configuration, in its order. A connector that is a block of auth has its name as ID. */
export function connectorsOf(config: Config): { id: string; name?: string }[] {
  const { auth } = config.status;
  if (!isFields(auth)) return [];
  const listed = Array.isArray(auth.connectors) ? auth.connectors.filter(isFields) : [];
  return [
    ...connectorBlocks.filter((block) => isFields(auth[block])).map((id) => ({ id })),
    ...listed.filter(({ id }) => typeof id === "string" && id !== "").map(({ id, displayName }) => ({ id: String(id), name: displayName ? String(displayName) : undefined })),
  ];
}

/** Reads the configuration again at an instant, in milliseconds, or when somebody comes back to the tab after it. 0: it does not. */
function useReload(instant: number, load: () => Promise<void>): void {
  useEffect(() => {
    if (instant === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Without a confirmation, the configuration is another one then.
    const look = () => {
      clearTimeout(timer);
      if (document.hidden) return;
      const left = instant + 1000 - Date.now();
      if (left > 0) timer = setTimeout(look, left);
      else void load();
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [instant]);
}

/** The state of the page: the configuration, the text that somebody edits, and what is under way. */
export function useConfiguration() {
  const config = useSignal<Config | null>(null);
  const history = useSignal<Revision[]>([]);
  const draft = useSignal("");
  const replacement = useSignal<Replacement>({ text: "" });
  const cursor = useSignal(0);
  const problem = useSignal<Refusal | null>(null);
  const reviewed = useSignal<Fields | null>(null);
  const rolling = useSignal<Revision | null>(null);
  const causes = useSignal<Finding[]>(none);
  const done = useSignal("");
  const base = config.value ? textOf(config.value) : "";
  const version = config.value?.metadata.resourceVersion;
  const [change, roll] = usePermitted([
    { verb: "update", resource: "configs", name: "config" }, { verb: "create", resource: "configs", subresource: "rollback", name: "config" },
  ], version);

  /** Puts a text into the editor. */
  function place(text: string) {
    batch(() => {
      draft.value = text;
      replacement.value = { text };
    });
  }

  /** Reads the configuration. What was typed is kept, unless it is what was read before. */
  async function load() {
    try {
      const past = may("get", "configs/history") ? sent<{ status: { revisions?: Revision[] } }>(`${path}/history`, "GET") : null;
      const { object } = await sent<Config>(path, "GET");
      const revisions = (await past)?.object.status.revisions ?? [];
      batch(() => {
        const before = config.value ? textOf(config.value) : "";
        if (isTrial(config.value) && !isTrial(object) && textOf(object) !== before) done.value = text("configTakenBack");
        if (draft.value === before) place(textOf(object));
        config.value = object;
        history.value = revisions;
        problem.value = null;
      });
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  useEffect(() => {
    void load();
  }, []);

  const parsed = useMemo(() => read(draft.value), [draft.value]);
  const findings = parsed.findings.length > 0 ? parsed.findings : causes.value;
  const changed = draft.value !== base;
  useUnsaved(changed);

  function review() {
    causes.value = none;
    done.value = "";
    const value = parsed.value ?? {};
    if (parsed.findings.length > 0) return;
    if (!isFields(value)) {
      causes.value = [{ from: 0, to: 1, severity: "error", message: text("configMap") }];
      return;
    }
    reviewed.value = value;
  }

  /** Shows what the API refuses at its place. */
  function locate(refusal: Refusal) {
    const found = refusal.causes.filter(({ field }) => field?.startsWith("status."));
    causes.value = found.map(({ field, message }) => {
      const { from, to } = placeOf(parsed, stepsOf(field ?? "").slice(1));
      return { from, to, severity: "error", message: `${field}: ${message}` };
    });
    // The dialog stays open for what has no place, and for what can be forced.
    if (found.length === refusal.causes.length && found.length > 0 && !refusal.causes.some(({ message }) => message?.includes(force))) reviewed.value = null;
  }

  async function confirm() {
    try {
      // What is confirmed is what is shown, and nothing that came after it.
      const { resourceVersion } = config.value?.metadata ?? {};
      await sent(path, "PATCH", { metadata: { resourceVersion, annotations: { [within]: null } } }, "application/merge-patch+json");
      done.value = text("configConfirmed");
      await load();
    } catch (failure) {
      await load();
      if (done.value !== text("configTakenBack")) problem.value = asRefusal(failure);
    }
  }

  const conditions = config.value?.status.conditions ?? [];
  const connectors = config.value && may("create", "signintrials") ? connectorsOf(config.value) : [];
  const waiting = isTrial(config.value) ? conditions.find(({ type }) => type === "Confirmed") : undefined;
  const written = history.value[0]?.time;
  const until = waiting && written ? Date.parse(written) + durationOf(config.value?.metadata.annotations?.[within]) : 0;
  useReload(until, load);

  /** Takes the text back to what is in effect. */
  function discard() {
    batch(() => { place(base); causes.value = none; });
  }

  /** Notes what somebody has typed. */
  function type(typed: string) {
    batch(() => { draft.value = typed; causes.value = none; });
  }

  /** Shows the configuration that a write has made. */
  function saved(after: Config) {
    batch(() => {
      reviewed.value = null;
      config.value = after;
      place(textOf(after));
      done.value = text("configSaved", { revision: after.metadata.resourceVersion });
    });
    void load();
  }

  function rolledBack() {
    rolling.value = null;
    done.value = text("rollbackDone");
    void load();
  }
  return {
    config, history, draft, replacement, cursor, problem, reviewed, rolling, done, change, roll, parsed, findings, changed, conditions, connectors, waiting, until,
    load, review, locate, confirm, discard, type, saved, rolledBack,
  };
}
