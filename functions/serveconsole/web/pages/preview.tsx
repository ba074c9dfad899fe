import { batch, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, group, type Refusal } from "../api";
import { asRefusal, Problem } from "../parts/problem";
import { text, type Text } from "../texts";

/** What a scope permits, as far as the console reads it. */
interface Status {
  rules?: { verbs: string[]; group?: string; resource?: string; names?: string[]; paths?: string[] }[];
  incomplete?: boolean;
  excess?: { field: string; message: string }[];
  decision?: { allowed: boolean; reason: string };
}

const platform = "management.platform.sh";
const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "*"];

/** The request that a preview begins with. */
export interface Asked {
  verb: string;
  /** The resource, with its subresource after a slash. */
  resource: string;
  namespace: string;
  name: string;
}

const usual: Asked = { verb: "list", resource: "virtualclusterinstances", namespace: "", name: "" };

/** What a key with a scope would permit, and whether it would permit a request. The server decides, as it decides requests. */
export function Preview({ scope, ready, asks = usual, title = "preview" }: { scope: string; ready: boolean; asks?: Asked; title?: Text }) {
  const status = useSignal<Status | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const open = useSignal(false);
  const verb = useSignal(asks.verb);
  const resource = useSignal(asks.resource);
  const namespace = useSignal(asks.namespace);
  const name = useSignal(asks.name);
  const request = [verb.value, resource.value, namespace.value, name.value];
  useEffect(() => {
    if (!ready || !open.value) return;
    const current = new AbortController();
    const timer = setTimeout(async () => {
      const [kind = "", subresource] = resource.value.split("/");
      const asked = kind.trim() === "" ? [] : [`  request: ${JSON.stringify({
        verb: verb.value, group: platform, resource: kind.trim(), ...(subresource ? { subresource } : {}), namespace: namespace.value.trim(), name: name.value.trim(),
      })}`];
      const body = [
        `apiVersion: ${platform}/v1`, "kind: ScopePreview", "spec:", `  namespace: ${JSON.stringify(namespace.value.trim())}`,
        ...(scope ? [`  scope:${scope}`] : []), ...asked, "",
      ].join("\n");
      try {
        const answer = await ask<{ status: Status }>(`${group}/scopepreviews?fieldValidation=Strict`, {
          method: "POST", body, mediaType: "application/yaml", signal: current.signal,
        });
        batch(() => {
          status.value = answer.status;
          problem.value = null;
        });
      } catch (failure) {
        if (!current.signal.aborted) problem.value = asRefusal(failure);
      }
    }, 300);
    return () => {
      clearTimeout(timer);
      current.abort();
    };
  }, [scope, ready, open.value, ...request]);
  const { rules = [], excess = [], decision, incomplete } = status.value ?? {};
  const ours = rules.filter((rule) => rule.group === platform);
  return (
    <details class="preview" onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>{text(title)}</summary>
      <Problem of={problem.value} />
      {excess.length > 0 && (
        <div class="problem">
          <p>{text("previewExcess")}</p>
          <ul>{excess.map((one) => <li><code>{one.field}</code> {one.message}</li>)}</ul>
        </div>
      )}
      <div class="two">
        <label>{text("previewVerb")}
          <select value={verb.value} onChange={(event) => (verb.value = event.currentTarget.value)}>
            {[...verbs, ...(verbs.includes(asks.verb) ? [] : [asks.verb])].map((one) => <option value={one}>{one}</option>)}
          </select>
        </label>
        <label>{text("previewResource")}
          <input value={resource.value} autocapitalize="off" spellcheck={false} onInput={(event) => (resource.value = event.currentTarget.value)} />
        </label>
        <label>{text("previewNamespace")}
          <input value={namespace.value} autocapitalize="off" spellcheck={false} onInput={(event) => (namespace.value = event.currentTarget.value)} />
        </label>
        <label>{text("previewName")}
          <input value={name.value} autocapitalize="off" spellcheck={false} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
      </div>
      <div role="status">
        {decision && (
          <p class={`decision ${decision.allowed ? "yes" : "no"}`}>
            <strong>{text(decision.allowed ? "previewAllowed" : "previewRefused")}</strong> {decision.reason}
          </p>
        )}
      </div>
      <h3>{text("previewRules")}</h3>
      {ours.length === 0 ? <p>{text("previewNothing")}</p> : (
        <ul>
          {ours.map((rule) => (
            <li>{rule.verbs.join(", ")}: <code>{rule.resource}</code>{(rule.names ?? []).length > 0 && <> {text("previewNames", { names: (rule.names ?? []).join(", ") })}</>}</li>
          ))}
        </ul>
      )}
      {incomplete && <p class="quiet">{text("previewIncomplete")}</p>}
    </details>
  );
}
