import type { ComponentChildren } from "preact";
import { text, type Text } from "../shared";
import { yamlOf } from "./yaml";

/** The fields of a scope. */
export interface Scope {
  roles?: { role: string; projects?: string[]; virtualClusters?: string[] }[];
  projects?: { project: string }[];
  spaces?: { project: string; space: string }[];
  virtualClusters?: { project: string; virtualCluster: string }[];
  clusters?: { cluster: string }[];
  rules?: object[];
  allowPlatformCli?: boolean;
  readOnly?: boolean;
}

/** The role that allowPlatformCli stands for. */
const commandLine = "platformCLI";

/** A name of a scope. A star is every name. */
function Name({ name, every }: { name: string; every: Text }) {
  return name === "*" ? <em>{text(every)}</em> : <code>{name}</code>;
}

/** The entries of a scope in words. */
export function ScopeWords({ scope }: { scope: Scope }) {
  const entry = (label: Text, content: ComponentChildren) => <li><span class="quiet">{text(label)}</span> {content}</li>;
  const entries = [
    ...(scope.roles ?? []).map(({ role, projects = [], virtualClusters = [] }) => entry("scope.role", (
      <>
        <code>{role}</code>
        {projects.length > 0 && <> {text("scope.in")} {projects.map((project) => <><Name name={project} every="scope.everyProject" /> </>)}</>}
        {virtualClusters.length > 0 && <> {text("scope.in")} {virtualClusters.map((cluster) => <><Name name={cluster} every="scope.everyCluster" /> </>)}</>}
      </>
    ))),
    ...(scope.allowPlatformCli ? [entry("scope.role", <code>{commandLine}</code>)] : []),
    ...(scope.projects ?? []).map(({ project }) => entry("field.project", <Name name={project} every="scope.everyProject" />)),
    ...(scope.virtualClusters ?? []).map(({ project, virtualCluster }) => entry("field.virtualCluster", (
      <><Name name={virtualCluster} every="scope.everyCluster" /> {text("scope.in")} <Name name={project} every="scope.everyProject" /></>
    ))),
    ...(scope.spaces ?? []).map(({ project, space }) => entry("scope.space", (
      <><Name name={space} every="scope.everySpace" /> {text("scope.in")} <Name name={project} every="scope.everyProject" /></>
    ))),
    ...(scope.clusters ?? []).map(({ cluster }) => entry("scope.connectedCluster", <Name name={cluster} every="scope.everyConnectedCluster" />)),
    ...((scope.rules ?? []).length > 0 ? [entry("scope.rules", scope.rules!.length)] : []),
  ];
  return (
    <>
      {entries.length === 0 ? <p>{text("scope.nothing")}</p> : <ul class="entries">{entries}</ul>}
      {scope.readOnly && <p>{text("scope.readOnly")}</p>}
    </>
  );
}

/** A scope in YAML, which somebody opens to copy it. */
export function ScopeSource({ scope }: { scope: Scope }) {
  return (
    <details>
      <summary>{text("scope.source")}</summary>
      <pre tabIndex={0}>{`scope:${Object.keys(scope).length === 0 ? " {}" : `\n${yamlOf(scope, "  ")}`}`}</pre>
    </details>
  );
}
