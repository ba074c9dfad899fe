import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { group, list, warningsOf, type Meta } from "../api";
import { quoted } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Fact, Time } from "../parts/facts";
import { DetailsDialog, FormDialog } from "../parts/frames";
import { Lifetime } from "../parts/lifetime";
import { Problem, asRefusal } from "../parts/problem";
import { Remove } from "../parts/remove";
import { useWrite } from "../parts/write";
import { admin, person } from "../person";
import { may, usePermitted } from "../rights";
import { text, type Text } from "../texts";
import { distance } from "../times";
import { ownerOf, type Key } from "./key";
import { path } from "./keys";

const ends: [number, Text][] = [[86_400, "day"], [604_800, "week"], [2_592_000, "month"], [7_776_000, "quarter"], [0, "noEnd"]];

/** Kinds whose objects say with which key they were made, beside keys and tokens, and what the page calls them. */
const kinds: [string, Text][] = [
  ["users", "people"], ["teams", "teams"], ["trustrules", "trustRules"], ["projects", "projects"], ["virtualclusterinstances", "clusters"],
];

/** What was made with a key. The lists show as much of it as the caller may see. */
interface Children {
  keys: string[];
  tokens: number;
}

/** The names of objects of one of the other kinds, below what the page calls the kind. */
type Objects = [Text, string[]];

/** Children, and those of them that stop with the key. */
export interface Family {
  all: Children;
  bound: Children;
}

export async function childrenOf(uid: string): Promise<Family> {
  const query = { fieldSelector: `status.createdBy.uid=${uid}`, limit: "500" };
  const [keys, tokens] = await Promise.all([
    list<Key>(path, query),
    list<{ metadata: Meta }>(`${group}/directclusterendpointtokens`, query).catch(() => ({ rows: [] })),
  ]);
  const found = (keys.rows ?? []).map((row) => row.object);
  const names = (of: Key[]) => of.map((key) => key.metadata.name);
  const count = tokens.rows?.length ?? 0;
  return {
    all: { keys: names(found), tokens: count },
    bound: { keys: names(found.filter((key) => key.status?.lineage?.[0]?.bounds)), tokens: count },
  };
}

/** The objects of the other kinds that were made with a key. A deletion of the key ends none of them. */
async function objectsOf(uid: string): Promise<Objects[]> {
  const query = { fieldSelector: `status.createdBy.uid=${uid}`, limit: "500" };
  const found = await Promise.all(kinds.filter(([resource]) => may("list", resource)).map(async ([resource, label]): Promise<Objects> => {
    const { rows } = await list<{ metadata: Meta }>(`${group}/${resource}`, query);
    return [label, (rows ?? []).map((row) => row.object.metadata.name)];
  }));
  return found.filter(([, made]) => made.length > 0);
}

export function Made({ children, objects = [], open }: { children: Children | null; objects?: Objects[]; open?: (name: string) => void }) {
  if (!children) return <p class="quiet">{text("loading")}</p>;
  const { keys, tokens } = children;
  if (keys.length + tokens + objects.length === 0) return <p>{text("childrenNone")}</p>;
  return (
    <ul>
      {keys.length > 0 && (
        <li>
          {text(keys.length === 1 ? "childrenKeysOne" : "childrenKeys", { count: keys.length })}:{" "}
          {keys.slice(0, 20).map((name, i) => (
            <>
              {i > 0 && ", "}
              {open ? <button type="button" class="link" onClick={() => open(name)}>{name}</button> : name}
            </>
          ))}
          {keys.length > 20 && " …"}
        </li>
      )}
      {tokens > 0 && <li>{text(tokens === 1 ? "childrenTokensOne" : "childrenTokens", { count: tokens })}</li>}
      {objects.map(([label, made]) => <li>{text(label)}: {made.slice(0, 20).join(", ")}{made.length > 20 && " …"}</li>)}
    </ul>
  );
}

/** The dialog that moves the end of a key, counted from now on. A key that ends some time after its last use keeps that. */
function End({ of, close, done }: { of: Key; close: () => void; done: (warnings: string[]) => void }) {
  const { name, creationTimestamp } = of.metadata;
  const left = useSignal(604_800);
  const write = useWrite(path);
  function submit() {
    const age = of.spec.ttlAfterLastActivity ? 0 : Math.ceil((Date.now() - Date.parse(creationTimestamp)) / 1000);
    const ttl = left.value === 0 ? 0 : age + left.value;
    void write.patch(name, { spec: { ttl } }, (response) => done(warningsOf(response)));
  }
  return (
    <FormDialog title={text("endOf", { name })} close={close} submit={submit} write={write} button="endChange" cancel="back">
      <p>{text(of.spec.ttlAfterLastActivity ? "endIdle" : "endLead")}</p>
      <Lifetime of={left} offered={ends} />
    </FormDialog>
  );
}

/** One key: what it is, where it comes from, and what was made with it. */
export function Details(props: {
  name: string; row: Key | null | undefined; open: (name: string) => void; changed: () => void; close: () => void;
}) {
  const { name, row: key, open, changed, close } = props;
  const { problem, patch } = useWrite(path);
  const children = useSignal<Family | null>(null);
  const objects = useSignal<Objects[]>([]);
  const deleting = useSignal(false);
  const moving = useSignal(false);
  const warnings = useSignal<string[]>([]);
  const uid = key?.metadata.uid;
  const [change, end] = usePermitted([
    { verb: "patch", resource: "ownedaccesskeys", name }, { verb: "delete", resource: "ownedaccesskeys", name },
  ], key?.metadata.resourceVersion);
  useEffect(() => {
    children.value = null;
    objects.value = [];
    deleting.value = moving.value = false;
    warnings.value = [];
    const failed = (failure: unknown) => (problem.value = asRefusal(failure));
    if (uid) childrenOf(uid).then((found) => (children.value = found), failed);
    if (uid) objectsOf(uid).then((found) => (objects.value = found), failed);
  }, [uid]);
  if (!key) {
    return (
      <Dialog title={name} close={close}>
        <p>{text(key === null ? "gone" : "loading")}</p>
        <div class="buttons"><button type="button" onClick={close}>{text("close")}</button></div>
      </Dialog>
    );
  }
  const setDisabled = (disabled: boolean) => patch(name, { spec: { disabled } }, () => {
    deleting.value = false;
    changed();
  });
  if (moving.value) {
    return <End of={key} close={() => (moving.value = false)} done={(said) => { moving.value = false; warnings.value = said; changed(); }} />;
  }
  if (deleting.value) {
    return (
      <Remove
        path={path} of={key.metadata} close={() => (deleting.value = false)} done={() => { close(); changed(); }}
        instead={change && !key.spec.disabled && <button type="button" onClick={() => void setDisabled(true)}>{text("disableInstead")}</button>}
      >
        <p>{text("deleteLead")}</p>
        {person.value?.accessKey === name && <p class="problem">{text("deleteOwn")}</p>}
        {key.status?.lastActivity && <p>{text("deleteUsed", { when: distance(key.status.lastActivity) })}</p>}
        {children.value && children.value.bound.keys.length + children.value.bound.tokens > 0 && (
          <>
            <p>{text("deleteBound")}</p>
            <Made children={children.value.bound} />
          </>
        )}
        <Problem of={problem.value} />
      </Remove>
    );
  }
  const lineage = key.status?.lineage ?? [];
  return (
    <DetailsDialog
      key={name} title={name} close={close} problem={problem.value} command={`kubectl describe ownedaccesskey ${quoted(name)}`} warnings={warnings.value}
      facts={
        <>
          {key.spec.displayName && <Fact name={text("displayName")}>{key.spec.displayName}</Fact>}
          {key.spec.description && <Fact name={text("description")}>{key.spec.description}</Fact>}
          <Fact name={text("owner")}>{ownerOf(key)}</Fact>
          <Fact name={text("type")}>{key.spec.type}</Fact>
          <Fact name={text("state")}>{text(key.status?.disabledByAdmin ? "disabledByAdmin" : key.spec.disabled ? "disabled" : "enabled")}</Fact>
          <Fact name={text("created")}><Time of={key.metadata.creationTimestamp} none="" /></Fact>
          <Fact name={text("ends")}><Time of={key.status?.expirationTimestamp} none={text("endsNever")} /></Fact>
          <Fact name={text("used")}><Time of={key.status?.lastActivity} none={text("usedNever")} /></Fact>
        </>
      }
      buttons={
        <>
          {end && <button type="button" class="danger quietly" onClick={() => { problem.value = null; deleting.value = true; }}>{text("delete")}</button>}
          {change && !(key.spec.disabled && key.status?.disabledByAdmin && !admin()) && (
            <button type="button" onClick={() => void setDisabled(!key.spec.disabled)}>{text(key.spec.disabled ? "enable" : "disable")}</button>
          )}
          {change && <button type="button" onClick={() => { problem.value = null; moving.value = true; }}>{text("endAsk")}</button>}
        </>
      }
    >
      <h3>{text("scope")}</h3>
      {key.spec.scope ? <pre tabIndex={0}>{JSON.stringify(key.spec.scope, null, 2)}</pre> : <p>{text("scopeNone")}</p>}
      <h3>{text("lineage")}</h3>
      {lineage.length === 0 ? <p>{text("lineageFirst")}</p> : (
        <ol class="lineage">
          {[...lineage].reverse().map((ancestor) => (
            <li>
              <button type="button" class="link" onClick={() => open(ancestor.name)}>{ancestor.name}</button>{" "}
              {ancestor.bounds && <span class="quiet">({text("lineageBounds")})</span>}
            </li>
          ))}
          <li><strong>{name}</strong></li>
        </ol>
      )}
      <h3>{text("children")}</h3>
      <Made children={children.value?.all ?? null} objects={objects.value} open={open} />
    </DetailsDialog>
  );
}
