import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { group, send } from "../api";
import { watchList } from "../live";
import { List, useAddress, useOpened, useSelection, type ListTexts } from "../parts/list";
import { person } from "../person";
import { may } from "../rights";
import { text } from "../texts";
import { NewKeyDialog, NewKeySecret } from "../keys/newkey";
import { KeyDetails } from "../keys/details";
import type { Key } from "../kinds/accesskey";
import { BulkActions } from "../keys/bulkactions";

/** The path of access keys. */
export const keysPath = `${group}/ownedaccesskeys`;

const words: ListTexts = { title: "page.keys", lead: "keys.lead", count: "keys.count", countOne: "keys.countOne", countFiltered: "keys.countFiltered", empty: "keys.empty" };

/** The access keys that the caller may see. */
export function Keys() {
  const keys = useMemo(() => watchList<Key>(keysPath), []);
  const address = useAddress();
  const { openedName, creating } = address;
  const selection = useSelection(keys);
  const createdKey = useSignal<Key | null>(null);
  // When the key of the session no longer works, the sign-in opens at once, and not at the next request.
  const rows = keys.rows.value;
  const sessionKey = useMemo(() => rows.find((row) => row.object.metadata.name === person.value?.accessKey)?.object, [rows, person.value]);
  const sessionKeySeen = useRef(false);
  const sessionEnded = sessionKey ? sessionKey.spec.disabled ?? false : sessionKeySeen.current && keys.loaded.value;
  if (sessionKey) sessionKeySeen.current = true;
  useEffect(() => {
    if (sessionEnded) void send(`${group}/selves`, { method: "POST", body: "{}" }).catch(() => undefined);
  }, [sessionEnded]);
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
          close={() => (creating.value = "")}
          created={(key) => {
            creating.value = "";
            createdKey.value = key;
            void keys.refresh();
          }}
        />
      )}
      {createdKey.value && <NewKeySecret accessKey={createdKey.value} close={() => (createdKey.value = null)} />}
      {openedName.value && (
        <KeyDetails
          name={openedName.value}
          row={key}
          open={(name) => (openedName.value = name)}
          changed={() => void keys.refresh()}
          close={() => (openedName.value = "")}
        />
      )}
    </>
  );
}
