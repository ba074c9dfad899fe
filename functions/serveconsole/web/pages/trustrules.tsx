import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Entry, FieldProblem, otherThan } from "../parts/field";
import { Kind } from "../parts/kind";
import { Owner, useOwner } from "../parts/owner";
import {
  asRefusal, DetailsDialog, Fact, FormDialog, group, Lifetime, list, may, type Meta, type Owned, ownerWord, quoted, type Refusal, Remove, Scope,
  text, type Text, Time, usePermitted, useScope, useWrite, warningsOf, type Words,
} from "../shared";
import systems from "../systems.json";

/** The ways in which a condition compares a claim. */
const operators = ["is", "isOneOf", "hasPrefix"] as const;
type Operator = (typeof operators)[number];

/** A trust rule, as far as the console reads it. */
interface Rule {
  metadata: Meta;
  spec: {
    displayName?: string; description?: string; disabled?: boolean; issuer: string; caData?: string; audience?: string; maxTokenAgeSeconds?: number; once?: boolean; ttl?: number;
    match: ({ claim: string } & { is?: string; isOneOf?: string[]; hasPrefix?: string })[];
    owner?: Owned;
    scope?: Record<string, unknown>;
  };
}

const path = `${group}/trustrules`;
const words: Words = {
  title: "trustRules", lead: "rulesLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "rulesEmpty",
};
const lifetimes: [number, Text][] = [[600, "tenMinutes"], [1800, "halfHour"], [3600, "hour"]];
const kinds: [string, Text][] = [["cluster", "mayCluster"], ["project", "mayProject"], ["read", "mayRead"], ["yaml", "mayYaml"]];
/** How long a key of a rule lives, and how long ago its token may have been issued, in seconds, unless the rule says so. */
const usual = 600;

/** A condition that somebody types, with an example of its value. */
interface Condition {
  claim: string;
  operator: Operator;
  value: string;
  example?: string;
}

/** What the tokens of a system look like. The templates are in systems.json. */
interface Template {
  label: Text;
  hint: Text;
  issuer: string;
  match: Condition[];
}

const templates = systems as Template[];

const listOf = (value: string) => value.split(/[\s,]+/).filter(Boolean);

/** The conditions of a new rule. All of them must hold. */
function Conditions({ of, problem }: { of: Signal<Condition[]>; problem: Refusal | null }) {
  const change = (at: number, fields: Partial<Condition>) => {
    of.value = of.value.map((one, i) => (i === at ? { ...one, ...fields } : one));
  };
  return (
    <fieldset>
      <legend>{text("ruleMatch")}</legend>
      {of.value.map((one, i) => {
        const at = `spec.match[${i}]`;
        const name = (label: string) => text("ruleOf", { label, number: i + 1 });
        const value = text(one.operator === "isOneOf" ? "ruleValues" : "ruleValue");
        return (
          <div class="condition" role="group" aria-label={text("ruleCondition", { number: i + 1 })}>
            <Entry label={text("ruleClaim")} name={name(text("ruleClaim"))} at={`${at}.claim`} problem={problem} value={one.claim} set={(claim) => change(i, { claim })} required />
            <label>
              {text("ruleOperator")}
              <select value={one.operator} aria-label={name(text("ruleOperator"))} onChange={(event) => change(i, { operator: event.currentTarget.value as Operator })}>
                {operators.map((operator) => <option value={operator}>{text(`rule_${operator}`)}</option>)}
              </select>
            </label>
            <Entry
              label={value} name={name(value)} at={`${at}.${one.operator}`} problem={problem}
              value={one.value} set={(value) => change(i, { value })} placeholder={one.example} required
            />
            <button type="button" aria-label={name(text("remove"))} onClick={() => (of.value = of.value.filter((_, other) => other !== i))}>{text("remove")}</button>
            <FieldProblem of={problem} at={at} exactly />
          </div>
        );
      })}
      <FieldProblem of={problem} at="spec.match" exactly />
      <button type="button" onClick={() => (of.value = [...of.value, { claim: "", operator: "is", value: "" }])}>{text("ruleConditionAdd")}</button>
    </fieldset>
  );
}

function Create({ close, made }: { close: () => void; made: (name: string, warnings: string[]) => void }) {
  const template = useSignal(templates[0]!);
  const name = useSignal("");
  const display = useSignal("");
  const issuer = useSignal(template.value.issuer);
  const match = useSignal(template.value.match);
  const owner = useOwner("team");
  const audience = useSignal("");
  const ca = useSignal("");
  const age = useSignal("");
  const once = useSignal("");
  const ttl = useSignal(usual);
  const chosen = useScope("cluster");
  const write = useWrite(path);
  function choose(next: Template) {
    template.value = next;
    issuer.value = next.issuer;
    match.value = next.match;
    write.problem.value = null;
  }
  const value = (of: unknown) => JSON.stringify(of);
  const condition = ({ claim, operator, value: typed }: Condition) => ({ claim: claim.trim(), [operator]: operator === "isOneOf" ? listOf(typed) : typed.trim() });
  const seconds = age.value.trim();
  const body = [
    "apiVersion: management.platform.sh/v1", "kind: TrustRule", `metadata: {name: ${value(name.value.trim())}}`, "spec:",
    ...(display.value ? [`  displayName: ${value(display.value)}`] : []),
    `  issuer: ${value(issuer.value.trim())}`,
    ...(ca.value.trim() ? [`  caData: ${value(btoa(String.fromCharCode(...new TextEncoder().encode(ca.value))))}`] : []),
    ...(audience.value.trim() ? [`  audience: ${value(audience.value.trim())}`] : []),
    ...(match.value.length === 0 ? ["  match: []"] : ["  match:", ...match.value.map((one) => `  - ${value(condition(one))}`)]),
    ...(seconds ? [`  maxTokenAgeSeconds: ${seconds}`] : []),
    ...(once.value ? [`  once: ${once.value}`] : []),
    `  owner: ${value(owner.owner())}`, `  ttl: ${ttl.value}`, `  scope:${chosen.lines()}`, "",
  ].join("\n");
  const refused = write.problem.value;
  return (
    <FormDialog
      title={text("newRule")} close={close} wide write={write} submit={() => write.create(body, (response) => made(name.value.trim(), warningsOf(response)))}
      refused={otherThan(refused, ["metadata.name", "spec"])} button="createRule"
    >
      <p class="quiet">{text("newRuleLead")}</p>
      <fieldset>
        <legend>{text("ruleTemplate")}</legend>
        <div class="choices">
          {templates.map((one) => (
            <label class="choice">
              <input type="radio" name="template" checked={template.value === one} onChange={() => choose(one)} />
              {text(one.label)}
            </label>
          ))}
        </div>
        <p class="quiet">{text(template.value.hint)}</p>
      </fieldset>
      <div class="two">
        <Entry label={text("createName")} at="metadata.name" problem={refused} value={name.value} set={(to) => (name.value = to)} required />
        <Entry label={text("displayName")} at="spec.displayName" problem={refused} value={display.value} set={(to) => (display.value = to)} />
      </div>
      <Entry label={text("claimIss")} at="spec.issuer" problem={refused} value={issuer.value} set={(to) => (issuer.value = to)} placeholder={text("ruleIssuerExample")} required />
      <Conditions of={match} problem={refused} />
      <Owner of={owner} legend="ruleOwner" kinds={["team", "user"]} problem={refused} />
      <Scope of={chosen} kinds={kinds} />
      <FieldProblem of={refused} at="spec.scope" />
      <Lifetime of={ttl} offered={lifetimes} />
      <FieldProblem of={refused} at="spec.ttl" />
      <details open={["spec.audience", "spec.maxTokenAgeSeconds", "spec.caData"].some((at) => refused?.causes.some(({ field }) => field === at)) || undefined}>
        <summary>{text("ruleMore")}</summary>
        <div class="two">
          <Entry label={text("claimAud")} at="spec.audience" problem={refused} value={audience.value} set={(to) => (audience.value = to)} placeholder={location.origin} />
          <Entry label={text("ruleAge")} at="spec.maxTokenAgeSeconds" problem={refused} value={age.value} set={(to) => (age.value = to)} pattern="[0-9]*" placeholder={String(usual)} />
        </div>
        <label>
          {text("ruleOnce")}
          <select value={once.value} onChange={(event) => (once.value = event.currentTarget.value)}>
            <option value="">{text("ruleOnceUsual")}</option>
            <option value="true">{text("ruleOnceTrue")}</option>
            <option value="false">{text("ruleOnceFalse")}</option>
          </select>
        </label>
        <Entry label={text("ruleCa")} at="spec.caData" problem={refused} value={ca.value} set={(to) => (ca.value = to)} lines={4} />
      </details>
      <details>
        <summary>{text("asKubectl")}</summary>
        <pre tabIndex={0}>{`kubectl create -f - <<'END'\n${body}END`}</pre>
      </details>
    </FormDialog>
  );
}

function One({ rule, close, changed }: { rule: Rule; close: () => void; changed: (said?: string) => void }) {
  const { metadata: { name, uid, resourceVersion, creationTimestamp }, spec } = rule;
  const deleting = useSignal(false);
  const { problem, patch } = useWrite(path);
  const keys = useSignal<string | null>(null);
  const [change, end] = usePermitted([{ verb: "patch", resource: "trustrules", name }, { verb: "delete", resource: "trustrules", name }], resourceVersion);
  useEffect(() => {
    if (!may("list", "ownedaccesskeys")) return;
    list(`${group}/ownedaccesskeys`, { fieldSelector: `status.trustRule.name=${name}`, limit: "500" }).then((table) => {
      const count = table.rows?.length ?? 0;
      keys.value = text(table.metadata?.continue ? "userKeysMore" : count === 1 ? "childrenKeysOne" : "childrenKeys", { count });
    }, (failure) => (problem.value = asRefusal(failure)));
  }, [name, resourceVersion]);
  // A change that somebody else has made to the rule since is not overwritten.
  const setDisabled = (disabled: boolean) => patch(name, { metadata: { uid, resourceVersion }, spec: { disabled } }, () => (
    changed(text(disabled ? "ruleDisabled" : "ruleEnabled", { name }))
  ));
  if (deleting.value) {
    return (
      <Remove path={path} of={rule.metadata} close={() => (deleting.value = false)} done={() => { close(); changed(text("ruleDeleted", { name })); }}>
        <p>{text("ruleDeleteLead")}</p>
      </Remove>
    );
  }
  return (
    <DetailsDialog
      title={name} close={close} problem={problem.value} command={`kubectl edit trustrule ${quoted(name)}`}
      facts={
        <>
          {spec.displayName && <Fact name={text("displayName")}>{spec.displayName}</Fact>}
          {spec.description && <Fact name={text("description")}>{spec.description}</Fact>}
          <Fact name={text("state")}>{text(spec.disabled ? "disabled" : "enabled")}</Fact>
          <Fact name={text("claimIss")}>{spec.issuer}</Fact>
          <Fact name={text("claimAud")}>{spec.audience || text("ruleAudienceUsual")}</Fact>
          <Fact name={text("ruleOwner")}>{ownerWord(spec.owner)}</Fact>
          <Fact name={text("createLifetime")}>{text("seconds", { count: spec.ttl || usual })}</Fact>
          <Fact name={text("ruleAgeOf")}>{text("seconds", { count: spec.maxTokenAgeSeconds || usual })}</Fact>
          {spec.once !== undefined && <Fact name={text("ruleOnce")}>{text(spec.once ? "ruleOnceTrue" : "ruleOnceFalse")}</Fact>}
          {spec.caData && <Fact name={text("ruleCaOf")}>{text("yes")}</Fact>}
          {keys.value && <Fact name={text("ruleKeys")}>{keys.value}</Fact>}
          <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {end && <button type="button" class="danger quietly" onClick={() => { problem.value = null; deleting.value = true; }}>{text("delete")}</button>}
          {change && <button type="button" onClick={() => void setDisabled(!spec.disabled)}>{text(spec.disabled ? "enable" : "disable")}</button>}
        </>
      }
    >
      <h3>{text("ruleMatch")}</h3>
      <ul>
        {spec.match.map(({ claim, is, isOneOf, hasPrefix }) => (
          <li><code>{claim}</code> {text(is ? "rule_is" : hasPrefix ? "rule_hasPrefix" : "rule_isOneOf")} <code>{is ?? hasPrefix ?? isOneOf?.join(", ")}</code></li>
        ))}
      </ul>
      <h3>{text("scope")}</h3>
      <pre tabIndex={0}>{JSON.stringify(spec.scope ?? {}, null, 2)}</pre>
      <p class="quiet">{text("ruleDisableLead")}</p>
    </DetailsDialog>
  );
}

/** The trust rules, which say which jobs get an access key for their own token. */
export function TrustRules() {
  return (
    <Kind<Rule>
      path={path} resource="trustrules" words={words} command="kubectl get trustrules --watch" add="newRule" off={(rule) => rule.spec.disabled ?? false}
      create={(close, made) => <Create close={close} made={(name, warnings) => made(text("ruleMade", { name }), warnings)} />}
      one={(rule, close, changed) => <One key={rule.metadata.uid} rule={rule} close={close} changed={changed} />}
    />
  );
}
