import { batch, effect, signal } from "@preact/signals";
import type { Refusal } from "../api";
import examples from "../examples.json";
import { asRefusal } from "../parts/problem";
import { text } from "../texts";
import { toJson, parseText, toYaml, type ParsedText } from "./documents";
import { lineFeeds } from "./editor";
import {
  evaluate, failuresOf, findingsOf, resourceFor, resourcesOf, specOf, type Direction, type Findings, type Reference, type Resource, type Spec, type Status,
} from "./evaluate";
import { Unreadable, type Work } from "./share";

/** Evaluations begin this long after the last key press, in milliseconds. */
const evaluationDelay = 300;
const noFindings: Findings = { configuration: [], object: [], other: [] };

/** The status of an evaluation with its spec. */
export interface Outcome {
  spec: Spec;
  status: Status;
  list: Resource | undefined;
}

/** The state of one direction: its last outcome, whether the outcome is older than the text, and its findings. */
function createDirection(direction: Direction) {
  const outcome = signal<Outcome | null>(null);
  const stale = signal(false);
  const findings = signal<Findings>(noFindings);
  const refusal = signal<Refusal | null>(null);
  const busy = signal(false);
  let current: AbortController | null = null;
  /** The inputs of the shown outcome. The same inputs are not evaluated again. */
  let evaluatedKey = "";

  function stop() {
    current?.abort();
    current = null;
    busy.value = false;
  }

  /** Ends the current evaluation after a change of the text. A new one follows. */
  function announce() {
    stop();
    busy.value = true;
  }

  /** Evaluates, and ends the current evaluation. */
  async function run(spec: Spec, configuration: ParsedText, list: Resource | undefined, object: ParsedText) {
    stop();
    const key = toJson([spec, configuration.text, object.text]);
    if (key === evaluatedKey) return;
    evaluatedKey = "";
    const controller = (current = new AbortController());
    busy.value = true;
    try {
      const status = await evaluate(spec, controller.signal);
      if (current !== controller) return;
      batch(() => {
        outcome.value = { spec, status, list };
        findings.value = failuresOf(status, spec, configuration, list, object);
        refusal.value = null;
        stale.value = false;
      });
      evaluatedKey = key;
    } catch (failure) {
      if (current !== controller) return;
      const refused = asRefusal(failure);
      batch(() => {
        findings.value = findingsOf(refused, configuration, list, object);
        // Causes with a place in a text are shown there.
        refusal.value = refused.causes.length > 0 && findings.value.other.length === 0 ? null : refused;
        stale.value = outcome.value !== null;
      });
    } finally {
      if (current === controller) stop();
    }
  }

  /** Keeps the last outcome while the text cannot be evaluated. */
  function wait() {
    stop();
    evaluatedKey = "";
    batch(() => {
      findings.value = noFindings;
      refusal.value = null;
      stale.value = outcome.value !== null;
    });
  }

  /** Removes the outcome when there is no object. */
  function clear() {
    stop();
    evaluatedKey = "";
    batch(() => {
      outcome.value = null;
      findings.value = noFindings;
      refusal.value = null;
      stale.value = false;
    });
  }
  return { direction, outcome, stale, findings, refusal, busy, announce, run, wait, clear };
}

export type DirectionState = ReturnType<typeof createDirection>;

/** The state of the studio. It is lost when the page is closed. */
export function createStudio(initialWork: Work) {
  const work = signal(initialWork);
  /** The work that the page has last put into the editors. Later typing changes work alone. */
  const editorWork = signal(initialWork);
  /** The work that exists elsewhere: an example, a link, or a file. */
  const savedWork = signal(initialWork);
  /** Whether the work came by a link or a file: it is not evaluated before a person presses Run. */
  const awaitsConsent = signal(false);
  const unreadable = signal<Unreadable | null>(null);
  const texts = signal({ configuration: parseText(initialWork.configuration), tenant: parseText(initialWork.tenant), host: parseText(initialWork.host) });
  const lists = signal<Resource[]>([]);
  const list = signal<Resource | undefined>(undefined);
  const forward = createDirection("TenantToHost");
  const backward = createDirection("HostToTenant");
  let knownReferences = "";

  function run() {
    const { value: currentWork } = work;
    const { configuration, tenant, host } = texts.value;
    const evaluable = configuration.value !== undefined && configuration.value !== null && (Array.isArray(configuration.value) || list.value);
    const references: Reference[] = forward.outcome.value?.status.references ?? [];
    for (const [direction, object] of [[forward, tenant], [backward, host]] as const) {
      if (object.value === null) direction.clear();
      else if (!evaluable || object.value === undefined) direction.wait();
      else {
        void direction.run(specOf(currentWork, configuration.value, list.value, direction.direction, tenant.value ?? null, host.value ?? null, references), configuration, list.value, object);
      }
    }
  }

  /** Evaluates after each pause in typing, and again with the references of the outcome: without them, a name cannot be reversed. */
  function start(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = [
      effect(() => {
        const w = work.value;
        const next = { configuration: parseText(w.configuration), tenant: parseText(w.tenant), host: parseText(w.host) };
        const resources = resourcesOf(next.configuration.value);
        batch(() => {
          texts.value = next;
          lists.value = resources;
          list.value = resources.find(({ name }) => name === w.resource) ?? resourceFor(resources, next.tenant.value ?? next.host.value);
        });
        const mayEvaluate = !awaitsConsent.value;
        clearTimeout(timer);
        if (!mayEvaluate) return;
        for (const direction of [forward, backward]) direction.announce();
        timer = setTimeout(run, evaluationDelay);
      }),
      effect(() => {
        const references = JSON.stringify(forward.outcome.value?.status.references ?? []);
        if (references === knownReferences) return;
        knownReferences = references;
        if (!awaitsConsent.peek() && work.peek().host.trim() !== "") run();
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const end of stop) end();
      forward.clear();
      backward.clear();
    };
  }

  /** Shows work of a link or a file without evaluating it. */
  async function open(read: () => Promise<Work>) {
    try {
      const next = await read();
      batch(() => {
        awaitsConsent.value = true;
        unreadable.value = null;
        forward.clear();
        backward.clear();
        savedWork.value = replaceTexts(next);
      });
    } catch (failure) {
      unreadable.value = failure instanceof Unreadable ? failure : new Unreadable("studio.linkBroken");
    }
  }

  /** Takes over what a person has typed or chosen. */
  function change(part: Partial<Work>) {
    work.value = { ...work.value, ...part };
  }

  /** Puts work into the editors, and returns it with their line ends. */
  function replaceTexts(next: Work): Work {
    const { configuration, tenant, host } = next;
    const normalized = { ...next, configuration: lineFeeds(configuration), tenant: lineFeeds(tenant), host: lineFeeds(host) };
    batch(() => { work.value = editorWork.value = normalized; });
    return normalized;
  }
  return { work, editorWork, savedWork, awaitsConsent, unreadable, texts, lists, list, forward, backward, start, open, change, replaceTexts };
}

/** Returns the work of an example of the documentation. */
export function exampleOf(example: (typeof examples)[number]): Work {
  const { configuration, tenant, host } = example;
  return { configuration, tenant, host, resource: "", name: "my-vcluster", namespace: "my-vcluster-ns", mode: "Single", naming: "neutral" };
}

/** Returns the test file of the outcomes that are not older than the text, or null if there are none. */
export function testFile(directions: DirectionState[]): string | null {
  const tests = directions.flatMap(({ outcome, stale, refusal, busy }) => {
    if (!outcome.value || stale.value || refusal.value || busy.value) return [];
    const { spec, status } = outcome.value;
    const checks = (status.checks ?? []).filter((check) => check.passed).map((check) => check.type);
    const name = text(spec.direction === "TenantToHost" ? "studio.forward" : "studio.back");
    const { checks: _, ...rest } = spec;
    const request = checks.length > 0 && !status.error ? { ...rest, checks } : rest;
    return [status.error ? { name, spec: request, error: status.error.message } : { name, spec: request, expect: status.object }];
  });
  return tests.length === 0 ? null : toYaml({ tests }, false);
}
