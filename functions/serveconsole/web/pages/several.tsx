import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Refusal, Row } from "../api";
import type { live } from "../live";
import { Dialog } from "../parts/dialog";
import { select, type Selection } from "../parts/list";
import { asRefusal, messageOf } from "../parts/problem";
import { Confirm } from "../parts/remove";
import { deleteObject, patchObject } from "../parts/write";
import { person } from "../person";
import { may, usePermittedEach } from "../rights";
import { text, type Text } from "../texts";
import { distance } from "../times";
import { childrenOf, Made, type Family } from "./details";
import type { Key } from "./key";
import { path } from "./keys";

/** What is done with several keys at once: the request for each, and the texts about it. */
interface Act {
  verb: string;
  button: Text;
  title: Text;
  lead: Text;
  leadAll: Text;
  left: Text;
  done: Text;
  to(key: Key): Promise<unknown>;
}

const acts: Act[] = [
  {
    verb: "patch", button: "disable", title: "disableTitle", lead: "disableLead", leadAll: "disableLead", left: "leftChange", done: "disabledDone",
    // The key that is shown, and not a new one with its name.
    to: ({ metadata: { name, uid } }) => patchObject(path, name, { metadata: { uid }, spec: { disabled: true } }),
  },
  {
    verb: "delete", button: "delete", title: "deleteTitle", lead: "deleteLead", leadAll: "deleteLeadAll", left: "leftDelete", done: "deletedDone",
    to: ({ metadata }) => deleteObject(path, metadata),
  },
];

const namesOf = (keys: Key[]) => keys.map(({ metadata }) => metadata.name).join(", ");
const counted = (keys: number) => text(keys === 1 ? "countOne" : "count", { count: keys });

/** One of several keys, and what stops with it. */
function One({ of: { metadata: { name }, status }, family }: { of: Key; family: Family | undefined }) {
  const bound = family?.bound;
  return (
    <li>
      <strong>{name}</strong>{" "}
      {status?.lastActivity && <span class="quiet">{text("deleteUsed", { when: distance(status.lastActivity) })}</span>}
      {person.value?.accessKey === name && <p class="problem">{text("deleteOwn")}</p>}
      {bound && bound.keys.length + bound.tokens > 0 && <><p>{text("deleteBound")}</p><Made children={bound} /></>}
    </li>
  );
}

/**
 * The dialog that does something with several keys, one after the other. What worked is no longer selected, and what failed is named with the
 * words of the API. The keys whose end ends the session come last, so that the session lasts for the others.
 */
function Several(props: { act: Act; keys: Key[]; left: [Text, Key[]][]; last: string[]; of: Selection; close: (done: number) => void }) {
  const { act, keys, left, last, of, close } = props;
  const families = useSignal<ReadonlyMap<string, Family>>(new Map());
  const unknown = useSignal<Refusal | null>(null);
  const at = useSignal(0);
  const stopped = useRef(false);
  const outcome = useSignal<{ done: number; failed: [Key, Refusal][] } | null>(null);
  const busy = at.value > 0;
  useEffect(() => {
    let current = !busy;
    void (async () => {
      for (const { metadata: { uid } } of keys) {
        if (!current) return;
        const found = await childrenOf(uid);
        families.value = new Map(families.value).set(uid, found);
      }
    })().catch((failure) => { unknown.value = asRefusal(failure); });
    return () => { current = false; };
  }, [busy]);
  async function run() {
    const ends = (key: Key) => (last.includes(key.metadata.name) ? 1 : 0);
    const failed: [Key, Refusal][] = [];
    for (const key of [...keys].sort((a, b) => ends(a) - ends(b))) {
      if (stopped.current) break;
      at.value++;
      try {
        await act.to(key);
      } catch (failure) {
        const refusal = asRefusal(failure);
        // A key that is gone can be used by nobody.
        if (refusal.code !== 404) {
          failed.push([key, refusal]);
          continue;
        }
      }
      select(of, [key.metadata.uid], false);
    }
    const done = at.value - failed.length;
    if (failed.length === 0) close(done);
    else outcome.value = { done, failed };
  }
  const several = keys.length > 1;
  const name = several ? counted(keys.length) : namesOf(keys);
  const title = text(act.title, { name });
  if (outcome.value) {
    const { done, failed } = outcome.value;
    return (
      <Dialog title={title} close={() => close(done)} key="outcome">
        {done > 0 && <p>{text(act.done, { what: counted(done) })}</p>}
        <div class="problem" role="alert">
          <strong>{text("failed")}</strong>
          <ul>{failed.map(([{ metadata }, refusal]) => <li><strong>{metadata.name}</strong>: {messageOf(refusal)}</li>)}</ul>
        </div>
        <div class="buttons"><button type="button" class="primary" onClick={() => close(done)}>{text("close")}</button></div>
      </Dialog>
    );
  }
  const back = () => {
    if (busy) stopped.current = true;
    else close(0);
  };
  const word = several ? String(keys.length) : name;
  return (
    <Dialog title={title} close={back} key="question">
      <div role="status">{busy && <p>{text("progress", { at: at.value, count: keys.length })}</p>}</div>
      {busy ? <div class="buttons"><button type="button" onClick={back}>{text("stop")}</button></div> : (
        <Confirm
          typed={act.verb === "delete" ? { word, label: text(several ? "deleteTypeAll" : "deleteType", { name: word, count: word }) } : undefined}
          button={act.button} problem={unknown.value} act={run} close={back}
        >
          <p>{text(several ? act.leadAll : act.lead)}</p>
          <div class="several" tabIndex={0} role="region" aria-label={text("keys")}>
            <ul>{keys.map((key) => <One of={key} family={families.value.get(key.metadata.uid)} />)}</ul>
          </div>
          {families.value.size < keys.length && !unknown.value && <p class="quiet">{text("loading")}</p>}
          {left.map(([why, those]) => those.length > 0 && <p class="quiet">{text(why, { names: namesOf(those) })}</p>)}
        </Confirm>
      )}
    </Dialog>
  );
}

/** How many keys are selected, and what the session may do with them. Shown are the rows that the filter lets through. */
export function Chosen({ of, keys, shown, own }: { of: Selection; keys: ReturnType<typeof live<Key>>; shown: Row<Key>[]; own: Key | undefined }) {
  const selected = keys.rows.value.map((row) => row.object).filter(({ metadata }) => of.value.has(metadata.uid));
  const hidden = selected.length - shown.filter((row) => of.value.has(row.object.metadata.uid)).length;
  const doing = useSignal<{ act: Act; keys: Key[]; left: [Text, Key[]][] } | null>(null);
  const said = useSignal("");
  const enabled = selected.filter(({ spec }) => !spec.disabled);
  const asked = acts.filter(({ verb }) => may(verb, "ownedaccesskeys")).map((act) => {
    const about = act.verb === "patch" ? enabled : selected;
    return { act, about, each: about.map((key) => ({ of: `${act.verb} ${key.metadata.uid}`, version: JSON.stringify(key.spec), key })) };
  });
  const permitted = usePermittedEach(asked.flatMap(({ act: { verb }, each }) => each.map(({ of, version, key: { metadata: { name } } }) => (
    { of, version, question: { verb, resource: "ownedaccesskeys", name } }
  ))));
  useEffect(() => {
    if (selected.length > 0) said.value = "";
  }, [selected.length > 0]);
  const bounding = (own?.status?.lineage ?? []).filter(({ bounds }) => bounds).map(({ name }) => name);
  return (
    <>
      <span role="status">
        {selected.length === 0 ? said.value : text(hidden > 0 ? "selectedHidden" : "selected", { count: selected.length, hidden })}
      </span>
      {asked.map(({ act, about, each }) => {
        const those = each.filter(({ of }) => permitted(of)).map(({ key }) => key);
        const known = each.every(({ of }) => permitted(of) !== undefined);
        const left: [Text, Key[]][] = [["leftDisabled", selected.filter((key) => !about.includes(key))], [act.left, about.filter((key) => !those.includes(key))]];
        return known && those.length > 0 && (
          <button type="button" class={act.verb === "delete" ? "danger quietly" : ""} onClick={() => { doing.value = { act, keys: those, left }; }}>
            {text(act.button)}
          </button>
        );
      })}
      {doing.value && (
        <Several
          {...doing.value} of={of} last={own ? [own.metadata.name, ...bounding] : []}
          close={(done) => {
            if (done > 0) said.value = text(doing.value!.act.done, { what: counted(done) });
            doing.value = null;
            void keys.refresh();
          }}
        />
      )}
    </>
  );
}
