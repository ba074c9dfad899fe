import { batch, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { ask, group, type Refusal } from "../api";
import { useSecret } from "../branding";
import { Command, CopyButton, quoteForShell } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Fact } from "../parts/facts";
import { Problem, asRefusal } from "../parts/problem";
import { text, type Text } from "../texts";
import { formatDateTime } from "../times";

/** The report of a trial: what the sign-in would have done. */
interface Report {
  refusal?: string;
  claims?: string[];
  absent?: string[];
  leftOut?: string;
  id?: string;
  displayName?: string;
  email?: string;
  user?: string;
  newUser?: string;
  groups?: string[];
  teams?: string[];
  newTeams?: string[];
}

/** The status of a SignInTrial. */
interface Trial {
  address?: string;
  trial?: string;
  expirationTimestamp?: string;
  report?: Report;
}

/** How often the API is asked for the report of a trial, in milliseconds. */
const pollInterval = 2000;

/** Starts a trial at a connector, or reads the report of a trial. */
async function requestTrial(spec: { connector: string } | { trial: string | undefined }, signal: AbortSignal): Promise<Trial> {
  const body = JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "SignInTrial", spec });
  return (await ask<{ status: Trial }>(`${group}/signintrials?fieldValidation=Strict`, { method: "POST", body, signal })).status;
}

/** Waits for the next poll. There is no poll while the tab is hidden, and one at once when it is visible again. */
function waitForPoll(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const resume = () => {
      if (document.hidden && !signal.aborted) return;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", resume);
      signal.removeEventListener("abort", resume);
      resolve();
    };
    const timer = setTimeout(resume, pollInterval);
    document.addEventListener("visibilitychange", resume);
    signal.addEventListener("abort", resume);
  });
}

/** Reports whether a later request may succeed: the platform was not reached, has failed, or asks for a retry. */
function isTemporary({ code, retryAfter }: Refusal): boolean {
  return code === 0 || code >= 500 || retryAfter > 0;
}

/** Runs one trial at a time while the dialog is open. A new attempt starts a new trial. */
function useTrial(connector: string, attempt: number) {
  const currentTrial = useSignal<Trial | null>(null);
  const report = useSignal<Report | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const finished = useSignal(false);
  // Not after the next frame: a tab that draws none would ask for nothing.
  useLayoutEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    async function run() {
      const trial = await requestTrial({ connector }, signal);
      currentTrial.value = trial;
      while (!report.value) {
        await waitForPoll(signal);
        if (signal.aborted) return;
        try {
          const answer = await requestTrial({ trial: trial.trial }, signal);
          batch(() => { problem.value = null; report.value = answer.report ?? null; });
        } catch (failure) {
          if (signal.aborted || !isTemporary(asRefusal(failure))) throw failure;
          problem.value = asRefusal(failure);
        }
      }
    }
    batch(() => { currentTrial.value = null; report.value = null; problem.value = null; finished.value = false; });
    run().then(
      () => { if (!signal.aborted) finished.value = true; },
      (failure) => { if (!signal.aborted) batch(() => { problem.value = asRefusal(failure); finished.value = true; }); },
    );
    return () => controller.abort();
  }, [connector, attempt]);
  return { currentTrial, report, problem, finished };
}

/** A fact of several names. With lines, each name is on a line of its own, because names may contain spaces. */
function Names({ label, names = [], lines }: { label: Text; names?: string[]; lines?: boolean }) {
  if (names.length === 0) return null;
  return <Fact name={text(label)}>{names.map((name) => (lines ? <div><code>{name}</code></div> : <><code>{name}</code> </>))}</Fact>;
}

/** A fact of one text. Without a text, it is left out. */
function Value({ label, value }: { label: Text; value?: string }) {
  return value ? <Fact name={text(label)}>{value}</Fact> : null;
}

function ReportFacts({ report }: { report: Report }) {
  return (
    <dl>
      <Names label="trial.claims" names={report.claims} />
      <Names label="trial.absent" names={report.absent} lines />
      <Value label="trial.leftOut" value={report.leftOut} />
      <Value label="trial.personID" value={report.id} />
      <Value label="field.displayName" value={report.displayName} />
      <Value label="field.email" value={report.email} />
      <Value label="trial.user" value={report.user} />
      <Value label="trial.newUser" value={report.newUser} />
      <Names label="trial.groups" names={report.groups} />
      <Names label="page.teams" names={report.teams} />
      <Names label="trial.newTeams" names={report.newTeams} />
    </dl>
  );
}

/** The dialog of a sign-in on trial: first the address at which a person signs in, then the report. */
export function SignInTrialDialog({ connector, close }: { connector: string; close: () => void }) {
  const attempt = useSignal(0);
  const { currentTrial, report, problem, finished } = useTrial(connector, attempt.value);
  const waiting = currentTrial.value !== null && !finished.value;
  useSecret(waiting);
  const { address = "", expirationTimestamp } = currentTrial.value ?? {};
  const result = report.value;
  return (
    <Dialog title={text("trial.title", { name: connector })} close={close} wide>
      <p class="quiet">{text("trial.lead")}</p>
      {waiting && (
        <>
          <p>{text("trial.instruction")}</p>
          <div class="buttons start">
            <a href={address} target="_blank" rel="noopener noreferrer">{text("trial.open", { name: connector })}</a>
            <CopyButton content={() => address} label={text("trial.copy")} />
          </div>
        </>
      )}
      <Problem refusal={problem.value} />
      <div role="status">
        {waiting && <p>{text("trial.waiting", { time: expirationTimestamp ? formatDateTime(expirationTimestamp) : "" })} {text("trial.pageFails")}</p>}
        {!currentTrial.value && !finished.value && <p class="quiet">{text("state.loading")}</p>}
        {result && (result.refusal
          ? <p class="decision">{text("trial.refused")} <code>{result.refusal}</code></p>
          : <p class="decision yes">{text("trial.passed")}</p>)}
      </div>
      {result && <ReportFacts report={result} />}
      <Command label={text("trial.program")} command={`platform doctor --sign-in ${quoteForShell(connector)} --host ${quoteForShell(location.host)}`} />
      <div class="buttons">
        <button type="button" onClick={close}>{text("action.close")}</button>
        {finished.value && <button type="button" onClick={() => attempt.value++}>{text("trial.again")}</button>}
      </div>
    </Dialog>
  );
}
