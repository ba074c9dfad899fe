import { batch, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Refusal } from "../api";
import { Command } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Warnings } from "../parts/frames";
import { Problem, asRefusal } from "../parts/problem";
import { Changes } from "../studio/changes";
import { toJson, type Fields } from "../studio/documents";
import { text } from "../texts";
import { changeCauseAnnotation, forceAnnotation, configPath, requestConfig, textOf, confirmWithinAnnotation, type Change, type Config, type Revision } from "./state";

/** Returns the text of a value in a change. */
function valueText(value: unknown): string {
  return value === undefined ? text("studio.absent") : typeof value === "string" ? value : toJson(value);
}

export function ChangeList({ changes }: { changes: Change[] }) {
  return (
    <ul class="changelist">
      {changes.map(({ path, from, to }) => (
        <li><code>{path}</code>: <code class="removed">{valueText(from)}</code> → <code class="added">{valueText(to)}</code></li>
      ))}
    </ul>
  );
}

/** The options of a write: its reason, a confirmation without which it is rolled back, and force. */
function useWriteOptions() {
  const reason = useSignal("");
  const trial = useSignal("");
  const force = useSignal(false);
  const annotations = (): Record<string, string> => ({
    ...(reason.value.trim() ? { [changeCauseAnnotation]: reason.value.trim() } : {}), ...(trial.value ? { [confirmWithinAnnotation]: trial.value } : {}), ...(force.value ? { [forceAnnotation]: "true" } : {}),
  });
  return { reason, trial, forced: force, annotations };
}

function WriteOptions({ options: { reason, trial, forced }, offerForce }: { options: ReturnType<typeof useWriteOptions>; offerForce: boolean }) {
  return (
    <>
      <label>
        {text("config.reason")}
        <input value={reason.value} maxLength={200} onInput={(event) => (reason.value = event.currentTarget.value)} />
      </label>
      <fieldset>
        <legend>{text("config.safety")}</legend>
        <label>
          {text("config.trial")}
          <select value={trial.value} onChange={(event) => (trial.value = event.currentTarget.value)}>
            <option value="">{text("config.trialNone")}</option>
            <option value="1m">{text("lifetime.minute")}</option>
            <option value="10m">{text("lifetime.tenMinutes")}</option>
            <option value="1h">{text("lifetime.hour")}</option>
          </select>
        </label>
        {(offerForce || forced.value) && (
          <label class="choice">
            <input type="checkbox" checked={forced.value} onChange={(event) => (forced.value = event.currentTarget.checked)} />
            {text("config.force")}
          </label>
        )}
      </fieldset>
    </>
  );
}

/** A change with a preview. A preview that is still under way does not delay the change, and its result is ignored once the change is sent. */
function usePreviewedChange<T>({ preview, change, inputs, onRefusal }: { preview(): Promise<T>; change(): Promise<void>; inputs: unknown[]; onRefusal?: (refusal: Refusal) => void }) {
  const previewResult = useSignal<T | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const generation = useRef(0);
  useEffect(() => {
    const current = generation.current;
    preview().then(
      (result) => { if (current === generation.current) batch(() => { previewResult.value = result; problem.value = null; }); },
      (failure) => {
        if (current !== generation.current) return;
        const refusal = asRefusal(failure);
        batch(() => { previewResult.value = null; problem.value = refusal; });
        onRefusal?.(refusal);
      },
    );
    return () => { generation.current++; };
  }, inputs);
  async function submit(event: Event) {
    event.preventDefault();
    generation.current++;
    busy.value = true;
    try {
      await change();
    } catch (failure) {
      problem.value = asRefusal(failure);
    } finally {
      busy.value = false;
    }
  }
  return { previewResult, problem, busy, submit };
}

export function ReviewDialog(props: { base: Config; draft: Fields; close: () => void; reload: () => void; onSave: (config: Config) => void; onRefusal: (refusal: Refusal) => void }) {
  const { base, draft, close, reload, onSave, onRefusal } = props;
  const options = useWriteOptions();
  const writeConfig = (query: string) => requestConfig<Config>(`${configPath}?${query}fieldValidation=Strict`, "PUT", {
    ...base, status: draft, metadata: { ...base.metadata, annotations: { ...withoutWriteOptions(base.metadata.annotations), ...options.annotations() } },
  });
  const { previewResult, problem, busy, submit } = usePreviewedChange({
    preview: async () => ({ before: base, ...(await writeConfig("dryRun=All&")) }),
    change: async () => onSave((await writeConfig("")).object),
    inputs: [base, options.forced.value, options.trial.value],
    onRefusal,
  });
  const result = previewResult.value;
  const offer = problem.value?.causes.some(({ message }) => message?.includes(forceAnnotation)) ?? false;
  return (
    <Dialog title={text("config.review")} close={close} wide>
      <form onSubmit={submit}>
        <p class="quiet">{text("config.reviewLead")}</p>
        <Problem refusal={problem.value} />
        {problem.value?.code === 409 && <p><button type="button" onClick={reload}>{text("config.reload")}</button></p>}
        {result && (
          <>
            <Warnings warnings={result.warnings} label={text("config.warnings")} />
            <Changes before={textOf(result.before)} after={textOf(result.object)} label={text("config.changes")} />
          </>
        )}
        <WriteOptions options={options} offerForce={offer} />
        <div class="buttons">
          <button type="button" onClick={close}>{text("action.back")}</button>
          <button class="primary" disabled={busy.value || result?.before !== base}>{text("action.save")}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Returns annotations without the annotations that belong to one write. */
function withoutWriteOptions(annotations: Record<string, string> = {}): Record<string, string> {
  const { [forceAnnotation]: _, [confirmWithinAnnotation]: __, [changeCauseAnnotation]: ___, ...rest } = annotations;
  return rest;
}

export function RollbackDialog({ revision, close, rolledBack }: { revision: Revision; close: () => void; rolledBack: () => void }) {
  const options = useWriteOptions();
  const post = (query: string) => requestConfig<{ status: { changes?: Change[] } }>(`${configPath}/rollback${query}`, "POST", {
    apiVersion: "management.platform.sh/v1", kind: "ConfigRollback", spec: { revision: revision.revision },
    metadata: { annotations: options.annotations() },
  });
  const { previewResult, problem, busy, submit } = usePreviewedChange({
    preview: async () => {
      const { object, warnings } = await post("?dryRun=All");
      return { changes: object.status.changes ?? [], warnings };
    },
    change: async () => {
      await post("");
      rolledBack();
    },
    inputs: [options.forced.value, options.trial.value],
  });
  const result = previewResult.value;
  const offer = problem.value?.causes.some(({ message }) => message?.includes(forceAnnotation)) ?? false;
  return (
    <Dialog title={text("config.rollbackTo", { revision: revision.revision })} close={close} wide>
      <form onSubmit={submit}>
        <Problem refusal={problem.value} />
        {result && (
          <>
            <Warnings warnings={result.warnings} label={text("config.warnings")} />
            <h3>{text("config.changes")}</h3>
            {result.changes.length === 0 ? <p>{text("config.rollbackSame")}</p> : <ChangeList changes={result.changes} />}
          </>
        )}
        <WriteOptions options={options} offerForce={offer} />
        <Command command={`kubectl create --raw ${`/apis/management.platform.sh/v1/config/config/rollback`} -f - <<< '{"spec": {"revision": "${revision.revision}"}}'`} />
        <div class="buttons">
          <button type="button" onClick={close}>{text("action.back")}</button>
          <button class="danger" disabled={busy.value || !result}>{text("config.rollback")}</button>
        </div>
      </form>
    </Dialog>
  );
}
