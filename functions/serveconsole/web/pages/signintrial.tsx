import { batch, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, group, type Refusal } from "../api";
import { useSecret } from "../look";
import { AsKubectl, Copy, quoted } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Fact } from "../parts/facts";
import { Problem, asRefusal } from "../parts/problem";
import { text, type Text } from "../texts";
import { exact } from "../times";

/** What a sign-in would have done. */
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

/** A trial, as the API answers about it. */
interface Trial {
  address?: string;
  trial?: string;
  expirationTimestamp?: string;
  report?: Report;
}

/** How often the API is asked what came of a trial, in milliseconds. */
const askEvery = 2000;

/** Begins a trial at a connector, or asks what came of one. */
async function post(spec: { connector: string } | { trial: string | undefined }, signal: AbortSignal): Promise<Trial> {
  const body = JSON.stringify({ apiVersion: "management.platform.sh/v1", kind: "SignInTrial", spec });
  return (await ask<{ status: Trial }>(`${group}/signintrials?fieldValidation=Strict`, { method: "POST", body, signal })).status;
}

/** Waits until it is time to ask again. Nothing is asked for while the tab is hidden, and at once when somebody comes back to it. */
function pause(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const go = () => {
      if (document.hidden && !signal.aborted) return;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", go);
      signal.removeEventListener("abort", go);
      done();
    };
    const timer = setTimeout(go, askEvery);
    document.addEventListener("visibilitychange", go);
    signal.addEventListener("abort", go);
  });
}

/** Tells whether another request may have another answer: the platform was not reached, or has failed, or wants to be asked later. */
function mayPass({ code, retryAfter }: Refusal): boolean {
  return code === 0 || code >= 500 || retryAfter > 0;
}

/** Runs trials while the page shows them, one after the other: a new attempt begins another one. */
function useTrial(connector: string, attempt: number) {
  const begun = useSignal<Trial | null>(null);
  const report = useSignal<Report | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const over = useSignal(false);
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    async function run() {
      const trial = await post({ connector }, signal);
      begun.value = trial;
      while (!report.value) {
        await pause(signal);
        if (signal.aborted) return;
        try {
          const found = await post({ trial: trial.trial }, signal);
          batch(() => { problem.value = null; report.value = found.report ?? null; });
        } catch (failure) {
          if (signal.aborted || !mayPass(asRefusal(failure))) throw failure;
          problem.value = asRefusal(failure);
        }
      }
    }
    batch(() => { begun.value = null; report.value = null; problem.value = null; over.value = false; });
    run().then(
      () => { if (!signal.aborted) over.value = true; },
      (failure) => { if (!signal.aborted) batch(() => { problem.value = asRefusal(failure); over.value = true; }); },
    );
    return () => ended.abort();
  }, [connector, attempt]);
  return { begun, report, problem, over };
}

/** Several names, each as it is written. Those that have blanks are on lines of their own. */
function Names({ label, of = [], lines }: { label: Text; of?: string[]; lines?: boolean }) {
  if (of.length === 0) return null;
  return <Fact name={text(label)}>{of.map((one) => (lines ? <div><code>{one}</code></div> : <><code>{one}</code> </>))}</Fact>;
}

/** One text, if there is one. */
function Value({ label, of }: { label: Text; of?: string }) {
  return of ? <Fact name={text(label)}>{of}</Fact> : null;
}

function Found({ of }: { of: Report }) {
  return (
    <dl>
      <Names label="tryClaims" of={of.claims} />
      <Names label="tryAbsent" of={of.absent} lines />
      <Value label="tryLeftOut" of={of.leftOut} />
      <Value label="tryID" of={of.id} />
      <Value label="displayName" of={of.displayName} />
      <Value label="email" of={of.email} />
      <Value label="tryUser" of={of.user} />
      <Value label="tryNewUser" of={of.newUser} />
      <Names label="tryGroups" of={of.groups} />
      <Names label="teams" of={of.teams} />
      <Names label="tryNewTeams" of={of.newTeams} />
    </dl>
  );
}

/** The dialog that tries a sign-in at a connector: the address for a person, and then what came and what it would do. */
export function SignInTrial({ connector, close }: { connector: string; close: () => void }) {
  const attempt = useSignal(0);
  const { begun, report, problem, over } = useTrial(connector, attempt.value);
  const waiting = begun.value !== null && !over.value;
  useSecret(waiting);
  const { address = "", expirationTimestamp } = begun.value ?? {};
  const found = report.value;
  return (
    <Dialog title={text("tryTitle", { name: connector })} close={close} wide>
      <p class="quiet">{text("tryLead")}</p>
      {waiting && (
        <>
          <p>{text("tryWho")}</p>
          <div class="buttons start">
            <a href={address} target="_blank" rel="noopener noreferrer">{text("tryOpen", { name: connector })}</a>
            <Copy what={() => address} label={text("tryCopy")} />
          </div>
        </>
      )}
      <Problem of={problem.value} />
      <div role="status">
        {waiting && <p>{text("tryWaiting", { time: expirationTimestamp ? exact(expirationTimestamp) : "" })} {text("tryPageFails")}</p>}
        {!begun.value && !over.value && <p class="quiet">{text("loading")}</p>}
        {found && (found.refusal
          ? <p class="decision">{text("tryRefused")} <code>{found.refusal}</code></p>
          : <p class="decision yes">{text("tryPassed")}</p>)}
      </div>
      {found && <Found of={found} />}
      <AsKubectl label={text("tryProgram")} command={`platform doctor --sign-in ${quoted(connector)} --host ${quoted(location.host)}`} />
      <div class="buttons">
        <button type="button" onClick={close}>{text("close")}</button>
        {over.value && <button type="button" onClick={() => attempt.value++}>{text("tryAgain")}</button>}
      </div>
    </Dialog>
  );
}
