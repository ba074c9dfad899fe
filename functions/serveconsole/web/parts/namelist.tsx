import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import type { TargetedInputEvent } from "preact";
import { clustersPath, group, isAdmin, list, may, type Meta, person, projectNamespaces, text, type Text } from "../shared";

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

/** The names that an input offers. */
interface Names {
  /** The source in JSON. */
  source: string;
  choices: Choice[];
  /** Whether no other name exists. Only admins without a scope see all names, and a platform may keep none of a kind, such as users before they sign in. */
  complete: boolean;
}

async function readNames(source: NameSource): Promise<Pick<Names, "choices" | "complete">> {
  const path = pathOf(source);
  if (!path) return { choices: [...new Set(ownNames(source))].filter((name) => name !== "*").map((name) => [name, ""]), complete: false };
  const { rows = [], columnDefinitions = [], metadata } = await list<{ metadata: Meta }>(path, { limit: String(limit), includeObject: "Metadata" });
  const displayName = columnDefinitions.findIndex(({ name }) => name === "Display Name");
  const choices = [...new Map(rows.map(({ object, cells }): Choice => [object.metadata.name, String(cells[displayName] ?? "").replace("<none>", "")]))];
  return { choices, complete: choices.length > 0 && !metadata?.continue && isAdmin() && !person.value?.accessKeyScope };
}

/** Says that no object of a resource has a name. */
const absences: Record<NameSource["resource"], Text> = {
  projects: "names.noProject", virtualclusterinstances: "names.noCluster", teams: "names.noTeam", users: "names.noUser", ownedaccesskeys: "names.noKey",
};

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

/** Runs a function once no button of the mouse is pressed: what moves below a pressed button is not clicked. */
function whenReleased(run: () => void): void {
  if (document.querySelector(":active")) addEventListener("mouseup", () => setTimeout(run), { once: true });
  else run();
}

/**
 * An input that offers names. It reads them when it gets the focus, once for each source, and takes every other text as well. Several names are
 * separated by spaces or commas: then the last of them is completed. Unless it is a search, it says when it loses the focus that a name does not exist.
 */
export function NameInput({ source, several, ...attributes }: { source: NameSource; several?: boolean } & Attributes) {
  const id = useId();
  const wanted = JSON.stringify(source);
  const names = useSignal<Names>({ source: "", choices: [], complete: false });
  const before = useSignal("");
  const focused = useSignal(false);
  const read = useRef("");
  const { value = "", "aria-invalid": invalid } = attributes;
  const { choices, complete } = names.value;
  // A name that is refused needs no second line.
  const judged = complete && names.value.source === wanted && !focused.value && !invalid && attributes.type !== "search";
  const absent = judged ? (several ? value.split(/[\s,]+/) : [value.trim()]).filter((name) => name && !name.includes("*") && !choices.some(([other]) => other === name)) : [];
  const onFocus = () => {
    focused.value = true;
    // An absent name may have been made since.
    if (read.current === wanted && absent.length === 0) return;
    read.current = wanted;
    // Without the names, the input takes what is typed.
    readNames(source).catch(() => ({ choices: [], complete: false })).then((found) => { if (read.current === wanted) names.value = { source: wanted, ...found }; });
  };
  const onInput = (event: TargetedInputEvent<HTMLInputElement>) => {
    if (several) before.value = event.currentTarget.value.match(/^.*[\s,]/)?.[0] ?? "";
    attributes.onInput?.(event);
  };
  return (
    <>
      <input
        autocapitalize="off" autocomplete="off" spellcheck={false} {...attributes} list={id} aria-describedby={[attributes["aria-describedby"], absent.length > 0 && `${id}-absent`].filter(Boolean).join(" ") || undefined}
        onFocus={onFocus} onBlur={({ currentTarget }) => whenReleased(() => (focused.value = document.activeElement === currentTarget))} onInput={onInput}
      />
      <datalist id={id}>{choices.map(([name, label]) => <option value={before.value + name} label={label || undefined} />)}</datalist>
      {attributes.type !== "search" && <small id={`${id}-absent`} class="absent" aria-live="polite">{absent.map((name) => text(absences[source.resource], { name })).join(" ")}</small>}
    </>
  );
}
