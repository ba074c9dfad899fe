import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { group } from "../api";
import { live } from "../live";
import { List, useAddress, type Words } from "../parts/list";
import { may } from "../rights";
import { text } from "../texts";
import { Create, Once } from "./create";
import { Details } from "./details";
import type { Key } from "./key";

/** The path of the access keys. */
export const path = `${group}/ownedaccesskeys`;

const words: Words = { title: "keys", lead: "keysLead", count: "count", countOne: "countOne", countFiltered: "countFiltered", empty: "empty" };

/** The access keys that the caller may see. */
export function Keys() {
  const keys = useMemo(() => live<Key>(path), []);
  const address = useAddress();
  const { opened } = address;
  const creating = useSignal(false);
  const made = useSignal<Key | null>(null);
  return (
    <>
      <List
        of={keys} words={words} address={address} wide={["Disabled", "Scope"]} command="kubectl get ownedaccesskeys -o wide --watch"
        off={(key) => key.spec.disabled ?? false}
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
          row={keys.rows.value.find((row) => row.object.metadata.name === opened.value)?.object}
          loaded={keys.loaded.value}
          open={(name) => (opened.value = name)}
          changed={() => void keys.refresh()}
          close={() => (opened.value = "")}
        />
      )}
    </>
  );
}
