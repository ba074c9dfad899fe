import { useSignal } from "@preact/signals";
import type { Refusal } from "../api";
import { Problem, asRefusal } from "../parts/problem";
import { text } from "../texts";
import { Changes } from "./diff";
import { yaml } from "./documents";
import { evaluate, patchesOf } from "./evaluate";
import type { Outcome, Side } from "./state";

function value(of: unknown): string {
  return of === undefined ? "" : yaml(of).trim();
}

/** The object after the patches up to one, which is evaluated when somebody asks for it. */
function Step({ of, index }: { of: Outcome; index: number }) {
  const after = useSignal<string | null>(null);
  const problem = useSignal<Refusal | null>(null);
  async function look(open: boolean) {
    if (!open || after.value !== null) return;
    const { resource: _, configuration: __, checks: ___, ...rest } = of.spec;
    try {
      const status = await evaluate({ ...rest, patches: patchesOf(of.spec, of.list).slice(0, index + 1) }, new AbortController().signal);
      after.value = yaml(status.object);
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
  }
  return (
    <details onToggle={(event) => void look(event.currentTarget.open)}>
      <summary>{text("studioStep", { index })}</summary>
      {after.value !== null && <Changes before={yaml(of.spec.object)} after={after.value} label={text("studioStep", { index })} />}
      <Problem of={problem.value} />
    </details>
  );
}

/** What each patch did, what is proved, and what must be synced as well. */
function Report({ of, label }: { of: Outcome; label: string }) {
  const { status, spec } = of;
  const patches = status.patches ?? [];
  return (
    <>
      {(status.checks ?? []).length > 0 && (
        <ul class="proofs">
          {(status.checks ?? []).map((check) => (
            <li class={check.passed ? "passed" : "failed"}>
              <strong>{text(check.type === "RoundTrip" ? "studioRoundTrip" : "studioFixpoint")}: {text(check.passed
                ? (check.type === "RoundTrip" ? "studioLossless" : "studioStable") : (check.type === "RoundTrip" ? "studioLost" : "studioLoops"))}</strong>
              {check.reason && <> {check.reason}</>}
              {(check.differences ?? []).length > 0 && (
                <ul>
                  {(check.differences ?? []).map((one) => (
                    <li><code>{one.path}</code>: {text("studioDiffers", { want: value(one.want) || text("studioAbsent"), got: value(one.got) || text("studioAbsent") })}</li>
                  ))}
                </ul>
              )}
            </li>
          ))}
        </ul>
      )}
      {(status.references ?? []).length > 0 && (
        <>
          <h3>{text("studioReferences")}</h3>
          <ul>
            {(status.references ?? []).map((one) => (
              <li>
                <code>{[one.apiVersion, one.kind].filter(Boolean).join(" ")} {one.namespace ? `${one.namespace}/` : ""}{one.name}</code>{" "}
                {text("studioOnHost")} <code>{one.hostNamespace ? `${one.hostNamespace}/` : ""}{one.hostName}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>{text("studioTrace")}</h3>
      <ol class="trace" start={0} aria-label={`${text("studioTrace")}: ${label}`}>
        {patches.map((patch, index) => (
          <li>
            <code>{patch.path || text("studioWhole")}</code> <span class={`outcome ${patch.outcome.toLowerCase()}`}>{patch.outcome}</span>
            {patch.reason && <span class="quiet"> {patch.reason}</span>}
            {patch.outcome !== "Skipped" && (
              <ul>
                {(patch.matches ?? []).slice(0, 100).map((match) => (
                  <li>
                    <code>{match.path}</code> <span class={`outcome ${match.outcome.toLowerCase()}`}>{match.outcome}</span>{" "}
                    {match.before !== undefined && match.outcome !== "Unchanged" && <code class="removed">{value(match.before)}</code>}{" "}
                    {match.after !== undefined && <code class={match.outcome === "Unchanged" ? "" : "added"}>{value(match.after)}</code>}
                    {match.reason && <span class="quiet"> {match.reason}</span>}
                  </li>
                ))}
              </ul>
            )}
            {(Number(patch.omittedMatches ?? 0) > 0 || (patch.matches ?? []).length > 100) && (
              <p class="quiet">{text("studioOmitted", { count: Number(patch.omittedMatches ?? 0) + Math.max(0, (patch.matches ?? []).length - 100) })}</p>
            )}
            {patches.length > 1 && patch.outcome !== "Skipped" && patch.outcome !== "Failed" && <Step key={spec} of={of} index={index} />}
          </li>
        ))}
      </ol>
    </>
  );
}

export function Result({ of, label, empty }: { of: Side; label: string; empty: string }) {
  const outcome = of.outcome.value;
  return (
    <section class="result" aria-label={label}>
      <h2>{label}</h2>
      <p class="quiet" role="status">
        {of.busy.value ? text("studioRuns") : of.stale.value ? text("studioStale") : outcome?.status.error ? text("studioFailed") : outcome ? text("studioCurrent") : empty}
      </p>
      <Problem of={of.refusal.value} />
      {of.findings.value.other.length > 0 && !of.refusal.value && <ul>{of.findings.value.other.map((one) => <li>{one.message}</li>)}</ul>}
      {outcome && (
        <div class={of.stale.value ? "stale" : ""}>
          <Changes before={yaml(outcome.spec.object)} after={yaml(outcome.status.object)} label={`${label}: ${text("studioObject")}`} />
          <Report of={outcome} label={label} />
        </div>
      )}
    </section>
  );
}
