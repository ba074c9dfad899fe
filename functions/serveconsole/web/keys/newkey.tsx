import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import {
  ask, day, formatDateTime, type Key, keysPath, person, Problem, quoteForShell, Refusal, ScopePreview, text, type Text,
  useIdempotentPost, usePermitted, useWrite,
} from "../shared";
import { Field, FieldGroup } from "../parts/field";
import { FormDialog } from "../parts/form";
import { Lifetime, type LifetimeChoice } from "../parts/lifetime";
import { OwnerField, useOwnerChoice } from "../parts/owner";
import { ScopeField, useScopeChoice } from "../parts/scope";
import { Secret, SecretDialog } from "../parts/secret";
import type { FormField } from "../pages/keys";
import { ownerKinds } from "./owners";
import { readPrefill } from "./prefill";

const lifetimes: LifetimeChoice[] = [[3600, "lifetime.hour"], [28_800, "lifetime.eightHours"], [86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"], [0, "lifetime.none"]];
/** In place of a lifetime: the key ends at a date. */
const byDate = -1;

/** Returns a time in the local time zone, as inputs of dates have it. */
function localDate(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The fields that name the owner. */
const ownerPaths = ["spec.user", "spec.team"];

/** The dialog that creates a key. Fields are what an address has filled in, and model is the key that they are from. */
export function NewKeyDialog({ fields, model, close, created }: { fields: Record<FormField, string>; model: string; close: () => void; created: (key: Key, secret: Secret) => void }) {
  const prefill = useMemo(() => readPrefill(fields), []);
  const isFilled = Object.values(fields).some(Boolean);
  const name = useSignal("");
  const displayName = useSignal(prefill.displayName);
  const description = useSignal(prefill.description);
  const ttl = useSignal(prefill.ttl ?? 86_400);
  const end = useSignal(localDate(Date.now() + 30 * day));
  const earliest = useMemo(() => localDate(Date.now() + 60_000), []);
  const afterLastActivity = useSignal(prefill.afterLastActivity);
  const others = ownerKinds();
  const groups = useSignal(prefill.groups);
  const owner = useOwnerChoice("self", prefill.owner);
  // A session with a scope creates keys with the same scope.
  const sessionScope = person.value?.accessKeyScope;
  const scopeChoice = useScopeChoice(sessionScope ? "all" : "read", sessionScope, prefill.scope);
  // What the address has wrong stands at its field until it is changed.
  const write = useWrite(keysPath, prefill.problems.length > 0 ? new Refusal(422, "", prefill.problems) : null);
  const attempt = useIdempotentPost();
  const attempted = useRef(false);
  // The lifetime until a date counts from this time. An attempt that is repeated has the same content.
  const now = useSignal(Date.now());

  const body = useComputed(() => {
    const scope = scopeChoice.lines();
    const seconds = ttl.value === byDate ? Math.max(1, Math.floor((Date.parse(end.value) - now.value) / 1000)) : ttl.value;
    const [ownerKind, ownerName] = Object.entries(owner.owner() ?? {})[0] ?? [];
    return [
      "apiVersion: management.platform.sh/v1",
      "kind: OwnedAccessKey",
      name.value ? `metadata: {name: ${JSON.stringify(name.value)}}` : 'metadata: {generateName: "key-"}',
      "spec:",
      `  displayName: ${JSON.stringify(displayName.value)}`,
      ...(description.value ? [`  description: ${JSON.stringify(description.value)}`] : []),
      ...(groups.value.trim() ? [`  groups: ${JSON.stringify(groups.value.trim().split(/[\s,]+/))}`] : []),
      ...(ownerKind ? [`  ${ownerKind}: ${JSON.stringify(ownerName)}`] : []),
      `  ttl: ${seconds}`,
      ...(afterLastActivity.value && ttl.value > 0 ? ["  ttlAfterLastActivity: true"] : []),
      ...(scope ? [`  scope:${scope}`] : []),
      "",
    ].join("\n");
  });
  const submit = () => {
    if (!write.problem.value || !attempted.current) now.value = Date.now();
    attempted.current = true;
    void write.run(async () => {
      await scopeChoice.check();
      return attempt(`${keysPath}?fieldValidation=Strict`, body.value, "application/yaml");
    }, async (response) => {
      const { spec: { key, ...spec }, ...rest } = (await response.json()) as Key;
      created({ ...rest, spec }, new Secret(key));
    });
  };

  const kinds: [string, Text][] = [
    ["read", "scope.read"], ["project", "scope.project"], ["cluster", "scope.cluster"], ["nothing", "scope.nothing"], ["all", owner.owner() ? "scope.unlimited" : "scope.all"], ["yaml", "scope.yaml"],
  ];
  const choices: LifetimeChoice[] = prefill.ttl === null || lifetimes.some(([seconds]) => seconds === prefill.ttl) ? lifetimes : [[prefill.ttl, null], ...lifetimes];
  return (
    <FormDialog title={text("keys.new")} close={close} wide submit={submit} write={write} button="keys.create">
      {isFilled && <p class="notice" role="note">{model ? text("prefill.model", { name: model }) : text("prefill.link")}</p>}
      <p class="quiet">{text("keys.createLead")}</p>
      <div class="two">
        <Field label={text("keys.purpose")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} maxLength={256} autofocus />
        <Field label={text("field.name")} path="metadata.name" value={name.value} set={(to) => (name.value = to)} maxLength={253} hint={text("keys.nameHint")} />
      </div>
      <Field label={text("field.description")} path="spec.description" value={description.value} set={(to) => (description.value = to)} lines={2} />
      {others.length > 0 ? <OwnerField choice={owner} legend="keys.actsAs" kinds={["self", ...others]} paths={ownerPaths} /> : <FieldGroup paths={ownerPaths} />}
      {prefill.groups && (
        <Field label={text("claim.groups")} path="spec.groups" value={groups.value} set={(to) => (groups.value = to)} hint={text("keys.groupsHint")} />
      )}
      <ScopeField choice={scopeChoice} kinds={kinds} />
      <ScopePreview scope={scopeChoice.lines()} ready={scopeChoice.isComplete()} />
      {owner.owner() && <p class="quiet">{text("keys.previewOther")}</p>}
      <Lifetime seconds={ttl} choices={choices}>
        <div class="choices">
          <label class="choice">
            <input type="radio" name="ttl" checked={ttl.value === byDate} onChange={() => (ttl.value = byDate)} />
            {text("lifetime.until")}
          </label>
          {ttl.value === byDate && (
            <input
              type="datetime-local" class="date" aria-label={text("field.expires")} required min={earliest} value={end.value}
              onInput={(event) => { end.value = event.currentTarget.value; now.value = Date.now(); }}
            />
          )}
        </div>
        <label class="choice">
          <input type="checkbox" checked={afterLastActivity.value && ttl.value > 0} disabled={ttl.value <= 0} onChange={(event) => (afterLastActivity.value = event.currentTarget.checked)} />
          {text("keys.afterLastActivity")}
        </label>
      </Lifetime>
      <details>
        <summary>{text("command.kubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - -o jsonpath='{.spec.key}' <<'END'\n${body.value}END`}</pre>
      </details>
    </FormDialog>
  );
}

/** How long the key that another one replaces works on. */
const graces = [[3600, "lifetime.hour"], [86_400, "lifetime.day"], [604_800, "lifetime.week"]] as const;

/** Lets the key from which a new one was filled in end after a time of grace, in which both work. */
function Replacement({ name, successor }: { name: string; successor: Key }) {
  const old = useSignal<Key | null>(null);
  const outcome = useSignal("");
  const { busy, problem, patch } = useWrite(keysPath);
  const [mayChange] = usePermitted([{ verb: "patch", resource: "ownedaccesskeys", name }], "");
  useEffect(() => { ask<Key>(`${keysPath}/${encodeURIComponent(name)}`).then((key) => (old.value = key), () => undefined); }, []);
  const key = old.value;
  // A key that ends with the old one does not replace it.
  if (!key || !mayChange || key.spec.disabled || successor.status?.lineage?.some(({ uid, bounds }) => bounds && uid === key.metadata.uid)) return null;
  const { uid, creationTimestamp } = key.metadata;
  const left = Date.parse(key.status?.expirationTimestamp ?? "") - Date.now();
  // The buttons stay, so that the keyboard goes on from there.
  const offered = graces.filter(([seconds]) => outcome.value || !(left <= 1000 * seconds));
  if (offered.length === 0) return null;
  const end = (seconds: number) => patch(name, { metadata: { uid }, spec: { ttl: Math.ceil((Date.now() - Date.parse(creationTimestamp)) / 1000) + seconds, ttlAfterLastActivity: false } }, async (response) => {
    old.value = (await response.json()) as Key;
    outcome.value = text("keys.replaced", { name, when: formatDateTime(old.value.status!.expirationTimestamp!) });
  });
  return (
    <>
      <div role="group" aria-labelledby="replacement" class="buttons start">
        <span id="replacement">{text("keys.replace", { name })}</span>
        {offered.map(([seconds, label]) => <button type="button" disabled={busy.value} onClick={() => void end(seconds)}>{text(label)}</button>)}
      </div>
      <p role="status" class="quiet">{outcome.value}</p>
      <Problem refusal={problem.value} />
    </>
  );
}

/** Shows a new key once. The page keeps nothing of it after the dialog is closed. Model is the key that it was filled in from, or empty. */
export function NewKeySecret({ accessKey, secret, model, close }: { accessKey: Key; secret: Secret; model: string; close: () => void }) {
  const file = `${accessKey.metadata.name}.key`;
  return (
    <SecretDialog title={text("keys.shownOnce")} lead={<p>{text("keys.shownOnceLead")}</p>} file={file} secret={secret} close={close}>
      <p class="quiet"><code>kubectl --token "$(cat {quoteForShell(file)})" get ownedaccesskeys</code></p>
      {model && <Replacement name={model} successor={accessKey} />}
    </SecretDialog>
  );
}
