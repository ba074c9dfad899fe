import { batch, computed, effect, signal, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import examples from "../examples.json";
import { useUnsaved } from "../parts/unsaved";
import { AsKubectl, asRefusal, Copy, Dialog, download, Problem, type Refusal, text } from "../shared";
import { Changes } from "../studio/diff";
import { json, masked, read, yaml, type Finding, type Read } from "../studio/documents";
import { Editor, lineFeeds, type Replacement } from "../studio/editor";
import {
  evaluate, failuresOf, findingsOf, patchesOf, resourceFor, resourcesOf, specOf, type Direction, type Findings, type Reference, type Resource, type Spec, type Status,
} from "../studio/evaluate";
import { fragment, fromFragment, largest, longLink, Unreadable, workOf, written, type Work } from "../studio/share";

/** Evaluations begin this long after the last key press, in milliseconds. */
const pause = 300;
const none: Findings = { configuration: [], object: [], other: [] };

/** What an evaluation found, with what it was asked. */
interface Outcome {
  spec: Spec;
  status: Status;
  list: Resource | undefined;
}

/** One direction: its last result, whether that is older than the text, and what is wrong. */
function side(direction: Direction) {
  const outcome = signal<Outcome | null>(null);
  const stale = signal(false);
  const findings = signal<Findings>(none);
  const refusal = signal<Refusal | null>(null);
  const busy = signal(false);
  let current: AbortController | null = null;
  /** What the shown result is of. The same is not evaluated again. */
  let done = "";

  function stop() {
    current?.abort();
    current = null;
    busy.value = false;
  }

  /** The text has changed: an evaluation follows, and the one before ends. */
  function announce() {
    stop();
    busy.value = true;
  }

  /** Evaluates, and ends the evaluation before. */
  async function run(spec: Spec, configuration: Read, list: Resource | undefined, object: Read) {
    stop();
    const key = json([spec, configuration.text, object.text]);
    if (key === done) return;
    done = "";
    const mine = (current = new AbortController());
    busy.value = true;
    try {
      const status = await evaluate(spec, mine.signal);
      if (current !== mine) return;
      batch(() => {
        outcome.value = { spec, status, list };
        findings.value = failuresOf(status, spec, configuration, list, object);
        refusal.value = null;
        stale.value = false;
      });
      done = key;
    } catch (failure) {
      if (current !== mine) return;
      const why = asRefusal(failure);
      batch(() => {
        findings.value = findingsOf(why, configuration, list, object);
        // What has a place in a text is shown there.
        refusal.value = why.causes.length > 0 && findings.value.other.length === 0 ? null : why;
        stale.value = outcome.value !== null;
      });
    } finally {
      if (current === mine) stop();
    }
  }

  /** The text cannot be evaluated: what is shown is the last result. */
  function wait() {
    stop();
    done = "";
    batch(() => {
      findings.value = none;
      refusal.value = null;
      stale.value = outcome.value !== null;
    });
  }

  /** There is no object. */
  function clear() {
    stop();
    done = "";
    batch(() => {
      outcome.value = null;
      findings.value = none;
      refusal.value = null;
      stale.value = false;
    });
  }
  return { direction, outcome, stale, findings, refusal, busy, announce, run, wait, clear };
}

type Side = ReturnType<typeof side>;

/** The state of the studio. Nothing of it is kept when the page is closed. */
function studio(begin: Work) {
  const work = signal(begin);
  /** The work that the page has put into the editors last. What is typed after it is in work alone. */
  const placed = signal(begin);
  /** What is kept elsewhere: an example, a link, or a file. */
  const kept = signal(begin);
  /** Work of somebody else is not evaluated before a person says so. */
  const held = signal(false);
  const unreadable = signal<Unreadable | null>(null);
  const texts = signal({ configuration: read(begin.configuration), tenant: read(begin.tenant), host: read(begin.host) });
  const lists = signal<Resource[]>([]);
  const list = signal<Resource | undefined>(undefined);
  const forward = side("TenantToHost");
  const back = side("HostToTenant");
  let known = "";

  function run() {
    const { value: w } = work;
    const { configuration, tenant, host } = texts.value;
    const usable = configuration.value !== undefined && configuration.value !== null && (Array.isArray(configuration.value) || list.value);
    const references: Reference[] = forward.outcome.value?.status.references ?? [];
    for (const [one, object] of [[forward, tenant], [back, host]] as const) {
      if (object.value === null) one.clear();
      else if (!usable || object.value === undefined) one.wait();
      else {
        void one.run(specOf(w, configuration.value, list.value, one.direction, tenant.value ?? null, host.value ?? null, references), configuration, list.value, object);
      }
    }
  }

  /** Evaluates after each pause, and again with the references that were found: without them, a name cannot be reversed. */
  function start(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = [
      effect(() => {
        const w = work.value;
        const next = { configuration: read(w.configuration), tenant: read(w.tenant), host: read(w.host) };
        const found = resourcesOf(next.configuration.value);
        batch(() => {
          texts.value = next;
          lists.value = found;
          list.value = found.find(({ name }) => name === w.resource) ?? resourceFor(found, next.tenant.value ?? next.host.value);
        });
        const go = !held.value;
        clearTimeout(timer);
        if (!go) return;
        for (const one of [forward, back]) one.announce();
        timer = setTimeout(run, pause);
      }),
      effect(() => {
        const found = JSON.stringify(forward.outcome.value?.status.references ?? []);
        if (found === known) return;
        known = found;
        if (!held.peek() && work.peek().host.trim() !== "") run();
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const each of stop) each();
      forward.clear();
      back.clear();
    };
  }

  /** Shows work of somebody, without evaluating it. */
  async function open(from: () => Promise<Work>) {
    try {
      const next = await from();
      batch(() => {
        held.value = true;
        unreadable.value = null;
        forward.clear();
        back.clear();
        kept.value = place(next);
      });
    } catch (failure) {
      unreadable.value = failure instanceof Unreadable ? failure : new Unreadable("linkBroken");
    }
  }

  /** Notes what somebody has typed or chosen. */
  function change(part: Partial<Work>) {
    work.value = { ...work.value, ...part };
  }

  /** Puts work into the editors, and returns it as they have it. */
  function place(next: Work): Work {
    const { configuration, tenant, host } = next;
    const own = { ...next, configuration: lineFeeds(configuration), tenant: lineFeeds(tenant), host: lineFeeds(host) };
    batch(() => { work.value = placed.value = own; });
    return own;
  }
  return { work, placed, kept, held, unreadable, texts, lists, list, forward, back, start, open, change, place };
}

/** Returns the work of an example of the documentation. */
function exampleOf(example: (typeof examples)[number]): Work {
  const { configuration, tenant, host } = example;
  return { configuration, tenant, host, resource: "", name: "my-vcluster", namespace: "my-vcluster-ns", mode: "Single", naming: "neutral" };
}

/** Returns the test file for what is shown: it has each direction with a result that is not older than the text. */
function testFile(sides: Side[]): string | null {
  const tests = sides.flatMap(({ outcome, stale, refusal, busy }) => {
    if (!outcome.value || stale.value || refusal.value || busy.value) return [];
    const { spec, status } = outcome.value;
    const checks = (status.checks ?? []).filter((check) => check.passed).map((check) => check.type);
    const name = text(spec.direction === "TenantToHost" ? "studioForward" : "studioBack");
    const { checks: _, ...rest } = spec;
    const asked = checks.length > 0 && !status.error ? { ...rest, checks } : rest;
    return [status.error ? { name, spec: asked, error: status.error.message } : { name, spec: asked, expect: status.object }];
  });
  return tests.length === 0 ? null : yaml({ tests }, false);
}

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

function Result({ of, label, empty }: { of: Side; label: string; empty: string }) {
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

/** The dialog with the link. */
function Share({ work, close }: { work: Work; close: () => void }) {
  const secrets = useSignal(false);
  const link = useSignal("");
  const refused = useSignal("");
  useEffect(() => effect(() => {
    const all = secrets.value;
    const tenant = all ? work.tenant : masked(work.tenant);
    const host = all ? work.host : masked(work.host);
    link.value = "";
    refused.value = "";
    if (tenant === null || host === null) {
      refused.value = text("studioShareErrors");
      return;
    }
    const shared = { ...work, tenant, host };
    if (written(shared).length > largest) {
      refused.value = text("studioShareLarge");
      return;
    }
    void fragment(shared).then((end) => {
      if (secrets.peek() === all) link.value = location.origin + location.pathname + end;
    });
  }), []);
  return (
    <Dialog title={text("studioShare")} close={close} wide>
      <p>{text("studioShareLead")}</p>
      <label class="choice">
        <input type="checkbox" checked={secrets.value} onChange={(event) => (secrets.value = event.currentTarget.checked)} />
        {text("studioShareSecrets")}
      </label>
      {refused.value && <p class="problem" role="alert">{refused.value}</p>}
      {link.value && (
        <label>
          {text("studioLink")}
          <textarea readOnly rows={4} spellcheck={false} value={link.value} />
        </label>
      )}
      {link.value.length > longLink && <p class="problem">{text("studioShareLong", { count: link.value.length })}</p>}
      <div class="buttons">
        <button type="button" onClick={close}>{text("close")}</button>
        {link.value && <Copy what={() => link.value} />}
      </div>
    </Dialog>
  );
}

function unique(findings: Finding[]): Finding[] {
  const seen = new Set<string>();
  return findings.filter(({ from, message }) => {
    const key = `${from} ${message}`;
    return !seen.has(key) && seen.add(key);
  });
}

function Part(props: {
  label: string; hint?: string; value: string; replacement: ReadonlySignal<Replacement>; of: ReadonlySignal<Finding[]>; change: (text: string) => void;
}) {
  return (
    <section class="part">
      <h2>{props.label}</h2>
      {props.hint && <p class="quiet">{props.hint}</p>}
      <Editor label={props.label} value={props.value} replacement={props.replacement} findings={props.of.value} change={props.change} />
    </section>
  );
}

/** The patch studio: what patches do to an object, in both directions, while they are written. */
export function Studio() {
  const s = useMemo(() => studio(exampleOf(examples[0]!)), []);
  const sharing = useSignal(false);
  useEffect(() => {
    document.title = `${text("studio")} · ${text("product")}`;
    const shared = () => { if (location.hash.length > 1) void s.open(() => fromFragment(location.hash)); };
    if (location.hash.length > 1) s.held.value = true;
    shared();
    addEventListener("hashchange", shared);
    const stop = s.start();
    return () => {
      removeEventListener("hashchange", shared);
      stop();
    };
  }, [s]);
  const parts = useMemo(() => {
    const { texts, list, forward, back } = s;
    return {
      configuration: computed(() => {
        const { configuration } = texts.value;
        const lacking: Finding[] = configuration.value !== undefined && configuration.value !== null && !Array.isArray(configuration.value) && !list.value
          ? [{ from: 0, to: 0, severity: "error", message: text("studioNoPatches") }] : [];
        return unique([...configuration.findings, ...lacking, ...forward.findings.value.configuration, ...back.findings.value.configuration]);
      }),
      tenant: computed(() => unique([...texts.value.tenant.findings, ...forward.findings.value.object])),
      host: computed(() => unique([...texts.value.host.findings, ...back.findings.value.object])),
    };
  }, [s]);
  const replacements = useMemo(() => ({
    configuration: computed(() => ({ text: s.placed.value.configuration })),
    tenant: computed(() => ({ text: s.placed.value.tenant })),
    host: computed(() => ({ text: s.placed.value.host })),
  }), [s]);
  const { work, held, unreadable, lists, list, forward, back, change } = s;
  const w = work.value;
  useUnsaved(written(w) !== written(s.kept.value));
  const tests = held.value ? null : testFile([forward, back]);
  const result = forward.outcome.value?.status;

  function load(title: string) {
    const found = examples.find((one) => one.title === title);
    if (!found) return;
    batch(() => {
      held.value = false;
      unreadable.value = null;
      s.kept.value = s.place(exampleOf(found));
    });
    forget();
  }
  function forget() {
    if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  }
  return (
    <div class="studio">
      <div class="title">
        <div>
          <h1>{text("studio")}</h1>
          <p class="quiet">{text("studioLead")}</p>
        </div>
      </div>
      <div class="tools">
        <label class="inline">
          {text("studioExample")}{" "}
          <select value="" onChange={(event) => { load(event.currentTarget.value); event.currentTarget.value = ""; }}>
            <option value="">{text("studioChoose")}</option>
            {examples.map((one) => <option value={one.title}>{one.title}</option>)}
          </select>
        </label>
        <label class="file">
          {text("studioOpen")}
          <input
            class="hidden" type="file" accept=".json,application/json"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              event.currentTarget.value = "";
              if (file) void s.open(async () => { if (file.size > largest) throw new Unreadable("linkLarge"); return workOf(await file.text()); });
            }}
          />
        </label>
        <button type="button" onClick={() => { download("patch-studio.json", written(w)); s.kept.value = w; }}>{text("studioSave")}</button>
        <button type="button" onClick={() => (sharing.value = true)}>{text("studioShare")}</button>
        <button type="button" disabled={tests === null} onClick={() => tests !== null && download("patches_test.yaml", tests)}>{text("studioExport")}</button>
      </div>
      {unreadable.value && <p class="problem" role="alert">{text(unreadable.value.why)}</p>}
      {held.value && (
        <div class="held" role="status">
          <p>{text("studioHeld")}</p>
          <button type="button" class="primary" onClick={() => { held.value = false; unreadable.value = null; forget(); }}>{text("studioRun")}</button>
        </div>
      )}
      <div class="tools">
        <label class="inline">{text("studioTenant")} <input value={w.name} autocapitalize="off" spellcheck={false} onInput={(event) => change({ name: event.currentTarget.value })} /></label>
        <label class="inline">{text("studioNamespace")} <input value={w.namespace} autocapitalize="off" spellcheck={false} onInput={(event) => change({ namespace: event.currentTarget.value })} /></label>
        <label class="inline">
          {text("studioMode")}{" "}
          <select value={w.mode} onChange={(event) => change({ mode: event.currentTarget.value })}>
            <option value="Single">{text("studioSingle")}</option>
            <option value="Multi">{text("studioMulti")}</option>
          </select>
        </label>
        <label class="inline">
          {text("studioNaming")}{" "}
          <select value={w.naming} onChange={(event) => change({ naming: event.currentTarget.value })}>
            <option value="neutral">{text("studioNeutral")}</option>
            <option value="vcluster">{text("studioVCluster")}</option>
          </select>
        </label>
        {lists.value.length > 1 && (
          <label class="inline">
            {text("studioResource")}{" "}
            <select value={list.value?.name} onChange={(event) => change({ resource: event.currentTarget.value })}>
              {lists.value.map(({ name }) => <option value={name}>{name}</option>)}
            </select>
          </label>
        )}
      </div>
      <div class="panes">
        <Part label={text("studioConfiguration")} hint={text("studioConfigurationHint")} value={w.configuration} replacement={replacements.configuration} of={parts.configuration} change={(configuration) => change({ configuration })} />
        <div>
          <Part label={text("studioTenantObject")} hint={text("studioTenantHint")} value={w.tenant} replacement={replacements.tenant} of={parts.tenant} change={(tenant) => change({ tenant })} />
          <Result of={forward} label={text("studioForward")} empty={text(held.value ? "studioNotRun" : "studioNoObject")} />
        </div>
        <div>
          <Part label={text("studioHostObject")} hint={text("studioHostHint")} value={w.host} replacement={replacements.host} of={parts.host} change={(host) => change({ host })} />
          {result?.object !== undefined && !result.error && !forward.stale.value && (
            <p class="take"><button type="button" onClick={() => s.place({ ...work.value, host: yaml(result.object) })}>{text("studioTake")}</button></p>
          )}
          <Result of={back} label={text("studioBack")} empty={text(held.value ? "studioNotRun" : "studioNoObject")} />
        </div>
      </div>
      <AsKubectl label={text("studioCommand")} command="platform patch test patches_test.yaml" />
      {sharing.value && <Share work={w} close={() => (sharing.value = false)} />}
    </div>
  );
}
