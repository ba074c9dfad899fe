import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, group, list, type Meta, type Refusal } from "../api";
import { AsKubectl, quoted } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Fact, Time } from "../parts/facts";
import { Problem, asRefusal } from "../parts/problem";
import { Remove } from "../parts/remove";
import { admin, person } from "../person";
import { usePermitted } from "../rights";
import { text } from "../texts";
import { distance } from "../times";
import { ownerOf, type Key } from "./key";
import { path } from "./keys";

/** What was made with a key. The lists show as much of it as the caller may see. */
interface Children {
  keys: string[];
  tokens: number;
}

/** Children, and those of them that stop with the key. */
interface Family {
  all: Children;
  bound: Children;
}

async function childrenOf(uid: string): Promise<Family> {
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

function Made({ children, open }: { children: Children | null; open?: (name: string) => void }) {
  if (!children) return <p class="quiet">{text("loading")}</p>;
  const { keys, tokens } = children;
  if (keys.length + tokens === 0) return <p>{text("childrenNone")}</p>;
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
    </ul>
  );
}

/** One key: what it is, where it comes from, and what was made with it. */
export function Details(props: {
  name: string; row: Key | undefined; loaded: boolean; open: (name: string) => void; changed: () => void; close: () => void;
}) {
  const { name, row: key, open, changed, close } = props;
  const problem = useSignal<Refusal | null>(null);
  const children = useSignal<Family | null>(null);
  const deleting = useSignal(false);
  const uid = key?.metadata.uid;
  const [change, end] = usePermitted([
    { verb: "patch", resource: "ownedaccesskeys", name }, { verb: "delete", resource: "ownedaccesskeys", name },
  ], key?.metadata.resourceVersion);
  useEffect(() => {
    children.value = null;
    deleting.value = false;
    if (uid) childrenOf(uid).then((found) => (children.value = found), (failure) => (problem.value = asRefusal(failure)));
  }, [uid]);
  if (!key) {
    return (
      <Dialog title={name} close={close}>
        <p>{text(props.loaded ? "gone" : "loading")}</p>
        <div class="buttons"><button type="button" onClick={close}>{text("close")}</button></div>
      </Dialog>
    );
  }
  const at = `${path}/${encodeURIComponent(name)}`;
  async function setDisabled(disabled: boolean) {
    problem.value = null;
    try {
      await ask(at, { method: "PATCH", mediaType: "application/merge-patch+json", body: JSON.stringify({ spec: { disabled } }) });
      deleting.value = false;
      changed();
    } catch (failure) {
      problem.value = asRefusal(failure);
    }
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
    <Dialog title={name} close={close} wide key={name}>
      <dl>
        {key.spec.displayName && <Fact name={text("name")}>{key.spec.displayName}</Fact>}
        {key.spec.description && <Fact name={text("description")}>{key.spec.description}</Fact>}
        <Fact name={text("owner")}>{ownerOf(key)}</Fact>
        <Fact name={text("type")}>{key.spec.type}</Fact>
        <Fact name={text("state")}>{text(key.status?.disabledByAdmin ? "disabledByAdmin" : key.spec.disabled ? "disabled" : "enabled")}</Fact>
        <Fact name={text("created")}><Time of={key.metadata.creationTimestamp} none="" /></Fact>
        <Fact name={text("ends")}><Time of={key.status?.expirationTimestamp} none={text("endsNever")} /></Fact>
        <Fact name={text("used")}><Time of={key.status?.lastActivity} none={text("usedNever")} /></Fact>
      </dl>
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
      <Made children={children.value?.all ?? null} open={open} />
      <AsKubectl command={`kubectl describe ownedaccesskey ${quoted(name)}`} />
      <Problem of={problem.value} />
      <div class="buttons">
        {end && <button type="button" class="danger quietly" onClick={() => { problem.value = null; deleting.value = true; }}>{text("delete")}</button>}
        {change && !(key.spec.disabled && key.status?.disabledByAdmin && !admin()) && (
          <button type="button" onClick={() => void setDisabled(!key.spec.disabled)}>{text(key.spec.disabled ? "enable" : "disable")}</button>
        )}
        <span class="room" />
        <button type="button" class="primary" onClick={close}>{text("close")}</button>
      </div>
    </Dialog>
  );
}
