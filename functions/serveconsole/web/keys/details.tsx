import { useSignal } from "@preact/signals";
import { group, list, warningsOf, type Meta } from "../api";
import { FormDialog } from "../parts/frames";
import { Lifetime } from "../parts/lifetime";
import { useWrite } from "../parts/write";
import { text, type Text } from "../texts";
import type { Key } from "../kinds/accesskey";
import { keysPath } from "../pages/keys";

/** The usual lifetimes of keys that work on. */
export const extensions: [number, Text][] = [[86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"], [7_776_000, "lifetime.quarter"], [0, "lifetime.none"]];

/** The keys and tokens that were created with a key. Objects that the caller may not see are absent. */
interface Children {
  keys: string[];
  tokens: number;
}

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

/** The keys and tokens in words, with the names of the first keys. */
export function CreatedObjects({ children: { keys, tokens } }: { children: Children }) {
  if (keys.length + tokens === 0) return <p>{text("state.nothing")}</p>;
  return (
    <ul>
      {keys.length > 0 && <li>{text(keys.length === 1 ? "count.key" : "count.keys", { count: keys.length })}: {keys.slice(0, 20).join(", ")}{keys.length > 20 && " …"}</li>}
      {tokens > 0 && <li>{text(tokens === 1 ? "count.token" : "count.tokens", { count: tokens })}</li>}
    </ul>
  );
}

/** Returns the ttl of a key that is to work for some more seconds: from now, or from its last use if the key has ttlAfterLastActivity. 0 is no end. */
export function extendedTTL({ metadata, spec }: Key, seconds: number): number {
  const age = spec.ttlAfterLastActivity ? 0 : Math.ceil((Date.now() - Date.parse(metadata.creationTimestamp)) / 1000);
  return seconds === 0 ? 0 : age + seconds;
}

/** The dialog that changes the expiration of a key. */
export function ExpirationDialog({ accessKey, close, changed }: { accessKey: Key; close: () => void; changed: (warnings: string[]) => void }) {
  const { name } = accessKey.metadata;
  const remaining = useSignal(604_800);
  const write = useWrite(keysPath);
  const submit = () => write.patch(name, { spec: { ttl: extendedTTL(accessKey, remaining.value) } }, (response) => changed(warningsOf(response)));
  return (
    <FormDialog title={text("keys.expirationOf", { name })} close={close} submit={submit} write={write} button="keys.changeExpiration" cancelLabel="action.back">
      <p>{text(accessKey.spec.ttlAfterLastActivity ? "keys.expirationIdle" : "keys.expirationLead")}</p>
      <Lifetime seconds={remaining} choices={extensions} />
    </FormDialog>
  );
}
