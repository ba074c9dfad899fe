import { useEffect } from "preact/hooks";
import { Connectors } from "../config/connectors";
import { FieldHelp } from "../config/fieldhelp";
import { ChangeList, Review, Rollback } from "../config/review";
import { useConfiguration, type Revision } from "../config/state";
import { AsKubectl, distance, exact, Problem, text } from "../shared";
import { stepsAt } from "../studio/documents";
import { Editor } from "../studio/editor";

/** The writes of the configuration, the newest first. Rollback takes the configuration back to one of them, if the session may do that. */
function History({ revisions, rollback }: { revisions: Revision[]; rollback?: (revision: Revision) => void }) {
  return (
    <>
      <h2>{text("history")}</h2>
      <ol class="revisions">
        {revisions.map((revision, i) => (
          <li>
            <details>
              <summary>
                <strong>{text("revision", { revision: revision.revision })}</strong>{" "}
                {revision.author ?? text("revisionFirst")}{revision.time && <>, <time dateTime={revision.time} title={exact(revision.time)}>{distance(revision.time)}</time></>}
                {revision.rolledBackTo && <>, {text("revisionRolled", { revision: revision.rolledBackTo })}</>}
                {revision.reason && <>, <q>{revision.reason}</q></>}
                {", "}{text((revision.changes ?? []).length === 1 ? "fieldsOne" : "fields", { count: (revision.changes ?? []).length })}
              </summary>
              <ChangeList of={revision.changes ?? []} />
            </details>
            {rollback && i > 0 && <button type="button" aria-label={text("rollbackTo", { revision: revision.revision })} onClick={() => rollback(revision)}>{text("rollbackAsk")}</button>}
          </li>
        ))}
      </ol>
    </>
  );
}

/** The configuration of the platform: its text, what a change would do, and what it was before. */
export function Configuration() {
  const state = useConfiguration();
  const { config, history, draft, replacement, cursor, problem, reviewed, rolling, done, change, roll, parsed, findings, changed } = state;
  const { conditions, connectors, waiting, until, load, review, locate, confirm, discard, type, saved, rolledBack } = state;
  useEffect(() => { document.title = `${text("configuration")} · ${text("product")}`; }, []);
  return (
    <div class="studio">
      <div class="title">
        <div>
          <h1>{text("configuration")}</h1>
          <p class="quiet">{text("configLead")}</p>
        </div>
        {change && (
          <div class="buttons">
            <button type="button" disabled={!changed} onClick={discard}>{text("configDiscard")}</button>
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
              change={type} cursor={(offset) => (cursor.value = offset)}
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
      {history.value.length > 0 && <History revisions={history.value} rollback={roll ? (revision) => (rolling.value = revision) : undefined} />}
      <AsKubectl command="kubectl edit config config" />
      {reviewed.value && config.value && (
        <Review
          before={config.value} draft={reviewed.value} close={() => (reviewed.value = null)} reload={() => void load()} refused={locate}
          saved={saved}
        />
      )}
      {rolling.value && (
        <Rollback to={rolling.value} close={() => (rolling.value = null)} done={rolledBack} />
      )}
    </div>
  );
}
