import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Entry, FieldProblem, otherThan } from "../parts/field";
import { Kind } from "../parts/kind";
import { Owner, useOwner } from "../parts/owner";
import {
  asRefusal, type Cluster, clustersIn, DetailsDialog, Fact, FormDialog, group, home, idOf, list, may, type Meta, type Owned, ownerWord,
  quoted, type Refusal, Remove, text, type Text, Time, usePermitted, useWrite, type Words,
} from "../shared";

/** The kinds of members, with the pages and the resources on which they are. */
const kinds = { User: { page: "people", resource: "users", word: "user", label: "ruleUser" }, Team: { page: "teams", resource: "teams", word: "team", label: "ruleTeam" } } as const;

/** What each role permits, the widest first. */
const roles: [string, Text][] = [["admin", "projectAdmin"], ["use", "projectUse"], ["view", "projectView"]];

/** A member of a project. */
interface Member {
  kind: keyof typeof kinds;
  name: string;
  role: string;
}

/** A project, as far as the console reads it. */
interface Project {
  metadata: Meta;
  spec: { displayName?: string; description?: string; owner?: Owned; members?: Member[] };
  status?: { namespace?: string };
}

const path = `${group}/projects`;
const words: Words = {
  title: "projects", lead: "projectsLead", count: "entries", countOne: "entriesOne", countFiltered: "entriesFiltered", empty: "projectsEmpty",
};
const shownClusters = 20;

/** The members in a form, each with its role. */
function Members({ of, problem }: { of: Signal<Member[]>; problem: Refusal | null }) {
  const change = (at: number, fields: Partial<Member>) => {
    of.value = of.value.map((one, i) => (i === at ? { ...one, ...fields } : one));
  };
  return (
    <fieldset>
      <legend>{text("members")}</legend>
      {of.value.map((one, i) => {
        const at = `spec.members[${i}]`;
        const name = (label: string) => text("memberOf", { label, number: i + 1 });
        return (
          <div class="condition" role="group" aria-label={text("memberNumber", { number: i + 1 })}>
            <Entry label={text("createName")} name={name(text("createName"))} at={`${at}.name`} problem={problem} value={one.name} set={(to) => change(i, { name: to })} required />
            <label>
              {text("type")}
              <select value={one.kind} aria-label={name(text("type"))} onChange={(event) => change(i, { kind: event.currentTarget.value as Member["kind"] })}>
                {Object.entries(kinds).map(([kind, { label }]) => <option value={kind}>{text(label)}</option>)}
              </select>
            </label>
            <label>
              {text("memberRole")}
              <select value={one.role} aria-label={name(text("memberRole"))} onChange={(event) => change(i, { role: event.currentTarget.value })}>
                {roles.map(([role, label]) => <option value={role}>{text(label)}</option>)}
              </select>
            </label>
            <button type="button" aria-label={name(text("remove"))} onClick={() => (of.value = of.value.filter((_, other) => other !== i))}>{text("remove")}</button>
            <FieldProblem of={problem} at={at} exactly />
          </div>
        );
      })}
      <FieldProblem of={problem} at="spec.members" exactly />
      <button type="button" onClick={() => (of.value = [...of.value, { kind: "User", name: "", role: "use" }])}>{text("memberAnother")}</button>
    </fieldset>
  );
}

/** The form that makes a project, or changes the project as it was when the form was opened. */
function Edit({ of, close, done }: { of?: Project; close: () => void; done: (name: string) => void }) {
  // What somebody else changes while this is open is not overwritten: the API refuses the version that was read.
  const { metadata, spec } = useMemo((): Pick<Project, "spec"> & { metadata?: Meta } => of ?? { spec: {} }, []);
  const name = useSignal("");
  const display = useSignal(spec.displayName ?? "");
  const description = useSignal(spec.description ?? "");
  const owner = useOwner("none", spec.owner);
  const members = useSignal(spec.members ?? []);
  const write = useWrite(path);
  function submit() {
    const fields = {
      displayName: display.value.trim(), description: description.value.trim(), owner: owner.owner(),
      members: members.value.map((one) => ({ ...one, name: one.name.trim() })),
    };
    if (metadata) {
      const { uid, resourceVersion } = metadata;
      void write.patch(metadata.name, { metadata: { uid, resourceVersion }, spec: fields }, () => done(metadata.name));
      return;
    }
    const chosen = name.value.trim();
    void write.create({ apiVersion: "management.platform.sh/v1", kind: "Project", metadata: { name: chosen }, spec: fields }, () => done(chosen));
  }
  const refused = write.problem.value;
  return (
    <FormDialog
      title={metadata ? text("projectChange", { name: metadata.name }) : text("newProject")} close={close} wide submit={submit} write={write}
      refused={otherThan(refused, ["metadata.name", "spec"])} button={metadata ? "configSave" : "createProject"}
    >
      {!metadata && (
        <>
          <p class="quiet">{text("newProjectLead")}</p>
          <Entry label={text("createName")} at="metadata.name" problem={refused} value={name.value} set={(to) => (name.value = to)} required />
        </>
      )}
      <Entry label={text("displayName")} at="spec.displayName" problem={refused} value={display.value} set={(to) => (display.value = to)} />
      <Entry label={text("description")} at="spec.description" problem={refused} value={description.value} set={(to) => (description.value = to)} lines={2} />
      <Owner of={owner} legend="owner" kinds={["none", "team", "user"]} problem={refused} />
      <Members of={members} problem={refused} />
    </FormDialog>
  );
}

/** The virtual clusters of a project, as far as the session lists them. Undefined: it is not known yet. Null: it does not list them. */
function useClusters(namespace: string, lists: boolean | undefined): { found: Cluster[]; more: boolean } | Refusal | null | undefined {
  const found = useSignal<{ found: Cluster[]; more: boolean } | Refusal | undefined>(undefined);
  useEffect(() => {
    if (!lists) return;
    const current = new AbortController();
    list<Cluster>(clustersIn(namespace), { limit: String(shownClusters) }, current.signal).then(
      (table) => { found.value = { found: (table.rows ?? []).map((row) => row.object), more: Boolean(table.metadata?.continue) }; },
      (failure) => { if (!current.signal.aborted) found.value = asRefusal(failure); },
    );
    return () => current.abort();
  }, [namespace, lists]);
  return lists === false ? null : found.value;
}

function One({ project, close, changed }: { project: Project; close: () => void; changed: (said?: string) => void }) {
  const { metadata, spec, status } = project;
  const { name, resourceVersion, creationTimestamp } = metadata;
  const namespace = status?.namespace ?? "";
  const doing = useSignal<"change" | "delete" | null>(null);
  const [change, end, lists] = usePermitted([
    { verb: "patch", resource: "projects", name }, { verb: "delete", resource: "projects", name }, { verb: "list", resource: "virtualclusterinstances", namespace },
  ], resourceVersion);
  const clusters = useClusters(namespace, lists);
  const members = spec.members ?? [];
  const back = () => { doing.value = null; };
  const problem = clusters && !("found" in clusters) ? clusters : null;
  const count = clusters && "found" in clusters ? clusters.found.length : 0;
  if (doing.value === "change") return <Edit of={project} close={back} done={() => { back(); changed(text("projectChanged", { name })); }} />;
  if (doing.value === "delete") {
    return (
      <Remove path={path} of={metadata} close={back} done={() => { close(); changed(text("projectDeleted", { name })); }}>
        {count > 0 && <p class="decision no">{text("projectNotEmpty")}</p>}
        <p>{text("projectDeleteLead")}</p>
      </Remove>
    );
  }
  return (
    <DetailsDialog
      title={name} close={close} problem={problem} command={`kubectl edit project ${quoted(name)}`}
      facts={
        <>
          {spec.displayName && <Fact name={text("displayName")}>{spec.displayName}</Fact>}
          {spec.description && <Fact name={text("description")}>{spec.description}</Fact>}
          <Fact name={text("namespace")}>{namespace}</Fact>
          <Fact name={text("owner")}>{ownerWord(spec.owner) || text("ownerNone")}</Fact>
          <Fact name={text("created")}><Time of={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {end && <button type="button" class="danger quietly" onClick={() => { doing.value = "delete"; }}>{text("delete")}</button>}
          {change && <button type="button" onClick={() => { doing.value = "change"; }}>{text("changeAsk")}</button>}
        </>
      }
    >
      <h3>{text("members")}</h3>
      {members.length === 0 ? <p>{text("childrenNone")}</p> : (
        <ul class="rows">
          {members.map(({ kind, name: who, role }) => (
            <li>
              {may("list", kinds[kind].resource) ? <a href={`${home}/${kinds[kind].page}?${new URLSearchParams({ name: who })}`}>{kinds[kind].word}:{who}</a>
                : <span>{kinds[kind].word}:{who}</span>}
              <span>{text(roles.find(([one]) => one === role)?.[1] ?? "projectView")}</span>
            </li>
          ))}
        </ul>
      )}
      {clusters !== null && <h3>{text("clusters")}</h3>}
      {clusters === undefined && <p class="quiet">{text("loading")}</p>}
      {clusters && "found" in clusters && (count === 0 ? <p>{text("childrenNone")}</p> : (
        <ul class="rows">
          {clusters.found.map((one) => <li><a href={`${home}/clusters?${new URLSearchParams({ name: idOf(one) })}`}>{one.metadata.name}</a></li>)}
          {clusters.more && <li><a href={`${home}/clusters?${new URLSearchParams({ filter: namespace })}`}>{text("all")}</a></li>}
        </ul>
      ))}
    </DetailsDialog>
  );
}

/** The projects that the caller may see. */
export function Projects() {
  return (
    <Kind<Project>
      path={path} resource="projects" words={words} command="kubectl get projects --watch" add="newProject"
      create={(close, made) => <Edit close={close} done={(name) => made(text("projectMade", { name }))} />}
      one={(project, close, changed) => <One key={project.metadata.uid} project={project} close={close} changed={changed} />}
    />
  );
}
