import { batch, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Refusal } from "../api";
import { AsKubectl } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Warnings } from "../parts/frames";
import { Problem, asRefusal } from "../parts/problem";
import { Changes } from "../studio/diff";
import { json, type Fields } from "../studio/documents";
import { text } from "../texts";
import { cause, force, path, sent, textOf, within, type Change, type Config, type Revision } from "./state";

/** Says a value of a change. */
function shown(value: unknown): string {
  return value === undefined ? text("studioAbsent") : typeof value === "string" ? value : json(value);
}

export function ChangeList({ of }: { of: Change[] }) {
  return (
    <ul class="changelist">
      {of.map(({ path, from, to }) => (
        <li><code>{path}</code>: <code class="removed">{shown(from)}</code> → <code class="added">{shown(to)}</code></li>
      ))}
    </ul>
  );
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

export function Review(props: { before: Config; draft: Fields; close: () => void; reload: () => void; saved: (config: Config) => void; refused: (refusal: Refusal) => void }) {
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
            <Warnings of={result.warnings} label={text("configWarnings")} />
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

export function Rollback({ to, close, done }: { to: Revision; close: () => void; done: () => void }) {
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
            <Warnings of={result.warnings} label={text("configWarnings")} />
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
