import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Field, FieldGroup } from "../parts/field";
import { FormDialog, useSettle } from "../parts/form";
import { Lifetime } from "../parts/lifetime";
import { KindPage } from "../parts/kindpage";
import { OwnerField, useOwnerChoice } from "../parts/owner";
import { OwnerName } from "../parts/ownername";
import { ScopeField, useScopeChoice } from "../parts/scope";
import { type Scope, ScopeSource, ScopeWords } from "../parts/scopewords";
import {
  asRefusal, Chip, createObject, DetailsDialog, Fact, formatDuration, group, list, may, type Meta, type Owner, objectCommand, quoteForShell, DeleteDialog,
  text, type Text, Time, usePermitted, useWrite, warningsOf, type ListTexts,
} from "../shared";
import systems from "../systems.json";

/** The ways in which a condition compares a claim. */
const operators = ["is", "isOneOf", "hasPrefix"] as const;
type Operator = (typeof operators)[number];

/** The fields of a trust rule that the console reads. */
interface Rule {
  metadata: Meta;
  spec: {
    displayName?: string; description?: string; disabled?: boolean; issuer: string; caData?: string; audience?: string; maxTokenAgeSeconds?: number; once?: boolean; ttl?: number;
    match: ({ claim: string } & { is?: string; isOneOf?: string[]; hasPrefix?: string })[];
    owner?: Owner;
    scope?: Scope;
  };
}

const path = `${group}/trustrules`;
const words: ListTexts = {
  title: "page.trustrules", lead: "trustrules.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "trustrules.empty",
};
const lifetimes: [number, Text][] = [[600, "lifetime.tenMinutes"], [1800, "lifetime.halfHour"], [3600, "lifetime.hour"]];
const kinds: [string, Text][] = [["cluster", "scope.cluster"], ["project", "scope.project"], ["read", "scope.read"], ["yaml", "scope.yaml"]];
/** The default lifetime of a key of a rule, and the default maximum age of its token, in seconds. */
const defaultSeconds = 600;

/** A condition in the form, with an example of its value. */
interface Condition {
  claim: string;
  operator: Operator;
  value: string;
  example?: string;
}

/** The issuer and the claims of the tokens of a CI system. systems.json has the templates. */
interface Template {
  label: Text;
  hint: Text;
  issuer: string;
  match: Condition[];
}

const templates = systems as Template[];

const listOf = (value: string) => value.split(/[\s,]+/).filter(Boolean);

/** The conditions of a new rule. All of them must hold. */
function Conditions({ conditions }: { conditions: Signal<Condition[]> }) {
  const change = (index: number, fields: Partial<Condition>) => {
    conditions.value = conditions.value.map((condition, i) => (i === index ? { ...condition, ...fields } : condition));
  };
  const settle = useSettle();
  return (
    <FieldGroup paths={["spec.match"]} legend={text("trustrules.match")}>
      {conditions.value.map((condition, i) => {
        const path = `spec.match[${i}]`;
        const name = (label: string) => text("trustrules.conditionField", { label, number: i + 1 });
        const value = text(condition.operator === "isOneOf" ? "trustrules.values" : "trustrules.value");
        return (
          <FieldGroup paths={[path]} class="condition" label={text("trustrules.condition", { number: i + 1 })}>
            <Field label={text("trustrules.claim")} name={name(text("trustrules.claim"))} path={`${path}.claim`} value={condition.claim} set={(claim) => change(i, { claim })} required />
            <label>
              {text("trustrules.operator")}
              <select value={condition.operator} aria-label={name(text("trustrules.operator"))} onChange={(event) => { change(i, { operator: event.currentTarget.value as Operator }); settle([path]); }}>
                {operators.map((operator) => <option value={operator}>{text(`trustrules.${operator}`)}</option>)}
              </select>
            </label>
            <Field
              label={value} name={name(value)} path={`${path}.${condition.operator}`}
              value={condition.value} set={(value) => change(i, { value })} placeholder={condition.example} required
            />
            <button type="button" aria-label={name(text("action.remove"))} onClick={() => (conditions.value = conditions.value.filter((_, other) => other !== i))}>{text("action.remove")}</button>
          </FieldGroup>
        );
      })}
      <button type="button" onClick={() => (conditions.value = [...conditions.value, { claim: "", operator: "is", value: "" }])}>{text("trustrules.conditionAdd")}</button>
    </FieldGroup>
  );
}

function NewTrustRuleDialog({ close, created }: { close: () => void; created: (name: string, warnings: string[]) => void }) {
  const template = useSignal(templates[0]!);
  const name = useSignal("");
  const displayName = useSignal("");
  const issuer = useSignal(template.value.issuer);
  const match = useSignal(template.value.match);
  const owner = useOwnerChoice("team");
  const audience = useSignal("");
  const caData = useSignal("");
  const maxTokenAge = useSignal("");
  const once = useSignal("");
  const ttl = useSignal(defaultSeconds);
  const scopeChoice = useScopeChoice("cluster");
  const write = useWrite(path);
  function setTemplate(next: Template) {
    template.value = next;
    issuer.value = next.issuer;
    match.value = next.match;
    write.problem.value = null;
  }
  const quote = (value: unknown) => JSON.stringify(value);
  const condition = ({ claim, operator, value: text }: Condition) => ({ claim: claim.trim(), [operator]: operator === "isOneOf" ? listOf(text) : text.trim() });
  const seconds = maxTokenAge.value.trim();
  const body = [
    "apiVersion: management.platform.sh/v1", "kind: TrustRule", `metadata: {name: ${quote(name.value.trim())}}`, "spec:",
    ...(displayName.value ? [`  displayName: ${quote(displayName.value)}`] : []),
    `  issuer: ${quote(issuer.value.trim())}`,
    ...(caData.value.trim() ? [`  caData: ${quote(btoa(String.fromCharCode(...new TextEncoder().encode(caData.value))))}`] : []),
    ...(audience.value.trim() ? [`  audience: ${quote(audience.value.trim())}`] : []),
    ...(match.value.length === 0 ? ["  match: []"] : ["  match:", ...match.value.map((line) => `  - ${quote(condition(line))}`)]),
    ...(seconds ? [`  maxTokenAgeSeconds: ${seconds}`] : []),
    ...(once.value ? [`  once: ${once.value}`] : []),
    `  owner: ${quote(owner.owner())}`, `  ttl: ${ttl.value}`, `  scope:${scopeChoice.lines()}`, "",
  ].join("\n");
  const submit = () => write.run(async () => {
    await scopeChoice.check();
    return createObject(path, body);
  }, (response) => created(name.value.trim(), warningsOf(response)));
  return (
    <FormDialog title={text("trustrules.new")} close={close} wide write={write} submit={submit} button="trustrules.create">
      <p class="quiet">{text("trustrules.newLead")}</p>
      <fieldset>
        <legend>{text("trustrules.template")}</legend>
        <div class="choices">
          {templates.map((choice) => (
            <label class="choice">
              <input type="radio" name="template" checked={template.value === choice} onChange={() => setTemplate(choice)} />
              {text(choice.label)}
            </label>
          ))}
        </div>
        <p class="quiet">{text(template.value.hint)}</p>
      </fieldset>
      <div class="two">
        <Field label={text("field.name")} path="metadata.name" value={name.value} set={(to) => (name.value = to)} required />
        <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} />
      </div>
      <Field label={text("claim.iss")} path="spec.issuer" value={issuer.value} set={(to) => (issuer.value = to)} placeholder={text("trustrules.issuerExample")} required />
      <Conditions conditions={match} />
      <OwnerField choice={owner} legend="trustrules.owner" kinds={["team", "user"]} />
      <ScopeField choice={scopeChoice} kinds={kinds} />
      <Lifetime seconds={ttl} choices={lifetimes} />
      <details>
        <summary>{text("trustrules.more")}</summary>
        <div class="two">
          <Field label={text("claim.aud")} path="spec.audience" value={audience.value} set={(to) => (audience.value = to)} placeholder={location.origin} />
          <Field label={text("trustrules.maxAgeSeconds")} path="spec.maxTokenAgeSeconds" value={maxTokenAge.value} set={(to) => (maxTokenAge.value = to)} pattern="[0-9]*" placeholder={String(defaultSeconds)} />
        </div>
        <label>
          {text("trustrules.once")}
          <select value={once.value} onChange={(event) => (once.value = event.currentTarget.value)}>
            <option value="">{text("trustrules.onceDefault")}</option>
            <option value="true">{text("trustrules.onceTrue")}</option>
            <option value="false">{text("trustrules.onceFalse")}</option>
          </select>
        </label>
        <Field label={text("trustrules.caData")} path="spec.caData" value={caData.value} set={(to) => (caData.value = to)} lines={4} />
      </details>
      <details>
        <summary>{text("command.kubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - <<'END'\n${body}END`}</pre>
      </details>
    </FormDialog>
  );
}

function TrustRuleDetails({ rule, close, changed }: { rule: Rule; close: () => void; changed: (message?: string) => void }) {
  const { metadata: { name, uid, resourceVersion, creationTimestamp }, spec } = rule;
  const deleting = useSignal(false);
  const { problem, patch } = useWrite(path);
  const keys = useSignal<string | null>(null);
  const [mayChange, mayDelete] = usePermitted([{ verb: "patch", resource: "trustrules", name }, { verb: "delete", resource: "trustrules", name }], resourceVersion);
  useEffect(() => {
    if (!may("list", "ownedaccesskeys")) return;
    list(`${group}/ownedaccesskeys`, { fieldSelector: `status.trustRule.name=${name}`, limit: "500" }).then((table) => {
      const count = table.rows?.length ?? 0;
      keys.value = text(table.metadata?.continue ? "count.keysOrMore" : count === 1 ? "count.key" : "count.keys", { count });
    }, (failure) => (problem.value = asRefusal(failure)));
  }, [name, resourceVersion]);
  // With the resource version, the API refuses to overwrite a concurrent change of the rule.
  const setDisabled = (disabled: boolean) => patch(name, { metadata: { uid, resourceVersion }, spec: { disabled } }, () => (
    changed(text(disabled ? "trustrules.disabled" : "trustrules.enabled", { name }))
  ));
  const over = deleting.value && (
    <DeleteDialog path={path} object={rule.metadata} close={() => (deleting.value = false)} deleted={() => { close(); changed(text("trustrules.deleted", { name })); }}>
      <p>{text("trustrules.deleteLead")}</p>
    </DeleteDialog>
  );
  return (
    <DetailsDialog
      title={name} close={close} over={over} problem={problem.value} command={objectCommand(`trustrule ${quoteForShell(name)}`, mayChange)} events={{ resource: "trustrules", object: name }}
      facts={
        <>
          {spec.displayName && <Fact name={text("field.displayName")}>{spec.displayName}</Fact>}
          {spec.description && <Fact name={text("field.description")}>{spec.description}</Fact>}
          <Fact name={text("field.state")}><Chip kind={spec.disabled ? "off" : "good"}>{text(spec.disabled ? "state.disabled" : "state.enabled")}</Chip></Fact>
          <Fact name={text("claim.iss")}>{spec.issuer}</Fact>
          <Fact name={text("claim.aud")}>{spec.audience || text("trustrules.audienceDefault")}</Fact>
          <Fact name={text("trustrules.owner")}>{spec.owner && <OwnerName {...spec.owner} />}</Fact>
          <Fact name={text("lifetime.title")}>{formatDuration(spec.ttl || defaultSeconds)}</Fact>
          <Fact name={text("trustrules.maxAge")}>{formatDuration(spec.maxTokenAgeSeconds || defaultSeconds)}</Fact>
          {spec.once !== undefined && <Fact name={text("trustrules.once")}>{text(spec.once ? "trustrules.onceTrue" : "trustrules.onceFalse")}</Fact>}
          {spec.caData && <Fact name={text("trustrules.ownCA")}>{text("state.yes")}</Fact>}
          {keys.value && <Fact name={text("trustrules.keys")}>{keys.value}</Fact>}
          <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {mayDelete && <button type="button" class="danger quietly" onClick={() => { problem.value = null; deleting.value = true; }}>{text("action.delete")}</button>}
          {mayChange && <button type="button" onClick={() => void setDisabled(!spec.disabled)}>{text(spec.disabled ? "action.enable" : "action.disable")}</button>}
        </>
      }
    >
      <h3>{text("trustrules.match")}</h3>
      <ul>
        {spec.match.map(({ claim, is, isOneOf, hasPrefix }) => (
          <li><code>{claim}</code> {text(is ? "trustrules.is" : hasPrefix ? "trustrules.hasPrefix" : "trustrules.isOneOf")} <code>{is ?? hasPrefix ?? isOneOf?.join(", ")}</code></li>
        ))}
      </ul>
      <h3>{text("scope.title")}</h3>
      <ScopeWords scope={spec.scope ?? {}} />
      <ScopeSource scope={spec.scope ?? {}} />
      <p class="quiet">{text("trustrules.disableLead")}</p>
    </DetailsDialog>
  );
}

/** The trust rules, which say which jobs get an access key for their own token. */
export function TrustRules() {
  return (
    <KindPage<Rule>
      path={path} resource="trustrules" words={words} command="kubectl get trustrules --watch" newLabel="trustrules.new" isOff={(rule) => rule.spec.disabled ?? false}
      create={(close, created) => <NewTrustRuleDialog close={close} created={(name, warnings) => created(text("trustrules.created", { name }), warnings)} />}
      details={(rule, close, changed) => <TrustRuleDetails key={rule.metadata.uid} rule={rule} close={close} changed={changed} />}
    />
  );
}
