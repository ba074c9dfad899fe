import { useSignal, type Signal } from "@preact/signals";
import { useId, useMemo } from "preact/hooks";
import { Field, FieldGroup } from "../parts/field";
import { FormDialog } from "../parts/form";
import { OwnerField, useOwnerChoice } from "../parts/owner";
import {
  type AccessEntry, type Cluster, clustersPath, createObject, type Owner, patchObject, person, text, type Text, useWrite, warningsOf,
} from "../shared";

/** The verbs of an access entry, with what they permit. The last one is all of them. */
export const accessVerbs: [string, Text][] = [["use", "clusters.accessUse"], ["update", "clusters.accessUpdate"], ["delete", "clusters.accessDelete"], ["*", "clusters.accessAll"]];

/** An access entry in the form. Names are separated with spaces or commas. */
interface AccessField {
  verbs: string[];
  users: string;
  teams: string;
}

const namesOf = (names: string) => names.split(/[\s,]+/).filter(Boolean);
const encode = (pem: string) => btoa(Array.from(new TextEncoder().encode(pem), (byte) => String.fromCharCode(byte)).join(""));
const decode = (data: string) => new TextDecoder().decode(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));

/** Who may do what with a virtual cluster besides its owner, in the form. */
function AccessFields({ entries }: { entries: Signal<AccessField[]> }) {
  const change = (index: number, fields: Partial<AccessField>) => {
    entries.value = entries.value.map((entry, i) => (i === index ? { ...entry, ...fields } : entry));
  };
  const setVerb = (index: number, verbs: string[], verb: string, given: boolean) => {
    change(index, { verbs: !given ? verbs.filter((other) => other !== verb) : verb === "*" ? ["*"] : [...verbs, verb] });
  };
  return (
    <FieldGroup paths={["spec.access"]} legend={text("clusters.access")}>
      <p class="quiet">{text("clusters.accessHint")}</p>
      {entries.value.map(({ verbs, users, teams }, i) => {
        const path = `spec.access[${i}]`;
        const name = (label: string) => text("clusters.accessField", { label, number: i + 1 });
        return (
          <FieldGroup paths={[path]} class="access" label={text("clusters.accessNumber", { number: i + 1 })}>
            <div class="two">
              <Field label={text("clusters.accessUsers")} name={name(text("clusters.accessUsers"))} path={`${path}.users`} value={users} set={(to) => change(i, { users: to })} names={{ resource: "users" }} several />
              <Field label={text("clusters.accessTeams")} name={name(text("clusters.accessTeams"))} path={`${path}.teams`} value={teams} set={(to) => change(i, { teams: to })} names={{ resource: "teams" }} several />
            </div>
            <div class="choices">
              {accessVerbs.map(([verb, label]) => (
                <label class="choice">
                  <input
                    type="checkbox" aria-label={name(text(label))} checked={verbs.includes(verb)} disabled={verb !== "*" && verbs.includes("*")}
                    onChange={(event) => setVerb(i, verbs, verb, event.currentTarget.checked)}
                  />
                  {text(label)}
                </label>
              ))}
              <button type="button" aria-label={name(text("action.remove"))} onClick={() => (entries.value = entries.value.filter((_, other) => other !== i))}>{text("action.remove")}</button>
            </div>
          </FieldGroup>
        );
      })}
      <button type="button" onClick={() => (entries.value = [...entries.value, { verbs: ["use"], users: "", teams: "" }])}>{text("clusters.accessAdd")}</button>
    </FieldGroup>
  );
}

/** The project of a new virtual cluster: one of those in which the session may register it or, if that is everywhere, any name. */
function ProjectField({ project, choices }: { project: Signal<string>; choices?: string[] }) {
  const id = useId();
  const path = "metadata.namespace";
  const hint = text("clusters.projectHint", { namespace: `${person.value?.projectNamespacePrefix ?? ""}${project.value.trim() || "…"}` });
  if (!choices) return <Field label={text("field.project")} path={path} names={{ resource: "projects" }} value={project.value} set={(to) => (project.value = to)} hint={hint} required autofocus />;
  return (
    <FieldGroup paths={[path]}>
      <div class="field">
        <label for={id}>{text("field.project")}</label>
        <select id={id} value={project.value} aria-describedby={`${id}-hint`} onChange={(event) => (project.value = event.currentTarget.value)}>
          {choices.map((choice) => <option value={choice}>{choice}</option>)}
        </select>
        <small id={`${id}-hint`} class="quiet">{hint}</small>
      </div>
    </FieldGroup>
  );
}

/** The fields of a virtual cluster that the form sets. A field without a value is undefined. */
interface Fields {
  displayName?: string;
  description?: string;
  owner?: Owner;
  access?: AccessEntry[];
  accessPoint?: { ingress: { enabled: boolean; host: string; caData?: string } };
}

/** Returns what changes the fields of an object from some values to others, and leaves all other fields as they are. */
function patchOf(before: Fields, after: Fields): object {
  const patch: Record<string, unknown> = {};
  for (const name of ["displayName", "description", "access"] as const) {
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) patch[name] = after[name] ?? null;
  }
  // A patch is merged into what is there: the field that another one replaces must be named.
  if (JSON.stringify(before.owner) !== JSON.stringify(after.owner)) patch.owner = after.owner ? { user: null, team: null, ...after.owner } : null;
  const [ingress, newIngress] = [before.accessPoint?.ingress, after.accessPoint?.ingress];
  if (ingress?.host !== newIngress?.host || ingress?.caData !== newIngress?.caData) {
    patch.accessPoint = { ingress: newIngress ? { ...newIngress, caData: newIngress.caData ?? null } : null };
  }
  return patch;
}

/** The form of a new virtual cluster in one of some namespaces, or of one as it was when the form was opened. Without namespaces, a new one may be in any. */
export function ClusterForm({ cluster, namespaces, close, saved }: { cluster?: Cluster; namespaces?: string[]; close: () => void; saved: (id: string, warnings: string[]) => void }) {
  // With the resource version that was read, the API refuses to overwrite a concurrent change.
  const { metadata, spec } = useMemo((): Pick<Cluster, "spec"> & { metadata?: Cluster["metadata"] } => cluster ?? { spec: {} }, []);
  const prefix = person.value?.projectNamespacePrefix ?? "";
  const choices = namespaces?.map((namespace) => namespace.slice(prefix.length));
  const project = useSignal(choices?.[0] ?? "");
  const name = useSignal("");
  const displayName = useSignal(spec.displayName ?? "");
  const description = useSignal(spec.description ?? "");
  const owner = useOwnerChoice("none", spec.owner);
  const { ingress } = spec.accessPoint ?? {};
  const host = useSignal(ingress?.host ?? "");
  const ca = useSignal(ingress?.caData ? decode(ingress.caData) : "");
  const access = useSignal((spec.access ?? []).map(({ verbs, users = [], teams = [] }): AccessField => ({ verbs, users: users.join(", "), teams: teams.join(", ") })));
  const write = useWrite("");
  const readFields = (): Fields => {
    const entries = access.value.map(({ verbs, users, teams }) => ({ verbs, ...(users.trim() ? { users: namesOf(users) } : {}), ...(teams.trim() ? { teams: namesOf(teams) } : {}) }));
    const caText = ca.value.trim();
    return {
      displayName: displayName.value.trim() || undefined, description: description.value.trim() || undefined, owner: owner.owner() ?? undefined, access: entries.length > 0 ? entries : undefined,
      accessPoint: host.value.trim() || caText ? { ingress: {
        enabled: true, host: host.value.trim(), caData: caText ? (ingress?.caData && ca.value === decode(ingress.caData) ? ingress.caData : encode(`${caText}\n`)) : undefined,
      } } : undefined,
    };
  };
  const before = useMemo(readFields, []);
  const newObject = () => ({
    apiVersion: "management.platform.sh/v1", kind: "VirtualClusterInstance", metadata: { name: name.value.trim(), namespace: prefix + project.value.trim() }, spec: readFields(),
  });
  function submit() {
    if (metadata) {
      const { uid, resourceVersion } = metadata;
      const patch = { metadata: { uid, resourceVersion }, spec: patchOf(before, readFields()) };
      void write.run(() => patchObject(clustersPath(metadata.namespace), metadata.name, patch), (response) => saved(`${metadata.namespace}/${metadata.name}`, warningsOf(response)));
      return;
    }
    const object = newObject();
    void write.run(() => createObject(clustersPath(object.metadata.namespace), object), (response) => saved(`${object.metadata.namespace}/${object.metadata.name}`, warningsOf(response)));
  }
  return (
    <FormDialog
      title={metadata ? text("clusters.changeTitle", { name: metadata.name }) : text("clusters.new")} close={close} wide submit={submit} write={write}
      button={metadata ? "action.save" : "clusters.register"}
    >
      {!metadata && (
        <>
          <p class="quiet">{text("clusters.newLead")}</p>
          <div class="two">
            <ProjectField project={project} choices={choices} />
            <Field label={text("field.name")} path="metadata.name" value={name.value} set={(to) => (name.value = to)} required />
          </div>
        </>
      )}
      <Field label={text("field.displayName")} path="spec.displayName" value={displayName.value} set={(to) => (displayName.value = to)} />
      <Field label={text("field.description")} path="spec.description" value={description.value} set={(to) => (description.value = to)} lines={2} />
      <FieldGroup paths={["spec.accessPoint"]} legend={text("clusters.endpoint")}>
        <p class="quiet">{text("clusters.endpointHint")}</p>
        <Field label={text("clusters.host")} path="spec.accessPoint.ingress.host" value={host.value} set={(to) => (host.value = to)} placeholder={text("clusters.hostExample")} />
        <Field label={text("clusters.ca")} path="spec.accessPoint.ingress.caData" value={ca.value} set={(to) => (ca.value = to)} lines={4} />
      </FieldGroup>
      <OwnerField choice={owner} legend="field.owner" kinds={["none", "team", "user"]} />
      <AccessFields entries={access} />
      <p class="quiet">{text("clusters.signerHint")}</p>
      {!metadata && (
        <details>
          <summary>{text("command.kubectl")}</summary>
          <pre tabIndex={0}>{`kubectl create -f - <<'END'\n${JSON.stringify(newObject(), null, 2)}\nEND`}</pre>
        </details>
      )}
    </FormDialog>
  );
}
