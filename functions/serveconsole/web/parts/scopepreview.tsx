import { batch, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, group, type Refusal } from "../api";
import { asRefusal, Problem } from "./problem";
import { text, type Text } from "../texts";

/** The fields of a ScopePreview that the console reads. */
interface Status {
  rules?: { verbs: string[]; group?: string; resource?: string; names?: string[]; paths?: string[] }[];
  incomplete?: boolean;
  excess?: { field: string; message: string }[];
  decision?: { allowed: boolean; reason: string };
}

const platform = "management.platform.sh";
const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "*"];

/** The request whose decision a preview shows. */
export interface PreviewRequest {
  verb: string;
  /** The resource, with its subresource after a slash. */
  resource: string;
  namespace: string;
  name: string;
}

const defaultRequest: PreviewRequest = { verb: "list", resource: "virtualclusterinstances", namespace: "", name: "" };

/** Shows what a key with a scope would permit, and whether the key would permit a request. The server decides, with the code that decides requests. */
export function ScopePreview({ scope, ready, asks: request = defaultRequest, title = "preview.title" }: { scope: string; ready: boolean; asks?: PreviewRequest; title?: Text }) {
  const status = useSignal<Status | null>(null);
  const problem = useSignal<Refusal | null>(null);
  const open = useSignal(false);
  const verb = useSignal(request.verb);
  const resource = useSignal(request.resource);
  const namespace = useSignal(request.namespace);
  const name = useSignal(request.name);
  const inputs = [verb.value, resource.value, namespace.value, name.value];
  useEffect(() => {
    if (!ready || !open.value) return;
    const current = new AbortController();
    const timer = setTimeout(async () => {
      const [kind = "", subresource] = resource.value.split("/");
      const requestLines = kind.trim() === "" ? [] : [`  request: ${JSON.stringify({
        verb: verb.value, group: platform, resource: kind.trim(), ...(subresource ? { subresource } : {}), namespace: namespace.value.trim(), name: name.value.trim(),
      })}`];
      const body = [
        `apiVersion: ${platform}/v1`, "kind: ScopePreview", "spec:", `  namespace: ${JSON.stringify(namespace.value.trim())}`,
        ...(scope ? [`  scope:${scope}`] : []), ...requestLines, "",
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
  }, [scope, ready, open.value, ...inputs]);
  const { rules = [], excess = [], decision, incomplete } = status.value ?? {};
  const platformRules = rules.filter((rule) => rule.group === platform);
  return (
    <details class="preview" onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>{text(title)}</summary>
      <Problem refusal={problem.value} />
      {excess.length > 0 && (
        <div class="problem">
          <p>{text("preview.excess")}</p>
          <ul>{excess.map((cause) => <li><code>{cause.field}</code> {cause.message}</li>)}</ul>
        </div>
      )}
      <div class="two">
        <label>{text("preview.verb")}
          <select value={verb.value} onChange={(event) => (verb.value = event.currentTarget.value)}>
            {[...verbs, ...(verbs.includes(request.verb) ? [] : [request.verb])].map((choice) => <option value={choice}>{choice}</option>)}
          </select>
        </label>
        <label>{text("preview.resource")}
          <input value={resource.value} autocapitalize="off" spellcheck={false} onInput={(event) => (resource.value = event.currentTarget.value)} />
        </label>
        <label>{text("preview.namespace")}
          <input value={namespace.value} autocapitalize="off" spellcheck={false} onInput={(event) => (namespace.value = event.currentTarget.value)} />
        </label>
        <label>{text("preview.name")}
          <input value={name.value} autocapitalize="off" spellcheck={false} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
      </div>
      <div role="status">
        {decision && (
          <p class={`decision ${decision.allowed ? "yes" : "no"}`}>
            <strong>{text(decision.allowed ? "preview.allowed" : "preview.refused")}</strong> {decision.reason}
          </p>
        )}
      </div>
      <h3>{text("preview.rules")}</h3>
      {platformRules.length === 0 ? <p>{text("preview.nothing")}</p> : (
        <ul>
          {platformRules.map((rule) => (
            <li>{rule.verbs.join(", ")}: <code>{rule.resource}</code>{(rule.names ?? []).length > 0 && <> {text("preview.names", { names: (rule.names ?? []).join(", ") })}</>}</li>
          ))}
        </ul>
      )}
      {incomplete && <p class="quiet">{text("preview.incomplete")}</p>}
    </details>
  );
}
