import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { asRefusal, Chip, group, list, may, type Key, type Meta, Problem, type Refusal, Skeleton, text, type Text } from "../shared";

/** The kinds besides keys and tokens whose objects have status.lineage, with the text of each kind. They stay when the key is deleted. */
const kinds: [string, Text][] = [
  ["users", "page.people"], ["teams", "page.teams"], ["trustrules", "page.trustrules"], ["projects", "page.projects"], ["virtualclusterinstances", "page.clusters"],
];

/** The most objects of a kind that are read. */
const limit = 500;

/** An object that was created with a key. */
interface Created {
  metadata: Meta;
  status?: { lineage?: { uid: string; bounds?: boolean }[]; accessKeyUID?: string };
}

/** A key below another key, with what was created with it. */
interface Node {
  key: Created;
  /** Whether the key works no longer without the key of the sheet. */
  ends: boolean;
  keys: Node[];
  tokens: number;
  objects: [Text, string[]][];
}

/** Everything that was created with a key or with a key of its lineage, and whether there is more of a kind. Objects that the caller may not see are absent. */
interface Descendants {
  keys: Created[];
  tokens: Created[];
  objects: [Text, Created[]][];
  more: boolean;
}

async function readDescendants(uid: string): Promise<Descendants> {
  let more = false;
  const read = async (resource: string) => {
    const table = await list<Created>(`${group}/${resource}`, { fieldSelector: `status.lineage.uid=${uid}`, limit: String(limit) });
    more ||= Boolean(table.metadata?.continue);
    return (table.rows ?? []).map((row) => row.object);
  };
  const [keys, tokens, objects] = await Promise.all([
    read("ownedaccesskeys"),
    may("list", "directclusterendpointtokens") ? read("directclusterendpointtokens") : [],
    Promise.all(kinds.filter(([resource]) => may("list", resource)).map(async ([resource, label]): Promise<[Text, Created[]]> => [label, await read(resource)])),
  ]);
  return { keys, tokens, objects, more };
}

/** Returns the tree below a key. Each object is below the nearest key of its lineage that exists. */
function grow(root: Created, { keys, tokens, objects }: Descendants): Node {
  const existing = new Set([root.metadata.uid, ...keys.map(({ metadata }) => metadata.uid)]);
  const parentOf = ({ status }: Created) => status?.lineage?.find(({ uid }) => existing.has(uid))?.uid ?? status?.accessKeyUID;
  const build = (key: Created, ends: boolean): Node => {
    const below = <T extends Created>(all: T[]) => all.filter((object) => parentOf(object) === key.metadata.uid);
    return {
      key, ends,
      keys: below(keys).map((child) => build(child, child.status?.lineage?.some(({ uid, bounds }) => uid === root.metadata.uid && bounds) ?? false)),
      tokens: below(tokens).length,
      objects: objects.map(([label, all]): [Text, string[]] => [label, below(all).map(({ metadata: { namespace, name } }) => (namespace ? `${namespace}/${name}` : name))]).filter(([, names]) => names.length > 0),
    };
  };
  return build(root, true);
}

/** Says whether something works without the key of the sheet. */
function End({ ends }: { ends: boolean }) {
  return <Chip kind={ends ? "bad" : "good"}>{text(ends ? "lineage.ends" : "lineage.stays")}</Chip>;
}

/** A link to another key. */
function KeyLink({ name, open }: { name: string; open: (name: string) => void }) {
  return <button type="button" class="link" onClick={() => open(name)}>{name}</button>;
}

/** What was created with a key, as entries of the tree. */
function Branches({ node, open }: { node: Node; open: (name: string) => void }) {
  const { keys, tokens, objects, ends } = node;
  if (keys.length + tokens + objects.length === 0) return null;
  return (
    <ul>
      {keys.map((child) => (
        <li>
          <span class="node"><KeyLink name={child.key.metadata.name} open={open} /> <End ends={child.ends} /></span>
          <Branches node={child} open={open} />
        </li>
      ))}
      {tokens > 0 && <li><span class="node">{text(tokens === 1 ? "count.token" : "count.tokens", { count: tokens })} <End ends={ends} /></span></li>}
      {objects.map(([label, names]) => <li><span class="node"><span>{text(label)}: {names.slice(0, 20).join(", ")}{names.length > 20 && " …"}</span> <End ends={false} /></span></li>)}
    </ul>
  );
}

/** The keys that led to a key, the key, and what was created with it, as a tree. What would end with the key is marked. */
export function Lineage({ accessKey, open }: { accessKey: Key; open: (name: string) => void }) {
  const { name, uid } = accessKey.metadata;
  const descendants = useSignal<Descendants | null>(null);
  const problem = useSignal<Refusal | null>(null);
  useEffect(() => {
    let current = true;
    descendants.value = problem.value = null;
    readDescendants(uid).then((read) => { if (current) descendants.value = read; }, (failure) => { if (current) problem.value = asRefusal(failure); });
    return () => { current = false; };
  }, [uid]);
  const lineage = accessKey.status?.lineage ?? [];
  const found = descendants.value;
  const root = found && grow(accessKey, found);
  const isEmpty = root !== null && root.keys.length + root.tokens + root.objects.length === 0;
  const self: ComponentChildren = <li><span class="node" aria-current="true"><strong>{name}</strong></span>{root && <Branches node={root} open={open} />}</li>;
  // The nearest ancestor is the first of the lineage, and the innermost of the tree.
  const tree = lineage.reduce((below, ancestor) => (
    <li>
      <span class="node"><KeyLink name={ancestor.name} open={open} /> {ancestor.bounds && <span class="quiet">{text("lineage.bounds", { name })}</span>}</span>
      <ul>{below}</ul>
    </li>
  ), self);
  return (
    <>
      <p class="quiet">{text("lineage.lead", { name })}</p>
      <ul class="tree">{tree}</ul>
      {lineage.length === 0 && <p class="quiet">{text("keys.lineageFirst")}</p>}
      <Problem refusal={problem.value} />
      {!found && !problem.value && <Skeleton rows={2} />}
      {isEmpty && <p class="quiet">{text("lineage.empty")}</p>}
      {found?.more && <p class="quiet">{text("lineage.more", { count: limit })}</p>}
    </>
  );
}
