import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Refusal, Row } from "../api";
import type { watchList } from "../live";
import { Dialog } from "../parts/dialog";
import { setSelected, type Selection } from "../parts/list";
import { asRefusal, messageOf } from "../parts/problem";
import { ConfirmForm } from "../parts/deletedialog";
import { deleteObject, patchObject } from "../parts/write";
import { person } from "../person";
import { may, usePermittedEach } from "../rights";
import { text, type Text } from "../texts";
import { currentTime, day } from "../times";
import { readChildren, CreatedObjects, lastUseText, type KeyChildren } from "./details";
import type { Key } from "../kinds/accesskey";
import { keysPath } from "../pages/keys";

/** An action on several keys: the request for each key, and the texts of the dialog. */
interface BulkAction {
  verb: string;
  button: Text;
  title: Text;
  lead: Text;
  leadAll: Text;
  notPermitted: Text;
  outcomeText: Text;
  run(key: Key): Promise<unknown>;
}

const actions: BulkAction[] = [
  {
    verb: "patch", button: "action.disable", title: "selection.disableTitle", lead: "selection.disableLead", leadAll: "selection.disableLead", notPermitted: "selection.notPermittedToChange", outcomeText: "selection.disabled",
    // With the UID, a new key with the same name stays as it is.
    run: ({ metadata: { name, uid } }) => patchObject(keysPath, name, { metadata: { uid }, spec: { disabled: true } }),
  },
  {
    verb: "delete", button: "action.delete", title: "delete.title", lead: "keys.deleteLead", leadAll: "selection.deleteLead", notPermitted: "selection.notPermittedToDelete", outcomeText: "selection.deleted",
    run: ({ metadata }) => deleteObject(keysPath, metadata),
  },
];

const namesOf = (keys: Key[]) => keys.map(({ metadata }) => metadata.name).join(", ");
const keyCount = (keys: number) => text(keys === 1 ? "keys.countOne" : "keys.count", { count: keys });

/** A key in the dialog, with the keys and tokens that stop working with it. */
function KeyItem({ accessKey, created }: { accessKey: Key; created: KeyChildren | undefined }) {
  const { name } = accessKey.metadata;
  const bound = created?.bound;
  return (
    <li>
      <strong>{name}</strong>{" "}
      <span class="quiet">{lastUseText(accessKey)}</span>
      {person.value?.accessKey === name && <p class="problem">{text("keys.deleteOwn")}</p>}
      {bound && bound.keys.length + bound.tokens > 0 && <><p>{text("keys.deleteBound")}</p><CreatedObjects children={bound} /></>}
    </li>
  );
}

/**
 * The dialog that does something with several keys, one after the other. What worked is no longer selected, and what failed is named with the
 * words of the API. The keys whose end ends the session come last, so that the session lasts for the others.
 */
function BulkActionDialog(props: { action: BulkAction; keys: Key[]; excluded: [Text, Key[]][]; lastKeys: string[]; selection: Selection; close: (successes: number) => void }) {
  const { action, keys, excluded, lastKeys, selection, close } = props;
  const childrenOfKeys = useSignal<ReadonlyMap<string, KeyChildren>>(new Map());
  const problem = useSignal<Refusal | null>(null);
  const position = useSignal(0);
  const stopRequested = useRef(false);
  const outcome = useSignal<{ successes: number; failures: [Key, Refusal][] } | null>(null);
  const busy = position.value > 0;
  useEffect(() => {
    let current = !busy;
    void (async () => {
      for (const { metadata: { uid } } of keys) {
        if (!current) return;
        const children = await readChildren(uid);
        childrenOfKeys.value = new Map(childrenOfKeys.value).set(uid, children);
      }
    })().catch((failure) => { problem.value = asRefusal(failure); });
    return () => { current = false; };
  }, [busy]);
  async function run() {
    const rank = (key: Key) => (lastKeys.includes(key.metadata.name) ? 1 : 0);
    const failures: [Key, Refusal][] = [];
    for (const key of [...keys].sort((a, b) => rank(a) - rank(b))) {
      if (stopRequested.current) break;
      position.value++;
      try {
        await action.run(key);
      } catch (failure) {
        const refusal = asRefusal(failure);
        // A deleted key no longer works: that is a success.
        if (refusal.code !== 404) {
          failures.push([key, refusal]);
          continue;
        }
      }
      setSelected(selection, [key.metadata.uid], false);
    }
    const successes = position.value - failures.length;
    if (failures.length === 0) close(successes);
    else outcome.value = { successes, failures };
  }
  const plural = keys.length > 1;
  const name = plural ? keyCount(keys.length) : namesOf(keys);
  const title = text(action.title, { name });
  if (outcome.value) {
    const { successes, failures } = outcome.value;
    return (
      <Dialog title={title} close={() => close(successes)} key="outcome">
        {successes > 0 && <p>{text(action.outcomeText, { what: keyCount(successes) })}</p>}
        <div class="problem" role="alert">
          <strong>{text("problem.failed")}</strong>
          <ul>{failures.map(([{ metadata }, refusal]) => <li><strong>{metadata.name}</strong>: {messageOf(refusal)}</li>)}</ul>
        </div>
        <div class="buttons"><button type="button" onClick={() => close(successes)}>{text("action.close")}</button></div>
      </Dialog>
    );
  }
  const goBack = () => {
    if (busy) stopRequested.current = true;
    else close(0);
  };
  const uses: [Text, Key[]][] = [
    ["selection.usedToday", keys.filter(({ status }) => currentTime.value - Date.parse(status?.lastActivity ?? "") < day)],
    ["selection.unused", keys.filter(({ status }) => !status?.lastActivity)],
  ];
  const confirmation = plural ? String(keys.length) : name;
  return (
    <Dialog title={title} close={goBack} key="question">
      <div role="status">{busy && <p>{text("selection.progress", { at: position.value, count: keys.length })}</p>}</div>
      {busy ? <div class="buttons"><button type="button" onClick={goBack}>{text("selection.stop")}</button></div> : (
        <ConfirmForm
          confirmation={action.verb === "delete" ? { word: confirmation, label: text(plural ? "selection.deleteType" : "delete.type", { name: confirmation, count: confirmation }) } : undefined}
          button={action.button} problem={problem.value} confirmed={run} close={goBack}
        >
          <p>{text(plural ? action.leadAll : action.lead)}</p>
          {plural && uses.map(([label, used]) => used.length > 0 && <p>{text(label, { what: keyCount(used.length) })}</p>)}
          <div class="several" tabIndex={0} role="region" aria-label={text("page.keys")}>
            <ul>{keys.map((key) => <KeyItem accessKey={key} created={childrenOfKeys.value.get(key.metadata.uid)} />)}</ul>
          </div>
          {childrenOfKeys.value.size < keys.length && !problem.value && <p class="quiet">{text("state.loading")}</p>}
          {excluded.map(([reason, excludedKeys]) => excludedKeys.length > 0 && <p class="quiet">{text(reason, { names: namesOf(excludedKeys) })}</p>)}
        </ConfirmForm>
      )}
    </Dialog>
  );
}

/** How many keys are selected, and what the session may do with them. Shown are the rows that the filter lets through. */
export function BulkActions({ selection, keys, visibleRows, sessionKey }: { selection: Selection; keys: ReturnType<typeof watchList<Key>>; visibleRows: Row<Key>[]; sessionKey: Key | undefined }) {
  const rows = keys.rows.value;
  const selected = selection.value.size === 0 ? [] : rows.map((row) => row.object).filter(({ metadata }) => selection.value.has(metadata.uid));
  const hiddenCount = selected.length === 0 ? 0 : selected.length - visibleRows.filter((row) => selection.value.has(row.object.metadata.uid)).length;
  const current = useSignal<{ action: BulkAction; keys: Key[]; excluded: [Text, Key[]][] } | null>(null);
  const outcome = useSignal("");
  const enabled = selected.filter(({ spec }) => !spec.disabled);
  const candidates = actions.filter(({ verb }) => may(verb, "ownedaccesskeys")).map((action) => {
    const applicable = action.verb === "patch" ? enabled : selected;
    return { action, applicable, questions: applicable.map((key) => ({ object: `${action.verb} ${key.metadata.uid}`, version: JSON.stringify(key.spec), key })) };
  });
  const permitted = usePermittedEach(candidates.flatMap(({ action: { verb }, questions }) => questions.map(({ object, version, key: { metadata: { name } } }) => (
    { object, version, question: { verb, resource: "ownedaccesskeys", name } }
  ))));
  useEffect(() => {
    if (selected.length > 0) outcome.value = "";
  }, [selected.length > 0]);
  const bounds = (sessionKey?.status?.lineage ?? []).filter(({ bounds }) => bounds).map(({ name }) => name);
  return (
    <>
      <span role="status">
        {selected.length === 0 ? outcome.value : text(hiddenCount > 0 ? "selection.selectedHidden" : "selection.selected", { count: selected.length, hidden: hiddenCount })}
      </span>
      {candidates.map(({ action, applicable, questions }) => {
        const permittedKeys = questions.filter(({ object }) => permitted(object)).map(({ key }) => key);
        const answered = questions.every(({ object }) => permitted(object) !== undefined);
        const excluded: [Text, Key[]][] = [["selection.alreadyDisabled", selected.filter((key) => !applicable.includes(key))], [action.notPermitted, applicable.filter((key) => !permittedKeys.includes(key))]];
        return answered && permittedKeys.length > 0 && (
          <button type="button" class={action.verb === "delete" ? "danger quietly" : ""} onClick={() => { current.value = { action, keys: permittedKeys, excluded }; }}>
            {text(action.button)}
          </button>
        );
      })}
      {current.value && (
        <BulkActionDialog
          {...current.value} selection={selection} lastKeys={sessionKey ? [sessionKey.metadata.name, ...bounds] : []}
          close={(successes) => {
            if (successes > 0) outcome.value = text(current.value!.action.outcomeText, { what: keyCount(successes) });
            current.value = null;
            void keys.refresh();
          }}
        />
      )}
    </>
  );
}
