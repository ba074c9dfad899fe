import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { group, list, Refusal, warningsOf, type Meta } from "../api";
import { quoteForShell } from "../parts/command";
import { Dialog } from "../parts/dialog";
import { Fact, Time } from "../parts/facts";
import { DetailsDialog, FormDialog } from "../parts/frames";
import { Lifetime } from "../parts/lifetime";
import { AbsentDialog } from "../parts/list";
import { Problem, asRefusal } from "../parts/problem";
import { DeleteDialog } from "../parts/deletedialog";
import { Skeleton } from "../parts/skeleton";
import { useWrite } from "../parts/write";
import { isAdmin, person } from "../person";
import { may, usePermitted } from "../rights";
import { text, type Text } from "../texts";
import { formatDistance } from "../times";
import { ownerOf, type Key } from "../kinds/accesskey";
import { keysPath } from "../pages/keys";

const lifetimes: [number, Text][] = [[86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"], [7_776_000, "lifetime.quarter"], [0, "lifetime.none"]];

/** The kinds besides keys and tokens whose objects have status.createdBy, with the text of each kind. */
const kinds: [string, Text][] = [
  ["users", "page.people"], ["teams", "page.teams"], ["trustrules", "page.trustrules"], ["projects", "page.projects"], ["virtualclusterinstances", "page.clusters"],
];

/** The keys and tokens that were created with a key. Objects that the caller may not see are absent. */
interface Children {
  keys: string[];
  tokens: number;
}

/** The text of a kind, and the names of its objects that were created with a key. */
type Objects = [Text, string[]];

/** All children of a key, and the children that stop working with the key. */
export interface KeyChildren {
  all: Children;
  bound: Children;
}

export async function readChildren(uid: string): Promise<KeyChildren> {
  const query = { fieldSelector: `status.createdBy.uid=${uid}`, limit: "500" };
  const [keys, tokens] = await Promise.all([
    list<Key>(keysPath, query),
    list<{ metadata: Meta }>(`${group}/directclusterendpointtokens`, query).catch(() => ({ rows: [] })),
  ]);
  const children = (keys.rows ?? []).map((row) => row.object);
  const namesOf = (keys: Key[]) => keys.map((key) => key.metadata.name);
  const count = tokens.rows?.length ?? 0;
  return {
    all: { keys: namesOf(children), tokens: count },
    bound: { keys: namesOf(children.filter((key) => key.status?.lineage?.[0]?.bounds)), tokens: count },
  };
}

/** Reads the objects of other kinds that were created with a key. Deleting the key does not affect them. */
async function readCreatedObjects(uid: string): Promise<Objects[]> {
  const query = { fieldSelector: `status.createdBy.uid=${uid}`, limit: "500" };
  const objects = await Promise.all(kinds.filter(([resource]) => may("list", resource)).map(async ([resource, label]): Promise<Objects> => {
    const { rows } = await list<{ metadata: Meta }>(`${group}/${resource}`, query);
    return [label, (rows ?? []).map((row) => row.object.metadata.name)];
  }));
  return objects.filter(([, names]) => names.length > 0);
}

export function CreatedObjects({ children, objects = [], open }: { children: Children | null; objects?: Objects[]; open?: (name: string) => void }) {
  if (!children) return <p class="quiet">{text("state.loading")}</p>;
  const { keys, tokens } = children;
  if (keys.length + tokens + objects.length === 0) return <p>{text("state.nothing")}</p>;
  return (
    <ul>
      {keys.length > 0 && (
        <li>
          {text(keys.length === 1 ? "count.key" : "count.keys", { count: keys.length })}:{" "}
          {keys.slice(0, 20).map((name, i) => (
            <>
              {i > 0 && ", "}
              {open ? <button type="button" class="link" onClick={() => open(name)}>{name}</button> : name}
            </>
          ))}
          {keys.length > 20 && " …"}
        </li>
      )}
      {tokens > 0 && <li>{text(tokens === 1 ? "count.token" : "count.tokens", { count: tokens })}</li>}
      {objects.map(([label, names]) => <li>{text(label)}: {names.slice(0, 20).join(", ")}{names.length > 20 && " …"}</li>)}
    </ul>
  );
}

/** The dialog that changes the expiration of a key. The lifetime counts from now, or from the last use if the key has ttlAfterLastActivity. */
export function ExpirationDialog({ accessKey, close, changed }: { accessKey: Key; close: () => void; changed: (warnings: string[]) => void }) {
  const { name, creationTimestamp } = accessKey.metadata;
  const remaining = useSignal(604_800);
  const write = useWrite(keysPath);
  function submit() {
    const age = accessKey.spec.ttlAfterLastActivity ? 0 : Math.ceil((Date.now() - Date.parse(creationTimestamp)) / 1000);
    const ttl = remaining.value === 0 ? 0 : age + remaining.value;
    void write.patch(name, { spec: { ttl } }, (response) => changed(warningsOf(response)));
  }
  return (
    <FormDialog title={text("keys.expirationOf", { name })} close={close} submit={submit} write={write} button="keys.changeExpiration" cancelLabel="action.back">
      <p>{text(accessKey.spec.ttlAfterLastActivity ? "keys.expirationIdle" : "keys.expirationLead")}</p>
      <Lifetime seconds={remaining} choices={lifetimes} />
    </FormDialog>
  );
}

/** The details of a key: its facts, its lineage, and the objects that were created with it. */
export function KeyDetails(props: {
  name: string; row: Key | Refusal | undefined; open: (name: string) => void; changed: () => void; close: () => void;
}) {
  const { name, row, open, changed, close } = props;
  const key = row instanceof Refusal ? undefined : row;
  const { problem, patch } = useWrite(keysPath);
  const children = useSignal<KeyChildren | null>(null);
  const objects = useSignal<Objects[]>([]);
  const deleting = useSignal(false);
  const extending = useSignal(false);
  const warnings = useSignal<string[]>([]);
  const uid = key?.metadata.uid;
  const [mayChange, mayDelete] = usePermitted([
    { verb: "patch", resource: "ownedaccesskeys", name }, { verb: "delete", resource: "ownedaccesskeys", name },
  ], key?.metadata.resourceVersion);
  useEffect(() => {
    children.value = null;
    objects.value = [];
    deleting.value = extending.value = false;
    warnings.value = [];
    const fail = (failure: unknown) => (problem.value = asRefusal(failure));
    if (uid) readChildren(uid).then((read) => (children.value = read), fail);
    if (uid) readCreatedObjects(uid).then((read) => (objects.value = read), fail);
  }, [uid]);
  if (row instanceof Refusal) return <AbsentDialog name={name} refusal={row} close={close} absent="keys.absent" />;
  if (!key) return <Dialog title={name} close={close} sheet><Skeleton /></Dialog>;
  const setDisabled = (disabled: boolean) => patch(name, { spec: { disabled } }, () => {
    deleting.value = false;
    changed();
  });
  if (extending.value) {
    return <ExpirationDialog accessKey={key} close={() => (extending.value = false)} changed={(announced) => { extending.value = false; warnings.value = announced; changed(); }} />;
  }
  if (deleting.value) {
    return (
      <DeleteDialog
        path={keysPath} object={key.metadata} close={() => (deleting.value = false)} deleted={() => { close(); changed(); }}
        alternative={mayChange && !key.spec.disabled && <button type="button" onClick={() => void setDisabled(true)}>{text("keys.disableInstead")}</button>}
      >
        <p>{text("keys.deleteLead")}</p>
        {person.value?.accessKey === name && <p class="problem">{text("keys.deleteOwn")}</p>}
        {key.status?.lastActivity && <p>{text("state.lastUsed", { when: formatDistance(key.status.lastActivity) })}</p>}
        {children.value && children.value.bound.keys.length + children.value.bound.tokens > 0 && (
          <>
            <p>{text("keys.deleteBound")}</p>
            <CreatedObjects children={children.value.bound} />
          </>
        )}
        <Problem refusal={problem.value} />
      </DeleteDialog>
    );
  }
  const lineage = key.status?.lineage ?? [];
  return (
    <DetailsDialog
      key={name} title={name} close={close} problem={problem.value} command={`kubectl describe ownedaccesskey ${quoteForShell(name)}`} warnings={warnings.value}
      facts={
        <>
          {key.spec.displayName && <Fact name={text("field.displayName")}>{key.spec.displayName}</Fact>}
          {key.spec.description && <Fact name={text("field.description")}>{key.spec.description}</Fact>}
          <Fact name={text("field.owner")}>{ownerOf(key)}</Fact>
          <Fact name={text("field.type")}>{key.spec.type}</Fact>
          <Fact name={text("field.state")}>{text(key.status?.disabledByAdmin ? "state.disabledByAdmin" : key.spec.disabled ? "state.disabled" : "state.enabled")}</Fact>
          <Fact name={text("field.created")}><Time instant={key.metadata.creationTimestamp} none="" /></Fact>
          <Fact name={text("field.expires")}><Time instant={key.status?.expirationTimestamp} none={text("state.neverExpires")} /></Fact>
          <Fact name={text("keys.lastUsed")}><Time instant={key.status?.lastActivity} none={text("state.neverUsed")} /></Fact>
        </>
      }
      buttons={
        <>
          {mayDelete && <button type="button" class="danger quietly" onClick={() => { problem.value = null; deleting.value = true; }}>{text("action.delete")}</button>}
          {mayChange && !(key.spec.disabled && key.status?.disabledByAdmin && !isAdmin()) && (
            <button type="button" onClick={() => void setDisabled(!key.spec.disabled)}>{text(key.spec.disabled ? "action.enable" : "action.disable")}</button>
          )}
          {mayChange && <button type="button" onClick={() => { problem.value = null; extending.value = true; }}>{text("keys.changeExpirationAsk")}</button>}
        </>
      }
    >
      <h3>{text("scope.title")}</h3>
      {key.spec.scope ? <pre tabIndex={0}>{JSON.stringify(key.spec.scope, null, 2)}</pre> : <p>{text("scope.unlimited")}</p>}
      <h3>{text("keys.lineage")}</h3>
      {lineage.length === 0 ? <p>{text("keys.lineageFirst")}</p> : (
        <ol class="lineage">
          {[...lineage].reverse().map((ancestor) => (
            <li>
              <button type="button" class="link" onClick={() => open(ancestor.name)}>{ancestor.name}</button>{" "}
              {ancestor.bounds && <span class="quiet">({text("keys.lineageBounds")})</span>}
            </li>
          ))}
          <li><strong>{name}</strong></li>
        </ol>
      )}
      <h3>{text("keys.children")}</h3>
      <CreatedObjects children={children.value?.all ?? null} objects={objects.value} open={open} />
    </DetailsDialog>
  );
}
