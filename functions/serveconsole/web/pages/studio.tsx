import { batch, computed, useSignal, type ReadonlySignal } from "@preact/signals";
import type { Extension } from "@codemirror/state";
import { useEffect, useMemo } from "preact/hooks";
import examples from "../examples.json";
import { useUnsaved } from "../parts/unsaved";
import { Command, download, text } from "../shared";
import { rangeOf, toYaml, type Finding } from "../studio/documents";
import { Editor, type Replacement } from "../studio/editor";
import { stepsToPatch } from "../studio/evaluate";
import { names } from "../studio/language";
import { patchLanguage } from "../studio/patchlanguage";
import { DirectionResult } from "../studio/report";
import { parseFragment, maxWorkBytes, Unreadable, parseWork, workText, type Work } from "../studio/share";
import { ShareDialog } from "../studio/sharedialog";
import { exampleOf, createStudio, testFile } from "../studio/state";

function uniqueFindings(findings: Finding[]): Finding[] {
  const seen = new Set<string>();
  return findings.filter(({ from, message }) => {
    const key = `${from} ${message}`;
    return !seen.has(key) && seen.add(key);
  });
}

function EditorSection(props: {
  label: string; hint?: string; value: string; replacement: ReadonlySignal<Replacement>; findings: ReadonlySignal<Finding[]>; change: (text: string) => void;
  language?: Extension;
}) {
  return (
    <section class="part">
      <h2>{props.label}</h2>
      {props.hint && <p class="quiet">{props.hint}</p>}
      <Editor label={props.label} value={props.value} replacement={props.replacement} findings={props.findings.value} change={props.change} language={props.language} />
    </section>
  );
}

/** Returns the values that expressions will see and that are known before the evaluation, by their names. */
function contextValues({ name, namespace, tenant, host, naming }: Work): Record<string, string> {
  return {
    "context.tenant.name": name, "context.tenant.namespace": namespace,
    ...(naming === "vcluster" ? { "context.vcluster": `{name: ${name}, namespace: ${namespace}}` } : {}),
    ...(tenant.trim() === "" ? { "context.virtualObject": "null" } : {}), ...(host.trim() === "" ? { "context.hostObject": "null" } : {}),
  };
}

/** What expressions can use, with the values that are known. */
function Names({ values }: { values: Record<string, string> }) {
  return (
    <details>
      <summary>{text("studio.names")}</summary>
      <ul>
        {names.map(({ name, signature, help }) => (
          <li><code>{signature}</code>: {help}{values[name] !== undefined && <> = <code>{values[name]}</code></>}</li>
        ))}
      </ul>
    </details>
  );
}

/** The patch studio: it shows what patches do to an object in both directions while a person writes them. */
export function Studio() {
  const state = useMemo(() => createStudio(exampleOf(examples[0]!)), []);
  const sharing = useSignal(false);
  /** What an example has replaced, until it is brought back or something else is written. */
  const replacedWork = useSignal<Work | null>(null);
  const language = useMemo(() => patchLanguage(() => contextValues(state.work.peek())), [state]);
  useEffect(() => {
    document.title = `${text("page.studio")} · ${text("app.product")}`;
    const openLink = () => { if (location.hash.length > 1) void state.open(() => parseFragment(location.hash)); };
    if (location.hash.length > 1) state.awaitsConsent.value = true;
    openLink();
    addEventListener("hashchange", openLink);
    const stop = state.start();
    return () => {
      removeEventListener("hashchange", openLink);
      stop();
    };
  }, [state]);
  const findings = useMemo(() => {
    const { texts, list, forward, backward } = state;
    return {
      configuration: computed(() => {
        const { configuration } = texts.value;
        const missingPatches: Finding[] = [];
        if (configuration.value !== undefined && configuration.value !== null && !Array.isArray(configuration.value) && !list.value) {
          const steps = stepsToPatch(configuration.value);
          const { from, to } = steps ? rangeOf(configuration, steps) : { from: 0, to: 0 };
          missingPatches.push({ from, to, severity: "error", message: text(steps ? "studio.patchOutside" : "studio.noPatches") });
        }
        return uniqueFindings([...configuration.findings, ...missingPatches, ...forward.findings.value.configuration, ...backward.findings.value.configuration]);
      }),
      tenant: computed(() => uniqueFindings([...texts.value.tenant.findings, ...forward.findings.value.object])),
      host: computed(() => uniqueFindings([...texts.value.host.findings, ...backward.findings.value.object])),
    };
  }, [state]);
  const replacements = useMemo(() => ({
    configuration: computed(() => ({ text: state.editorWork.value.configuration })),
    tenant: computed(() => ({ text: state.editorWork.value.tenant })),
    host: computed(() => ({ text: state.editorWork.value.host })),
  }), [state]);
  const { work, awaitsConsent, unreadable, lists, list, forward, backward } = state;
  const current = work.value;
  function change(part: Partial<Work>) {
    replacedWork.value = null;
    state.change(part);
  }
  useUnsaved(workText(current) !== workText(state.savedWork.value));
  const tests = awaitsConsent.value ? null : testFile([forward, backward]);
  const result = forward.outcome.value?.status;

  function loadExample(title: string) {
    const example = examples.find((candidate) => candidate.title === title);
    if (!example) return;
    const before = state.work.peek();
    batch(() => {
      replacedWork.value = workText(before) === workText(state.savedWork.peek()) ? null : before;
      awaitsConsent.value = false;
      unreadable.value = null;
      state.savedWork.value = state.replaceTexts(exampleOf(example));
    });
    removeLink();
  }
  function removeLink() {
    if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  }
  return (
    <div class="studio">
      <div class="title">
        <div>
          <h1>{text("page.studio")}</h1>
          <p class="quiet">{text("studio.lead")}</p>
        </div>
      </div>
      <div class="tools">
        <label class="inline">
          {text("studio.example")}{" "}
          <select value="" onChange={(event) => { loadExample(event.currentTarget.value); event.currentTarget.value = ""; }}>
            <option value="">{text("studio.choose")}</option>
            {examples.map((example) => <option value={example.title}>{example.title}</option>)}
          </select>
        </label>
        <label class="file">
          {text("studio.open")}
          <input
            class="hidden" type="file" accept=".json,application/json"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              event.currentTarget.value = "";
              if (file) void state.open(async () => { if (file.size > maxWorkBytes) throw new Unreadable("studio.linkLarge"); return parseWork(await file.text()); });
            }}
          />
        </label>
        <button type="button" onClick={() => { download("patch-studio.json", workText(current)); state.savedWork.value = current; }}>{text("studio.save")}</button>
        <button type="button" onClick={() => (sharing.value = true)}>{text("studio.share")}</button>
        <button type="button" disabled={tests === null} onClick={() => tests !== null && download("patches_test.yaml", tests)}>{text("studio.export")}</button>
      </div>
      {unreadable.value && <p class="problem" role="alert">{text(unreadable.value.why)}</p>}
      {replacedWork.value && !awaitsConsent.value && (
        <div class="held" role="status">
          <p>{text("studio.replaced")}</p>
          <button type="button" onClick={() => { state.replaceTexts(replacedWork.peek()!); replacedWork.value = null; }}>{text("studio.restore")}</button>
        </div>
      )}
      {awaitsConsent.value && (
        <div class="held" role="status">
          <p>{text("studio.held")}</p>
          <button type="button" class="primary" onClick={() => { awaitsConsent.value = false; unreadable.value = null; replacedWork.value = null; removeLink(); }}>{text("studio.run")}</button>
        </div>
      )}
      <div class="tools">
        <label class="inline">{text("studio.tenant")} <input value={current.name} autocapitalize="off" spellcheck={false} onInput={(event) => change({ name: event.currentTarget.value })} /></label>
        <label class="inline">{text("studio.namespace")} <input value={current.namespace} autocapitalize="off" spellcheck={false} onInput={(event) => change({ namespace: event.currentTarget.value })} /></label>
        <label class="inline">
          {text("studio.mode")}{" "}
          <select value={current.mode} onChange={(event) => change({ mode: event.currentTarget.value })}>
            <option value="Single">{text("studio.single")}</option>
            <option value="Multi">{text("studio.multi")}</option>
          </select>
        </label>
        <label class="inline">
          {text("studio.naming")}{" "}
          <select value={current.naming} onChange={(event) => change({ naming: event.currentTarget.value })}>
            <option value="neutral">{text("studio.neutral")}</option>
            <option value="vcluster">{text("studio.vcluster")}</option>
          </select>
        </label>
        {lists.value.length > 1 && (
          <label class="inline">
            {text("studio.resource")}{" "}
            <select value={list.value?.name} onChange={(event) => change({ resource: event.currentTarget.value })}>
              {lists.value.map(({ name }) => <option value={name}>{name}</option>)}
            </select>
          </label>
        )}
      </div>
      <div class="panes">
        <div>
          <EditorSection label={text("studio.configuration")} hint={text("studio.configurationHint")} value={current.configuration} replacement={replacements.configuration} findings={findings.configuration} change={(configuration) => change({ configuration })} language={language} />
          <Names values={contextValues(current)} />
        </div>
        <div>
          <EditorSection label={text("studio.tenantObject")} hint={text("studio.tenantHint")} value={current.tenant} replacement={replacements.tenant} findings={findings.tenant} change={(tenant) => change({ tenant })} />
          <DirectionResult direction={forward} label={text("studio.forward")} empty={text(awaitsConsent.value ? "studio.notRun" : "studio.noObject")} />
        </div>
        <div>
          <EditorSection label={text("studio.hostObject")} hint={text("studio.hostHint")} value={current.host} replacement={replacements.host} findings={findings.host} change={(host) => change({ host })} />
          {result?.object !== undefined && !result.error && !forward.stale.value && (
            <p class="take"><button type="button" onClick={() => state.replaceTexts({ ...work.value, host: toYaml(result.object) })}>{text("studio.useResult")}</button></p>
          )}
          <DirectionResult direction={backward} label={text("studio.back")} empty={text(awaitsConsent.value ? "studio.notRun" : "studio.noObject")} />
        </div>
      </div>
      <Command label={text("studio.command")} command="platform patch test patches_test.yaml" />
      {sharing.value && <ShareDialog work={current} close={() => (sharing.value = false)} />}
    </div>
  );
}
