import { useSignal } from "@preact/signals";
import { text, type Text } from "../texts";
import { NameInput } from "./namelist";

/** Returns the lines of a scope in YAML, or nothing where there is no scope. JSON is YAML: what is typed is quoted. All is the scope of everything. */
function scopeLines(kind: string, project: string, cluster: string, yaml: string, everything?: object): string {
  const entry = (value: unknown) => ` ${JSON.stringify(value)}`;
  switch (kind) {
    case "read": return entry({ roles: [{ role: "platformCLI" }] });
    case "project": return entry({ projects: [{ project }] });
    case "cluster": return entry({ virtualClusters: [{ project, virtualCluster: cluster }] });
    case "nothing": return " {}";
    case "yaml": return `\n${yaml.split("\n").map((line) => `    ${line}`).join("\n")}`;
    default: return everything ? entry(everything) : "";
  }
}

/** What a choice of a scope begins with. */
export interface InitialScope {
  kind: string;
  project: string;
  cluster: string;
  yaml: string;
}

/** The scope that somebody chooses for a credential. All is the scope of a session that is narrowed: it is everything that the session may do. */
export function useScopeChoice(defaultKind: string, everything?: object, initial?: InitialScope | null) {
  const kind = useSignal(initial?.kind ?? defaultKind);
  const project = useSignal(initial?.project ?? "");
  const cluster = useSignal(initial?.cluster ?? "");
  const yaml = useSignal(initial?.yaml || "roles:\n- role: platformCLI");
  return {
    kind, project, cluster, yaml,
    /** Returns the scope in YAML. Empty: there is no scope. */
    lines: () => scopeLines(kind.value, project.value, cluster.value, yaml.value, everything),
    /** Reports whether the choice is complete enough for a preview. */
    isComplete: () => kind.value !== "project" || project.value !== "",
  };
}

/** The field of the scope of a credential. */
export function ScopeField({ choice, kinds }: { choice: ReturnType<typeof useScopeChoice>; kinds: [string, Text][] }) {
  const { kind, project, cluster, yaml } = choice;
  return (
    <fieldset>
      <legend>{text("scope.choose")}</legend>
      {kinds.map(([value, label]) => (
        <label class="choice">
          <input type="radio" name="kind" value={value} checked={kind.value === value} onChange={() => (kind.value = value)} />
          {text(label)}
        </label>
      ))}
      {(kind.value === "project" || kind.value === "cluster") && (
        <div class="two">
          <label>
            {text("field.project")}
            <NameInput source={{ resource: "projects" }} value={project.value} required onInput={(event) => (project.value = event.currentTarget.value)} />
          </label>
          {kind.value === "cluster" && (
            <label>
              {text("field.virtualCluster")}
              <NameInput source={{ resource: "virtualclusterinstances", project: project.value }} value={cluster.value} required onInput={(event) => (cluster.value = event.currentTarget.value)} />
            </label>
          )}
        </div>
      )}
      {kind.value === "yaml" && (
        <div class="field">
          <label for="scope-yaml">{text("field.scope")}</label>
          <textarea id="scope-yaml" rows={6} spellcheck={false} value={yaml.value} aria-describedby="scope-hint" onInput={(event) => (yaml.value = event.currentTarget.value)} />
          <small id="scope-hint" class="quiet">{text("scope.yamlHint")}</small>
        </div>
      )}
    </fieldset>
  );
}
