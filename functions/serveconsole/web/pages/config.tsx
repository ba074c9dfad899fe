import { batch, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import connectorBlocks from "../connectors.json";
import { useUnsaved } from "../parts/unsaved";
import { helpFor, type Help } from "../schema";
import { AsKubectl, asRefusal, Dialog, distance, exact, group, may, Problem, type Refusal, send, text, usePermitted, warningsOf } from "../shared";
import { Changes } from "../studio/diff";
import { fromJson, isFields, json, placeOf, read, stepsAt, stepsOf, yaml, type Fields, type Finding } from "../studio/documents";
import { Editor, lineFeeds, type Replacement } from "../studio/editor";
import { SignInTrial } from "./signintrial";

const path = `${group}/config/config`;
const force = "management.platform.sh/force";
const within = "management.platform.sh/confirm-within";
const cause = "kubernetes.io/change-cause";
const none: Finding[] = [];

/** The configuration, as far as the console reads it. */
interface Config extends Fields {
  metadata: Fields & { resourceVersion: string; annotations?: Record<string, string> };
  status: Fields & { conditions?: { type: string; status: string; reason?: string; message?: string }[] };
}

/** A field that a write changes. */
interface Change {
  path: string;
  from?: unknown;
  to?: unknown;
}

/** A write of the configuration. */
interface Revision {
  revision: string;
  author?: string;
  time?: string;
  rolledBackTo?: string;
  reason?: string;
  changes?: Change[];
}

/** Sends a request about the configuration. Whole numbers are not rounded. */
async function sent<T>(at: string, method: string, body?: unknown, mediaType?: string): Promise<{ object: T; warnings: string[] }> {
  const response = await send(at, { method, body: body === undefined ? undefined : json(body), mediaType });
  return { object: fromJson(await response.text()) as T, warnings: warningsOf(response) };
}

/** Tells whether a configuration waits for a confirmation. */
function isTrial(config: Config | null): boolean {
  return config?.metadata.annotations?.[within] !== undefined && (config.status.conditions ?? []).some(({ type, status }) => type === "Confirmed" && status === "False");
}

/** Returns the milliseconds of a duration, such as 1h30m. */
function durationOf(text = ""): number {
  const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
  return [...text.matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (units[unit ?? ""] ?? 0), 0);
}

/** Returns the configuration as it is edited: without what the platform says about it. */
function textOf(config: Config): string {
  const { conditions: _, ...fields } = config.status;
  return Object.keys(fields).length === 0 ? "" : lineFeeds(yaml(fields, false));
}

/** Returns the connectors of the configuration, in its order. A connector that is a block of auth has its name as ID. */
function connectorsOf(config: Config): { id: string; name?: string }[] {
  const { auth } = config.status;
  if (!isFields(auth)) return [];
  const listed = Array.isArray(auth.connectors) ? auth.connectors.filter(isFields) : [];
  return [
    ...connectorBlocks.filter((block) => isFields(auth[block])).map((id) => ({ id })),
    ...listed.filter(({ id }) => typeof id === "string" && id !== "").map(({ id, displayName }) => ({ id: String(id), name: displayName ? String(displayName) : undefined })),
  ];
}

/** The connectors of the configuration, and a sign-in on trial at each of them. */
function Connectors({ of }: { of: { id: string; name?: string }[] }) {
  const tried = useSignal("");
  return (
    <>
      <h2>{text("connectors")}</h2>
      <p class="quiet">{text("connectorsLead")}</p>
      <ul class="rows">
        {of.map(({ id, name }) => (
          <li>
            <span><code>{id}</code> {name && <span class="quiet">{name}</span>}</span>
            <button type="button" aria-label={text("tryTitle", { name: id })} onClick={() => (tried.value = id)}>{text("tryAsk")}</button>
          </li>
        ))}
      </ul>
      {tried.value && <SignInTrial connector={tried.value} close={() => (tried.value = "")} />}
    </>
  );
}

/** Says a value of a change. */
function shown(value: unknown): string {
  return value === undefined ? text("studioAbsent") : typeof value === "string" ? value : json(value);
}

function ChangeList({ of }: { of: Change[] }) {
  return (
    <ul class="changelist">
      {of.map(({ path, from, to }) => (
        <li><code>{path}</code>: <code class="removed">{shown(from)}</code> → <code class="added">{shown(to)}</code></li>
      ))}
    </ul>
  );
}

function Warnings({ of }: { of: string[] }) {
  if (of.length === 0) return null;
  return <ul class="findings" aria-label={text("configWarnings")}>{of.map((one) => <li class="warning">{one}</li>)}</ul>;
}

/** How a write is made: why, and the two ways in which it can be made safer, or less safe. */
function useWays() {
  const reason = useSignal("");
  const trial = useSignal("");
  const forced = useSignal(false);
  const annotations = (): Record<string, string> => ({
    ...(reason.value.trim() ? { [cause]: reason.value.trim() } : {}), ...(trial.value ? { [within]: trial.value } : {}), ...(forced.value ? { [force]: "true" } : {}),
  });
  return { reason, trial, forced, annotations };
}

function Ways({ of: { reason, trial, forced }, offer }: { of: ReturnType<typeof useWays>; offer: boolean }) {
  return (
    <>
      <label>
        {text("configReason")}
        <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
      </label>
      <fieldset>
        <legend>{text("configSafely")}</legend>
        <label>
          {text("configTrial")}
          <select value={trial.value} onChange={(event) => (trial.value = event.currentTarget.value)}>
            <option value="">{text("configTrialNone")}</option>
            <option value="1m">{text("oneMinute")}</option>
            <option value="10m">{text("tenMinutes")}</option>
            <option value="1h">{text("hour")}</option>
          </select>
        </label>
        {(offer || forced.value) && (
          <label class="choice">
            <input type="checkbox" checked={forced.value} onChange={(event) => (forced.value = event.currentTarget.checked)} />
            {text("configForce")}
          </label>
        )}
      </fieldset>
    </>
  );
}

/** What a field means, from the description of the API. */
function FieldHelp({ steps }: { steps: (string | number)[] }) {
  const help = useSignal<Help | null>(null);
  const at = JSON.stringify(steps);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      helpFor("Config", ["status", ...steps]).then((found) => { if (current) help.value = found; }, () => undefined);
    }, 150);
    return () => { current = false; clearTimeout(timer); };
  }, [at]);
  const found = help.value;
  return (
    <aside class="card help" aria-live="polite" aria-label={text("configHelp")}>
      {!found ? <p class="quiet">{text("configHelpNone")}</p> : (
        <>
          <h2><code>{found.path}</code></h2>
          <p class="quiet">{found.type}</p>
          <p>{found.description}</p>
          {found.values.length > 0 && <p>{text("configValues")} {found.values.map((one) => <><code>{one}</code> </>)}</p>}
          {found.fields.length > 0 && <p class="quiet">{text("configFields")} {found.fields.map((one) => <><code>{one}</code> </>)}</p>}
        </>
      )}
    </aside>
  );
}

/** A change that is shown before it is made. A preview under way does not hold the change up, and it says nothing once the change is sent. */
function usePreview<T>({ preview, change, inputs, refused }: { preview(): Promise<T>; change(): Promise<void>; inputs: unknown[]; refused?: (refusal: Refusal) => void }) {
  const shown = useSignal<T | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const asked = useRef(0);
  useEffect(() => {
    const mine = asked.current;
    preview().then(
      (result) => { if (mine === asked.current) batch(() => { shown.value = result; problem.value = null; }); },
      (failure) => {
        if (mine !== asked.current) return;
        const refusal = asRefusal(failure);
        batch(() => { shown.value = null; problem.value = refusal; });
        refused?.(refusal);
      },
    );
    return () => { asked.current++; };
  }, inputs);
  async function submit(event: Event) {
    event.preventDefault();
    asked.current++;
    busy.value = true;
    try {
      await change();
    } catch (failure) {
      problem.value = asRefusal(failure);
    } finally {
      busy.value = false;
    }
  }
  return { shown, problem, busy, submit };
}

function Review(props: { before: Config; draft: Fields; close: () => void; reload: () => void; saved: (config: Config) => void; refused: (refusal: Refusal) => void }) {
  const { before, draft, close, reload, saved, refused } = props;
  const ways = useWays();
  const put = (query: string) => sent<Config>(`${path}?${query}fieldValidation=Strict`, "PUT", {
    ...before, status: draft, metadata: { ...before.metadata, annotations: { ...without(before.metadata.annotations), ...ways.annotations() } },
  });
  const { shown, problem, busy, submit } = usePreview({
    preview: async () => ({ before, ...(await put("dryRun=All&")) }),
    change: async () => saved((await put("")).object),
    inputs: [before, ways.forced.value, ways.trial.value],
    refused,
  });
  const result = shown.value;
  const offer = problem.value?.causes.some(({ message }) => message?.includes(force)) ?? false;
  return (
    <Dialog title={text("configReview")} close={close} wide>
      <form onSubmit={submit}>
        <p class="quiet">{text("configReviewLead")}</p>
        <Problem of={problem.value} />
        {problem.value?.code === 409 && <p><button type="button" onClick={reload}>{text("configAgain")}</button></p>}
        {result && (
          <>
            <Warnings of={result.warnings} />
            <Changes before={textOf(result.before)} after={textOf(result.object)} label={text("configChanges")} />
          </>
        )}
        <Ways of={ways} offer={offer} />
        <div class="buttons">
          <button type="button" onClick={close}>{text("back")}</button>
          <button class="primary" disabled={busy.value || result?.before !== before}>{text("configSave")}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Annotations without those that are about one write. */
function without(annotations: Record<string, string> = {}): Record<string, string> {
  const { [force]: _, [within]: __, [cause]: ___, ...rest } = annotations;
  return rest;
}

function Rollback({ to, close, done }: { to: Revision; close: () => void; done: () => void }) {
  const ways = useWays();
  const post = (query: string) => sent<{ status: { changes?: Change[] } }>(`${path}/rollback${query}`, "POST", {
    apiVersion: "management.platform.sh/v1", kind: "ConfigRollback", spec: { revision: to.revision },
    metadata: { annotations: ways.annotations() },
  });
  const { shown, problem, busy, submit } = usePreview({
    preview: async () => {
      const { object, warnings } = await post("?dryRun=All");
      return { changes: object.status.changes ?? [], warnings };
    },
    change: async () => {
      await post("");
      done();
    },
    inputs: [ways.forced.value, ways.trial.value],
  });
  const result = shown.value;
  const offer = problem.value?.causes.some(({ message }) => message?.includes(force)) ?? false;
  return (
    <Dialog title={text("rollbackTo", { revision: to.revision })} close={close} wide>
      <form onSubmit={submit}>
        <Problem of={problem.value} />
        {result && (
          <>
            <Warnings of={result.warnings} />
            <h3>{text("configChanges")}</h3>
            {result.changes.length === 0 ? <p>{text("rollbackSame")}</p> : <ChangeList of={result.changes} />}
          </>
        )}
        <Ways of={ways} offer={offer} />
        <AsKubectl command={`kubectl create --raw ${`/apis/management.platform.sh/v1/config/config/rollback`} -f - <<< '{"spec": {"revision": "${to.revision}"}}'`} />
        <div class="buttons">
          <button type="button" onClick={close}>{text("back")}</button>
          <button class="danger" disabled={busy.value || !result}>{text("rollback")}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** The configuration of the platform: its text, what a change would do, and what it was before. */
export function Configuration() {
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
    document.title = `${text("configuration")} · ${text("product")}`;
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
  useEffect(() => {
    if (until === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Without a confirmation, the configuration is another one then.
    const look = () => {
      clearTimeout(timer);
      if (document.hidden) return;
      const left = until + 1000 - Date.now();
      if (left > 0) timer = setTimeout(look, left);
      else void load();
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [until]);
  return (
    <div class="studio">
      <div class="title">
        <div>
          <h1>{text("configuration")}</h1>
          <p class="quiet">{text("configLead")}</p>
        </div>
        {change && (
          <div class="buttons">
            <button type="button" disabled={!changed} onClick={() => batch(() => { place(base); causes.value = none; })}>{text("configDiscard")}</button>
            <button type="button" class="primary" disabled={!changed} onClick={review}>{text("configReview")}</button>
          </div>
        )}
      </div>
      <Problem of={problem.value} />
      <div role="status">{done.value && <p class="decision yes">{done.value}</p>}</div>
      {waiting && (
        <div class="held">
          <p>{until > 0 ? text("configWaiting", { time: exact(new Date(until).toISOString()), when: distance(new Date(until).toISOString()) }) : waiting.message}</p>
          {change && <button type="button" class="primary" onClick={() => void confirm()}>{text("configConfirm")}</button>}
        </div>
      )}
      {/* An editor that becomes another one would lose what is typed into it meanwhile. */}
      {!config.value || change === undefined ? !problem.value && <p class="quiet" role="status">{text("loading")}</p> : (
        <div class="panes">
          <div>
            <Editor
              key={change ? "editor" : "text"} label={text("configuration")} value={draft.value} replacement={replacement} findings={findings} readOnly={!change}
              change={(typed) => batch(() => { draft.value = typed; causes.value = none; })} cursor={(offset) => (cursor.value = offset)}
            />
            <p class="quiet">{text("configSecrets")}</p>
          </div>
          <FieldHelp steps={stepsAt(parsed, cursor.value)} />
        </div>
      )}
      {connectors.length > 0 && <Connectors of={connectors} />}
      {conditions.length > 0 && (
        <>
          <h2>{text("conditions")}</h2>
          <ul>{conditions.map(({ type, status, message }) => <li><code>{type}={status}</code> {message}</li>)}</ul>
        </>
      )}
      {history.value.length > 0 && (
        <>
          <h2>{text("history")}</h2>
          <ol class="revisions">
            {history.value.map((one, i) => (
              <li>
                <details>
                  <summary>
                    <strong>{text("revision", { revision: one.revision })}</strong>{" "}
                    {one.author ?? text("revisionFirst")}{one.time && <>, <time dateTime={one.time} title={exact(one.time)}>{distance(one.time)}</time></>}
                    {one.rolledBackTo && <>, {text("revisionRolled", { revision: one.rolledBackTo })}</>}
                    {one.reason && <>, <q>{one.reason}</q></>}
                    {", "}{text((one.changes ?? []).length === 1 ? "fieldsOne" : "fields", { count: (one.changes ?? []).length })}
                  </summary>
                  <ChangeList of={one.changes ?? []} />
                </details>
                {roll && i > 0 && <button type="button" aria-label={text("rollbackTo", { revision: one.revision })} onClick={() => (rolling.value = one)}>{text("rollbackAsk")}</button>}
              </li>
            ))}
          </ol>
        </>
      )}
      <AsKubectl command="kubectl edit config config" />
      {reviewed.value && config.value && (
        <Review
          before={config.value} draft={reviewed.value} close={() => (reviewed.value = null)} reload={() => void load()} refused={locate}
          saved={(after) => {
            batch(() => {
              reviewed.value = null;
              config.value = after;
              place(textOf(after));
              done.value = text("configSaved", { revision: after.metadata.resourceVersion });
            });
            void load();
          }}
        />
      )}
      {rolling.value && (
        <Rollback
          to={rolling.value} close={() => (rolling.value = null)}
          done={() => {
            rolling.value = null;
            done.value = text("rollbackDone");
            void load();
          }}
        />
      )}
    </div>
  );
}
