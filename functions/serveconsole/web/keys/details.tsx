import { useSignal } from "@preact/signals";
import { group, list, warningsOf, type Meta } from "../api";
import { FormDialog } from "../parts/frames";
import { Lifetime, type LifetimeChoice } from "../parts/lifetime";
import { useWrite } from "../parts/write";
import { text, type Text } from "../texts";
import { formatDate } from "../times";
import type { Key } from "../kinds/accesskey";
import { keysPath } from "../pages/keys";

/** The usual lifetimes of keys that work on. */
const extensions: [number, Text][] = [[86_400, "lifetime.day"], [604_800, "lifetime.week"], [2_592_000, "lifetime.month"], [7_776_000, "lifetime.quarter"], [0, "lifetime.none"]];

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

/** Returns when a key ends, in milliseconds: Infinity if it does not. */
const endOf = ({ status }: Key) => (status?.expirationTimestamp ? Date.parse(status.expirationTimestamp) : Infinity);

/** Returns when a key would end that works for some more seconds, in milliseconds. 0 is no end. */
function extendedEnd({ metadata, spec, status }: Key, seconds: number): number {
  if (seconds === 0) return Infinity;
  return seconds * 1000 + (spec.ttlAfterLastActivity ? Date.parse(status?.lastActivity ?? metadata.creationTimestamp) : Date.now());
}

/** Returns the lifetimes with the dates of their ends. */
const datedExtensions = (key: Key) => extensions.map(([seconds, label]): LifetimeChoice => [seconds, label, 0, seconds ? formatDate(extendedEnd(key, seconds)) : undefined]);

/** Reports whether a key that works for some more seconds ends later than now. A minute is not later: the button that was just pressed would stay. */
export function isLater(key: Key, seconds: number): boolean {
  return extendedEnd(key, seconds) > endOf(key) + 60_000;
}

/** Returns the lifetimes that let a key end later than now. */
export const longerExtensions = (key: Key) => datedExtensions(key).filter(([seconds]) => isLater(key, seconds));

/** The dialog that changes the expiration of a key. To extend it, earlier ends are left out. */
export function ExpirationDialog({ accessKey, extend, close, changed }: { accessKey: Key; extend?: boolean; close: () => void; changed: (warnings: string[]) => void }) {
  const { name } = accessKey.metadata;
  const choices = extend ? longerExtensions(accessKey) : datedExtensions(accessKey);
  const remaining = useSignal((choices.find(([seconds]) => seconds === 604_800) ?? choices[0]!)[0]);
  const newEnd = extendedEnd(accessKey, remaining.value);
  const oldEnd = endOf(accessKey);
  const write = useWrite(keysPath);
  const submit = () => write.patch(name, { spec: { ttl: extendedTTL(accessKey, remaining.value) } }, (response) => changed(warningsOf(response)));
  return (
    <FormDialog title={text("keys.expirationOf", { name })} close={close} submit={submit} write={write} button="keys.changeExpiration" cancelLabel="action.back">
      <p>{text(accessKey.spec.ttlAfterLastActivity ? "keys.expirationIdle" : "keys.expirationLead")}</p>
      <Lifetime seconds={remaining} choices={choices} />
      <div role="status">
        {newEnd < oldEnd && <p class="decision">{text("keys.endsEarlier", { when: formatDate(newEnd), before: oldEnd === Infinity ? text("state.neverExpires") : formatDate(oldEnd) })}</p>}
      </div>
    </FormDialog>
  );
}
