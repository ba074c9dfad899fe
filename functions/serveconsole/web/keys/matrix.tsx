import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, asRefusal, group, person, Problem, type Refusal, rules as sessionRules, Skeleton, text, type Key } from "../shared";
import { type Scope, ScopeSource, ScopeWords } from "../parts/scopewords";
import { OwnerName } from "../parts/ownername";
import { isOwn } from "./owners";

const platform = "management.platform.sh";

/** A set of requests that a scope permits. */
interface Rule {
  verbs: string[];
  group?: string;
  resource?: string;
  names?: string[];
  paths?: string[];
}

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/** Returns how rules permit a verb on a resource: on every object, on some objects, whose names it returns, or on none. */
function permission(rules: Rule[], resource: string, verb: string): true | string[] {
  const matching = rules.filter((rule) => rule.resource === resource && rule.verbs.some((each) => each === verb || each === "*"));
  return matching.some(({ names = [] }) => names.length === 0) || [...new Set(matching.flatMap(({ names = [] }) => names))];
}

/** The verbs that rules permit, by resource. */
function Matrix({ rules, label }: { rules: Rule[]; label: string }) {
  const own = rules.filter((rule) => rule.group === platform);
  const others = rules.filter((rule) => rule.group !== platform);
  const known = (sessionRules.value ?? []).filter((rule) => rule.group === platform);
  const resources = [...new Set([...known, ...own].map(({ resource = "" }) => resource))].sort();
  const columns = [...new Set([...verbs, ...[...known, ...own].flatMap((rule) => rule.verbs).filter((verb) => verb !== "*").sort()])];
  return (
    <>
      <div class="table matrix" tabIndex={0} role="region" aria-label={label}>
        <table>
          <thead>
            <tr><th scope="col">{text("preview.resource")}</th>{columns.map((verb) => <th scope="col"><span>{verb}</span></th>)}</tr>
          </thead>
          <tbody>
            {resources.map((resource) => (
              <tr>
                <th scope="row"><code>{resource.split("/").map((part, i) => i === 0 ? part : <>/<wbr />{part}</>)}</code></th>
                {columns.map((verb) => {
                  const permitted = permission(own, resource, verb);
                  if (permitted === true) return <td class="yes"><span class="hidden">{text("state.yes")}</span></td>;
                  if (permitted.length === 0) return <td class="no"><span class="hidden">{text("state.no")}</span></td>;
                  const names = text("matrix.some", { names: permitted.join(", ") });
                  return <td class="some" title={names}><span class="hidden">{names}</span></td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet legend">
        <span class="yes">{text("matrix.yes")}</span> <span class="some">{text("matrix.someLegend")}</span> <span class="no">{text("matrix.no")}</span>
      </p>
      {own.some(({ names = [] }) => names.length > 0) && (
        <ul class="entries">
          {own.filter(({ names = [] }) => names.length > 0).map((rule) => <li><code>{rule.resource}</code> {text("preview.names", { names: rule.names!.join(", ") })}: {rule.verbs.join(", ")}</li>)}
        </ul>
      )}
      {others.length > 0 && (
        <details>
          <summary>{text("matrix.others")}</summary>
          <ul>{others.map((rule) => <li>{rule.verbs.join(", ")}: <code>{rule.resource ? `${rule.resource}.${rule.group}` : (rule.paths ?? []).join(" ")}</code></li>)}</ul>
        </details>
      )}
    </>
  );
}

/** The namespaces of the projects that a scope names. */
function namespacesOf(scope: Scope): string[] {
  const projects = [...(scope.projects ?? []), ...(scope.virtualClusters ?? [])].map(({ project }) => project).filter((project) => project !== "*");
  return [...new Set(projects)].map((project) => (person.value?.projectNamespacePrefix ?? "") + project);
}

/** What a key may do: its scope in words, what the scope permits by resource and verb, and the scope in YAML. */
export function KeyScope({ accessKey }: { accessKey: Key }) {
  const scope = accessKey.spec.scope as Scope | undefined;
  const own = isOwn(accessKey.spec);
  const { user, team, subject = "", groups = [] } = accessKey.spec;
  const namespaces = scope ? namespacesOf(scope) : [];
  const namespace = useSignal(namespaces[0] ?? "");
  const rules = useSignal<Rule[] | null>(null);
  const incomplete = useSignal(false);
  const problem = useSignal<Refusal | null>(null);
  // Without a scope, a preview is about the caller: it says nothing about a key of another owner.
  const known = scope !== undefined || own;
  const wanted = JSON.stringify({ apiVersion: `${platform}/v1`, kind: "ScopePreview", spec: { scope, namespace: namespace.value } });
  useEffect(() => {
    if (!known) return;
    const current = new AbortController();
    ask<{ status: { rules?: Rule[]; incomplete?: boolean } }>(`${group}/scopepreviews`, { method: "POST", body: wanted, signal: current.signal }).then(({ status }) => {
      problem.value = null;
      incomplete.value = status.incomplete ?? false;
      rules.value = status.rules ?? [];
    }, (failure) => { if (!current.signal.aborted) problem.value = asRefusal(failure); });
    return () => current.abort();
  }, [wanted, known]);
  return (
    <>
      {scope ? <ScopeWords scope={scope} /> : own ? <p>{text("scope.unlimited")}</p> : <p>{text("matrix.ofOwner")} <OwnerName user={user} team={team} subject={subject} /></p>}
      {groups.length > 0 && <p>{text("matrix.groups")} {groups.map((name) => <><code>{name}</code> </>)}</p>}
      {!known && <p class="quiet">{text("matrix.unknown")}</p>}
      {known && (
        <>
          <h3>{text("matrix.title")}</h3>
          {!own && <p class="quiet">{text("matrix.other", { owner: user || team || subject })}</p>}
          {own && person.value?.accessKeyScope && <p class="quiet">{text("matrix.session")}</p>}
          {own && person.value?.accessKey !== accessKey.metadata.name && <p class="quiet">{text("matrix.sessionGroups")}</p>}
          {namespaces.length > 0 && (
            <label>{text("field.namespace")}
              <select value={namespace.value} onChange={(event) => (namespace.value = event.currentTarget.value)}>
                {namespaces.map((name) => <option value={name}>{name}</option>)}
                <option value="">{text("matrix.everywhere")}</option>
              </select>
            </label>
          )}
          <Problem refusal={problem.value} />
          {rules.value ? <Matrix rules={rules.value} label={text("matrix.title")} /> : !problem.value && <Skeleton />}
          {incomplete.value && <p class="quiet">{text("preview.incomplete")}</p>}
          <p class="quiet">{text("matrix.note")}</p>
        </>
      )}
      {scope && <ScopeSource scope={scope} />}
    </>
  );
}
