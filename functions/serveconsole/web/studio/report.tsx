import { useSignal } from "@preact/signals";
import type { Refusal } from "../api";
import { Problem, asRefusal } from "../parts/problem";
import { text } from "../texts";
import { Changes } from "./changes";
import { toYaml } from "./documents";
import { evaluate, idlePatches, withFirstPatches } from "./evaluate";
import type { Outcome, DirectionState } from "./state";

function yamlText(object: unknown): string {
  return object === undefined ? "" : toYaml(object).trim();
}

/** The object after the patches up to an index. It is evaluated when its details are opened. */
function PatchStep({ outcome, index }: { outcome: Outcome; index: number }) {
  const objectAfter = useSignal<string | null>(null);
  const problem = useSignal<Refusal | null>(null);
  async function evaluateStep(open: boolean) {
    if (!open || objectAfter.value !== null) return;
    try {
      const status = await evaluate(withFirstPatches(outcome.spec, outcome.list, index + 1), new AbortController().signal);
      objectAfter.value = toYaml(status.object);
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  return (
    <details onToggle={(event) => void evaluateStep(event.currentTarget.open)}>
      <summary>{text("studio.step", { index })}</summary>
      {objectAfter.value !== null && <Changes before={toYaml(outcome.spec.object)} after={objectAfter.value} label={text("studio.step", { index })} />}
      <Problem refusal={problem.value} />
    </details>
  );
}

/** The report of an evaluation: its checks, the references that must be synced, and the trace of the patches. */
function OutcomeReport({ outcome, label }: { outcome: Outcome; label: string }) {
  const { status, spec } = outcome;
  const patches = status.patches ?? [];
  // Patches that do nothing lose nothing: that is no proof.
  const checks = (status.checks ?? []).filter((check) => !check.passed || idlePatches(status).length < patches.length);
  return (
    <>
      {checks.length > 0 && (
        <ul class="proofs">
          {checks.map((check) => (
            <li class={check.passed ? "passed" : "failed"}>
              <strong>{text(check.type === "RoundTrip" ? "studio.roundTrip" : "studio.fixpoint")}: {text(check.passed
                ? (check.type === "RoundTrip" ? "studio.lossless" : "studio.stable") : (check.type === "RoundTrip" ? "studio.lost" : "studio.loops"))}</strong>
              {check.reason && <> {check.reason}</>}
              {(check.differences ?? []).length > 0 && (
                <ul>
                  {(check.differences ?? []).map((difference) => (
                    <li><code>{difference.path}</code>: {text("studio.differs", { want: yamlText(difference.want) || text("studio.absent"), got: yamlText(difference.got) || text("studio.absent") })}</li>
                  ))}
                </ul>
              )}
            </li>
          ))}
        </ul>
      )}
      {(status.references ?? []).length > 0 && (
        <>
          <h3>{text("studio.references")}</h3>
          <ul>
            {(status.references ?? []).map((reference) => (
              <li>
                <code>{[reference.apiVersion, reference.kind].filter(Boolean).join(" ")} {reference.namespace ? `${reference.namespace}/` : ""}{reference.name}</code>{" "}
                {text("studio.onHost")} <code>{reference.hostNamespace ? `${reference.hostNamespace}/` : ""}{reference.hostName}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>{text("studio.trace")}</h3>
      <ol class="trace" start={0} aria-label={`${text("studio.trace")}: ${label}`}>
        {patches.map((patch, index) => (
          <li>
            <code>{patch.path || text("studio.whole")}</code> <span class={`outcome ${patch.outcome.toLowerCase()}`}>{patch.outcome}</span>
            {patch.reason && <span class="quiet"> {patch.reason}</span>}
            {patch.outcome !== "Skipped" && (
              <ul>
                {(patch.matches ?? []).slice(0, 100).map((match) => (
                  <li>
                    <code>{match.path}</code> <span class={`outcome ${match.outcome.toLowerCase()}`}>{match.outcome}</span>{" "}
                    {match.before !== undefined && match.outcome !== "Unchanged" && <code class="removed">{yamlText(match.before)}</code>}{" "}
                    {match.after !== undefined && <code class={match.outcome === "Unchanged" ? "" : "added"}>{yamlText(match.after)}</code>}
                    {match.reason && <span class="quiet"> {match.reason}</span>}
                  </li>
                ))}
              </ul>
            )}
            {(Number(patch.omittedMatches ?? 0) > 0 || (patch.matches ?? []).length > 100) && (
              <p class="quiet">{text("studio.omitted", { count: Number(patch.omittedMatches ?? 0) + Math.max(0, (patch.matches ?? []).length - 100) })}</p>
            )}
            {patches.length > 1 && patch.outcome !== "Skipped" && patch.outcome !== "Failed" && <PatchStep key={spec} outcome={outcome} index={index} />}
          </li>
        ))}
      </ol>
    </>
  );
}

export function DirectionResult({ direction, label, empty }: { direction: DirectionState; label: string; empty: string }) {
  const outcome = direction.outcome.value;
  const idle = outcome && !direction.stale.value ? idlePatches(outcome.status) : [];
  return (
    <section class="result" aria-label={label}>
      <h2>{label}</h2>
      <p class="quiet" role="status">
        {direction.busy.value ? text("studio.evaluating") : direction.stale.value ? text("studio.stale") : outcome?.status.error ? text("studio.failed") : outcome ? text("studio.evaluated") : empty}
      </p>
      <div role="status">
        {idle.length > 0 && (
          <ul class="findings">
            <li class="warning">
              <strong>{text("studio.idle", { idle: idle.length, count: outcome!.status.patches!.length })}</strong>{" "}
              {idle.length === 1 && idle[0]!.reason}
            </li>
          </ul>
        )}
      </div>
      <Problem refusal={direction.refusal.value} />
      {direction.findings.value.other.length > 0 && !direction.refusal.value && <ul>{direction.findings.value.other.map((cause) => <li>{cause.message}</li>)}</ul>}
      {outcome && (
        <div class={direction.stale.value ? "stale" : ""}>
          <Changes before={toYaml(outcome.spec.object)} after={toYaml(outcome.status.object)} label={`${label}: ${text("studio.object")}`} />
          <OutcomeReport outcome={outcome} label={label} />
        </div>
      )}
    </section>
  );
}
