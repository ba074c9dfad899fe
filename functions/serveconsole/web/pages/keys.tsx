import { batch, useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { group, send } from "../api";
import { watchList } from "../live";
import { onDemand } from "../parts/ondemand";
import { List, useAddress, useOpened, useSelection, type ListTexts } from "../parts/list";
import { person } from "../person";
import { may } from "../rights";
import { text } from "../texts";
import type { Key } from "../kinds/accesskey";
import { BulkActions } from "../keys/bulkactions";
import type { Secret } from "../parts/secret";

/** The path of access keys. */
export const keysPath = `${group}/ownedaccesskeys`;

const words: ListTexts = { title: "page.keys", lead: "keys.lead", count: "keys.count", countOne: "keys.countOne", countFiltered: "keys.countFiltered", empty: "keys.empty" };

const [KeySheet, preloadSheet] = onDemand(() => import("../keys/sheet").then((it) => it.KeySheet));
const [NewKeyDialog, preloadNewKey] = onDemand(() => import("../keys/newkey").then((it) => it.NewKeyDialog));
const [NewKeySecret] = onDemand(() => import("../keys/newkey").then((it) => it.NewKeySecret));

/** The fields of the form of a new key that an address can fill. */
const formFields = ["displayName", "description", "user", "team", "groups", "scope", "ttl", "ttlAfterLastActivity"] as const;
export type FormField = (typeof formFields)[number];

/** The access keys that the caller may see. */
export function Keys() {
  const keys = useMemo(() => watchList<Key>(keysPath), []);
  const query = new URLSearchParams(location.search);
  const tab = useSignal(query.get("tab") ?? "");
  const fields = Object.fromEntries(formFields.map((name) => [name, useSignal(query.get(name) ?? "")])) as Record<FormField, Signal<string>>;
  // The key that the form is filled in from. Without one, an address has filled it in.
  const model = useSignal("");
  const address = useAddress({ tab, ...fields });
  const { openedName, creating } = address;
  const selection = useSelection(keys);
  const createdKey = useSignal<{ key: Key; secret: Secret; model: string } | null>(null);
  const closeForm = () => batch(() => {
    creating.value = model.value = "";
    for (const name of formFields) fields[name].value = "";
  });
  // When the key of the session no longer works, the sign-in opens at once, and not at the next request.
  const rows = keys.rows.value;
  const sessionKey = useMemo(() => rows.find((row) => row.object.metadata.name === person.value?.accessKey)?.object, [rows, person.value]);
  const sessionKeySeen = useRef(false);
  const sessionEnded = sessionKey ? sessionKey.spec.disabled ?? false : sessionKeySeen.current && keys.loaded.value;
  if (sessionKey) sessionKeySeen.current = true;
  useEffect(() => {
    if (sessionEnded) void send(`${group}/selves`, { method: "POST", body: "{}" }).catch(() => undefined);
  }, [sessionEnded]);
  // After the rows, so that an upgrade takes nothing from a page that is open.
  useEffect(() => {
    if (!keys.loaded.value) return;
    preloadSheet();
    preloadNewKey();
  }, [keys.loaded.value]);
  const key = useOpened(keys, openedName.value, `${keysPath}/${encodeURIComponent(openedName.value)}`);
  return (
    <>
      <List
        list={keys} texts={words} address={address} command="kubectl get ownedaccesskeys -o wide --watch"
        isOff={(key) => key.spec.disabled ?? false}
        selection={may("patch", "ownedaccesskeys") || may("delete", "ownedaccesskeys") ? {
          selected: selection, bar: (visibleRows) => <BulkActions selection={selection} keys={keys} visibleRows={visibleRows} sessionKey={sessionKey} />,
        } : undefined}
        buttons={may("create", "ownedaccesskeys") && (
          <button type="button" class="primary" onClick={() => (creating.value = "yes")}>{text("keys.new")}</button>
        )}
      />
      {creating.value && may("create", "ownedaccesskeys") && (
        <NewKeyDialog
          fields={Object.fromEntries(formFields.map((name) => [name, fields[name].value])) as Record<FormField, string>} model={model.value} close={closeForm}
          created={(key, secret) => {
            createdKey.value = { key, secret, model: model.value };
            closeForm();
            void keys.refresh();
          }}
        />
      )}
      {createdKey.value && <NewKeySecret accessKey={createdKey.value.key} secret={createdKey.value.secret} model={createdKey.value.model} close={() => (createdKey.value = null)} />}
      {openedName.value && (
        <KeySheet
          name={openedName.value} row={key} tab={tab} changed={() => void keys.refresh()}
          open={(name) => (openedName.value = name)}
          close={() => batch(() => { openedName.value = tab.value = ""; })}
          addressOf={(values) => address.addressOf({ new: "yes", ...values })}
          createLike={(name, values) => batch(() => {
            openedName.value = tab.value = "";
            model.value = name;
            creating.value = "yes";
            for (const name of formFields) fields[name].value = values[name];
          })}
        />
      )}
    </>
  );
}
