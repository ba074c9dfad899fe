import { batch, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { group, send, warningsOf, type Refusal } from "../api";
import connectorBlocks from "../connectors.json";
import { withoutValue } from "../parts/causes";
import { asRefusal } from "../parts/problem";
import { useUnsaved } from "../parts/unsaved";
import { may, usePermitted } from "../rights";
import { parseJson, isFields, toJson, rangeOf, parseText, stepsOf, toYaml, type Fields, type Finding } from "../studio/documents";
import { lineFeeds, type Replacement } from "../studio/editor";
import { text } from "../texts";
import { secondsOf } from "../times";

export const configPath = `${group}/config/config`;
export const forceAnnotation = "management.platform.sh/force";
export const confirmWithinAnnotation = "management.platform.sh/confirm-within";
export const changeCauseAnnotation = "kubernetes.io/change-cause";
const noFindings: Finding[] = [];

/** The fields of the configuration that the console reads. */
export interface Config extends Fields {
  metadata: Fields & { resourceVersion: string; annotations?: Record<string, string> };
  status: Fields & { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}

/** A changed field of a write. */
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

/** Sends a request for the configuration. Integers are not rounded. */
export async function requestConfig<T>(path: string, method: string, body?: unknown, mediaType?: string): Promise<{ object: T; warnings: string[] }> {
  const response = await send(path, { method, body: body === undefined ? undefined : toJson(body), mediaType });
  return { object: parseJson(await response.text()) as T, warnings: warningsOf(response) };
}

/** Reports whether a configuration waits for a confirmation. */
export function isTrial(config: Config | null): boolean {
  return config?.metadata.annotations?.[confirmWithinAnnotation] !== undefined && (config.status.conditions ?? []).some(({ type, status }) => type === "Confirmed" && status === "False");
}

/** Returns the text that people edit: the configuration without its conditions. */
export function textOf(config: Config): string {
  const { conditions: _, ...fields } = config.status;
  return Object.keys(fields).length === 0 ? "" : lineFeeds(toYaml(fields, false));
}

/** Returns the connectors of the configuration, in its order. A connector that is a block of auth has its name as ID. */
export function connectorsOf(config: Config): { id: string; name?: string }[] {
  const { auth } = config.status;
  if (!isFields(auth)) return [];
  const list = Array.isArray(auth.connectors) ? auth.connectors.filter(isFields) : [];
  return [
    ...connectorBlocks.filter((block) => isFields(auth[block])).map((id) => ({ id })),
    ...list.filter(({ id }) => typeof id === "string" && id !== "").map(({ id, displayName }) => ({ id: String(id), name: displayName ? String(displayName) : undefined })),
  ];
}

/** Reads the configuration again one second after an instant, in milliseconds, or when the tab is visible again after it. 0: never. */
function useReload(instant: number, load: () => Promise<void>): void {
  useEffect(() => {
    if (instant === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Without a confirmation, the platform has rolled the configuration back by then.
    const check = () => {
      clearTimeout(timer);
      if (document.hidden) return;
      const remaining = instant + 1000 - Date.now();
      if (remaining > 0) timer = setTimeout(check, remaining);
      else void load();
    };
    check();
    document.addEventListener("visibilitychange", check);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", check);
    };
  }, [instant]);
}

/** The state of the page: the configuration, the edited text, and the dialogs that are open. */
export function useConfiguration() {
  const config = useSignal<Config | null>(null);
  const history = useSignal<Revision[]>([]);
  const draft = useSignal("");
  const replacement = useSignal<Replacement>({ text: "" });
  const cursor = useSignal(0);
  const problem = useSignal<Refusal | null>(null);
  const reviewedDraft = useSignal<Fields | null>(null);
  const rollbackTarget = useSignal<Revision | null>(null);
  const refusedFindings = useSignal<Finding[]>(noFindings);
  const message = useSignal("");
  const savedText = config.value ? textOf(config.value) : "";
  const version = config.value?.metadata.resourceVersion;
  const [mayChange, mayRollBack] = usePermitted([
    { verb: "update", resource: "configs", name: "config" }, { verb: "create", resource: "configs", subresource: "rollback", name: "config" },
  ], version);

  /** Puts a text into the editor. */
  function replaceText(text: string) {
    batch(() => {
      draft.value = text;
      replacement.value = { text };
    });
  }

  /** Reads the configuration. The edited text stays if it differs from the configuration that was read before. */
  async function load() {
    try {
      const historyRequest = may("get", "configs/history") ? requestConfig<{ status: { revisions?: Revision[] } }>(`${configPath}/history`, "GET") : null;
      const { object } = await requestConfig<Config>(configPath, "GET");
      const revisions = (await historyRequest)?.object.status.revisions ?? [];
      batch(() => {
        const previousText = config.value ? textOf(config.value) : "";
        if (isTrial(config.value) && !isTrial(object) && textOf(object) !== previousText) message.value = text("config.rolledBackUnconfirmed");
        if (draft.value === previousText) replaceText(textOf(object));
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

  const parsed = useMemo(() => parseText(draft.value), [draft.value]);
  const findings = parsed.findings.length > 0 ? parsed.findings : refusedFindings.value;
  const hasChanges = draft.value !== savedText;
  useUnsaved(hasChanges);

  function review() {
    refusedFindings.value = noFindings;
    message.value = "";
    const value = parsed.value ?? {};
    if (parsed.findings.length > 0) return;
    if (!isFields(value)) {
      refusedFindings.value = [{ from: 0, to: 1, severity: "error", message: text("config.notMap") }];
      return;
    }
    reviewedDraft.value = value;
  }

  /** Shows the causes of a refusal at the places of their fields. */
  function showCauses(refusal: Refusal) {
    const causes = refusal.causes.filter(({ field }) => field?.startsWith("status."));
    refusedFindings.value = causes.map(({ field, message }) => {
      const { from, to } = rangeOf(parsed, stepsOf(field ?? "").slice(1));
      return { from, to, severity: "error", message: `${field}: ${withoutValue(message ?? "")}` };
    });
    // The dialog stays open for causes without a place in the text, and for causes that force overrides.
    if (causes.length === refusal.causes.length && causes.length > 0 && !refusal.causes.some(({ message }) => message?.includes(forceAnnotation))) reviewedDraft.value = null;
  }

  async function confirm() {
    try {
      // The resource version confirms the revision that is shown, and no later one.
      const { resourceVersion } = config.value?.metadata ?? {};
      await requestConfig(configPath, "PATCH", { metadata: { resourceVersion, annotations: { [confirmWithinAnnotation]: null } } }, "application/merge-patch+json");
      message.value = text("config.confirmed");
      await load();
    } catch (failure) {
      await load();
      if (message.value !== text("config.rolledBackUnconfirmed")) problem.value = asRefusal(failure);
    }
  }

  const conditions = config.value?.status.conditions ?? [];
  const connectors = config.value && may("create", "signintrials") ? connectorsOf(config.value) : [];
  const trial = isTrial(config.value) ? conditions.find(({ type }) => type === "Confirmed") : undefined;
  const lastWrite = history.value[0]?.time;
  const trialEnd = trial && lastWrite ? Date.parse(lastWrite) + 1000 * secondsOf(config.value?.metadata.annotations?.[confirmWithinAnnotation]) : 0;
  useReload(trialEnd, load);

  /** Replaces the edited text with the configuration in effect. */
  function discard() {
    batch(() => { replaceText(savedText); refusedFindings.value = noFindings; });
  }

  /** Takes over the text of the editor. */
  function edit(typed: string) {
    batch(() => { draft.value = typed; refusedFindings.value = noFindings; });
  }

  /** Shows the configuration that a write returned. */
  function showSaved(after: Config) {
    batch(() => {
      reviewedDraft.value = null;
      config.value = after;
      replaceText(textOf(after));
      message.value = text("config.saved", { revision: after.metadata.resourceVersion });
    });
    void load();
  }

  function showRolledBack() {
    rollbackTarget.value = null;
    message.value = text("config.rolledBack");
    void load();
  }
  return {
    config, history, draft, replacement, cursor, problem, reviewedDraft, rollbackTarget, message, mayChange, mayRollBack, parsed, findings, hasChanges, conditions, connectors,
    trial, trialEnd, load, review, showCauses, confirm, discard, edit, showSaved, showRolledBack,
  };
}
