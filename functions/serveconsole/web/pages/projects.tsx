import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Field, FieldGroup } from "../parts/field";
import { FormDialog, useSettle } from "../parts/form";
import { KindPage } from "../parts/kindpage";
import { OwnerField, useOwnerChoice } from "../parts/owner";
import { OwnerName } from "../parts/ownername";
import {
  asRefusal, type Cluster, clustersPath, DetailsDialog, Fact, group, home, idOf, list, type Meta, objectCommand, type Owner,
  quoteForShell, type Refusal, DeleteDialog, text, type Text, Time, usePermitted, useWrite, type ListTexts,
} from "../shared";

/** The kinds of members. */
const kinds = { User: "owner.user", Team: "owner.team" } as const;

/** What each role permits, the widest first. */
const roles: [string, Text][] = [["admin", "projects.roleAdmin"], ["use", "projects.roleUse"], ["view", "projects.roleView"]];

/** A member of a project. */
interface Member {
  kind: keyof typeof kinds;
  name: string;
  role: string;
}

/** The fields of a project that the console reads. */
interface Project {
  metadata: Meta;
  spec: { displayName?: string; description?: string; owner?: Owner; members?: Member[] };
  status?: { namespace?: string };
}

const path = `${group}/projects`;
const words: ListTexts = {
  title: "page.projects", lead: "projects.lead", count: "list.count", countOne: "list.countOne", countFiltered: "list.countFiltered", empty: "projects.empty",
};
const shownClusters = 20;

/** The members in the form of a project, each with its role. */
function Members({ members }: { members: Signal<Member[]> }) {
  const change = (index: number, fields: Partial<Member>) => {
    members.value = members.value.map((member, i) => (i === index ? { ...member, ...fields } : member));
  };
  const settle = useSettle();
  return (
    <FieldGroup paths={["spec.members"]} legend={text("field.members")}>
      {members.value.map((member, i) => {
        const path = `spec.members[${i}]`;
        const name = (label: string) => text("projects.memberField", { label, number: i + 1 });
        return (
          <FieldGroup paths={[path]} class="condition" label={text("projects.memberNumber", { number: i + 1 })}>
            <Field label={text("field.name")} name={name(text("field.name"))} path={`${path}.name`} value={member.name} set={(to) => change(i, { name: to })} required names={{ resource: member.kind === "Team" ? "teams" : "users" }} />
            <label>
              {text("field.type")}
              <select value={member.kind} aria-label={name(text("field.type"))} onChange={(event) => { change(i, { kind: event.currentTarget.value as Member["kind"] }); settle([path]); }}>
                {Object.entries(kinds).map(([kind, label]) => <option value={kind}>{text(label)}</option>)}
              </select>
            </label>
            <label>
              {text("projects.memberRole")}
              <select value={member.role} aria-label={name(text("projects.memberRole"))} onChange={(event) => change(i, { role: event.currentTarget.value })}>
                {roles.map(([role, label]) => <option value={role}>{text(label)}</option>)}
              </select>
            </label>
            <button type="button" aria-label={name(text("action.remove"))} onClick={() => (members.value = members.value.filter((_, other) => other !== i))}>{text("action.remove")}</button>
          </FieldGroup>
        );
      })}
      <button type="button" onClick={() => (members.value = [...members.value, { kind: "User", name: "", role: "use" }])}>{text("projects.memberAdd")}</button>
    </FieldGroup>
  );
}

/** The form of a new project, or of a project as it was when the form was opened. */
function ProjectDialog({ project, close, saved }: { project?: Project; close: () => void; saved: (name: string) => void }) {
  // With the resource version that was read, the API refuses to overwrite a concurrent change.
  const { metadata, spec } = useMemo((): Pick<Project, "spec"> & { metadata?: Meta } => project ?? { spec: {} }, []);
  const name = useSignal("");
  const displayName = useSignal(spec.displayName ?? "");
  const description = useSignal(spec.description ?? "");
  const owner = useOwnerChoice("none", spec.owner);
  const members = useSignal(spec.members ?? []);
  const write = useWrite(path);
  function submit() {
    const fields = {
      displayName: displayName.value.trim(), description: description.value.trim(), owner: owner.owner(),
      members: members.value.map((member) => ({ ...member, name: member.name.trim() })),
    };
    if (metadata) {
      const { uid, resourceVersion } = metadata;
      // A patch is merged into what is there: the field that another one replaces must be named.
      const newOwner = fields.owner && { user: null, team: null, ...fields.owner };
      void write.patch(metadata.name, { metadata: { uid, resourceVersion }, spec: { ...fields, owner: newOwner } }, () => saved(metadata.name));
      return;
    }
    const newName = name.value.trim();
    void write.create({ apiVersion: "management.platform.sh/v1", kind: "Project", metadata: { name: newName }, spec: fields }, () => saved(newName));
  }
  return (
    <FormDialog
      title={metadata ? text("projects.change", { name: metadata.name }) : text("projects.new")} close={close} wide submit={submit} write={write}
      button={metadata ? "action.save" : "projects.create"}
    >
      {!metadata && (
        <>
          <p class="quiet">{text("projects.newLead")}</p>
          <Field label={text("field.name")} path="metadata.name" value={name.value} set={(to) => (name.value = to)} required />
        </>
      )}
      <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} />
      <Field label={text("field.description")} path="spec.description" value={description.value} set={(to) => (description.value = to)} lines={2} />
      <OwnerField choice={owner} legend="field.owner" kinds={["none", "team", "user"]} />
      <Members members={members} />
    </FormDialog>
  );
}

/** Returns the first virtual clusters of a project. Undefined: they are not known yet. Null: the session may not list them. */
function useClusters(namespace: string, lists: boolean | undefined): { clusters: Cluster[]; more: boolean } | Refusal | null | undefined {
  const result = useSignal<{ clusters: Cluster[]; more: boolean } | Refusal | undefined>(undefined);
  useEffect(() => {
    if (!lists) return;
    const current = new AbortController();
    list<Cluster>(clustersPath(namespace), { limit: String(shownClusters) }, current.signal).then(
      (table) => { result.value = { clusters: (table.rows ?? []).map((row) => row.object), more: Boolean(table.metadata?.continue) }; },
      (failure) => { if (!current.signal.aborted) result.value = asRefusal(failure); },
    );
    return () => current.abort();
  }, [namespace, lists]);
  return lists === false ? null : result.value;
}

function ProjectDetails({ project, close, changed }: { project: Project; close: () => void; changed: (message?: string) => void }) {
  const { metadata, spec, status } = project;
  const { name, resourceVersion, creationTimestamp } = metadata;
  const namespace = status?.namespace ?? "";
  const dialog = useSignal<"change" | "delete" | null>(null);
  const [mayChange, mayDelete, mayListClusters] = usePermitted([
    { verb: "patch", resource: "projects", name }, { verb: "delete", resource: "projects", name }, { verb: "list", resource: "virtualclusterinstances", namespace },
  ], resourceVersion);
  const clusters = useClusters(namespace, mayListClusters);
  const members = spec.members ?? [];
  const goBack = () => { dialog.value = null; };
  const problem = clusters && !("clusters" in clusters) ? clusters : null;
  const count = clusters && "clusters" in clusters ? clusters.clusters.length : 0;
  const over = dialog.value === "change" ? <ProjectDialog project={project} close={goBack} saved={() => { goBack(); changed(text("projects.changed", { name })); }} />
    : dialog.value === "delete" && (
      <DeleteDialog path={path} object={metadata} close={goBack} deleted={() => { close(); changed(text("projects.deleted", { name })); }}>
        {count > 0 && <p class="decision no">{text("projects.notEmpty")}</p>}
        <p>{text("projects.deleteLead")}</p>
      </DeleteDialog>
    );
  return (
    <DetailsDialog
      title={name} close={close} over={over} problem={problem} command={objectCommand(`project ${quoteForShell(name)}`, mayChange)} events={{ resource: "projects", object: name }}
      facts={
        <>
          {spec.displayName && <Fact name={text("field.displayName")}>{spec.displayName}</Fact>}
          {spec.description && <Fact name={text("field.description")}>{spec.description}</Fact>}
          <Fact name={text("field.namespace")}>{namespace}</Fact>
          <Fact name={text("field.owner")}>{spec.owner ? <OwnerName {...spec.owner} /> : text("owner.none")}</Fact>
          <Fact name={text("field.created")}><Time instant={creationTimestamp} none="" /></Fact>
        </>
      }
      buttons={
        <>
          {mayDelete && <button type="button" class="danger quietly" onClick={() => { dialog.value = "delete"; }}>{text("action.delete")}</button>}
          {mayChange && <button type="button" onClick={() => { dialog.value = "change"; }}>{text("projects.changeAsk")}</button>}
        </>
      }
    >
      <h3>{text("field.members")}</h3>
      {members.length === 0 ? <p>{text("projects.noMembers")}</p> : (
        <ul class="rows">
          {members.map(({ kind, name: member, role }) => (
            <li>
              <span><OwnerName {...(kind === "Team" ? { team: member } : { user: member })} /></span>
              <span>{text(roles.find(([name]) => name === role)?.[1] ?? "projects.roleView")}</span>
            </li>
          ))}
        </ul>
      )}
      {clusters !== null && <h3>{text("page.clusters")}</h3>}
      {clusters === undefined && <p class="quiet">{text("state.loading")}</p>}
      {clusters && "clusters" in clusters && (count === 0 ? <p>{text("projects.noClusters")}</p> : (
        <ul class="rows">
          {clusters.clusters.map((cluster) => <li><a href={`${home}/clusters?${new URLSearchParams({ name: idOf(cluster) })}`}>{cluster.metadata.name}</a></li>)}
          {clusters.more && <li><a href={`${home}/clusters?${new URLSearchParams({ filter: namespace })}`}>{text("action.showAll")}</a></li>}
        </ul>
      ))}
    </DetailsDialog>
  );
}

/** The projects that the caller may see. */
export function Projects() {
  return (
    <KindPage<Project>
      path={path} resource="projects" words={words} command="kubectl get projects --watch" newLabel="projects.new"
      create={(close, created) => <ProjectDialog close={close} saved={(name) => created(text("projects.created", { name }))} />}
      details={(project, close, changed) => <ProjectDetails key={project.metadata.uid} project={project} close={close} changed={changed} />}
    />
  );
}
