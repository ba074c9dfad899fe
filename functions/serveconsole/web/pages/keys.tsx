import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { group, send } from "../api";
import { live } from "../live";
import { List, useAddress, useOpened, useSelection, type Words } from "../parts/list";
import { person } from "../person";
import { may } from "../rights";
import { text } from "../texts";
import { Create, Once } from "./create";
import { Details } from "./details";
import type { Key } from "./key";
import { Chosen } from "./several";

/** The path of the access keys. */
export const path = `${group}/ownedaccesskeys`;

const words: Words = { title: "keys", lead: "keysLead", count: "count", countOne: "countOne", countFiltered: "countFiltered", empty: "empty" };

/** The access keys that the caller may see. */
export function Keys() {
  const keys = useMemo(() => live<Key>(path), []);
  const address = useAddress();
  const { opened } = address;
  const selection = useSelection(keys);
  const creating = useSignal(false);
  const made = useSignal<Key | null>(null);
  // A session whose key has ended asks for another sign-in at once, and not at the next request.
  const own = keys.rows.value.find((row) => row.object.metadata.name === person.value?.accessKey)?.object;
  const seen = useRef(false);
  const ended = own ? own.spec.disabled ?? false : seen.current && keys.loaded.value;
  if (own) seen.current = true;
  useEffect(() => {
    if (ended) void send(`${group}/selves`, { method: "POST", body: "{}" }).catch(() => undefined);
  }, [ended]);
  const key = useOpened(keys, opened.value, `${path}/${encodeURIComponent(opened.value)}`);
  return (
    <>
      <List
        of={keys} words={words} address={address} wide={["Disabled", "Scope"]} command="kubectl get ownedaccesskeys -o wide --watch"
        off={(key) => key.spec.disabled ?? false}
        selection={may("patch", "ownedaccesskeys") || may("delete", "ownedaccesskeys") ? {
          of: selection, bar: (shown) => <Chosen of={selection} keys={keys} shown={shown} own={own} />,
        } : undefined}
        buttons={may("create", "ownedaccesskeys") && (
          <button type="button" class="primary" onClick={() => (creating.value = true)}>{text("newKey")}</button>
        )}
      />
      {creating.value && (
        <Create
          close={() => (creating.value = false)}
          made={(key) => {
            creating.value = false;
            made.value = key;
            void keys.refresh();
          }}
        />
      )}
      {made.value && <Once of={made.value} close={() => (made.value = null)} />}
      {opened.value && (
        <Details
          name={opened.value}
          row={key}
          open={(name) => (opened.value = name)}
          changed={() => void keys.refresh()}
          close={() => (opened.value = "")}
        />
      )}
    </>
  );
}
