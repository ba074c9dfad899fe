import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import type { TargetedInputEvent } from "preact";
import { clustersPath, group, list, may, type Meta, person, projectNamespaces } from "../shared";

/** What names are offered: those of the objects of a resource. Virtual clusters are those of a project, if there is one. */
export interface NameSource {
  resource: "projects" | "virtualclusterinstances" | "teams" | "users" | "ownedaccesskeys";
  project?: string;
}

/** A name, with the name that is shown for it. */
type Choice = [name: string, label: string];

const limit = 500;
const teamGroup = "platform:team:";

/** Returns the path of the objects whose names are offered. Empty: the session may not list them. */
function pathOf({ resource, project = "" }: NameSource): string {
  if (resource !== "virtualclusterinstances") return may("list", resource) ? `${group}/${resource}` : "";
  const namespace = project && (person.value?.projectNamespacePrefix ?? "") + project;
  return may("list", resource) || projectNamespaces().includes(namespace) ? clustersPath(namespace) : "";
}

/** Returns the names in the scope of the session, and the teams of its person. */
function ownNames({ resource, project = "" }: NameSource): string[] {
  const { accessKeyScope: { projects = [], virtualClusters = [] } = {}, groups = [] } = person.value ?? {};
  if (resource === "projects") return [...projects, ...virtualClusters].map((entry) => entry.project);
  if (resource === "virtualclusterinstances") return virtualClusters.filter((entry) => !project || entry.project === project).map((entry) => entry.virtualCluster);
  return resource === "teams" ? groups.filter((name) => name.startsWith(teamGroup)).map((name) => name.slice(teamGroup.length)) : [];
}

async function readNames(source: NameSource): Promise<Choice[]> {
  const path = pathOf(source);
  if (!path) return [...new Set(ownNames(source))].filter((name) => name !== "*").map((name) => [name, ""]);
  const { rows = [], columnDefinitions = [] } = await list<{ metadata: Meta }>(path, { limit: String(limit), includeObject: "Metadata" });
  const displayName = columnDefinitions.findIndex(({ name }) => name === "Display Name");
  return [...new Map(rows.map(({ object, cells }): Choice => [object.metadata.name, String(cells[displayName] ?? "").replace("<none>", "")]))];
}

/** The attributes of an input that offers names. */
interface Attributes {
  id?: string;
  type?: "search";
  name?: string;
  value?: string;
  required?: boolean;
  placeholder?: string;
  pattern?: string;
  maxLength?: number;
  autofocus?: boolean;
  "aria-label"?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
  onInput?: (event: TargetedInputEvent<HTMLInputElement>) => void;
}

/**
 * An input that offers names. It reads them when it gets the focus, once for each source, and takes every other text as well. Several names are
 * separated by spaces or commas: then the last of them is completed.
 */
export function NameInput({ source, several, ...attributes }: { source: NameSource; several?: boolean } & Attributes) {
  const id = useId();
  const choices = useSignal<Choice[]>([]);
  const before = useSignal("");
  const read = useRef("");
  const onFocus = () => {
    const wanted = JSON.stringify(source);
    if (read.current === wanted) return;
    read.current = wanted;
    // Without the names, the input takes what is typed.
    readNames(source).catch(() => []).then((names) => { if (read.current === wanted) choices.value = names; });
  };
  const onInput = (event: TargetedInputEvent<HTMLInputElement>) => {
    if (several) before.value = event.currentTarget.value.match(/^.*[\s,]/)?.[0] ?? "";
    attributes.onInput?.(event);
  };
  return (
    <>
      <input autocapitalize="off" autocomplete="off" spellcheck={false} {...attributes} list={id} onFocus={onFocus} onInput={onInput} />
      <datalist id={id}>{choices.value.map(([name, label]) => <option value={before.value + name} label={label || undefined} />)}</datalist>
    </>
  );
}
