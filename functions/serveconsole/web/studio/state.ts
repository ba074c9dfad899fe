import { batch, effect, signal } from "@preact/signals";
import type { Refusal } from "../api";
import examples from "../examples.json";
import { asRefusal } from "../parts/problem";
import { text } from "../texts";
import { json, read, yaml, type Read } from "./documents";
import { lineFeeds } from "./editor";
import {
  evaluate, failuresOf, findingsOf, resourceFor, resourcesOf, specOf, type Direction, type Findings, type Reference, type Resource, type Spec, type Status,
} from "./evaluate";
import { Unreadable, type Work } from "./share";

/** Evaluations begin this long after the last key press, in milliseconds. */
const pause = 300;
const none: Findings = { configuration: [], object: [], other: [] };

/** What an evaluation found, with what it was asked. */
export interface Outcome {
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

export type Side = ReturnType<typeof side>;

/** The state of the studio. Nothing of it is kept when the page is closed. */
export function studio(begin: Work) {
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
export function exampleOf(example: (typeof examples)[number]): Work {
  const { configuration, tenant, host } = example;
  return { configuration, tenant, host, resource: "", name: "my-vcluster", namespace: "my-vcluster-ns", mode: "Single", naming: "neutral" };
}

/** Returns the test file for what is shown: it has each direction with a result that is not older than the text. */
export function testFile(sides: Side[]): string | null {
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
