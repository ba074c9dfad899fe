import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Refusal, text, type Text } from "../shared";
import { Field, FieldGroup } from "./field";
import { useSettle } from "./form";

/** The reader of YAML, which is a script of its own. It comes right after the script of the form: an upgrade takes nothing from a page that is open. */
const loadReader = () => import("../studio/documents");
type Reader = Awaited<ReturnType<typeof loadReader>>;
const firstReader = loadReader().catch(() => null);

/** An upgrade has removed the script of the reader. What is not read is not sent. */
function readerIsGone(): never {
  throw new Refusal(-1, text("problem.newVersionLead"));
}

/** Returns what is wrong with the YAML of a scope, with the line in the text that somebody typed. Empty: it is right. */
function yamlProblem({ parseText, lineOf, isFields }: Reader, yaml: string): string {
  const { value, findings: [first] } = parseText(yaml);
  if (first) return text("scope.yamlLine", { line: lineOf(yaml, first.from), says: first.message });
  return isFields(value) ? "" : text("scope.yamlEmpty");
}

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

/** The field of an object that has the scope. */
const scopePath = "spec.scope";

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
  const reader = useSignal<Reader | null>(null);
  useEffect(() => { void firstReader.then((loaded) => (reader.value ??= loaded)); }, []);
  return {
    kind, project, cluster, yaml,
    /** Returns the scope in YAML. Empty: there is no scope. */
    lines: () => scopeLines(kind.value, project.value, cluster.value, yaml.value, everything),
    /** Reports whether the choice is complete enough for a preview. */
    isComplete: () => (kind.value === "yaml" ? reader.value !== null && yamlProblem(reader.value, yaml.value) === "" : kind.value !== "project" || project.value !== ""),
    /** Refuses YAML that cannot be read. The API would name a line of the whole request. */
    async check() {
      const problem = kind.value === "yaml" && yamlProblem(reader.value ?? await loadReader().catch(readerIsGone), yaml.value);
      if (problem) throw new Refusal(422, problem, [{ field: scopePath, message: problem }]);
    },
  };
}

/** The field of the scope of a credential. */
export function ScopeField({ choice, kinds }: { choice: ReturnType<typeof useScopeChoice>; kinds: [string, Text][] }) {
  const { kind, project, cluster, yaml } = choice;
  const settle = useSettle();
  const entry = `${scopePath}.${kind.value === "project" ? "projects" : "virtualClusters"}[0]`;
  return (
    <FieldGroup paths={kind.value === "yaml" ? [] : [scopePath]} legend={text("scope.choose")}>
      {kinds.map(([value, label]) => (
        <label class="choice">
          <input type="radio" name="kind" value={value} checked={kind.value === value} onChange={() => { kind.value = value; settle([scopePath]); }} />
          {text(label)}
        </label>
      ))}
      {(kind.value === "project" || kind.value === "cluster") && (
        <div class="two">
          <Field label={text("field.project")} path={`${entry}.project`} names={{ resource: "projects" }} value={project.value} set={(to) => (project.value = to)} required />
          {kind.value === "cluster" && (
            <Field
              label={text("field.virtualCluster")} path={`${entry}.virtualCluster`} names={{ resource: "virtualclusterinstances", project: project.value }}
              value={cluster.value} set={(to) => (cluster.value = to)} required
            />
          )}
        </div>
      )}
      {kind.value === "yaml" && <Field label={text("field.scope")} path={scopePath} value={yaml.value} set={(to) => (yaml.value = to)} lines={6} hint={text("scope.yamlHint")} />}
    </FieldGroup>
  );
}
