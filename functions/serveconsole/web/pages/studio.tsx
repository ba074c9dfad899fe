import { batch, computed, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import examples from "../examples.json";
import { useUnsaved } from "../parts/unsaved";
import { AsKubectl, download, text } from "../shared";
import { yaml, type Finding } from "../studio/documents";
import { Editor, type Replacement } from "../studio/editor";
import { Result } from "../studio/report";
import { fromFragment, largest, Unreadable, workOf, written } from "../studio/share";
import { Share } from "../studio/sharedialog";
import { exampleOf, studio, testFile } from "../studio/state";

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
