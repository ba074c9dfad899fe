import { useEffect } from "preact/hooks";
import { Connectors } from "../config/connectors";
import { FieldHelp } from "../config/fieldhelp";
import { ChangeList, ReviewDialog, RollbackDialog } from "../config/review";
import { useConfiguration, type Revision } from "../config/state";
import { Chip, Command, OwnerText, formatDistance, formatDateTime, objectCommand, Problem, text } from "../shared";
import { stepsAt } from "../studio/documents";
import { Editor } from "../studio/editor";

/** The revisions that changed the configuration, the newest first. Current is the stored revision, which may have changed metadata alone. Rollback is absent if the session may not roll back. */
function History({ revisions, current, rollback }: { revisions: Revision[]; current?: string; rollback?: (revision: Revision) => void }) {
  const newest = revisions[0]?.revision;
  return (
    <>
      <h2>{text("config.history")}</h2>
      {newest && current && current !== newest && <p class="quiet">{text("config.metadataRevision", { current, newest })}</p>}
      <ol class="revisions">
        {revisions.map((revision, i) => (
          <li>
            <details>
              <summary>
                <strong>{text("config.revision", { revision: revision.revision })}</strong>{" "}
                {revision.author ? <OwnerText owner={revision.author} /> : text("config.revisionFirst")}{revision.time && <>, <time dateTime={revision.time} title={formatDateTime(revision.time)}>{formatDistance(revision.time)}</time></>}
                {revision.rolledBackTo && <>, {text("config.revisionRolledBack", { revision: revision.rolledBackTo })}</>}
                {revision.reason && <>, <q>{revision.reason}</q></>}
                {", "}{text((revision.changes ?? []).length === 1 ? "config.fieldChanged" : "config.fieldsChanged", { count: (revision.changes ?? []).length })}
              </summary>
              <ChangeList changes={revision.changes ?? []} />
            </details>
            {rollback && i > 0 && <button type="button" aria-label={text("config.rollbackTo", { revision: revision.revision })} onClick={() => rollback(revision)}>{text("config.rollbackAsk")}</button>}
          </li>
        ))}
      </ol>
    </>
  );
}

/** The page of the configuration: its text, the preview of a change, and its history. */
export function Configuration() {
  const state = useConfiguration();
  const { config, history, draft, replacement, cursor, problem, reviewedDraft, rollbackTarget, message, mayChange, mayRollBack, parsed, findings, hasChanges } = state;
  const { conditions, connectors, trial, trialEnd, load, review, showCauses, confirm, discard, edit, showSaved, showRolledBack } = state;
  useEffect(() => { document.title = `${text("page.config")} · ${text("app.product")}`; }, []);
  return (
    <div class="studio">
      <div class="title">
        <div>
          <h1>{text("page.config")}</h1>
          <p class="quiet">{text("config.lead")}</p>
        </div>
        {mayChange && (
          <div class="buttons">
            <button type="button" disabled={!hasChanges} onClick={discard}>{text("config.discard")}</button>
            <button type="button" class="primary" disabled={!hasChanges} onClick={review}>{text("config.review")}</button>
          </div>
        )}
      </div>
      <Problem refusal={problem.value} />
      <div role="status">{message.value && <p class="decision yes">{message.value}</p>}</div>
      {trial && (
        <div class="held">
          <p>{trialEnd > 0 ? text("config.waiting", { time: formatDateTime(new Date(trialEnd).toISOString()), when: formatDistance(new Date(trialEnd).toISOString()) }) : trial.message}</p>
          {mayChange && <button type="button" class="primary" onClick={() => void confirm()}>{text("config.confirm")}</button>}
        </div>
      )}
      {/* Until it is known whether the editor is read-only, there is none: replacing it would lose what is typed meanwhile. */}
      {!config.value || mayChange === undefined ? !problem.value && <p class="quiet" role="status">{text("state.loading")}</p> : (
        <div class="panes">
          <div>
            <Editor
              key={mayChange ? "editor" : "text"} label={text("page.config")} value={draft.value} replacement={replacement} findings={findings} readOnly={!mayChange}
              change={edit} cursor={(offset) => (cursor.value = offset)}
            />
            <p class="quiet">{text("config.secrets")}</p>
          </div>
          <FieldHelp steps={stepsAt(parsed, cursor.value)} />
        </div>
      )}
      {connectors.length > 0 && <Connectors connectors={connectors} />}
      {conditions.length > 0 && (
        <>
          <h2>{text("field.conditions")}</h2>
          <ul class="rows">{conditions.map(({ type, status, message }) => <li><span>{message}</span><Chip kind={status === "True" ? "good" : status === "False" ? "bad" : "warning"}>{type}</Chip></li>)}</ul>
        </>
      )}
      {history.value.length > 0 && <History revisions={history.value} current={config.value?.metadata.resourceVersion} rollback={mayRollBack ? (revision) => (rollbackTarget.value = revision) : undefined} />}
      <Command command={objectCommand("config config", mayChange)} />
      {reviewedDraft.value && config.value && (
        <ReviewDialog
          base={config.value} draft={reviewedDraft.value} close={() => (reviewedDraft.value = null)} reload={() => void load()} onRefusal={showCauses}
          onSave={showSaved}
        />
      )}
      {rollbackTarget.value && (
        <RollbackDialog revision={rollbackTarget.value} close={() => (rollbackTarget.value = null)} rolledBack={showRolledBack} />
      )}
    </div>
  );
}
